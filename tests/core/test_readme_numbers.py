"""The numbers of README.md are those of the tables that the benchmarks have written."""

from __future__ import annotations

import csv

from conftest import DOCS

README = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())


def rows(name: str) -> list[dict[str, str]]:
    with (DOCS / "design" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_coverage() -> None:
    counts = rows("coverage-counts.csv")
    run, right = (sum(int(row[name].replace(",", "")) for row in counts) for name in ("Run by themselves", "Right"))
    assert f"Of {run:,} models of" in README
    assert f"by themselves, {right:,} match" in README


def test_questions_that_the_first_screen_answers() -> None:
    models = rows("legibility-questions.csv")
    answered = sum(int(row["answered of 5"]) for row in models)
    assert f"Of {5 * len(models)} questions on {len(models)} models" in README
    assert f"760 × 900 pixels answer {answered} " in README


def test_published_parameters() -> None:
    equal = sum(int(row["parameters equal"]) for row in rows("ground-truth.csv"))
    assert f"all {equal} published parameter counts" in README
    assert equal == sum(int(row["models"]) for row in rows("ground-truth.csv"))


def test_committed_records() -> None:
    records = list((DOCS / "gallery/records").glob("*.json"))
    size = sum(path.stat().st_size for path in records)
    assert f"The records of {len(records)} models in the gallery take {size / 1e6:.1f} MB" in README
    example = sum(path.stat().st_size for path in (DOCS / "examples/tinyzoo/docs/graphs").iterdir())
    assert f"of five models {example / 1000:.0f} kB" in README


def test_a_site_of_torchvision() -> None:
    (site,) = (row for row in rows("zoo-build.csv") if "sphinx-fxgraph" in row["what"])
    assert (
        f"A site of {site['models']} models of torchvision is captured, drawn and written in {site['seconds']} s"
        in README
    )
