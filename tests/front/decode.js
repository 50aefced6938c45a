// @ts-check
/** Read panels, whole and then changed, as JSON lines from stdin; write each state, its marks with all their points. */

import { applyPanel, pointsOf } from "../../gradlab/front/wire.js";

/** @type {import("../../gradlab/front/wire.js").PanelData | null} */
let panel = null;
for (const line of (await new Response(Deno.stdin.readable).text()).trim().split("\n")) {
  panel = applyPanel(panel, JSON.parse(line));
  const marks = panel.marks.map((mark) => mark.p ? { ...mark, p: [...pointsOf(mark)] } : mark); // NaN becomes null
  console.log(JSON.stringify({ ...panel, marks }));
}
