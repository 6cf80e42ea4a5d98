"""The print variant of a picture as PDF or PNG, by CairoSVG (https://cairosvg.org), which need not be installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

POINTS = 0.75
"""Points of a PDF for each unit of the drawing."""
SCALE = 2.0
"""Pixels of a PNG for each unit of the drawing: sharp on the displays of today."""


class ConverterMissingError(Exception):
    """CairoSVG, or the cairo library that it uses, is not installed."""


def pdf(svg: str) -> bytes:
    """A PDF of one page in the picture's own size, its text selectable.

    Args:
        svg: what `print_svg` gives.

    Raises:
        ConverterMissingError: CairoSVG is not there.
    """
    return cast("bytes", _cairosvg().svg2pdf(bytestring=svg.encode()))


def png(svg: str, scale: float = SCALE) -> bytes:
    """Return a PNG.

    Args:
        svg: what `print_svg` gives.
        scale: pixels for each px of the drawing.

    Raises:
        ConverterMissingError: CairoSVG is not there.
    """
    return cast("bytes", _cairosvg().svg2png(bytestring=svg.encode(), scale=scale))


CONVERTERS: dict[str, Callable[[str], bytes]] = {".pdf": pdf, ".png": png}
"""By suffix of the file."""


def missing() -> str:
    """Why nothing can be converted here; empty where it can."""
    try:
        _cairosvg()
    except ConverterMissingError as error:
        return str(error)
    return ""


def _cairosvg() -> Any:
    try:
        import cairosvg
    except ImportError:
        raise ConverterMissingError(
            "PDF and PNG need CairoSVG: pip install 'sphinx-fxgraph[print]'; svg and html need nothing"
        ) from None
    except OSError as error:  # it is there, and the library that it loads is not
        raise ConverterMissingError(
            f"PDF and PNG need the cairo library, on Debian the package libcairo2; CairoSVG says: {error}"
        ) from None
    return cairosvg
