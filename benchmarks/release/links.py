"""Checks the links between the pages of a built site, without a network: files and anchors.

    python benchmarks/release/links.py docs/_build/html

The exit status is 1 if a link leads to a file or an anchor that is not there. Addresses of other sites are
counted only.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Collects anchors and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.base = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag has."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag == "base":
                self.base = value
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(folder: Path) -> tuple[dict[str, list[str]], int, int]:
    """Return the broken links by page, and how many links lead inside and outside of a site."""
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    found: dict[str, list[str]] = defaultdict(list)
    inside = outside = 0
    for path, page in list(pages.items()):  # a table beside a page has a row for each node that the viewer can open
        if page.base and (owner := pages.get((path.parent / page.base).resolve())):
            owner.anchors |= page.anchors | {anchor.replace("-row-", "-", 1) for anchor in page.anchors}
    for path, page in pages.items():
        here = (path.parent / page.base).resolve() if page.base else path
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside += 1
                continue
            inside += 1
            target = (here.parent / unquote(parts.path)).resolve() if parts.path else here
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                found[str(path.relative_to(folder.resolve()))].append(link)
    return found, inside, outside


def main() -> int:
    """Check a site."""
    folder = Path(sys.argv[1])
    found, inside, outside = broken(folder)
    for page, links in sorted(found.items()):
        print(page, *links[:5], sep="\n  ")
    print(f"{inside} links inside of the site, {sum(map(len, found.values()))} broken; {outside} lead elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
