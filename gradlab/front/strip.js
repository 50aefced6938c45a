// @ts-check
/** The panels side by side: which there are, how much room each has, and what a frame changes in them. */

import { MarkedWords } from "./lighting.js";
import { Panel } from "./panel.js";

const [NARROWEST, WIDEST, LOWEST] = [260, 1300, 215]; // CSS pixels of a panel
/**
 * The height of a panel as a share of its width, and the most it may be: by columns and panels, else by columns.
 * @type {Record<string, [number, number]>}
 */
const HEIGHTS = { "1 1": [0.56, 420], "1 2": [0.5, 235], "2 2": [0.8, 400], 1: [0.6, 260], 2: [0.72, 340] };

const AROUND = 285; // CSS pixels of a notebook's window above and below the panels: menus, switches, the warning

/** The height there is for a notebook. In a frame, as on Colab, the window is as high as what is in it. */
function windowHeight() {
  const top = /** @type {unknown} */ (globalThis.top);
  return top === globalThis ? innerHeight : screen.availHeight;
}

export class PanelStrip {
  /**
   * @param {HTMLElement} root
   * @param {object} to
   * @param {(request: Record<string, any>) => void} to.ask
   * @param {(words: string) => void} to.say has a screen reader say something
   * @param {boolean} [to.scrubs] whether a finger that is moved across a curve goes through time
   */
  constructor(root, { ask, say, scrubs = false }) {
    this.root = root;
    this.ask = ask;
    this.say = say;
    this.scrubs = scrubs;
    /** @type {Map<string, Panel>} */
    this.panels = new Map();
    /** @type {import("./palette.js").Theme} */
    this.theme = "light";
    /** @type {import("./motion.js").Way} */
    this.way = "steps";
    this.size = "";
    this.words = new MarkedWords(root.closest(".gradlab") ?? root, (tags) => this.light(tags));
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(root.parentElement ?? root); // on a phone the strip itself has no box
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

  /**
   * Light what has one of these tags in all panels, and dim all else; null, or tags that no mark has, light everything.
   * @param {import("./lighting.js").Tags | null} tags
   */
  light(tags) {
    const panels = [...this.panels.values()];
    const found = tags && panels.some((panel) => panel.picture.has(tags)) ? tags : null;
    for (const panel of panels) panel.picture.light(found);
  }

  /**
   * @param {Record<string, any>} shown
   * @param {Set<string>} changed
   * @param {Iterable<string>} names of the panels that have changed
   */
  show(shown, changed, names) {
    if (changed.has("order")) this.arrange(shown.order);
    if (changed.has("zoomed")) { for (const panel of this.panels.values()) panel.setZoomed(shown.zoomed); }
    for (const name of names) if (shown.panels[name]) this.panels.get(name)?.show(shown.panels[name], this.way);
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
          name,
          say: this.say,
          ask: this.ask,
          scrubs: this.scrubs,
          point: (tags) => this.words.mark(tags),
        });
        panel.picture.setTheme(this.theme);
        this.panels.set(name, panel);
      }
      if (this.root.children[order.indexOf(name)] !== panel.figure) this.root.append(panel.figure);
    }
    const body = this.root.parentElement;
    if (body) body.dataset.panels = String(order.length); // few panels are laid out otherwise (lab.css)
    this.measure();
  }

  /** Tell the kernel how much room a panel has, so that it lays texts out for it; the last one may span two columns. */
  measure() {
    const boxes = [...this.root.children].map((each) => each.getBoundingClientRect());
    const [width, last] = [boxes[0], boxes.at(-1)].map((box) =>
      Math.min(Math.max(Math.round((box?.width ?? 0) / 10) * 10, NARROWEST), WIDEST)
    );
    if (!boxes[0]?.width) return; // not on screen
    const columns = boxes.length > 1 && boxes[1].left > boxes[0].right ? 2 : 1;
    const [share, most] = HEIGHTS[`${columns} ${boxes.length}`] ?? HEIGHTS[columns];
    const room = (windowHeight() - AROUND) / Math.ceil(boxes.length / columns);
    const height = Math.max(Math.min(Math.round(width * share), most, Math.round(room / 10) * 10), LOWEST);
    if (this.size === `${width} ${height} ${last}`) return;
    this.size = `${width} ${height} ${last}`;
    this.ask({ do: "size", width, height, last });
  }

  close() {
    this.observer.disconnect();
    for (const panel of this.panels.values()) panel.close();
    this.words.close();
  }
}
