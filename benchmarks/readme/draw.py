"""The picture in README.md: the U-Net of the gallery as its page shows it, in Chromium, light and dark.

``python benchmarks/readme/draw.py`` needs torch, Playwright and Chromium, and writes
docs/images/figure_{light,dark}.png.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from sphinx_fxgraph import model_record

_DOCS = Path(__file__).parents[2] / "docs"
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu")


def main() -> None:
    """Draw the gallery's U-Net and take a screenshot in each colour scheme."""
    import torch

    sys.path.insert(0, str(_DOCS))
    from zoo.unet import UNet  # the gallery's model

    page_text = model_record(UNet(), torch.empty(1, 3, 256, 256)).to_html(panels="yes")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder, "page.html")
        file.write_text(page_text, encoding="utf-8")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(_FLAGS))
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": 1000, "height": 1200}, color_scheme=scheme, device_scale_factor=2
            )
            page.goto(file.as_uri())
            page.locator("svg.fxg-svg").first.screenshot(path=_DOCS / "images" / f"figure_{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
