// @ts-check
/**
 * A lab's place in its notebook: it takes the place of the still picture, is kept in view when its cell has just run,
 * tells when it goes out of sight and comes back, and becomes a picture where its kernel is gone.
 */

import { addButton, addElement } from "./events.js";

const BEGINNING = 2000; // ms in which panels find their size and the notebook scrolls to the next cell
const LOOKS = 100; // ms between two looks

/** Hide the still picture of a lab, whether it is there already or not. @param {string} id */
export function hideStill(id) {
  addElement("style", document.head, "", `[data-gradlab-still="${id}"] { display: none; }`);
}

/**
 * Scroll a new lab into view if the reader has just run its cell, until a moment later or the reader does something.
 * The cell below stays in view as far as there is room for both.
 * @param {HTMLElement} root
 */
export function bringIntoView(root) {
  const stop = new AbortController();
  const end = performance.now() + BEGINNING;
  const timer = setInterval(() => {
    if (performance.now() > end || !root.isConnected) return stop.abort();
    if (!isWhereTheReaderIs(root)) return;
    root.scrollIntoView({ block: "nearest" });
    root.querySelector(":scope > :not([hidden])")?.scrollIntoView({ block: "nearest" }); // of a high one its top is seen
  }, LOOKS);
  stop.signal.addEventListener("abort", () => clearInterval(timer));
  for (const kind of ["wheel", "pointerdown", "keydown", "touchstart"]) {
    addEventListener(kind, () => stop.abort(), { capture: true, signal: stop.signal });
  }
}

/** Is the cell of this element the active one, or the one before it, as after Shift+Enter? @param {HTMLElement} root */
function isWhereTheReaderIs(root) {
  const cell = root.closest(".jp-Cell");
  const cells = [...root.closest(".jp-Notebook")?.querySelectorAll(".jp-Cell") ?? []];
  const active = cells.findIndex((each) => each.classList.contains("jp-mod-active"));
  return active >= 0 && [cells[active], cells[active - 1]].includes(/** @type {Element} */ (cell));
}

/**
 * Tell when an element goes out of sight, scrolled away or in a tab that is hidden, and when it is back.
 * @param {HTMLElement} root @param {(inSight: boolean) => void} change @returns {() => void} ends it
 */
export function followSight(root, change) {
  let inView = true;
  const tell = () => change(inView && !document.hidden);
  const observer = new IntersectionObserver((entries) => {
    inView = entries[entries.length - 1].isIntersecting;
    tell();
  });
  observer.observe(root);
  document.addEventListener("visibilitychange", tell);
  return () => {
    observer.disconnect();
    document.removeEventListener("visibilitychange", tell);
  };
}

/** Disable all that would need the kernel. @param {HTMLElement} root @param {string} why the class that tells it */
export function disable(root, why) {
  root.classList.add(why);
  const fields =
    /** @type {NodeListOf<HTMLButtonElement>} */ (root.querySelectorAll("button, input, select, textarea"));
  for (const field of fields) {
    field.disabled = true;
    field.classList.remove("gl-main");
  }
  for (const line of root.querySelectorAll("pre.gl [role=button]")) line.ariaDisabled = "true";
}

/** Disable a lab whose kernel is gone, and offer to run its cell again after all above it. @param {HTMLElement} root */
export function endLab(root) {
  if (root.classList.contains("gl-ended")) return;
  disable(root, "gl-ended");
  const notice = addElement("div", null, "gl-gone");
  root.prepend(notice);
  const status = Object.assign(addElement("span", notice), { role: "status" });
  status.append("The kernel behind this is gone, so it is a picture now. Run the cells above again, then this one.");
  /** @type {HTMLElement | null} */
  const cell = root.closest(".jp-CodeCell");
  if (!cell) return;
  addButton(notice, "Run everything up to here", () => { // as its reader would: mark the cells up to the first, and run them
    cell.focus();
    const shared = { bubbles: true, cancelable: true };
    const keys = [
      { key: "Home", code: "Home", keyCode: 36, shiftKey: true },
      { key: "Enter", code: "Enter", keyCode: 13, ctrlKey: true },
    ];
    for (const key of keys) {
      (document.activeElement ?? cell).dispatchEvent(new KeyboardEvent("keydown", { ...key, ...shared }));
    }
  });
}
