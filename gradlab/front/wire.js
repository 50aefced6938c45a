// @ts-check
/** Reads panels off the wire: whole ones, and changes to them. `gradlab/drawing/wire.py` writes them and says how. */

/**
 * How places are read as numbers: `start + per_pixel * place`, or 10 to the power of that.
 * @typedef {{start: number, per_pixel: number, log?: boolean}} Axis
 */
/** @typedef {{words: string, x: Axis, y: Axis}} Readout */
/** @typedef {{name: string, x: Axis, y: Axis}} Drag */
/**
 * One mark with the fields that are not at their defaults; `k` is p(ath), b(and), d(ots), t(ext) or i(mage). `alpha` is
 * never sent: a mark on its way (`motion.js`) is not all there.
 * @typedef {{
 *   k: "p" | "b" | "d" | "t" | "i", p?: (number | null)[],
 *   stroke?: string, width?: number, dash?: string, fill?: string, hatch?: string, shape?: string, size?: number,
 *   x?: number, y?: number, text?: string, role?: string, anchor?: string, bold?: boolean, backed?: boolean,
 *   angle?: number, height?: number, columns?: number, cells?: string, palette?: string[],
 *   words?: string, readout?: Readout, drag?: Drag, press?: string, moves?: boolean, done?: string,
 *   alpha?: number,
 * }} Mark
 */
/** @typedef {{size: [number, number], title: string, words: string, ids: string[], marks: Mark[]}} PanelState */
/** @typedef {Partial<PanelState> & {set?: [number, Record<string, unknown>][]}} PanelChange */

const PARTS = 4; // of a CSS pixel, in which places are sent

/**
 * Return the panel after a change; a whole panel needs none before it.
 * @param {PanelState | null | undefined} panel
 * @param {PanelChange} change
 * @returns {PanelState}
 */
export function applyPanel(panel, change) {
  const { set, ...head } = change;
  if (head.marks) return /** @type {PanelState} */ (head);
  if (!panel) throw new Error("a change came for a panel of which nothing is known");
  const marks = head.ids ? marksById(panel, head.ids) : set ? [...panel.marks] : panel.marks;
  for (const [index, fields] of set ?? []) {
    marks[index] = fields.k ? /** @type {Mark} */ (fields) : changedMark(marks[index], fields);
  }
  return { ...panel, ...head, marks };
}

/**
 * Return the marks of a panel in another order; one that is new is filled in afterwards.
 * @param {PanelState} panel
 * @param {string[]} ids
 */
function marksById(panel, ids) {
  const known = new Map(panel.ids.map((id, index) => [id, panel.marks[index]]));
  return ids.map((id) => /** @type {Mark} */ (known.get(id)));
}

/**
 * @param {Mark} mark
 * @param {Record<string, unknown>} fields
 * @returns {Mark}
 */
function changedMark(mark, fields) {
  /** @type {Record<string, unknown>} */
  const changed = { ...mark, ...fields };
  for (const [name, value] of Object.entries(fields)) if (value === null) delete changed[name];
  if (fields.p) {
    const [kept, ...tail] = /** @type {[number, ...(number | null)[]]} */ (fields.p);
    changed.p = (mark.p ?? []).slice(0, kept).concat(tail);
  }
  return /** @type {Mark} */ (changed);
}

/** @type {WeakMap<Mark, Float64Array>} */
const decodedPoints = new WeakMap();

/**
 * Return how many numbers make a point of the mark.
 * @param {Mark} mark
 */
export function pointLength(mark) {
  return mark.k === "b" ? 3 : 2;
}

/**
 * Return a mark's points in CSS pixels, one after the other, NaN where the pen is lifted.
 * @param {Mark} mark
 * @returns {Float64Array}
 */
export function pointsOf(mark) {
  let points = decodedPoints.get(mark);
  if (!points) {
    points = decode(mark.p ?? [], pointLength(mark));
    decodedPoints.set(mark, points);
  }
  return points;
}

/**
 * Return the same mark with its points elsewhere, in CSS pixels.
 * @param {Mark} mark
 * @param {Float64Array} points
 * @param {number} [alpha] how much of it is there
 * @returns {Mark}
 */
export function withPoints(mark, points, alpha = 1) {
  const moved = alpha === 1 ? { ...mark } : { ...mark, alpha };
  decodedPoints.set(moved, points);
  return moved;
}

/**
 * @param {(number | null)[]} sent differences in quarters of a pixel; null lifts the pen and counts from 0 again
 * @param {number} each numbers a point
 */
function decode(sent, each) {
  const lifts = sent.reduce((/** @type {number} */ count, number) => count + (number === null ? 1 : 0), 0);
  const points = new Float64Array(sent.length + lifts * (each - 1));
  const place = new Array(each).fill(0);
  let at = 0;
  let turn = 0;
  for (const number of sent) {
    if (number === null) {
      points.fill(NaN, at, at + each);
      at += each;
      place.fill(0);
    } else {
      place[turn] += number;
      points[at++] = place[turn] / PARTS;
      turn = (turn + 1) % each;
    }
  }
  return points;
}

/**
 * Return the number that an axis reads at a place in CSS pixels.
 * @param {Axis} axis
 * @param {number} place
 */
export function axisValue(axis, place) {
  const number = axis.start + axis.per_pixel * place;
  return axis.log ? 10 ** number : number;
}
