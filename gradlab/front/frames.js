// @ts-check
/** What a lab shows now, put together from frames that each tell only what has changed. */

import { applyPanel } from "./wire.js";

/** @typedef {Record<string, any>} Shown */

/** @returns {Shown} */
export function nothingShown() {
  return { f: -1, panels: {}, values: {}, order: [] };
}

/**
 * Take a frame; return what is shown then, and the keys that have changed. What was shown before stays as it was.
 * @param {Shown} before @param {Shown} frame @returns {{shown: Shown, changed: Set<string>}}
 */
export function mergeFrame(before, frame) {
  const base = frame.whole ? nothingShown() : before;
  const shown = { ...base, ...frame, values: { ...base.values, ...frame.values }, panels: { ...base.panels } };
  const changed = new Set([...Object.keys(frame), ...Object.keys(frame.values ?? {}).map((name) => `values ${name}`)]);
  for (const name of Object.keys(frame.panels ?? {})) {
    shown.panels[name] = applyPanel(shown.panels[name], frame.panels[name]);
  }
  return { shown, changed };
}

/**
 * Return the values of the controls that a frame has told, all of them where it is not known which. One that was turned
 * and not answered yet must not go back to what it was because another one is told.
 * @param {Shown} shown @param {Set<string>} changed @returns {Record<string, any>}
 */
export function toldValues(shown, changed) {
  const some = [...changed].filter((key) => key.startsWith("values ")).map((key) => key.slice("values ".length));
  if (!some.length && changed.has("values")) return shown.values;
  return Object.fromEntries(some.map((name) => [name, shown.values[name]]));
}
