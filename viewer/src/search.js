// The search field: a list of hits with their paths; Enter goes to one and opens what holds it.
import { element } from "./dom.js";
import { join } from "./ids.js";
import { matcher, plain } from "./query.js";
import { _ } from "./words.js";

/** @typedef {import("./data.js").Index} Index */

const LISTED = 60;

export class Search {
  /**
   * @param {HTMLElement} box with the field, an output and a list
   * @param {Index} index
   * @param {{go: (path: string) => void, mark: (paths: Set<string>, here: string) => void}} host
   */
  constructor(box, index, host) {
    this.box = box;
    this.index = index;
    this.host = host;
    const [field, told, list] = /** @type {any} */ (box.children);
    this.field = /** @type {HTMLInputElement} */ (field);
    this.told = /** @type {HTMLElement} */ (told);
    this.list = /** @type {HTMLElement} */ (list);
    /** @type {{path: string, kind: string, exact: number}[]} those that have the very words first */
    this.found = [];
    this.at = -1;
    this.asked = "";
    /** @type {string[] | undefined} what is searched of each node, beside its path */
    this.texts = undefined;
    this.chosen = false;
    for (const name of ["focus", "input"]) this.field.addEventListener(name, () => this.seek());
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1, true);
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.step(event.key === "ArrowUp" ? -1 : 1, false);
      else if (event.key === "Escape" && (this.field.value || !this.list.hidden)) this.clear();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.box.addEventListener("focusout", (event) => {
      if (!this.box.contains(/** @type {Node | null} */ (event.relatedTarget))) this.fold(true);
    });
  }

  clear() {
    this.field.value = "";
    this.seek();
  }

  /** @param {boolean} hidden */
  fold(hidden) {
    this.list.hidden = hidden || !this.found.length;
    this.field.setAttribute("aria-expanded", String(!this.list.hidden));
  }

  /** Find what is asked for. */
  seek() {
    const { index } = this;
    const asked = this.field.value;
    if (asked !== this.asked || !asked) {
      this.asked = asked;
      this.at = -1;
      const fits = matcher(asked);
      this.found = [];
      if (fits) {
        const shown = [...index.calls(), ...index.rows()];
        this.texts ||= shown.map((entry) => plain(entry.words.slice(entry.path.length)));
        shown.forEach((entry, k) => {
          for (const place of entry.module ? [""] : entry.places) {
            const path = entry.module ? entry.path : join(place, entry.name);
            const text = `${path.toLowerCase()} ${this.texts?.[k]}`;
            if (fits(text)) this.found.push({ path, kind: entry.kind, exact: Number(text.includes(plain(asked))) });
          }
        });
        const order = new Map([...index.order()].map((path, k) => [path, k]));
        this.found.sort((a, b) => b.exact - a.exact || (order.get(a.path) ?? 0) - (order.get(b.path) ?? 0));
      }
      this.write();
    }
    this.fold(document.activeElement !== this.field);
  }

  write() {
    const { found, at } = this;
    const first = Math.max(0, Math.min(at - LISTED / 2, found.length - LISTED));
    this.told.textContent = this.asked.trim() ? (at < 0 ? _("%1 found", found.length) : _("%1 of %2", at + 1, found.length)) : "";
    this.field.removeAttribute("aria-activedescendant");
    this.list.replaceChildren(
      ...found.slice(first, first + LISTED).map(({ path, kind }, k) => {
        const item = element("li", { role: "option", id: `${this.list.id}-${k}`, "aria-selected": String(first + k === at) }, element("b", {}, kind), " ", element("code", {}, path));
        if (first + k === at) this.field.setAttribute("aria-activedescendant", item.id);
        item.addEventListener("pointerdown", (event) => event.preventDefault()); // the focus stays in the field
        item.addEventListener("click", () => this.go(first + k));
        return item;
      }),
    );
    if (found.length > LISTED) this.list.append(element("li", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, _("%1 found", found.length)));
    this.list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
    this.host.mark(new Set(found.map(({ path }) => path)), found[at]?.path || "");
  }

  /**
   * @param {number} by
   * @param {boolean} go there, or only to its place in the list
   */
  step(by, go) {
    this.seek();
    const { length } = this.found;
    if (!length) return;
    if (go && this.chosen) by = 0;
    this.at = this.at < 0 ? (by < 0 ? length - 1 : 0) : (this.at + by + length) % length;
    this.chosen = !go;
    if (go) this.go(this.at);
    else this.write();
  }

  /** @param {number} at */
  go(at) {
    this.at = at;
    this.chosen = false;
    this.host.go(this.found[at].path);
    this.write();
    this.fold(true);
  }
}
