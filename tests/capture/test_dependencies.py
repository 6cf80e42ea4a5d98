"""What a record depends on: a package of a hundred models, whose files are edited one after another."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from sphinx_fxgraph.cache.fingerprints import SourceFinder
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker.pool import capture

pytestmark = pytest.mark.torch

COUNT = 100
"""Models in the package; the plain ones differ in nothing but their names, so a few of them speak for all."""
CAPTURED = range(26)

NET = """
from torch import nn
import zoo100.unused
from zoo100 import WIDTH
from zoo100.blocks import Block
from zoo100.types import Shape

class Net{n}(nn.Module):
    shape: Shape = (1, 4)

    def __init__(self, size: Shape = (1, 4)) -> Shape:
        super().__init__()
        self.block = Block(WIDTH)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        return self.head(self.block(x))
"""

SPECIAL = {
    0: """
        from zoo100.blocks import Block
        from zoo100.helper import outer
        class Net0(Block):
            width = 4
            def __init__(self):
                super().__init__(outer(1))
        """,
    1: """
        from zoo100.base import Base
        class Net1(Base):
            pass
        """,
    2: """
        from torch import nn
        from zoo100.decorators import logged
        class Net2(nn.Linear):
            def __init__(self):
                super().__init__(4, 3)
            @logged
            def forward(self, x):
                return super().forward(x)
        """,
    3: """
        from torch import nn
        from zoo100.decorators import twice
        @twice
        class Net3(nn.Linear):
            def __init__(self):
                super().__init__(4, self.out)
        """,
    4: "from zoo100.factory import make\nNet4 = make(4)\n",
    5: """
        from torch import nn
        from zoo100.settings import Settings, Kind, Config, Point
        class Net5(nn.Linear):
            def __init__(self):
                super().__init__(Settings.width, 3)
        """,
    6: """
        from torch import nn
        from zoo100.settings import Config
        class Net6(nn.Linear):
            def __init__(self, config=Config()):
                super().__init__(config.width, 3)
        """,
    7: """
        from torch import nn
        from zoo100 import m00
        class Net7(nn.Linear):
            def __init__(self):
                super().__init__(m00.Net0.width, 3)
        """,
    8: """
        from torch import nn
        class Net8(nn.Linear):
            def __init__(self):
                from .late import table
                super().__init__(4, table.TABLE["out"])
        """,
    9: """
        from torch import nn
        from .again import *
        class Net9(nn.Linear):
            def __init__(self):
                super().__init__(DEEP, 3)
        """,
    10: """
        from torch import nn
        import zoo100.config as c
        def net(width=c.WIDTH):
            return nn.Linear(width, 3)
        Net10 = net
        """,
    11: "from .builders import build11 as Net11\n",
    12: "from .builders import build12 as Net12\n",
    13: """
        from torch import nn
        from .helper import at_import
        OUT = at_import(2)
        class Net13(nn.Linear):
            def __init__(self):
                super().__init__(4, OUT)
        """,
    14: """
        from torch import nn
        from . import generated
        class Net14(nn.Linear):
            def __init__(self):
                super().__init__(4, generated.three())
        """,
    15: """
        from torch import nn
        from .helper import cached
        Net15 = lambda: nn.Linear(4, cached())
        """,
    16: """
        from torch import nn
        class Net16(nn.Linear):
            def __init__(self):
                from .plugins import find
                super().__init__(4, find("three")())
        """,
}

FILES = {
    "config.py": "from .deep import DEEP\nfrom .blocks import Block\nWIDTH = DEEP * 1\nOTHER = None\n",
    "deep.py": "DEEP = 4\n",
    "again.py": "from .deep import *\n",
    "unused.py": "NOTHING = 1\n",
    "types.py": "from typing import Any\nShape = Any\n",
    "blocks.py": """
        from torch import nn
        class Block(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.fc = nn.Linear(width, width)
            def forward(self, x):
                return self.fc(x)
        """,
    "helper.py": """
        import functools
        from .inner import inner
        def outer(x):
            return inner(x)
        def at_import(x):
            return inner(x) - 1
        @functools.cache
        def cached():
            return 3
        """,
    "inner.py": "FACTOR = 4\ndef inner(x):\n    return x * FACTOR\n",
    "base.py": """
        from torch import nn
        from .rootbase import Root
        class Base(Root):
            out = 3
        """,
    "rootbase.py": """
        from torch import nn
        class Root(nn.Linear):
            def __init__(self):
                super().__init__(4, self.out)
        """,
    "decorators.py": """
        import functools
        def logged(function):
            @functools.wraps(function)
            def run(*args):
                return function(*args)
            return run
        def twice(cls):
            cls.out = 2
            return cls
        """,
    "factory.py": """
        from torch import nn
        def make(width):
            class Made(nn.Linear):
                def __init__(self):
                    super().__init__(width, 3)
            return Made
        """,
    "settings.py": """
        import dataclasses, enum, typing
        class Settings:
            width = 4
        class Kind(enum.Enum):
            A = 4
        @dataclasses.dataclass
        class Config:
            width: int = 4
        class Point(typing.NamedTuple):
            x: int = 4
        """,
    "late/__init__.py": "",
    "late/table.py": "from .values import OUT\nTABLE = {}\nTABLE['out'] = OUT\n",
    "late/values.py": "OUT = 3\n",
    "builders.py": """
        from torch import nn
        from .cfg11 import CFG11
        from .cfg12 import CFG12
        def build11():
            return nn.Linear(4, CFG11)
        def build12():
            return nn.Linear(4, CFG12)
        """,
    "cfg11.py": "CFG11 = 3\n",
    "cfg12.py": "CFG12 = 3\n",
    "generated.py": "from .deep import DEEP\nexec('def three():\\n    return 3', globals())\n",
    "plugins.py": """
        import importlib
        def find(name):
            return getattr(importlib.import_module("zoo100.plugin_" + name), name)
        """,
    "plugin_three.py": "def three():\n    return 3\n",
}

NETS = {GraphSpec.parse(f"zoo100:Net{n}", "1, 4"): n for n in CAPTURED}
PLAIN = set(CAPTURED) - set(SPECIAL)

STALE = {
    "m00.py": {0, 7},
    "m01.py": {1},
    "m20.py": {20},
    "m57.py": set(),
    "blocks.py": PLAIN | {0},
    "config.py": PLAIN | {10},
    "deep.py": PLAIN | {9, 10},
    "again.py": set(),
    "helper.py": {0, 13, 15},
    "inner.py": {0, 13},
    "base.py": {1},
    "rootbase.py": {1},
    "decorators.py": {2, 3},
    "factory.py": {4},
    "settings.py": {5, 6},
    "late/table.py": {8},
    "late/values.py": {8},
    "builders.py": {11, 12},
    "cfg11.py": {11},
    "cfg12.py": {12},
    "generated.py": {14},
    "plugins.py": {16},
    "plugin_three.py": {16},
    "__init__.py": set(),
    "unused.py": set(),
    "types.py": set(),
}
"""Which of the models each file decides."""


TWO = {
    "__init__.py": "",
    "net.py": "from torch import nn\nfrom .size import SIZE\nclass Net(nn.Linear):\n    def __init__(self):\n"
    "        super().__init__(SIZE, 3)\n",
    "size.py": "SIZE = 4\n",
}
CODE = "from plain.size import SIZE\nfrom torch import nn\nmodel = nn.Linear(SIZE, 3)"

ELSEWHERE = {
    GraphSpec.parse("space.one.net:Net", "1, 4"): ["space/one/net.py", "space/two/size.py"],
    GraphSpec.parse("zipped.net:Net", "1, 4"): ["zipped/net.py", "zipped/size.py"],
    # The directive's own code is part of the spec, and what `exec` makes has no text: they depend on what they use.
    GraphSpec.parse("", "1, 4", code=CODE): ["plain/size.py"],
    GraphSpec.parse("", "1, 4", code=CODE.replace("import SIZE", "import *")): ["plain/size.py"],
    GraphSpec.parse("made:model", "1, 4"): ["made.py"],
    GraphSpec.parse("torch.nn.Linear(plain.size.SIZE, plain.size:SIZE)", "1, 4"): ["plain/size.py"],
}
"""What packages in other places depend on."""


@dataclass(frozen=True)
class Captured:
    folder: Path
    path: tuple[str, ...]
    """Where the packages are."""
    records: Mapping[GraphSpec, Record]

    def stale(self) -> dict[GraphSpec, tuple[str, ...]]:
        finder = SourceFinder(self.path)
        return {spec: reasons for spec, record in self.records.items() if (reasons := finder.stale_reasons(record))}


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """The models of all packages, captured in one run."""
    folder = tmp_path_factory.mktemp("path")
    nets = {f"m{n:02}.py": SPECIAL.get(n) or NET.format(n=n) for n in range(COUNT)}
    everything = "".join(f"from zoo100.m{n:02} import Net{n}\n" for n in range(COUNT))
    write(folder / "zoo100", {**FILES, **nets, "__init__.py": f"from .config import WIDTH\n{everything}"})
    write(folder / "plain", TWO)
    write(folder, {"made.py": "from torch import nn\nmodel = nn.Linear(4, 3)\n"})
    write(folder / "a/space/one", {"net.py": TWO["net.py"].replace(".size", "space.two.size")})
    write(folder / "b/src/space/two", {"size.py": TWO["size.py"]})
    pack(folder / "packages.zip", TWO)
    path = tuple(str(folder / name) for name in ("", "a", "b/src", "packages.zip"))
    specs = [*NETS, *ELSEWHERE]
    return Captured(folder, path, dict(capture(specs, sys_path=[*path, *sys.path], confdir=folder)))


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")


def pack(archive: Path, files: Mapping[str, str]) -> None:
    with zipfile.ZipFile(archive, "w") as file:
        for name, text in files.items():
            file.writestr(f"zipped/{name}", text)


def test_all_are_captured_and_fresh(captured: Captured) -> None:
    assert {spec: record.failure for spec, record in captured.records.items()} == dict.fromkeys([*NETS, *ELSEWHERE])
    assert captured.stale() == {}
    assert "zoo100" not in sys.modules


@pytest.mark.parametrize("name", STALE)
def test_editing_a_file_makes_exactly_its_users_stale(captured: Captured, name: str) -> None:
    file = captured.folder / "zoo100" / name
    before = file.read_text()
    try:
        file.write_text(before + "# edited\n")
        stale = captured.stale()
    finally:
        file.write_text(before)
    assert {NETS[spec] for spec in stale} == STALE[name]
    assert set(stale.values()) <= {(f"zoo100/{name} changed",)}


def test_only_what_the_model_is_made_of_counts_of_what_is_installed(captured: Captured) -> None:
    assert {tuple(record.distributions) for record in captured.records.values()} == {("torch",)}


def test_packages_in_other_places_have_their_sources(captured: Captured) -> None:
    assert {spec: sources(captured.records[spec]) for spec in ELSEWHERE} == ELSEWHERE


def test_an_edit_is_seen_in_a_namespace_package_and_in_a_zip(captured: Captured) -> None:
    space, zipped, *_ = ELSEWHERE
    write(captured.folder, {"b/src/space/two/size.py": "SIZE = 4  # edited\n"})
    pack(captured.folder / "packages.zip", {**TWO, "size.py": "SIZE = 4  # edited\n"})
    assert captured.stale() == {
        space: ("space/two/size.py changed",),
        zipped: ("zipped/size.py changed",),
    }


def sources(record: Record) -> list[str]:
    return [source.file for source in record.sources]


def test_an_editable_install_whose_package_is_found_by_a_finder_of_its_own(tmp_path: Path) -> None:
    checkout, environment = tmp_path / "checkout", tmp_path / "env"
    write(checkout / "python", TWO)
    setup = "[tool.setuptools]\npackages = ['mapped']\npackage-dir = {mapped = 'python'}\n"
    project = "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n"
    write(checkout, {"pyproject.toml": f"{project}[project]\nname = 'mapped'\nversion = '1'\n{setup}"})
    venv.create(environment, symlinks=True)
    python = str(environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    (site,) = environment.glob("[Ll]ib/**/site-packages")
    (site / "outer.pth").write_text(os.pathsep.join(path for path in sys.path if "site-packages" in path))
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-build-isolation"]
    subprocess.run([*command, "--no-deps", "--no-index", "-e", str(checkout)], check=True)

    ((_, record),) = capture([GraphSpec.parse("mapped.net:Net", "1, 4")], python=python, sys_path=[], confdir=tmp_path)
    assert record.failure is None
    assert sources(record) == ["mapped/net.py", "mapped/size.py"]
    assert list(record.distributions) == ["torch"]
    look = "import sys\nfrom sphinx_fxgraph.cache.fingerprints import SourceFinder\n"
    look += "from sphinx_fxgraph.record.model import Record\n"
    look += "print(*SourceFinder().stale_reasons(Record.from_json(sys.stdin.read())), 'mapped' in sys.modules)"

    def stale() -> str:
        run = subprocess.run(
            [python, "-c", look], input=record.to_json(), capture_output=True, check=True, encoding="utf-8"
        )
        return run.stdout.strip()

    assert stale() == "False"
    write(checkout / "python", {"size.py": "SIZE = 4  # edited\n"})
    assert stale() == "mapped/size.py changed False"


INSTALLED = {
    "layers-one": {
        "layers_one/__init__.py": """
            import torch
            from torch import nn
            from hub_like import Mixin, loaded
            from typing_like import deprecated
            from opslike import rearranged

            class Net(nn.Module, Mixin):
                @loaded
                def __init__(self):
                    super().__init__()
                    self.first = make()
                    self.second = encoder()

                @deprecated
                def forward(self, x):
                    return self.second(self.first(rearranged(x)))

            def make():
                return nn.Linear(4, 4)

            from encoders import encoder
            """,
    },
    "encoders": {"encoders.py": "from torch import nn\ndef encoder():\n    return nn.Linear(4, 3)\n"},
    "opslike": {"opslike.py": "def rearranged(x):\n    return x.flip(0).reshape(-1, 4)\n"},
    "hub-like": {
        "hub_like.py": """
            import functools, typing_like
            class Mixin:
                def saved(self):
                    return typing_like.version()
            def loaded(function):
                @functools.wraps(function)
                def run(*args):
                    typing_like.version()
                    return function(*args)
                return run
            """,
    },
    "typing-like": {
        "typing_like.py": """
            import functools
            def version():
                return "1.0"
            def deprecated(function):
                @functools.wraps(function)
                def run(*args):
                    return function(*args)
                return run
            """,
    },
    "tables-like": {"tables_like.py": "def frame(rows):\n    return list(rows)\nWIDTH = 4\n"},
    "sizes-like": {"sizes_like.py": "SIZE = 3\n"},
}
LOCAL = """
    from torch import nn
    import tables_like
    from sizes_like import SIZE
    from .release import __version__

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.version = __version__
            self.rows = tables_like.frame([1, 2])
            self.fc = nn.Linear(4, SIZE)

        def forward(self, x):
            return self.fc(x)
    """


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with distributions, and a package beside it."""
    folder = tmp_path_factory.mktemp("installed")
    for name, files in INSTALLED.items():
        write(folder / "site-packages", files)
        info = f"{name.replace('-', '_')}-1.0.dist-info"
        record = "".join(f"{file},,\n" for file in files)
        write(folder / "site-packages", {f"{info}/METADATA": f"Name: {name}\nVersion: 1.0\n", f"{info}/RECORD": record})
    write(folder / "mine", {"__init__.py": "", "net.py": LOCAL, "release.py": "__version__ = '1'\n"})
    return folder


def test_a_distribution_counts_whose_modules_operators_or_constants_are_in_the_graph(installed: Path) -> None:
    """A mixin, a decorator, and what they call do not make a graph: a new release of them changes none."""
    site = str(installed / "site-packages")
    specs = {
        GraphSpec.parse("layers_one.Net", "1, 4"): {"layers-one", "encoders", "opslike", "torch"},
        GraphSpec.parse("layers_one.make", "1, 4"): {"layers-one", "torch"},
        GraphSpec.parse("torch.nn.Sequential(layers_one.make())", "1, 4"): {"layers-one", "torch"},
        GraphSpec.parse("mine.net.Net", "1, 4"): {"sizes-like", "torch"},
    }
    found = dict(capture(list(specs), sys_path=[str(installed), site, *sys.path], confdir=installed))
    assert [record.failure for record in found.values()] == [None] * len(specs)
    assert {spec: set(record.distributions) for spec, record in found.items()} == specs
    assert sources(found[GraphSpec.parse("mine.net.Net", "1, 4")]) == ["mine/net.py"]
