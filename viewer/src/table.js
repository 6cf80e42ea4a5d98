// The node table: sorted, filtered, with a choice of columns; only the rows in sight are in the page.
import { all, button, element, one } from "./dom.js";
import { oneLine } from "./format.js";
import { anchor, join } from "./ids.js";
import { matcher, plain } from "./query.js";
import { comparator, sortable } from "./sort.js";
import { _ } from "./words.js";

/** @typedef {import("./data.js").Entry} Entry */
/** @typedef {import("./data.js").Index} Index */
/** @typedef {import("./data.js").Tensor} Tensor */

const ALL = 300; // rows that are all in the page
const SPARE = 20; // rows above and below those in sight
const NUMBERS = ["parameters", "MACs", "activations", "share"];
const MODULE_COLUMNS = ["name", "class", "output shape", "parameters", "share", "MACs", "activations"];

/** @type {(tensors: Tensor[]) => string[]} */
const shapes = (tensors) => tensors.map(([, shape]) => shape).filter(Boolean);

export class NodeTable {
  /**
   * @param {string} figure
   * @param {HTMLDetailsElement} details where it opens
   * @param {Index} index
   * @param {(path: string) => void} go
   */
  constructor(figure, details, index, go) {
    this.figure = figure;
    this.details = details;
    this.go = go;
    this.index = index;
    /** @type {HTMLElement | undefined} */
    this.scroller = undefined;
    this.modules = false;
    this.current = "";
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Entry[]} those that the filter leaves, in order */
    this.rows = [];
    /** @type {string[]} */
    this.columns = [];
    /** @type {string[]} */
    this.hidden = [];
    this.column = -1;
    this.ascending = true;
    this.height = 0;
  }

  /** Replace the table in the page. */
  fill() {
    if (this.scroller) return;
    const { columns } = this.index.data;
    this.filter = /** @type {HTMLInputElement} */ (element("input", { type: "search", placeholder: _("Filter"), "aria-label": _("Filter the rows") }));
    this.filter.addEventListener("input", () => this.arrange());
    this.count = element("output");
    this.tabs = [_("Operators"), _("Modules")].map((text, k) =>
      button(text, "", () => {
        this.modules = !!k;
        this.column = -1;
        this.build();
      }),
    );
    this.menu = element("details", { class: "fxg-menu" }, element("summary", {}, _("Columns")), element("div"));
    this.scroller = element("div", { class: "fxg-scroll", tabindex: 0, role: "group", "aria-label": _("Rows of %1", this.figure) });
    this.scroller.addEventListener("scroll", () => this.render());
    const bar = element("div", { class: "fxg-table-bar" }, ...this.tabs, this.filter, this.count, this.menu);
    this.columns = columns;
    for (const old of all(this.details, ":scope > :not(summary)")) old.remove();
    this.details.append(bar, this.scroller);
    addEventListener("beforeprint", () => this.render(true));
    this.build();
  }

  /** The columns that can be shown. */
  get names() {
    if (this.modules) return MODULE_COLUMNS;
    const more = ["name", "op", "target", "arguments", "input shape", "output shape", "dtype", "parameters", "MACs", "activations", "connected to", "source"];
    return [...this.columns, ...more.filter((name) => !this.columns.includes(name))];
  }

  get shown() {
    const usual = this.modules ? MODULE_COLUMNS : this.columns;
    return this.names.filter((name) => (this.hidden.includes(name) ? !usual.includes(name) : usual.includes(name)));
  }

  /**
   * Return the text of a cell.
   * @param {Entry} entry
   * @param {string} column
   * @returns {string}
   */
  text(entry, column) {
    const { index } = this;
    switch (column) {
      case "name": return entry.path;
      case "op": return entry.type ? `${entry.op} ${entry.kind}` : entry.op;
      case "class": return entry.kind;
      case "target": return entry.target;
      case "arguments": return entry.given;
      case "input shape": return oneLine(shapes(entry.inputs));
      case "output shape": return oneLine(shapes(entry.outputs));
      case "dtype": return [...new Set(entry.outputs.map(([, , dtype]) => dtype))].join(", ");
      case "parameters": return index.text(entry.numbers[0], 0, true) + (entry.tied && ` (${entry.tied})`);
      case "share": return index.share(entry.numbers[0], 0);
      case "MACs": return index.text(entry.numbers[1], 1, true);
      case "activations": return index.text(entry.numbers[2], 2, true);
      case "connected to": return entry.users.map((name) => name.replace(/^\//, "")).join(", ");
      default: return entry.where;
    }
  }

  /** Write the head; the rows are new. */
  build() {
    this.entries = this.modules ? this.index.calls() : this.index.rows();
    this.tabs?.forEach((tab, k) => tab.setAttribute("aria-pressed", String(this.modules === !!k)));
    const { shown } = this;
    const heads = shown.map((name) => /** @type {HTMLTableCellElement} */ (element("th", { class: NUMBERS.includes(name) ? "head fxg-number" : "head", scope: "col" }, _(name))));
    this.body = element("tbody");
    this.table = element("table", { class: "fxg-nodes fxg-filled docutils" }, element("thead", {}, element("tr", {}, ...heads)), this.body);
    sortable(heads, (column, ascending) => {
      [this.column, this.ascending] = [column, ascending];
      this.arrange();
    });
    const lengths = shown.map((name) => Math.max(...this.entries.map((entry) => this.text(entry, name).length), 0));
    const columns = lengths.map((length, k) => {
      const column = element("col");
      column.style.width = `${Math.min(Math.max(length, _(shown[k]).length + 2, 4), k ? 34 : 44) * 0.62 + 1.4}em`;
      return column;
    });
    this.table.prepend(element("colgroup", {}, ...columns));
    this.scroller?.replaceChildren(this.table);
    one(/** @type {HTMLElement} */ (this.menu), "div")?.replaceChildren(
      ...this.names.slice(1).map((name) => {
        const box = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
        box.checked = shown.includes(name);
        box.addEventListener("change", () => {
          this.hidden = this.hidden.includes(name) ? this.hidden.filter((each) => each !== name) : [...this.hidden, name];
          this.column = -1;
          this.build();
        });
        return element("label", {}, box, " ", _(name));
      }),
    );
    this.height = 0;
    this.arrange();
  }

  /** Filter and sort. */
  arrange() {
    const fits = matcher(this.filter?.value || "");
    const entries = this.entries;
    this.rows = entries.filter((entry) => {
      if (!fits) return true;
      const words = plain(entry.words);
      return fits(words) || entry.places.slice(1).some((place) => fits(`${plain(join(place, entry.name))} ${words}`));
    });
    if (this.column >= 0) {
      const name = this.shown[this.column];
      const texts = new Map(this.rows.map((entry) => [entry, this.text(entry, name)]));
      const compare = comparator([...texts.values()], this.ascending, document.documentElement.lang);
      this.rows.sort((a, b) => compare(texts.get(a) || "", texts.get(b) || ""));
    }
    if (this.count) this.count.textContent = _("%1 of %2 rows", this.rows.length, entries.length);
    if (this.scroller) this.scroller.scrollTop = 0;
    this.render();
  }

  /** @param {boolean} [complete] all rows, whether in sight or not */
  render(complete) {
    const { scroller, body, rows } = this;
    if (!scroller || !body) return;
    const whole = complete || rows.length <= ALL;
    const height = this.height || 24;
    const first = whole ? 0 : Math.max(0, Math.floor(scroller.scrollTop / height) - SPARE);
    const last = whole ? rows.length : Math.min(rows.length, first + Math.ceil(scroller.clientHeight / height) + 2 * SPARE);
    const gap = (/** @type {number} */ count) => {
      const row = element("tr", { class: "fxg-gap", "aria-hidden": "true" });
      row.style.height = `${count * height}px`;
      return row;
    };
    this.table?.setAttribute("aria-rowcount", String(rows.length + 1));
    const made = rows.slice(first, last).map((entry, k) => this.row(entry, first + k));
    body.replaceChildren(...(first ? [gap(first)] : []), ...made, ...(last < rows.length ? [gap(rows.length - last)] : []));
    if (!this.height && made[0]?.offsetHeight) {
      this.height = made[0].offsetHeight;
      if (!whole) this.render();
    }
  }

  /**
   * @param {Entry} entry
   * @param {number} at
   */
  row(entry, at) {
    const here = this.current && (entry.path === this.current || entry.places.some((place) => join(place, entry.name) === this.current));
    const row = element("tr", {
      "aria-rowindex": at + 2,
      class: `row-${at % 2 ? "odd" : "even"}${here ? " fxg-current" : ""}`,
      ...(this.modules ? {} : { id: anchor(`${this.figure}-row`, entry.path) }),
    });
    this.shown.forEach((column) => {
      const text = this.text(entry, column);
      const cell = element(column === "name" ? "th" : "td", { class: NUMBERS.includes(column) ? "fxg-number" : "" });
      if (column === "name") {
        cell.setAttribute("scope", "row");
        const link = element("a", { href: `#${anchor(this.figure, entry.path)}`, class: "reference internal" }, entry.path);
        link.addEventListener("click", (event) => {
          event.preventDefault();
          this.go(entry.path);
        });
        cell.append(link, entry.places.length > 1 ? ` ×${entry.places.length}` : "");
      } else if (column === "class" && entry.link) {
        cell.append(element("a", { href: entry.link, class: "reference" }, text));
      } else {
        cell.textContent = text;
      }
      const every = column === "input shape" ? shapes(entry.inputs) : column === "output shape" ? shapes(entry.outputs) : [text];
      if (text.length > 20 || every.length > 1) cell.title = every.join(", ");
      row.append(cell);
    });
    return row;
  }

  /**
   * Bring the row of a node in sight, without moving the page.
   * @param {string} path
   */
  follow(path) {
    this.current = path;
    if (!this.details.open || !this.scroller) return false;
    const at = this.rows.findIndex((entry) => entry.path === path || entry.places.some((place) => join(place, entry.name) === path));
    const top = at * (this.height || 24);
    const { scrollTop, clientHeight } = this.scroller;
    if (at >= 0 && (top < scrollTop || top + 60 > scrollTop + clientHeight)) this.scroller.scrollTop = Math.max(0, top - clientHeight / 2);
    this.render();
    return at >= 0;
  }

  /**
   * Show the row of a node: what hides it is undone.
   * @param {string} path
   */
  show(path) {
    this.details.open = true;
    if (this.modules) {
      this.modules = false;
      this.build();
    }
    if (!this.follow(path) && this.filter?.value) {
      this.filter.value = "";
      this.arrange();
      this.follow(path);
    }
    this.details.scrollIntoView({ block: "nearest" });
    one(this.details, ".fxg-current a")?.focus({ preventScroll: true });
  }
}
