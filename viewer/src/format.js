// Numbers and shapes as the rest of the page writes them.

const PREFIXES = ["", "k", "M", "G", "T", "P"];

/**
 * Write a number with three significant digits and a prefix.
 * @param {number} number
 * @param {string} unit
 */
export function si(number, unit) {
  let at = 0;
  while (Math.abs(number) >= 999.5 && at < PREFIXES.length - 1) [number, at] = [number / 1000, at + 1];
  const digits = !at || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return `${number.toFixed(digits)} ${PREFIXES[at]}${unit}`.trimEnd();
}

/** @param {number} number */
export const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

/**
 * Write a share of a whole in percent.
 * @param {number} part
 * @param {number} whole
 */
export function percent(part, whole) {
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.1) return "<0.1 %";
  return `${share >= 9.95 || !share ? share.toFixed(0) : share.toFixed(1)} %`;
}

/**
 * Write several shapes in one line: the first, and how many more there are.
 * @param {string[]} shapes
 */
export const oneLine = (shapes) => (shapes.length > 1 ? `${shapes[0]} +${shapes.length - 1}` : shapes[0] || "");

/**
 * Return the number in a cell of a table, with its prefix; NaN for text.
 * @param {string} text
 */
export function parsed(text) {
  const found = /^\s*([+−-]?[\d,]+(?:\.\d+)?)(?:\s*([kMGTP])?(?:MACs|B)?)?\s*$/.exec(text);
  if (!found) return NaN;
  const power = found[2] ? PREFIXES.indexOf(found[2]) : 0;
  return Number(found[1].replaceAll(",", "").replace("−", "-")) * 1000 ** power;
}
