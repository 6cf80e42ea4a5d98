"""Labels as a browser sets them: which ones are wider than their boxes."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

FONTS = {"DejaVu": ("DejaVu Sans", "DejaVu Sans Mono"), "Liberation": ("Liberation Sans", "Liberation Mono")}
"""Those of Debian, for the two stacks of the drawing."""

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")

_MEASURE = """
() => {
  const found = [];
  for (const group of document.querySelectorAll('.fxg-op, .fxg-closed, .fxg-svg :has(> .fxg-frame)')) {
    const own = [...group.children].flatMap(e => e.matches('a') ? [...e.children] : e);
    const box = own.find(e => e.matches('.fxg-box, .fxg-frame') && !e.matches('.fxg-sheet')).getBBox();
    const chip = own.find(e => e.matches('.fxg-chip'));
    for (const text of own.filter(e => e.tagName == 'text' && !e.matches('.fxg-note'))) {
      const said = text.getBBox();
      const inside = chip && said.y > chip.getBBox().y - 2 ? chip.getBBox() : box;
      if (said.x < inside.x || said.x + said.width > inside.x + inside.width
          || said.y < box.y - 1 || said.y + said.height > box.y + box.height + 1)
        found.push(text.textContent);
    }
  }
  return found;
}
"""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(_FLAGS))
        yield browser
        browser.close()


def overflowing(browser: Browser, pictures: Iterable[str]) -> list[dict[str, list[str]]]:
    """Of each picture the labels that do not fit into their boxes, by font."""
    sheet = Path(__file__).parents[2].joinpath("sphinx_fxgraph", "static", "fxgraph.css").read_text(encoding="utf-8")
    found = []
    with browser.new_page() as page:
        for picture in pictures:
            by_font = {}
            for name, (sans, mono) in FONTS.items():
                forced = (
                    f".fxg-svg, .fxg-svg text {{ font-family: {json.dumps(sans)} }} "
                    f".fxg-svg :is(.fxg-name, .fxg-attr, .fxg-span) {{ font-family: {json.dumps(mono)} !important }}"
                )
                page.set_content(
                    f"<!doctype html><style>{sheet}</style><style>{forced}</style>"
                    f'<figure class="fxgraph">{picture}</figure>'
                )
                by_font[name] = page.evaluate(_MEASURE)
            found.append(by_font)
    return found
