"""Turn a record into levels of boxes and edges, still without coordinates.

A level is a body drawn on its own. A box in it is an operator or a module call; an open module call holds the level of
its own body. Equal bodies give one and the same level, so it is laid out once however often it stands in the model.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.arguments import Value
from sphinx_fxgraph.record.diff import SIGNS
from sphinx_fxgraph.record.model import Body, Node, Record, TensorMeta
from sphinx_fxgraph.view import clusters, expansion, labels, main_path, panels, repeats, simplify
from sphinx_fxgraph.view.annotations import Sharing
from sphinx_fxgraph.view.estimate import Estimator, Size
from sphinx_fxgraph.view.expansion import Key, Trials
from sphinx_fxgraph.view.level import BOUNDARY, Box, Edge, Level, Port, bundled, pinned
from sphinx_fxgraph.view.main_path import with_shape, with_spine
from sphinx_fxgraph.view.panels import Panel
from sphinx_fxgraph.view.simplify import GROUP, ROWS, Shown


def root_level(record: Record, look: ViewOptions) -> Level:
    """Return the level of the whole model as ``look`` shows it, with the levels of all open modules in it."""
    return overview(record, look).root


@dataclass(frozen=True)
class Overview:
    """The default view of a model: the simplified graph, and the level of the whole model."""

    shown: Shown
    root: Level
    kinds: Mapping[Hashable, Panel] = field(default_factory=dict)
    """The panels, by the kind of block that each shows."""

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Return the panels in the order of their letters."""
        return tuple(self.kinds.values())

    def letters(self, box: Box) -> str:
        """Return the letters of the panels that show what a closed box is or holds."""
        if not self.kinds or box.inner or not box.node.body:
            return ""
        blocks = {panels.key(self.shown, node) for node in self._blocks(box.node)}
        return "".join(panel.letter for kind, panel in self.kinds.items() if kind in blocks)

    def _blocks(self, node: Node) -> Iterator[Node]:
        """Yield a closed call that has a panel, or the calls with panels that it holds."""
        if node.op == GROUP or node.kind in labels.WRAPPERS or panels.key(self.shown, node) not in self.kinds:
            for inside in self.shown.record.bodies[node.body].nodes:
                if inside.body:
                    yield from self._blocks(inside)
        else:
            yield node

    def closed_levels(self) -> dict[str, Level]:
        """Return the level of every body that the view shows closed, by name; everything in them is closed."""
        builder = _Builder(self.shown)
        todo = list(_closed(self.root))
        for panel in self.panels:
            todo += _closed(panel.box.inner) if panel.box.inner else ()
        found: dict[str, Level] = {}
        while todo:
            name = todo.pop()
            if name not in found:
                found[name] = builder.inside(name)
                todo += _closed(found[name])
        return dict(sorted(found.items()))


def _opened_boxes(level: Level) -> Iterator[Box]:
    for box in level.boxes:
        if box.inner:
            yield box
            yield from _opened_boxes(box.inner)


def _closed(level: Level) -> Iterator[str]:
    for box in level.boxes:
        if box.inner:
            yield from _closed(box.inner)
        elif box.node.body:
            yield box.node.body


def overview(
    record: Record,
    look: ViewOptions,
    *,
    paper: bool = False,
    widest: float = expansion.WIDTH,
    folds: dict[bool, Shown] | None = None,
) -> Overview:
    """Choose what the default view of a model shows.

    The blocks of a stage are folded; where even that is too high, blocks of one class are, whatever their sizes.

    Args:
        record: the model.
        look: how it is shown.
        paper: whether the picture is for paper.
        widest: width that the overview may have by estimate.
        folds: the folded graph with and without short calls, kept from one choice to the next.
    """
    folds = {} if folds is None else folds
    if False not in folds:
        folds[False] = _folded(record, look)
    folded = folds[False]
    if look.depth is not None:
        shown = _finished(folded, look, None)
        return Overview(shown, _Builder(shown).root(expansion.asked(shown, look)))
    estimator = Estimator(turned=look.direction == "LR")
    pictures: dict[tuple[bool | None, bool], _Picture] = {}
    for across_sizes, short, tallest in _STAGES[look.fold]:
        if (across_sizes, short) not in pictures:
            if short not in folds:
                folds[short] = _folded(record, look, short=short)
            graph = folds[short]
            pictures[across_sizes, short] = _Picture(graph, look, estimator, across_sizes, widest, short=short)
        picture = pictures[across_sizes, short]
        if expansion.fits(picture.closed, tallest, widest):
            break
    wanted = look.panels != "no" and look.direction == "TB" and not _is_difference(record)
    with_panels = picture.with_panels(wide=paper or look.panels == "yes") if wanted else None
    return with_panels or picture.without_panels()


def _is_difference(record: Record) -> bool:
    """Return whether a record is of two models, so that equal blocks may differ in what has changed."""
    return any({*SIGNS} & {*node.marks} for body in record.bodies.values() for node in body.nodes)


_STAGES: dict[str, tuple[tuple[bool | None, bool, float], ...]] = {
    "auto": (
        (False, False, expansion.HEIGHT),
        (True, False, expansion.HEIGHT),
        (False, False, expansion.TALLEST),
        (True, False, expansion.TALLEST),
        (True, True, expansion.TALLEST),
    ),
    "loose": ((True, False, expansion.TALLEST),),
    "off": ((None, False, expansion.TALLEST),),
}
"""By the option ``fold``: how the blocks of stages are folded (see `_finished`), whether short calls of functions are
one box, and up to which height of the picture."""


class _Picture:
    """One way to simplify a model, and how large pictures of it are."""

    def __init__(
        self,
        folded: Shown,
        look: ViewOptions,
        estimator: Estimator,
        across_sizes: bool | None,
        widest: float,
        *,
        short: bool,
    ) -> None:
        self.widest = widest
        self.shown = _finished(folded, look, across_sizes, pairs=short)
        self.builder = _Builder(self.shown)
        self.estimator = estimator
        self.asked = expansion.asked(self.shown, look)
        self.closed = self.size(self.asked)

    def without_panels(self) -> Overview:
        """Return the overview with as much open as fits."""
        trials = Trials(self.shown, self.size, self.asked, self.builder.body_weight, widest=self.widest)
        trials.run()
        return Overview(self.shown, self.builder.root(trials.opened, trials.examples))

    def with_panels(self, *, wide: bool) -> Overview | None:
        """Return the overview beside panels; None where no panel fits beside it.

        Where the most important kind of block finds no room, less of the overview is opened if that still shows each
        stage of such blocks.

        Args:
            wide: whether there is more room than on a page.
        """
        candidates = panels.kinds(self.shown)
        if not candidates:
            return None
        width, height = panels.PAPER if wide else panels.PAGE
        limits = width - (expansion.WIDTH - self.widest), height
        found = self._beside(candidates, self.widest, limits)
        first, kind = next(iter(candidates.items()))
        if first not in found.kinds and first not in self._opened_kinds(found.root):
            _, node = kind.paths[panels.representative(kind)]
            box = Box(node, (), self.builder.inside(node.body))
            title = labels.panel_width(node.kind, sum(kind.counts.values()))
            narrow = (limits[0] - self.estimator.panel(box, title).width - 2 * panels.GAP) / expansion.SPARE_WIDTH
            less = self._beside(candidates, narrow, limits)
            tells_as_much = self._references(less.root, first) >= self._references(found.root, first)
            found = less if first in less.kinds and tells_as_much else found
        return found if found.kinds else None

    def _beside(
        self, candidates: Mapping[Hashable, panels.Kind], widest: float, limits: tuple[float, float]
    ) -> Overview:
        """Return the overview within a width, and the panels that fit beside it or below it."""
        trials = Trials(self.shown, self.size, self.asked, self.builder.body_weight, closed=candidates, widest=widest)
        trials.run()
        root = self.builder.root(trials.opened, trials.examples)
        opened = self._opened_kinds(root)
        left = {name: kind for name, kind in candidates.items() if name not in opened}
        bodies = map(panels.representative, left.values())
        levels = {name: self.builder.inside(name) for name in bodies}
        chosen = panels.choose(left, levels, self.estimator.picture(root), self.estimator, limits)
        return Overview(self.shown, root, chosen)

    def _references(self, level: Level, kind: Hashable) -> int:
        """Return how many closed boxes are blocks of a kind or hold them."""
        count = 0
        for box in level.boxes:
            if box.inner:
                count += self._references(box.inner, kind)
            elif box.node.body:
                count += panels.holds(self.shown, box.node, kind)
        return count

    def _opened_kinds(self, root: Level) -> set[Hashable]:
        return {panels.key(self.shown, box.node) for box in _opened_boxes(root)}

    def size(self, opened: Collection[Key]) -> Size:
        """Return the size of the picture with these calls open."""
        return self.estimator.picture(self.builder.root(opened))


def _folded(record: Record, look: ViewOptions, *, short: bool = False) -> Shown:
    """Return the record without what leads to no result, its runs of equal siblings folded.

    Args:
        record: the model.
        look: how it is shown.
        short: whether short calls of helper functions are one node.
    """
    shown = simplify.prune(Shown(record, layout=look.layout), look.nontensor)
    shown = simplify.simplify(shown, look.nontensor)
    if look.fold == "off":
        return shown
    if look.depth is None:
        shown = clusters.group_functions(shown, short=short)
        shown = repeats.fold_parallel(shown, calls=False)
    return repeats.fold(shown, loose=look.fold == "loose")


def _finished(shown: Shown, look: ViewOptions, across_sizes: bool | None, *, pairs: bool = False) -> Shown:
    """Return the graph with stages, rows and, of bodies that are still too large, clusters.

    Args:
        shown: the graph, its runs folded.
        look: how it is shown.
        across_sizes: whether blocks that follow each other are folded though their sizes differ; None folds no stage.
        pairs: whether two alike siblings side by side are folded too.
    """
    if across_sizes is not None:
        shown = repeats.fold_stages(shown, across_sizes=across_sizes)
    if across_sizes:
        shown = repeats.fold_parallel(shown, calls=True, pairs=pairs)
    if look.rows == "auto":
        shown = clusters.join_rows(shown)
    return clusters.cluster(shown)


class _Builder:
    """Builds levels; equal levels are one object, also of different pictures of one graph."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.record = shown.record
        self.sharing = Sharing(self.record)
        self.opened: Collection[Key] = ()
        self.examples: Collection[Key] = ()
        self.weights: dict[str, int] = {}
        self.built: dict[tuple[str, tuple[Level | None, ...], tuple[str, ...]], Level] = {}

    def root(self, opened: Collection[Key], examples: Collection[Key] = ()) -> Level:
        """Return the level of the whole model.

        Args:
            opened: the calls that are open.
            examples: those of them whose like are closed.
        """
        self.opened, self.examples = opened, examples
        return self.level(self.record.root, (), ())

    def inside(self, name: str) -> Level:
        """Return the level of a body in which everything is closed."""
        self.opened = self.examples = ()
        return self.level(name, (), [0] * len(self.record.bodies[name].inputs))

    def level(self, name: str, key: Key, ages: Sequence[int]) -> Level:
        """Return the level of body ``name``, called at ``key``.

        ``ages`` tells of each input how late its first caller made it.
        """
        body = self.record.bodies[name]
        order = {node.name: index for index, node in enumerate(body.nodes)}
        inner: list[Level | None] = []
        for node in body.nodes:
            if (*key, node.name) in self.opened:
                made = [order.get(value.node, BOUNDARY) for value in node.inputs]
                inner.append(self.level(node.body, (*key, node.name), made))
            else:
                inner.append(None)
        examples = tuple(node.name for node in body.nodes if (*key, node.name) in self.examples)
        built = (name, tuple(inner), examples)
        if built not in self.built:
            level = self._build(name, inner, order, ages)
            boxes = tuple(
                dataclasses.replace(box, example=True) if box.node.name in examples else box for box in level.boxes
            )
            self.built[built] = dataclasses.replace(level, boxes=boxes) if examples else level
        return self.built[built]

    def _build(self, name: str, inner: Sequence[Level | None], order: Mapping[str, int], ages: Sequence[int]) -> Level:
        body = self.record.bodies[name]
        boxes = tuple(self._box(body, name, node, level) for node, level in zip(body.nodes, inner, strict=True))
        outs = bundled([boxes[order[value.node]] if value.node else None for value in body.outputs])
        edges = self._edges(body, boxes, order, outs)
        pins, edges = pinned(len(body.inputs), edges)
        level = Level(
            body=name,
            boxes=boxes,
            edges=edges,
            names=tuple(
                ", ".join(body.inputs[k].name for k, pin in enumerate(pins) if pin == p)
                for p in range(max(pins, default=-1) + 1)
            ),
            pins=pins,
            outs=outs,
            outputs=max(outs, default=-1) + 1,
        )
        late = [max(ages[k] for k, pin in enumerate(pins) if pin == p) for p in range(level.inputs)]
        return with_shape(main_path.chips(with_spine(level, late)), self.shown.layout)

    def _box(self, body: Body, name: str, node: Node, inner: Level | None) -> Box:
        if node.op == ROWS:
            members = self.shown.rows[name, node.name]
            boxes = tuple(self._box(body, name, member, None) for member in members)
            names = tuple(member.name for member in members)
            return Box(node, node.outputs, weight=len(members), names=names, rows=boxes)
        run = self.shown.runs.get((name, node.name))
        results = (run.tensors if run else ()) or self._results(body, node)
        said = change = ""
        if node.body and inner is None and not (node.op == GROUP and node.detail):
            is_wrapper = node.kind in labels.WRAPPERS
            if node.op != GROUP:
                said = (labels.contents if is_wrapper else labels.repeated)(self.shown, node.body)
            change = labels.change_of_call(self.shown, body, node, results)
        return Box(
            node,
            results,
            inner,
            run,
            self.shown.chips.get((name, node.name), ()),
            self._weight(name, node),
            tuple(self._names(name, node)),
            arguments=self.record.arguments(body, node),
            stage=self.shown.stages.get((name, node.name)),
            contents=said,
            change=change,
            shared="" if run else self.sharing.words(name, node),
        )

    def _names(self, name: str, node: Node) -> Iterator[str]:
        """Yield the names of the nodes of the record that a node stands for."""
        if run := self.shown.runs.get((name, node.name)):
            yield from run.names
        elif node.op == ROWS:
            yield from (member.name for member in self.shown.rows[name, node.name])
        elif node.op == GROUP:
            for inner in self.record.bodies[node.body].nodes:
                yield from self._names(node.body, inner)
        else:
            yield node.name

    def _weight(self, name: str, node: Node) -> int:
        if node.op == ROWS:
            return len(self.shown.rows[name, node.name])
        run = self.shown.runs.get((name, node.name))
        return (self.body_weight(node.body) if node.body else 1) * (run.count if run else 1)

    def body_weight(self, name: str) -> int:
        """Return how many operators run in a body."""
        if name not in self.weights:
            self.weights[name] = sum(self._weight(name, inner) for inner in self.record.bodies[name].nodes)
        return self.weights[name]

    def _results(self, body: Body, node: Node) -> tuple[TensorMeta, ...]:
        if not node.body:
            return node.outputs
        count = len(self.record.bodies[node.body].outputs)
        return tuple(meta for k in range(count) for meta in self.record.metas(body, Value(node.name, k)))

    def _edges(
        self, body: Body, boxes: Sequence[Box], order: Mapping[str, int], outs: Sequence[int]
    ) -> tuple[Edge, ...]:
        """Return one edge for each pair of ends; it is weak if no value on it has a tensor at both ends."""
        values: dict[tuple[Port, Port], list[tuple[Value, bool]]] = defaultdict(list)

        def tail(value: Value) -> Port:
            if not value.node:
                return Port(BOUNDARY, value.output)
            box = order[value.node]
            inner = boxes[box].inner
            return Port(box, inner.outs[value.output] if inner else 0)

        for index, box in enumerate(boxes):
            takes = box.node.op == "output" or bool(box.tensors)
            for number, value in enumerate(box.node.inputs):
                head = Port(index, box.inner.pins[number] if box.inner else 0)
                values[tail(value), head].append((value, takes))
        for number, value in zip(outs, body.outputs, strict=True):
            values[tail(value), Port(BOUNDARY, number)].append((value, True))
        edges = []
        for (start, end), carried in values.items():
            strong = [value for value, takes in carried if takes and self.record.metas(body, value)]
            edges.append(Edge(start, end, weak=not strong, tensors=self._unsaid(body, boxes, start, strong)))
        return tuple(edges)

    def _unsaid(self, body: Body, boxes: Sequence[Box], tail: Port, values: Sequence[Value]) -> tuple[TensorMeta, ...]:
        """Return the tensors on an edge out of a closed module that has several results."""
        box = None if tail.box == BOUNDARY else boxes[tail.box]
        if box is None or box.inner or not box.node.body or len(box.tensors) < 2:
            return ()
        return tuple(meta for value in values for meta in self.record.metas(body, value))
