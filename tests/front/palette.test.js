// @ts-check
import { colourOf } from "../../gradlab/front/palette.js";
import { assert, assertEquals, assertThrows } from "./asserting.js";

/** @typedef {import("../../gradlab/front/palette.js").Theme} Theme */

const MEANINGS = [
  "weights",
  "gradients",
  "optimizer",
  "activations",
  "reused",
  "loss",
  "scale",
  "wrong",
  "grey",
  "ink",
];
/** @type {[Theme, number, number][]} with the contrast that marks and texts must have */
const THEMES = [["light", 3, 4.5], ["dark", 3, 4.5], ["contrast", 4.5, 7], ["contrast-light", 4.5, 7]];

/** @param {string} colour */
function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** Relative luminance as WCAG 2 defines it. @param {string} colour */
function luminance(colour) {
  const [r, g, b] = channels(colour).map((c) => c / 255).map((c) =>
    c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/**
 * @param {string} one
 * @param {string} other
 */
function contrast(one, other) {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/** The hue in degrees. @param {string} colour */
function hue(colour) {
  const [r, g, b] = channels(colour);
  const [least, most] = [Math.min(r, g, b), Math.max(r, g, b)];
  const turn = most === r
    ? (g - b) / (most - least)
    : most === g
    ? 2 + (b - r) / (most - least)
    : 4 + (r - g) / (most - least);
  return (60 * turn + 360) % 360;
}

for (const [theme, mark, text] of THEMES) {
  Deno.test(`${theme}: marks and texts stand out from the paper`, () => {
    const paper = colourOf("paper", theme);
    for (const role of MEANINGS) {
      const [plain, words] = [colourOf(role, theme), colourOf(`${role}-text`, theme)].map((c) => contrast(c, paper));
      assert(plain >= mark - 0.05, `${role}: ${plain}`);
      assert(words >= text - 0.05, `${role}-text: ${words}`);
    }
    assert(contrast(colourOf("fresh-text", theme), paper) >= text - 0.05, "fresh-text");
  });

  Deno.test(`${theme}: a colour keeps its name`, () => {
    for (const role of ["weights", "gradients", "optimizer", "activations", "fresh", "reused", "scale"]) {
      const away = Math.abs(hue(colourOf(role, theme)) - hue(colourOf(role, "light")));
      assert(Math.min(away, 360 - away) < 25, `${role} turned by ${away} degrees`);
    }
  });
}

Deno.test("a strength is a mixture with the paper", () => {
  assertEquals(colourOf("loss/50", "light"), "#808080");
  assertEquals(colourOf("loss/0", "dark"), colourOf("paper", "dark"));
});

Deno.test("an unknown role is named", () => assertThrows(() => colourOf("lilac", "light"), /"lilac".*weights/));
