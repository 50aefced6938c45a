// @ts-check
/** A Lab or an instrument in a notebook: its messages to and from the kernel, and the screens that show it. */

import { Clock } from "./clock.js";
import { mergeFrame, nothingShown } from "./wire.js";
import { bringIntoView, disable, endLab, followSight, hideStill } from "./place.js";
import { InstrumentScreen, RunScreen } from "./screen.js";

/** The model from anywidget. @typedef {{send: (content: any) => void, on: Function, off: Function, get: Function}} Model */

const RESTS = 300; // ms without another request before the request that the kernel named in `then`
const ENDS_PLAY = ["statement", "update", "reset", "restart", "to_line", "drag"];

/** One lab on this page, with all views that show it. */
class LabClient {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.shown = nothingShown();
    /** @type {Set<RunScreen | InstrumentScreen>} */
    this.screens = new Set();
    this.clock = new Clock({
      send: (request) => {
        try {
          model.send(request);
        } catch { // the kernel was restarted or has died
          this.end();
        }
      },
      show: (frames) => {
        this.shown = frames.reduce(mergeFrame, this.shown);
        for (const screen of this.screens) this.showOn(screen);
      },
      tell: (words) => this.screens.forEach((screen) => screen.tell(words)),
      changed: (playing) => this.setPlaying(playing),
    });
    this.inSight = true; // whether the newest view is in sight
    this.paused = false; // whether it plays once it comes into sight
    this.unanswered = 0;
    this.then = 0; // the timer of the request in `then`
    /** @type {Record<string, (message: any) => void>} */
    this.listeners = {
      "msg:custom": (message) => this.take(message),
      "comm:close": () => this.end(),
      comm_live_update: () => this.clock.ask({ do: "hello" }), // which fails if the kernel was restarted
    };
    for (const [kind, listen] of Object.entries(this.listeners)) model.on(kind, listen);
  }

  /** @param {Record<string, any>} message */
  take(message) {
    if (message.new) { for (const { root } of this.screens) bringIntoView(root); }
    if (message.working !== undefined) {
      this.clock.working = message.working;
      for (const screen of this.screens) if (screen instanceof InstrumentScreen) screen.setWorking(message.working);
    }
    if (message.frames) this.clock.take({ work: 0, ...message });
    if (!message.frames?.[0]?.play || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    if (this.inSight) this.clock.play();
    else this.paused = true;
  }

  /** @param {RunScreen | InstrumentScreen} screen */
  showOn(screen) {
    screen.show(this.shown);
    if (!this.shown.frozen) return; // another view continues a frozen lab
    this.clock.playing = false;
    if (screen instanceof RunScreen) screen.setPlaying(false);
    screen.controls.close();
    disable(screen.root, "gl-frozen");
  }

  /** End the lab, because its kernel is gone. */
  end() {
    this.close();
    if (this.shown.frozen) return;
    this.setPlaying(false);
    for (const { root, controls } of this.screens) {
      controls.close(); // stops sliders that play
      root.ariaBusy = null;
      endLab(root);
    }
  }

  /** @param {boolean} playing */
  setPlaying(playing) {
    for (const screen of this.screens) if (screen instanceof RunScreen) screen.setPlaying(playing);
  }

  /** @param {HTMLElement} root */
  open(root) {
    const { clock, shown } = this;
    this.paused = false;
    const ask = (/** @type {Record<string, any>} */ request) => this.ask(request);
    const play = (/** @type {boolean} */ on) => on ? clock.play() : clock.pause();
    const speed = (/** @type {number | null} */ rate) => clock.rate = rate;
    const isRun = this.model.get("kind") === "lab";
    const screen = isRun ? new RunScreen(root, { ask, play, speed }) : new InstrumentScreen(root, { ask });
    this.screens.add(screen);
    hideStill(this.model.get("lab_id"));
    if (shown.f < 0) ask({ do: "hello" });
    else this.showOn(screen);
    if (clock.playing) this.setPlaying(true);
    const leave = followSight(root, (inSight) => {
      this.inSight = inSight;
      if (inSight) {
        if (this.paused) clock.play();
        this.paused = false;
      } else if (clock.playing && this.screens.size === 1) {
        clock.pause();
        this.paused = true;
      }
    });
    return () => {
      leave();
      screen.close();
      this.screens.delete(screen);
      if (!this.screens.size) clock.pause();
    };
  }

  /** Send a request. @param {Record<string, any>} request @returns {Promise<void>} resolved when the answer is shown */
  async ask(request) {
    if (ENDS_PLAY.includes(request.do) && this.clock.playing) {
      this.clock.playing = false;
      this.setPlaying(false);
    }
    clearTimeout(this.then);
    this.then = 0;
    this.wait(1);
    await this.clock.ask(request);
    const { then } = this.shown;
    if (then && this.unanswered === 1) this.then = setTimeout(() => this.ask({ do: then }), RESTS);
    this.wait(-1);
  }

  /** Count a request as unanswered (1) or answered (-1). @param {1 | -1} by */
  wait(by) {
    this.unanswered += by;
    for (const screen of this.screens) {
      screen.root.dataset.pending = String(this.unanswered + Number(this.then > 0));
      if (screen instanceof InstrumentScreen) screen.root.ariaBusy = String(this.unanswered > 0);
    }
  }

  close() {
    this.clock.close();
    clearTimeout(this.then);
    for (const [kind, listen] of Object.entries(this.listeners)) this.model.off(kind, listen);
  }
}

/** @type {Map<string, LabClient>} by the id of the lab */
const labClients = new Map();

export default {
  /** @param {{model: Model, el: HTMLElement}} context */
  open({ model, el }) {
    const id = model.get("lab_id");
    const client = labClients.get(id) ?? new LabClient(model);
    labClients.set(id, client);
    return client.open(el);
  },
  /** @param {Model} model */
  close(model) {
    labClients.get(model.get("lab_id"))?.close();
    labClients.delete(model.get("lab_id"));
  },
};
