// Make room in a drawing for a module that is opened where it stands.
import { all, one } from "./dom.js";
import { points, spread } from "./geometry.js";

const GAP = 12;
const NEAR = 1.5; // an edge ends at the border that it is this near to

/** @typedef {{x: number, y: number, w: number, h: number}} Box */

/**
 * Return the upper left corner and the size of a box or a frame, within the frame around it.
 * @param {Element} group
 * @returns {Box}
 */
export function extent(group) {
  const [x, y] = (group.getAttribute("transform") || "0 0").match(/-?[\d.]+/g)?.map(Number) || [0, 0];
  const outline = one(group, ":scope > rect:not(.fxg-sheet)");
  return { x, y, w: size(outline, "width"), h: size(outline, "height") };
}

/** @type {(each: Element | null, name: string) => number} */
const size = (each, name) => Number(each?.getAttribute(name));

/** @param {Element} frame */
const parts = (frame) => [...frame.children].filter((child) => child.matches("g[transform]"));

/**
 * Return how much room there is left and right of a line, beside what stands on it, up to what is next to it.
 * @param {Element} frame
 * @param {Element} grown
 * @param {Box} old
 * @param {number} line
 */
function free(frame, grown, old, line) {
  const width = frame.nodeName === "svg" ? size(frame, "width") : extent(frame).w;
  let [left, right] = [line - GAP, width - line - GAP];
  /** @type {(top: number, bottom: number) => boolean} */
  const beside = (top, bottom) => top < old.y + old.h - 2 && bottom > old.y + 2;
  for (const part of parts(frame)) {
    const box = extent(part);
    if (part === grown || !(part.matches(".fxg-panel") || beside(box.y, box.y + box.h))) continue;
    if (box.x > line) right = Math.min(right, box.x - line - GAP);
    else if (box.x + box.w < line) left = Math.min(left, line - box.x - box.w - GAP);
  }
  for (const path of all(frame, ":scope > path")) {
    const found = points(path.getAttribute("d") || "");
    found.slice(1).forEach(([x, y], k) => {
      const [before, above] = found[k];
      if (!beside(Math.min(y, above), Math.max(y, above))) return;
      for (const each of [x, before]) {
        if (each > old.x + old.w + 1) right = Math.min(right, each - line - GAP);
        else if (each < old.x - 1) left = Math.min(left, line - each - GAP);
      }
    });
  }
  return [left, right];
}

/**
 * Make room in the frame of `grown` for what it grew by, and in the frames around it.
 * @param {Element} grown
 * @param {Box} old where it was
 * @param {{w: number, h: number}} now its size
 * @param {number} middle the x of its main line, which is moved so that it stays in line
 * @param {(x: number) => number} inner where on the borders of `grown` an edge ends that ended at x before
 * @returns {number[]} how much wider and higher the drawing is
 */
export function makeRoom(grown, old, now, middle, inner) {
  const frame = /** @type {Element} */ (grown.parentNode);
  const line = old.x + middle;
  const [left, right] = free(frame, grown, old, line);
  const x = spread(old.x, line, old.x + old.w, Math.max(0, inner(middle) - left), Math.max(0, now.w - inner(middle) - right));
  const y = spread(old.y, old.y, old.y + old.h, 0, now.h - old.h);
  const borders = parts(frame).map((part) => {
    const box = part === grown ? old : extent(part);
    let [aside, down] = [x(line) - line, y(box.y + box.h / 2) - box.y - box.h / 2];
    if (part === grown) [aside, down] = [x(line) - inner(middle) - old.x, 0];
    else if (box.x > line || box.x + box.w < line) aside = x(box.x + box.w / 2) - box.x - box.w / 2;
    if (part.matches(".fxg-panel")) down = 0;
    part.setAttribute("transform", `translate(${box.x + aside} ${box.y + down})`);
    return { part, box, aside, down, below: part.matches(".fxg-fold") ? 6 : 0 };
  });
  /** @type {(px: number, py: number) => number[]} where the end of an edge is now: on the border of what it ended at */
  const end = (px, py) => {
    const at = borders.find(
      ({ box, below }) => px >= box.x - NEAR && px <= box.x + box.w + NEAR && py >= box.y - NEAR && py <= box.y + box.h + below + NEAR,
    );
    if (!at) return [x(px), y(py)];
    if (at.part !== grown) return [px + at.aside, py + at.down];
    return [old.x + at.aside + inner(px - old.x), py > old.y + old.h / 2 ? py + now.h - old.h : py];
  };
  for (const path of all(frame, ":scope > path")) {
    const d = path.getAttribute("d") || "";
    const was = points(d);
    const moved = was.map(([px, py]) => [x(px), y(py)]);
    // The first and last two points keep their place to each other, so that a line leaves a box as it did.
    const last = was.length - 1;
    const straight = !d.includes("C");
    for (const [k, next] of [[d.includes("L") && d.indexOf("L") < d.indexOf("C") ? 1 : 0, 1], [last, -1]]) {
      if (path.matches(".fxg-rail, .fxg-dots")) continue;
      moved[k] = end(was[k][0], was[k][1]);
      const follower = was[k + next];
      if (!straight && follower) moved[k + next] = [moved[k][0] + follower[0] - was[k][0], moved[k][1] + follower[1] - was[k][1]];
    }
    let k = 0;
    path.setAttribute("d", d.replace(/-?[\d.]+ -?[\d.]+/g, () => moved[k++].map((v) => +v.toFixed(1)).join(" ")));
  }
  for (const [name, a, b] of [["circle", "cx", "cy"], [".fxg-note", "x", "y"]]) {
    for (const each of all(frame, `:scope > ${name}`)) {
      each.setAttribute(a, String(x(size(each, a))));
      each.setAttribute(b, String(y(size(each, b))));
    }
  }
  const [wider, higher] = [x(1e6) - 1e6, y(1e6) - 1e6];
  if (frame.nodeName === "svg") return [wider, higher];
  const was = extent(frame);
  for (const rect of all(frame, ":scope > .fxg-frame")) {
    rect.setAttribute("width", String(was.w + wider));
    rect.setAttribute("height", String(was.h + higher));
  }
  for (const share of all(frame, ":scope > .fxg-percent")) share.setAttribute("x", String(was.w + wider));
  const titles = all(frame, ":scope > .fxg-title");
  if (titles.length && size(titles[0], "x") > 20) {
    for (const text of titles) text.setAttribute("x", String(x(size(text, "x"))));
  }
  return makeRoom(frame, was, { w: was.w + wider, h: was.h + higher }, line, x);
}

/**
 * Move what stands in a frame that gets a wider border.
 * @param {Element} content
 * @param {number} right
 * @param {number} down
 */
export function shift(content, right, down) {
  for (const each of parts(content)) {
    const { x, y } = extent(each);
    each.setAttribute("transform", `translate(${x + right} ${y + down})`);
  }
  for (const each of all(content, ":scope > path")) {
    const d = each.getAttribute("d") || "";
    each.setAttribute("d", d.replace(/(-?[\d.]+) (-?[\d.]+)/g, (_all, x, y) => `${+x + right} ${+y + down}`));
  }
  for (const [name, a, b] of [["circle", "cx", "cy"], [".fxg-note", "x", "y"]]) {
    for (const each of all(content, `:scope > ${name}`)) {
      each.setAttribute(a, String(size(each, a) + right));
      each.setAttribute(b, String(size(each, b) + down));
    }
  }
}
