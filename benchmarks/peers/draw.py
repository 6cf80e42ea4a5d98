"""The same three models drawn by this package and by its peers, each as its own tool draws it by default.

Run ``python benchmarks/peers/draw.py --out docs/design/peers`` in an environment with torch, torchview, torchviz,
torchlens, pydot and ``sphinx-fxgraph[print]``, and Graphviz on PATH. It writes an image of each drawing, scaled down to
a place on a page, and ``peers.csv`` with the sizes of the drawings before that.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import cairosvg
import torch
from PIL import Image
from torch import Tensor, nn

from sphinx_fxgraph import model_record

_ROOT = Path(__file__).parents[2]
sys.path += [str(_ROOT / "docs"), str(_ROOT / "benchmarks" / "legibility")]  # the models

Called = tuple[nn.Module, tuple[Tensor, ...]]

_SVG = "{http://www.w3.org/2000/svg}"
_WIDTH, _HEIGHT = 620, 900
"""Pixels of an image at most."""
_COLOURS = 24
_MOST_SECONDS = 60
"""Of CPU, for one drawing."""


def residual_block() -> Called:
    """The first block of ResNet's second stage, with a projection."""
    from zoo.resnet import BasicBlock

    return BasicBlock(64, 128, 2), (torch.rand(1, 64, 56, 56),)


def transformer_block() -> Called:
    """A layer of BERT-base, one that ``torch.fx`` can trace."""
    from attention import BertLayer

    return BertLayer(768, 12, 3072), (torch.rand(1, 128, 768), torch.zeros(1, 1, 1, 128))


def densenet() -> Called:
    """A whole network."""
    from zoo.densenet import densenet121

    return densenet121(), (torch.rand(1, 3, 224, 224),)


MODELS: dict[str, Callable[[], Called]] = {
    "residual-block": residual_block,
    "transformer-block": transformer_block,
    "densenet121": densenet,
}


def ours(model: nn.Module, args: tuple[Tensor, ...]) -> str:
    """The default view."""
    return model_record(model, args).to_svg()


def torchview(model: nn.Module, args: tuple[Tensor, ...]) -> str:
    """``draw_graph(model, input_data)``."""
    from torchview import draw_graph

    return dot(draw_graph(model, input_data=list(args)).visual_graph.source)


def torchviz(model: nn.Module, args: tuple[Tensor, ...]) -> str:
    """``make_dot(model(x), dict(model.named_parameters()))``."""
    from torchviz import make_dot

    return dot(make_dot(model(*args), dict(model.named_parameters())).source)


def graph_drawer(model: nn.Module, args: tuple[Tensor, ...]) -> str:
    """``FxGraphDrawer`` on the symbolic trace, with shapes."""
    from torch.fx import symbolic_trace
    from torch.fx.passes.graph_drawer import FxGraphDrawer
    from torch.fx.passes.shape_prop import ShapeProp

    traced = symbolic_trace(model)
    ShapeProp(traced).propagate(*args)
    return dot(FxGraphDrawer(traced, "model").get_dot_graph().to_string())


def torchlens(model: nn.Module, args: tuple[Tensor, ...]) -> str:
    """``trace(model, args).draw()``, which runs ``dot`` itself: one that is stopped as those above."""
    from torchlens import trace

    path = os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        limited = Path(folder, "dot")
        limited.write_text(f'#!/bin/sh\nexec prlimit --cpu={_MOST_SECONDS} {shutil.which("dot")} "$@"\n')
        limited.chmod(0o755)
        os.environ["PATH"] = f"{folder}{os.pathsep}{path}"
        try:
            trace(model, list(args)).draw(vis_save_only=True, vis_outpath=f"{folder}/graph", vis_fileformat="svg")
            return Path(folder, "graph.svg").read_text(encoding="utf-8")
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, FileNotFoundError) as error:
            raise TooLongError from error
        finally:
            os.environ["PATH"] = path


TOOLS: dict[str, Callable[[nn.Module, tuple[Tensor, ...]], str]] = {
    "sphinx-fxgraph": ours,
    "torchview": torchview,
    "torchviz": torchviz,
    "TorchLens": torchlens,
    "FxGraphDrawer": graph_drawer,
}


class TooLongError(Exception):
    """Graphviz was stopped."""


def dot(source: str) -> str:
    """SVG, as Graphviz draws it.

    Raises:
        TooLongError: that takes more than `_MOST_SECONDS`.
    """
    limit = ["prlimit", f"--cpu={_MOST_SECONDS}"]
    run = subprocess.run([*limit, "dot", "-Tsvg"], input=source, capture_output=True, check=False, encoding="utf-8")
    if run.returncode < 0:
        raise TooLongError
    run.check_returncode()
    return run.stdout


def measured(svg: str) -> tuple[int, int, int, int, int]:
    """Boxes, elements, width, height and bytes of a drawing; sizes in CSS pixels, of which a point has 4/3."""
    root = ET.fromstring(svg)  # noqa: S314 - a tool that we have run wrote it
    elements = sum(1 for _ in root.iter())
    boxes = sum(1 for each in root.iter(f"{_SVG}g") if each.get("class") == "node")
    if not boxes:  # ours has no classes in print: a box with all its texts is a group with a place
        groups = [each for each in root.iter(f"{_SVG}g") if each.get("transform")]
        boxes = sum(1 for each in groups if not each.findall(f"{_SVG}g"))
    width, height = (
        float(text.removesuffix("pt")) * (4 / 3 if text.endswith("pt") else 1)
        for text in (root.get("width", "0"), root.get("height", "0"))
    )
    return boxes, elements, round(width), round(height), len(svg.encode())


def image(svg: str, width: int, height: int) -> bytes:
    """A PNG of few colours that fits into its place."""
    scale = min(1.0, _WIDTH / width, _HEIGHT / height)
    wide = max(1, round(width * scale))
    # Drawn larger and scaled down, since cairo leaves lines out that are much thinner than a pixel.
    drawn = cairosvg.svg2png(bytestring=svg.encode(), output_width=2 * wide, background_color="white", unsafe=True)
    picture = Image.open(io.BytesIO(drawn)).convert("RGB")
    picture = picture.resize((wide, max(1, round(height * scale))), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    picture.quantize(_COLOURS).save(written, "PNG", optimize=True)
    return written.getvalue()


def main() -> None:
    """Draw, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder of the images and the table")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    rows: list[tuple[object, ...]] = []
    for name, make in MODELS.items():
        for tool, draw in TOOLS.items():
            model, args = make()
            try:
                svg = draw(model.eval(), args)
            except TooLongError:
                rows.append((name, tool, "", "", f"not drawn in {_MOST_SECONDS} s of CPU", ""))
                print(*rows[-1], flush=True)
                continue
            boxes, elements, width, height, size = measured(svg)
            folder.joinpath(f"{name}-{tool.lower()}.png").write_bytes(image(svg, width, height))
            rows.append(
                (name, tool, f"{boxes:,}", f"{elements:,}", f"{width:,} × {height:,}", f"{size / 1000:,.0f} kB")
            )
            print(*rows[-1], flush=True)
    with folder.joinpath("peers.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("Model", "Drawn by", "Boxes", "SVG elements", "Size in pixels", "SVG"))
        table.writerows(rows)
    graphviz = subprocess.run(["dot", "-V"], capture_output=True, check=True, encoding="utf-8").stderr.split()[4]  # noqa: S607
    made_by = [
        f"{package} {version(package)}"
        for package in ("sphinx-fxgraph", "torch", "torchview", "torchviz", "torchlens", "pydot")
    ]
    folder.joinpath("versions.txt").write_text(", ".join([*made_by, f"Graphviz {graphviz}"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
