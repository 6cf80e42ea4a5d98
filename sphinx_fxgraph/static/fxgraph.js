/* The viewer. Without it a graph stands on the page in its natural size and can be scrolled; with it, it can be zoomed.

   Drag pans, Ctrl or ⌘ and wheel zooms, buttons and keys do both. A plain wheel and one finger scroll the page, since
   a reader who passes a graph wants to go on reading. All movement is scrolling of `.fxg-view`, so that links, finding
   in the page and links to a node work as anywhere else. */
"use strict";

(() => {
  const STEP = 1.25; // of one press of a zoom button
  const LEAST = 0.05;
  const MOST = 8;
  const STILL = 4; // pixels that a hand moves in a click
  const ARROWS = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] };

  function element(name, attributes, text = "") {
    const made = document.createElement(name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.textContent = text;
    return made;
  }

  function viewer(graph) {
    const view = graph.querySelector(".fxg-view");
    const svg = view && view.querySelector("svg");
    if (!svg) return;
    const width = parseFloat(svg.getAttribute("width"));
    const height = parseFloat(svg.getAttribute("height"));
    let scale = 1;

    /** Zoom so that what is at a point of the window stays there. */
    function zoom(factor, x, y) {
      const before = svg.getBoundingClientRect();
      const [left, top] = [(x - before.left) / before.width, (y - before.top) / before.height];
      scale = Math.min(MOST, Math.max(LEAST, scale * factor));
      svg.style.width = `${width * scale}px`;
      svg.style.height = `${height * scale}px`;
      const after = svg.getBoundingClientRect();
      view.scrollLeft += after.left + left * after.width - x;
      view.scrollTop += after.top + top * after.height - y;
    }

    function zoomMiddle(factor) {
      const box = view.getBoundingClientRect();
      zoom(factor, box.left + box.width / 2, box.top + box.height / 2);
    }

    function fit() {
      zoomMiddle(Math.min(view.clientWidth / width, view.clientHeight / height, 1) / scale);
    }

    // -- the frame, once it is this high and cannot be scrolled any more
    graph.classList.add("fxg-ready");
    view.style.height = `${height}px`;
    if (graph.dataset.height) view.style.maxHeight = graph.dataset.height;
    view.setAttribute("tabindex", "0");
    view.setAttribute("role", "region");
    view.setAttribute("aria-label", `Graph of ${graph.dataset.model}: arrows move it, plus and minus zoom, 0 fits it in`);
    const first = svg.querySelector(".fxg-op");
    if (first && view.scrollWidth > view.clientWidth) {
      const [box, outside] = [first.getBoundingClientRect(), view.getBoundingClientRect()];
      view.scrollLeft += box.left + box.width / 2 - outside.left - outside.width / 2;
    }

    // -- buttons
    const bar = element("div", { class: "fxg-bar", role: "toolbar", "aria-label": "Graph" });
    const buttons = [
      ["+", "Zoom in (Ctrl + wheel)", () => zoomMiddle(STEP)],
      ["−", "Zoom out (Ctrl + wheel)", () => zoomMiddle(1 / STEP)],
      ["Fit", "Show all of it", fit],
      ["1:1", "Natural size", () => zoomMiddle(1 / scale)],
    ];
    if (graph.requestFullscreen) {
      buttons.push(["Full screen", "Full screen, and back", () => (document.fullscreenElement ? document.exitFullscreen() : graph.requestFullscreen())]);
    }
    for (const [sign, label, action] of buttons) {
      const button = element("button", { type: "button", title: label, "aria-label": label }, sign);
      button.addEventListener("click", action);
      bar.append(button);
    }
    graph.prepend(bar);

    // -- wheel and keys
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.clientX, event.clientY);
    }, { passive: false });
    view.addEventListener("keydown", (event) => {
      if (event.target !== view || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in ARROWS) view.scrollBy(...ARROWS[event.key]);
      else if (event.key === "+" || event.key === "=") zoomMiddle(STEP);
      else if (event.key === "-") zoomMiddle(1 / STEP);
      else if (event.key === "0") fit();
      else if (event.key === "Escape") view.blur();
      else return;
      event.preventDefault();
    });

    // -- drag; a hand that does not move clicks
    let start = null;
    let dragged = false;
    view.addEventListener("pointerdown", (event) => {
      dragged = false;
      if (event.button || event.pointerType === "touch") return;
      start = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop };
    });
    view.addEventListener("pointermove", (event) => {
      if (!start) return;
      const [x, y] = [event.clientX - start.x, event.clientY - start.y];
      if (!dragged && Math.hypot(x, y) > STILL) {
        dragged = true; // only now: a captured pointer would take the click away from a link
        view.setPointerCapture(event.pointerId);
        graph.classList.add("fxg-dragged");
      }
      if (dragged) {
        view.scrollLeft = start.left - x;
        view.scrollTop = start.top - y;
      }
    });
    for (const name of ["pointerup", "pointercancel"]) {
      view.addEventListener(name, () => {
        start = null;
        graph.classList.remove("fxg-dragged");
      });
    }
    view.addEventListener("click", (event) => {
      if (dragged) event.preventDefault();
    }, true);
    view.addEventListener("dragstart", (event) => event.preventDefault());

    // -- two fingers
    let fingers = null;
    const place = ([one, two]) => ({
      x: (one.clientX + two.clientX) / 2,
      y: (one.clientY + two.clientY) / 2,
      apart: Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY),
    });
    view.addEventListener("touchstart", (event) => {
      fingers = event.touches.length === 2 ? place(event.touches) : null;
    }, { passive: true });
    view.addEventListener("touchmove", (event) => {
      if (!fingers || event.touches.length !== 2) return;
      event.preventDefault();
      const now = place(event.touches);
      view.scrollLeft -= now.x - fingers.x;
      view.scrollTop -= now.y - fingers.y;
      zoom(now.apart / fingers.apart, now.x, now.y);
      fingers = now;
    }, { passive: false });

    // -- light a node, its edges and its neighbours
    const NODES = "[data-path]";
    function light(event) {
      const node = event.target.closest(NODES);
      const path = node && node.dataset.path;
      for (const lit of svg.querySelectorAll(".fxg-lit")) lit.classList.remove("fxg-lit");
      if (!path) return;
      const near = new Set([path]);
      for (const edge of svg.querySelectorAll("[data-from]")) {
        const { from, to } = edge.dataset;
        if (from !== path && to !== path) continue;
        edge.classList.add("fxg-lit");
        near.add(from).add(to);
      }
      for (const each of svg.querySelectorAll(NODES)) each.classList.toggle("fxg-lit", near.has(each.dataset.path));
    }
    svg.addEventListener("pointerover", light);
    svg.addEventListener("focusin", light);
    svg.addEventListener("pointerleave", light);
  }

  /** Follow the page: dark where its text is light. No theme has to be known for that. */
  function follow() {
    const figure = document.querySelector(".fxgraph");
    if (!figure) return;
    const [red, green, blue] = getComputedStyle(figure.parentElement).color.match(/[\d.]+/g).map(Number);
    document.documentElement.dataset.fxgPage = 0.3 * red + 0.59 * green + 0.11 * blue > 140 ? "dark" : "light";
  }

  /** A table may be closed when a link leads to one of its rows. */
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const closed = target && target.closest(".fxg-tables details:not([open])");
    if (!closed) return;
    closed.open = true;
    target.scrollIntoView();
  }

  document.querySelectorAll(".fxg-graph").forEach(viewer);
  follow();
  reveal();
  addEventListener("hashchange", reveal);
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
})();
