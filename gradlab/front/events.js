// @ts-check
/** Helpers for events and elements that several modules use. */

/**
 * A function that sends a request to the kernel, such as `{do: "press", what: "batch 38"}`.
 * @typedef {(request: {do: string, [key: string]: unknown}) => unknown} Ask
 */

/**
 * Keep the keys pressed inside an element from the notebook around it, except those that run a cell, and Escape, which
 * leaves the element for its cell; return a function that ends this.
 *
 * Notebook 7 listens in the event's capture phase, so stopping the event in its bubble phase is too late. Its shortcuts
 * ignore elements with the attribute below, but only if the element with the focus itself has it. JupyterLab, VS Code
 * and Colab listen in the bubble phase.
 * @param {HTMLElement} root @returns {() => void}
 */
export function keepKeys(root) {
  const mark = (/** @type {KeyboardEvent} */ event) => {
    const { target } = event;
    if (!(target instanceof HTMLElement) || !root.contains(target)) return;
    if (isForNotebook(event)) delete target.dataset.lmSuppressShortcuts;
    else target.dataset.lmSuppressShortcuts = "true";
  };
  const stop = (/** @type {Event} */ event) => {
    if (!(event instanceof KeyboardEvent) || !isForNotebook(event)) event.stopPropagation();
    else if (event.key === "Enter" && event.type === "keypress") event.preventDefault(); // so that it presses no button
    else if (event.key === "Escape" && event.type === "keydown" && !event.defaultPrevented) {
      const cell = root.closest(".jp-Cell");
      if (cell instanceof HTMLElement) cell.focus({ preventScroll: true });
    }
  };
  const end = new AbortController();
  globalThis.addEventListener("keydown", mark, { capture: true, signal: end.signal }); // before all other listeners
  for (const kind of ["keydown", "keypress", "keyup"]) root.addEventListener(kind, stop, { signal: end.signal });
  return () => end.abort();
}

/** Return whether a key is for the notebook: Escape, or Enter to run a cell. @param {KeyboardEvent} event */
function isForNotebook({ key, shiftKey, ctrlKey, metaKey, altKey, target }) {
  const runsText = target instanceof HTMLTextAreaElement && (ctrlKey || metaKey);
  return key === "Escape" || (key === "Enter" && (shiftKey || altKey || ctrlKey || metaKey) && !runsText);
}

/**
 * Return a new element inside another one.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Element | null} parent @param {string} [classes] @param {string} [text]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function addElement(tag, parent, classes = "", text = "") {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text) element.textContent = text;
  parent?.append(element);
  return element;
}

/** @param {Element} parent @param {string} words on the button @param {() => void} press @param {string} [classes] */
export function addButton(parent, words, press, classes = "") {
  const button = addElement("button", parent, `gl-button ${classes}`.trim(), words);
  button.type = "button";
  button.addEventListener("click", press);
  return button;
}

/** Place an element over a part of its parent. @param {HTMLElement} element @param {number[]} box its edges */
export function putOver(element, [left, top, right, bottom]) {
  const sides = { left, top, width: Math.max(right - left, 1), height: bottom - top };
  for (const [side, pixels] of Object.entries(sides)) element.style.setProperty(side, `${pixels}px`);
}
