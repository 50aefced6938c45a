// @ts-check
/**
 * Lighting: a line of the loop or a marked word in the text around a lab lights the marks that it is about, and a mark
 * lights the marked words. Marks are identified by tags: the roles of their colours, and their ids.
 *
 * A marked word is `<span class="gradlab-word-reused">reused</span>`, because JupyterLab's sanitizer keeps classes but
 * removes data attributes. On a page without a lab, it is a word like any other.
 */

/** @import { Mark } from "./wire.js" */
/** @typedef {ReadonlySet<string>} Tags */

/** @type {Record<string, string[]>} tags of the marks that each call creates, changes or uses */
const TOUCHED = {
  zero_grad: ["fresh", "reused", "sum", "gradients"],
  model: ["activations"],
  loss_fn: ["loss"],
  backward: ["fresh", "gradients"],
  unscale_: ["sum", "gradients", "scale"],
  clip_grad_norm_: ["sum", "gradients"],
  step: ["sum", "applied", "reused", "weights", "optimizer"],
  update: ["scale"],
};
const WORD = "gradlab-word-";
const LIGHTS = "gradlab-lights"; // class of the body while it has a lab; a style with :has() would slow each frame
const WORDS = `[class^="${WORD}"]`;

/** Return the tags that a line of the loop touches. @param {string} line @returns {Tags} */
export function tagsOfLine(line) {
  const code = line.replace(/#.*$/, "");
  return new Set(
    [...code.matchAll(/(\w+)\(/g)].flatMap(([, call]) => Object.hasOwn(TOUCHED, call) ? TOUCHED[call] : []),
  );
}

/** Return the tags of a marked word: those of its call, or the word itself. @param {string} word @returns {Tags} */
export function tagsOfWord(word) {
  return new Set(Object.hasOwn(TOUCHED, word) ? TOUCHED[word] : [word]);
}

/**
 * Return the roles of a mark's colours and its id. A "fresh" mark is also "applied" if it is filled, else "added".
 * @param {string} id @param {Mark} mark @returns {Tags}
 */
export function tagsOfMark(id, mark) {
  const roles = [mark.fill, mark.stroke, mark.role].map((role) => (role ?? "").split(/[/-]/)[0]);
  if (roles.includes("fresh")) roles.push(mark.fill === "fresh" ? "applied" : "added");
  return new Set([...roles, id.replace(/^key | word$/g, "")].filter(Boolean));
}

/** Return whether a mark has one of the lit tags. @param {Tags} lit @param {string} id @param {Mark} mark */
export function isLit(lit, id, mark) {
  return [...tagsOfMark(id, mark)].some((tag) => lit.has(tag));
}

/** The marked words of the page that belong to one lab, because it is the nearest lab to them. */
export class MarkedWords {
  /** @param {Element} root of the lab @param {(tags: Tags | null) => void} light lights marks, null for none */
  constructor(root, light) {
    this._root = root;
    /** @type {Element | null} the word that lights marks */
    this._from = null;
    this._light = light;
    const enter = (/** @type {Event} */ { target }) => {
      const word = target instanceof Element ? target.closest(WORDS) : null;
      if (word !== this._from) this._choose(word && nearestLab(word) === this._root ? word : null);
    };
    // A notebook renders its texts one after the other, so this runs when a lab is made and at each key.
    const ready = () => {
      for (const word of document.querySelectorAll(WORDS)) if (word instanceof HTMLElement) word.tabIndex = 0;
    };
    ready();
    this._end = new AbortController();
    // Listen to moves only, because a page that scrolls under a resting pointer sends pointerover.
    const handlers = { pointermove: enter, focusin: enter, focusout: () => this._choose(null), keydown: ready };
    for (const [kind, handler] of Object.entries(handlers)) {
      document.addEventListener(kind, handler, { capture: true, signal: this._end.signal });
    }
    document.body.classList.add(LIGHTS);
  }

  /** Light the words that have one of the tags of a mark, null for none. @param {Tags | null} tags */
  mark(tags) {
    for (const word of document.querySelectorAll(WORDS)) {
      const lit = tags?.has(nameOfWord(word)) && nearestLab(word) === this._root;
      word.classList.toggle("gradlab-lit", Boolean(lit));
    }
  }

  close() {
    this._choose(null);
    this.mark(null);
    this._end.abort();
    document.body.classList.toggle(LIGHTS, document.querySelector(".gradlab .gl-panel") !== null);
  }

  /** @param {Element | null} word */
  _choose(word) {
    if (word === this._from) return;
    this._from = word;
    this._light(word && tagsOfWord(nameOfWord(word)));
  }
}

/** @param {Element} word */
function nameOfWord(word) {
  return word.classList[0].slice(WORD.length);
}

/** Return the nearest lab with panels, above or below a word. @param {Element} word */
function nearestLab(word) {
  const { top, bottom } = word.getBoundingClientRect();
  let [least, nearest] = [Infinity, /** @type {Element | null} */ (null)];
  for (const lab of document.querySelectorAll(".gradlab:has(.gl-panel)")) {
    const box = lab.getBoundingClientRect();
    const away = Math.max(box.top - bottom, top - box.bottom, 0);
    if (box.height && away < least) [least, nearest] = [away, lab];
  }
  return nearest;
}
