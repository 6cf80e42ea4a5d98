"""Which modules are open in the default view: as many as a reader takes in at once.

Modules are opened from the outside in. Of modules that are alike but for their sizes the first is opened first, so that
each kind of block is seen inside once; the others follow if all of them fit, since some open and some closed would look
like a difference.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Body, join
from sphinx_fxgraph.view.simplified import GROUP, Shown
from sphinx_fxgraph.view.structural_hash import Likeness

MOST_BOXES = 100
"""Boxes and frames of a default view."""

Key = tuple[str, ...]
"""A call in the picture: the names of the nodes that lead to it."""


@dataclass(frozen=True)
class _Call:
    key: Key
    path: str
    depth: int
    body: str


def opened(shown: Shown, look: ViewOptions) -> frozenset[Key]:
    """The calls that are shown open."""
    found = set(_wanted(shown, look))
    if look.depth is None:
        found |= _fitting(shown, found)
    return frozenset(found)


def _calls(shown: Shown, call: _Call) -> Iterator[_Call]:
    """The calls inside a body that have something to show inside."""
    for node in shown.record.bodies[call.body].nodes:
        if node.body and shown.record.bodies[node.body].nodes:
            key = (*call.key, node.name)
            if node.op == GROUP:  # the members of a run are as deep as the run, those of a stretch one level deeper
                yield _Call(key, call.path, call.depth + bool(node.target), node.body)
            else:
                yield _Call(key, join(call.path, node.name), call.depth + 1, node.body)


def _wanted(shown: Shown, look: ViewOptions) -> Iterator[Key]:
    """What ``depth`` and ``open`` ask for; a module inside others opens them too."""
    if look.depth is None and not look.open:
        return
    todo = [_Call((), "", 0, shown.record.root)]
    while todo:
        for call in _calls(shown, todo.pop()):
            todo.append(call)
            deep = look.depth is not None and call.depth <= look.depth
            if deep or any(fnmatchcase(call.path, pattern) for pattern in look.open):
                yield from (call.key[:length] for length in range(1, len(call.key) + 1))


def _fitting(shown: Shown, already: set[Key]) -> set[Key]:
    bodies = shown.record.bodies
    alike = Likeness(shown.record, loose=True)
    room = MOST_BOXES - len(bodies[shown.record.root].nodes)
    queue = deque(_calls(shown, _Call((), "", 0, shown.record.root)))
    seen: set[Hashable] = set()
    waiting: dict[Hashable, list[_Call]] = defaultdict(list)
    found: set[Key] = set()

    def size(body: Body) -> int:
        return len(body.nodes)

    while queue or waiting:
        if not queue:
            calls = waiting.pop(next(iter(waiting)))
            if sum(size(bodies[call.body]) for call in calls) > room:
                continue
        else:
            call = queue.popleft()
            kind = alike.body(call.body)
            if kind in seen and call.key not in already:
                waiting[kind].append(call)
                continue
            if size(bodies[call.body]) > room and call.key not in already:
                continue
            seen.add(kind)
            calls = [call]
        for call in calls:
            found.add(call.key)
            room -= size(bodies[call.body])
            queue.extend(_calls(shown, call))
    return found
