// @ts-check
/** One panel: its canvas, and the tooltip, keys and list of marks that make it readable for everybody. */

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
 * `say` reads a text out, `scrubs` says whether a finger that is moved across a curve goes through time.
 * @typedef {{ask: Ask, say: (text: string) => void, scrubs?: boolean}} Listener
 */

const GRAB = { mouse: 16, touch: 22 }; // CSS pixels from what can be moved: 32 and 44 across
/** @type {Record<string, number>} how many points along a curve a key goes */
const CURVE_KEYS = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };
/** @type {Record<string, number>} how many marks */
const MARK_KEYS = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 };
/** @type {Record<string, [number, number]>} to the right and down */
const PUSH_KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const PUSH = 0.02; // of the panel, that an arrow key with Shift moves what can be dragged

/** A `<figure>` that paints a panel's state, and tells the kernel what is pressed and dragged in it. */
export class Panel {
  /**
   * @param {Element} root gets the figure
   * @param {Listener & {
   *   name: string, zoom?: (low?: number, high?: number) => void, point?: (tags: Tags | null) => void,
   * }} options `zoom` shows a range of the x axes or all of them, `point` gets the mark at the pointer
   */
  constructor(root, { name, say, ask, zoom = () => {}, point = () => {}, scrubs = false }) {
    this.name = name;
    this.figure = addElement("figure", root, "gl-panel");
    this.figure.dataset.panel = name;
    Object.assign(this.figure, { gradlabPanel: this }); // for tests, and for who looks at a page by its console
    this.picture = new Picture(this.figure);
    this.canvas = this.picture.canvas;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this._all = addButton(this.figure, "Show all", () => {
      this.canvas.focus(); // the button goes
      zoom();
    }, "gl-all");
    this._all.hidden = true;
    this._tip = new PanelTip(this.figure);
    this._list = addElement("ul", this.figure, "gl-hidden");
    this._say = say;
    this.ask = ask;
    this.zoom = zoom;
    this.scrubs = scrubs;
    this._tellPoint = point;
    /** @type {PanelData | null} */
    this.data = null;
    /** @type {PanelState | null} the same, laid out */
    this._panel = null;
    this._height = 260; // CSS pixels
    /** @type {[number, number] | null} the part of x that is seen */
    this._range = null;
    this._camera = new Camera();
    /** @type {PanelData["axes"] | null} those on which something is held to be dragged: it would not lie under the pointer on others */
    this._held = null;
    /** @type {[number, number] | null} where the pointer is, in the panel's pixels */
    this._pointer = null;
    this._near = 0; // pixels from what can be moved, at which that pointer grabs it
    /** @type {{id: string, point: number} | null} the mark that the keys have gone to */
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

  /** Show a state, to readers at once. @param {PanelData} data @param {import("./motion.js").Way} [way] of getting there */
  show(data, way = "steps") {
    this.data = data;
    const label = data.words ? `${data.title}. ${data.words}` : data.title;
    if (this.canvas.ariaLabel !== label) this.canvas.ariaLabel = label;
    this._layOut(way);
  }

  /** Lay the panel out at this height, and as wide as it is. @param {number} height */
  resize(height = this._height) {
    this._height = height;
    this._layOut("none");
  }

  /** Show a part of the x axis, null for all. @param {[number, number] | null} range */
  setRange(range) {
    this._range = range;
    this._layOut("none");
  }

  /** The last number of the x axis that can be zoomed, 0 where none can. */
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
    const axes = this._held ?? this._camera.at(now);
    if (idle && !this._camera.isOver(now)) requestAnimationFrame(() => this._ease());
    const range = this._range && this._range[0] < this.reach ? this._range : null;
    const panel = this._panel = layOut(
      { ...data, axes, live: !this.scrubs },
      [width, this._height],
      measureText,
      range,
    );
    this.picture.show(panel, this._held ? "none" : way);
    this._all.hidden = !range;
    const title = panel.marks[panel.ids.indexOf("title")];
    if (range && title) this._all.style.left = `${boxOf(title)[2] + 10}px`;
    if (this._drag.busy) return;
    if (this._pointer) this._showTip(meantAt(panel, ...this._pointer, this._near));
    else if (this._stop) this._showTip(this._atStop());
  }

  /** Lay the panel out on the next axes of those between. */
  _ease() {
    const now = performance.now();
    if (this._camera.isOver(now)) return this._layOut("none");
    if (this.figure.hasAttribute("data-moving")) this._camera.wait(now);
    else this._layOut("none");
    requestAnimationFrame(() => this._ease());
  }

  /** Write the marks' words into the list for screen readers. */
  describe() {
    const panel = this._panel;
    if (!panel) return;
    const words = panel.marks.map((mark, index) => foundAt(panel, index, lastPoint(mark)).words);
    const texts = [this.data?.words, ...words].filter(Boolean);
    this._list.replaceChildren(...texts.map((text) => addElement("li", null, "", text)));
  }

  /** Take the figure away. */
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
    const found = meantAt(panel, ...this._pointer, this._near);
    this._stop = null;
    this._showTip(found);
    this._tellPoint(found && tagsOfMark(panel.ids[found.index], found.mark));
    this.canvas.style.cursor = found && isMoved(found.mark)
      ? "grab"
      : found?.mark.press
      ? "pointer"
      : this.groundAt(this._pointer)
      ? "crosshair"
      : "";
  }

  _leave() {
    this._pointer = this._stop = null;
    this._showTip(null);
    this._tellPoint(null);
  }

  /** Hold what can be moved there. @param {PointerEvent} event */
  grab(event) {
    const panel = this._panel;
    const found = panel && nearestMark(panel, ...this.placeOf(event), isMoved, reachOf(event));
    if (found) this._held = this.data?.axes ?? null;
    return found?.mark ?? null;
  }

  /** Show where what is held has been moved to, null for nothing. @param {[number, number] | null} place */
  follow(place) {
    this._tip.hide();
    if (!place) return;
    this._tip.point(...place);
    this.canvas.style.cursor = "grabbing";
  }

  /** Let go of what is held. */
  drop() {
    this._tip.hide();
    this.canvas.style.cursor = "";
    if (!this._held) return;
    this._held = null;
    this._layOut("none");
  }

  /** Return the axes of which a range can be chosen there. @param {[number, number]} place @returns {Plot | null} */
  groundAt([x, y]) {
    const plot = this._panel?.zooms ? this._panel.plots[0] : null;
    return plot && x >= plot.left && x <= plot.right && y >= plot.top && y <= plot.bottom ? plot : null;
  }

  /** @param {Found | null | undefined} found */
  _press(found) {
    if (found?.mark.press) this.ask({ do: "press", what: found.mark.press });
  }

  // The tooltip --------------------------------------------------------------------------------------------------------

  /** @param {Found | null} found */
  _showTip(found) {
    const panel = this._panel;
    if (!panel || !found || !(found.words || this._stop)) return this._tip.hide();
    const hint = this._pointer && panel.zooms ? !this._all.hidden ? "double-click shows all" : "drag to zoom" : "";
    this._tip.show(panel, found, hint);
  }

  // The keys -----------------------------------------------------------------------------------------------------------

  /** Do what a key means; return whether it means something here. @param {KeyboardEvent} event */
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

  /** Go to the next mark or point, and say what is there. @param {PanelState} panel @param {string} key */
  _go(panel, key) {
    const stops = panel.marks.map((mark, index) => ({ mark, id: panel.ids[index] })).filter(({ mark }) =>
      isSpokenOf(mark) && (mark.k === "t" || mark.k === "i" || pointNumbers(mark).length) // an empty one is nowhere
    );
    const at = stops.findIndex(({ id }) => id === this._stop?.id);
    const points = stops[at]?.mark.readout ? pointNumbers(stops[at].mark) : [];
    if (points.length && key in CURVE_KEYS) {
      const from = points.findIndex((point) => point >= (this._stop?.point ?? -1));
      const to = (from < 0 ? points.length - 1 : from) + CURVE_KEYS[key];
      this._stop = { id: stops[at].id, point: points[Math.min(Math.max(to, 0), points.length - 1)] };
    } else {
      const first = Math.max(0, stops.findIndex(({ mark }) => mark.readout || mark.press || mark.drag));
      const step = at < 0 ? first : (at + MARK_KEYS[key]) % stops.length; // at first to where something can be done
      const stop = stops.at(key === "Home" ? 0 : key === "End" ? -1 : step);
      if (!stop || !(key in MARK_KEYS || key === "Home" || key === "End")) return false;
      this._stop = { id: stop.id, point: lastPoint(stop.mark) };
    }
    this._pointer = null;
    const found = this._atStop();
    this._showTip(found);
    if (found) this._say(found.words || found.mark.press || "");
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

  /** Move what can be dragged a little. @param {string} key */
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

  /** Show a share of the range, around where the keys are. @param {PanelState} panel @param {number} share */
  _zoomBy({ plots: [{ x, right }] }, share) {
    const middle = valueAt(x, this._atStop()?.x ?? right);
    const [low, high] = [x.axis.low, x.axis.high].map((limit) => middle + (limit - middle) * share);
    this.zoom(low, high);
  }
}

/** Return how far from what can be moved a pointer may be to grab it, in CSS pixels. @param {PointerEvent} event */
function reachOf({ pointerType }) {
  return pointerType === "touch" ? GRAB.touch : GRAB.mouse;
}

/** Return the newest point of a curve or of dots, -1 for a mark as a whole. @param {Mark} mark */
function lastPoint(mark) {
  return mark.readout || mark.k === "d" ? pointNumbers(mark).at(-1) ?? -1 : -1;
}
