// @ts-check
/** A question in a notebook with a kernel, which keeps the choice when its cell runs again. */

import { Bet } from "./bet.js";
import { addElement } from "./events.js";

export default {
  /** @param {{model: any, el: HTMLElement}} context */
  render({ model, el }) {
    const place = addElement("div", el);
    place.innerHTML = model.get("page");
    const root = /** @type {HTMLElement} */ (place.firstElementChild);
    const bet = new Bet(root, (option) => {
      model.set("guess", option);
      model.save_changes();
    });
    const settle = () => bet.settle(model.get("guess"));
    const count = () => bet.count(model.get("tally"));
    model.on("change:guess", settle);
    model.on("change:tally", count);
    settle();
    count();
    return () => {
      model.off("change:guess", settle);
      model.off("change:tally", count);
      bet.close();
    };
  },
};
