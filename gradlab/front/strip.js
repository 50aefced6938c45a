// @ts-check
/** The panels side by side: which there are, how much room each has, and what a frame changes in them. */

import { MarkedWords } from "./lighting.js";
import { countText } from "./numbers.js";
import { forgetWidths } from "./painter.js";
import { Panel } from "./panel.js";

const LOWEST = 215; // CSS pixels of a panel
const FEWEST = 2; // updates in a range that is chosen
/** @type {Record<string, [number, number]>} height by width, and the most, by columns and panels, else by columns */
const HEIGHTS = { "1 1": [0.56, 420], "1 2": [0.5, 235], "2 2": [0.8, 400], 1: [0.6, 260], 2: [0.72, 340] };

const [PLANE, HEAD] = [380, 46]; // CSS pixels at most of what has a shape of its own, as a plane has, and of what is above it
const AROUND = 285; // CSS pixels of a notebook's window above and below the panels: menus, switches, the warning

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
    /** @type {[number, number] | null} the part of the x axes that is seen */
    this.range = null;
    this.words = new MarkedWords(root.closest(".gradlab") ?? root, (tags) => this.light(tags));
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(root.parentElement ?? root); // on a phone the strip itself has no box
    this.refit = () => { // texts are as wide as in the font that has come
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

  /** Write down what is drawn, for who cannot see it. */
  describe() {
    for (const panel of this.panels.values()) panel.describe();
  }

  /** Light what has these tags in all panels, all if there is nothing. @param {import("./lighting.js").Tags | null} tags */
  light(tags) {
    const panels = [...this.panels.values()];
    const found = tags && panels.some((panel) => panel.picture.has(tags)) ? tags : null;
    for (const panel of panels) panel.picture.light(found);
  }

  /** @param {Record<string, any>} shown @param {Set<string>} changed its keys */
  show(shown, changed) {
    if (changed.has("order")) this.arrange(shown.order);
    for (const [name, panel] of this.panels) {
      const data = shown.panels[name];
      if (data && data !== panel.data) panel.show(data, this.way);
    }
    if (changed.has("order")) this.measure();
    if (this.range && this.range[0] >= this.reach && !this.to.scrubs) this.zoom(); // it begins again
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
    if (body) body.dataset.panels = String(order.length); // few panels are laid out otherwise (lab.css)
  }

  /** Give each panel its height: what there is room for. */
  measure() {
    const boxes = [...this.root.children].map((each) => each.getBoundingClientRect());
    const width = boxes[0]?.width;
    if (!width) return; // not on screen
    const rows = new Set(boxes.map(({ top }) => Math.round(top))).size;
    const columns = Math.min(2, Math.ceil(boxes.length / rows)); // the loop may be in a row with one
    const [share, most] = HEIGHTS[`${columns} ${boxes.length}`] ?? HEIGHTS[columns];
    const isFramed = /** @type {unknown} */ (globalThis.top) !== globalThis; // then the window is as high as what is in it
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

  /** Show a part of the x axes of all curves; without limits, all of them. @param {number} [low] @param {number} [high] */
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
 * Return a range moved and widened so that it lies between 0 and the last update; null where it is all of that.
 * @param {number} low @param {number} high @param {number} last @returns {[number, number] | null}
 */
function within(low, high, last) {
  const wide = Math.max(high - low, FEWEST);
  if (wide >= last) return null;
  const from = Math.max(Math.min((low + high - wide) / 2, last - wide), 0);
  return [from, from + wide];
}
