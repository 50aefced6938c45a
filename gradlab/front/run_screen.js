// @ts-check
/** The screen of a lab and of its replay: how a run is played, from the buttons to the words. */

import { addButton, addElement } from "./events.js";
import { Screen } from "./screen.js";

const FILM = 1; // updates a second beyond which nothing is shown on its way from one state to the next

export class RunScreen extends Screen {
  /**
   * @param {HTMLElement} root an empty element
   * @param {object} to
   * @param {(request: Record<string, any>) => void} to.ask
   * @param {() => void} to.play plays or pauses
   * @param {() => void} to.onPlay plays
   * @param {(rate: number | null) => void} to.speed
   * @param {string} [to.label]
   * @param {boolean} [to.scrubs] whether a finger that is moved across a curve goes through time
   * @param {(bar: HTMLElement) => void} [to.more] puts more buttons into the bar
   */
  constructor(root, { ask, play, onPlay, speed, label = "gradlab: a training loop and what it does", scrubs, more }) {
    super(root, { ask, onPlay, label, scrubs });
    this.play = play;
    this.setRate = speed;
    const { bar } = this;
    bar.classList.add("gl-player");
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
    more?.(bar);
    bar.append(this.code.edit);
    this.note = this.told = this.state = "";
    this.playing = this.ending = false;
  }

  /** @param {boolean} playing */
  setPlaying(playing) {
    this.playButton.textContent = playing ? "❚❚ Pause" : "▶ Play";
    this.ending = this.playing && !playing; // where the run has ended is in the frame that comes next
    this.playing = this.words.playing = playing;
    if (playing) this.tell("");
    else this.words.write();
  }

  /** @param {"reset" | "restart"} how to where its cell left off, or from zero */
  beginAgain(how) {
    this.words.forget();
    this.ask({ do: how });
  }

  /**
   * @override
   * @param {Record<string, any>} shown @param {Set<string>} changed @param {Iterable<string>} panels
   */
  show(shown, changed, panels) {
    const rate = this.rates.length ? this.rates[this.speed.selectedIndex] : this.toldRate;
    this.strip.way = this.playing && (rate === null || rate > FILM) ? "none" : "steps"; // a film moves by itself
    super.show(shown, changed, panels);
    const some = (/** @type {string[]} */ ...keys) => keys.some((key) => changed.has(key));
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
}
