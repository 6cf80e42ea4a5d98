// Tables of models: a click on a column's name sorts by it, another one turns the order round.
"use strict";

(() => {
  const PREFIXES = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };

  /** A cell's number, with its prefix; NaN for text. */
  function number(text) {
    const found = /^\s*([\d,]+(?:\.\d+)?)(?:\s*([kMGTP])?(?:MACs|B)?)?\s*$/.exec(text);
    return found ? Number(found[1].replaceAll(",", "")) * (PREFIXES[found[2]] ?? 1) : NaN;
  }

  /** Sort by numbers where all cells that say something are numbers, else as a reader would sort names. */
  function sort(table, column, ascending) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, text: row.cells[column].textContent.trim() }));
    const numeric = rows.every(({ text }) => !text || !Number.isNaN(number(text)));
    const order = new Intl.Collator(document.documentElement.lang || undefined, { numeric: true });
    rows.sort((one, two) => {
      if (!one.text || !two.text) return Number(!one.text) - Number(!two.text); // unknown comes last in either order
      const by = numeric ? number(one.text) - number(two.text) : order.compare(one.text, two.text);
      return ascending ? by : -by;
    });
    body.append(...rows.map(({ row }) => row));
  }

  function prepare(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "fxg-sort";
      button.append(...head.querySelector("p")?.childNodes ?? head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, column, ascending);
      });
    });
  }

  for (const table of document.querySelectorAll("table.fxg-table:not(.fxg-compare)")) prepare(table);
})();
