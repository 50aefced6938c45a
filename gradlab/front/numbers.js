// @ts-check
/** Numbers as text, in the way of `gradlab/formatting.py`. */

const MINUS = "\u2212";

/**
 * Write a number in at most about six characters: `0.31`, `12.4`, `25k`, `1e30`, `inf`, `NaN`.
 * @param {number} value
 * @returns {string}
 */
export function shortNumber(value) {
  if (Number.isNaN(value)) return "NaN";
  const sign = value < 0 ? MINUS : "";
  const size = Math.abs(value);
  if (size === Infinity) return `${sign}inf`;
  if (size === 0) return "0";
  if (size >= 999_500 || size < 0.0005) return sign + scientific(size).replace("-", MINUS);
  if (size >= 9_999.5) return `${sign}${significant(size / 1000, 3)}k`;
  if (size >= 999.5) return `${sign}${significant(Math.max(size, 1000), 4)}`;
  return `${sign}${significant(size, 3)}`;
}

/** @param {number} size */
function scientific(size) {
  const [mantissa, exponent] = rounded(size, 2).split("e");
  return `${mantissa.replace(".0", "")}e${Number(exponent)}`;
}

/**
 * @param {number} size
 * @param {number} digits
 */
function significant(size, digits) {
  return String(Number(rounded(size, digits)));
}

/**
 * Round a number above 0 to so many digits as Python does, and write it as `1.25e+3`: what lies exactly half way goes to
 * the even digit, where JavaScript takes the higher one.
 * @param {number} size
 * @param {number} digits at least 2
 */
function rounded(size, digits) {
  const [mantissa, exponent] = size.toExponential(100).split("e");
  const [head, rest] = [mantissa.slice(0, digits + 1), mantissa.slice(digits + 1)];
  const halfWay = /^50*$/.test(rest) && Number(head.at(-1)) % 2 === 0;
  return halfWay ? `${head}e${exponent}` : size.toExponential(digits - 1);
}
