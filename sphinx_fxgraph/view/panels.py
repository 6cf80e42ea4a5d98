"""Choose the kinds of blocks that are drawn once each beside the overview, as figures (a), (b), (c) of papers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from sphinx_fxgraph.record.model import Node, join
from sphinx_fxgraph.view import labels
from sphinx_fxgraph.view.estimate import Estimator, Size
from sphinx_fxgraph.view.labels import WRAPPERS
from sphinx_fxgraph.view.level import Box, Level
from sphinx_fxgraph.view.simplify import GROUP, Shown

LETTERS = "abcd"
"""Of the panels; there are no more than that."""
GAP = 14.0
"""Between panels, and between them and the overview."""
MARGIN = 8.0
"""Right of the last column."""
SHORTEST = 800.0
"""Height that panels may take beside a lower overview."""
PAGE, PAPER = (740.0, 880.0), (900.0, 1_020.0)
"""Width and height of overview and panels together: on a page, and on paper or where they are asked for."""
_LEAST_SHARE = 0.08
"""Of parameters and MACs, each counted as 1, that the blocks of a kind hold together."""
_FEWEST = 2
"""Blocks of a kind in the model."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One kind of block, drawn once."""

    letter: str
    type: str
    path: str
    """Of the block that is drawn."""
    box: Box
    """The block, open."""
    count: int
    """How many such blocks the model has."""
    column: int
    """Of the columns right of the overview, or of the row below it ..."""
    below: bool = False
    """... where the overview is too wide for a column."""


@dataclass
class Kind:
    """The blocks of one class that hold the same kinds of modules."""

    type: str = ""

    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How often each body runs."""
    paths: dict[str, tuple[str, Node]] = field(default_factory=dict)
    """Path and node of the first call of each body."""
    share: float = 0.0


def key(shown: Shown, node: Node) -> Hashable:
    """Return what the blocks of a kind have in common: their class, and the classes of what they hold.

    Wrappers do not count, so that a block with a projection is of the kind of those without.
    """
    inside = shown.record.bodies[node.body].nodes if node.body else ()
    held = {each.type for each in inside if each.body and each.kind not in WRAPPERS and each.type}
    return (node.type, frozenset(held))


def holds(shown: Shown, node: Node, kind: Hashable) -> bool:
    """Return whether a call is a block of a kind or holds one."""
    inside = shown.record.bodies[node.body].nodes
    return key(shown, node) == kind or any(holds(shown, each, kind) for each in inside if each.body)


def kinds(shown: Shown) -> dict[Hashable, Kind]:
    """Return the kinds of blocks that are worth a panel, those that hold most first."""
    found: dict[Hashable, Kind] = defaultdict(Kind)
    costs = _Costs(shown)
    parameters, macs = costs.of(shown.record.root)
    for path, times, node in _blocks(shown, shown.record.root, "", 1):
        kind = found[key(shown, node)]
        kind.type = node.type
        kind.counts[node.body] += times
        kind.paths.setdefault(node.body, (path, node))
        own_parameters, own_macs = costs.of(node.body)
        kind.share += times * (own_parameters / (parameters or 1) + own_macs / (macs or 1))
    worth = {
        name: kind
        for name, kind in found.items()
        if sum(kind.counts.values()) >= _FEWEST and kind.share >= _LEAST_SHARE
    }
    return dict(sorted(worth.items(), key=lambda item: -item[1].share))


def _blocks(shown: Shown, name: str, path: str, times: int) -> Iterator[tuple[str, int, Node]]:
    """Yield path, number and node of the calls in a body that have operators inside."""
    for node in shown.record.bodies[name].nodes:
        if not node.body:
            continue
        run = shown.runs.get((name, node.name))
        count = times * (run.count if run else 1)
        where = path if node.op == GROUP else join(path, node.name)
        if node.op != GROUP and node.kind not in WRAPPERS and _is_block(shown, node.body):
            yield where, count, node
        yield from _blocks(shown, node.body, where, count)


def _is_block(shown: Shown, name: str) -> bool:
    """Return whether a body has more than one operator."""
    nodes = shown.record.bodies[name].nodes
    return len(nodes) > 1 or any((name, node.name) in shown.rows for node in nodes)


class _Costs:
    """Parameters and MACs of bodies, those of what they call included."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.known: dict[str, tuple[int, int]] = {}

    def of(self, name: str) -> tuple[int, int]:
        """Return the parameters, in elements, and the MACs of a body."""
        if name not in self.known:
            parameters = macs = 0
            for outer in self.shown.record.bodies[name].nodes:
                run = self.shown.runs.get((name, outer.name))
                for node in self.shown.rows.get((name, outer.name), (outer,)):
                    own = self.of(node.body) if node.body else (_elements(node), node.macs or 0)
                    times = run.count if run else 1
                    parameters, macs = parameters + times * own[0], macs + times * own[1]
            self.known[name] = parameters, macs
        return self.known[name]


def _elements(node: Node) -> int:
    return sum(prod(size for size in meta.shape if isinstance(size, int)) for meta in node.parameters)


def choose(
    candidates: Mapping[Hashable, Kind],
    levels: Mapping[str, Level],
    overview: Size,
    estimator: Estimator,
    limits: tuple[float, float],
) -> dict[Hashable, Panel]:
    """Place panels right of the overview, or below it if that is too wide; as many as fit.

    Args:
        candidates: the kinds, most important first.
        levels: by name of its body, the level of the block that stands for a kind.
        overview: size of the overview.
        estimator: estimates the size of a panel.
        limits: width and height of the whole.
    """
    width, height = limits
    beside = (width - overview.width, max(overview.height, SHORTEST))
    below = (max(width, overview.width) + GAP, height - overview.height - GAP)
    ways = [_placed(candidates, levels, estimator, room, below=room is below) for room in (beside, below)]
    return ways[0] or ways[1]


def _placed(
    candidates: Mapping[Hashable, Kind],
    levels: Mapping[str, Level],
    estimator: Estimator,
    room: tuple[float, float],
    *,
    below: bool,
) -> dict[Hashable, Panel]:
    columns: list[Size] = []
    panels: dict[Hashable, Panel] = {}
    for name, kind in candidates.items():
        if len(panels) == len(LETTERS):
            break
        body = representative(kind)
        path, node = kind.paths[body]
        box = Box(node, (), levels[body])
        count = sum(kind.counts.values())
        column = _column(columns, estimator.panel(box, labels.panel_width(node.kind, count)), *room)
        if column is not None:
            panels[name] = Panel(LETTERS[len(panels)], kind.type, path, box, count, column, below)
    return panels


def representative(kind: Kind) -> str:
    """Return the body that most blocks of a kind have, of several the first."""
    return max(kind.counts, key=lambda body: kind.counts[body])


def _column(columns: list[Size], size: Size, width: float, height: float) -> int | None:
    """Put a panel into the first column that has room for it, or into a new one; None if it fits nowhere."""
    if size.height > height:
        return None
    for number, column in enumerate(columns):
        wider = max(column.width, size.width)
        others = sum(each.width + GAP for each in columns) - column.width
        if column.height + GAP + size.height <= height and others + wider <= width:
            columns[number] = Size(wider, column.height + GAP + size.height, 0, 0)
            return number
    if sum(each.width + GAP for each in columns) + GAP + size.width + MARGIN <= width:
        columns.append(size)
        return len(columns) - 1
    return None
