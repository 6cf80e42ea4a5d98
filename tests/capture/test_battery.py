"""Every model of the battery: its graph, the facts of a plain run, and that nothing of a capture stays behind."""

from __future__ import annotations

import functools
import random
import sys
from typing import Any

import pytest
from conftest import DOCS

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore"),  # some of the models use what torch would rather not have used
]

sys.path.append(str(DOCS.parent / "benchmarks" / "coverage"))

from battery import CASES, Case  # noqa: E402
from comparison import differences  # noqa: E402
from facts import plain_forward  # noqa: E402
from torch import nn  # noqa: E402 - only where torch is
from torch.utils import checkpoint  # noqa: E402

from sphinx_fxgraph.capture.capture import record_model  # noqa: E402
from sphinx_fxgraph.record.model import Record  # noqa: E402
from sphinx_fxgraph.render.dot import flatten_record  # noqa: E402


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def graph(record: Record) -> str:
    """What runs, each with what it takes."""
    return "; ".join(
        f"{each.path}({', '.join(source.path for source in each.sources)})" if each.sources else each.path
        for each in flatten_record(record)
    )


def marks(record: Record) -> dict[str, tuple[str, ...]]:
    found = {each.path: (*each.node.marks, *(["in place"] * each.node.inplace)) for each in flatten_record(record)}
    found |= {node.name: node.marks for _, _, node in record.walk() if node.body}
    return {path: given for path, given in found.items() if given}


@functools.cache
def observed(name: str) -> Record:
    """What a run of a case shows."""
    case = CASES[name]
    return record_model(case.model(), case.args(), case.kwargs(), tracer="observed")


def test_what_a_run_shows(case: Case) -> None:
    record = observed(case.name)
    assert record.failure is None
    assert graph(record) == case.graph
    assert record.output == case.result
    assert marks(record) == case.marks
    assert Record.from_json(record.to_json()) == record


def test_the_verdict(case: Case) -> None:
    record = record_model(case.model(), case.args(), case.kwargs())
    assert record.verdict is not None
    assert (record.verdict.kind, record.tracer) == (("same", "symbolic") if case.traced else ("path", "observed"))
    assert record.output == case.result
    if not case.traced:
        assert record.verdict.reason
        assert record.verdict.file.startswith("battery/")
        assert record.verdict.line > 0


def test_a_meta_tensor_shows_the_same(case: Case) -> None:
    if case.values:
        pytest.skip("it needs values")
    model = case.model()
    real = record_model(model, case.args(), case.kwargs(), tracer="observed")
    if any("scripted" in each.path for each in flatten_record(real)):
        pytest.skip("TorchScript has no meta kernels for it")
    with torch.device("meta"):
        built, args, kwargs = case.model(), *moved((case.args(), case.kwargs()))
    assert graph(record_model(built, args, kwargs, tracer="observed")) == graph(real)


def moved(value: Any) -> Any:
    """A value with its tensors on the meta device."""
    from torch.utils import _pytree

    return _pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), value)


def torch_itself() -> list[Any]:
    """What a capture puts something else in place of."""
    blocks = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled, torch.inference_mode, torch.autocast)
    return [
        nn.Module.__call__,
        nn.Parameter.__new__,
        torch.jit.ScriptFunction.__call__,
        torch._functorch.apis.vmap_impl,
        vars(checkpoint.CheckpointFunction)["forward"],
        checkpoint._checkpoint_without_reentrant_generator,
        *((block.__enter__, block.__exit__) for block in blocks),
        *(vars(cls).get("forward") for cls in torch.autograd.Function.__subclasses__()),
        torch.backends.mha.get_fastpath_enabled(),
        torch.is_grad_enabled(),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
    ]


@pytest.mark.parametrize("tracer", ["auto", "observed"])
def test_nothing_stays_behind(case: Case, tracer: str) -> None:
    model = case.model().train()
    args, kwargs = case.args(), case.kwargs()
    tensors = {} if isinstance(model, torch.jit.ScriptModule) else dict(model.state_dict())
    lazy = any(map(nn.parameter.is_lazy, tensors.values()))
    values = {} if lazy else {name: value.clone() for name, value in tensors.items()}
    pointers = {} if lazy else {name: value.data_ptr() for name, value in tensors.items()}
    attributes = [(module, sorted(vars(module)), module.training) for module in model.modules()]
    lists = [(each, list(each)) for each in vars(model).values() if isinstance(each, list)]
    hooks = [list(module._forward_hooks) for module in model.modules()]
    given = [tensor.clone() for tensor in flat((args, kwargs))]
    torch_before, seeds = torch_itself(), (torch.get_rng_state(), random.getstate())

    record_model(model, args, kwargs, tracer=tracer)

    assert torch_itself() == torch_before
    assert torch.equal(torch.get_rng_state(), seeds[0])
    assert random.getstate() == seeds[1]
    assert [(module, sorted(vars(module)), module.training) for module in model.modules()] == attributes
    assert [list(module._forward_hooks) for module in model.modules()] == hooks
    assert all(same(now, before) for now, before in lists)
    after = {} if lazy else dict(model.state_dict())
    assert all(torch.equal(after[name], value) for name, value in values.items())
    assert {name: after[name].data_ptr() for name in pointers} == pointers
    assert all(torch.equal(now, before) for now, before in zip(flat((args, kwargs)), given, strict=True))
    assert not any(tensor.requires_grad for tensor in flat((args, kwargs)))


def flat(value: Any) -> list[Any]:
    from torch.utils import _pytree

    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def same(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))


NO_PLAIN_FACTS = {
    "CacheResult": "hooks know nothing of what is in an object",
    "DistributionResult": "hooks know nothing of what is in an object",
    "GeneratorResult": "hooks do not consume a generator",
    "ForceOutside": "a plain run has no gradients",
    "Lazy": "its modules change their class when they are first called",
    "Parallel": "what is around its modules is left out, and noted",
    "Transforms": "a function that is transformed is one operator",
}


def test_the_facts_of_a_plain_run(case: Case) -> None:
    model, args, kwargs = case.model().eval(), case.args(), case.kwargs()
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        pytest.skip("TorchScript calls no hooks of torch's")
    if case.name in NO_PLAIN_FACTS:
        pytest.skip(NO_PLAIN_FACTS[case.name])
    facts = plain_forward(model, args, kwargs)
    found = differences(observed(case.name), facts, model)
    assert [each for each in found if "not reached" not in each and "no edge" not in each] == []
