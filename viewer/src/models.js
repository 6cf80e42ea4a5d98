// Tables of models: a click on a column's name sorts by it, another one reverses the order.
import { comparator, sortable } from "./sort.js";

for (const table of /** @type {NodeListOf<HTMLTableElement>} */ (document.querySelectorAll("table.fxg-table:not(.fxg-compare)"))) {
  if (!table.tHead) continue;
  sortable([...table.tHead.rows[0].cells], (column, ascending) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, text: (row.cells[column].textContent || "").trim() }));
    const compare = comparator(rows.map(({ text }) => text), ascending, document.documentElement.lang);
    body.append(...rows.sort((one, other) => compare(one.text, other.text)).map(({ row }) => row));
  });
}
