"""The viewer's files are built from its source, and its words are known to the translations."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sphinx_fxgraph.words import VIEWER_WORDS

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "viewer" / "src").glob("*.js"), key=lambda path: path.name)


@pytest.mark.parametrize("name", ["fxgraph.js", "fxgraph-nodes.js", "fxgraph-table.js"])
def test_a_script_is_built_from_the_source_as_it_is(name: str) -> None:
    digest = hashlib.sha256()
    for path in SOURCES:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    script = (ROOT / "sphinx_fxgraph" / "static" / name).read_text(encoding="utf-8")
    assert f"Sources: {digest.hexdigest()}" in script.partition("\n")[0], "run `npm run build` in viewer/"


def test_every_word_of_the_viewer_can_be_translated() -> None:
    words = set()
    for path in SOURCES:
        words |= set(re.findall(r'(?<![\w.])_\(\s*"((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8")))
    assert words <= set(VIEWER_WORDS)


def test_logic_and_types() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    viewer = ROOT / "viewer"
    commands = [[node, "--test", *map(str, sorted((viewer / "test").glob("*.test.js")))]]
    compiler = viewer / "node_modules" / "typescript" / "bin" / "tsc"
    if compiler.is_file():
        commands.append([node, str(compiler), "-p", str(viewer)])
    for command in commands:
        done = subprocess.run(command, capture_output=True, check=False, cwd=viewer, encoding="utf-8")
        assert done.returncode == 0, done.stdout + done.stderr
