// The parts that need to know the nodes: details, search, node table. The viewer loads them when they are first used.
import { Index } from "./data.js";
import { Panel } from "./panel.js";
import { Search } from "./search.js";
import { NodeTable } from "./table.js";
import { loadWords } from "./words.js";

/**
 * @typedef {object} Host
 * @property {(path: string, details: boolean) => void} go show a node
 * @property {(path: string) => void} showRow
 * @property {(paths: Set<string>, here: string) => void} mark what a search has found
 * @property {() => void} closed
 * @property {HTMLDetailsElement | null} table where the node table opens
 * @property {HTMLElement} find where the search field is
 */

loadWords();
/** @type {any} */ (globalThis).fxgraphNodes = (/** @type {string} */ figure, /** @type {any} */ data, /** @type {Host} */ host) => {
  const index = new Index(data);
  return {
    index,
    panel: new Panel(figure, index, { ...host, hasTable: () => !!host.table }),
    search: new Search(host.find, index, { ...host, go: (path) => host.go(path, false) }),
    table: host.table && new NodeTable(figure, host.table, index, (path) => host.go(path, true)),
  };
};
