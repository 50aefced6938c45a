// @ts-check
/** An instrument on a page without a kernel: a table from settings to frames. */

import { RecordedPage } from "./recorded_page.js";
import { InstrumentScreen } from "./screen.js";

/** @typedef {import("./recorded_page.js").RecordingPlace} RecordingPlace */
/** @typedef {Record<string, any>} Settings */
/** @typedef {{title: string, settings: Settings[], frames: Record<string, any>[]}} RecordedSettings */

export class InstrumentPage extends RecordedPage {
  /** @param {HTMLElement} root @param {RecordedSettings} recording @param {RecordingPlace} [place] */
  constructor(root, recording, { id = "", title = recording.title } = {}) {
    super(id);
    this.recording = recording;
    const ask = (/** @type {Record<string, any>} */ request) => this.ask(request);
    this.screen = new InstrumentScreen(root, { ask, label: `gradlab recording: ${title}` });
    this.screen.strip.way = "glide";
    /** @type {Settings} what the reader has chosen */
    this.at = recording.settings[0];
    this.read();
  }

  /** @override The settings. */
  get moment() {
    return this.at;
  }

  /** @override */
  read() {
    const { named } = this;
    const found = this.recording.settings.findIndex((at) =>
      Object.keys(at).every((name) => named?.get(name) === String(at[name]))
    );
    this.show(Math.max(found, 0));
  }

  /** @param {number} index @param {string} [note] */
  show(index, note = "") {
    const shown = this.shownAt(this.recording.frames, index);
    this.at = this.recording.settings[index];
    const values = { ...shown.values }; // a control that was turned in vain goes back
    this.screen.show({ ...shown, values, note: [note, shown.note].filter(Boolean).join("\n") });
  }

  /** @param {Record<string, any>} request */
  ask({ do: what, name, value }) {
    if (what !== "turn") return;
    this.turn(name, this.control(name)?.kind === "slider" ? this.onward(name, value) : value);
    this.write();
  }

  /** @param {string} name @returns {import("./controls.js").Control | undefined} */
  control(name) {
    return this.screen.shown.controls.find((/** @type {{name: string}} */ control) => control.name === name);
  }

  /**
   * The value to which a slider goes that was moved to one: that, or the nearest beyond where it is that needs no other
   * control to be turned. @param {string} name @param {number} value
   */
  onward(name, value) {
    const now = this.at[name];
    const ahead = this.recording.settings
      .filter((at) =>
        distance({ ...at, [name]: now }, this.at) === 0 && (value > now ? at[name] > now : at[name] < now)
      )
      .map((at) => at[name]);
    return ahead.reduce(
      (best, each) => Math.abs(each - value) < Math.abs(best - value) ? each : best,
      ahead[0] ?? value,
    );
  }

  /** Go to the settings with this value that are most like those now. @param {string} name @param {any} value */
  turn(name, value) {
    const { settings } = this.recording;
    const found = settings.filter((at) => at[name] === value);
    if (!found.length) {
      return this.show(settings.indexOf(this.at), "This page does not hold that: it was recorded without it.");
    }
    const best = found.reduce((best, at) => distance(at, this.at) < distance(best, this.at) ? at : best);
    const others = Object.keys(best).filter((key) => key !== name && best[key] !== this.at[key]);
    const labels = others.map((key) => this.control(key)?.label ?? key).join(" and ");
    this.show(
      settings.indexOf(best),
      labels && `This page holds that only with another ${labels}, which was turned too.`,
    );
  }
}

/**
 * Return how far settings are apart: the number of those that differ, and then by how much.
 * @param {Settings} one @param {Settings} other
 */
function distance(one, other) {
  const differing = Object.keys(one).filter((key) => one[key] !== other[key]);
  const apart = differing.reduce((sum, key) => sum + Math.abs(Number(one[key]) - Number(other[key]) || 0), 0);
  return differing.length + apart / (1 + apart);
}
