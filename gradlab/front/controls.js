// @ts-check
/** The controls: checkboxes, lists of choices, numbers, sliders, and calls to be put in order. */

import { addButton, addElement } from "./events.js";

/** @import { Ask } from "./events.js" */
/** @typedef {string | number | boolean | null} Value */
/**
 * `options` are pairs of label and value for a choice or a slider, and calls for an order.
 * @typedef {{
 *   name: string, label: string, kind: "tick" | "choice" | "whole" | "number" | "slider" | "order",
 *   options?: any[], low?: number | null, high?: number | null, step?: number | null, every?: number,
 * }} Control
 */
/** @typedef {{controls?: Control[], values?: Record<string, Value>, off?: string[]}} ControlsState */
/** @typedef {(value: Value) => unknown} Turn may return a promise of the answer */
/** @typedef {{element: HTMLElement, show: (value: any) => void, stop?: () => void}} Part `stop` ends playback */

/** @type {Record<string, (control: Control, turn: Turn) => Part>} */
const MAKERS = {
  tick: tickBox,
  choice: choiceList,
  whole: numberField,
  number: numberField,
  slider: sliderField,
  order: orderField,
};

/** A bar of controls, which send what was chosen or typed to the kernel. */
export class ControlBar {
  /**
   * @param {Element} root
   * @param {{ask: Ask}} options a promise from `ask` resolves when the answer is shown
   */
  constructor(root, { ask }) {
    this._bar = addElement("div", root, "gl-bar gl-controls");
    Object.assign(this._bar, { role: "group", ariaLabel: "switches" });
    this._ask = ask;
    this._madeFrom = "";
    /** @type {Map<string, Part>} */
    this._parts = new Map();
    /** @type {Record<string, Value>} */
    this._values = {};
    /** @type {Map<string, number>} counts of unanswered turns; until 0, a control shows the reader's choice */
    this._waiting = new Map();
  }

  /** Show what has changed; unchanged controls keep their elements. @param {ControlsState} change */
  show({ controls, values, off }) {
    const anew = controls && JSON.stringify(controls) !== this._madeFrom;
    if (anew) this._make(controls);
    this._values = { ...this._values, ...values };
    for (const [name, part] of this._parts) {
      if (off) setOff(part, off.includes(name));
      if (anew || !this._waiting.get(name)) this._showValue(name);
    }
  }

  /** Stop the sliders that play. */
  close() {
    for (const part of this._parts.values()) part.stop?.();
  }

  /** @param {Control[]} controls */
  _make(controls) {
    this._madeFrom = JSON.stringify(controls);
    const focused = [...this._parts].find(([, part]) => part.element.contains(document.activeElement))?.[0] ?? "";
    this.close();
    this._parts = new Map(controls.map((control) => {
      const make = MAKERS[control.kind];
      return [control.name, make(control, (value) => this._turn(control.name, value))];
    }));
    this._bar.hidden = !controls.length;
    this._bar.replaceChildren(...[...this._parts.values()].map((part) => part.element));
    /** @type {HTMLElement | null | undefined} */
    const field = this._parts.get(focused)?.element.querySelector("input, select, button");
    field?.focus();
  }

  /** @param {string} name @param {Value} value */
  async _turn(name, value) {
    const answer = this._ask({ do: "turn", name, value });
    if (!(answer instanceof Promise)) return;
    this._waiting.set(name, (this._waiting.get(name) ?? 0) + 1);
    await answer;
    const left = (this._waiting.get(name) ?? 1) - 1;
    this._waiting.set(name, left);
    if (!left) this._showValue(name); // if the kernel refused the value, the control shows the value before it
  }

  /** @param {string} name */
  _showValue(name) {
    if (name in this._values) this._parts.get(name)?.show(this._values[name]);
  }
}

/** @param {Part} part @param {boolean} off */
function setOff({ element, stop }, off) {
  if (element.classList.contains("gl-off") === off) return;
  element.classList.toggle("gl-off", off);
  const fields = /** @type {NodeListOf<HTMLInputElement>} */ (element.querySelectorAll("input, select, button"));
  for (const field of fields) field.disabled = off;
  if (off) stop?.();
}

/** @param {Control} control @param {Turn} turn @returns {Part} */
function tickBox({ name, label }, turn) {
  const element = addElement("label", null, "gl-control gl-tick");
  const box = Object.assign(addElement("input", element), { type: "checkbox", name });
  element.append(label);
  box.addEventListener("change", () => turn(box.checked));
  return { element, show: (value) => box.checked = Boolean(value) };
}

/** @param {Control} control @param {Turn} turn @returns {Part} */
export function choiceList({ name, label, options = [] }, turn) {
  const element = addElement("label", null, "gl-control");
  addElement("span", element, "gl-label", label);
  const list = Object.assign(addElement("select", element), { name });
  const values = options.map(([, value]) => value);
  list.append(...options.map(([words]) => new Option(words)));
  list.addEventListener("change", () => turn(values[list.selectedIndex]));
  return {
    element,
    show(value) {
      if (!values.includes(value)) { // set from Python and not an option yet
        values.push(value);
        list.append(new Option(String(value)));
      }
      list.selectedIndex = values.indexOf(value);
    },
  };
}

const DRAG = 8; // CSS pixels of dragging a number's label for one step

/**
 * Return a field for a number, which can be typed or changed with arrow keys, two buttons, or by dragging its label. It
 * changes by `step`; without one, a whole number by 1, any other by a tenth of itself. The kernel validates the text.
 * @param {Control} control @param {Turn} turn @returns {Part}
 */
function numberField({ name, label, kind, low, high, step }, turn) {
  const element = addElement("div", null, "gl-control gl-number");
  const caption = addElement("label", element, "gl-label", label);
  const less = addButton(element, "−", () => go(-1));
  const field = addElement("input", element);
  const more = addButton(element, "+", () => go(1));
  Object.assign(field, { type: "number", name, min: low ?? "", max: high ?? "", step: step ?? 1, ariaLabel: label });
  Object.assign(less, { tabIndex: -1, ariaLabel: `${label}: less` }); // because the arrow keys do the same
  Object.assign(more, { tabIndex: -1, ariaLabel: `${label}: more` });
  let [shown, sent] = ["", ""]; // the value in use, and the value sent last
  const takeAsBase = () => { // steps are counted from the current value
    field.defaultValue = field.value;
    if (kind === "number" && !step) field.step = (Math.abs(Number(field.value)) / 10 || 0.1).toPrecision(1);
  };
  const send = () => {
    takeAsBase();
    if (field.value !== sent) turn(sent = field.value);
  };
  const go = (/** @type {number} */ direction) => {
    if (field.disabled) return;
    if (direction > 0) field.stepUp();
    else field.stepDown();
    send();
  };
  field.addEventListener("change", send);
  let from = 0;
  caption.addEventListener("click", () => field.focus());
  caption.addEventListener("pointerdown", ({ clientX, pointerId }) => {
    from = clientX;
    caption.setPointerCapture(pointerId);
  });
  caption.addEventListener("pointermove", ({ clientX, pointerId }) => {
    if (!caption.hasPointerCapture(pointerId)) return;
    for (; Math.abs(clientX - from) >= DRAG; from += DRAG * Math.sign(clientX - from)) go(clientX - from);
  });
  return {
    element,
    show(value) {
      const focused = document.activeElement === field;
      const isTyping = focused && field.value !== shown && field.value !== sent;
      sent = shown = String(value ?? "");
      if (isTyping) return;
      if (field.value !== shown) {
        field.value = shown;
        if (focused) field.select();
      }
      takeAsBase();
    },
  };
}

/** Return a slider; over `options` it can play. @param {Control} control @param {Turn} turn @returns {Part} */
function sliderField({ name, label, options = [], every = 0, low, high, step }, turn) {
  const [first, last] = step ? [Number(low), Number(high)] : [0, options.length - 1];
  const textAt = (/** @type {number} */ value) => step ? String(Number(value.toPrecision(6))) : options[value][0];
  const element = addElement("div", null, "gl-control gl-slider");
  const caption = addElement("label", element);
  addElement("span", caption, "gl-label", label);
  const range = addElement("input", caption);
  Object.assign(range, { type: "range", name, min: first, max: last, step: step ?? 1 });
  const text = addElement("span", element, "gl-value");
  text.setAttribute("aria-hidden", "true"); // the input has it as its value text
  const texts = step ? [first, first + step, last].map(textAt) : options.map(([caption]) => caption);
  text.style.minWidth = `${Math.max(...texts.map((text) => text.length))}ch`; // nothing shifts when the slider moves
  const write = (/** @type {number} */ position) => {
    range.value = String(position);
    text.textContent = range.ariaValueText = textAt(position);
  };
  const go = (/** @type {number} */ position) => {
    write(position);
    return turn(step ? position : options[position][1]);
  };
  range.addEventListener("input", () => {
    stop();
    go(Number(range.value));
  });

  let timer = 0; // 0 if the slider does not play
  const button = every ? addButton(element, "", () => timer ? stop() : play(), "gl-small") : null;
  const writeButton = () => {
    if (button) {
      Object.assign(button, { textContent: timer ? "❚❚" : "▶", ariaLabel: `${timer ? "pause" : "play"} ${label}` });
    }
  };
  const tick = async () => {
    const [began, position, running] = [performance.now(), Number(range.value) + 1, timer];
    await go(position);
    if (timer !== running) return; // stopped, or started again, before the answer
    if (position >= last) return stop();
    timer = setTimeout(tick, Math.max(0, every - (performance.now() - began)));
  };
  const play = () => {
    if (Number(range.value) >= last) go(first);
    timer = setTimeout(tick);
    writeButton();
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    writeButton();
  };
  writeButton();
  return {
    element,
    stop,
    show(value) {
      const position = step ? value : options.findIndex(([, each]) => each === value);
      if (step || position >= 0) write(position);
    },
  };
}

const FAR = 44; // CSS pixels above or below the row from which a dropped call is removed
const STILL = 5; // CSS pixels that the pointer may move in a click

/**
 * Return a row of calls, which can be dragged, moved with the arrow keys, removed and added again.
 * @param {Control} control `high` is the largest number of calls @param {Turn} turn @returns {Part}
 */
function orderField({ name, label, options = [], high }, turn) {
  const element = addElement("div", null, "gl-control gl-order");
  element.dataset.name = name;
  const ariaLabel = `${label}: drag a call, or move it with the arrow keys; Delete leaves it out`;
  Object.assign(element, { role: "group", ariaLabel });
  addElement("span", element, "gl-label", label);
  const row = addElement("span", element, "gl-chips");
  const more = addElement("span", element, "gl-more");
  /** @type {string[]} */
  let order = [];
  for (const call of options) {
    const button = addButton(more, `+ ${call}`, () => set([...order, call], order.length), "gl-small");
    button.ariaLabel = `add ${call} at the end`;
  }
  const chipOf = (/** @type {Event} */ { target }) => [...row.children].indexOf(/** @type {Element} */ (target));
  /** @param {string[]} calls @param {number} focused index of the call that gets the focus, -1 for none */
  const write = (calls, focused) => {
    order = calls;
    row.replaceChildren(...order.map((call, index) => {
      const chip = addElement("button", null, "gl-chip-call", call);
      return Object.assign(chip, { type: "button", ariaLabel: `${call}, ${index + 1} of ${order.length}` });
    }));
    const chip = /** @type {HTMLElement | undefined} */ (row.children[Math.min(focused, order.length - 1)]);
    chip?.focus();
  };
  /** @param {string[]} calls @param {number} focused */
  const set = (calls, focused) => {
    if (!calls.length || calls.length > (high ?? Infinity)) return;
    write(calls, focused);
    turn(calls.join(" "));
  };
  const without = (/** @type {number} */ index) => set(order.toSpliced(index, 1), Math.max(0, index - 1));
  const move = (/** @type {number} */ index, /** @type {number} */ to) =>
    set(order.toSpliced(index, 1).toSpliced(to, 0, order[index]), to);
  row.addEventListener("keydown", (event) => {
    const index = chipOf(event);
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (by) order[index + by] && move(index, index + by);
    else if (event.key === "Delete" || event.key === "Backspace") without(index);
    else return;
    event.preventDefault();
  });
  row.addEventListener("pointerdown", (event) => {
    const [index, chip] = [chipOf(event), /** @type {HTMLButtonElement} */ (event.target)];
    if (index < 0 || event.button || chip.disabled) return;
    const boxes = [...row.children].map((each) => each.getBoundingClientRect());
    const others = [...row.children].toSpliced(index, 1);
    let [to, isDragged, isOut] = [index, false, false];
    row.setPointerCapture(event.pointerId);
    row.onpointermove = ({ clientX: x, clientY: y }) => { // the others make room for the dragged call
      isDragged ||= Math.hypot(x - event.clientX, y - event.clientY) >= STILL;
      if (!isDragged) return;
      isOut = order.length > 1 && boxes.every(({ top, bottom }) => y < top - FAR || y > bottom + FAR);
      to = nearestBox(boxes, x, y);
      row.insertBefore(chip, others[to] ?? null);
      chip.classList.add("gl-dragged");
      chip.classList.toggle("gl-out", isOut);
    };
    row.onpointerup = row.onpointercancel = ({ type }) => {
      row.onpointermove = row.onpointerup = row.onpointercancel = null;
      if (type === "pointercancel" || (to === index && !isOut)) write(order, index);
      else if (isOut) without(index);
      else move(index, to);
    };
  });
  return {
    element,
    show(value) {
      const calls = String(value ?? "").split(" ").filter(Boolean);
      const focused = [...row.children].indexOf(/** @type {Element} */ (document.activeElement));
      if (calls.join(" ") !== order.join(" ")) write(calls, focused);
    },
  };
}

/** Return the index of the nearest box, rows first. @param {DOMRect[]} boxes @param {number} x @param {number} y */
function nearestBox(boxes, x, y) {
  const far = boxes.map(({ left, right, top, bottom }) =>
    Math.abs((left + right) / 2 - x) + 4 * Math.max(0, top - y, y - bottom)
  );
  return far.indexOf(Math.min(...far));
}
