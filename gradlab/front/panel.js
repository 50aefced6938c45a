// @ts-check
/** One panel: its canvas, and the tooltip, keys and list of marks that make it accessible. */

import { PanelDrag } from "./drag.js";
import { addButton, addElement } from "./events.js";
import { withGuess } from "./guess.js";
import { tagsOfMark } from "./lighting.js";
import { layOut } from "./layout.js";
import { boxOf, foundAt, isMoved, isSpokenOf, meantAt, nearestMark, pointNumbers } from "./marks.js";
import { Camera, isStill } from "./motion.js";
import { measureText } from "./painter.js";
import { Picture } from "./picture.js";
import { valueAt } from "./scales.js";
import { PanelTip } from "./tip.js";

/** @import { PanelData, PanelState, Mark } from "./wire.js" */
/** @import { Plot } from "./axes.js" */
/** @import { Found } from "./marks.js" */
/** @import { Ask } from "./events.js" */
/** @import { Tags } from "./lighting.js" */
/**
 * `say` has a screen reader read a text; `scrubs` is whether a finger moved across a curve moves through time.
 * @typedef {{ask: Ask, say: (text: string) => void, scrubs?: boolean}} Listener
 */

const GRAB = { mouse: 16, touch: 22 }; // CSS pixels from the centre of a movable mark: 32 and 44 across
/** @type {Record<string, number>} number of points that a key moves along a curve */
const CURVE_KEYS = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };
/** @type {Record<string, number>} number of marks that a key moves */
const MARK_KEYS = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 };
/** @type {Record<string, [number, number]>} directions to the right and down */
const PUSH_KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const PUSH = 0.02; // share of the panel's size by which Shift and an arrow key move a draggable mark

/** A `<figure>` with a panel's picture, which sends presses and drags in it to the kernel. */
export class Panel {
  /**
   * @param {Element} root parent of the figure
   * @param {Listener & {
   *   name: string, zoom?: (low?: number, high?: number) => void, point?: (tags: Tags | null) => void,
   * }} options `zoom` shows a range of all x axes or, without limits, all of them; `point` gets the tags at the pointer
   */
  constructor(root, { name, say, ask, zoom = () => {}, point = () => {}, scrubs = false }) {
    this.name = name;
    this.figure = addElement("figure", root, "gl-panel");
    this.figure.dataset.panel = name;
    Object.assign(this.figure, { gradlabPanel: this }); // for tests and the console
    this.picture = new Picture(this.figure);
    this.canvas = this.picture.canvas;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this._all = addButton(this.figure, "Show all", () => {
      this.canvas.focus(); // the button is hidden
      zoom();
    }, "gl-all");
    this._all.hidden = true;
    this._tip = new PanelTip(this.figure);
    this._list = addElement("ul", this.figure, "gl-hidden");
    this._say = say;
    this.ask = ask;
    this.zoom = zoom;
    this.scrubs = scrubs;
    this._onPoint = point;
    /** @type {PanelData | null} */
    this.data = null;
    /** @type {PanelState | null} the data, laid out */
    this._panel = null;
    this._height = 260; // CSS pixels
    /** @type {[number, number] | null} the visible range of x */
    this._range = null;
    this._camera = new Camera();
    /** @type {PanelData["axes"] | null} the axes during a drag, so that the mark stays under the pointer */
    this._heldAxes = null;
    /** @type {[number, number] | null} position of the pointer in the panel */
    this._pointer = null;
    this._near = 0; // CSS pixels from a movable mark at which that pointer grabs it
    /** @type {{id: string, point: number} | null} the mark and point selected with the keys */
    this._stop = null;
    this._drag = new PanelDrag(this);
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => this._hover(event));
    canvas.addEventListener("pointerleave", () => this._leave());
    canvas.addEventListener("click", (event) => {
      if (!this._drag.moved) this._press(this._panel && meantAt(this._panel, ...this.placeOf(event), 0));
    });
    canvas.addEventListener("dblclick", () => {
      if (this._panel?.zooms) this.zoom();
    });
    canvas.addEventListener("keydown", (event) => {
      if (this._key(event)) event.preventDefault();
    });
    canvas.addEventListener("focus", () => this.describe());
    canvas.addEventListener("blur", () => this._leave());
    this._observer = new ResizeObserver(() => this.resize());
    this._observer.observe(this.figure);
  }

  /** Show a state. @param {PanelData} data @param {import("./motion.js").Way} [way] of moving to it */
  show(data, way = "steps") {
    this.data = data;
    const label = data.words ? `${data.title}. ${data.words}` : data.title;
    if (this.canvas.ariaLabel !== label) this.canvas.ariaLabel = label;
    this._layOut(way);
  }

  /** Lay the panel out at this height and its current width. @param {number} height */
  resize(height = this._height) {
    this._height = height;
    this._layOut("none");
  }

  /** Show a range of the x axis, null for all of it. @param {[number, number] | null} range */
  setRange(range) {
    this._range = range;
    this._layOut("none");
  }

  /** The upper limit of the x axis if it can be zoomed, else 0. */
  get reach() {
    const axes = this.data?.axes[0];
    return axes?.zooms ? axes.x.high : 0;
  }

  /** @param {import("./motion.js").Way} way */
  _layOut(way) {
    const { width } = this.figure.getBoundingClientRect();
    if (!this.data || !width) return;
    const data = withGuess(this.data, this.figure);
    const now = performance.now();
    const idle = this._camera.isOver(now);
    this._camera.aim(data.axes, now, isStill());
    const axes = this._heldAxes ?? this._camera.at(now);
    if (idle && !this._camera.isOver(now)) requestAnimationFrame(() => this._ease());
    const range = this._range && this._range[0] < this.reach ? this._range : null;
    const panel = this._panel = layOut(
      { ...data, axes, live: !this.scrubs },
      [width, this._height],
      measureText,
      range,
    );
    this.picture.show(panel, this._heldAxes ? "none" : way);
    this._all.hidden = !range;
    const title = panel.marks[panel.ids.indexOf("title")];
    if (range && title) this._all.style.left = `${boxOf(title)[2] + 10}px`;
    if (this._drag.busy) return;
    if (this._pointer) this._showTip(meantAt(panel, ...this._pointer, this._near));
    else if (this._stop) this._showTip(this._atStop());
  }

  /** Lay the panel out with axes on their way to new limits. */
  _ease() {
    const now = performance.now();
    if (this._camera.isOver(now)) return this._layOut("none");
    if (this.figure.hasAttribute("data-moving")) this._camera.wait(now);
    else this._layOut("none");
    requestAnimationFrame(() => this._ease());
  }

  /** Write the marks' texts into the list for screen readers. */
  describe() {
    const panel = this._panel;
    if (!panel) return;
    const words = panel.marks.map((mark, index) => foundAt(panel, index, lastPoint(mark)).words);
    const texts = [this.data?.words, ...words].filter(Boolean);
    this._list.replaceChildren(...texts.map((text) => addElement("li", null, "", text)));
  }

  /** Remove the figure. */
  close() {
    this._observer.disconnect();
    this.figure.remove();
  }

  // The pointer --------------------------------------------------------------------------------------------------------

  /** @param {MouseEvent} event @returns {[number, number]} */
  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** @param {PointerEvent} event */
  _hover(event) {
    const panel = this._panel;
    if (!panel || this._drag.busy) return;
    this._pointer = this.placeOf(event);
    this._near = reachOf(event);
    const target = meantAt(panel, ...this._pointer, this._near);
    this._stop = null;
    this._showTip(target);
    this._onPoint(target && tagsOfMark(panel.ids[target.index], target.mark));
    this.canvas.style.cursor = target && isMoved(target.mark)
      ? "grab"
      : target?.mark.press
      ? "pointer"
      : this.groundAt(this._pointer)
      ? "crosshair"
      : "";
  }

  _leave() {
    this._pointer = this._stop = null;
    this._showTip(null);
    this._onPoint(null);
  }

  /** Return the movable mark there, and keep the axes for dragging it. @param {PointerEvent} event */
  grab(event) {
    const panel = this._panel;
    const target = panel && nearestMark(panel, ...this.placeOf(event), isMoved, reachOf(event));
    if (target) this._heldAxes = this.data?.axes ?? null;
    return target?.mark ?? null;
  }

  /** Show the position of the dragged mark; null for none. @param {[number, number] | null} place */
  follow(place) {
    this._tip.hide();
    if (!place) return;
    this._tip.point(...place);
    this.canvas.style.cursor = "grabbing";
  }

  /** End a drag. */
  drop() {
    this._tip.hide();
    this.canvas.style.cursor = "";
    if (!this._heldAxes) return;
    this._heldAxes = null;
    this._layOut("none");
  }

  /** Return the axes there if a range can be chosen in them. @param {[number, number]} place @returns {Plot | null} */
  groundAt([x, y]) {
    const plot = this._panel?.zooms ? this._panel.plots[0] : null;
    return plot && x >= plot.left && x <= plot.right && y >= plot.top && y <= plot.bottom ? plot : null;
  }

  /** @param {Found | null | undefined} target */
  _press(target) {
    if (target?.mark.press) this.ask({ do: "press", what: target.mark.press });
  }

  // The tooltip --------------------------------------------------------------------------------------------------------

  /** @param {Found | null} target */
  _showTip(target) {
    const panel = this._panel;
    if (!panel || !target || !(target.words || this._stop)) return this._tip.hide();
    const hint = this._pointer && panel.zooms ? !this._all.hidden ? "double-click shows all" : "drag to zoom" : "";
    this._tip.show(panel, target, hint);
  }

  // The keys -----------------------------------------------------------------------------------------------------------

  /** Handle a key; return whether it has a meaning here. @param {KeyboardEvent} event */
  _key(event) {
    const panel = this._panel;
    if (!panel || event.ctrlKey || event.metaKey || event.altKey) return false;
    const { key } = event;
    if (event.shiftKey && key.startsWith("Arrow")) return this._push(key);
    if (key === "Escape") this._leave();
    else if ((key === "Enter" && !event.shiftKey) || key === " ") this._press(this._atStop());
    else if (key === "0" && panel.zooms) this.zoom();
    else if ((key === "+" || key === "=") && panel.zooms) this._zoomBy(panel, 0.5);
    else if (key === "-" && panel.zooms) this._zoomBy(panel, 2);
    else return this._go(panel, key);
    return true;
  }

  /** Go to another mark or point and announce it. @param {PanelState} panel @param {string} key */
  _go(panel, key) {
    const stops = panel.marks.map((mark, index) => ({ mark, id: panel.ids[index] })).filter(({ mark }) =>
      isSpokenOf(mark) && (mark.k === "t" || mark.k === "i" || pointNumbers(mark).length) // empty marks are nowhere
    );
    const current = stops.findIndex(({ id }) => id === this._stop?.id);
    const points = stops[current]?.mark.readout ? pointNumbers(stops[current].mark) : [];
    if (points.length && key in CURVE_KEYS) {
      const from = points.findIndex((point) => point >= (this._stop?.point ?? -1));
      const to = (from < 0 ? points.length - 1 : from) + CURVE_KEYS[key];
      this._stop = { id: stops[current].id, point: points[Math.min(Math.max(to, 0), points.length - 1)] };
    } else {
      const first = Math.max(0, stops.findIndex(({ mark }) => mark.readout || mark.press || mark.drag));
      const step = current < 0 ? first : (current + MARK_KEYS[key]) % stops.length; // first to an interactive mark
      const stop = stops.at(key === "Home" ? 0 : key === "End" ? -1 : step);
      if (!stop || !(key in MARK_KEYS || key === "Home" || key === "End")) return false;
      this._stop = { id: stop.id, point: lastPoint(stop.mark) };
    }
    this._pointer = null;
    const target = this._atStop();
    this._showTip(target);
    if (target) this._say(target.words || target.mark.press || "");
    return true;
  }

  /** @returns {Found | null} */
  _atStop() {
    const [panel, stop] = [this._panel, this._stop];
    const index = panel && stop ? panel.ids.indexOf(stop.id) : -1;
    if (!panel || !stop || index < 0) return null;
    const mark = panel.marks[index];
    const has = mark.k !== "t" && mark.k !== "i" && stop.point >= 0;
    return foundAt(panel, index, has ? Math.min(stop.point, Math.max(...pointNumbers(mark), -1)) : -1);
  }

  /** Move the draggable mark a little. @param {string} key */
  _push(key) {
    const panel = this._panel;
    const index = panel ? panel.marks.findIndex(isMoved) : -1;
    if (!panel || index < 0) return false;
    const { mark, x, y } = foundAt(panel, index, lastPoint(panel.marks[index]));
    const [[right, down], [width, height]] = [PUSH_KEYS[key], panel.size];
    this._stop = { id: panel.ids[index], point: lastPoint(mark) };
    this._drag.tell(mark, [x + right * PUSH * width, y + down * PUSH * height]);
    return true;
  }

  /** Show a share of the range, around the selected point. @param {PanelState} panel @param {number} share */
  _zoomBy({ plots: [{ x, right }] }, share) {
    const middle = valueAt(x, this._atStop()?.x ?? right);
    const [low, high] = [x.axis.low, x.axis.high].map((limit) => middle + (limit - middle) * share);
    this.zoom(low, high);
  }
}

/** Return the CSS pixels within which a pointer can grab a movable mark. @param {PointerEvent} event */
function reachOf({ pointerType }) {
  return pointerType === "touch" ? GRAB.touch : GRAB.mouse;
}

/** Return the newest point of a curve or of dots, -1 for a mark as a whole. @param {Mark} mark */
function lastPoint(mark) {
  return mark.readout || mark.k === "d" ? pointNumbers(mark).at(-1) ?? -1 : -1;
}
