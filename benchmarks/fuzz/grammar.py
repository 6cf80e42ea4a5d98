"""Fuzz the grammar of targets and inputs, and the readers of the cache, with a coverage-guided fuzzer.

``python benchmarks/fuzz/grammar.py [-atheris_runs=20000] [CORPUS ...]`` needs ``pip install atheris`` (Linux, macOS);
its arguments are those of libFuzzer. The first byte of an input says what reads the rest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["sphinx_fxgraph"]):
    import run

SEEDS = (
    b"\0pkg.Net(1, x=[2, 'a'], y=pkg.sub:Other())",
    b"\0f32[1, 3, 224, 224] < 1, i64[2, s0], mask=None",
    b"\1" + run.record().to_json().encode(),
    b"\2" + json.dumps(run.LAYOUT).encode(),
    b"\3" + json.dumps(run.LISTING).encode(),
)
"""Right inputs that the fuzzer begins with; files of a corpus folder are added to them."""


def check(data: bytes) -> None:
    """Give an input to what its first byte names."""
    kind, rest = data[:1], data[1:]
    match kind:
        case b"\0":
            text = rest.decode("utf-8", "surrogateescape")
            run.read_spec(text, text, text)
        case b"\1":
            run.draw_record(rest, None, "auto")
        case b"\2":
            run.read_layout(rest)
        case b"\3":
            run.read_listing(rest)


def main() -> None:
    """Check the seeds, then what the fuzzer makes of them."""
    for seed in SEEDS:
        check(seed)
    arguments = sys.argv
    if not any(not each.startswith("-") for each in arguments[1:]):
        folder = Path(run.FOLDER.name, "corpus")
        folder.mkdir()
        for number, seed in enumerate(SEEDS):
            (folder / str(number)).write_bytes(seed)
        arguments = [*arguments, str(folder)]
    atheris.Setup(arguments, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
