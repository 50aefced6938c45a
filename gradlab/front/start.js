// @ts-check
/**
 * The part that each lab carries. It requests the rest from the kernel once per page: JupyterLab recreates all labs of
 * a kernel when a page is loaded, visible or not, and anywidget gives up on a lab that is not ready within 2 s.
 */

/** @import { Model } from "./lab.js" */
/** @typedef {{open: (context: {model: Model, el: HTMLElement}) => () => void, close?: (model: Model) => void, style: string}} Part */

const PATIENCE = 5000; // ms to wait for another lab's request, whose kernel may be gone

/** @type {Map<string, Promise<Part>>} by `code_id`; shared by the page, as each lab has its own copy of this file */
const parts = (/** @type {any} */ (globalThis).gradlabParts ??= new Map());

/**
 * By lab, the model that lasts as long as the lab. A view's model does not: anywidget removes its listeners with the
 * view, while the lab may still be shown in another cell, or in the same cell when that is run again.
 * @type {Map<string, Model>}
 */
const lasting = new Map();

/** @param {Model} model @returns {Promise<Part>} */
function ask(model) {
  const loading = new Promise((resolve, reject) => {
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
  parts.set(model.get("code_id"), loading);
  return loading;
}

/** @param {Model} model @returns {Promise<Part>} */
async function partOf(model) {
  const loading = parts.get(model.get("code_id"));
  if (!loading) return ask(model);
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE, null));
  const part = await Promise.race([loading, late]).catch(() => null);
  if (part) return part;
  return parts.get(model.get("code_id")) === loading ? ask(model) : partOf(model); // one waiting lab requests it again
}

/** Add the style to a view's document or (marimo) shadow root once. @param {HTMLElement} el @param {string} style */
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
    const lastingModel = lasting.get(model.get("lab_id")) ?? model;
    const { open, style } = await partOf(lastingModel);
    dress(el, style);
    return open({ model: lastingModel, el });
  },
};
