// One graph on a page.
import { all, button, copyText, download, element, loadData, loadScript, one } from "./dom.js";
import { push, remember, save, saveSoon } from "./history.js";
import { anchor, pathOf } from "./ids.js";
import { inOrder, leaves, linked, neighbour, NODES } from "./light.js";
import { isInPanel, Modules } from "./modules.js";
import { Mover } from "./move.js";
import { copyImage, pngFile, svgFile } from "./picture.js";
import { _ } from "./words.js";

/**
 * What `nodes.js` makes.
 * @typedef {object} Parts
 * @property {import("./data.js").Index} index
 * @property {import("./panel.js").Panel} panel
 * @property {import("./search.js").Search} search
 * @property {import("./table.js").NodeTable | null} table
 */

const OWN = /** @type {HTMLScriptElement | null} */ (document.currentScript)?.src || "";
const NARROW = 560; // pixels of a graph that has no room for a panel beside it
/** @type {Record<string, number[]>} */
const ARROWS = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] };

/** @type {(group: Element) => string} */
const path = (group) => /** @type {SVGElement} */ (group).dataset.path || "";

export class Viewer {
  /**
   * @param {HTMLElement} graph
   * @param {HTMLElement} view
   * @param {SVGSVGElement} svg
   */
  constructor(graph, view, svg) {
    this.graph = graph;
    this.view = view;
    this.figure = graph.dataset.figure || "";
    this.name = graph.dataset.model || this.figure;
    this.quiet = false;
    /** @type {{paths: Set<string>, here: string}} */
    this.found = { paths: new Set(), here: "" };
    /** @type {Element | null} */
    this.lit = null;
    this.begun = false;
    /** @type {Parts | null} */
    this.parts = null;
    /** @type {Promise<Parts | null> | null} */
    this.loading = null;
    graph.classList.add("fxg-ready");
    this.body = element("div", { class: "fxg-body" });
    view.replaceWith(this.body);
    this.body.append(view);
    if (graph.dataset.height) view.style.maxHeight = graph.dataset.height;
    view.setAttribute("tabindex", "0");
    view.setAttribute("role", "group");
    view.setAttribute("aria-label", _("Graph of %1: arrows move it, plus and minus zoom, 0 shows all of it, Enter goes to its nodes", this.name));
    this.mover = new Mover(graph, view, svg);
    this.mover.moved = saveSoon;
    this.modules = new Modules(graph, svg, {
      place: () => this.mover.place(),
      changed: (shown, keep, place) => this.changed(shown, keep, place),
    });
    this.rows = /** @type {HTMLDetailsElement | null} */ (one(document, `.fxg-tables[data-prefix="${CSS.escape(this.figure)}"] details.fxg-node-rows`));
    this.rows?.addEventListener("toggle", () => void this.fillTable());
    this.find = this.searchField();
    this.bar();
    this.listen();
    remember(this.figure, this);
    new ResizeObserver(() => this.resized()).observe(graph);
    this.resized();
    void this.fillTable();
  }

  resized() {
    const { clientWidth } = this.graph;
    if (!clientWidth) return; // in a tab that is not shown
    this.graph.classList.toggle("fxg-narrow", clientWidth < NARROW);
    this.mover.measure();
    if (!this.begun) this.mover.go({});
    this.begun = true;
  }

  /** Load what is known of the nodes, and the parts that show it. */
  load() {
    this.loading ||= this.loadParts().catch(() => null);
    return this.loading;
  }

  async loadParts() {
    const store = /** @type {any} */ (globalThis);
    const [data] = await Promise.all([
      loadData(this.graph, "nodes"),
      store.fxgraphNodes || loadScript(OWN.replace("fxgraph.js", "fxgraph-nodes.js")),
    ]);
    this.parts = data && /** @type {Parts} */ (store.fxgraphNodes(this.figure, data, {
      find: this.find,
      table: this.rows,
      go: (/** @type {string} */ to, /** @type {boolean} */ details) => void this.go(to, details),
      mark: (/** @type {Set<string>} */ paths, /** @type {string} */ here) => this.mark(paths, here),
      showRow: (/** @type {string} */ to) => void this.showRow(to),
      closed: () => {
        this.quiet = true; // modules that are opened do not bring it back
        this.mover.measure();
      },
    }));
    return this.parts;
  }

  async fillTable() {
    if (this.rows?.open) (await this.load())?.table?.fill();
  }

  /**
   * Show another picture.
   * @param {SVGSVGElement} svg
   * @param {Element | null} [keep] what stays where it is in the window
   * @param {any} [place] where the reader was in it
   */
  changed(svg, keep, place) {
    const before = keep?.isConnected ? keep.getBoundingClientRect() : null;
    this.mover.svg = svg;
    this.mover.measure();
    if (place) this.mover.go(place);
    for (const entry of all(this.graph, ".fxg-legend [data-key]")) entry.hidden = !one(svg, `.fxg-${entry.dataset.key}`);
    this.crumbs();
    this.marked();
    if (!keep || !before) return;
    const after = keep.getBoundingClientRect();
    this.mover.scrollTo(this.view.scrollLeft + after.left - before.left, this.view.scrollTop + after.top - before.top);
    this.mover.note();
  }

  // -- going to nodes

  /**
   * Go to a node: open what is around it, and show it.
   * @param {string} to
   * @param {boolean} [details] whether its details are shown
   */
  async go(to, details) {
    save();
    const group = await this.reveal(to);
    push(anchor(this.figure, to));
    if (details) await this.details(to, group);
  }

  /** @param {string} to */
  async reveal(to) {
    uncover(this.graph);
    const group = await this.modules.reveal(to);
    this.target(group);
    return group;
  }

  /**
   * Show a part of the drawing, and mark it.
   * @param {Element | null} group
   */
  target(group) {
    for (const each of all(this.view, ".fxg-target")) each.classList.remove("fxg-target");
    if (!group) return;
    group.classList.add("fxg-target");
    this.mover.show(group);
  }

  /**
   * Show the node or the row that an id stands for.
   * @param {string} id
   */
  async follow(id) {
    const row = pathOf(`${this.figure}-row`, id);
    const to = row ?? pathOf(this.figure, id);
    if (!to) return false;
    const parts = await this.load();
    if (!(parts ? parts.index.find(to) : this.modules.find(to))) return false;
    if (row && this.rows) await this.showRow(to);
    else await this.reveal(to);
    return true;
  }

  /** @param {string} to */
  async showRow(to) {
    if (!this.rows) return;
    uncover(this.rows);
    this.rows.open = true;
    await this.fillTable();
    this.parts?.table?.show(to);
  }

  /**
   * Show the details of a node.
   * @param {string} to
   * @param {Element | null} group
   */
  async details(to, group) {
    const parts = await this.load();
    const entry = parts?.index.find(to);
    if (!parts || !entry) return;
    const { panel, table } = parts;
    const opening = !panel.isOpen;
    panel.fill(entry);
    if (opening) {
      this.body.append(panel.box);
      this.mover.measure();
    }
    if (opening && group?.isConnected) this.mover.show(group);
    for (const each of all(this.view, ".fxg-chosen")) each.classList.remove("fxg-chosen");
    this.modules.find(to)?.classList.add("fxg-chosen");
    table?.follow(to);
    if (this.graph.matches(".fxg-narrow")) panel.box.scrollIntoView({ block: "nearest" });
  }

  // -- history

  state() {
    return { open: this.modules.state(), place: this.mover.place() };
  }

  /** @param {ReturnType<Viewer["state"]>} state */
  async restore({ open, place }) {
    await this.modules.restore(open);
    this.mover.go(place);
  }

  // -- what the reader does

  listen() {
    const { view, mover } = this;
    view.addEventListener("click", (event) => {
      const { target } = event;
      if (mover.dragged || !(target instanceof Element) || event.detail > 1) return;
      const link = target.closest("a");
      if (link && (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)) return;
      event.preventDefault();
      void this.act(target, false);
    });
    view.addEventListener("keydown", (event) => {
      const { target, key } = event;
      if (!(target instanceof Element) || event.ctrlKey || event.metaKey || event.altKey) return;
      const group = target === view ? null : target.closest(".fxg-op, .fxg-closed:not(.fxg-opened)");
      if (target !== view && (key === "Enter" || key === " ")) void this.act(target, true);
      else if (key === "Escape") this.escape(target);
      else if (key in ARROWS && group) this.focus(neighbour(mover.svg, group, ARROWS[key]));
      else if (key in ARROWS && target === view) view.scrollBy(ARROWS[key][0], ARROWS[key][1]);
      else if (key === "+" || key === "=") mover.zoomIn();
      else if (key === "-") mover.zoomOut();
      else if (key === "0") mover.showAll();
      else if (key === "Enter") this.focus(leaves(mover.svg).sort(inOrder)[0]);
      else return;
      event.preventDefault();
    });
    for (const name of ["pointerover", "focusin", "pointerleave"]) view.addEventListener(name, (event) => this.light(event));
  }

  /** @param {Element} target */
  escape(target) {
    if (this.graph.matches(".fxg-full")) this.fullScreen();
    else if (target !== this.view) this.view.focus();
    else if (this.parts?.panel.isOpen) this.parts.panel.close();
    else this.view.blur();
  }

  /**
   * Do what a click on something means: open, close, show details.
   * @param {Element} target
   * @param {boolean} byKey
   */
  async act(target, byKey) {
    const letter = /** @type {HTMLElement | null} */ (target.closest(".fxg-see, .fxg-panel > a"));
    const other = letter && document.getElementById((letter.dataset.to || letter.getAttribute("href") || "").slice(1));
    if (other) {
      this.target(other.closest("g") || other);
      return;
    }
    const group = target.closest(NODES);
    if (!group) return;
    const at = path(group);
    if (isInPanel(group) && group.matches(".fxg-closed")) return this.go(at, true);
    if (group.matches(".fxg-closed[data-body]:not(.fxg-opened)")) {
      save();
      await this.modules.open(group);
      push(anchor(this.figure, at));
      if (!this.quiet) await this.details(at, null);
      if (byKey) one(this.modules.svg, `.fxg-opened[data-path="${CSS.escape(at)}"] > .fxg-title`)?.focus({ preventScroll: true });
    } else if (group.matches(".fxg-opened") && target.closest(".fxg-title") && this.modules.opened.includes(at)) {
      save();
      this.modules.close(at);
      push(anchor(this.figure, at));
      if (byKey) /** @type {SVGElement | null} */ (this.modules.find(at))?.focus({ preventScroll: true });
    } else {
      this.quiet = false;
      await this.details(at, group);
      if (byKey) this.parts?.panel.box.focus({ preventScroll: true });
    }
  }

  /** @param {Element | undefined} group */
  focus(group) {
    if (!group) return;
    if (!group.hasAttribute("tabindex")) group.setAttribute("tabindex", "-1");
    /** @type {SVGElement} */ (group).focus({ preventScroll: true });
    this.mover.show(group);
    if (this.parts?.panel.isOpen) void this.details(path(group), null);
  }

  /**
   * Light a node, its edges and its neighbours.
   * @param {Event} event
   */
  light(event) {
    const group = event.type === "pointerleave" || !(event.target instanceof Element) ? null : event.target.closest(NODES);
    if (group === this.lit) return;
    this.lit = group;
    for (const each of all(this.view, ".fxg-lit")) each.classList.remove("fxg-lit");
    if (!group || !path(group)) return;
    const { lines, paths } = linked(this.mover.svg, group);
    for (const edge of lines) edge.classList.add("fxg-lit");
    group.classList.add("fxg-lit");
    for (const each of all(this.view, NODES)) if (paths.has(path(each))) each.classList.add("fxg-lit");
  }

  /**
   * Mark what a search has found.
   * @param {Set<string>} paths
   * @param {string} here
   */
  mark(paths, here) {
    this.found = { paths, here };
    this.marked();
  }

  marked() {
    const { paths, here } = this.found;
    for (const each of all(this.view, NODES)) {
      each.classList.toggle("fxg-found", paths.has(path(each)));
      each.classList.toggle("fxg-here", !!here && path(each) === here);
    }
  }

  // -- the bar

  bar() {
    const { mover } = this;
    const bar = element("div", { class: "fxg-bar", role: "toolbar", "aria-label": _("Graph of %1", this.name) });
    this.openMenu = this.menu(_("Open"), _("Open or close modules"), () => this.fillOpening());
    const more = this.menu("⋯", _("More: save, copy, view"), () => {});
    const wide = () => [
      button(_("Fit"), _("Show all of it"), () => mover.showAll()),
      button("1:1", _("Natural size"), () => mover.naturalSize()),
      button(_("Full screen"), "", () => this.fullScreen()),
    ];
    const file = this.name.split(".").pop()?.replace(/\W+/g, "_") || "graph";
    const failed = () => this.say(_("This browser does not allow it"));
    const inside = one(more, "div");
    inside?.append(
      ...wide().map((each) => (each.classList.add("fxg-when-narrow"), each)),
      button(_("Save as SVG"), "", () => download(`${file}.svg`, new Blob([svgFile(this.shown())], { type: "image/svg+xml" }))),
      button(_("Save as PNG"), "", () => void pngFile(this.shown()).then((image) => download(`${file}.png`, image), failed)),
    );
    for (const [kind, text] of [["dot", _("Save as DOT")], ["json", _("Save as JSON")]]) {
      const link = /** @type {HTMLAnchorElement | null} */ (one(this.graph.parentElement || document, `.fxg-${kind}[href], .fxg-${kind} a, a:has(> .fxg-${kind})`));
      if (link) inside?.append(element("a", { href: link.href, download: "" }, text));
    }
    inside?.append(button(_("Copy link"), "", () => void copyText(this.address()).then(() => this.say(_("Copied")))));
    if (globalThis.ClipboardItem) inside?.append(button(_("Copy image"), "", () => void copyImage(this.shown()).then(() => this.say(_("Copied")), failed)));
    bar.append(
      this.find, this.openMenu,
      button("−", _("Zoom out"), () => mover.zoomOut()), button("+", _("Zoom in"), () => mover.zoomIn()),
      ...wide().map((each) => (each.classList.add("fxg-when-wide"), each)), more,
    );
    this.graph.prepend(bar);
    const touch = matchMedia("(pointer: coarse)").matches;
    const hint = touch ? _("One finger moves it sideways, two move and zoom; a tap shows details") : _("Drag to move, Ctrl + wheel or double click to zoom; a click shows details");
    this.body.after(element("p", { class: "fxg-hint" }, hint));
  }

  /** Create the search field; it works once it has the focus. */
  searchField() {
    const id = `${this.figure}--hits`;
    const field = /** @type {HTMLInputElement} */ (element("input", {
      type: "search", class: "fxg-search", placeholder: _("Search"), role: "combobox", autocomplete: "off", "aria-autocomplete": "list",
      "aria-expanded": "false", "aria-controls": id, "aria-label": _("Search the graph by path, kind, argument or shape"),
    }));
    field.addEventListener("focus", () => void this.load().then((parts) => parts?.search.seek()), { once: true });
    const list = element("ul", { class: "fxg-hits", role: "listbox", id, "aria-label": _("Hits"), hidden: "" });
    return element("div", { class: "fxg-find" }, field, element("output", { class: "fxg-told" }), list);
  }

  /**
   * Create a menu that opens on a click.
   * @param {string} text
   * @param {string} label
   * @param {() => void} fill
   */
  menu(text, label, fill) {
    const summary = element("summary", { title: label }, text);
    if (text.length < 2) summary.setAttribute("aria-label", label);
    const menu = /** @type {HTMLDetailsElement} */ (element("details", { class: "fxg-menu" }, summary, element("div")));
    const close = () => (menu.open = false);
    menu.addEventListener("toggle", () => menu.open && fill());
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      close();
      summary.focus();
      event.stopPropagation();
    });
    menu.addEventListener("click", (event) => {
      if (event.target instanceof Element && event.target.closest("button, a")) close();
    });
    addEventListener("pointerdown", (event) => {
      if (!menu.contains(/** @type {Node} */ (event.target))) close();
    });
    return menu;
  }

  /** Offer what can be opened at once. */
  async fillOpening() {
    await this.modules.load();
    const box = this.openMenu && one(this.openMenu, "div");
    /** @type {(text: string, wanted: {name?: string, depth?: number}) => HTMLElement} */
    const entry = (text, wanted) =>
      button(text, "", async () => {
        save();
        const complete = await this.modules.openAll(wanted);
        push(this.figure);
        if (!complete) this.say(_("There are more; open the rest one by one"));
      });
    const classes = [...this.modules.classes()].sort(([a], [b]) => a.localeCompare(b));
    box?.replaceChildren(
      entry(_("All"), { depth: Infinity }),
      ...[1, 2, 3].map((depth) => entry(_("To depth %1", depth), { depth })),
      entry(_("None"), { depth: 0 }),
      ...classes.map(([name, count]) => entry(_("Each %1", name) + (count > 1 ? ` (${count})` : ""), { name })),
    );
  }

  /** @param {string} text */
  say(text) {
    this.find.children[1].textContent = text;
  }

  /** The picture as it is shown, at rest. */
  shown() {
    this.mover.settle();
    return this.mover.svg;
  }

  address() {
    const at = this.parts?.panel.path || this.modules.path;
    return `${location.href.split("#")[0]}#${at ? anchor(this.figure, at) : this.figure}`;
  }

  fullScreen() {
    const { graph } = this;
    if (document.fullscreenElement) void document.exitFullscreen();
    else if (graph.requestFullscreen && document.fullscreenEnabled) void graph.requestFullscreen();
    else {
      document.documentElement.classList.toggle("fxg-covered", graph.classList.toggle("fxg-full"));
      this.mover.measure();
    }
  }

  /** The way back from a module that has been entered. */
  crumbs() {
    one(this.graph, ".fxg-crumbs")?.remove();
    const { levels } = this.modules;
    if (!levels.length) return;
    const crumbs = element("div", { class: "fxg-crumbs", role: "group", "aria-label": _("Opened modules") });
    levels.forEach((level, depth) => {
      crumbs.append(
        button(level.path || this.name, "", () => {
          save();
          this.modules.leave(depth);
          push(level.path ? anchor(this.figure, level.path) : this.figure);
        }),
        " › ",
      );
    });
    crumbs.append(this.modules.path);
    this.body.before(crumbs);
  }
}

/**
 * Open what hides a part of the page: details, tabs.
 * @param {Element} part
 */
function uncover(part) {
  for (let around = part.parentElement; around; around = around.parentElement) {
    if (around instanceof HTMLDetailsElement) around.open = true;
    if (around.getClientRects().length) continue;
    if (around.matches(".sd-tab-content")) /** @type {HTMLElement | null} */ (around.previousElementSibling)?.click();
    else if (around.matches("[role=tabpanel]")) document.getElementById(around.getAttribute("aria-labelledby") || "")?.click();
  }
}
