// @ts-check
/** A question before an experiment: the first choice uncovers what follows, and the answer comes after the outcome. */

import { addButton, addElement, keepKeys } from "./events.js";
import { coverAfter } from "./outcome.js";

/** @import { Course } from "./guess.js" */
/**
 * The answer and its reasons, unsealed after the choice, in HTML. `loss` has the course of the loss for each option.
 * @typedef {{answer: number, why: string, remarks: string[], loss?: Course & {courses: number[][]}}} Sealed
 */

/** A question on the page: its element comes from Python (`widgets/predict.py`) and is readable without this script. */
class Bet {
  /**
   * @param {HTMLElement} root @param {{chosen: (option: number) => void, answered: () => void}} [kernel] gets the choice
   * and, when the answer is shown, a call
   */
  constructor(root, kernel) {
    this.root = root;
    this.kernel = kernel;
    this.choice = -1; // index of the chosen option, -1 for none
    this.guess = {}; // the choice as a curve for a lab (guess.js)
    root.dataset.live = kernel ? "kernel" : "page";
    this.buttons = [...root.querySelectorAll("li")].map((item, option) => {
      const words = item.innerHTML;
      item.textContent = "";
      const button = addButton(item, "", () => {
        if (this.settle(option)) kernel?.chosen(option);
      });
      button.innerHTML = words;
      return button;
    });
    this.reply = addElement("div", root, "gl-bet-reply");
    this.reply.role = "status";
    this.tally = addElement("div", root, "gl-bet-tally");
    this.endKeys = keepKeys(root);
    root.addEventListener("gradlab-seen", () => this.tell());
    // The question is attached to the page after its cell has run, and again when the learner scrolls back to it.
    this.sizes = new ResizeObserver(() => coverAfter(root));
    this.sizes.observe(root);
  }

  /** Keep a choice and ask the learner to look; return false if there was a choice before. @param {number} option */
  settle(option) {
    const { dataset } = this.root;
    if (dataset.settled !== undefined || !this.buttons[option]) return false;
    dataset.settled = "chosen";
    this.choice = option;
    for (const button of this.buttons) button.ariaDisabled = "true"; // not `disabled`, which would remove the focus
    Object.assign(this.buttons[option], { title: "Your choice", className: "gl-bet-chosen" });
    const { loss } = this.sealed;
    const look = loss || !this.kernel ? "Look." : "Run the next cell, and look."; // the notebook explains its labs
    this.reply.innerHTML = `<p><b>You said: ${this.words(option)}</b> ${look} </p>`;
    addButton(/** @type {HTMLElement} */ (this.reply.firstElementChild), "Tell me", () => {
      this.buttons[option].focus({ preventScroll: true }); // the pressed button is removed
      this.tell();
    });
    if (loss) {
      Object.assign(this.guess, loss, { course: loss.courses[option], tell: () => this.tell() });
      Object.assign(this.root, { gradlabGuess: this.guess });
    }
    coverAfter(this.root);
    return true;
  }

  /** Show the answer and the reason, if a choice was made and they are not shown yet. */
  tell() {
    const { dataset } = this.root;
    if (dataset.settled !== "chosen") return;
    const { answer, why, remarks } = this.sealed;
    const isRight = this.choice === answer;
    dataset.settled = isRight ? "right" : "wrong";
    Object.assign(this.guess, { mark: isRight ? " ✓" : " ✗" });
    this.buttons[this.choice].className = "gl-bet-wrong";
    Object.assign(this.buttons[answer], { className: "gl-bet-right", title: "The answer" });
    const verdict = isRight
      ? "Yes.</b>"
      : `No.</b> ${remarks[this.choice]}</p><p><b>The answer: ${this.words(answer)}</b>`;
    this.reply.innerHTML = `<p><b>You said: ${this.words(this.choice)} ${verdict} ${why}</p>`;
    coverAfter(this.root);
    this.kernel?.answered();
  }

  /**
   * The unsealed answer: base64 of UTF-8, each byte XORed with a byte of the question's name. The seal keeps the answer
   * from being read by accident; it is not a secret. @returns {Sealed}
   */
  get sealed() {
    const { sealed = "", name } = this.root.dataset;
    const key = new TextEncoder().encode(name);
    const bytes = Uint8Array.from(atob(sealed), (character, at) => character.charCodeAt(0) ^ key[at % key.length]);
    return JSON.parse(new TextDecoder().decode(bytes));
  }

  /** Return the text of an option as a sentence. @param {number} option @returns {string} */
  words(option) {
    return this.buttons[option].innerHTML.replace(/(?<![.!?…])$/, ".");
  }

  /** Stop observing the page. */
  close() {
    this.sizes.disconnect();
    this.endKeys();
  }
}

/** Start the questions of a page without a kernel that have not started yet, and cover what follows them. */
export function startBets() {
  /** @type {NodeListOf<HTMLElement>} */
  const roots = document.querySelectorAll(".gl-bet:not([data-live], .gl-bet-still *)");
  for (const root of roots) new Bet(root);
  for (const root of roots) coverAfter(root);
}

/** Show a question whose kernel keeps the choice. @param {{model: any, el: HTMLElement}} context */
export function renderBet({ model, el }) {
  const place = addElement("div", el);
  place.innerHTML = model.get("page");
  const keep = (/** @type {string} */ name, /** @type {unknown} */ value) => {
    model.set(name, value);
    model.save_changes();
  };
  const bet = new Bet(/** @type {HTMLElement} */ (place.firstElementChild), {
    chosen: (option) => keep("guess", option),
    answered: () => keep("answered", true),
  });
  const show = () => {
    bet.settle(model.get("guess"));
    if (model.get("answered")) bet.tell();
    bet.tally.textContent = model.get("tally");
  };
  const kinds = ["change:guess", "change:answered", "change:tally"];
  for (const kind of kinds) model.on(kind, show);
  show();
  return () => {
    for (const kind of kinds) model.off(kind, show);
    bet.close();
  };
}
