// @ts-check
/** A ForecastLab in a notebook: controls, two buttons, a progress bar, the panels and the words. */

import { ControlBar } from "./controls.js";
import { addButton, addElement, keepKeys } from "./events.js";
import { mergeFrame, nothingShown, toldValues } from "./frames.js";
import { followTheme, hideStill } from "./screen.js";
import { PanelStrip } from "./strip.js";
import { Words } from "./words.js";

export class ForecastScreen {
  /** @param {any} model @param {HTMLElement} root */
  constructor(model, root) {
    this.model = model;
    this.shown = nothingShown();
    this.count = 0;
    const ask = (/** @type {Record<string, any>} */ request) => {
      this.count += 1;
      try {
        model.send({ ...request, n: this.count });
      } catch { // the kernel was restarted, or has died
        this.words.show({ note: "The kernel is gone. Run this cell again for a lab that lives." });
      }
    };
    root.classList.add("gradlab");
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "gradlab: will this model fit that card?");
    keepKeys(root);
    this.controls = new ControlBar(root, { ask });
    const bar = addElement("div", root, "gl-bar");
    this.buttons = [
      addButton(bar, "▶ Forecast", () => ask({ do: "forecast" })),
      addButton(bar, "Largest batch that fits", () => ask({ do: "largest" })),
    ];
    this.progress = addElement("progress", bar, "gl-progress");
    this.progress.setAttribute("aria-label", "how far the forecast is");
    this.progress.style.visibility = "hidden";
    this.words = new Words(root, root);
    const say = (/** @type {string} */ words) => this.words.announce(words);
    this.strip = new PanelStrip(addElement("div", addElement("div", root, "gl-body"), "gl-panels"), {
      ask,
      say,
    });
    this.unwatch = followTheme(root, this.strip);
    this.listen = (/** @type {any} */ message) => this.take(message);
    model.on("msg:custom", this.listen);
    ask({ do: "hello" });
  }

  /** @param {{frames?: Record<string, any>[], progress?: number | null}} message */
  take(message) {
    if (message.progress !== undefined) {
      this.progress.style.visibility = message.progress === null ? "hidden" : "visible";
      this.progress.value = message.progress ?? 0;
      for (const button of this.buttons) button.disabled = message.progress !== null;
    }
    for (const frame of message.frames ?? []) {
      const { shown, changed } = mergeFrame(this.shown, frame);
      this.shown = shown;
      this.strip.show(shown, changed, Object.keys(frame.panels ?? {}));
      if (["controls", "values", "off"].some((key) => changed.has(key))) {
        this.controls.show({ controls: shown.controls, values: toldValues(shown, changed), off: shown.off });
      }
      this.words.show({ state: shown.state, alarm: shown.alarm, note: shown.note });
      if (changed.has("state") && !frame.whole) this.words.announce(shown.state);
      this.strip.describe();
    }
  }

  close() {
    this.unwatch();
    this.strip.close();
    this.model.off("msg:custom", this.listen);
  }
}

export default {
  /** @param {{model: any, el: HTMLElement}} context */
  open({ model, el }) {
    hideStill(model.get("lab_id"));
    const screen = new ForecastScreen(model, el);
    return () => screen.close();
  },
};
