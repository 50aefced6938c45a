// @ts-check
/** A question before the experiment: one choice counts, and only then the answer and what follows are shown. */

import { addButton, addElement, keepKeys } from "./events.js";
import { coverAfter } from "./outcome.js";

/** What is opened after the choice; its texts are HTML. @typedef {{answer: number, why: string, remarks: string[]}} Sealed */

/**
 * Return what was sealed for a question: base64 of UTF-8, each byte changed by one of its name. It keeps an answer from
 * being read in passing; it is no secret.
 * @param {string} sealed @param {string} name @returns {Sealed}
 */
function openSealed(sealed, name) {
  const key = new TextEncoder().encode(name);
  const bytes = Uint8Array.from(atob(sealed), (character, at) => character.charCodeAt(0) ^ key[at % key.length]);
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** A question on the page: its element comes from Python (`widgets/predict.py`), and can be read as it is. */
class Bet {
  /** @param {HTMLElement} root @param {(option: number) => void} [chosen] is told of the choice, once */
  constructor(root, chosen = () => {}) {
    this.root = root;
    root.dataset.live = "";
    this.buttons = [...root.querySelectorAll("li")].map((item, option) => {
      const words = item.innerHTML;
      item.textContent = "";
      const button = addButton(item, "", () => {
        if (this.settle(option)) chosen(option);
      });
      button.innerHTML = words;
      return button;
    });
    this.reply = addElement("div", root, "gl-bet-reply");
    this.reply.role = "status";
    this.tally = addElement("div", root, "gl-bet-tally");
    this.endKeys = keepKeys(root);
    // The question comes on the page after its cell has run, and again when the learner scrolls back to it.
    this.sizes = new ResizeObserver(() => coverAfter(root));
    this.sizes.observe(root);
  }

  /** Show a choice, the answer and the reason; return false if there was one before. @param {number} option */
  settle(option) {
    const { dataset } = this.root;
    if (dataset.settled !== undefined || !this.buttons[option]) return false;
    const { answer, why, remarks } = openSealed(dataset.sealed ?? "", dataset.name ?? "");
    dataset.settled = option === answer ? "right" : "wrong";
    this.buttons.forEach((button, at) => {
      button.ariaDisabled = "true"; // not `disabled`, which would take the focus away
      button.classList.toggle("gl-bet-right", at === answer);
      button.classList.toggle("gl-bet-wrong", at === option && at !== answer);
      if (at === answer) button.title = "The answer";
      else if (at === option) button.title = "Your choice";
    });
    const [chosen, right] = [option, answer].map((at) => this.buttons[at].innerHTML.replace(/(?<![.!?…])$/, "."));
    const verdict = option === answer
      ? "<b>Yes.</b>"
      : `<b>You said: ${chosen}</b> ${remarks[option]}</p><p><b>The answer: ${right}</b>`;
    this.reply.innerHTML = `<p>${verdict} ${why}</p>`;
    coverAfter(this.root);
    return true;
  }

  /** Leave the page. */
  close() {
    this.sizes.disconnect();
    this.endKeys();
  }
}

/** Start the questions of a page without a kernel that were not started yet, and cover what follows them at once. */
export function startBets() {
  /** @type {NodeListOf<HTMLElement>} */
  const roots = document.querySelectorAll(".gl-bet:not([data-live], .gl-bet-still *)");
  for (const root of roots) new Bet(root);
  for (const root of roots) coverAfter(root);
}

/** Show a question that has a kernel, which keeps the choice. @param {{model: any, el: HTMLElement}} context */
export function renderBet({ model, el }) {
  const place = addElement("div", el);
  place.innerHTML = model.get("page");
  const bet = new Bet(/** @type {HTMLElement} */ (place.firstElementChild), (option) => {
    model.set("guess", option);
    model.save_changes();
  });
  const show = () => {
    bet.settle(model.get("guess"));
    bet.tally.textContent = model.get("tally");
  };
  const kinds = ["change:guess", "change:tally"];
  for (const kind of kinds) model.on(kind, show);
  show();
  return () => {
    for (const kind of kinds) model.off(kind, show);
    bet.close();
  };
}
