// @ts-check
/** How the reader looks at the panels of a recording: a part of their curves, with or without those of another run. */

import { groundRange, zoomedPanel } from "./zoomed.js";

/** @typedef {import("./wire.js").PanelState} PanelState */

const FEWEST = 2; // updates in a range

export class RecordedView {
  constructor() {
    this.unswitched = true; // whether the curves are shown that tell how the loss goes without the newest switch
    /** @type {[number, number] | null} the updates that are shown, null for all */
    this.range = null;
    /** @type {WeakMap<PanelState, PanelState>} panels as they are seen: the same one for the same panel */
    this.seen = new WeakMap();
  }

  /** Return panels as they are seen. @param {Record<string, PanelState>} panels */
  of(panels) {
    return Object.fromEntries(
      Object.entries(panels).map(([name, panel]) => {
        let seen = this.seen.get(panel);
        if (!seen) {
          const kept = this.unswitched ? panel : withoutUnswitched(panel);
          seen = this.range ? zoomedPanel(kept, this.range) : kept;
          this.seen.set(panel, seen);
        }
        return [name, seen];
      }),
    );
  }

  /** @param {boolean} shown */
  showUnswitched(shown) {
    this.unswitched = shown;
    this.seen = new WeakMap();
  }

  /**
   * Show the updates between two numbers only, or all where there are not more; return what to say of it.
   * @param {Record<string, PanelState>} panels
   * @param {number} [low]
   * @param {number} [high]
   */
  zoom(panels, low = -Infinity, high = Infinity) {
    const [first, last] = Object.values(panels).map(groundRange).find(Boolean) ?? [0, 0];
    const wide = Math.min(Math.max(high - low, FEWEST), last - first);
    const from = Math.min(Math.max((low + high - wide) / 2 || first, first), last - wide);
    this.range = wide < last - first ? [from, from + wide] : null;
    this.seen = new WeakMap();
    if (!this.range) return "All updates are shown.";
    const [begin, end] = this.range.map((update) => Math.round(update).toLocaleString("en"));
    return `Updates ${begin} to ${end} are shown; a double click shows all.`;
  }
}

/** Return a panel without the curves of the run without the newest switch. @param {PanelState} panel */
function withoutUnswitched(panel) {
  const kept = panel.marks.map((_, index) => index).filter((index) => !panel.ids[index].startsWith("without"));
  if (kept.length === panel.marks.length) return panel;
  return { ...panel, ids: kept.map((at) => panel.ids[at]), marks: kept.map((at) => panel.marks[at]) };
}
