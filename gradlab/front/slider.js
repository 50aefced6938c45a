// @ts-check
/** A slider over listed values, which can play. */

import { addButton, addElement } from "./events.js";

export class Slider {
  /**
   * @param {import("./controls.js").Control} control
   * @param {(value: any) => unknown} turn returns a promise of the answer, where it comes later
   */
  constructor({ name, label, options = [], every = 0 }, turn) {
    this._pairs = /** @type {[string, any][]} */ (options);
    this._turn = turn;
    this._every = every;
    this._playing = 0; // the timer
    this.element = addElement("div", null, "gl-control gl-slider");
    const words = addElement("label", this.element);
    addElement("span", words, "gl-label", label);
    this._range = addElement("input", words);
    Object.assign(this._range, { type: "range", name, min: "0", max: String(this._pairs.length - 1), step: "1" });
    this._value = addElement("output", this.element, "gl-value");
    const longest = Math.max(0, ...this._pairs.map(([text]) => text.length));
    this._value.style.minWidth = `${longest}ch`; // nothing shifts while it is moved
    this._range.addEventListener("input", () => {
      this._stop();
      this._go(Number(this._range.value));
    });
    /** @type {HTMLButtonElement | null} */
    this._button = every ? addButton(this.element, "▶", () => this._playing ? this._stop() : this._play()) : null;
    if (this._button) {
      this._button.classList.add("gl-small");
      this._button.ariaLabel = `play ${label}`;
    }
  }

  /** @param {any} value */
  show(value) {
    const at = this._pairs.findIndex(([, each]) => each === value);
    if (at >= 0) this._write(at);
  }

  /** @param {boolean} off */
  disable(off) {
    if (off) this._stop();
    this.element.classList.toggle("gl-off", off);
    this._range.disabled = off;
    if (this._button) this._button.disabled = off;
  }

  close() {
    this._stop();
  }

  /** @param {number} at */
  _write(at) {
    const [text] = this._pairs[at];
    this._range.value = String(at);
    this._range.setAttribute("aria-valuetext", text);
    this._value.textContent = text;
  }

  /** @param {number} at */
  _go(at) {
    this._write(at);
    return this._turn(this._pairs[at][1]);
  }

  _play() {
    if (!this._button) return;
    if (Number(this._range.value) >= this._pairs.length - 1) this._go(0);
    this._button.textContent = "❚❚";
    const tick = async () => {
      const began = performance.now();
      const next = Number(this._range.value) + 1;
      if (next >= this._pairs.length) return this._stop();
      const turned = this._playing;
      await this._go(next);
      if (this._playing !== turned) return; // stopped, or begun anew, while it was answered
      if (next >= this._pairs.length - 1) return this._stop();
      this._playing = setTimeout(tick, Math.max(0, this._every - (performance.now() - began)));
    };
    this._playing = setTimeout(tick, 0);
  }

  _stop() {
    clearTimeout(this._playing);
    this._playing = 0;
    if (this._button) this._button.textContent = "▶";
  }
}
