// @ts-check
/** Numbers as text, in the same format as `gradlab/formatting.py`. */

const MINUS = "\u2212";
const GROUPED = new Intl.NumberFormat("en");

/** Return a whole number below 100,000 with commas, any other in short. @param {number} value */
export function countText(value) {
  return Number.isInteger(value) && Math.abs(value) < 1e5 ? GROUPED.format(value) : shortNumber(value);
}

/** Return a number in about six characters: `0.31`, `12.4`, `25k`, `1e30`, `inf`, `NaN`. @param {number} value */
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

/** @param {number} size @param {number} digits */
function significant(size, digits) {
  return String(Number(rounded(size, digits)));
}

/**
 * Return a number above 0, rounded to some digits, as `1.25e+3`. Exact halves go to the even digit as in Python, while
 * JavaScript rounds them up.
 * @param {number} size @param {number} digits at least 2
 */
function rounded(size, digits) {
  const [mantissa, exponent] = size.toExponential(100).split("e");
  const [head, rest] = [mantissa.slice(0, digits + 1), mantissa.slice(digits + 1)];
  const halfWay = /^50*$/.test(rest) && Number(head.at(-1)) % 2 === 0;
  return halfWay ? `${head}e${exponent}` : size.toExponential(digits - 1);
}

/** Return a number of bytes with a binary unit: `512 B`, `24.1 KiB`, `6.1 TiB`. @param {number} count */
export function bytesText(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let [size, power] = [Math.abs(count), 0];
  while (size >= 999.5 && power < units.length - 1) [size, power] = [size / 1024, power + 1];
  const text = power === units.length - 1
    ? shortNumber(size)
    : power === 0 || size >= 100
    ? size.toFixed(0)
    : significant(size, 3);
  return `${count < 0 ? MINUS : ""}${text} ${units[power]}`;
}
