// @ts-check
/** One picture becoming another: marks of the same name go from their places to the new ones. */

import { pointsOf, withPoints } from "./wire.js";

/** @typedef {import("./wire.js").PanelState} PanelState */
/** @typedef {import("./wire.js").Mark} Mark */

const LASTS = 160; // ms

/** Paints panels on their way. What is on its way when others come goes on from where it is. */
export class Morph {
  /**
   * @param {(name: string, panel: PanelState) => void} paint
   * @param {() => void} done
   */
  constructor(paint, done) {
    this._paint = paint;
    this._done = done;
    /** @type {Map<string, PanelState>} what is painted now, of panels that are on their way */
    this._now = new Map();
    this._frame = 0;
  }

  /**
   * @param {Record<string, PanelState>} before
   * @param {Record<string, PanelState>} after
   * @param {string[]} names of the panels that have changed
   */
  go(before, after, names) {
    cancelAnimationFrame(this._frame);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden;
    const ways = names.map((name) => ({ name, from: this._now.get(name) ?? before[name], to: after[name] }));
    for (const [name, panel] of this._now) { // has come to where it was before
      if (!names.includes(name) && after[name]) ways.push({ name, from: panel, to: after[name] });
    }
    const began = performance.now();
    const tick = () => {
      const share = still ? 1 : Math.min(1, (performance.now() - began) / LASTS);
      const gone = share * (2 - share); // slower towards the end
      this._now.clear();
      for (const { name, from, to } of ways) {
        const panel = from && share < 1 ? panelBetween(from, to, gone) : to;
        if (share < 1) this._now.set(name, panel);
        this._paint(name, panel);
      }
      if (share < 1) this._frame = requestAnimationFrame(tick);
      else this._done();
    };
    tick();
  }
}

/**
 * Return a panel a share of the way from one to another: marks of the same name and kind are between their places, all
 * else is as at the end.
 * @param {PanelState} from
 * @param {PanelState} to
 * @param {number} share
 * @returns {PanelState}
 */
export function panelBetween(from, to, share) {
  if (from.size.join() !== to.size.join()) return to;
  const known = new Map(from.ids.map((id, index) => [id, from.marks[index]]));
  const marks = to.marks.map((mark, index) => {
    const before = known.get(to.ids[index]);
    return before && before !== mark && before.k === mark.k ? markBetween(before, mark, share) : mark;
  });
  return { ...to, marks };
}

/**
 * @param {Mark} from
 * @param {Mark} to
 * @param {number} share
 * @returns {Mark}
 */
function markBetween(from, to, share) {
  const mix = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * share;
  if (to.k === "t") {
    return from.text === to.text ? { ...to, x: mix(from.x ?? 0, to.x ?? 0), y: mix(from.y ?? 0, to.y ?? 0) } : to;
  }
  if (to.k === "i") return to;
  const [before, after] = [pointsOf(from), pointsOf(to)];
  const common = Math.min(before.length, after.length);
  const points = after.slice();
  for (let at = 0; at < common; at += 1) {
    if (Number.isFinite(before[at]) && Number.isFinite(after[at])) points[at] = mix(before[at], after[at]);
  }
  return withPoints(to, points);
}
