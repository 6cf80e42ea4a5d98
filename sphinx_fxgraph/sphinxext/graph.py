"""The ``fxgraph`` directive, and the options that say what a model is expected to be."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.escape import anchor
from sphinx_fxgraph.options import NUMBER, CaptureOptions, FigureOptions, ViewOptions, declared, read_options
from sphinx_fxgraph.record.header import Failure, Stage
from sphinx_fxgraph.spec.parser import parse_inputs
from sphinx_fxgraph.spec.spec import GraphSpec, names_set
from sphinx_fxgraph.sphinxext import messages, sphinx_private
from sphinx_fxgraph.sphinxext.config import Config
from sphinx_fxgraph.sphinxext.domain import ModelUse, fx_domain
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.sphinxext.nodes import fxgraph, fxgraph_tables
from sphinx_fxgraph.units import Units

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config as SphinxConfig

    from sphinx_fxgraph.record.model import Record
    from sphinx_fxgraph.sphinxext.diff import Shown


_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}


NAMES = ("expect", "expect-params", "expect-macs")
"""The options of `sphinx_fxgraph.options.FigureOptions` that claim something."""


def broken(record: Record, claims: tuple[tuple[str, str], ...], units: Units) -> Iterator[str]:
    """Yield a sentence for each expectation that the model does not meet, with both values."""
    from sphinx_fxgraph.record.metrics import macs_of

    for option, said in claims:
        if option == "expect" and _plain(said) != _plain(record.output):
            yield f"expected to return {said}, but it returns {record.output}"
        if option == "expect-params" and not _is(said, record.totals.parameters):
            yield f"expected to have {said} parameters, but it has {record.totals.parameters:,}"
        macs = macs_of(record.totals, units.convention)
        if option == "expect-macs" and not (macs is not None and _is(said, macs)):
            found = "is not known to have any" if macs is None else f"has {macs:,}"
            yield f"expected to have {said.removesuffix('MACs').strip()} MACs, but it {found}"


def _plain(output: str) -> str:
    """A result without what two people would write in two ways; only sizes are one tensor of floats."""
    text = re.sub(r"\s", "", output).replace('"', "'")
    text = text.strip("()") if re.fullmatch(r"\(?\d+(,\d+)*\)?", text) else text
    return f"f32[{text}]" if re.fullmatch(r"\d+(,\d+)*", text) else text


def _is(said: str, number: int) -> bool:
    """Return whether a number is what was said, to all digits that were."""
    match = re.fullmatch(NUMBER, said)
    assert match, "the directive has looked at it"
    whole, fraction, prefix = match.groups(default="")
    digits = int(re.sub("[,_]", "", whole) + fraction)
    # In units of the last digit, as whole numbers: 1.81G is anything from 1.805 to 1.815 thousand million.
    scale = 10 ** len(fraction)
    return bool(2 * abs(number * scale - digits * _PREFIXES[prefix]) <= (_PREFIXES[prefix] if prefix else 0))


CAPTURE = ("inputs", *(option.name for option in declared(CaptureOptions)))
"""The options that are part of the spec, which checks them."""
VIEW = tuple(option.name for option in declared(ViewOptions))
"""The options of the drawing itself."""


def defaults(config: SphinxConfig, target: str) -> dict[str, Any]:
    """The options that ``fxgraph_defaults`` sets for a target; later patterns win."""
    given: dict[str, Any] = {}
    for pattern, options in Config.of(config).defaults.items():
        if fnmatch.fnmatchcase(target.replace(":", "."), pattern.replace(":", ".")):
            given |= {name: str(value) for name, value in options.items()}
    return given


def spec_of(target: str, code: str, options: Mapping[str, Any]) -> GraphSpec:
    """The spec that target, code and options ask for.

    Raises:
        SpecError: something is wrong with them.
    """
    given = {name: options[name] for name in CAPTURE if options.get(name) not in (None, "")}
    inputs = given.pop("inputs", "")
    if inputs:
        parse_inputs(inputs)  # what is wrong with the inputs is told as such, whatever else is wrong
    return GraphSpec.parse(target, inputs, code=code or None, **given)


class _AnyOption(dict[str, Callable[[Any], Any]]):
    """Takes every option as it is written: we check them ourselves, so that each warning has our type and a place."""

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Callable[[Any], Any]:
        return directives.unchanged


class FxgraphDirective(SphinxDirective):
    """``.. fxgraph:: target`` with options; a body is Python that sets ``model`` or ``inputs``."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[_AnyOption] = _AnyOption()
    table_title = "Node table"

    def run(self) -> list[nodes.Node]:
        """Leave the figure and note the use. Nothing is imported, captured or drawn here."""
        target = self.arguments[0] if self.arguments else ""
        code = "\n".join(self.content)
        try:
            if not target and "model" not in names_set(code):
                target = self._documented()
            options = defaults(self.config, target) | self.options
            spec = spec_of(target, code, options)
        except SpecError as error:
            subtype: Stage = "input" if str(error).startswith("inputs") else "option"
            self._wrong(str(error), subtype)
            message = Failure(subtype, "", str(error))
            return [nodes.paragraph("", "", nodes.literal(target, target)), messages.block(message)]
        checked = self._check(options)
        look = {name: checked.pop(name) for name in VIEW if name in checked}
        shown = self._figure(spec, look, checked)
        said = {name: checked[name] for name in NAMES if name in checked}
        expect = "error" if said.get("expect") == "error" else ""
        use = ModelUse(
            spec,
            look,
            self.get_location(),
            expect,
            () if expect else tuple(said.items()),
            " ".join(checked.get("name", "").split()),
            shown[1]["figure"],
            checked.get("table") != (),
        )
        fx_domain(self.env).note_use(self.env.docname, use)
        return [*shown]

    # -- what is meant

    def _documented(self) -> str:
        """The object in whose description the directive stands; for a member of a class that class."""
        module = self.env.ref_context.get("py:module")
        name = self.env.ref_context.get("py:class") or sphinx_private.described_object(self.env)
        if not name:
            raise SpecError(
                "which model? Outside of a docstring the directive needs an argument; "
                "for example .. fxgraph:: torchvision.models.resnet18"
            )
        return f"{module}:{name}" if module else str(name)

    def _check(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options that capture nothing in canonical form; warn of each that is wrong and leave it out."""
        given = {name: value for name, value in options.items() if name not in CAPTURE}
        checked, errors = read_options(given, (ViewOptions, FigureOptions), also=CAPTURE)
        for error in errors:
            self._wrong(str(error), "option")
        return checked

    def _wrong(self, message: str, subtype: str) -> None:
        # Sphinx forgets what was warned of while reading; so the page is read, and the warning told, in every build.
        self.env.note_reread()
        warn(message, subtype, self.get_location())

    # -- what is left for the build

    def _figure(self, spec: Shown, look: dict[str, Any], options: dict[str, Any]) -> list[nodes.Element]:
        inline, errors = self.parse_inline(options["caption"]) if options.get("caption") else ([], [])
        figure, place, behind = build_figure(spec, look, options, [*inline, *errors], self.get_source_info())
        behind["title"] = self.table_title
        # A figure with an id is counted by Sphinx; without a caption no number is shown, so none must be taken.
        owner = figure if options.get("caption") else place
        if options.get("name"):
            self.options["name"] = options["name"]
            self.add_name(owner)
        else:
            set_new_id(self.state.document, owner, spec, self.env.docname)
        place["figure"] = behind["figure"] = owner["ids"][0]
        return [figure, behind]


def build_figure(
    spec: Shown,
    look: Mapping[str, Any],
    options: Mapping[str, Any],
    caption: Sequence[nodes.Node],
    source: tuple[str, int],
) -> tuple[nodes.figure, fxgraph, fxgraph_tables]:
    """Return a figure, the place for the drawing in it, and the place for the tables behind it, without ids.

    Args:
        spec: what is shown.
        look: the view options.
        options: the figure options, in canonical form.
        caption: the parsed text of the caption.
        source: file and line of the directive.
    """
    place = fxgraph(
        "",
        spec=spec.id,
        target=spec.target or spec.label,
        look=look,
        alt=options.get("alt", ""),
        height=options.get("height", ""),
        color=options.get("color", ""),
        legend=options.get("legend", True),
        rows=options.get("table") != (),
        describe=options.get("describe", False),
    )
    figure = nodes.figure("", place, classes=["fxgraph", *options.get("class", ())])
    if "align" in options:
        figure["align"] = options["align"]
    if options.get("caption"):
        figure += nodes.caption(options["caption"], "", *caption)
    behind = fxgraph_tables("", spec=spec.id, look=look, table=options.get("table"), title="Node table")
    behind["stages"] = options.get("stages", False)
    placed: list[nodes.Element] = [place, figure, behind, *figure.findall(nodes.caption)]
    for node in placed:
        node.source, node.line = source
    return figure, place, behind


def set_new_id(document: nodes.document, owner: nodes.Element, spec: Shown, docname: str) -> None:
    """Give a figure the id ``fx-<page>-<model>``, with a number for more of the kind on the page."""
    first = anchor(anchor("fx", docname.replace("/", "-")), spec.label)
    name, count = first, 1
    while name in document.ids:
        count += 1
        name = f"{first}-{count}"
    owner["ids"] = [name]
    document.set_id(owner)


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the directive."""
    app.add_directive("fxgraph", FxgraphDirective)
