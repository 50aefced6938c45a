// @ts-check
import { withGuess } from "../../gradlab/front/guess.js";
import { assert, assertEquals } from "./asserting.js";

/** A lab's figure in a cell that was handed a guess: it is `falls` to half in 60 updates. @param {object} guess */
function figure(guess) {
  let told = 0;
  const given = { after: "zero_grad off", over: 60, decided: 30, course: [1, 0.5], tell: () => told++, ...guess };
  const element = /** @type {any} */ ({ parentElement: { parentElement: null, gradlabGuess: given } });
  return { element, told: () => told };
}

/** The loss 2 up to an update, with switches. @param {number} last @param {Record<number, string>} switches @returns {any} */
function panel(last, switches) {
  const at = Object.entries(switches);
  return {
    title: "held-out loss",
    axes: [{ x: { low: 0, high: 200 }, y: { low: 0, high: 3 } }],
    ids: ["loss", ...at.map((_, number) => `switch ${number}`)],
    marks: [
      { k: "l", p: Array.from({ length: last }, (_, update) => [update + 1, 2]).flat() },
      ...at.map(([update, words]) => ({
        k: "l",
        p: [Number(update), 0, Number(update), 1],
        words: `update ${update}: ${words}`,
      })),
    ],
  };
}

Deno.test("the guess goes on from the loss at its switch, and the axis holds it", () => {
  const { element, told } = figure({});
  const plain = panel(199, {});
  assert(withGuess(plain, element) === plain, "before the switch there is none");
  const drawn = withGuess(panel(205, { 150: "lr 0.1", 200: "zero_grad off" }), element);
  assertEquals(drawn.marks[drawn.ids.indexOf("guess")].p, [200, 2, 260, 1]);
  assertEquals(drawn.axes[0].x.high, 260);
  assertEquals(drawn.marks[drawn.ids.indexOf("guess name")].texts, ["your guess", "you"]);
  assertEquals(told(), 0);
  const fallen = panel(205, { 200: "zero_grad off" });
  fallen.marks[0].p[2 * 199 + 1] = 1; // the loss at update 200, where the switch is
  const lower = withGuess(fallen, element);
  assertEquals(lower.marks[lower.ids.indexOf("guess")].p, [200, 1, 260, 0.5]);
  element.parentElement.gradlabGuess.mark = " ✗";
  const decided = withGuess(panel(205, { 200: "zero_grad off" }), element);
  assertEquals(decided.marks[decided.ids.indexOf("guess name")].texts, ["your guess ✗", "you ✗"]);
});

Deno.test("the answer comes when the run has decided, not before, and not if it was turned back", () => {
  const { element, told } = figure({});
  withGuess(panel(229, { 200: "zero_grad off" }), element);
  assertEquals(told(), 0);
  withGuess(panel(240, { 200: "zero_grad off", 215: "zero_grad on" }), element);
  assertEquals(told(), 0);
  withGuess(panel(230, { 200: "zero_grad off" }), element);
  assertEquals(told(), 1);
});

Deno.test("a guess about a whole run begins with it, and one of NaN is a point", () => {
  const { element, told } = figure({ after: 0, course: [1] });
  const drawn = withGuess(panel(31, {}), element);
  assertEquals(drawn.marks[0].k, "d");
  assertEquals(drawn.marks[0].p, [0, 2]);
  assertEquals(told(), 1);
});

Deno.test("other panels and other labs are left alone", () => {
  const { element } = figure({});
  const other = { ...panel(205, { 200: "zero_grad off" }), ids: ["sum", "switch 0"] };
  assert(withGuess(other, element) === other, "no loss");
  const shown = panel(205, { 200: "zero_grad off" });
  assert(withGuess(shown, /** @type {any} */ ({ parentElement: null })) === shown, "no guess");
});
