// @ts-check
/** Read panels, whole and then changed, as JSON lines from stdin; write the points, words and ids of each state. */

import { applyPanel, pointsOf } from "../../gradlab/front/wire.js";

/** @type {import("../../gradlab/front/wire.js").PanelState | null} */
let panel = null;
for (const line of (await new Response(Deno.stdin.readable).text()).trim().split("\n")) {
  panel = applyPanel(panel, JSON.parse(line));
  const { marks, ...head } = panel;
  const points = marks.map((mark) => mark.p ? [...pointsOf(mark)] : null); // NaN becomes null
  const fields = marks.map(({ p: _, ...rest }) => rest);
  console.log(JSON.stringify({ ...head, points, fields }));
}
