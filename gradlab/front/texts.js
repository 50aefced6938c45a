// @ts-check
/** Words and boxes as marks in CSS pixels, and words that are cut or broken to a width. */

import { withPoints } from "./wire.js";

/** @import { Mark } from "./wire.js" */
/** @typedef {(text: string, size: number, bold: boolean) => number} Measure the width of a text in CSS pixels */

export const SMALL = 11; // CSS pixels of the smallest letters
export const WORD_SIZE = 12; // CSS pixels of most of them
export const [PANEL_MARGIN, LINE] = [8, 18]; // CSS pixels around a panel, and from line to line
export const [SWATCH, SWATCH_GAP] = [18, 5]; // CSS pixels of a swatch, and from it to its words

/** @param {string} id @param {string} words @param {number} x @param {number} y @param {Partial<Mark>} [look] */
export function placedText(id, words, x, y, look = {}) {
  return { id, mark: text(words, x, y, look) };
}

/** @param {string} words @param {number} x @param {number} y @param {Partial<Mark>} look @returns {Mark} */
export function text(words, x, y, look) {
  return /** @type {Mark} */ ({ k: "t", x, y, text: words, size: WORD_SIZE, ...look });
}

/** Return the first of some texts that has room, the last one cut if none has. @param {string[]} texts @param {number} wide @param {Measure} measure */
export function fitting(texts, wide, measure, size = WORD_SIZE, bold = false) {
  return texts.find((each) => measure(each, size, bold) <= wide) ??
    shortened(texts.at(-1) ?? "", wide, size, bold, measure);
}

/**
 * Cut a text to a width, with an ellipsis in place of what is cut.
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

/** Break words into lines. @param {string} words @param {number} wide @param {number} size @param {boolean} bold @param {Measure} measure */
export function wrapped(words, wide, size, bold, measure) {
  const lines = [""];
  for (const word of words.split(" ")) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (lines[lines.length - 1] && measure(longer, size, bold) > wide) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

const BESIDE_LABEL = 2; // CSS pixels kept free beside a label

/** Whether a text would lie on another one, or too near beside it. @param {number[]} one left, top, right and bottom @param {number[]} other */
export function boxesTouch([left, top, right, bottom], other) {
  return left - BESIDE_LABEL < other[2] && other[0] < right + BESIDE_LABEL && top < other[3] && other[1] < bottom;
}

/** @param {number} left @param {number} top @param {number} right @param {number} bottom */
export function boxPoints(left, top, right, bottom) {
  return Float64Array.of(left, top, right, top, right, bottom, left, bottom);
}

/** @param {import("./wire.js").Key} entry @param {number} x @param {number} y @returns {Mark} */
export function swatchMark({ fill, stroke, width, hatch, dash }, x, y, wide = SWATCH, tall = 12) {
  const look = /** @type {Mark} */ ({ k: "p", fill, stroke, width: width ?? 1, hatch, dash });
  return withPoints(look, boxPoints(x, y - tall / 2, x + wide, y + tall / 2));
}
