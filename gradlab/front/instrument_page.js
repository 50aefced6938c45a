// @ts-check
/** An instrument on a page without a kernel, with a recorded frame for each of many settings. */

import { RecordedPage } from "./recorded_page.js";
import { InstrumentScreen } from "./screen.js";

/** @import { RecordingPlace } from "./recorded_page.js" */
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
    /** @type {Settings} the settings that the reader has chosen */
    this.chosen = recording.settings[0];
    this.read();
  }

  /** @override The chosen settings. */
  get moment() {
    return this.chosen;
  }

  /** @override */
  read() {
    const { named } = this;
    const index = this.recording.settings.findIndex((settings) =>
      Object.keys(settings).every((name) => named?.get(name) === String(settings[name]))
    );
    this.show(Math.max(index, 0));
  }

  /** @param {number} index @param {string} [note] */
  show(index, note = "") {
    const shown = this.shownAt(this.recording.frames, index);
    this.chosen = this.recording.settings[index];
    const values = { ...shown.values }; // resets a control whose change had no effect
    this.screen.show({ ...shown, values, note: [note, shown.note].filter(Boolean).join("\n") });
  }

  /**
   * Go to the recorded settings with this value that are most similar to the current ones. A slider may also go to a
   * nearby value in the direction in which it was moved, to avoid changes of other controls.
   * @param {Record<string, any>} request
   */
  ask({ do: what, name, value }) {
    if (what !== "turn") return;
    const { settings } = this.recording;
    const now = this.chosen[name];
    /** @type {import("./controls.js").Control[]} */
    const controls = this.screen.shown.controls;
    const slides = controls.some((control) => control.name === name && control.kind === "slider");
    const isMeant = (/** @type {Settings} */ { [name]: each }) =>
      slides ? (value > now ? each > now : each < now) : each === value;
    const away = (/** @type {Settings} */ { [name]: each, ...others }) =>
      3 * distance(others, this.chosen) + distance({ each }, { each: value });
    const best = settings.filter(isMeant).sort((a, b) => away(a) - away(b))[0];
    const turned = Object.keys(best ?? {}).filter((key) => key !== name && best[key] !== this.chosen[key]);
    const labels = turned.map((key) => controls.find((control) => control.name === key)?.label ?? key).join(" and ");
    const note = !best
      ? "That setting was not recorded on this page."
      : labels && `That setting was recorded only with another ${labels}, which was changed as well.`;
    this.show(settings.indexOf(best ?? this.chosen), note);
    this.write();
  }
}

/** Return the number of different settings plus a distance below 1. @param {Settings} a @param {Settings} b */
function distance(a, b) {
  const differing = Object.keys(a).filter((key) => a[key] !== b[key]);
  const apart = differing.reduce((sum, key) => sum + Math.abs(Number(a[key]) - Number(b[key]) || 0), 0);
  return differing.length + apart / (1 + apart);
}
