// @ts-check
/**
 * Decoding of frames, which have only changes, and of panels, which are whole or changes of the previous panel.
 * `gradlab/drawing/wire.py` writes panels and documents their format.
 */

/** @typedef {[low: number, high: number, texts: string[], rank: number, bracket: boolean]} Span */
/** @typedef {{low: number, high: number, log?: boolean, words?: string, ticks?: string, spans?: Span[]}} Axis */
/** @typedef {{x: Axis, y: Axis, equal?: string, zooms?: boolean, share?: number, caption?: string}} Axes */
/** @typedef {{texts: string[], fill?: string, stroke?: string, width?: number, hatch?: string, dash?: string}} Key */
/** @import { Scale } from "./scales.js" */
/**
 * A mark with the fields that are not at their defaults (`gradlab/drawing/marks.py`). The kernel sends it in data
 * coordinates, with its kind as `k`: l is a line, a an area, b a band, d dots, v an arrow, t a text, i an image. Laid
 * out, it is in CSS pixels; lines, areas, bands and arrows are paths (p), and it has the fields from `clip` on.
 * @typedef {{
 *   k: "l" | "a" | "v" | "p" | "b" | "d" | "t" | "i", p?: (number | null)[], axes?: number,
 *   stroke?: string, width?: number, dash?: string, fill?: string, hatch?: string, shape?: string, size?: number, line?: number,
 *   texts?: string[], of?: string, where?: string, clear?: boolean, swatch?: Key, role?: string, bold?: boolean, backed?: boolean,
 *   columns?: number, cells?: string, palette?: string[], words?: string, readout?: string, drag?: string, press?: string,
 *   moves?: boolean, x?: number, y?: number,
 *   clip?: number[], closed?: boolean, data?: Float64Array, scales?: {x: Scale, y: Scale}, tail?: Float64Array,
 *   live?: string, text?: string, anchor?: string, angle?: number, height?: number, alpha?: number,
 * }} Mark
 */
/**
 * A panel as the kernel sends it.
 * @typedef {{
 *   title: string, words?: string, axes: Axes[], corner?: string[], corner_role?: string, notes?: string[][], key?: Key[],
 *   notice?: string, faint?: boolean, live?: boolean, ids: string[], marks: Mark[],
 * }} PanelData
 */
/**
 * A panel laid out.
 * @typedef {{
 *   size: [number, number], faint: boolean, zooms: boolean,
 *   plots: import("./axes.js").Plot[], ids: string[], marks: Mark[],
 * }} PanelState
 */
/** @typedef {Record<string, any> & {set?: [number, Record<string, unknown>][]}} PanelChange */

/** @typedef {Record<string, any>} Shown */

/** @returns {Shown} */
export function nothingShown() {
  return { f: -1, panels: {}, values: {}, order: [] };
}

/**
 * Return the state after a frame. The state before is not modified, and unchanged parts are the same objects.
 * @param {Shown} before @param {Shown} frame @returns {Shown}
 */
export function mergeFrame(before, frame) {
  const base = frame.whole ? nothingShown() : before;
  const panels = { ...base.panels };
  for (const [name, change] of Object.entries(frame.panels ?? {})) panels[name] = applyPanel(panels[name], change);
  return { ...base, ...frame, values: frame.values ? { ...base.values, ...frame.values } : base.values, panels };
}

/**
 * Return the panel after a change; `panel` is not needed for a whole one.
 * @param {PanelData | null | undefined} panel @param {PanelChange} change @returns {PanelData}
 */
export function applyPanel(panel, change) {
  const { set, ...head } = change;
  if (head.marks) return withAxes(head);
  if (!panel) throw new Error("a change came for a panel of which nothing is known");
  const marksById = new Map(panel.ids.map((id, index) => [id, panel.marks[index]]));
  const marks = head.ids
    ? head.ids.map((/** @type {string} */ id) => marksById.get(id))
    : set
    ? [...panel.marks]
    : panel.marks;
  for (const [index, fields] of set ?? []) marks[index] = fields.k ? fields : changedMark(marks[index], fields);
  const changed = withFields(panel, { ...head, marks });
  return head.axes === undefined ? changed : withAxes(changed);
}

/** Return fields after a change; null is the default. @param {object} fields @param {object} change @returns {any} */
function withFields(fields, change) {
  return Object.fromEntries(Object.entries({ ...fields, ...change }).filter(([, value]) => value !== null));
}

/** Add the default limits of axes. @param {any} panel @returns {PanelData} */
function withAxes(panel) {
  const full = (/** @type {Partial<Axis>} */ axis = {}) => ({ low: 0, high: 1, ...axis });
  const axes = (panel.axes ?? [{}]).map((/** @type {any} */ each) => ({ ...each, x: full(each.x), y: full(each.y) }));
  return { ...panel, axes };
}

/** @param {Mark} mark @param {Record<string, unknown>} fields @returns {Mark} */
function changedMark(mark, fields) {
  if (!fields.p) return withFields(mark, fields);
  const [count, ...tail] = /** @type {[number, ...(number | null)[]]} */ (fields.p);
  return withFields(mark, { ...fields, p: (mark.p ?? []).slice(0, count).concat(tail) });
}

const MOST_KNOWN = 4000; // largest number of entries in a cache

/**
 * Return the cached value of a key; the first time it is computed.
 * @template K, V
 * @param {{get(key: K): V | undefined, set(key: K, value: V): unknown, size?: number, clear?(): void}} cache
 * @param {K} key @param {() => V} make @returns {V}
 */
export function remembered(cache, key, make) {
  let value = cache.get(key);
  if (value === undefined) {
    if ((cache.size ?? 0) > MOST_KNOWN) cache.clear?.();
    cache.set(key, value = make());
  }
  return value;
}

/** @type {WeakMap<Mark, Float64Array>} */
const decodedPoints = new WeakMap();

/** Return the number of coordinates of each point of a mark. @param {Mark} mark */
export function pointLength(mark) {
  return mark.k === "b" ? 3 : 2;
}

/** Return the coordinates of a mark's points, NaN for gaps. @param {Mark} mark */
export function pointsOf(mark) {
  return remembered(decodedPoints, mark, () => Float64Array.from(mark.p ?? [], (each) => each ?? NaN));
}

/** Return a mark with new points in pixels. @param {Mark} mark @param {Float64Array} points @param {number} [alpha] */
export function withPoints(mark, points, alpha = 1) {
  const moved = alpha === 1 ? { ...mark } : { ...mark, alpha };
  decodedPoints.set(moved, points);
  return moved;
}
