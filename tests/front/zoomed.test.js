// @ts-check
import { RecordedView } from "../../gradlab/front/recorded_view.js";
import { axisValue, pointsOf } from "../../gradlab/front/wire.js";
import { groundRange, zoomedPanel } from "../../gradlab/front/zoomed.js";
import { assertEquals } from "./asserting.js";

/** @typedef {import("../../gradlab/front/wire.js").PanelState} PanelState */

/** Updates 0 to 100 from x = 50 to 250, losses 0 to 4 from y = 200 down to 0: the loss falls from 4 at update 0 to 2 at 100. */
const X = { start: -25, per_pixel: 0.5 };
const Y = { start: 4, per_pixel: -0.02 };
/** @type {PanelState} */
const PANEL = {
  size: [300, 240],
  title: "loss",
  words: "",
  ids: ["title", "axes", "axes x0", "axes y0", "axes x", "spread", "loss", "now", "switch 0", "switch name 0", "zoom"],
  marks: [
    { k: "t", x: 8, y: -10, text: "loss" },
    { k: "p", p: [200, 0, 0, 800, 800, 0], stroke: "grey" },
    { k: "t", x: 50, y: 215, text: "0", anchor: "middle" },
    { k: "t", x: 43, y: 200, text: "0", anchor: "end" },
    { k: "t", x: 150, y: 230, text: "updates", anchor: "middle" },
    { k: "b", p: [200, 0, 40, 800, 400, 0], fill: "grey/33" },
    { k: "p", p: [200, 0, 800, 400], stroke: "loss", readout: { words: "{x} {y}", x: X, y: Y } },
    { k: "d", p: [1000, 400], fill: "loss" },
    { k: "p", p: [600, 800, 0, -800], stroke: "grey", words: "update 50: zero_grad off" },
    { k: "t", x: 155, y: 8, text: "off" },
    { k: "p", p: [200, 0, 800, 0, 0, 800, -800, 0], drag: { name: "zoom", x: X, y: Y } },
  ],
};

/** @param {PanelState} panel @param {string} id */
function markOf(panel, id) {
  return panel.marks[panel.ids.indexOf(id)];
}

/** The values of a mark's points, read on the axes of the ground. @param {PanelState} panel @param {string} id */
function valuesOf(panel, id) {
  const { x, y } = /** @type {import("../../gradlab/front/wire.js").Drag} */ (markOf(panel, "zoom").drag);
  return [...pointsOf(markOf(panel, id))].map((place, at) => Number(axisValue(at % 2 ? y : x, place).toFixed(6)));
}

Deno.test("a range fills the ground, and what is read there is what was read before", () => {
  const zoomed = zoomedPanel(PANEL, [40, 60]);
  assertEquals(groundRange(zoomed)?.map(Math.round), [40, 60]);
  assertEquals(valuesOf(zoomed, "loss"), [40, 3.2, 60, 2.8], "cut where the range begins and ends");
  const places = [...pointsOf(markOf(zoomed, "loss"))];
  assertEquals([places[0], places[2]].map(Math.round), [50, 250]);
  assertEquals(markOf(zoomed, "loss").readout?.x, markOf(zoomed, "zoom").drag?.x);
  assertEquals(valuesOf(zoomed, "switch 0").filter((_, at) => at % 2 === 0), [50, 50]);
  assertEquals([...pointsOf(markOf(zoomed, "switch 0"))].filter((_, at) => at % 2), [200, 0], "from bottom to top");
  assertEquals(valuesOf(PANEL, "loss"), [0, 4, 100, 2], "the panel itself is as it was");
});

Deno.test("what is seen of the curves fills the height, and nothing leaves it", () => {
  const zoomed = zoomedPanel(PANEL, [40, 60]);
  const heights = [...pointsOf(markOf(zoomed, "spread"))].filter((_, at) => at % 3);
  assertEquals([Math.min(...heights) >= 0, Math.max(...heights) <= 200], [true, true]);
  const [top, bottom] = [Math.min(...heights), Math.max(...heights)];
  assertEquals(bottom - top > 120, true, `${top} to ${bottom}`);
  assertEquals(markOf(zoomed, "now"), undefined, "the newest point lies outside");
});

Deno.test("ticks are made anew, at round numbers within the range", () => {
  const zoomed = zoomedPanel(PANEL, [40, 60]);
  const texts = (/** @type {string} */ side) =>
    zoomed.marks.filter((_, at) => zoomed.ids[at].match(`^axes ${side}[0-9]`)).map(({ text }) => text);
  assertEquals(texts("x"), ["40", "50", "60"]);
  assertEquals(texts("y"), ["3", "3.5"]);
  assertEquals(markOf(zoomed, "axes x").text, "updates");
  assertEquals(markOf(zoomed, "title"), markOf(PANEL, "title"));
});

Deno.test("the name of a switch goes with its line, to its other side at the edge, and goes with it", () => {
  const at = (/** @type {[number, number]} */ range) => markOf(zoomedPanel(PANEL, range), "switch name 0");
  assertEquals([at([40, 60]).x, at([40, 60]).y], [155, 8]);
  assertEquals([at([30, 50.5]).anchor, Math.round(at([30, 50.5]).x ?? 0)], ["end", 240]);
  assertEquals(at([60, 90]), undefined);
});

Deno.test("a panel without a ground is as it was, and so is one with nothing in the range", () => {
  const plain = { ...PANEL, ids: PANEL.ids.slice(0, -1), marks: PANEL.marks.slice(0, -1) };
  assertEquals(zoomedPanel(plain, [1, 2]) === plain, true);
  const empty = zoomedPanel(
    { ...PANEL, marks: PANEL.marks.map((mark) => mark.k === "b" ? { ...mark, p: [] } : mark) },
    [
      120,
      140,
    ],
  );
  assertEquals(markOf(empty, "loss"), undefined);
  assertEquals(markOf(empty, "zoom").drag?.y, Y);
});

Deno.test("a logarithmic axis keeps its powers, or gets steps where it shows less than one", () => {
  const log = { start: 2, per_pixel: -0.02, log: true }; // 100 at the top, 0.01 at the bottom
  const marks = PANEL.marks.map((mark) => mark.drag ? { ...mark, drag: { ...mark.drag, y: log } } : mark);
  const zoomed = zoomedPanel({ ...PANEL, marks }, [40, 60]);
  const texts = zoomed.marks.filter((_, at) => zoomed.ids[at].match("^axes y[0-9]")).map(({ text }) => text);
  assertEquals(texts, ["10"]);
  assertEquals(markOf(zoomed, "zoom").drag?.y.log, true);
});

Deno.test("a view keeps its range within the panel, and shows all where there is no more", () => {
  const view = new RecordedView();
  assertEquals(view.of({ loss: PANEL }).loss === PANEL, true);
  view.zoom({ loss: PANEL }, 90, 130);
  assertEquals(view.range, [60, 100]);
  const seen = view.of({ loss: PANEL }).loss;
  assertEquals(view.of({ loss: PANEL }).loss === seen, true, "the same state is painted once");
  view.zoom({ loss: PANEL }, 50, 50.5);
  assertEquals(view.range, [49.25, 51.25]);
  view.zoom({ loss: PANEL }, -20, 140);
  assertEquals(view.range, null);
  view.zoom({ loss: PANEL }, 10, 20);
  view.zoom({ loss: PANEL });
  assertEquals(view.range, null);
});
