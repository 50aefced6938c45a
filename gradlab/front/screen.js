// @ts-check
/** The screen of a lab: switches, buttons, the loop, the panels and the words, and what a frame changes in them. */

import { CodePane } from "./code.js";
import { ControlBar } from "./controls.js";
import { addButton, addElement, keepKeys } from "./events.js";
import { toldValues } from "./frames.js";
import { dressIn, themeOf, watchTheme } from "./palette.js";
import { PanelStrip } from "./strip.js";
import { Words } from "./words.js";

/**
 * Have an element and its panels follow the theme of the page.
 * @param {HTMLElement} root @param {PanelStrip} strip
 * @returns {() => void} ends it
 */
export function followTheme(root, strip) {
  const follow = (/** @type {import("./palette.js").Theme} */ theme) => {
    dressIn(root, theme);
    strip.setTheme(theme);
  };
  follow(themeOf(root));
  return watchTheme(root, follow);
}

/**
 * Hide the still picture that stands where a lab is about to be painted; it may be put there later than the lab.
 * @param {string} id
 */
export function hideStill(id) {
  addElement("style", document.head, "", `[data-gradlab-still="${id}"] { display: none; }`);
}

const FILM = 1; // updates a second beyond which nothing is shown on its way from one state to the next

export class Screen {
  /**
   * @param {HTMLElement} root an empty element
   * @param {object} to
   * @param {(request: Record<string, any>) => void} to.ask
   * @param {() => void} to.play plays or pauses
   * @param {() => void} to.onPlay plays
   * @param {(rate: number | null) => void} to.speed
   * @param {string} [to.label]
   * @param {boolean} [to.zooms] whether dragging across a curve shows a part of it
   * @param {(bar: HTMLElement) => void} [to.more] puts more buttons into the bar
   */
  constructor(
    root,
    { ask, play, onPlay, speed, label = "gradlab: a training loop and what it does", zooms = true, more },
  ) {
    this.root = root;
    this.ask = ask;
    this.play = play;
    root.classList.add("gradlab");
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", label);
    this.endKeys = keepKeys(root);
    this.controls = new ControlBar(root, { ask });
    const bar = addElement("div", root, "gl-bar gl-player");
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "run the loop");
    this.playButton = addButton(bar, "▶ Play", play);
    this.playButton.classList.add("gl-main");
    this.steps = [
      addButton(bar, "1 statement", () => ask({ do: "statement" })),
      addButton(bar, "1 update", () => ask({ do: "update" })),
      addButton(bar, "↺ Reset", () => this.beginAgain("reset")),
    ];
    this.restart = addButton(bar, "From zero", () => this.beginAgain("restart"));
    this.restart.title = "Begin again at update 0";
    this.restart.hidden = true; // until Reset goes somewhere else
    const speedLabel = addElement("label", bar, "gl-control gl-speed");
    speedLabel.append("speed ");
    this.speed = addElement("select", speedLabel);
    this.speed.addEventListener("change", () => speed(this.rates[this.speed.selectedIndex]));
    this.speedLabel = speedLabel;
    /** @type {(number | null)[]} */
    this.rates = [];
    this.toldRate = /** @type {number | null} */ (60);
    this.setRate = speed;
    this.copyText = "";
    this.copyButton = addButton(bar, "Copy this state", () => this.copy());
    more?.(bar);
    const above = addElement("div", root);
    const body = addElement("div", root, "gl-body");
    const side = addElement("div", body, "gl-side");
    this.code = new CodePane(side, { ask, onPlay, bar, pressed: true, light: (tags) => this.strip.light(tags) });
    this.words = new Words(side, above);
    const say = (/** @type {string} */ words) => this.words.announce(words);
    this.strip = new PanelStrip(addElement("div", body, "gl-panels"), { ask, say, zooms });
    this.unwatch = followTheme(root, this.strip);
    this.note = this.told = this.state = "";
    this.playing = this.ending = this.copying = false;
  }

  /** @param {boolean} playing */
  setPlaying(playing) {
    this.playButton.textContent = playing ? "❚❚ Pause" : "▶ Play";
    this.ending = this.playing && !playing; // where the run has ended is in the frame that comes next
    this.playing = this.words.playing = playing;
    if (playing) this.tell("");
    else this.words.settle();
  }

  /** @param {"reset" | "restart"} how to where its cell left off, or from zero */
  beginAgain(how) {
    this.words.forget();
    this.ask({ do: how });
  }

  /**
   * @param {Record<string, any>} shown all that is shown now
   * @param {Set<string>} changed the keys to look at
   * @param {Set<string>} panels the names of the panels that have changed
   */
  show(shown, changed, panels) {
    const rate = this.rates.length ? this.rates[this.speed.selectedIndex] : this.toldRate;
    this.strip.way = this.playing && (rate === null || rate > FILM) ? "none" : "steps"; // a film moves by itself
    this.strip.show(shown, changed, panels);
    const some = (/** @type {string[]} */ ...keys) => keys.some((key) => changed.has(key));
    /** @type {Record<string, any>} */
    const code = {};
    for (const key of ["code", "lit", "changed", "wrong", "draft", "editable"]) if (some(key)) code[key] = shown[key];
    if (Object.keys(code).length) this.code.show(code);
    if (some("controls", "values", "off")) {
      this.controls.show({ controls: shown.controls, values: toldValues(shown, changed), off: shown.off });
    }
    this.note = shown.note ?? "";
    this.state = shown.state ?? "";
    if (some("state", "alarm", "note")) {
      if (changed.has("note")) this.told = "";
      this.words.show({ state: shown.state, alarm: shown.alarm, note: this.told || this.note });
    }
    if (some("left_off")) {
      const at = shown.left_off ?? null;
      this.restart.hidden = at === null;
      this.steps[2].title = at === null ? "" : `Back to update ${at.toLocaleString("en")}, where its cell left off`;
    }
    if (some("speeds")) this.offer(shown.speeds);
    if (some("speed")) this.begin(shown.speed);
    if (this.ending) {
      this.ending = false;
      this.strip.describe();
      this.words.announce(this.state);
    }
    this.copyText = shown.copy ?? "";
    if (this.copying && !this.playing) this.copy();
  }

  /** Say how things stand with the kernel, in place of the note; "" brings the note back. @param {string} words */
  tell(words) {
    this.told = words;
    this.words.show({ note: words || this.note });
  }

  /** @param {[string, number | null][]} speeds */
  offer(speeds) {
    const chosen = this.rates.length ? this.rates[this.speed.selectedIndex] : this.toldRate;
    this.speedLabel.hidden = !speeds.length;
    this.rates = speeds.map(([, rate]) => rate);
    this.speed.replaceChildren(...speeds.map(([words]) => new Option(words)));
    this.speed.selectedIndex = Math.max(this.rates.indexOf(chosen), 0);
  }

  /** Go over to the speed that the lab begins with; told again, it leaves what the reader chose. @param {number | null} rate */
  begin(rate) {
    if (rate === this.toldRate) return;
    this.toldRate = rate;
    this.speed.selectedIndex = Math.max(this.rates.indexOf(rate), 0);
    this.setRate(rate);
  }

  async copy() {
    this.copying = this.playing;
    if (this.playing) return this.play(); // pauses; what is copied is where the run has ended
    if (!this.copyText) return this.tell("The loop was changed too often to be written down in one line.");
    try {
      await navigator.clipboard.writeText(this.copyText);
      this.tell(`Copied: ${this.copyText}`);
    } catch {
      this.tell(this.copyText); // no clipboard here: it can be copied from the words
    }
  }

  close() {
    this.endKeys();
    this.unwatch();
    this.strip.close();
  }
}
