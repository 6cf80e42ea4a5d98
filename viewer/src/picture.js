// The drawing as it is seen, as a file: SVG with plain attributes, or PNG.
import { all } from "./dom.js";

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "paint-order",
];
const MOST = 8000; // pixels along one side of an image
const IMAGE = "image/png";

/**
 * Return a drawing as the text of an SVG file that needs no style sheet.
 * @param {SVGSVGElement} svg
 */
export function svgFile(svg) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const copies = all(copy, "*");
  all(/** @type {Element} */ (svg), "*").forEach((each, k) => {
    const style = getComputedStyle(each);
    const parent = each.parentElement && getComputedStyle(each.parentElement);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      const inherited = !/opacity|order/.test(name) && parent && parent.getPropertyValue(name) === value && each.parentNode !== svg;
      if (!inherited) copies[k].setAttribute(name, value.replace(/px/g, ""));
    }
    for (const name of ["class", "tabindex", "role", "aria-expanded"]) copies[k].removeAttribute(name);
  });
  for (const name of ["style", "class", "aria-labelledby", "aria-describedby"]) copy.removeAttribute(name);
  const paper = getComputedStyle(svg).backgroundColor;
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", paper]]) back.setAttribute(name, value);
  copy.prepend(back);
  return new XMLSerializer().serializeToString(copy);
}

/**
 * Return a drawing as an image, twice as large as it is drawn.
 * @param {SVGSVGElement} svg
 * @returns {Promise<Blob>}
 */
export function pngFile(svg) {
  const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
  const scale = Math.min(2, MOST / width, MOST / height);
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: width * scale, height: height * scale });
  const image = new Image();
  return new Promise((resolve, reject) => {
    image.onerror = () => reject(new Error("image"));
    image.onload = () => {
      canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("image"))), IMAGE);
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgFile(svg))}`;
  });
}

/**
 * Put a drawing on the clipboard as an image.
 * @param {SVGSVGElement} svg
 */
export const copyImage = (svg) => navigator.clipboard.write([new ClipboardItem({ [IMAGE]: pngFile(svg) })]);
