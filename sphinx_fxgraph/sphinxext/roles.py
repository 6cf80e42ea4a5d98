"""The roles: numbers and names of a graph in running text, on any page, as the record has them.

``:fx:params:`resnet``` is the graph with ``:name: resnet``, ``:fx:params:`resnet:layer1``` a module in it. What stands
there is found when the page is written, so that text cannot disagree with the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from docutils import nodes
from sphinx.roles import XRefRole

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

    from sphinx_fxgraph.sphinxext.domain import FxDomain


class GraphRole(XRefRole):
    """Refers to a graph by its name, or to something in it."""

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
        domain = cast("FxDomain", env.get_domain("fx"))
        for name in dict.fromkeys((target, target.partition(":")[0])):
            domain.mention(env.docname, name)
        if not has_explicit_title and self.name == "fx:node":
            title = target.partition(":")[2] or target
        return title, target


ROLES = {
    "model": GraphRole(literal=True),
    "node": GraphRole(literal=True),
    "params": GraphRole(),
    "macs": GraphRole(),
    "shape": GraphRole(),
}
