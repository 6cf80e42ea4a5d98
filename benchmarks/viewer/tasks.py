"""Do the eleven tasks of a new reader in Chromium and count the interactions: a click, a text typed with Enter.

``python benchmarks/viewer/tasks.py --out docs/design/viewer-tasks.csv`` builds a small site with the models that the
tasks ask for, does every task as a reader would, and checks that the answer is on the screen. Three interactions are
the most that a task may take.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
MOST = 3

LAYER = "torch.nn.TransformerEncoderLayer(d_model=64, nhead=8, batch_first=True)"
ENCODER = f"torch.nn.TransformerEncoder({LAYER}, num_layers=12)"
MASKED = """
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm = nn.LayerNorm(32)
    def forward(self, x, mask):
        return self.norm(x + self.attention(x, x, x, attn_mask=mask)[0])

class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block()
    def forward(self, x, causal):
        return self.second(self.first(x, causal), causal.triu())
"""
PAGES = {
    "resnet": ("zoo.resnet.resnet18", "1, 3, 224, 224"),
    "densenet": ("zoo.densenet.densenet121", "1, 3, 224, 224"),
    "encoder": (ENCODER, "1, 16, 64"),
    "masked": ("masked.Masked", "(1, 8, 32), (8, 8)"),
}


class Reader:
    """Does what a reader does, and counts it."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def click(self, selector: str, text: str | None = None) -> None:
        """Click on the first such thing."""
        found = self.page.locator(selector, has_text=text) if text else self.page.locator(selector)
        found.first.click()
        self.page.wait_for_timeout(400)
        self.count += 1

    def search(self, text: str) -> None:
        """Type into the search field and press Enter: one interaction."""
        field = self.page.get_by_role("combobox").first
        field.fill(text)
        self.page.locator(".fxg-hits li").first.wait_for()
        field.press("Enter")
        self.page.wait_for_timeout(400)
        self.count += 1

    def sees(self, selector: str, text: str) -> bool:
        """Return whether a text is in sight."""
        found = self.page.locator(selector, has_text=text)
        return found.count() > 0 and found.first.is_visible()


def halves(reader: Reader) -> bool:
    """Where does layer3 halve the resolution?"""
    reader.search("layer3 s2")
    reader.click(".fxg-here")
    return reader.sees("aside.fxg-panel-node", "14×14") and reader.sees("aside.fxg-panel-node", "28×28")


def mask(reader: Reader) -> bool:
    """What feeds the second attention's mask?"""
    reader.search("triu")
    reader.click(".fxg-here")
    return reader.sees("aside.fxg-panel-node", "causal")


def largest(reader: Reader) -> bool:
    """Which module has the most parameters?"""
    reader.click(".fxg-node-rows > summary")
    reader.click(".fxg-table-bar button", "Modules")
    reader.click(".fxg-filled thead button", "parameters")
    return "layer4" in reader.page.locator(".fxg-filled tbody tr").first.inner_text()


def heads(reader: Reader) -> bool:
    """How many heads has layer 7?"""
    reader.search("layers.7 heads")
    reader.click(".fxg-here")
    return reader.sees("aside.fxg-panel-node", "8 heads") and reader.sees("aside.fxg-panel-node", "layers.7")


def find(reader: Reader) -> bool:
    """Find denseblock3.denselayer7.conv2."""
    reader.search("denseblock3.denselayer7.conv2")
    return reader.page.locator('.fxg-here[data-path="features.denseblock3.denselayer7.conv2"]').is_visible()


def open_all(reader: Reader) -> bool:
    """Open all dense layers."""
    reader.click(".fxg-bar summary", "Open")
    reader.click(".fxg-bar button", "Each DenseLayer")
    return reader.page.locator(".fxg-closed[data-type$='DenseLayer']:not(.fxg-panel *)").count() == 0


def link(reader: Reader) -> bool:
    """Get a link to a node."""
    reader.click("[id='fig-layer1.0.conv1'], .fxg-op")
    reader.click(".fxg-panel-actions button", "Copy link")
    return reader.sees(".fxg-panel-actions button", "Copied")


def source(reader: Reader) -> bool:
    """See the source of a module."""
    reader.search("BasicBlock")
    reader.click(".fxg-here .fxg-kind")
    return reader.page.locator("aside.fxg-panel-node a[href^='https://code.example/zoo/resnet.py#L']").count() > 0


def files(reader: Reader) -> bool:
    """Save SVG, PNG and DOT."""
    reader.click(".fxg-bar summary", "⋯")
    menu = reader.page.locator(".fxg-bar .fxg-menu[open]")
    for name in ("SVG", "PNG", "DOT"):
        assert menu.get_by_text(f"Save as {name}").is_visible()
    with reader.page.expect_download() as saved:
        menu.get_by_text("Save as SVG").click()
    reader.count += 1
    return saved.value.path().stat().st_size > 1000


def row_and_back(reader: Reader) -> bool:
    """Go to a node's row and back."""
    reader.click(".fxg-op")
    reader.click(".fxg-panel-actions button", "Show row")
    seen = reader.page.locator(".fxg-current").is_visible()
    reader.click(".fxg-current a")
    return seen and reader.page.locator(".fxg-target").is_visible()


def print_it(reader: Reader) -> bool:
    """Print the figure: on one sheet."""
    reader.count += 1
    reader.page.emulate_media(media="print")
    box = reader.page.locator(".fxg-svg").bounding_box()
    return bool(box and box["height"] < 1000)


TASKS: list[tuple[Callable[[Reader], bool], str]] = [
    (halves, "resnet"), (mask, "masked"), (largest, "resnet"), (heads, "encoder"), (find, "densenet"),
    (open_all, "densenet"), (link, "resnet"), (source, "resnet"), (files, "resnet"), (row_and_back, "resnet"),
    (print_it, "resnet"),
]  # fmt: skip


@contextmanager
def site() -> Iterator[Path]:
    """Build the pages."""
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder, "docs")
        docs.mkdir()
        (docs / "masked.py").write_text(MASKED, encoding="utf-8")
        (docs / "conf.py").write_text(
            f"import sys\nsys.path[:0] = [{str(docs)!r}, {str(ROOT / 'docs')!r}]\n"
            "extensions = ['sphinx_fxgraph']\nhtml_theme = 'furo'\n"
            "fxgraph_source_url = 'https://code.example/{path}#L{line}'\n",
            encoding="utf-8",
        )
        for name, (target, inputs) in PAGES.items():
            text = f":orphan:\n\n{name}\n{'=' * 9}\n\n.. fxgraph:: {target}\n   :inputs: {inputs}\n   :name: fig\n"
            (docs / f"{name}.rst").write_text(text.replace(":name: fig", f":name: fig-{name}"), encoding="utf-8")
        (docs / "index.rst").write_text("Index\n=====\n", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "sphinx", "-q", "-b", "html", str(docs), f"{folder}/html"], check=True)
        yield Path(folder, "html")


def run(browser: Browser, page_file: Path, task: Callable[[Reader], bool]) -> dict[str, Any]:
    """Do one task on a fresh page."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(page_file.as_uri())
    page.locator(".fxg-bar").wait_for()
    reader = Reader(page)
    try:
        answered = task(reader)
    except Exception as error:  # noqa: BLE001 - a task that cannot be done is a result
        print(task.__name__, str(error)[:400])
        answered = False
    page.close()
    return {"task": str(task.__doc__).rstrip(), "interactions": reader.count, "answered": "yes" if answered else "no"}


def main() -> int:
    """Do all tasks; return 1 if one is not answered in three interactions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    with site() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        rows = [run(browser, folder / f"{name}.html", task) for task, name in TASKS]
        browser.close()
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(row)
    return int(any(row["answered"] == "no" or row["interactions"] > MOST for row in rows))


if __name__ == "__main__":
    sys.exit(main())
