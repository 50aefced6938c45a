// @ts-check
/**
 * The clock of a lab, which requests frames from the kernel in advance and plays each at its time.
 *
 * A round trip takes longer than a frame lasts, so several requests are pending at once: the frames that are requested
 * or queued last as long as a measured round trip. Frames are numbered; after a missed frame, a whole one is requested.
 */

/** @typedef {Record<string, any>} Frame */
/** @typedef {{words: string, rate: number | null}} Speed */

const BUNDLE = 200; // ms of frames in one request: fewer messages cost the kernel and the connection less
const MARGIN = 100; // smallest number of ms of frames in advance beyond the round trip
const MOST_MARGIN = 400;
const SLICE = 33; // ms of training between two frames at full speed
const SLICES = 2; // frames in one request at full speed
const SPARE = 30; // ms of work in advance beyond the round trip at full speed; Pause has to wait for this work
const STATEMENT = 350; // ms per statement, slow enough to read it
export const MOST_IN_BEATS = 10; // updates per second up to which each call that changes `.grad` has its own frame
const SILENCE = 1500; // ms without an answer after which the reader gets a message
const LOST = 8000; // ms without an answer after which the kernel may have been restarted
const PROBE = 10000; // ms between two attempts to reach a kernel that may have been restarted
const AT_WORK = "The kernel is busy with this loop or a cell. Kernel > Interrupt stops it.";
const UNANSWERED =
  "No answer from the kernel: another cell may be running, or it was restarted. If it was restarted, run this cell again.";
const OFFLINE = "No connection. The lab goes on when it is back.";
const MOST_PENDING = 16; // largest number of pending requests
const NEWEST_COUNTS = ["turn", "drag"]; // kinds of requests of which one is sent at a time, and then only the newest
const PLAY = "play"; // the kind of requests for frames to play

/** @typedef {{request: Frame, promise: Promise<void>, resolve: (value: void) => void}} Waiting */

export class Clock {
  /**
   * @param {{
   *   send: (request: Frame) => void, show: (frames: Frame[]) => void, tell: (words: string) => void,
   *   changed: (playing: boolean) => void,
   * }} to `tell` gets a message about the kernel, "" if all is well; `changed` gets whether the clock plays
   */
  constructor({ send, show, tell, changed }) {
    this.send = send;
    this.show = show;
    this.tell = tell;
    this.changed = changed;
    this.client = Math.random().toString(36).slice(2, 10);
    this.playing = false;
    /** @type {number | null} updates per second; 0 for statements, null for full speed */
    this.rate = 60;
    /** @type {{frame: Frame, every: number}[]} */
    this.queue = [];
    /** @type {Map<number, {sent: number, ms: number, kind: string, answered: (value: void) => void}>} by number */
    this.pending = new Map();
    /** @type {Map<string, Waiting>} requests that wait until the pending one of their kind is answered, by kind */
    this.waiting = new Map();
    this.count = 0;
    this.began = 0; // number of the newest request when playback last started
    this.plays = 0; // number of starts, by which the kernel recognizes requests of playback that has ended
    this.last = -1; // the number of the newest frame received
    this.next = 0; // time at which the next frame is due
    this.trip = 500; // ms of the shortest round trip recently, without the kernel's work
    this.work = 30; // average ms of the kernel's work on a request for frames
    this.margin = MARGIN;
    this.busy = ""; // the kernel's message that requests wait for the end of a cell
    this.noticedAt = 0; // time at which the message in `busy` came
    this.working = false; // whether the kernel has reported a long computation
    this.probed = 0;
    this.ticking = 0;
    this.reminding = 0;
    this.closed = false;
  }

  /** Send a request of the reader. @param {Frame} request @returns {Promise<void>} resolved when the answer is shown */
  ask(request) {
    const kind = NEWEST_COUNTS.includes(request.do) ? `${request.do} ${request.name ?? ""}` : "";
    if (!kind) this.sendWaiting(); // earlier requests go first
    else if (this.isPending(kind)) {
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

  /** Stop the picture at once; it moves to the end of the run when the kernel has answered. */
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

  /** Handle an answer to this page or to another page of the same lab. @param {Frame} answer */
  take(answer) {
    if (this.closed) return;
    if (answer.busy) return this.wait(answer);
    const request = answer.client === this.client ? this.pending.get(answer.n) : undefined;
    /** @type {((value: void) => void)[]} */
    const done = [];
    if (request) {
      this.busy = "";
      for (const [n, { answered }] of this.pending) { // the kernel answers in order
        if (n > answer.n) continue;
        this.pending.delete(n);
        done.push(answered);
      }
      // The shortest trip is the connection's; longer trips waited for other work. The estimate slowly grows again.
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
      const earlier = request && answer.n <= this.began; // requested before the clock began to play
      if (frame.stop && this.playing && !earlier) {
        this.playing = false;
        this.changed(false);
      }
    }
    // Answers to the reader's requests are shown at once, with all frames before them.
    if (!this.playing ? !this.pending.size || request?.kind !== PLAY : !playing) {
      const frames = this.queue.splice(0).map((each) => each.frame);
      if (frames.length) this.show(frames);
    }
    for (const answered of done) answered();
    this.sendWaiting((kind) => !this.isPending(kind));
    if (this.playing) this.fill();
  }

  /** Handle the notice that the kernel will answer a request when a cell has ended. @param {Frame} notice */
  wait(notice) {
    if (notice.client !== this.client) return;
    this.busy = notice.busy;
    this.noticedAt = performance.now();
    const [frame] = notice.frames;
    if (frame && this.last < 0) {
      this.last = frame.f;
      this.show([frame]);
    }
    this.remind();
  }

  /** The time for which a frame is shown, in ms. */
  get every() {
    if (this.rate === null) return Math.max(this.work / SLICES, 1000 / 60);
    return this.rate === 0 ? STATEMENT : Math.max(1000 / this.rate, 1000 / 60);
  }

  // Internals

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
    else if (!this.queue.length && this.next < now - this.every && this.pending.size) {
      this.margin = Math.min(this.margin * 1.25 + 1, MOST_MARGIN); // frames were late: request more in advance
      this.next = now + MARGIN / 2;
    }
    this.fill();
    if (this.playing) this.ticking = requestAnimationFrame(() => this.tick());
  }

  /** Request frames for as long as a round trip lasts, but no more work than Pause may have to wait for. */
  fill() {
    let waiting = Math.max(this.next - performance.now(), 0);
    for (const { every } of this.queue) waiting += every;
    const spare = this.rate === null ? SPARE : MARGIN;
    const most = Math.min(MOST_PENDING, Math.ceil((this.trip + spare) / Math.max(this.work, 1)) + 1);
    let coming = 0;
    for (const request of this.pending.values()) coming += request.ms;
    while (this.playing && waiting + coming < this.trip + this.margin && this.pending.size < most) {
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
  isPending(kind) {
    return [...this.pending.values()].some((each) => each.kind === kind);
  }

  /** Send the waiting requests. @param {(kind: string) => boolean} [isFree] returns whether a kind can be sent now */
  sendWaiting(isFree = () => true) {
    for (const [kind, { request, resolve }] of this.waiting) {
      if (!isFree(kind)) continue;
      this.waiting.delete(kind);
      this.request(request, 0, kind).then(resolve);
    }
  }

  /** @param {Frame} request @param {number} ms of frames in its answer @param {string} kind */
  request(request, ms, kind) {
    if (this.closed) return Promise.resolve();
    const n = this.count += 1;
    const { promise, resolve } = /** @type {PromiseWithResolvers<void>} */ (Promise.withResolvers());
    this.pending.set(n, { sent: performance.now(), ms, kind, answered: resolve });
    this.send({ ...request, n, client: this.client });
    this.remind();
    return promise;
  }

  /** Report when the kernel does not answer, and try to reach it again at intervals. */
  remind() {
    clearTimeout(this.reminding);
    if (this.closed) return;
    if (!this.pending.size || this.working) return this.tell("");
    const now = performance.now();
    const [first] = this.pending.values();
    const silent = now - Math.max(first.sent, this.noticedAt);
    const unanswered = navigator.onLine === false ? OFFLINE : silent > LOST ? UNANSWERED : AT_WORK;
    this.tell(silent > LOST || (silent > SILENCE && !this.busy) ? unanswered : this.busy);
    if (silent > LOST && now - this.probed > PROBE) {
      this.probed = now;
      this.request({ do: "hello" }, 0, "");
    } else this.reminding = setTimeout(() => this.remind(), 500);
  }
}
