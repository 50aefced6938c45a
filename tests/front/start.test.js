// @ts-check
import start from "../../gradlab/front/start.js";
import { assertEquals } from "./asserting.js";

const CODE = "export default { open: ({ el }) => { el.push('opened'); return () => el.push('closed'); }, " +
  "close: (model) => model.set('closed', true) };";

/** A model as anywidget hands it over, whose kernel answers when `answer` is called. @param {string} code_id */
function newModel(code_id) {
  /** @type {Set<Function>} */
  const listening = new Set();
  /** @type {Record<string, any>} */
  const values = { code_id };
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
      for (const listen of [...listening]) listen({ code: CODE });
      assertEquals(listening.size, 0, "who still listens");
    },
  };
}

Deno.test("the modules are asked for once a page, however many labs there are", async () => {
  const [first, second] = [newModel("a"), newModel("a")];
  /** @type {any} */
  const [one, two, three] = [[], [], []];
  const opening = [start.render({ model: first, el: one }), start.render({ model: second, el: two })];
  await new Promise((resolve) => setTimeout(resolve, 10));
  first.answer();
  const [end] = await Promise.all(opening);
  await start.render({ model: second, el: three });
  end();
  assertEquals([one, two, three], [["opened", "closed"], ["opened"], ["opened"]]);
  assertEquals([first.asked, second.asked], [1, 0]);
  await start.initialize({ model: first })();
  assertEquals([first.get("closed"), second.get("closed")], [true, null]);
});

Deno.test("a lab whose modules another one asked for in vain asks itself", async () => {
  const [first, second, third] = [newModel("b"), newModel("b"), newModel("b")];
  first.send = () => {
    throw new Error("its kernel is gone");
  };
  await start.render({ model: first, el: /** @type {any} */ ([]) }).catch(() => {});
  start.render({ model: second, el: /** @type {any} */ ([]) }); // never answered
  const later = globalThis.setTimeout;
  globalThis.setTimeout =
    /** @type {any} */ ((/** @type {any} */ act, /** @type {any} */ _, /** @type {any} */ value) =>
      later(act, 1, value));
  try {
    const opening = start.render({ model: third, el: /** @type {any} */ ([]) });
    await new Promise((resolve) => later(resolve, 20));
    third.answer();
    await opening;
  } finally {
    globalThis.setTimeout = later;
  }
  assertEquals([second.asked, third.asked], [1, 1]);
});
