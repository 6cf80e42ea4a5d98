"""How many models of ``tests/battery`` each tool gives a graph of, and whether it leaves torch as it was.

    python benchmarks/peers/traits.py --out docs/design/peers

needs what ``draw.py`` needs, and torchvista. Each model has a trait that has made some tool fail or draw something
else. A model counts as *drawn* if the tool gives a graph without an error, within 30 s; what is in the graph is
compared for sphinx-fxgraph alone, by ``tests/capture/test_battery.py``. *Torch changed* counts the functions and
methods of torch that are other objects after all models. Each tool runs in a process of its own.
"""

from __future__ import annotations

import argparse
import csv
import json
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import torch  # noqa: E402 - after the path
import torch._dynamo  # noqa: E402 - it replaces torch.manual_seed itself, which no tool is to blame for
from battery import CASES  # noqa: E402
from torch import nn  # noqa: E402


def ours(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``model_record(model, args, kwargs)``."""
    from sphinx_fxgraph import model_record

    model_record(model, args, kwargs)


def torchview(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``draw_graph(model, input_data)``."""
    from torchview import draw_graph

    draw_graph(model, input_data=list(args), device="cpu", **kwargs)


def torchviz(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``make_dot`` of the first tensor of the result."""
    from torch.utils import _pytree
    from torchviz import make_dot

    (first, *_) = (leaf for leaf in _pytree.tree_leaves(model(*args, **kwargs)) if isinstance(leaf, torch.Tensor))
    if first.grad_fn is None:
        raise ValueError("the result has no backward graph")
    make_dot(first)


def torchlens(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``trace(model, args, kwargs)``."""
    from torchlens import trace

    trace(model, list(args), kwargs)


def torchvista(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``trace_model(model, inputs)``, which prints its errors."""
    import contextlib
    import io

    from torchvista import trace_model

    if kwargs:
        raise ValueError("trace_model takes no keyword arguments")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as told:
        path = Path(folder, "graph.html")
        trace_model(model, args if len(args) != 1 else args[0], export_format="html", export_path=str(path))
        if not path.exists() or "Error" in told.getvalue():
            raise ValueError(told.getvalue())


def graph_drawer(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ARG001 - as the others
    """``FxGraphDrawer`` on the symbolic trace."""
    from torch.fx import symbolic_trace
    from torch.fx.passes.graph_drawer import FxGraphDrawer

    FxGraphDrawer(symbolic_trace(model), "model").get_dot_graph()


TOOLS: dict[str, Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]] = {
    "sphinx-fxgraph": ours,
    "torchview": torchview,
    "torchviz": torchviz,
    "TorchLens": torchlens,
    "torchvista": torchvista,
    "FxGraphDrawer": graph_drawer,
}


def names() -> dict[str, int]:
    """Return the identity of what other code calls in torch."""
    spaces = {"torch": torch, "functional": nn.functional, "Tensor": torch.Tensor, "Module": nn.Module}
    return {
        f"{space}.{name}": id(value)
        for space, of in spaces.items()
        for name, value in vars(of).items()
        if callable(value)
    }


def tried(tool: str) -> tuple[int, int]:
    """Return how many models a tool draws, and how many names of torch have changed."""
    warnings.simplefilter("ignore")
    drawn = 0
    before = names()
    signal.signal(signal.SIGALRM, _late)
    for case in CASES.values():
        signal.alarm(30)
        try:
            TOOLS[tool](case.model().eval(), case.args(), case.kwargs())
            drawn += 1
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is what it does with this model
            print(case.name, type(error).__name__, str(error)[:80].replace("\n", " "), file=sys.stderr)
        finally:
            signal.alarm(0)
    after = names()
    return drawn, sum(after.get(name) != identity for name, identity in before.items())


def _late(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    """Try all tools."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the table")
    parser.add_argument("--tool", choices=TOOLS)
    arguments = parser.parse_args()
    if arguments.tool:
        print(json.dumps(tried(arguments.tool)))
        return
    rows = []
    for tool in TOOLS:
        run = subprocess.run(
            [sys.executable, __file__, "--tool", tool], stdout=subprocess.PIPE, check=False, encoding="utf-8"
        )
        if run.returncode:
            rows.append((tool, len(CASES), f"its process ended with status {run.returncode}", ""))
        else:
            drawn, changed = json.loads(run.stdout.splitlines()[-1])
            rows.append((tool, len(CASES), drawn, changed))
        print(*rows[-1], flush=True)
    with (arguments.out / "traits.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("Tool", "Models", "Drawn", "Torch changed"))
        table.writerows(rows)


if __name__ == "__main__":
    main()
