// @ts-check
/**
 * A part of a panel's curves, seen larger. A live lab draws it anew; without a kernel the marks are stretched. The ground
 * of the panel, across which a range is chosen, says how places are read, so all that lies on it can be moved.
 */

import { boxOf, isGround } from "./marks.js";
import { shortNumber } from "./numbers.js";
import { axisValue, pointLength, pointsOf, withPoints } from "./wire.js";

/** @typedef {import("./wire.js").Axis} Axis */
/** @typedef {import("./wire.js").Mark} Mark */
/** @typedef {import("./wire.js").PanelState} PanelState */
/** A place becomes `stretch * place + shift`. @typedef {{stretch: number, shift: number}} Move */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

const CLOSEST = 6; // times that values are stretched at most: places are known to a quarter of a pixel only
const MARGIN_SHARE = 0.06; // of the height, kept free above and below
const BESIDE = 5; // CSS pixels from the line of a switch to its name
const TICK_LONG = 4; // CSS pixels of a tick
const TICKS_APART = { across: 75, up: 38 }; // CSS pixels from one tick to the next, about
const NO_MOVE = { stretch: 1, shift: 0 };

/** Return the range of a panel's ground, null where no range can be chosen. @param {PanelState} panel */
export function groundRange(panel) {
  const ground = panel.marks.find(isGround);
  if (!ground?.drag) return null;
  const [left, , right] = boxOf(ground);
  return [left, right].map((place) => axisValue(/** @type {import("./wire.js").Drag} */ (ground.drag).x, place));
}

/**
 * Return a panel in which the ground shows a range, and the values of the curves there fill its height.
 * @param {PanelState} panel
 * @param {[number, number]} range
 * @returns {PanelState}
 */
export function zoomedPanel(panel, range) {
  const ground = panel.marks.find(isGround);
  if (!ground?.drag) return panel;
  const [left, top, right, bottom] = boxOf(ground);
  const box = { left, top, right, bottom };
  const [from, to] = range.map((value) => placeOn(ground.drag?.x, value));
  if (!(to > from)) return panel;
  const parts = panel.marks.map((mark, at) => isStretched(mark, panel.ids[at]) ? partBetween(mark, from, to) : null);
  const across = moveTo(from, to, left, right);
  const up = fitted(panel.marks.flatMap((mark, at) => isUpright(mark) ? [] : heightsOf(mark, parts[at])), box);
  const axes = { x: movedAxis(ground.drag.x, across), y: movedAxis(ground.drag.y, up) };
  /** @type {string[]} */
  const ids = [];
  /** @type {Mark[]} */
  const marks = [];
  const add = (/** @type {string} */ id, /** @type {Mark | null} */ mark) => {
    if (mark) [ids[ids.length], marks[marks.length]] = [id, mark];
  };
  panel.marks.forEach((mark, at) => {
    const [id, part] = [panel.ids[at], parts[at]];
    if (mark === ground) add(id, { ...mark, drag: { name: "zoom", ...axes } });
    else if (/^axes [xy]\d/.test(id)) return; // made anew with the axes
    else if (id === "axes") addAxes(panel, mark, box, axes, add);
    else if (part) add(id, part.length ? movedMark(mark, part, across, isUpright(mark) ? NO_MOVE : up, axes) : null);
    else if (mark.k === "t" && isWithin(mark, box)) add(id, movedText(id, mark, across, up, box));
    else add(id, mark);
  });
  return { ...panel, ids, marks };
}

/** Whether a mark lies on the ground and moves with it. @param {Mark} mark @param {string} id */
function isStretched(mark, id) {
  return mark.k !== "t" && mark.k !== "i" && !isGround(mark) && id !== "axes";
}

/** Whether a mark is a line from the top to the bottom, as at a switch. @param {Mark} mark */
function isUpright(mark) {
  const points = pointsOf(mark);
  return mark.k === "p" && points.length === 4 && points[0] === points[2];
}

/** @param {Mark} mark @param {Box} box */
function isWithin({ x = 0, y = 0 }, { left, top, right, bottom }) {
  return x >= left && x <= right && y >= top && y <= bottom;
}

// Places --------------------------------------------------------------------------------------------------------------

/** @param {Axis | undefined} axis @param {number} value */
function placeOn(axis, value) {
  return axis ? ((axis.log ? Math.log10(value) : value) - axis.start) / axis.per_pixel : NaN;
}

/** @param {number} from @param {number} to @param {number} low @param {number} high @returns {Move} */
function moveTo(from, to, low, high) {
  const stretch = (high - low) / (to - from);
  return { stretch, shift: low - stretch * from };
}

/** Return how values are read after a move. @param {Axis} axis @param {Move} move @returns {Axis} */
function movedAxis(axis, { stretch, shift }) {
  return { ...axis, start: axis.start - axis.per_pixel * shift / stretch, per_pixel: axis.per_pixel / stretch };
}

/**
 * Return the points of a mark between two places, cut where a line crosses them.
 * @param {Mark} mark
 * @param {number} from
 * @param {number} to
 */
function partBetween(mark, from, to) {
  const [points, each] = [pointsOf(mark), pointLength(mark)];
  if (mark.fill && mark.k === "p") {
    return points.map((place, at) => at % 2 ? place : Math.min(Math.max(place, from), to));
  }
  /** @type {number[]} */
  const kept = [];
  const lift = () => kept.length && !Number.isNaN(kept[kept.length - 1]) && kept.push(...Array(each).fill(NaN));
  for (let at = 0; at < points.length; at += each) {
    const [before, x] = [at ? points[at - each] : NaN, points[at]];
    for (const edge of mark.k === "d" ? [] : x > before ? [from, to] : [to, from]) {
      const share = (edge - before) / (x - before);
      if (!(share > 0 && share < 1)) continue;
      kept.push(edge);
      for (let way = 1; way < each; way++) {
        kept.push(points[at - each + way] * (1 - share) + points[at + way] * share);
      }
    }
    if (x >= from && x <= to) kept.push(...points.subarray(at, at + each));
    else lift();
  }
  if (Number.isNaN(kept.at(-1))) kept.splice(-each);
  return new Float64Array(kept);
}

/** @param {Mark} mark @param {Float64Array | null} part @returns {number[]} */
function heightsOf(mark, part) {
  const each = pointLength(mark);
  return [...part ?? []].filter((place, at) => at % each && !Number.isNaN(place));
}

/** Return the move by which these heights fill a box. @param {number[]} heights @param {Box} box @returns {Move} */
function fitted(heights, { top, bottom }) {
  if (!heights.length) return NO_MOVE;
  const [high, low] = [Math.min(...heights), Math.max(...heights)];
  const span = Math.max((low - high) * (1 + 2 * MARGIN_SHARE), (bottom - top) / CLOSEST);
  if (span >= bottom - top) return NO_MOVE;
  const from = Math.min(Math.max((high + low - span) / 2, top), bottom - span);
  return moveTo(from, from + span, top, bottom);
}

// Marks ---------------------------------------------------------------------------------------------------------------

/**
 * @param {Mark} mark
 * @param {Float64Array} part of its points
 * @param {Move} across
 * @param {Move} up
 * @param {{x: Axis, y: Axis}} axes
 */
function movedMark(mark, part, across, up, axes) {
  const each = pointLength(mark);
  const points = part.map((place, at) => {
    const { stretch, shift } = at % each ? up : across;
    return stretch * place + shift;
  });
  return withPoints(mark.readout ? { ...mark, readout: { ...mark.readout, ...axes } } : mark, points);
}

/**
 * Return words where the thing that they name has gone, null where that is not seen any more.
 * @param {string} id
 * @param {Mark} mark
 * @param {Move} across
 * @param {Move} up
 * @param {Box} box
 * @returns {Mark | null}
 */
function movedText(id, mark, across, up, box) {
  const { x = 0, y = 0, anchor = "start" } = mark;
  const ofSwitch = id.startsWith("switch");
  const off = ofSwitch ? anchor === "end" ? -BESIDE : BESIDE : 0;
  const moved = {
    ...mark,
    x: across.stretch * (x - off) + across.shift + off,
    y: ofSwitch ? y : up.stretch * y + up.shift,
  };
  if (!isWithin({ ...moved, x: moved.x - off }, box)) return null;
  const [left, , right] = boxOf(moved);
  if (left < box.left && ofSwitch) return { ...moved, x: moved.x + 2 * BESIDE, anchor: "start" };
  if (right > box.right && ofSwitch) return { ...moved, x: moved.x - 2 * BESIDE, anchor: "end" };
  return { ...moved, x: moved.x + Math.max(box.left - left, 0) - Math.max(right - box.right, 0) };
}

/**
 * Add lines, ticks and their numbers for other scales; words look as they did.
 * @param {PanelState} panel
 * @param {Mark} mark the lines as they were
 * @param {Box} box
 * @param {{x: Axis, y: Axis}} axes
 * @param {(id: string, mark: Mark) => void} add
 */
function addAxes(panel, mark, { left, top, right, bottom }, axes, add) {
  const lines = [left, top, left, bottom, right, bottom];
  /** @type {[string, Mark][]} */
  const texts = [];
  const like = (/** @type {"x" | "y"} */ side) =>
    panel.marks[panel.ids.findIndex((id) => id.startsWith(`axes ${side}0`))];
  ticksOf(axes.x, left, right, TICKS_APART.across, 1).forEach(({ value, place }, at) => {
    lines.push(NaN, NaN, place, bottom, place, bottom + TICK_LONG);
    texts.push([`axes x${at}`, { ...like("x"), x: place, text: value.toLocaleString("en") }]);
  });
  ticksOf(axes.y, bottom, top, TICKS_APART.up, 0).forEach(({ value, place }, at) => {
    lines.push(NaN, NaN, left - TICK_LONG, place, left, place);
    texts.push([`axes y${at}`, { ...like("y"), y: place, text: shortNumber(value) }]);
  });
  add("axes", withPoints(mark, new Float64Array(lines)));
  for (const [id, text] of texts) if (text.k) add(id, text);
}

/**
 * Return round values on an axis between two places, and where they lie.
 * @param {Axis} axis
 * @param {number} first the place of the lowest value
 * @param {number} last
 * @param {number} each pixels from one to the next, about
 * @param {number} least from one value to the next
 */
function ticksOf(axis, first, last, each, least) {
  const [low, high] = [axisValue(axis, first), axisValue(axis, last)];
  const count = Math.min(Math.max(Math.abs(last - first) / each, 2), 10);
  const values = axis.log && high / low >= 10 ? powersBetween(low, high) : stepsBetween(low, high, count, least);
  return values.map((value) => ({ value, place: placeOn(axis, value) }));
}

/** @param {number} low @param {number} high */
function powersBetween(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  return Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at));
}

/** @param {number} low @param {number} high @param {number} count of steps, at most about @param {number} least */
function stepsBetween(low, high, count, least) {
  const wanted = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = Math.max(power * ([1, 2, 5].find((each) => power * each >= wanted) ?? 10), least);
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}
