// @ts-check
/**
 * A lab's place in its notebook: it replaces the still picture, stays in view when its cell has just run, reports going
 * out of sight and coming back, and is disabled when its kernel is gone.
 */

import { addButton, addElement } from "./events.js";

const BEGINNING = 2000; // ms in which panels get their size and the notebook scrolls to the next cell
const LOOKS = 100; // ms between two checks

/** Hide the still picture of a lab, even if it is added later. @param {string} id */
export function hideStill(id) {
  addElement("style", document.head, "", `[data-gradlab-still="${id}"] { display: none; }`);
}

/**
 * Keep a new lab in view if the reader has just run its cell, for a moment or until the reader does something. The cell
 * below stays in view as far as there is room for both.
 * @param {HTMLElement} root
 */
export function bringIntoView(root) {
  const stop = new AbortController();
  const end = performance.now() + BEGINNING;
  const timer = setInterval(() => {
    if (performance.now() > end || !root.isConnected) return stop.abort();
    if (!isWhereTheReaderIs(root)) return;
    root.scrollIntoView({ block: "nearest" });
    root.querySelector(":scope > :not([hidden])")?.scrollIntoView({ block: "nearest" }); // the top of a high lab
  }, LOOKS);
  stop.signal.addEventListener("abort", () => clearInterval(timer));
  for (const kind of ["wheel", "pointerdown", "keydown", "touchstart"]) {
    addEventListener(kind, () => stop.abort(), { capture: true, signal: stop.signal });
  }
}

/** Return whether an element's cell is active, or is the one before, as after Shift+Enter. @param {HTMLElement} root */
function isWhereTheReaderIs(root) {
  const cell = root.closest(".jp-Cell");
  const cells = [...root.closest(".jp-Notebook")?.querySelectorAll(".jp-Cell") ?? []];
  const active = cells.findIndex((each) => each.classList.contains("jp-mod-active"));
  return active >= 0 && [cells[active], cells[active - 1]].includes(/** @type {Element} */ (cell));
}

/**
 * Report when an element goes out of sight, because of scrolling or a hidden tab, and when it is back.
 * @param {HTMLElement} root @param {(inSight: boolean) => void} change @returns {() => void} a function that ends this
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

/** Disable all elements that need the kernel. @param {HTMLElement} root @param {string} why a class for the reason */
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

/** Disable a lab whose kernel is gone, and offer to run all cells up to its own. @param {HTMLElement} root */
export function endLab(root) {
  if (root.classList.contains("gl-ended")) return;
  disable(root, "gl-ended");
  const notice = addElement("div", null, "gl-gone");
  root.prepend(notice);
  const status = Object.assign(addElement("span", notice), { role: "status" });
  status.append(
    "The kernel of this lab is gone, so only its picture remains. Run the cells above again, then this one.",
  );
  /** @type {HTMLElement | null} */
  const cell = root.closest(".jp-CodeCell");
  if (!cell) return;
  addButton(notice, "Run everything up to here", () => { // selects the cells up to this one and runs them
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
