"""Count the questions about a model that its first screen answers, without hover and without a click.

Run ``python benchmarks/legibility/questions.py FOLDER`` on the records that ``named_models.py`` captured. Each of 20
models has five questions; the answers are computed from the record. A question is answered if the words and numbers of
its answer stand in the window, which is 760 × 900 px at the upper left of the picture at natural size. The exit status
is 1 if the target is missed. ``--out docs/design`` writes the table of the handbook.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from figures import HEIGHT, WIDTH
from named_models import load

from sphinx_fxgraph.layout.graphviz import Engine, find_engine
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Node, Record
from sphinx_fxgraph.render import document, drawing
from sphinx_fxgraph.units import format_shape
from sphinx_fxgraph.view.labels import WRAPPERS

MODELS = (
    "ResNet-18",
    "ResNet-50",
    "DenseNet-201",
    "MobileNetV3",
    "EfficientNet-B0",
    "ConvNeXt-T",
    "ViT-B/16",
    "Swin-T",
    "DeepLabV3",
    "Faster R-CNN",
    "RAFT",
    "smp Unet",
    "MONAI UNet 3-D",
    "BERT",
    "GPT-2",
    "Llama",
    "T5",
    "Whisper",
    "DETR",
    "DiT",
)
_SEVERAL = 3
"""How often a class runs that counts as the model's block."""
TARGET = 0.9
"""Part of the questions that the first screen answers."""
QUESTIONS = ("output", "block", "times", "made of", "sizes")
"""The shape of the output; the block that holds most operators; how often it runs; what it is made of; the sizes after
each stage, or for a sequence its length and width."""


@dataclass(frozen=True)
class Answer:
    """What has to stand in the window: each of these patterns, and of ``counts`` numbers after a name that add up."""

    patterns: tuple[str, ...]
    kind: str = ""
    count: int = 0

    def is_in(self, text: str) -> bool:
        """Return whether a text tells the answer."""
        if not self.patterns and not self.count:  # no answer is no point
            return False
        if not all(re.search(pattern, text) for pattern in self.patterns):
            return False
        if not self.count:
            return True
        name = re.escape(self.kind)
        if re.search(rf"^\(\w\) {name} ×{self.count}$", text, re.MULTILINE):
            return True
        text = re.sub(r"^\(\w\) .*$", "", text, flags=re.MULTILINE)  # the titles of panels
        found = [int(number) for number in re.findall(rf"\b{name}\b[^\n×]*×(\d+)", text)]
        single = len(re.findall(rf"\b{name}\b(?![^\n]*×)", text))
        return self.count in found or sum(found) + single == self.count or sum(found) == self.count


def answers(record: Record) -> dict[str, Answer]:
    """Return the answers to the questions about a model, by question."""
    body = record.bodies[record.root]
    last = next(node for node in body.nodes if node.op == "output")
    result = record.metas(body, last.inputs[0])[0]
    counts = Counter((node.kind, node.type) for node in _calls(record, record.root) if node.kind not in WRAPPERS)
    blocks: dict[tuple[str, str], Counter[str]] = {}
    for node in _outermost(record, record.root, counts):
        blocks.setdefault((node.kind, node.type), Counter())[node.body] += 1
    block = max(blocks, key=lambda key: sum(_operators(record, name) * times for name, times in blocks[key].items()))
    made = record.bodies[blocks[block].most_common(1)[0][0]].nodes
    kinds = {
        node.kind
        for node in made
        if node.kind not in WRAPPERS and (node.parameters or node.macs or (node.body and _operators(record, node.body)))
    }
    return {
        "output": Answer((re.escape(format_shape(result)),)),
        "block": Answer((rf"\b{re.escape(block[0])}\b",)),
        "times": Answer((), block[0], counts[block]),
        "made of": Answer(tuple(rf"\b{re.escape(kind)}\b" for kind in sorted(kinds))),
        "sizes": Answer(tuple(_sizes(record))),
    }


def _calls(record: Record, name: str) -> Iterator[Node]:
    for node in record.bodies[name].nodes:
        if node.body:
            yield node
            yield from _calls(record, node.body)


def _outermost(record: Record, name: str, counts: Counter[tuple[str, str]]) -> Iterator[Node]:
    """Yield the calls of classes that run several times, but none inside another one."""
    for node in record.bodies[name].nodes:
        if node.body and counts[node.kind, node.type] >= _SEVERAL and len(record.bodies[node.body].nodes) > 1:
            yield node
        elif node.body:
            yield from _outermost(record, node.body, counts)


def _operators(record: Record, name: str) -> int:
    return sum(_operators(record, node.body) if node.body else 1 for node in record.bodies[name].nodes)


def _sizes(record: Record) -> Iterator[str]:
    """Yield a pattern for each resolution that the calls around blocks give, or for the size of the embedding."""
    body = record.bodies[record.root]
    while len(calls := [node for node in body.nodes if node.body]) == 1:
        body = record.bodies[calls[0].body]
    found: dict[str, None] = {}
    for node in calls:
        for meta in record.metas(body, Value(node.name)):
            if len(meta.shape) > 2:
                found[re.escape("×".join(map(str, meta.shape[1:])))] = None
    yield from found


def window_text(svg: str) -> str:
    """Return the texts of a picture that stand in the window, a line for each text element."""
    return "\n".join(_texts(ET.fromstring(svg), 0.0, 0.0, 1.0))  # noqa: S314 - made in this run


def _texts(element: ET.Element, x: float, y: float, scale: float) -> Iterator[str]:
    for child in element:
        transform = child.get("transform", "")
        dx = dy = 0.0
        times = 1.0
        if moved := re.search(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)", transform):
            dx, dy = float(moved[1]), float(moved[2])
        if scaled := re.search(r"scale\(([\d.]+)", transform):
            times = float(scaled[1])
        left, top = x + dx * scale, y + dy * scale
        if child.tag.endswith("}text"):
            at = left + float(child.get("x", 0)) * scale * times, top + float(child.get("y", 0)) * scale * times
            if 0 <= at[0] <= WIDTH and 0 <= at[1] <= HEIGHT:
                yield re.sub(r"\s+", " ", " ".join(child.itertext())).strip()
        else:
            yield from _texts(child, left, top, scale * times)


def drawn(record: Record, engine: Engine) -> str:
    """Return the default view as SVG."""
    job = drawing.Job(record)
    drawing.lay_out([job], engine)
    return document.page_svg(drawing.scene(job), figure="f", title="", description="", rows=True)


def main() -> int:
    """Count, print, and return whether the target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("records", type=Path, help="folder with the records of named_models.py")
    parser.add_argument("--engine", default="", help="the layout engine to use")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write the table there")
    parser.add_argument("--verbose", action="store_true", help="print what is missing")
    options = parser.parse_args()
    engine = find_engine(options.engine)
    rows: list[Sequence[object]] = []
    for model, text in load(options.records):
        if model.name not in MODELS:
            continue
        record = Record.from_json(text)
        said = window_text(drawn(record, engine))
        wanted = answers(record)
        told = {question: wanted[question].is_in(said) for question in QUESTIONS}
        rows.append([model.name, *("yes" if told[question] else "no" for question in QUESTIONS), sum(told.values())])
        print(f"{model.name:20}", *(f"{question}: {told[question]}" for question in QUESTIONS), flush=True)
        if options.verbose:
            for question, is_told in told.items():
                if not is_told:
                    print("    ", question, wanted[question])
    total, most = sum(int(str(row[-1])) for row in rows), len(rows) * len(QUESTIONS)
    print(f"\n{total} of {most} questions are answered in {WIDTH} × {HEIGHT} px")
    if options.out:
        with (options.out / "legibility-questions.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["model", *QUESTIONS, "answered of 5"], *rows])
    return int(total < TARGET * most)


if __name__ == "__main__":
    sys.exit(main())
