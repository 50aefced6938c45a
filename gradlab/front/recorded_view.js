// @ts-check
/** How the reader looks at the panels of a recording: with or without the curves of the run without the newest switch. */

/** @typedef {import("./wire.js").PanelData} PanelData */

export class RecordedView {
  constructor() {
    this.unswitched = true; // whether the curves are shown that tell how the loss goes without the newest switch
    /** @type {WeakMap<PanelData, PanelData>} panels as they are seen: the same one for the same panel */
    this.seen = new WeakMap();
  }

  /** Return panels as they are seen. @param {Record<string, PanelData>} panels */
  of(panels) {
    if (this.unswitched) return panels;
    return Object.fromEntries(
      Object.entries(panels).map(([name, panel]) => {
        const seen = this.seen.get(panel) ?? withoutUnswitched(panel);
        this.seen.set(panel, seen);
        return [name, seen];
      }),
    );
  }
}

/** Return a panel without the curves of the run without the newest switch. @param {PanelData} panel */
function withoutUnswitched(panel) {
  const kept = panel.marks.map((_, index) => index).filter((index) => !panel.ids[index].startsWith("without"));
  if (kept.length === panel.marks.length) return panel;
  return { ...panel, ids: kept.map((at) => panel.ids[at]), marks: kept.map((at) => panel.marks[at]) };
}
