// @ts-check
/** Axes: their positions in a panel, and their lines, ticks and titles. */

import { EDGE, placeOn, scaleOf, ticksOf } from "./scales.js";
import { LINE, PANEL_MARGIN, placedText, shortened, SMALL, WORD_SIZE } from "./texts.js";
import { pointLength, pointsOf, withPoints } from "./wire.js";

/** @import { Axes, PanelData } from "./wire.js" */
/** @import { Scale } from "./scales.js" */
/** @import { Measure } from "./texts.js" */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Edges */
/** A pair of axes, laid out in CSS pixels. @typedef {Edges & {x: Scale, y: Scale, cuts?: boolean}} Plot */
/** @typedef {{id: string, mark: import("./wire.js").Mark}} Placed */

const TICK_SIZE = 12; // font size of numbers at ticks
const TICK_LONG = 4; // CSS pixels
const LOWEST_ROW = 14; // smallest distance between the numbers of the y axis in CSS pixels
const [SLANT, SIN_SLANT, COS_SLANT] = [50, 0.766, 0.643]; // an angle in degrees, its sine and its cosine
const SLANT_APART = 18; // CSS pixels between slanted labels
const HIGHEST = 76; // CSS pixels of the longest label below the axis

/**
 * Return the positions and scales of all pairs of axes.
 * @param {PanelData} panel @param {Edges} box
 * @param {Measure} measure @param {[number, number] | null} range @returns {Plot[]}
 */
export function plotsOf(panel, box, measure, range) {
  const shares = panel.axes.reduce((sum, { share }) => sum + (share ?? 1), 0);
  const around = panel.axes.reduce((sum, axes) => sum + footOf(axes, measure) + (axes.caption ? LINE : 0), 0);
  const room = Math.max(box.bottom - box.top - around, 20);
  let next = box.top;
  const rows = panel.axes.map((axes, index) => {
    const top = next + (axes.caption ? LINE : 0);
    const bottom = top + room * (axes.share ?? 1) / shares;
    next = bottom + footOf(axes, measure);
    return { top, bottom, axes: index || !range ? axes : zoomed(panel, axes, range) };
  });
  const widths = rows.map(({ top, bottom, axes: { y } }) => {
    const ticks = ticksOf(y, bottom - top, 38).map(({ words }) => measure(words, TICK_SIZE, false));
    return (y.ticks === "none" ? 0 : Math.max(...ticks, 12) + TICK_LONG) + (y.words ? 18 : 0);
  });
  const left = box.left + Math.max(...widths);
  const right = Math.max(box.right, left + 20);
  return rows.map(({ top, bottom, axes }) => equalPlot(axes, { left, top, right, bottom }));
}

/** Return the CSS pixels needed below a pair of axes. @param {Axes} axes @param {Measure} measure */
function footOf({ x }, measure) {
  const words = x.words ? 17 : 0;
  if (x.spans?.length) {
    const brackets = x.spans.some(({ 4: bracket }) => bracket) ? 22 : 0;
    const longest = Math.max(...x.spans.map(([, , texts]) => measure(texts[0], SMALL, false)));
    return (x.ticks === "slanted" ? Math.min(longest, HIGHEST) * SIN_SLANT + 18 : 24) + brackets + words;
  }
  return (x.ticks === "none" || x.ticks === "lines" ? 8 : 22) + words;
}

/** Lay out axes, with equal units if `axes.equal` is set. @param {Axes} axes @param {Edges} box @returns {Plot} */
function equalPlot(axes, { left, top, right, bottom }) {
  let { x, y } = axes;
  const [wide, tall] = [right - left, bottom - top];
  const shape = (x.high - x.low) / (y.high - y.low) * tall / wide; // below 1 if x has room to spare
  if (axes.equal === "fill") {
    if (shape < 1) x = widened(x, 1 / shape);
    else y = widened(y, shape);
  } else if (axes.equal === "fit") {
    if (shape < 1) [left, right] = [left + wide * (1 - shape) / 2, right - wide * (1 - shape) / 2];
    else [top, bottom] = [top + tall * (1 - 1 / shape) / 2, bottom - tall * (1 - 1 / shape) / 2];
  }
  return { left, top, right, bottom, x: scaleOf(x, left, right), y: scaleOf(y, bottom, top), cuts: !!axes.equal };
}

/** Return an axis `times` times as long with the same middle. @param {import("./wire.js").Axis} axis @param {number} times */
function widened(axis, times) {
  const [middle, half] = [(axis.low + axis.high) / 2, (axis.high - axis.low) / 2 * times];
  return { ...axis, low: middle - half, high: middle + half };
}

/** Return axes that show a range of x. @param {PanelData} panel @param {Axes} axes @param {[number, number]} range */
function zoomed(panel, axes, [from, to]) {
  let [low, high] = [Infinity, -Infinity];
  const hold = (/** @type {number} */ value) => {
    if (Math.abs(value) < EDGE) [low, high] = [Math.min(low, value), Math.max(high, value)];
  };
  for (const mark of panel.marks) {
    if (mark.k === "t" || mark.k === "i" || mark.axes || mark.dash) continue; // dashed lines do not set the limits
    const [points, stride] = [pointsOf(mark), pointLength(mark)];
    for (let index = 0; index < points.length; index += stride) {
      const [x, before] = [points[index], mark.k === "d" || !index ? NaN : points[index - stride]];
      for (let column = 1; column < stride; column++) {
        const [y, last] = [points[index + column], points[index + column - stride]];
        if (x >= from && x <= to) hold(y);
        for (const end of [from, to]) {
          if (before < end && x > end) hold(last + (y - last) * (end - before) / (x - before));
        }
      }
    }
  }
  const x = { ...axes.x, low: from, high: to };
  if (!(high >= low)) return { ...axes, x };
  if (axes.y.log) {
    return { ...axes, x, y: { ...axes.y, low: low * (low / high) ** 0.06, high: high * (high / low) ** 0.06 } };
  }
  const free = 0.06 * ((high - low) || Math.abs(high) || 1);
  return { ...axes, x, y: { ...axes.y, low: low - free, high: high + free } };
}

/**
 * Return the lines, ticks and titles of axes.
 * @param {Axes} axes @param {Plot} plot @param {number} number @param {number} width of the panel
 * @param {Measure} measure @returns {Placed[]}
 */
export function axesMarks(axes, plot, number, width, measure) {
  const { left, top, right, bottom } = plot;
  const name = number ? `axes ${number}` : "axes";
  const bare = axes.y.ticks === "none";
  const lines = [
    ...(bare ? [] : [left, top]),
    ...(axes.x.ticks === "none" && bare ? [] : [left, bottom, right, bottom]),
  ];
  const size = TICK_SIZE;
  /** @type {Placed[]} */
  const placed = [];
  let end = 0;
  const across = axes.x.spans?.length ? [] : ticksOf({ ...axes.x, ...plot.x.axis }, right - left, 75);
  across.forEach(({ value, words }, index) => {
    const position = placeOn(plot.x, value);
    lines.push(NaN, NaN, position, bottom, position, bottom + TICK_LONG);
    const half = measure(words, size, false) / 2;
    if (!words || position - half < end || position + half > width) return;
    end = position + half + 6;
    placed.push(placedText(`${name} x${index}`, words, position, bottom + TICK_LONG + 11, { anchor: "middle", size }));
  });
  let last = Infinity;
  let beside = left - TICK_LONG;
  ticksOf({ ...axes.y, ...plot.y.axis }, bottom - top, 38).forEach(({ value, words }, index) => {
    const position = placeOn(plot.y, value);
    lines.push(NaN, NaN, left - TICK_LONG, position, left, position);
    if (words && last - position >= LOWEST_ROW) {
      last = position;
      beside = Math.min(beside, left - TICK_LONG - 3 - measure(words, size, false));
      placed.push(placedText(`${name} y${index}`, words, left - TICK_LONG - 3, position, { anchor: "end", size }));
    }
  });
  if (axes.x.spans?.length) placed.push(...spanMarks(axes.x, plot, width, measure));
  if (axes.x.words) {
    const words = shortened(axes.x.words, width - 2 * PANEL_MARGIN, WORD_SIZE, false, measure);
    const half = measure(words, WORD_SIZE, false) / 2 + 2;
    const x = Math.min(Math.max((left + right) / 2, half), width - half);
    placed.push(placedText(`${name} x`, words, x, bottom + footOf(axes, measure) - 10, { anchor: "middle" }));
  }
  if (axes.y.words) {
    const words = shortened(axes.y.words, bottom - top + 12, WORD_SIZE, false, measure);
    const [x, style] = [Math.max(beside - 12, 10), { anchor: "middle", angle: 90 }];
    placed.push(placedText(`${name} y`, words, x, (top + bottom) / 2, style));
  }
  if (axes.caption) {
    const words = shortened(axes.caption, width - left, WORD_SIZE, false, measure);
    placed.push(placedText(`${name} caption`, words, left, top - 10));
  }
  const line = withPoints({ k: "p", stroke: "grey", width: 1 }, Float64Array.from(lines));
  return lines.length ? [{ id: name, mark: line }, ...placed] : placed;
}

/**
 * Return labels below parts of the x axis, level or slanted, low ranks first; some have a bracket above them.
 * @param {import("./wire.js").Axis} axis @param {Plot} plot @param {number} width of the panel @param {Measure} measure
 */
function spanMarks(axis, plot, width, measure) {
  const { bottom } = plot;
  const slanted = axis.ticks === "slanted";
  const spans = (axis.spans ?? []).map(([low, high, texts, rank, bracket], index) => {
    const [left, right] = [placeOn(plot.x, low), placeOn(plot.x, high)];
    return { index, texts, rank, bracket, left, right };
  }).sort((a, b) => a.rank - b.rank || (b.right - b.left) - (a.right - a.left));
  const below = spans.some(({ bracket }) => bracket) ? 22 : 0;
  /** @type {Placed[]} */
  const marks = [];
  /** @type {{level: number, from: number, to: number}[]} */
  const taken = [];
  for (const { index, texts, bracket, left, right } of spans) {
    const [leans, middle] = [slanted && !bracket, (left + right) / 2];
    if (bracket) {
      const corners = [left + 1, bottom + 3, left + 1, bottom + 7, right - 1, bottom + 7, right - 1, bottom + 3];
      const line = withPoints({ k: "p", stroke: "grey", width: 1.2 }, Float64Array.from(corners));
      marks.push({ id: `bracket ${index}`, mark: line });
    }
    const level = bracket ? 17 : below + (slanted ? 12 : 14);
    /** @param {string} words */
    const spanOf = (words) => {
      const wide = measure(words, SMALL, false);
      const half = leans ? SLANT_APART / 2 : wide / 2 + 3;
      return {
        level,
        first: leans ? middle - wide * COS_SLANT - SMALL / 2 : middle - half,
        from: middle - half,
        to: middle + half,
      };
    };
    const forms = leans ? [shortened(texts[0], HIGHEST, SMALL, false, measure)] : texts;
    const words = forms.find((each) => {
      const { first, from, to } = spanOf(each);
      return first >= 0 && to <= width &&
        !taken.some((other) => other.level === level && from < other.to && to > other.from);
    });
    if (words === undefined) continue;
    taken.push(spanOf(words));
    const style = leans ? { anchor: "end", angle: SLANT } : { anchor: "middle" };
    const id = `${bracket ? "many" : "statement"} ${index}`;
    marks.push(placedText(id, words, middle, bottom + level, { ...style, size: SMALL }));
  }
  return marks;
}
