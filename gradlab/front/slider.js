// @ts-check
/** A slider over listed values, which can play, or over all numbers of a range. */

import { addButton, addElement } from "./events.js";

export class Slider {
  /**
   * @param {import("./controls.js").Control} control
   * @param {(value: any) => unknown} turn returns a promise of the answer, where it comes later
   */
  constructor({ name, label, options = [], every = 0, low, high, step }, turn) {
    this._pairs = /** @type {[string, any][]} */ (options);
    this._step = step ?? 0; // 0 for listed values
    this._label = label;
    this._turn = turn;
    this._every = every;
    this._playing = 0; // the timer
    this.element = addElement("div", null, "gl-control gl-slider");
    const words = addElement("label", this.element);
    addElement("span", words, "gl-label", label);
    this._range = addElement("input", words);
    const [first, last] = this._step ? [low, high] : [0, this._pairs.length - 1];
    Object.assign(this._range, { type: "range", name, min: first, max: last, step: step || 1 });
    this._value = addElement("span", this.element, "gl-value");
    this._value.setAttribute("aria-hidden", "true"); // the range says it
    const texts = this._step
      ? [low, Number(low) + this._step, high].map(numberText)
      : this._pairs.map(([text]) => text);
    this._value.style.minWidth = `${Math.max(0, ...texts.map((text) => text.length))}ch`; // nothing shifts while it is moved
    this._range.addEventListener("input", () => {
      this._stop();
      this._go(Number(this._range.value));
    });
    /** @type {HTMLButtonElement | null} */
    this._button = every ? addButton(this.element, "▶", () => this._playing ? this._stop() : this._play()) : null;
    if (this._button) {
      this._button.classList.add("gl-small");
    }
    this._name(false);
  }

  /** @param {any} value */
  show(value) {
    if (this._step) return this._write(value, numberText(value));
    const at = this._pairs.findIndex(([, each]) => each === value);
    if (at >= 0) this._write(at, this._pairs[at][0]);
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

  /** @param {boolean} playing */
  _name(playing) {
    if (!this._button) return;
    this._button.textContent = playing ? "❚❚" : "▶";
    this._button.ariaLabel = `${playing ? "pause" : "play"} ${this._label}`;
  }

  /** @param {number} at @param {string} text */
  _write(at, text) {
    this._range.value = String(at);
    this._range.setAttribute("aria-valuetext", text);
    this._value.textContent = text;
  }

  /** @param {number} at */
  _go(at) {
    const [text, value] = this._step ? [numberText(at), at] : this._pairs[at];
    this._write(at, text);
    return this._turn(value);
  }

  _play() {
    if (!this._button) return;
    if (Number(this._range.value) >= this._pairs.length - 1) this._go(0);
    this._name(true);
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
    this._name(false);
  }
}

/** Write a number as the kernel's code does. @param {unknown} value */
function numberText(value) {
  return String(Number(Number(value).toPrecision(6)));
}
