// @ts-check
/** An instrument on a page without a kernel: a table from settings to frames. */

import { Address } from "./address.js";
import { mergeFrame, nothingShown } from "./frames.js";
import { InstrumentScreen } from "./instrument_screen.js";
import { unpacked } from "./unpack.js";

/** @typedef {Record<string, any>} Settings */
/** @typedef {{title: string, settings: Settings[], frames: Record<string, any>[]}} RecordedSettings */

export class InstrumentPage {
  /**
   * @param {HTMLElement} root @param {RecordedSettings} recording
   * @param {{id?: string, title?: string}} [place] on a page with many: the id of its place, and what it is called
   */
  constructor(root, recording, { id, title = recording.title } = {}) {
    this.recording = recording;
    this.address = new Address(id);
    /** @type {Record<string, any>[]} what is shown at each of the settings, as far as it was worked out */
    this.known = [];
    this.screen = new InstrumentScreen(root, {
      ask: (request) => this.ask(request),
      label: `gradlab recording: ${title}`,
    });
    this.screen.strip.way = "glide";
    /** @type {Settings} what the reader has chosen */
    this.at = { ...recording.settings[0] };
    this.read();
    this.address.follow(() => this.read());
  }

  /** Show the settings that the address names, or the first ones. */
  read() {
    const { named } = this.address;
    const found = this.recording.settings.findIndex((at) =>
      Object.keys(at).every((name) => named?.get(name) === String(at[name]))
    );
    this.show(Math.max(found, 0), "");
  }

  /** @param {number} index */
  shownAt(index) {
    const { known, recording } = this;
    while (known.length <= index) {
      known.push(mergeFrame(known.at(-1) ?? nothingShown(), recording.frames[known.length]).shown);
    }
    return known[index];
  }

  /** @param {number} index @param {string} note */
  show(index, note) {
    const shown = this.shownAt(index);
    /** @type {Record<string, any>} */
    const now = { ...shown, note: [note, shown.note].filter(Boolean).join("\n") };
    const before = /** @type {Record<string, any>} */ (this.screen.shown);
    const changed = new Set(Object.keys(now).filter((key) => now[key] !== before[key]));
    changed.add("values"); // a turn that was not taken goes back
    const panels = Object.keys(now.panels).filter((name) => now.panels[name] !== before.panels[name]);
    this.at = { ...this.recording.settings[index] };
    this.screen.show(now, changed, panels);
    if (before.f >= 0) this.screen.tellSoon();
  }

  /** @param {Record<string, any>} request */
  ask({ do: what, name, value }) {
    if (what !== "turn") return;
    this.turn(name, this.control(name)?.kind === "slider" ? this.onward(name, value) : value);
    this.address.write(this.at);
  }

  /** @param {string} name @returns {import("./controls.js").Control | undefined} */
  control(name) {
    return this.shownAt(0).controls.find((/** @type {{name: string}} */ control) => control.name === name);
  }

  /** The values that a control has where all others are as they are now. @param {string} name @returns {any[]} */
  others(name) {
    return this.recording.settings.filter((at) =>
      Object.keys(at).every((key) => key === name || at[key] === this.at[key])
    )
      .map((at) => at[name]);
  }

  /**
   * The value to which a slider goes that was moved to one: that, or the nearest beyond where it is that needs no other
   * control to be turned. @param {string} name @param {number} value
   */
  onward(name, value) {
    const now = this.at[name];
    const ahead = this.others(name).filter((each) => value > now ? each > now : each < now);
    return ahead.length ? nearest(ahead, value) : value;
  }

  /** Go to the settings with this value that are most like those now. @param {string} name @param {any} value */
  turn(name, value) {
    const { settings } = this.recording;
    const here = settings.findIndex((at) => same(at, this.at));
    const alike = (/** @type {Settings} */ at) =>
      at[name] !== value ? -1 : Object.keys(at).filter((key) => at[key] === this.at[key]).length;
    const apart = (/** @type {Settings} */ at) =>
      Object.keys(at).reduce((sum, key) => sum + Math.abs(Number(at[key]) - Number(this.at[key]) || 0), 0);
    const better = (/** @type {Settings} */ one, /** @type {Settings} */ other) =>
      alike(one) > alike(other) || (alike(one) === alike(other) && apart(one) < apart(other));
    const best = settings.reduce((found, at, index) => better(at, settings[found]) ? index : found, 0);
    if (settings[best][name] !== value) {
      return this.show(Math.max(here, 0), "This page does not hold that: it was recorded without it.");
    }
    const others = Object.keys(this.at).filter((key) => key !== name && settings[best][key] !== this.at[key]);
    const labels = others.map((key) => this.control(key)?.label ?? key);
    this.show(
      best,
      others.length ? `This page holds that only with another ${labels.join(" and ")}, which was turned too.` : "",
    );
  }
}

/** @param {number[]} values @param {number} x */
function nearest(values, x) {
  return values.reduce((best, value) => Math.abs(value - x) < Math.abs(best - x) ? value : best);
}

/** @param {Settings} one @param {Settings} other */
function same(one, other) {
  return Object.keys(one).every((key) => one[key] === other[key]);
}

/**
 * Unpack a recording and show it.
 * @param {HTMLElement} root @param {string} packed gzip, as base64
 */
export async function startInstrument(root, packed) {
  Object.assign(globalThis, { gradlabReplay: new InstrumentPage(root, await unpacked(packed)) });
}
