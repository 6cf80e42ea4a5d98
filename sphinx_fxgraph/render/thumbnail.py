"""A picture of a model's outermost level, small enough that a page can hold hundreds: boxes and lines without words."""

from __future__ import annotations

from sphinx_fxgraph.layout.route import Line
from sphinx_fxgraph.options import ViewOptions
from sphinx_fxgraph.record.model import Record
from sphinx_fxgraph.render.drawing import Drawn, Job, scene
from sphinx_fxgraph.render.svg import number, tag
from sphinx_fxgraph.text.escape import xml
from sphinx_fxgraph.view.categories import category


def thumbnail(record: Record, title: str) -> str:
    """The model with all its modules closed, as inline SVG; empty where there is no graph.

    No engine lays it out, so it can be made when the page is written: as with words left out, little is lost.
    """
    if not record.root:
        return ""
    job = Job(record, ViewOptions(depth=0, nontensor="hide", rows="off"))
    while missing := job.missing():
        job.layouts |= {key: job.composer.plain(key) for key in missing}
    picture = scene(job)
    view = f"0 0 {number(picture.width)} {number(picture.height)}"
    return "".join(
        [
            tag("svg", xmlns="http://www.w3.org/2000/svg", class_="fxg-thumb", viewBox=view, role="img"),
            f"<title>{xml(title)}</title>",
            tag("path", class_="fxg-edge", d="".join(map(_line, picture.lines))) + "</path>",
            *map(_box, picture.boxes),
            "</svg>",
        ]
    )


def _line(line: Line) -> str:
    points = [f"{number(x)} {number(y)}" for x, y in line.points]
    return f"M{points[0]}" + ("C" if line.curved else "L") + " ".join(points[1:])


def _box(drawn: Drawn) -> str:
    hue = "io" if drawn.label.closed else category(drawn.box.node)
    size = {"x": drawn.x, "y": drawn.y, "width": drawn.label.width, "height": drawn.label.height}
    style = f"fxg-{hue}" + (" fxg-inner" if drawn.label.closed else "")
    return tag("g", class_=style) + tag("rect", class_="fxg-box", rx=7, **size) + "</rect></g>"
