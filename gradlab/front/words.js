// @ts-check
/** The words: where the run is, what is wrong, what the lab has to say, and what is read out of it. */

import { addElement } from "./events.js";

/** Shows the words of a lab. What is read out goes to one live region, and only when it is asked for. */
export class Words {
  /** @param {Element} root @param {Element} above gets the warning, which keeps its room while there is none */
  constructor(root, above) {
    this._chip = addElement("span", addElement("div", above, "gl-alarm"), "gl-chip");
    this._chip.hidden = true;
    const words = addElement("div", root, "gl-words");
    this._state = addElement("div", words, "gl-state");
    this._note = addElement("div", words, "gl-note");
    this._live = addElement("div", words, "gl-hidden");
    Object.assign(this._live, { role: "status", ariaLive: "polite", ariaAtomic: "true" });
    /** @type {Set<string>} kinds of warnings that were read out */
    this.warned = new Set();
  }

  /** Show what has changed; read out a new kind of warning. @param {{state?: string, alarm?: string, note?: string}} change */
  show({ state, alarm, note }) {
    if (state !== undefined) this._state.textContent = state;
    if (note !== undefined) this._note.textContent = note;
    if (alarm === undefined) return;
    this._chip.hidden = !alarm;
    this._chip.textContent = alarm && `⚠ ${alarm}`;
    const kind = alarm.replace(/\d.*\d/s, ""); // "Step 4 applied batch 3 again" and with other numbers is the same warning
    if (!alarm || this.warned.has(kind)) return;
    this.warned.add(kind);
    this.announce(`Warning: ${alarm}`);
  }

  /** Have a screen reader read a text out when it has finished what it is reading. @param {string} text */
  announce(text) {
    const same = this._live.textContent === text;
    this._live.textContent = same ? `${text}\u00A0` : text; // the same text again would not be read
  }
}
