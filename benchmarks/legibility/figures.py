"""Measure the default view of the named models: its size, its smallest text, and what is wrong in its geometry.

Run ``python benchmarks/legibility/figures.py FOLDER`` on the records that ``named_models.py`` captured. The exit status
is 1 if a target is missed. ``--out docs/design`` writes the table of the handbook, ``--save FOLDER`` the pictures.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from geometry import Faults, faults
from named_models import Model, load

from sphinx_fxgraph.layout.graphviz import Engine, find_engine
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import document, drawing

WIDTH, HEIGHT = 760, 900
"""What 90 % of the models fit into."""
TALLEST = 1_350
"""What all of them fit into, at the same width."""
SMALLEST_TEXT = 11.0
MOST_ELEMENTS = 1_200
_STYLE = Path(__file__).parents[2] / "sphinx_fxgraph" / "static" / "fxgraph.css"
_KINDS = [field.name for field in fields(Faults)]
COLUMNS = ("model", "family", "operators", "width", "height", "text", "elements", *_KINDS)


@dataclass(frozen=True)
class Figure:
    """One measured picture."""

    model: Model
    svg: str
    row: list[object]
    """The values of `COLUMNS`."""
    wrong: list[str]
    """Each fault, and each limit that is passed."""
    fits: bool
    """Whether it is within `WIDTH` and `HEIGHT`."""


def measure(model: Model, record: Record, engine: Engine) -> Figure:
    """Draw a model with the default options and measure the picture."""
    job = drawing.Job(record)
    drawing.lay_out([job], engine)
    frame = drawing.scene(job)
    svg = document.page_svg(frame, figure="f", title=model.name, description="", rows=True)
    found, counts = faults(svg)
    text = smallest_text(svg)
    wrong = [f"{kind}: {where}" for kind in _KINDS for where in getattr(found, kind)]
    limits = (
        ("width", frame.width, WIDTH),
        ("height", frame.height, TALLEST),
        ("elements", counts["elements"], MOST_ELEMENTS),
    )
    wrong += [f"{name} {value:.0f} > {most}" for name, value, most in limits if value > most]
    if text < SMALLEST_TEXT:
        wrong.append(f"text of {text:g} px")
    sizes = [model.name, model.family, record.operators, int(frame.width), int(frame.height), text, counts["elements"]]
    row = [*sizes, *(len(getattr(found, kind)) for kind in _KINDS)]
    return Figure(model, svg, row, wrong, frame.width <= WIDTH and frame.height <= HEIGHT)


def smallest_text(svg: str) -> float:
    """Return the smallest font size, in px, that the style sheet gives to a text of the picture."""
    sizes = _font_sizes()
    used = {12.0}
    for element in ET.fromstring(svg).iter():  # noqa: S314 - we wrote it
        if element.tag.endswith(("text", "tspan")) and "".join(element.itertext()).strip():
            used |= {sizes[name] for name in (element.get("class") or "").split() if name in sizes}
    return min(used)


def _font_sizes() -> dict[str, float]:
    found: dict[str, float] = {}
    for selectors, rules in re.findall(r"([^{}]+)\{([^{}]*)\}", _STYLE.read_text(encoding="utf-8")):
        if size := re.search(r"font-size:\s*([\d.]+)px", rules):
            found |= dict.fromkeys(re.findall(r"\.(fxg-[\w-]+)\s*(?:,|$)", selectors.strip()), float(size[1]))
    return found


def main() -> int:
    """Measure, print, and return whether a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("records", type=Path, help="folder with the records of named_models.py")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these models")
    parser.add_argument("--engine", default="", help="the layout engine to use")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write the table there")
    parser.add_argument("--save", metavar="DIR", type=Path, help="write the pictures there, as SVG for a page")
    parser.add_argument("--verbose", action="store_true", help="print each fault")
    options = parser.parse_args()
    engine = find_engine(options.engine)
    figures = []
    start = time.process_time()
    for model, text in load(options.records):
        if not options.names or model.name in options.names:
            figures.append(measure(model, Record.from_json(text), engine))
            _print_row(figures[-1].row)
            if options.verbose:
                print("\n".join(f"    {fault}" for fault in figures[-1].wrong), flush=True)
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            (options.save / figure.model.file).with_suffix(".svg").write_text(figure.svg, encoding="utf-8")
    if options.out:
        with (options.out / "legibility-figures.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(figure.row for figure in figures)])
    fitting = sum(figure.fits for figure in figures)
    faulty = sum(bool(figure.wrong) for figure in figures)
    print(f"\n{len(figures)} models, {fitting} within {WIDTH} × {HEIGHT}, {faulty} with faults or over a limit")
    totals = [sum(int(str(figure.row[COLUMNS.index(kind)])) for figure in figures) for kind in _KINDS]
    print(", ".join(f"{kind} {total}" for kind, total in zip(_KINDS, totals, strict=True)))
    print(f"{time.process_time() - start:.1f} s of CPU in this process")
    return int(bool(faulty) or fitting < 0.9 * len(figures))


def _print_row(row: Sequence[object]) -> None:
    print(f"{row[0]!s:26.26}", *(f"{value!s:>6}" for value in row[2:]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
