"""The directives ``settings``, ``options``, ``palette`` and ``commands``: the reference, made from the code."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar, get_type_hints

from sphinx.util.docutils import SphinxDirective
from sphinx.util.rst import escape

from sphinx_fxgraph import cli, options
from sphinx_fxgraph.render.colors import DARK, LIGHT
from sphinx_fxgraph.sphinxext.config import Config

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


class Settings(SphinxDirective):
    """A ``confval`` for each field of the configuration."""

    def run(self) -> list[nodes.Node]:
        """The descriptions."""
        default = dataclasses.asdict(Config())
        hints = get_type_hints(Config)
        text = "".join(
            f".. confval:: fxgraph_{field.name}\n"
            f"   :type: {getattr(hints[field.name], '__origin__', hints[field.name]).__name__}\n"
            f"   :default: ``{default[field.name]!r}``\n\n"
            f"   {escape(field.metadata['help'])}.\n\n"
            for field in dataclasses.fields(Config)
        )
        return self.parse_text_to_nodes(text)


class Options(SphinxDirective):
    """``.. options:: capture``: the options of `CaptureOptions`, ``view`` and ``figure`` likewise."""

    required_arguments = 1
    scopes: ClassVar = {
        "capture": options.CaptureOptions,
        "view": options.ViewOptions,
        "figure": options.FigureOptions,
    }

    def run(self) -> list[nodes.Node]:
        """Return a definition list."""
        text = ""
        for option in options.declared(self.scopes[self.arguments[0]]):
            text += f"``:{option.name}:``\n   {option.help}\n"
            if option.choices:
                default = {True: "yes", False: "no"}.get(option.default, option.default)
                said = f"; ``{default}`` by default" if default else ""
                text += f"   One of {', '.join(f'``{word}``' for word in option.choices)}{said}.\n"
            elif option.default:
                text += f"   Default: ``{option.default}``.\n"
            text += "\n"
        return self.parse_text_to_nodes(text)


class Palette(SphinxDirective):
    """A table of the CSS variables with their values on light and on dark pages."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        pairs = zip(LIGHT.variables().items(), DARK.variables().values(), strict=True)
        rows = "".join(f"   ``--fxg-{name}``, ``{light}``, ``{dark}``\n" for (name, light), dark in pairs)
        return self.parse_text_to_nodes(f".. csv-table::\n   :header: variable, light, dark\n\n{rows}")


class Commands(SphinxDirective):
    """A section for each command of ``sphinx-fxgraph`` with its arguments and options."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        parser = cli._parser()  # the program has no other door to its declarations
        (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        text = ""
        for name, command in commands.choices.items():
            command.formatter_class = functools.partial(command.formatter_class, width=96)
            help_ = "".join(f"   {line}\n" if line else "\n" for line in command.format_help().splitlines())
            text += f"sphinx-fxgraph {name}\n{'-' * (15 + len(name))}\n\n.. code-block:: text\n\n{help_}\n"
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Add the directive."""
    app.add_directive("settings", Settings)
    app.add_directive("options", Options)
    app.add_directive("palette", Palette)
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
