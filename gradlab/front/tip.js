// @ts-check
/** The tooltip at the pointer, in a position where it hides little, and the marked point, line or column. */

import { addElement, putOver } from "./events.js";
import { coveredBy, hiddenBy } from "./labels.js";
import { boxOf, isColumn, isCurve } from "./marks.js";

/** @import { PanelState } from "./wire.js" */
/** @import { Found } from "./marks.js" */

const APART = 14; // CSS pixels between a point and its tooltip
const FREE = 8; // CSS pixels around a point that stay free
const ABOVE = 8; // cost of a position above the panel
const STAYS = 2; // bonus for the side of the previous position

export class PanelTip {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this._cross = addElement("div", figure, "gl-cross");
    this._point = addElement("div", figure, "gl-point");
    this.element = addElement("div", figure, "gl-tip");
    this.element.setAttribute("aria-hidden", "true"); // a screen reader gets it from `say`
    this._side = 0;
    this.hide();
  }

  hide() {
    this.element.hidden = this._point.hidden = this._cross.hidden = true;
  }

  /** Show a mark's text. @param {PanelState} panel @param {Found} target @param {string} hint about further actions */
  show(panel, target, hint) {
    const { element } = this;
    const column = isColumn(panel, target.mark);
    this.point(target.x, target.y);
    this._point.hidden = column;
    this._showCross(panel, target, column);
    element.hidden = !target.words;
    if (!target.words) return;
    if (element.textContent !== target.words) element.textContent = target.words;
    element.dataset.hint = hint;
    const size = [element.offsetWidth, element.offsetHeight];
    const { place: [left, top], side } = freePlace(panel, size, [target.x, target.y], this._side);
    this._side = side;
    element.style.translate = `${left}px ${top}px`;
  }

  /** Show the ring alone. @param {number} x @param {number} y */
  point(x, y) {
    this._point.hidden = false;
    this._point.style.translate = `${x}px ${y}px`;
  }

  /** @param {PanelState} panel @param {Found} target @param {boolean} column */
  _showCross(panel, target, column) {
    this._cross.hidden = !column && !isCurve(target.mark);
    if (this._cross.hidden) return;
    const [, top, , bottom] = plotsBox(panel); // it crosses all plots
    const [left, , right] = column ? boxOf(target.mark) : [target.x, 0, target.x];
    putOver(this._cross, [left, top, right, bottom]);
  }
}

/** Return left, top, right and bottom of all axes together. @param {PanelState} panel */
function plotsBox({ plots }) {
  const last = plots[plots.length - 1];
  return [plots[0].left, plots[0].top, last.right, last.bottom];
}

/**
 * Return the left and top at which a tooltip hides the least of a panel and nothing of its point, and the index of that
 * side; the previous side is kept if another is hardly better.
 * @param {PanelState} panel @param {number[]} size width and height of the tooltip
 * @param {[number, number]} point @param {number} side the previous side
 */
export function freePlace(panel, [wide, tall], [x, y], side) {
  const [width, height] = panel.size;
  const [left, top, right, bottom] = plotsBox(panel);
  const places = [
    ...pairsOf([x + APART, x - wide - APART], [y - tall - APART, y + APART]),
    ...pairsOf([right - wide - 4, left + 4], [top + 4, bottom - tall - 4]),
  ].map(([l, t]) => [l, Math.max(0, Math.min(t, height - tall))]);
  const all = [...places, [x - wide / 2, -tall - 2]].map(([l, t]) => [Math.max(0, Math.min(l, width - wide)), t]);
  const costs = all.map(([l, t], index) => {
    const [r, b] = [l + wide, t + tall];
    if (x > l - FREE && x < r + FREE && y > t - FREE && y < b + FREE) return Infinity;
    let cost = t < 0 ? ABOVE : 0;
    for (const mark of panel.marks) {
      const weight = mark.k === "d" ? 3 : mark.press ? 2 : 1;
      cost += weight * hiddenBy([l, t, r, b], [coveredBy(mark)]);
    }
    return cost + Math.hypot((l + r) / 2 - x, (t + b) / 2 - y) / 100 - (index === side ? STAYS : 0);
  });
  const best = costs.indexOf(Math.min(...costs));
  return { place: all[best], side: best };
}

/** @param {number[]} xs @param {number[]} ys */
function pairsOf(xs, ys) {
  return xs.flatMap((x) => ys.map((y) => [x, y]));
}
