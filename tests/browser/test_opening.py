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
  const box = group.querySelector("rect").getBoundingClientRect();
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
    return page.locator(f'.fxg-view .fxg-opened[data-path="{path}"] > .fxg-title').first


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
    assert [box[0] for box in page.evaluate(BOXES)] == ["merge.mul", "merge.add"]
    assert page.locator(".fxg-note").all_text_contents() == ["left", "right"]
    crumbs = page.locator(".fxg-crumbs")
    assert crumbs.inner_text().split() == ["net.Net", "›", "merge"]
    crumbs.get_by_role("button").click()
    assert page.evaluate(BOXES) == before
    assert crumbs.count() == 0


@pytest.mark.parametrize(
    ("sought", "closed", "path"), [("one.1 relu", "one", "one.1.act"), ("merge mul", "merge", "merge.mul")]
)
def test_a_search_opens_what_holds_what_it_finds(page: Page, sought: str, closed: str, path: str) -> None:
    field, told = page.get_by_role("searchbox"), page.locator(".fxg-told")
    field.fill(sought)
    assert told.text_content() == "1 found"
    assert page.locator(".fxg-found").get_attribute("data-path") == closed
    field.press("Enter")
    assert told.text_content() == "1 of 1"
    assert page.locator(".fxg-here").get_attribute("data-path") == path


def test_the_keyboard_opens_and_closes(page: Page) -> None:
    closed = page.locator('.fxg-closed[data-path="two"]')
    assert closed.get_attribute("aria-expanded") == "false"
    closed.focus()
    page.keyboard.press("Enter")
    opened = title(page, "two")
    assert opened.get_attribute("aria-expanded") == "true"
    opened.focus()
    page.keyboard.press("Enter")
    assert page.locator('.fxg-closed[data-path="two"]').count() == 1


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
