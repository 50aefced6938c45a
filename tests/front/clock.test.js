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
