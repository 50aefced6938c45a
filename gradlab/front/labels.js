// @ts-check
/** Positions of labels: without overlaps, within the panel, and hiding as little of the marks as possible. */

import { boxOf } from "./marks.js";
import { placeOn } from "./scales.js";
import { boxesTouch, fitting, swatchMark, text } from "./texts.js";
import { pointsOf, remembered } from "./wire.js";

/** @import { Mark } from "./wire.js" */
/** @import { Box } from "./marks.js" */
/** @import { Plot, Placed } from "./axes.js" */
/** @import { Measure } from "./texts.js" */
/** A position of a label: the y coordinate of its middle, and the x coordinate of its start, middle or end. @typedef {{x: number, y: number, anchor: "start" | "middle" | "end"}} Spot */

const ALONG = 7; // CSS pixels between the points of a line that a label should not hide
const TEXT_APART = 20; // CSS pixels between such points of a text
const MOST_THINGS = 200; // largest number of such points between two corners of a line
const [ROWS, ROW] = [4, 17]; // number and height of the rows below the upper edge of the axes
const ROWS_APART = 16; // CSS pixels between labels at the right of the axes
const LATER = 0.35; // cost of each position before it in the list, in hidden points
const SHORTER = 3; // cost of a shorter form

/** @type {Record<string, [number, number][]>} offsets from a point, in CSS pixels */
const LABEL_STEPS = {
  right: [[10, 0]],
  left: [[-10, 0]],
  above: [[0, -13], [0, -24]],
  below: [[0, 13], [0, 28]],
  center: [[0, 0]],
  around: [[9, -11], [-9, -11], [9, 11], [-9, 11], [0, -16], [0, 16], [14, 0], [-14, 0], [12, -28], [-12, -28]],
};

/**
 * Return the texts for which there is a free position, as marks; they do not overlap texts in `placed`.
 * @param {Placed[]} texts @param {Placed[]} placed @param {Plot[]} plots @param {[number, number]} size of the panel
 * @param {Measure} measure @returns {Placed[]}
 */
export function placeLabels(texts, placed, plots, size, measure) {
  if (!texts.length) return [];
  const margins = texts.filter(({ mark }) => mark.where === "margin");
  const labels = plots.flatMap((plot, index) =>
    marginLabels(margins.filter(({ mark }) => (mark.axes ?? 0) === index), plot, size, measure)
  );
  const boxes = [...placed, ...labels].flatMap(({ mark }) => mark.k === "t" ? [boxOf(mark)] : []);
  const things = placed.map(({ mark }) => coveredBy(mark));
  const beforeContours = placed.flatMap(({ mark }, index) => mark.stroke?.startsWith("grey/") ? [] : [things[index]]);
  const marks = new Map(placed.map(({ id, mark }) => [id, mark]));
  for (const { id, mark } of texts) {
    if (mark.where === "margin") continue;
    const label = bestPlace(mark, plots[mark.axes ?? 0], marks.get(mark.of ?? ""), {
      ...{ boxes, size, measure },
      things: mark.where === "on" ? beforeContours : things,
    });
    if (!label) continue;
    boxes.push(boxOf(label));
    labels.push({ id, mark: label });
  }
  return labels;
}

/**
 * @param {Mark} mark @param {Plot} plot @param {Mark | undefined} of
 * @param {{boxes: Box[], things: Float64Array[], size: [number, number], measure: Measure}} around
 * @returns {Mark | null}
 */
function bestPlace(mark, plot, of, { boxes, things, size: [panelWidth, panelHeight], measure }) {
  const { size = 12, bold = false, where = "around" } = mark;
  const inside = where === "top" || where === "on" || where === "beside";
  const [left, top, right, bottom] = inside
    ? [plot.left, plot.top, Math.min(plot.right + 10, panelWidth), plot.bottom]
    : [0, 0, panelWidth, panelHeight];
  let [least, best] = [Infinity, /** @type {Mark | null} */ (null)];
  (mark.texts ?? []).forEach((words, form) => {
    const width = measure(words, size, bold);
    spotsOf(mark, plot, of, width, panelWidth).forEach((spot, index) => {
      const cost = LATER * index + SHORTER * form;
      if (cost >= least) return;
      const label = text(words, spot.x, spot.y, { ...styleOf(mark), anchor: spot.anchor, size, width });
      const box = boxOf(label);
      if (box[0] < left || box[1] < top || box[2] > right || box[3] > bottom) return;
      if (boxes.some((other) => boxesTouch(box, other))) return;
      const hidden = hiddenBy(box, things);
      if (mark.clear && hidden) return;
      if (cost + hidden < least) [least, best] = [cost + hidden, label];
    });
  });
  return best;
}

/** @param {Mark} mark */
function styleOf({ role, bold, backed, words }) {
  return { role, bold, backed, words };
}

/**
 * Return the allowed positions of a text, the best first.
 * @param {Mark} mark @param {Plot} plot @param {Mark | undefined} of @param {number} wide
 * @param {number} panelWidth @returns {Spot[]}
 */
function spotsOf(mark, plot, of, wide, panelWidth) {
  const where = mark.where ?? "around";
  if (mark.of) {
    return !of ? [] : of.tail ? spotsAside(of) : where === "on" ? spotsOn(of, plot) : spotsBeside(of, plot, wide);
  }
  const x = placeOn(plot.x, mark.x ?? 0);
  const y = where === "top" ? plot.top : placeOn(plot.y, mark.y ?? 0);
  if (!(x >= plot.left - 1 && x <= plot.right + 1 && y >= plot.top - 1 && y <= plot.bottom + 1)) return [];
  const rows = Array.from({ length: ROWS }, (_, row) => (row + 0.5) * ROW);
  const steps = where === "top"
    ? rows.map((down) => [x + 5 + wide <= Math.min(plot.right + 10, panelWidth) ? 5 : -5, down])
    : where.split(" ").flatMap((side) => LABEL_STEPS[side]);
  return steps.map(([right, down]) => ({ x: x + right, y: y + down, anchor: anchorOf(right) }));
}

/** Return positions on both sides of an arrow, those near its middle first. @param {Mark} arrow @returns {Spot[]} */
function spotsAside(arrow) {
  const [x0, y0, x1, y1] = /** @type {Float64Array} */ (arrow.tail);
  const points = pointsOf(arrow);
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length <= 10 || !points.length) return [];
  const thick = Math.hypot(points[0] - points[12], points[1] - points[13]);
  const [across, down] = [-(y1 - y0) / length, (x1 - x0) / length];
  /** @type {Spot[]} */
  const spots = [];
  for (const far of [thick + 9, 2.2 * thick + 10]) {
    for (const share of [0.5, 0.3, 0.7]) {
      for (const away of [far, -far]) {
        const [x, y] = [x0 + share * (x1 - x0) + away * across, y0 + share * (y1 - y0) + away * down];
        spots.push({ x, y, anchor: anchorOf(away * across, 5) });
      }
    }
  }
  return spots;
}

/** Return the anchor of a text that is `right` CSS pixels to the right of its point. @param {number} right */
function anchorOf(right, least = 0) {
  return Math.abs(right) <= least ? "middle" : right > 0 ? "start" : "end";
}

/** Return positions on a line, from left to right. @param {Mark} line @param {Plot} plot @returns {Spot[]} */
function spotsOn(line, plot) {
  const points = pointsOf(line);
  const stride = 2 * Math.max(1, Math.floor(points.length / 2 / 24));
  /** @type {Spot[]} */
  const spots = [];
  for (let index = 0; index < points.length; index += stride) {
    const [x, y] = [points[index], points[index + 1]];
    if (x > plot.left && x < plot.right && y > plot.top && y < plot.bottom) spots.push({ x, y, anchor: "middle" });
  }
  return spots.sort((a, b) => a.x - b.x);
}

/** Return positions above and below a line from left to right. @param {Mark} line @param {Plot} plot @param {number} wide @returns {Spot[]} */
function spotsBeside(line, plot, wide) {
  const points = pointsOf(line);
  /** @type {Spot[]} */
  const spots = [];
  const last = points.length - 2;
  for (const share of [1, 0.75, 0.5, 0.25, 0]) {
    const end = 2 * Math.round(share * last / 2);
    const x = Math.min(Math.max(points[end] - share * wide, plot.left + 4), plot.right - wide);
    let [highest, lowest] = [Infinity, -Infinity];
    for (let index = 0; index <= last; index += 2) {
      if (points[index] < x - 4 || points[index] > x + wide + 4) continue;
      [highest, lowest] = [Math.min(highest, points[index + 1]), Math.max(lowest, points[index + 1])];
    }
    if (!(lowest >= highest)) [highest, lowest] = [points[end + 1], points[end + 1]];
    for (const y of [highest - 10, lowest + 11, highest - 26, lowest + 27]) spots.push({ x, y, anchor: "start" });
  }
  for (let row = 0; row < ROWS; row++) {
    spots.push({ x: plot.left + 8, y: plot.top + (row + 0.5) * ROW, anchor: "start" });
  }
  return spots.filter(({ x }) => Number.isFinite(x));
}

/**
 * Return the labels at the right of the axes, as near to their points as possible without overlaps; if there are too
 * many, only the first ones.
 * @param {Placed[]} margins @param {Plot} plot @param {[number, number]} size @param {Measure} measure
 * @returns {Placed[]}
 */
function marginLabels(margins, plot, [width], measure) {
  const [first, last] = [plot.top + 4, plot.bottom - 1];
  const order = margins.map((each) => ({ ...each, y: placeOn(plot.y, each.mark.y ?? 0) }))
    .filter(({ y }) => Number.isFinite(y)).slice(0, Math.floor((last - first) / ROWS_APART) + 1)
    .sort((a, b) => a.y - b.y);
  order.forEach((each, index) => each.y = Math.max(each.y, index ? order[index - 1].y + ROWS_APART : first));
  let floor = last;
  for (const each of order.toReversed()) {
    each.y = Math.min(each.y, floor);
    floor = each.y - ROWS_APART;
  }
  return order.flatMap(({ id, mark, y }) => {
    const { size = 12, bold = false, swatch } = mark;
    const x = plot.right + 8 + (swatch ? 13 : 0);
    const words = fitting(mark.texts ?? [], width - x - 2, measure, size, bold);
    const label = text(words, x, y, { ...styleOf(mark), size, width: measure(words, size, bold) });
    const box = swatch ? [{ id: `swatch ${id}`, mark: swatchMark(swatch, x - 13, y, 9, 9) }] : [];
    return [...box, { id, mark: label }];
  });
}

// Hidden points -------------------------------------------------------------------------------------------------------

/** Return the number of points in a box. @param {number[]} box @param {Float64Array[]} things lists of points */
export function hiddenBy([left, top, right, bottom], things) {
  let count = 0;
  for (const places of things) {
    for (let index = 0; index < places.length; index += 2) {
      const [x, y] = [places[index], places[index + 1]];
      if (x > left && x < right && y > top && y < bottom) count++;
    }
  }
  return count;
}

/** @type {WeakMap<Mark, Float64Array>} */
const knownCovers = new WeakMap();

/** Return points along a mark (x0, y0, x1, y1, ...) that labels should not hide. @param {Mark} mark */
export function coveredBy(mark) {
  return remembered(knownCovers, mark, () => Float64Array.from(placesAlong(mark)));
}

/** @param {Mark} mark */
function placesAlong(mark) {
  /** @type {number[]} */
  const places = [];
  if (mark.k === "t") {
    const [left, top, right, bottom] = boxOf(mark);
    for (let x = left; x < right; x += TEXT_APART) places.push(x, (top + bottom) / 2);
    return [...places, right, (top + bottom) / 2];
  }
  if (!mark.stroke && mark.k !== "d") return places;
  const points = pointsOf(mark);
  let [lastX, lastY] = [NaN, NaN];
  for (let index = 0; index < points.length; index += 2) {
    const [x, y] = [points[index], points[index + 1]];
    const steps = mark.k === "d" ? 1 : Math.min(Math.hypot(x - lastX, y - lastY) / ALONG, MOST_THINGS);
    if (steps < 1) continue; // too close to the previous point
    for (let step = 1; step < steps; step++) {
      places.push(lastX + (x - lastX) * step / steps, lastY + (y - lastY) * step / steps);
    }
    if (!Number.isNaN(x)) places.push(x, y);
    [lastX, lastY] = [x, y];
  }
  return places;
}
