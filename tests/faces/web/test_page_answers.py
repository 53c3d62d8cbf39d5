"""What the pages answer, asked without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestra_mem.errors import DocumentConflictError
from orchestra_mem.types import Json
from tests.conftest import record
from tests.faces.http_client import Served, serving
from tests.memories import collide


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A new memory."""
    with serving(tmp_path) as served:
        served.client.headers["Accept"] = "text/html"
        yield served


def test_home_tells_first_what_needs_a_person(served: Served) -> None:
    """Conflicts with the way to decide them, what is wrong with a document; else that there is nothing."""
    assert "Nothing: no conflicts, no faults." in served.client.get("/").text
    memory = served.memory
    collide(memory, "- buy <b>rye</b> flour")
    log = memory.episodic_memory.path("decision_log")
    log.write_bytes(log.read_bytes() + b"\n- caf\xe9\n")
    page = served.client.get("/").text
    assert page.count("onflict in work_plan, line") == 1
    assert "waits for you" not in page
    conflict = memory.conflicts()[0][1].id
    assert f'<a href="/documents/work_plan#conflict-{conflict}">Decide it</a>' in page
    assert f'id="conflict-{conflict}"' in served.client.get("/documents/work_plan").text
    assert page.index("decision_log") < page.index("The model’s window")
    assert "Nothing: no conflicts" not in page


def test_a_form_may_be_left_empty_and_faults_are_told(served: Served) -> None:
    """An empty field is no filter; one that cannot be read is named in a page, with the status of a fault."""
    record(served.memory, 3)
    empty = {"q": "step number", "tier": "", "kind": "", "worker": "", "since": ""}
    assert "op 3" in served.client.get("/search", params=empty).text
    bad = served.client.get("/search", params={"q": "x", "since": "soon", "tier": "<b>"})
    assert (bad.status_code, bad.headers["content-type"]) == (422, "text/html; charset=utf-8")
    assert "the request has 2 faults" in bad.text
    assert "<b>" not in bad.text
    assert served.client.get("/prompt", params={"query": "", "max_tokens": ""}).status_code == 200
    assert "max_tokens" in served.client.get("/prompt", params={"max_tokens": "-1"}).text


def test_any_text_can_be_shown(served: Served) -> None:
    """Control characters, halves of surrogate pairs, nested data, nothing at all."""
    odd: list[Json] = [
        "a\x00b\x1b[31m", "half \ud800", {"text": None}, {"a": {"b": ["<i>", 1]}, "c": "x\ny"}, None, []
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
    """Newest first, with links to the others; a page that is not there is empty."""
    record(served.memory, 45)
    session = served.memory.sessions()[0].id
    first = served.client.get(f"/sessions/{session}").text
    assert "Step number 45 was" in first
    assert "Step number 25 was" not in first
    assert f'href="/sessions/{session}?page=2" rel="next"' in first
    last = served.client.get(f"/sessions/{session}", params={"page": 3}).text
    assert "Step number 1 was" in last
    assert 'rel="next"' not in last
    assert served.client.get(f"/sessions/{session}", params={"page": 9}).status_code == 200
    assert served.client.get("/sessions/none").status_code == 404


def test_the_original_of_an_item_is_shown_with_its_tags(served: Served) -> None:
    """By its number and by its id, as hits name it."""
    item = served.memory.catalog.store({"content": "We deploy on Tuesdays.", "tags": ["deploy"]}, agent="reviewer")
    for name in (f"M{item.number}", item.id):
        page = served.client.get("/original", params={"of": name})
        assert (page.status_code, "Tags: deploy" in page.text) == (200, True)


def test_a_document_that_was_deleted_is_written_anew(served: Served) -> None:
    """By a form; what somebody else wrote meanwhile is not overwritten."""
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
