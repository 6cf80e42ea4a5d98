// The words that a reader sees. The English text is the key; a page in another language brings a table.

/** @type {Record<string, string>} */
let table = {};

/** Read the translations of the page, if it has any. */
export function loadWords() {
  const block = document.querySelector("script.fxg-words");
  if (block) table = JSON.parse(block.textContent || "{}");
}

/**
 * Translate a text and fill in its values.
 * @param {string} text with `%1`, `%2` for values
 * @param {...(string | number)} values
 */
export function _(text, ...values) {
  return (table[text] || text).replace(/%(\d)/g, (_all, number) => String(values[number - 1]));
}
