// @ts-check
/** Texts and boxes as marks in CSS pixels, and texts cut or wrapped to a width. */

import { withPoints } from "./wire.js";

/** @import { Mark } from "./wire.js" */
/** @typedef {(text: string, size: number, bold: boolean) => number} Measure returns a text's width in CSS pixels */

export const SMALL = 11; // smallest font size in CSS pixels
export const WORD_SIZE = 12; // default font size in CSS pixels
export const [PANEL_MARGIN, LINE] = [8, 18]; // margin of a panel and height of a line in CSS pixels
export const [SWATCH, SWATCH_GAP] = [18, 5]; // width of a swatch and gap to its label in CSS pixels

/** @param {string} id @param {string} words @param {number} x @param {number} y @param {Partial<Mark>} [style] */
export function placedText(id, words, x, y, style = {}) {
  return { id, mark: text(words, x, y, style) };
}

/** @param {string} words @param {number} x @param {number} y @param {Partial<Mark>} style @returns {Mark} */
export function text(words, x, y, style) {
  return /** @type {Mark} */ ({ k: "t", x, y, text: words, size: WORD_SIZE, ...style });
}

/** Return the first of some texts that fits; if none fits, cut the last one. @param {string[]} texts @param {number} wide @param {Measure} measure */
export function fitting(texts, wide, measure, size = WORD_SIZE, bold = false) {
  return texts.find((each) => measure(each, size, bold) <= wide) ??
    shortened(texts.at(-1) ?? "", wide, size, bold, measure);
}

/**
 * Return a text cut to a width with an ellipsis; "" if nothing fits.
 * @param {string} words @param {number} wide @param {number} size @param {boolean} bold @param {Measure} measure
 */
export function shortened(words, wide, size, bold, measure) {
  if (measure(words, size, bold) <= wide) return words;
  for (let left = words.length - 1; left > 0; left--) {
    const cut = `${words.slice(0, left).trimEnd()}…`;
    if (measure(cut, size, bold) <= wide) return cut;
  }
  return "";
}

/** Break a text into lines. @param {string} words @param {number} wide @param {number} size @param {boolean} bold @param {Measure} measure */
export function wrapped(words, wide, size, bold, measure) {
  const lines = [""];
  for (const word of words.split(" ")) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (lines[lines.length - 1] && measure(longer, size, bold) > wide) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

const BESIDE_LABEL = 2; // CSS pixels that stay free beside a label

/** Return whether two boxes of texts overlap or nearly overlap. @param {number[]} box its edges @param {number[]} other */
export function boxesTouch([left, top, right, bottom], other) {
  return left - BESIDE_LABEL < other[2] && other[0] < right + BESIDE_LABEL && top < other[3] && other[1] < bottom;
}

/** @param {number} left @param {number} top @param {number} right @param {number} bottom */
export function boxPoints(left, top, right, bottom) {
  return Float64Array.of(left, top, right, top, right, bottom, left, bottom);
}

/** @param {import("./wire.js").Key} entry @param {number} x @param {number} y @returns {Mark} */
export function swatchMark({ fill, stroke, width, hatch, dash }, x, y, wide = SWATCH, tall = 12) {
  const style = /** @type {Mark} */ ({ k: "p", fill, stroke, width: width ?? 1, hatch, dash });
  return withPoints(style, boxPoints(x, y - tall / 2, x + wide, y + tall / 2));
}
