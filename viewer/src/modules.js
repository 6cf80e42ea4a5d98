// Open and close modules: in place where one line enters and one leaves, else as a picture of their own.
import { all, drawn, loadData, one } from "./dom.js";
import { anchor, join } from "./ids.js";
import { extent, makeRoom, shift } from "./room.js";

const SECOND = 12; // height of the second line of a frame's title
const AROUND = 8;
const MOST = 2000; // boxes that opening many modules stops at

const CLOSED = ".fxg-closed[data-body]";

/**
 * The inside of a closed module.
 * @typedef {{size: number[], names: string[], ins: number[], outs: number[], svg: string}} Inside
 *
 * What is open: of each picture its module and the modules opened in it, in order.
 * @typedef {{path: string, opened: string[]}[]} State
 *
 * @typedef {{svg: SVGSVGElement, original: Node, path: string, opened: string[], place: any}} Level
 */

/** @type {(group: Element) => string} */
const pathOf = (group) => /** @type {SVGElement} */ (group).dataset.path || "";

/** @type {(path: string, module: string) => boolean} */
export const isIn = (path, module) => !module || path === module || path.startsWith(`${module}.`);

/**
 * Whether it is drawn beside the overview, as an example of its kind.
 * @param {Element} group
 */
export const isInPanel = (group) => !!group.closest(".fxg-panel");

/**
 * Return the member of a folded run that a path belongs to, and the member whose inside is drawn for it; null if it
 * is not in the run.
 * @param {Element} group
 * @param {string} path
 */
export function memberOf(group, path) {
  const { names, count, own } = /** @type {SVGElement} */ (group).dataset;
  if (!names) return null;
  const members = names.split(" ");
  const owner = own ?? pathOf(group).slice(0, -members[0].length - 1);
  const at = members.findIndex((name) => isIn(path, join(owner, name)));
  if (at < 0) return null;
  const period = members.length / Number(count || 1);
  return { owner, period, member: join(owner, members[at]), shown: join(owner, members[period > 1 ? at % period : 0]) };
}

export class Modules {
  /**
   * @param {HTMLElement} graph
   * @param {SVGSVGElement} svg
   * @param {{place: () => any, changed: (svg: SVGSVGElement, keep?: Element | null, place?: any) => void}} host
   *   `place` returns where the reader is, and `changed` shows another picture: there, or with `keep` where it was
   */
  constructor(graph, svg, host) {
    this.graph = graph;
    this.svg = svg;
    this.host = host;
    this.figure = graph.dataset.figure || "";
    /** @type {Level[]} the pictures that were left to enter a module */
    this.levels = [];
    /** @type {string[]} paths, in the order in which they were opened */
    this.opened = [];
    this.original = svg.cloneNode(true);
    this.path = "";
    /** @type {Record<string, Inside> | null} */
    this.insides = null;
    /** @type {Map<string, Element>} */
    this.contents = new Map();
    this.prepare(svg);
  }

  /** Load the insides, from the page or from a file of its own. */
  async load() {
    this.insides ||= (await loadData(this.graph, "insides")) || {};
  }

  /** @param {ParentNode} within */
  prepare(within) {
    for (const group of all(within, CLOSED)) {
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-expanded", "false");
      for (const link of all(group, ".fxg-see[href]")) {
        link.dataset.to = link.getAttribute("href") || ""; // a button has no links inside
        link.removeAttribute("href");
      }
    }
  }

  /**
   * Return what is drawn of a path.
   * @param {string} path
   * @returns {SVGGElement | null}
   */
  find(path) {
    const selector = `[data-path="${CSS.escape(path)}"]`;
    /** @type {SVGGElement[]} */
    const found = all(this.svg, selector);
    return found.find((each) => !isInPanel(each)) || found[0] || null;
  }

  /** The modules that can be opened. */
  closed() {
    return all(this.svg, CLOSED).filter((each) => !isInPanel(each));
  }

  /** @type {(group: Element, part: string) => string} */
  text(group, part) {
    return one(group, `:scope > text ${part}, :scope > ${part}`)?.textContent || "";
  }

  /**
   * Draw the inside of a closed module with frame and title.
   * @param {Element} group
   * @param {Inside} inside
   * @param {number} depth more than its own
   * @param {string} path of the member of a run
   */
  frame(group, inside, depth, path) {
    const { dataset } = /** @type {SVGElement} */ (group);
    const fold = group.matches(".fxg-fold");
    const period = group.matches(".fxg-group");
    const top = fold ? SECOND : 0;
    const was = dataset.path || "";
    const first = (dataset.names || "").split(" ")[0] || was.split(".").pop() || "";
    const owner = was.slice(0, -first.length - 1);
    const name = fold ? path.slice(owner ? owner.length + 1 : 0) : this.text(group, ".fxg-name");
    const classes = (group.getAttribute("class") || "").replace("fxg-closed", "fxg-opened").replace(/ fxg-sha\S+/g, "");
    const frame = drawn("g", { class: classes, "data-path": path, "data-own": owner, id: anchor(this.figure, path) });
    for (const each of ["type", "count", "body", "names"]) {
      if (dataset[each]) frame.dataset[each] = dataset[each];
    }
    for (let around = group.parentElement; around && around.nodeName !== "svg"; around = around.parentElement) depth += 1;
    frame.classList.add(`fxg-depth-${depth % 3}`);
    const content = drawn("g");
    content.innerHTML = inside.svg;
    for (const each of all(content, "[data-path]")) {
      const inner = join(period ? owner : path, each.dataset.path || "");
      each.dataset.path = inner;
      const id = anchor(this.figure, inner);
      if (!document.getElementById(id)) each.id = id; // a panel may show it too
      for (const link of all(each, ":scope > a")) link.setAttribute("href", `#${anchor(`${this.figure}-row`, inner)}`);
    }
    const title = drawn("text", { class: "fxg-title", y: 16.5, tabindex: 0, role: "button", "aria-expanded": "true" });
    for (const [style, words] of [["fxg-triangle", "▾"], ["fxg-attr", period ? "" : name], ["fxg-kind", this.text(group, ".fxg-kind")], ["fxg-count", this.text(group, ".fxg-count")]]) {
      if (words) title.append(drawn("tspan", { class: style, dx: title.childNodes.length ? 5 : 0 }, words));
    }
    const titles = [title];
    if (fold) titles.push(drawn("text", { class: "fxg-title", y: 28.5 }, drawn("tspan", { class: "fxg-span" }, this.text(group, ".fxg-name"))));
    frame.append(...titles);
    this.svg.append(frame); // where text has a size
    const needed = Math.ceil(Math.max(...titles.map((each) => /** @type {SVGTextElement} */ (each).getBBox().width))) + 2 * AROUND;
    frame.remove();
    let [w, x] = [inside.size[0], 10];
    let aside = 0;
    if (x + needed > Math.min(...inside.ins, w)) {
      const last = Math.max(...inside.ins, 0);
      aside = Math.ceil(Math.max(0, last + needed - w));
      w += 2 * aside;
      x = last + aside + AROUND;
    }
    const h = inside.size[1] + top;
    for (const each of titles) each.setAttribute("x", String(x));
    shift(content, aside, top);
    if (top) {
      // What enters begins at the border of the frame.
      for (const line of all(content, ":scope > path")) {
        const d = line.getAttribute("d") || "";
        line.setAttribute("d", d.replace(/^M(\S+) (\S+)L/, (whole, px, py) => (+py === top ? `M${px} 0L` : whole)));
      }
    }
    const sheets = [...(fold ? [2, 1] : []), 0];
    frame.prepend(...sheets.map((sheet) => drawn("rect", { class: `fxg-frame${sheet ? " fxg-sheet" : ""}`, x: 3 * sheet, y: 3 * sheet, width: w, height: h, rx: 10 })));
    title.before(...content.childNodes);
    const share = this.text(group, ".fxg-percent");
    if (share) frame.append(drawn("text", { class: "fxg-percent", x: w, y: -3 }, share));
    const tooltip = one(group, ":scope > title");
    if (tooltip) frame.append(tooltip.cloneNode(true));
    this.prepare(frame);
    return { frame, w, h, pin: (inside.ins[0] ?? inside.size[0] / 2) + aside };
  }

  /** @type {(group: Element) => Inside | undefined} */
  inside(group) {
    return this.insides?.[/** @type {SVGElement} */ (group).dataset.body || ""];
  }

  /** @type {(group: Element) => boolean} */
  opensInPlace(group) {
    const inside = this.inside(group);
    return !!inside && inside.ins.length < 2 && inside.outs.length < 2;
  }

  /**
   * Open a module where it stands.
   * @param {Element} group
   * @param {string} [path] of the member of a run that it is opened as
   */
  expand(group, path = pathOf(group)) {
    const inside = this.inside(group);
    if (!inside) return null;
    const old = extent(group);
    const { frame, w, h, pin } = this.frame(group, inside, 0, path);
    frame.setAttribute("transform", group.getAttribute("transform") || "");
    group.replaceWith(frame);
    const [wider, higher] = makeRoom(frame, old, { w, h }, old.w / 2, (px) => px - old.w / 2 + pin);
    resize(this.svg, Number(this.svg.getAttribute("width")) + wider, Number(this.svg.getAttribute("height")) + higher);
    this.opened.push(path);
    return frame;
  }

  /**
   * Show a picture with these modules open, and no others.
   * @param {string[]} paths
   */
  setOpened(paths) {
    if (this.opened.some((path, k) => path !== paths[k])) {
      const fresh = /** @type {SVGSVGElement} */ (this.original.cloneNode(true));
      this.svg.replaceWith(fresh);
      this.svg = fresh;
      this.prepare(fresh);
      this.opened = [];
    }
    for (const path of paths.slice(this.opened.length)) {
      const group = this.holder(path, path);
      if (group && this.opensInPlace(group)) this.expand(group, path);
    }
  }

  /**
   * Close a module again, and leave the others open.
   * @param {string} path
   */
  close(path) {
    this.setOpened(this.opened.filter((each) => !isIn(each, path)));
    this.host.changed(this.svg, this.find(path));
  }

  /**
   * Return the closed module that holds a path.
   * @param {string} path
   * @param {string} [exact] only a module or run that this is a member of
   * @returns {Element | undefined}
   */
  holder(path, exact) {
    return this.closed().find((group) => {
      const found = memberOf(group, path);
      if (exact) return pathOf(group) === exact || found?.member === exact;
      return found || (!group.matches(".fxg-group") && isIn(path, pathOf(group)));
    });
  }

  /**
   * Show a module by itself, with a way back: several lines enter or leave.
   * @param {Element} group
   * @param {string} path
   */
  enter(group, path) {
    const inside = this.inside(group);
    if (!inside) return;
    this.levels.push({ svg: this.svg, original: this.original, path: this.path, opened: this.opened, place: this.host.place() });
    this.opened = [];
    this.path = path;
    const { frame, w, h } = this.frame(group, inside, 1, path);
    const above = 22;
    frame.setAttribute("transform", `translate(8 ${above})`);
    const names = inside.ins.map((x, k) => drawn("text", { class: "fxg-note", x: x + 8 + (w - inside.size[0]) / 2, y: above - 6 }, inside.names[k]));
    const next = /** @type {SVGSVGElement} */ (drawn("svg", { class: "fxg-svg", role: "group", "aria-label": path }, frame, ...names));
    resize(next, w + 24, h + above + 16);
    // The marks at the ends of edges are defined in the first picture, which is not in the page now.
    const marks = one(/** @type {SVGSVGElement} */ (this.original), "defs");
    if (marks) next.prepend(marks.cloneNode(true));
    this.svg.replaceWith(next);
    this.svg = next;
    this.original = next.cloneNode(true);
  }

  /** @param {number} depth of the picture to go back to */
  leave(depth) {
    const back = this.levels[depth];
    this.levels.length = depth;
    this.svg.replaceWith(back.svg);
    Object.assign(this, { svg: back.svg, original: back.original, path: back.path, opened: back.opened });
    this.host.changed(this.svg, null, back.place);
  }

  /**
   * Open a closed module, in place or as a picture of its own.
   * @param {Element} group
   * @param {string} [path]
   */
  async open(group, path = pathOf(group)) {
    await this.load();
    if (!group.isConnected) return;
    if (this.opensInPlace(group)) {
      this.host.changed(this.svg, this.expand(group, path));
    } else {
      this.enter(group, path);
      this.host.changed(this.svg, null, {});
    }
  }

  /**
   * Open all that is around a node; return what is drawn of it, or of the module around it.
   * @param {string} path
   * @returns {Promise<Element | null>}
   */
  async reveal(path) {
    for (let depth = this.levels.length; depth-- && !isIn(path, this.path); ) this.leave(depth);
    let wanted = path;
    for (let steps = 0; steps < 99; steps += 1) {
      const found = this.find(wanted);
      let group = found && isInPanel(found) ? this.holder(wanted) : undefined;
      if (found && !group) return found;
      group ||= this.holder(wanted);
      // A run that is open for another of its members.
      const other = group ? null : all(this.svg, ".fxg-opened[data-names], .fxg-fold[data-names]").find((each) => memberOf(each, wanted));
      const member = memberOf(group || other || this.svg, wanted);
      if (other && member) {
        if (member.period > 1 || !other.matches(".fxg-opened")) {
          const moved = member.shown + wanted.slice(member.member.length);
          if (moved === wanted) return other;
          wanted = moved;
          continue;
        }
        this.setOpened(this.opened.filter((each) => !isIn(each, pathOf(other))));
        this.host.changed(this.svg);
        group = this.holder(wanted);
      }
      if (!group) break;
      if (member && member.member === wanted && member.period === 1) return group;
      if (member && member.period > 1 && member.shown !== member.member) wanted = member.shown + wanted.slice(member.member.length);
      const before = this.svg.childElementCount + this.opened.length + this.levels.length;
      await this.open(group, member && member.period === 1 ? member.member : pathOf(group));
      if (before === this.svg.childElementCount + this.opened.length + this.levels.length) break;
    }
    let near = wanted;
    while (near && !this.find(near)) near = near.replace(/\.?[^.]*$/, "");
    return near ? this.find(near) : null;
  }

  /** Return the classes of closed modules, here and inside them, with how often each is drawn. */
  classes() {
    /** @type {Map<string, number>} */
    const found = new Map();
    /** @type {(root: ParentNode) => void} */
    const visit = (root) => {
      for (const group of all(root, CLOSED)) {
        const { type = "", body = "" } = group.dataset;
        const name = type.split(".").pop() || "";
        if (name) found.set(name, (found.get(name) || 0) + 1);
        if (this.insides?.[body]) visit(this.content(body));
      }
    };
    visit(this.svg);
    return found;
  }

  /** @param {string} body */
  content(body) {
    let content = this.contents.get(body);
    if (!content) {
      content = drawn("g");
      content.innerHTML = this.insides?.[body]?.svg || "";
      this.contents.set(body, content);
    }
    return content;
  }

  /**
   * Return whether something in the inside of a body has a class.
   * @param {string} body
   * @param {string} name
   * @returns {boolean}
   */
  holds(body, name) {
    return all(this.content(body), CLOSED).some(({ dataset: { type = "", body: inner = "" } }) => isOf(type, name) || this.holds(inner, name));
  }

  /**
   * Open all modules of a class, or down to a depth; what is deeper is closed.
   * @param {{name?: string, depth?: number}} wanted
   * @returns {Promise<boolean>} whether all of them are open now
   */
  async openAll({ name, depth }) {
    await this.load();
    if (depth !== undefined) this.setOpened([]);
    let complete = true;
    for (let again = true; again; ) {
      again = false;
      for (const group of this.closed()) {
        const { type = "", body = "" } = group.dataset;
        const wanted = name ? isOf(type, name) || this.holds(body, name) : depthOf(group) < Number(depth);
        if (!wanted || !this.opensInPlace(group)) continue;
        if (all(this.svg, ".fxg-op, .fxg-closed").length > MOST) {
          complete = false;
          again = false;
          break;
        }
        this.expand(group);
        again = true;
      }
    }
    this.host.changed(this.svg);
    return complete;
  }

  /** @returns {State} */
  state() {
    return [...this.levels, this].map(({ path, opened }) => ({ path, opened: [...opened] }));
  }

  /**
   * Show what was open.
   * @param {State} state
   */
  async restore(state) {
    if (state.length > 1 || state[0].opened.length) await this.load();
    const same = (/** @type {number} */ k) => this.state()[k]?.path === state[k]?.path;
    let common = 0;
    while (common + 1 < state.length && common < this.levels.length && same(common + 1)) common += 1;
    if (common < this.levels.length) this.leave(common);
    for (let k = common; ; k += 1) {
      this.setOpened(state[k].opened);
      if (k + 1 >= state.length) break;
      const group = this.holder(state[k + 1].path, state[k + 1].path);
      if (!group) break;
      this.enter(group, state[k + 1].path);
    }
    this.host.changed(this.svg);
  }
}

/** @type {(type: string, name: string) => boolean} */
const isOf = (type, name) => type.split(".").pop() === name;

/** @param {Element} group */
function depthOf(group) {
  let depth = 0;
  for (let each = group.parentElement?.closest(".fxg-module"); each; each = each.parentElement?.closest(".fxg-module")) depth += 1;
  return depth;
}

/**
 * @param {SVGSVGElement} svg
 * @param {number} w
 * @param {number} h
 */
function resize(svg, w, h) {
  svg.setAttribute("width", String(w));
  svg.setAttribute("height", String(h));
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
}
