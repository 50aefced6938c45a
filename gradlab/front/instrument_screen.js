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
    keepKeys(root);
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
    const say = (/** @type {string} */ words) => this.words.announce(words);
    this.strip = new PanelStrip(addElement("div", body, "gl-panels"), { ask, say });
    this.unwatch = followTheme(root, this.strip);
    this.pane.hidden = true;
  }

  /** @param {Record<string, any>} frame */
  take(frame) {
    const { shown, changed } = mergeFrame(this.shown, frame);
    this.show(shown, changed, Object.keys(frame.panels ?? {}));
    if (changed.has("state") && !frame.whole) this.words.announce(shown.state);
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
    this.strip.describe();
  }

  /** @param {[string, string][]} buttons what each asks for, and the words on it */
  offer(buttons) {
    for (const button of this.buttons) button.remove();
    this.buttons = buttons.map(([what, words]) =>
      addButton(this.bar, words, () => {
        this.code.leave();
        this.ask({ do: what });
      })
    );
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
    this.unwatch();
    this.controls.close();
    this.strip.close();
  }
}
