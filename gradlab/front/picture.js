// @ts-check
/** The picture of a panel: its canvas, the motion from state to state, and the lit marks. */

import { addElement } from "./events.js";
import { isLit } from "./lighting.js";
import { isStill, motionBetween, REST } from "./motion.js";
import { paint } from "./painter.js";

/** @import { Mark, PanelState } from "./wire.js" */
/** @import { Motion, Way } from "./motion.js" */
/** @import { Tags } from "./lighting.js" */
/** @import { Theme } from "./palette.js" */

const [RAISED, OTHER] = [2, 0.75]; // strengths of lit marks and of the others

export class Picture {
  /** @param {HTMLElement} figure parent of the canvas */
  constructor(figure) {
    this.figure = figure;
    this.canvas = addElement("canvas", figure);
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    /** @type {PanelState | null} */
    this._panel = null;
    /** @type {Motion | null} from the previous state to this one */
    this._motion = null;
    this._shown = -Infinity; // time of this state in ms
    /** @type {Tags | null} tags of the lit marks, which glow */
    this._lit = null;
    /** @type {Theme} */
    this._theme = "light";
  }

  /** Show a state, after a short motion. @param {PanelState} panel @param {Way} way */
  show(panel, way) {
    const now = performance.now();
    const before = way === "glide" ? this._motion?.at(now) ?? this._panel : this._panel;
    const rested = way === "glide" || (way === "steps" && now - this._shown >= REST);
    const wanted = rested && !isStill();
    [this._panel, this._shown] = [panel, now];
    this._move(before && wanted ? motionBetween(before, panel, now, way === "glide") : null);
    this.paint();
  }

  /** @param {Theme} theme */
  setTheme(theme) {
    this._theme = theme;
    this.paint();
  }

  /** Paint on a canvas that fits the panel and the density of the screen. */
  paint() {
    const [panel, { canvas }] = [this._panel, this];
    if (!panel) return;
    const density = Math.min(devicePixelRatio, 2); // a phone's 3 or 4 would halve the frame rate with no visible effect
    const [width, height] = panel.size.map((side) => Math.round(side * density));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height }); // clears it
    canvas.style.height = `${panel.size[1]}px`;
    const painted = this._motion?.at(performance.now()) ?? panel;
    const lit = this._lit;
    const strength = (/** @type {string} */ id, /** @type {Mark} */ mark) =>
      !lit ? 1 : isLit(lit, id, mark) ? RAISED : OTHER;
    paint(this.context, painted, this._theme, width / panel.size[0], strength);
  }

  // Motion -------------------------------------------------------------------------------------------------------------

  /** End the current motion. */
  finish() {
    this._move(null);
    this.paint();
  }

  /** @param {Motion | null} motion */
  _move(motion) {
    const idle = !this._motion;
    this._motion = motion;
    this.figure.toggleAttribute("data-moving", motion !== null);
    if (motion && idle) requestAnimationFrame(() => this._goOn());
  }

  _goOn() {
    if (!this._motion) return;
    if (this._motion.isOver(performance.now())) return this.finish();
    this.paint();
    requestAnimationFrame(() => this._goOn());
  }

  // Light --------------------------------------------------------------------------------------------------------------

  /** Light the marks that have one of these tags, null for none. @param {Tags | null} tags */
  light(tags) {
    if (tags === this._lit) return;
    this._lit = tags;
    this.paint();
  }

  /** Return whether a mark of this panel has one of these tags. @param {Tags} tags */
  has(tags) {
    const panel = this._panel;
    return panel !== null && panel.marks.some((mark, index) => isLit(tags, panel.ids[index], mark));
  }
}
