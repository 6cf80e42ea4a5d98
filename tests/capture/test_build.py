"""From a spec to a model and its inputs, and what an author is told where that fails."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

from sphinx_fxgraph.capture.build import CaptureError, build, resolve  # noqa: E402 - it imports torch
from sphinx_fxgraph.spec.spec import GraphSpec  # noqa: E402
from sphinx_fxgraph.spec.syntax import Name  # noqa: E402

pytestmark = pytest.mark.torch

NETS = '''
import torch
from torch import nn

MEAN = torch.tensor([1.0, 2.0])

class Net(nn.Module):
    def __init__(self, width=4, act=nn.ReLU):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, width), act())
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.encoder(x))

class Wide(nn.Module):
    def __init__(self, width, heads, *, bias=True):
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not divide\\na width of {width}")

class Values(nn.Module):
    """Asks for values while it is built, as models with drop path rates do."""
    def __init__(self):
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0, 1, 3)]
        self.linear = nn.Linear(3, 2)
        self.noise = torch.rand(2).tolist()

class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("table", torch.zeros(2, device="cpu"))

INSTANCE = Net(5)
PLAIN = nn.ReLU()

def with_config():
    return Net(), {}

def batch():
    return torch.zeros(2, 3)

def batch_tuple():
    return torch.zeros(2, 3), 5

def batch_dict():
    return {"x": torch.zeros(2, 3)}

def batch_both():
    return [torch.zeros(2, 3)], {"scale": 2}

def batch_fails():
    raise KeyError("no data")
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """A package ``netpkg`` of the test's own; call it to add a file."""
    folder = tmp_path / "netpkg"
    folder.mkdir()

    def add(name: str, text: str) -> None:
        (folder / name).write_text(dedent(text), encoding="utf-8")

    add("__init__.py", "")
    add("nets.py", NETS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield add
    for name in [name for name in sys.modules if name.partition(".")[0] == "netpkg"]:
        del sys.modules[name]


def error_of(target: str = "", inputs: str | None = None, **options: Any) -> CaptureError:
    """What building a spec, and its inputs where some are given, raises."""
    spec = GraphSpec.parse(target, inputs or "", **options)
    if inputs is None:
        with pytest.raises(CaptureError) as caught:
            build(spec)
        return caught.value
    built = build(spec)
    with pytest.raises(CaptureError) as caught:
        built.inputs()
    return caught.value


# -- names


def test_attribute_comes_before_module(package: Callable[[str, str], None]) -> None:
    package("__init__.py", "from netpkg.alexnet import alexnet")
    package("alexnet.py", "class AlexNet: pass\ndef alexnet(): pass")
    assert resolve(Name(None, "netpkg.alexnet")).__name__ == "alexnet"  # type: ignore[attr-defined]
    # Both are called alexnet, and only the module has the class.
    assert resolve(Name(None, "netpkg.alexnet.AlexNet")) is sys.modules["netpkg.alexnet"].AlexNet
    assert resolve(Name("netpkg.alexnet", "AlexNet")) is sys.modules["netpkg.alexnet"].AlexNet


def test_name_that_is_not_there(package: Callable[[str, str], None]) -> None:
    error = error_of("netpkg.nets.Nett")
    assert (error.stage, error.transient) == ("import", False)
    assert error.message == "netpkg.nets has no 'Nett'; did you mean Net?"
    assert "did you mean nets?" in error_of("netpkg.netz.Net").message
    assert "no module 'netpkg.netz'" in error_of("netpkg.netz:Net").message


def test_missing_distribution_is_named_and_tried_again(package: Callable[[str, str], None]) -> None:
    error = error_of("nowhere_to_be_found.models.Net")
    assert (error.stage, error.transient) == ("import", True)
    assert "'nowhere_to_be_found'" in error.message

    package("needs.py", "import torch\nimport nowhere_to_be_found.inner")
    error = error_of("netpkg.needs.Net")
    assert (error.stage, error.transient) == ("import", True)
    assert "'nowhere_to_be_found', which netpkg.needs imports" in error.message
    assert (error.file, error.line) == ("netpkg/needs.py", 2)


def test_import_that_raises(package: Callable[[str, str], None]) -> None:
    package("broken.py", "x = 1\ny = x.nothing\n")
    error = error_of("netpkg.broken.Net")
    assert (error.stage, error.transient) == ("import", False)
    assert (error.type, error.message) == ("AttributeError", "'int' object has no attribute 'nothing'")
    assert (error.file, error.line) == ("netpkg/broken.py", 2)

    package("torn.py", "class Net:\n    def f(self:\n")
    error = error_of("netpkg.torn.Net")
    assert error.type == "SyntaxError"
    assert (error.file, error.line) == ("netpkg/torn.py", 2)

    package("exits.py", "raise SystemExit(3)")
    assert "exit with status 3" in error_of("netpkg.exits.Net").message


# -- models


def test_builds_on_meta(package: Callable[[str, str], None]) -> None:
    built = build(GraphSpec.parse("netpkg.nets:Net(width=6, act=torch.nn.GELU)"))
    assert built.device == "meta"
    assert all(parameter.is_meta for parameter in built.model.parameters())
    assert built.model.head.in_features == 6
    assert isinstance(built.model.encoder[1], nn.GELU)
    assert not built.model.training


def test_builds_for_real_where_the_constructor_asks_for_values(package: Callable[[str, str], None]) -> None:
    first = build(GraphSpec.parse("netpkg.nets.Values"))
    second = build(GraphSpec.parse("netpkg.nets.Values"))
    other = build(GraphSpec.parse("netpkg.nets.Values", seed=1))
    assert first.device == "cpu"
    assert torch.equal(first.model.linear.weight, second.model.linear.weight)
    assert first.model.noise == second.model.noise != other.model.noise
    assert "meta" in error_of("netpkg.nets.Values", device="meta").message


def test_constants_of_a_module_stay_real(package: Callable[[str, str], None]) -> None:
    build(GraphSpec.parse("netpkg.nets.Net"))
    code = "from netpkg import nets\nmodel = nets.Net()"
    build(GraphSpec.parse(code=code))
    assert sys.modules["netpkg.nets"].MEAN.tolist() == [1.0, 2.0]


def test_instance_is_used_as_it_is(package: Callable[[str, str], None]) -> None:
    built = build(GraphSpec.parse("netpkg.nets.INSTANCE", "f32[2, 3]"))
    assert built.model is sys.modules["netpkg.nets"].INSTANCE
    assert built.device == "cpu"
    args, _ = built.inputs()
    assert built.model(*args).shape == (2, 2)


def test_partly_real_model_is_built_for_real(package: Callable[[str, str], None]) -> None:
    assert build(GraphSpec.parse("netpkg.nets.Mixed")).device == "cpu"
    assert "'table' holds values" in error_of("netpkg.nets.Mixed", device="meta").message


def test_options(package: Callable[[str, str], None]) -> None:
    built = build(GraphSpec.parse("netpkg.nets.Net", mode="train", dtype="bf16", submodule="encoder.0", device="cpu"))
    assert isinstance(built.model, nn.Linear)
    assert built.model.training
    assert built.model.weight.dtype == torch.bfloat16
    assert built.model.weight.device.type == "cpu"


def test_options_that_lead_nowhere(package: Callable[[str, str], None]) -> None:
    error = error_of("netpkg.nets.Net", submodule="encode.0")
    assert error.stage == "build"
    assert "no submodule 'encode.0'; did you mean encoder.0" in error.message
    assert "no method 'forwards'; did you mean forward?" in error_of("netpkg.nets.Net", method="forwards").message


def test_constructor_that_raises(package: Callable[[str, str], None]) -> None:
    error = error_of("netpkg.nets.Wide(10, heads=3)")
    assert (error.stage, error.transient) == ("build", False)
    assert (error.type, error.message) == ("ValueError", "3 heads do not divide a width of 10")
    assert error.file == "netpkg/nets.py"
    assert 'raise ValueError(f"{heads}' in NETS.splitlines()[error.line - 1]
    assert isinstance(error.__cause__, ValueError)


def test_missing_arguments_are_shown(package: Callable[[str, str], None]) -> None:
    error = error_of("netpkg.nets.Wide")
    assert error.stage == "build"
    assert error.message.endswith("; write netpkg.nets.Wide(width=..., heads=...)")


def test_without_a_file_the_name_is_told() -> None:
    error = error_of("torch.nn.Unflatten(dim=1, unflattened_size=3.5)")
    assert error.file == ""
    assert error.message.endswith("(in torch.nn.Unflatten)")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("netpkg.nets.MEAN", "netpkg.nets.MEAN is of type Tensor, no torch.nn.Module"),
        ("netpkg.nets.with_config", "is of type tuple, no torch.nn.Module"),
        ("netpkg.nets", "is of type module"),
        ("builtins.type(netpkg.nets.INSTANCE)", "is the class Net"),
    ],
)
def test_target_that_is_no_model(package: Callable[[str, str], None], target: str, words: str) -> None:
    error = error_of(target)
    assert error.stage == "build"
    assert words in error.message
    assert "name a class, a function that returns the model, or the model itself" in error.message


# -- inputs


def inputs_of(text: str, target: str = "netpkg.nets.PLAIN", **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return build(GraphSpec.parse(target, text, **options)).inputs()


def test_inputs_on_meta(package: Callable[[str, str], None]) -> None:
    args, kwargs = inputs_of("[f32[2, 3]], {'y': (i64[3] < 9,)}, z=b8[]", "netpkg.nets.Net")
    assert [type(arg) for arg in args] == [list, dict]
    tensors = [args[0][0], args[1]["y"][0], kwargs["z"]]
    assert all(tensor.is_meta for tensor in tensors)
    assert [tuple(tensor.shape) for tensor in tensors] == [(2, 3), (3,), ()]
    assert [tensor.dtype for tensor in tensors] == [torch.float32, torch.int64, torch.bool]


def test_values(package: Callable[[str, str], None]) -> None:
    (floats, bits, ids, unit, flags, scalar), _ = inputs_of(
        "f32[1000], i64[1000], 5 <= i32[1000] < 9, -1 <= f64[1000] <= 1, b8[1000], f32[]", device="cpu"
    )
    assert floats.min() < 0 < floats.max()
    assert set(bits.tolist()) == {0, 1}
    assert set(ids.tolist()) == {5, 6, 7, 8}
    assert ids.dtype == torch.int32
    assert -1 <= unit.min() < 0 < unit.max() < 1
    assert unit.dtype == torch.float64
    assert set(flags.tolist()) == {True, False}
    assert scalar.dim() == 0


def test_values_come_from_the_seed_alone(package: Callable[[str, str], None]) -> None:
    torch.manual_seed(1)
    random.seed(1)
    before = torch.random.get_rng_state(), random.getstate()
    first, second, other = (inputs_of("f32[4]", seed=seed, device="cpu")[0][0] for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert random.getstate() == before[1]


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize(
    "dtype", ["f64", "f16", "bf16", "i8", "i16", "u8", "u16", "u32", "u64", "c32", "c64", "c128", "f8e4m3fn", "f8e5m2"]
)
def test_every_dtype_can_be_an_input(package: Callable[[str, str], None], dtype: str) -> None:
    (tensor,), _ = inputs_of(f"{dtype}[2, 3]", device="cpu")
    assert tensor.shape == (2, 3)
    assert tensor.device.type == "cpu"


def test_dtype_option_casts_f32_inputs_alone(package: Callable[[str, str], None]) -> None:
    (x, y, z), _ = inputs_of("f32[2], f64[2], i64[2]", "netpkg.nets.Net", dtype="f16")
    assert [tensor.dtype for tensor in (x, y, z)] == [torch.float16, torch.float64, torch.int64]


@pytest.mark.parametrize(
    ("function", "positional", "keywords"),
    [
        ("batch", [(2, 3)], {}),
        ("batch_tuple", [(2, 3), 5], {}),
        ("batch_dict", [], {"x": (2, 3)}),
        ("batch_both", [(2, 3)], {"scale": 2}),
    ],
)
@pytest.mark.parametrize("model", ["Net", "INSTANCE"])
def test_function_that_makes_the_inputs(
    package: Callable[[str, str], None], model: str, function: str, positional: list[Any], keywords: dict[str, Any]
) -> None:
    built = build(GraphSpec.parse(f"netpkg.nets.{model}", f"netpkg.nets:{function}()"))
    args, kwargs = built.inputs()

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            assert value.device.type == built.device
            return tuple(value.shape)
        return value

    assert [plain(arg) for arg in args] == positional
    assert {key: plain(value) for key, value in kwargs.items()} == keywords


def test_inputs_that_fail(package: Callable[[str, str], None]) -> None:
    error = error_of("netpkg.nets.Net", "netpkg.nets:batch_fails()")
    assert error.stage == "input"
    assert (error.type, error.message) == ("KeyError", "'no data'")
    assert 'raise KeyError("no data")' in NETS.splitlines()[error.line - 1]
    assert error_of("netpkg.nets.Net", "netpkg.nets:batches()").stage == "import"


def test_too_little_memory_is_tried_again(package: Callable[[str, str], None]) -> None:
    error = error_of("netpkg.nets.PLAIN", "f32[1_000_000, 1_000_000, 1_000]", device="cpu")
    assert (error.stage, error.transient) == ("limit", True)
    assert "f32[1000000, 1000000, 1000] needs more memory than there is" in error.message


# -- code in the directive's body


def test_code_sets_model_and_inputs(package: Callable[[str, str], None]) -> None:
    code = """
        import torch
        from netpkg.nets import Net

        model = Net(width=8)
        inputs = (torch.randn(2, 3),), {"scale": 2}
    """
    built = build(GraphSpec.parse(code=code))
    args, kwargs = built.inputs()
    assert built.device == "meta"
    assert built.model.head.in_features == 8
    assert args[0].is_meta
    assert kwargs == {"scale": 2}


def test_code_beside_a_target_sets_the_inputs(package: Callable[[str, str], None]) -> None:
    built = build(GraphSpec.parse("netpkg.nets.INSTANCE", code="import torch\ninputs = torch.zeros(2, 3)"))
    args, _ = built.inputs()
    assert args[0].tolist() == [[0, 0, 0], [0, 0, 0]]


def test_code_that_raises(package: Callable[[str, str], None]) -> None:
    error = error_of(code="\nimport torch\n\nmodel = torch.nn.Linear(3)\n")
    assert error.stage == "build"
    assert error.type == "TypeError"
    assert "missing 1 required positional argument: 'out_features'" in error.message
    assert (error.file, error.line) == ("<directive>", 4)

    error = error_of(code="from netpkg.nets import Wide\nmodel = Wide(10, 3)\n")
    assert error.file == "netpkg/nets.py"

    assert "is of type int" in error_of(code="model = 3").message
    assert error_of(code="import nowhere_to_be_found\nmodel = 1").transient


# -- what a model says of its inputs

TELLING = """
import torch
from torch import nn

class Linear(nn.Module):
    def __init__(self, example=None):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        if example is not None:
            self.example_input_array = example

    def forward(self, x, scale=1):
        return self.linear(x) * scale

def lightning(kind):
    x = torch.zeros(3, 4)
    return Linear({"tensor": x, "tuple": (x, 2), "dict": {"x": x, "scale": 2}}[kind])

class Timm(nn.Module):
    default_cfg = {"input_size": (3, 64, 64), "first_conv": "stem.0"}

    def __init__(self, channels=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, 2, 3))

    def forward(self, x):
        return self.stem(x)

class Fails(nn.Module):
    @property
    def example_input_array(self):
        raise RuntimeError("no data set")

def looks_at_values():
    ids = torch.tensor([3, 1, 2])
    return torch.zeros(int(ids.max()), 4), ids.tolist()
"""


def shapes_of(target: str, **options: Any) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs = inputs_of("auto", target, **options)

    def plain(value: Any) -> Any:
        return (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value

    return [plain(arg) for arg in args], {key: plain(value) for key, value in kwargs.items()}


F32, BF16, I64 = torch.float32, torch.bfloat16, torch.int64


@pytest.mark.parametrize("device", ["meta", "cpu", "fake"])
@pytest.mark.parametrize(
    ("target", "args", "kwargs"),
    [
        ('netpkg.telling.lightning("tensor")', [((3, 4), F32)], {}),
        ('netpkg.telling.lightning("tuple")', [((3, 4), F32), 2], {}),
        ('netpkg.telling.lightning("dict")', [], {"x": ((3, 4), F32), "scale": 2}),
        ("netpkg.telling.Timm", [((1, 3, 64, 64), F32)], {}),
        ("netpkg.telling.Timm(channels=1)", [((1, 1, 64, 64), F32)], {}),
    ],
)
def test_inputs_that_a_model_tells(
    package: Callable[[str, str], None], target: str, args: list[Any], kwargs: dict[str, Any], device: str
) -> None:
    package("telling.py", TELLING)
    assert shapes_of(target, device=device) == (args, kwargs)


def test_inputs_that_a_model_tells_have_the_dtype_of_the_spec(package: Callable[[str, str], None]) -> None:
    package("telling.py", TELLING)
    assert shapes_of('netpkg.telling.lightning("tensor")', dtype="bf16") == ([((3, 4), BF16)], {})
    assert shapes_of("netpkg.telling.Timm", dtype="bf16") == ([((1, 3, 64, 64), BF16)], {})


def test_a_model_that_tells_nothing(package: Callable[[str, str], None]) -> None:
    package("telling.py", TELLING)
    error = error_of("netpkg.telling.Linear", "auto")
    assert error.stage == "input"
    assert error.message == "Linear says nothing of its inputs; write them, for example f32[1, 3, 224, 224]"
    error = error_of("netpkg.telling.Fails", "auto")
    assert (error.stage, error.type, error.message) == ("input", "RuntimeError", "no data set")
    assert error.file == "netpkg/telling.py"


SMALL = "hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16"
SEQ2SEQ = (
    "d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=16, decoder_ffn_dim=16,"
    " encoder_attention_heads=2, decoder_attention_heads=2"
)


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (f"BertModel(transformers.BertConfig({SMALL}))", {"input_ids": (3, 5)}),
        (f"ViTModel(transformers.ViTConfig({SMALL}, image_size=32, patch_size=8))", {"pixel_values": (1, 3, 32, 32)}),
        (
            f"WhisperModel(transformers.WhisperConfig({SEQ2SEQ}))",
            {"input_features": (1, 80, 3000), "decoder_input_ids": (1, 8)},
        ),
    ],
)
def test_inputs_that_transformers_tell(target: str, names: dict[str, tuple[int, ...]]) -> None:
    pytest.importorskip("transformers")
    built = build(GraphSpec.parse(f"transformers.{target}", "auto"))
    args, kwargs = built.inputs()
    assert args == ()
    assert {name: tuple(tensor.shape) for name, tensor in kwargs.items()} == names
    with torch.no_grad():
        assert built.model(**kwargs).last_hidden_state.is_meta


def test_inputs_that_torchvision_and_timm_tell() -> None:
    torchvision = pytest.importorskip("torchvision")
    assert shapes_of("torchvision.models.inception_v3(init_weights=False)") == ([((1, 3, 299, 299), F32)], {})
    assert shapes_of("torchvision.models.video.r3d_18") == ([((1, 3, 16, 112, 112), F32)], {})
    assert torchvision
    pytest.importorskip("timm")
    assert shapes_of('timm.create_model("vit_tiny_patch16_224", img_size=96, in_chans=1)') == (
        [((1, 1, 96, 96), F32)],
        {},
    )


# -- devices


def test_a_function_that_looks_at_values_makes_inputs_for_any_device(package: Callable[[str, str], None]) -> None:
    package("telling.py", TELLING)
    for device in ("meta", "cpu", "fake"):
        args, _ = inputs_of("netpkg.telling:looks_at_values()", "netpkg.telling.Linear", device=device)
        assert tuple(args[0].shape) == (3, 4)
        assert args[0].is_meta == (device == "meta")
        assert args[1] == [3, 1, 2]


def test_fake_tensors_say_that_they_are_on_the_cpu(package: Callable[[str, str], None]) -> None:
    built = build(GraphSpec.parse("netpkg.nets.Net", "f32[2, 3]", device="fake", dtype="bf16"))
    args, _ = built.inputs()
    assert built.model.head.weight.device.type == "cpu"
    assert built.model.head.weight.dtype == torch.bfloat16
    with built.place.running(), torch.no_grad():
        result = built.model(*args)
    assert (tuple(result.shape), result.dtype) == ((2, 2), torch.bfloat16)


CASTS = """
import torch
from torch import nn

class Casts(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head, self.tied = nn.LSTM(3, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.tied.weight = self.head.weight
        self.to(torch.float64)

    def forward(self, x):
        x, _ = self.lstm(x)
        return self.tied(self.head(x)).to(torch.float32)
"""


def test_a_constructor_may_cast_modules_of_fake_tensors(package: Callable[[str, str], None]) -> None:
    from sphinx_fxgraph.capture.capture import record_spec

    package("casts.py", CASTS)
    fake, real = (
        record_spec(GraphSpec.parse("netpkg.casts.Casts", "f64[2, 1, 3]", device=device)) for device in ("fake", "cpu")
    )
    assert (fake.failure, real.failure) == (None, None)
    assert (fake.output, fake.totals, fake.ties) == (real.output, real.totals, {"tied.weight": "head.weight"})
    assert fake.totals.dtypes == {"f64": 144 + 16 + 8}


@pytest.mark.parametrize("tracer", ["auto", "symbolic", "observed", "export", "autograd"])
def test_every_tracer_on_every_device(package: Callable[[str, str], None], tracer: str) -> None:
    from sphinx_fxgraph.capture.capture import record_spec

    records = [
        record_spec(GraphSpec.parse("netpkg.nets.Net", "f32[2, 3]", tracer=tracer, device=device, dtype="bf16"))
        for device in ("meta", "cpu", "fake")
    ]
    assert [made.failure for made in records] == [None] * 3
    assert len({made.output for made in records}) == 1
    assert "bf16" in records[0].output
    assert records[0].bodies == records[1].bodies == records[2].bodies


LADDER = """
import torch
from torch import nn

class Asks(nn.Module):
    '''A constructor or a forward that no tensor without values will do for.'''

    def __init__(self, size, at):
        super().__init__()
        self.weight, self.at = nn.Parameter(torch.empty(size, 4)), at
        if at == "build" and self.weight.is_meta:
            raise RuntimeError("a table on meta")

    def forward(self, x):
        if self.at == "run" and self.weight.is_meta:
            raise RuntimeError("a table on meta")
        if self.at == "always":
            raise RuntimeError("a table anywhere")
        return x @ self.weight[:4]
"""


@pytest.mark.parametrize(
    ("size", "at", "asked", "ends"),
    [
        (3_000_000, "never", "auto", "meta"),
        (10, "never", "auto", "cpu"),
        (3_000_000, "build", "auto", "cpu"),
        (3_000_000, "run", "auto", "cpu"),
        (2**43, "never", "auto", "meta"),
        (2**43, "build", "auto", "fake"),
        (2**43, "run", "auto", "fake"),
        (3_000_000, "run", "meta", "RuntimeError: a table on meta"),
        (2**43, "build", "cpu", "RuntimeError: netpkg.ladder.Asks needs more memory than there is"),
        (2**43, "always", "auto", "RuntimeError: a table anywhere"),
        (3_000_000, "always", "auto", "RuntimeError: a table anywhere"),
    ],
)
def test_the_first_device_that_a_model_works_on(
    package: Callable[[str, str], None], size: int, at: str, asked: str, ends: str
) -> None:
    from sphinx_fxgraph.capture.capture import record_spec

    package("ladder.py", LADDER)
    ran: list[str] = []

    def look(_module: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        (x,) = args
        ran.append("meta" if x.is_meta else "cpu" if type(x) is torch.Tensor else "fake")

    hook = nn.modules.module.register_module_forward_pre_hook(look)
    try:
        record = record_spec(GraphSpec.parse(f"netpkg.ladder.Asks({size}, {at!r})", "f32[2, 4]", device=asked))
    finally:
        hook.remove()
    if record.failure:
        assert f"{record.failure.type}: {record.failure.message}".startswith(ends)
    else:
        assert (record.output, ran[-1]) == ("f32[2, 4]", ends)
