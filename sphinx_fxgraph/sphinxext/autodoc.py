"""Graphs in the descriptions of classes and functions: the setting ``fxgraph_autodoc``.

The graph is appended to the description of the object, whichever extension has written it: autodoc, autosummary,
autoapi, or an author by hand. So there is one graph whatever ``autoclass_content`` is.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.options import FigureOptions, ViewOptions, read_options
from sphinx_fxgraph.sphinxext import graph, sphinx_private
from sphinx_fxgraph.sphinxext.config import Config
from sphinx_fxgraph.sphinxext.domain import ModelUse, fx_domain
from sphinx_fxgraph.sphinxext.graph import CAPTURE, VIEW, build_figure, defaults, set_new_id, spec_of
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.sphinxext.nodes import fxgraph

if TYPE_CHECKING:
    from sphinx.application import Sphinx


_OTHERS = "fxgraph_others"
"""Names the objects on the page that are known to be no models, in the data of the page."""
_NO_MODELS = ("None", "Tensor", "bool", "float", "int", "str")
"""What a function returns that builds no model, in an annotation."""


class AppendGraphs(SphinxTransform):
    """Appends a graph to the description of each object that a pattern of ``fxgraph_autodoc`` fits."""

    default_priority = 840  # before the domains process the document, at 850

    def apply(self, **kwargs: Any) -> None:  # noqa: ARG002 - as docutils calls it
        """Look at each description of the page."""
        patterns = Config.of(self.config).autodoc
        others: set[str] = sphinx_private.page_data(self.env).get(_OTHERS) or set()
        for described in list(self.document.findall(addnodes.desc)) if patterns else ():
            if described.get("domain") != "py" or described["objtype"] not in ("class", "function"):
                continue
            names = [_full_name(signature) for signature in described.findall(addnodes.desc_signature)][:1]
            for name in names:
                options = _options(patterns, name)
                if options is not None and name not in others and not _has_graph(described):
                    self._append(described, name, options)

    def _append(self, described: addnodes.desc, name: str, given: Mapping[str, Any]) -> None:
        options = defaults(self.config, name) | {option: str(value) for option, value in given.items()}
        signature = described[0]
        source = signature.source or self.document["source"], signature.line or 0
        location = f"{source[0]}:{source[1]}" if source[1] else source[0]
        try:
            spec = spec_of(name, "", options)
        except SpecError as error:
            self.env.note_reread()
            warn(f"fxgraph_autodoc, {name}: {error}", "option", location)
            return
        others = {option: value for option, value in options.items() if option not in CAPTURE}
        checked, errors = read_options(others, (ViewOptions, FigureOptions), also=CAPTURE)
        for wrong in errors:
            self.env.note_reread()
            warn(f"fxgraph_autodoc, {name}: {wrong}", "option", location)
        look = {option: checked.pop(option) for option in VIEW if option in checked}
        caption = checked.get("caption", "")
        figure, place, behind = build_figure(spec, look, checked, [nodes.Text(caption)], source)
        owner: nodes.Element = figure if caption else place
        set_new_id(self.document, owner, spec, self.env.docname)
        place["figure"] = behind["figure"] = owner["ids"][0]
        content = next(child for child in described.children if isinstance(child, addnodes.desc_content))
        members = (index for index, child in enumerate(content) if list(child.findall(addnodes.desc)))
        content.insert(next(members, len(content)), [figure, behind])
        claims = {option: checked[option] for option in graph.NAMES if option in checked}
        expect = "error" if claims.get("expect") == "error" else ""
        use = ModelUse(spec, look, location, expect, () if expect else tuple(claims.items()), "", owner["ids"][0])
        fx_domain(self.env).note_use(self.env.docname, use._replace(rows=checked.get("table") != ()))


def _full_name(signature: addnodes.desc_signature) -> str:
    return ".".join(filter(None, (signature.get("module"), signature.get("fullname"))))


def _options(patterns: Mapping[str, Mapping[str, Any] | None], name: str) -> Mapping[str, Any] | None:
    """Return what the last pattern that fits a name says."""
    found = [options for pattern, options in patterns.items() if fnmatchcase(name, pattern.replace(":", "."))]
    return found[-1] if found else None


def _has_graph(described: addnodes.desc) -> bool:
    """Return whether a description has a graph, apart from those of the members in it."""
    for place in described.findall(fxgraph):
        around = place.parent
        while not isinstance(around, addnodes.desc):
            around = around.parent
        if around is described:
            return True
    return False


def note_others(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:  # noqa: ARG001 - an event handler
    """Note the objects of which autodoc knows that they are no models."""
    if app.config.fxgraph_autodoc and what in ("class", "exception", "function") and not _may_be_model(obj):
        noted = sphinx_private.page_data(app.env)
        others: set[str] = noted.get(_OTHERS) or set()
        noted[_OTHERS] = {*others, name}


def _may_be_model(obj: object) -> bool:
    """Return whether an object can be a class of models, or a function that builds one."""
    if isinstance(obj, type):
        bases = [base for base in obj.__mro__ if base.__module__.partition(".")[0] == "torch"]
        return any(base.__name__ == "Module" for base in bases) or hasattr(obj, "__sphinx_mock__")
    if not inspect.isroutine(obj):
        return False
    result = getattr(obj, "__annotations__", {}).get("return", "")
    if isinstance(result, type):
        return result is not type(None) and _may_be_model(result)
    return result is not None and str(result).rpartition(".")[2] not in (
        "None",
        "Tensor",
        "bool",
        "float",
        "int",
        "str",
    )


def setup(app: Sphinx) -> None:
    """Register the transform."""
    app.add_transform(AppendGraphs)
    app.connect("config-inited", _connect, priority=900)


def _connect(app: Sphinx, config: object) -> None:  # noqa: ARG001 - an event handler
    if "sphinx.ext.autodoc" in app.extensions:
        app.connect("autodoc-process-docstring", note_others)
