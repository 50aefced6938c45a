// @ts-check
/** The learner's guess in the loss panel: a curve from the switch on, until the run has decided the question. */

import { pointsOf } from "./wire.js";

/** @import { Mark, PanelData } from "./wire.js" */
/**
 * The part of the loss that a guess is about: it begins at `after`, an update or the label of a switch, and is `over`
 * updates long; `decided` updates decide it. @typedef {{after: number | string, over: number, decided: number}} Course
 */
/**
 * `course` are losses in units of the loss at the start; `tell` shows the answer, and then `mark` is a tick or a cross.
 * @typedef {Course & {course: number[], tell: () => void, mark?: string}} Guess
 */

/**
 * Return the panel with the guess of its cell (outcome.js). Return it unchanged if there is no guess or no loss, or if
 * the run has not reached the start of the guess.
 * @param {PanelData} panel @param {Element} element @returns {PanelData}
 */
export function withGuess(panel, element) {
  /** @type {any} */
  let cell = element;
  while (cell && !cell.gradlabGuess) cell = cell.parentElement;
  /** @type {Guess | undefined} */
  const guess = cell?.gradlabGuess;
  const loss = panel.marks[panel.ids.indexOf("loss")];
  if (!guess || !loss) return panel;
  const points = pointsOf(loss);
  const switches = panel.marks.filter((_, index) => /^switch \d+$/.test(panel.ids[index]));
  const turned = switches.findLast(({ words }) => words?.endsWith(String(guess.after)));
  const from = typeof guess.after === "number" ? guess.after : turned?.p?.[0] ?? NaN;
  let index = 0;
  while (index + 2 < points.length && points[index + 2] <= from) index += 2;
  if (!(points[index] <= from + 1)) return panel; // the run has not reached the start of the guess
  const last = from + guess.decided;
  if (points[points.length - 2] >= last && !switches.some(({ p = [] }) => Number(p[0]) > from && Number(p[0]) < last)) {
    guess.tell();
  }
  const [{ x, ...rest }, ...others] = panel.axes;
  const p = guess.course.flatMap((share, number) => [
    from + number * guess.over / Math.max(guess.course.length - 1, 1),
    Math.min(share * points[index + 1], rest.y.high),
  ]);
  /** @type {Mark} */
  const sketch = p.length > 2 ? { k: "l", p, stroke: "grey/50", width: 9 } : { k: "d", p, fill: "grey", size: 11 };
  const texts = ["your guess", "you"].map((words) => `${words}${guess.mark ?? ""}`);
  return {
    ...panel,
    axes: [{ ...rest, x: { ...x, high: Math.max(x.high, from + guess.over) } }, ...others],
    ids: ["guess", ...panel.ids, "guess name"],
    marks: [{ ...sketch, words: "your guess" }, ...panel.marks, {
      ...{ k: "t", texts, of: "guess", where: "beside", role: "grey-text", backed: true },
    }],
  };
}
