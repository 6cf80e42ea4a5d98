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
  const MAP = [110, 300]; // pixels that the map takes at most
  const ARROWS = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] };

  function element(name, attributes, text = "") {
    const made = document.createElement(name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.textContent = text;
    return made;
  }

  function viewer(graph) {
    const view = graph.querySelector(".fxg-view");
    let svg = view && view.querySelector("svg");
    if (!svg) return;
    let width = 0;
    let height = 0;
    let scale = 1;

    /** Take the size of what is shown, after that has changed. */
    function measure() {
      width = parseFloat(svg.getAttribute("width"));
      height = parseFloat(svg.getAttribute("height"));
      svg.style.width = `${width * scale}px`;
      svg.style.height = `${height * scale}px`;
      view.style.height = `${height}px`;
      chart();
    }

    // -- a map, where most of the drawing is out of sight
    const map = drawn("svg", { class: "fxg-map", "aria-hidden": "true" });
    const seen = drawn("rect", { class: "fxg-seen" });

    function chart() {
      const size = Math.min(MAP[0] / width, Math.min(MAP[1], view.clientHeight / 2) / height);
      for (const [name, value] of [["viewBox", `0 0 ${width} ${height}`], ["width", width * size], ["height", height * size]]) map.setAttribute(name, value);
      const boxes = [...svg.querySelectorAll(".fxg-box, .fxg-frame:not(.fxg-sheet)")];
      map.replaceChildren(...boxes.map((each) => drawn("rect", { class: `${each.classList[0]}-far`, ...within(each) })), seen);
      survey();
    }

    /** Where something of the page is in the drawing. */
    function within(part) {
      const [box, whole] = [part.getBoundingClientRect(), svg.getBoundingClientRect()];
      return { x: (box.left - whole.left) / scale, y: (box.top - whole.top) / scale, width: box.width / scale, height: box.height / scale };
    }

    /** Show on the map what is in sight. */
    function survey() {
      const large = view.scrollHeight > 2 * view.clientHeight || view.scrollWidth > 2 * view.clientWidth;
      if (!large) map.remove();
      else if (!map.isConnected) graph.append(map);
      const sight = within(view);
      for (const name in sight) seen.setAttribute(name, sight[name]);
    }
    view.addEventListener("scroll", survey);
    for (const name of ["pointerdown", "pointermove"]) {
      map.addEventListener(name, (event) => {
        if (!event.buttons) return;
        event.preventDefault();
        const [box, whole, sight] = [map, svg, view].map((each) => each.getBoundingClientRect());
        view.scrollLeft += whole.left + (whole.width * (event.clientX - box.left)) / box.width - sight.left - sight.width / 2;
        view.scrollTop += whole.top + (whole.height * (event.clientY - box.top)) / box.height - sight.top - sight.height / 2;
      });
    }

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
      survey();
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
    measure();
    if (graph.dataset.height) view.style.maxHeight = graph.dataset.height;
    survey();
    view.setAttribute("tabindex", "0");
    view.setAttribute("role", "region");
    view.setAttribute("aria-label", `Graph of ${graph.dataset.model}: arrows move it, plus and minus zoom, 0 fits it in, Enter goes to its nodes`);
    const first = svg.querySelector(".fxg-op");
    if (first && view.scrollWidth > view.clientWidth) {
      const [box, outside] = [first.getBoundingClientRect(), view.getBoundingClientRect()];
      view.scrollLeft += box.left + box.width / 2 - outside.left - outside.width / 2;
    }

    // -- buttons
    const bar = element("div", { class: "fxg-bar", role: "toolbar", "aria-label": "Graph" });
    bar.append(element("span", { class: "fxg-hint" }, "Drag to move, Ctrl + wheel to zoom"));
    const told = element("output", { class: "fxg-told" });
    const field = element("input", { type: "search", class: "fxg-search", placeholder: "Search", "aria-label": "Search the graph by path, kind or shape; Enter goes on" });
    bar.append(told, field);
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
      else if (event.key === "Enter") focus(leaves().sort(inOrder)[0]);
      else if (event.key === "Escape") view.blur();
      else return;
      event.preventDefault();
    });

    // -- walk from node to node
    const leaves = () => [...svg.querySelectorAll(".fxg-op, .fxg-closed:not(.fxg-opened)")];

    function show(group) {
      const box = group.getBoundingClientRect();
      const outside = view.getBoundingClientRect();
      const hidden = box.top < outside.top || box.bottom > outside.bottom || box.left < outside.left || box.right > outside.right;
      group.scrollIntoView(hidden ? { block: "center", inline: "center" } : { block: "nearest", inline: "nearest" });
    }

    function focus(group) {
      if (!group) return;
      if (!group.hasAttribute("tabindex")) group.setAttribute("tabindex", "-1");
      group.focus({ preventScroll: true });
      show(group);
    }

    function goToRow(group) {
      const link = group.querySelector(":scope > a");
      if (link) location.hash = link.getAttribute("href");
    }

    /** The nodes at the other ends of the edges of a node: an edge that meets a frame goes on inside, or outside. */
    function linked(group) {
      const edges = [...svg.querySelectorAll("[data-from], [data-to]")].filter((edge) => "from" in edge.dataset && "to" in edge.dataset);
      const met = new Set();
      const known = new Map(leaves().map((each) => [each.dataset.path, each]));
      for (const [here, there] of [["from", "to"], ["to", "from"]]) {
        const seen = new Set();
        let next = edges.filter((edge) => edge.dataset[here] && end(edge, here) === group.dataset.path);
        while (next.length) {
          const edge = next.pop();
          if (seen.has(edge)) continue;
          seen.add(edge);
          const at = end(edge, there);
          if (known.has(at)) met.add(known.get(at));
          else next.push(...edges.filter((each) => !each.dataset[here] === !!edge.dataset[there] && end(each, here) === at));
        }
      }
      return [...met];
    }

    /** The next node in a direction: along an edge, else whatever is near there. */
    function neighbour(group, [right, down]) {
      const middle = (each) => {
        const box = each.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
      };
      const [x, y] = middle(group);
      const far = (each) => {
        const [ex, ey] = middle(each);
        const along = Math.sign(right) * (ex - x) + Math.sign(down) * (ey - y);
        const aside = Math.abs(right ? ey - y : ex - x);
        return along > 1 && (aside < 2 * along || right) ? along + 2 * aside : Infinity;
      };
      const nearest = (pool) => pool.filter((each) => far(each) < Infinity).sort((one, other) => far(one) - far(other))[0];
      return nearest(linked(group)) || nearest(leaves());
    }

    view.addEventListener("keydown", (event) => {
      const group = event.target !== view && event.target.closest(".fxg-op, .fxg-closed:not(.fxg-opened)");
      if (!group || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in ARROWS) focus(neighbour(group, ARROWS[event.key]));
      else if (event.key === "Escape") view.focus();
      else if (event.key === "Enter" && event.target.matches(".fxg-op")) goToRow(group);
      else return;
      event.preventDefault();
    });

    // -- search by path, kind and shape
    let found = [];
    let at = -1;

    function seek() {
      const asked = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (words) => asked.every((word) => words.includes(word));
      for (const each of view.querySelectorAll(".fxg-found")) each.classList.remove("fxg-found", "fxg-here");
      const nodes = asked.length ? [...svg.querySelectorAll(NODES)] : [];
      found = nodes.filter((group) => fits(words(group, group.dataset.path)) || modules.holds(group, fits)).sort(inOrder);
      at = -1;
      for (const each of found) each.classList.add("fxg-found");
      told.textContent = asked.length ? `${found.length} found` : "";
      return fits;
    }

    /** Go to the next that was found; a closed module that has it inside is opened. */
    function go(step) {
      if (!found.length) return;
      const last = found[at];
      at = (at + step + found.length) % found.length;
      const group = found[at];
      const path = group.dataset.path;
      const fits = seek();
      if (!fits(words(group, path)) && modules.holds(group, fits) && modules(group)) {
        seek();
        at = found.findIndex((each) => each.dataset.path.startsWith(`${path}.`)) - 1;
        return go(1);
      }
      at = found.indexOf(group);
      if (last) last.classList.remove("fxg-here");
      found[at].classList.add("fxg-here");
      told.textContent = `${at + 1} of ${found.length}`;
      show(found[at]);
    }

    field.addEventListener("focus", () => modules.load(seek));
    field.addEventListener("input", seek);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") field.value = "";
      else return;
      event.preventDefault();
      if (event.key === "Escape") seek();
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

    // -- open and close modules
    const modules = opener(graph, svg, (shown, keep) => {
      svg = shown;
      const before = keep && keep.getBoundingClientRect();
      measure();
      explain();
      if (!keep) return;
      const after = keep.getBoundingClientRect();
      view.scrollLeft += after.left - before.left;
      view.scrollTop += after.top - before.top;
    });
    view.addEventListener("click", (event) => {
      if (!dragged) modules(event.target);
    });
    view.addEventListener("keydown", (event) => {
      if ((event.key === "Enter" || event.key === " ") && modules(event.target)) event.preventDefault();
    });

    /** The legend has what is seen now. */
    function explain() {
      for (const entry of graph.querySelectorAll(".fxg-legend [data-key]")) entry.hidden = !svg.querySelector(`.fxg-${entry.dataset.key}`);
    }

    // -- light a node, its edges and its neighbours
    const NODES = "[data-path]";
    function light(event) {
      const node = event.type !== "pointerleave" && event.target.closest(NODES);
      const path = node && node.dataset.path;
      for (const lit of view.querySelectorAll(".fxg-lit")) lit.classList.remove("fxg-lit");
      if (!path) return;
      const near = new Set([path]);
      const edges = [...view.querySelectorAll("[data-from], [data-to]")];
      for (const [here, there] of [["to", "from"], ["from", "to"]]) {
        let found = edges.filter((edge) => edge.dataset[here] && end(edge, here) === path);
        while (found.length) {
          const outside = [];
          for (const edge of found) {
            edge.classList.add("fxg-lit");
            if (edge.dataset[there]) near.add(end(edge, there));
            // What comes from the border of a frame goes on outside of it, if there is only one such edge.
            const beyond = edge.dataset[there] === "" && edges.filter((each) => each.dataset[here] && end(each, here) === end(edge, there));
            if (beyond && beyond.length === 1 && !beyond[0].matches(".fxg-lit")) outside.push(beyond[0]);
          }
          found = outside;
        }
      }
      for (const each of view.querySelectorAll(NODES)) each.classList.toggle("fxg-lit", near.has(each.dataset.path));
    }
    view.addEventListener("pointerover", light);
    view.addEventListener("focusin", light);
    view.addEventListener("pointerleave", light);
  }

  /** From top to bottom, as one reads. */
  function inOrder(one, other) {
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    return a.top - b.top || a.left - b.left;
  }

  /** What a node is found by. */
  function words(group, path) {
    const said = [...group.querySelectorAll(":scope > text, :scope > a > text")].map((each) => each.textContent);
    return [path, group.dataset.kind, group.dataset.type, ...said].join(" ").toLowerCase();
  }

  /** The path of what an edge joins: it is named within the module around the edge, which itself has no name there. */
  function end(edge, which) {
    const around = edge.closest("[data-path]");
    const name = edge.dataset[which];
    return around && name ? `${around.dataset.path}.${name}` : name || (around ? around.dataset.path : "");
  }

  // -- open and close modules -------------------------------------------------------------------------------------------

  const SVG = "http://www.w3.org/2000/svg";
  const SECOND = 12; // height of the second line of a frame's title
  const AROUND = 8;
  const GAP = 12;
  const NEAR = 1.5; // an edge ends at the border that it is this near to

  function drawn(name, attributes, ...inside) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.append(...inside);
    return made;
  }

  /** Upper left corner and size of a box or a frame, within its own frame. */
  function extent(group) {
    const [x, y] = group.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
    const outline = group.querySelector(":scope > rect:not(.fxg-sheet)");
    return { x, y, w: +outline.getAttribute("width"), h: +outline.getAttribute("height") };
  }

  /** Where a module is opened room is made: coordinates before it stay, those behind it move, and those beside it
      are spread between `middle`, where its main line runs, and its borders. */
  function spread(start, middle, end, before, after) {
    return (v) => {
      if (v <= start) return v;
      if (v >= end) return v + before + after;
      return v <= middle
        ? v + before * ((v - start) / (middle - start || 1))
        : v + before + after * ((v - middle) / (end - middle || 1));
    };
  }

  const parts = (frame) => [...frame.children].filter((child) => child.matches("g[transform]"));

  /** How much room there is left and right of a line, beside what stands on it, up to what is next to it there. */
  function free(frame, grown, old, line) {
    const width = frame.nodeName === "svg" ? +frame.getAttribute("width") : extent(frame).w;
    let [left, right] = [line - GAP, width - line - GAP];
    const beside = (top, bottom) => top < old.y + old.h - 2 && bottom > old.y + 2;
    for (const part of parts(frame)) {
      const box = extent(part);
      if (part === grown || !beside(box.y, box.y + box.h)) continue;
      if (box.x > line) right = Math.min(right, box.x - line - GAP);
      else if (box.x + box.w < line) left = Math.min(left, line - box.x - box.w - GAP);
    }
    for (const path of frame.querySelectorAll(":scope > path")) {
      const points = path.getAttribute("d").match(/-?[\d.]+ -?[\d.]+/g).map((pair) => pair.split(" ").map(Number));
      points.slice(1).forEach(([x, y], k) => {
        const [before, above] = points[k];
        if (!beside(Math.min(y, above), Math.max(y, above))) return;
        for (const each of [x, before]) {
          if (each > old.x + old.w + 1) right = Math.min(right, each - line - GAP);
          else if (each < old.x - 1) left = Math.min(left, line - each - GAP);
        }
      });
    }
    return [left, right];
  }

  /** Make room in the frame of `grown` for what it grew by, and in the frames around it. `inner` says where on the
      borders of `grown` an edge ends now that ended at x before; it is moved so that `middle` stays on its line. */
  function makeRoom(grown, old, now, middle, inner) {
    const frame = grown.parentNode;
    const line = old.x + middle;
    const [left, right] = free(frame, grown, old, line);
    const x = spread(
      old.x, line, old.x + old.w, Math.max(0, inner(middle) - left), Math.max(0, now.w - inner(middle) - right),
    );
    const y = spread(old.y, old.y, old.y + old.h, 0, now.h - old.h);
    const borders = parts(frame).map((part) => {
      const box = part === grown ? old : extent(part);
      let [aside, down] = [x(line) - line, y(box.y + box.h / 2) - box.y - box.h / 2];
      if (part === grown) [aside, down] = [x(line) - inner(middle) - old.x, 0];
      else if (box.x > line || box.x + box.w < line) aside = x(box.x + box.w / 2) - box.x - box.w / 2;
      part.setAttribute("transform", `translate(${box.x + aside} ${box.y + down})`);
      return { part, box, aside, down, below: part.matches(".fxg-fold") ? 6 : 0 };
    });
    /** Where the end of an edge is now: on the border of what it ended at. */
    function end(px, py) {
      const at = borders.find(({ box, below }) => px >= box.x - NEAR && px <= box.x + box.w + NEAR && py >= box.y - NEAR && py <= box.y + box.h + below + NEAR);
      if (!at) return [x(px), y(py)];
      if (at.part !== grown) return [px + at.aside, py + at.down];
      return [old.x + at.aside + inner(px - old.x), py > old.y + old.h / 2 ? py + now.h - old.h : py];
    }
    for (const path of frame.querySelectorAll(":scope > path")) {
      const d = path.getAttribute("d");
      const points = d.match(/-?[\d.]+ -?[\d.]+/g).map((pair) => pair.split(" ").map(Number));
      const moved = points.map(([px, py]) => [x(px), y(py)]);
      // The first and last two points keep their place to each other, so that a line leaves a box as it did.
      const last = points.length - 1;
      const straight = !d.includes("C");
      for (const [k, next] of [[d.includes("L") && d.indexOf("L") < d.indexOf("C") ? 1 : 0, 1], [last, -1]]) {
        if (path.matches(".fxg-rail")) continue;
        moved[k] = end(...points[k]);
        const follower = points[k + next];
        if (!straight && follower) {
          moved[k + next] = [moved[k][0] + follower[0] - points[k][0], moved[k][1] + follower[1] - points[k][1]];
        }
      }
      let k = 0;
      path.setAttribute("d", d.replace(/-?[\d.]+ -?[\d.]+/g, () => moved[k++].map((v) => +v.toFixed(1)).join(" ")));
    }
    for (const dot of frame.querySelectorAll(":scope > circle")) {
      dot.setAttribute("cx", x(+dot.getAttribute("cx")));
      dot.setAttribute("cy", y(+dot.getAttribute("cy")));
    }
    for (const note of frame.querySelectorAll(":scope > .fxg-note")) {
      note.setAttribute("x", x(+note.getAttribute("x")));
      note.setAttribute("y", y(+note.getAttribute("y")));
    }
    const [wider, higher] = [x(1e6) - 1e6, y(1e6) - 1e6];
    if (frame.nodeName === "svg") return [wider, higher];
    const was = extent(frame);
    for (const rect of frame.querySelectorAll(":scope > .fxg-frame")) {
      rect.setAttribute("width", was.w + wider);
      rect.setAttribute("height", was.h + higher);
    }
    for (const share of frame.querySelectorAll(":scope > .fxg-percent")) share.setAttribute("x", was.w + wider);
    const title = frame.querySelector(":scope > .fxg-title");
    if (title && +title.getAttribute("x") > 20) {
      for (const text of frame.querySelectorAll(":scope > .fxg-title")) text.setAttribute("x", x(+text.getAttribute("x")));
    }
    return makeRoom(frame, was, { w: was.w + wider, h: was.h + higher }, line, x);
  }

  const named = (text) => text.replace(/@(\d+)/g, "..$1").replace(/[^\w.-]/gu, (c) => `_x${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}_`);

  /** What makes modules open and close. `changed` is told of the SVG that is shown, and of what should stay in place. */
  function opener(graph, svg, changed) {
    const closedAtFirst = ".fxg-closed[data-body]";
    if (!svg.querySelector(closedAtFirst)) return Object.assign(() => false, { load: (then) => then(), holds: () => false });
    const figure = graph.dataset.figure;
    const levels = []; // the pictures that were left to enter a module, and its path
    const opened = []; // paths, in the order in which they were opened
    let original = svg.cloneNode(true);
    let path = "";
    let insides = null;
    prepare(svg);

    /** The data, from the page or from a file of its own. */
    function load(then) {
      if (insides) return then();
      const inline = graph.querySelector(".fxg-insides");
      if (inline) {
        insides = JSON.parse(inline.textContent);
        return then();
      }
      const script = document.createElement("script");
      script.src = graph.dataset.insides;
      script.addEventListener("load", () => {
        insides = globalThis.fxgraphInsides[graph.dataset.insides.split("/").pop()];
        then();
      });
      document.head.append(script);
    }

    function prepare(within) {
      for (const group of within.querySelectorAll(closedAtFirst)) {
        group.setAttribute("tabindex", "0");
        group.setAttribute("role", "button");
        group.setAttribute("aria-expanded", "false");
      }
    }

    const find = (at) => [...svg.querySelectorAll("[data-path]")].find((group) => group.dataset.path === at && !group.matches(".fxg-op"));
    const text = (group, part) => (group.querySelector(`:scope > text ${part}, :scope > ${part}`) || { textContent: "" }).textContent;

    /** The inside of a closed module as a group with frame and title. */
    function framed(group, inside, room) {
      const fold = group.matches(".fxg-fold");
      const top = fold ? SECOND : 0;
      const name = fold ? group.dataset.path.split(".").pop() : text(group, ".fxg-name");
      const frame = drawn("g", { class: group.getAttribute("class").replace("fxg-closed", "fxg-opened").replace(/ fxg-sha\S+/g, ""), "data-path": group.dataset.path });
      for (const each of ["id", "data-type", "data-count", "data-body"]) {
        if (group.hasAttribute(each)) frame.setAttribute(each, group.getAttribute(each));
      }
      let depth = 0;
      for (let around = group.parentNode; around !== svg; around = around.parentNode) depth += 1;
      frame.classList.add(`fxg-depth-${(depth + room) % 3}`);
      const content = drawn("g", {});
      content.innerHTML = inside.svg;
      for (const each of content.querySelectorAll("[data-path]")) {
        const group_path = group.matches(".fxg-group") ? group.dataset.path.split(".").slice(0, -1).join(".") : group.dataset.path;
        each.dataset.path = group_path ? `${group_path}.${each.dataset.path}` : each.dataset.path;
        each.id = `${figure}-${named(each.dataset.path)}`;
        for (const link of each.querySelectorAll(":scope > a")) link.setAttribute("href", `#${figure}-row-${named(each.dataset.path)}`);
      }
      const title = drawn("text", { class: "fxg-title", y: 16.5, tabindex: 0, role: "button", "aria-expanded": "true" });
      for (const [style, words] of [["fxg-triangle", "▾"], ["fxg-attr", group.matches(".fxg-group") ? "" : name], ["fxg-kind", text(group, ".fxg-kind")], ["fxg-count", text(group, ".fxg-count")]]) {
        if (words) title.append(drawn("tspan", { class: style, dx: title.childNodes.length ? 5 : 0 }, words));
      }
      const titles = [title];
      if (fold) titles.push(drawn("text", { class: "fxg-title", y: 28.5 }, drawn("tspan", { class: "fxg-span" }, text(group, ".fxg-name"))));
      frame.append(...titles);
      svg.append(frame); // where text has a size
      const needed = Math.ceil(Math.max(...titles.map((each) => each.getBBox().width))) + 2 * AROUND;
      frame.remove();
      let [w, x] = [inside.size[0], 10];
      let shift = 0;
      if (x + needed > Math.min(...inside.ins, w)) {
        const last = Math.max(...inside.ins, 0);
        shift = Math.ceil(Math.max(0, last + needed - w));
        w += 2 * shift;
        x = last + shift + AROUND;
      }
      const h = inside.size[1] + top;
      for (const each of titles) each.setAttribute("x", x);
      shiftAll(content, shift, top);
      for (const line of content.querySelectorAll(":scope > path")) line.setAttribute("d", stretched(line.getAttribute("d"), top, h));
      const sheets = fold ? [2, 1] : [];
      frame.prepend(...sheets.map((sheet) => drawn("rect", { class: "fxg-frame fxg-sheet", x: 3 * sheet, y: 3 * sheet, width: w, height: h, rx: 10 })), drawn("rect", { class: "fxg-frame", width: w, height: h, rx: 10 }));
      frame.insertBefore(fragment(content), title);
      const share = text(group, ".fxg-percent");
      if (share) frame.append(drawn("text", { class: "fxg-percent", x: w, y: -3 }, share));
      prepare(frame);
      return { frame, w, h, pin: (inside.ins[0] ?? inside.size[0] / 2) + shift };
    }

    /** What enters and leaves begins and ends at the border of the frame. */
    function stretched(d, top, bottom) {
      if (!top) return d;
      return d.replace(/^M(\S+) (\S+)L/, (all, px, py) => (+py === top ? `M${px} 0L` : all));
    }

    function shiftAll(content, right, down) {
      for (const each of content.querySelectorAll(":scope > g[transform]")) {
        const [x, y] = each.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
        each.setAttribute("transform", `translate(${x + right} ${y + down})`);
      }
      for (const each of content.querySelectorAll(":scope > path")) {
        each.setAttribute("d", each.getAttribute("d").replace(/(-?[\d.]+) (-?[\d.]+)/g, (all, x, y) => `${+x + right} ${+y + down}`));
      }
      for (const [name, a, b] of [["circle", "cx", "cy"], [".fxg-note", "x", "y"]]) {
        for (const each of content.querySelectorAll(`:scope > ${name}`)) {
          each.setAttribute(a, +each.getAttribute(a) + right);
          each.setAttribute(b, +each.getAttribute(b) + down);
        }
      }
    }

    function fragment(content) {
      const made = document.createDocumentFragment();
      made.append(...content.childNodes);
      return made;
    }

    function resize(wider, higher) {
      const [w, h] = [+svg.getAttribute("width") + wider, +svg.getAttribute("height") + higher];
      svg.setAttribute("width", w);
      svg.setAttribute("height", h);
      svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    }

    /** Open a module where it stands. */
    function open(group) {
      const old = extent(group);
      const { frame, w, h, pin } = framed(group, insides[group.dataset.body], 0);
      frame.setAttribute("transform", group.getAttribute("transform"));
      group.replaceWith(frame);
      const room = makeRoom(frame, old, { w, h }, old.w / 2, (px) => px - old.w / 2 + pin);
      resize(...room);
      return frame;
    }

    /** Close it again: the picture as it was, with all the others opened again. */
    function close(at) {
      const rest = opened.filter((each) => each !== at && !each.startsWith(`${at}.`));
      opened.length = 0;
      const fresh = original.cloneNode(true);
      svg.replaceWith(fresh);
      svg = fresh;
      prepare(svg);
      for (const each of rest) {
        const group = find(each);
        if (group && group.matches(".fxg-closed")) open(group) && opened.push(each);
      }
    }

    /** Several lines enter or leave: show the module by itself, with a way back. */
    function enter(group) {
      levels.push({ svg, original, path, opened: opened.splice(0) });
      path = group.dataset.path;
      const inside = insides[group.dataset.body];
      const { frame, w, h } = framed(group, inside, 1);
      const above = 22;
      frame.setAttribute("transform", `translate(8 ${above})`);
      const names = inside.ins.map((x, k) => drawn("text", { class: "fxg-note", x: x + 8 + (w - inside.size[0]) / 2, y: above - 6 }, inside.names[k]));
      const [width, height] = [w + 24, h + above + 16];
      const next = drawn("svg", { class: "fxg-svg", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": path }, frame, ...names);
      // The marks at the ends of edges are defined in the first picture, which is not in the page now.
      next.prepend(original.querySelector("defs").cloneNode(true));
      svg.replaceWith(next);
      svg = next;
      original = svg.cloneNode(true);
      crumbs();
    }

    function leave(depth) {
      const back = levels[depth];
      levels.length = depth;
      svg.replaceWith(back.svg);
      ({ svg, original, path } = back);
      opened.splice(0, Infinity, ...back.opened);
      crumbs();
      changed(svg);
    }

    /** The way back, as links above the picture. */
    function crumbs() {
      const old = graph.querySelector(".fxg-crumbs");
      if (old) old.remove();
      if (!levels.length) return;
      const bar = document.createElement("nav");
      bar.className = "fxg-crumbs";
      bar.setAttribute("aria-label", "Opened modules");
      levels.forEach((level, depth) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = level.path || graph.dataset.model;
        button.addEventListener("click", () => leave(depth));
        bar.append(button, " › ");
      });
      bar.append(path);
      graph.querySelector(".fxg-bar").prepend(bar);
    }

    const bodies = new Map();
    /** The words of all that is in a body, with the path that each has there. */
    function within(body) {
      if (!bodies.has(body)) {
        const content = drawn("g", {});
        content.innerHTML = insides[body].svg;
        bodies.set(body, [...content.querySelectorAll("[data-path]")].flatMap((group) => [
          [group.dataset.path, words(group, "")],
          ...(group.matches(closedAtFirst) ? within(group.dataset.body).map(([path, said]) => [`${group.dataset.path}.${path}`, said]) : []),
        ]));
      }
      return bodies.get(body);
    }

    /** Whether something fits that is inside a closed module and not seen. */
    function holds(group, fits) {
      if (!insides || !group.matches(closedAtFirst) || group.matches(".fxg-opened")) return false;
      return within(group.dataset.body).some(([path, said]) => fits(`${group.dataset.path}.${path}`.toLowerCase() + said));
    }

    function act(target) {
      const group = target.closest && target.closest(closedAtFirst);
      const title = target.closest && target.closest(".fxg-opened > .fxg-title");
      if (group && !group.matches(".fxg-opened")) {
        load(() => {
          const inside = insides[group.dataset.body];
          const at = group.dataset.path;
          if (inside.ins.length < 2 && inside.outs.length < 2) {
            changed(svg, open(group));
            opened.push(at);
          } else {
            enter(group);
            changed(svg);
          }
        });
        return true;
      }
      if (title && svg.contains(title) && opened.includes(title.parentNode.dataset.path)) {
        const at = title.parentNode.dataset.path;
        close(at);
        changed(svg, find(at));
        return true;
      }
      return false;
    }
    return Object.assign(act, { load, holds });
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
