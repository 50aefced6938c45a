// @ts-check
/**
 * A lab's place in its notebook: it takes the place of the still picture, is kept in view when its cell has just run,
 * tells when it goes out of sight and comes back, and becomes a picture where its kernel is gone.
 */

import { addButton, addElement } from "./events.js";

const BEGINNING = 2000; // ms in which panels find their size and the notebook scrolls to the next cell
const LOOKS = 100; // ms between two looks
const ROOM = 6; // pixels around the lab
const FIELDS = "button, input, select, textarea";

/**
 * Hide the still picture that stands where a lab is about to be painted; it may be put there later than the lab.
 * @param {string} id
 */
export function hideStill(id) {
  addElement("style", document.head, "", `[data-gradlab-still="${id}"] { display: none; }`);
}

/**
 * Scroll a new lab into view if the reader has just run its cell, until a moment later or the reader does something.
 * The cell below stays in view as far as there is room for both.
 * @param {HTMLElement} root
 * @returns {() => void} ends it
 */
export function bringIntoView(root) {
  const kinds = ["wheel", "pointerdown", "keydown", "touchstart"];
  const end = performance.now() + BEGINNING;
  const stop = () => {
    clearInterval(timer);
    for (const kind of kinds) removeEventListener(kind, stop, true);
  };
  const look = () => {
    if (performance.now() > end || !root.isConnected) return stop();
    if (isWhereTheReaderIs(root)) scrollAsNeeded(root);
  };
  const timer = setInterval(look, LOOKS);
  for (const kind of kinds) addEventListener(kind, stop, true);
  return stop;
}

/** Is the cell of this element the active one, or the one before it, as after Shift+Enter? @param {HTMLElement} root */
function isWhereTheReaderIs(root) {
  const cell = root.closest(".jp-Cell");
  const cells = [...root.closest(".jp-Notebook")?.querySelectorAll(".jp-Cell") ?? []];
  const active = cells.findIndex((each) => each.classList.contains("jp-mod-active"));
  const at = cell ? cells.indexOf(cell) : -1;
  return at >= 0 && (active === at || active === at + 1);
}

/** Scroll no further than is needed; what is higher than the window begins at its top. @param {HTMLElement} root */
function scrollAsNeeded(root) {
  const outer = scrollerOf(root);
  if (!outer) return;
  const [lab, seen] = [root.getBoundingClientRect(), outer.getBoundingClientRect()];
  const [above, below] = [lab.top - ROOM - seen.top, lab.bottom + ROOM - seen.bottom];
  const by = above < 0 ? above : Math.min(Math.max(below, 0), above);
  if (Math.abs(by) >= 1) outer.scrollTop += by;
}

/** @param {HTMLElement} root @returns {Element | null} */
function scrollerOf(root) {
  for (let each = root.parentElement; each; each = each.parentElement) {
    const scrolls = /auto|scroll/.test(getComputedStyle(each).overflowY);
    if (scrolls && each.scrollHeight > each.clientHeight + 1) return each;
  }
  return null;
}

/**
 * Tell when an element goes out of sight, scrolled away or in a tab that is hidden, and when it is back.
 * @param {HTMLElement} root
 * @param {{gone: () => void, back: () => void}} to
 * @returns {() => void} ends it
 */
export function followSight(root, { gone, back }) {
  let inView = true;
  const observer = new IntersectionObserver((entries) => {
    inView = entries[entries.length - 1].isIntersecting;
    if (!inView) gone();
    else if (!document.hidden) back();
  });
  observer.observe(root);
  const changed = () => {
    if (document.hidden) gone();
    else if (inView) back();
  };
  document.addEventListener("visibilitychange", changed);
  return () => {
    observer.disconnect();
    document.removeEventListener("visibilitychange", changed);
  };
}

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
