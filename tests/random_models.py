"""Random models, and the truth about them found without the package: by perturbing, by plain hooks, by counting.

A model is a list of Python statements, so a disagreement can be shrunk to the few statements that cause it. Nothing
here knows how the package records a model.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._python_dispatch import TorchDispatchMode

ROWS, COLUMNS = 2, 4


class Scaled(nn.Module):
    """Takes a dict and returns one, and keeps a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(COLUMNS) + 0.5)
        self.register_buffer("shift", torch.rand(COLUMNS))

    def forward(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"y": values["x"] * self.weight + self.shift}


class InPlace(nn.Module):
    """Writes into a part of what it is given, and returns another part."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(COLUMNS, COLUMNS)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        left, right = x.chunk(2, dim=1)
        left.add_(y[:, :2])
        return self.lin(x), right


class Scaler(nn.Module):
    """Scales by a plain number that it reads."""

    def forward(self, x: Tensor) -> Tensor:
        scale = float(x.abs().max()) / 127
        return x / scale


class Sub(Tensor):
    """A subclass of a tensor."""


class Base(nn.Module):
    """What every random model has."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(COLUMNS, COLUMNS)
        self.blk = nn.Sequential(nn.Linear(COLUMNS, COLUMNS), nn.Tanh(), nn.Linear(COLUMNS, COLUMNS))
        self.same = nn.Identity()
        self.drop = nn.Dropout()
        self.norm = nn.LayerNorm(COLUMNS)
        self.bn = nn.BatchNorm1d(COLUMNS)
        self.scaled, self.inner, self.scaler = Scaled(), InPlace(), Scaler()
        self.shared = self.blk
        self.act = nn.SiLU(inplace=True)
        self.p = nn.Parameter(torch.rand(ROWS, COLUMNS) + 0.5)
        self.buf: Tensor
        self.register_buffer("buf", torch.rand(ROWS, COLUMNS) + 0.5)


@dataclass(frozen=True)
class Program:
    """A model: the statements of its ``forward``."""

    lines: tuple[str, ...]
    result: str
    seed: int = 0

    @property
    def source(self) -> str:
        """The method as Python text."""
        body = "".join(f"    {line}\n" for line in (*self.lines, f"return {self.result}"))
        return f"def forward(self, x, y):\n{body}"

    def model(self) -> nn.Module:
        """Make the model; its tensors follow from the seed."""
        names: dict[str, Any] = {"torch": torch, "Sub": Sub, "F": nn.functional, "math": math}
        exec(compile(self.source, "<random model>", "exec"), names)
        cls = type("Random", (Base,), {"forward": names["forward"], "__module__": __name__})
        torch.manual_seed(self.seed)
        model: nn.Module = cls()
        return model.eval()

    def inputs(self, variant: int = 0) -> tuple[Tensor, Tensor]:
        """Make the inputs; those of another variant have other values."""
        made = torch.Generator().manual_seed(1000 * self.seed + variant)
        x, y = (torch.rand(ROWS, COLUMNS, generator=made) + 0.25 for _ in range(2))
        return x, y


# -- generation

_UNARY = ("torch.sin({a})", "{a} * 2", "torch.tanh({a})", "{a}.exp()", "1 - {a}", "F.softplus({a})", "{a}.clone()")
_SAME = ("self.same({a})", "self.drop({a})", "{a}.contiguous()", "{a}.to(torch.float32)")
_BINARY = ("{a} + {b}", "{a} * {b}", "torch.sub({a}, {b})", "torch.maximum({a}, {b})", "torch.where({a} > 9, {b}, {a})")
_IN_PLACE = (
    "{a}.add_({b})",
    "{a}.mul_({b})",
    "{a} += {b}",
    "{a}.copy_({b})",
    "{a}[...] = {b}",
    "torch.mul({a}, {b}, out={a})",
    "torch.sin({b}, out={a})",
    "{a}.mul_(2)",
    "{a}.sin_()",
    "F.relu({a}, inplace=True)",
    "{a}.data.copy_({b})",
    "{a}.detach().add_({b})",
    "torch._foreach_add_([{a}], [{b}])",
    "{a}.view_as({a}).sub_({b})",
)
_VIEWS = (
    "{a}.view(-1)",
    "{a}[:, :2]",
    "{a}[:, 2:]",
    "{a}[0]",
    "{a}[-1:]",
    "{a}[:, ::2]",
    "{a}[:, 1::2]",
    "{a}.t()",
    "{a}.transpose(0, 1)[1]",
    "{a}.diagonal()",
    "{a}.select(1, 1)",
    "{a}.narrow(1, 1, 2)",
    "{a}.unsqueeze(0)[0]",
    "{a}.reshape(4, 2)",
    "{a}.view(2, 2, 2)[:, 1]",
    "{a}.as_strided((2, 2), (4, 1), 1)",
    "{a}.expand(3, 2, 4)[1]",
    "{a}.detach()",
    "{a}.data",
    "{a}.unfold(1, 2, 2)[:, 0]",
    "{a}.T[2:].T",
    "{a}.squeeze()",
)
_PAIRS = (
    "{p}, {q} = {a}.chunk(2, 1)",
    "{p}, {q} = {a}.unbind()",
    "{p}, {q} = {a}.split([1, 3], 1)",
    "{p}, {q} = {a}",
    "{p}, {q} = {a}.tensor_split(2, 1)",
    "{p}, {q} = torch.hsplit({a}, 2)",
)
_FULL = (
    "self.lin({a})",
    "self.blk({a})",
    "self.shared({a})",
    "self.norm({a})",
    "self.bn({a})",
    "self.scaled({{'x': {a}}})['y']",
    "self.inner({a}, {b})[0]",
    "self.act({a}.clone())",
    "self.act({a})",
    "self.scaler({a})",
    "{a} @ {b}.t() @ {b}",
    "self.p * {a}",
    "self.buf + {a}",
    "torch.cat([{a}[:, :2], {b}[:, 2:]], 1)",
    "torch.stack([{a}, {b}])[0]",
    "torch.zeros_like({a}).scatter({a}.dim() - 1, torch.tensor([[0], [1]]), {b})",
    "{a}.index_add(0, torch.tensor([1]), {b}[:1])",
    "{a}.masked_fill({b} > 9, 0.5)",
    "{a}.as_subclass(Sub).mul(2).as_subclass(torch.Tensor)",
    "torch.view_as_real(torch.complex({a}, {b}))[..., 1]",
    "[{a}, {{'k': ({b}, 1)}}][1]['k'][0]",
    "torch.vmap(lambda row: row * 2)({a})",
    "torch.from_numpy({a}.numpy().copy() * 2)",
    "{a}.float().double().float()",
    "{a}.new_zeros(2, 4).add_({b})",
)
_WRITES = (
    "{a}.scatter_(1, torch.tensor([[0], [1]]), {b})",
    "{a}.index_put_((torch.tensor([0]), torch.tensor([1])), {b}[0, 0])",
    "{a}.index_add_(0, torch.tensor([1]), {b}[:1])",
    "{a}.masked_fill_({b} > 0.5, 0.25)",
    "{a}[0] = {b}[1]",
    "{a}[:, 1] = {b}[:, 2]",
    "{a}[{b} > 0.75] = 0.5",
    "{a}.t()[0].mul_({b}[0, 1])",
    "for row, value in zip({a}, ({b}[0], {b}[1] * 2)): row.copy_(value)",
    "for k in range(2): {a}[k, k:] += {b}[k, k:]",
    "{a}.fill_diagonal_(0.5)",
    "torch.cos({b}[:, :2], out={a}[:, 2:])",
    "self.buf.mul_({a})",
    "self.buf[:, :2] = {a}[:, 2:]",
    "self.buf = {a} * 2",
    "self.lin.bias.data.copy_({a}[0])",
    "self.p.data[:, 1:3] = {a}[:, :2]",
    "self.scaled.shift.copy_({a}[1])",
    "self.memory = {a}",
)
_NUMBERS = (
    "float({a}.abs().max()) / 3",
    "{a}.sum().item() * 2 + 1",
    "{a}.reshape(-1).tolist()[1]",
    "1 / (0.5 + float({a}.reshape(-1)[-1]))",
    "round({a}.sum().item() * 64) / 64",
    "math.sqrt({a}.pow(2).sum().item())",
)
_INDICES = ("int({a}.reshape(-1)[:4].argmax()) % 2", "{a}.reshape(-1)[:2].argmin().item()", "int({a}.sum() * 8) % 2")


@dataclass
class _Maker:
    """Makes one program; statements that fail are dropped."""

    chance: random.Random
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pick(self, names: list[str]) -> str:
        late = names[-4:] if self.chance.random() < 0.6 else names
        return self.chance.choice(late)


def make(seed: int, length: int = 0) -> Program:
    """Make the random program of a seed."""
    maker = _Maker(random.Random(seed))
    chance = maker.chance
    for _ in range(length or chance.randint(3, 14)):
        for _ in range(20):
            line = _line(maker, _shapes(maker.lines, seed))
            if line and _runs(Program((*maker.lines, *line), "x", seed)):
                maker.lines += line
                break
    shapes = _shapes(maker.lines, seed)
    tensors = [name for name, shape in shapes.items() if isinstance(shape, tuple)]
    result = maker.pick([*tensors, *("x",) * 2])
    return Program(tuple(maker.lines), result, seed)


def _line(maker: _Maker, shapes: dict[str, Any]) -> list[str]:
    chance = maker.chance
    tensors = [name for name, shape in shapes.items() if isinstance(shape, tuple)]
    whole = [name for name in tensors if shapes[name] == (ROWS, COLUMNS)]
    numbers = [name for name, shape in shapes.items() if shape == "float"]
    places = [name for name, shape in shapes.items() if shape == "int"]
    a = maker.pick(tensors)
    alike = [name for name in tensors if shapes[name] == shapes[a]]
    b = maker.pick(alike)
    f, g = maker.pick(whole), maker.pick(whole)
    new, p, q = maker.name(), maker.name(), maker.name()
    kind = chance.choices(
        ("unary", "same", "binary", "inplace", "view", "pair", "full", "write", "number", "index", "empty", "use"),
        (2, 1, 3, 5, 5, 3, 5, 4, 1, 1, 2, 3),
    )[0]
    if kind in ("unary", "same", "binary", "full"):
        form = chance.choice({"unary": _UNARY, "same": _SAME, "binary": _BINARY, "full": _FULL}[kind])
        return [f"{new} = " + (form.format(a=f, b=g) if kind == "full" else form.format(a=a, b=b))]
    if kind == "inplace":
        return [chance.choice(_IN_PLACE).format(a=a, b=b)]
    if kind == "view":
        return [f"{new} = " + chance.choice(_VIEWS).format(a=f)]
    if kind == "pair":
        return [chance.choice(_PAIRS).format(a=f, p=p, q=q)]
    if kind == "write":
        return [chance.choice(_WRITES).format(a=f, b=g)]
    if kind == "number":
        return [f"{new} = " + chance.choice(_NUMBERS).format(a=a)]
    if kind == "index":
        return [f"{new} = " + chance.choice(_INDICES).format(a=f)]
    if kind == "empty":
        form = chance.choice(
            ("torch.zeros(2, 4)", "torch.empty(2, 4).fill_(0.5)", "torch.ones(2, 4)", "torch.full_like({a}, 2)")
        )
        return [f"{new} = " + form.format(a=f)]
    if numbers and chance.random() < 0.5:
        n = chance.choice(numbers)
        return [
            f"{new} = "
            + chance.choice(("{a} * {n}", "{a} / ({n} + 9)", "torch.full_like({a}, {n})", "{a}.clamp(max={n})")).format(
                a=a, n=n
            )
        ]
    if places:
        return [
            f"{new} = "
            + chance.choice(("{a}[{n}]", "{a}[:, {n}]", "{a}.roll({n} + 1)")).format(a=f, n=chance.choice(places))
        ]
    return []


def _shapes(lines: list[str], seed: int) -> dict[str, Any]:
    """Run statements; return the shape of each tensor and the type of each number there is then."""
    end = "locals().copy()"
    program = Program(tuple(lines), end, seed)
    with torch.no_grad():
        found = program.model()(*program.inputs())
    shapes: dict[str, Any] = {}
    for name, value in found.items():
        if name in ("row", "value", "k", "self"):
            continue
        if isinstance(value, Tensor) and value.dtype == torch.float32 and value.numel():
            shapes[name] = tuple(value.shape)
        elif type(value) in (int, float):
            shapes[name] = type(value).__name__
    return shapes


def _runs(program: Program) -> bool:
    try:
        with torch.no_grad():
            for variant in range(2):
                program.model()(*program.inputs(variant))
    except (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError, OverflowError):
        return False
    return True


# -- the truth


def run(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """Run a model once, and return a copy of its result."""
    with torch.no_grad():
        result = model(*inputs)
    return result.detach().clone().double()


def dependence(program: Program, known: set[str]) -> set[str]:
    """Return what the result truly depends on, a change of one changes it: inputs, parameters and buffers.

    Args:
        program: the model.
        known: what need not be looked at.
    """
    before = run(program.model(), program.inputs())
    model = program.model()
    names = {"x", "y", *(name for name, _ in (*model.named_parameters(), *model.named_buffers()))} - known

    def depends(names: set[str]) -> bool:
        return any(not _equal(_changed(program, names, number), before) for number in range(3))

    if not depends(names):  # as is nearly always so
        return set()
    return {name for name in names if depends({name})}


def _equal(one: Tensor | None, other: Tensor) -> bool:
    if one is None:  # it fails with other values
        return True
    return one.shape == other.shape and torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))


def _changed(program: Program, names: set[str], number: int) -> Tensor | None:
    """Run a program with other values of some of its tensors; None where it fails."""
    model, (x, y) = program.model(), program.inputs()
    tensors = {"x": x, "y": y, **dict(model.named_parameters()), **dict(model.named_buffers())}
    noise = torch.Generator().manual_seed(number)
    scale = (0.01, 0.3, -0.2)[number]
    with torch.no_grad():
        for name in sorted(names):
            if tensors[name].is_floating_point():
                tensors[name].add_(scale * (0.5 + torch.rand(tensors[name].shape, generator=noise)))
    try:
        return run(model, (x, y))
    except (RuntimeError, IndexError, ValueError, ZeroDivisionError, OverflowError):
        return None


def module_calls(program: Program) -> list[tuple[str, tuple[int, ...]]]:
    """Return the calls of torch's own modules in the order in which they end: class, and shape of the result."""
    calls = []

    def hook(module: nn.Module, _args: object, result: object) -> None:
        if (
            isinstance(result, Tensor)
            and type(module).__module__.startswith("torch.nn")
            and not list(module.children())
        ):
            calls.append((type(module).__name__, tuple(result.shape)))

    handle = register_module_forward_hook(hook)
    try:
        run(program.model(), program.inputs())
    finally:
        handle.remove()
    return calls


class _Operators(TorchDispatchMode):
    """Notes the operators of the dispatcher, and counts the products of matrices among them."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[tuple[str, tuple[tuple[int, ...], ...]]] = []
        self.macs = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in ("mm", "addmm", "bmm", "baddbmm"):
            left = args[1] if name.startswith(("addmm", "baddbmm")) else args[0]
            self.macs += out.numel() * left.shape[-1]
        shapes = tuple(
            tuple(each.shape) for each in (out if isinstance(out, tuple | list) else (out,)) if isinstance(each, Tensor)
        )
        self.names.append((name, shapes))
        return out


def operators(program: Program, variant: int = 0) -> tuple[list[tuple[str, tuple[tuple[int, ...], ...]]], int]:
    """Return the operators of the dispatcher with the shapes of their results, and their multiply-adds."""
    model, inputs = program.model(), program.inputs(variant)
    with _Operators() as seen:
        run(model, inputs)
    return seen.names, seen.macs


# -- shrinking


def shrink(program: Program, is_wrong: Callable[[Program], bool]) -> Program:
    """Return the shortest program found that is still wrong."""
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(program.lines))):
            lines = program.lines[:number] + program.lines[number + 1 :]
            shorter = Program(lines, program.result, program.seed)
            try:
                run(shorter.model(), shorter.inputs())
            except Exception:  # noqa: BLE001 - it lacks a name that was removed
                continue
            if is_wrong(shorter):
                program, changed = shorter, True
    return program
