"""The eight hues of the categories, on light and on dark pages.

Never colour alone: every box says its kind in words. All pairs keep a contrast of 4.5:1 for text and 3:1 for lines
(WCAG 2.2, 1.4.3 and 1.4.11), which a test computes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Colours:
    """One appearance. Fill and stroke by category; the rest by what it is used for."""

    paper: str
    ink: str
    muted: str
    edge: str
    weak: str
    frame: str
    frames: tuple[str, str, str]
    """Fill of module frames by depth."""
    fills: dict[str, str]
    strokes: dict[str, str]
    shares: tuple[str, ...]
    """Fill of boxes by their share of parameters, MACs or memory (see `shares`); all text on them is ``ink``."""


ACCENT = "#c2410c"
"""Of what failed, in print; the style sheet has one for each page."""

LIGHT = Colours(
    paper="#ffffff",
    ink="#1c2430",
    muted="#545f6f",
    edge="#667182",
    weak="#7d8897",
    frame="#c3ccd8",
    frames=("#f1f4f8", "#fafbfd", "#e8edf4"),
    fills={
        "matmul": "#dbe9ff", "norm": "#dff4e2", "act": "#ffe9cf", "pool": "#fbdfe8", "math": "#fff4c2",
        "shape": "#eceff3", "param": "#efe6fb", "io": "#ffffff", "other": "#e4f3f3",
    },
    strokes={
        "matmul": "#4d7fd0", "norm": "#3f8f52", "act": "#b87420", "pool": "#c05f83", "math": "#97800f",
        "shape": "#77828f", "param": "#8a66c2", "io": "#3c4757", "other": "#3f8a8c",
    },
    shares=("#ffffff", "#fff3e3", "#ffe4c4", "#ffd0a0", "#fdb77a", "#f79a55", "#ee7d33"),
)  # fmt: skip

DARK = Colours(
    paper="#14181f",
    ink="#e6eaf0",
    muted="#a3aebd",
    edge="#7f8b9c",
    weak="#6b7687",
    frame="#3a4557",
    frames=("#1a202a", "#171c25", "#212936"),
    fills={
        "matmul": "#1d3357", "norm": "#1c3b28", "act": "#44301a", "pool": "#43222f", "math": "#3d3617",
        "shape": "#252c37", "param": "#2f2544", "io": "#14181f", "other": "#17383a",
    },
    strokes={
        "matmul": "#5f90e0", "norm": "#58a86b", "act": "#c98d43", "pool": "#cf6f94", "math": "#b79d35",
        "shape": "#7b8798", "param": "#9b80c9", "io": "#b4bfcd", "other": "#4fa3a5",
    },
    shares=("#14181f", "#2b2319", "#3f2c18", "#553617", "#6b4016", "#824a15", "#995514"),
)  # fmt: skip
