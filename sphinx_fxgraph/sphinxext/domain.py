"""The ``fx`` domain: who shows which model, kept with the environment, so that it is right in parallel reads too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from sphinx.domains import Domain

from sphinx_fxgraph.sphinxext.run import Run

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


class Use(NamedTuple):
    """One place that shows a model. Plain data: it is pickled with the environment."""

    spec_id: str
    spec: Mapping[str, Any]
    """As `GraphSpec.to_dict` writes it."""
    look: Mapping[str, Any]
    location: str
    """Of the directive, for warnings."""
    expect: str = ""


class FxDomain(Domain):
    """Knows the uses of every page, and holds what one run of a builder needs."""

    name = "fx"
    label = "fxgraph"
    data_version = 1
    initial_data: ClassVar[dict[str, dict[str, list[Use]]]] = {"uses": {}}

    run: Run
    """Set when the builder is known."""

    @property
    def uses(self) -> dict[str, list[Use]]:
        """The uses by docname."""
        return cast("dict[str, list[Use]]", self.data["uses"])

    def note(self, docname: str, use: Use) -> None:
        """Remember that a page shows a model."""
        self.uses.setdefault(docname, []).append(use)

    def each(self) -> Iterator[Use]:
        """All uses, page by page in alphabetical order."""
        for docname in sorted(self.uses):
            yield from self.uses[docname]

    def uses_of(self, spec_id: str) -> Iterator[Use]:
        """The uses of one model."""
        return (use for use in self.each() if use.spec_id == spec_id)

    def clear_doc(self, docname: str) -> None:
        """Forget a page that is read again or gone."""
        self.uses.pop(docname, None)

    def merge_domaindata(self, docnames: Collection[str], otherdata: dict[str, Any]) -> None:
        """Take over what another process has read."""
        self.uses.update((docname, uses) for docname, uses in otherdata["uses"].items() if docname in docnames)


def fx_domain(env: BuildEnvironment) -> FxDomain:
    """The domain of a build."""
    return cast("FxDomain", env.get_domain("fx"))


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the domain."""
    app.add_domain(FxDomain)
