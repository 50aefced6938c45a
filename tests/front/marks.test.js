// @ts-check
import { boxOf, markAt, meantAt } from "../../gradlab/front/marks.js";
import { assertEquals } from "./asserting.js";

/** @typedef {import("../../gradlab/front/wire.js").Mark} Mark */

const AXIS = { start: 0, per_pixel: 1 };
const READOUT = { words: "update {x}: loss {y}", x: AXIS, y: { start: 100, per_pixel: -1 } };

/**
 * @param {Mark[]} marks
 * @returns {import("../../gradlab/front/wire.js").PanelState}
 */
function panelOf(...marks) {
  return { size: [200, 100], title: "t", words: "", ids: marks.map((_, index) => String(index)), marks };
}

/** @param {number[]} places in pixels, as they are sent */
function sent(...places) {
  return places.map((place, at) => 4 * (at < 2 ? place : place - places[at - 2]));
}

Deno.test("the nearest point of a curve is read on its axes", () => {
  const panel = panelOf({ k: "p", p: sent(10, 50, 20, 40, 30, 60), stroke: "loss", readout: READOUT });
  const found = markAt(panel, 21, 35);
  assertEquals([found?.index, found?.point, found?.words, found?.x, found?.y], [0, 1, "update 20: loss 60", 20, 40]);
  assertEquals(markAt(panel, 100, 90), null);
});

Deno.test("a line in an area comes before the area, and of two areas the topmost", () => {
  const square = sent(0, 0, 100, 0, 100, 100, 0, 100);
  const panel = panelOf(
    { k: "p", p: sent(0, 50, 100, 50), stroke: "ink", words: "line" },
    { k: "p", p: square, fill: "weights", words: "lower" },
    { k: "p", p: square, fill: "weights", words: "upper" },
    { k: "p", p: square, fill: "weights" },
  );
  assertEquals(markAt(panel, 50, 45)?.words, "line");
  assertEquals(markAt(panel, 50, 20)?.words, "upper");
});

Deno.test("a band is met between its edges", () => {
  const panel = panelOf({ k: "b", p: [0, 320, 80, 400, 0, 160], fill: "grey", words: "spread" });
  assertEquals(markAt(panel, 50, 40)?.words, "spread");
  assertEquals(markAt(panel, 50, 20), null);
  assertEquals(boxOf(panel.marks[0]), [0, 20, 100, 80]);
});

Deno.test("cells, texts and dots are met where they are", () => {
  const panel = panelOf(
    {
      k: "i",
      x: 100,
      y: 0,
      width: 40,
      height: 40,
      columns: 2,
      cells: "0110",
      palette: ["ink", "paper"],
      words: "digit",
    },
    { k: "t", x: 20, y: 80, text: "older", words: "older batches" },
    { k: "d", p: sent(180, 80), size: 20, words: "now" },
  );
  assertEquals([[120, 20], [30, 82], [199, 80]].map(([x, y]) => markAt(panel, x, y)?.words), [
    "digit",
    "older batches",
    "now",
  ]);
});

Deno.test("of a curve the point above or below is meant, of other lines only what is near", () => {
  const panel = panelOf(
    { k: "p", p: sent(10, 50, 20, 40, 30, 60), stroke: "loss", readout: READOUT },
    { k: "p", p: sent(10, 90, 30, 80, 20, 70), stroke: "weights", readout: READOUT }, // goes back: no curve
  );
  assertEquals([[21, 30], [150, 40], [2, 44]].map(([x, y]) => meantAt(panel, x, y, 0)?.x), [20, 30, 10]);
  assertEquals(meantAt(panel, 20, 10, 0), null, "at the title");
});

Deno.test("a column of a chart is met anywhere above or below what it speaks of", () => {
  const column = (/** @type {number} */ left, /** @type {string} */ words) => /** @type {Mark} */ ({
    k: "p",
    p: sent(left, 30, left + 40, 30, left + 40, 95, left, 95),
    fill: "paper",
    words,
  });
  const panel = panelOf(column(50, "backward"), column(90, "step"));
  assertEquals([[60, 50], [120, 90], [190, 60], [5, 60]].map(([x, y]) => meantAt(panel, x, y, 0)?.words), [
    "backward",
    "step",
    "step",
    "backward",
  ]);
});

Deno.test("an arrow is met from afar, the nearest one; inside, the one in front", () => {
  const arrow = (/** @type {number} */ y, /** @type {string} */ words) => /** @type {Mark} */ ({
    k: "p",
    p: sent(50, y - 4, 100, y - 4, 100, y + 4, 50, y + 4),
    fill: "fresh",
    moves: true,
    words,
  });
  const panel = panelOf({ ...arrow(60, "sum"), p: sent(40, 40, 110, 40, 110, 80, 40, 80) }, arrow(60, "batch 3"));
  assertEquals([[75, 60], [75, 44], [75, 95], [150, 60]].map(([x, y]) => meantAt(panel, x, y, 0)?.words), [
    "batch 3",
    "sum",
    "sum",
    "sum",
  ]);
  assertEquals(meantAt(panelOf(arrow(60, "batch 3")), 190, 60, 0), null, "too far");
  const contour = /** @type {Mark} */ ({ k: "p", p: sent(75, 0, 75, 100), stroke: "grey", words: "loss 0.5" });
  assertEquals([59, 70].map((y) => meantAt(panelOf(contour, arrow(60, "batch 3")), 75, y, 0)?.words), [
    "batch 3",
    "loss 0.5",
  ], "on the arrow, and beside it on a line");
});

Deno.test("what can be moved is grabbed before all else", () => {
  const drag = { name: "weights", x: AXIS, y: AXIS };
  const panel = panelOf(
    { k: "d", p: sent(50, 60), size: 10, fill: "weights", drag },
    { k: "p", p: sent(60, 0, 60, 100), stroke: "ink", words: "contour" },
  );
  assertEquals([16, 0].map((grab) => meantAt(panel, 62, 60, grab)?.words), ["", "contour"]);
});
