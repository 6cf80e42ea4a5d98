"""The command line: ``show``, ``draw``, and the commands of the cache, ``warm``, ``check`` and ``diff``."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sphinx_fxgraph
from sphinx_fxgraph.cache import store
from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.layout.graphviz import EngineFailedError, EngineMissingError
from sphinx_fxgraph.option_types import Patterns
from sphinx_fxgraph.options import CaptureOptions, ViewOptions, declared
from sphinx_fxgraph.record.diff import compare
from sphinx_fxgraph.record.header import Failure
from sphinx_fxgraph.record.metrics import macs_text
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import export, summary
from sphinx_fxgraph.render.export import ConverterMissingError
from sphinx_fxgraph.render.node_table import Row, node_rows
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker.pool import capture


def add_capture_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that are part of a spec, and the interpreter that captures it."""
    parser.add_argument("--inputs", default="", help='what forward is called with: "f32[1, 3, 224, 224]"')
    add_options(parser, CaptureOptions)
    parser.add_argument("--python", default=sys.executable, help="another interpreter that has torch")


def add_options(parser: argparse.ArgumentParser, scope: type[CaptureOptions | ViewOptions]) -> None:
    """Add the declared options of a class; `options_of` reads them."""
    for option in declared(scope):
        words = "{" + ",".join(option.choices) + "}" if option.choices else option.name.upper()
        repeated: Any = {"action": "append"} if isinstance(option.kind, Patterns) else {}
        text = option.help.replace("``", "").replace("%", "%%")
        parser.add_argument(f"--{option.name}", dest=option.field, metavar=words, help=text, **repeated)


def options_of(scope: type[CaptureOptions | ViewOptions], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a class that the command line gives, in canonical form.

    Raises:
        SpecError: a value is wrong.
    """
    given = {option: getattr(arguments, option.field) for option in declared(scope)}
    texts = {option: " ".join(value) if isinstance(value, list) else value for option, value in given.items()}
    return {option.field: option.read(value) for option, value in texts.items() if value is not None}


def spec_of(target: str, arguments: argparse.Namespace) -> GraphSpec:
    """Return the spec of a target with the options of the command line.

    Raises:
        SpecError: it cannot be one.
    """
    return GraphSpec.parse(target, arguments.inputs, **options_of(CaptureOptions, arguments))


def sentence(failure: Failure) -> str:
    """A failure in one line."""
    place = f"{failure.file}:{failure.line}: " if failure.file else ""
    kind = f"{failure.type}: " if failure.type else ""
    node = f" (at {failure.node})" if failure.node else ""
    return f"{failure.stage} failed: {place}{kind}{failure.message}{node}"


def captured(specs: Sequence[GraphSpec], python: str) -> list[Record]:
    """The records of specs, in their order; models are found from the current folder on."""
    folder = str(Path.cwd())
    found = dict(capture(specs, python=python, sys_path=[folder, *sys.path], confdir=folder))
    return [found[spec] for spec in specs]


def add(commands: Any) -> None:
    """Add the commands to those of the command line."""
    warm = commands.add_parser(
        "warm",
        help="capture what a docs tree needs, without writing pages",
        description="Capture and lay out what a docs tree needs, into the folder that fxgraph_cache_dir names.",
        epilog="Exit status: 0 all is there, 1 a capture failed or a file could not be written, 2 wrong usage.",
    )
    warm.add_argument("--force", action="store_true", help="capture what is fresh, too")
    warm.add_argument("--shard", metavar="K/N", help="only the K-th of N parts, for many machines")
    warm.add_argument("--prune", action="store_true", help="remove what no page uses any more")
    check = commands.add_parser(
        "check",
        help="say whether the cache of a docs tree is up to date",
        description="Compare the cache with the models of today and print how architectures have changed. "
        "Nothing is written.",
        epilog="Exit status: 0 all is up to date, 1 something is stale or missing, or a build would warn of it, "
        "2 wrong usage.",
    )
    for parser, builder in ((warm, "fxgraph-warm"), (check, "fxgraph-check")):
        parser.add_argument("docs", metavar="DOCS", help="the folder of the docs, with conf.py")
        parser.add_argument("-d", "--doctrees", metavar="DIR", help="where parsed pages are kept for next time")
        parser.add_argument("-D", action="append", default=[], metavar="NAME=VALUE", help="set a value of conf.py")
        parser.add_argument("-j", "--jobs", metavar="N", help="read pages in N processes")
        parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
        parser.add_argument("--git", action="store_true", help="fail if a file of the cache is not added to git")
        parser.set_defaults(run=_build, builder=builder)
    diff = commands.add_parser(
        "diff",
        help="compare two architectures",
        description="Print how one architecture differs from another. Each is a target, a record file, or REV:NAME: "
        "the record that was committed at a git revision, of which no code is run. Models are imported from the "
        "current folder and from PYTHONPATH.",
        epilog="Exit status: 0 they were compared, 1 a capture failed, 2 wrong usage.",
    )
    diff.add_argument("before", metavar="A", help='what it was: "zoo.nets:UNet(depth=3)", old.json, v1.0:zoo.nets.UNet')
    diff.add_argument("after", metavar="B", help="what it is, written likewise")
    add_capture_options(diff)
    diff.set_defaults(run=_diff)


# -- warm, check


def _build(options: argparse.Namespace) -> int:
    """Sphinx reads the docs; its builder does the rest."""
    if not Path(options.docs, "conf.py").is_file():
        print(f"sphinx-fxgraph: error: {options.docs} has no conf.py; name the folder of the docs", file=sys.stderr)
        return 2
    with _in_order(), tempfile.TemporaryDirectory(prefix="fxgraph-") as folder:
        doctrees = options.doctrees or str(Path(folder, "doctrees"))
        command = [sys.executable, "-m", "sphinx", "-b", options.builder, "-d", doctrees]
        if not options.doctrees:
            command += ["-t", "fxgraph_temporary"]
        command += ["-t", "fxgraph_git"] if options.git else []
        if options.builder == "fxgraph-warm":
            command += ["-D", f"fxgraph_prune={int(options.prune)}"]
            command += ["-D", "fxgraph_mode=force"] if options.force else []
            command += ["-D", f"fxgraph_shard={options.shard}"] if options.shard else []
        command += [part for value in options.D for part in ("-D", value)]
        command += ["-j", options.jobs] if options.jobs else []
        command += ["-q"] if options.quiet else []
        return subprocess.run([*command, options.docs, str(Path(folder, "output"))], check=False).returncode


@contextlib.contextmanager
def _in_order() -> Iterator[None]:
    """Take Sphinx along when this process is told to end; what was captured until then is kept."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# -- diff


def _diff(options: argparse.Namespace) -> int:
    texts = options.before, options.after
    try:
        records = [_kept(text) for text in texts]
        specs = [None if record else spec_of(text, options) for text, record in zip(texts, records, strict=True)]
    except (store.RecordFileError, SpecError) as error:
        print(f"sphinx-fxgraph diff: error: {error}", file=sys.stderr)
        return 2
    asked = next((record.spec for record in records if record), {})
    todo = [_like(spec, asked) for spec in specs if spec]
    found = iter(captured(todo, options.python))
    before, after = (record or next(found) for record in records)
    print(f"{options.before} → {options.after}")
    lines = list(compare(before, after).lines())
    print("\n".join(lines or ["no difference"]), flush=True)
    failed = False
    for text, record in zip(texts, (before, after), strict=True):
        if record.failure:
            failed = True
            unknown = record.failure.stage == "import" and ":" in text and not store.is_revision(text, Path.cwd())
            hint = f"; nor does git know a revision {text.partition(':')[0]!r} here" if unknown else ""
            print(f"sphinx-fxgraph: {text}: {sentence(record.failure)}{hint}", file=sys.stderr)
    return 1 if failed else 0


def _kept(text: str) -> Record | None:
    if Path(text).is_file():
        return store.from_file(text)
    if text.endswith(".json") and ":" not in text:
        raise store.RecordFileError(f"there is no file {text}")
    return store.at_revision(text, Path.cwd())


def _like(spec: GraphSpec, asked: Mapping[str, Any]) -> GraphSpec:
    """A spec with the options that a record was captured with, where it has none of its own."""
    return GraphSpec.from_dict(
        {
            name: asked[name]
            for name in ("inputs", *(option.field for option in declared(CaptureOptions)))
            if name in asked
        }
        | spec.to_dict()
    )


_MOST_CHARACTERS = 40
"""Of a cell in the terminal; the page's table has everything."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal has a × and an arrow
    try:
        status: int = options.run(options)
    except SpecError as error:
        parser.error(str(error))
    except BrokenPipeError:  # `| head` has seen enough; Python would complain once more when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sphinx-fxgraph", description="PyTorch models as they are implemented, in the terminal."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {sphinx_fxgraph.__version__}")
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    show = subcommands.add_parser(
        "show",
        help="capture a model; print its outline and its operators",
        description="Capture a model and print its outline and its operators.",
    )
    show.add_argument("target", metavar="TARGET", help='what makes the model: "zoo.nets:UNet(depth=3)"')
    add_capture_options(show)
    show.set_defaults(run=_show)
    draw = subcommands.add_parser(
        "draw",
        help="capture a model; write its picture",
        description="Capture a model and write its picture. The end of the file's name says how: "
        f"{', '.join(export.SUFFIXES)}.",
    )
    draw.add_argument("target", metavar="TARGET", help='what makes the model: "zoo.nets:UNet(depth=3)"')
    draw.add_argument("-o", "--output", metavar="FILE", type=_file, required=True, help="the file that is written")
    add_capture_options(draw)
    add_options(draw, ViewOptions)
    draw.add_argument("--dot", default="", help="the Graphviz engine to use, as a command")
    draw.add_argument("--width", type=_width, help="of an SVG, PDF or PNG for print: 3.3in, 85mm, 240pt")
    draw.set_defaults(run=_draw)
    add(subcommands)
    return parser


def _file(name: str) -> Path:
    path = Path(name)
    if path.suffix.lower() not in export.SUFFIXES:
        raise argparse.ArgumentTypeError(f"{name!r} ends in none of {', '.join(export.SUFFIXES)}")
    return path


def _width(text: str) -> float:
    try:
        return export.length(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _show(options: argparse.Namespace) -> int:
    (record,) = captured([spec_of(options.target, options)], options.python)
    for part in (" · ".join(summary.facts(record)), summary.outline(record), *_tables(record)):
        if part:
            print(part.rstrip(), end="\n\n")
    sys.stdout.flush()
    if record.failure:
        print(f"sphinx-fxgraph: {sentence(record.failure)}", file=sys.stderr)
    return 1 if record.failure else 0


def _draw(options: argparse.Namespace) -> int:
    spec = spec_of(options.target, options)
    view = ViewOptions(**options_of(ViewOptions, options))
    path: Path = options.output
    (record,) = captured([spec], options.python)
    problem = sentence(record.failure) if record.failure else ""
    if record.root or path.suffix.lower() == ".json":  # of a model that failed there may be a part to draw
        try:
            title = spec.target or spec.label
            content = export.content(path.suffix.lower(), record, view, title, options.dot, options.width)
            path.write_bytes(content)
        except (ConverterMissingError, EngineFailedError, EngineMissingError, OSError) as error:
            problem = str(error)
    if problem:
        print(f"sphinx-fxgraph: {problem}", file=sys.stderr)
    return 1 if problem else 0


_COLUMNS = ("name", "op", "target", "arguments", "input shape", "output shape", "parameters", "MACs", "connected to")


def _tables(record: Record) -> Iterator[str]:
    """The operators of each body, in columns of one width for all."""
    groups = node_rows(record)
    cells = [[_cells(row) for row in group.rows] for group in groups]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *(row for rows in cells for row in rows), strict=True)]
    for group, rows in zip(groups, cells, strict=True):
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (_COLUMNS, *rows))
        yield "\n".join([f"{group.heading}:", *(f"  {line}" for line in lines)])


def _cells(row: Row) -> tuple[str, ...]:
    cells = (
        row.name,
        row.op,
        row.target,
        row.arguments,
        row.input_shape,
        f"{row.output_shape} {row.dtype}".strip(),
        f"{row.parameters:,}" if row.parameters else "",
        macs_text(f"{row.macs:,}" if row.macs else None, row.uncounted),
        ", ".join(name for _, name in row.connected),
    )
    return tuple(cell if len(cell) <= _MOST_CHARACTERS else cell[: _MOST_CHARACTERS - 1] + "…" for cell in cells)
