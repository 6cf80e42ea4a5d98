"""The ``fx`` domain: who shows which model, kept with the environment, so that it is right in parallel reads too."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from docutils import nodes
from sphinx.domains import Domain, ObjType

from sphinx_fxgraph.sphinxext.roles import ROLES
from sphinx_fxgraph.text.ids import anchor

if TYPE_CHECKING:
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment
    from sphinx.util.typing import RoleFunction

    from sphinx_fxgraph.sphinxext.build.comparison import Shown
    from sphinx_fxgraph.sphinxext.build.state import Run


class Use(NamedTuple):
    """One place that shows a model. Plain data: it is pickled with the environment."""

    spec: Shown
    look: Mapping[str, Any] | None
    """None where only numbers are shown."""
    location: str
    """Of the directive, for warnings."""
    expect: str = ""
    """``error`` where the capture shall fail."""
    claims: tuple[tuple[str, str], ...] = ()
    """What the author says of the model: option and text (see `claims`)."""
    name: str = ""
    """What other pages call it."""
    figure: str = ""
    """Its id on the page."""

    @property
    def spec_id(self) -> str:
        """The spec's id, by which all else knows it."""
        return self.spec.id


class Asked(NamedTuple):
    """One place that shows a difference. Plain data: it is pickled with the environment."""

    comparison: Mapping[str, Any]
    """As `compared.Comparison.to_dict` writes it."""
    look: Mapping[str, Any]
    location: str
    """Of the directive, for warnings."""


class FxDomain(Domain):
    """Knows the uses of every page, and holds what one run of a builder needs."""

    name = "fx"
    label = "fxgraph"
    data_version = 7
    initial_data: ClassVar[dict[str, dict[str, Any]]] = {
        "uses": {},
        "mentions": {},
        "tables": {},
        "reports": {},
        "zoos": {},
        "differences": {},
    }
    object_types: ClassVar[dict[str, ObjType]] = {
        "model": ObjType("model", "model"),
        "node": ObjType("node", "node", searchprio=-1),
    }
    roles: ClassVar[dict[str, RoleFunction]] = dict(ROLES)
    dangling_warnings: ClassVar[dict[str, str]] = dict.fromkeys(
        ROLES, "undefined graph, or node in a graph: %(target)s"
    )

    run: Run
    """Set when the builder is known."""

    @property
    def uses(self) -> dict[str, list[Use]]:
        """The uses by docname."""
        return cast("dict[str, list[Use]]", self.data["uses"])

    @property
    def mentions(self) -> dict[str, list[str]]:
        """The graphs that a page tells of, by docname: names, or patterns of names."""
        return cast("dict[str, list[str]]", self.data["mentions"])

    @property
    def differences(self) -> dict[str, list[Asked]]:
        """What a page compares, by docname."""
        return cast("dict[str, list[Asked]]", self.data["differences"])

    @property
    def tables(self) -> dict[str, bool]:
        """The pages that have a table of models."""
        return cast("dict[str, bool]", self.data["tables"])

    @property
    def reports(self) -> dict[str, bool]:
        """The pages that tell of all models of the project."""
        return cast("dict[str, bool]", self.data["reports"])

    @property
    def zoos(self) -> dict[str, dict[str, str]]:
        """The pages with the index of a zoo: docname -> zoo -> digest of its list of pages."""
        return cast("dict[str, dict[str, str]]", self.data["zoos"])

    def note(self, docname: str, use: Use) -> None:
        """Remember that a page shows a model."""
        self.uses.setdefault(docname, []).append(use)

    def mention(self, docname: str, name: str) -> None:
        """Remember that a page tells of graphs that may stand on other pages."""
        self.mentions.setdefault(docname, []).append(name)

    def compare(self, docname: str, asked: Asked) -> None:
        """Remember that a page compares two models; both are noted as uses beside."""
        self.differences.setdefault(docname, []).append(asked)

    def named(self, pattern: str = "*") -> dict[str, tuple[str, Use]]:
        """The graphs whose names fit a pattern: name -> docname and use. Of two with one name the first counts."""
        names: dict[str, tuple[str, Use]] = {}
        for docname in sorted(self.uses):
            for use in self.uses[docname]:
                if use.name and fnmatch.fnmatchcase(use.name, pattern):
                    names.setdefault(use.name, (docname, use))
        return names

    @property
    def docnames(self) -> list[str]:
        """The pages that depend on a model."""
        return sorted(self.uses.keys() | self.mentions.keys() | self.reports.keys())

    def each(self) -> Iterator[Use]:
        """All uses, page by page in alphabetical order."""
        for docname in sorted(self.uses):
            yield from self.uses[docname]

    def clear_doc(self, docname: str) -> None:
        """Forget a page that is read again or gone."""
        for noted in self.data.values():
            if isinstance(noted, dict):  # beside a number, the version
                noted.pop(docname, None)

    def merge_domaindata(self, docnames: Collection[str], otherdata: dict[str, Any]) -> None:
        """Take over what another process has read."""
        for kind in self.initial_data:
            self.data[kind].update((name, noted) for name, noted in otherdata[kind].items() if name in docnames)

    # -- names in text

    def resolve_xref(  # type: ignore[override] # a number is no link; Sphinx takes any element
        self,
        env: BuildEnvironment,  # noqa: ARG002 - as Sphinx calls it
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: pending_xref,  # noqa: ARG002
        contnode: nodes.Element,
    ) -> nodes.Element | None:
        """What stands for a role; None for a name that there is not."""
        from sphinx_fxgraph.sphinxext.writers.references import resolve

        return resolve(self, fromdocname, builder, typ, target, contnode)

    def resolve_any_xref(
        self,
        env: BuildEnvironment,  # noqa: ARG002 - as Sphinx calls it
        fromdocname: str,
        builder: Builder,
        target: str,
        node: pending_xref,  # noqa: ARG002
        contnode: nodes.Element,
    ) -> list[tuple[str, nodes.reference]]:
        """The model of this name."""
        from sphinx_fxgraph.sphinxext.writers.references import resolve

        found = resolve(self, fromdocname, builder, "model", target, contnode)
        return [("fx:model", found)] if isinstance(found, nodes.reference) else []

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        """The graphs that have names, and the nodes in them, for other projects to refer to."""
        for name, (docname, use) in self.named().items():
            yield name, name, "model", docname, use.figure, 1
            outline = self.run.outline(use.spec_id) if self.run.shows else None
            for path in outline.paths() if outline else ():
                yield f"{name}:{path}", path, "node", docname, anchor(use.figure, path), -1


def fx_domain(env: BuildEnvironment) -> FxDomain:
    """The domain of a build."""
    return cast("FxDomain", env.get_domain("fx"))


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the domain."""
    app.add_domain(FxDomain)
