"""What the pages answer, asked without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.context.window import UsageEvent, UsagePoint
from orchestra_mem.faces.http.web.window_chart import window_chart
from orchestra_mem.types import DocumentName, Json, VersionReason
from tests.conftest import record
from tests.faces.http_client import Served, serving
from tests.memories import edit


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
    path = memory.episodic_memory.path("work_plan")
    text = path.read_text()
    memory.episodic_memory.write(DocumentName.WORK_PLAN, f"{text}\n- buy flour\n", VersionReason.REFRESH)
    edit(path, ("- buy flour", "- buy <b>rye</b> flour"))
    memory.episodic_memory.write(DocumentName.WORK_PLAN, f"{text}\n- buy wheat flour\n", VersionReason.REFRESH)
    log = memory.episodic_memory.path("decision_log")
    log.write_bytes(log.read_bytes() + b"\n- caf\xe9\n")
    page = served.client.get("/").text
    assert "A conflict in work_plan, line" in page
    assert '<a href="/documents/work_plan">Decide it</a>' in page
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


@given(st.lists(st.tuples(st.sampled_from(UsageEvent), st.integers(0, 2_000)), max_size=1_500))
def test_the_line_of_the_window_has_every_refresh(changes: list[tuple[UsageEvent, int]]) -> None:
    """Within the picture, from left to right, however many points there are."""
    points, used = [], 0
    for number, (event, tokens) in enumerate(changes, 1):
        points.append(UsagePoint(sequence=number, time=None, before_tokens=used, used_tokens=tokens, event=event))
        used = tokens
    chart = window_chart(points, 1_000)
    assert [point for _, _, point in chart.refreshes] == [each for each in points if each.event is UsageEvent.RESET]
    at = [tuple(map(float, pair.split())) for pair in chart.line.removeprefix("M").split(" L")]
    assert len(at) <= 600 + 2 * len(chart.refreshes)
    assert all(0 <= x <= 100 and 0 <= y <= 100 for x, y in at)
    assert [x for x, _ in at] == sorted(x for x, _ in at)


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
