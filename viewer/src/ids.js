// Ids of nodes in the page. `sphinx_fxgraph/text/ids.py` writes the same.

/**
 * Return the id of a node: `<figure>-<path>`.
 * @param {string} figure
 * @param {string} path
 */
export function anchor(figure, path) {
  const name = path
    .replace(/@(\d+)/g, "..$1")
    .replace(/[^\w.-]/gu, (c) => `_x${Number(c.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0")}_`);
  return `${figure}-${name}`;
}

/**
 * Return the path that an id stands for, or null if it is not of this figure.
 * @param {string} figure
 * @param {string} id
 */
export function pathOf(figure, id) {
  if (!id.startsWith(`${figure}-`)) return null;
  return id
    .slice(figure.length + 1)
    .replace(/\.\.(\d+)/g, "@$1")
    .replace(/_x([0-9A-F]{4,6})_/g, (_all, code) => String.fromCodePoint(parseInt(code, 16)));
}

/** Return the fragment of the address as an id; an address that is not well-formed has none. */
export function fragment() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

/**
 * Return the path of something inside a module.
 * @param {string} path
 * @param {string} name
 */
export const join = (path, name) => (path && name ? `${path}.${name}` : path || name);
