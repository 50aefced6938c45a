// @ts-check
/** A field for a number: typed, or turned by arrow keys, the wheel, two buttons, or by dragging its label. */

import { addButton, addElement, atMostEvery } from "./events.js";

const FACTOR = 1.1; // a number is turned by a tenth, a whole number by 1
const DRAG = 8; // pixels that the label is dragged a step
const PAUSE_OF_TURNS = 50; // milliseconds between two values that are told while turning

/** What is typed is told as it was typed; what is wrong with it is the kernel's to say. */
export class NumberField {
  /**
   * @param {import("./controls.js").Control} control
   * @param {(value: string) => void} turn
   */
  constructor({ name, label, kind, low, high, step }, turn) {
    this._whole = kind === "whole";
    this._low = low ?? -Infinity;
    this._high = high ?? Infinity;
    this._step = step ?? 0;
    this._tell = turn;
    this._tellSoon = atMostEvery(PAUSE_OF_TURNS, turn);
    this._shown = ""; // the value that holds
    /** @type {string | null} */
    this._sent = null; // what was told last, until it is answered
    this._off = false;

    this.element = addElement("div", null, "gl-control gl-number");
    const words = addElement("label", this.element, "gl-label", label);
    this._less = addButton(this.element, "−", () => this._turn(-1));
    this._field = addElement("input", this.element);
    this._more = addButton(this.element, "+", () => this._turn(1));
    Object.assign(this._field, { type: "text", inputMode: "decimal", name, autocomplete: "off", spellcheck: false });
    this._field.ariaLabel = label;
    words.addEventListener("click", () => this._field.focus());
    words.title = "drag to turn";
    for (const [button, what] of /** @type {const} */ ([[this._less, "less"], [this._more, "more"]])) {
      button.tabIndex = -1; // the arrow keys do the same
      button.ariaLabel = `${label}: ${what}`;
    }
    this._field.addEventListener("change", () => this._commit());
    this._field.addEventListener("keydown", (event) => this._key(event));
    this._field.addEventListener("wheel", (event) => this._wheel(event), { passive: false });
    this._dragLabel(words);
  }

  /**
   * Show the value that holds; a text that is just being typed stays.
   * @param {string | number | boolean | null} value
   */
  show(value) {
    const text = String(value ?? "");
    const typing = document.activeElement === this._field && this._field.value !== this._shown &&
      this._field.value !== this._sent;
    this._shown = text;
    this._sent = null;
    if (typing || this._field.value === text) return;
    this._field.value = text;
    if (document.activeElement === this._field) this._field.select();
  }

  /** @param {boolean} off */
  disable(off) {
    this._off = off;
    this.element.classList.toggle("gl-off", off);
    for (const each of [this._less, this._field, this._more]) each.disabled = off;
    this._field.ariaDisabled = off ? "true" : null;
  }

  _commit() {
    const text = this._field.value;
    if (text === this._shown || text === this._sent) return;
    this._sent = text;
    this._tell(text);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowUp") this._turn(1);
    else if (event.key === "ArrowDown") this._turn(-1);
    else if (event.key === "Enter") this._commit();
    else if (event.key === "Escape" && this._field.value !== this._shown) this._field.value = this._shown;
    else return;
    event.preventDefault();
  }

  /** @param {WheelEvent} event */
  _wheel(event) {
    if (document.activeElement !== this._field || !event.deltaY) return;
    event.preventDefault();
    this._turn(event.deltaY < 0 ? 1 : -1);
  }

  /**
   * Go so many steps from the number in the field and tell it.
   * @param {number} steps
   */
  _turn(steps) {
    const now = this._field.value.trim() === "" ? NaN : Number(this._field.value);
    const to = this._stepped(now, steps);
    if (this._off || !Number.isFinite(to) || to === now) return;
    this._field.value = this._sent = String(to);
    this._tellSoon(this._sent);
  }

  /**
   * @param {number} number
   * @param {number} steps
   */
  _stepped(number, steps) {
    let to = number;
    if (this._whole) to = Math.round(number) + steps;
    else if (this._step) to = Number((number + steps * this._step).toPrecision(6));
    else to = Number((number * FACTOR ** steps).toPrecision(2));
    return Math.min(this._high, Math.max(this._low, to));
  }

  /** @param {HTMLElement} label */
  _dragLabel(label) {
    let [from, start, moved] = [0, NaN, false];
    label.addEventListener("pointerdown", (event) => {
      if (this._off || event.button) return;
      [from, start, moved] = [event.clientX, Number(this._field.value || NaN), false];
      label.setPointerCapture(event.pointerId);
    });
    label.addEventListener("pointermove", (event) => {
      if (!label.hasPointerCapture(event.pointerId)) return;
      const steps = Math.trunc((event.clientX - from) / DRAG);
      const to = this._stepped(start, steps);
      moved ||= steps !== 0;
      if (!moved || !Number.isFinite(to) || String(to) === this._field.value) return;
      this._field.value = this._sent = String(to);
      this._tellSoon(this._sent);
    });
    label.addEventListener("click", (event) => {
      if (moved) event.preventDefault();
    }, { capture: true });
  }
}
