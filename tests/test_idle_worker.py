"""Preparation of the next refresh while the caller is idle: it saves time, and no result depends on it."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.summaries.drafts import Draft, Material, draft_of
from orchestra_mem.errors import StorageError
from orchestra_mem.ports import TokenCounter
from orchestra_mem.tiers.fact_extractor import FactExtractor
from orchestra_mem.types import DocumentName, MustKeepKind
from tests.conftest import Clock
from tests.timing import until

CONFIG: dict[str, object] = {
    "orchestrator": {"working_memory": {"max_operations": 6}, "session_compression_threshold": 4_000},
    "compaction": {"verbatim_floor_tokens": 100, "verbatim_window_s": 60, "segment_tokens": 300},
}


def fill(memory: OrchestratorContextManager, clock: Clock, operations: int = 60) -> None:
    """Record texts with facts, one operation a minute, and spill them."""
    for number in range(operations):
        clock.now += timedelta(seconds=60)
        text = (
            f"We decided to write part {number} of the store in Go. The parser of part {number} reads its window twice."
        )
        memory.record_operation("note", {"text": text}, timestamp=clock())
    memory.get_stats()


def test_what_a_refresh_needs_is_done_in_the_pause_before_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pause summaries are drafted ahead, and the next refresh uses these drafts."""
    drafted: list[int] = []

    def noting(material: Material, *, target_tokens: int, counter: TokenCounter) -> Draft:
        drafted.append(material.passages[0].key)
        return draft_of(material, target_tokens=target_tokens, counter=counter)

    monkeypatch.setattr("orchestra_mem.core.summaries.drafts.draft_of", noting)
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        fill(memory, clock)
        until(lambda: len(drafted) > 3)
        time.sleep(0.2)
        ahead = len(drafted)
        refreshed = memory.refresh()
        assert refreshed
        made = [summary for summary in refreshed.compacted.summaries if summary.level == 1]
        assert len(drafted) < ahead + len(made)


def test_a_single_decision_is_a_fact_soon_after(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The facts of a few operations are extracted with the next index update, so that searches know them."""
    monkeypatch.setattr("orchestra_mem.memory.idle_worker._FOLLOW_S", 0.2)
    memory.record_operation("decision", {"text": "We switch the orders database to Postgres."})
    until(memory._parts.ledger.must_keeps)


def test_many_operations_are_indexed_before_the_first_search_and_a_few_are_not(
    memory: OrchestratorContextManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory that was never searched loads the search for many operations, not for a few."""
    monkeypatch.setattr("orchestra_mem.memory.idle_worker._FOLLOW_S", 0.2)
    index = tmp_path / ".obra" / "index" / "search.db"
    for number in range(600):
        memory.record_operation("note", {"text": f"Lamp {number} was changed."})
        if number == 20:
            time.sleep(1)
            assert not index.exists()
    until(index.exists)


def test_a_line_deleted_before_a_pause_is_not_found_again_in_it(tmp_path: Path) -> None:
    """In a pause a deletion is read before the later operations, one of which has the deleted words."""
    said = "We decided to write the store in Go."
    with open_memory(tmp_path) as memory, closing(sqlite3.connect(tmp_path / ".obra" / "obra.db")) as database:
        memory.record_operation("note", {"text": said})
        memory.refresh()
        log = memory.episodic_memory.path(DocumentName.DECISION_LOG)
        log.write_text(log.read_text().partition("### ")[0])
        for text in (said, *(f"The lamp {number} was changed." for number in range(8))):
            memory.record_operation("note", {"text": text}, agent="coder")
        until(lambda: database.execute("SELECT judged_through FROM sessions").fetchone() == (10,))
        assert memory.facts(MustKeepKind.DECISION) == []


def test_a_fault_in_a_pause_harms_nothing(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a pause is reported, and the next refresh does all the work."""

    def refuse(self: FactExtractor, *_: object) -> None:
        raise StorageError("no space")

    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        with monkeypatch.context() as patch:
            patch.setattr(FactExtractor, "extract", refuse)
            fill(memory, clock, 20)
            until(lambda: "no space" in str(memory.get_stats()["problems"]))
        memory.refresh()
        assert len(memory.facts()) >= 20


def test_many_unread_operations_keep_nobody_waiting(tmp_path: Path, clock: Clock) -> None:
    """While facts are found in 600 unread operations, other threads never wait for all of it."""
    config = {"orchestrator": {"auto_refresh_enabled": False}}
    waits: list[float] = []
    with open_memory(tmp_path, config=config, clock=clock) as memory:
        fill(memory, clock, 1)
        memory.facts()  # loads the classifier
        fill(memory, clock, 599)
        finding = threading.Thread(target=memory.facts)
        begun = time.perf_counter()
        finding.start()
        while finding.is_alive():
            asked = time.perf_counter()
            memory.get_stats()
            waits.append(time.perf_counter() - asked)
        assert max(waits) < (time.perf_counter() - begun) * 0.8
        assert memory.facts(standing=False)[-1].operation == 600
