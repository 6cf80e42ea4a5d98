// What is open is part of the browser's history: opening adds an entry, Back and Forward show what was open.
import { fragment } from "./ids.js";

/**
 * @typedef {object} Remembers
 * @property {() => any} state
 * @property {(state: any) => Promise<void>} restore
 * @property {(id: string) => Promise<boolean>} follow show the node or row of an id
 */

/** @type {Map<string, Remembers>} by figure */
const viewers = new Map();
let restored = "";
let timer = 0;

const states = () => ({ ...history.state, fxgraph: Object.fromEntries([...viewers].map(([figure, viewer]) => [figure, viewer.state()])) });

/** Note where the reader is, in the current entry. */
export function save() {
  clearTimeout(timer);
  timer = 0;
  attempt(() => history.replaceState(states(), ""));
}

/** The same, once the reader rests. */
export function saveSoon() {
  clearTimeout(timer);
  timer = setTimeout(save, 300);
}

/**
 * Add an entry for what is open now.
 * @param {string} id
 */
export function push(id) {
  clearTimeout(timer);
  attempt(() => history.pushState(states(), "", `#${encodeURIComponent(id)}`));
}

/** @param {() => void} change not possible in every frame, or too often */
function attempt(change) {
  try {
    change();
  } catch {
    // The page works without it.
  }
}

async function followHash() {
  const id = fragment();
  if (!id || restored === location.href) return;
  // Of figures `net` and `net-2` the longer name is tried first.
  for (const [, viewer] of [...viewers].sort(([a], [b]) => b.length - a.length)) {
    if (await viewer.follow(id)) return save();
  }
}

/**
 * Take part in the history.
 * @param {string} figure
 * @param {Remembers} viewer
 */
export function remember(figure, viewer) {
  viewers.set(figure, viewer);
}

/** Follow the address from now on. */
export function start() {
  if (!viewers.size) return;
  addEventListener("hashchange", followHash);
  addEventListener("popstate", async () => {
    const found = history.state?.fxgraph;
    restored = found ? location.href : "";
    for (const [figure, viewer] of found ? viewers : []) if (found[figure]) await viewer.restore(found[figure]);
  });
  addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("a[href*='#']")) save();
  }, true);
  const found = history.state?.fxgraph;
  if (found) for (const [figure, viewer] of viewers) if (found[figure]) void viewer.restore(found[figure]);
  if (!found) void followHash();
}
