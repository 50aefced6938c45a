// @ts-check
/**
 * All that a lab carries itself: it asks the kernel for the rest, once a page. JupyterLab makes every lab that the kernel
 * has anew when a page is loaded, seen or not, and anywidget gives up on one that is not ready within 2 s.
 */

/** @import { Model } from "./lab.js" */
/** @typedef {{open: (context: {model: Model, el: HTMLElement}) => () => void, close?: (model: Model) => void, style: string}} Part */

const PATIENCE = 5000; // ms for an answer that another lab waits for; its kernel may be gone

/** @type {Map<string, Promise<Part>>} by the name of the text; the page's own, because each lab has this file anew */
const parts = (/** @type {any} */ (globalThis).gradlabParts ??= new Map());

/**
 * By lab, the model that lasts as long as the lab. That of a view does not: anywidget takes all that listens to it away with
 * the view, while the lab may be seen in another cell, or in the same one when it is run again.
 * @type {Map<string, Model>}
 */
const lasting = new Map();

/** @param {Model} model @returns {Promise<Part>} */
function ask(model) {
  const asked = new Promise((resolve, reject) => {
    /** @param {{code?: string, style?: string}} message */
    const listen = ({ code, style }) => {
      if (code === undefined) return;
      model.off("msg:custom", listen);
      const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
      import(address).then((module) => resolve({ ...module.default, style }), reject).finally(() =>
        URL.revokeObjectURL(address)
      );
    };
    model.on("msg:custom", listen);
    model.send({ do: "code" });
  });
  parts.set(model.get("code_id"), asked);
  return asked;
}

/** @param {Model} model @returns {Promise<Part>} */
async function partOf(model) {
  const known = parts.get(model.get("code_id"));
  if (!known) return ask(model);
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE, null));
  const part = await Promise.race([known, late]).catch(() => null);
  if (part) return part;
  return parts.get(model.get("code_id")) === known ? ask(model) : partOf(model); // of those that wait one asks again
}

/** Style what holds a view, once: the document, or in marimo a shadow root. @param {HTMLElement} el @param {string} style */
function dress(el, style) {
  const root = el.getRootNode();
  const place = root instanceof ShadowRoot ? root : document.head;
  for (const each of place.querySelectorAll("style")) if (each.textContent === style) return;
  place.append(Object.assign(document.createElement("style"), { textContent: style }));
}

export default {
  /** @param {{model: Model}} context */
  initialize({ model }) {
    lasting.set(model.get("lab_id"), model);
    return async () => {
      lasting.delete(model.get("lab_id"));
      (await parts.get(model.get("code_id"))?.catch(() => null))?.close?.(model);
    };
  },
  /** @param {{model: Model, el: HTMLElement}} context */
  async render({ model, el }) {
    const kept = lasting.get(model.get("lab_id")) ?? model;
    const { open, style } = await partOf(kept);
    dress(el, style);
    return open({ model: kept, el });
  },
};
