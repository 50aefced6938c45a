// @ts-check
/** The switches: boxes to tick, lists to choose from, and fields for numbers that can also be turned. */

import { addElement } from "./events.js";
import { NumberField } from "./number_field.js";
import { OrderField } from "./order_field.js";
import { Slider } from "./slider.js";

/** @typedef {import("./events.js").Ask} Ask */
/** @typedef {string | number | boolean | null} Value */
/**
 * `options` of a choice are values, or pairs of words and a value.
 * @typedef {{
 *   name: string, label: string, kind: "tick" | "choice" | "whole" | "number" | "slider" | "order",
 *   options?: (Value | [string, Value])[], low?: number | null, high?: number | null, step?: number | null, every?: number,
 * }} Control
 */
/** @typedef {{controls?: Control[], values?: Record<string, Value>, off?: string[]}} ControlsState */
/** @typedef {{element: HTMLElement, show: (value: Value) => void, disable: (off: boolean) => void, close?: () => void}} Part */

/** Controls side by side, each of which tells the kernel what was chosen or typed. */
export class ControlBar {
  /**
   * @param {Element} root
   * @param {{ask: Ask}} options where `ask` returns a promise, it is of the answer having been shown
   */
  constructor(root, { ask }) {
    this._bar = addElement("div", root, "gl-bar gl-controls");
    this._bar.setAttribute("role", "group");
    this._bar.ariaLabel = "switches";
    this._ask = ask;
    this._made = "";
    /** @type {Map<string, Part>} */
    this._parts = new Map();
    /** @type {Record<string, Value>} */
    this._values = {};
    /** @type {Map<string, number>} turns that are not answered yet: until they are, the reader's own choice stands */
    this._waiting = new Map();
  }

  /**
   * Show what has changed. Nothing is made anew as long as the controls are the same.
   * @param {ControlsState} change
   */
  show({ controls, values, off }) {
    const anew = controls && JSON.stringify(controls) !== this._made;
    if (anew) this._make(controls);
    if (values) this._values = { ...this._values, ...values };
    for (const [name, part] of this._parts) {
      if (anew || (values && name in values && !this._waiting.get(name))) this._showValue(name, part);
    }
    if (off) { for (const [name, part] of this._parts) part.disable(off.includes(name)); }
  }

  /** End what plays. */
  close() {
    for (const part of this._parts.values()) part.close?.();
  }

  /** @param {Control[]} controls */
  _make(controls) {
    this._made = JSON.stringify(controls);
    const focused = [...this._parts].find(([, part]) => part.element.contains(document.activeElement))?.[0];
    for (const part of this._parts.values()) part.close?.();
    this._parts = new Map(controls.map((control) => [control.name, this._part(control)]));
    this._bar.hidden = !controls.length;
    this._bar.replaceChildren(...[...this._parts.values()].map((part) => part.element));
    /** @type {HTMLElement | null | undefined} */
    const again = focused === undefined
      ? null
      : this._parts.get(focused)?.element.querySelector("input, select, button");
    again?.focus();
  }

  /**
   * @param {Control} control
   * @returns {Part}
   */
  _part(control) {
    const turn = (/** @type {Value} */ value) => this._turn(control.name, value);
    if (control.kind === "slider") return new Slider(control, turn);
    if (control.kind === "order") return new OrderField(control, turn);
    if (control.kind === "tick") return tickBox(control, turn);
    if (control.kind === "choice") return choiceList(control, turn);
    return new NumberField(control, turn);
  }

  /**
   * @param {string} name
   * @param {Value} value
   */
  async _turn(name, value) {
    const answer = this._ask({ do: "turn", name, value });
    if (!(answer instanceof Promise)) return;
    this._waiting.set(name, (this._waiting.get(name) ?? 0) + 1);
    await answer;
    const left = (this._waiting.get(name) ?? 1) - 1;
    this._waiting.set(name, left);
    const part = this._parts.get(name);
    if (part && !left) this._showValue(name, part); // one that was refused goes back
  }

  /**
   * @param {string} name
   * @param {Part} part
   */
  _showValue(name, part) {
    if (name in this._values) part.show(this._values[name]);
  }
}

/**
 * @param {Control} control
 * @param {(value: Value) => void} turn
 * @returns {Part}
 */
function tickBox({ name, label }, turn) {
  const element = addElement("label", null, "gl-control gl-tick");
  const box = addElement("input", element);
  box.type = "checkbox";
  box.name = name;
  addElement("span", element, "", label);
  box.addEventListener("change", () => turn(box.checked));
  return {
    element,
    show(value) {
      box.checked = Boolean(value);
    },
    disable: (off) => disable(element, box, off),
  };
}

/**
 * @param {Control} control
 * @param {(value: Value) => void} turn
 * @returns {Part}
 */
function choiceList({ name, label, options = [] }, turn) {
  const element = addElement("label", null, "gl-control");
  addElement("span", element, "gl-label", label);
  const list = addElement("select", element);
  list.name = name;
  const pairs = options.map((option) =>
    Array.isArray(option) ? option : /** @type {const} */ ([String(option), option])
  );
  const add = (/** @type {string} */ words) => addElement("option", list, "", words);
  for (const [words] of pairs) add(words);
  list.addEventListener("change", () => turn(pairs[list.selectedIndex][1]));
  return {
    element,
    show(value) {
      const at = pairs.findIndex(([, each]) => each === value);
      if (at < 0) { // set from Python, and not among the choices so far
        pairs.push([String(value), value]);
        add(String(value));
      }
      list.selectedIndex = at < 0 ? pairs.length - 1 : at;
    },
    disable: (off) => disable(element, list, off),
  };
}

/**
 * Grey a control out, or take that back.
 * @param {HTMLElement} element
 * @param {HTMLInputElement | HTMLSelectElement} field
 * @param {boolean} off
 */
function disable(element, field, off) {
  element.classList.toggle("gl-off", off);
  field.disabled = off;
  field.ariaDisabled = off ? "true" : null;
}
