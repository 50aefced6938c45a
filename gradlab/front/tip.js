// @ts-check
/** The words at the pointer, the line or the column that they speak of, and a place for them where they hide nothing. */

import { addElement } from "./events.js";
import { boxOf, isColumn, isCurve, isGround } from "./marks.js";
import { pointLength, pointsOf } from "./wire.js";

/** @typedef {import("./wire.js").Mark} Mark */
/** @typedef {import("./wire.js").PanelState} PanelState */
/** @typedef {import("./marks.js").Found} Found */

const APART = 14; // CSS pixels from a point to its words
const FREE = 8; // CSS pixels around a point that stay free
const EACH = 8; // CSS pixels along a line that count as one thing to hide
const OUTSIDE = 8; // what it costs to lie on what is beside the panel
const STAYS = 2; // what it is worth not to jump to another side

export class PanelTip {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this._figure = figure;
    this._cross = addElement("div", figure, "gl-cross");
    this._point = addElement("div", figure, "gl-point");
    this.element = addElement("div", figure, "gl-tip");
    this.element.setAttribute("aria-hidden", "true"); // who cannot see it is told by `say`
    this._side = 0;
    this.hide();
  }

  hide() {
    this.element.hidden = this._point.hidden = this._cross.hidden = true;
  }

  /**
   * Show what was found.
   * @param {PanelState} panel
   * @param {Found} found
   * @param {number} scale CSS pixels a pixel of the panel
   * @param {string} hint what else can be done there
   */
  show(panel, found, scale, hint) {
    const { element } = this;
    const column = isColumn(panel, found.mark);
    this.point(found.x, found.y, scale);
    this._point.hidden = column;
    this._showCross(panel, found, scale, column);
    element.hidden = !found.words;
    if (!found.words) return;
    if (element.textContent !== found.words) element.textContent = found.words;
    element.dataset.hint = hint;
    const size = [element.offsetWidth / scale, element.offsetHeight / scale];
    const { place: [left, top], side } = freePlace(panel, size, [found.x, found.y], this._side, this._room(scale));
    this._side = side;
    element.style.translate = `${left * scale}px ${top * scale}px`;
  }

  /**
   * Show the ring alone.
   * @param {number} x
   * @param {number} y
   * @param {number} scale
   */
  point(x, y, scale) {
    this._point.hidden = false;
    this._point.style.translate = `${x * scale}px ${y * scale}px`;
  }

  /**
   * Return how much of the lab there is above and below the panel: what leaves it would be given a scroll bar.
   * @param {number} scale
   */
  _room(scale) {
    const [own, lab] = [this._figure, this._figure.closest(".gradlab")].map((each) => each?.getBoundingClientRect());
    return own && lab ? [own.top - lab.top, lab.bottom - own.bottom].map((room) => room / scale) : [0, 0];
  }

  /**
   * @param {PanelState} panel
   * @param {Found} found
   * @param {number} scale
   * @param {boolean} column
   */
  _showCross(panel, found, scale, column) {
    this._cross.hidden = !column && !isCurve(found.mark);
    if (this._cross.hidden) return;
    const [, high, , low] = plotBox(panel);
    const [top, bottom] = [Math.min(high, found.y), Math.max(low, found.y)]; // of two plots it goes through both
    const [left, , right] = column ? boxOf(found.mark) : [found.x, 0, found.x];
    Object.assign(this._cross.style, {
      left: `${left * scale}px`,
      width: `${Math.max((right - left) * scale, 1)}px`,
      top: `${top * scale}px`,
      height: `${(bottom - top) * scale}px`,
    });
  }
}

/**
 * Return left, top, right and bottom of where curves lie: within the axes.
 * @param {PanelState} panel
 * @returns {[number, number, number, number]}
 */
function plotBox(panel) {
  const axes = panel.marks[panel.ids.indexOf("axes")];
  return axes ? boxOf(axes) : [0, 0, ...panel.size];
}

/**
 * Return where words of a size hide least of a panel and nothing of the point that they speak of: its left and top, and
 * the number of the side, which is kept where another is hardly better.
 * @param {PanelState} panel
 * @param {number[]} size of the words, width and height
 * @param {[number, number]} at the point
 * @param {number} side where they were before
 * @param {number[]} [room] above and below the panel
 * @returns {{place: [number, number], side: number}}
 */
export function freePlace(panel, [wide, tall], [x, y], side, [above, below] = [Infinity, Infinity]) {
  const [width, height] = panel.size;
  const [left, top, right, bottom] = plotBox(panel);
  const across = (/** @type {number} */ wanted) => Math.max(0, Math.min(wanted, width - wide));
  const down = (/** @type {number} */ wanted) => Math.max(0, Math.min(wanted, height - tall));
  const places = /** @type {[number, number][]} */ ([
    [across(x + APART), down(y - tall - APART)],
    [across(x + APART), down(y + APART)],
    [across(x - wide - APART), down(y - tall - APART)],
    [across(x - wide - APART), down(y + APART)],
    [across(right - wide - 4), down(top + 4)],
    [across(left + 4), down(top + 4)],
    [across(right - wide - 4), down(bottom - tall - 4)],
    [across(left + 4), down(bottom - tall - 4)],
    ...(tall + 2 < below ? [[across(x - wide / 2), height + 2]] : []),
    ...(tall + 2 < above ? [[across(x - wide / 2), -tall - 2]] : []),
  ]);
  const things = thingsIn(panel);
  const costs = places.map(([l, t], at) => {
    const [r, b] = [l + wide, t + tall];
    if (x > l - FREE && x < r + FREE && y > t - FREE && y < b + FREE) return Infinity;
    let cost = t < 0 || b > height ? OUTSIDE : 0;
    for (const [px, py, weight] of things) if (px > l && px < r && py > t && py < b) cost += weight;
    return cost + Math.hypot((l + r) / 2 - x, (t + b) / 2 - y) / 100 - (at === side ? STAYS : 0);
  });
  const best = costs.indexOf(Math.min(...costs));
  return { place: places[best], side: best };
}

/** @type {WeakMap<PanelState, [number, number, number][]>} */
const knownThings = new WeakMap();

/**
 * Return what words could hide: places, and what hiding each of them costs.
 * @param {PanelState} panel
 */
function thingsIn(panel) {
  let things = knownThings.get(panel);
  if (!things) {
    things = panel.marks.flatMap((mark) => thingsOf(panel, mark));
    knownThings.set(panel, things);
  }
  return things;
}

/**
 * @param {PanelState} panel
 * @param {Mark} mark
 * @returns {[number, number, number][]}
 */
function thingsOf(panel, mark) {
  if (mark.k === "i" || isGround(mark) || isColumn(panel, mark)) return [];
  if (mark.k === "t") {
    const [left, top, right, bottom] = boxOf(mark);
    return [0.02, 0.5, 0.98].map((share) => [left + share * (right - left), (top + bottom) / 2, 1]);
  }
  const [points, each] = [pointsOf(mark), pointLength(mark)];
  const weight = mark.k === "d" ? 3 : mark.press ? 2 : 1;
  /** @type {[number, number, number][]} */
  const found = [];
  let [lastX, lastY] = [NaN, NaN];
  for (let at = 0; at < points.length; at += each) {
    const [x, y] = [points[at], points[at + each - 1]];
    const steps = Math.hypot(x - lastX, y - lastY) / EACH;
    if (mark.k !== "d" && steps < 1) continue; // so close to the one before that it is the same
    for (let step = 1; step < steps && mark.k !== "d"; step++) {
      found.push([lastX + (x - lastX) * step / steps, lastY + (y - lastY) * step / steps, weight]);
    }
    if (!Number.isNaN(x)) found.push([x, y, weight]);
    [lastX, lastY] = [x, y];
  }
  return found;
}
