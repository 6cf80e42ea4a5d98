"""Choose the modules that are open in the default view, by the height and the width of the picture.

Modules are opened from the outside in. Alike modules are opened together, since some open and some closed would look
like a difference; if they do not fit, one of them is opened as an example of its kind, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import join
from sphinx_fxgraph.view import panels
from sphinx_fxgraph.view.estimate import Size
from sphinx_fxgraph.view.labels import WRAPPERS
from sphinx_fxgraph.view.simplify import GROUP, ROWS, Shown

WIDTH, HEIGHT = 760.0, 900.0
"""Of the default view at natural size, in pixels."""
TALLEST = 1_350.0
"""Height of the default view where less would leave closed what holds most of the model, ..."""
_MOST_OF_ALL = 0.6
"""... that is, this part of its operators."""
_TELLS_LITTLE = 500.0
"""Height of a picture that has room for what holds most of the model."""
ELEMENTS = 1_200
_MOST_TRIALS = 60
_SPARE, SPARE_WIDTH = 0.97, 0.94
"""Part of the height and of the width that an estimate may take."""

Key = tuple[str, ...]
"""A call in the picture: the names of the nodes that lead to it."""


@dataclass(frozen=True)
class Call:
    """A call in the picture that has something to show inside."""

    key: Key
    path: str
    depth: int
    body: str
    is_group: bool
    """Whether it stands for a part of the body around it and not for a module."""
    block: Hashable
    """The kind of block that it is, as panels tell kinds apart."""
    kind: Hashable
    """What it has in common with those that are opened together with it."""


def fits(size: Size, tallest: float = HEIGHT, widest: float = WIDTH) -> bool:
    """Return whether a picture is within the limits of the default view.

    Args:
        size: the estimated size.
        tallest: height that it may have.
        widest: width that it may have.
    """
    return size.width <= widest * SPARE_WIDTH and size.height <= tallest * _SPARE and size.elements <= ELEMENTS * _SPARE


def calls(shown: Shown, outer: Call) -> Iterator[Call]:
    """Yield the calls directly inside a call."""
    for node in shown.record.bodies[outer.body].nodes:
        if not node.body or not shown.record.bodies[node.body].nodes:
            continue
        key = (*outer.key, node.name)
        inside = shown.record.bodies[node.body].nodes
        block = panels.key(shown, node)
        kind: Hashable = (node.type, node.kind, node.op)
        if node.kind in WRAPPERS:  # what they hold is their kind
            kind = (node.type, tuple(dict.fromkeys(each.kind for each in inside)))
        if node.op == GROUP:  # the members of a run are as deep as the run, those of a stretch one level deeper
            yield Call(key, outer.path, outer.depth + bool(node.target), node.body, True, block, kind)
        else:
            yield Call(key, join(outer.path, node.name), outer.depth + 1, node.body, False, block, kind)


def root_call(shown: Shown) -> Call:
    """Return the call of the whole model."""
    return Call((), "", 0, shown.record.root, False, "", "")


def asked(shown: Shown, look: ViewOptions) -> frozenset[Key]:
    """Return what ``depth`` and ``open`` ask for; a module inside others opens them too."""
    found: set[Key] = set()
    if look.depth is None and not look.open:
        return frozenset()
    todo = [root_call(shown)]
    while todo:
        for call in calls(shown, todo.pop()):
            todo.append(call)
            deep = look.depth is not None and call.depth <= look.depth
            if deep or any(fnmatchcase(call.path, pattern) for pattern in look.open):
                found.update(call.key[:length] for length in range(1, len(call.key) + 1))
    return frozenset(found)


class Trials:
    """Opens as much as fits.

    Args:
        shown: the simplified graph.
        measure: returns the size of the picture in which these calls are open.
        opened: the calls that are open in any case.
        weight: returns how many operators run in a body.
        closed: kinds of blocks (see `panels.key`) that stay closed, since they have panels.
        widest: width that the picture may have.
    """

    def __init__(
        self,
        shown: Shown,
        measure: Callable[[frozenset[Key]], Size],
        opened: Collection[Key],
        weight: Callable[[str], int],
        *,
        closed: Collection[Hashable] = (),
        widest: float = WIDTH,
    ) -> None:
        self.widest = widest
        self.shown, self.measure, self.weight, self.closed = shown, measure, weight, closed
        self.opened = frozenset(opened)
        self.examples: set[Key] = set()
        self.left = _MOST_TRIALS

    def run(self) -> None:
        """Open from the outside in; afterwards `opened` has the calls, `examples` those that stand for others."""
        level = [root_call(self.shown)]
        while level and self.left > 0:
            following: list[Call] = []
            groups: dict[Hashable, list[Call]] = {}
            for outer in level:
                for call in calls(self.shown, outer):
                    groups.setdefault(call.kind, []).append(call)
            for group in groups.values():
                following += self._open(group)
            level = following

    def _open(self, group: list[Call]) -> list[Call]:
        """Open all calls of a group, or one, or none; return those that are open."""
        already = [call for call in group if call.key in self.opened]
        if all(self._is_operator(call) for call in group):  # a frame around a single operator tells nothing
            return already
        if any(self._is_in_panel(call) for call in group):
            return already
        tells_little = self.measure(self.opened).height < _TELLS_LITTLE
        tallest = TALLEST if tells_little and any(map(self._is_essential, group)) else HEIGHT
        repeats = any(self._repeats(call) for call in group)
        if not repeats:
            chains = [self._through_wrappers(call) for call in group]
            if self._try(frozenset(key for chain in chains for key in chain), tallest):
                return group
        if already:
            return already
        if repeats or len(group) > 1:
            first = self._through_wrappers(group[0])
            if self._try(frozenset(first), tallest):
                if len(group) > 1:
                    self.examples.add(group[0].key)
                if len(self._body(group[0])) > 1 and len(first) > 1:
                    self.examples.add(first[-1])
                return group[:1]
        return []

    def _is_in_panel(self, call: Call) -> bool:
        """Return whether a call is a block that has a panel, or holds such blocks alone."""
        if call.block in self.closed:
            return True
        inside = list(calls(self.shown, call))
        return bool(self.closed) and bool(inside) and self._repeats_only(call, inside) and self._is_in_panel(inside[0])

    def _repeats_only(self, call: Call, inside: list[Call]) -> bool:
        return len(self._body(call)) == len(inside) and len({each.kind for each in inside}) == 1

    def _repeats(self, call: Call) -> bool:
        """Return whether a call holds several of one block and nothing else, which its closed box says as well."""
        kinds = {inside.kind for inside in calls(self.shown, call)}
        body = self._body(call)
        return len(body) > 1 and len(kinds) == 1 and len(list(calls(self.shown, call))) == len(body)

    def _is_essential(self, call: Call) -> bool:
        """Return whether a call holds most of the model and different things: closed, it would tell nearly nothing."""
        inside = list(calls(self.shown, call))
        if call.is_group:
            return False
        if len({each.kind for each in inside}) < 2 and len(self._body(call)) < 3:
            return False
        return self.weight(call.body) >= _MOST_OF_ALL * self.weight(self.shown.record.root)

    def _through_wrappers(self, call: Call) -> list[Key]:
        """Return the keys of a call and, as long as it holds one kind of block alone, of the first block inside."""
        keys = [call.key]
        inside = list(calls(self.shown, call))
        while inside and (len(self._body(call)) == 1 or self._repeats(call)):
            call = inside[0]
            keys.append(call.key)
            inside = list(calls(self.shown, call))
        return keys

    def _is_operator(self, call: Call) -> bool:
        body = self.shown.record.bodies[call.body]
        return len(self._body(call)) == 1 and not any(node.body or node.op == ROWS for node in body.nodes)

    def _body(self, call: Call) -> list[str]:
        return [node.name for node in self.shown.record.bodies[call.body].nodes if node.op != "output"]

    def _try(self, keys: frozenset[Key], tallest: float) -> bool:
        if keys <= self.opened:
            return True
        if self.left <= 0:
            return False
        self.left -= 1
        trial = self.opened | keys
        if fits(self.measure(trial), tallest, self.widest):
            self.opened = trial
            return True
        return False
