"""The pages in a real browser, on a memory of some days of work: what all keep to, and what each shows."""

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
    """That memory in the browser."""
    with browsing(browser, project) as opened:
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
    expect(page).to_have_url(f"{site.url}/")
    assert [each for each in site.problems if "401" not in each] == []
    site.problems.clear()


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_is_sound(site: Site, path: str, screenshot: Callable[[Page, str], None]) -> None:
    """Light and dark, narrow and wide: no fault of access, nothing to scroll sideways, nothing on the console."""
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
    """The gauge with its lines, the line with each refresh; what needs a person stands first."""
    page = site.open("/")
    assert re.fullmatch(r"\d+%", page.inner_text("#window .big .number"))
    assert page.locator(".gauge text").all_text_contents() == ["70%", "80%", "95%"]
    assert page.locator(".chart .reset").count() > 3
    assert "from" in (page.locator(".chart .reset title").first.text_content() or "")
    assert page.locator("main h2").first.inner_text() == "What needs you"


def test_home_follows_what_happens(site: Site) -> None:
    """Without a reload, by the events of the server: a new operation stands there soon."""
    page = site.open("/")
    expect(page.locator("#newest")).not_to_contain_text("A quokka was seen.")
    headers = {"Authorization": f"Bearer {site.token}"}
    said = {"type": "note", "data": {"text": "A quokka was seen."}}
    httpx2.post(f"{site.url}/api/memory/operations", json=said, headers=headers).raise_for_status()
    expect(page.locator("#newest")).to_contain_text("A quokka was seen.", timeout=10_000)


def test_a_search_is_answered_as_it_is_typed(site: Site) -> None:
    """With filters, reasons and an address that can be kept; what was recorded is shown as text, whatever it is."""
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
    """Where a filter is refused, or the server gone, that is said in their place; the next answer takes its place."""
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
    site.problems.clear()  # the browser tells of both


def test_what_somebody_wrote_turns_nothing_around_it_and_takes_no_page_for_itself(site: Site) -> None:
    """Marks that turn the direction of writing, and a line of 100 KB: the list shows its beginning."""
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
    """From the session's tree, one level after the other."""
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
    """By part, with tokens and reasons; what was asked for is recalled."""
    page = site.open("/prompt")
    page.fill("#query", "session store lock")
    page.fill("#max_tokens", "2000")
    page.click("main button")
    assert re.fullmatch(r"[\d,]+ of 2,000 tokens", page.locator("main h2").first.inner_text())
    assert page.locator(".stack .bar").count() == page.locator(".legend li").count() == 6
    recalled = page.locator("section", has=page.locator("#recalled_memories"))
    expect(recalled).to_contain_text("session_store")


def test_keys_lead_through_a_page(site: Site) -> None:
    """The first one past the navigation, and a slash to where one searches."""
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
    """A form searches, links lead to the originals."""
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
