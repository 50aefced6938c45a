// @ts-check
import { layOut } from "../../gradlab/front/layout.js";
import { boxOf } from "../../gradlab/front/marks.js";
import { valueAt } from "../../gradlab/front/scales.js";
import { applyPanel, pointsOf } from "../../gradlab/front/wire.js";
import { assert, assertEquals } from "./asserting.js";
import { faultsOf, measureOf } from "./laid_out.js";

/** @typedef {import("../../gradlab/front/wire.js").Mark} Mark */

const EDGE = 1e300;
const X = { low: 0, high: 1000, words: "updates", ticks: "updates" };
const measure = measureOf(0.55);

/** @param {Record<string, any>} head @param {Record<string, any>} marks by id */
function panelOf(head, marks = {}) {
  return applyPanel(null, { title: "a panel", ids: Object.keys(marks), marks: Object.values(marks), ...head });
}

/** Return numbers of a kind for each of a count. @template T @param {number} count @param {(at: number) => T} make */
function times(count, make) {
  return Array.from({ length: count }, (_, at) => make(at));
}

const CURVE = times(1001, (at) => [at, 4 * Math.exp(-at / 300) + 0.1 * Math.sin(at)]).flat();
const CURVES = panelOf({
  title: "loss of a model with a long name",
  axes: [{ x: X, y: { low: 0, high: 5 }, zooms: true }],
  corner: ["now 0.31 after 1,000 updates", "now 0.31"],
  notes: [["a line below the title that is rather long for a phone", "a shorter line"]],
}, {
  spread: { k: "b", p: [0, 3, 5, 500, 1, 2, null, null, null, 600, 1, 2, 1000, 0.1, 0.2], fill: "grey/33" },
  loss: { k: "l", p: CURVE, stroke: "loss", readout: "update {x}: loss {y}" },
  gap: { k: "l", p: [0, 1, 100, 2, null, null, 200, -7, 300, 1e290], stroke: "ink" },
  now: { k: "d", p: [1000, 0.3], fill: "loss" },
  far: { k: "d", p: [2000, 0.3, 500, 2], fill: "loss" },
  ...Object.fromEntries(
    times(6, (at) => [`line ${at}`, { k: "l", p: [150 * at, -EDGE, 150 * at, EDGE], stroke: "grey" }]),
  ),
  ...Object.fromEntries(
    times(6, (at) => [`switch ${at}`, { k: "t", x: 150 * at, where: "top", texts: [`momentum 0.${at}`] }]),
  ),
  name: { k: "t", of: "loss", where: "beside", texts: ["without the switch (zero_grad off)", "without"], backed: true },
  here: { k: "t", x: 500, y: 2, texts: ["here it is 2"], bold: true, clear: true },
});
const PANELS = [
  CURVES,
  panelOf({ title: "nothing", axes: [{}], notice: "not measured batch by batch, for which there is a long reason" }),
  panelOf({ title: "small", axes: [{ x: { ...X, high: 1e-12, ticks: "number" }, y: { high: 3e-9, words: "loss" } }] }),
  panelOf({
    title: "large",
    axes: [{ x: { ...X, high: 2e12 }, y: { low: -4e298, high: 4e298, words: "a word for it" } }],
  }),
  panelOf(
    { title: "powers of ten", axes: [{ x: X, y: { low: 1e-9, high: 1e4, log: true } }], notice: "inf from update 7" },
    { loss: { k: "l", p: [1, 1e4, 500, 1e-9, 1000, 3], stroke: "loss" } },
  ),
  panelOf(
    { title: "less than a power", axes: [{ x: X, y: { low: 2, high: 7, log: true } }] },
    { loss: { k: "l", p: [1, 2, 500, 7], stroke: "loss" } },
  ),
  panelOf(
    { title: "many names", axes: [{ x: X, y: { high: 5 } }] },
    Object.fromEntries(times(30, (at) => [
      `name ${at}`,
      {
        k: "t",
        x: 900,
        y: at < 20 ? 2 : 5,
        where: "margin",
        texts: [`a run with momentum 0.${at}`, `run ${at}`],
        size: 13,
      },
    ])),
  ),
  panelOf({
    title: "two plots",
    axes: [{ x: { ...X, words: undefined, ticks: "lines" }, y: { low: 0, high: 16, ticks: "powers" } }, {
      ...{ x: X, y: { ticks: "shares" }, share: 0.25, caption: "would underflow without scaling" },
    }],
    corner: ["× 12 steps skipped"],
  }, {
    scale: { k: "l", p: [0, 16, 400, 16, 400, 15, 1000, 15], stroke: "scale" },
    share: { k: "l", p: [0, 0.2, 1000, 0.7], stroke: "gradients", axes: 1 },
    name: {
      k: "t",
      x: 1000,
      y: 0.7,
      where: "margin",
      texts: ["a share"],
      axes: 1,
      swatch: { texts: ["a"], fill: "ink" },
    },
  }),
  panelOf({
    title: "memory of one update",
    axes: [{
      x: {
        ticks: "none",
        high: 8,
        words: "statements of the loop",
        spans: times(8, (at) => [at, at + 1, [`statement_${at}()`, `s${at}`], at % 3, false])
          .concat([[1, 3, ["12 microbatches", "12 ×"], 0, true]]),
      },
      y: { high: 9e8, ticks: "bytes" },
    }],
    key: times(5, (at) => ({ texts: [`a kind of memory ${at}`, `kind ${at}`], fill: "memory" })),
  }, {
    column: { k: "a", p: [2, -EDGE, 3, -EDGE, 3, EDGE, 2, EDGE], fill: "paper", words: "backward" },
    held: { k: "a", p: [0, 0, 0, 3e8, 8, 5e8, 8, 0], fill: "memory", stroke: "ink" },
    limit: { k: "t", x: 8, y: 8e8, where: "left above", texts: ["the limit of the GPU: 800 MB", "limit"] },
  }),
  panelOf({
    title: "slanted",
    axes: [{
      x: {
        ticks: "slanted",
        high: 12,
        words: "layers",
        spans: times(12, (at) => [at, at + 1, [`encoder.layers.${at}.weight`], 0, false]),
      },
      y: { low: -3, high: 3 },
    }],
  }, { norms: { k: "d", p: times(12, (at) => [at + 0.5, at / 4]).flat(), shape: "cross", stroke: "ink" } }),
  panelOf({
    title: "gradient in .grad",
    axes: [{
      x: { low: -1, high: 3, words: "along the sum" },
      y: { low: -1, high: 1, words: "across" },
      equal: "fill",
    }],
    corner: ["holds 1–8 · arrows × 20", "arrows × 20"],
    key: [["fresh"], ["applied again", "again"], ["their sum, .grad", "sum"]].map((texts) => ({
      texts,
      fill: "fresh",
    })),
  }, {
    ...Object.fromEntries(
      times(8, (at) => [`arrow ${at}`, { k: "v", p: [at / 4, at / 9, at / 4 + 0.25, at / 9 + 0.1], fill: "fresh" }]),
    ),
    none: { k: "v", p: [1, 1, 1, 1] },
    ...Object.fromEntries(
      times(8, (at) => [`name ${at}`, { k: "t", of: `arrow ${at}`, where: "beside", texts: [`${at}: 16%`, `${at}`] }]),
    ),
  }),
  panelOf({
    title: "path of the weights",
    axes: [{ x: { low: -3, high: 3, words: "slope" }, y: { low: -2, high: 2, words: "bias" }, equal: "fit" }],
    notice: "weights at 1.3e30, −4e28, outside this picture",
  }, {
    contour: { k: "l", p: times(65, (at) => [2 * Math.cos(at / 10), 1.5 * Math.sin(at / 10)]).flat(), stroke: "grey" },
    level: { k: "t", of: "contour", where: "on", texts: ["0.5"], size: 11, backed: true },
    digit: { k: "i", p: [-1, -1, 1, 1], columns: 2, cells: "0110", palette: ["ink", "paper"] },
    now: { k: "d", p: [0, 0], drag: "weights" },
    word: { k: "t", x: 0, y: 0, texts: ["now"] },
  }),
  panelOf(
    { title: "no axes", axes: [{ x: { high: 4, ticks: "none" }, y: { high: 3, ticks: "none" }, equal: "fit" }] },
    {
      box: { k: "a", p: [0, 0, 4, 0, 4, 3, 0, 3], stroke: "ink" },
      word: { k: "t", x: 2, y: 1.5, where: "center", texts: ["loss.backward()"] },
    },
  ),
];

for (const panel of PANELS) {
  Deno.test(`texts, ticks and points of "${panel.title}" are right at all sizes`, () => {
    assertEquals(faultsOf(panel).slice(0, 9), []);
    if (panel.axes[0].zooms) assertEquals(faultsOf(panel, [400, 430]).slice(0, 9), []);
  });
}

Deno.test("what has not changed is the same object, and so is what it is painted from", () => {
  const [one, other] = [CURVES, { ...CURVES, marks: CURVES.marks.with(3, { k: "d", p: [999, 0.4], fill: "loss" }) }]
    .map(
      (panel) => layOut(panel, [600, 260], measure),
    );
  const same = (/** @type {string} */ id) => one.marks[one.ids.indexOf(id)] === other.marks[other.ids.indexOf(id)];
  assertEquals(["spread", "loss", "line 3", "now"].map(same), [true, true, true, false]);
  assert(
    layOut(CURVES, [601, 260], measure).marks[one.ids.indexOf("loss")] !== one.marks[one.ids.indexOf("loss")],
    "wider",
  );
});

Deno.test("a range fills the axes, with what lies in it from bottom to top", () => {
  const { plots: [{ x, y, left, right }], marks, ids } = layOut(CURVES, [600, 260], measure, [400, 430]);
  assertEquals([left, right].map((place) => Math.round(valueAt(x, place))), [400, 430]);
  assert(y.axis.low < 0.85 && y.axis.high > 1.1 && y.axis.high < 3, JSON.stringify(y.axis));
  const texts = marks.filter(({ k }, at) => k === "t" && ids[at].startsWith("switch")).map(({ text }) => text);
  assertEquals(texts, [], "names of switches outside of it are not there");
  assertEquals([...pointsOf(marks[ids.indexOf("now")])], [NaN, NaN], "nor are dots");
});

Deno.test("a unit is as long along both axes, where that is wanted", () => {
  for (const panel of PANELS.filter(({ axes: [{ equal }] }) => equal)) {
    const [{ x, y }] = layOut(panel, [500, 300], measure).plots;
    assert(Math.abs(x.per_pixel + y.per_pixel) < 1e-9, `${x.per_pixel}, ${y.per_pixel}`);
  }
});

Deno.test("words at the right have a margin of their width, those of a mark go with it", () => {
  const { marks, ids, plots } = layOut(PANELS[6], [900, 500], measure);
  const box = boxOf(marks[ids.indexOf("name 3")]);
  assert(box[0] > plots[0].right && box[2] < 900, String(box));
  assertEquals(marks[ids.indexOf("name 3")].text, "a run with momentum 0.3");
});
