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
  for (const name of Object.keys(frame.panels ?? {})) {
    shown.panels[name] = applyPanel(shown.panels[name], frame.panels[name]);
  }
  return { shown, changed: new Set(Object.keys(frame)) };
}
