// Sorting of tables.
import { parsed } from "./format.js";

/**
 * Return a function that compares cells: as numbers where all that say something are numbers, else as a reader would
 * sort names. Empty cells come last in either order.
 * @param {string[]} texts of a column
 * @param {boolean} ascending
 * @param {string} [language]
 * @returns {(one: string, other: string) => number}
 */
export function comparator(texts, ascending, language) {
  const numeric = texts.every((text) => !text || !Number.isNaN(parsed(text)));
  const order = new Intl.Collator(language || undefined, { numeric: true });
  return (one, other) => {
    if (!one || !other) return Number(!one) - Number(!other);
    const by = numeric ? parsed(one) - parsed(other) : order.compare(one, other);
    return ascending ? by : -by;
  };
}

/**
 * Make the heads of a table buttons that sort by their column.
 * @param {HTMLTableCellElement[]} heads
 * @param {(column: number, ascending: boolean) => void} sort
 */
export function sortable(heads, sort) {
  heads.forEach((head, column) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "fxg-sort";
    const paragraph = head.querySelector("p");
    made.append(...(paragraph || head).childNodes);
    head.replaceChildren(made);
    made.addEventListener("click", () => {
      const number = head.classList.contains("fxg-number");
      const now = head.getAttribute("aria-sort");
      const ascending = now ? now !== "ascending" : !number; // the largest number first
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sort(column, ascending);
    });
  });
}
