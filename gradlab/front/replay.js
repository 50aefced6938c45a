// @ts-check
/**
 * A replay: the screen of a lab that plays a recording, without a kernel.
 *
 * A recording has tracks. The first is a run; each other track branches off a track at an update, where a switch was
 * turned. Turning the switch on the page continues with such a track from its update on.
 */

import { MOST_IN_BEATS } from "./clock.js";
import { addButton, addElement } from "./events.js";
import { followSight } from "./place.js";
import { RecordedPage } from "./recorded_page.js";
import { RunScreen } from "./screen.js";

/** @import { Frame, RecordingPlace } from "./recorded_page.js" */
/** @typedef {{parent: number | null, update: number, switch: string, value: any, frames: Frame[]}} Track */
/**
 * `marks` are the updates at which switches can be turned, `opens` is the first update that a page shows.
 * @typedef {{title: string, marks: number[], opens: number, tracks: Track[]}} RecordedRuns
 */

const PLAYING = "gl-playing"; // class of the body during playback, in which a page may hide elements out of sight
const READ_ALONG = 350; // ms per statement
const LAST_SEEN = 1500; // ms for which the end is shown before the recording begins again
const SLOW = { first: 3, turned: 2 }; // number of updates that take a second each if it plays on its own
/** @type {Replay | null} the replay that plays: two at once would divide the reader's attention */
let onAir = null;

export class Replay extends RecordedPage {
  /** @param {HTMLElement} root @param {RecordedRuns} recording @param {RecordingPlace} [place] */
  constructor(root, recording, { id = "", title = recording.title, autoplay = false } = {}) {
    super(id);
    this.autoplay = autoplay;
    this.slow = autoplay ? SLOW.first : 0;
    this.recording = recording;
    this.track = recording.tracks[0];
    this.index = 0; // of the current frame in the track
    /** @type {Track | null} the track that will follow because of a turned switch */
    this.coming = null;
    this.playing = false;
    /** @type {number | null} */
    this.rate = 60;
    this.due = 0;
    this.scrubbed = 0; // the update at which a finger began to move
    /** @type {RunScreen} */
    this.screen = new RunScreen(root, {
      label: `gradlab replay: ${title}`,
      scrubs: true,
      ask: (request) => this.ask(request),
      play: (on) => {
        if (on) return this.play();
        this.pause();
        this.write();
      },
      speed: (rate) => this.rate = rate,
    });
    addButton(this.screen.rest, "Copy link", () => this.copy());
    const label = addElement("label", null, "gl-control gl-scrub", "update ");
    this.screen.reset.after(label);
    const ticks = addElement("datalist", label);
    ticks.id = `gl-marks-${id}`;
    ticks.append(...recording.marks.map((mark) => new Option("", String(mark))));
    this.scrub = Object.assign(addElement("input", label), { type: "range", min: "0" });
    this.scrub.setAttribute("list", ticks.id);
    this.scrub.addEventListener("input", () => this.goToUpdate(Number(this.scrub.value)));
    this.scrub.addEventListener("change", () => this.write());
    this.counter = Object.assign(addElement("span", label, "gl-value"), { ariaHidden: "true" }); // the slider says it
    this.read();
    let waits = autoplay && !matchMedia("(prefers-reduced-motion: reduce)").matches && !this.named;
    let wasInSight = false;
    followSight(root, (inSight) => {
      if (inSight && waits && !onAir) this.play();
      if (!inSight && wasInSight) waits &&= this.playing; // a replay that the reader has paused stays paused
      wasInSight ||= inSight;
      if (!inSight) this.pause();
    });
  }

  // The current moment

  get frames() {
    return this.track.frames;
  }

  /** Return the track from which a track branches off, null for the first. @param {Track} track */
  parentOf({ parent }) {
    return parent === null ? null : this.recording.tracks[parent];
  }

  get shown() {
    return this.shownAt(this.frames, this.index);
  }

  /** @param {number} index */
  go(index) {
    this.index = Math.min(Math.max(index, 0), this.frames.length - 1);
    const { shown, coming } = this;
    this.screen.show({
      ...shown,
      values: { ...shown.values, ...(coming && { [coming.switch]: fieldValue(coming.value) }) },
      left_off: (this.recording.marks.length && this.recording.opens) || null, // where Reset goes
    });
    this.scrub.max = String(this.frames.at(-1)?.updates ?? this.shownAt(this.frames, this.frames.length - 1).updates);
    this.scrub.value = this.counter.textContent = String(shown.updates);
  }

  /** Go to an update. Turns after it are still to come; a coming turn before it is taken. @param {number} updates */
  goToUpdate(updates) {
    this.pause();
    for (let parent; (parent = this.parentOf(this.track)) && updates < this.track.update; this.track = parent) {
      this.coming = this.track;
    }
    this.screen.tell("");
    if (this.coming && updates >= this.coming.update) this.takeTurn(this.coming);
    this.go(this.frameAt(updates));
    this.tellTurn();
  }

  /** Return the index of the track's first frame at or after an update, or of its last frame. @param {number} updates */
  frameAt(updates) {
    const index = this.frames.findIndex((_, index) => this.shownAt(this.frames, index).updates >= updates);
    return index < 0 ? this.frames.length - 1 : index;
  }

  /** The index of the frame that a page shows first. */
  get opening() {
    return this.frameAt(this.recording.opens);
  }

  // Playback

  play() {
    if (this.playing) return;
    onAir?.pause();
    onAir = this;
    if (this.index >= this.frames.length - 1) this.reset();
    this.playing = true;
    document.body.classList.add(PLAYING);
    this.due = performance.now();
    this.screen.setPlaying(true);
    this.tellTurn();
    this.tick();
  }

  /** Pause, and copy the address of the current moment. */
  async copy() {
    this.pause();
    this.write();
    try {
      await navigator.clipboard.writeText(this.link);
      this.screen.tell(`Copied: ${this.link}`);
    } catch {
      this.screen.tell(this.link); // without a clipboard, it can be copied from this text
    }
  }

  /** Pause. The address is not changed: only a pause by the reader is written to it. */
  pause() {
    if (!this.playing) return;
    this.playing = false;
    document.body.classList.remove(PLAYING);
    onAir = null;
    this.screen.setPlaying(false);
    this.go(this.index);
  }

  /** Go back to update 0. */
  restart() {
    [this.track, this.index, this.coming] = [this.recording.tracks[0], 0, null];
  }

  /** Go back to the opening frame or, if that is the last frame, to update 0. */
  reset() {
    this.restart();
    if (this.opening < this.frames.length - 1) this.index = this.opening;
  }

  tick() {
    if (!this.playing) return;
    const now = performance.now();
    let [moved, words] = [false, ""];
    while (this.due <= now) {
      const rate = this.slow ? Math.min(1, this.rate ?? 1) : this.rate;
      if (this.index >= this.frames.length - 1) {
        this.reset();
        words = "The recording begins again.";
      } else this.next(rate);
      const { beats = 1, end } = this.frames[this.index];
      const every = rate === 0
        ? READ_ALONG
        : 1000 / (rate ?? 240) / (rate !== null && rate <= MOST_IN_BEATS ? beats : 1);
      this.due = Math.max(this.due + every, now - 250);
      if (end && this.slow) this.slow -= 1;
      if (this.index >= this.frames.length - 1) this.due = now + LAST_SEEN;
      moved = true;
    }
    if (moved) this.go(this.index);
    if (words) this.screen.tell(words); // after the note of the frame
    requestAnimationFrame(() => this.tick());
  }

  /**
   * Go to the next statement, to the end of the update or, at a low rate, to its next beat (`BEATS` in Python).
   * @param {number | null} rate updates per second, 0 for statements
   */
  next(rate) {
    for (;;) {
      if (this.coming && this.shown.updates >= this.coming.update) return this.takeTurn(this.coming);
      if (this.index >= this.frames.length - 1) return;
      this.index += 1;
      const { end, beats } = this.frames[this.index];
      if (rate === 0 || end || (beats && rate !== null && rate <= MOST_IN_BEATS)) return;
    }
  }

  /** Continue with the track of a turned switch. @param {Track} track */
  takeTurn(track) {
    const { switch: name, value, update } = track;
    this.track = track;
    this.coming = null;
    this.slow = this.autoplay ? SLOW.turned : 0;
    this.go(0); // its note is replaced by the next line
    this.screen.tell(`Here ${name} was turned to ${valueWords(value)} (update ${update}).`);
  }

  /** Show which turn will come, if any. */
  tellTurn() {
    if (!this.coming) return;
    const { switch: name, value, update } = this.coming;
    const when = update === Infinity
      ? "when the recording begins again"
      : `at update ${update}, where that was recorded`;
    this.screen.tell(`${name} will be turned to ${valueWords(value)} ${when}.`);
  }

  // Actions of the reader

  /** @param {Record<string, any>} request @returns {void} */
  ask(request) {
    const { do: what } = request;
    if (what === "turn") return this.turnSwitch(request.name, request.value);
    if (what === "scrub") return this.scrubBy(request);
    if (what === "press") {
      const marks = Object.values(this.shown.panels).flatMap(({ marks }) => marks);
      return this.screen.tell(marks.find(({ press }) => press === request.what)?.words ?? "");
    }
    this.pause();
    if (what === "statement" || what === "update") {
      this.next(what === "update" ? null : 0);
      const [before, now] = [this.frames[this.index - 1], this.frames[this.index]];
      if (what === "statement" && now.end && (before.end || before.whole)) {
        this.screen.tell(
          "From here on there is one frame per update. Only the first updates, and those after a switch, show each statement.",
        );
      }
    } else if (what === "reset") {
      const before = this.frames[this.index];
      this.reset();
      if (this.frames[this.index] === before) this.screen.tell("This is where it begins.");
    } else if (what === "restart") this.restart();
    else if (what === "to_line") this.goToLine(request.line);
    else return this.screen.tell("This is a recording: dragging weights and editing the loop need a live lab.");
    this.go(this.index);
    this.write();
  }

  /** Go through time with a finger. @param {{share?: number, begins?: boolean, ends?: boolean}} request `share` of the panel */
  scrubBy({ share = 0, begins, ends }) {
    if (ends) return this.write();
    if (begins) this.scrubbed = this.shown.updates;
    const [low, high] = this.screen.strip.range ?? [0, Number(this.scrub.max)];
    this.goToUpdate(Math.max(Math.round(this.scrubbed + share * (high - low)), 0));
  }

  /** Go to the next statement on a line or, if there is none, back to the previous one. @param {number} line */
  goToLine(line) {
    const isLit = (/** @type {number} */ index) => {
      const [first, last] = this.shownAt(this.frames, index).lit;
      return first <= line && line <= last;
    };
    const on = this.frames.findIndex((_, index) => index > this.index && isLit(index));
    const back = this.frames.findLastIndex((_, index) => index < this.index && isLit(index));
    let words = `The recording does not stop at line ${line}.`;
    if (on >= 0) words = `Went on until line ${line} had run.`;
    else if (back >= 0) words = `Went back to line ${line}: the recording does not stop there further on.`;
    if (on >= 0 || back >= 0) this.go(on >= 0 ? on : back); // its note is replaced by the next line
    this.screen.tell(words);
  }

  /** @param {string} name @param {any} value */
  turnSwitch(name, value) {
    const { shown, recording: { tracks: [first, ...tracks] } } = this;
    const isSame = (/** @type {any} */ other) => String(other) === String(value);
    const wanted = JSON.stringify({ ...this.turnsOf(this.track), [name]: String(value) });
    // Prefer the turns of this track, then turns of other tracks to the same settings, then any turn to this value.
    const all = tracks.filter((track) => track.switch === name && JSON.stringify(this.turnsOf(track)) === wanted);
    const ownTurns = all.filter((track) => this.parentOf(track) === this.track);
    const others = tracks.filter((track) => track.switch === name && isSame(track.value));
    const [ahead, behind] = [ownTurns, all, others].reduce((best, ways) => {
      const next = ways.filter(({ update }) => update >= shown.updates).sort((a, b) => a.update - b.update)[0];
      return [best[0] ?? next, best[1] ?? ways.toSorted((a, b) => b.update - a.update)[0]];
    }, /** @type {(Track | undefined)[]} */ ([]));
    const isFirst = isSame(this.turnsOf(first)[name]);
    this.coming = null;
    if (isSame(shown.values[name])) this.screen.tell(`${name} stays as it is.`);
    else if (ahead || (isFirst && first !== this.track)) {
      this.coming = ahead ?? { ...first, update: Infinity, switch: name, value };
      if (this.coming.update <= shown.updates) this.takeTurn(this.coming);
      else this.tellTurn();
    } else if (behind) {
      this.takeTurn(behind);
      this.screen.tell(`That was recorded at update ${this.track.update}: gone back to it, and turned ${name} there.`);
    } else this.screen.tell(`This recording has no such change of ${name}. Press Reset to start it again.`);
    this.go(this.index);
    if (this.autoplay) this.play();
  }

  /** Return the values in a track of the switches that can be turned. @param {Track} track */
  turnsOf({ parent, frames }) {
    const { values } = this.shownAt(frames, parent === null ? frames.length - 1 : 0);
    const names = new Set(this.recording.tracks.slice(1).map((track) => track.switch));
    return Object.fromEntries([...names].map((name) => [name, String(values[name])]));
  }

  // The address

  /** @override The frame, and the turns that lead to its track. */
  get moment() {
    const turns = [];
    for (let track = this.track, parent; (parent = this.parentOf(track)); track = parent) {
      turns.unshift(turnText(track));
    }
    return { frame: this.index, ...(turns.length ? { turns: turns.join("~") } : {}) };
  }

  /** @override */
  read() {
    this.pause();
    this.restart();
    const { named } = this;
    for (const turn of named?.get("turns")?.split("~") ?? []) {
      const { track: before } = this;
      this.track = this.recording.tracks.find((each) => this.parentOf(each) === before && turn === turnText(each)) ??
        before;
    }
    const frame = Number(named?.get("frame") ?? this.opening);
    this.go(Number.isInteger(frame) ? frame : 0);
  }
}

/** @param {Track} track */
function turnText({ switch: name, update, value }) {
  return `${name}-${update}-${value}`;
}

/** @param {any} value of a switch @returns what its control shows */
function fieldValue(value) {
  return typeof value === "boolean" ? value : valueWords(value);
}

/** @param {any} value */
function valueWords(value) {
  return value === true ? "on" : value === false || value === null ? "off" : String(value);
}
