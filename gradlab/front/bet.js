// @ts-check
/** A question before the experiment: one choice counts, and only then the answer and the experiment are shown. */

import { addButton, addElement, keepKeys } from "./events.js";
import { hasFolded, outcomesAfter, showOutcome } from "./outcome.js";

/** What is opened after the choice; its texts are HTML. @typedef {{answer: number, why: string, remarks: string[]}} Sealed */

/**
 * Return what was sealed for a question: base64 of UTF-8, each byte changed by one of its name. It keeps an answer from
 * being read in passing; it is no secret.
 * @param {string} sealed
 * @param {string} name
 * @returns {Sealed}
 */
export function openSealed(sealed, name) {
  const key = new TextEncoder().encode(name);
  const bytes = Uint8Array.from(atob(sealed), (character, at) => character.charCodeAt(0) ^ key[at % key.length]);
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** A question on the page: its element comes from Python (`widgets/predict.py`), and can be read as it is. */
export class Bet {
  /**
   * @param {HTMLElement} root
   * @param {(option: number) => void} chosen is told of the choice, once
   */
  constructor(root, chosen = () => {}) {
    this.root = root;
    this.chosen = chosen;
    this.guess = -1;
    this.shownAnyway = false;
    /** @type {WeakSet<Element>} outcomes that were shown once: whoever folds them again wants them folded */
    this.shown = new WeakSet();
    root.dataset.live = "";
    this.buttons = [...root.querySelectorAll("li")].map((item, place) => {
      const words = item.innerHTML;
      item.textContent = "";
      const button = addButton(item, "", () => this.choose(place));
      button.innerHTML = words;
      return button;
    });
    this.reply = addElement("div", root, "gl-bet-reply");
    this.reply.setAttribute("role", "status");
    this.tally = addElement("div", root, "gl-bet-tally");
    this.covered = addElement("div", root, "gl-bet-covered", "The outcome below is covered until you choose. ");
    addButton(this.covered, "Show it anyway", () => {
      this.shownAnyway = true;
      this.look();
    });
    this.covered.hidden = true;
    this.endKeys = keepKeys(root);
    // Called when the question comes on the page, which a cell's output does late, and again after it was scrolled away.
    this.sizes = new ResizeObserver(() => this.look());
    this.sizes.observe(root);
    // JupyterLab takes cells out of the page that are far from what is seen: the outcome may come later.
    this.cells = new MutationObserver(() => this.look());
  }

  /** Commit to an option; the first choice counts. @param {number} place */
  choose(place) {
    if (this.guess >= 0) return;
    this.settle(place);
    this.chosen(place);
  }

  /** Show the choice, the answer and the reason. @param {number} place */
  settle(place) {
    if (this.guess >= 0 || !this.buttons[place]) return;
    this.guess = place;
    const { answer, why, remarks } = openSealed(this.root.dataset.sealed ?? "", this.root.dataset.name ?? "");
    this.root.dataset.settled = place === answer ? "right" : "wrong";
    this.buttons.forEach((button, at) => {
      button.setAttribute("aria-disabled", "true"); // not `disabled`, which would take the focus away
      button.classList.toggle("gl-bet-right", at === answer);
      button.classList.toggle("gl-bet-wrong", at === place && at !== answer);
      if (at === answer) button.title = "The answer";
      else if (at === place) button.title = "Your choice";
    });
    const said = this.buttons[place].innerHTML;
    const verdict = place === answer
      ? "<b>Yes.</b>"
      : `<b>You said: ${sentence(said)}</b> ${remarks[place]}</p><p><b>It is: ${
        sentence(this.buttons[answer].innerHTML)
      }</b>`;
    this.reply.innerHTML = `<p>${verdict} ${why}</p>`;
    this.look();
  }

  /** Say how many guesses were right so far. @param {string} words */
  count(words) {
    this.tally.textContent = words;
  }

  /** Cover the outcomes before the choice, where the page has them, and show them after it. */
  look() {
    if (!this.root.isConnected) return;
    const cells = this.root.closest(".jp-Cell, div.cell")?.parentElement;
    if (cells) this.cells.observe(cells, { childList: true });
    const outcomes = outcomesAfter(this.root);
    const open = this.guess < 0 && !this.shownAnyway;
    for (const outcome of outcomes) {
      if (open) outcome.classList.add("gl-bet-hides");
      else if (!this.shown.has(outcome)) {
        this.shown.add(outcome);
        showOutcome(outcome);
      }
    }
    this.covered.hidden = !open || !outcomes.some(hasFolded);
  }

  /** Leave the page. */
  close() {
    this.sizes.disconnect();
    this.cells.disconnect();
    this.endKeys();
  }
}

/** Return an option as a sentence. @param {string} words */
function sentence(words) {
  return /[.!?…]$/.test(words) ? words : `${words}.`;
}
