// @ts-check
import { boxOf, foundAt, meantAt, pointNumbers } from "../../gradlab/front/marks.js";
import { assertEquals } from "./asserting.js";

/** @typedef {import("../../gradlab/front/wire.js").Mark} Mark */

/** @param {Mark[]} marks @returns {import("../../gradlab/front/wire.js").PanelState} */
function panelOf(...marks) {
  const ids = marks.map((_, index) => String(index));
  return { size: [200, 100], faint: false, zooms: false, plots: [], ids, marks };
}

/** Return a line that is read as twice its places. @param {number[]} p @param {Partial<Mark>} [more] @returns {Mark} */
function curve(p, more) {
  return {
    k: "p",
    p,
    data: Float64Array.from(p, (x) => 2 * x),
    stroke: "loss",
    readout: "update {x}: loss {y}",
    ...more,
  };
}

/** @param {Mark[]} marks @param {[number, number][]} places */
function wordsAt(marks, ...places) {
  return places.map(([x, y]) => meantAt(panelOf(...marks), x, y, 0)?.words ?? null);
}

Deno.test("of a curve the point above or below is meant and read, of other lines only what is near", () => {
  const marks = [curve([10, 50, 20, 40, 30, 60]), curve([10, 90, 30, 80, 20, 70], { readout: "it goes back" })];
  assertEquals(wordsAt(marks, [21, 35], [150, 40], [2, 44], [20, 10]), [
    "update 40: loss 80",
    "update 60: loss 120",
    "update 20: loss 100",
    null, // at the title
  ]);
  assertEquals(wordsAt(marks, [21, 72]), ["it goes back"]);
});

Deno.test("points outside of the axes are met neither by the pointer nor by the keys", () => {
  const line = curve([-50, 50, 20, 40, 30, -60, 190, 50], { clip: [10, 30, 100, 90] });
  assertEquals(pointNumbers(line), [1]);
  assertEquals(wordsAt([line], [180, 50], [20, 90]), ["update 40: loss 80", "update 40: loss 80"]);
  const contour = /** @type {Mark} */ ({ ...line, readout: "", words: "loss 0.5" });
  assertEquals(wordsAt([contour], [22, 36], [190, 50]), ["loss 0.5", null]);
  const area =
    /** @type {Mark} */ ({ k: "p", p: [0, 30, 200, 30, 200, 90, 0, 90], fill: "ink", words: "area", clip: line.clip });
  assertEquals(wordsAt([area], [50, 50], [150, 50]), ["area", null]);
});

Deno.test("a line in an area comes before the area, and of two areas the topmost", () => {
  const square = /** @type {Mark} */ ({ k: "p", p: [0, 0, 100, 0, 100, 100, 0, 100], fill: "weights" });
  const line = /** @type {Mark} */ ({ k: "p", p: [0, 50, 100, 50], stroke: "ink", words: "line" });
  const marks = [line, { ...square, words: "lower" }, { ...square, words: "upper" }, square];
  assertEquals(wordsAt(marks, [50, 45], [50, 80]), ["line", "upper"]);
});

Deno.test("areas, cells, texts and dots are met where they are", () => {
  const band = /** @type {Mark} */ ({ k: "p", p: [0, 80, 100, 80, 100, 40, 0, 60], fill: "grey", words: "spread" });
  const cells =
    /** @type {Mark} */ ({ k: "i", x: 100, y: 30, width: 40, height: 40, columns: 2, cells: "0110", words: "digit" });
  const text = /** @type {Mark} */ ({ k: "t", x: 120, y: 80, width: 30, text: "older", words: "older batches" });
  const dot = /** @type {Mark} */ ({ k: "d", p: [180, 80], size: 20, words: "now" });
  const places = /** @type {[number, number][]} */ ([[50, 70], [50, 40], [120, 50], [130, 82], [199, 80]]);
  assertEquals(wordsAt([band, cells, text, dot], ...places), ["spread", null, "digit", "older batches", "now"]);
  assertEquals(boxOf(band), [0, 40, 100, 80]);
  assertEquals(foundAt(panelOf({ ...dot, readout: "{x}", data: Float64Array.of(3, 4) }), 0, 0).words, "3\nnow");
  const turned = boxOf({ ...text, angle: 90, anchor: "end", size: 10 }).map(Math.round);
  assertEquals(turned, [114, 80, 126, 110], "a text that is turned");
});

Deno.test("a column of a chart is met anywhere above or below what it speaks of", () => {
  const column = (/** @type {number} */ left, /** @type {string} */ words) => /** @type {Mark} */ ({
    k: "p",
    p: [left, 30, left + 40, 30, left + 40, 95, left, 95],
    fill: "paper",
    words,
  });
  const columns = [column(50, "backward"), column(90, "step")];
  assertEquals(wordsAt(columns, [60, 50], [120, 90], [190, 60], [5, 60]), ["backward", "step", "step", "backward"]);
});

Deno.test("an arrow is met from afar, the nearest one; inside, the one in front", () => {
  const box = (/** @type {number[]} */ [l, t, r, b]) => [l, t, r, t, r, b, l, b];
  const sum = /** @type {Mark} */ ({ k: "p", p: box([40, 40, 110, 80]), fill: "fresh", moves: true, words: "sum" });
  const batch = /** @type {Mark} */ ({ ...sum, p: box([50, 56, 100, 64]), words: "batch 3" });
  assertEquals(wordsAt([sum, batch], [75, 60], [75, 44], [75, 95], [150, 60]), ["batch 3", "sum", "sum", "sum"]);
  assertEquals(wordsAt([batch], [190, 60]), [null], "too far");
  const contour = /** @type {Mark} */ ({ k: "p", p: [75, 0, 75, 100], stroke: "grey", words: "loss 0.5" });
  assertEquals(wordsAt([contour, batch], [75, 59], [75, 70]), ["batch 3", "loss 0.5"], "beside it on a line");
});

Deno.test("what can be moved is grabbed before all else", () => {
  const dot = /** @type {Mark} */ ({ k: "d", p: [50, 60], size: 10, fill: "weights", drag: "weights" });
  const panel = panelOf(dot, { k: "p", p: [60, 0, 60, 100], stroke: "ink", words: "contour" });
  assertEquals([16, 0].map((grab) => meantAt(panel, 62, 60, grab)?.words), ["", "contour"]);
});
