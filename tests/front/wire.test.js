// @ts-check
import { applyPanel, pointsOf } from "../../gradlab/front/wire.js";
import { assert, assertEquals, assertThrows } from "./asserting.js";

const PANEL = {
  title: "loss",
  axes: [{ x: { high: 10 } }],
  ids: ["curve", "name"],
  marks: [{ k: "l", p: [1, 2, null, null, 2, 1], stroke: "loss", words: "the loss" }, {
    k: "t",
    x: 1,
    texts: ["now 0.5"],
  }],
};
const before = applyPanel(null, PANEL);

Deno.test("what is at its default is filled in, and a lifted pen is NaN", () => {
  assertEquals(before.axes, [{ x: { low: 0, high: 10 }, y: { low: 0, high: 1 } }]);
  assertEquals(applyPanel(null, { title: "bare", ids: [], marks: [] }).axes[0].y, { low: 0, high: 1 });
  assert(Number.isNaN(pointsOf(before.marks[0])[2]), "the pen is lifted");
  assert(pointsOf(before.marks[0]) === pointsOf(before.marks[0]), "points are decoded once a mark");
});

Deno.test("a change adds points, sets fields, takes fields away, and leaves the state before as it was", () => {
  const was = JSON.stringify(before);
  const after = applyPanel(before, { corner: ["now 3"], set: [[0, { p: [5, 8, 0], stroke: "ink", words: null }]] });
  assertEquals(after.marks[0], { k: "l", p: [1, 2, null, null, 2, 8, 0], stroke: "ink" });
  assert(after.marks[1] === before.marks[1], "a mark that stays is the same object: what was made of it is kept");
  assertEquals([after.corner, applyPanel(after, { corner: null }).corner], [["now 3"], undefined]);
  assertEquals(applyPanel(after, { axes: [{ y: { high: 2 } }] }).axes[0].y, { low: 0, high: 2 });
  assertEquals(JSON.stringify(before), was);
});

Deno.test("marks come, go and change places by their ids", () => {
  const after = applyPanel(before, { ids: ["name", "dot"], set: [[1, { k: "d", p: [1, 1] }]] });
  assertEquals(after.marks, [before.marks[1], { k: "d", p: [1, 1] }]);
  assertThrows(() => applyPanel(null, { words: "x" }), /nothing is known/);
});
