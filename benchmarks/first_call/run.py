"""Measure what the first and the second drawing of a model cost from Python, beside other tools and a plain forward.

    python benchmarks/first_call/run.py [--rounds 5] [--models resnet50 ...]

It needs torch, torchvision, transformers, torchview, torchvista and Graphviz. Every tool gets the same model, built and
called once on the meta device, in a process of its own; processes of all tools take turns. Measured is processor time,
with that of ``dot``: *import* of the tool beside torch and the models' libraries, the *first* call, and a *second* call
on the same model; and how much memory the process has at most beyond what it had before. A tool that fails has none.
Medians go to ``docs/design/first-call.csv``.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parents[2] / "docs" / "design" / "first-call.csv"
MEASURES = ("import", "first", "second", "MB")

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")


# -- models


def _torchvision(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    import torchvision

    return getattr(torchvision.models, name)(), (torch.zeros(1, 3, 224, 224),)


def _bert() -> tuple[Any, tuple[Any, ...]]:
    import torch
    import transformers

    return transformers.BertModel(transformers.BertConfig()), (torch.zeros(1, 128, dtype=torch.int64),)


def _sam() -> tuple[Any, tuple[Any, ...]]:
    import torch
    import transformers

    config = transformers.SamVisionConfig()
    return transformers.SamVisionModel(config), (torch.zeros(1, 3, config.image_size, config.image_size),)


MODELS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "ResNet-50": lambda: _torchvision("resnet50"),
    "DenseNet-121": lambda: _torchvision("densenet121"),
    "ViT-B/16": lambda: _torchvision("vit_b_16"),
    "BERT-base": _bert,
    "SAM, image encoder, 1024²": _sam,
}


# -- tools


def _record() -> Callable[[Any, tuple[Any, ...]], object]:
    from sphinx_fxgraph import model_record

    return lambda model, args: model_record(model, args).to_json()


def _page() -> Callable[[Any, tuple[Any, ...]], object]:
    from sphinx_fxgraph import model_record

    return lambda model, args: model_record(model, args).to_html()


def _torchview() -> Callable[[Any, tuple[Any, ...]], object]:
    from torchview import draw_graph  # type: ignore[import-not-found]  # a peer, installed for this alone

    return lambda model, args: draw_graph(model, list(args), device="meta", depth=100, expand_nested=True)


def _torchview_svg() -> Callable[[Any, tuple[Any, ...]], object]:
    draw = _torchview()
    return lambda model, args: draw(model, args).visual_graph.pipe("svg")  # type: ignore[attr-defined]


def _torchvista() -> Callable[[Any, tuple[Any, ...]], object]:
    from torchvista import trace_model  # type: ignore[import-not-found]  # a peer, installed for this alone

    def export(model: Any, args: tuple[Any, ...]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            trace_model(model, args, export_format="html", export_path=f"{folder}/graph.html")

    return export


TOOLS: dict[str, Callable[[], Callable[[Any, tuple[Any, ...]], object]]] = {
    "sphinx-fxgraph, checked record": _record,
    "sphinx-fxgraph, page": _page,
    "torchview, graph": _torchview,
    "torchview and dot, SVG": _torchview_svg,
    "torchvista, page": _torchvista,
}


# -- measurements


def _seconds() -> float:
    """Processor time of this process and its ended children."""
    return sum(os.times()[:4])


def _peak() -> int:
    """Bytes; Linux tells kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(name: str, tool: str) -> dict[str, float]:
    """Measure one tool on one model in this process."""
    import torch

    with torch.device("meta"):
        model, args = MODELS[name]()
    model.eval()
    with torch.no_grad():
        model(*args)
    before, marks = _peak(), [_seconds()]
    draw = TOOLS[tool]()
    marks.append(_seconds())
    for _ in range(2):
        draw(model, args)
        marks.append(_seconds())
    taken = [later - earlier for earlier, later in itertools.pairwise(marks)]
    return dict(zip(MEASURES, (*taken, (_peak() - before) / 1e6), strict=True))


def _apart(name: str, tool: str) -> dict[str, float] | None:
    """Measure in a process of its own; None where the tool fails."""
    run = subprocess.run(
        [sys.executable, __file__, "--one", name, tool], capture_output=True, text=True, check=False, timeout=600
    )
    if run.returncode:
        print(f"{tool} on {name}: {run.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure all tools on all models in turns, and write the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    rows = []
    for name in options.models:
        runs: dict[str, list[dict[str, float] | None]] = {tool: [] for tool in TOOLS}
        for _ in range(options.rounds):
            for tool in TOOLS:
                runs[tool].append(_apart(name, tool))
        for tool, found in runs.items():
            whole = [run for run in found if run is not None]
            medians = {key: statistics.median(run[key] for run in whole) for key in MEASURES if whole}
            texts = (f"{value:.0f}" if key == "MB" else f"{value:.2f}" for key, value in medians.items())
            rows.append([name, tool, *(texts if whole else [""] * len(MEASURES))])
            print(*rows[-1], sep=" | ", flush=True)
    with RESULT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["Model", "Tool", "Import, s", "First call, s", "Second call, s", "Memory added, MB"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
