"""Compare the record of a random model with the truth about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from random_models import Program, dependence, module_calls, operators

from sphinx_fxgraph.capture.capture import record_model
from sphinx_fxgraph.record.model import Body, Record, join

Ancestors = dict[object, frozenset[str]]


def disagreements(program: Program) -> list[str]:
    """Return what the records of a program say otherwise than plain runs do."""
    found = []
    for tracer in ("auto", "observed"):
        record = record_model(program.model(), program.inputs(), {}, tracer=tracer)
        found += [f"{tracer}: {each}" for each in _wrong(program, record)]
        if found:
            return found
        if tracer != "auto":
            continue
        again = record_model(program.model(), program.inputs(1), {}, tracer=tracer)
        if operators(program)[0] == operators(program, 1)[0] and again.to_json() != record.to_json():
            found.append(f"{tracer}: the record holds values")
    return found


def _wrong(program: Program, record: Record) -> Iterator[str]:
    if record.failure is not None:
        yield f"failure {record.failure.type}: {record.failure.message}"
        return
    missing = dependence(program, sources(record))
    if missing:
        yield f"no path from {', '.join(sorted(missing))}"
    calls = Counter(module_calls(program))
    drawn = Counter(
        (node.kind, tuple(node.outputs[0].shape))
        for _, _, node in record.walk()
        if node.op == "call_module" and not node.body and node.type.startswith("torch.nn") and node.outputs
    )
    if calls != drawn:
        yield f"module calls: {sorted(calls - drawn)} not drawn, {sorted(drawn - calls)} did not run"
    names, macs = operators(program)
    if (record.totals.macs or 0) != macs:
        yield f"{record.totals.macs} MACs, {macs} counted"
    if record.verdict and record.verdict.kind == "same":
        for variant in range(1, 5):
            try:
                others = operators(program, variant)[0]
            except (RuntimeError, IndexError, ValueError, ZeroDivisionError):
                continue
            if others != names:
                yield "verdict: same, and other operators with other values"
                return


def sources(record: Record) -> set[str]:
    """Return the inputs, parameters and buffers that a path along the edges leads from to the output."""
    last = record.bodies[record.root].nodes[-1]
    reached = _body(record, record.bodies[record.root], "", [])
    return set().union(*(reached[value.node, value.output] for value in last.inputs)) if last.inputs else set()


def _body(record: Record, body: Body, path: str, given: list[frozenset[str]]) -> Ancestors:
    reached: Ancestors = {("", number): each for number, each in enumerate(given)}
    for node in body.nodes:
        arriving = [reached[value.node, value.output] for value in node.inputs]
        target = node.target[1:] if node.target.startswith("/") else join(path, node.target)
        if node.body:
            inner = record.bodies[node.body]
            found = _body(record, inner, target, arriving)
            for number, value in enumerate(inner.outputs):
                reached[node.name, number] = found[value.node, value.output]
            continue
        own: set[str] = set().union(*arriving) if arriving else set()
        if node.op == "placeholder":
            own.add(node.target or node.name)
        elif node.op == "get_attr":
            own.add(target)
        elif node.op == "call_module":
            own.update(join(target, tensor.path) for tensor in (*node.parameters, *node.buffers))
        reached[node.name, 0] = frozenset(own)
    return reached
