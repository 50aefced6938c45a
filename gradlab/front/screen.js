// @ts-check
/** The screens of a live or recorded run and of an instrument. */

import { CodePane } from "./code.js";
import { choiceList, ControlBar } from "./controls.js";
import { addButton, addElement, keepKeys } from "./events.js";
import { applyTheme, followTheme } from "./palette.js";
import { PanelStrip } from "./strip.js";
import { Words } from "./words.js";

/** @import { Ask } from "./events.js" */
/** @typedef {Record<string, any>} Shown the state that is shown, or a part of it */

const CODE_KEYS = ["code", "lit", "changed", "wrong", "draft", "editable", "values"];
const FILM = 10; // updates per second beyond which there is no motion between states
const QUIET = 1000; // ms without a change before a screen reader announces the state; playing sliders change faster

/** The common base of both screens: controls, a bar of buttons, code, texts and panels. */
export class Screen {
  /**
   * @param {HTMLElement} root an empty element @param {{ask: Ask, label: string, scrubs?: boolean, onPlay?: () => void}} to
   * `scrubs` is whether a finger moved across a curve moves through time; `onPlay` plays a submitted loop; without it,
   * lines cannot be pressed
   */
  constructor(root, { ask, label, scrubs = false, onPlay }) {
    this.root = root;
    this.ask = ask;
    root.classList.add("gradlab");
    Object.assign(root, { role: "group", ariaLabel: label });
    this.endKeys = keepKeys(root);
    this.controls = new ControlBar(root, { ask });
    this.bar = addElement("div", root, "gl-bar");
    const above = addElement("div", root);
    const body = addElement("div", root, "gl-body");
    this.side = addElement("div", body, "gl-side");
    this.code = new CodePane(this.side, { ask, onPlay, light: (tags) => this.strip.light(tags) });
    this.words = new Words(this.side, above);
    const say = (/** @type {string} */ words) => this.words.announce(words);
    this.strip = new PanelStrip(addElement("div", body, "gl-panels"), { ask, say, scrubs });
    this.leaveTheme = followTheme(root, (theme) => {
      applyTheme(root, theme);
      this.strip.setTheme(theme);
    });
    /** @type {Shown} */
    this.shown = {};
    this.message = ""; // shown instead of the note
  }

  /** Show what has changed; return the changed keys. @param {Shown} shown */
  show(shown) {
    const changed = new Set(Object.keys(shown).filter((key) => shown[key] !== this.shown[key]));
    this.shown = shown;
    this.strip.show(shown, changed);
    const code = CODE_KEYS.filter((key) => changed.has(key)).map((key) => [key, shown[key]]);
    if (code.length) this.code.show(Object.fromEntries(code));
    if (["controls", "values", "off"].some((key) => changed.has(key))) this.controls.show(shown);
    if (changed.has("note")) this.message = "";
    if (["state", "alarm", "note"].some((key) => changed.has(key))) {
      this.words.show({ state: shown.state, alarm: shown.alarm, note: this.message || shown.note });
    }
    return changed;
  }

  /** Show a message instead of the note; "" brings the note back. @param {string} words */
  tell(words) {
    if (words === this.message) return;
    this.message = words;
    this.words.show({ note: words || (this.shown.note ?? "") });
  }

  close() {
    this.endKeys();
    this.leaveTheme();
    this.controls.close();
    this.strip.close();
  }
}

/** The screen of a Lab and of a replay, with buttons to play the run. */
export class RunScreen extends Screen {
  /**
   * @param {HTMLElement} root
   * @param {{
   *   ask: Ask, play: (on: boolean) => void, speed: (rate: number | null) => void, label?: string, scrubs?: boolean,
   * }} to
   */
  constructor(root, { ask, play, speed, label = "gradlab: a training loop and what it does", scrubs }) {
    super(root, { ask, onPlay: () => play(true), label, scrubs });
    const { bar } = this;
    bar.classList.add("gl-player");
    Object.assign(bar, { role: "group", ariaLabel: "run the loop" });
    this.playButton = addButton(bar, "▶ Play", () => play(!this.playing), "gl-main");
    const begin = (/** @type {"reset" | "restart"} */ how) => {
      this.words.warned.clear(); // because the run begins again
      ask({ do: how });
    };
    this.reset = addButton(bar, "↺ Reset", () => begin("reset"));
    this.speed = addElement("span", bar, "gl-speed");
    const more = addButton(bar, "more", () => {
      this.rest.hidden = !this.rest.hidden;
      more.ariaExpanded = String(!this.rest.hidden);
    });
    more.ariaExpanded = "false";
    /** Rarely used controls. */
    this.rest = addElement("span", bar, "gl-rest");
    this.rest.hidden = true;
    addButton(this.rest, "1 statement", () => ask({ do: "statement" }));
    addButton(this.rest, "1 update", () => ask({ do: "update" }));
    this.restart = addButton(this.rest, "From zero", () => begin("restart"));
    this.restart.title = "Begin again at update 0";
    this.restart.hidden = true; // as long as Reset also goes to update 0
    this.setRate = (/** @type {any} */ rate) => speed(this.rate = rate);
    /** @type {number | null | undefined} */
    this.rate = this.messageRate = undefined;
    this.rest.append(this.code.edit);
    this.playing = this.ending = false;
  }

  /** @param {boolean} playing */
  setPlaying(playing) {
    this.playButton.textContent = playing ? "❚❚ Pause" : "▶ Play";
    this.ending = this.playing && !playing; // the next frame has the state at the end
    this.playing = this.code.playing = playing;
    if (!playing) return;
    this.strip.light(null);
    this.tell("");
  }

  /** @override @param {Shown} shown */
  show(shown) {
    this.strip.way = this.playing && (this.rate ?? Infinity) > FILM ? "none" : "steps"; // fast frames need no motion
    const changed = super.show(shown);
    if (changed.has("left_off")) {
      const start = shown.left_off ?? null;
      this.restart.hidden = start === null;
      this.reset.title = start === null ? "" : `Back to update ${start.toLocaleString("en")}, where its cell left off`;
    }
    if (changed.has("speeds")) this.offer(shown.speeds, shown.speed);
    if (this.ending) {
      this.ending = false;
      this.strip.describe();
      this.words.announce(shown.state ?? "");
    }
    return changed;
  }

  /** Offer speeds; the reader's choice stays. @param {[string, number | null][]} speeds @param {number | null} rate */
  offer(speeds, rate) {
    const list = choiceList({ name: "speed", label: "speed", kind: "choice", options: speeds }, this.setRate);
    const focused = this.speed.contains(document.activeElement);
    this.speed.replaceChildren(...(speeds.length ? [list.element] : []));
    if (focused) this.speed.querySelector("select")?.focus();
    if (rate !== this.messageRate) this.setRate(this.messageRate = rate);
    list.show(this.rate ?? null);
  }
}

/** The screen of an instrument and of a ForecastLab. */
export class InstrumentScreen extends Screen {
  /** @param {HTMLElement} root @param {{ask: Ask, label?: string}} to */
  constructor(root, { ask, label = "gradlab: controls, and pictures that follow from them" }) {
    super(root, { ask, label });
    this.bar.hidden = true;
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    this.progress = addElement("progress", this.bar, "gl-progress");
    this.progress.ariaLabel = "calculating";
    this.progress.style.visibility = "hidden";
    this.more = addElement("details", this.side, "gl-more-words");
    this.more.hidden = true;
    this.code.pane.hidden = true;
    this.isNew = true;
    this.soon = 0; // timer of the announcement
  }

  /** @override @param {Shown} shown */
  show(shown) {
    const changed = super.show(shown);
    if (changed.has("buttons")) this.offer(shown.buttons);
    if (changed.has("code")) this.code.pane.hidden = !shown.code?.source;
    if (changed.has("more")) {
      const [head, text] = shown.more; // the summary, and the details, "" for none
      this.more.hidden = !text;
      this.more.replaceChildren(addElement("summary", null, "", head), text);
    }
    this.strip.describe();
    if (changed.has("state") && !this.isNew) { // announced after a while without changes
      clearTimeout(this.soon);
      this.soon = setTimeout(() => this.words.announce(shown.state), QUIET);
    }
    this.isNew = false;
    return changed;
  }

  /** @param {[string, string, string?][]} buttons request, label and, for the main one, "main" */
  offer(buttons) {
    for (const button of this.buttons) button.remove();
    this.buttons = buttons.map(([what, words, rank]) => {
      return addButton(this.bar, words, () => this.ask({ do: what }), rank === "main" ? "gl-main" : "");
    });
    this.bar.prepend(...this.buttons);
    this.bar.hidden = !buttons.length;
  }

  /** @param {boolean} working whether a long computation is running */
  setWorking(working) {
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
