// @ts-check
/**
 * Lays a panel out: from axes and marks in the numbers of these to marks in CSS pixels, at the size that the page gives.
 * It knows nothing of gradients; what a panel holds is in `gradlab/drawing/marks.py`.
 */

import { axesMarks, plotsOf } from "./axes.js";
import { headOf, noticeMarks } from "./frame.js";
import { placeLabels } from "./labels.js";
import { placeOn } from "./scales.js";
import { boxPoints, PANEL_MARGIN, WORD_SIZE } from "./texts.js";
import { pointLength, pointsOf, withPoints } from "./wire.js";

/** @typedef {import("./wire.js").Mark} Mark */
/** @typedef {import("./wire.js").PanelData} PanelData */
/** @typedef {import("./wire.js").PanelState} PanelState */
/** @typedef {import("./axes.js").Plot} Plot */
/** @typedef {import("./axes.js").Placed} Placed */
/** @typedef {import("./texts.js").Measure} Measure */

const RIGHT = 14; // CSS pixels
const WIDEST = 0.4; // of the panel, for words at the right of the axes
const [THINNEST, THICKEST] = [5, 18]; // CSS pixels across a usual arrow
const FAR_OUT = 4000; // CSS pixels beyond the axes at which a point is as good as anywhere

/**
 * Return a panel's marks in CSS pixels; `range` is the part of x that is seen, null for all.
 * @param {PanelData} panel
 * @param {[number, number]} size
 * @param {Measure} measure
 * @param {[number, number] | null} [range]
 * @returns {PanelState}
 */
export function layOut(panel, size, measure, range = null) {
  const [width, height] = size;
  const head = headOf(panel, width, measure);
  const data = panel.marks.map((mark, at) => ({ id: panel.ids[at], mark }));
  const margins = data.filter(({ mark }) => mark.k === "t" && mark.where === "margin");
  const right = Math.max(RIGHT, Math.min(WIDEST * width, widest(margins, measure) + 12));
  const plots = plotsOf(
    panel,
    { left: PANEL_MARGIN, top: head.bottom, right: width - right, bottom: height },
    measure,
    range,
  );
  const zoomed = range !== null;
  /** @type {Placed[]} */
  const placed = [...head.placed];
  plots.forEach((plot, at) => placed.push(...axesMarks(panel.axes[at], plot, at, measure)));
  const unit = arrowUnit(data, plots[0], size);
  const texts = [];
  for (const { id, mark } of data) {
    if (mark.k === "t") texts.push({ id, mark });
    else placed.push({ id, mark: placedMark(mark, plots[mark.axes ?? 0], unit, zoomed) });
  }
  if (panel.axes[0].zooms) placed.push({ id: "zoom", mark: groundMark(plots[0]) });
  const kept = placeLabels(texts, placed, plots, size, measure);
  if (panel.notice) kept.push(...noticeMarks(panel.notice, plots[0], data.length > 0, measure));
  const all = [...placed, ...kept];
  return {
    size,
    title: panel.title,
    words: panel.words ?? "",
    plots,
    faint: panel.faint ?? false,
    ids: all.map(({ id }) => id),
    marks: all.map(({ mark }) => mark),
  };
}

// Marks ---------------------------------------------------------------------------------------------------------------

/** CSS pixels across a usual arrow. @param {Placed[]} data @param {Plot} plot @param {[number, number]} size */
function arrowUnit(data, plot, size) {
  let longest = 0;
  for (const { mark } of data) {
    if (mark.k !== "v") continue;
    const [x0, y0, x1, y1] = placesOf(mark, plot);
    longest = Math.max(longest, Math.hypot(x1 - x0, y1 - y0));
  }
  return Math.max(Math.min(Math.min(...size) / 32, longest / 8, THICKEST), THINNEST);
}

/** @type {WeakMap<Mark, {key: string, placed: Mark}>} */
const knownPlaced = new WeakMap();

/**
 * Return a mark in CSS pixels; the very same one as long as it and its axes stay as they are.
 * @param {Mark} mark
 * @param {Plot} plot
 * @param {number} unit
 * @param {boolean} zoomed
 * @returns {Mark}
 */
function placedMark(mark, plot, unit, zoomed) {
  const { left, top, right, bottom, x, y } = plot;
  const key = [left, top, right, bottom, x.start, x.per_pixel, y.start, y.per_pixel, mark.k === "v" && unit].join();
  const before = knownPlaced.get(mark);
  if (before?.key === key) return before.placed;
  const clip = mark.k === "d" || mark.k === "v" ? undefined : [left, top, right, bottom];
  const data = pointsOf(mark);
  const reads = mark.readout || mark.drag ? { data, scales: { x, y } } : {};
  const drag = mark.drag ? { drag: { name: mark.drag, x, y } } : {};
  const base = /** @type {any} */ ({ ...mark, ...reads, ...drag, clip });
  const places = placesOf(mark, plot);
  /** @type {Mark} */
  let placed;
  if (mark.k === "v") {
    placed = withPoints(
      { ...base, k: "p", width: mark.line, tail: places },
      arrowPoints(places, unit * (mark.width ?? 1)),
    );
  } else if (mark.k === "i") {
    const [x0, y0, x1, y1] = places;
    placed = { ...base, x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) };
  } else {
    if (mark.k === "d" && zoomed) {
      for (let at = 0; at < places.length; at += 2) {
        if (places[at] < left - 1 || places[at] > right + 1) places[at] = NaN;
      }
    }
    placed = withPoints(
      { ...base, k: mark.k === "l" || mark.k === "a" ? "p" : mark.k, closed: mark.k === "a" },
      places,
    );
  }
  knownPlaced.set(mark, { key, placed });
  return placed;
}

/** Return the points of a mark in CSS pixels. @param {Mark} mark @param {Plot} plot */
function placesOf(mark, { left, top, right, bottom, x, y }) {
  const [data, each] = [pointsOf(mark), pointLength(mark)];
  const places = new Float64Array(data.length);
  for (let at = 0; at < data.length; at++) {
    const value = data[at];
    const across = at % each === 0;
    const [scale, low, high] = across ? [x, left, right] : [y, top, bottom];
    if (Math.abs(value) >= 1e299) places[at] = across === value < 0 ? low : high;
    else {
      const place = placeOn(scale, value);
      places[at] = Number.isNaN(place) ? NaN : Math.min(Math.max(place, low - FAR_OUT), high + FAR_OUT);
    }
  }
  return places;
}

/**
 * Return the corners of a filled arrow; none when it has no length.
 * @param {Float64Array} ends
 * @param {number} width
 */
function arrowPoints([x0, y0, x1, y1], width) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (!(length > 0.5 && length < 1e9)) return new Float64Array();
  const [ax, ay] = [(x1 - x0) / length, (y1 - y0) / length];
  const tip = Math.min(length * 0.7, 1.7 * width);
  const [nx, ny] = [x1 - ax * tip, y1 - ay * tip];
  const [half, wing] = [width / 2, Math.min(width, tip * 0.6 + width / 4)];
  return Float64Array.of(
    x0 - ay * half,
    y0 + ax * half,
    nx - ay * half,
    ny + ax * half,
    nx - ay * wing,
    ny + ax * wing,
    x1,
    y1,
    nx + ay * wing,
    ny - ax * wing,
    nx + ay * half,
    ny - ax * half,
    x0 + ay * half,
    y0 - ax * half,
  );
}

/** Return what a range is chosen across. @param {Plot} plot @returns {Mark} */
function groundMark({ left, top, right, bottom, x, y }) {
  const ground = /** @type {Mark} */ ({ k: "p", drag: { name: "zoom", x, y } });
  return withPoints(ground, boxPoints(left, top, right, bottom));
}

/** Return how wide the words at the right of the axes are. @param {Placed[]} margins @param {Measure} measure */
function widest(margins, measure) {
  return Math.max(
    0,
    ...margins.map(({ mark }) =>
      measure(mark.texts?.[0] ?? "", mark.size ?? WORD_SIZE, mark.bold ?? false) + (mark.swatch ? 15 : 0)
    ),
  );
}
