"""The looks of classes: declared once, as attributes for print and as rules of the style sheet for pages.

Run ``python -m sphinx_fxgraph.render.looks`` after a change: it writes the part of ``static/fxgraph.css`` that is made
from the palette.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from sphinx_fxgraph.render.colors import DARK, LIGHT, Colours
from sphinx_fxgraph.view import labels
from sphinx_fxgraph.view.annotations import CATEGORIES

Look = Mapping[str, str | float]
"""Properties by name; ``$edge`` is a colour of the palette, ``$mono`` a list of fonts."""

_FONTS = {
    "$sans": (
        'Inter, "Helvetica Neue", Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif',
        "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif",
    ),
    "$mono": (
        'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace',
        "'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace",
    ),
}
"""Fonts on a page and in print, where some readers take only the first of a list."""

_BOLD: Look = {"font-weight": 700}
_MONO: Look = {"font-family": "$mono", "font-size": labels.NAME_SIZE, "fill": "$muted"}

_TEXT: Look = {"font-family": "$sans", "font-size": labels.KIND_SIZE, "fill": "$ink"}
"""What every text looks like, unless its classes say otherwise."""

TEXTS: dict[str, Look] = {
    "fxg-head": {"text-anchor": "middle"},
    "fxg-line": {"text-anchor": "start"},
    "fxg-kind": _BOLD,
    "fxg-detail": {"font-size": labels.DETAIL_SIZE, "fill": "$muted"},
    "fxg-shape": {"font-size": labels.SHAPE_SIZE, "text-anchor": "middle"},
    "fxg-name": {**_MONO, "text-anchor": "middle"},
    "fxg-attr": {**_MONO, "font-weight": 600},
    "fxg-span": _MONO,
    "fxg-triangle": {"fill": "$muted"},
    "fxg-count": {**_BOLD, "fill": "$highlight"},
    "fxg-letter": {**_BOLD, "fill": "$highlight"},
    "fxg-disc-letter": {"font-size": labels.SHAPE_SIZE, "text-anchor": "middle", "fill": "$paper"},
    "fxg-note": {"font-size": labels.SHAPE_SIZE, "text-anchor": "middle", "fill": "$muted"},
    "fxg-percent": {**_BOLD, "font-size": labels.SHAPE_SIZE, "text-anchor": "end"},
    "fxg-key": {"font-size": labels.SHAPE_SIZE, "fill": "$muted"},
    "fxg-right": {"text-anchor": "end"},
}
"""Looks of lines of text and of their parts, by class."""

_SHADED: Look = {"fill": "$ink"}
"""Of every text in a box that is coloured by its share."""

SHAPES: dict[str, Look] = {
    "fxg-back": {"fill": "$paper"},
    "fxg-frame": {"stroke": "$frame"},
    **{f"fxg-depth-{depth} > fxg-frame": {"fill": f"$frame-{depth}"} for depth in range(3)},
    "fxg-panel > fxg-frame": {"fill": "$frame-1"},
    "fxg-edge": {"fill": "none", "stroke": "$edge", "stroke-width": 1.3},
    "fxg-weak": {"stroke": "$weak", "stroke-dasharray": "4 3"},
    "fxg-tip-edge": {"fill": "$edge"},
    "fxg-tip-weak": {"fill": "$weak"},
    "fxg-dots": {"fill": "none", "stroke": "$edge", "stroke-width": 4, "stroke-linecap": "round"},
    "fxg-chip": {"fill": "$paper", "stroke": "$weak"},
    "fxg-disc": {"fill": "$highlight", "stroke": "$paper"},
    "fxg-box": {"stroke-width": 1.2},
    "fxg-dead": {"opacity": 0.55},
    "fxg-nontensor > fxg-box": {"stroke-dasharray": "4 3"},
    **{f"fxg-{name} > fxg-box": {"fill": f"${name}", "stroke": f"${name}-line"} for name in CATEGORIES},
    "fxg-closed > fxg-box": {"fill": "$io", "stroke": "$io-line"},
    "fxg-shaded > fxg-box": {"stroke": "$io-line"},
    **{f"fxg-share-{shade} > fxg-box": {"fill": f"$share-{shade}"} for shade in range(len(LIGHT.shares))},
    "fxg-failed > fxg-box": {"stroke-dasharray": "none", "stroke": "$accent", "stroke-width": 2.5},
}
"""Looks of shapes, by their class or by the class of the element around them and their own. Later ones are stronger."""


_LIGHT = LIGHT.variables()


def _print_value(value: str | float) -> str | float:
    if isinstance(value, str) and value.startswith("$"):
        return _FONTS[value][1] if value in _FONTS else _LIGHT[value[1:]]
    return value


@functools.cache
def shape_look(around: str, classes: str) -> Look:
    """Return the attributes of a shape in print.

    Args:
        around: the classes of the element around it.
        classes: its own.
    """
    outer, own, found = around.split(), classes.split(), dict[str, str | float]()
    for selector, look in SHAPES.items():
        parent, _, name = selector.rpartition(" > ")
        if name in own and (not parent or parent in outer):
            found |= look
    return {key: _print_value(value) for key, value in found.items() if value != "none" or key == "fill"}


@functools.cache
def text_look(*classes: str, shaded: bool = False) -> Look:
    """Return the attributes of a text in print.

    Args:
        classes: those of the line, and those of the part of it.
        shaded: whether it stands in a box that is coloured by its share.
    """
    found = dict(_TEXT)
    for names in classes:
        own = names.split()
        for name, look in TEXTS.items():
            if name in own:
                found |= look
    if shaded:
        found |= _SHADED
    return {key: _print_value(value) for key, value in found.items()}


# -- the style sheet

_DARK_PAGES = (
    ':root:is([data-fxg-page="dark"], [data-theme="dark"], .dark):not([data-fxg-page="light"])',
    ':root:not([data-fxg-page="light"]) body:is([data-theme="dark"], [data-md-color-scheme="slate"], .dark)',
)
"""Dark where the page is. The script finds out by the colour of the page's text (data-fxg-page); the other names are
those of themes, for readers without script: furo, pydata and book, immaterial, and those that set a class."""
_AROUND = ("paper", "ink", "muted", "accent")
"""The colours of the tables and the toolbar, beside ``line``."""
BEGIN = "/* -- made from the palette by sphinx_fxgraph/render/looks.py"
END = "/* -- end of what is made from the palette */"


def css() -> str:
    """Return the part of the style sheet that is made from the palette."""
    return "\n".join(
        [
            BEGIN + " -- */",
            *_rule(".fxgraph,\n.fxg-tables", _around(LIGHT)),
            *_rule(_dark(":is(.fxgraph, .fxg-tables)"), _around(DARK)),
            *_rule(".fxgraph", _variables(LIGHT)),
            *_rule(_dark(".fxgraph"), _variables(DARK)),
            *_rule(".fxg-svg", {"background": "var(--fxg-paper)", "font-family": _FONTS["$sans"][0]}),
            *_rule(".fxg-svg text", {name: value for name, value in _TEXT.items() if name != "font-family"}),
            *(line for name, look in TEXTS.items() for line in _rule(f".fxg-svg .{name}", look)),
            *_rule(".fxg-svg .fxg-shaded :is(text, tspan)", _SHADED),
            *(line for name, look in SHAPES.items() for line in _rule(_selector(name), look)),
            "@media print {",
            *(f"  {line}" if line else "" for line in _rule(".fxgraph.fxgraph", _variables(LIGHT))),
            "}",
            END,
        ]
    )


def _around(colours: Colours) -> Look:
    found = colours.variables()
    return {**{f"--fxg-{name}": found[name] for name in _AROUND}, "--fxg-line": colours.frame}


def _variables(colours: Colours) -> Look:
    return {f"--fxg-{name}": value for name, value in colours.variables().items()}


def _dark(element: str) -> str:
    return ",\n".join(f"{page} {element}" for page in _DARK_PAGES)


def _selector(name: str) -> str:
    return " > ".join(f".{part}" for part in name.split(" > "))


def _rule(selector: str, look: Look) -> Iterator[str]:
    yield f"{selector} {{"
    for name, value in look.items():
        yield f"  {name}: {_css_value(name, value)};"
    yield "}"
    yield ""


def _css_value(name: str, value: str | float) -> str:
    if isinstance(value, str) and value.startswith("$"):
        return _FONTS[value][0] if value in _FONTS else f"var(--fxg-{value[1:]})"
    return f"{value:g}px" if name == "font-size" and not isinstance(value, str) else str(value)


def updated(sheet: str) -> str:
    """Return a style sheet with the part between the two marks made anew."""
    before, _, rest = sheet.partition(BEGIN)
    return before + css() + rest.partition(END)[2]


if __name__ == "__main__":
    file = Path(__file__).parents[1] / "static" / "fxgraph.css"
    file.write_text(updated(file.read_text(encoding="utf-8")), encoding="utf-8")
