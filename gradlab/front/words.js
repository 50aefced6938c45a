// @ts-check
/** The texts of a lab: status line, warning and note, and the announcements for screen readers. */

import { addElement } from "./events.js";

/** The texts of a lab. Only what is announced goes to the live region. */
export class Words {
  /** @param {Element} root @param {Element} above parent of the warning, whose space stays reserved */
  constructor(root, above) {
    this._chip = addElement("span", addElement("div", above, "gl-alarm"), "gl-chip");
    this._chip.hidden = true;
    const words = addElement("div", root, "gl-words");
    this._state = addElement("div", words, "gl-state");
    this._note = addElement("div", words, "gl-note");
    this._live = addElement("div", words, "gl-hidden");
    Object.assign(this._live, { role: "status", ariaLive: "polite", ariaAtomic: "true" });
    /** @type {Set<string>} kinds of warnings that were announced */
    this.warned = new Set();
  }

  /** Show changes; announce a new kind of warning. @param {{state?: string, alarm?: string, note?: string}} change */
  show({ state, alarm, note }) {
    if (state !== undefined) this._state.textContent = state;
    if (note !== undefined) this._note.textContent = note;
    if (alarm === undefined) return;
    this._chip.hidden = !alarm;
    this._chip.textContent = alarm && `⚠ ${alarm}`;
    const kind = alarm.replace(/\d.*\d/s, ""); // "Step 4 applied batch 3 again" with other numbers is the same kind
    if (!alarm || this.warned.has(kind)) return;
    this.warned.add(kind);
    this.announce(`Warning: ${alarm}`);
  }

  /** Have a screen reader read a text after the one that it is reading. @param {string} text */
  announce(text) {
    const same = this._live.textContent === text;
    this._live.textContent = same ? `${text}\u00A0` : text; // because an unchanged text would not be read
  }
}
