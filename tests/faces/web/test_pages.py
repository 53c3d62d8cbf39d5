"""The pages in a real browser: what every one of them keeps to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.faces.web.conftest import NARROW, WIDE, Site, browsing, fits, no_serious_fault

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """An empty memory."""
    with browsing(browser, tmp_path_factory.mktemp("shop")) as opened:
        yield opened


def test_a_browser_without_a_token_is_let_in_with_one(site: Site, screenshot: Callable[[Page, str], None]) -> None:
    """It is told in words what to do; the token that is pasted leaves the address again."""
    page = site.page
    page.goto(site.url)
    assert page.text_content("h1") == "This page needs a token"
    no_serious_fault(page)
    screenshot(page, "token")
    page.fill("#token", "x" * 40)
    page.click("button")
    assert "is not one of this memory’s" in page.inner_text("main")
    page.fill("#token", site.token)
    page.click("button")
    assert page.url == f"{site.url}/"
    assert page.text_content("h1") == "Home"
    assert [each for each in site.problems if "401" not in each] == []
    site.problems.clear()


@pytest.mark.parametrize("path", ["/", "/api"])
def test_every_page_is_sound(site: Site, path: str, screenshot: Callable[[Page, str], None]) -> None:
    """Light and dark, narrow and wide: no fault of access, nothing to scroll sideways, nothing on the console."""
    page = site.open(path)
    for width in (NARROW, WIDE):
        for dark in (False, True):
            site.show(width=width, dark=dark)
            no_serious_fault(page)
            fits(page)
            screenshot(page, f"{path} {width} {'dark' if dark else 'light'}")
    assert site.problems == []


def test_keys_lead_through_a_page(site: Site) -> None:
    """The first one past the navigation, and a slash to where one searches."""
    page = site.open("/api")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.tagName") == "BODY"
