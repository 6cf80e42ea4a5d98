"""The ``fx`` domain: its objects, its roles, and which page shows, compares or mentions which model.

The data is part of the environment, so it is right in parallel and incremental builds.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from docutils import nodes
from sphinx import addnodes
from sphinx.domains import Domain, ObjType
from sphinx.roles import XRefRole
from sphinx.util.nodes import make_refnode

from sphinx_fxgraph.escape import anchor
from sphinx_fxgraph.sphinxext.nodes import described_names, fxgraph, maker
from sphinx_fxgraph.sphinxext.state import Run
from sphinx_fxgraph.units import Units

if TYPE_CHECKING:
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment
    from sphinx.util.typing import RoleFunction

    from sphinx_fxgraph.record.metrics import Measures
    from sphinx_fxgraph.record.model import Record
    from sphinx_fxgraph.sphinxext.diff import Shown


class ModelUse(NamedTuple):
    """A place that shows a model. Plain data: it is pickled with the environment."""

    spec: Shown
    look: Mapping[str, Any] | None
    """None where only numbers are shown."""
    location: str
    """Of the directive, for warnings."""
    expect: str = ""
    """``error`` if the capture is expected to fail."""
    expectations: tuple[tuple[str, str], ...] = ()
    """What the author expects of the model: option and text."""
    name: str = ""
    """The name by which other pages refer to the graph."""
    figure: str = ""
    """The id of the figure."""
    rows: bool = True
    """Whether a node table stands behind the figure."""
    title: str = ""
    """The caption of the figure, or the title of a page with no other graph; empty where there is neither."""
    conditions: tuple[tuple[str, str], ...] = ()
    """The kinds and expressions of the ``only`` and ``ifconfig`` directives around the figure."""

    @property
    def spec_id(self) -> str:
        """The id of the spec."""
        return self.spec.id

    @property
    def shown_name(self) -> str:
        """The name of the graph in lists: its title, its name, or the model."""
        return self.title or self.name or self.spec.label


class DiffUse(NamedTuple):
    """A place that shows a difference. Plain data: it is pickled with the environment."""

    comparison: Mapping[str, Any]
    """As `Comparison.to_dict` writes it."""
    look: Mapping[str, Any]
    location: str
    """Of the directive, for warnings."""


class FxDomain(Domain):
    """Knows the uses of every page, and holds the state of one run of a builder."""

    name = "fx"
    label = "fxgraph"
    data_version = 11
    initial_data: ClassVar[dict[str, dict[str, Any]]] = {
        "uses": {},
        "mentions": {},
        "tables": {},
        "reports": {},
        "zoos": {},
        "differences": {},
        "documented": {},
        "kept": {},
    }
    object_types: ClassVar[dict[str, ObjType]] = {
        "model": ObjType("model", "model"),
        "node": ObjType("node", "node", searchprio=-1),
    }

    run: Run
    """Set when the builder is known."""

    @property
    def uses(self) -> dict[str, list[ModelUse]]:
        """The uses by docname."""
        return cast("dict[str, list[ModelUse]]", self.data["uses"])

    @property
    def mentions(self) -> dict[str, list[str]]:
        """The graphs that a page mentions, by docname: names, or patterns of names."""
        return cast("dict[str, list[str]]", self.data["mentions"])

    @property
    def differences(self) -> dict[str, list[DiffUse]]:
        """The comparisons on a page, by docname."""
        return cast("dict[str, list[DiffUse]]", self.data["differences"])

    @property
    def tables(self) -> dict[str, bool]:
        """The pages that have a table of models."""
        return cast("dict[str, bool]", self.data["tables"])

    @property
    def reports(self) -> dict[str, bool]:
        """The pages that report on all models of the project."""
        return cast("dict[str, bool]", self.data["reports"])

    @property
    def zoos(self) -> dict[str, dict[str, str]]:
        """The pages with the index of a zoo: docname -> zoo -> digest of its list of pages."""
        return cast("dict[str, dict[str, str]]", self.data["zoos"])

    @property
    def documented(self) -> dict[str, list[str]]:
        """The dotted names of classes and functions that a page describes, by docname."""
        return cast("dict[str, list[str]]", self.data["documented"])

    def note_use(self, docname: str, use: ModelUse) -> None:
        """Remember that a page shows a model."""
        self.uses.setdefault(docname, []).append(use)

    def note_mention(self, docname: str, name: str) -> None:
        """Remember that a page mentions graphs that may be on other pages."""
        self.mentions.setdefault(docname, []).append(name)

    def note_difference(self, docname: str, use: DiffUse) -> None:
        """Remember that a page compares two models; both are noted as uses, too."""
        self.differences.setdefault(docname, []).append(use)

    def named(self, pattern: str = "*", near: str = "") -> dict[str, tuple[str, ModelUse]]:
        """Return the graphs whose names match a pattern: name -> docname and use.

        Of several graphs with one name, those that the builder shows come before the others, then those on the page
        ``near``, then the first in alphabetical order of pages.

        Args:
            pattern: may hold ``*`` and ``?``.
            near: the docname of the page that refers to the graphs.
        """
        names: dict[str, tuple[str, ModelUse]] = {}
        for docname in sorted(self.uses, key=lambda docname: (docname != near, docname)):
            for use in self.uses[docname]:
                if use.name and fnmatch.fnmatchcase(use.name, pattern):
                    other = names.setdefault(use.name, (docname, use))[1]
                    if not self.is_shown(other) and self.is_shown(use):
                        names[use.name] = docname, use
        return names

    def duplicates(self) -> Iterator[tuple[str, ModelUse, str]]:
        """Yield each use whose name an earlier one has: the name, the use, and the location of the earlier one."""
        first: dict[str, str] = {}
        for use in self.all_uses():
            if use.name and self.is_shown(use) and first.setdefault(use.name, use.location) != use.location:
                yield use.name, use, first[use.name]

    def is_shown(self, use: ModelUse) -> bool:
        """Return whether the builder shows a use: ``only`` and ``ifconfig`` may leave it out."""
        return not use.conditions or all(self.run.is_true(kind, text) for kind, text in use.conditions)

    def process_doc(self, env: BuildEnvironment, docname: str, document: nodes.document) -> None:  # noqa: ARG002 - Sphinx passes it
        """Add to the uses of a page what is known when all of it has been read.

        Some directives parse their content twice, as ``group-tab`` of sphinx-tabs does. A use whose figure is not on
        the page is forgotten.
        """
        described = list(
            dict.fromkeys(name for node in document.findall(addnodes.desc) for name in described_names(node))
        )
        if described:
            self.documented[docname] = described
        places = {place["figure"]: place for place in document.findall(fxgraph)}
        heading = next(document.findall(nodes.title), None)
        page_title = heading.astext() if heading is not None and len(places) == 1 else ""
        uses = self.uses.get(docname, [])
        uses[:] = [use for use in uses if not use.figure or use.figure in places]
        for number, use in enumerate(uses):
            if place := places.get(use.figure):
                caption = next(place.parent.findall(nodes.caption), None)
                title = page_title if caption is None else caption.astext()
                uses[number] = use._replace(title=title, conditions=tuple(_conditions(place)))

    def graphs(self) -> Iterator[tuple[str, ModelUse]]:
        """Yield the graphs that the builder shows, each after its docname."""
        for docname in sorted(self.uses):
            for use in self.uses[docname]:
                if use.figure and use.look is not None and self.is_shown(use):
                    yield docname, use

    def graphs_of(self) -> dict[str, list[tuple[str, ModelUse]]]:
        """Return the graphs by the dotted name of the class or function that makes the model."""
        found: dict[str, list[tuple[str, ModelUse]]] = {}
        for docname, use in self.graphs():
            if name := maker(use.spec.target):
                found.setdefault(name, []).append((docname, use))
        return found

    @property
    def docnames(self) -> list[str]:
        """The pages that depend on a model."""
        made = {name for name in map(maker, (use.spec.target for use in self.all_uses())) if name}
        describing = {docname for docname, names in self.documented.items() if not made.isdisjoint(names)}
        return sorted(self.uses.keys() | self.mentions.keys() | self.reports.keys() | describing)

    def all_uses(self) -> Iterator[ModelUse]:
        """Yield all uses, page by page in alphabetical order."""
        for docname in sorted(self.uses):
            yield from self.uses[docname]

    def clear_doc(self, docname: str) -> None:
        """Forget a page that is read again or removed."""
        for noted in self.data.values():
            if isinstance(noted, dict):  # the version is a number
                noted.pop(docname, None)

    def merge_domaindata(self, docnames: Collection[str], otherdata: dict[str, Any]) -> None:
        """Merge the data of another process."""
        for kind in self.initial_data:
            self.data[kind].update((name, noted) for name, noted in otherdata[kind].items() if name in docnames)

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        """Yield the named graphs and the nodes in them, for other projects to refer to."""
        if not self.run.objects:  # Sphinx asks twice, for the inventory and for the search
            self.run.objects = list(self._objects())
        yield from self.run.objects

    def _objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        for name, (docname, use) in self.named().items():
            if not self.is_shown(use):
                continue
            yield name, name, "model", docname, use.figure, 1
            for path in self.run.names(use.spec_id) if self.run.shows else ():
                yield f"{name}:{path}", path, "node", docname, anchor(use.figure, path), -1


def _conditions(node: nodes.Node) -> Iterator[tuple[str, str]]:
    while node := node.parent:
        if isinstance(node, addnodes.only) or type(node).__name__ == "ifconfig":  # of sphinx.ext.ifconfig
            yield type(node).__name__, node["expr"]


def fx_domain(env: BuildEnvironment) -> FxDomain:
    """Return the domain of a build."""
    return cast("FxDomain", env.get_domain("fx"))


UNKNOWN = "unknown"
"""Stands where a capture did not get to what is asked for."""


def resolve(
    domain: FxDomain,
    fromdocname: str,
    builder: Builder,
    role: str,
    target: str,
    contnode: nodes.Element,
    explicit: bool,
) -> nodes.Element | None:
    """Return what replaces a role, or None if there is no such graph, or no such node in it.

    Args:
        domain: knows the graphs.
        fromdocname: the page with the role.
        builder: decides what a link looks like.
        role: ``model``, ``node``, ``params``, ``macs`` or ``shape``.
        target: the name of a graph, or ``name:path``.
        contnode: the text of the role.
        explicit: whether the author gave that text. In a number ``{}`` stands for the digits.
    """
    from sphinx_fxgraph.options import CONVENTIONS

    found = _find(domain, target, fromdocname)
    if found is None:
        return None
    docname, use, path = found
    record = domain.run.record(use.spec_id) if domain.run.shows else None
    if role in ("model", "node"):
        if path and record and record.root and path not in record.paths():
            return None
        if role == "model" and not explicit and use.title and not path:
            contnode = nodes.inline("", use.title, classes=contnode["classes"])
        if not domain.is_shown(use):
            return contnode
        place = _place(record, use, path, builder)
        return make_refnode(builder, fromdocname, docname, place, contnode, path or use.name)
    if record is None:
        return contnode
    units = domain.run.config.units
    said = _shape(record, path) if role == "shape" else _number(record, path, role, units)
    if said is None:
        return None
    if explicit and "{}" in contnode.astext():
        number = said if role == "shape" else said.removesuffix(" parameters").removesuffix("MACs").rstrip()
        said = contnode.astext().replace("{}", number)
    if role == "macs" and builder.format == "html":
        return nodes.abbreviation("", said, explanation=CONVENTIONS[units.convention], classes=["fxg-macs"])
    return nodes.inline("", said, classes=[f"fxg-{role}"])


def _find(domain: FxDomain, target: str, near: str) -> tuple[str, ModelUse, str] | None:
    """Return page and use of a graph, and the path of a node in it."""
    names = domain.named(near=near)
    name, _, path = (target, "", "") if target in names else target.partition(":")
    return (*names[name], path) if name in names else None


def _place(record: Record | None, use: ModelUse, path: str, builder: Builder) -> str:
    """Return the id that a link leads to: of a node where the page has ids for nodes, else of the figure."""
    if not path or not record or not record.root or builder.format != "html":
        return use.figure
    if builder.name != "epub":
        return anchor(use.figure, path)
    # An e-book shows an image. Its table has a row for each operator, but none for modules with an inside.
    return anchor(f"{use.figure}-row", path) if use.rows and is_row(record, path) else use.figure


def is_row(record: Record, path: str) -> bool:
    """Return whether the node table has a row for a path: operators have one, calls with an inside have none."""
    from sphinx_fxgraph.record.model import join

    return any(join(outer, node.name) == path and not node.body for outer, _, node in record.walk())


def _number(record: Record, path: str, role: str, units: Units) -> str | None:
    from sphinx_fxgraph.record.metrics import macs_text

    measures = _measures(record, path, units.convention)
    if measures is None:
        return None
    if role == "params":
        return units.parameters(measures.parameters) if record.modules else UNKNOWN
    if record.totals.macs is None:  # it was not run to the end
        return UNKNOWN
    macs = measures.macs or 0
    count = units.macs(macs) if macs or not measures.uncounted else None
    return macs_text(count, measures.uncounted)


def _measures(record: Record, path: str, convention: str) -> Measures | None:
    """Return the numbers of a module, operator or call by its path."""
    from sphinx_fxgraph.record.metrics import by_call, by_module

    modules = by_module(record, convention)
    return modules.get(path) or by_call(record, convention).get(path)


def _shape(record: Record, path: str) -> str | None:
    from sphinx_fxgraph.render import summary

    if not path:
        return summary.shapes(record) or UNKNOWN
    return summary.results(record).get(path)


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
        standard = env.domains["std"]
        if standard.resolve_any_xref(env, fromdocname, builder, target, node, contnode.deepcopy()):
            return []
        found = resolve(self, fromdocname, builder, "model", target, contnode, node.get("refexplicit", False))
        return [("fx:model", found)] if isinstance(found, nodes.reference) else []


def setup(app: Sphinx) -> None:
    """Register the domain."""
    app.add_domain(ResolvingFxDomain)
