"""What the routes answer: the memory's Python results in pages, and all faults of a request at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.core.documents.signature import digest
from orchestra_mem.faces.http.document_routes import EventStreams
from orchestra_mem.serialize import to_json
from orchestra_mem.types import DocumentName
from tests.conftest import Clock
from tests.faces.http_client import Served, serving
from tests.memories import collide


@pytest.fixture
def served(tmp_path: Path, clock: Clock) -> Iterator[Served]:
    """An empty memory, served, at ten o'clock."""
    with serving(tmp_path, clock=clock) as served:
        yield served


def _document(served: Served, name: str, **headers: str) -> Any:
    return served.client.get(f"/api/memory/documents/{name}", headers=headers)


def _save(served: Served, name: str, text: str | bytes, etag: str | None) -> Any:
    headers = {"Content-Type": "text/markdown"} | ({"If-Match": etag} if etag else {})
    return served.client.put(f"/api/memory/documents/{name}", content=text, headers=headers)


# The catalog


def test_the_catalog_is_kept_through_its_routes(served: Served) -> None:
    """Items can be stored, listed by each filter, shown by id and number, and deleted."""
    made = served.send("POST", "catalog", 201, json={"content": "We deploy on Tuesdays.", "type": "decision"})
    assert made == to_json(served.memory.catalog.get("M1"))
    assert (made["ci_source"], made["author"], made["tokens"] > 0) == ("global", "person", True)
    other = served.send("POST", "catalog", 201, json={"content": "Tea is at four.", "ci_source": "ann", "priority": 9})
    served.send("POST", "catalog", 201, json={"content": "Tea is at four.", "ci_source": "ann"})
    for query, wanted in (
        ({}, [other["id"], made["id"]]), ({"ci": "ann"}, [other["id"]]), ({"type": "decision"}, [made["id"]]),
        ({"tags": "nothing,deploy"}, [made["id"]]), ({"search": "tea four"}, [other["id"]]), ({"search": "coffee"}, []),
        ({"limit": 1, "offset": 1}, [made["id"]]), ({"offset": 5}, []),
    ):  # fmt: skip
        page = served.get("catalog", **query)
        assert [each["id"] for each in page["items"]] == wanted, query
        assert page["total"] == (2 if "limit" in query or "offset" in query else len(wanted))
    assert served.get("catalog/M2") == served.get(f"catalog/{other['id']}")
    assert served.get("catalog/M2")["said"] == 2
    served.send("DELETE", "catalog/M2", 204)
    assert served.get("catalog/M2", 404)["detail"].startswith("item 'M2' has been deleted")
    assert served.get("catalog")["total"] == 1
    assert served.send("DELETE", "catalog/M7", 404)["detail"].startswith("there is no item 'M7'")


def test_what_matters_for_a_message_is_given_within_a_budget(served: Served, clock: Clock) -> None:
    """`relevant` returns items and text within the budget, and a clean-up hides expired items."""
    served.send("POST", "catalog", 201, json={"content": "Deploy on Tuesdays.", "expires": "2025-01-16T00:00:00Z"})
    found = served.get("relevant", ci="ann", message="When do we deploy?", max_tokens=200)
    assert "Deploy on Tuesdays." in found["text"]
    assert [each["item"]["number"] for each in found["items"]] == [1]
    assert 0 < found["items"][0]["relevance"]["score"] <= 1
    assert served.get("relevant", ci="ann", message="When do we deploy?", max_tokens=3)["items"] == []
    assert served.get("relevant", 422, message="deploy")["faults"] == ["query.ci: name the agent, as in ci=reviewer"]
    clock.now = clock.now.replace(day=17)
    done = served.send("POST", "cleanup")
    assert (done["expired"], done["statistics"]["global"]["total_memories"]) == (1, 0)


# The memory service


def test_facts_are_given_from_a_time_on(served: Served) -> None:
    """`facts` with `since` gives those of operations from that time on."""
    served.send("POST", "operations", 201, json={"type": "rule", "data": "Never bake on Sundays."})
    assert [served.get("facts", since=since)["total"] for since in ("2025", "2030")] == [1, 0]


def test_sessions_and_observations_of_workers(served: Served) -> None:
    """Observations can be recorded, filtered and counted by worker, and a session lists its own until it has ended."""
    for number in range(3):
        body = {"worker": f"w{number % 2}", "content": f"Built part {number}.", "metadata": {"part": number}}
        made = served.send("POST", "observations", 201, json=body | {"type": "task_complete" if number else "custom"})
        assert made == {"id": number + 1}
    page = served.get("observations", worker="w0")
    assert [(each["id"], each["type"], each["metadata"]) for each in page["items"]] == [
        (3, "task_complete", {"part": 2}), (1, "custom", {"part": 0}),
    ]  # fmt: skip
    assert served.get("observations", type="task_complete", limit=1)["total"] == 2
    assert served.get("observations", since="2030-01-01")["total"] == 0
    assert [served.get("observations", since=since)["total"] for since in ("2025", "Januar 2025", "7d")] == [3, 3, 0]
    assert served.get("observations", until="2030")["total"] == 3  # the year, not seconds since 1970
    refused = served.get("observations", 422, since="soon")["detail"]
    assert "'soon' is not a time; use ISO 8601 such as 2025-01-31T14:00 (UTC if it has no offset)" in refused
    assert (
        served.get("observations", until="2030-01-01T00:00:00Z", session=page["items"][0]["session_id"])["total"] == 3
    )
    (session,) = served.get("sessions")["items"]
    assert (session["worker_count"], session["ended_at"], session["metadata"]) == (2, None, {})
    shown = served.get(f"sessions/{session['id']}", limit=2)
    assert ([each["id"] for each in shown["observations"]], shown["total"]) == ([3, 2], 3)
    assert served.get("sessions/none", 404)["detail"] == "there is no session 'none'"
    served.memory.flush_session()
    again = {"worker": "w1", "content": "Too late.", "session": session["id"]}
    assert "has ended" in served.send("POST", "observations", 409, json=again)["detail"]
    assert served.send("POST", "observations", 422, json={"content": "x"})["faults"] == ["body.worker: name the worker"]


def test_search_finds_what_was_recorded_and_says_why(served: Served) -> None:
    """Search returns hits with ranks, applies each filter, and reports all faults of a request."""
    served.send("POST", "observations", 201, json={"worker": "ann", "content": "The parser fails on empty input."})
    served.send("POST", "observations", 201, json={"worker": "bob", "content": "The oven is hot."})
    hit = served.get("search", q="parser")["hits"][0]
    assert (hit["operation"], hit["agent"], hit["reasons"]["keyword"]["rank"]) == (1, "ann", 1)
    for query in (
        {"worker": "bob"},
        {"kind": "error"},
        {"tier": "semantic"},
        {"until": "2020-01-01"},
        {"session": "x"},
    ):
        hits = served.get("search", q="parser", mode="keyword", **query)["hits"]
        assert [each for each in hits if each["operation"] == 1] == [], query
    faults = served.get("search", 422, mode="guess", limit=0, page=2)["faults"]
    assert [fault.partition(":")[0] for fault in faults] == ["query.q", "query.limit", "query.mode", "query.page"]


@pytest.mark.parametrize("path", ["status", "documents", "documents/decision_log", "conflicts", "expand", "work/1"])
def test_a_parameter_that_no_route_has_is_refused(served: Served, path: str) -> None:
    """An unknown parameter is an error on routes without any of their own, too."""
    given = {"expand": {"reference": "op1"}}.get(path, {})
    assert served.get(path, 422, lmit=5, **given)["faults"] == ["query.lmit: Extra inputs are not permitted"]


# Operations, facts, summaries


def test_answers_are_readable_in_any_language(served: Served) -> None:
    """Letters stand in JSON as they are; escaped are control characters, and what no encoding can hold."""
    served.memory.record_operation("note", {"text": "王芳 ölt \ud800 \u009b"})
    assert '{"text":"王芳 ölt \\ud800 \\u009b"}' in served.client.get("/api/memory/operations").text


def test_what_was_recorded_is_listed_and_expanded(served: Served) -> None:
    """Operations are listed newest first, facts expand to their operation, and faults are reported by field."""
    whole = {"type": "decision", "data": {"text": "We use mypy."}, "agent": "ann", "tokens": 7, "critical": True,
             "timestamp": "2025-01-15T09:00:00Z", "key": "k1"}  # fmt: skip
    made = served.send("POST", "operations", 201, json=whole)
    assert made == to_json(served.memory.operations()[0]) == served.send("POST", "operations", 201, json=whole)
    other = served.client.post("/api/memory/operations", json=whole | {"data": "ü", "key": "k1"})
    assert (other.status_code, other.json()) == (201, made)
    problem = "Not recorded: op1 has the key 'k1'. Record anything else with another key."
    assert other.headers["x-memory-problem"] == problem
    assert "x-memory-problem" not in served.client.post("/api/memory/operations", json=whole).headers
    for number in range(5):
        served.send("POST", "operations", 201, json={"type": "note", "data": [number, None, {"deep": ["ü"]}]})
    page = served.get("operations", limit=2, offset=1)
    assert ([each["id"] for each in page["items"]], page["total"]) == ([5, 4], 6)
    assert served.get("operations", type="decision", agent="ann", until="2025-01-15T09:00:01Z")["total"] == 1
    (fact,) = served.get("facts", kind="decision")["items"]
    assert served.get("expand", reference=f"K{fact['id']}")["operations"] == [made]
    assert served.get("expand", 404, reference="K99")["detail"].startswith("there is no")
    faults = served.send("POST", "operations", 422, json={"type": "x", "tokens": -1, "agent": ""})["faults"]
    assert [fault.partition(":")[0] for fault in faults] == ["body.data", "body.tokens", "body.agent"]
    served.send("POST", "operations", 422, content=b'{"type": "x", "data": NaN}')
    blank = served.send("POST", "operations", 422, json={"type": " ", "data": 1})
    assert (
        blank["faults"]
        == [blank["detail"]]
        == ["operation_type: ' ' is not a name: must be a string that is not blank"]
    )


def test_the_audit_trail_tells_who_looked(served: Served) -> None:
    """The audit trail can be filtered by agent, call and outcome; the owner has the empty name."""
    served.send("POST", "catalog", 201, json={"content": "We deploy on Tuesdays."})
    served.bare.get("/api/memory/catalog/M1", headers=served.agent("ann"))
    page = served.get("audit", agent="ann")
    assert [(each["call"], each["outcome"]) for each in page["items"]] == [("get", "given")]
    assert served.get("audit", agent="", call="store")["total"] == 1
    assert served.get("audit", outcome="refused")["items"] == []


# Documents


def test_a_document_is_saved_only_over_the_text_that_was_read(served: Served) -> None:
    """Saving a document needs its ETag: 428 without, 412 with an old one; replaced texts become versions.

    A proxy may have marked the ETag as weak.
    """
    read = _document(served, "decision_log")
    assert read.headers["content-type"] == "text/markdown; charset=utf-8"
    assert read.headers["etag"] == f'"{digest(read.text)}"'
    assert _document(served, "decision_log", **{"If-None-Match": read.headers["etag"]}).status_code == 304
    new = read.text + "\n## Rules\n\n- Never deploy on Fridays. ü\n"
    without = _save(served, "decision_log", new, None)
    assert (without.status_code, without.headers["content-type"]) == (428, "application/problem+json")
    saved = _save(served, "decision_log", new, read.headers["etag"])
    assert (saved.status_code, saved.headers["etag"]) == (204, f'"{digest(new)}"')
    assert _document(served, "decision_log").text == new
    late = _save(served, "decision_log", "gone", read.headers["etag"])
    assert (late.status_code, late.headers["etag"]) == (412, saved.headers["etag"])
    assert _document(served, "decision_log").text == new
    assert _document(served, "decision_log", **{"If-None-Match": f"W/{saved.headers['etag']}"}).status_code == 304
    assert _save(served, "decision_log", new, f"W/{saved.headers['etag']}").status_code == 204
    assert _save(served, "decision_log", new, "*").status_code == 204
    assert _save(served, "decision_log", b"\xff", "*").json()["faults"] == [
        "body: not UTF-8 at byte 0; send the text as UTF-8"
    ]
    assert _save(served, "decision_log", b"a\0", "*").json()["faults"] == ["body: must not contain NUL (character 1)"]
    versions = served.get("documents/decision_log/history")
    assert versions["total"] == 1
    shown = served.get(f"documents/decision_log/history/{versions['items'][0]['sequence']}")
    assert "+- Never deploy on Fridays. ü" in shown["diff"]
    blamed = [each["writer"] for each in served.get("documents/decision_log/blame") if "Fridays" in each["text"]]
    assert blamed == ["person"]


def test_documents_are_listed_and_unknown_ones_told(served: Served) -> None:
    """All documents are listed and read, the session's while there is one; unknown or unsafe names are 404."""
    assert {each["name"] for each in served.get("documents")} == set(DocumentName)
    assert _document(served, "session").json()["detail"] == "no session is running, so there is no session document"
    served.send("POST", "operations", 201, json={"type": "note", "data": "x"})
    assert {each["name"] for each in served.get("documents")} == {*DocumentName, "session"}
    assert _document(served, "session").text.startswith("---")
    assert served.get("documents/session/blame")
    assert _save(served, "session", "x", "*").status_code == 404
    assert served.get("documents/obra", 404)["detail"].startswith("there is no document 'obra'; use one of")
    assert served.get("documents/decision_log/history/7", 404)["detail"].startswith("decision_log does not have")
    for agent in ("blame", "history"):  # which are also path suffixes of routes
        served.send("POST", "catalog", 201, json={"content": "Tea is at four.", "ci_source": agent})
        assert "Tea is at four." in _document(served, f"catalog/{agent}").text
        assert served.get(f"documents/catalog/{agent}/blame")
    etag = _document(served, "work_plan").headers["etag"]
    assert _save(served, "work_plan", "", etag).status_code == 204
    for path in ("documents/..%2F..%2Fetc%2Fpasswd", "documents/%2e%2e"):
        served.get(path, 404)


@pytest.mark.parametrize(
    ("decision", "stands", "replaced"),
    [
        ({"accept": True}, "- buy wheat flour\n", True),
        ({"accept": True, "both": True}, "- buy rye flour\n- buy wheat flour\n", False),
        ({"accept": False}, "- buy rye flour\n", False),
    ],
)
def test_a_conflict_is_listed_and_decided(
    served: Served, decision: dict[str, bool], stands: str, replaced: bool
) -> None:
    """A conflict is listed and can be accepted or rejected once."""
    assert served.get("conflicts") == []
    path = collide(served.memory)
    (conflict,) = served.get("conflicts")
    assert (conflict["yours"], conflict["machine"]) == ("- buy rye flour\n", "- buy wheat flour\n")
    done = served.send("POST", f"conflicts/{conflict['id']}", json=decision)
    assert (done["id"], done["document"], done["replaced"]) == (conflict["id"], "work_plan", replaced)
    assert path.read_text().endswith(f"\n{stands}")
    assert served.get("conflicts") == []
    assert served.send("POST", f"conflicts/{conflict['id']}", 404, json={"accept": True})["detail"]


# Work, the window, contexts


def test_work_is_made_listed_and_moved(served: Served) -> None:
    """Work items can be created, filtered and moved, and a refusal names the broken rule."""
    epic = served.send("POST", "work", 201, json={"kind": "epic", "title": "Sign in"})
    body = {"kind": "story", "title": "By mail", "parent": epic["id"], "priority": 1, "acceptance": ["It works."]}
    story = served.send("POST", "work", 201, json=body)
    assert story == to_json(served.memory.state.item(2))
    moved = served.send("PATCH", f"work/{story['id']}", json={"status": "in-progress", "reason": "begun"})
    assert moved["status"] == "in progress"
    shown = served.get(f"work/{epic['id']}")
    assert (shown["item"]["title"], shown["progress"]["total"]) == ("Sign in", 1)
    assert served.get("work/2", limit=1)["events"][0]["reason"] == "begun"
    assert [each["id"] for each in served.get("work", kind="story", status="in_progress")["items"]] == [2]
    assert served.get("work", text="mail", limit=1)["total"] == 1
    assert served.get("work", parent=0)["total"] == 1
    assert "Sign in" in _document(served, "work_plan").text
    refused = served.send("POST", "work", 409, json={"kind": "milestone", "title": "x", "parent": 2})
    assert refused["detail"] == 'a milestone "x" cannot be placed under Story #2 "By mail"; it cannot have a parent'
    assert served.get("work/99", 404)["detail"]
    assert len(served.send("POST", "work", 422, json={"kind": "x", "title": "", "priority": 9})["faults"]) == 3


def test_a_title_has_one_limit(served: Served) -> None:
    """The description of the route states the limit that the memory enforces."""
    served.send("POST", "work", 201, json={"kind": "epic", "title": "é" * 500})
    refused = served.send("POST", "work", 422, json={"kind": "epic", "title": "é" * 501})
    assert refused["faults"] == ["body.title: String should have at most 500 characters"]


def test_the_memory_as_a_whole_is_told(served: Served) -> None:
    """Status, tiers, window and window history are returned."""
    served.send("POST", "operations", 201, json={"type": "note", "data": "x", "tokens": 100})
    status = served.get("status")
    assert status["working_memory"]["operation_count"] == 1
    assert status["problems"] == []
    assert set(served.get("tiers")) <= set(status)
    window = served.get("window")
    assert (window["operation_count"], window["thresholds"]["refresh"]) == (1, 0.8)
    served.memory.refresh()
    newest, *_, oldest = served.get("window/history")["items"]
    assert (newest["event"], oldest["event"], oldest["used_tokens"]) == ("reset", "added", 100)


def test_contexts_and_recommendations(served: Served) -> None:
    """Contexts stay within the budget and are explained; `retrieve` and `recommend` find a related decision."""
    say = {"text": "We decided to deploy the shop on Tuesdays only."}
    served.send("POST", "operations", 201, json={"type": "decision", "data": say, "agent": "ann"})
    context = served.get("context", **{"for": "prompt", "max_tokens": 500, "query": "When do we deploy?"})
    assert context["tokens"] <= context["budget_tokens"] == 500
    assert "Tuesdays" in context["text"]
    assert context["explain"]
    assert "Tuesdays" in served.get("retrieve", task="deploy the shop", agent=["ann", "bob"], max_tokens=300)["text"]
    assert any("Tuesdays" in json.dumps(each) for each in served.get("recommend", task="deploy the shop").values())
    faults = served.get("context", 422, max_tokens=-1, query="")["faults"]
    assert [fault.partition(":")[0] for fault in faults] == ["query.max_tokens", "query.query"]


def test_events_tell_what_happens_without_its_words(served: Served) -> None:
    """Events arrive from any thread without recorded content, and a reader that lags is told that it missed some."""
    memory = served.memory
    path = memory.episodic_memory.path("decision_log")

    async def heard() -> list[tuple[str, dict[str, Any]]]:
        streams = EventStreams(memory)
        listener = streams.listen()
        found = [await anext(listener)]
        for work in (
            lambda: memory.record_operation("note", {"text": "secret"}, 110_000, agent="ann"),
            lambda: path.write_text(path.read_text() + "\n- We never deploy on Fridays.\n"),
            memory.refresh, memory.flush_session,
            lambda: [memory.record_operation("note", number) for number in range(1_100)],
        ):  # fmt: skip
            await asyncio.to_thread(work)
        streams.end()
        async for event in listener:
            found.append(event)  # noqa: PERF401  as they come
        return found

    found = asyncio.run(heard())
    session = memory.sessions()[0].id
    assert found[0] == ("listening", {})
    assert ("operation_recorded", {"operation": 1, "type": "note", "session": session, "agent": "ann"}) in found
    assert {name for name, _ in found} == {
        "listening", "operation_recorded", "window_filled", "documents_edited", "refreshed", "session_flushed",
        "missed",
    }  # fmt: skip
    assert found[-1] == ("missed", {})
    assert len(found) == 1_002
    assert "secret" not in str(found)


# The description of the API


def test_the_description_tells_each_route_with_its_types(served: Served) -> None:
    """The API description needs a token and has each route with a description, a schema, and its refusals."""
    assert served.bare.get("/openapi.json").status_code == 401
    told = served.client.get("/openapi.json").json()
    every = [(path, method, each) for path, methods in told["paths"].items() for method, each in methods.items()]
    assert {(method.upper(), path) for path, method, _ in every} == {
        each for each in served.routes if each[1].startswith(("/api/memory/", "/v1/"))
    }
    for path, method, each in every:
        assert each["description"].endswith("."), (path, method)
        assert each["security"] == [{"HTTPBearer": []}]
        assert {"4XX", "5XX"} <= set(each["responses"])
        answers = [answer for status, answer in each["responses"].items() if status in ("200", "201", "204")]
        assert len(answers) == 1
        shown = answers[0].get("content", {})
        assert all("schema" in kind for kind in shown.values()) or "text/event-stream" in shown, (path, method)
