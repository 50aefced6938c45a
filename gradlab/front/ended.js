// @ts-check
/** A lab whose kernel is gone: it shows that it is a picture now, and how to get one that runs. */

import { addButton, addElement } from "./events.js";

const FIELDS = "button, input, select, textarea";

/**
 * Disable all that would need the kernel, and offer to run the cell again.
 * @param {HTMLElement} root
 */
export function endLab(root) {
  if (root.classList.contains("gl-ended")) return;
  root.classList.add("gl-ended");
  for (const field of root.querySelectorAll(FIELDS)) {
    /** @type {HTMLButtonElement} */ (field).disabled = true;
    field.classList.remove("gl-main");
  }
  for (const line of root.querySelectorAll("pre.gl [role=button]")) line.ariaDisabled = "true";
  const told = addElement("div", null, "gl-gone");
  root.prepend(told);
  const words = addElement("span", told);
  words.setAttribute("role", "status");
  words.textContent =
    "The kernel behind this is gone, so it is a picture now. Run the cells above again, then this one.";
  /** @type {HTMLElement | null} */
  const cell = root.closest(".jp-CodeCell");
  if (cell) addButton(told, "Run this cell again", () => runCell(cell));
}

/** Run a cell as its reader would: Ctrl+Enter in it. @param {HTMLElement} cell */
function runCell(cell) {
  cell.focus();
  const key = { key: "Enter", code: "Enter", keyCode: 13, ctrlKey: true, bubbles: true, cancelable: true };
  cell.dispatchEvent(new KeyboardEvent("keydown", key));
}
