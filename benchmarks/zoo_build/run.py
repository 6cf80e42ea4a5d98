"""A zoo of 100 models, a page each and an index, against a script that draws the same models with torchview and dot.

    python benchmarks/zoo_build/run.py [--models 100] [PATTERN ...]

Both are cold: nothing is in a cache, no page is written. The models are torchvision's for classification and
segmentation and those it can quantize. The script builds each on the meta device where that can be, draws it with
torchview, and renders SVG; it writes no pages. It runs twice: with torchview's default depth, and with every operator
in nested frames, which is what is on our pages. What was found goes to ``docs/design/zoo-build.csv``.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parents[2] / "docs" / "design" / "zoo-build.csv"

CONF = """
project = "zoo"
extensions = ["sphinx_fxgraph"]
fxgraph_zoo = {{"zoo": {{"folder": "models", "registry": {registry}, "options": {{"*": {options}}}}}}}
"""
PEER = """
import json, sys, torch, torchvision, torchview
for name, target in json.loads(sys.argv[1]).items():
    try:
        with torch.device("meta"):
            model = eval(target).eval()
    except NotImplementedError:
        model = eval(target).eval().to("meta")
    how = dict(device="meta", graph_name=name) | eval(sys.argv[3])
    graph = torchview.draw_graph(model, input_size=(1, 3, 224, 224), **how)
    graph.visual_graph.render(outfile=f"{sys.argv[2]}/{name}.svg", format="svg", cleanup=True)
"""


def targets(count: int, patterns: list[str]) -> dict[str, str]:
    """The models: name -> target."""
    from torchvision import models

    found = {}
    for room in (models, models.segmentation, models.quantization):
        for name in models.list_models(module=room):
            options = ", weights_backbone=None" if room is models.segmentation else ""
            options += ", init_weights=False" if "googlenet" in name or "inception" in name else ""
            found[name] = f"torchvision.models.get_model('{name}', weights=None{options})"
    fits = [name for name in found if not patterns or any(fnmatch.fnmatchcase(name, each) for each in patterns)]
    return {name: found[name] for name in fits[:count]}


def seconds(command: list[str], folder: Path) -> tuple[float, float]:
    """How long a command takes, from its start to its end, and how long processors work for it and its processes."""
    start, before = time.monotonic(), os.times()
    run = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    taken, after = time.monotonic() - start, os.times()
    print(run.stdout[-500:], run.stderr[-2000:], file=sys.stderr)
    if run.returncode:
        raise SystemExit(f"{command[:4]} ended with {run.returncode}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return taken, used


def ours(models: dict[str, str], folder: Path) -> tuple[tuple[float, float], int]:
    """Seconds of a first build of the site, and how many drawings are on its pages."""
    docs = folder / "docs"
    docs.mkdir()
    conf = CONF.format(registry=repr(models), options={"inputs": "f32[1, 3, 224, 224]"})
    (docs / "conf.py").write_text(conf, encoding="utf-8")
    (docs / "index.rst").write_text("Zoo\n===\n\n.. fxgraph-zoo:: zoo\n", encoding="utf-8")
    taken = seconds([sys.executable, "-m", "sphinx", "-q", "-d", "doctrees", "docs", "html"], folder)
    pages = (folder / "html" / "models").glob("*.html")
    return taken, sum('class="fxg-svg"' in page.read_text(encoding="utf-8") for page in pages)


def theirs(models: dict[str, str], folder: Path, **options: Any) -> tuple[tuple[float, float], int]:
    """Seconds of the script, and how many drawings it made."""
    out = folder / f"torchview{len(options)}"
    out.mkdir()
    taken = seconds([sys.executable, "-c", PEER, json.dumps(models), str(out), repr(options)], folder)
    return taken, len(list(out.glob("*.svg")))


def main() -> None:
    """Time both, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", help="of the models' names")
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--every", type=int, default=1, help="of so many models only one")
    arguments = parser.parse_args()
    models = dict(list(targets(arguments.models, arguments.patterns).items())[:: arguments.every])
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for what, run in (
            ("a site with pages and index, by sphinx-fxgraph", ours),
            ("torchview and dot, depth 3", theirs),
            ("torchview and dot, every operator", functools.partial(theirs, depth=100, expand_nested=True)),
        ):
            (taken, used), drawn = run(models, Path(folder))
            lines.append([what, len(models), drawn, f"{taken:.0f}", f"{used:.0f}", os.cpu_count()])
            print(*lines[-1], flush=True)
    with RESULT.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["what", "models", "drawings", "seconds", "CPU seconds", "cores"])
        rows.writerows(lines)


if __name__ == "__main__":
    main()
