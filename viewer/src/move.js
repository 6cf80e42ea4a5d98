// Move and zoom. Moving is scrolling of `.fxg-view`, so that links, the browser's own search and links to a node work
// as anywhere else. While the wheel turns or two fingers move, the drawing is transformed, which costs no layout; it
// takes its new size when they rest.
import { all, drawn } from "./dom.js";
import { clampScale, clampStart } from "./geometry.js";

const STEP = 1.25; // of one press of a zoom button
const STILL = 4; // pixels that a hand moves in a click
const REST = 120; // milliseconds without movement after which the drawing takes its size
const MAP = [110, 300]; // pixels that the map takes at most
const SMALL = 0.35; // of the width of the view that the map takes at most

export class Mover {
  /**
   * @param {HTMLElement} graph
   * @param {HTMLElement} view
   * @param {SVGSVGElement} svg
   */
  constructor(graph, view, svg) {
    this.graph = graph;
    this.view = view;
    this.svg = svg;
    this.width = 0;
    this.height = 0;
    this.scale = 1;
    /** What the reader looks at, in the drawing's own units; zooming by a button keeps it in the middle. */
    this.look = { x: 0, y: 0 };
    this.map = drawn("svg", { class: "fxg-map", "aria-hidden": "true" });
    this.sight = drawn("rect", { class: "fxg-seen" });
    this.dragged = false;
    /** @type {{scale: number, left: number, top: number, x: number, y: number, timer: number} | null} */
    this.gesture = null;
    this.expected = [0, 0];
    /** @type {() => void} what to do when the reader has moved */
    this.moved = () => {};
    view.addEventListener("scroll", () => this.scrolled());
    this.dragging();
    this.touching();
    this.mapping();
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.clientX, event.clientY);
    }, { passive: false });
    view.addEventListener("dblclick", (event) => {
      const { target } = event;
      if (target instanceof Element && target.closest("a, [role=button]")) return;
      event.preventDefault();
      getSelection()?.removeAllRanges();
      this.zoomAt(event.shiftKey ? 0.5 : 2, event.clientX, event.clientY);
      this.settle();
    });
  }

  /** Take the size of what is shown, after that has changed. */
  measure() {
    this.settle();
    this.width = Number(this.svg.getAttribute("width"));
    this.height = Number(this.svg.getAttribute("height"));
    this.resize();
    this.view.style.height = `${this.height}px`;
    this.chart();
  }

  resize() {
    this.svg.style.width = `${this.width * this.scale}px`;
    this.svg.style.height = `${this.height * this.scale}px`;
  }

  /** The scale at which all of the drawing is in sight. */
  get fit() {
    return Math.min(this.view.clientWidth / this.width, this.view.clientHeight / this.height);
  }

  /**
   * Zoom so that what is at a point of the window stays there, as far as the drawing reaches.
   * @param {number} factor
   * @param {number} x
   * @param {number} y
   */
  zoomAt(factor, x, y) {
    const { view, svg } = this;
    const [at, sight] = [svg.getBoundingClientRect(), view.getBoundingClientRect()];
    if (!this.gesture) {
      this.gesture = { scale: this.scale, left: at.left - sight.left, top: at.top - sight.top, x: 0, y: 0, timer: 0 };
      svg.classList.add("fxg-zooming");
    }
    const { gesture } = this;
    const [px, py] = [(x - at.left) / this.scale, (y - at.top) / this.scale];
    this.scale = clampScale(this.scale * factor, this.fit);
    const [w, h] = [this.width * this.scale, this.height * this.scale];
    gesture.x = clampStart(x - sight.left - px * this.scale, w, view.clientWidth, true);
    gesture.y = clampStart(y - sight.top - py * this.scale, h, view.clientHeight, false);
    svg.style.transform = `translate(${gesture.x - gesture.left}px, ${gesture.y - gesture.top}px) scale(${this.scale / gesture.scale})`;
    this.look = {
      x: w > view.clientWidth ? (view.clientWidth / 2 - gesture.x) / this.scale : px,
      y: h > view.clientHeight ? (view.clientHeight / 2 - gesture.y) / this.scale : py,
    };
    clearTimeout(gesture.timer);
    gesture.timer = setTimeout(() => this.settle(), REST);
    this.survey();
  }

  /** End a gesture: the drawing takes its size and place. */
  settle() {
    const { gesture } = this;
    if (!gesture) return;
    this.gesture = null;
    clearTimeout(gesture.timer);
    this.svg.classList.remove("fxg-zooming");
    this.svg.style.transform = "";
    this.resize();
    this.scrollTo(-gesture.x, -gesture.y);
    this.moved();
  }

  /**
   * Scroll, without taking that for what the reader looks at.
   * @param {number} left
   * @param {number} top
   */
  scrollTo(left, top) {
    this.view.scrollLeft = left;
    this.view.scrollTop = top;
    this.expected = [this.view.scrollLeft, this.view.scrollTop];
    this.survey();
  }

  /** @param {number} factor */
  zoom(factor) {
    this.settle();
    this.scale = clampScale(this.scale * factor, this.fit);
    this.resize();
    this.center(this.look);
    this.moved();
  }

  zoomIn() {
    this.zoom(STEP);
  }

  zoomOut() {
    this.zoom(1 / STEP);
  }

  showAll() {
    this.zoom(Math.min(this.fit, 1) / this.scale);
  }

  naturalSize() {
    this.zoom(1 / this.scale);
  }

  /** @param {{x: number, y: number}} point of the drawing that comes to the middle */
  center({ x, y }) {
    this.scrollTo(x * this.scale - this.view.clientWidth / 2, y * this.scale - this.view.clientHeight / 2);
  }

  /** Note what the reader looks at now. */
  note() {
    const { x, y, width, height } = this.within(this.view);
    this.look = { x: x + width / 2, y: y + height / 2 };
  }

  scrolled() {
    const { scrollLeft, scrollTop } = this.view;
    if (Math.abs(scrollLeft - this.expected[0]) > 1 || Math.abs(scrollTop - this.expected[1]) > 1) {
      this.expected = [scrollLeft, scrollTop];
      this.note();
      this.moved();
    }
    this.survey();
  }

  /** Where the reader is, for `go`. */
  place() {
    this.settle();
    return { scale: this.scale, look: this.look };
  }

  /** @param {{scale?: number, look?: {x: number, y: number}}} place where the reader was; its start without one */
  go({ scale = 1, look = this.start() }) {
    this.scale = scale;
    this.look = look;
    this.resize();
    this.center(look);
  }

  /** The upper end of the drawing, around its first node. */
  start() {
    const first = this.svg.querySelector(".fxg-op, .fxg-closed");
    const box = first ? this.within(first) : { x: this.width / 2, width: 0 };
    return { x: box.x + box.width / 2, y: this.view.clientHeight / this.scale / 2 };
  }

  /**
   * Return where something of the page is in the drawing.
   * @param {Element} part
   */
  within(part) {
    const [box, whole] = [part.getBoundingClientRect(), this.svg.getBoundingClientRect()];
    const { scale } = this;
    return { x: (box.left - whole.left) / scale, y: (box.top - whole.top) / scale, width: box.width / scale, height: box.height / scale };
  }

  /**
   * Scroll so that a part of the drawing is in sight, and the drawing in the window.
   * @param {Element} group
   */
  show(group) {
    this.settle();
    const [box, sight] = [group.getBoundingClientRect(), this.view.getBoundingClientRect()];
    const hidden = box.top < sight.top || box.bottom > sight.bottom || box.left < sight.left || box.right > sight.right;
    if (hidden) {
      const { x, y, width, height } = this.within(group);
      const [w, h] = [this.view.clientWidth / this.scale, this.view.clientHeight / this.scale];
      // Of what is larger than the view its beginning.
      this.center({ x: width > w ? x + w / 2 - 20 : x + width / 2, y: height > h ? y + h / 2 - 20 : y + height / 2 });
    }
    this.note();
    const now = group.getBoundingClientRect();
    if (now.top < 0 || now.top + Math.min(now.height, 80) > innerHeight) {
      if (sight.height < innerHeight) this.graph.scrollIntoView({ block: "nearest" });
      const after = group.getBoundingClientRect();
      if (after.top < 60 || after.bottom > innerHeight) group.scrollIntoView({ block: "center", inline: "nearest" });
    }
    this.moved();
  }

  // -- the map

  /** Draw the map, where most of the drawing is out of sight. */
  chart() {
    const { map, view, svg, width, height } = this;
    map.remove(); // it takes room beside the view
    if (height <= 2 * view.clientHeight && width <= 2 * view.clientWidth) return;
    const size = Math.min(Math.min(MAP[0], SMALL * view.clientWidth) / width, Math.min(MAP[1], view.clientHeight - 16) / height);
    for (const [name, value] of [["viewBox", `0 0 ${width} ${height}`], ["width", width * size], ["height", height * size]]) {
      map.setAttribute(String(name), String(value));
    }
    const boxes = all(svg, ".fxg-box, .fxg-frame:not(.fxg-sheet)").map((each) => ({ each, at: this.within(each) }));
    map.replaceChildren(...boxes.map(({ each, at }) => drawn("rect", { class: `${each.classList[0]}-far`, ...at })), this.sight);
    view.after(map);
    this.survey();
  }

  /** Show on the map what is in sight. */
  survey() {
    if (!this.map.isConnected) return;
    for (const [name, value] of Object.entries(this.within(this.view))) this.sight.setAttribute(name, String(value));
  }

  mapping() {
    for (const name of ["pointerdown", "pointermove"]) {
      this.map.addEventListener(name, (event) => {
        const { buttons, clientX, clientY } = /** @type {PointerEvent} */ (event);
        if (!buttons) return;
        event.preventDefault();
        this.settle();
        const box = this.map.getBoundingClientRect();
        this.center({ x: ((clientX - box.left) / box.width) * this.width, y: ((clientY - box.top) / box.height) * this.height });
        this.note();
        this.moved();
      });
    }
  }

  // -- drag; a hand that does not move clicks

  dragging() {
    const { view } = this;
    /** @type {{x: number, y: number, left: number, top: number} | null} */
    let start = null;
    view.addEventListener("pointerdown", (event) => {
      this.dragged = false;
      if (event.button || event.pointerType === "touch") return;
      this.settle();
      start = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop };
    });
    view.addEventListener("pointermove", (event) => {
      if (!start) return;
      const [x, y] = [event.clientX - start.x, event.clientY - start.y];
      if (!this.dragged && Math.hypot(x, y) > STILL) {
        this.dragged = true; // only now: a captured pointer would take the click away from a link
        view.setPointerCapture(event.pointerId);
        this.graph.classList.add("fxg-dragged");
      }
      if (this.dragged) {
        view.scrollLeft = start.left - x;
        view.scrollTop = start.top - y;
      }
    });
    for (const name of ["pointerup", "pointercancel"]) {
      view.addEventListener(name, () => {
        start = null;
        this.graph.classList.remove("fxg-dragged");
      });
    }
    view.addEventListener("click", (event) => {
      if (this.dragged) event.preventDefault();
    }, true);
    view.addEventListener("dragstart", (event) => event.preventDefault());
  }

  // -- fingers: one is left to the browser, which moves the drawing sideways and the page up and down

  touching() {
    const { view } = this;
    /** @type {{x: number, y: number, apart: number} | null} */
    let before = null;
    /** @param {TouchList} touches */
    const place = ({ 0: one, 1: two }) => ({
      x: (one.clientX + two.clientX) / 2,
      y: (one.clientY + two.clientY) / 2,
      apart: Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY),
    });
    view.addEventListener("touchstart", (event) => {
      before = event.touches.length === 2 ? place(event.touches) : null;
      if (before) event.preventDefault();
    }, { passive: false });
    view.addEventListener("touchmove", (event) => {
      if (!before || event.touches.length !== 2) return;
      event.preventDefault();
      const now = place(event.touches);
      this.dragged = true;
      this.slide(now.x - before.x, now.y - before.y);
      this.zoomAt(now.apart / before.apart, now.x, now.y);
      before = now;
    }, { passive: false });
  }

  /**
   * Move the drawing, also while a gesture lasts.
   * @param {number} x
   * @param {number} y
   */
  slide(x, y) {
    if (this.gesture) {
      const { gesture, svg } = this;
      svg.style.transform = `translate(${gesture.x + x - gesture.left}px, ${gesture.y + y - gesture.top}px) scale(${this.scale / gesture.scale})`;
    } else {
      this.view.scrollLeft -= x;
      this.view.scrollTop -= y;
    }
  }
}
