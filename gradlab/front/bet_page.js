// @ts-check
/** Questions on a page without a kernel: a saved notebook as HTML. Each carries this; the first to run serves them all. */

import { startBets } from "./bet.js";

startBets();
