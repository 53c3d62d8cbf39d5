"""The pages for documents, facts, catalog, work and audit, tested in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.conflicts import mark
from orchestra_mem.core.documents.merge import merge
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.faces.web.conftest import NARROW, WIDE, Site, browsing, fits, no_serious_fault

LOG = "decision_log"
HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>{{ 7*7 }} [x](javascript:go())"
)
DANGEROUS = "main :is(script, img, iframe, [onerror], a[href^='javascript'])"
VIEWS = (
    "/documents", f"/documents/{LOG}", "/documents/catalog/reviewer", f"/edit/{LOG}", f"/versions/{LOG}",
    "/facts?every=true", "/original?of=K1", "/catalog", "/catalog/M1", "/work?every=true", "/work/2", "/audit",
)  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The memory's folder."""
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def memory(project: Path) -> Iterator[OrchestratorContextManager]:
    """The memory, opened in another process than the server's, with hostile text in every field."""
    with open_memory(project) as memory:
        for said in ("We decided to use SQLite.", "We must never deploy on Fridays.", f"We decided: {HOSTILE}"):
            memory.record_operation("decision", {"text": said}, agent="builder")
        epic = memory.state.create(WorkKind.EPIC, "Sign in")
        story = memory.state.create(WorkKind.STORY, f"By mail {HOSTILE}", parent=epic.id, description=HOSTILE)
        task = memory.state.create(WorkKind.TASK, "Send the mail", parent=story.id, assignee=HOSTILE)
        memory.state.set_status(task.id, WorkStatus.DONE, reason=HOSTILE)
        told = {"content": f"We deploy on Tuesdays. {HOSTILE}", "type": "decision", "tags": [HOSTILE[:70]]}
        memory.catalog.store(told, agent="reviewer")
        memory.catalog.store({"content": "The parser fails.", "type": "error", "expires": None}, agent="builder")
        memory.refresh()
        yield memory


@pytest.fixture(scope="module")
def site(browser: Browser, memory: OrchestratorContextManager, project: Path) -> Iterator[Site]:
    """The memory, served and open in a browser."""
    with browsing(browser, project) as opened:
        opened.page.set_default_timeout(30_000)  # a busy machine loads pages slowly
        yield opened


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_is_sound_and_shows_hostile_text_as_text(
    site: Site, path: str, screenshot: Callable[[Page, str], None]
) -> None:
    """Every view is accessible and fits narrow and wide screens, and hostile text is shown as text and not run."""
    page = site.open(path)
    for width, dark in ((NARROW, False), (WIDE, True)):
        site.show(width=width, dark=dark)
        no_serious_fault(page)
        fits(page)
        screenshot(page, f"{path} {width} {'dark' if dark else 'light'}")
    assert page.locator(DANGEROUS).count() == 0
    assert "orchestra-mem" in page.title()
    assert site.problems == []
    if path not in ("/documents", "/catalog/M2", "/audit"):
        assert "{{ 7*7 }}" in page.inner_text("main") or "{{ 7*7 }}" in page.input_value("#text")


def test_an_edit_and_what_the_machine_writes_meanwhile_both_stand(
    site: Site, memory: OrchestratorContextManager
) -> None:
    """An edit is previewed as typed, and saving it keeps what the machine wrote meanwhile."""
    page = site.open(f"/edit/{LOG}")
    page.locator("#text").press("Control+End")
    page.locator("#text").type("\n### We use **ruff**\n")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.once("dialog", stay)
    page.click("text=Leave without saving", no_wait_after=True)
    assert (asked, page.url) == (["beforeunload"], f"{site.url}/edit/{LOG}")
    memory.record_operation("decision", {"text": "We decided to log in JSON."}, agent="builder")
    memory.refresh()
    page.click("text=Preview")
    assert page.inner_text(".document strong >> nth=-1") == "ruff"
    no_serious_fault(page)
    page.click("button:text-is('Save')")
    assert page.url == f"{site.url}/documents/{LOG}?done=merged"
    assert "merged with changes made meanwhile" in page.inner_text("[role=status]")
    text = memory.documents.text(LOG)
    assert "### We use **ruff**\n" in text
    assert "We decided to log in JSON." in text
    blame = page.locator("h4:has-text('We use ruff') + .blame")
    assert blame.inner_text() == "person"


def test_an_edit_of_lines_that_others_have_changed_is_not_lost(
    site: Site, memory: OrchestratorContextManager, screenshot: Callable[[Page, str], None]
) -> None:
    """A colliding edit is answered 412 with the current text; saving the offered text keeps both sides' lines."""
    documents = memory.documents
    before = documents.text(LOG)
    documents.save(LOG, f"{before}\nAsk Ann first.\n", expected=before)
    page = site.open(f"/edit/{LOG}")
    page.fill("#text", page.input_value("#text").replace("Ask Ann first.", "Ask Bob first.") + "\nMine too.\n")
    now = documents.text(LOG)
    carl = f"Ask Carl first.{' He knows.' * 30}"
    documents.save(LOG, now.replace("Ask Ann first.", carl), expected=now)
    with page.expect_navigation() as told:
        page.click("button:text-is('Save')")
    assert told.value.status == 412
    assert "Not saved yet." in page.inner_text("[role=alert]")
    assert "both versions, one after the other" in page.inner_text("[role=alert]")  # entries in either order
    assert f"+{carl}" in page.inner_text(".changes ins")
    assert "Ask Bob first." in page.input_value("#mine")
    for width, columns in ((WIDE, 2), (NARROW, 1)):
        site.show(width=width)
        page_width, mine_width = (page.eval_on_selector(each, "it => it.clientWidth") for each in (".sides", "#mine"))
        assert mine_width > 0.9 * page_width / columns
    no_serious_fault(page)
    fits(page)
    screenshot(page, "edit collides")
    assert "Ask Bob first." not in documents.text(LOG)
    page.click("button:text-is('Save')")
    assert page.url == f"{site.url}/documents/{LOG}?done=saved"
    for line in ("Ask Bob first.", "Ask Carl first.", "Mine too."):
        assert documents.text(LOG).count(line) == 1
    site.problems.clear()  # the browser logs the 412


def test_an_edit_that_is_refused_is_there_again(site: Site, memory: OrchestratorContextManager) -> None:
    """After a refused save, going back restores the typed text and its base, so that saving again merges."""
    page = site.open(f"/edit/{LOG}")
    page.fill("#text", page.input_value("#text") + "Typed once.\n")
    page.route("**/edit/*", lambda route: route.fulfill(status=429, body="too many"))
    page.click("button:text-is('Save')")
    page.unroute("**/edit/*")
    now = memory.documents.text(LOG)
    then = now.replace("## Decisions\n", "Meanwhile.\n\n## Decisions\n")
    memory.documents.save(LOG, then, expected=now)
    page.go_back()
    page.click("button:text-is('Save')")
    assert page.url == f"{site.url}/documents/{LOG}?done=merged"
    assert memory.documents.text(LOG) == f"{then}Typed once.\n"
    site.problems.clear()  # the browser logs the 429


@pytest.mark.parametrize(
    ("choice", "left"),
    [("Keep mine", "Mine.\n"), ("Take the machine’s", "The machine's.\n"), ("Keep both", "Mine.\nThe machine's.\n")],
)
def test_a_conflict_is_decided_with_a_click(
    site: Site, memory: OrchestratorContextManager, screenshot: Callable[[Page, str], None], choice: str, left: str
) -> None:
    """A conflict shows both sides side by side, and a click replaces it by the chosen lines."""
    before = memory.documents.text(LOG).partition("\n# Lunch\n")[0]
    base, person, machine = (f"{before}\n# Lunch\n\n{line}\n" for line in ("At one.", "Mine.", "The machine's."))
    memory.documents.save(LOG, mark(merge(base, machine, person)), expected=memory.documents.text(LOG))
    page = site.open("/documents")
    page.click("text=1 conflict to resolve")
    assert page.locator(".sides pre").all_inner_texts() == ["Mine.", "The machine's."]
    for width in (NARROW, WIDE):
        site.show(width=width)
        no_serious_fault(page)
        fits(page)
        screenshot(page, f"conflict {width}")
    page.click(f"text={choice}")
    assert page.url == f"{site.url}/documents/{LOG}?done=decided"
    assert page.locator(".conflict").count() == 0
    assert memory.documents.text(LOG) == f"{before}\n# Lunch\n\n{left}"
    assert site.problems == []


def test_versions_are_compared_and_one_is_put_back(site: Site, memory: OrchestratorContextManager) -> None:
    """Two versions can be compared as a diff, and restoring one makes the replaced text a version."""
    documents = memory.documents
    for line in ("one", "two", "three"):
        now = documents.text("project_state")
        documents.save("project_state", f"{now.partition('Note: ')[0]}Note: {line}\n", expected=now)
    one, two = [each.sequence for each in documents.history("project_state") if each.author == "person"][-2:]
    page = site.open("/documents")
    assert page.inner_text(".rows li >> nth=0 >> p >> nth=0") == "project_state edited, not imported yet"
    page.click("text=project_state")
    page.click("text=Versions")
    page.check(f"[name=from][value='{one}']")
    page.check(f"[name=to][value='{two}']")
    page.click("text=Compare")
    assert page.inner_text(".changes del") == "-Note: one"
    assert page.inner_text(".changes ins") == "+Note: two"
    page.click(f"[aria-label='Restore version {two}']")
    assert page.url == f"{site.url}/documents/project_state?done=restored"
    assert documents.text("project_state").endswith("Note: two\n")
    assert documents.history("project_state")[-1].reason == "restore"


def test_an_item_is_found_forgotten_and_brought_back(site: Site, memory: OrchestratorContextManager) -> None:
    """An item can be forgotten and brought back, and typing in the search field narrows the list."""
    memory.catalog.store({"content": "Ann likes tea.", "type": "insight", "expires": None}, agent="reviewer")
    page = site.open("/catalog/M3")
    page.click("text=Forget")
    assert "This item is deleted" in page.inner_text(".note")
    page.click("button:text-is('Restore')")
    assert memory.catalog.get("M3").status == "live"
    page.goto(f"{site.url}/catalog")
    page.locator("#search").type("tea")
    page.locator(".rows li >> nth=1").wait_for(state="detached")
    assert "Ann likes tea." in page.inner_text(".rows")
    assert site.problems == []
