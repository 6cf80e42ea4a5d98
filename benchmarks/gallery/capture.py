"""Captures the models of ``docs/gallery/models.toml`` into ``docs/gallery/records``, with interpreters that have them.

    python benchmarks/gallery/capture.py --python /envs/zoo/bin/python [--python ...] [NAME ...]

Each model runs under the first interpreter that has its package. A record that is the same is not written. Files that
belong to no model are removed. The exit status is 1 if a model was not captured.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker import pool

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"


def models() -> dict[str, GraphSpec]:
    """Return the spec of each model by its name."""
    families = tomllib.loads((GALLERY / "models.toml").read_text(encoding="utf-8")).values()
    pairs = [item for family in families for item in family.items() if item[0] != "title"]
    return {name: GraphSpec.parse(target, inputs) for name, (target, inputs) in pairs}


def has(python: str, package: str) -> bool:
    """Return whether an interpreter has a package."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-P", "-c", code], check=False).returncode == 0


def main() -> int:
    """Capture, write and remove."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of models; without, all")
    parser.add_argument("--python", action="append", help="an interpreter that has torch and packages of models")
    parser.add_argument("--workers", type=int, default=0, help="captures at a time")
    arguments = parser.parse_args()
    specs = models()
    records = GALLERY / "records"
    records.mkdir(exist_ok=True)
    store = Store(records)
    for path in store.orphans(specs.values()):
        path.unlink()
    left = {name: spec for name, spec in specs.items() if not arguments.names or name in arguments.names}
    for python in arguments.python or [sys.executable]:
        there = {name: spec for name, spec in left.items() if has(python, str(spec.target).partition(".")[0])}
        for spec, record in pool.capture(there.values(), python=python, workers=arguments.workers, timeout=900):
            (name,) = (name for name, other in there.items() if other.id == spec.id)
            if record.failure:
                print(f"{name}: {record.failure.stage}: {record.failure.message}", file=sys.stderr, flush=True)
                continue
            store.put_record(spec, record)
            del left[name]
            print(name, f"{record.totals.parameters:,}", flush=True)
    print(f"{len(specs) - len(left)} of {len(specs)} models", *left)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
