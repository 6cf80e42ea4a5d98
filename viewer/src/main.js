// The viewer. Without it a graph stands on the page in its natural size and can be scrolled.
import { all, one } from "./dom.js";
import { start } from "./history.js";
import { Viewer } from "./viewer.js";
import { loadWords } from "./words.js";

/** Follow the page: dark where its text is light. No theme has to be known for that. */
function follow() {
  const figure = one(document, ".fxgraph, .fxg-thumbs");
  if (!figure?.parentElement) return;
  const [red, green, blue] = (getComputedStyle(figure.parentElement).color.match(/[\d.]+/g) || []).map(Number);
  document.documentElement.dataset.fxgPage = 0.3 * red + 0.59 * green + 0.11 * blue > 140 ? "dark" : "light";
}

loadWords();
follow();
for (const graph of all(document, ".fxg-graph")) {
  const view = one(graph, ".fxg-view");
  const svg = view && one(view, "svg");
  if (view && svg) new Viewer(graph, view, /** @type {any} */ (svg));
}
start();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => requestAnimationFrame(follow));
// A theme's switch changes an attribute of the page or of a style sheet's link; its colours may then fade in.
const switched = new MutationObserver((changes) => {
  if (changes.every((change) => change.attributeName === "data-fxg-page")) return;
  requestAnimationFrame(follow);
  setTimeout(follow, 500);
});
switched.observe(document.documentElement, { attributes: true });
switched.observe(document.body, { attributes: true });
switched.observe(document.head, { attributes: true, subtree: true });
