// @ts-check
/** Finds the mark at a point or nearest to it, its points one by one, and its words. */

import { shortNumber } from "./numbers.js";
import { pointLength, pointsOf } from "./wire.js";

/** @typedef {import("./wire.js").Mark} Mark */
/** @typedef {import("./wire.js").PanelState} PanelState */
/**
 * A mark, which of its points is meant (-1 for none), where that is, and what there is to say.
 * @typedef {{index: number, mark: Mark, words: string, point: number, x: number, y: number}} Found
 */

const NEAR = 12; // CSS pixels from a line or dot
const BRINK = 5; // CSS pixels from an area that stands for one thing: an arrow may be thin
const REACH = 70; // CSS pixels from such an area or dot, within which it is meant if nothing else is
const TITLE_DOWN = 26; // CSS pixels of a title, at which nothing is meant
const TALL = 0.5; // of a panel's height, that an area without a press takes to be a column of a chart

/**
 * Return the mark to speak of at a point: the nearest line or dot within 12 pixels, else the topmost area there.
 * @param {PanelState} panel
 * @param {number} x
 * @param {number} y
 * @returns {Found | null}
 */
export function markAt(panel, x, y) {
  return nearestMark(panel, x, y, isSpokenOf);
}

/**
 * Return what a pointer means at a place: what can be grabbed there, else what it is on, else what is near; of a curve the
 * point above or below, however far; else an arrow not far from there.
 * @param {PanelState} panel
 * @param {number} x
 * @param {number} y
 * @param {number} grab pixels from what can be moved
 * @returns {Found | null}
 */
export function meantAt(panel, x, y, grab) {
  const moved = nearestMark(panel, x, y, isMoved, grab);
  if (moved) return moved;
  const on = panel.marks.findLastIndex((mark) => isThing(mark) && isArea(mark) && isInside(mark, x, y));
  if (on >= 0) return foundAt(panel, on, nearestPoint(panel.marks[on], x, y).point);
  const near = markAt(panel, x, y);
  if (near && !isCurve(near.mark) && !isColumn(panel, near.mark)) return near;
  if (y < TITLE_DOWN) return null;
  return aboveOrBelow(panel, x, y) ?? nearestMark(panel, x, y, isThing, REACH, REACH);
}

/**
 * Return the point of the nearest curve that has the nearest x, or the nearest column of a chart.
 * @param {PanelState} panel
 * @param {number} x
 * @param {number} y
 */
function aboveOrBelow(panel, x, y) {
  let [least, found] = [Infinity, /** @type {Found | null} */ (null)];
  panel.marks.forEach((mark, index) => {
    if (isCurve(mark)) {
      const points = pointsOf(mark);
      const best = pointNumbers(mark).reduce(
        (best, point) => Math.abs(points[2 * point] - x) <= Math.abs(points[2 * best] - x) ? point : best,
        0,
      );
      const away = Math.abs(points[2 * best + 1] - y);
      if (away < least) [least, found] = [away, foundAt(panel, index, best)];
    } else if (isColumn(panel, mark)) {
      const [left, , right] = boxOf(mark);
      const away = panel.size[1] + Math.max(left - x, x - right, 0);
      if (away < least) [least, found] = [away, { ...foundAt(panel, index, -1), y }];
    }
  });
  return found;
}

/** Whether a mark stands for one thing that is met from beside it, too: it may be thin. @param {Mark} mark */
function isThing(mark) {
  return Boolean(mark.press || (mark.moves && mark.words));
}

/** @type {WeakMap<Mark, boolean>} */
const knownCurves = new WeakMap();

/** Whether a mark is a line that can be read and never goes back: it has one value at each x. @param {Mark} mark */
export function isCurve(mark) {
  if (!mark.readout || mark.k !== "p" || isArea(mark)) return false;
  let known = knownCurves.get(mark);
  if (known === undefined) {
    const points = pointsOf(mark);
    const across = pointNumbers(mark).map((point) => points[2 * point]);
    known = across.length > 0 && across.every((place, at) => !at || place >= across[at - 1]);
    knownCurves.set(mark, known);
  }
  return known;
}

/** Whether a mark is a column of a chart: an area in the colour of the paper behind all else. @param {PanelState} panel @param {Mark} mark */
export function isColumn(panel, mark) {
  if (mark.k !== "p" || mark.fill !== "paper" || !mark.words || mark.press) return false;
  const [, top, , bottom] = boxOf(mark);
  return bottom - top > TALL * panel.size[1];
}

/**
 * Whether there is something to say of a mark or to do with it. Where a range can be chosen is ground, not a mark.
 * @param {Mark} mark
 */
export function isSpokenOf(mark) {
  return Boolean(mark.words || mark.readout || mark.press || isMoved(mark));
}

/** Whether dragging moves a mark. @param {Mark} mark */
export function isMoved(mark) {
  return mark.drag !== undefined && !isGround(mark);
}

/** Whether dragging across a mark chooses a range. @param {Mark} mark */
export function isGround(mark) {
  return mark.drag?.name === "zoom";
}

/**
 * Return the nearest of the marks that are wanted, lines and dots before areas.
 * @param {PanelState} panel
 * @param {number} x
 * @param {number} y
 * @param {(mark: Mark) => boolean} wanted
 * @param {number} [near] pixels from a line or dot
 * @param {number} [brink] pixels from an area that stands for one thing
 * @returns {Found | null}
 */
export function nearestMark(panel, x, y, wanted, near = NEAR, brink = BRINK) {
  let [least, found, within] = [near, /** @type {Found | null} */ (null), /** @type {Found | null} */ (null)];
  for (let index = panel.marks.length - 1; index >= 0; index--) {
    const mark = panel.marks[index];
    if (!wanted(mark)) continue;
    if (isArea(mark)) {
      if (!within && isInside(mark, x, y)) within = foundAt(panel, index, nearestPoint(mark, x, y).point);
      if (!isThing(mark)) continue;
    }
    const { point, distance } = nearestPoint(mark, x, y);
    if (isArea(mark) && distance > brink) continue;
    if (distance < least) [least, found] = [distance, foundAt(panel, index, point)];
  }
  return found ?? within;
}

/**
 * Return a mark as `markAt` does, at one of its points, or as a whole where `point` is -1.
 * @param {PanelState} panel
 * @param {number} index
 * @param {number} point
 * @returns {Found}
 */
export function foundAt(panel, index, point) {
  const mark = panel.marks[index];
  const [x, y] = placeOf(mark, point);
  return { index, mark, point, x, y, words: wordsOf(mark, point) };
}

/**
 * Return what there is to say of a mark at one of its points: the readout, and the words.
 * @param {Mark} mark
 * @param {number} point
 */
export function wordsOf(mark, point) {
  const readout = mark.readout && point >= 0 ? readoutAt(mark, point) : "";
  return [readout, mark.words ?? ""].filter(Boolean).join("\n");
}

/**
 * @param {Mark} mark
 * @param {number} point
 */
function readoutAt({ readout = "", data = new Float64Array(), k }, point) {
  const each = k === "b" ? 3 : 2;
  const [x, y] = [data[point * each], data[point * each + each - 1]]; // of a band the upper edge
  return readout.replace("{x}", valueText(x)).replace("{y}", shortNumber(y));
}

/** @param {number} value */
function valueText(value) {
  return Number.isInteger(value) && Math.abs(value) < 1e5 ? value.toLocaleString("en") : shortNumber(value);
}

/**
 * Return the numbers of a mark's points, those where the pen is lifted left out.
 * @param {Mark} mark
 */
export function pointNumbers(mark) {
  const [points, each] = [pointsOf(mark), pointLength(mark)];
  return Array.from({ length: points.length / each }, (_, at) => at).filter((at) => !Number.isNaN(points[at * each]));
}

/**
 * Return where a point of a mark is, or the middle of the mark for -1.
 * @param {Mark} mark
 * @param {number} point
 * @returns {[number, number]}
 */
function placeOf(mark, point) {
  if (mark.k === "t") return [mark.x ?? 0, mark.y ?? 0];
  if (mark.k === "i") return [(mark.x ?? 0) + (mark.width ?? 0) / 2, (mark.y ?? 0) + (mark.height ?? 0) / 2];
  const [points, each] = [pointsOf(mark), pointLength(mark)];
  if (point >= 0) return [points[point * each], points[point * each + each - 1]];
  const [left, top, right, bottom] = boxOf(mark);
  return [(left + right) / 2, (top + bottom) / 2];
}

/**
 * Return left, top, right and bottom of a mark.
 * @param {Mark} mark
 * @returns {[number, number, number, number]}
 */
export function boxOf(mark) {
  const { x = 0, y = 0, width = 0, height = 0 } = mark;
  if (mark.k === "i") return [x, y, x + width, y + height];
  if (mark.k === "t") return textBox(mark);
  const [points, each] = [pointsOf(mark), pointLength(mark)];
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (let at = 0; at < points.length; at++) {
    const place = points[at];
    if (at % each === 0) {
      if (place < box.left) box.left = place;
      if (place > box.right) box.right = place;
    } else {
      if (place < box.top) box.top = place;
      if (place > box.bottom) box.bottom = place;
    }
  }
  return [box.left, box.top, box.right, box.bottom];
}

/**
 * @param {Mark} mark
 * @returns {[number, number, number, number]}
 */
function textBox(mark) {
  const { x = 0, y = 0, text = "", size = 12, anchor = "start" } = mark;
  const width = 0.55 * size * text.length; // near enough for a pointer
  const left = anchor === "middle" ? x - width / 2 : anchor === "end" ? x - width : x;
  return [left, y - size / 2, left + width, y + size / 2];
}

/**
 * Whether a mark is met by being inside it rather than by being near it.
 * @param {Mark} mark
 */
function isArea(mark) {
  return mark.k === "p" ? Boolean(mark.fill || mark.hatch || (mark.drag && !mark.stroke)) : mark.k !== "d";
}

/**
 * @param {Mark} mark
 * @param {number} x
 * @param {number} y
 */
function isInside(mark, x, y) {
  if (mark.k === "b") return isInBand(pointsOf(mark), x, y);
  if (mark.k === "p") return isInPolygon(pointsOf(mark), x, y);
  const [left, top, right, bottom] = boxOf(mark);
  return x >= left && x <= right && y >= top && y <= bottom;
}

/**
 * @param {Float64Array} points triples
 * @param {number} x
 * @param {number} y
 */
function isInBand(points, x, y) {
  for (let at = 3; at < points.length; at += 3) {
    const [left, right] = [points[at - 3], points[at]];
    if (!(x >= left && x <= right)) continue;
    const share = right > left ? (x - left) / (right - left) : 0;
    const [low, high] = [1, 2].map((edge) => points[at - 3 + edge] * (1 - share) + points[at + edge] * share);
    if (y <= Math.max(low, high) && y >= Math.min(low, high)) return true;
  }
  return false;
}

/**
 * Count the edges to the right of the point: an odd number is inside. Each piece between two lifts is closed.
 * @param {Float64Array} points
 * @param {number} x
 * @param {number} y
 */
function isInPolygon(points, x, y) {
  let inside = false;
  let first = 0;
  for (let at = 0; at < points.length; at += 2) {
    if (Number.isNaN(points[at])) {
      first = at + 2;
      continue;
    }
    const last = at + 2 >= points.length || Number.isNaN(points[at + 2]);
    const next = last ? first : at + 2;
    const [fromY, toY] = [points[at + 1], points[next + 1]];
    if (fromY > y === toY > y) continue;
    const cut = points[at] + ((y - fromY) / (toY - fromY)) * (points[next] - points[at]);
    if (x < cut) inside = !inside;
  }
  return inside;
}

/**
 * Return the point of a mark that is nearest, and how far away the line (of dots: the dot) is.
 * @param {Mark} mark
 * @param {number} x
 * @param {number} y
 */
function nearestPoint(mark, x, y) {
  const found = { point: -1, distance: Infinity };
  if (mark.k === "t" || mark.k === "i") return found;
  const [points, each] = [pointsOf(mark), pointLength(mark)];
  const last = each - 1;
  for (let at = 0; at < points.length; at += each) {
    const distance = each === 3 ? Math.abs(points[at] - x) : Math.hypot(points[at] - x, points[at + last] - y);
    if (distance < found.distance) Object.assign(found, { point: at / each, distance });
    if (mark.k !== "p" || at === 0) continue;
    const before = at - each;
    const share = shareAlong(points[before], points[before + 1], points[at], points[at + 1], x, y);
    const [cutX, cutY] = [0, 1].map((axis) => points[before + axis] * (1 - share) + points[at + axis] * share);
    const away = Math.hypot(cutX - x, cutY - y);
    if (away < found.distance) Object.assign(found, { point: (share < 0.5 ? before : at) / each, distance: away });
  }
  if (mark.k === "d") found.distance = Math.max(0, found.distance - (mark.size ?? 6) / 2);
  return found;
}

/**
 * Return how far along a segment the place nearest to a point is, 0 to 1.
 * @param {number} fromX
 * @param {number} fromY
 * @param {number} toX
 * @param {number} toY
 * @param {number} x
 * @param {number} y
 */
function shareAlong(fromX, fromY, toX, toY, x, y) {
  const [alongX, alongY] = [toX - fromX, toY - fromY];
  const length = alongX * alongX + alongY * alongY;
  return length ? Math.min(1, Math.max(0, ((x - fromX) * alongX + (y - fromY) * alongY) / length)) : 0;
}
