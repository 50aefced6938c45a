// @ts-check
/** Calls in a row that are put in another order: dragged by mouse or finger, moved by arrow keys, left out or doubled. */

import { addButton, addElement } from "./events.js";

const FAR = 44; // pixels above or below the row at which a call that is let go is left out
const STILL = 5; // pixels that a pointer may move and still be said to click

export class OrderField {
  /**
   * @param {import("./controls.js").Control} control `options` are the calls, `high` is how many there may be
   * @param {(value: string) => unknown} turn
   */
  constructor({ name, label, options = [], high }, turn) {
    this._most = high ?? 8;
    this._tell = turn;
    this._off = false;
    /** @type {string[]} */
    this._order = [];
    this.element = addElement("div", null, "gl-control gl-order");
    this.element.dataset.name = name;
    this.element.setAttribute("role", "group");
    this.element.ariaLabel = `${label}: drag a call, or move it with the arrow keys; Delete leaves it out`;
    addElement("span", this.element, "gl-label", label);
    this._row = addElement("span", this.element, "gl-chips");
    const more = addElement("span", this.element, "gl-more");
    this._more = options.map((option) => {
      const piece = String(option);
      const button = addButton(more, `+ ${piece}`, () => this._set([...this._order, piece], this._order.length));
      button.classList.add("gl-small");
      button.ariaLabel = `add ${piece} at the end`;
      return button;
    });
  }

  /** @param {any} value the calls in one text, with spaces between them */
  show(value) {
    const order = String(value ?? "").split(" ").filter(Boolean);
    if (order.join(" ") === this._order.join(" ") && this._row.childElementCount) return;
    const focused = [...this._row.children].indexOf(/** @type {Element} */ (document.activeElement));
    this._order = order;
    this._write(focused);
  }

  /** @param {boolean} off */
  disable(off) {
    this._off = off;
    this.element.classList.toggle("gl-off", off);
    for (const button of this.element.querySelectorAll("button")) button.disabled = off;
  }

  /** @param {number} focused the chip that gets the focus, -1 for none */
  _write(focused) {
    const chips = this._order.map((piece, at) => {
      const chip = addElement("button", null, "gl-chip-call", piece);
      chip.type = "button";
      chip.disabled = this._off;
      chip.ariaLabel = `${piece}, ${at + 1} of ${this._order.length}`;
      chip.addEventListener("keydown", (event) => this._key(event, at));
      chip.addEventListener("pointerdown", (event) => this._drag(event, chip, at));
      return chip;
    });
    this._row.replaceChildren(...chips);
    if (focused >= 0) chips[Math.min(focused, chips.length - 1)]?.focus();
    for (const button of this._more) button.disabled = this._off || this._order.length >= this._most;
  }

  /**
   * Put the calls in another order and tell it.
   * @param {string[]} order
   * @param {number} focused
   */
  _set(order, focused) {
    if (this._off || !order.length || order.length > this._most) return;
    this._order = order;
    this._write(focused);
    this._tell(order.join(" "));
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  _moved(from, to) {
    const order = this._order.filter((_, at) => at !== from);
    order.splice(to, 0, this._order[from]);
    return order;
  }

  /**
   * @param {KeyboardEvent} event
   * @param {number} at
   */
  _key(event, at) {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (by !== undefined) {
      const to = at + by;
      if (to >= 0 && to < this._order.length) this._set(this._moved(at, to), to);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this._set(this._order.filter((_, each) => each !== at), Math.max(0, at - 1));
    } else return;
    event.preventDefault();
  }

  /**
   * Follow a call that is dragged: the others make room where it would come to stand.
   * @param {PointerEvent} event
   * @param {HTMLElement} chip
   * @param {number} from
   */
  _drag(event, chip, from) {
    if (event.button || this._off) return;
    const [startX, startY] = [event.clientX, event.clientY];
    const places = [...this._row.children].map((each) => each.getBoundingClientRect());
    let [to, out, moved] = [from, false, false];
    chip.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ { clientX, clientY }) => {
      const [x, y] = [clientX - startX, clientY - startY];
      moved ||= Math.hypot(x, y) >= STILL;
      if (!moved) return;
      out = this._order.length > 1 && !places.some(({ top, bottom }) => clientY > top - FAR && clientY < bottom + FAR);
      to = nearestPlace(places, clientX, clientY);
      chip.style.transform = `translate(${x}px, ${y}px)`;
      chip.classList.toggle("gl-out", out);
      chip.classList.add("gl-dragged");
      [...this._row.children].forEach((each, at) => each.classList.toggle("gl-here", !out && at === to && at !== from));
    };
    const end = (/** @type {PointerEvent} */ { type }) => {
      chip.removeEventListener("pointermove", move);
      for (const kind of ["pointerup", "pointercancel"]) chip.removeEventListener(kind, /** @type {any} */ (end));
      if (type === "pointerup" && out) this._set(this._order.filter((_, at) => at !== from), Math.max(0, from - 1));
      else if (type === "pointerup" && moved && to !== from) this._set(this._moved(from, to), to);
      else this._write(from);
    };
    chip.addEventListener("pointermove", move);
    for (const kind of ["pointerup", "pointercancel"]) chip.addEventListener(kind, /** @type {any} */ (end));
  }
}

/**
 * Return the index of the place whose middle is nearest; rows count before columns.
 * @param {DOMRect[]} places
 * @param {number} x
 * @param {number} y
 */
function nearestPlace(places, x, y) {
  const far = places.map(({ left, right, top, bottom }) =>
    Math.abs((left + right) / 2 - x) + 4 * Math.max(0, top - y, y - bottom)
  );
  return far.indexOf(Math.min(...far));
}
