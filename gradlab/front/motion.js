// @ts-check
/**
 * The motion of a panel from one state to the next: new marks slide in, marks in both states go to their new position,
 * removed marks are swept out. Only marks with `moves` move; all others change at once. In a recorded instrument, whose
 * states are far apart, all marks in both states glide instead.
 */

import { pointsOf, withPoints } from "./wire.js";

/** @import { Axes, Axis, Mark, PanelState } from "./wire.js" */
/** @typedef {(share: number) => Mark[]} Course the marks to paint for one mark, for 0 to 1 of the way */
/** @typedef {"none" | "steps" | "glide"} Way of changing: no motion, marks with `moves`, all marks in both states */

const MOVES_FOR = 230; // ms
const SWEPT = 0.35; // share of the panel's width by which a removed mark moves to the right
const EASES_FOR = 400; // ms for a change of a plane's limits
export const REST = 280; // ms for which a state must have been shown; faster states look like a film anyway

/** The motion from one state to another. */
export class Motion {
  /**
   * @param {PanelState} to @param {Map<number, Course>} courses of its moving marks, by index
   * @param {{id: string, course: Course}[]} gone removed marks @param {number} began its time
   */
  constructor(to, courses, gone, began) {
    this.isOver = (/** @type {number} */ now) => now - began >= MOVES_FOR;
    const all = [
      ...to.marks.map((mark, index) => ({ id: to.ids[index], course: courses.get(index) ?? (() => [mark]) })),
      ...gone,
    ];
    /** Return the state to paint, in which some marks have an `alpha`. @param {number} now @returns {PanelState} */
    this.at = (now) => {
      const share = Math.min(Math.max((now - began) / MOVES_FOR, 0), 1);
      const painted = all.flatMap(({ id, course }) => course(share).map((mark) => ({ id, mark })));
      return { ...to, ids: painted.map(({ id }) => id), marks: painted.map(({ mark }) => mark) };
    };
  }
}

/**
 * Return the motion from one state to another, null if nothing moves. With `glides`, all marks in both states move.
 * @param {PanelState} from @param {PanelState} to @param {number} now @returns {Motion | null}
 */
export function motionBetween(from, to, now, glides = false) {
  if (from.size.join() !== to.size.join()) return null;
  const moves = (/** @type {Mark} */ mark) => glides ? mark.k !== "i" : mark.moves;
  const before = new Map(from.marks.flatMap((mark, i) => moves(mark) ? [[nameOf(mark, from.ids[i]), mark]] : []));
  /** @type {Map<number, Course>} */
  const courses = new Map();
  to.marks.forEach((mark, index) => {
    if (!moves(mark)) return;
    const name = nameOf(mark, to.ids[index]);
    const old = before.get(name);
    before.delete(name);
    if (glides && old && old !== mark && old.k === mark.k) courses.set(index, gliding(old, mark));
    else if (glides) return;
    else if (!old) courses.set(index, entering(mark, firstOfFamily(to, index)));
    else if (old !== mark && differ(old, mark)) courses.set(index, changing(old, mark));
  });
  if (glides) return courses.size ? new Motion(to, courses, [], now) : null;
  const gone = [...before].map(([id, mark]) => ({ id, course: leaving(mark, from.size[0]) }));
  if (!courses.size && !gone.length) return null;
  const oldIds = new Set(from.ids);
  to.marks.forEach((mark, index) => {
    if (mark.k === "t" && !oldIds.has(to.ids[index])) courses.set(index, (share) => [{ ...mark, alpha: share }]);
  });
  return new Motion(to, courses, gone, now);
}

/** Return the identity of a mark: its `press` or, without one, its id. @param {Mark} mark @param {string} id */
function nameOf(mark, id) {
  return mark.press ? `press ${mark.press}` : id;
}

/** @param {Mark} old @param {Mark} mark */
function differ(old, mark) {
  const styleText = (/** @type {Mark} */ { fill, hatch, stroke, dash }) => [fill, hatch, stroke, dash].join();
  return styleText(old) !== styleText(mark) || pointsOf(old).join() !== pointsOf(mark).join();
}

/** Return the first mark whose id differs only in its number. @param {PanelState} panel @param {number} index */
function firstOfFamily(panel, index) {
  const family = panel.ids[index].replace(/\d+$/, "");
  return panel.marks[panel.ids.findIndex((id) => id.replace(/\d+$/, "") === family)];
}

/** Slide a new mark from the start of the first of its family, which grows. @param {Mark} mark @param {Mark} first @returns {Course} */
function entering(mark, first) {
  const points = pointsOf(mark);
  const origin = pointsOf(first).length ? pointsOf(first) : points; // an arrow of length 0 has no corners
  return (share) => {
    const [rest, size] = [1 - eased(share), mark === first && mark.k === "p" ? eased(share) : 1];
    const place = points.map((value, index) =>
      points[index % 2] + (value - points[index % 2]) * size + (origin[index % 2] - points[index % 2]) * rest
    );
    return [withPoints(mark, place, Math.min(1, 2 * share))];
  };
}

/** Move a mark to its new position and fade in its new style. @param {Mark} old @param {Mark} mark @returns {Course} */
function changing(old, mark) {
  const [from, to] = [pointsOf(old), pointsOf(mark)];
  const same = from.length === to.length;
  const restyled = old.fill !== mark.fill || old.hatch !== mark.hatch || old.dash !== mark.dash;
  return (share) => {
    const part = eased(share);
    const place = same ? placesBetween(from, to, part) : to;
    const before = same ? withPoints(old, place) : withPoints(old, from, 1 - share);
    return same && !restyled ? [withPoints(mark, place)] : [before, withPoints(mark, place, share)];
  };
}

/** @param {Mark} old @param {Mark} mark @returns {Course} */
function gliding(old, mark) {
  const isText = mark.k === "t";
  const [from, to] = [old, mark].map((each) => isText ? Float64Array.of(each.x ?? 0, each.y ?? 0) : pointsOf(each));
  if (old.text !== mark.text || (mark.closed && from.length !== to.length)) return () => [mark]; // it has a new outline
  return (share) => {
    const place = placesBetween(from, to, eased(share));
    return [isText ? { ...mark, x: place[0], y: place[1] } : withPoints(mark, place)];
  };
}

/**
 * Return coordinates at a share of the way; where there is no old or no new coordinate, the new one.
 * @param {Float64Array} from @param {Float64Array} to @param {number} share
 */
function placesBetween(from, to, share) {
  return to.map((end, index) => Number.isFinite(end - from[index]) ? from[index] + (end - from[index]) * share : end);
}

/** Sweep a removed mark out to the right. @param {Mark} mark @param {number} width of the panel @returns {Course} */
function leaving(mark, width) {
  const points = pointsOf(mark);
  return (share) => {
    const away = SWEPT * width * share * share;
    return [withPoints(mark, points.map((value, index) => index % 2 ? value : value + away), 1 - share)];
  };
}

/** The axes of a panel, which ease to new limits if they have equal units; other axes change at once. */
export class Camera {
  constructor() {
    /** @type {Axes[]} */
    this._from = this._to = [];
    this._began = -Infinity;
  }

  /** Set the axes to ease to, or with `still` to show at once. @param {Axes[]} axes @param {number} now */
  aim(axes, now, still = false) {
    if (axes === this._to) return;
    const from = this.at(now);
    const eases = !still && limitsOf(from).length === limitsOf(axes).length && axes.every(({ equal }) => equal);
    if (eases && limitsOf(axes).join() === limitsOf(this._to).join()) this._to = axes;
    else [this._from, this._to, this._began] = [eases ? from : axes, axes, eases ? now : -Infinity];
  }

  /** @param {number} now */
  isOver(now) {
    return now - this._began >= EASES_FOR;
  }

  /** Pause the easing while marks move. @param {number} now */
  wait(now) {
    if (!this.isOver(now)) [this._from, this._began] = [this.at(now), now];
  }

  /** Return the axes at a time. @param {number} now @returns {Axes[]} */
  at(now) {
    if (this.isOver(now)) return this._to;
    const share = eased(Math.max(now - this._began, 0) / EASES_FOR);
    const between = (/** @type {Axis} */ from, /** @type {Axis} */ to) => ({
      ...to,
      low: from.low + (to.low - from.low) * share,
      high: from.high + (to.high - from.high) * share,
    });
    return this._to.map((axes, index) => ({
      ...axes,
      x: between(this._from[index].x, axes.x),
      y: between(this._from[index].y, axes.y),
    }));
  }
}

/** @param {Axes[]} axes */
function limitsOf(axes) {
  return axes.flatMap(({ x, y }) => [x.low, x.high, y.low, y.high]);
}

/** Return whether motion is off. */
export function isStill() {
  return document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Return the eased share: fast at first, slow at the end. @param {number} share */
function eased(share) {
  return 1 - (1 - share) ** 3;
}
