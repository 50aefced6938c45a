// @ts-check
/** An instrument in a notebook: its screen, and what it asks the kernel. */

import { InstrumentScreen } from "./instrument_screen.js";
import { bringIntoView, endLab, hideStill } from "./place.js";

const UNANSWERED = 3000; // ms until the reader is told that the kernel does not answer
const RESTS = 300; // ms without another request until what the kernel wants to be asked next is asked

/** @typedef {{request: Record<string, any>, done: () => void, answered: Promise<void>}} Waiting */

/** Asks the kernel one thing at a time: of what is asked meanwhile, the newest of each kind is asked next. */
export class Instrument {
  /** @param {any} model @param {HTMLElement} root */
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.client = Math.random().toString(36).slice(2, 10);
    this.count = 0;
    /** @type {Waiting | null} */
    this.asked = null;
    /** @type {Map<string, Waiting>} */
    this.next = new Map();
    this.timer = 0;
    this.then = 0; // the timer of what is asked next
    this.screen = new InstrumentScreen(root, {
      ask: (request) => this.ask(request),
      label: "gradlab: controls, and pictures that follow from them",
    });
    this.listen = (/** @type {any} */ message) => this.take(message);
    model.on("msg:custom", this.listen);
    this.dead = () => this.end();
    model.on("comm:close", this.dead);
    this.probe = () => this.ask({ do: "hello" }); // which fails where the kernel has been restarted
    model.on("comm_live_update", this.probe);
    this.ask({ do: "hello" });
  }

  /**
   * @param {Record<string, any>} request
   * @returns {Promise<void>} of the answer
   */
  ask(request) {
    clearTimeout(this.then);
    const kind = `${request.do} ${request.name ?? ""}`;
    const waiting = this.next.get(kind);
    if (waiting) {
      waiting.request = request;
      return waiting.answered;
    }
    let done = () => {};
    const answered = /** @type {Promise<void>} */ (new Promise((resolve) => done = () => resolve()));
    this.next.set(kind, { request, done, answered });
    this.send();
    return answered;
  }

  send() {
    const [first] = this.next;
    this.root.ariaBusy = this.asked || first ? "true" : "false";
    if (this.asked || !first) return;
    const [kind, waiting] = first;
    this.next.delete(kind);
    this.asked = waiting;
    this.count += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () =>
        this.tell(
          "The kernel has not answered yet: another cell may be running. If it was restarted, run this cell again.",
        ),
      UNANSWERED,
    );
    try {
      this.model.send({ ...waiting.request, n: this.count, client: this.client });
    } catch { // the kernel was restarted, or has died
      this.end();
    }
  }

  /** The kernel is gone. */
  end() {
    this.asked?.done();
    this.asked = null;
    this.root.ariaBusy = "false";
    clearTimeout(this.timer);
    this.screen.controls.close(); // nothing plays on
    endLab(this.root);
  }

  /** @param {string} note */
  tell(note) {
    if (this.screen.progress.style.visibility === "hidden") this.screen.words.show({ note });
  }

  /**
   * @param {{new?: boolean, n?: number, client?: string, frames?: Record<string, any>[], working?: boolean,
   *   busy?: string}} message
   */
  take(message) {
    if (message.busy) return this.wait(message);
    if (message.new) bringIntoView(this.root);
    if (message.working !== undefined) this.screen.tellWorking(message.working);
    for (const frame of message.frames ?? []) this.screen.take(frame);
    if (message.client !== this.client || message.n !== this.count || !this.asked) return;
    clearTimeout(this.timer);
    const { done } = this.asked;
    this.asked = null;
    done();
    this.send();
    const { then } = /** @type {Record<string, any>} */ (this.screen.shown);
    if (then && !this.asked) this.then = setTimeout(() => this.ask({ do: then }), RESTS);
  }

  /** The kernel answers when a cell has ended. @param {{client?: string, busy?: string, frames?: Record<string, any>[]}} notice */
  wait({ client, busy = "", frames = [] }) {
    if (client !== this.client) return;
    for (const frame of frames) this.screen.take(frame);
    this.tell(busy);
    clearTimeout(this.timer);
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.then);
    this.screen.close();
    this.model.off("msg:custom", this.listen);
    this.model.off("comm:close", this.dead);
    this.model.off("comm_live_update", this.probe);
  }
}

export default {
  /** @param {{model: any, el: HTMLElement}} context */
  open({ model, el }) {
    hideStill(model.get("lab_id"));
    const instrument = new Instrument(model, el);
    return () => instrument.close();
  },
};
