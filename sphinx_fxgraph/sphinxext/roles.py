"""The roles of the ``fx`` domain, and how a reference to a graph is resolved.

``:fx:params:`resnet``` is the graph with ``:name: resnet``, ``:fx:params:`resnet:layer1``` a module in it. The value is
looked up when the page is written, so that the text cannot disagree with the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from sphinx.roles import XRefRole

from sphinx_fxgraph.sphinxext.domain import FxDomain, fx_domain

if TYPE_CHECKING:
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment
    from sphinx.util.typing import RoleFunction


class GraphRole(XRefRole):
    """Refers to a graph by its name, or to a node in it."""

    def __init__(self, *, literal: bool = False) -> None:
        super().__init__(warn_dangling=True, innernodeclass=nodes.literal if literal else nodes.inline)

    def process_link(
        self,
        env: BuildEnvironment,
        refnode: nodes.Element,  # noqa: ARG002 - as Sphinx calls it
        has_explicit_title: bool,
        title: str,
        target: str,
    ) -> tuple[str, str]:
        """Note that the page depends on the graph."""
        target = " ".join(target.split())
        domain = fx_domain(env)
        for name in dict.fromkeys((target, target.partition(":")[0])):
            domain.note_mention(env.docname, name)
        if not has_explicit_title and self.name == "fx:node":
            title = target.partition(":")[2] or target
        return title, target


ROLES: dict[str, RoleFunction] = {
    "model": GraphRole(literal=True),
    "node": GraphRole(literal=True),
    "params": GraphRole(),
    "macs": GraphRole(),
    "shape": GraphRole(),
}


class ResolvingFxDomain(FxDomain):
    """The domain that Sphinx sees: resolving a reference needs the records, which `FxDomain` knows nothing of."""

    roles: ClassVar[dict[str, RoleFunction]] = ROLES
    dangling_warnings: ClassVar[dict[str, str]] = dict.fromkeys(
        ROLES, "undefined graph, or node in a graph: %(target)s"
    )

    def resolve_xref(  # type: ignore[override] # a number is no link; Sphinx takes any element
        self,
        env: BuildEnvironment,  # noqa: ARG002 - as Sphinx calls it
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: pending_xref,
        contnode: nodes.Element,
    ) -> nodes.Element | None:
        """Return what replaces a role; None for an unknown name."""
        from sphinx_fxgraph.sphinxext.references import resolve

        return resolve(self, fromdocname, builder, typ, target, contnode, node.get("refexplicit", False))

    def resolve_any_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        target: str,
        node: pending_xref,
        contnode: nodes.Element,
    ) -> list[tuple[str, nodes.reference]]:
        """Return the model of this name, unless its ``:name:`` is a label of Sphinx, which leads to the same place."""
        from sphinx_fxgraph.sphinxext.references import resolve

        standard = env.domains["std"]
        if standard.resolve_any_xref(env, fromdocname, builder, target, node, contnode.deepcopy()):
            return []
        found = resolve(self, fromdocname, builder, "model", target, contnode, node.get("refexplicit", False))
        return [("fx:model", found)] if isinstance(found, nodes.reference) else []


def setup(app: Sphinx) -> None:
    """Register the domain."""
    app.add_domain(ResolvingFxDomain)
