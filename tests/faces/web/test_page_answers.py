"""Pages and forms, tested over HTTP without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestra_mem.build.memory_service import MemoryService
from orchestra_mem.errors import DocumentConflictError
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkKind
from tests.conftest import record
from tests.faces.http_client import Served, serving
from tests.memories import collide

LOG = "decision_log"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A new memory, served."""
    with serving(tmp_path) as served:
        yield served


def test_home_tells_first_what_needs_a_person(served: Served) -> None:
    """The home page lists conflicts, with a link to resolve each, and document faults before the window."""
    assert "Nothing: no conflicts, no problems." in served.client.get("/").text
    memory = served.memory
    collide(memory, "- buy <b>rye</b> flour")
    log = memory.episodic_memory.path("decision_log")
    log.write_bytes(log.read_bytes() + b"\n- caf\xe9\n")
    page = served.client.get("/").text
    assert page.count("onflict in work_plan, line") == 1
    assert "is unresolved" not in page
    conflict = memory.conflicts()[0][1].id
    assert f'<a href="/documents/work_plan#conflict-{conflict}">Resolve it</a>' in page
    assert f'id="conflict-{conflict}"' in served.client.get("/documents/work_plan").text
    assert page.index("decision_log") < page.index("The model’s window")
    assert "Nothing: no conflicts" not in page


def test_pages_have_the_projects_name(tmp_path: Path) -> None:
    """The title of each page and the head of the home page have the name that the project's documents have."""
    with serving(tmp_path, config={"project": {"name": "Lindenhof"}}) as served:
        page = served.client.get("/").text
        assert "<title>Home – Lindenhof – orchestra-mem</title>" in page
        assert "<h1>The memory of Lindenhof</h1>" in page


def test_the_words_about_a_work_item_stand_apart(served: Served) -> None:
    """The tree of work has a space between an item's progress and its assignee."""
    state = served.memory.state
    story = state.create(WorkKind.STORY, "Clear the cellar", assignee="treasurer")
    state.create(WorkKind.TASK, "Move the bikes", parent=story.id)
    words = " ".join(re.sub("<[^>]+>", "", served.client.get("/work").text).split())
    assert "0 of 1 assigned to treasurer" in words


def test_a_form_may_be_left_empty_and_faults_are_told(served: Served) -> None:
    """An empty field is no filter, and an invalid one is named on a page with status 422."""
    record(served.memory, 3)
    empty = {"q": "step number", "tier": "", "kind": "", "worker": "", "since": ""}
    assert "op 3" in served.client.get("/search", params=empty).text
    by_words = served.client.get("/search", params=empty | {"mode": "keyword"}).text
    assert "meaning: not found, score 0.000" in by_words
    assert "meaning: rank" not in by_words
    served.client.headers["Accept"] = "text/html"
    bad = served.client.get("/search", params={"q": "x", "since": "soon", "tier": "<b>"})
    assert (bad.status_code, bad.headers["content-type"]) == (422, "text/html; charset=utf-8")
    assert "the request has 2 faults" in bad.text
    assert "<b>" not in bad.text
    assert served.client.get("/prompt", params={"query": "", "max_tokens": ""}).status_code == 200
    assert "max_tokens" in served.client.get("/prompt", params={"max_tokens": "-1"}).text


def test_any_text_can_be_shown(served: Served) -> None:
    """Any recorded data can be shown, escaped: control characters, lone surrogates, deep nesting, nothing at all."""
    deep: list[Json] = ["deep", "deep"]
    for _ in range(498):
        deep = [{"a": deep[0]}, [deep[1]]]
    odd: list[Json] = [
        "a\x00b\x1b[31m", "half \ud800", {"text": None}, {"a": {"b": ["<i>", 1]}, "c": "x\ny"}, None, [], *deep
    ]  # fmt: skip
    for data in odd:
        number = served.memory.record_operation("<odd>", data, agent="<b>bob</b>").id
        page = served.client.get("/original", params={"of": f"op{number}"})
        assert page.status_code == 200
        assert "<i>" not in page.text
        assert "<b>bob" not in page.text
        assert "\x00" not in page.text
    assert "&lt;i&gt;" in served.client.get("/original", params={"of": "op4"}).text
    assert served.client.get("/").status_code == 200


def test_long_lists_come_in_pages(served: Served) -> None:
    """Long lists are paged, newest first, with links; a page beyond the end is empty, and long summaries are cut."""
    record(served.memory, 45)
    session = served.memory.sessions()[0].id
    first = served.client.get(f"/sessions/{session}").text
    assert "Step number 45 was" in first
    assert "Step number 25 was" not in first
    assert 'href="?offset=20" rel="next"' in first
    last = served.client.get(f"/sessions/{session}", params={"offset": 40}).text
    assert "Step number 1 was" in last
    assert 'rel="next"' not in last
    assert served.client.get(f"/sessions/{session}", params={"offset": 160}).status_code == 200
    assert served.client.get("/sessions/none").status_code == 404
    MemoryService(served.memory).end_session(session, "概要: " + "会" * 400)
    assert f"概要: {'会' * 296} …" in served.client.get("/sessions").text


def test_the_original_of_an_item_is_shown_with_its_tags(served: Served) -> None:
    """An item's original is shown with its tags by number and by id."""
    item = served.memory.catalog.store({"content": "We deploy on Tuesdays.", "tags": ["deploy"]}, agent="reviewer")
    for name in (f"M{item.number}", item.id):
        page = served.client.get("/original", params={"of": name})
        assert (page.status_code, "Tags: deploy" in page.text) == (200, True)


def test_a_document_that_was_deleted_is_written_anew(served: Served) -> None:
    """The edit form restores a deleted document; a save based on the missing text does not overwrite it."""
    memory, name = served.memory, "decision_log"
    record(memory, 1)
    path = memory.documents.path(name)
    path.unlink()
    answer = served.client.post(f"/edit/{name}", data={"text": "One.\n", "opened": ""}, follow_redirects=False)
    assert answer.headers["location"] == f"/documents/{name}?done=saved"
    assert path.read_text() == "One.\n"
    with pytest.raises(DocumentConflictError, match="was changed by someone else"):
        memory.documents.save(name, "Two.\n", expected="")
    assert path.read_text() == "One.\n"


# Forms


@pytest.fixture
def stocked(served: Served) -> Served:
    """A memory with a decision, and items of two agents."""
    served.memory.record_operation("decision", {"text": "We decided to use SQLite."}, agent="b")
    for agent in ("a", "b"):
        served.memory.catalog.store({"content": f"The secret of {agent}."}, agent=agent)
    served.memory.write_catalog()
    served.memory.refresh()
    return served


def test_an_edit_keeps_what_a_form_cannot_send(stocked: Served) -> None:
    """An edit keeps bytes that are not text and the file's line ends, though forms send CR LF and no such bytes."""
    path = stocked.memory.documents.path(LOG)
    before = path.read_bytes() + b"caf\xe9 \x00 noir\n"
    for text in (before, before.replace(b"\n", b"\r\n")):
        path.write_bytes(text)
        page = stocked.client.get(f"/edit/{LOG}").content.decode()
        shown = [re.sub("\r?\n", "\r\n", each) for each in re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.S)]
        assert shown[0] == shown[1]
        form = {"text": shown[0].replace("&#39;", "'") + "### Mine\r\n", "opened": shown[1].replace("&#39;", "'")}
        answer = stocked.client.post(f"/edit/{LOG}", data=form, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/documents/{LOG}?done=merged")
        end = b"\r\n" if b"\r" in text else b"\n"
        assert path.read_bytes() == text + b"### Mine" + end
        assert stocked.client.get(f"/documents/{LOG}").status_code == 200


@pytest.mark.parametrize(("chars", "opened", "saved"), [(2_500, 200, 303), (4_000, 409, 413)])
def test_a_document_is_edited_only_if_its_form_can_be_sent(tmp_path: Path, chars: int, opened: int, saved: int) -> None:
    """The editor refuses a text whose form would exceed the body limit: each of its characters takes 18 bytes."""
    with serving(tmp_path, max_body_bytes=60_000) as served:
        path, text = served.memory.documents.path(LOG), "字" * chars
        path.write_text(text)
        assert served.client.get(f"/edit/{LOG}").status_code == opened
        form = {"text": f"{text}!", "opened": text}
        assert served.client.post(f"/edit/{LOG}", data=form, follow_redirects=False).status_code == saved


def test_a_form_with_faults_changes_nothing(stocked: Served) -> None:
    """An invalid form is refused with its faults and changes no document."""
    before = [stocked.memory.documents.text(name) for name in stocked.memory.documents.names()]
    conflict = {"keep": "theirs"}
    for path, form, status, told in (
        ("/conflicts/3f9a1c", conflict, 422, "keep: must be mine, machine or both, not 'theirs'"),
        ("/conflicts/3f9a1c", {"keep": "mine"}, 404, "there is no conflict '3f9a1c'"),
        (f"/versions/{LOG}", {"version": "9" * 9_999}, 422, "version: "),
        (f"/versions/{LOG}", {"from": "1"}, 422, "version: "),
        (f"/edit/{LOG}", {"opened": ""}, 422, "must both be sent"),
        (f"/edit/{LOG}", {"text": ""}, 422, "must both be sent"),
        (f"/versions/{LOG}", {"version": "999"}, 404, f"{LOG} does not have version 999"),
        ("/edit/nothing", {"text": "x", "opened": "x"}, 404, "there is no document 'nothing'"),
    ):  # fmt: skip
        answer = stocked.client.post(path, data=form)
        assert (answer.status_code, told in answer.json()["detail"]) == (status, True), answer.text
    assert stocked.client.post(f"/versions/{LOG}", json={"version": 1}).status_code == 415
    assert (
        stocked.client.post(f"/versions/{LOG}", content=b"&" * 1000, headers={"Content-Type": FORM}).status_code == 422
    )
    assert [stocked.memory.documents.text(name) for name in stocked.memory.documents.names()] == before


def test_an_agent_sees_and_changes_its_own_items_alone(stocked: Served) -> None:
    """With an agent's token the pages show and change only its items, and the owner's pages are 403."""
    headers = stocked.agent("a")
    home = stocked.bare.get("/", headers=headers).text
    assert "Not available to agents" in home
    assert 'href="/catalog"' in home
    assert 'href="/sessions"' not in home
    assert "The secret of a." in stocked.bare.get("/catalog", headers=headers).text
    assert "The secret of b." not in stocked.bare.get("/catalog", headers=headers).text
    assert stocked.bare.get("/catalog/M2", headers=headers).status_code == 404
    assert stocked.bare.post("/catalog/M2", headers=headers, data={"do": "forget"}).status_code == 404
    assert stocked.memory.catalog.get("M2").status == "live"
    for path in ("/documents", f"/documents/{LOG}", f"/edit/{LOG}", f"/versions/{LOG}", "/work", "/audit", "/sessions"):
        assert stocked.bare.get(path, headers=headers).status_code == 403, path
