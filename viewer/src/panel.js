// Details of a node beside the drawing.
import { button, copyText, element } from "./dom.js";
import { anchor, join } from "./ids.js";
import { _ } from "./words.js";

/** @typedef {import("./data.js").Entry} Entry */
/** @typedef {import("./data.js").Index} Index */
/** @typedef {import("./data.js").Tensor} Tensor */

export class Panel {
  /**
   * @param {string} figure
   * @param {Index} index
   * @param {{go: (path: string, details: boolean) => void, showRow: (path: string) => void, closed: () => void, hasTable: () => boolean}} host
   */
  constructor(figure, index, host) {
    this.index = index;
    this.figure = figure;
    this.host = host;
    this.box = element("aside", { class: "fxg-panel-node", role: "region", tabindex: -1 });
    this.box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.close();
    });
    this.path = "";
  }

  get isOpen() {
    return this.box.isConnected;
  }

  close() {
    this.box.remove();
    this.path = "";
    this.host.closed();
  }

  /** @param {Entry} entry */
  fill(entry) {
    const { index } = this;
    const { path } = entry;
    this.path = path;
    this.box.setAttribute("aria-label", _("Details of %1 in %2", path, this.figure));
    const name = entry.module ? entry.kind : `${entry.kind} ${entry.detail} ${path.slice(entry.around ? entry.around.length + 1 : 0)}`;
    const head = element("div", { class: "fxg-panel-head" }, element("strong", {}, name), button("×", _("Close the details"), () => this.close()));
    const list = element("dl");
    /** @type {(term: string, ...content: (Node | string | false | null)[]) => void} */
    const add = (term, ...content) => {
      const said = content.filter(Boolean);
      if (said.length) list.append(element("dt", {}, _(term)), ...said.map((each) => element("dd", {}, /** @type {Node | string} */ (each))));
    };
    add("path", element("code", {}, path));
    add("class", entry.type && linked(entry.type, entry.link));
    add("calls", /function|method/.test(entry.op) && linked(entry.target, entry.link));
    add("settings", entry.config && element("code", {}, entry.config));
    add("arguments", entry.given && element("code", {}, entry.given));
    add("inputs", ...entry.inputs.map((each) => this.tensor(each, entry)));
    add("outputs", ...entry.outputs.map((each) => this.tensor(each, null)));
    ["parameters", "MACs", "activations"].forEach((term, what) => {
      const number = entry.numbers[what];
      const share = index.share(number, what);
      add(term, number ? index.text(number, what) + (share && ` (${share})`) : null, what ? null : entry.tied);
    });
    add("used by", ...entry.users.map((each) => this.node(each, entry)));
    add("source", entry.where || entry.source ? linked(entry.where || _("source of the class"), entry.source) : null);
    add("remarks", ...entry.remark.split("\n"));
    const actions = element("div", { class: "fxg-panel-actions" });
    actions.append(
      this.copier(_("Copy path"), () => path),
      this.copier(_("Copy link"), () => `${location.href.split("#")[0]}#${anchor(this.figure, path)}`),
    );
    if (!entry.module && this.host.hasTable()) actions.append(button(_("Show row"), "", () => this.host.showRow(path)));
    this.box.replaceChildren(head, list, actions);
    this.box.scrollTop = 0;
  }

  /** @type {(label: string, text: () => string) => HTMLElement} */
  copier(label, text) {
    const made = button(label, "", async () => {
      await copyText(text());
      made.textContent = _("Copied");
      setTimeout(() => (made.textContent = label), 1500);
    });
    return made;
  }

  /**
   * Return a value with its shape.
   * @param {Tensor} tensor
   * @param {Entry | null} from whose input it is
   */
  tensor([name, shape, dtype], from) {
    const said = element("span", {}, ...(name ? [from ? this.node(name, from) : element("code", {}, name), " "] : []));
    said.append(element("span", { dir: "ltr" }, `${shape} ${dtype}`.trim()));
    return said;
  }

  /**
   * Return the name of another node, which leads to it.
   * @param {string} name
   * @param {Entry} entry
   */
  node(name, entry) {
    const path = name.startsWith("/") ? name.slice(1) : join(entry.around, name);
    const text = element("code", {}, name.replace(/^\//, ""));
    if (!this.index.find(path)) return text;
    const link = element("a", { href: `#${anchor(this.figure, path)}` }, text);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      this.host.go(path, true);
    });
    return link;
  }
}

/** @type {(text: string, address: string) => HTMLElement} */
function linked(text, address) {
  const code = element("code", {}, text);
  return address ? element("a", { href: address }, code) : code;
}
