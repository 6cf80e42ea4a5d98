"""Pictures on paper: whole where they can be read, else in strips that are cut between boxes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from test_drawing import draw, op, tensor
from test_random_graphs import nested

from sphinx_fxgraph.layout.graphviz import find_engine
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.model import Body, BodyInput, Record
from sphinx_fxgraph.render.document import strips
from sphinx_fxgraph.render.drawing import Frame

PAPER, GAP = (460.0, 530.0), 10.0


def chain(length: int) -> Frame:
    """So many operators in a row, in a frame."""
    names = [f"n{number}" for number in range(length)]
    inner = Body(
        "Chain",
        (BodyInput("x", tensor(1, 8)),),
        tuple(op(name, "relu", before) for before, name in itertools.pairwise(["", *names])),
        (Value(names[-1]),),
    )
    root = Body(
        "Net",
        (),
        (
            op("x", "input", op="placeholder"),
            op("chain", "Chain", "x", op="call_module", body="Chain", outputs=()),
            op("output", "output", "chain", op="output"),
        ),
    )
    return draw(
        Record({}, "symbolic", "Net", {"Net": root, "Chain": inner}), find_engine(), ViewOptions(depth=9, fold="off")
    )


def boxes(frame: Frame, above: float = 0) -> Iterator[tuple[float, float]]:
    yield from ((above + box.y, above + box.y + box.label.height) for box in frame.boxes)
    for inner in frame.frames:
        yield from boxes(inner, above + inner.y)


def test_a_small_picture_is_one_piece_in_the_size_of_a_display() -> None:
    picture = chain(3)
    found = strips(picture, (picture.width, picture.height), PAPER, GAP)
    assert (found.scale, found.cuts, found.abreast) == (0.75, ((0, picture.height),), 1)


def test_a_tall_picture_is_cut_between_its_boxes() -> None:
    picture = chain(400)
    found = strips(picture, (picture.width, picture.height + 40), PAPER, GAP)
    assert 0.45 <= found.scale <= 0.5
    assert len(found.cuts) > 2
    for _, cut in found.cuts[:-1]:
        assert not [box for box in boxes(picture) if box[0] < cut < box[1]]


def test_an_overview_is_one_piece_however_tall() -> None:
    picture = chain(400)
    found = strips(picture, (picture.width, picture.height), PAPER, GAP, whole=True)
    assert found.cuts == ((0, picture.height),)
    assert found.scale * picture.height == pytest.approx(PAPER[1])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("paper", [PAPER, (120.0, 200.0)])
def test_strips_are_the_whole_picture_and_fit_on_the_page(seed: int, paper: tuple[float, float]) -> None:
    picture = draw(nested(seed), find_engine())
    found = strips(picture, (picture.width, picture.height), paper, GAP)
    ends = [end for cut in found.cuts for end in cut]
    assert (ends[0], ends[-1]) == (0, picture.height)
    assert ends[1:-1:2] == ends[2:-1:2]
    assert all((bottom - top) * found.scale <= paper[1] + 1e-6 for top, bottom in found.cuts)
    assert found.abreast * (found.width * found.scale + GAP) - GAP <= paper[0] + 1e-6
