"""The ``fxgraph-diff`` directive: two architectures in one drawing and one table.

``:against:`` names the other one: a target, a record's file, or ``REV:NAME``, the record committed at a git revision.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.record.header import Failure, Stage
from sphinx_fxgraph.sphinxext import expectations, messages
from sphinx_fxgraph.sphinxext.directives.graph import VIEW, FxgraphDirective, defaults, spec_of
from sphinx_fxgraph.sphinxext.domain import DiffUse, ModelUse, fx_domain

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from sphinx_fxgraph.sphinxext.comparison import Kept

OURS = ("against", "against-inputs")
"""The options that ``fxgraph`` does not have."""


class FxgraphDiffDirective(FxgraphDirective):
    """``.. fxgraph-diff:: target`` with ``:against:`` and the options of ``fxgraph``, but for what that one claims."""

    table_title = "Changes"

    def run(self) -> list[nodes.Node]:
        """Leave the figure, and note what is compared. Nothing is captured or drawn here."""
        from sphinx_fxgraph.sphinxext.comparison import Comparison  # few pages compare

        target = self.arguments[0] if self.arguments else ""
        options = dict(self.options)
        against, inputs = (options.pop(name, "").strip() for name in OURS)
        try:
            target = target or self._documented()
            if not against:
                raise SpecError(
                    "against: which model, file or revision? For example :against: zoo.UNet(depth=2), "
                    "or v1.0:zoo.UNet for the record that was committed at v1.0"
                )
            options = defaults(self.config, target) | options
            given = defaults(self.config, against) | options | ({"inputs": inputs} if inputs else {})
            before = self._outside(against) or spec_of(against, "", given)
            comparison = Comparison(before, spec_of(target, "", options))
        except SpecError as error:
            subtype: Stage = "input" if str(error).startswith("inputs") else "option"
            self._wrong(str(error), subtype)
            block = messages.block(Failure(subtype, "", str(error)))
            return [nodes.paragraph("", "", nodes.literal(target, target)), block]
        for name in expectations.NAMES:
            if name not in options:
                continue
            self._wrong(f"{name}: a difference claims nothing; write it where the model itself is shown", "option")
            del options[name]
        checked = self._check(options)
        look = {name: checked.pop(name) for name in VIEW if name in checked}
        domain, location = fx_domain(self.env), self.get_location()
        for spec in comparison.specs:
            domain.note_use(self.env.docname, ModelUse(spec, None, location))
        domain.note_difference(self.env.docname, DiffUse(comparison.to_dict(), look, location))
        figure, behind = self._figure(comparison, look, checked)
        figure["classes"].append("fxg-diff")
        return [figure, behind]

    def _outside(self, text: str) -> Kept | None:
        """A record that is not captured: a file, or something that a revision of the repository has."""
        from sphinx_fxgraph.cache import revisions
        from sphinx_fxgraph.sphinxext.comparison import Kept

        if text.endswith(".json") and ":" not in text:
            relative, absolute = self.env.relfn2path(text)
            self.env.note_dependency(relative)
            if not Path(absolute).is_file():
                raise SpecError(f"against: there is no file {relative}")
            return Kept(relative, is_file=True)
        outside = Kept(text)
        store = fx_domain(self.env).run.store
        if ":" in text and (revisions.is_revision(text, self.env.srcdir) or store.record(outside) is not None):
            return outside
        return None


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the directive."""
    app.add_directive("fxgraph-diff", FxgraphDiffDirective)
