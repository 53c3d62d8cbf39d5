"""What the forms of the pages send, without a browser: whole texts, faults, what agents may do, pages of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.http_client import Served, serving

LOG = "decision_log"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A memory with a decision, and items of two agents."""
    with serving(tmp_path) as served:
        served.memory.record_operation("decision", {"text": "We decided to use SQLite."}, agent="b")
        for agent in ("a", "b"):
            served.memory.catalog.store({"content": f"The secret of {agent}."}, agent=agent)
        served.memory.write_catalog()
        served.memory.refresh()
        yield served


def test_an_edit_keeps_what_a_form_cannot_send(served: Served) -> None:
    """Bytes that are no text, and line ends: browsers send CR LF, and marks for the rest."""
    path = served.memory.documents.path(LOG)
    before = path.read_bytes() + b"caf\xe9 \x00 noir\n"
    for text in (before, before.replace(b"\n", b"\r\n")):
        path.write_bytes(text)
        page = served.client.get(f"/edit/{LOG}").content.decode()
        shown = [re.sub("\r?\n", "\r\n", each) for each in re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.S)]
        assert shown[0] == shown[1]
        form = {"text": shown[0].replace("&#39;", "'") + "### Mine\r\n", "opened": shown[1].replace("&#39;", "'")}
        answer = served.client.post(f"/edit/{LOG}", data=form, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/documents/{LOG}?done=merged")
        end = b"\r\n" if b"\r" in text else b"\n"
        assert path.read_bytes() == text + b"### Mine" + end
        assert served.client.get(f"/documents/{LOG}").status_code == 200


def test_a_form_with_faults_changes_nothing(served: Served) -> None:
    """Each is told: what is no form, no choice, no number; and what is not there."""
    before = [served.memory.documents.text(name) for name in served.memory.documents.names()]
    conflict = {"keep": "theirs"}
    for path, form, status, told in (
        ("/conflicts/3f9a1c", conflict, 422, "keep: 'theirs' is none of mine, machine, both"),
        ("/conflicts/3f9a1c", {"keep": "mine"}, 404, "there is no conflict '3f9a1c'"),
        (f"/versions/{LOG}", {"version": "9" * 9_999}, 422, "version: "),
        (f"/versions/{LOG}", {"from": "1"}, 422, "version: "),
        (f"/edit/{LOG}", {"opened": ""}, 422, "was not sent whole"),
        (f"/edit/{LOG}", {"text": ""}, 422, "was not sent whole"),
        (f"/versions/{LOG}", {"version": "999"}, 404, f"{LOG} does not have version 999"),
        ("/edit/nothing", {"text": "x", "opened": "x"}, 404, "there is no document 'nothing'"),
    ):  # fmt: skip
        answer = served.client.post(path, data=form)
        assert (answer.status_code, told in answer.json()["detail"]) == (status, True), answer.text
    assert served.client.post(f"/versions/{LOG}", json={"version": 1}).status_code == 415
    assert (
        served.client.post(f"/versions/{LOG}", content=b"&" * 1000, headers={"Content-Type": FORM}).status_code == 422
    )
    assert [served.memory.documents.text(name) for name in served.memory.documents.names()] == before


def test_an_agent_sees_and_changes_its_own_items_alone(served: Served) -> None:
    """By the pages as by the API; what is not offered is said in words, and not linked."""
    headers = served.agent("a")
    home = served.bare.get("/", headers=headers).text
    assert "not offered to agents" in home
    assert 'href="/catalog"' in home
    assert 'href="/sessions"' not in home
    assert "The secret of a." in served.bare.get("/catalog", headers=headers).text
    assert "The secret of b." not in served.bare.get("/catalog", headers=headers).text
    assert served.bare.get("/catalog/M2", headers=headers).status_code == 404
    assert served.bare.post("/catalog/M2", headers=headers, data={"do": "forget"}).status_code == 404
    assert served.memory.catalog.get("M2").status == "live"
    for path in ("/documents", f"/documents/{LOG}", f"/edit/{LOG}", f"/versions/{LOG}", "/work", "/audit", "/sessions"):
        assert served.bare.get(path, headers=headers).status_code == 403, path
