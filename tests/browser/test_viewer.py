"""What a reader does with a graph, in Chromium, under a strict content security policy."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from conftest import Build, Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = [pytest.mark.torch, pytest.mark.browser]

HOST = "http://docs.example"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
DARK = "body { color: #eeeeee; background: #111111 }"

INDEX = """
ResNet
======

.. fxgraph:: zoo.resnet.resnet18
   :inputs: 1, 3, 224, 224
   :name: fig-resnet
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    project = Project(tmp_path_factory.mktemp("viewer"))
    # The theme's own search box and link to the index have inline styles.
    project.configure("html_sidebars = {'**': []}\nhtml_use_index = False\n")
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
    page.locator('[id="fig-resnet-layer1.0.bn1"] a').hover()
    assert lit(page) == ["layer1.0.bn1", "layer1.0.conv1", "layer1.0.relu"]
    assert page.locator("path.fxg-lit").count() == 2
    page.mouse.move(2, 2)
    assert lit(page) == []


def test_neighbours_outside_of_a_frame_are_lit_with_the_edges_on_the_way(visit: Callable[..., Page]) -> None:
    page = visit()
    page.locator('[id="fig-resnet-layer1.0.conv1"] a').focus()
    assert lit(page) == ["layer1.0.bn1", "layer1.0.conv1", "maxpool"]
    assert page.locator("path.fxg-lit").count() == 4  # into the two frames, and one on each side of the node


def test_a_node_leads_to_its_row_and_the_row_back(visit: Callable[..., Page]) -> None:
    page = visit("#fig-resnet-layer1.0.conv1")
    page.locator('[id="fig-resnet-layer1.0.conv1"] a').click()
    row = page.locator('[id="fig-resnet-row-layer1.0.conv1"]')
    until(page, "document.querySelector('.fxg-tables details').open")
    assert row.is_visible()
    row.get_by_role("link", name="conv1", exact=True).first.click()
    until(page, "location.hash === '#fig-resnet-layer1.0.conv1'")


def test_a_link_to_a_row_opens_the_table(visit: Callable[..., Page]) -> None:
    assert not visit().locator("table.fxg-nodes").is_visible()
    page = visit("#fig-resnet-row-layer4.0.conv1")
    assert page.locator('[id="fig-resnet-row-layer4.0.conv1"]').is_visible()


def test_a_search_finds_by_path_kind_and_shape_and_goes_from_one_to_the_next(visit: Callable[..., Page]) -> None:
    page = visit()
    field, told = page.get_by_role("searchbox"), page.locator(".fxg-told")
    field.fill("Conv2d layer4")
    assert told.text_content() == "5 found"
    assert page.locator(".fxg-found").count() == 5
    field.press("Enter")
    assert told.text_content() == "1 of 5"
    assert page.locator(".fxg-here").get_attribute("data-path") == "layer4.0.conv1"
    view = page.locator(".fxg-view").bounding_box()
    assert view
    assert view["y"] <= middle(page, ".fxg-here")[1] <= view["y"] + view["height"]
    field.press("Shift+Enter")
    assert told.text_content() == "5 of 5"
    field.fill("maxpoolXX")
    assert told.text_content() == "0 found"
    field.fill("1×64×112×112 relu")
    assert page.locator(".fxg-found").get_attribute("data-path") == "relu"
    field.press("Escape")
    assert page.locator(".fxg-found").count() == 0
    assert told.text_content() == ""


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
    view = page.locator(".fxg-view").bounding_box()
    assert view
    assert view["y"] <= middle(page, '[id="fig-resnet-layer1.0.relu..2"]')[1] <= view["y"] + view["height"]
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "fxg-view"
    for key in ("Enter", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    until(page, "location.hash === '#fig-resnet-row-conv1'")


def test_a_map_shows_what_is_in_sight_and_leads_to_the_rest(visit: Callable[..., Page]) -> None:
    page = visit()
    chart = page.locator(".fxg-map")
    assert chart.locator(".fxg-box-far").count() == page.locator(".fxg-view .fxg-box").count()
    box = chart.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
    view = page.locator(".fxg-view").bounding_box()
    assert view
    assert view["y"] <= middle(page, '[id="fig-resnet-output"]')[1] <= view["y"] + view["height"]
    seen = chart.locator(".fxg-seen").bounding_box()
    assert seen
    assert seen["y"] + seen["height"] == pytest.approx(box["y"] + box["height"], abs=8)
    page.get_by_role("button", name="Show all of it").click()
    assert chart.count() == 0


def test_two_fingers_zoom(visit: Callable[..., Page]) -> None:
    page = visit(has_touch=True)
    before = width(page)
    x, y = middle(page)
    client = page.context.new_cdp_session(page)
    for kind, apart in (("touchStart", 40), ("touchMove", 60), ("touchMove", 80), ("touchEnd", 0)):
        points = [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}] if apart else []
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert width(page) == pytest.approx(2 * before, rel=0.05)


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
