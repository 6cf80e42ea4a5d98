"""Feed random input to everything that reads what others wrote: a value or a typed error, in bounded time.

``python benchmarks/fuzz/run.py [--inputs 100000] [--state FILE] [--csv FILE]``. Specs, options and text are drawn from
right and wrong parts; records, layouts and lists of models are right ones with parts of their JSON exchanged. Records
that can be read are compared with another one and drawn as page, SVG, DOT, outline, tables and thumbnail. The inputs
are checked in pieces of a few hundred, each with its own seed; with ``--state`` a run that was stopped continues after
the last finished piece.
``grammar.py`` beside this file feeds the parser and the reader with inputs that a coverage-guided fuzzer makes.
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from sphinx_fxgraph import escape
from sphinx_fxgraph.cache.fingerprints import SourceFinder
from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.layout.graphviz import Engine, EngineFailedError
from sphinx_fxgraph.options import CaptureOptions, ViewOptions, read_options
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.checks import check_calls
from sphinx_fxgraph.record.diff import compare
from sphinx_fxgraph.record.diff_graph import merge
from sphinx_fxgraph.record.header import Head, Outline, RecordError
from sphinx_fxgraph.record.model import Body, BodyInput, Module, Node, Record, TensorMeta
from sphinx_fxgraph.render import document, html_page, summary, thumbnail
from sphinx_fxgraph.render.dot import source
from sphinx_fxgraph.render.drawing import Job, lay_out, scene
from sphinx_fxgraph.spec.parser import parse_inputs, parse_target
from sphinx_fxgraph.spec.spec import GraphSpec, SpecError
from sphinx_fxgraph.worker import registry

SLOW = 10.0
"""Seconds that one input may take."""

# -- right inputs, which are changed

X, Y = TensorMeta((1, 4), "f32"), TensorMeta((1, "s0", 8), "bf16")


def record() -> Record:
    """A model with a block that is called three times, a skip and a failure's mark."""
    block = Body(
        "net.Block",
        inputs=(BodyInput("x", (X,)),),
        nodes=(
            Node(
                "conv",
                "call_module",
                "conv",
                "Conv2d",
                "torch.nn.modules.conv.Conv2d",
                inputs=(Value("", 0),),
                outputs=(X,),
            ),
            Node("add", "call_function", "operator.add", "add", inputs=(Value("conv"), Value("", 0)), outputs=(X,)),
        ),
        outputs=(Value("add"),),
    )
    calls = []
    before = Value("x")
    for number in range(3):
        calls.append(
            Node(
                f"layer{number}", "call_module", f"layer{number}", "Block", "net.Block", body="Block", inputs=(before,)
            )
        )
        before = Value(f"layer{number}")
    nodes = (
        Node("x", "placeholder", "x", "input", outputs=(X,)),
        *calls,
        Node("size", "call_method", "size", "size", inputs=(before,)),
        Node("output", "output", "output", "output", inputs=(before,)),
    )
    modules = (Module("layer0", "net.Block"),)
    root = Body("net.Net", nodes=nodes, outputs=(before,))
    return Record(
        spec={"target": "net.Net"}, tracer="symbolic", root="Net", bodies={"Net": root, "Block": block}, modules=modules
    )


class NoEngine(Engine):
    """Lays out nothing, so that each level goes to the fallback: no process for an input."""

    def lay_out(self, graphs: Any, timeout: float) -> Any:
        """Fail."""
        raise EngineFailedError(f"{len(graphs)} graphs, {timeout} s")


NO_ENGINE = NoEngine("none")
SPEC = GraphSpec.parse("net.Net", "1, 4")
LAYOUT = {
    "engine": "dot",
    "levels": {
        "a": {"size": [9, 9], "nodes": {"n0": [1, 1]}, "edges": {"0": [1, 1, 2, 2, 3, 3, 4, 4]}, "notes": {"0": [1, 1]}}
    },
}
LISTING = {
    "models": ["a", {"name": "b", "target": "nets.b(1)", "options": {"inputs": "1, 4", "caption": "B"}}],
    "sources": {"nets.py": "0" * 64},
    "folders": {"nets": ["nets.py"]},
    "distributions": {"numpy": "2.0"},
}

ODD = st.sampled_from(
    [
        *(None, True, -1, 0, 2**63, 1e300, -0.5, "", "x", "a.b", "../..", "\x00", "\x1b[1m", "<!--<script>", "]]>"),
        *("é\u202e", [], {}, "n0", [[]], {"a": 1}, "Block", "Net", "s0", "conv", [1, 2], "f32", "0" * 300, "\\N"),
    ]
)


def _mutate(value: Any, chance: random.Random, odd: list[Any]) -> Any:
    """Return JSON with some parts exchanged, removed or doubled."""
    value = copy.deepcopy(value)
    for part in odd:
        places: list[tuple[Any, Any]] = []

        def visit(container: Any, places: list[tuple[Any, Any]] = places) -> None:
            keys = list(container) if isinstance(container, dict) else range(len(container))
            for key in keys:
                places.append((container, key))
                if isinstance(container[key], dict | list):
                    visit(container[key])

        visit(value)
        if not places:
            return part
        container, key = chance.choice(places)
        match chance.randrange(5):
            case 0:
                del container[key]
            case 1 if isinstance(container, list):
                container.insert(key, copy.deepcopy(container[key]))
            case 2 if isinstance(container, dict):
                container[part if isinstance(part, str) else "x"] = container.pop(key)
            case 3:
                container[key] = copy.deepcopy(chance.choice(places)[0])  # a copy, so that nothing is in itself
            case _:
                container[key] = copy.deepcopy(part)
        if _is_large(value):
            break
    return value


def _is_large(value: Any) -> bool:
    return len(json.dumps(value)) > 50_000


def mutated(value: Any) -> st.SearchStrategy[bytes]:
    """Texts of JSON that is nearly right; some are torn."""

    def build(number: int, odd: list[Any], cut: int) -> bytes:
        data = json.dumps(_mutate(value, random.Random(number), odd)).encode()  # noqa: S311 - a choice of places
        return data[: len(data) * cut // 12] if cut < 11 else data

    return st.builds(
        build, st.integers(0, 2**32), st.lists(ODD, max_size=4), st.integers(0, 40).map(lambda n: max(n, 1))
    )


_PIECE = st.sampled_from(
    [
        *("f32", "i64", "pkg.Net", "pkg:Net", "x", "None", "True", "1", "-1", "4.5", "'a'", "9" * 30, "nan", "auto"),
        *("lambda", "f'", "b'", "for", "é", "\x00", "\ud800", "==", "<=", *"()[]{},=<>:.'\"*+-@# \n\\"),
    ]
)
PYTHONISH = st.lists(_PIECE, max_size=25).map("".join) | st.text(max_size=40)


# -- what reads them


def read_spec(text: str, other: str, option: str) -> None:
    """Parse a target, inputs and a spec."""
    for parse in (parse_target, parse_inputs):
        try:
            again = str(parse(text))
            assert str(parse(again)) == again
        except SpecError as error:
            if "\n" in str(error):
                raise AssertionError(f"a message of lines: {error!r}") from error
    try:
        spec = GraphSpec.parse(text, other, submodule=option)
        assert GraphSpec.from_dict(spec.to_dict()) == spec
        assert escape.one_line(spec.label) == spec.label
    except SpecError:
        pass


def read_option(name: str, text: str) -> None:
    """Read one option of a directive."""
    values, errors = read_options({name: text}, (CaptureOptions, ViewOptions))
    assert len(values) + len(errors) == 1
    assert all(str(error).isprintable() for error in errors)


def draw_record(data: bytes, depth: int | None, fold: str) -> None:
    """Read a record and write it in every format."""
    for kind in (Head, Outline):
        try:
            found = kind.from_json(data)
            for number, _ in enumerate(found.paths() if isinstance(found, Outline) else ()):
                if number > 1000:
                    break
        except RecordError:
            pass
    try:
        model = Record.from_json(escape.printable_json(data))
        check_calls(model)  # as the cache does
    except (RecordError, UnicodeError):
        return
    assert Record.from_json(model.to_json()).to_json() == model.to_json()
    summary.outline(model)
    summary.facts(model)
    summary.describe(model)
    if not model.root:
        return
    source(model)
    _parse_xml(thumbnail.thumbnail(model, "net.Net"))
    compare(record(), model)
    compare(model, record())
    Record.from_json(merge(record(), model).to_json())
    look = ViewOptions(depth=depth, fold=fold)
    for inside in (True, False):
        job = Job(model, look, inside=inside, paper=not inside)
        lay_out([job], NO_ENGINE)
        if inside:
            html_page.page(job, "net.Net")
        else:
            _parse_xml(document.print_svg(scene(job), title="net.Net", description="x"))


def _parse_xml(text: str) -> None:
    ET.fromstring(text)  # noqa: S314 - our own


def read_layout(data: bytes) -> None:
    """Read a layout file of the cache, and draw with it."""
    store = Store(FOLDER.name)
    stem = f"{escape.file_stem(SPEC.label)}-{SPEC.id[:8]}"
    Path(FOLDER.name, f"{stem}.layout.json").write_bytes(data)
    found = store.layouts(SPEC)
    job = Job(record(), layouts=dict(zip(_digests(), found.values(), strict=False)))
    lay_out([job], NO_ENGINE)
    _parse_xml(document.print_svg(scene(job), title="net.Net", description="x"))


def _digests() -> list[str]:
    job = Job(record())
    return list(job.missing())


def read_listing(data: bytes) -> None:
    """Read a list of models of the cache, and make the values of its pages."""
    from sphinx_fxgraph.sphinxext import zoo_pages

    found = registry.Listing.from_json(data)
    if found is None:
        return
    found.is_fresh(SourceFinder([]))
    zoo = zoo_pages.Zoo.parse("nets", {"folder": "models", "registry": "nets:list_models", "target": "nets.{name}"})
    zoo_pages.stays_inside(zoo, found.models)
    try:
        entries = registry.entries(found.models)
    except registry.RegistryError:
        return
    for entry in entries:
        escape.file_stem(entry.name)


def write_text(text: str) -> None:
    """Make a text fit for every format."""
    _parse_xml(f"<a>{escape.xml(text)}</a>")
    json.loads(escape.json_block(text))
    escape.dot_html(text)
    assert "\n" not in escape.one_line(text)
    assert "/" not in escape.unique_file_stem(text)


FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True)
_NAMES = st.sampled_from(sorted({*CaptureOptions.__dataclass_fields__, *ViewOptions.__dataclass_fields__}))


_DEPTHS = st.none() | st.integers(0, 3)
_FOLDS = st.sampled_from(["auto", "loose", "off"])


@dataclass(frozen=True)
class Group:
    """A kind of input."""

    share: int
    """Of a hundred inputs."""
    strategies: tuple[Any, ...]
    check: Callable[..., None]


GROUPS = {
    "specs": Group(35, (PYTHONISH, PYTHONISH, PYTHONISH), read_spec),
    "options": Group(15, (_NAMES, PYTHONISH), read_option),
    "records": Group(20, (mutated(json.loads(record().to_json())), _DEPTHS, _FOLDS), draw_record),
    "layouts": Group(10, (mutated(LAYOUT),), read_layout),
    "registries": Group(10, (mutated(LISTING),), read_listing),
    "text": Group(10, (st.text(st.characters(codec=None), max_size=200),), write_text),
}


@dataclass
class Result:
    """What came of a group."""

    inputs: int = 0
    slowest: float = 0.0
    failure: str = ""


def run(name: str, count: int, number: int = 0) -> Result:
    """Check so many inputs of a group; the same for one number."""
    group, result = GROUPS[name], Result()

    @seed(number)
    @settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
    )
    @given(st.tuples(*group.strategies))
    def check(values: tuple[Any, ...]) -> None:
        result.inputs += 1
        start = time.monotonic()
        group.check(*values)
        seconds = time.monotonic() - start
        result.slowest = max(result.slowest, seconds)
        assert seconds < SLOW, f"{seconds:.0f} s"

    try:
        check()
    except BaseException as error:
        notes = " ".join(getattr(error, "__notes__", ()))
        result.failure = f"{type(error).__name__}: {error} {notes}"[:1500]
        if isinstance(error, KeyboardInterrupt):
            raise
    return result


@dataclass(frozen=True)
class Piece:
    """A finished part of the inputs of a group, as a line of the state file keeps it."""

    group: str
    seed: int
    inputs: int
    slowest: float
    failure: str


PIECE = 500
"""Inputs of a piece. Hypothesis ends a piece early where it runs out of new inputs; the next seed makes others."""


def read_state(path: Path | None) -> list[Piece]:
    """Return the pieces that earlier runs finished; those that failed are checked again."""
    if path is None or not path.exists():
        return []
    pieces = [Piece(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return [piece for piece in pieces if not piece.failure]


def check_all(inputs: int, first: int, state: Path | None) -> list[Piece]:
    """Check each group's share of the inputs, piece by piece.

    Args:
        inputs: how many inputs there are in all.
        first: the seed of the first piece of each group.
        state: the file that takes a line for each finished piece.
    """
    pieces = read_state(state)
    for name, group in GROUPS.items():
        share = -(-inputs * group.share // 100)
        finished = {piece.seed: piece for piece in pieces if piece.group == name}
        count, number = 0, first
        while count < share:
            if number not in finished:
                result = run(name, min(PIECE, share), number)
                piece = Piece(name, number, result.inputs, round(result.slowest, 3), result.failure)
                pieces.append(piece)
                finished[number] = piece
                if piece.failure:
                    print(f"{name}, seed {number}: {piece.failure}", flush=True)
                if state is not None:
                    with state.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(vars(piece)) + "\n")
            count += max(1, finished[number].inputs)
            number += 1
    return pieces


def main() -> int:
    """Check all inputs and print a table of the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="keep finished pieces there, and continue after them")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    pieces = check_all(options.inputs, options.seed, options.state)
    lines = [("what", "inputs", "slowest, s", "failures")]
    for name in (*GROUPS, "all"):
        parts = [piece for piece in pieces if name in (piece.group, "all")]
        numbers = (sum(piece.inputs for piece in parts), max(piece.slowest for piece in parts))
        lines.append((name, str(numbers[0]), f"{numbers[1]:.2f}", str(sum(bool(piece.failure) for piece in parts))))
    csv.writer(sys.stdout).writerows(lines)
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
    return 1 if any(piece.failure for piece in pieces) else 0


if __name__ == "__main__":
    sys.exit(main())
