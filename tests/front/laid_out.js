// @ts-check
/** What must hold of a panel that is laid out, whatever is in it; reads panels as JSON lines from stdin if run itself. */

import { boxOf } from "../../gradlab/front/marks.js";
import { layOut, outlineOfBand } from "../../gradlab/front/layout.js";
import { placeOn, valueAt } from "../../gradlab/front/scales.js";
import { applyPanel, pointsOf } from "../../gradlab/front/wire.js";

/** @typedef {import("../../gradlab/front/wire.js").Mark} Mark */
/** @typedef {[number, number][]} Corners */

export const WIDTHS = [260, 390, 768, 1366, 1920];
export const HEIGHTS = [200, 260, 500];
const LETTERS = [0.55, 0.6, 0.75]; // the width of a letter in sizes of it, as different fonts have it
const NEAR = 1e-6;

/** @param {number} letter @returns {import("../../gradlab/front/texts.js").Measure} */
export function measureOf(letter) {
  return (text, size, bold) => text.length * size * letter * (bold ? 1.06 : 1);
}

/**
 * Lay a panel out at many sizes and in many fonts; return what is wrong anywhere.
 * @param {import("../../gradlab/front/wire.js").PanelData} panel
 * @param {[number, number] | null} [range]
 */
export function faultsOf(panel, range = null) {
  return WIDTHS.flatMap((width) =>
    HEIGHTS.flatMap((height) =>
      LETTERS.flatMap((letter) => {
        const measure = measureOf(letter);
        const state = layOut(panel, [width, height], measure, range);
        return [...textFaults(state, measure), ...tickFaults(panel, state), ...pointFaults(panel, state)]
          .map((fault) => `${panel.title} ${width} x ${height}, letters ${letter}: ${fault}`);
      })
    )
  );
}

/**
 * Texts that are small, cut by the panel's edge, or on one another.
 * @param {import("../../gradlab/front/wire.js").PanelState} state
 * @param {import("../../gradlab/front/texts.js").Measure} measure
 */
function textFaults({ size: [width, height], marks }, measure) {
  const faults = [];
  const texts = marks.filter((mark) => mark.k === "t" && mark.text).map((mark) => ({
    mark,
    corners: cornersOf(mark, measure),
  }));
  for (const [at, { mark, corners }] of texts.entries()) {
    const name = JSON.stringify(mark.text);
    if ((mark.size ?? 12) < 11) faults.push(`${name} has ${mark.size} px`);
    if (corners.some(([x, y]) => !(x >= -NEAR && y >= -NEAR && x <= width + NEAR && y <= height + NEAR))) {
      faults.push(`${name} leaves the panel: ${corners.map((corner) => corner.map(Math.round))}`);
    }
    for (const other of texts.slice(0, at)) {
      if (overlap(corners, other.corners)) faults.push(`${name} lies on ${JSON.stringify(other.mark.text)}`);
    }
  }
  return faults;
}

/** Return the corners of a text, turned as it is. @param {Mark} mark @param {import("../../gradlab/front/texts.js").Measure} measure @returns {Corners} */
function cornersOf(mark, measure) {
  const [left, top, right, bottom] = boxOf({
    ...mark,
    angle: 0,
    width: measure(mark.text ?? "", mark.size ?? 12, mark.bold ?? false),
  });
  const { x = 0, y = 0, angle = 0 } = mark;
  const [sin, cos] = [Math.sin(-angle * Math.PI / 180), Math.cos(-angle * Math.PI / 180)];
  return /** @type {Corners} */ ([[left, top], [right, top], [right, bottom], [left, bottom]]).map(([a, b]) => [
    x + (a - x) * cos - (b - y) * sin,
    y + (a - x) * sin + (b - y) * cos,
  ]);
}

/** Whether two rectangles have a part in common: no line along a side of either parts them. @param {Corners} one @param {Corners} other */
function overlap(one, other) {
  return [one, other].every((corners) =>
    [0, 1].every((side) => {
      const [nx, ny] = [corners[side + 1][1] - corners[side][1], corners[side][0] - corners[side + 1][0]];
      const [a, b] = [one, other].map((each) => each.map(([x, y]) => x * nx + y * ny));
      const long = Math.hypot(nx, ny) * 0.01; // a hundredth of a pixel is no overlap
      return Math.max(...a) > Math.min(...b) + long && Math.max(...b) > Math.min(...a) + long;
    })
  );
}

/**
 * Ticks whose number is not that of their place.
 * @param {import("../../gradlab/front/wire.js").PanelData} panel
 * @param {import("../../gradlab/front/wire.js").PanelState} state
 */
function tickFaults(panel, { ids, marks, plots }) {
  return ids.flatMap((id, at) => {
    const [, number, way] = id.match(/^axes ?(\d*) ([xy])\d+$/) ?? [];
    if (!way) return [];
    const plot = plots[Number(number || 0)];
    const axes = panel.axes[Number(number || 0)];
    const axis = way === "x" ? axes.x : axes.y;
    if (!["number", "updates"].includes(axis.ticks ?? "number")) return [];
    const { x = 0, y = 0, text = "" } = marks[at];
    const value = valueAt(way === "x" ? plot.x : plot.y, way === "x" ? x : y);
    const written = Number(text.replace("−", "-").replace("e−", "e-").replaceAll(",", "").replace("k", "e3"));
    const scale = way === "x" ? plot.x : plot.y;
    const away = Math.abs(placeOn(scale, written) - placeOn(scale, value));
    return away < 1.5 ? [] : [`tick ${text} lies at ${value}`]; // a number is written with three digits
  });
}

/**
 * Points that are not where their numbers are.
 * @param {import("../../gradlab/front/wire.js").PanelData} panel
 * @param {import("../../gradlab/front/wire.js").PanelState} state
 */
function pointFaults(panel, state) {
  return panel.marks.flatMap((mark, at) => {
    const placed = state.marks[state.ids.indexOf(panel.ids[at])];
    if (!"labd".includes(mark.k)) return [];
    if (!placed) return [`${panel.ids[at]} is not there`];
    const data = mark.k === "b" ? outlineOfBand(pointsOf(mark)) : pointsOf(mark);
    const places = pointsOf(placed);
    if (data.length !== places.length) return [`${panel.ids[at]} has ${places.length / 2} points`];
    const { left, top, right, bottom, x, y } = state.plots[mark.axes ?? 0];
    const far = data.findIndex((value, index) => {
      const across = index % 2 === 0;
      if (Number.isNaN(value)) return !Number.isNaN(places[index]);
      if (Math.abs(value) >= 1e299) {
        return places[index] !== (across === value < 0 ? (across ? left : top) : across ? right : bottom);
      }
      const place = placeOn(across ? x : y, value);
      const [low, high] = across ? [left, right] : [top, bottom];
      return place >= low - 1 && place <= high + 1 && !(Math.abs(place - places[index]) < NEAR) &&
        !Number.isNaN(places[index]);
    });
    return far < 0 ? [] : [`${panel.ids[at]}: ${data[far]} lies at ${places[far]}`];
  });
}

if (import.meta.main) {
  let count = 0;
  for (const line of (await new Response(Deno.stdin.readable).text()).trim().split("\n")) {
    const faults = faultsOf(applyPanel(null, JSON.parse(line)));
    count += faults.length;
    for (const fault of faults) console.log(fault);
  }
  console.log(`${count} faults`);
}
