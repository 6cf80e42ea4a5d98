"""The first screen of torchvista, Netron and Model Explorer, which show a model in a browser, on the models of draw.py.

    python benchmarks/peers/screens.py --out docs/design/peers

needs torch, torchvista, netron, ai-edge-model-explorer, Playwright and Chromium, and what ``draw.py`` needs. Each tool
opens a model as it does by default, in a window of 1100 × 900 pixels; Netron's notice is accepted first. It writes an
image of each screen and ``screens.csv`` with what the browser has received, without the file of the model.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import itertools
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import torch
from draw import MODELS
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from torch import nn

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--use-gl=angle", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)  # fmt: skip
_WINDOW = {"width": 1100, "height": 900}
_PORTS = itertools.count(8190)
_WAIT = 8000
"""Milliseconds until a picture stands."""

Inputs = tuple[torch.Tensor, ...]


def torchvista(model: nn.Module, args: Inputs, folder: Path, page: Page) -> None:
    """``trace_model(model, inputs, export_format="html")``."""
    from torchvista import trace_model

    path = folder / "torchvista.html"
    trace_model(model, args if len(args) > 1 else args[0], export_format="html", export_path=str(path))
    page.goto(path.as_uri())


def netron(model: nn.Module, args: Inputs, folder: Path, page: Page) -> None:
    """``netron.start(file)`` on an exported program."""
    from netron import start

    path = folder / "model.pt2"
    torch.export.save(torch.export.export(model, args), path)
    host, port = start(str(path), browse=False)
    page.goto(f"http://{host}:{port}")
    page.get_by_text("Accept").click()


def model_explorer(model: nn.Module, args: Inputs, folder: Path, page: Page) -> None:  # noqa: ARG001 - as the others
    """``visualize_from_config`` on an exported program."""
    from model_explorer import config, visualize_from_config

    shown = config()
    shown.add_model_from_pytorch("model", torch.export.export(model, args))
    port = next(_PORTS)
    serve = functools.partial(visualize_from_config, shown, port=port, no_open_in_browser=True)
    threading.Thread(target=serve, daemon=True).start()
    time.sleep(6)
    page.goto(f"http://localhost:{port}/?data={shown.to_url_param_value()}")


TOOLS: dict[str, Callable[[nn.Module, Inputs, Path, Page], None]] = {
    "torchvista": torchvista,
    "Netron": netron,
    "Model Explorer": model_explorer,
}


def image(data: bytes) -> bytes:
    """Return the screen at the width of a place on a page, in few colours."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    picture = picture.resize((660, 540), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    picture.quantize(32).save(written, "PNG", optimize=True)
    return written.getvalue()


def main() -> None:
    """Open, look, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the images and the table")
    out = parser.parse_args().out
    warnings.simplefilter("ignore")
    rows = []
    with sync_playwright() as driver, tempfile.TemporaryDirectory(prefix="screens-") as name:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(_FLAGS))
        for model_name, make in MODELS.items():
            for tool, show in TOOLS.items():
                model, args = make()
                received: list[int] = []
                page = browser.new_page(viewport=_WINDOW)
                page.on("response", lambda answer, received=received: received.append(_size(answer)))
                start = time.monotonic()
                try:
                    show(model.eval(), args, Path(name), page)
                    page.wait_for_timeout(_WAIT)
                    data = page.screenshot()
                except Exception as error:  # noqa: BLE001 - whatever a tool raises is what it does with this model
                    rows.append((model_name, tool, "", f"{type(error).__name__}"))
                else:
                    file = f"{model_name}-{tool.lower().replace(' ', '-')}.png"
                    out.joinpath(file).write_bytes(image(data))
                    rows.append((model_name, tool, f"{sum(received) / 1000:,.0f} kB", "shown"))
                print(*rows[-1], f"{time.monotonic() - start:.0f} s", flush=True)
                page.close()
        browser.close()
    with out.joinpath("screens.csv").open("w", encoding="utf-8", newline="") as file_:
        table = csv.writer(file_, lineterminator="\n")
        table.writerow(("Model", "Shown by", "Received by the browser, without the model's file", "Result"))
        table.writerows(rows)
    packages = ("torch", "torchvista", "netron", "ai-edge-model-explorer")
    text = ", ".join(f"{package} {version(package)}" for package in packages)
    out.joinpath("screens-versions.txt").write_text(f"{text}\n", encoding="utf-8")
    os._exit(0)  # the servers of the tools have no end


def _size(answer: object) -> int:
    try:
        return 0 if ".pt2" in answer.url else len(answer.body())  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - a redirect has no body
        return 0


if __name__ == "__main__":
    main()
