"""Builds the docs layouts of five model zoos, from nothing and from a committed cache without torch.

    python benchmarks/sites/run.py [--folder DIR] [--only NAME] [--csv FILE]

The requirements are in ``requirements.txt`` beside this file. For each site it prints: graphs; warnings of ours, of
all builders; the pages that a second build rewrites; what is captured again when unrelated packages have new releases,
and when one model is edited, and the pages written then; seconds of the first build, of a build from the cache,
and of the same site without us; how many models have the number of parameters that plain PyTorch counts.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sites import SITES, Site

BUILDERS = ("html", "dirhtml", "epub", "latex", "gettext")
PER_PAGE = 4

CONF = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if os.environ.get("WITHOUT_TORCH"):
    sys.modules["torch"] = None
project, version, copyright, language = {name!r}, "1", "nobody", "en"
extensions = {extensions!r}
html_theme = {theme!r}
html_baseurl = ogp_site_url = "https://example.org/"
nb_execution_mode = "off"
suppress_warnings = ["epub.unknown_project_files"]
"""


OWN = """
import torch

class Own(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(4, {width}), torch.nn.ReLU())
"""


def shown(site: Site) -> list[tuple[str, str]]:
    """Return target and inputs of what a site shows: the models of the zoo, and one of our own that can be edited."""
    return [*site.models, ("own.Own", "1, 4")]


def write(site: Site, docs: Path, *, graphs: bool) -> None:
    """Write the sources of a site, with graphs or with the same text alone."""
    docs.mkdir(parents=True, exist_ok=True)
    ours = ["sphinx_fxgraph"] if graphs else []
    conf = CONF.format(name=site.name, extensions=[*site.extensions, *ours], theme=site.theme)
    (docs / "conf.py").write_text(conf + ("fxgraph_cache_dir = '../cache'\n" if graphs else ""))
    (docs / "own.py").write_text(OWN.format(width=4))
    numbers = range(0, len(shown(site)), PER_PAGE)
    pages = [f"models{number}" for number in numbers]
    (docs / "index.rst").write_text(
        f"{site.name}\n{'=' * 20}\n\nOur own text.\n\n.. toctree::\n\n" + "".join(f"   {page}\n" for page in pages)
    )
    for page, first in zip(pages, numbers, strict=True):
        parts = list(_page(site, first, graphs=graphs))
        (docs / f"{page}{'.md' if site.markdown else '.rst'}").write_text("\n".join(parts))


def _page(site: Site, first: int, *, graphs: bool) -> Iterator[str]:
    title = f"Models from {first}"
    yield f"# {title}\n" if site.markdown else f"{title}\n{'=' * len(title)}\n"
    for number, (target, inputs) in enumerate(shown(site)[first : first + PER_PAGE], first):
        yield f"Model {number} of this layout is described here, as a site does.\n"
        if not graphs:
            continue
        options = f":inputs: {inputs}\n:caption: Model {number}\n:name: model-{number}\n"
        if site.markdown:
            yield f"```{{fxgraph}} {target}\n{options}```\n"
        else:
            yield f".. fxgraph:: {target}\n" + "".join(f"   {line}\n" for line in options.splitlines())


def build(docs: Path, builder: str, *arguments: str, torch: bool = True) -> tuple[float, list[str]]:
    """Return the seconds of a build and its warnings."""
    target = docs.parent / "build"
    doctrees = target / ("gettext-doctrees" if builder == "gettext" else "doctrees")
    environment = {**os.environ, **({} if torch else {"WITHOUT_TORCH": "1"})}
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-b", builder, "-d", str(doctrees), *arguments]
    start = time.perf_counter()
    run = subprocess.run(
        [*command, str(docs), str(target / builder)], capture_output=True, text=True, check=False, env=environment
    )
    if run.returncode:
        raise SystemExit(f"{docs} {builder}: status {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-4000:]}")
    return time.perf_counter() - start, [line for line in run.stderr.splitlines() if "fxgraph" in line]


def measure(site: Site, folder: Path) -> dict[str, object]:
    """Return what is measured of one site."""
    docs, plain = folder / site.name / "docs", folder / site.name / "plain" / "docs"
    shutil.rmtree(folder / site.name, ignore_errors=True)
    write(site, docs, graphs=True)
    write(site, plain, graphs=False)
    first, warnings = build(docs, "html")
    again = rebuilt(docs)
    with newer_release(docs.parent):
        released = rebuilt(docs)
    (docs / "own.py").write_text(OWN.format(width=8))
    edited = rebuilt(docs)
    warnings += again.warnings + released.warnings + edited.warnings
    shutil.rmtree(docs.parent / "build")
    cached, told = build(docs, "html", "-D", "fxgraph_mode=cached", torch=False)
    for builder in BUILDERS[1:]:
        told += build(docs, builder, "-D", "fxgraph_mode=cached", torch=False)[1]
    without, _ = build(plain, "html")
    right = equal(docs.parent / "cache")
    return {
        "site": site.name,
        "graphs": len(shown(site)),
        "warnings": len(warnings) + len(told),
        "rewritten": len(again.pages),
        "captured after a release": len(again.records) + len(released.records),
        "captured after an edit": " ".join(edited.records),
        "pages after an edit": len(edited.pages),
        "first (s)": round(first, 1),
        "cached (s)": round(cached, 1),
        "without us (s)": round(without, 1),
        "equal to PyTorch": right,
    }


class Rebuilt(NamedTuple):
    """What another build of the HTML has changed."""

    pages: list[str]
    records: list[str]
    warnings: list[str]


def rebuilt(docs: Path) -> Rebuilt:
    """Build the HTML once more, and return what was written."""
    pages = (docs.parent / "build" / "html").rglob("model*.html")
    records = [path for path in (docs.parent / "cache").glob("*.json") if not path.name.endswith(".layout.json")]
    before = {path: path.stat().st_mtime_ns for path in (*pages, *records)}
    _, warnings = build(docs, "html")
    changed = [path for path, stamp in before.items() if path.stat().st_mtime_ns != stamp]
    return Rebuilt(
        [path.name for path in changed if path.suffix == ".html"],
        [path.name.partition("-")[0] for path in changed if path.suffix == ".json"],
        warnings,
    )


@contextlib.contextmanager
def newer_release(folder: Path) -> Iterator[None]:
    """Let packages that make no graph have another release for a while, by metadata that come first on the path."""
    site = folder / "newer"
    for name in ("typing-extensions", "jinja2", "networkx", "sympy", "filelock"):
        info = site / f"{name.replace('-', '_')}-999.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 999.0\n")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), before]))
    yield
    os.environ["PYTHONPATH"] = before or ""


def equal(cache: Path) -> int:
    """Return how many records have the number of parameters that plain PyTorch counts."""
    paths = [path for path in cache.glob("*.json") if not path.name.endswith(".layout.json")]
    records = [json.loads(path.read_text()) for path in paths]
    records = [record for record in records if record["spec"]["target"] != "own.Own"]
    targets = [record["spec"]["target"] for record in records]
    run = subprocess.run(
        [sys.executable, "-c", PLAIN], input=json.dumps(targets), capture_output=True, text=True, check=True
    )
    counts = json.loads(run.stdout.splitlines()[-1])
    return sum(record["totals"]["parameters"] == count for record, count in zip(records, counts, strict=True))


PLAIN = """
import importlib, json, sys
import torch

def parameters(target):
    names = {"torch": torch}
    for name in ("monai.networks.nets", "kornia.feature", "kornia.filters.dexined", "kornia.losses", "neuralop.models",
                 "neuralop.layers.spectral_convolution", "neuralop.layers.channel_mlp", "snntorch",
                 "torch_geometric.nn"):
        package = name.partition(".")[0]
        if f"{package}." in target:
            importlib.import_module(name)
            names[package] = sys.modules[package]
    model = eval(target, names)
    return sum(p.numel() for p in model.parameters() if not isinstance(p, torch.nn.UninitializedParameter))

print(json.dumps([parameters(target) for target in json.load(sys.stdin)]))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the sites, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sites-") as temporary:
        rows = []
        for site in SITES:
            if options.only in ("", site.name):
                rows.append(measure(site, options.folder or Path(temporary)))
                print(rows[-1], flush=True)
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
