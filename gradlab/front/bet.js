// @ts-check
/** A question before the experiment: one choice counts, then what follows is uncovered, and the answer comes once it is seen. */

import { addButton, addElement, keepKeys } from "./events.js";
import { coverAfter } from "./outcome.js";

/** @import { Course } from "./guess.js" */
/**
 * What is opened after the choice; its texts are HTML. `loss` tells the course of the loss that each option stands for.
 * @typedef {{answer: number, why: string, remarks: string[], loss?: Course & {courses: number[][]}}} Sealed
 */

/** A question on the page: its element comes from Python (`widgets/predict.py`), and can be read as it is. */
class Bet {
  /**
   * @param {HTMLElement} root @param {{chosen: (option: number) => void, told: () => void}} [kernel] learns, once each, of
   * the choice and that the answer is shown
   */
  constructor(root, kernel) {
    this.root = root;
    this.kernel = kernel;
    this.said = -1; // the choice
    this.guess = {}; // the same for a lab (guess.js)
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
    // The question comes on the page after its cell has run, and again when the learner scrolls back to it.
    this.sizes = new ResizeObserver(() => coverAfter(root));
    this.sizes.observe(root);
  }

  /** Keep a choice, and have the learner look; return false if there was one before. @param {number} option */
  settle(option) {
    const { dataset } = this.root;
    if (dataset.settled !== undefined || !this.buttons[option]) return false;
    dataset.settled = "said";
    this.said = option;
    for (const button of this.buttons) button.ariaDisabled = "true"; // not `disabled`, which would take the focus away
    Object.assign(this.buttons[option], { title: "Your choice", className: "gl-bet-said" });
    const { loss } = this.sealed;
    const look = loss || !this.kernel ? "Look." : "Run the next cell, and look."; // of a lab, the notebook says what to do
    this.reply.innerHTML = `<p><b>You said: ${this.words(option)}</b> ${look} </p>`;
    addButton(/** @type {HTMLElement} */ (this.reply.firstElementChild), "Tell me", () => {
      this.buttons[option].focus({ preventScroll: true }); // the button that was pressed goes
      this.tell();
    });
    if (loss) {
      Object.assign(this.guess, loss, { course: loss.courses[option], tell: () => this.tell() });
      Object.assign(this.root, { gradlabGuess: this.guess });
    }
    coverAfter(this.root);
    return true;
  }

  /** Show the answer and the reason, once a choice was made. */
  tell() {
    const { dataset } = this.root;
    if (dataset.settled !== "said") return;
    const { answer, why, remarks } = this.sealed;
    const isRight = this.said === answer;
    dataset.settled = isRight ? "right" : "wrong";
    Object.assign(this.guess, { mark: isRight ? " ✓" : " ✗" });
    this.buttons[this.said].className = "gl-bet-wrong";
    Object.assign(this.buttons[answer], { className: "gl-bet-right", title: "The answer" });
    const verdict = isRight
      ? "Yes.</b>"
      : `No.</b> ${remarks[this.said]}</p><p><b>The answer: ${this.words(answer)}</b>`;
    this.reply.innerHTML = `<p><b>You said: ${this.words(this.said)} ${verdict} ${why}</p>`;
    coverAfter(this.root);
    this.kernel?.told();
  }

  /**
   * What was sealed, opened: base64 of UTF-8, each byte changed by one of the question's name. It keeps an answer from
   * being read in passing; it is no secret. @returns {Sealed}
   */
  get sealed() {
    const { sealed = "", name } = this.root.dataset;
    const key = new TextEncoder().encode(name);
    const bytes = Uint8Array.from(atob(sealed), (character, at) => character.charCodeAt(0) ^ key[at % key.length]);
    return JSON.parse(new TextDecoder().decode(bytes));
  }

  /** @param {number} option @returns {string} its words as a sentence */
  words(option) {
    return this.buttons[option].innerHTML.replace(/(?<![.!?…])$/, ".");
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
  const keep = (/** @type {string} */ name, /** @type {unknown} */ value) => {
    model.set(name, value);
    model.save_changes();
  };
  const bet = new Bet(/** @type {HTMLElement} */ (place.firstElementChild), {
    chosen: (option) => keep("guess", option),
    told: () => keep("told", true),
  });
  const show = () => {
    bet.settle(model.get("guess"));
    if (model.get("told")) bet.tell();
    bet.tally.textContent = model.get("tally");
  };
  const kinds = ["change:guess", "change:told", "change:tally"];
  for (const kind of kinds) model.on(kind, show);
  show();
  return () => {
    for (const kind of kinds) model.off(kind, show);
    bet.close();
  };
}
