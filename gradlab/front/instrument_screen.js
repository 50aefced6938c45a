// @ts-check
/** The screen of an instrument: controls, buttons, panels, code and words. */

import { addButton, addElement } from "./events.js";
import { mergeFrame, nothingShown } from "./frames.js";
import { Screen } from "./screen.js";

const QUIET = 1000; // ms without another change until a screen reader is told; a slider that plays is quicker

export class InstrumentScreen extends Screen {
  /**
   * @param {HTMLElement} root
   * @param {{ask: (request: Record<string, any>) => unknown, label: string}} to where `ask` returns a promise, it is of the reply
   */
  constructor(root, to) {
    super(root, to);
    this.shown = nothingShown();
    this.bar.hidden = true;
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    this.progress = addElement("progress", this.bar, "gl-progress");
    this.progress.setAttribute("aria-label", "being worked out");
    this.progress.style.visibility = "hidden";
    this.more = addElement("details", this.side, "gl-more-words");
    this.more.hidden = true;
    this.code.pane.hidden = true;
    this.soon = 0; // the timer
  }

  /** @param {Record<string, any>} frame */
  take(frame) {
    const { shown, changed } = mergeFrame(this.shown, frame);
    this.show(shown, changed, Object.keys(frame.panels ?? {}));
    if (changed.has("state") && !frame.whole) this.tellSoon();
  }

  /** Have the words read out once nothing has changed for a while. */
  tellSoon() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.words.announce(this.shown.state), QUIET);
  }

  /**
   * @override
   * @param {Record<string, any>} shown @param {Set<string>} changed @param {Iterable<string>} panels
   */
  show(shown, changed, panels) {
    this.shown = shown;
    super.show(shown, changed, panels);
    if (changed.has("buttons")) this.offer(shown.buttons);
    if (changed.has("code")) this.code.pane.hidden = !shown.code?.source;
    this.words.show({ state: shown.state, alarm: shown.alarm, note: shown.note });
    if (changed.has("more")) this.fold(shown.more);
    this.strip.describe();
  }

  /** @param {[string, string]} more the line that opens it, and what it opens; "" for nothing */
  fold([head, text]) {
    this.more.hidden = !text;
    const [summary, words] = [addElement("summary", null, "", head), addElement("div", null, "", text)];
    this.more.replaceChildren(summary, words);
  }

  /** @param {[string, string, string?][]} buttons what each asks for, the words on it, and "main" for the chief one */
  offer(buttons) {
    for (const button of this.buttons) button.remove();
    this.buttons = buttons.map(([what, words, rank]) => {
      const button = addButton(this.bar, words, () => {
        this.code.leave();
        this.ask({ do: what });
      });
      button.classList.toggle("gl-main", rank === "main");
      return button;
    });
    this.bar.prepend(...this.buttons);
    this.bar.hidden = !buttons.length;
  }

  /** @param {boolean} working whether a long computation runs; how far it is, nobody knows */
  tellWorking(working) {
    this.bar.hidden = !working && !this.buttons.length;
    this.progress.style.visibility = working ? "visible" : "hidden";
    for (const button of this.buttons) button.disabled = working;
  }

  /** @override */
  close() {
    clearTimeout(this.soon);
    super.close();
  }
}
