"""Opening and closing modules in the viewer, in Chromium, from files and without a server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Build, Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.torch, pytest.mark.browser]

MODEL = """
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.act = nn.ReLU()
    def forward(self, x):
        return self.act(self.fc(x)) + x

class Merge(nn.Module):
    def forward(self, left, right):
        return left * right, left + 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.merge = nn.Sequential(Block(), Block()), Block(), Merge()
    def forward(self, x):
        x = self.one(x)
        product, total = self.merge(x, self.two(x))
        return product + total
"""

BOXES = """() => [...document.querySelectorAll(".fxg-view .fxg-op, .fxg-view .fxg-closed")].map((group) => {
  const box = group.querySelector(".fxg-box").getBoundingClientRect();
  return [group.dataset.path, box.left, box.top, box.right, box.bottom];
})"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    project = Project(tmp_path_factory.mktemp("opening"))
    project.write("net.py", MODEL)
    project.write("index.rst", "Net\n===\n\n.. fxgraph:: net.Net\n   :inputs: 2, 8\n   :depth: 0\n   :name: fig-net\n")
    build = project.build("html", "-W")
    assert build.status == 0, build.warnings
    return build


@pytest.fixture
def page(built: Build, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 1600})
    page = context.new_page()
    faults: list[Any] = []
    page.on("pageerror", lambda error: faults.append(error))  # Playwright marks what it calls
    page.goto((built.folder / "index.html").as_uri())
    yield page
    context.close()
    assert faults == []


def module(page: Page, path: str) -> Locator:
    return page.locator(f'.fxg-view .fxg-closed[data-path="{path}"] > text').first


def title(page: Page, path: str) -> Locator:
    return page.locator(f'.fxg-view .fxg-opened[data-path="{path}"] > .fxg-title .fxg-kind').first


def without_details(page: Page) -> None:
    """Close the panel, which takes room beside the drawing."""
    page.get_by_role("button", name="Close the details").click()


def test_modules_open_in_place_and_inside_each_other(page: Page) -> None:
    module(page, "one").click()
    module(page, "one.1").click()
    module(page, "one.0").click()
    boxes = page.evaluate(BOXES)
    assert {"one.0.fc", "one.0.add", "one.1.fc", "two", "merge"} <= {box[0] for box in boxes}
    for (_, left, top, right, bottom), (_, left2, top2, right2, bottom2) in itertools.combinations(boxes, 2):
        assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
    middles = {path: (left + right) / 2 for path, left, _, right, _ in boxes}
    assert middles["one.0.fc"] == pytest.approx(middles["x"], abs=0.6)
    assert middles["one.1.add"] == pytest.approx(middles["x"], abs=0.6)


def test_what_is_opened_has_the_ids_that_links_lead_to(page: Page) -> None:
    module(page, "one").click()
    module(page, "one.0").click()
    assert page.locator("#fig-net-one\\.0\\.fc").get_attribute("data-path") == "one.0.fc"
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))


def test_the_legend_and_the_links_follow_what_is_open(page: Page) -> None:
    def legend() -> list[str]:
        return page.locator(".fxg-legend li:visible").all_inner_texts()

    assert legend() == ["arithmetic", "input, output", "module, its inside not shown"]
    module(page, "two").click()
    assert legend()[:2] == ["convolution, product, attention", "activation"]
    assert page.locator('[data-path="two.fc"] a').get_attribute("href") == "#fig-net-row-two.fc"
    page.locator('[data-path="two.act"] a').hover()
    assert page.locator(".fxg-op.fxg-lit").count() == 3
    title(page, "two").click()
    assert legend() == ["arithmetic", "input, output", "module, its inside not shown"]


def test_closing_gives_the_picture_back_and_keeps_the_others_open(page: Page) -> None:
    before = page.evaluate(BOXES)
    module(page, "two").click()
    without_details(page)
    only_two = page.evaluate(BOXES)
    module(page, "one").click()
    module(page, "one.0").click()
    title(page, "one").click()
    assert page.evaluate(BOXES) == only_two
    title(page, "two").click()
    assert page.evaluate(BOXES) == before


def test_a_module_with_several_inputs_is_entered_and_left(page: Page) -> None:
    before = page.evaluate(BOXES)
    module(page, "merge").click()
    without_details(page)
    assert [box[0] for box in page.evaluate(BOXES)] == ["merge.mul", "merge.add"]
    assert page.locator(".fxg-note").all_text_contents() == ["left", "right"]
    crumbs = page.locator(".fxg-crumbs")
    assert crumbs.inner_text().split() == ["net.Net", "›", "merge"]
    crumbs.get_by_role("button").click()
    assert page.evaluate(BOXES) == before
    assert crumbs.count() == 0


@pytest.mark.parametrize(("sought", "path"), [("one.1 relu", "one.1.act"), ("merge mul", "merge.mul")])
def test_a_search_opens_what_holds_what_it_finds(page: Page, sought: str, path: str) -> None:
    field = page.get_by_role("combobox")
    field.fill(sought)
    hits = page.get_by_role("listbox").get_by_role("option")
    assert hits.locator("code").all_inner_texts() == [path]
    field.press("Enter")
    page.locator(f'.fxg-here[data-path="{path}"]').wait_for()
    assert page.locator(".fxg-told").text_content() == "1 of 1"


def test_the_keyboard_opens_and_closes(page: Page) -> None:
    closed = page.locator('.fxg-closed[data-path="two"]')
    assert closed.get_attribute("aria-expanded") == "false"
    closed.focus()
    page.keyboard.press("Enter")
    opened = page.locator('.fxg-opened[data-path="two"] > .fxg-title')
    opened.and_(page.locator(":focus")).wait_for()
    assert opened.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    page.locator('.fxg-closed[data-path="two"]:focus').wait_for()


def test_back_closes_what_was_opened_and_forward_opens_it(page: Page) -> None:
    for path in ("one", "one.1", "merge"):
        module(page, path).click()
        page.wait_for_function(f"location.hash === '#fig-net-{path}'")
    opened = page.locator(".fxg-opened")
    page.go_back()
    page.locator('.fxg-opened[data-path="one.1"]').wait_for()
    assert opened.count() == 2
    page.go_back()
    page.locator('.fxg-closed[data-path="one.1"]').wait_for()
    page.go_back()
    page.locator('.fxg-closed[data-path="one"]').wait_for()
    page.go_forward()
    page.go_forward()
    page.locator('.fxg-opened[data-path="one.1"]').wait_for()


def test_an_address_opens_all_that_is_around_a_node(built: Build, page: Page) -> None:
    for path in ("one.1.fc", "merge.mul", "two.add"):
        page.goto((built.folder / "index.html").as_uri() + f"#fig-net-{path}")
        page.locator(f'.fxg-target[data-path="{path}"]').wait_for()
    page.goto("about:blank")
    page.goto((built.folder / "index.html").as_uri() + "#fig-net-one.0.act")
    page.locator('.fxg-target[data-path="one.0.act"]').wait_for()


def choose(page: Page, menu: str, entry: str) -> None:
    page.locator(".fxg-menu > summary", has_text=menu).click()
    page.get_by_role("button", name=entry, exact=True).click()


def test_modules_open_by_class_and_by_depth(page: Page) -> None:
    def opened() -> list[str]:
        return sorted(page.evaluate("[...document.querySelectorAll('.fxg-opened')].map((each) => each.dataset.path)"))

    choose(page, "Open", "Each Block (3)")
    page.locator('.fxg-opened[data-path="one.1"]').wait_for()
    assert opened() == ["one", "one.0", "one.1", "two"]
    choose(page, "Open", "To depth 1")
    page.locator('.fxg-closed[data-path="one.1"]').wait_for()
    assert opened() == ["one", "two"]
    choose(page, "Open", "None")
    page.locator('.fxg-closed[data-path="one"]').wait_for()
    assert opened() == []


def test_a_module_that_was_left_is_as_it_was(page: Page) -> None:
    module(page, "two").click()
    without_details(page)
    before = page.evaluate(BOXES)
    module(page, "merge").click()
    page.locator(".fxg-crumbs").wait_for()
    page.locator(".fxg-crumbs").get_by_role("button").click()
    assert page.evaluate(BOXES) == before


def test_titles_stay_within_their_frames(page: Page) -> None:
    for path in ("one", "one.0", "two"):
        module(page, path).click()
    frames = page.evaluate(
        """() => [...document.querySelectorAll(".fxg-opened")].map((frame) => {
          const box = (each) => each.getBoundingClientRect();
          const [title, outline] = [box(frame.querySelector(":scope > .fxg-title")), box(frame.querySelector("rect"))];
          return [title.left - outline.left, outline.right - title.right];
        })"""
    )
    assert len(frames) == 3
    assert all(left > 0 and right > 0 for left, right in frames)
