"""The committed records of the gallery: one for each model, small, in the format of today, with published numbers."""

from __future__ import annotations

import sys

import pytest
from conftest import DOCS

from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.record.header import SCHEMA
from sphinx_fxgraph.spec.spec import GraphSpec

sys.path.append(str(DOCS / "extensions"))

import gallery

ZOOS = gallery.zoos()
ENTRIES = [entry for zoo in ZOOS.values() for entry in zoo["registry"] if "target" in entry]
STORE = Store(gallery.GALLERY / "records")


def spec(entry: dict[str, str]) -> GraphSpec:
    return GraphSpec.parse(entry["target"], entry["inputs"])


def test_there_are_models_of_many_families() -> None:
    assert len(ZOOS) - 1 >= 12
    assert len(ENTRIES) + len(ZOOS["written"]["registry"]) >= 48
    assert sum(bool(entry["parameters"]) for entry in ENTRIES) >= 24


def test_the_index_shows_each_family_and_each_page_that_was_written_by_hand() -> None:
    index = (gallery.GALLERY / "index.rst").read_text(encoding="utf-8")
    assert [name for name in ZOOS if f".. fxgraph-zoo:: {name}\n" not in index + "\n"] == []
    pages = {path.stem for path in gallery.GALLERY.glob("*.rst")}
    assert pages == {entry["name"] for entry in ZOOS["written"]["registry"]} | {"index", "failure"}
    count = len(ZOOS["written"]["registry"])
    assert f"\n{len(ENTRIES) + count} models in figures. {count} are captured" in index
    assert f"{len(ENTRIES)}, in {len(ZOOS) - 1} families" in index


def test_no_record_belongs_to_no_model() -> None:
    assert STORE.orphans(map(spec, ENTRIES)) == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_the_record_of_a_model(entry: dict[str, str]) -> None:
    record = STORE.record(spec(entry))
    assert record is not None
    assert record.schema == SCHEMA, "python benchmarks/gallery/capture.py"
    assert record.failure is None
    assert len(record.to_json()) < 80_000
    parameters = record.totals.parameters
    if entry["parameters"].endswith("million"):
        assert f"{parameters / 1e6:.2f}" == f"{float(entry['parameters'].split()[0]):.2f}"
    elif entry["parameters"]:
        assert f"{parameters:,}" == entry["parameters"]
    assert entry["counted"] == "" or round(float(entry["counted"]), 3) == pytest.approx(float(entry["gmacs"]), abs=0.01)
