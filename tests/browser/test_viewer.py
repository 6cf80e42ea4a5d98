"""What a reader does with a graph, in Chromium, under a strict content security policy."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import pytest
from conftest import Build, Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = [pytest.mark.torch, pytest.mark.browser]

HOST = "http://docs.example"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
DARK = "body { color: #eeeeee; background: #111111 } a { color: #99ccff }"

SOURCE_URL = "fxgraph_source_url = 'https://code.example/{path}#L{line}'\n"

INDEX = """
ResNet
======

.. fxgraph:: zoo.resnet.resnet18
   :inputs: 1, 3, 224, 224
   :name: fig-resnet
   :depth: 9
"""

HIDDEN = """
:orphan:

Small
=====

.. raw:: html

   <details><summary>More</summary>

.. fxgraph:: net.Small
   :inputs: 2, 8
   :name: fig-small

.. raw:: html

   </details>

.. fxgraph:: zoo.resnet.resnet50
   :inputs: 1, 3, 224, 224
   :name: fig-deep
"""

SMALL = """
from torch import nn

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
    def forward(self, x):
        return self.fc(x).relu()
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    project = Project(tmp_path_factory.mktemp("viewer"))
    # The theme's own search box and link to the index have inline styles.
    project.configure("html_sidebars = {'**': []}\nhtml_use_index = False\nhtml_domain_indices = False\n" + SOURCE_URL)
    project.write("net.py", SMALL)
    project.write("hidden.rst", HIDDEN)
    project.write("index.rst", INDEX + "\n" + "Text.\n\n" * 100)
    return project.build("html", "-W")


@pytest.fixture
def visit(built: Build, browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the page as a server with a strict policy would give it; nothing else can be reached."""
    contexts = []
    faults: list[str] = []

    def serve(route: Route) -> None:
        url = urlsplit(route.request.url)
        path = built.folder / url.path.lstrip("/")
        if f"{url.scheme}://{url.netloc}" != HOST or not path.is_file():
            route.abort()
            return
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        headers = {"Content-Security-Policy": POLICY, "Content-Type": kind}
        route.fulfill(body=path.read_bytes(), headers=headers)

    def visit(where: str = "", **settings: Any) -> Page:
        context = browser.new_context(viewport={"width": 900, "height": 700}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.route("**/*", serve)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(f"{HOST}/index.html{where}")
        if where.startswith("#fig-") and settings.get("java_script_enabled", True):
            page.locator(".fxg-target, .fxg-current").first.wait_for()
        return page

    yield visit
    for context in contexts:
        context.close()
    assert faults == []


def scrolled(page: Page) -> list[float]:
    found: list[float] = page.evaluate("(v => [v.scrollLeft, v.scrollTop])(document.querySelector('.fxg-view'))")
    return found


def until(page: Page, condition: str) -> None:
    """Wait for something in the page, frame by frame; Playwright's own waiting needs eval, which the policy forbids."""
    look = f"n => ({condition}) ? done() : n ? requestAnimationFrame(() => look(n - 1)) : fail(Error('waited in vain'))"
    page.evaluate(f"() => new Promise((done, fail) => {{ const look = {look}; look(600); }})")


def width(page: Page) -> float:
    box = page.locator(".fxg-svg").bounding_box()
    assert box
    return box["width"]


def middle(page: Page, selector: str = ".fxg-view") -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_without_script_it_stands_there_in_natural_size(visit: Callable[..., Page]) -> None:
    page = visit(java_script_enabled=False)
    box = page.locator(".fxg-svg").bounding_box()
    natural = page.locator(".fxg-svg").get_attribute("height")
    assert box
    assert box["height"] == float(natural or 0)
    assert page.locator(".fxg-view").bounding_box()["height"] >= box["height"]  # type: ignore[index]
    assert page.locator("button").count() == 0


def test_with_script_it_leaves_room_for_the_page(visit: Callable[..., Page]) -> None:
    page = visit()
    box = page.locator(".fxg-view").bounding_box()
    assert box
    assert box["height"] <= 0.8 * 700


def test_a_plain_wheel_scrolls_the_page(visit: Callable[..., Page]) -> None:
    page = visit()
    before = width(page)
    page.mouse.move(*middle(page))
    page.mouse.wheel(0, 200)
    until(page, "scrollY > 100")
    assert scrolled(page) == [0, 0]
    assert width(page) == before


def test_ctrl_and_wheel_zoom_around_the_pointer(visit: Callable[..., Page]) -> None:
    page = visit()
    for _ in range(6):  # a drawing that is narrower than its frame stays in the middle of it
        page.get_by_role("button", name="Zoom in").click()
    target = '[id="fig-resnet-layer1.0.conv2"]'
    page.locator(target).scroll_into_view_if_needed()
    at, before = middle(page, target), width(page)
    page.mouse.move(*at)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    until(page, f"document.querySelector('.fxg-svg').getBoundingClientRect().width > {before * 1.3}")
    assert middle(page, target) == pytest.approx(at, abs=2)


def test_buttons_zoom_fit_and_go_back(visit: Callable[..., Page]) -> None:
    page = visit()
    natural = width(page)
    page.get_by_role("button", name="Zoom in").click()
    assert width(page) == pytest.approx(natural * 1.25)
    page.get_by_role("button", name="Show all of it").click()
    drawing, view = page.locator(".fxg-svg").bounding_box(), page.locator(".fxg-view").bounding_box()
    assert drawing
    assert view
    assert drawing["height"] <= view["height"] + 1
    page.get_by_role("button", name="Natural size").click()
    assert width(page) == pytest.approx(natural)


def test_a_drag_moves_the_drawing(visit: Callable[..., Page]) -> None:
    page = visit()
    x, y = middle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 50)
    page.mouse.move(x, y - 150)
    page.mouse.up()
    assert scrolled(page)[1] == 150
    page.mouse.move(x, y - 250)
    assert scrolled(page)[1] == 150


def test_keys_move_and_zoom_only_when_the_drawing_has_the_focus(visit: Callable[..., Page]) -> None:
    page = visit()
    natural = width(page)
    page.keyboard.press("+")
    assert width(page) == natural
    page.locator(".fxg-view").focus()
    page.keyboard.press("+")
    assert width(page) == pytest.approx(natural * 1.25)
    page.keyboard.press("-")
    page.keyboard.press("ArrowDown")
    assert scrolled(page)[1] == 60
    page.keyboard.press("Escape")
    page.keyboard.press("+")
    assert width(page) == pytest.approx(natural)


def test_a_link_to_a_node_shows_it(visit: Callable[..., Page]) -> None:
    page = visit("#fig-resnet-layer4.0.conv1")
    view = page.locator(".fxg-view").bounding_box()
    assert view
    assert view["y"] <= middle(page, '[id="fig-resnet-layer4.0.conv1"]')[1] <= view["y"] + view["height"]


def lit(page: Page) -> list[str]:
    return sorted(page.evaluate("() => [...document.querySelectorAll('g.fxg-lit')].map((each) => each.dataset.path)"))


def test_a_node_under_the_pointer_is_lit_with_its_neighbours(visit: Callable[..., Page]) -> None:
    page = visit("#fig-resnet-layer1.0.conv1")
    page.locator('[id="fig-resnet-layer1.0.bn1"]').hover()
    assert lit(page) == ["layer1.0.bn1", "layer1.0.conv1", "layer1.0.relu"]
    page.mouse.move(2, 2)
    assert lit(page) == []


def test_neighbours_outside_of_a_frame_are_lit_with_the_edges_on_the_way(visit: Callable[..., Page]) -> None:
    page = visit()
    page.locator('[id="fig-resnet-layer1.0.conv1"]').hover()
    assert lit(page) == ["layer1.0.bn1", "layer1.0.conv1", "maxpool"]
    assert page.locator("path.fxg-lit:not(.fxg-box)").count() == 3  # into two frames, and to the node


# -- details of a node


def test_a_click_anywhere_on_a_row_shows_its_details(visit: Callable[..., Page]) -> None:
    page = visit("#fig-resnet-layer1.0.conv1")
    page.locator('[id="fig-resnet-layer1.0.conv1"]').click(position={"x": 60, "y": 10})
    panel = page.locator("aside.fxg-panel-node")
    panel.wait_for()
    said = panel.inner_text()
    for text in (
        "Conv2d 3×3 conv1",
        "layer1.0.conv1",
        "kernel_size=(3, 3)",
        "1×64×56×56 f32",
        "36,864 (0.3 %)",
        "MMACs",
    ):
        assert text in said, said
    source = panel.get_by_role("link", name="resnet.py")
    assert str(source.get_attribute("href")).startswith("https://code.example/zoo/resnet.py#L")
    panel.get_by_role("link", name="bn1").click()
    until(page, "document.querySelector('.fxg-panel-node').textContent.includes('BatchNorm2d')")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Close the details").click()
    assert panel.count() == 0


def test_details_by_keyboard_and_back_to_the_node(visit: Callable[..., Page]) -> None:
    page = visit()
    page.locator(".fxg-view").focus()
    for key in ("Enter", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    until(page, "document.activeElement.matches('.fxg-panel-node')")
    assert "conv1" in page.locator(".fxg-panel-node").inner_text()
    page.keyboard.press("Escape")
    assert page.locator(".fxg-panel-node").count() == 0


def test_a_touch_shows_details(visit: Callable[..., Page]) -> None:
    page = visit(has_touch=True)
    page.locator('[id="fig-resnet-layer1.0.relu"]').tap()
    page.locator("aside.fxg-panel-node").wait_for()


def test_a_link_of_a_node_is_copied(visit: Callable[..., Page]) -> None:
    page = visit()
    page.locator('[id="fig-resnet-relu"]').click()
    page.get_by_role("button", name="Copy link").and_(page.locator(".fxg-panel-node *")).click()
    page.get_by_role("button", name="Copied").wait_for()
    page.get_by_role("combobox").focus()
    page.keyboard.press("Control+V")
    assert page.get_by_role("combobox").input_value() == f"{HOST}/index.html#fig-resnet-relu"


def test_shared_modules_say_so(visit: Callable[..., Page]) -> None:
    page = visit()
    page.locator('[id="fig-resnet-layer1.0.relu..2"]').click()
    assert "the same module as layer1.0.relu" in page.locator(".fxg-panel-node").inner_text()


# -- the node table


def test_a_node_leads_to_its_row_and_the_row_back(visit: Callable[..., Page]) -> None:
    page = visit("#fig-resnet-layer1.0.conv1")
    page.locator('[id="fig-resnet-layer1.0.conv1"]').click()
    page.get_by_role("button", name="Show row").click()
    row = page.locator('[id="fig-resnet-row-layer1.0.conv1"]')
    row.wait_for()
    row.get_by_role("link", name="layer1.0.conv1").click()
    until(page, "location.hash === '#fig-resnet-layer1.0.conv1'")
    assert in_sight(page, '[id="fig-resnet-layer1.0.conv1"]')


def test_a_link_to_a_row_opens_the_table(visit: Callable[..., Page]) -> None:
    assert not visit().locator("table.fxg-nodes").is_visible()
    page = visit("#fig-resnet-row-layer4.0.conv1")
    row = page.locator('[id="fig-resnet-row-layer4.0.conv1"]')
    row.wait_for()
    assert row.evaluate("(row) => row.matches('.fxg-current')")


def names(page: Page) -> list[str]:
    return page.locator(".fxg-filled tbody th a").all_inner_texts()


def test_the_node_table_sorts_filters_and_sums_up_by_module(visit: Callable[..., Page]) -> None:
    page = visit()
    page.locator(".fxg-node-rows > summary").click()
    page.locator(".fxg-filled").wait_for()
    page.get_by_role("button", name="parameters").click()
    assert names(page)[:2] == ["layer4.0.conv2", "layer4.1.conv1"]
    page.get_by_role("searchbox", name="Filter").fill("Conv2d 112x112")
    assert names(page) == ["conv1"]
    page.get_by_role("searchbox", name="Filter").fill("layer1.1.bn2")  # a repeat has the row of its first
    assert names(page) == ["layer1.0.bn2"]
    page.get_by_role("searchbox", name="Filter").fill("")
    page.get_by_role("button", name="Modules", exact=True).click()
    page.get_by_role("button", name="parameters").click()
    assert names(page)[0] == "layer4"
    assert "8,393,728" in page.locator(".fxg-filled tbody tr").first.inner_text()


def test_the_head_and_the_first_column_stay_in_sight_and_rows_have_one_line(visit: Callable[..., Page]) -> None:
    page = visit()
    page.locator(".fxg-node-rows > summary").click()
    page.locator(".fxg-scroll").evaluate("(box) => box.scrollTo(300, 400)")
    head, box = page.locator(".fxg-filled thead th").first.bounding_box(), page.locator(".fxg-scroll").bounding_box()
    assert head
    assert box
    assert head["y"] == pytest.approx(box["y"], abs=1)
    assert head["x"] == pytest.approx(box["x"], abs=1)
    heights = page.evaluate("[...document.querySelectorAll('.fxg-filled tbody tr')].map((row) => row.offsetHeight)")
    assert max(heights) < 40


def test_columns_can_be_chosen(visit: Callable[..., Page]) -> None:
    page = visit()
    page.locator(".fxg-node-rows > summary").click()
    page.locator(".fxg-table-bar summary").click()
    page.get_by_role("checkbox", name="source").check()
    assert page.locator(".fxg-filled thead").get_by_text("source").count() == 1


def test_without_script_a_large_table_is_a_page_of_its_own(visit: Callable[..., Page]) -> None:
    page = visit(java_script_enabled=False)
    page.goto(f"{HOST}/hidden.html")
    page.locator("#fig-deep .fxg-op a").first.click()
    assert page.locator("table.fxg-nodes tbody tr").count() > 100
    page.locator('[id="fig-deep-row-layer4.0.conv1"] a').first.click()
    assert page.url.startswith(f"{HOST}/hidden.html#fig-deep-layer4")


# -- search


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        ("Conv2d 112x112", ["conv1"]),
        ("kernel_size=7", ["conv1"]),
        ("1×64×112×112 relu", ["relu", "maxpool"]),
        ("layer4.1 bn2 batchnorm", ["layer4.1.bn2"]),
        ("maxpoolXX", []),
    ],
)
def test_a_search_lists_what_it_finds(visit: Callable[..., Page], sought: str, found: list[str]) -> None:
    page = visit()
    page.get_by_role("combobox").fill(sought)
    until(page, f"document.querySelector('.fxg-told').textContent === '{len(found)} found'")
    assert sorted(page.locator(".fxg-hits code").all_inner_texts()) == sorted(found)


def test_what_has_the_very_words_comes_first(visit: Callable[..., Page]) -> None:
    page = visit()
    page.get_by_role("combobox").fill("Conv2d 7x7")
    until(page, "document.querySelectorAll('.fxg-hits code').length > 1")  # some have the shape 7×7
    assert page.locator(".fxg-hits code").first.inner_text() == "conv1"


def test_the_keyboard_goes_through_the_hits(visit: Callable[..., Page]) -> None:
    page = visit()
    field, told = page.get_by_role("combobox"), page.locator(".fxg-told")
    field.fill("Conv2d layer4")
    until(page, "document.querySelector('.fxg-told').textContent === '5 found'")
    assert page.locator(".fxg-found").count() == 5
    field.press("Enter")
    until(page, "document.querySelector('.fxg-told').textContent === '1 of 5'")
    assert page.locator(".fxg-here").get_attribute("data-path") == "layer4.0.conv1"
    until(page, "location.hash === '#fig-resnet-layer4.0.conv1'")
    assert in_sight(page, ".fxg-here")
    field.press("Shift+Enter")
    until(page, "document.querySelector('.fxg-told').textContent === '5 of 5'")
    field.press("ArrowUp")
    field.press("ArrowUp")
    field.press("Enter")
    until(page, "document.querySelector('.fxg-told').textContent === '3 of 5'")
    field.press("Escape")
    until(page, "document.querySelector('.fxg-told').textContent === ''")
    assert page.locator(".fxg-found").count() == 0
    assert told.text_content() == ""


def in_sight(page: Page, selector: str) -> bool:
    view = page.locator(".fxg-view").bounding_box()
    assert view
    return bool(view["y"] <= middle(page, selector)[1] <= view["y"] + view["height"])


def test_arrows_walk_along_the_edges(visit: Callable[..., Page]) -> None:
    page = visit()

    def here() -> str:
        return str(page.evaluate("document.activeElement.closest('[data-path]')?.dataset.path"))

    page.locator(".fxg-view").focus()
    page.keyboard.press("Enter")
    assert here() == "x"
    walked = []
    for _ in range(12):
        page.keyboard.press("ArrowDown")
        walked.append(here())
    block = [f"layer1.0.{name}" for name in ("conv1", "bn1", "relu", "conv2", "bn2", "add", "relu@2")]
    assert walked == ["conv1", "bn1", "relu", "maxpool", *block, "layer1.1.conv1"]
    page.keyboard.press("ArrowUp")
    assert here() == "layer1.0.relu@2"
    assert in_sight(page, '[id="fig-resnet-layer1.0.relu..2"]')
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "fxg-view"


# -- moving


def test_a_map_shows_what_is_in_sight_and_leads_to_the_rest(visit: Callable[..., Page]) -> None:
    page = visit()
    chart = page.locator(".fxg-map")
    assert chart.locator(".fxg-box-far").count() == page.locator(".fxg-view .fxg-box").count()
    box, view = chart.bounding_box(), page.locator(".fxg-view").bounding_box()
    assert box
    assert view
    assert box["x"] >= view["x"] + view["width"]  # it covers nothing
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
    assert in_sight(page, '[id="fig-resnet-output"]')
    seen = chart.locator(".fxg-seen").bounding_box()
    assert seen
    assert seen["y"] + seen["height"] == pytest.approx(box["y"] + box["height"], abs=8)


@pytest.mark.parametrize("away", ["Zoom out", "Show all of it"])
def test_natural_size_comes_back_to_where_one_looked(visit: Callable[..., Page], away: str) -> None:
    page = visit("#fig-resnet-layer2.0.conv1")
    before = scrolled(page)
    for _ in range(12 if away == "Zoom out" else 1):
        page.get_by_role("button", name=away).click()
    drawing, view = page.locator(".fxg-svg").bounding_box(), page.locator(".fxg-view").bounding_box()
    assert drawing
    assert view
    assert drawing["height"] == pytest.approx(view["height"], abs=1)
    page.get_by_role("button", name="Natural size").click()
    assert scrolled(page) == pytest.approx(before, abs=2)


def test_a_double_click_zooms_there(visit: Callable[..., Page]) -> None:
    page = visit("#fig-resnet-layer2.0.conv1")
    before = width(page)
    _, y = middle(page, ".fxg-view")
    view = page.locator(".fxg-view").bounding_box()
    assert view
    page.mouse.dblclick(view["x"] + 3, y)
    assert width(page) == pytest.approx(2 * before)


def touch(page: Page, *steps: tuple[str, list[tuple[float, float]]]) -> None:
    client = page.context.new_cdp_session(page)
    for kind, fingers in steps:
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in fingers]})


def test_two_fingers_zoom_and_move(visit: Callable[..., Page]) -> None:
    page = visit(has_touch=True)
    before = width(page)
    x, y = middle(page)
    pinch = [[(x - apart, y), (x + apart, y)] for apart in (40, 60, 80)]
    touch(page, ("touchStart", pinch[0]), ("touchMove", pinch[1]), ("touchMove", pinch[2]), ("touchEnd", []))
    assert width(page) == pytest.approx(2 * before, rel=0.05)


def test_one_finger_moves_a_wide_drawing_sideways_and_the_page_up_and_down(visit: Callable[..., Page]) -> None:
    page = visit(has_touch=True)
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    x, y = middle(page)
    left, top = scrolled(page)
    aside = [(x - 20 * step, y) for step in range(8)]
    touch(page, ("touchStart", aside[:1]), *[("touchMove", [at]) for at in aside], ("touchEnd", []))
    until(page, f"document.querySelector('.fxg-view').scrollLeft > {left + 60}")
    up = [(x, y - 20 * step) for step in range(8)]
    touch(page, ("touchStart", up[:1]), *[("touchMove", [at]) for at in up], ("touchEnd", []))
    until(page, "scrollY > 60")
    assert scrolled(page)[1] == top
    assert "two" in page.locator(".fxg-hint").inner_text() or "Drag" in page.locator(".fxg-hint").inner_text()


def test_full_screen_works_where_the_browser_has_none(visit: Callable[..., Page]) -> None:
    page = visit()
    page.evaluate("HTMLElement.prototype.requestFullscreen = undefined; window.scrollTo(0, 0)")
    page.locator(".fxg-when-wide", has_text="Full screen").click()
    box = page.locator(".fxg-graph").bounding_box()
    assert box
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 900, 700)
    page.locator(".fxg-view").focus()
    page.keyboard.press("Escape")
    assert page.locator(".fxg-full").count() == 0


def test_the_bar_has_one_row_and_a_menu_where_it_is_narrow(visit: Callable[..., Page]) -> None:
    for wide in (900, 390):
        page = visit()
        page.set_viewport_size({"width": wide, "height": 700})
        until(page, f"document.querySelector('.fxg-graph').matches('.fxg-narrow') === {str(wide < 500).lower()}")
        box = page.locator(".fxg-bar").bounding_box()
        assert box
        assert box["height"] < 45
        assert page.evaluate(
            "document.querySelector('.fxg-bar').scrollWidth <= document.querySelector('.fxg-bar').clientWidth"
        )
    page.locator(".fxg-bar summary", has_text="⋯").click()
    page.get_by_role("button", name="Show all of it").click()
    assert not page.locator(".fxg-bar details[open]").count()


# -- files


def saved(page: Page, entry: str, role: Any = "button") -> bytes:
    page.locator(".fxg-bar summary", has_text="⋯").click()
    with page.expect_download() as started:
        page.get_by_role(role, name=entry).click()
    return started.value.path().read_bytes()


def test_the_picture_and_its_data_are_saved(built: Build, visit: Callable[..., Page]) -> None:
    page = visit()
    svg = saved(page, "Save as SVG")
    root = ET.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert b"var(" not in svg
    assert b"class=" not in svg
    assert {each.get("fill") for each in root.iter("{http://www.w3.org/2000/svg}path")} & {"rgb(219, 233, 255)"}
    assert saved(page, "Save as PNG").startswith(b"\x89PNG")
    links = {
        kind: page.locator(".fxg-bar a[download]", has_text=kind).get_attribute("href") for kind in ("DOT", "JSON")
    }
    files = {kind: built.folder / urlsplit(str(link)).path.lstrip("/") for kind, link in links.items()}
    assert files["DOT"].read_text(encoding="utf-8").startswith("digraph")
    assert json.loads(files["JSON"].read_text(encoding="utf-8"))["root"]


# -- accessibility


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_rule_of_axe_is_broken(built: Build, browser: Browser, scheme: str) -> None:
    axe = Path(__file__).parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.is_file():
        pytest.skip("axe-core is not installed: npm install in viewer/")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((built.folder / "index.html").as_uri())
    if scheme == "dark":
        page.add_style_tag(content=DARK)
        page.evaluate("document.body.dataset.theme = 'whatever'")
        until(page, "document.documentElement.dataset.fxgPage === 'dark'")
    page.locator('[id="fig-resnet-relu"]').click()
    page.locator(".fxg-panel-node").wait_for()
    page.locator(".fxg-node-rows > summary").click()
    page.locator(".fxg-filled").wait_for()
    page.add_script_tag(path=str(axe))
    for part in (".fxgraph", ".fxg-tables"):
        found = page.evaluate("(part) => axe.run(part, { resultTypes: ['violations'] })", part)["violations"]
        assert [(rule["id"], [node["html"] for node in rule["nodes"]][:2]) for rule in found] == []
    page.close()


def test_text_of_the_bar_and_the_panel_grows_with_the_readers_size(visit: Callable[..., Page]) -> None:
    page = visit()
    before = page.locator(".fxg-bar").bounding_box()
    page.evaluate("document.documentElement.style.setProperty('font-size', '32px')")
    after = page.locator(".fxg-bar").bounding_box()
    assert before
    assert after
    assert after["height"] > before["height"] * 1.2


def test_forced_colours_are_followed(visit: Callable[..., Page]) -> None:
    page = visit(forced_colors="active")
    found = page.evaluate("getComputedStyle(document.querySelector('.fxg-view .fxg-box')).stroke")
    text = page.evaluate("getComputedStyle(document.querySelector('.fxg-view text')).fill")
    assert found == text


def test_a_page_that_is_read_from_the_right(visit: Callable[..., Page]) -> None:
    page = visit()
    page.evaluate("document.documentElement.dir = 'rtl'; dispatchEvent(new Event('resize'))")
    assert page.evaluate("getComputedStyle(document.querySelector('.fxg-svg text')).direction") == "ltr"
    page.locator('[id="fig-resnet-conv1"]').click()
    view, panel = page.locator(".fxg-view").bounding_box(), page.locator(".fxg-panel-node").bounding_box()
    assert view
    assert panel
    assert panel["x"] < view["x"]


def test_an_address_that_is_not_well_formed_is_ignored(visit: Callable[..., Page]) -> None:
    page = visit("#50%")
    assert page.locator(".fxg-bar").count() == 1


def test_a_graph_in_closed_details_is_ready_once_they_open(visit: Callable[..., Page]) -> None:
    page = visit()
    page.goto(f"{HOST}/hidden.html#fig-small-fc")
    page.locator(".fxg-target").wait_for()
    assert page.locator("#fig-small").is_visible()  # the address opened them
    page.locator('[id="fig-small-fc"]').click()
    page.locator(".fxg-panel-node").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_dark_where_the_page_is_and_not_where_the_system_is(visit: Callable[..., Page], scheme: str) -> None:
    page = visit(color_scheme=scheme)
    paper = "getComputedStyle(document.querySelector('.fxg-graph')).backgroundColor"
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.evaluate(
        "css => { const s = new CSSStyleSheet(); s.replaceSync(css); document.adoptedStyleSheets = [s]; }", DARK
    )
    page.evaluate("document.body.dataset.theme = 'whatever'")
    until(page, f"{paper} === 'rgb(20, 24, 31)'")


def test_print_has_all_of_it(visit: Callable[..., Page]) -> None:
    page = visit()
    page.get_by_role("button", name="Zoom in").click()
    page.emulate_media(media="print")
    drawing, view = page.locator(".fxg-svg").bounding_box(), page.locator(".fxg-view").bounding_box()
    assert drawing
    assert view
    assert drawing["width"] <= view["width"]
    assert drawing["height"] <= view["height"] + 1
    assert not page.locator(".fxg-bar").is_visible()
