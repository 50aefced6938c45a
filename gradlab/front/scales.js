// @ts-check
/** Scales of axes: the positions of numbers, and the ticks. */

import { bytesText, countText, shortNumber } from "./numbers.js";

/** @import { Axis } from "./wire.js" */
/**
 * A number, or if `log` its logarithm, is at `(number - start) / per_pixel`; the limits in `axis` are at `ends`.
 * @typedef {{start: number, per_pixel: number, log: boolean, axis: {low: number, high: number}, ends: number[]}} Scale
 */
/** @typedef {{value: number, words: string}} Tick */

const DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/**
 * Return the scale of an axis between two positions.
 * @param {Axis} axis @param {number} from CSS pixels of its lower limit @param {number} to of the upper
 * @returns {Scale}
 */
export function scaleOf({ low = 0, high = 1, log = false }, from, to) {
  const [start, end] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
  const per_pixel = (end - start) / (to - from);
  return { start: start - per_pixel * from, per_pixel, log, axis: { low, high }, ends: [from, to] };
}

export const EDGE = 1e299; // larger numbers mean the edge of the axes (`AXES_EDGE` in `gradlab/drawing/marks.py`)

/** Return the position of a number in CSS pixels. @param {Scale} scale @param {number} value */
export function placeOn({ start, per_pixel, log, ends }, value) {
  if (Math.abs(value) > EDGE) return ends[value < 0 ? 0 : 1];
  return ((log ? Math.log10(Math.max(value, 1e-300)) : value) - start) / per_pixel;
}

/** Return the number at a position in CSS pixels. @param {Scale} scale @param {number} place */
export function valueAt({ start, per_pixel, log }, place) {
  const value = start + per_pixel * place;
  return log ? 10 ** value : value;
}

/**
 * Return the numbers and labels of an axis's ticks, from low to high.
 * @param {Axis} axis @param {number} long CSS pixels of the axis
 * @param {number} spacing approximate CSS pixels between ticks @returns {Tick[]}
 */
export function ticksOf({ low = 0, high = 1, log = false, ticks = "number" }, long, spacing) {
  if (ticks === "none" || ticks === "slanted") return [];
  const count = Math.min(Math.max(long / spacing, 2), 10);
  const whole = ticks === "updates" || ticks === "powers" || ticks === "lines";
  const values = ticks === "bytes"
    ? byteSteps(high)
    : ticks === "shares"
    ? [0, 1]
    : log && high / low >= 10
    ? powersBetween(low, high, count)
    : stepsBetween(low, high, count, whole ? 1 : 0);
  return values.map((value) => ({ value, words: FORMATS[ticks](value) }));
}

/** @type {Record<string, (value: number) => string>} */
const FORMATS = {
  number: shortNumber,
  updates: countText,
  bytes: bytesText,
  powers: (value) => `2${[...String(Math.round(value))].map((each) => DIGITS[Number(each)] ?? "⁻").join("")}`,
  shares: (value) => `${Math.round(100 * value)}%`,
  lines: () => "",
};

/** Return up to six round numbers of bytes from 0 to a limit. @param {number} top */
function byteSteps(top) {
  const units = Array.from({ length: 6 }, (_, power) => 1024 ** power);
  const unit = Math.max(1, ...units.filter((each) => each <= top / 1.5));
  const steps = 0.97 * top > 999 * unit ? [256, 512] : [1, 2, 5, 10, 20, 50, 100, 200]; // no label like "0.98 MiB"
  const step = (steps.find((each) => top / (each * unit) <= 5.5) ?? top / 4 / unit) * unit;
  return Array.from({ length: Math.ceil(0.97 * top / step) }, (_, index) => index * step);
}

/** @param {number} low @param {number} high @param {number} count */
function powersBetween(low, high, count) {
  const [bottom, top] = [Math.log10(low), Math.log10(high)];
  const [first, last] = [Math.ceil(bottom - 1e-9), Math.floor(top + 1e-9)];
  const stride = Math.max(1, Math.ceil((top - bottom) / Math.floor(count)));
  return Array.from({ length: Math.floor((last - first) / stride) + 1 }, (_, index) => 10 ** (first + index * stride));
}

/**
 * Return multiples of a round step or, if only one of them is on the axis, of the next smaller step.
 * @param {number} low @param {number} high @param {number} count approximate largest number of steps
 * @param {number} least the smallest step
 */
function stepsBetween(low, high, count, least) {
  const wanted = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const rungs = [0.5, 1, 2, 5, 10];
  let rung = rungs.findIndex((each) => power * each >= wanted * (1 - 1e-9));
  if (multiplesBetween(low, high, Math.max(power * rungs[rung], least)).length < 2) rung--;
  return multiplesBetween(low, high, Math.max(power * rungs[rung], least));
}

/** @param {number} low @param {number} high @param {number} step */
function multiplesBetween(low, high, step) {
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  const count = Math.max(last - first + 1, 0);
  return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}
