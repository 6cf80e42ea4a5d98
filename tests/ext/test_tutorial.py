"""The tutorial: what it tells the reader to write builds, and is as short as it says."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import pytest
from conftest import DOCS

if TYPE_CHECKING:
    from conftest import Project

pytestmark = pytest.mark.torch

PACKAGE = """
from torch import nn

class SmallNet(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, width, 3), nn.Linear(width, 2)
    def forward(self, x):
        return self.head(self.conv(x).relu().mean((2, 3)))

def list_models():
    return [f"net{number}" for number in range(1, 11)]

for name in list_models():
    globals()[name] = (lambda width: lambda: SmallNet(width))(int(name[3:]))
"""


def blocks(section: str) -> dict[str, str]:
    """The code of a section of the tutorial by its caption."""
    text = (DOCS / "usage" / "tutorial.rst").read_text(encoding="utf-8")
    part = text[text.index(f"{section}\n---") :].partition("\nA site for ten" if "first" in section else "\0")[0]
    found = re.findall(r"\.\. code-block:: \w+\n   :caption: (\S+)\n\n((?:   .*\n|\n)+)", part)
    return {caption: textwrap.dedent(code).strip() for caption, code in found}


@pytest.mark.parametrize(
    ("section", "most", "graphs"), [("Your first figure", 5, 1), ("A site for ten models", 15, 10)]
)
def test_the_tutorial_builds_in_as_many_lines_as_it_says(
    project: Project, section: str, most: int, graphs: int
) -> None:
    first, own = blocks("Your first figure"), blocks(section)
    written = [line for code in own.values() for line in code.splitlines() if line.strip()]
    assert len(written) <= most
    (project.source.parent / "src").mkdir()
    (project.source.parent / "src" / "mypackage.py").write_text(PACKAGE)
    conf = "\n".join(dict.fromkeys((first["conf.py"], own["conf.py"]))).replace(
        '"../src"', f'"{project.source.parent}/src"'
    )
    project.write("conf.py", f"project = 'mine'\n{conf}\n")
    project.write("index.rst", f"Mine\n====\n\n{own['index.rst']}\n")
    build = project.build("html", "-W")
    assert (build.warnings, build.status) == ("", 0)
    assert sum(page.read_text().count('<figure class="fxgraph') for page in build.folder.rglob("*.html")) == graphs
