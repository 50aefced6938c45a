// @ts-check
import { Camera, motionBetween } from "../../gradlab/front/motion.js";
import { pointsOf } from "../../gradlab/front/wire.js";
import { assert, assertEquals } from "./asserting.js";

/** @typedef {import("../../gradlab/front/wire.js").Mark} Mark */
/** @typedef {import("../../gradlab/front/wire.js").PanelState} PanelState */

const LONG = 1000; // ms after which everything has arrived

/**
 * Return an arrow three points long, from one place to another.
 * @param {number} from
 * @param {number} to
 * @param {Partial<Mark>} [look]
 * @returns {Mark}
 */
function arrow(from, to, look = {}) {
  return { k: "p", p: [from, 10, to, 12, to, 8], fill: "fresh", moves: true, ...look };
}

/**
 * @param {Record<string, Mark>} marks by id
 * @returns {PanelState}
 */
function panelOf(marks) {
  const [ids, all] = [Object.keys(marks), Object.values(marks)];
  return { size: [400, 200], faint: false, zooms: false, plots: [], ids, marks: all };
}

/**
 * Return the points of the marks of this id, some of the way.
 * @param {PanelState} state
 * @param {string} id
 */
function placesOf(state, id) {
  return state.marks.filter((_, at) => state.ids[at] === id).map((mark) => [...pointsOf(mark)]);
}

Deno.test("a new arrow slides from where the first one begins to its own place", () => {
  const one = arrow(50, 100);
  const motion = motionBetween(
    panelOf({ "arrow 0": one }),
    panelOf({ "arrow 0": one, "arrow 1": arrow(100, 160) }),
    0,
  );
  assertEquals(placesOf(/** @type {any} */ (motion?.at(0)), "arrow 1"), [[50, 10, 110, 12, 110, 8]]);
  const [[x]] = placesOf(/** @type {any} */ (motion?.at(60)), "arrow 1");
  assert(x > 50 && x < 100, `on its way: ${x}`);
  assertEquals(placesOf(/** @type {any} */ (motion?.at(LONG)), "arrow 1"), [[100, 10, 160, 12, 160, 8]]);
  assertEquals(placesOf(/** @type {any} */ (motion?.at(60)), "arrow 0"), [[50, 10, 100, 12, 100, 8]]);
  assert(!motion?.isOver(100) && motion?.isOver(250), "between 120 and 250 ms");
});

Deno.test("what is gone is swept out, and fades", () => {
  const motion = motionBetween(panelOf({ sum: arrow(50, 100) }), panelOf({}), 0);
  const [before, later] = [motion?.at(0), motion?.at(150)].map((state) => /** @type {PanelState} */ (state).marks[0]);
  assertEquals([...pointsOf(before)], [50, 10, 100, 12, 100, 8]);
  assertEquals(before.alpha ?? 1, 1);
  assert(pointsOf(later)[0] > 60 && (later.alpha ?? 1) < 0.6, "on its way out");
});

Deno.test("what stays goes from place to place; what can be pressed is known by that", () => {
  const [from, to] = [arrow(50, 100, { press: "batch 3" }), arrow(90, 140, { press: "batch 3" })];
  const motion = motionBetween(panelOf({ "arrow 5": from }), panelOf({ "arrow 4": to }), 0);
  assertEquals(placesOf(/** @type {any} */ (motion?.at(0)), "arrow 4"), [[50, 10, 100, 12, 100, 8]]);
  const other = panelOf({ "arrow 5": arrow(90, 140, { press: "batch 4" }) });
  const ids = motionBetween(panelOf({ "arrow 5": from }), other, 0)?.at(50).ids;
  assertEquals(ids, ["arrow 5", "press batch 3"], "one comes, the other goes");
});

Deno.test("a new look comes over the old one", () => {
  const from = panelOf({ "arrow 0": arrow(50, 100) });
  const to = panelOf({ "arrow 0": arrow(50, 100, { fill: "reused", hatch: "//" }) });
  const marks = motionBetween(from, to, 0)?.at(115).marks ?? [];
  assertEquals(marks.map(({ fill, hatch, alpha }) => [fill, hatch ?? "", alpha ?? 1]), [["fresh", "", 1], [
    "reused",
    "//",
    0.5,
  ]]);
});

Deno.test("what a step has applied takes its new look on the spot", () => {
  const [from, to] = [
    panelOf({ sum: arrow(50, 100) }),
    panelOf({ sum: arrow(50, 100, { fill: "reused", hatch: "//" }) }),
  ];
  const marks = motionBetween(from, to, 0)?.at(115).marks ?? [];
  assertEquals(marks.map(({ fill, hatch }) => [fill ?? "", hatch ?? ""]), [["fresh", ""], ["reused", "//"]]);
  assertEquals(motionBetween(to, to, 0), null);
});

Deno.test("in a glide marks of the same name are between their places, and look as at the end", () => {
  const from = panelOf({ a: arrow(0, 40, { moves: undefined }), b: { k: "t", x: 10, y: 20, text: "same" } });
  const b = /** @type {Mark} */ ({ k: "t", x: 30, y: 40, text: "same" });
  const to = panelOf({ b, a: arrow(20, 80, { moves: undefined, fill: "reused" }), c: arrow(1, 9) });
  const motion = motionBetween(from, to, 0, true);
  const [half, end] = [47.4, LONG].map((now) => /** @type {PanelState} */ (motion?.at(now))); // half of the way
  assertEquals(half.ids, ["b", "a", "c"]);
  assertEquals([half.marks[0].x, half.marks[0].y].map((at) => Math.round(at ?? 0)), [20, 30]);
  assertEquals([half.marks[1].fill, Math.round(placesOf(half, "a")[0][2])], ["reused", 60]);
  assertEquals(half.marks[2], to.marks[2], "what is new is as at the end");
  assertEquals(placesOf(end, "a"), placesOf(to, "a"));
});

Deno.test("planes ease to other limits, axes of curves change at once", () => {
  const axes = (/** @type {number} */ high, equal = "fill") => [{ x: { low: 0, high }, y: { low: 0, high: 1 }, equal }];
  const camera = new Camera();
  camera.aim(axes(1), 0);
  assertEquals(camera.at(0), axes(1));
  camera.aim(axes(3), 1000);
  assertEquals(camera.at(1000)[0].x.high, 1);
  const between = camera.at(1100)[0].x.high;
  assert(between > 1 && between < 3, `${between}`);
  camera.aim(axes(3), 1200); // the same limits come again: it goes on
  assert(camera.isOver(1400), "over");
  assertEquals(camera.at(1400)[0].x.high, 3);
  camera.aim(axes(9), 2000, true);
  assertEquals(camera.at(2000)[0].x.high, 9);
  camera.aim(axes(20, ""), 3000);
  assertEquals(camera.at(3000)[0].x.high, 20);
});
