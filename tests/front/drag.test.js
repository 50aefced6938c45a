// @ts-check
import { heldState } from "../../gradlab/front/drag.js";
import { pointsOf } from "../../gradlab/front/wire.js";
import { assertEquals } from "./asserting.js";

/** @typedef {import("../../gradlab/front/wire.js").PanelState} PanelState */

/**
 * The weights at a place, with the way there, on axes of some width.
 * @param {number} x
 * @param {number} y
 * @param {number} perPixel
 * @returns {PanelState}
 */
function landscape(x, y, perPixel) {
  const axis = { start: 0, per_pixel: perPixel };
  return {
    size: [400, 200],
    title: "path",
    words: "",
    ids: ["contour", "path", "now", "now word"],
    marks: [
      { k: "p", p: [0, 0, 40, 40], stroke: "grey" },
      { k: "p", p: [40, 40, 4 * x - 40, 4 * y - 40], stroke: "weights" },
      { k: "d", p: [4 * x, 4 * y], fill: "weights", drag: { name: "weights", x: axis, y: axis } },
      { k: "t", x: x + 10, y: y - 10, text: "now" },
    ],
  };
}

Deno.test("what is dragged stays under the pointer while the kernel draws it on other axes", () => {
  const held = /** @type {any} */ ({ from: landscape(50, 50, 1), id: "now", place: [90, 70] });
  const live = landscape(88, 69, 1);
  assertEquals(heldState(live, held) === live, true, "on the same axes the newest state is shown");
  const shown = heldState(landscape(60, 60, 2), held);
  assertEquals(shown.ids, ["contour", "now", "now word"], "without the way that it had come");
  assertEquals([...pointsOf(shown.marks[1])], [90, 70]);
  assertEquals([shown.marks[2].x, shown.marks[2].y], [100, 60]);
  assertEquals(shown.marks[0] === live.marks[0], true, "all else as it was on the last of its own axes");
  assertEquals([...pointsOf(live.marks[2])], [88, 69], "what came is not changed");
});
