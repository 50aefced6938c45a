// @ts-check
/**
 * A replay: the screen of a lab that plays what was recorded, without a kernel.
 *
 * A recording holds tracks. The first is a run; each other one leaves a track at an update, where a switch was turned.
 * Turning a switch in the page goes over to such a track at its update.
 */

import { Address } from "./address.js";
import { addButton, addElement } from "./events.js";
import { mergeFrame, nothingShown } from "./frames.js";
import { followSight } from "./place.js";
import { RecordedView } from "./recorded_view.js";
import { RunScreen } from "./run_screen.js";
import { unpacked } from "./unpack.js";

/** @typedef {Record<string, any>} RecordedFrame */
/** @typedef {{parent: number | null, at: number, switch: string, value: any, frames: RecordedFrame[]}} Track */
/** @typedef {{title: string, marks: number[], tracks: Track[]}} RecordedRuns `marks` are updates at which switches can be turned */

const PLAYING = "gl-playing"; // of the body: a page may leave out of a frame what is out of sight
const READ_ALONG = 350; // ms a statement
/** @type {{replay: Replay | null}} the one that plays: two on a page would divide the reader's attention */
const onAir = { replay: null };

export class Replay {
  /**
   * @param {HTMLElement} root @param {RecordedRuns} recording
   * @param {{id?: string, title?: string}} [place] on a page with many: the id of its place, and what it is called
   */
  constructor(root, recording, { id = "", title = recording.title } = {}) {
    this.recording = recording;
    this.address = new Address(id);
    /** @type {Map<number, Record<string, any>[]>} what is shown at each frame of a track, as far as it was worked out */
    this.known = new Map();
    this.track = 0;
    this.index = 0;
    /** @type {{track: number} | null} a switch that was turned, and the track that it leads to */
    this.turned = null;
    this.view = new RecordedView();
    this.playing = false;
    /** @type {number | null} */
    this.rate = 60;
    this.due = 0;
    this.scrubbed = 0; // the update at which a finger went down
    /** @type {Record<string, any> | null} */
    this.painted = null;
    this.screen = new RunScreen(root, {
      label: `gradlab replay: ${title}`,
      scrubs: true,
      ask: (request) => this.ask(request),
      play: () => {
        if (!this.playing) return this.play();
        this.pause();
        this.write();
      },
      onPlay: () => this.play(),
      speed: (rate) => {
        this.rate = rate;
      },
      more: (bar) => {
        addButton(bar, "Copy link", () => this.copy());
        const label = addElement("label", bar, "gl-control gl-scrub");
        label.append("update ");
        this.scrub = addElement("input", label);
        this.scrub.type = "range";
        this.scrub.min = "0";
        this.at = addElement("span", label, "gl-value");
        this.at.setAttribute("aria-hidden", "true"); // the slider says it
        const ticks = addElement("datalist", label);
        ticks.id = `gl-marks-${id}`;
        ticks.append(...recording.marks.map((mark) => new Option("", String(mark))));
        this.scrub.setAttribute("list", ticks.id);
        this.scrub.addEventListener("input", () => this.goToUpdate(Number(this.scrub?.value)));
        this.scrub.addEventListener("change", () => this.write());
      },
    });
    this.read();
    this.address.follow(() => this.read());
    followSight(root, { gone: () => this.pause(), back: () => {} });
  }

  // Where it is

  get frames() {
    return this.recording.tracks[this.track].frames;
  }

  /** What is shown at a frame of this track. @param {number} index */
  shownAt(index) {
    const known = this.known.get(this.track) ?? [];
    this.known.set(this.track, known);
    while (known.length <= index) {
      known.push(mergeFrame(known.at(-1) ?? nothingShown(), this.frames[known.length]).shown);
    }
    return known[index];
  }

  /** @param {number} index */
  go(index) {
    this.index = Math.min(Math.max(index, 0), this.frames.length - 1);
    const shown = this.shownAt(this.index);
    const turned = this.turned ? this.recording.tracks[this.turned.track] : null;
    const values = {
      ...shown.values,
      ...(turned && { [turned.switch]: turned.value }),
      unswitched: this.view.unswitched,
    };
    /** @type {Record<string, any>} */
    const now = {
      ...shown,
      values,
      left_off: this.recording.marks[0] || null, // where it opens, and Reset goes back to
      panels: this.view.of(shown.panels),
    };
    const before = this.painted;
    const changed = new Set(Object.keys(now).filter((key) => now[key] !== before?.[key]));
    const panels = new Set(Object.keys(now.panels).filter((name) => now.panels[name] !== before?.panels[name]));
    this.screen.show(now, changed, panels);
    this.painted = now;
    if (this.scrub) {
      this.scrub.max = String(this.frames.at(-1)?.updates ?? this.lastUpdate());
      this.scrub.value = String(shown.updates);
    }
    if (this.at) this.at.textContent = String(shown.updates);
  }

  lastUpdate() {
    return this.shownAt(this.frames.length - 1).updates;
  }

  /** Go to an update. Going back over a turn leaves it to come; going on over one takes it. @param {number} updates */
  goToUpdate(updates) {
    this.pause();
    while (this.track && updates < this.recording.tracks[this.track].at) {
      this.turned = { track: this.track };
      this.track = this.recording.tracks[this.track].parent ?? 0;
    }
    const turned = this.turned && this.recording.tracks[this.turned.track];
    this.screen.tell("");
    if (turned && updates >= turned.at) this.takeTurn();
    this.go(this.frameAt(updates));
    this.tellTurn();
  }

  /** Return the first frame of this track at an update or after it, else the last. @param {number} updates */
  frameAt(updates) {
    const found = this.frames.findIndex((_, index) => this.shownAt(index).updates >= updates);
    return found < 0 ? this.frames.length - 1 : found;
  }

  /** The frame that a page opens with: where a switch can first be turned, else the last. */
  telling() {
    return this.frameAt(this.recording.marks[0] ?? Infinity);
  }

  // Playing

  play() {
    if (this.playing) return;
    onAir.replay?.pause();
    onAir.replay = this;
    if (this.index >= this.frames.length - 1 && !this.turned) this.reset();
    this.playing = true;
    document.body.classList.add(PLAYING);
    this.due = performance.now();
    this.screen.setPlaying(true);
    this.tellTurn();
    this.tick();
  }

  /** Copy the address of what is shown; it pauses first. */
  async copy() {
    this.pause();
    this.write();
    const link = this.address.link(this.moment);
    try {
      await navigator.clipboard.writeText(link);
      this.screen.tell(`Copied: ${link}`);
    } catch {
      this.screen.tell(link); // no clipboard here: it can be copied from the words
    }
  }

  /** Stand still. Only where the reader has paused is the moment kept in the address, not where it is out of sight. */
  pause() {
    if (!this.playing) return;
    this.playing = false;
    document.body.classList.remove(PLAYING);
    onAir.replay = null;
    this.screen.setPlaying(false);
    this.go(this.index);
  }

  /** Go back to update 0. */
  restart() {
    this.track = this.index = 0;
    this.turned = null;
  }

  /** Go back to where the recording opens if a switch can be turned there, else to update 0. */
  reset() {
    this.restart();
    if (this.recording.marks.length) this.index = this.telling();
  }

  tick() {
    if (!this.playing) return;
    const now = performance.now();
    const every = this.rate === 0 ? READ_ALONG : 1000 / (this.rate ?? 240);
    let moved = false;
    while (this.due <= now && this.playing) {
      this.due = Math.max(this.due + every, now - 250);
      if (!this.next(this.rate !== 0)) {
        this.pause();
        this.screen.tell("The recording ends here. Play begins it again.");
        this.write();
        return;
      }
      moved = true;
    }
    if (moved) this.go(this.index);
    requestAnimationFrame(() => this.tick());
  }

  /** Go one statement further, or with `whole` one update; return whether there was one. @param {boolean} whole */
  next(whole) {
    while (this.index < this.frames.length - 1 || this.turned) {
      const turned = this.turned && this.recording.tracks[this.turned.track];
      if (turned && this.shownAt(this.index).updates >= turned.at) {
        this.takeTurn();
        return true;
      }
      if (this.index >= this.frames.length - 1) return false;
      this.index += 1;
      if (!whole || this.frames[this.index].end) return true;
    }
    return false;
  }

  /** Go over to the run in which the switch was turned. */
  takeTurn() {
    if (!this.turned) return;
    this.track = this.turned.track;
    this.turned = null;
    this.go(0); // which brings a note of its own, before what is told
    const { switch: name, value, at } = this.recording.tracks[this.track];
    this.screen.tell(`Here ${name} was turned to ${valueWords(value)} (update ${at}).`);
  }

  /** Say which turn is still to come, if any. @param {string} [instead] of which other one */
  tellTurn(instead = "") {
    if (!this.turned) return;
    const { switch: name, value, at } = this.recording.tracks[this.turned.track];
    this.screen.tell(
      `${name} will be turned to ${valueWords(value)} at update ${at}, where that was recorded${instead}.`,
    );
  }

  // What the reader does

  /** @param {Record<string, any>} request */
  ask(request) {
    const { do: what } = request;
    if (what === "turn") return this.turn(request.name, request.value);
    if (what === "scrub") return this.scrubBy(request);
    if (what === "press") return this.tellOf(request.what);
    if (["statement", "update", "to_line", "reset", "restart"].includes(what)) this.pause();
    if (what === "statement" || what === "update") {
      this.next(what === "update");
      const [before, now] = [this.frames[this.index - 1], this.frames[this.index]];
      if (what === "statement" && now.end && (before.end || before.whole)) {
        this.screen.tell(
          "Here the recording goes an update at a time: its first updates, and those after a turn, hold every statement.",
        );
      }
    } else if (what === "reset") this.reset();
    else if (what === "restart") this.restart();
    else if (what === "to_line") this.toLine(request.line);
    else return this.screen.tell("This is a recording: dragging weights and editing the loop need a live lab.");
    this.go(this.index);
    this.write();
  }

  /**
   * Go through time with a finger: it stays on the update that it is at.
   * @param {{by?: number, begins?: boolean, ends?: boolean}} request
   */
  scrubBy({ by = 0, begins, ends }) {
    if (ends) return this.write();
    if (begins) this.scrubbed = this.shownAt(this.index).updates;
    this.goToUpdate(Math.max(Math.round(this.scrubbed + by), 0));
  }

  /** Say what a mark says that was pressed. @param {string} what */
  tellOf(what) {
    const marks = Object.values(this.shownAt(this.index).panels).flatMap(({ marks }) => marks);
    this.screen.tell(marks.find(({ press }) => press === what)?.words ?? "");
  }

  /** Go to the next statement on a line, or else back to the last one before. @param {number} line */
  toLine(line) {
    const lit = (/** @type {number} */ index) => {
      const [first, last] = this.shownAt(index).lit;
      return first <= line && line <= last;
    };
    const onwards = this.frames.findIndex((_, index) => index > this.index && lit(index));
    const found = onwards < 0 ? this.frames.findLastIndex((_, index) => index < this.index && lit(index)) : onwards;
    if (found < 0) {
      return this.screen.tell(
        lit(this.index)
          ? `The recording stops at line ${line} only here.`
          : `The recording does not stop at line ${line}.`,
      );
    }
    this.go(found); // as above
    this.screen.tell(
      onwards < 0
        ? `Went back to line ${line}: the recording does not stop there further on.`
        : `Went on until line ${line} had run.`,
    );
  }

  /** @param {string} name @param {any} value */
  turn(name, value) {
    if (name === "unswitched") {
      this.view.unswitched = value;
      return this.go(this.index);
    }
    const shown = this.shownAt(this.index);
    const same = (/** @type {any} */ one) => String(one) === String(value);
    const ways = this.recording.tracks.map((track, index) => ({ track, index })).filter(({ track }) =>
      track.parent === this.track && track.switch === name && same(track.value)
    );
    const way = ways.filter(({ track }) => track.at >= shown.updates).sort((a, b) => a.track.at - b.track.at)[0];
    const before = this.turned && this.recording.tracks[this.turned.track].switch;
    const earlier = ways.sort((a, b) => b.track.at - a.track.at)[0];
    this.turned = way ? { track: way.index } : null;
    if (way && way.track.at === shown.updates) this.takeTurn();
    else if (way) this.tellTurn(before && before !== name ? `, and ${before} stays as it is` : "");
    else if (same(shown.values[name])) this.screen.tell(`${name} stays as it is.`);
    else if (earlier) {
      this.turned = { track: earlier.index };
      this.takeTurn();
      this.screen.tell(`That was recorded at update ${earlier.track.at}: gone back to it, and turned ${name} there.`);
    } else this.screen.tell(`This recording does not hold that turn of ${name}. Reset begins it again.`);
    this.painted = this.painted && { ...this.painted, values: null };
    this.go(this.index);
  }

  // The address

  /** Where it is, as the address has it: the frame, and the turns on the way to its track. */
  get moment() {
    const turns = [];
    for (let track = this.track; track;) {
      const { parent, at, switch: name, value } = this.recording.tracks[track];
      turns.unshift(`${name}-${at}-${value}`);
      track = parent ?? 0;
    }
    return { frame: this.index, ...(turns.length ? { turns: turns.join("~") } : {}) };
  }

  /** Keep the moment in the address, so that it can be linked to. */
  write() {
    this.address.write(this.moment);
  }

  /** Go to the moment that the address names, or to the one that a page opens with. */
  read() {
    this.pause();
    this.restart();
    const { named } = this.address;
    for (const turn of named?.get("turns")?.split("~") ?? []) {
      const found = this.recording.tracks.findIndex((track) =>
        track.parent === this.track && turn === `${track.switch}-${track.at}-${track.value}`
      );
      if (found > 0) this.track = found;
    }
    const frame = Number(named?.get("frame") ?? this.telling());
    this.go(Number.isInteger(frame) ? frame : 0);
  }
}

/** @param {any} value */
function valueWords(value) {
  return value === true ? "on" : value === false ? "off" : value === null ? "off" : String(value);
}

/**
 * Unpack a recording and show it.
 * @param {HTMLElement} root @param {string} packed
 */
export async function startReplay(root, packed) {
  Object.assign(globalThis, { gradlabReplay: new Replay(root, await unpacked(packed)) });
}
