// @ts-check
/** Dragging in a panel: what is under the pointer to another place, or across it to choose a range. */

import { addElement, atMostEvery } from "./events.js";
import { valueAt } from "./scales.js";

/** @typedef {import("./wire.js").Mark} Mark */
/** @typedef {import("./axes.js").Plot} Plot */
/** @typedef {[number, number]} Place in CSS pixels of the panel */

const PAUSE = 50; // milliseconds between two places that are told while dragging
const CLICK = 5; // pixels that a pointer may move and still be said to click

/** Follows the pointer over a canvas while a button is down. */
export class PanelDrag {
  /**
   * @param {HTMLElement} figure
   * @param {HTMLCanvasElement} canvas
   * @param {{
   *   ask: import("./events.js").Ask,
   *   zoom: (low: number, high: number) => void,
   *   place: (event: MouseEvent) => Place,
   *   grab: (event: PointerEvent) => Mark | null,
   *   ground: (place: Place) => Plot | null,
   *   follow: (place: Place | null) => void,
   *   drop: () => void,
   *   scrubs?: boolean,
   * }} panel `ground` are axes of which a range can be chosen; `scrubs` says whether a finger that is moved across them
   * goes through time instead
   */
  constructor(figure, canvas, panel) {
    this._canvas = canvas;
    this._panel = panel;
    this._range = addElement("div", figure, "gl-range");
    this._range.hidden = true;
    /** @type {Mark | null} */
    this._mark = null;
    /** @type {Plot | null} */
    this._ground = null;
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
      if (event.cancelable && this._mark) event.preventDefault();
    }, { passive: false });
  }

  /** Whether something is being dragged. */
  get busy() {
    return this.moved && (this._mark ?? this._ground) !== null;
  }

  /** Tell the kernel where a mark was dragged to. @param {Mark} mark @param {Place} place */
  tell({ drag, scales }, [x, y]) {
    if (drag && scales) this._tell({ do: "drag", name: drag, x: valueAt(scales.x, x), y: valueAt(scales.y, y) });
  }

  /** @param {PointerEvent} event */
  _begin(event) {
    this.moved = false;
    if (event.button) return;
    this._from = this._panel.place(event);
    this._mark = this._panel.grab(event);
    this._ground = this._mark ? null : this._panel.ground(this._from);
    this._scrubs = Boolean(this._panel.scrubs && event.pointerType === "touch" && this._ground);
    if (this._mark || this._ground) this._canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  _move(event) {
    const [mark, ground] = [this._mark, this._ground];
    if (!mark && !ground) return;
    const to = this._panel.place(event);
    const begins = !this.moved;
    const [right, down] = [to[0] - this._from[0], to[1] - this._from[1]];
    this.moved ||= Math.hypot(right, down) >= CLICK;
    if (!this.moved) return;
    if (this._scrubs && begins && Math.abs(down) > Math.abs(right)) return this._stop(); // it scrolls the page
    this._panel.follow(mark && to);
    if (mark) {
      this._canvas.style.cursor = "grabbing";
      this.tell(mark, to);
    } else if (ground && this._scrubs) {
      this._panel.ask({ do: "scrub", begins, share: right / (ground.right - ground.left) });
    } else if (ground) this._showRange(ground, to);
  }

  /** @param {PointerEvent} event */
  _end(event) {
    const [mark, ground, to] = [this._mark, this._ground, this._panel.place(event)];
    if (this.moved && mark) this.tell(mark, to);
    else if (this.moved && this._scrubs) this._panel.ask({ do: "scrub", ends: true });
    this._stop();
    if (!this.moved || !ground || this._scrubs) return;
    const [low, high] = this._chosen(ground, to).map((place) => valueAt(ground.x, place));
    this._panel.zoom(low, high);
  }

  _stop() {
    if (!this._mark && !this._ground) return;
    this._mark = this._ground = null;
    this._range.hidden = true;
    this._canvas.style.cursor = "";
    this._panel.drop();
  }

  /** Return the left and the right end of the range between where the pointer went down and where it is. @param {Plot} ground @param {Place} to */
  _chosen({ left, right }, to) {
    return [this._from[0], to[0]].map((x) => Math.min(right, Math.max(left, x))).sort((a, b) => a - b);
  }

  /** @param {Plot} ground @param {Place} to */
  _showRange(ground, to) {
    const [low, high] = this._chosen(ground, to);
    const sides = { left: low, width: high - low, top: ground.top, height: ground.bottom - ground.top };
    this._range.hidden = false;
    for (const [side, pixels] of Object.entries(sides)) this._range.style.setProperty(side, `${pixels}px`);
  }
}
