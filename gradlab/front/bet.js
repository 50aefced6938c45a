// @ts-check
/** A question before the experiment: one choice counts, and only then the answer and what follows are shown. */

import { addButton, addElement, keepKeys } from "./events.js";
import { Cover } from "./outcome.js";

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
    this.endKeys = keepKeys(root);
    this.cover = new Cover(root);
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
      : `<b>You said: ${sentence(said)}</b> ${remarks[place]}</p><p><b>The answer: ${
        sentence(this.buttons[answer].innerHTML)
      }</b>`;
    this.reply.innerHTML = `<p>${verdict} ${why}</p>`;
    this.cover.look();
  }

  /** Say how many guesses were right so far. @param {string} words */
  count(words) {
    this.tally.textContent = words;
  }

  /** Leave the page. */
  close() {
    this.cover.close();
    this.endKeys();
  }
}

/** Start the questions of a page without a kernel that were not started yet, and cover what follows them at once. */
export function startBets() {
  const roots = [...document.querySelectorAll(".gl-bet:not([data-live])")].filter((root) =>
    !root.closest(".gl-bet-still")
  );
  const bets = roots.map((root) => new Bet(/** @type {HTMLElement} */ (root)));
  for (const { cover } of bets) cover.look();
}

/** Return an option as a sentence. @param {string} words */
function sentence(words) {
  return /[.!?…]$/.test(words) ? words : `${words}.`;
}
