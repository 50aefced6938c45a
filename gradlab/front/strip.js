// @ts-check
/** The panels side by side: their order, their heights, and their updates from frames. */

import { MarkedWords } from "./lighting.js";
import { countText } from "./numbers.js";
import { forgetWidths } from "./painter.js";
import { Panel } from "./panel.js";

const LOWEST = 215; // smallest height of a panel in CSS pixels
const FEWEST = 2; // smallest number of updates in a chosen range
/** @type {Record<string, [number, number]>} height / width and largest height, by "columns panels" or columns */
const HEIGHTS = { "1 1": [0.56, 420], "1 2": [0.5, 235], "2 2": [0.8, 400], 1: [0.6, 260], 2: [0.72, 340] };

const [PLANE, HEAD] = [380, 46]; // CSS pixels: the largest height of a plane's panel, and the height above its axes
const AROUND = 285; // CSS pixels above and below the panels in a notebook's window: menus, switches, the warning

export class PanelStrip {
  /** @param {HTMLElement} root @param {import("./panel.js").Listener} to */
  constructor(root, to) {
    this.root = root;
    this.to = to;
    /** @type {Map<string, Panel>} */
    this.panels = new Map();
    /** @type {import("./palette.js").Theme} */
    this.theme = "light";
    /** @type {import("./motion.js").Way} */
    this.way = "steps";
    /** @type {[number, number] | null} the visible range of the x axes */
    this.range = null;
    this.words = new MarkedWords(root.closest(".gradlab") ?? root, (tags) => this.light(tags));
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(root.parentElement ?? root); // on a phone, the strip itself has no box
    this.refit = () => { // texts have other widths in a new font
      forgetWidths();
      this.measure();
    };
    document.fonts?.addEventListener("loadingdone", this.refit);
  }

  /** @param {import("./palette.js").Theme} theme */
  setTheme(theme) {
    this.theme = theme;
    for (const panel of this.panels.values()) panel.picture.setTheme(theme);
  }

  /** Write the contents of the panels for screen readers. */
  describe() {
    for (const panel of this.panels.values()) panel.describe();
  }

  /** Light the marks with these tags, if there are any. @param {import("./lighting.js").Tags | null} tags */
  light(tags) {
    const panels = [...this.panels.values()];
    const lit = tags && panels.some((panel) => panel.picture.has(tags)) ? tags : null;
    for (const panel of panels) panel.picture.light(lit);
  }

  /** @param {Record<string, any>} shown @param {Set<string>} changed keys */
  show(shown, changed) {
    if (changed.has("order")) this.arrange(shown.order);
    for (const [name, panel] of this.panels) {
      const data = shown.panels[name];
      if (data && data !== panel.data) panel.show(data, this.way);
    }
    if (changed.has("order")) this.measure();
    if (this.range && this.range[0] >= this.reach && !this.to.scrubs) this.zoom(); // the run begins again
  }

  /** @param {string[]} order */
  arrange(order) {
    for (const [name, panel] of this.panels) {
      if (order.includes(name)) continue;
      panel.close();
      this.panels.delete(name);
    }
    for (const name of order) {
      let panel = this.panels.get(name);
      if (!panel) {
        panel = new Panel(this.root, {
          ...this.to,
          name,
          zoom: (low, high) => this.zoom(low, high),
          point: (tags) => this.words.mark(tags),
        });
        panel.picture.setTheme(this.theme);
        panel.setRange(this.range);
        this.panels.set(name, panel);
      }
      if (this.root.children[order.indexOf(name)] !== panel.figure) this.root.append(panel.figure);
    }
    const body = this.root.parentElement;
    if (body) body.dataset.panels = String(order.length); // for lab.css
  }

  /** Give each panel the height for which there is room. */
  measure() {
    const boxes = [...this.root.children].map((each) => each.getBoundingClientRect());
    const width = boxes[0]?.width;
    if (!width) return; // not on screen
    const rows = new Set(boxes.map(({ top }) => Math.round(top))).size;
    const columns = Math.min(2, Math.ceil(boxes.length / rows)); // the loop may share a row with a panel
    const [share, most] = HEIGHTS[`${columns} ${boxes.length}`] ?? HEIGHTS[columns];
    const isFramed = /** @type {unknown} */ (globalThis.top) !== globalThis; // a frame is as high as its contents
    const room = ((isFramed ? screen.availHeight : innerHeight) - AROUND) / rows;
    const height = Math.max(Math.min(Math.round(width * share), most, Math.round(room)), LOWEST);
    for (const panel of this.panels.values()) {
      const axes = panel.data?.axes[0];
      if (columns > 1 || axes?.equal !== "fit") panel.resize(height);
      else {
        const shape = (axes.y.high - axes.y.low) / (axes.x.high - axes.x.low);
        panel.resize(Math.round(Math.min(PLANE, HEAD + width * shape)));
      }
    }
  }

  /** The last update on the axes. */
  get reach() {
    return Math.max(...[...this.panels.values()].map((panel) => panel.reach));
  }

  /** Show a range of all x axes or, without limits, all of it. @param {number} [low] @param {number} [high] */
  zoom(low, high) {
    this.range = low === undefined || high === undefined ? null : within(low, high, this.reach);
    for (const panel of this.panels.values()) panel.setRange(this.range);
    const [begin, end] = (this.range ?? []).map((update) => countText(Math.round(update)));
    this.to.say(
      this.range ? `Updates ${begin} to ${end} are shown; a double click shows all.` : "All updates are shown.",
    );
  }

  close() {
    this.observer.disconnect();
    document.fonts?.removeEventListener("loadingdone", this.refit);
    for (const panel of this.panels.values()) panel.close();
    this.words.close();
  }
}

/**
 * Return a range moved and widened to be between 0 and the last update; null if it covers all of that.
 * @param {number} low @param {number} high @param {number} last @returns {[number, number] | null}
 */
function within(low, high, last) {
  const wide = Math.max(high - low, FEWEST);
  if (wide >= last) return null;
  const from = Math.max(Math.min((low + high - wide) / 2, last - wide), 0);
  return [from, from + wide];
}
