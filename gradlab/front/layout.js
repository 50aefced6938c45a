// @ts-check
/**
 * The layout of a panel: from axes and marks in data coordinates to marks in CSS pixels, at the size on the page.
 * It is independent of gradients; `gradlab/drawing/marks.py` describes the contents of a panel.
 */

import { axesMarks, plotsOf } from "./axes.js";
import { headOf, noticeMarks } from "./frame.js";
import { placeLabels } from "./labels.js";
import { boxOf } from "./marks.js";
import { placeOn, ticksOf } from "./scales.js";
import { boxesTouch, PANEL_MARGIN, WORD_SIZE } from "./texts.js";
import { pointLength, pointsOf, withPoints } from "./wire.js";

/** @import { Mark, PanelData, PanelState } from "./wire.js" */
/** @import { Plot, Placed } from "./axes.js" */
/** @import { Measure } from "./texts.js" */

const RIGHT = 14; // smallest right margin in CSS pixels
const WIDEST = 0.4; // largest share of the panel's width for labels at the right of the axes
const [THINNEST, THICKEST] = [5, 18]; // limits of the default arrow width in CSS pixels
/** @type {Record<string, Partial<Mark>>} defaults that the kernel does not send (`gradlab/drawing/marks.py`) */
const DEFAULTS = { l: { stroke: "ink", width: 1.5 }, v: { stroke: "ink", line: 1 } };
const FAR_OUT = 1e6; // CSS pixels beyond the axes to which points are clamped

/**
 * Return a panel's marks in CSS pixels; `range` is the visible range of x, null for all.
 * @param {PanelData} panel @param {[number, number]} size @param {Measure} measure
 * @param {[number, number] | null} [range] @returns {PanelState}
 */
export function layOut(panel, size, measure, range = null) {
  const [width, height] = size;
  const head = headOf(panel, width, measure);
  const data = panel.marks.map((mark, index) => ({ id: panel.ids[index], mark }));
  const box = {
    left: PANEL_MARGIN,
    top: head.bottom,
    right: width - rightMargin(panel, width, measure),
    bottom: height,
  };
  const plots = plotsOf(panel, box, measure, range);
  const plotKeys = plots.map((plot) => JSON.stringify(plot));
  /** @type {Placed[]} */
  let placed = [...head.placed, ...plots.flatMap((plot, i) => axesMarks(panel.axes[i], plot, i, width, measure))];
  const notice = panel.notice ? noticeMarks(panel.notice, plots[0], size, head.bottom, data.length > 0, measure) : [];
  for (const { mark } of [...placed, ...notice]) {
    if (mark.k === "t") mark.width = measure(mark.text ?? "", mark.size ?? WORD_SIZE, mark.bold ?? false);
  }
  if (notice.length) { // texts under it are left out
    const boxes = notice.map(({ mark }) => boxOf(mark));
    placed = placed.filter(({ mark }) => mark.k !== "t" || !boxes.some((each) => boxesTouch(each, boxOf(mark))));
  }
  const unit = arrowUnit(data, plots[0], size);
  const texts = [];
  for (const { id, mark } of data) {
    if (mark.k === "t") texts.push({ id, mark: panel.live && mark.live ? { ...mark, texts: [mark.live] } : mark });
    else placed.push({ id, mark: placedMark(mark, plots[mark.axes ?? 0], unit, plotKeys[mark.axes ?? 0]) });
  }
  const all = [...placed, ...placeLabels(texts, [...placed, ...notice], plots, size, measure), ...notice];
  return {
    size,
    plots,
    zooms: panel.axes[0].zooms ?? false,
    faint: panel.faint ?? false,
    ids: all.map(({ id }) => id),
    marks: all.map(({ mark }) => mark),
  };
}

/** Return the margin at the right of the axes, for labels or half a tick. @param {PanelData} panel @param {number} width @param {Measure} measure */
function rightMargin(panel, width, measure) {
  const words = panel.marks.map((mark) =>
    mark.k !== "t" || mark.where !== "margin"
      ? 0
      : measure(mark.texts?.[0] ?? "", mark.size ?? WORD_SIZE, mark.bold ?? false) + (mark.swatch ? 15 : 0) + 12
  );
  const ticks = panel.axes.flatMap(({ x }) =>
    x.spans?.length ? [] : ticksOf(x, width, 75).map((tick) => measure(tick.words, WORD_SIZE, false) / 2 + 2)
  );
  return Math.max(RIGHT, Math.min(WIDEST * width, Math.max(0, ...words)), ...ticks);
}

// Marks ---------------------------------------------------------------------------------------------------------------

/** Return the default arrow width. @param {Placed[]} data @param {Plot} plot @param {[number, number]} size */
function arrowUnit(data, plot, size) {
  const lengths = data.filter(({ mark }) => mark.k === "v").map(({ mark }) => {
    const [x0, y0, x1, y1] = placesOf(mark, plot);
    return Math.hypot(x1 - x0, y1 - y0);
  });
  return Math.max(Math.min(Math.min(...size) / 32, Math.max(...lengths) / 8, THICKEST), THINNEST);
}

/** @type {WeakMap<Mark, {key: string, placed: Mark}>} */
const knownPlaced = new WeakMap();

/**
 * Return a mark in CSS pixels; the same object as long as the mark and its axes do not change.
 * @param {Mark} mark @param {Plot} plot @param {number} unit @param {string} plotKey @returns {Mark}
 */
function placedMark(mark, plot, unit, plotKey) {
  const [before, key] = [knownPlaced.get(mark), mark.k === "v" ? `${unit} ${plotKey}` : plotKey];
  if (before?.key === key) return before.placed;
  const placed = markOn(plot, mark, unit);
  knownPlaced.set(mark, { key, placed });
  return placed;
}

/** @param {Plot} plot @param {Mark} mark @param {number} unit @returns {Mark} */
function markOn(plot, mark, unit) {
  const { left, top, right, bottom, x, y, cuts } = plot;
  const clip = [left, top, right, bottom];
  const places = placesOf(mark, plot);
  const reads = mark.readout || mark.drag ? { data: pointsOf(mark), scales: { x, y } } : {};
  const base = { ...DEFAULTS[mark.k], ...mark, ...reads };
  if (mark.k === "v") {
    const corners = arrowPoints(places, unit * (mark.width ?? 1));
    const edge = cuts ? { clip } : {}; // arrows are clipped in planes
    return withPoints({ ...base, ...edge, k: "p", width: base.line, tail: places }, corners);
  }
  if (mark.k === "d") {
    for (let index = 0; index < places.length; index += 2) {
      const [across, down] = [places[index], places[index + 1]];
      const inside = across >= left - 1 && across <= right + 1 && down >= top - 1 && down <= bottom + 1;
      if (!inside) places[index] = places[index + 1] = NaN;
    }
    return withPoints(base, places);
  }
  if (mark.k === "i") {
    const [x0, y0, x1, y1] = places;
    const box = { x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) };
    return { ...base, ...box, clip };
  }
  const path = mark.k === "b" ? outlineOfBand(places) : places;
  return withPoints({ ...base, clip, k: "p", closed: mark.k !== "l" }, path);
}

/** Return the corners of a band: along its lower edge and back along the upper one. @param {Float64Array} triples */
export function outlineOfBand(triples) {
  const corners = [];
  for (let from = 0, to = 0; to <= triples.length; to += 3) {
    if (to < triples.length && !Number.isNaN(triples[to])) continue;
    for (let index = from; index < to; index += 3) corners.push(triples[index], triples[index + 1]);
    for (let index = to - 3; index >= from; index -= 3) corners.push(triples[index], triples[index + 2]);
    corners.push(NaN, NaN);
    from = to + 3;
  }
  return Float64Array.from(corners);
}

/** Return the points of a mark in CSS pixels. @param {Mark} mark @param {Plot} plot */
function placesOf(mark, { x, y }) {
  const [data, stride] = [pointsOf(mark), pointLength(mark)];
  const places = new Float64Array(data.length);
  for (let column = 0; column < stride; column++) {
    const scale = column ? y : x;
    const [least, most] = [Math.min(...scale.ends) - FAR_OUT, Math.max(...scale.ends) + FAR_OUT];
    for (let index = column; index < data.length; index += stride) {
      places[index] = Math.min(Math.max(placeOn(scale, data[index]), least), most);
    }
  }
  return places;
}

/** Return the corners of an arrow; none if it has no length. @param {Float64Array} ends @param {number} width */
function arrowPoints([x0, y0, x1, y1], width) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (!(length > 0.5 && length < 1e9)) return new Float64Array();
  const [ax, ay] = [(x1 - x0) / length, (y1 - y0) / length];
  const tip = Math.min(length * 0.7, 1.7 * width);
  const neck = length - tip;
  const [half, wing] = [width / 2, Math.min(width, tip * 0.6 + width / 4)];
  const corners = [[0, half], [neck, half], [neck, wing], [length, 0], [neck, -wing], [neck, -half], [0, -half]];
  return Float64Array.from(
    corners.flatMap(([along, aside]) => [x0 + ax * along - ay * aside, y0 + ay * along + ax * aside]),
  );
}
