// @ts-check
/** Dragging in a panel: what is under the pointer to another place, or across it to choose a range. */

import { addElement, atMostEvery } from "./events.js";
import { boxOf, foundAt, isGround, isMoved } from "./marks.js";
import { valueAt } from "./scales.js";
import { pointsOf, withPoints } from "./wire.js";

/** @typedef {import("./wire.js").Mark} Mark */
/** @typedef {import("./scales.js").Scale} Axis */
/** @typedef {import("./wire.js").PanelState} PanelState */
/** @typedef {import("./marks.js").Found} Found */
/** @typedef {[number, number]} Place in the panel's pixels */

const PAUSE = 50; // milliseconds between two places that are told while dragging
const CLICK = 5; // pixels that a pointer may move and still be said to click

/** Follows the pointer over a canvas while a button is down. */
export class PanelDrag {
  /**
   * @param {HTMLElement} figure
   * @param {HTMLCanvasElement} canvas
   * @param {{
   *   ask: import("./events.js").Ask,
   *   size: () => [number, number],
   *   place: (event: MouseEvent) => Place,
   *   grab: (event: PointerEvent) => Found | null,
   *   ground: (place: Place) => Found | null,
   *   follow: (place: Place | null) => void,
   *   drop: () => void,
   *   scrubs?: boolean,
   * }} panel `scrubs` says whether a finger that is moved across the ground goes through time instead of choosing a range
   */
  constructor(figure, canvas, panel) {
    this._canvas = canvas;
    this._panel = panel;
    this._range = addElement("div", figure, "gl-range");
    this._range.hidden = true;
    /** @type {Mark | null} */
    this._mark = null;
    /** @type {Place} */
    this._from = [0, 0];
    this._scrubs = false;
    /** Whether the pointer has moved since it went down: then it was no click. */
    this.moved = false;
    this._tell = atMostEvery(PAUSE, panel.ask);
    canvas.addEventListener("pointerdown", (event) => this._begin(event));
    canvas.addEventListener("pointermove", (event) => this._move(event));
    canvas.addEventListener("pointerup", (event) => this._end(event));
    canvas.addEventListener("pointercancel", () => this._stop());
    // A finger on what can be moved drags it; anywhere else it scrolls the page.
    canvas.addEventListener("touchstart", (event) => {
      if (event.cancelable && this._mark && isMoved(this._mark)) event.preventDefault();
    }, { passive: false });
  }

  /** Whether something is being dragged. */
  get busy() {
    return this._mark !== null && this.moved;
  }

  /**
   * Tell the kernel where a mark was dragged to.
   * @param {Mark} mark
   * @param {Place} place
   */
  tell(mark, [x, y]) {
    const { drag } = mark;
    if (drag) this._tell({ do: "drag", name: drag.name, x: valueAt(drag.x, x), y: valueAt(drag.y, y) });
  }

  /** @param {PointerEvent} event */
  _begin(event) {
    this.moved = false;
    if (event.button) return;
    this._from = this._panel.place(event);
    this._mark = (this._panel.grab(event) ?? this._panel.ground(this._from))?.mark ?? null;
    this._scrubs = Boolean(this._panel.scrubs && event.pointerType === "touch" && this._mark && isGround(this._mark));
    if (this._mark) this._canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  _move(event) {
    const mark = this._mark;
    if (!mark) return;
    const to = this._panel.place(event);
    const begins = !this.moved;
    const [right, down] = [to[0] - this._from[0], to[1] - this._from[1]];
    this.moved ||= Math.hypot(right, down) >= CLICK;
    if (!this.moved) return;
    if (this._scrubs && begins && Math.abs(down) > Math.abs(right)) return this._stop(); // it scrolls the page
    const zooms = isGround(mark);
    this._panel.follow(zooms ? null : to);
    if (this._scrubs) this._scrub(mark, to, begins);
    else if (zooms) this._showRange(mark, to);
    else {
      this._canvas.style.cursor = "grabbing";
      this.tell(mark, to);
    }
  }

  /** @param {PointerEvent} event */
  _end(event) {
    const mark = this._mark;
    if (mark?.drag && this.moved) {
      const to = this._panel.place(event);
      if (this._scrubs) this._panel.ask({ do: "scrub", ends: true });
      else if (isMoved(mark)) this.tell(mark, to);
      else {
        const [low, high] = this._chosen(mark, to).map((place) => valueAt(/** @type {Axis} */ (mark.drag?.x), place));
        this._panel.ask({ do: "zoom", low, high });
      }
    }
    this._stop();
  }

  /**
   * Tell how far a finger has gone, in the numbers of the x axis.
   * @param {Mark} mark
   * @param {Place} to
   * @param {boolean} begins
   */
  _scrub(mark, to, begins) {
    const by = (to[0] - this._from[0]) * mark.drag.x.per_pixel;
    this._panel.ask({ do: "scrub", begins, by });
  }

  _stop() {
    if (!this._mark) return;
    this._mark = null;
    this._panel.drop();
    this._range.hidden = true;
    this._canvas.style.cursor = "";
  }

  /**
   * Return the left and the right end of the range between where the pointer went down and where it is.
   * @param {Mark} mark
   * @param {Place} to
   */
  _chosen(mark, to) {
    const [left, , right] = boxOf(mark);
    return [this._from[0], to[0]].map((x) => Math.min(right, Math.max(left, x))).sort((a, b) => a - b);
  }

  /**
   * @param {Mark} mark
   * @param {Place} to
   */
  _showRange(mark, to) {
    const [, top, , bottom] = boxOf(mark);
    const [low, high] = this._chosen(mark, to);
    const [width, height] = this._panel.size();
    this._range.hidden = false;
    const sides = {
      left: low / width,
      width: (high - low) / width,
      top: top / height,
      height: (bottom - top) / height,
    };
    for (const [side, share] of Object.entries(sides)) this._range.style.setProperty(side, `${100 * share}%`);
  }
}

/**
 * Return the state to paint while a mark is dragged: the newest one, as long as its mark is read on the same axes. On others
 * it would not lie under the pointer, so until it is dropped the last state on its own axes stays, with the mark, and its
 * words, where the pointer is.
 * @param {PanelState} newest
 * @param {{from: PanelState, id: string, place: Place}} held
 * @returns {PanelState}
 */
export function heldState(newest, held) {
  const markIn = (/** @type {PanelState} */ panel) => panel.marks[panel.ids.indexOf(held.id)];
  const [mark, now] = [markIn(held.from), markIn(newest)];
  if (JSON.stringify(mark.drag) === JSON.stringify(now?.drag)) return held.from = newest;
  const { x, y } = foundAt(held.from, held.from.ids.indexOf(held.id), 0);
  const [right, down] = [held.place[0] - x, held.place[1] - y];
  /** @type {string[]} */
  const ids = [];
  const marks = held.from.marks.flatMap((each, index) => {
    const id = held.from.ids[index];
    if (each !== mark && endsAt(each, x, y)) return []; // the way that it had come
    ids.push(id);
    if (each === mark) return withPoints(each, pointsOf(each).map((value, at) => value + (at % 2 ? down : right)));
    return id.startsWith(`${held.id} `) ? { ...each, x: (each.x ?? 0) + right, y: (each.y ?? 0) + down } : each;
  });
  return { ...held.from, ids, marks };
}

/**
 * @param {Mark} mark
 * @param {number} x
 * @param {number} y
 */
function endsAt(mark, x, y) {
  const [lastX, lastY] = mark.k === "p" || mark.k === "d" ? pointsOf(mark).slice(-2) : [];
  return Math.hypot(lastX - x, lastY - y) < 1;
}

/**
 * Return the low and the high end of a range on an axis, `share` times what lies between two places, with `middle`
 * staying where it is.
 * @param {Axis} axis
 * @param {number} left
 * @param {number} right
 * @param {number} middle
 * @param {number} share
 * @returns {[number, number]}
 */
export function rangeAround(axis, left, right, middle, share) {
  const [low, high] = [left, right].map((place) => valueAt(axis, middle + (place - middle) * share));
  return low < high ? [low, high] : [high, low];
}
