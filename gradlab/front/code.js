// @ts-check
/**
 * The loop as text, with marks for the line that just ran, the lines changed by a switch and the line that is a switch,
 * and a field in which the learner can edit it.
 */

import { addButton, addElement } from "./events.js";
import { tagsOfLine } from "./lighting.js";

/** @import { Ask } from "./events.js" */
/**
 * `turns` are the lines that are switches, `hint` is whether a text below the loop explains that.
 * @typedef {{
 *   code?: {source: string, html: string[], turns?: number[], hint?: boolean}, lit?: [number, number], changed?: number[],
 *   wrong?: number, draft?: string, editable?: boolean, values?: Record<string, unknown>,
 * }} CodeState
 */

const SWITCH = "zero_grad"; // the switch that is turned by pressing its line
const LINGERS = 300; // ms for which the pointer rests on a line before the marks that it touches are lit

/** The loop line by line, or in its place a field with the learner's edited text. */
export class CodePane {
  /**
   * @param {Element} root
   * @param {{ask: Ask, onPlay?: () => void, light?: (tags: import("./lighting.js").Tags | null) => void}} options
   * `onPlay` plays a submitted loop, and without it lines cannot be pressed; `light` lights the marks of a line
   */
  constructor(root, { ask, onPlay, light = () => {} }) {
    this._ask = ask;
    this._onPlay = onPlay;
    /** @type {Required<CodeState>} */
    this._state = {
      ...{ code: { source: "", html: [] }, lit: [0, 0], changed: [], wrong: 0, draft: "", editable: false },
      values: {},
    };
    this.playing = false; // while it plays, nothing is lit
    /** @type {string | null} the learner's edited text, null for none; Cancel, switches and Reset keep it */
    this._ownText = null;
    /** @type {string | null} the text that was submitted and not answered yet */
    this._sentText = null;
    /** @type {HTMLElement[]} */
    this._rows = [];

    const pane = this.pane = addElement("div", root, "gl-code");
    const lines = this._lines = addElement("pre", pane, "gl");
    const ariaLabel = onPlay ? "the training loop; press a line to run up to it" : "the code that runs";
    Object.assign(lines, { role: "group", ariaLabel });
    if (onPlay) {
      lines.addEventListener("click", (event) => this._press(event.target));
      lines.addEventListener("keydown", (event) => this._key(event));
    }
    /** @type {Element | null} */
    let from = null;
    const lightLine = (/** @type {Event} */ { type, target }) => {
      const line = target instanceof Element && !/leave|out/.test(type) ? target.closest(".line") : null;
      if (line === from) return;
      from = line;
      const tags = tagsOfLine(line?.querySelector(".text")?.textContent ?? "");
      clearTimeout(this._resting);
      if (!tags.size) return light(null);
      this._resting = setTimeout(() => this.playing || light(tags), type === "focusin" ? 0 : LINGERS);
    };
    this._resting = 0;
    // Listen to moves only, because a page that scrolls under a resting pointer sends pointerover.
    for (const kind of ["pointermove", "focusin", "pointerleave", "focusout"]) lines.addEventListener(kind, lightLine);

    this._hint = addElement("div", pane, "gl-hint");
    this._editor = new Editor(pane, (text) => this._ownText = this._runs(text) ? null : text, () => this._run());
    /** The button that opens the field; a screen may move it into its bar. */
    this.edit = addButton(pane, "Edit the loop", () => this._open());
    this._buttons = addElement("div", pane, "gl-buttons");
    addButton(this._buttons, "Run this loop", () => this._run(), "gl-main");
    addButton(this._buttons, "Cancel", () => this._close());
    addButton(this._buttons, "Start from the loop as it runs", () => {
      this._ownText = null;
      this._editor.open(this._state.code.source);
      this._editor.field.focus();
    });
    this._showField(false);
  }

  /** Show what has changed. @param {CodeState} change */
  show(change) {
    const before = this._state;
    const state = this._state = { ...before, ...change };
    if (state.code.html !== before.code.html) this._write(state.code.html);
    this._reply(change, before.draft);
    this._mark(state.draft ? 0 : state.wrong); // line numbers of the draft are not those of the loop
    if ("draft" in change || "wrong" in change) this._editor.mark(state.draft ? state.wrong : 0);
    this._showField(!this._editor.box.hidden);
  }

  // The lines ----------------------------------------------------------------------------------------------------------

  /** Return whether a line is a switch. @param {HTMLElement} row */
  _turns(row) {
    return Boolean(this._state.code.turns?.includes(this._rows.indexOf(row) + 1));
  }

  /** @param {string[]} html */
  _write(html) {
    const focused = this._rows.findIndex((row) => row === document.activeElement);
    this._rows = html.map((line, index) => {
      const row = addElement("span", null, "line");
      addElement("span", row, "gutter", `  ${index + 1}`);
      const text = addElement("span", row, "text");
      text.innerHTML = line;
      const deep = (text.textContent.match(/^ */) ?? [""])[0].length; // wrapped parts are indented further
      text.style.setProperty("--gl-deep", `${deep}ch`);
      if (this._onPlay && text.textContent) Object.assign(row, { role: "button", tabIndex: -1 });
      return row;
    });
    this._lines.replaceChildren(...this._rows);
    const buttons = this._buttonRows();
    const stop = buttons.find((row) => this._rows.indexOf(row) >= focused) ?? buttons.at(-1);
    if (stop) stop.tabIndex = 0;
    if (focused >= 0) stop?.focus();
  }

  /** Return the lines that can be pressed. */
  _buttonRows() {
    return this._rows.filter((row) => row.role === "button");
  }

  /** @param {number} wrong */
  _mark(wrong) {
    const { lit: [first, last], changed, values, code } = this._state;
    let hint = "";
    this._rows.forEach((row, index) => {
      const number = index + 1;
      const lit = number >= first && number <= last;
      const turns = this._turns(row);
      const isIn = turns && !row.querySelector("s"); // a removed line is struck through
      const isPending = turns && SWITCH in values && values[SWITCH] !== isIn;
      const sign = number === wrong ? "✗" : lit && number === first ? "▶" : " ";
      if (turns) {
        row.ariaPressed = String(isPending ? !isIn : isIn);
        row.title = isIn ? "Press to take this line out" : "Press to put this line back";
        const call = (row.querySelector("s") ?? row.querySelector(".text"))?.textContent.trim();
        hint = `Press the line ${call} to ${isIn ? "take it out" : "put it back"}.`;
      }
      const [gutter, words] = [/** @type {Element} */ (row.firstElementChild), `${sign} ${number}`];
      const classes = { lit, changed: changed.includes(number), wrong: number === wrong, turns, pending: isPending };
      for (const [name, on] of Object.entries(classes)) row.classList.toggle(name, on);
      row.ariaCurrent = lit ? "step" : null;
      if (gutter.textContent !== words) gutter.textContent = words;
    });
    this._hint.textContent = code.hint ? hint : "";
  }

  /** @param {EventTarget | null} target */
  _press(target) {
    const row = this._buttonRows().find((each) => target instanceof Node && each.contains(target));
    if (!row || getSelection()?.type === "Range") return; // selecting text to copy is not a press
    this._focus(row);
    if (this._turns(row)) {
      const value = row.ariaPressed !== "true";
      this.show({ values: { ...this._state.values, [SWITCH]: value } });
      this._ask({ do: "turn", name: SWITCH, value });
    } else this._ask({ do: "to_line", line: this._rows.indexOf(row) + 1 });
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const buttons = this._buttonRows();
    const [here, last] = [buttons.indexOf(/** @type {HTMLElement} */ (event.target)), buttons.length - 1];
    const to = { ArrowUp: Math.max(0, here - 1), ArrowDown: Math.min(last, here + 1), Home: 0, End: last }[event.key];
    if (to !== undefined) this._focus(buttons[to]);
    else if (event.key === "Enter" || event.key === " ") this._press(event.target);
    else return;
    event.preventDefault();
  }

  /** @param {HTMLElement} row */
  _focus(row) {
    for (const each of this._buttonRows()) each.tabIndex = each === row ? 0 : -1;
    row.focus();
  }

  // The learner's edited text -----------------------------------------------------------------------------------------

  /** Close the field if its text is accepted, or open it. @param {CodeState} change @param {string} before the draft */
  _reply(change, before) {
    const { draft = before } = change;
    if (this._sentText !== null && ("draft" in change ? !draft : this._runs(this._sentText))) {
      if (this._ownText === this._sentText) this._ownText = null; // otherwise the learner has typed more since
      this._sentText = null;
      if (this._ownText === null) this._close();
      this._onPlay?.();
    } else if (draft && draft !== before) {
      this._sentText = null;
      if (!this._editor.box.hidden) return;
      this._ownText = draft;
      this._open();
    }
  }

  /** Return whether a text is the running loop. @param {string} text */
  _runs(text) {
    return text.trimEnd() === this._state.code.source.trimEnd();
  }

  _open() {
    const { code, draft, wrong } = this._state;
    this._editor.open(this._ownText ?? code.source);
    this._showField(true);
    if (draft && this._ownText === draft) this._editor.mark(wrong);
    const focused = document.activeElement;
    if (focused === this.edit || focused === document.body) this._editor.field.focus(); // the pressed button is hidden now
  }

  _close() {
    const inside = !this._editor.box.hidden && this.pane.contains(document.activeElement);
    this._showField(false);
    if (inside) this.edit.focus();
  }

  _run() {
    const text = this._ownText = this._sentText = this._editor.field.value;
    this._ask({ do: "edit", text });
    if (this._runs(text)) this.show({ draft: "" });
  }

  /** @param {boolean} field */
  _showField(field) {
    this._lines.hidden = this._hint.hidden = field;
    this._editor.box.hidden = !field;
    this.edit.hidden = field || !this._state.editable;
    this._buttons.hidden = !field;
  }
}

/** A field for a loop with line numbers, in which a line can be marked as wrong. */
class Editor {
  /** @param {Element} root @param {(text: string) => void} onInput @param {() => void} onRun */
  constructor(root, onInput, onRun) {
    this.box = addElement("div", root, "gl-editor");
    this._numbers = addElement("div", this.box, "gl-numbers");
    this._numbers.ariaHidden = "true";
    this.field = addElement("textarea", this.box);
    // Lines do not wrap, so that each has its number beside it.
    Object.assign(this.field, { ariaLabel: "your own loop", wrap: "off", spellcheck: false, autocapitalize: "off" });
    this._wrong = 0;
    this.field.addEventListener("input", () => {
      onInput(this.field.value);
      this._number();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onRun();
    });
  }

  /** @param {string} text */
  open(text) {
    this.field.value = text;
    this.mark(0);
  }

  /** Mark a line as wrong and scroll to it; 0 marks none. @param {number} line */
  mark(line) {
    this._wrong = line;
    this._number();
    this._numbers.children[line - 1]?.scrollIntoView({ block: "nearest" });
  }

  _number() {
    const count = this.field.value.split("\n").length;
    this.field.rows = Math.max(14, count + 1);
    const numbers = Array.from({ length: count }, (_, index) => {
      const wrong = index + 1 === this._wrong;
      return addElement("div", null, wrong ? "wrong" : "", `${wrong ? "✗ " : ""}${index + 1}`);
    });
    this._numbers.replaceChildren(...numbers);
    this.field.ariaInvalid = this._wrong ? "true" : null;
  }
}
