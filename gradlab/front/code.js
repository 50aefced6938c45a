// @ts-check
/** The loop as text: the line that just ran, the lines that a switch changed, and a field for a loop of one's own. */

import { addButton, addElement } from "./events.js";
import { tagsOfLine } from "./lighting.js";

/** @typedef {import("./events.js").Ask} Ask */
/**
 * @typedef {{
 *   code?: {source: string, html: string[]}, lit?: [number, number], changed?: number[], wrong?: number,
 *   draft?: string, editable?: boolean,
 * }} CodeState
 */

/** Shows the loop line by line, and the learner's own text in a field in its place. */
export class CodePane {
  /**
   * @param {Element} root
   * @param {{
   *   ask: Ask, onPlay?: () => void, pressed?: boolean,
   *   light?: (tags: import("./lighting.js").Tags | null) => void,
   * }} options `onPlay` plays the loop that was handed in, `pressed` has lines pressed to run up to them, `light` lights what
   * a line touches
   */
  constructor(root, { ask, onPlay, pressed = false, light = () => {} }) {
    this._ask = ask;
    this._pressed = pressed;
    this._onPlay = onPlay;
    /** @type {Required<CodeState>} */
    this._state = {
      code: { source: "", html: [] },
      lit: [0, 0],
      changed: [],
      wrong: 0,
      draft: "",
      editable: false,
    };
    /** The learner's own text, null where there is none: it outlives Cancel, switches and Reset. */
    /** @type {string | null} */
    this._own = null;
    /** @type {string | null} the text that was handed in and not yet answered */
    this._sent = null;
    /** @type {{row: HTMLElement, gutter: HTMLElement}[]} */
    this._rows = [];

    const pane = this.pane = addElement("div", root, "gl-code");
    this._lines = addElement("pre", pane, "gl");
    this._lines.setAttribute("role", "group");
    this._lines.ariaLabel = pressed ? "the training loop; press a line to run up to it" : "the code that runs";
    if (pressed) {
      this._lines.addEventListener("click", (event) => this._press(event.target));
      this._lines.addEventListener("keydown", (event) => this._key(event));
    }
    /** @type {Element | null} */
    let from = null;
    const lightLine = (/** @type {Event} */ { target }) => {
      const line = target instanceof Element ? target.closest(".line") : null;
      if (line === from) return;
      from = line;
      const tags = tagsOfLine(line?.querySelector(".text")?.textContent ?? "");
      light(tags.size ? tags : null);
    };
    const leave = () => {
      from = null;
      light(null);
    };
    // Moves only: a page that scrolls under a pointer at rest sends pointerover, and the picture would be dim at first.
    for (const kind of ["pointermove", "focusin"]) this._lines.addEventListener(kind, lightLine);
    for (const kind of ["pointerleave", "focusout"]) this._lines.addEventListener(kind, leave);
    this._editor = new Editor(pane, (text) => this._own = this._runs(text) ? null : text, (text) => this._run(text));
    this._buttons = addElement("div", pane, "gl-buttons");
    /** Opens the field; a screen with a bar of buttons puts it there. */
    this.edit = addButton(this._buttons, "Edit the loop", () => this._open());
    this._take = addButton(this._buttons, "Run this loop", () => this._run(this._editor.text));
    this._take.classList.add("gl-main");
    this._drop = addButton(this._buttons, "Cancel", () => this._close());
    this._fresh = addButton(this._buttons, "Start from the loop as it runs", () => this._startAgain());
    this._showField(false);
  }

  /**
   * Show what has changed.
   * @param {CodeState} change
   */
  show(change) {
    const before = this._state;
    const state = this._state = { ...before, ...change };
    if (state.code.html !== before.code.html) this._write(state.code.html);
    this._reply(change, before.draft);
    this._mark(state.draft ? 0 : state.wrong); // a line of the draft is none of the loop's
    if (this._editor.shown && ("draft" in change || "wrong" in change)) {
      this._editor.mark(state.draft ? state.wrong : 0);
    }
    this._showField(this._editor.shown);
  }

  /** Close the field, as another loop is to be seen; the text in it is kept for the next time. */
  leave() {
    if (this._editor.shown) this._close();
  }

  // The lines ----------------------------------------------------------------------------------------------------------

  /** @param {string[]} html */
  _write(html) {
    const focused = this._rows.findIndex(({ row }) => row === document.activeElement);
    this._rows = html.map((line, index) => {
      const row = addElement("span", null, "line");
      const gutter = addElement("span", row, "gutter", `  ${index + 1}`);
      const text = addElement("span", row, "text");
      text.innerHTML = line;
      const deep = (text.textContent.match(/^ */) ?? [""])[0].length; // what is wrapped starts further in than this
      text.style.setProperty("--gl-deep", `${deep}ch`);
      if (this._pressed && text.textContent) {
        row.setAttribute("role", "button");
        row.tabIndex = -1;
      }
      return { row, gutter };
    });
    this._lines.replaceChildren(...this._rows.map(({ row }) => row));
    const buttons = this._buttonRows();
    const stop = buttons.find((index) => index >= focused) ?? buttons.at(-1);
    if (stop !== undefined) this._rows[stop].row.tabIndex = 0;
    if (stop !== undefined && focused >= 0) this._focus(stop);
  }

  /** The indices of the lines that can be pressed. */
  _buttonRows() {
    return [...this._rows.keys()].filter((index) => this._rows[index].row.role === "button");
  }

  /** @param {number} wrong */
  _mark(wrong) {
    const { lit: [first, last], changed } = this._state;
    this._rows.forEach(({ row, gutter }, index) => {
      const number = index + 1;
      const lit = number >= first && number <= last;
      const isNew = changed.includes(number);
      const sign = number === wrong ? "✗" : lit && number === first ? "▶" : isNew ? "∗" : " ";
      const [classes, words] = [
        ["line", lit && "lit", isNew && "changed", number === wrong && "wrong"].filter(Boolean).join(" "),
        `${sign} ${number}`,
      ];
      if (row.className !== classes) {
        row.className = classes;
        row.ariaCurrent = lit ? "step" : null;
      }
      if (gutter.textContent !== words) gutter.textContent = words;
    });
  }

  /** @param {EventTarget | null} target */
  _press(target) {
    const index = this._rows.findIndex(({ row }) => target instanceof Node && row.contains(target));
    if (index < 0 || this._rows[index].row.role !== "button") return;
    if (getSelection()?.type === "Range") return; // who marks text to copy it presses nothing
    this._focus(index);
    this._ask({ do: "to_line", line: index + 1 });
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const at = this._rows.findIndex(({ row }) => row === event.target);
    const buttons = this._buttonRows();
    const [here, last] = [buttons.indexOf(at), buttons.length - 1];
    const to = { ArrowUp: Math.max(0, here - 1), ArrowDown: Math.min(last, here + 1), Home: 0, End: last }[event.key];
    if (to !== undefined) this._focus(buttons[to]);
    else if (event.key === "Enter" || event.key === " ") this._ask({ do: "to_line", line: at + 1 });
    else return;
    event.preventDefault();
  }

  /** @param {number} index */
  _focus(index) {
    for (const each of this._buttonRows()) this._rows[each].row.tabIndex = each === index ? 0 : -1;
    this._rows[index]?.row.focus();
  }

  // The learner's own text ---------------------------------------------------------------------------------------------

  /**
   * Close the field when its text was taken; open it when the kernel keeps a text that it could not take.
   * @param {CodeState} change
   * @param {string} before the draft before
   */
  _reply(change, before) {
    const { draft = before } = change;
    if (this._sent !== null && ("draft" in change ? !draft : this._runs(this._sent))) {
      if (this._own === this._sent) this._own = null; // else more was typed meanwhile
      this._sent = null;
      if (this._own === null) this._close();
      this._onPlay?.();
    } else if (draft && draft !== before) {
      this._sent = null;
      if (!this._editor.shown) {
        this._own = draft;
        this._open();
      }
    }
  }

  /** @param {string} text */
  _runs(text) {
    return text.trimEnd() === this._state.code.source.trimEnd();
  }

  _open() {
    const { code, draft, wrong } = this._state;
    this._editor.open(this._own ?? code.source);
    this._showField(true);
    if (draft && this._own === draft) this._editor.mark(wrong);
    if (this.edit === document.activeElement || document.activeElement === document.body) this._editor.focus();
  }

  _close() {
    const inside = this._editor.focused || this._take === document.activeElement ||
      this._drop === document.activeElement;
    this._editor.close();
    this._showField(false);
    if (inside) this.edit.focus();
  }

  _startAgain() {
    this._own = null;
    this._editor.open(this._state.code.source);
    this._editor.focus();
  }

  /** @param {string} text */
  _run(text) {
    this._own = this._sent = text;
    this._ask({ do: "edit", text });
    if (this._runs(text)) this.show({ draft: "" });
  }

  /** @param {boolean} field */
  _showField(field) {
    this._lines.hidden = field;
    this.edit.hidden = field || !this._state.editable;
    for (const button of [this._take, this._drop, this._fresh]) button.hidden = !field;
    this._buttons.hidden = !field && !this._buttons.contains(this.edit); // an empty row would take room
  }
}

/** A field for a loop, with numbers beside its lines, of which one can be marked as wrong. */
class Editor {
  /**
   * @param {Element} root
   * @param {(text: string) => void} onInput
   * @param {(text: string) => void} onRun
   */
  constructor(root, onInput, onRun) {
    this._box = addElement("div", root, "gl-editor");
    this._numbers = addElement("div", this._box, "gl-numbers");
    this._numbers.setAttribute("aria-hidden", "true");
    this._field = addElement("textarea", this._box);
    this._field.ariaLabel = "your own loop";
    this._field.wrap = "off"; // a line is a line, with its number beside it
    this._field.spellcheck = false;
    this._field.autocapitalize = "off";
    this._wrong = 0;
    this._field.addEventListener("input", () => {
      onInput(this.text);
      this._number();
    });
    this._field.addEventListener("scroll", () => this._numbers.scrollTop = this._field.scrollTop);
    this._field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onRun(this.text);
    });
    this.close();
  }

  get text() {
    return this._field.value;
  }

  get shown() {
    return !this._box.hidden;
  }

  get focused() {
    return document.activeElement === this._field;
  }

  /** @param {string} text */
  open(text) {
    this._box.hidden = false;
    this._field.value = text;
    this._wrong = 0;
    this._number();
  }

  close() {
    this._box.hidden = true;
  }

  focus() {
    this._field.focus();
  }

  /**
   * Mark a line as wrong and scroll to it; 0 marks none.
   * @param {number} line
   */
  mark(line) {
    this._wrong = line;
    this._number();
    const height = this._field.scrollHeight / Math.max(1, this._numbers.childElementCount);
    const top = (line - 1) * height;
    const { scrollTop, clientHeight } = this._field;
    if (line && (top < scrollTop || top + height > scrollTop + clientHeight)) {
      this._field.scrollTop = top - clientHeight / 2;
    }
  }

  _number() {
    const count = this.text.split("\n").length;
    this._field.rows = Math.min(26, Math.max(14, count + 1));
    const numbers = Array.from({ length: count }, (_, index) => {
      const wrong = index + 1 === this._wrong;
      return addElement("div", null, wrong ? "wrong" : "", `${wrong ? "✗ " : ""}${index + 1}`);
    });
    this._numbers.replaceChildren(...numbers);
    this._numbers.scrollTop = this._field.scrollTop;
    this._field.ariaInvalid = this._wrong ? "true" : null;
  }
}
