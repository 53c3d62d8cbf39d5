"""Check the pages that `make docs` built for external and broken links.

The builder's strict mode finds broken links within the text. This script also covers images, missing pages in the
navigation, pages that the navigation does not reach, and anything that would be loaded from the network.

    python tools/check_site.py [FOLDER]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

CHECKOUT = Path(__file__).parents[1]


class _Addresses(HTMLParser):
    """Collects the addresses that a page links to or loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses of an element."""
        self.found |= {value for name, value in attrs if name in ("href", "src", "action", "poster") and value}


def _addresses(page: Path) -> set[str]:
    parser = _Addresses()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.found


def faults(site: Path) -> Iterator[str]:
    """Yield the faults of the pages in a folder."""
    root = site.resolve()
    linked = {root / "404.html"}
    pages = sorted(root.rglob("*.html"))
    for page in pages:
        for address in sorted(_addresses(page)):
            target = urlsplit(address)
            if target.scheme == "data" or not (target.scheme or target.netloc or target.path):
                continue
            path = (
                root / target.path.lstrip("/") if target.path[:1] == "/" else page.parent / unquote(target.path)
            ).resolve()
            if target.scheme or target.netloc:
                yield f"{page.name} links to another site: {address}"
            elif not path.exists():
                yield f"{page.name} has a broken link: {address}"
            elif page.name == "index.html":
                linked.add(path)
    yield from (f"the navigation does not link to {page.name}" for page in pages if page not in linked)
    for sheet in root.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        yield from (
            f"{sheet.name} loads {found}"
            for found in re.findall(r"(?:url\(|@import) *[\"']?((?:https?:)?//[^)\"']+)", text)
        )


def main(arguments: Sequence[str]) -> int:
    """Print the faults; return 1 if there are any, or if there are no pages."""
    site = Path(arguments[0]) if arguments else CHECKOUT / "site"
    if not (site / "index.html").is_file():
        print(f"there are no pages in {site}: `make docs` builds them", file=sys.stderr)
        return 1
    found = [*faults(site)]
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
