// @ts-check
/**
 * The cell that tells the outcome of a question, covered until the choice: in JupyterLab, Notebook 7, nbclassic and Voila,
 * and in pages that nbconvert or nbviewer made. Where its elements are not found, as on Colab or in VS Code, nothing is covered.
 */

import { addButton, addElement } from "./events.js";

const CELL = ".jp-Cell, div.cell";
const WRAPPER = "[cell-index]"; // Voila puts one around each cell
const CODE = ".jp-CodeCell, .code_cell";
const HEADING = ":is(.jp-MarkdownCell, .text_cell) :is(h1, h2, h3)";
const FOLDED = ".jp-OutputPlaceholder";

/** Covers the first output after a question, whenever it comes, until it is shown. */
export class Outcome {
  /**
   * @param {Element} root of the question
   * @param {() => void} showAnyway is called by the button on the cover
   */
  constructor(root, showAnyway) {
    this.root = root;
    this.showAnyway = showAnyway;
    this.open = true;
    /** @type {Element | null} the cell that is covered */
    this.cell = null;
    this.cover = addElement("div", null, "gl-bet-cover", "Make your bet first: the outcome is covered. ");
    addButton(this.cover, "Show it anyway", showAnyway);
    this.changes = new MutationObserver(() => this.look());
    // The question comes on the page after its cell has run, and again when the learner scrolls back to it.
    this.sizes = new ResizeObserver(() => this.look());
    this.sizes.observe(root);
  }

  /** Look for the outcome, and cover it. */
  look() {
    const own = this.root.closest(CELL);
    if (!this.open || !own?.isConnected || this.cell?.isConnected) return;
    this.changes.disconnect();
    // JupyterLab takes cells off the page that are far from what is seen.
    if (own.parentElement) this.changes.observe(own.parentElement, { childList: true });
    for (const cell of codeCellsAfter(own)) {
      this.changes.observe(cell, { attributeFilter: ["class"] });
      if (!tellsSomething(cell)) continue;
      this.cell = cell;
      cell.classList.add("gl-bet-hides");
      cell.append(this.cover);
      return;
    }
  }

  /** Take the cover away, and unfold what the notebook has folded. */
  show() {
    this.look();
    this.close();
    const folded = this.cell?.querySelector(FOLDED);
    if (folded instanceof HTMLElement) folded.click();
  }

  /** Leave the page. */
  close() {
    this.open = false;
    this.changes.disconnect();
    this.sizes.disconnect();
    this.cover.remove();
    this.cell?.classList.remove("gl-bet-hides");
  }
}

/** Return the code cells after a cell, up to the next question or heading. @param {Element} own */
function codeCellsAfter(own) {
  const found = [];
  const first = own.closest(WRAPPER) ?? own;
  for (let place = first.nextElementSibling; place; place = place.nextElementSibling) {
    const cell = place.matches(WRAPPER) ? place.querySelector(CELL) ?? place : place;
    if (cell.querySelector(".gl-bet") || cell.querySelector("h1, h2, h3")?.matches(HEADING)) break;
    if (cell.matches(CODE)) found.push(cell);
  }
  return found;
}

/** Has a cell put out something, other than that it has written a file? @param {Element} cell */
function tellsSomething(cell) {
  const source = cell.querySelector(".jp-InputArea-editor, .input_area")?.textContent ?? "";
  if (source.trimStart().startsWith("%%")) return false;
  if (cell.querySelector(FOLDED)) return true;
  if (cell.classList.contains("jp-mod-noOutputs")) return false;
  return cell.querySelector(".jp-OutputArea-child, .output_area") !== null;
}
