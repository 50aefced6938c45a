// @ts-check
/** A Lab in a notebook: the messages to the kernel and back, and the screens that show it. */

import { Clock } from "./clock.js";
import { mergeFrame, nothingShown } from "./frames.js";
import { bringIntoView, endLab, followSight, hideStill } from "./place.js";
import { RunScreen } from "./run_screen.js";

/** What anywidget hands over. @typedef {{send: (content: any) => void, on: Function, off: Function, get: Function}} Model */

/** A lab's run as this page knows it, however many views show it. */
export class LabClient {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.shown = nothingShown();
    /** @type {Set<RunScreen>} */
    this.screens = new Set();
    this.clock = new Clock({
      send: (request) => this.send(request),
      show: (frames) => this.show(frames),
      tell: (words) => this.tell(words),
      changed: (playing) => this.each((screen) => screen.setPlaying(playing)),
    });
    this.told = "";
    this.listen = (/** @type {any} */ message) => {
      if (message.new) this.each((screen) => bringIntoView(screen.root));
      if (message.frames) this.clock.take({ work: 0, ...message });
    };
    model.on("msg:custom", this.listen);
    this.dead = () => {
      this.clock.close();
      this.each((screen) => screen.setPlaying(false));
      this.each((screen) => endLab(screen.root));
    };
    model.on("comm:close", this.dead);
    this.probe = () => this.clock.ask({ do: "hello" }); // which fails where the kernel has been restarted
    model.on("comm_live_update", this.probe);
  }

  /** @param {Record<string, any>} request */
  send(request) {
    try {
      this.model.send(request);
    } catch { // the kernel was restarted, or has died
      this.dead();
    }
  }

  /** @param {Record<string, any>[]} frames */
  show(frames) {
    const changed = new Set();
    const panels = new Set();
    for (const frame of frames) {
      const merged = mergeFrame(this.shown, frame);
      this.shown = merged.shown;
      for (const key of merged.changed) changed.add(key);
      for (const name of Object.keys(frame.panels ?? {})) panels.add(name);
    }
    this.each((screen) => screen.show(this.shown, changed, panels));
  }

  /** @param {string} words */
  tell(words) {
    if (words === this.told) return;
    this.told = words;
    this.each((screen) => screen.tell(words));
  }

  /** @param {(screen: RunScreen) => void} act */
  each(act) {
    for (const screen of this.screens) act(screen);
  }

  /** @param {HTMLElement} root */
  open(root) {
    const clock = this.clock;
    const screen = new RunScreen(root, {
      ask: (request) => this.ask(request),
      play: () => (clock.playing ? clock.pause() : clock.play()),
      onPlay: () => clock.play(),
      speed: (rate) => {
        clock.rate = rate;
      },
    });
    this.screens.add(screen);
    hideStill(this.model.get("lab_id"));
    if (this.shown.f < 0) clock.ask({ do: "hello" });
    else screen.show(this.shown, new Set(Object.keys(this.shown)), new Set(this.shown.order));
    screen.setPlaying(clock.playing);
    let paused = false; // because it went out of sight
    const leave = followSight(root, {
      gone: () => {
        if (!clock.playing || this.screens.size > 1) return;
        clock.pause();
        paused = true;
      },
      back: () => {
        if (paused) clock.play();
        paused = false;
      },
    });
    return () => {
      leave();
      screen.close();
      this.screens.delete(screen);
      if (!this.screens.size) clock.pause();
    };
  }

  /**
   * @param {Record<string, any>} request
   * @returns {Promise<void>} of the answer having been shown
   */
  ask(request) {
    if (["statement", "update", "reset", "restart", "to_line", "drag"].includes(request.do) && this.clock.playing) {
      this.clock.playing = false;
      this.each((screen) => screen.setPlaying(false));
    }
    return this.clock.ask(request);
  }

  close() {
    this.clock.close();
    this.model.off("msg:custom", this.listen);
    this.model.off("comm:close", this.dead);
    this.model.off("comm_live_update", this.probe);
  }
}

/** @type {Map<string, LabClient>} */
const labClients = new Map();

/** @param {Model} model */
function clientOf(model) {
  const id = model.get("lab_id");
  const known = labClients.get(id) ?? new LabClient(model);
  labClients.set(id, known);
  return known;
}

export default {
  /** @param {{model: Model, el: HTMLElement}} context */
  open({ model, el }) {
    return clientOf(model).open(el);
  },
  /** @param {Model} model */
  close(model) {
    labClients.get(model.get("lab_id"))?.close();
    labClients.delete(model.get("lab_id"));
  },
};
