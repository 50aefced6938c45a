// @ts-check
import { panelBetween } from "../../gradlab/front/morph.js";
import { pointsOf } from "../../gradlab/front/wire.js";
import { assertEquals } from "./asserting.js";

/** @typedef {import("../../gradlab/front/wire.js").Mark} Mark */

/**
 * @param {Record<string, Mark>} marks
 * @param {[number, number]} size
 */
function panel(marks, size = [400, 200]) {
  return { size, title: "t", words: "w", ids: Object.keys(marks), marks: Object.values(marks) };
}

/** @param {(number | null)[]} p @returns {Mark} */
function path(...p) {
  return { k: "p", stroke: "ink", p };
}

Deno.test("marks of the same name are between their places, and look as at the end", () => {
  const from = panel({ a: path(0, 0, 40, 40), b: { k: "t", x: 10, y: 20, text: "same" } });
  const to = panel({ b: { k: "t", x: 30, y: 40, text: "same" }, a: { ...path(40, 80, 40, 0), stroke: "stale" } });
  const half = panelBetween(from, to, 0.5);
  assertEquals(half.ids, ["b", "a"]);
  assertEquals([half.marks[0].x, half.marks[0].y], [20, 30]);
  assertEquals(half.marks[1].stroke, "stale");
  assertEquals([...pointsOf(half.marks[1])], [5, 10, 15, 15]); // sent in quarters: (0, 0), (10, 10) to (10, 20), (20, 20)
  assertEquals([...pointsOf(panelBetween(from, to, 1).marks[1])], [10, 20, 20, 20]);
});

Deno.test("what is new, has another text or is lifted is as at the end", () => {
  const from = panel({ a: path(0, 0, null, 40, 40), b: { k: "t", x: 0, y: 0, text: "0.1" } });
  const to = panel({ a: path(40, 40, 40, 40, 40, 40), b: { k: "t", x: 8, y: 0, text: "0.2" }, c: path(4, 4) });
  const half = panelBetween(from, to, 0.5);
  assertEquals(half.marks[1].x, 8);
  assertEquals(half.marks[2], to.marks[2]);
  assertEquals([...pointsOf(half.marks[0])], [5, 5, 20, 20, 20, 20]);
});

Deno.test("a panel of another size is not morphed", () => {
  const to = panel({ a: path(40, 40) }, [500, 200]);
  assertEquals(panelBetween(panel({ a: path(0, 0) }), to, 0.5), to);
});
