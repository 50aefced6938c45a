// @ts-check
/** Questions on a page without a kernel: a saved notebook as HTML. Each carries this; the first to run serves them all. */

import { Bet } from "./bet.js";

for (const root of document.querySelectorAll(".gl-bet:not([data-live])")) {
  if (root instanceof HTMLElement && !root.closest(".gl-bet-still")) new Bet(root);
}
