// @ts-check
import { isLit, tagsOfLine, tagsOfMark, tagsOfWord } from "../../gradlab/front/lighting.js";
import { assert, assertEquals } from "./asserting.js";

Deno.test("a line touches what its calls touch", () => {
  assert(tagsOfLine("        loss.backward()").has("fresh"), "a fresh contribution");
  assert(tagsOfLine("scaler.scale(loss).backward()").has("gradients"), "whoever calls it");
  assert(tagsOfLine("optimizer.step()").has("weights"), "the weights move");
  assert(tagsOfLine("optimizer.zero_grad(set_to_none=True)").has("reused"), "all goes");
  assert(tagsOfLine("output = model(x)").has("activations"), "what is kept for backward");
  assertEquals([...tagsOfLine("for x, y in batches:"), ...tagsOfLine("# loss.backward()")], []);
  assertEquals([...tagsOfLine("x.toString(constructor())")], [], "names of JavaScript are none of PyTorch's");
});

Deno.test("a mark is known by its colours and by its id", () => {
  const arrow = tagsOfMark("arrow 3", { k: "p", fill: "reused", stroke: "ink", hatch: "//" });
  assert(arrow.has("reused") && !arrow.has("fresh"), "the colour of its area");
  assert(tagsOfMark("gradients", { k: "b", fill: "gradients/50" }).has("gradients"), "half way to the paper");
  assert(tagsOfMark("name weights", { k: "t", role: "weights-text" }).has("weights"), "a label");
  for (const id of ["sum", "key sum", "key sum word"]) assert(tagsOfMark(id, { k: "t" }).has("sum"), id);
  assert(isLit(tagsOfWord("sum"), "sum", { k: "p", fill: "faint" }), "by its id");
  assert(!isLit(tagsOfWord("fresh"), "arrow 1", { k: "p", fill: "reused" }), "another colour");
  /** @type {Record<string, import("../../gradlab/front/wire.js").Mark>} by the word that lights it */
  const looks = {
    added: { k: "p", fill: "paper", stroke: "fresh-text" },
    applied: { k: "p", fill: "fresh", stroke: "ink" },
    reused: { k: "p", fill: "reused", stroke: "ink" },
  };
  for (const [name, mark] of Object.entries(looks)) {
    const lights = (/** @type {string} */ word) => isLit(tagsOfWord(word), "arrow 1", mark);
    assertEquals(Object.keys(looks).filter(lights), [name]);
    assertEquals(["backward", "step", "zero_grad"].map(lights), [name !== "reused", name !== "added", true], name);
  }
});

Deno.test("the word of a call stands for what it touches, any other for itself", () => {
  assertEquals([...tagsOfWord("backward")], [...tagsOfLine("loss.backward()")]);
  assertEquals([...tagsOfWord("reused")], ["reused"]);
});
