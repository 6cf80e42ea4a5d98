"""Builds the docs layouts of five model zoos, from nothing and from a committed cache without torch.

    python benchmarks/sites/run.py [--folder DIR] [--only NAME] [--csv FILE]

The requirements are in ``requirements.txt`` beside this file. For each site it prints: graphs; warnings of ours, of all
builders; the pages that a second build rewrites; seconds of the first build, of a build from the cache, and of the same
site without us; and how many models have the number of parameters that plain PyTorch counts.
"""

from __future__ import annotations

import argparse
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

from sites import SITES, Site

BUILDERS = ("html", "dirhtml", "epub", "latex", "gettext")
PER_PAGE = 4

CONF = """
import os, sys
if os.environ.get("WITHOUT_TORCH"):
    sys.modules["torch"] = None
project, version, copyright, language = {name!r}, "1", "nobody", "en"
extensions = {extensions!r}
html_theme = {theme!r}
html_baseurl = ogp_site_url = "https://example.org/"
nb_execution_mode = "off"
suppress_warnings = ["epub.unknown_project_files"]
"""


def write(site: Site, docs: Path, *, graphs: bool) -> None:
    """Write the sources of a site, with graphs or with the same text alone."""
    docs.mkdir(parents=True, exist_ok=True)
    ours = ["sphinx_fxgraph"] if graphs else []
    conf = CONF.format(name=site.name, extensions=[*site.extensions, *ours], theme=site.theme)
    (docs / "conf.py").write_text(conf + ("fxgraph_cache_dir = '../cache'\n" if graphs else ""))
    numbers = range(0, len(site.models), PER_PAGE)
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
    for number, (target, inputs) in enumerate(site.models[first : first + PER_PAGE], first):
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
    pages = docs.parent / "build" / "html"
    before = {path: path.stat().st_mtime_ns for path in pages.rglob("*.html")}
    warnings += build(docs, "html")[1]
    rewritten = [path for path, stamp in before.items() if path.stat().st_mtime_ns != stamp and "model" in path.name]
    shutil.rmtree(docs.parent / "build")
    cached, told = build(docs, "html", "-D", "fxgraph_mode=cached", torch=False)
    for builder in BUILDERS[1:]:
        told += build(docs, builder, "-D", "fxgraph_mode=cached", torch=False)[1]
    without, _ = build(plain, "html")
    right = equal(docs.parent / "cache")
    return {
        "site": site.name,
        "graphs": len(site.models),
        "warnings": len(warnings) + len(told),
        "rewritten": len(rewritten),
        "first (s)": round(first, 1),
        "cached (s)": round(cached, 1),
        "without us (s)": round(without, 1),
        "equal to PyTorch": right,
    }


def equal(cache: Path) -> int:
    """Return how many records have the number of parameters that plain PyTorch counts."""
    records = [json.loads(path.read_text()) for path in cache.glob("*.json") if not path.name.endswith("layout.json")]
    found = {record["spec"]["target"]: record["totals"]["parameters"] for record in records}
    code = "import json, sys\nprint(json.dumps([eval_model(t) for t in json.load(sys.stdin)]))"
    script = (
        "import importlib, torch\n"
        "def eval_model(target):\n"
        "    names = {}\n"
        "    for name in ('monai.networks.nets', 'kornia.feature', 'neuralop.models', "
        "'snntorch', 'torch_geometric.nn'):\n"
        "        if target.startswith(name.split('.')[0]) or name.split('.')[0] + '.' in target:\n"
        "            importlib.import_module(name)\n"
        "            names[name.split('.')[0]] = importlib.import_module(name.split('.')[0])\n"
        "    model = eval(target, {'torch': torch, **names})\n"
        "    return sum(p.numel() for p in model.parameters())\n" + code
    )
    targets = list(found)
    run = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(targets), capture_output=True, text=True, check=True
    )
    counts = json.loads(run.stdout.splitlines()[-1])
    return sum(found[target] == count for target, count in zip(targets, counts, strict=True))


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
