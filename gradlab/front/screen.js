// @ts-check
/** What the screens of labs and instruments have in common: controls, a bar of buttons, code, words and panels. */

import { CodePane } from "./code.js";
import { ControlBar } from "./controls.js";
import { addElement, keepKeys } from "./events.js";
import { toldValues } from "./frames.js";
import { applyTheme, followTheme, themeOf } from "./palette.js";
import { PanelStrip } from "./strip.js";
import { Words } from "./words.js";

const CODE_KEYS = ["code", "lit", "changed", "wrong", "draft", "editable"];

export class Screen {
  /**
   * @param {HTMLElement} root an empty element
   * @param {object} to
   * @param {(request: Record<string, any>) => unknown} to.ask where it returns a promise, it is of the reply
   * @param {string} to.label
   * @param {boolean} [to.scrubs] whether a finger that is moved across a curve goes through time
   * @param {() => void} [to.onPlay] plays the loop that was handed in; without it lines cannot be pressed
   */
  constructor(root, { ask, label, scrubs = false, onPlay }) {
    this.root = root;
    this.ask = ask;
    root.classList.add("gradlab");
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", label);
    this.endKeys = keepKeys(root);
    this.controls = new ControlBar(root, { ask });
    this.bar = addElement("div", root, "gl-bar");
    const above = addElement("div", root);
    const body = addElement("div", root, "gl-body");
    this.side = addElement("div", body, "gl-side");
    this.code = new CodePane(this.side, { ask, onPlay, pressed: !!onPlay, light: (tags) => this.strip.light(tags) });
    this.words = new Words(this.side, above);
    const say = (/** @type {string} */ words) => this.words.announce(words);
    this.strip = new PanelStrip(addElement("div", body, "gl-panels"), { ask, say, scrubs });
    const dress = (/** @type {import("./palette.js").Theme} */ theme) => {
      applyTheme(root, theme);
      this.strip.setTheme(theme);
    };
    dress(themeOf(root));
    this.leaveTheme = followTheme(root, dress);
  }

  /**
   * @param {Record<string, any>} shown all that is shown now
   * @param {Set<string>} changed the keys to look at
   * @param {Iterable<string>} panels the names of the panels that have changed
   */
  show(shown, changed, panels) {
    this.strip.show(shown, changed, panels);
    const code = CODE_KEYS.filter((key) => changed.has(key)).map((key) => [key, shown[key]]);
    if (code.length) this.code.show(Object.fromEntries(code));
    if (["controls", "values", "off"].some((key) => changed.has(key))) {
      this.controls.show({ controls: shown.controls, values: toldValues(shown, changed), off: shown.off });
    }
  }

  close() {
    this.endKeys();
    this.leaveTheme();
    this.controls.close();
    this.strip.close();
  }
}
