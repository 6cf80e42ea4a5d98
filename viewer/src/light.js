// What belongs together in a drawing: the ends of edges, and the neighbours of a node.
import { all } from "./dom.js";
import { join } from "./ids.js";

export const NODES = "[data-path]";
const LEAVES = ".fxg-op, .fxg-closed:not(.fxg-opened)";

/** @type {(group: Element) => string} */
const pathOf = (group) => /** @type {SVGElement} */ (group).dataset.path || "";

/**
 * Return the nodes that have nothing inside.
 * @param {Element} svg
 */
export const leaves = (svg) => all(svg, LEAVES).filter((each) => pathOf(each));

/**
 * Return the path of what an edge joins: it is named within the module around the edge, which has no name there.
 * @param {HTMLElement} edge
 * @param {"from" | "to"} which
 */
function end(edge, which) {
  const around = edge.parentElement?.closest(NODES);
  return join(around ? pathOf(around) : "", edge.dataset[which] || "");
}

/**
 * Return the edges of a node, and the paths of the nodes at their other ends; an edge that meets a frame goes on
 * inside, or outside.
 * @param {Element} svg
 * @param {Element} group
 */
export function linked(svg, group) {
  const edges = all(svg, "[data-from][data-to]").map((edge) => ({ edge, ends: { from: end(edge, "from"), to: end(edge, "to") } }));
  const known = new Set(leaves(svg).map(pathOf));
  /** @type {Set<Element>} */
  const lines = new Set();
  /** @type {Set<string>} */
  const paths = new Set();
  // A row of a box has its neighbours in the box; the edges meet the first and the last row.
  const rows = group.closest(".fxg-rows") ? all(/** @type {Element} */ (group.closest(".fxg-rows")), ".fxg-row") : [];
  const at = rows.indexOf(/** @type {any} */ (group));
  for (const row of [rows[at - 1], rows[at + 1]]) if (at >= 0 && row) paths.add(pathOf(row));
  /** @type {["from" | "to", "from" | "to"][]} */
  const ways = [["from", "to"], ["to", "from"]];
  for (const [here, there] of ways) {
    if (at >= 0 && at !== (here === "from" ? rows.length - 1 : 0)) continue;
    const own = at >= 0 ? rows.map(pathOf) : [pathOf(group)];
    const seen = new Set();
    const next = edges.filter(({ edge, ends }) => edge.dataset[here] && own.includes(ends[here]));
    for (let one = next.pop(); one; one = next.pop()) {
      if (seen.has(one)) continue;
      seen.add(one);
      lines.add(one.edge);
      const far = one.ends[there];
      const inner = !!one.edge.dataset[there];
      if (known.has(far) && inner) paths.add(far);
      else next.push(...edges.filter((each) => !each.edge.dataset[here] === inner && each.ends[here] === far));
    }
  }
  // The edges of a box with rows have the name of its last row.
  for (const path of [...paths]) {
    const box = leaves(svg).find((each) => pathOf(each) === path)?.closest(".fxg-rows");
    const first = box && !rows.includes(/** @type {any} */ (box.querySelector(".fxg-row"))) ? box.querySelector(".fxg-row") : null;
    if (first && [...lines].some((edge) => join(pathAround(edge), /** @type {HTMLElement} */ (edge).dataset.to || "") === path)) {
      paths.delete(path);
      paths.add(pathOf(first));
    }
  }
  return { lines, paths };
}

/** @param {Element} edge */
function pathAround(edge) {
  const around = edge.parentElement?.closest(NODES);
  return around ? pathOf(around) : "";
}

/**
 * Return the next node in a direction: along an edge, else whatever is near there.
 * @param {Element} svg
 * @param {Element} group
 * @param {number[]} direction
 */
export function neighbour(svg, group, [right, down]) {
  /** @param {Element} each */
  const middle = (each) => {
    const box = each.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const [x, y] = middle(group);
  /** @param {Element} each */
  const far = (each) => {
    const [ex, ey] = middle(each);
    const along = Math.sign(right) * (ex - x) + Math.sign(down) * (ey - y);
    const aside = Math.abs(right ? ey - y : ex - x);
    return along > 1 && (aside < 2 * along || right) ? along + 2 * aside : Infinity;
  };
  /** @type {(pool: Element[]) => Element | undefined} */
  const nearest = (pool) => pool.filter((each) => far(each) < Infinity).sort((a, b) => far(a) - far(b))[0];
  const { paths } = linked(svg, group);
  return nearest(leaves(svg).filter((each) => paths.has(pathOf(each)))) || nearest(leaves(svg));
}

/**
 * Compare by place, from top to bottom, as one reads.
 * @param {Element} a
 * @param {Element} b
 */
export function inOrder(a, b) {
  const [one, other] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
  return one.top - other.top || one.left - other.left;
}
