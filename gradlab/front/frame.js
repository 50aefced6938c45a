// @ts-check
/** The texts around the axes of a panel: title, corner, notes and key, and a notice in the axes. */

import { boxPoints, fitting, placedText, shortened, swatchMark, wrapped } from "./texts.js";
import { LINE, PANEL_MARGIN, SMALL, SWATCH, SWATCH_GAP, WORD_SIZE } from "./texts.js";
import { withPoints } from "./wire.js";

/** @import { Mark, PanelData } from "./wire.js" */
/** @import { Plot, Placed } from "./axes.js" */
/** @import { Measure } from "./texts.js" */

const [TITLE, NOTICE] = [14, 13]; // font sizes in CSS pixels
const NOTICE_LINE = 19; // CSS pixels per line
const BETWEEN = 16; // CSS pixels between entries of the key
const TITLE_Y = 15; // CSS pixels

/** Return the marks above the axes of a panel, and the y coordinate of their end. @param {PanelData} panel @param {number} width @param {Measure} measure */
export function headOf(panel, width, measure) {
  /** @type {Placed[]} */
  const placed = [];
  const room = width - 2 * PANEL_MARGIN;
  const size = Math.min(TITLE, Math.max(SMALL, TITLE * room / Math.max(measure(panel.title, TITLE, true), 1)));
  const title = shortened(panel.title, room, size, true, measure);
  if (title) placed.push(placedText("title", title, PANEL_MARGIN, TITLE_Y, { size, bold: true }));
  let y = TITLE_Y + 1;
  const left = room - measure(title, size, true) - 12;
  const { corner = [], corner_role: role = "ink", notes = [], key = [] } = panel;
  const beside = [WORD_SIZE, SMALL].flatMap((size) => corner.map((words) => ({ words, size })))
    .find(({ words, size }) => measure(words, size, false) <= left);
  if (beside) {
    const style = { role, size: beside.size, anchor: "end" };
    placed.push(placedText("corner", beside.words, width - PANEL_MARGIN, TITLE_Y, style));
  } else if (corner.length) {
    placed.push(placedText("corner", fitting(corner, room, measure), PANEL_MARGIN, y += LINE, { role }));
  }
  for (const [index, texts] of notes.entries()) {
    placed.push(placedText(`note ${index}`, fitting(texts, room, measure), PANEL_MARGIN, y += LINE));
  }
  if (!key.length) return { placed, bottom: y + 14 };
  const below = keyMarks(key, PANEL_MARGIN, y + LINE + 2, width - PANEL_MARGIN, measure);
  return { placed: [...placed, ...below.placed], bottom: below.y + 14 };
}

/**
 * Return the marks of the key and the y coordinate of its last row. Short labels are used if long ones need more rows.
 * @param {import("./wire.js").Key[]} key @param {number} left @param {number} y @param {number} right
 * @param {Measure} measure
 */
function keyMarks(key, left, y, right, measure) {
  const before = SWATCH + SWATCH_GAP;
  const wide = (/** @type {string} */ words) => before + measure(words, WORD_SIZE, false);
  const rows = [0, 1].map((rank) => key.map(({ texts }) => texts[Math.min(rank, texts.length - 1)]));
  const row = rows.find((row) => row.reduce((sum, words) => sum + wide(words) + BETWEEN, -BETWEEN) <= right - left);
  let x = left;
  /** @type {Placed[]} */
  const placed = [];
  for (const [index, entry] of key.entries()) {
    const name = entry.texts.at(-1) ?? "";
    const words = fitting([row?.[index] ?? name], right - left - before, measure);
    if (x > left && x + wide(words) > right) [x, y] = [left, y + LINE];
    const id = `key ${name}`;
    placed.push({ id, mark: swatchMark(entry, x, y) }, placedText(`${id} word`, words, x + before, y));
    x += wide(words) + BETWEEN;
  }
  return { placed, y };
}

/**
 * Return the notice in the middle of the axes, or if `framed`, in a frame low in the axes.
 * @param {string} notice @param {Plot} plot @param {[number, number]} size of the panel
 * @param {number} top above it the panel stays free @param {boolean} framed @param {Measure} measure
 */
export function noticeMarks(notice, plot, [width, height], top, framed, measure) {
  const room = Math.min(Math.max(plot.right - plot.left - 24, 200), width - 4 * PANEL_MARGIN);
  const wide = (/** @type {string} */ line) => measure(line, NOTICE, framed);
  const most = Math.max(Math.floor((height - top - 8) / NOTICE_LINE), 1);
  const lines = wrapped(notice, room, NOTICE, framed, measure).slice(0, most);
  const [half, tall] = [Math.max(...lines.map(wide)) / 2 + 8, NOTICE_LINE * lines.length];
  const x = Math.min(Math.max((plot.left + plot.right) / 2, half + 2), width - half - 2);
  const wanted = framed ? plot.bottom - 10 - tall / 2 : (plot.top + plot.bottom) / 2;
  const y = Math.max(Math.min(wanted, height - tall / 2 - 4), top + tall / 2 + 4);
  /** @type {Placed[]} */
  const placed = [];
  if (framed) {
    const frame = /** @type {Mark} */ ({ k: "p", fill: "paper", stroke: "ink", width: 1.5, dash: "dashed" });
    const box = boxPoints(x - half, y - tall / 2 - 4, x + half, y + tall / 2 + 4);
    placed.push({ id: "notice frame", mark: withPoints(frame, box) });
  }
  const style = /** @type {const} */ ({ anchor: "middle", size: NOTICE, bold: framed });
  lines.forEach((line, index) =>
    placed.push(placedText(`notice ${index}`, line, x, y + NOTICE_LINE * (index - (lines.length - 1) / 2), style))
  );
  return placed;
}
