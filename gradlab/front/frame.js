// @ts-check
/** What stands around the axes of a panel: its title and corner, notes, the key, and a notice in a frame. */

import {
  boxPoints,
  fitting,
  LINE,
  PANEL_MARGIN,
  shortened,
  SMALL,
  SWATCH,
  SWATCH_GAP,
  swatchMark,
  text,
  WORD_SIZE,
  wrapped,
} from "./texts.js";
import { withPoints } from "./wire.js";

/** @typedef {import("./wire.js").Mark} Mark */
/** @typedef {import("./wire.js").PanelData} PanelData */
/** @typedef {import("./axes.js").Plot} Plot */
/** @typedef {import("./axes.js").Placed} Placed */
/** @typedef {import("./texts.js").Measure} Measure */

const [TITLE, NOTICE] = [14, 13]; // CSS pixels of letters
const TITLE_Y = 15; // CSS pixels

/**
 * Return the title, what stands at its right, the key and the notes, and where they end.
 * @param {PanelData} panel
 * @param {number} width
 * @param {Measure} measure
 */
export function headOf(panel, width, measure) {
  /** @type {Placed[]} */
  const placed = [];
  const room = width - 2 * PANEL_MARGIN;
  const size = Math.min(TITLE, Math.max(SMALL, TITLE * room / Math.max(measure(panel.title, TITLE, true), 1)));
  const title = shortened(panel.title, room, size, true, measure);
  if (title) placed.push({ id: "title", mark: text(title, PANEL_MARGIN, TITLE_Y, { size, bold: true }) });
  let y = TITLE_Y + 1;
  const left = room - measure(title, size, true) - 12;
  const sizes = [WORD_SIZE, SMALL];
  const corner = sizes.flatMap((size) => (panel.corner ?? []).map((words) => ({ words, size })))
    .find(({ words, size }) => measure(words, size, false) <= left);
  const look = { role: panel.corner_role ?? "ink" };
  if (corner) {
    const end = text(corner.words, width - PANEL_MARGIN, TITLE_Y, { ...look, size: corner.size, anchor: "end" });
    placed.push({ id: "corner", mark: end });
  } else if (panel.corner?.length) {
    const words = fitting(panel.corner, room, measure);
    placed.push({ id: "corner", mark: text(words, PANEL_MARGIN, y += LINE, look) });
  }
  for (const [at, texts] of (panel.notes ?? []).entries()) {
    placed.push({ id: `note ${at}`, mark: text(fitting(texts, room, measure), PANEL_MARGIN, y += LINE, {}) });
  }
  if (panel.key?.length) {
    placed.push(...keyMarks(panel.key, PANEL_MARGIN, y += LINE + 2, width - PANEL_MARGIN, measure));
  }
  return { placed, bottom: y + 14 };
}

/**
 * @param {import("./wire.js").Key[]} key
 * @param {number} left
 * @param {number} y
 * @param {number} right
 * @param {Measure} measure
 * @returns {Placed[]}
 */
function keyMarks(key, left, y, right, measure) {
  const wide = (/** @type {number} */ form) =>
    key.reduce((sum, { texts }) => sum + measure(texts[Math.min(form, texts.length - 1)], WORD_SIZE, false) + 39, -16);
  const form = wide(0) <= right - left ? 0 : 1;
  let x = left;
  return key.flatMap((entry) => {
    const words = entry.texts[Math.min(form, entry.texts.length - 1)];
    const id = `key ${entry.texts[entry.texts.length - 1]}`;
    const swatch = swatchMark(entry, x, y);
    const label = text(words, x + SWATCH + SWATCH_GAP, y, {});
    x += SWATCH + SWATCH_GAP + measure(words, WORD_SIZE, false) + 16;
    return [{ id, mark: swatch }, { id: `${id} word`, mark: label }];
  });
}

/**
 * Return a sentence in a frame, low in the axes where something else is there.
 * @param {string} notice
 * @param {Plot} plot
 * @param {boolean} framed
 * @param {Measure} measure
 */
export function noticeMarks(notice, plot, framed, measure) {
  const lines = wrapped(notice, plot.right - plot.left - 24, NOTICE, measure);
  const [x, tall] = [(plot.left + plot.right) / 2, 19 * lines.length];
  const middle = framed ? plot.bottom - 10 - tall / 2 : (plot.top + plot.bottom) / 2;
  /** @type {Placed[]} */
  const placed = [];
  if (framed) {
    const half = Math.max(...lines.map((line) => measure(line, NOTICE, true))) / 2 + 8;
    const frame = /** @type {Mark} */ ({ k: "p", fill: "paper", stroke: "ink", width: 1.5, dash: "dashed" });
    placed.push({
      id: "notice frame",
      mark: withPoints(frame, boxPoints(x - half, middle - tall / 2 - 4, x + half, middle + tall / 2 + 4)),
    });
  }
  lines.forEach((line, at) =>
    placed.push({
      id: `notice ${at}`,
      mark: text(line, x, middle + 19 * (at - (lines.length - 1) / 2), {
        anchor: "middle",
        size: NOTICE,
        bold: framed,
      }),
    })
  );
  return placed;
}
