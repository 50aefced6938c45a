// @ts-check
/** The screen of an instrument: controls, buttons, panels, code and words. */

import { CodePane } from "./code.js";
import { ControlBar } from "./controls.js";
import { addButton, addElement, keepKeys } from "./events.js";
import { mergeFrame, nothingShown, toldValues } from "./frames.js";
import { followTheme } from "./screen.js";
import { PanelStrip } from "./strip.js";
import { Words } from "./words.js";

const CODE_KEYS = ["code", "lit", "changed", "wrong", "draft", "editable"];
const SETTLED = 1000; // ms without another change until a screen reader is told; a slider that plays is quicker

export class InstrumentScreen {
  /**
   * @param {HTMLElement} root
   * @param {{ask: (request: Record<string, any>) => unknown, label: string}} options where `ask` returns a promise, it is of the answer
   */
  constructor(root, { ask, label }) {
    this.shown = nothingShown();
    this.ask = ask;
    root.classList.add("gradlab");
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", label);
    this.endKeys = keepKeys(root);
    this.controls = new ControlBar(root, { ask });
    this.bar = addElement("div", root, "gl-bar");
    this.bar.hidden = true;
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    this.progress = addElement("progress", this.bar, "gl-progress");
    this.progress.setAttribute("aria-label", "how far it is");
    this.progress.style.visibility = "hidden";
    const above = addElement("div", root);
    const body = addElement("div", root, "gl-body");
    const side = addElement("div", body, "gl-side");
    this.pane = addElement("div", side, "gl-pane");
    this.code = new CodePane(this.pane, { ask, light: (tags) => this.strip.light(tags) });
    this.words = new Words(side, above);
    this.more = addElement("details", side, "gl-more-words");
    this.more.hidden = true;
    const say = (/** @type {string} */ words) => this.words.announce(words);
    this.strip = new PanelStrip(addElement("div", body, "gl-panels"), { ask, say });
    this.unwatch = followTheme(root, this.strip);
    this.pane.hidden = true;
    this.soon = 0; // the timer
  }

  /** @param {Record<string, any>} frame */
  take(frame) {
    const { shown, changed } = mergeFrame(this.shown, frame);
    this.show(shown, changed, Object.keys(frame.panels ?? {}));
    if (changed.has("state") && !frame.whole) this.tellSoon();
  }

  /** Have the words read out once they have settled. */
  tellSoon() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.words.announce(this.shown.state), SETTLED);
  }

  /**
   * @param {Record<string, any>} shown
   * @param {Set<string>} changed
   * @param {string[]} panels
   */
  show(shown, changed, panels) {
    this.shown = shown;
    this.strip.show(shown, changed, panels);
    if (changed.has("buttons")) this.offer(shown.buttons);
    if (changed.has("code")) {
      this.pane.hidden = !shown.code?.source;
    }
    const code = Object.fromEntries(CODE_KEYS.filter((key) => changed.has(key)).map((key) => [key, shown[key]]));
    if (Object.keys(code).length) this.code.show(code);
    if (["controls", "values", "off"].some((key) => changed.has(key))) {
      this.controls.show({ controls: shown.controls, values: toldValues(shown, changed), off: shown.off });
    }
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

  /** @param {number | null} share of a long computation that is done; null ends it */
  tellProgress(share) {
    this.bar.hidden = share === null && !this.buttons.length;
    this.progress.style.visibility = share === null ? "hidden" : "visible";
    this.progress.value = share ?? 0;
    for (const button of this.buttons) button.disabled = share !== null;
  }

  close() {
    clearTimeout(this.soon);
    this.endKeys();
    this.unwatch();
    this.controls.close();
    this.strip.close();
  }
}
