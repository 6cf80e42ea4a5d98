"""Every name of Sphinx that its documentation does not promise, with what happens where it is gone.

A name that this Sphinx lacks is one warning when the build begins (see `missing`); the build goes on without what
depended on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment

PRIVATE: dict[str, tuple[Callable[[Sphinx], Any], str]] = {
    "registry.translation_handlers": (
        lambda app: app.registry.translation_handlers,
        "graphs are lost where another extension has writers for the same builder",
    ),
    "builder.tags.eval_condition": (
        lambda app: app.builder.tags.eval_condition,
        "graphs in an only directive count as shown",
    ),
    "env.toctree_includes": (
        lambda app: app.env.toctree_includes,
        "tables of models are in the order of the names of the pages",
    ),
    "env.temp_data": (
        lambda app: app.env.temp_data,
        "a graph in a docstring needs its target as an argument",
    ),
    "builder.imagedir": (lambda app: app.builder.imagedir, "images are in the folder _images"),
    "builder.imgpath": (lambda app: _of_html(app, "imgpath"), "addresses of images start at the page"),
    "builder.current_docname": (
        lambda app: _of_html(app, "current_docname"),
        "files beside a page are named after the figure alone",
    ),
    "builder.download_support": (
        lambda app: _of_html(app, "download_support"),
        "pages have no link to the DOT and JSON of a graph",
    ),
}
"""The names: how to reach each from the application, and what is lost where it is gone."""


def missing(app: Sphinx) -> list[str]:
    """Return a sentence for each name that this Sphinx lacks."""
    sentences = []
    for name, (reach, loss) in PRIVATE.items():
        try:
            reach(app)
        except AttributeError:
            sentences.append(f"this Sphinx has no {name}: {loss}")
    return sentences


def handlers_of_builder(app: Sphinx) -> dict[str, Any] | None:
    """Return the handlers of nodes that extensions have registered for the builder by its name; None if there are none.

    Sphinx takes the handlers of a builder's format only where no extension has handlers for the builder's name.
    """
    known: dict[str, dict[str, Any]] = getattr(app.registry, "translation_handlers", {})
    return known.get(app.builder.name)


def holds(builder: Builder, expression: str) -> bool:
    """Return whether the condition of an ``only`` directive holds in this build.

    Args:
        builder: the builder, with the tags of the build.
        expression: the condition, such as ``html and not draft``.

    Raises:
        Exception: the expression is wrong, as Sphinx says.
    """
    evaluate = getattr(builder.tags, "eval_condition", None)
    return evaluate is None or bool(evaluate(expression))


def subpages(env: BuildEnvironment, docname: str) -> Sequence[str]:
    """Return the pages in the toctrees of a page, in order.

    Args:
        env: the environment of the build.
        docname: the page.
    """
    included: dict[str, list[str]] = getattr(env, "toctree_includes", {})
    return included.get(docname, ())


def page_data(env: BuildEnvironment) -> Any:
    """Return what extensions note of the page that is being read, by name; it is gone when the page is read."""
    return getattr(env, "temp_data", {})


def described_object(env: BuildEnvironment) -> str:
    """Return the name of the object whose description is being read, or nothing."""
    described = page_data(env).get("object") or ""
    return str(described if isinstance(described, str) else described[0])


def image_folder(builder: Builder) -> str:
    """Return the folder of images, relative to the output."""
    return str(getattr(builder, "imagedir", "_images"))


def image_path(builder: Builder) -> str:
    """Return the folder of images, relative to the page that is being written."""
    return str(getattr(builder, "imgpath", image_folder(builder)))


def written_page(builder: Builder) -> str:
    """Return the page that is being written."""
    return str(getattr(builder, "current_docname", ""))


def has_downloads(builder: Builder) -> bool:
    """Return whether pages may link to files that are copied beside them."""
    return bool(getattr(builder, "download_support", False))


def _of_html(app: Sphinx, name: str) -> Any:
    """Return an attribute of the builder, or None where the builder writes no HTML and need not have it."""
    return getattr(app.builder, name) if app.builder.format == "html" else None
