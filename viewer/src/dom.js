// Elements of HTML and SVG.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an HTML element.
 * @param {string} name
 * @param {Record<string, string | number>} [attributes]
 * @param {...(Node | string)} inside
 */
export function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, String(attributes[key]));
  made.append(...inside);
  return made;
}

/**
 * Create an SVG element.
 * @param {string} name
 * @param {Record<string, string | number>} [attributes]
 * @param {...(Node | string)} inside
 * @returns {SVGElement}
 */
export function drawn(name, attributes = {}, ...inside) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, String(attributes[key]));
  made.append(...inside);
  return /** @type {SVGElement} */ (made);
}

/**
 * Create a button.
 * @param {string} text
 * @param {string} title
 * @param {(event: Event) => void} action
 */
export function button(text, title, action) {
  const made = element("button", { type: "button", title }, text);
  if (title && text !== title) made.setAttribute("aria-label", text.length > 1 && !title.startsWith(text) ? `${text}: ${title}` : title);
  made.addEventListener("click", action);
  return made;
}

/**
 * Save data as a file of the reader's.
 * @param {string} name
 * @param {Blob} data
 */
export function download(name, data) {
  const link = element("a", { href: URL.createObjectURL(data), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(/** @type {HTMLAnchorElement} */ (link).href), 10000);
}

/**
 * Put text on the clipboard, also where the page may not ask for it.
 * @param {string} text
 */
export function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).catch(() => copySelected(text));
  return Promise.resolve(copySelected(text));
}

/** @param {string} text */
function copySelected(text) {
  const area = /** @type {HTMLTextAreaElement} */ (element("textarea", { readonly: "" }));
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** @type {<T extends Element = HTMLElement>(root: ParentNode, selector: string) => T[]} */
export const all = (root, selector) => /** @type {any} */ ([...root.querySelectorAll(selector)]);
/** @type {<T extends Element = HTMLElement>(root: ParentNode, selector: string) => T | null} */
export const one = (root, selector) => root.querySelector(selector);

/**
 * Load a script; the page may be read from a disk, where fetch does not work.
 * @param {string} source
 * @returns {Promise<void>}
 */
export function loadScript(source) {
  return new Promise((resolve, reject) => {
    const script = /** @type {HTMLScriptElement} */ (element("script", { src: source }));
    script.onload = () => resolve();
    script.onerror = reject;
    document.head.append(script);
  });
}

/**
 * Return data from a block in the page, or from a script that stores it under its name.
 * @param {HTMLElement} graph
 * @param {string} kind
 * @returns {Promise<any>}
 */
export async function loadData(graph, kind) {
  const inline = one(graph, `.fxg-${kind}`);
  if (inline) return JSON.parse(inline.textContent || "{}");
  const source = graph.dataset[kind];
  if (!source) return null;
  const store = /** @type {any} */ (globalThis);
  const name = decodeURIComponent(source.split("/").pop() || "");
  if (!store.fxgraphData?.[name]) await loadScript(source);
  return store.fxgraphData[name];
}
