// @ts-check
import { freePlace } from "../../gradlab/front/tip.js";
import { assert } from "./asserting.js";

const SCALE = { start: 0, per_pixel: 1, log: false, axis: { low: 0, high: 1 }, ends: [0, 1] };

/** A falling curve in a panel of 400 x 200, with a peak of dots at its left end. @type {import("../../gradlab/front/wire.js").PanelState} */
const FALLING = {
  size: [400, 200],
  faint: false,
  zooms: false,
  plots: [{ left: 40, top: 30, right: 390, bottom: 190, x: SCALE, y: SCALE }],
  ids: ["loss", "peaks"],
  marks: [
    { k: "p", p: Array.from({ length: 36 }, (_, at) => [40 + 10 * at, 40 + 4 * at]).flat(), stroke: "loss" },
    { k: "d", p: [40, 35], size: 8, fill: "ink" },
  ],
};

Deno.test("words never cover the point that they speak of, nor leave the panel sideways", () => {
  for (let x = 0; x <= 400; x += 20) {
    for (let y = 0; y <= 200; y += 20) {
      for (const size of [[60, 20], [200, 40], [390, 60]]) {
        const { place: [left, top] } = freePlace(FALLING, size, [x, y], 0);
        const covers = x >= left && x <= left + size[0] && y >= top && y <= top + size[1];
        assert(!covers, `${size} at ${left}, ${top} over ${x}, ${y}`);
        assert(left >= 0 && left + size[0] <= 400, `${size} at ${left}`);
      }
    }
  }
});

Deno.test("words lie where the curve is not, and leave the peak free", () => {
  for (const [x, y] of [[60, 48], [200, 104], [350, 164]]) {
    const { place: [left, top] } = freePlace(FALLING, [120, 40], [x, y], 0);
    for (let at = 0; at <= 35; at++) {
      const [cx, cy] = [40 + 10 * at, 40 + 4 * at];
      assert(!(cx > left && cx < left + 120 && cy > top && cy < top + 40), `${cx}, ${cy} under ${left}, ${top}`);
    }
    assert(!(40 > left && 40 < left + 120 && 35 > top && 35 < top + 40), "the peak");
  }
});
