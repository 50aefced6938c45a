// @ts-check
/**
 * The cells whose output tells the outcome of a question. JupyterLab and Notebook 7 fold them by the notebook's metadata;
 * a page made by nbconvert has them with the class of their tag. Where neither is found, nothing is hidden.
 */

const HEADING = "h1, h2";
const PLACEHOLDER = ".jp-OutputPlaceholder";

/**
 * Return the elements of the code cells after a question's, up to the next question or heading.
 * @param {Element} root of the question
 * @returns {Element[]}
 */
export function outcomesAfter(root) {
  const found = [];
  let cell = root.closest(".jp-Cell, div.cell")?.nextElementSibling;
  for (; cell; cell = cell.nextElementSibling) {
    if (cell.querySelector(".gl-bet") || cell.matches(".jp-MarkdownCell, .text_cell") && cell.querySelector(HEADING)) {
      break;
    }
    if (cell.matches(".jp-CodeCell, .code_cell") && hasFolded(cell)) found.push(cell);
  }
  return found;
}

/** Is the output of a cell folded, or to be covered? @param {Element} cell */
export function hasFolded(cell) {
  return cell.classList.contains("celltag_outcome") || cell.querySelector(PLACEHOLDER) !== null;
}

/** Uncover the output of a cell, and unfold it where JupyterLab has folded it. @param {Element} cell */
export function showOutcome(cell) {
  cell.classList.remove("gl-bet-hides");
  const placeholder = cell.querySelector(PLACEHOLDER);
  if (placeholder instanceof HTMLElement) placeholder.click();
}
