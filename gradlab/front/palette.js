// @ts-check
/**
 * The colour of a role in each theme: on white paper the one in `gradlab/drawing/palette.py`, on dark paper a lighter
 * colour of the same hue. Colours with too little contrast to the paper are moved towards black or white.
 */

import colours from "../drawing/colours.json" with { type: "json" };
import { remembered } from "./wire.js";

/** @typedef {"light" | "dark" | "contrast" | "contrast-light"} Theme */
/** @typedef {[number, number, number]} Channels red, green and blue, 0 to 255 */

/** @type {Record<string, string[]>} the colour on white and the colour on black */
const COLOURS = colours;
const PALE = new Set(["paper", "faint", "fresh"]); // intentionally pale: "faint" lines; "fresh" has an outline

/** @type {Record<Theme, {dark: boolean, paper: string, ink: string, mark: number, text: number}>} */
const THEMES = {
  light: { dark: false, paper: COLOURS.paper[0], ink: COLOURS.ink[0], mark: 3, text: 4.5 },
  dark: { dark: true, paper: COLOURS.paper[1], ink: COLOURS.ink[1], mark: 3, text: 4.5 },
  contrast: { dark: true, paper: "#000000", ink: "#FFFFFF", mark: 4.5, text: 7 },
  "contrast-light": { dark: false, paper: "#FFFFFF", ink: "#000000", mark: 4.5, text: 7 },
};

/** @type {Map<string, string>} */
const knownColours = new Map();

/** `weights/50` is half way to the paper, `weights-text` is readable. @param {string} role @param {Theme} theme */
export function colourOf(role, theme) {
  return remembered(knownColours, `${theme} ${role}`, () => mixColour(role, theme));
}

/** @param {string} role @param {Theme} theme */
function mixColour(role, theme) {
  const [name, strength] = role.split("/");
  const [base, text] = name.split("-");
  const { dark, paper, ink, mark, text: readable } = THEMES[theme];
  if (!(base in COLOURS)) throw new Error(`no colour for the role "${role}"; there are: ${Object.keys(COLOURS)}`);
  let channels = channelsOf(base === "paper" ? paper : base === "ink" ? ink : COLOURS[base][dark ? 1 : 0]);
  const [ground, front] = [channelsOf(paper), dark ? channelsOf("#FFFFFF") : channelsOf("#000000")];
  const least = text ? readable : PALE.has(base) ? 1 : mark;
  const wanted = text ? between(channels, front, 0.3) : channels;
  channels = wanted;
  for (let step = 1; contrastBetween(channels, ground) < least && step <= 50; step++) {
    channels = between(wanted, front, step / 50);
  }
  if (strength) channels = between(ground, channels, Number(strength) / 100);
  return "#" + channels.map((channel) => Math.round(channel).toString(16).padStart(2, "0")).join("").toUpperCase();
}

/** @param {string} colour `#RRGGBB` @returns {Channels} */
function channelsOf(colour) {
  const [red, green, blue] = [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
  return [red, green, blue];
}

/** @param {Channels} from @param {Channels} to @param {number} share @returns {Channels} */
function between(from, to, share) {
  const [red, green, blue] = from.map((channel, index) => channel + (to[index] - channel) * share);
  return [red, green, blue];
}

/** Return the contrast of two colours, 1 to 21 (WCAG 2). @param {Channels} first @param {Channels} second */
export function contrastBetween(first, second) {
  const [low, high] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** @param {Channels} channels */
function luminance(channels) {
  const [red, green, blue] = channels.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// Themes --------------------------------------------------------------------------------------------------------------

const QUERIES = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"];

/** Return the theme that the page declares or, without one, a theme for its background. @param {Element} element @returns {Theme} */
export function themeOf(element) {
  const { body, documentElement } = document;
  const [, more, forced] = QUERIES.map((query) => matchMedia(query).matches);
  const dark = declaredDark(body, documentElement) ?? measuredDark(element) ?? matchMedia(QUERIES[0]).matches;
  const high = more || forced || /vscode-high-contrast/.test(body.className);
  return high ? (dark ? "contrast" : "contrast-light") : dark ? "dark" : "light";
}

/** @param {HTMLElement} body @param {HTMLElement} page @returns {boolean | undefined} */
function declaredDark(body, page) {
  if (matchMedia(QUERIES[2]).matches) return undefined; // forced system colours must be measured
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  const [vscode] = /vscode-(high-contrast-light|high-contrast|dark|light)/.exec(body.className) ?? [];
  if (vscode) return !vscode.endsWith("light");
  const colab = page.getAttribute("theme");
  return colab ? colab === "dark" : undefined;
}

/** Return whether the nearest background is dark. @param {Element | null} element @returns {boolean | undefined} */
function measuredDark(element) {
  for (let node = element?.parentElement; node; node = node.parentElement) {
    const [red, green, blue, alpha = 1] = (getComputedStyle(node).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
    if (blue !== undefined && alpha > 0.5) return luminance([red, green, blue]) < 0.18;
  }
  return undefined;
}

/**
 * Call `onChange` with the theme now and at each change; return a function that ends this.
 * @param {Element} element @param {(theme: Theme) => void} onChange @returns {() => void}
 */
export function followTheme(element, onChange) {
  /** @type {Theme | null} */
  let theme = null;
  const update = () => {
    const now = themeOf(element);
    if (now !== theme) onChange(theme = now);
  };
  update();
  const observer = new MutationObserver(update);
  for (const each of [document.documentElement, document.body]) observer.observe(each, { attributes: true });
  const queries = QUERIES.map((query) => matchMedia(query));
  for (const query of queries) query.addEventListener("change", update);
  return () => {
    observer.disconnect();
    for (const query of queries) query.removeEventListener("change", update);
  };
}

/** Give the root the classes of a theme, which `lab.css` styles. @param {Element} root @param {Theme} theme */
export function applyTheme(root, theme) {
  root.classList.toggle("gradlab-dark", THEMES[theme].dark);
  root.classList.toggle("gradlab-contrast", theme.startsWith("contrast"));
}
