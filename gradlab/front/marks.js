// @ts-check
/** Hit testing: the mark at a point or nearest to it, the visible points of a mark, and their texts. */

import { countText, shortNumber } from "./numbers.js";
import { pointsOf, remembered } from "./wire.js";

/** @import { Mark, PanelState } from "./wire.js" */
/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */
/**
 * A mark, one of its points (-1 for none), their position, and a text about them.
 * @typedef {{index: number, mark: Mark, words: string, point: number, x: number, y: number}} Found
 */

const NEAR = 12; // CSS pixels from a line or dot
const BRINK = 5; // CSS pixels from the area of an item (`isThing`), because an arrow may be thin
const REACH = 70; // CSS pixels from an item, within which it is found if nothing else is
const TITLE_DOWN = 26; // CSS pixels of the title, where no curve or item is found
const TALL = 0.3; // share of the panel's height above which an area can be a column of a chart
const LINE_HEIGHT = 1.15; // in font sizes

/**
 * Return the mark that a pointer means, the first of these: a movable mark in reach, an item under the pointer, a near
 * mark, a point of a curve or a column above or below at any distance, an item at some distance. Return null for none.
 * @param {PanelState} panel @param {number} x @param {number} y @param {number} grab CSS pixels from movable marks
 * @returns {Found | null}
 */
export function meantAt(panel, x, y, grab) {
  const moved = nearestMark(panel, x, y, isMoved, grab);
  if (moved) return moved;
  const on = panel.marks.findLastIndex((mark) => isThing(mark) && isArea(mark) && isInside(mark, x, y));
  if (on >= 0) return foundAt(panel, on, nearestPoint(panel.marks[on], x, y).point);
  const near = nearestMark(panel, x, y, isSpokenOf);
  if (near && !isCurve(near.mark) && !isColumn(panel, near.mark)) return near;
  if (y < TITLE_DOWN) return null;
  return aboveOrBelow(panel, x, y) ?? nearestMark(panel, x, y, isThing, REACH, REACH);
}

/** Return the point or column above or below. @param {PanelState} panel @param {number} x @param {number} y */
function aboveOrBelow(panel, x, y) {
  let [least, nearest] = [Infinity, /** @type {Found | null} */ (null)];
  panel.marks.forEach((mark, index) => {
    if (isCurve(mark)) {
      const [points, numbers] = [pointsOf(mark), pointNumbers(mark)];
      if (!numbers.length) return;
      const best = numbers.reduce((best, point) =>
        Math.abs(points[2 * point] - x) <= Math.abs(points[2 * best] - x) ? point : best
      );
      const away = Math.abs(points[2 * best + 1] - y);
      if (away < least) [least, nearest] = [away, foundAt(panel, index, best)];
    } else if (isColumn(panel, mark)) {
      const [left, , right] = boxOf(mark);
      const away = panel.size[1] + Math.max(left - x, x - right, 0);
      if (away < least) [least, nearest] = [away, { ...foundAt(panel, index, -1), y }];
    }
  });
  return nearest;
}

/** Return whether a mark is an item, such as an arrow, that is also found near its area. @param {Mark} mark */
function isThing(mark) {
  return Boolean(mark.press || (mark.moves && mark.words));
}

/** @type {WeakMap<Mark, boolean>} */
const knownCurves = new WeakMap();

/** Return whether a mark is a line with a readout and one value at each x. @param {Mark} mark */
export function isCurve(mark) {
  if (!mark.readout || mark.k !== "p" || isArea(mark)) return false;
  return remembered(knownCurves, mark, () => {
    const across = pointsOf(mark).filter((place, index) => index % 2 === 0 && !Number.isNaN(place));
    return across.every((place, index) => !index || place >= across[index - 1]);
  });
}

/** Return whether a mark is a column, a high area in paper colour. @param {PanelState} panel @param {Mark} mark */
export function isColumn(panel, mark) {
  if (mark.k !== "p" || mark.fill !== "paper" || !mark.words || mark.press || mark.moves) return false;
  const [, top, , bottom] = boxOf(mark);
  return bottom - top > TALL * panel.size[1];
}

/** Return whether a mark has a text or can be pressed or dragged. @param {Mark} mark */
export function isSpokenOf(mark) {
  return Boolean(mark.words || mark.readout || mark.press || mark.drag);
}

/** Return whether a mark can be dragged. @param {Mark} mark */
export function isMoved(mark) {
  return Boolean(mark.drag);
}

/**
 * Return the nearest of the `wanted` marks, lines and dots before areas; null if there is none.
 * @param {PanelState} panel @param {number} x @param {number} y @param {(mark: Mark) => boolean} wanted
 * @param {number} [near] CSS pixels from a line or dot
 * @param {number} [brink] CSS pixels from the area of an item @returns {Found | null}
 */
export function nearestMark(panel, x, y, wanted, near = NEAR, brink = BRINK) {
  let [least, nearest, within] = [near, /** @type {Found | null} */ (null), /** @type {Found | null} */ (null)];
  for (let index = panel.marks.length - 1; index >= 0; index--) {
    const mark = panel.marks[index];
    if (!wanted(mark)) continue;
    const area = isArea(mark);
    if (area && !within && isInside(mark, x, y)) within = foundAt(panel, index, nearestPoint(mark, x, y).point);
    if (area && !isThing(mark)) continue;
    const { point, distance } = nearestPoint(mark, x, y);
    if (distance < least && !(area && distance > brink)) [least, nearest] = [distance, foundAt(panel, index, point)];
  }
  return nearest ?? within;
}

/** Return a mark at a point, or at -1 whole. @param {PanelState} panel @param {number} index @param {number} point */
export function foundAt(panel, index, point) {
  const mark = panel.marks[index];
  const words = mark.words ?? "";
  if (point < 0) {
    const [left, top, right, bottom] = boxOf(mark);
    return { index, mark, point, words, x: (left + right) / 2, y: (top + bottom) / 2 };
  }
  const [points, data, across, up] = [pointsOf(mark), mark.data ?? [], 2 * point, 2 * point + 1];
  const readout = (mark.readout ?? "").replace("{x}", countText(data[across])).replace("{y}", shortNumber(data[up]));
  return { index, mark, point, words: [readout, words].filter(Boolean).join("\n"), x: points[across], y: points[up] };
}

/** Return whether a position is within the axes of a mark. @param {Mark} mark @param {number} x @param {number} y */
function isSeen({ clip }, x, y) {
  if (!clip) return !Number.isNaN(x);
  return x >= clip[0] - 1 && x <= clip[2] + 1 && y >= clip[1] - 1 && y <= clip[3] + 1;
}

/** Return the indices of a mark's visible points. @param {Mark} mark */
export function pointNumbers(mark) {
  const points = pointsOf(mark);
  const numbers = [];
  for (let index = 0; index < points.length; index += 2) {
    if (isSeen(mark, points[index], points[index + 1])) numbers.push(index / 2);
  }
  return numbers;
}

/** Return the bounding box of a mark, also of a rotated text. @param {Mark} mark @returns {Box} */
export function boxOf(mark) {
  const { x = 0, y = 0, width = 0, height = 0 } = mark;
  if (mark.k === "i") return [x, y, x + width, y + height];
  if (mark.k === "t") return textBox(mark);
  const points = pointsOf(mark);
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let index = 0; index < points.length; index += 2) {
    if (Number.isNaN(points[index])) continue;
    [left, right] = [Math.min(left, points[index]), Math.max(right, points[index])];
    [top, bottom] = [Math.min(top, points[index + 1]), Math.max(bottom, points[index + 1])];
  }
  return [left, top, right, bottom];
}

/** @param {Mark} mark @returns {Box} */
function textBox({ x = 0, y = 0, width = 0, size = 12, anchor = "start", angle = 0 }) {
  const [from, half] = [anchor === "middle" ? -width / 2 : anchor === "end" ? -width : 0, size * LINE_HEIGHT / 2];
  const [sin, cos] = [Math.sin(angle * Math.PI / 180), Math.cos(angle * Math.PI / 180)];
  const across = [x + from * cos, x + (from + width) * cos];
  const down = [y - from * sin, y - (from + width) * sin];
  const [aside, above] = [half * sin, half * cos];
  return [
    Math.min(...across) - aside,
    Math.min(...down) - above,
    Math.max(...across) + aside,
    Math.max(...down) + above,
  ];
}

/** Return whether a mark is found inside it rather than near it. @param {Mark} mark */
function isArea(mark) {
  return mark.k === "p" ? Boolean(mark.fill || mark.hatch) : mark.k !== "d";
}

/** @param {Mark} mark @param {number} x @param {number} y */
function isInside(mark, x, y) {
  if (!isSeen(mark, x, y)) return false;
  if (mark.k === "p") return isInPolygon(pointsOf(mark), x, y);
  const [left, top, right, bottom] = boxOf(mark);
  return x >= left && x <= right && y >= top && y <= bottom;
}

/** Return whether a point is in a polygon. @param {Float64Array} points @param {number} x @param {number} y */
function isInPolygon(points, x, y) {
  let inside = false;
  let first = 0;
  for (let index = 0; index < points.length; index += 2) {
    if (Number.isNaN(points[index])) {
      first = index + 2;
      continue;
    }
    const last = index + 2 >= points.length || Number.isNaN(points[index + 2]);
    const next = last ? first : index + 2;
    const [fromY, toY] = [points[index + 1], points[next + 1]];
    if (fromY > y === toY > y) continue;
    const cut = points[index] + ((y - fromY) / (toY - fromY)) * (points[next] - points[index]);
    if (x < cut) inside = !inside;
  }
  return inside;
}

/** Return a mark's nearest point, and its distance. @param {Mark} mark @param {number} x @param {number} y */
function nearestPoint(mark, x, y) {
  let [point, least] = [-1, Infinity];
  if (mark.k === "t" || mark.k === "i") return { point, distance: least };
  const points = pointsOf(mark);
  for (let index = 0; index < points.length; index += 2) {
    const [toX, toY] = [points[index], points[index + 1]];
    const far = Math.hypot(toX - x, toY - y);
    if (far < least && isSeen(mark, toX, toY)) [point, least] = [index / 2, far];
    if (mark.k !== "p" || index === 0) continue;
    const [fromX, fromY] = [points[index - 2], points[index - 1]];
    const [alongX, alongY] = [toX - fromX, toY - fromY];
    const length = alongX * alongX + alongY * alongY;
    const share = length ? Math.min(1, Math.max(0, ((x - fromX) * alongX + (y - fromY) * alongY) / length)) : 0;
    const [cutX, cutY] = [fromX + share * alongX, fromY + share * alongY];
    const away = Math.hypot(cutX - x, cutY - y);
    if (!(away < least) || !isSeen(mark, cutX, cutY)) continue;
    const ends = share < 0.5 ? [index - 2, index] : [index, index - 2];
    const end = ends.find((each) => isSeen(mark, points[each], points[each + 1]));
    if (end !== undefined) [point, least] = [end / 2, away];
  }
  return { point, distance: mark.k === "d" ? Math.max(0, least - (mark.size ?? 6) / 2) : least };
}
