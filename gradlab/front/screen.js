// @ts-check
/** The screen of a lab: switches, buttons, the loop, the panels and the words, and what a frame changes in them. */

import { CodePane } from "./code.js";
import { ControlBar } from "./controls.js";
import { keepKeys } from "./keys.js";
import { watchTheme } from "./palette.js";
import { PanelStrip } from "./strip.js";
import { Words } from "./words.js";

/**
 * @param {string} tag
 * @param {string} className
 * @param {HTMLElement} [parent]
 */
export function element(tag, className, parent) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  parent?.append(made);
  return made;
}

/**
 * A button whose width does not change with its words.
 * @param {HTMLElement} parent @param {string} words @param {() => void} press
 * @returns {HTMLButtonElement}
 */
export function pushButton(parent, words, press) {
  const button = /** @type {HTMLButtonElement} */ (element("button", "gl-button", parent));
  button.type = "button";
  button.textContent = words;
  button.addEventListener("click", press);
  return button;
}

/**
 * Have an element and its panels follow the theme of the page.
 * @param {HTMLElement} root @param {PanelStrip} strip
 * @returns {() => void} ends it
 */
export function followTheme(root, strip) {
  return watchTheme(root, (theme) => {
    root.classList.toggle("gradlab-dark", theme === "dark");
    root.classList.toggle("gradlab-contrast", theme === "contrast");
    strip.setTheme(theme);
  });
}

export class Screen {
  /**
   * @param {HTMLElement} root an empty element
   * @param {object} to
   * @param {(request: Record<string, any>) => void} to.ask
   * @param {() => void} to.play plays or pauses
   * @param {(rate: number | null) => void} to.speed
   * @param {string} [to.label]
   * @param {(bar: HTMLElement) => void} [to.more] puts more buttons into the bar
   */
  constructor(root, { ask, play, speed, label = "gradlab: a training loop and what it does", more }) {
    this.root = root;
    this.ask = ask;
    root.classList.add("gradlab");
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", label);
    keepKeys(root);
    this.words = new Words(element("div", "gradlab-words"));
    const controls = element("div", "gradlab-bar gradlab-controls", root);
    this.controls = new ControlBar(controls, { ask });
    const bar = element("div", "gradlab-bar gradlab-player", root);
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "run the loop");
    this.playButton = pushButton(bar, "▶ Play", play);
    this.playButton.classList.add("gl-play");
    this.steps = [
      pushButton(bar, "1 statement", () => ask({ do: "statement" })),
      pushButton(bar, "1 update", () => ask({ do: "update" })),
      pushButton(bar, "↺ Reset", () => ask({ do: "reset" })),
    ];
    const speedLabel = element("label", "gl-speed", bar);
    speedLabel.append("speed ");
    this.speed = /** @type {HTMLSelectElement} */ (element("select", "", speedLabel));
    this.speed.addEventListener("change", () => speed(this.rates[this.speed.selectedIndex]));
    this.speedLabel = speedLabel;
    /** @type {(number | null)[]} */
    this.rates = [];
    this.copyText = "";
    this.copyButton = pushButton(bar, "Copy this state", () => this.copy());
    more?.(bar);
    const body = element("div", "gradlab-body", root);
    const code = element("div", "gradlab-code", body);
    this.code = new CodePane(code, { ask, onPlay: () => play() });
    const say = (/** @type {string} */ words) => this.words.announce(words);
    this.strip = new PanelStrip(element("div", "gradlab-panels", body), { ask, say });
    root.append(this.words.root);
    this.unwatch = followTheme(root, this.strip);
    this.note = this.told = this.state = "";
  }

  /** @param {boolean} playing */
  setPlaying(playing) {
    this.playButton.textContent = playing ? "❚❚ Pause" : "▶ Play";
    if (playing) return;
    this.strip.describe();
    this.words.announce(this.state);
  }

  /**
   * @param {Record<string, any>} shown all that is shown now
   * @param {Set<string>} changed the keys to look at
   * @param {Set<string>} panels the names of the panels that have changed
   */
  show(shown, changed, panels) {
    this.strip.show(shown, changed, panels);
    const some = (/** @type {string[]} */ ...keys) => keys.some((key) => changed.has(key));
    /** @type {Record<string, any>} */
    const code = {};
    for (const key of ["code", "lit", "changed", "wrong", "draft", "editable"]) if (some(key)) code[key] = shown[key];
    if (Object.keys(code).length) this.code.show(code);
    if (some("controls", "values", "off")) {
      this.controls.show({ controls: shown.controls, values: shown.values, off: shown.off });
    }
    this.note = shown.note ?? "";
    this.state = shown.state ?? "";
    if (some("state", "alarm", "note")) {
      if (changed.has("note")) this.told = "";
      this.words.show({ state: shown.state, alarm: shown.alarm, note: this.told || this.note });
    }
    if (some("speeds")) this.offer(shown.speeds);
    if (some("copy")) {
      if (shown.copy) this.copyText = shown.copy;
    }
  }

  /** Say how things stand with the kernel, in place of the note; "" brings the note back. @param {string} words */
  tell(words) {
    this.told = words;
    this.words.show({ note: words || this.note });
  }

  /** @param {[string, number | null][]} speeds */
  offer(speeds) {
    this.speedLabel.hidden = !speeds.length;
    this.rates = speeds.map(([, rate]) => rate);
    this.speed.replaceChildren(...speeds.map(([words]) => new Option(words)));
    const usual = this.rates.indexOf(60);
    this.speed.selectedIndex = Math.max(usual, 0);
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.copyText);
      this.tell(`Copied: ${this.copyText}`);
    } catch {
      this.tell(this.copyText); // no clipboard here: it can be copied from the words
    }
  }

  close() {
    this.unwatch();
    this.strip.close();
  }
}
