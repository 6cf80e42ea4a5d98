"""A record in words: the facts line, a sentence for those who do not see the drawing, an outline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.metrics import macs_of, macs_text, tied_parameters
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta, Verdict, join
from sphinx_fxgraph.render.node_table import body_paths
from sphinx_fxgraph.render.stage_table import stages
from sphinx_fxgraph.units import PLAIN, Units, format_shape
from sphinx_fxgraph.words import _, count, mark

_SHOWN_TENSORS = 4

_VERDICTS = {
    "same": mark("same graph for every input value"),
    "sizes": mark("same operators, sizes depend on values"),
    "path": mark("one path, as run"),
}

_REMARKS = {
    "random": mark("random: {}"),
    "sizes": mark("sizes depend on values: {}"),
    "reads": mark("values read: {}"),
    "numbers": mark("values read: {}"),
    "unread": mark("written and never read: {}"),
    "unreached": mark("no input reaches {}"),
}


def facts(record: Record, units: Units = PLAIN, left_out: int = 0) -> tuple[str, ...]:
    """Return what is known of a model in a few words each: operators, parameters, MACs, shapes, the verdict.

    Args:
        record: the model.
        units: how numbers are written.
        left_out: how many operators the picture leaves out, since they lead to no result.
    """
    parts = []
    if record.operators and not record.failure:
        ops = count(record.operators, mark("{} op"), mark("{} ops"))
        parts.append(_("{} ({} not drawn: checks, unused results)", ops, units.count(left_out)) if left_out else ops)
    if record.modules:
        details = ", ".join(_about_parameters(record, units))
        parts.append(units.parameters(record.totals.parameters) + (f" ({details})" if details else ""))
    parts += filter(None, [_about_macs(record, units)])
    parts += filter(None, [shapes(record)])
    if record.verdict and units.verdict != "none":
        parts.append(holds_for(record.verdict, short=units.verdict == "short"))
    parts += remarks(record)
    return tuple(parts)


def remarks(record: Record) -> Iterator[str]:
    """Yield what the checks of a capture have found in a few words for each kind, but what the verdict says."""
    kinds: dict[str, dict[str, None]] = {}
    for remark in record.remarks:
        kinds.setdefault(remark.kind, {})[remark.text] = None
    verdict = record.verdict.kind if record.verdict else ""
    for kind, texts in kinds.items():
        if kind not in ("reads", verdict):
            names = list(texts)
            more = ", …" if len(names) > _SHOWN_TENSORS else ""
            yield _(_REMARKS.get(kind, "{}"), ", ".join(names[:_SHOWN_TENSORS]) + more)


def _about_macs(record: Record, units: Units) -> str:
    """Return the MACs, and what they leave out with its MACs in another convention."""
    macs = macs_of(record.totals, units.convention)
    shown = units.macs(macs) if macs else None
    if shown and units.convention == "all":
        shown = _("{} with norms and pooling", shown)
    others = {
        name: f"{name} ({units.macs(other)})" if other else name for name, other in record.totals.uncounted.items()
    }
    return macs_text(shown, others.values())


def holds_for(verdict: Verdict, *, short: bool = False) -> str:
    """Return whether the graph holds for every input value; if not, the place and the first sentence of the reason.

    Args:
        verdict: the verdict.
        short: leave out the place and the reason.
    """
    words = _(_VERDICTS.get(verdict.kind, verdict.kind))
    if short:
        return words
    reason = verdict.reason.partition(". ")[0]
    why = ": ".join(filter(None, (f"{verdict.file}:{verdict.line}" if verdict.file else "", reason)))
    return f"{words} ({why})" if why else words


def _about_parameters(record: Record, units: Units) -> Iterator[str]:
    """Yield remarks on parameters that are not what a reader takes for granted."""
    totals = record.totals
    if totals.trainable != totals.parameters:
        yield _("{} trainable", units.count(totals.trainable))
    if len(totals.dtypes) > 1:
        yield from (f"{units.count(count)} {dtype}" for dtype, count in sorted(totals.dtypes.items()))
    elif "f32" not in totals.dtypes:
        yield from totals.dtypes
    if numbers := sum(count for dtype, count in totals.dtypes.items() if dtype.startswith("c")):
        yield _("{} as real numbers", units.count(totals.parameters + numbers))
    ties = sorted(tied_parameters(record).items())
    if ties:
        tie = _("{} is {}", *ties[0])
        yield _("{} and {} more", tie, len(ties) - 1) if len(ties) > 1 else tie


def describe(record: Record, units: Units = PLAIN) -> str:
    """Return the model in one sentence: operators, shapes, main parts, parameters."""
    parts = [
        *([count(record.operators, mark("{} op"), mark("{} ops"))] if record.operators else []),
        *filter(None, [shapes(record)]),
        *(count(number, *_PARTS[name]) for name, number in _made_of(record).items() if number),
        *([units.parameters(record.totals.parameters)] if record.modules else []),
    ]
    sentence = ", ".join(parts)
    if record.failure:
        failed = _("failed at {}", record.failure.node) if record.failure.node else _("failed")
        sentence = "; ".join(filter(None, (sentence, f"{failed}: {record.failure.message}")))
    return sentence


def paragraph(record: Record, units: Units = PLAIN) -> str:
    """Return what a model is in a few sentences, as a model card has it; empty without a complete graph.

    Args:
        record: the model.
        units: how numbers are written, and what counts as a MAC.
    """
    if not record.root or record.failure:
        return ""
    given, outputs = ends(record)
    macs = macs_of(record.totals, units.convention)
    parts = [count(number, *_PARTS[name]) for name, number in _made_of(record).items() if number]
    listed = [
        _("{} ({}) gives {}", stage.name, stage.made_of, stage.output) if stage.output else stage.name
        for stage in stages(record)
    ]
    sentences = [
        _("{} takes {} and returns {}.", record.bodies[record.root].type.rpartition(".")[2], given, outputs),
        _("It has {}.", units.parameters(record.totals.parameters)) if record.modules else "",
        _("One call takes {}.", units.macs(macs)) if macs else "",
        _("It is made of {}.", ", ".join(parts)) if parts else "",
        _("Its stages, from input to output: {}.", "; ".join(listed)) if len(listed) > 1 else "",
    ]
    return " ".join(filter(None, sentences))


def shapes(record: Record) -> str:
    """Return ``1×3×224×224 → 1×1000``; empty where the end was not reached."""
    given, outputs = ends(record)
    return f"{given} → {outputs}".lstrip() if outputs else ""


def ends(record: Record) -> tuple[str, str]:
    """Return the shapes of the inputs and of the outputs."""
    nodes = record.bodies[record.root].nodes if record.root else ()
    given, outputs = ([meta for node in nodes if node.op == op for meta in node.outputs] for op in _ENDS)
    return _joined(given), _joined(outputs)


_ENDS = "placeholder", "output"


def results(record: Record) -> dict[str, str]:
    """Return the shapes of the result of each operator and module call, by path."""
    found = {}
    for path, body, node in record.walk() if record.root else ():
        found[join(path, node.name)] = ", ".join(map(format_shape, _tensors(record, body, node))) or node.result
    return found


def _joined(tensors: list[TensorMeta]) -> str:
    more = f", … ({len(tensors)} tensors)" if len(tensors) > _SHOWN_TENSORS else ""
    return ", ".join(map(format_shape, tensors[:_SHOWN_TENSORS])) + more


# -- what a model is made of

_PARTS = {
    "convolution": (mark("{} convolution"), mark("{} convolutions")),
    "attention": (mark("{} attention"), mark("{} attentions")),
    "linear layer": (mark("{} linear layer"), mark("{} linear layers")),
    "residual add": (mark("{} residual add"), mark("{} residual adds")),
}


def _made_of(record: Record) -> Mapping[str, int]:
    """Count the operators that readers tell models apart by, repeated bodies each time."""
    counts = {"convolution": 0, "attention": 0, "linear layer": 0, "residual add": 0}
    for name, paths in body_paths(record).items():
        body = record.bodies[name]
        for node in body.nodes:
            part = _part(node)
            if part and not node.body:
                counts[part] += len(paths)
        counts["residual add"] += len(paths) * _residual_adds(record, body)
    if counts["convolution"]:
        del counts["linear layer"]  # a classifier at the end says little
    return counts


def _part(node: Node) -> str:
    for name in (node.base, node.kind):
        if name.lower().startswith(("conv", "lazyconv")):
            return "convolution"
        if name in ("MultiheadAttention", "scaled_dot_product_attention"):
            return "attention"
        if name in ("Linear", "LazyLinear", "linear"):
            return "linear layer"
    return ""


def _residual_adds(record: Record, body: Body) -> int:
    """Count additions of two tensors with a common ancestor; ancestors are the bits of a number."""
    sources: dict[str, int] = {}
    bits = {Value("", number): 1 << number for number in range(len(body.inputs))}
    found = 0
    for number, node in enumerate(body.nodes, len(body.inputs)):
        given = [value for value in node.inputs if record.metas(body, value)]
        before = [bits[value] if value in bits else sources[value.node] for value in given]
        found += node.kind == "add" and len(before) == 2 and bool(before[0] & before[1])
        sources[node.name] = 1 << number
        for each in before:
            sources[node.name] |= each
    return found


# -- outline


def outline(record: Record) -> str:
    """Return the nested graph with a line for each operator and module call; a body is listed at its first call.

    Without a graph the tree of modules, as far as the model was built.
    """
    lines = list(_graph_lines(record) if record.root else _module_lines(record))
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(2)]
    text = (f"{name:<{widths[0]}}  {kind:<{widths[1]}}  {rest}".rstrip() for name, kind, rest in lines)
    return "".join(f"{line}\n" for line in text)


def _graph_lines(record: Record) -> Iterator[tuple[str, str, str]]:
    written: dict[str, str] = {}
    yield record.bodies[record.root].type.rpartition(".")[2], "", ""
    yield from _body_lines(record, record.root, "", "  ", written)


def _body_lines(
    record: Record, name: str, path: str, indent: str, written: dict[str, str]
) -> Iterator[tuple[str, str, str]]:
    written[name] = path
    for node in record.bodies[name].nodes:
        first = written.get(node.body) if node.body else None
        remarks = [*node.marks, *([f"as {first}"] if first is not None else [])]
        yield (
            indent + node.name,
            f"{node.kind} {node.detail}".rstrip(),
            "  ".join(filter(None, (_result(record, record.bodies[name], node), ", ".join(remarks)))),
        )
        if node.body and first is None:
            yield from _body_lines(record, node.body, join(path, node.name), indent + "  ", written)


def _result(record: Record, body: Body, node: Node) -> str:
    tensors = _tensors(record, body, node)
    return ", ".join(f"{meta.path} {format_shape(meta)} {meta.dtype}".lstrip() for meta in tensors) or node.result


def _tensors(record: Record, body: Body, node: Node) -> tuple[TensorMeta, ...]:
    count = len(record.bodies[node.body].outputs) if node.body else 1
    return tuple(chain.from_iterable(record.metas(body, Value(node.name, number)) for number in range(count)))


def _module_lines(record: Record) -> Iterator[tuple[str, str, str]]:
    for module in record.modules:
        depth = module.path.count(".") + 1 if module.path else 0
        name = module.path.rpartition(".")[2]
        kind = module.type.rpartition(".")[2]
        own = PLAIN.parameters(module.parameters) if module.parameters else ""
        yield ("  " * depth + name, kind, own) if name else (kind, "", own)
