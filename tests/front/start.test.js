// @ts-check
import start from "../../gradlab/front/start.js";
import { assertEquals } from "./asserting.js";

const CODE = "export default { open: ({ el }) => { el.push('opened'); return () => el.push('closed'); }, " +
  "close: (model) => model.set('closed', true) };";

/** @type {string[]} the styles that were added to the page */
const styles = [];
globalThis.document = /** @type {any} */ ({
  createElement: () => ({}),
  head: {
    append: (/** @type {HTMLStyleElement} */ style) => styles.push(style.textContent ?? ""),
    querySelectorAll: () => styles.map((textContent) => ({ textContent })),
  },
});
globalThis.ShadowRoot = /** @type {any} */ (class {});

/** An element that notes what is done with it. @returns {any} */
const newView = () => Object.defineProperty([], "getRootNode", { value: () => document });

let made = 0;

/** A model as anywidget hands it over, whose kernel answers when `answer` is called. @param {string} code_id */
function newModel(code_id) {
  /** @type {Set<Function>} */
  const listening = new Set();
  /** @type {Record<string, any>} */
  const values = { code_id, lab_id: `lab ${++made}` };
  return {
    asked: 0,
    on: (/** @type {string} */ _, /** @type {Function} */ listen) => listening.add(listen),
    off: (/** @type {string} */ _, /** @type {Function} */ listen) => listening.delete(listen),
    get: (/** @type {string} */ name) => values[name],
    set: (/** @type {string} */ name, /** @type {any} */ value) => (values[name] = value),
    send(/** @type {Record<string, any>} */ request) {
      assertEquals(request, { do: "code" });
      this.asked += 1;
    },
    answer() {
      for (const listen of [...listening]) listen({ frames: [] });
      for (const listen of [...listening]) listen({ code: CODE, style: "pre {}" });
      assertEquals(listening.size, 0, "who still listens");
    },
  };
}

Deno.test("the modules are asked for once a page, however many labs there are", async () => {
  const [first, second] = [newModel("a"), newModel("a")];
  const [one, two, three] = [newView(), newView(), newView()];
  const opening = [start.render({ model: first, el: one }), start.render({ model: second, el: two })];
  await new Promise((resolve) => setTimeout(resolve, 10));
  first.answer();
  const [end] = await Promise.all(opening);
  await start.render({ model: second, el: three });
  end();
  assertEquals([one, two, three], [["opened", "closed"], ["opened"], ["opened"]]);
  assertEquals([first.asked, second.asked], [1, 0]);
  assertEquals(styles, ["pre {}"]);
  await start.initialize({ model: first })();
  assertEquals([first.get("closed"), second.get("closed")], [true, null]);
});

Deno.test("a view is opened with the model that lasts longer than the view", async () => {
  const code = "export default { open: ({ model }) => { model.set('opened', true); return () => {}; } };";
  const [lasting, ofTheView] = [newModel("c"), newModel("c")];
  ofTheView.set("lab_id", lasting.get("lab_id"));
  /** @type {any} */ (globalThis).gradlabParts.set(
    "c",
    import(`data:text/javascript,${encodeURIComponent(code)}`).then((part) => part.default),
  );
  const close = start.initialize({ model: lasting });
  await start.render({ model: ofTheView, el: newView() });
  assertEquals([lasting.get("opened"), ofTheView.get("opened")], [true, undefined]);
  await close();
  await start.render({ model: ofTheView, el: newView() });
  assertEquals(ofTheView.get("opened"), true, "the model that was closed is not used");
});

Deno.test("where modules were asked for in vain one of the labs that wait asks again", async () => {
  const models = [newModel("b"), newModel("b"), newModel("b"), newModel("b")];
  models[0].send = () => {
    throw new Error("its kernel is gone");
  };
  await start.render({ model: models[0], el: newView() }).catch(() => {});
  const later = globalThis.setTimeout;
  /** @type {(() => void)[]} */
  const late = [];
  globalThis.setTimeout = /** @type {any} */ ((/** @type {any} */ act) => late.push(() => act(null)));
  try {
    start.render({ model: models[1], el: newView() }); // never answered
    await new Promise((resolve) => later(resolve, 10));
    late.splice(0);
    const opening = [2, 3].map((at) => start.render({ model: models[at], el: newView() }));
    for (const act of late.splice(0)) act();
    await new Promise((resolve) => later(resolve, 10));
    assertEquals(models.slice(1).map((model) => model.asked), [1, 1, 0]);
    models[2].answer();
    await Promise.all(opening);
  } finally {
    globalThis.setTimeout = later;
  }
});
