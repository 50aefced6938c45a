// @ts-check
/**
 * The clock of a lab: asks the kernel for frames ahead of time, and plays them at theirs.
 *
 * A round trip takes longer than a frame lasts, so several requests are on their way at once: as much time is kept in
 * hand as a round trip takes, measured as it goes. Frames are numbered; one that was missed is asked for again.
 */

/** @typedef {Record<string, any>} Frame */
/** @typedef {{words: string, rate: number | null}} Speed */

const BUNDLE = 200; // ms of frames in one request: fewer messages cost the kernel and the line less
const MARGIN = 100; // ms in hand beyond the round trip, at least
const MOST_MARGIN = 400;
const SLICE = 33; // ms of training between two frames at full speed
const SLICES = 2; // in one request
const SPARE = 30; // ms of work in hand beyond the round trip at full speed, for which Pause would have to wait
const STATEMENT = 350; // ms a statement: slow enough to read along
export const MOST_IN_BEATS = 10; // updates a second up to which each call that changes `.grad` is shown
const SILENCE = 1500; // ms without an answer after which the reader gets a sentence
const LOST = 8000; // ms after which the kernel may have been restarted
const PROBE = 10000; // ms between two attempts to reach it then
const AT_WORK = "The kernel is at work, on this loop or on a cell. Kernel > Interrupt ends that.";
const UNANSWERED =
  "No answer from the kernel: another cell may be running, or it was restarted. If it was restarted, run this cell again.";
const OFFLINE = "No connection. The lab goes on when it is back.";
const MOST_ASKED = 16; // requests on their way
const NEWEST_COUNTS = ["turn", "drag"]; // of these one is on its way: the newest that waits goes next
const PLAY = "play"; // the kind of a request for frames that are played

/** @typedef {{request: Frame, promise: Promise<void>, resolve: (value: void) => void}} Waiting */

export class Clock {
  /**
   * @param {{
   *   send: (request: Frame) => void, show: (frames: Frame[]) => void, tell: (words: string) => void,
   *   changed: (playing: boolean) => void,
   * }} to `tell` says how things stand with the kernel, "" when all is well; `changed` whether it plays
   */
  constructor({ send, show, tell, changed }) {
    this.send = send;
    this.show = show;
    this.tell = tell;
    this.changed = changed;
    this.client = Math.random().toString(36).slice(2, 10);
    this.playing = false;
    /** @type {number | null} updates a second; 0: statements; null: as fast as it goes */
    this.rate = 60;
    /** @type {{frame: Frame, every: number}[]} */
    this.queue = [];
    /** @type {Map<number, {sent: number, ms: number, kind: string, answered: (value: void) => void}>} requests on their way */
    this.asked = new Map();
    /** @type {Map<string, Waiting>} requests that wait for the answer to one of their kind, by kind */
    this.waiting = new Map();
    this.count = 0;
    this.began = 0; // the newest request when it began to play
    this.plays = 0; // counts how often it has begun to play: what was asked for in one that has ended is not made
    this.last = -1; // the number of the newest frame that has come
    this.next = 0; // when the next frame is due
    this.trip = 500; // ms of a round trip without the kernel's work: the shortest that was seen
    this.work = 30; // ms that the kernel works on a request for frames
    this.margin = MARGIN;
    this.busy = ""; // the kernel's sentence on the requests that wait for the end of a cell
    this.heard = 0; // when it came
    this.working = false; // whether the kernel has reported a long computation
    this.probed = 0;
    this.ticking = 0;
    this.reminding = 0;
    this.closed = false;
  }

  /** Ask for what the reader wants. @param {Frame} request @returns {Promise<void>} of the answer having been shown */
  ask(request) {
    const kind = NEWEST_COUNTS.includes(request.do) ? `${request.do} ${request.name ?? ""}` : "";
    if (!kind) this.sendWaiting(); // nothing overtakes what was asked before it
    else if (this.isAsked(kind)) {
      const waiting = this.waiting.get(kind) ?? { ...Promise.withResolvers(), request };
      waiting.request = request;
      this.waiting.set(kind, waiting);
      return waiting.promise;
    }
    return this.request(request, 0, kind);
  }

  play() {
    if (this.playing || this.closed) return;
    this.playing = true;
    this.plays += 1;
    this.began = this.count;
    this.margin = MARGIN;
    this.next = performance.now();
    this.changed(true);
    this.tick();
  }

  /** Stop at once: the picture stands still, and ends where the run has ended once the kernel has said so. */
  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.changed(false);
    this.ask({ do: "pause" });
  }

  close() {
    this.playing = false;
    this.closed = true;
    cancelAnimationFrame(this.ticking);
    clearTimeout(this.reminding);
  }

  /** Take an answer, this page's or that to another page of the same lab. @param {Frame} answer */
  take(answer) {
    if (this.closed) return;
    if (answer.busy) return this.wait(answer);
    const request = answer.client === this.client ? this.asked.get(answer.n) : undefined;
    /** @type {((value: void) => void)[]} */
    const done = [];
    if (request) {
      this.busy = "";
      for (const [n, { answered }] of this.asked) { // the kernel answers in order
        if (n > answer.n) continue;
        this.asked.delete(n);
        done.push(answered);
      }
      // The shortest trip is the line's own; a longer one has waited for other work. It may become longer by and by.
      this.trip = Math.min(this.trip * 1.02 + 0.1, Math.max(performance.now() - request.sent - answer.work, 1));
      if (request.kind === PLAY) this.work += 0.2 * (answer.work - this.work);
    }
    this.remind();
    const playing = this.playing && request?.kind === PLAY;
    for (const frame of answer.frames) {
      if (!frame.whole && frame.f !== this.last + 1) {
        if (frame.f > this.last) this.ask({ do: "hello" });
        break;
      }
      this.last = frame.f;
      this.queue.push({ frame, every: playing ? this.every / (frame.beats ?? 1) : 0 });
      const earlier = request && answer.n <= this.began; // asked for before it began to play
      if (frame.stop && this.playing && !earlier) {
        this.playing = false;
        this.changed(false);
      }
    }
    // What the reader has asked for is shown at once, with all that lies before it.
    if (!this.playing ? !this.asked.size || request?.kind !== PLAY : !playing) {
      const frames = this.queue.splice(0).map((each) => each.frame);
      if (frames.length) this.show(frames);
    }
    for (const answered of done) answered();
    this.sendWaiting((kind) => !this.isAsked(kind));
    if (this.playing) this.fill();
  }

  /** The kernel has got a request, and answers it when a cell has ended. @param {Frame} notice */
  wait(notice) {
    if (notice.client !== this.client) return;
    this.busy = notice.busy;
    this.heard = performance.now();
    const [frame] = notice.frames;
    if (frame && this.last < 0) {
      this.last = frame.f;
      this.show([frame]);
    }
    this.remind();
  }

  /** How long a frame is seen, in ms. */
  get every() {
    if (this.rate === null) return Math.max(this.work / SLICES, 1000 / 60);
    return this.rate === 0 ? STATEMENT : Math.max(1000 / this.rate, 1000 / 60);
  }

  // How it is done

  tick() {
    cancelAnimationFrame(this.ticking);
    this.ticking = 0;
    if (!this.playing || this.closed) return;
    const now = performance.now();
    const due = [];
    while (this.queue.length && this.next <= now + 2) {
      const { frame, every } = /** @type {{frame: Frame, every: number}} */ (this.queue.shift());
      due.push(frame);
      this.next = Math.max(this.next + every, now - every);
    }
    if (due.length) this.show(due);
    else if (!this.queue.length && this.next < now - this.every && this.asked.size) {
      this.margin = Math.min(this.margin * 1.25 + 1, MOST_MARGIN); // it has run dry: keep more in hand
      this.next = now + MARGIN / 2;
    }
    this.fill();
    if (this.playing) this.ticking = requestAnimationFrame(() => this.tick());
  }

  /** Keep as much on its way as a round trip needs, and no more work than Pause may have to wait for. */
  fill() {
    let waiting = Math.max(this.next - performance.now(), 0);
    for (const { every } of this.queue) waiting += every;
    const spare = this.rate === null ? SPARE : MARGIN;
    const most = Math.min(MOST_ASKED, Math.ceil((this.trip + spare) / Math.max(this.work, 1)) + 1);
    let coming = 0;
    for (const request of this.asked.values()) coming += request.ms;
    while (this.playing && waiting + coming < this.trip + this.margin && this.asked.size < most) {
      const request = this.bundle();
      const ms = request.count * this.every;
      this.request(request, ms, PLAY);
      coming += ms;
    }
  }

  bundle() {
    const count = this.rate === null ? SLICES : Math.max(1, Math.round(BUNDLE / this.every));
    const request = { do: "frames", count, every: this.every, play: this.plays };
    if (this.rate === null) return { ...request, seconds: SLICE / 1000 };
    if (this.rate === 0) return request;
    return { ...request, updates: Math.max(1, Math.round(this.rate / 60)), beats: this.rate <= MOST_IN_BEATS };
  }

  /** @param {string} kind */
  isAsked(kind) {
    return [...this.asked.values()].some((each) => each.kind === kind);
  }

  /** Send the requests that wait. @param {(kind: string) => boolean} [isFree] whether those of a kind need no longer wait */
  sendWaiting(isFree = () => true) {
    for (const [kind, { request, resolve }] of this.waiting) {
      if (!isFree(kind)) continue;
      this.waiting.delete(kind);
      this.request(request, 0, kind).then(resolve);
    }
  }

  /** @param {Frame} request @param {number} ms of frames that it will bring @param {string} kind */
  request(request, ms, kind) {
    if (this.closed) return Promise.resolve();
    const n = this.count += 1;
    const { promise, resolve } = /** @type {PromiseWithResolvers<void>} */ (Promise.withResolvers());
    this.asked.set(n, { sent: performance.now(), ms, kind, answered: resolve });
    this.send({ ...request, n, client: this.client });
    this.remind();
    return promise;
  }

  /** Say so when the kernel does not answer, and try to reach it now and then. */
  remind() {
    clearTimeout(this.reminding);
    if (this.closed) return;
    if (!this.asked.size || this.working) return this.tell("");
    const now = performance.now();
    const [first] = this.asked.values();
    const silent = now - Math.max(first.sent, this.heard);
    const unanswered = navigator.onLine === false ? OFFLINE : silent > LOST ? UNANSWERED : AT_WORK;
    this.tell(silent > LOST || (silent > SILENCE && !this.busy) ? unanswered : this.busy);
    if (silent > LOST && now - this.probed > PROBE) {
      this.probed = now;
      this.request({ do: "hello" }, 0, "");
    } else this.reminding = setTimeout(() => this.remind(), 500);
  }
}
