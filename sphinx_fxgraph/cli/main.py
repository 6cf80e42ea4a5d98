"""The command line: ``sphinx-fxgraph show TARGET --inputs ...``, ``draw``, and the commands of the cache.

Exit status 0: done; 1: a capture or a check failed; 2: the command was wrong.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import sphinx_fxgraph
from sphinx_fxgraph.cli import commands
from sphinx_fxgraph.cli.commands import add_capture_options, add_options, captured, options_of, sentence, spec_of
from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.layout.graphviz import EngineFailedError, EngineMissingError
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.conventions import macs_text
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render import export, summary
from sphinx_fxgraph.render.convert import ConverterMissingError
from sphinx_fxgraph.tables.rows import Row, node_rows

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
    commands.add(subcommands)
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
