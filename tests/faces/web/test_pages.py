"""All pages in a real browser, on a memory of several days: what they have in common, and what each shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.faces.web.conftest import HOSTILE, NARROW, WIDE, Site, browsing, fill, fits, no_serious_fault

OPERATIONS = 300
LAST = f"op {OPERATIONS + 1}"
CONFIG = "orchestrator:\n  context_window:\n    max_tokens: 8192\n"
VIEWS = [
    "/", "/sessions", "/sessions/{session}", "/sessions/{session}/document", "/search",
    "/search?q=why did the session store wait for a lock&tier=session&since=2025-01-01", "/search?q=zephyrberg",
    "/prompt", "/prompt?query=session store lock&max_tokens=3000", "/original?of=S12", f"/original?of={LAST}", "/api",
]  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a memory with some history."""
    folder = tmp_path_factory.mktemp("pages") / "shop"
    (folder / ".obra").mkdir(parents=True)
    (folder / ".obra" / "config.yaml").write_text(CONFIG)
    fill(folder, OPERATIONS)
    return folder


@pytest.fixture(scope="module")
def site(browser: Browser, project: Path) -> Iterator[Site]:
    """The memory, served and open in a browser."""
    with browsing(browser, project) as opened:
        yield opened


def test_a_browser_without_a_token_is_let_in_with_one(site: Site, screenshot: Callable[[Page, str], None]) -> None:
    """A browser without a token gets a page that asks for it, and a pasted token does not stay in the address."""
    page = site.page
    page.goto(site.url)
    assert page.text_content("h1") == "This page needs a token"
    no_serious_fault(page)
    screenshot(page, "token")
    page.fill("#token", "x" * 40)
    page.click("button")
    assert "is not valid for this memory" in page.inner_text("main")
    page.fill("#token", site.token)
    page.click("button")
    expect(page).to_have_url(f"{site.url}/")
    assert [each for each in site.problems if "401" not in each] == []
    site.problems.clear()


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_is_sound(site: Site, path: str, screenshot: Callable[[Page, str], None]) -> None:
    """Every view is accessible, fits narrow and wide screens, and logs nothing on the console."""
    session = httpx2.get(f"{site.url}/api/memory/sessions", headers={"Authorization": f"Bearer {site.token}"})
    page = site.open(path.format(session=session.json()["items"][-1]["id"]))
    for width, dark in ((NARROW, True), (WIDE, False)):
        site.show(width=width, dark=dark)
        no_serious_fault(page)
        fits(page)
        screenshot(page, f"{path} {width}")
    assert "taken over" not in page.title()
    assert site.problems == []


def test_home_shows_the_window_and_its_past(site: Site) -> None:
    """The home page shows the gauge with its thresholds, the chart with each refresh, and first what needs a person."""
    page = site.open("/")
    assert re.fullmatch(r"\d+%", page.inner_text("#window .big .number"))
    assert page.locator(".gauge text").all_text_contents() == ["70%", "80%", "95%"]
    assert page.locator(".chart .reset").count() > 3
    assert "from" in (page.locator(".chart .reset title").first.text_content() or "")
    assert page.locator("main h2").first.inner_text() == "Needs attention"


def test_home_follows_what_happens(site: Site) -> None:
    """A new operation appears on the open home page without a reload."""
    page = site.open("/")
    expect(page.locator("#newest")).not_to_contain_text("A quokka was seen.")
    headers = {"Authorization": f"Bearer {site.token}"}
    said = {"type": "note", "data": {"text": "A quokka was seen."}}
    httpx2.post(f"{site.url}/api/memory/operations", json=said, headers=headers).raise_for_status()
    expect(page.locator("#newest")).to_contain_text("A quokka was seen.", timeout=10_000)


def test_a_search_is_answered_as_it_is_typed(site: Site) -> None:
    """Search results and the address follow the typing and filters, and recorded markup is shown as text."""
    page = site.open("/search")
    page.locator("#q").press_sequentially("zephyrberg")
    first = page.locator("#hits .rows > li").first
    expect(first).to_contain_text(HOSTILE)
    expect(first.locator("mark")).to_have_text("zephyrberg")
    assert page.url == f"{site.url}/search?q=zephyrberg"
    assert page.evaluate("document.activeElement.id") == "q"
    first.get_by_text("Why it is here").click()
    expect(first.locator("details")).to_contain_text("words: rank 1")
    page.select_option("#tier", "episodic")
    expect(page.locator("#hits")).not_to_contain_text(LAST)
    assert page.url == f"{site.url}/search?q=zephyrberg&tier=episodic"
    assert site.problems == []


def test_no_hits_of_other_words_stand_below_a_refusal(site: Site) -> None:
    """A refused filter or an unreachable server replaces the old hits by a message until the next answer."""
    page = site.open("/search?q=zephyrberg")
    expect(page.locator("#hits .rows > li").first).to_be_visible()
    page.fill("#worker", "x" * 201)
    expect(page.get_by_role("alert")).to_contain_text("at most 200 characters")
    expect(page.locator("#hits .rows")).to_have_count(0)
    expect(page.locator("#count")).to_be_empty()
    page.context.set_offline(True)
    page.fill("#worker", "")
    expect(page.get_by_role("alert")).to_have_text("The server does not answer.")
    page.context.set_offline(False)
    page.fill("#q", "zephyr")
    expect(page.locator("#hits .rows > li").first).to_be_visible()
    assert [each for each in site.problems if "Failed to load resource" not in each] == []
    site.problems.clear()  # the browser logs both failures


def test_what_somebody_wrote_turns_nothing_around_it_and_takes_no_page_for_itself(site: Site) -> None:
    """Direction marks in a text do not reorder the page around it, and lists show only a long text's beginning."""
    headers = {"Authorization": f"Bearer {site.token}"}
    for path, said in (
        ("operations", {"type": "note", "data": {"text": "x" * 100_000}}),
        ("work", {"kind": "epic", "title": "\u202eturned"}),
    ):
        httpx2.post(f"{site.url}/api/memory/{path}", json=said, headers=headers).raise_for_status()
    page = site.open("/work")
    title, kind = page.locator(".branch a", has_text="turned"), page.locator(".branch span").first
    ends = title.evaluate("of => of.getBoundingClientRect().right")
    assert ends <= kind.evaluate("of => of.getBoundingClientRect().left")
    shown = site.open("/").locator("#newest li", has_text="xxxx")
    assert shown.evaluate("of => of.clientHeight") < 500
    shown.get_by_role("link").click()
    assert site.page.evaluate("document.body.scrollHeight") > 5_000


def test_a_summary_opens_down_to_the_original_words(site: Site) -> None:
    """A session's summaries open level by level down to the recorded operations."""
    page = site.open("/sessions")
    page.locator(".rows a").last.click()
    node = page.locator(".tree > li > details").first
    node.locator("> summary").click()
    while node.locator("> ul").count():
        node = node.locator("> ul > li > details").first
        node.locator("> summary").click()
    node.get_by_text("The original words").click()
    expect(node.locator(".rows > li").first).to_contain_text("op ")
    assert site.problems == []


def test_a_prompt_tells_why_each_item_is_there(site: Site) -> None:
    """The prompt page shows the tokens of each part, and recalls what the query asks for."""
    page = site.open("/prompt")
    page.fill("#query", "session store lock")
    page.fill("#max_tokens", "2000")
    page.click("main button")
    assert re.fullmatch(r"[\d,]+ of 2,000 tokens", page.locator("main h2").first.inner_text())
    assert page.locator(".stack .bar").count() == page.locator(".legend li").count() == 6
    recalled = page.locator("section", has=page.locator("#recalled_memories"))
    expect(recalled).to_contain_text("session_store")


def test_keys_lead_through_a_page(site: Site) -> None:
    """The first Tab stop skips the navigation, and a slash moves the focus to the search field."""
    page = site.open("/api")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.type("zephyrberg")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/search?q=zephyrberg")


def test_pages_are_read_without_script(browser: Browser, site: Site) -> None:
    """Without JavaScript the search form and the links to originals and summaries work."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site.url}/?token={site.token}")
        page.fill("#top-q", "zephyrberg")
        page.press("#top-q", "Enter")
        page.get_by_role("link", name=LAST).click()
        expect(page).to_have_url(re.compile("/original"))
        assert HOSTILE in page.inner_text("main")
        page.goto(f"{site.url}/sessions")
        page.locator(".rows a").last.click()
        expect(page.locator("[href*='/original?of=S']")).not_to_have_count(0)
