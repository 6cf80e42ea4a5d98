"""Compare the page of a model with torchvista's export and with an SVG made by Graphviz: load, open, pan, zoom, bytes.

``python benchmarks/viewer/compare.py make --out build/pages`` writes the pages, in an environment with torch,
torchvision, transformers, torchvista and Graphviz; ``... measure --pages build/pages --out docs/design/viewer.csv``
measures them in Chromium, in one with Playwright. Milliseconds, medians; load is the time until a node is painted and
the page answers, of three runs.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RUNS = 3
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
DOT_SECONDS = 120


def models() -> Iterator[tuple[str, Callable[[], tuple[Any, tuple[Any, ...]]]]]:
    """Yield the names of models, and what makes each with its inputs."""
    import torch
    import torchvision
    from transformers import LlamaConfig, LlamaModel

    image = torch.rand(1, 3, 224, 224)
    config = LlamaConfig(
        hidden_size=256, intermediate_size=688, num_hidden_layers=32, num_attention_heads=8, vocab_size=1000
    )
    yield "ResNet-50", lambda: (torchvision.models.resnet50(), (image,))
    yield "DenseNet-201", lambda: (torchvision.models.densenet201(), (image,))
    yield "Mask R-CNN", lambda: (_detector(torchvision), ([torch.rand(3, 224, 224)],))
    yield "Llama-32", lambda: (LlamaModel(config), (torch.ones(1, 16, dtype=torch.long),))


def _detector(torchvision: Any) -> Any:
    return torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None)


def make(out: Path) -> None:
    """Write the pages of all models."""
    import torchvista

    from sphinx_fxgraph import model_record

    out.mkdir(parents=True, exist_ok=True)
    for name, build in models():
        model, args = build()
        model.eval()
        record = model_record(model, args)
        (out / f"{name}.sphinx-fxgraph.html").write_text(record.to_html(), encoding="utf-8")
        try:
            run = subprocess.run(
                [shutil.which("dot") or "dot", "-Tsvg"],
                input=record.to_dot().source,
                capture_output=True,
                check=True,
                encoding="utf-8",
                timeout=DOT_SECONDS,
            )
            svg = run.stdout[run.stdout.index("<svg") :]
            page = f'<!doctype html><meta charset="utf-8"><title>{name}</title><div class="graph">{svg}</div>'
            (out / f"{name}.dot.html").write_text(page, encoding="utf-8")
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            print(f"{name}: dot: {type(error).__name__}")
        torchvista.trace_model(model, args, export_format="html", export_path=str(out / f"{name}.torchvista.html"))
        print(name, flush=True)


READY = {
    "sphinx-fxgraph": "document.querySelector('.fxg-bar') && document.querySelector('.fxg-op, .fxg-closed')",
    "torchvista": "document.querySelector('svg g[class^=node_]')",
    "dot": "document.querySelector('svg g.node')",
}
CLOSED = {
    "sphinx-fxgraph": ".fxg-closed[data-body]:not(.fxg-panel *)",
    "torchvista": "svg circle[class^=collapse-button_]",
}
SURFACE = {"sphinx-fxgraph": ".fxg-view", "torchvista": "svg", "dot": "svg"}

# Resolves to the time when something is true and two frames have been painted.
WAIT = """(test) => new Promise((done) => {
  const paint = () => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
  const end = performance.now() + 60000;
  const look = () => (eval(test) || performance.now() > end ? paint() : setTimeout(look, 4));
  look();
})"""
# Resolves to the milliseconds between frames while `steps` events of a kind are sent.
FRAMES = """([selector, kind, steps]) => new Promise((done) => {
  const target = document.querySelector(selector);
  const box = target.getBoundingClientRect();
  const [x, y] = [box.left + Math.min(box.width, innerWidth) / 2, Math.min(box.top + box.height / 2, innerHeight / 2)];
  const at = document.elementFromPoint(x, y) || target;
  const times = [];
  const send = (name, more, Type = PointerEvent) => at.dispatchEvent(new Type(name,
    { bubbles: true, cancelable: true, view: window, pointerId: 1, pointerType: "mouse", isPrimary: true, ...more }));
  Element.prototype.setPointerCapture = () => {};
  const pan = (type, k, buttons) => {
    const more = { clientX: x, clientY: y - 4 * k, buttons, button: 0 };
    send(`pointer${type}`, more);
    send(`mouse${type}`, more, MouseEvent);
  };
  if (kind === "pan") pan("down", 0, 1);
  let k = 0;
  const frame = (now) => {
    times.push(now);
    if (k++ === steps) {
      if (kind === "pan") pan("up", k, 0);
      return done(times.slice(1).map((time, n) => time - times[n]));
    }
    if (kind === "pan") pan("move", k, 1);
    else send("wheel", { clientX: x, clientY: y, deltaY: k % 20 < 10 ? -24 : 24, ctrlKey: true }, WheelEvent);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def measure(browser: Any, page_file: Path, tool: str) -> dict[str, Any]:
    """Return what a page takes."""
    row: dict[str, Any] = {"bytes": page_file.stat().st_size}
    loads = []
    for _ in range(RUNS):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(page_file.absolute().as_uri(), wait_until="commit")
        loads.append(page.evaluate(WAIT, READY[tool]))
        if len(loads) < RUNS:
            page.close()
    row["load"] = round(statistics.median(loads))
    for kind in ("pan", "zoom"):
        frames = page.evaluate(FRAMES, [SURFACE[tool], kind, 60])
        row[f"{kind} frame"] = round(statistics.median(frames), 1)
        row[f"{kind} frame, slowest of 20"] = round(sorted(frames)[int(len(frames) * 0.95)], 1)
    if tool in CLOSED and page.locator(CLOSED[tool]).count():
        page.wait_for_timeout(500)
        before = page.evaluate("document.querySelectorAll('svg g').length")
        start = page.evaluate("performance.now()")
        page.evaluate(
            """(selector) => { const each = document.querySelector(selector);
            each.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, button: 0 }));
            each.dispatchEvent(new PointerEvent("pointerup", { bubbles: true, button: 0 }));
            for (const name of ["mousedown", "mouseup", "click"])
              each.dispatchEvent(new MouseEvent(name, { bubbles: true, cancelable: true, detail: 1, view: window }));
            }""",
            CLOSED[tool],
        )
        end = page.evaluate(WAIT, f"document.querySelectorAll('svg g').length !== {before}")
        row["open"] = round(end - start)
    page.close()
    return row


def measure_all(pages: Path, out: Path) -> None:
    """Measure all pages and write the table."""
    from playwright.sync_api import sync_playwright

    rows = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        for file in sorted(pages.glob("*.html")):
            model, _, tool = file.stem.rpartition(".")
            rows.append({"model": model, "tool": tool, **measure(browser, file, tool)})
            print(rows[-1], flush=True)
        browser.close()
    ours = {row["model"]: row for row in rows if row["tool"] == "sphinx-fxgraph"}
    for row in rows:
        row["load, ours / this"] = round(ours[row["model"]]["load"] / row["load"], 2)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["make", "measure"])
    parser.add_argument("--pages", type=Path, default=Path("build/pages"))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.step == "make":
        make(arguments.out)
    else:
        measure_all(arguments.pages, arguments.out)


if __name__ == "__main__":
    main()
