// @ts-check
import { Clock } from "../../gradlab/front/clock.js";
import { assert, assertEquals } from "./asserting.js";

/** @returns {{clock: Clock, sent: Record<string, any>[]}} a clock that never ticks by itself */
function newClock() {
  globalThis.requestAnimationFrame = () => 0;
  globalThis.cancelAnimationFrame = () => {};
  /** @type {Record<string, any>[]} */
  const sent = [];
  const nothing = () => {};
  const clock = new Clock({ send: (request) => sent.push(request), show: nothing, tell: nothing, changed: nothing });
  return { clock, sent };
}

/** @param {Record<string, any>} request @param {Record<string, any>} frame */
function answer(request, frame) {
  return { n: request.n, client: request.client, work: 0, frames: [{ whole: true, ...frame }] };
}

Deno.test("the answer to what was asked before Play does not end the playing", () => {
  const { clock, sent } = newClock();
  clock.ask({ do: "reset" });
  clock.play();
  clock.take(answer(sent[0], { f: 0, stop: true }));
  assert(clock.playing, "it plays on");
  clock.close();
});

Deno.test("a loop that ends while it is played ends the playing", () => {
  const { clock, sent } = newClock();
  clock.play();
  assertEquals(sent[0].do, "frames");
  clock.take(answer(sent[0], { f: 0, stop: true }));
  assert(!clock.playing, "it has ended");
  clock.close();
});

Deno.test("after a missed frame a whole one is asked for, and an old one is dropped", () => {
  const { clock, sent } = newClock();
  /** @type {number[]} */
  const shown = [];
  clock.show = (frames) => shown.push(...frames.map(({ f }) => f));
  const frames = [{ f: 0 }, { whole: false, f: 2 }, { f: 3 }, { whole: false, f: 4 }, { whole: false, f: 4 }];
  for (const [number, frame] of frames.entries()) {
    if (sent.length === number) clock.ask({ do: "statement" });
    clock.take(answer(sent[number], frame));
  }
  assertEquals(sent.map((request) => request.do), ["statement", "statement", "hello", "statement", "statement"]);
  assertEquals(shown, [0, 3, 4]);
  clock.close();
});

Deno.test("a promise tells when the answer has been shown, that to an earlier request with it", async () => {
  const { clock, sent } = newClock();
  /** @type {string[]} */
  const order = [];
  clock.show = () => order.push("shown");
  const both = ["one", "two"].map((name) => clock.ask({ do: "turn", name }).then(() => order.push(name)));
  clock.take(answer(sent[1], { f: 0 }));
  await Promise.all(both);
  assertEquals(order, ["shown", "one", "two"]);
  clock.close();
});

Deno.test("of turns of one switch one is on its way, the newest waits, and nothing overtakes it", async () => {
  const { clock, sent } = newClock();
  const turn = (/** @type {number} */ value) => clock.ask({ do: "turn", name: "lr", value });
  const all = [1, 2, 3].map(turn);
  assertEquals(sent.map(({ value }) => value), [1]);
  clock.take(answer(sent[0], { f: 0 }));
  assertEquals(sent.map(({ value }) => value), [1, 3]);
  turn(4);
  clock.ask({ do: "statement" });
  assertEquals(sent.slice(2).map((request) => request.do), ["turn", "statement"]);
  clock.take(answer(sent[3], { f: 1 }));
  await Promise.all(all);
  clock.close();
});

Deno.test("a notice that a cell runs is shown at once, with the frame, and nothing more is asked meanwhile", () => {
  const { clock, sent } = newClock();
  /** @type {string[]} */
  const told = [];
  /** @type {number[]} */
  const shown = [];
  clock.tell = (words) => told.push(words);
  clock.show = (frames) => shown.push(...frames.map((frame) => frame.f));
  clock.ask({ do: "hello" });
  clock.play();
  const asked = sent.length;
  for (const request of sent.slice()) clock.take({ ...answer(request, { f: 4 }), busy: "A cell is running." });
  assertEquals(told.at(-1), "A cell is running.");
  assertEquals(shown, [4]);
  assertEquals(sent.length, asked);
  assert(clock.playing, "it goes on after the cell");
  clock.take(answer(sent[0], { f: 5 }));
  clock.take({ ...answer(sent[asked - 1], { f: 6 }), frames: [{ f: 6 }] });
  assertEquals(told.at(-1), "");
  assertEquals(shown[1], 5);
  assert(sent.length > asked, "the next frames are asked for");
  clock.close();
});
