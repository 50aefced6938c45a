// @ts-check
/** The words: where the run is, what is wrong, what the lab has to say, and what is read out of it. */

import { addElement } from "./events.js";

const NUMBERS = 500; // ms between two texts of a warning in which only numbers have changed

/** Shows the words of a lab. What is read out goes to one live region, and only when it is asked for. */
export class Words {
  /**
   * @param {Element} root
   * @param {Element} above gets the warning, which keeps its room while there is none
   */
  constructor(root, above) {
    this._chip = addElement("span", addElement("div", above, "gl-alarm"), "gl-chip");
    const words = addElement("div", root, "gl-words");
    this._state = addElement("div", words, "gl-state");
    this._chip.hidden = true;
    this._note = addElement("div", words, "gl-note");
    this._note.hidden = true; // until there is one; from then on it keeps its room
    this._live = addElement("div", words, "gl-hidden");
    this._live.setAttribute("role", "status");
    this._live.setAttribute("aria-live", "polite");
    this._live.ariaAtomic = "true";
    /** @type {Set<string>} kinds of warnings that were read out */
    this._told = new Set();
    this.playing = false;
    this._alarm = this._kind = "";
    this._came = this._due = 0;
    this._timer = 0;
  }

  /**
   * Show what has changed, and read out a warning of a kind that is new.
   * @param {{state?: string, alarm?: string, note?: string}} change
   */
  show({ state, alarm, note }) {
    if (state !== undefined) this._state.textContent = state;
    if (note !== undefined) this._note.textContent = note;
    if (note) this._note.hidden = false;
    if (alarm === undefined) return;
    this._warn(alarm);
    if (!alarm || this._told.has(this._kind)) return;
    this._told.add(this._kind);
    this.announce(`Warning: ${alarm}`);
  }

  /**
   * Write a warning. While it only counts on faster than it could be read, its numbers change twice a second, and where
   * less motion is asked for when playing has ended.
   * @param {string} alarm
   */
  _warn(alarm) {
    const now = performance.now();
    const kind = alarm.replace(/\d.*\d/s, ""); // "Step 4 applied batch 3 again" and with other numbers is the same warning
    const counts = this.playing && kind === this._kind && now - this._came < NUMBERS;
    this._came = now;
    [this._alarm, this._kind] = [alarm, kind];
    if (!counts) return this.write();
    if (this._timer || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    this._timer = setTimeout(() => this.write(), Math.max(this._due - now, 0));
  }

  /** Write the newest warning, whatever it changes. */
  write() {
    clearTimeout(this._timer);
    this._timer = 0;
    this._due = performance.now() + NUMBERS;
    this._chip.hidden = !this._alarm;
    this._chip.textContent = this._alarm && `⚠ ${this._alarm}`;
  }

  /**
   * Have a screen reader read a text out when it has finished what it is reading.
   * @param {string} text
   */
  announce(text) {
    const same = this._live.textContent === text;
    this._live.textContent = same ? `${text}\u00A0` : text; // the same text again would not be read
  }

  /** Forget which warnings were read out: the run begins again. */
  forget() {
    this._told.clear();
  }
}
