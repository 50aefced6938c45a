// @ts-check
/** Where words go: on no others, within the panel, and where they hide as little as can be of what is drawn. */

import { placeOn } from "./scales.js";
import { shortened, swatchMark, text } from "./texts.js";
import { pointLength, pointsOf } from "./wire.js";

/** @typedef {import("./wire.js").Mark} Mark */
/** @typedef {import("./axes.js").Plot} Plot */
/** @typedef {import("./axes.js").Placed} Placed */
/** @typedef {import("./texts.js").Measure} Measure */
/** A place for words: their middle height, and x with the side that lies there. @typedef {{x: number, y: number, anchor: "start" | "middle" | "end"}} Spot */
/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */

const BESIDE_LABEL = 2; // CSS pixels kept free beside a label
const ALONG = 7; // CSS pixels along a line that count as one thing to hide
const [ROWS, ROW] = [4, 17]; // of words below the upper edge of the axes
const ROWS_APART = 15; // CSS pixels from word to word at the right of the axes
const LATER = 0.35; // what it costs to be one place further down the list
const LINE_HEIGHT = 1.15; // the height of a line, in sizes of its letters

/** @type {Record<string, [number, number][]>} steps from a point, in CSS pixels */
const LABEL_STEPS = {
  right: [[10, 0]],
  left: [[-10, 0]],
  above: [[0, -13], [0, -24]],
  below: [[0, 13], [0, 28]],
  center: [[0, 0]],
  around: [[9, -11], [-9, -11], [9, 11], [-9, 11], [0, -16], [0, 16], [14, 0], [-14, 0], [12, -28], [-12, -28], [
    12,
    28,
  ]],
};

/**
 * Return the texts that find a place, as marks; what is placed already keeps free of them.
 * @param {Placed[]} texts
 * @param {Placed[]} placed
 * @param {Plot[]} plots
 * @param {[number, number]} size of the panel
 * @param {Measure} measure
 * @returns {Placed[]}
 */
export function placeLabels(texts, placed, plots, size, measure) {
  if (!texts.length) return [];
  const boxes = placed.flatMap(({ mark }) => mark.k === "t" && !mark.angle ? [boxOfText(mark, measure)] : []);
  const things = placed.flatMap(({ mark }) => coveredBy(mark));
  const margins = texts.filter(({ mark }) => mark.where === "margin");
  const kept = marginLabels(margins, plots[0], size, measure);
  for (const { mark } of kept) if (mark.k === "t") boxes.push(boxOfText(mark, measure));
  const marks = new Map(placed.map(({ id, mark }) => [id, mark]));
  for (const { id, mark } of texts) {
    if (mark.where === "margin") continue;
    const plot = plots[mark.axes ?? 0];
    const label = bestPlace(mark, plot, marks.get(mark.of ?? ""), { boxes, things, size, measure });
    if (!label) continue;
    boxes.push(boxOfText(label, measure));
    kept.push({ id, mark: label });
  }
  return kept;
}

/**
 * @param {Mark} mark
 * @param {Plot} plot
 * @param {Mark | undefined} of
 * @param {{boxes: Box[], things: [number, number][], size: [number, number], measure: Measure}} around
 * @returns {Mark | null}
 */
function bestPlace(mark, plot, of, { boxes, things, size: [width, height], measure }) {
  const { size = 12, bold = false, where = "around" } = mark;
  const inside = where === "top" || where === "on" || where === "beside";
  const [left, top, right, bottom] = inside
    ? [plot.left, plot.top, plot.right + 10, plot.bottom]
    : [0, 0, width, height];
  let [least, best] = [Infinity, /** @type {Mark | null} */ (null)];
  (mark.texts ?? []).forEach((words, form) => {
    const wide = measure(words, size, bold);
    spotsOf(mark, plot, of, wide).forEach((spot, at) => {
      const cost = LATER * at + 3 * form;
      if (cost >= least) return;
      const label = /** @type {Mark} */ ({ ...lookOf(mark), ...spot, k: "t", text: words, size });
      const box = boxOfText(label, measure);
      if (box[0] < left || box[1] < top || box[2] > right || box[3] > bottom) return;
      if (boxes.some((other) => touches(box, other))) return;
      const hidden = where === "on" ? 0 : hiddenBy(box, things);
      if (mark.clear && hidden) return;
      if (cost + hidden < least) [least, best] = [cost + hidden, label];
    });
  });
  return best;
}

/** @param {Mark} mark */
function lookOf({ role, bold, backed, words }) {
  return { role, bold, backed, words };
}

/**
 * Return where a text may be, the best place first.
 * @param {Mark} mark
 * @param {Plot} plot
 * @param {Mark | undefined} of
 * @param {number} wide
 * @returns {Spot[]}
 */
function spotsOf(mark, plot, of, wide) {
  const where = mark.where ?? "around";
  if (mark.of) {
    return !of ? [] : of.tail ? spotsAside(of) : where === "on" ? spotsOn(of, plot) : spotsBeside(of, plot, wide);
  }
  const x = edged(mark.x ?? 0, plot.left, plot.right) ?? placeOn(plot.x, mark.x ?? 0);
  const y = edged(mark.y ?? 0, plot.bottom, plot.top) ?? placeOn(plot.y, mark.y ?? 0);
  if (where === "top") {
    if (x < plot.left - 1 || x > plot.right + 1) return [];
    return ["start", "end"].flatMap((anchor) =>
      Array.from({ length: ROWS }, (_, row) => ({
        x: anchor === "start" ? x + 5 : x - 5,
        y: plot.top + (row + 0.5) * ROW,
        anchor: /** @type {"start" | "end"} */ (anchor),
      }))
    );
  }
  return where.split(" ").flatMap((side) => LABEL_STEPS[side]).map(([right, down]) => ({
    x: x + right,
    y: y + down,
    anchor: right > 0 ? "start" : right < 0 ? "end" : "middle",
  }));
}

/** @param {number} value @param {number} low @param {number} high */
function edged(value, low, high) {
  return Math.abs(value) < 1e299 ? null : value < 0 ? low : high;
}

/** Return places beside an arrow: near its middle first, on its right and on its left. @param {Mark} arrow @returns {Spot[]} */
function spotsAside(arrow) {
  const [x0, y0, x1, y1] = /** @type {Float64Array} */ (arrow.tail);
  const points = pointsOf(arrow);
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length <= 10 || !points.length) return [];
  const thick = Math.hypot(points[0] - points[12], points[1] - points[13]);
  const [across, down] = [-(y1 - y0) / length, (x1 - x0) / length];
  return [thick + 9, 2.2 * thick + 10].flatMap((far) =>
    [0.5, 0.3, 0.7].flatMap((share) =>
      [far, -far].map((right) => ({
        x: x0 + share * (x1 - x0) + right * across,
        y: y0 + share * (y1 - y0) + right * down,
        anchor: /** @type {"start" | "middle" | "end"} */ (right * across > 5
          ? "start"
          : right * across < -5
          ? "end"
          : "middle"),
      }))
    )
  );
}

/** Return places on a line, as for the loss of a contour: first at its left and its right end. @param {Mark} line @param {Plot} plot @returns {Spot[]} */
function spotsOn(line, plot) {
  const points = pointsOf(line);
  const stride = 2 * Math.max(1, Math.floor(points.length / 2 / 24));
  /** @type {Spot[]} */
  const spots = [];
  for (let at = 0; at < points.length; at += stride) {
    const [x, y] = [points[at], points[at + 1]];
    if (x > plot.left && x < plot.right && y > plot.top && y < plot.bottom) spots.push({ x, y, anchor: "middle" });
  }
  return spots.sort((one, other) => one.x - other.x);
}

/** Return places above and below a line that goes from left to right. @param {Mark} line @param {Plot} plot @param {number} wide @returns {Spot[]} */
function spotsBeside(line, plot, wide) {
  const points = pointsOf(line);
  /** @type {Spot[]} */
  const spots = [];
  const last = points.length - 2;
  for (const share of [1, 0.75, 0.5, 0.25, 0]) {
    const end = 2 * Math.round(share * last / 2);
    const x = Math.min(Math.max(points[end] - share * wide, plot.left + 4), plot.right - wide);
    let [highest, lowest] = [Infinity, -Infinity];
    for (let at = 0; at <= last; at += 2) {
      if (points[at] < x - 4 || points[at] > x + wide + 4) continue;
      [highest, lowest] = [Math.min(highest, points[at + 1]), Math.max(lowest, points[at + 1])];
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
 * Return the texts at the right of the axes, as near to their places as they can be without lying on each other.
 * @param {Placed[]} margins
 * @param {Plot} plot
 * @param {[number, number]} size
 * @param {Measure} measure
 * @returns {Placed[]}
 */
function marginLabels(margins, plot, [width], measure) {
  const order = margins.map((each) => ({ ...each, y: placeOn(plot.y, each.mark.y ?? 0) }))
    .filter(({ y }) => Number.isFinite(y)).sort((one, other) => one.y - other.y);
  order.forEach((each, at) => each.y = Math.max(each.y, plot.top + 4, at ? order[at - 1].y + ROWS_APART : -Infinity));
  let floor = plot.bottom;
  for (const each of order.toReversed()) {
    each.y = Math.min(each.y, floor);
    floor = each.y - ROWS_APART;
  }
  return order.flatMap(({ id, mark, y }) => {
    const { size = 12, bold = false, swatch } = mark;
    const x = plot.right + 8 + (swatch ? 13 : 0);
    const room = width - x - 2;
    const words = mark.texts?.find((each) => measure(each, size, bold) <= room) ??
      shortened(mark.texts?.at(-1) ?? "", room, size, bold, measure);
    const label = { id, mark: text(words, x, y, { ...lookOf(mark), size }) };
    return swatch ? [{ id: `swatch ${id}`, mark: swatchMark(swatch, x - 13, y, 9, 9) }, label] : [label];
  });
}

// What is hidden ------------------------------------------------------------------------------------------------------

/** Return left, top, right and bottom of a text. @param {Mark} mark @param {Measure} measure @returns {Box} */
export function boxOfText({ x = 0, y = 0, text = "", size = 12, anchor = "start", bold = false }, measure) {
  const wide = measure(text, size, bold);
  const left = anchor === "middle" ? x - wide / 2 : anchor === "end" ? x - wide : x;
  return [left, y - size * LINE_HEIGHT / 2, left + wide, y + size * LINE_HEIGHT / 2];
}

/** @param {Box} one @param {Box} other */
function touches([left, top, right, bottom], other) {
  return left - BESIDE_LABEL < other[2] && other[0] < right + BESIDE_LABEL && top < other[3] && other[1] < bottom;
}

/** @param {Box} box @param {[number, number][]} things */
function hiddenBy([left, top, right, bottom], things) {
  let count = 0;
  for (const [x, y] of things) if (x > left && x < right && y > top && y < bottom) count++;
  return count;
}

/** @type {WeakMap<Mark, [number, number][]>} */
const knownCovers = new WeakMap();

/** Return places along a mark, which words had better not hide. @param {Mark} mark @returns {[number, number][]} */
export function coveredBy(mark) {
  if (mark.k === "t" || mark.k === "i" || mark.drag?.name === "zoom" || (!mark.stroke && mark.k === "p")) return [];
  let things = knownCovers.get(mark);
  if (things) return things;
  things = [];
  const [points, each] = [pointsOf(mark), pointLength(mark)];
  const ways = each === 3 ? [1, 2] : [1];
  for (const way of ways) {
    let [lastX, lastY] = [NaN, NaN];
    for (let at = 0; at < points.length; at += each) {
      const [x, y] = [points[at], points[at + way]];
      const steps = mark.k === "d" ? 0 : Math.min(Math.hypot(x - lastX, y - lastY) / ALONG, 200);
      if (mark.k !== "d" && steps < 1) continue; // so close to the one before that it is the same
      for (let step = 1; step < steps; step++) {
        things.push([lastX + (x - lastX) * step / steps, lastY + (y - lastY) * step / steps]);
      }
      if (!Number.isNaN(x)) things.push([x, y]);
      [lastX, lastY] = [x, y];
    }
  }
  knownCovers.set(mark, things);
  return things;
}
