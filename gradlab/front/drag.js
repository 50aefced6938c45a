// @ts-check
/** Dragging in a panel: a mark to another position, or across the axes to choose a range. */

import { addElement, putOver } from "./events.js";
import { valueAt } from "./scales.js";

/** @import { Mark } from "./wire.js" */
/** @import { Plot } from "./axes.js" */
/** @typedef {[number, number]} Place in CSS pixels of the panel */

const CLICK = 5; // CSS pixels that the pointer may move in a click

/** A drag in a panel, which follows the pointer while a button is down. */
export class PanelDrag {
  /** @param {import("./panel.js").Panel} panel */
  constructor(panel) {
    this._panel = panel;
    this._range = addElement("div", panel.figure, "gl-range");
    this._range.hidden = true;
    /** @type {Mark | null} the dragged mark */
    this._mark = null;
    /** @type {Plot | null} axes in which a range is chosen, or a finger moves through time */
    this._ground = null;
    /** @type {Place} */
    this._from = [0, 0];
    this._scrubs = false; // whether a finger moves through time
    /** Whether the pointer has moved too far for a click since it went down. */
    this.moved = false;
    const { canvas } = panel;
    canvas.addEventListener("pointerdown", (event) => this._begin(event));
    canvas.addEventListener("pointermove", (event) => this._move(event));
    canvas.addEventListener("pointerup", (event) => this._end(event));
    canvas.addEventListener("pointercancel", () => this._stop());
    // A finger on a mark that can be moved drags it; anywhere else it scrolls the page.
    canvas.addEventListener("touchstart", (event) => {
      if (event.cancelable && this._mark) event.preventDefault();
    }, { passive: false });
  }

  /** Whether something is being dragged. */
  get busy() {
    return this.moved && (this._mark ?? this._ground) !== null;
  }

  /** Send the kernel a dragged mark's position. @param {Mark} mark @param {Place} place */
  tell({ drag, scales }, [x, y]) {
    if (scales) this._panel.ask({ do: "drag", name: drag, x: valueAt(scales.x, x), y: valueAt(scales.y, y) });
  }

  /** @param {PointerEvent} event */
  _begin(event) {
    this.moved = false;
    if (event.button) return;
    const panel = this._panel;
    this._from = panel.placeOf(event);
    this._mark = panel.grab(event);
    this._ground = this._mark ? null : panel.groundAt(this._from);
    this._scrubs = panel.scrubs && event.pointerType === "touch" && this._ground !== null;
    if (this._mark || this._ground) panel.canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  _move(event) {
    const [mark, ground, begins] = [this._mark, this._ground, !this.moved];
    if (!mark && !ground) return;
    const to = this._panel.placeOf(event);
    const [right, down] = [to[0] - this._from[0], to[1] - this._from[1]];
    this.moved ||= Math.hypot(right, down) >= CLICK;
    if (!this.moved) return;
    if (this._scrubs && begins && Math.abs(down) > Math.abs(right)) return this._stop(); // the finger scrolls the page
    this._panel.follow(mark && to);
    if (mark) this.tell(mark, to);
    else if (ground && this._scrubs) {
      this._panel.ask({ do: "scrub", begins, share: right / (ground.right - ground.left) });
    } else if (ground) {
      const [low, high] = this._chosen(ground, to);
      this._range.hidden = false;
      putOver(this._range, [low, ground.top, high, ground.bottom]);
    }
  }

  /** @param {PointerEvent} event */
  _end(event) {
    const [mark, ground, to] = [this._mark, this._ground, this._panel.placeOf(event)];
    this._stop();
    if (!this.moved) return;
    if (mark) this.tell(mark, to);
    else if (this._scrubs) this._panel.ask({ do: "scrub", ends: true });
    else if (ground) {
      const [low, high] = this._chosen(ground, to).map((place) => valueAt(ground.x, place));
      this._panel.zoom(low, high);
    }
  }

  _stop() {
    if (!this._mark && !this._ground) return;
    this._mark = this._ground = null;
    this._range.hidden = true;
    this._panel.drop();
  }

  /** Return both ends of the chosen range of x, in CSS pixels. @param {Plot} ground @param {Place} to */
  _chosen({ left, right }, to) {
    return [this._from[0], to[0]].map((x) => Math.min(right, Math.max(left, x))).sort((a, b) => a - b);
  }
}
