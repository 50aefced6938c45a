// @ts-check
/**
 * Covers what follows a question until the choice: outputs and texts up to the next question or heading. The answer,
 * and texts that give it away, wait until the outcome is visible. This works in JupyterLab, Notebook 7, nbclassic and
 * Voila, and on pages by nbconvert or nbviewer. Where their elements are not found, as on Colab or in VS Code, nothing
 * can be covered, and the question says so.
 */

import { addButton, addElement } from "./events.js";

const CELL = ".jp-Cell, div.cell";
const WRAPPER = "[cell-index]"; // Voila wraps each cell in one
const CODE = ".jp-CodeCell, .code_cell";
const HEADING = ":is(.jp-RenderedMarkdown, .text_cell_render) > :is(h1, h2, h3)"; // as in bet.css
const OUTPUT = ".jp-OutputArea-child, .output_area";
const OPEN = "Make your bet before you read on: here, what follows cannot be covered.";
const FOLDED = ".jp-OutputPlaceholder"; // a folded output, as stored in a notebook
const FOLDED_CODE = ".jp-InputPlaceholder"; // folded code, as tests/refresh_notebooks.py stores it
const LAB = ".gradlab, .gl-recording";
const TELLING = "details.after-bet"; // as tests/refresh_notebooks.py writes them

/** Adjacent questions and cells after them. @typedef {{questions: (HTMLElement | null)[], cells: Element[]}} Part */

/** Cover or show what follows a question, depending on its state. @param {HTMLElement} root of the question */
export function coverAfter(root) {
  if (!root.isConnected) return;
  const cell = root.closest(CELL);
  const cells = (cell?.closest(WRAPPER) ?? cell)?.parentElement;
  // Each question has its own copy of this module, and all share the Cells that the first question made.
  if (cells) (/** @type {any} */ (cells).gradlabCells ??= new Cells(cells)).look();
  else if (root.dataset.settled && root.dataset.live === "page") root.dispatchEvent(new CustomEvent("gradlab-seen"));
  else if (!root.querySelector(".gl-bet-open")) addElement("p", root, "gl-bet-open", OPEN);
}

/** The cells of a notebook in order. */
class Cells {
  /** @param {Element} list whose children are the cells */
  constructor(list) {
    this.list = list;
    this.unfolded = new WeakSet(); // cells whose code was unfolded at the choice: the learner may fold it again
    this.changes = new MutationObserver(() => this.look());
  }

  /** Update all cells: what follows an open question is covered up to the next question or heading. */
  look() {
    const places = [...this.list.children];
    const cells = places.map((place) => place.matches(CELL) ? place : place.querySelector(CELL));
    const states = cells.map((cell) => cell instanceof HTMLElement ? stateOf(cell) : "");
    // In JupyterLab's windowing mode "full", a question far above the visible cells is not on the page.
    let covered = Number(cells[0]?.getAttribute("data-windowed-list-index")) > 0 && isCovered(cells[0]);
    this.changes.disconnect();
    this.changes.observe(this.list, { childList: true });
    /** @type {Part[]} */
    const parts = [];
    let [follows, shown] = [false, false];
    cells.forEach((cell, at) => {
      if (!cell?.matches(CODE)) this.changes.observe(places[at], { childList: true, subtree: true });
      if (!cell) return;
      if (states[at]) {
        const inARow = Boolean(states[at - 1]); // consecutive questions share the cells after the last one
        covered = states[at] === "open" || (inARow && covered && states[at] !== "shown");
        this.tell(questionIn(cell), covered && !states[at + 1]);
        if (!inARow) parts.push({ questions: [], cells: [] });
        parts.at(-1)?.questions.push(questionIn(cell));
        follows = true;
        shown = states[at] === "shown";
      } else if (follows) parts.at(-1)?.cells.push(cell);
      cover(cell, covered && !states[at], shown);
      if (cell.querySelector(HEADING)) covered = follows = false; // the style covers text above a heading in its cell
    });
    for (const part of parts) this.judge(part);
  }

  /** Let questions show their answers once the outcome is visible, and unfold texts about it. @param {Part} part */
  judge({ questions, cells }) {
    const code = cells.filter((cell) => cell.matches(CODE));
    if (questions.every((question) => question?.dataset.settled ?? question?.dataset.shown !== undefined)) {
      for (const cell of code) this.unfoldCode(cell);
    }
    const folded = code.filter((cell) => cell.querySelector(FOLDED) || !cell.childElementCount); // or not rendered yet
    const shown = code.filter((cell) => cell.querySelector(OUTPUT) && !folded.includes(cell));
    const lab = code.find((cell) => cell.querySelector(LAB) && !folded.includes(cell));
    for (const question of questions) {
      if (!question) return; // its cell is running again
      const { gradlabGuess: guess, dataset } = /** @type {HTMLElement & {gradlabGuess?: object}} */ (question);
      const waits = dataset.settled === "chosen";
      if (guess && lab) giveGuess(lab, guess);
      else if (waits && (guess ? dataset.live === "page" : shown.length || !folded.length)) {
        question.dispatchEvent(new CustomEvent("gradlab-seen")); // the outcome is visible
      } else if (waits || guess) {
        for (const cell of code) this.changes.observe(cell, { childList: true, subtree: true });
      }
    }
    const isAnswered = (/** @type {HTMLElement | null} */ question) =>
      question?.dataset.shown !== undefined || /right|wrong/.test(question?.dataset.settled ?? "");
    if (!questions.every(isAnswered)) return;
    for (const text of cells.flatMap((cell) => [...cell.querySelectorAll(TELLING)])) {
      text.querySelector("summary")?.remove();
      text.replaceWith(...text.childNodes);
    }
  }

  /** Unfold the code of a cell that was stored folded, once. @param {Element} cell */
  unfoldCode(cell) {
    const folded = cell.querySelector(FOLDED_CODE);
    if (!(folded instanceof HTMLElement) || this.unfolded.has(cell)) return;
    this.unfolded.add(cell);
    folded.click();
  }

  /** Show or remove a notice that cells are covered. @param {HTMLElement | null} question @param {boolean} covers */
  tell(question, covers) {
    const before = question?.querySelector(".gl-bet-cover");
    if (!covers) before?.remove();
    if (!question || !covers || before) return;
    const todo = question.dataset.live === undefined ? "Run this cell and make your bet first" : "Make your bet first";
    const box = addElement("div", question, "gl-bet-cover", `${todo}: what follows is covered. `);
    addButton(box, "Show it anyway", () => {
      question.dataset.shown = "";
      this.look();
      question.querySelector("button")?.focus({ preventScroll: true }); // the pressed button is gone
    });
  }
}

/** @param {Element} cell @returns {HTMLElement | null} */
function questionIn(cell) {
  return cell.querySelector(".gl-bet");
}

/** Return the state of a question, "open", "settled" or "shown"; "" for other cells. @param {HTMLElement} cell */
function stateOf(cell) {
  const { settled, shown } = questionIn(cell)?.dataset ?? {};
  if (questionIn(cell)) cell.dataset.glBet = shown !== undefined ? "shown" : settled !== undefined ? "settled" : "open";
  // When a question is run again, it has no output for a moment and then an output that is still loading.
  else if (cell.querySelector(OUTPUT) && !cell.querySelector(".gl-bet-still")) delete cell.dataset.glBet;
  return cell.dataset.glBet ?? "";
}

/**
 * Give a guess to a lab, whose loss panel draws it (guess.js).
 * @param {Element & {gradlabGuess?: object}} cell of the lab @param {object} guess
 */
function giveGuess(cell, guess) {
  if (cell.gradlabGuess === guess) return;
  cell.gradlabGuess = guess;
  for (const figure of cell.querySelectorAll(".gl-panel")) /** @type {any} */ (figure).gradlabPanel?.resize();
}

/** Cover or show a cell; `unfold` its output. @param {Element} cell @param {boolean} covered @param {boolean} unfold */
function cover(cell, covered, unfold) {
  if (isCovered(cell) === covered) return;
  cell.classList.toggle("gl-bet-hides", covered);
  if (!covered) cell.dispatchEvent(new CustomEvent("gradlab-uncovered", { bubbles: true })); // page.js loads recordings
  const folded = unfold ? cell.querySelector(FOLDED) : null;
  if (folded instanceof HTMLElement) folded.click();
}

/** Return whether an element is in a covered cell. @param {Element | null} cell */
export function isCovered(cell) {
  return Boolean(cell?.closest(".gl-bet-hides"));
}
