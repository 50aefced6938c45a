// @ts-check
/** What the tests of the front end need of an assertion library. */

/**
 * @param {unknown} found
 * @param {unknown} expected
 * @param {string} [what]
 */
export function assertEquals(found, expected, what = "") {
  const [left, right] = [found, expected].map((value) => JSON.stringify(value));
  if (left !== right) throw new Error(`${what}: found ${left}, expected ${right}`);
}

/**
 * @param {unknown} truth
 * @param {string} what
 */
export function assert(truth, what) {
  if (!truth) throw new Error(what);
}

/**
 * @param {() => unknown} act
 * @param {RegExp} message
 */
export function assertThrows(act, message) {
  try {
    act();
  } catch (error) {
    assert(message.test(String(error)), `threw ${error}, expected ${message}`);
    return;
  }
  throw new Error(`threw nothing, expected ${message}`);
}
