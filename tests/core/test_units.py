"""How numbers are written."""

from __future__ import annotations

import pytest

from sphinx_fxgraph.units import Units


@pytest.mark.parametrize(
    ("macs", "text"),
    [
        (7, "7 MACs"),
        (999, "999 MACs"),
        (7680, "7.68 kMACs"),
        (115_605_504, "116 MMACs"),
        (999_999, "1.00 MMACs"),
        (9_995_000, "10.0 MMACs"),
        (1_814_073_344, "1.81 GMACs"),
        (15_470_264_320, "15.5 GMACs"),
        (4_200_000_000_000, "4.20 TMACs"),
    ],
)
def test_macs_have_a_unit_and_three_digits(macs: int, text: str) -> None:
    assert Units().macs(macs) == text


def test_a_project_chooses_short_or_full_numbers() -> None:
    assert [Units(style).parameters(11_689_512) for style in ("auto", "SI", "grouped")] == [
        "11,689,512 parameters",
        "11.7 M parameters",
        "11,689,512 parameters",
    ]
    assert [Units(style).bytes(46_796_608) for style in ("auto", "SI", "grouped")] == [
        "46.8 MB",
        "46.8 MB",
        "46,796,608 B",
    ]
    assert Units("SI").count(512) == "512"
    assert Units().parameters(1) == "1 parameter"
