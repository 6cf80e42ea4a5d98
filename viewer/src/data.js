// What is known of the nodes of a graph: the same rows as in the node table, and the modules with their totals.
import { join } from "./ids.js";
import { grouped, percent, si } from "./format.js";

/**
 * A value that goes in or comes out: name, shape, dtype.
 * @typedef {[string, string, string]} Tensor
 *
 * One operator: name, opcode, kind, detail, type, target, arguments, configuration, inputs, outputs, parameters, ties, MACs,
 * bytes of its results, function and line, names of those that take its results, remarks.
 * @typedef {[string, string, string, string, number, string, string, string, Tensor[], Tensor[], number | null, string,
 *   number | null, number | null, string, string[], string]} Row
 *
 * One module call: path, type, parameters, MACs, bytes of results, inputs, outputs, remarks.
 * @typedef {[string, number, number, number | null, number | null, Tensor[], Tensor[], string]} Module
 *
 * @typedef {object} Data
 * @property {string} format of numbers: SI, grouped or auto
 * @property {[number, number | null, number | null]} totals parameters, MACs, bytes of results
 * @property {string[]} types
 * @property {Record<string, string>} links of types, by their number
 * @property {Record<string, string>} [functions] the same by opcode and target
 * @property {Record<string, string>} sources addresses of functions and lines
 * @property {string[]} columns of the node table; none if it is not shown
 * @property {{t: number, p: string[], r: Row[]}[]} groups the rows of each body, and where it is called
 * @property {Module[]} modules
 */

/** A node at one of its places. */
export class Entry {
  /**
   * @param {Data} data
   * @param {string} path
   * @param {Row | Module} from
   * @param {string} around the path of the module that it stands in
   * @param {string[]} places all paths of that module
   */
  constructor(data, path, from, around, places) {
    const module = from.length === 8;
    const [name, op, kind, detail, type, target, given, config, inputs, outputs, parameters, tied, macs, bytes, where, users, remark] =
      /** @type {Row} */ (
        module ? [from[0], "", "", "", from[1], "", "", "", from[5], from[6], from[2], "", from[3], from[4], "", [], from[7]] : from
      );
    /** The dotted path of the class, and the address of the documentation of class or function. */
    this.type = data.types[type] || "";
    this.link = data.links[type] || data.functions?.[`${op} ${target}`] || "";
    this.kind = module ? this.type.split(".").pop() || "" : kind;
    this.around = around;
    this.config = config;
    this.detail = detail;
    this.given = given;
    this.inputs = inputs;
    this.module = module;
    this.name = name;
    this.op = op;
    this.outputs = outputs;
    this.path = path;
    this.places = places;
    this.remark = remark;
    this.target = target;
    this.tied = tied;
    this.users = users;
    this.where = where;
    /** @type {(number | null)[]} */
    this.numbers = [parameters, macs, bytes];
    this.source = data.sources[where || this.type] || "";
  }

  /** What a search looks in. */
  get words() {
    const tensors = [...this.inputs, ...this.outputs].flat();
    return [this.path, this.kind, this.detail, this.type, this.op, this.target, this.given, this.config, ...tensors, this.remark].join(" ");
  }
}

/** Finds nodes by path. */
export class Index {
  /** @param {Data} data */
  constructor(data) {
    this.data = data;
    /** @type {Map<string, {group: Data["groups"][0], rows: Map<string, Row>}[]>} */
    this.places = new Map();
    for (const group of data.groups) {
      const rows = new Map(group.r.map((row) => [row[0], row]));
      for (const place of group.p) this.places.set(place, [...(this.places.get(place) || []), { group, rows }]);
    }
    this.modules = new Map(data.modules.map((module) => [module[0], module]));
  }

  /**
   * Return the node at a path, or null.
   * @param {string} path
   * @returns {Entry | null}
   */
  find(path) {
    for (let cut = path.lastIndexOf("."); ; cut = path.lastIndexOf(".", cut - 1)) {
      const around = path.slice(0, Math.max(cut, 0));
      for (const { group, rows } of this.places.get(around) || []) {
        const row = rows.get(path.slice(cut + 1));
        if (row) return new Entry(this.data, path, row, around, group.p);
      }
      if (cut <= 0) break;
    }
    const module = this.modules.get(path);
    return module ? new Entry(this.data, path, module, path.replace(/\.?[^.]*$/, ""), [path]) : null;
  }

  /** Return all nodes in the order of the model: each body once, at its first place. */
  rows() {
    return this.data.groups.flatMap((group) =>
      group.r.map((row) => new Entry(this.data, join(group.p[0], row[0]), row, group.p[0], group.p)),
    );
  }

  /**
   * Return all paths in the order of the model, a module before what is in it.
   * @returns {Iterable<string>}
   */
  *order() {
    const firsts = [...this.modules.keys()];
    const within = new Map(firsts.map((path, k) => [path, k]));
    /** @type {{path: string, key: number}[]} */
    const found = firsts.map((path, k) => ({ path, key: k }));
    for (const { p, r } of this.data.groups) {
      for (const place of p) for (const [k, row] of r.entries()) found.push({ path: join(place, row[0]), key: (within.get(place) ?? -1) + (k + 1) / (r.length + 1) });
    }
    for (const { path } of found.sort((a, b) => a.key - b.key)) yield path;
  }

  /** Return all module calls. */
  calls() {
    return this.data.modules.map((module) => new Entry(this.data, module[0], module, "", [module[0]]));
  }

  /**
   * Write a number of parameters (0), MACs (1) or bytes (2), in a cell without its unit.
   * @param {number | null} number
   * @param {number} what
   * @param {boolean} [cell]
   */
  text(number, what, cell) {
    if (number === null || number === undefined) return "";
    const unit = ["", "MACs", "B"][what];
    const short = this.data.format === "SI" || (this.data.format === "auto" && (what === 2 || (what === 1 && !cell)));
    if (short) return si(number, cell && what < 2 ? "" : unit);
    return grouped(number) + (cell || !unit ? "" : ` ${unit}`);
  }

  /**
   * Write the share of a number, or nothing.
   * @param {number | null} number
   * @param {number} what
   */
  share(number, what) {
    const whole = this.data.totals[what];
    return number && whole ? percent(number, whole) : "";
  }
}
