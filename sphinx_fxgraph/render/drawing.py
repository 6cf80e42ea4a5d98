"""From a record to a picture: what has to be laid out for it, and what it is then.

Levels are laid out from the inside out; equal levels are laid out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sphinx_fxgraph.layout import fallback
from sphinx_fxgraph.layout.graphviz import Coordinates, Engine
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render.scene import Composer, Drawn, Frame, Inside
from sphinx_fxgraph.view.annotations import named
from sphinx_fxgraph.words import count, mark

__all__ = ["Drawn", "Frame", "Inside", "Job", "insides", "lay_out", "remark", "scene"]

MOST_DRAWN = 20_000
"""Nodes of all distinct bodies that are drawn, with the insides of closed modules: what a build does with a record has
an end. The largest model of torchvision has 1,500."""


@dataclass
class Job:
    """A picture to draw: a record, view options, and the layouts known so far by the digest of their DOT."""

    record: Record
    look: ViewOptions = field(default_factory=ViewOptions)
    layouts: dict[str, Coordinates] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    """What `lay_out` has to say of it."""
    inside: bool = False
    """Also the insides of modules that the picture shows closed, for a viewer that can open them."""
    paper: bool = False
    """Whether it is for paper, where the kinds of blocks stand beside the overview unless the look says otherwise."""

    def dot(self) -> str:
        """Return the DOT of every level of the picture, one graph after another, as Graphviz reads it."""
        return "".join(self.composer.dots.values())

    def used(self) -> dict[str, Coordinates]:
        """Return the layouts that this picture needs, of those that it has."""
        self.missing()
        return {key: self.layouts[key] for key in self.composer.dots if key in self.layouts}

    def missing(self) -> dict[str, str]:
        """Return the DOT of the levels that can be laid out next, by digest; empty when the picture is complete."""
        return self.composer.advance()

    def complete(self) -> bool:
        """Return whether all levels have a layout."""
        return not self.missing()

    @property
    def left_out(self) -> int:
        """Return the number of operators that are not drawn, since they lead to no result."""
        return self.composer.view.shown.hidden

    @cached_property
    def too_large(self) -> str:
        """Return why only the outermost level is drawn; empty where everything is."""
        nodes = sum(len(body.nodes) for body in self.record.bodies.values())
        if nodes <= MOST_DRAWN:
            return ""
        return f"{nodes:,} operators are more than {MOST_DRAWN:,}: only the outermost level is drawn"

    @cached_property
    def composer(self) -> Composer:
        """Return the builder of the scene."""
        look = replace(self.look, depth=0, open=()) if self.too_large else self.look
        inside = self.inside and not self.too_large
        return Composer(named(self.record, look.dims), look, self.layouts, inside=inside, paper=self.paper)


def lay_out(jobs: Sequence[Job], engine: Engine, timeout: float = 60) -> list[str]:
    """Fill in the layouts that the jobs lack, in as few runs of the engine as the nesting allows.

    Every job is complete afterwards: what the engine cannot lay out in time is laid out more plainly (see `remark`).

    Args:
        jobs: the pictures; what is said of each goes into its ``complaints`` too.
        engine: what lays out.
        timeout: seconds for one run.

    Returns:
        What the engine complained of or why it failed, if it did, each once.

    Raises:
        EngineMissingError: the program is not there.
    """
    complaints: dict[str, None] = {}
    while True:
        missing = [job.missing() for job in jobs]
        graphs = {key: dot for found in missing for key, dot in found.items()}
        if not graphs:
            return list(complaints)
        coordinates, said = fallback.lay_out(engine, graphs, timeout)
        for job, wanted in zip(jobs, missing, strict=True):
            for key in wanted:
                if key not in coordinates or not job.composer.is_answered(key, coordinates[key]):
                    coordinates[key] = job.composer.plain(key)
                    said[key] = f"{said.get(key, 'it gave no place to some nodes')}; drawn without it"
                job.layouts[key] = coordinates[key]
            job.complaints += dict.fromkeys(said[key] for key in wanted if key in said)
        complaints |= dict.fromkeys(said.values())


def remark(job: Job) -> str:
    """Return a remark for the page on parts that are laid out without the engine; empty where there are none."""
    plainer = sum("by" in layout for layout in job.used().values())
    if not plainer:
        return ""
    return count(
        plainer,
        mark("{} part of the drawing is laid out in a simpler way"),
        mark("{} parts of the drawing are laid out in a simpler way"),
    )


def insides(job: Job) -> dict[str, Inside]:
    """Return the inside of every module that the picture shows closed, and of those in them, by name of the body.

    Raises:
        ValueError: the job is not laid out yet.
    """
    if not job.complete():
        raise ValueError("the picture is not laid out yet: call lay_out first")
    return {name: job.composer.inside(level) for name, level in job.composer.closed.items()}


def scene(job: Job) -> Frame:
    """Return the whole picture.

    Raises:
        ValueError: the job is not laid out yet.
    """
    if not job.complete():
        raise ValueError("the picture is not laid out yet: call lay_out first")
    return job.composer.scene()
