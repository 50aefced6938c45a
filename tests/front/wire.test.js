// @ts-check
import { applyPanel, axisValue, pointsOf } from "../../gradlab/front/wire.js";
import { assert, assertEquals, assertThrows } from "./asserting.js";

/** @typedef {import("../../gradlab/front/wire.js").PanelState} PanelState */

/** @returns {PanelState} */
function panel() {
  return {
    size: [400, 260],
    title: "loss",
    words: "",
    ids: ["curve", "name"],
    marks: [
      { k: "p", p: [4, 8, 4, -4], stroke: "loss", words: "the loss" },
      { k: "t", x: 1, y: 2, text: "now 0.5" },
    ],
  };
}

Deno.test("a point is the difference from the one before it, in quarters of a pixel", () => {
  assertEquals([...pointsOf(panel().marks[0])], [1, 2, 2, 1]);
});

Deno.test("after a lifted pen places are counted from 0 again", () => {
  const points = pointsOf({ k: "p", p: [4, 8, null, 40, 40, 4, 4] });
  assertEquals([...points], [1, 2, null, null, 10, 10, 11, 11].map((number) => number ?? NaN));
  assert(Number.isNaN(points[2]) && Number.isNaN(points[3]), "the pen is lifted");
});

Deno.test("a band has three numbers a point, also after a lifted pen", () => {
  const points = pointsOf({ k: "b", p: [4, 8, 4, 4, 0, 0, null, 8, 8, 8] });
  assertEquals([...points], [1, 2, 1, 2, 2, 1, NaN, NaN, NaN, 2, 2, 2]);
});

Deno.test("a change adds points, sets fields, takes fields away, and leaves the state before as it was", () => {
  const before = panel();
  const after = applyPanel(before, {
    words: "The loss falls.",
    set: [[0, { p: [2, 8, 0], stroke: "ink", words: null }]],
  });
  assertEquals(after.marks[0], { k: "p", p: [4, 8, 8, 0], stroke: "ink" });
  assertEquals(after.words, "The loss falls.");
  assert(after.marks[1] === before.marks[1], "a mark that stays is the same object: what was made of it is kept");
  assertEquals(before, panel());
  assertEquals([...pointsOf(after.marks[0])], [1, 2, 3, 2]);
});

Deno.test("points are decoded once a mark", () => {
  const [mark] = panel().marks;
  assert(pointsOf(mark) === pointsOf(mark), "the same array");
});

Deno.test("a whole panel needs none before it, a change does", () => {
  assertEquals(applyPanel(null, panel()), panel());
  assertThrows(() => applyPanel(null, { words: "x" }), /nothing is known/);
});

Deno.test("an axis reads a place, also in powers of ten", () => {
  assertEquals(axisValue({ start: 2, per_pixel: 0.5 }, 10), 7);
  assertEquals(axisValue({ start: 2, per_pixel: -0.5, log: true }, 10), 0.001);
});
