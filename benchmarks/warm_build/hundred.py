"""A docs site of a hundred graphs, and the same site with the same drawings as static files."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

GRAPHS = 100
PER_PAGE = 5

MODELS = '''
"""A hundred residual networks of plain torch, no two alike."""

from torch import nn


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1)
        self.norm1 = nn.BatchNorm2d(width)
        self.act = nn.ReLU()
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1)
        self.norm2 = nn.BatchNorm2d(width)
        self.skip = nn.Conv2d(channels, width, 1, stride) if stride > 1 or channels != width else nn.Identity()

    def forward(self, x):
        y = self.norm2(self.conv2(self.act(self.norm1(self.conv1(x)))))
        return self.act(self.skip(x) + y)


class Net(nn.Module):
    def __init__(self, number):
        super().__init__()
        width = 8 + 4 * (number % 10)
        depths = [1 + (number // 10 + stage) % 3 for stage in range(3)]
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU())
        stages, channels = [], width
        for stage, depth in enumerate(depths):
            wide = width * 2**stage
            blocks = [Block(channels if n == 0 else wide, wide, 2 if n == 0 else 1) for n in range(depth)]
            stages.append(nn.Sequential(*blocks))
            channels = wide
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(channels, 10)

    def forward(self, image):
        return self.head(self.stages(self.stem(image)).mean((2, 3)))
'''

TEXT = textwrap.fill(
    "This network is one of a hundred that differ in their widths and in the depths of their stages. The text stands "
    "here because a page of a real site has some, too, and Sphinx has to read and write it in either case. " * 2,
    100,
)


def write(folder: Path, *, graphs: bool, table: str = "") -> Path:
    """Write the site's sources.

    Args:
        folder: becomes the folder of the docs.
        graphs: whether pages have directives, or figures of files ``graph-<n>.svg``.
        table: of the directives; everything by default.
    """
    docs = folder / "docs"
    docs.mkdir(parents=True)
    (folder / "hundred.py").write_text(MODELS)
    extension = "extensions = ['sphinx_fxgraph']\nfxgraph_cache_dir = '../cache'\n" if graphs else ""
    path = f"import sys\nsys.path.insert(0, {str(folder)!r})\n" if graphs else ""
    (docs / "conf.py").write_text(f"{path}project = 'hundred'\nhtml_theme = 'basic'\n{extension}")
    pages = [f"page{number:02}" for number in range(GRAPHS // PER_PAGE)]
    (docs / "index.rst").write_text("Hundred\n=======\n\n.. toctree::\n\n" + "".join(f"   {page}\n" for page in pages))
    for number, page in enumerate(pages):
        parts = [f"Page {number}\n{'=' * 8}\n"]
        for graph in range(number * PER_PAGE, (number + 1) * PER_PAGE):
            parts.append(f"Net {graph}\n{'-' * 8}\n\n{TEXT}\n")
            parts.append(_graph(graph, table) if graphs else _figure(graph))
        (docs / f"{page}.rst").write_text("\n".join(parts))
    return docs


def _graph(number: int, table: str) -> str:
    option = f"   :table: {table}\n" if table else ""
    named = f"   :caption: Net {number}\n   :name: net-{number}\n"
    return f".. fxgraph:: hundred.Net({number})\n   :inputs: 1, 3, 64, 64\n{named}{option}"


def _figure(number: int) -> str:
    return f".. figure:: graph-{number:02}.svg\n   :name: net-{number}\n\n   Net {number}\n"


def drawings(output: Path) -> list[str]:
    """The drawings on the pages that were built, in their order."""
    found = []
    for page in sorted(output.glob("page*.html")):
        found += re.findall(r"<svg .*?</svg>", page.read_text(encoding="utf-8"), re.DOTALL)
    return found
