"""Promises of the design documents, a test for each: a feature that is listed as built does what the design says."""

from __future__ import annotations

import gc
import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import EmbedderError, Orchestrator, OrchestratorContextManager, VectorStore, open_memory
from orchestra_mem.build import HOME
from orchestra_mem.core.context.continuity import FEW_TURNS, MANY_TURNS
from orchestra_mem.doctor.documents import inspect_index
from orchestra_mem.retrieval.index_worker import Guard
from orchestra_mem.search_types import SearchFilter, SearchMode, Tier
from orchestra_mem.types import DocumentName, MustKeepKind
from tests.adapters.test_http_embedder import Server
from tests.conftest import Clock, record
from tests.memories import take_out
from tests.timing import until

OFF = "search by meaning is off, so only keywords are searched: "
BREAD = (
    "How do we bake bread?", "Which flour for the bread?", "How long does the bread rise?", "Is rye bread good?",
    "How do we bake rye bread?",
)  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[OrchestratorContextManager]:
    """A new memory."""
    with open_memory(tmp_path) as opened:
        yield opened


# Filters


def test_a_filter_is_a_part_of_the_search(memory: OrchestratorContextManager) -> None:
    """A filtered search fills its limit with matches, even if many operations that do not match are more similar."""
    store = VectorStore(memory)
    for number in range(60):
        task = f"Review the login module, part {number}"
        store.add_orchestration(f"p{number}", {"task": task, "pattern": "parallel"})
    said = "\n\n".join(f"The login module was reviewed, its form {n} by hand. " + f"field{n} " * 150 for n in range(20))
    for number in range(8):
        store.add_orchestration(f"c{number}", {"task": f"login {number}", "result": said, "pattern": "consensus"})
    store.add_orchestration("none", {"task": "Review the login module", "pattern": 5})
    found = store.search_similar("Review the login module", pattern="consensus", limit=8)
    assert len({similar.operation.id for similar in found}) == 8
    assert {similar.operation.data["pattern"] for similar in found} == {"consensus"}  # type: ignore[index, call-overload]
    entries = memory.retriever.load_layer1("Review the login module", pattern="consensus", limit=8)
    assert set() < {entry.source for entry in entries} <= {f"op {similar.operation.id}" for similar in found}
    with pytest.raises(ValueError, match=r"pattern is 'consensus', but where\.pattern is 'parallel': give one"):
        memory.retriever.retrieve_context("login", pattern="consensus", where=SearchFilter(pattern="parallel"))


def test_what_holds_no_more_hides_nothing_that_holds(memory: OrchestratorContextManager) -> None:
    """A search for facts finds the active one behind any number of facts that a person deleted."""
    record(memory, 40, kind="decision", say="We decided to host the shop in region number {n}.")
    memory.record_operation("decision", {"text": "We decided that the shop gets painted."})
    memory.refresh()
    take_out(memory.episodic_memory.path(DocumentName.DECISION_LOG), "region number")
    hits = memory.search("host the shop in region number 7", where=SearchFilter(tiers=(Tier.SEMANTIC,)), limit=1).hits
    assert [hit.chunk.text for hit in hits] == ["We decided that the shop gets painted."]


# The index follows


def test_a_search_sees_the_newest_however_much_waits(memory: OrchestratorContextManager) -> None:
    """Every search finds the newest operation, even with 2,000 operations not yet indexed."""
    record(memory, 2_000, say="Step {n}: the crate was moved to the next shelf.")
    for last, name in enumerate(("garnet parser", "amber lexer"), 2_001):
        memory.record_operation("step", {"text": f"The {name} was seen."})
        assert memory.search(name).hits[0].chunk.source == f"op {last}"


def test_the_index_follows_a_record_within_ten_seconds(tmp_path: Path, memory: OrchestratorContextManager) -> None:
    """New operations are indexed within ten seconds once a process has searched; otherwise no index is opened."""
    record(memory, 3)
    (searched := tmp_path / "searched").mkdir()
    with open_memory(searched) as answering:
        answering.search("")
    with open_memory(searched) as recording:
        record(recording, 300)
        until(lambda: inspect_index(searched).operations == 300, 10)
        recording.record_operation("note", {"text": "The lamp in the cellar was changed."})
        until(lambda: inspect_index(searched).operations == 301, 10)
    assert memory.get_stats()["search"]["opened"] is False  # type: ignore[index, call-overload]


def test_what_follows_ends_with_the_memory(tmp_path: Path, storage: dict[str, Any]) -> None:
    """A memory that is closed or garbage-collected leaves no thread running and, unsearched, has made no index."""
    before = threading.active_count()
    with open_memory(tmp_path, config={"storage": storage}) as memory:
        record(memory, 3)
    forgotten = open_memory(tmp_path, config={"storage": storage})
    record(forgotten, 3)
    del forgotten, memory

    def gone() -> bool:
        gc.collect()  # the memory's worker may still hold a reference
        return threading.active_count() <= before

    until(gone, 10)
    assert not (tmp_path / HOME / "index" / "search.db").exists()


# An embedding server that does not answer


def test_a_failing_embedder_is_tried_again_after_5_10_and_20_seconds() -> None:
    """A failing embedder is retried after 5, 10 and 20 seconds, then every minute, until a call succeeds."""
    now = [0.0]
    guard = Guard(failures=5, reset_s=60.0, timer=lambda: now[0])

    def fail() -> None:
        raise ValueError("no power")

    pauses = []
    for _ in range(6):
        with pytest.raises(EmbedderError, match="ValueError: no power"):
            guard.call(fail)
        pauses.append(guard.pause_s)
        now[0] += guard.pause_s - 1
        with pytest.raises(EmbedderError, match="no power"):  # the embedder is not called
            guard.call(lambda: pytest.fail("called within the pause"))
        now[0] += 1
    assert pauses == [5, 10, 20, 20, 60, 60]
    assert guard.call(lambda: 7) == 7
    assert (guard.problem, guard.pause_s) == (None, 0)


@pytest.mark.parametrize("dimensions", [0, 64])
def test_nobody_who_searches_waits_for_a_server_that_is_silent(tmp_path: Path, server: Server, dimensions: int) -> None:
    """Every search answers by keywords within a second and notes that the embedding server does not answer."""
    server.failures, server.silence_s = [None] * 99, 60.0
    search = {"embedder": "http", "base_url": server.url, "model": "m", "dimensions": dimensions}
    with open_memory(tmp_path, config={"search": search}) as memory:
        record(memory, 5)
        memory.search("")  # loads the search modules
        for _ in range(6):
            start = time.monotonic()
            answer = memory.search("step number 3")
            assert time.monotonic() - start < 1
            assert answer.hits[0].chunk.source == "op 3"
            assert answer.notes
        until(lambda: "does not answer" in str(memory.get_stats()["problems"]), 10)
        assert memory.search("step").notes[0].startswith(OFF)
    server.go_on.set()


@pytest.mark.parametrize("dimensions", [0, 64])
def test_a_server_that_was_away_is_used_again_by_itself(tmp_path: Path, server: Server, dimensions: int) -> None:
    """A server that was down at the start is used once it answers, and dense search finds what was recorded before."""
    server.broken = True
    search = {"embedder": "http", "base_url": server.url, "model": "m", "dimensions": dimensions}
    with open_memory(tmp_path, config={"search": {**search, "breaker_reset_s": 0.5}}) as memory:
        memory.record_operation("note", {"text": "The physician advised more sleep."})
        (note, *_) = memory.search("doctor").notes
        assert note.startswith(f"{OFF}no embeddings from 'm'")
        server.broken = False
        until(lambda: memory.get_stats()["problems"] == [], 10)
        assert [hit.chunk.source for hit in memory.search("doctor", mode=SearchMode.DENSE).hits] == ["op 1"]


# The window of a conversation


def test_the_window_follows_a_talk_that_nobody_has_searched(memory: OrchestratorContextManager) -> None:
    """A context shows many turns while the topic stays, few after it changes, and opens no index for that."""
    for text in BREAD:
        memory.record_operation("message", {"role": "user", "text": text})
    turns = memory.get_orchestrator_context("x").turns
    assert turns is not None
    assert turns.turns == MANY_TURNS
    memory.record_operation("message", {"role": "user", "text": "Invoice the Kenyan shipyard quarterly"})
    memory.refresh()
    turns = memory.get_orchestrator_context("x").turns
    assert turns is not None
    assert turns.turns == FEW_TURNS
    assert memory.get_stats()["search"]["opened"] is False  # type: ignore[index, call-overload]


def _day(project: Path, *lines: str) -> list[str]:
    """Execute lines as one session and return the answers."""
    with open_memory(project) as memory, Orchestrator(memory) as orchestrator:
        answers = [orchestrator.execute(line).text for line in lines]
        memory.flush_session()
    return answers


def test_the_last_session_is_the_last_in_which_something_was_done(tmp_path: Path) -> None:
    """The last session is the last in which work changed: sessions that only asked questions do not count."""
    _day(tmp_path, 'create an epic "Alpha"')
    _day(tmp_path, 'create an epic "Beta"', 'create a story "Login" in epic 2', "finish 3")
    asked = "What did we do in the last session?"
    for answer in (*_day(tmp_path, asked, asked), *_day(tmp_path, asked)):
        assert 'Epic #2 "Beta" was created' in answer
        assert 'Story #3 "Login": status done, was pending' in answer
        assert "Alpha" not in answer


def test_work_through_the_orchestrator_is_known_the_next_day(tmp_path: Path) -> None:
    """Orchestrated work is in the project's state and the archived session's summary on the next day."""
    epic = [f'create a story "Story {name}" in epic 1' for name in "ABC"]
    _day(tmp_path, 'create an epic "User authentication"', *epic, "finish 2", "block 3 because the mail server is down")
    with open_memory(tmp_path) as memory, Orchestrator(memory) as orchestrator:
        state = memory.episodic_memory.path(DocumentName.PROJECT_STATE).read_text()
        assert 'Epic #1 "User authentication": 1 of 3 done' in state
        (archive,) = (tmp_path / ".obra").rglob("archive/*.md")
        told = archive.read_text().partition("## Current State")[2]
        parts = {title: told.partition(f"**{title}**:\n")[2].partition("\n**")[0] for title in
                 ("Active Work", "Blockers", "Accomplishments", "Next Steps")}  # fmt: skip
        assert 'Epic #1 "User authentication": 1 of 3 done' in parts["Active Work"]
        assert 'Story #3 "Story B": blocked, the mail server is down' in parts["Blockers"]
        assert 'Story #2 "Story A": done' in parts["Accomplishments"]
        assert 'Story #4 "Story C"' in parts["Next Steps"]
        assert "1 of 3 done" in orchestrator.execute("What's the status of epic 1?").text


def test_a_failure_of_long_ago_blocks_nothing(tmp_path: Path, clock: Clock) -> None:
    """Blockers show what a tool printed in this session and the one before, and what an agent wrote in two weeks.

    What people said stands until it ends. The section tells how to list the rest.
    """
    told, texts = [], ("missing file rates.db", "The importer crashes on empty files.", "The upload is still broken.")
    for day in range(4):
        with open_memory(tmp_path, clock=clock) as memory:
            if day == 0:
                memory.record_operation("tool_use", {"tool": "Bash", "output": f"Exit code 1\n{texts[0]}"})
                memory.record_operation("message", {"role": "assistant", "text": f"Failed: {texts[1]}"}, agent="coder")
                memory.record_operation("message", {"speaker": "Ana", "text": texts[2]})
            memory.record_operation("note", {"text": "another day"})
            memory.flush_session()
            state = memory.episodic_memory.path(DocumentName.PROJECT_STATE).read_text()
            assert all(any(text in fact.text for fact in memory.facts(MustKeepKind.FAILURE)) for text in texts)
        clock.now += timedelta(days=1 if day < 2 else 14)
        blockers = state.partition("## Blockers")[2].partition("\n## ")[0]
        more = re.findall("and . more: `orchestra-mem facts --kind 'failure' --limit 0`", blockers)
        told.append(([text in blockers for text in texts], [each[4] for each in more]))
    all_told, no_output, by_people = [True] * 3, [False, True, True], [False, False, True]
    assert told == [(all_told, []), (all_told, []), (no_output, ["1"]), (by_people, ["2"])]


def test_failures_age_in_a_session_without_end(tmp_path: Path, clock: Clock) -> None:
    """In a server's one long session, what only a tool or an agent told leaves the blockers after two weeks, too."""
    with open_memory(tmp_path, clock=clock) as memory:
        memory.record_operation("tool_use", {"tool": "Bash", "output": "Exit code 1\nmissing file rates.db"})
        memory.record_operation("message", {"role": "assistant", "text": "Failed: The importer crashes."}, agent="bot")
        memory.record_operation("message", {"speaker": "Ana", "text": "The upload is still broken."})
        told = []
        for days in (13, 2):
            clock.now += timedelta(days=days)
            memory.record_operation("note", {"text": "another day"})
            memory.refresh()
            state = memory.episodic_memory.path(DocumentName.PROJECT_STATE).read_text()
            blockers = state.partition("## Blockers")[2].partition("\n## ")[0]
            told.append([text in blockers for text in ("rates.db", "importer crashes", "upload is still broken")])
    assert told == [[True, True, True], [False, False, True]]


def test_a_line_that_a_person_rewords_is_not_doubted(tmp_path: Path) -> None:
    """A person's new words for a decision are active, even if the machine took a later decision for its end."""
    with open_memory(tmp_path) as memory:
        for text in (
            "We deploy with Ansible from the office.",
            "We chose Terraform for the new servers in the office.",
        ):
            memory.record_operation("decision", {"text": text})
        memory.refresh()
        assert [fact.superseded_by for fact in memory.facts()] == [2, 0]
        log = memory.episodic_memory.path(DocumentName.DECISION_LOG)
        log.write_text(log.read_text().replace("from the office", "from home"))
        memory.refresh()
        assert [fact.superseded_by for fact in memory.facts()] == [0, 0]
        assert "We deploy with Ansible from home. (K1)\n\n###" in log.read_text()


def test_the_last_task_executed_is_what_ran_last(tmp_path: Path) -> None:
    """The last task executed is the item that ran last, not the one created last, whatever its kind."""
    with open_memory(tmp_path) as memory, Orchestrator(memory) as orchestrator:
        orchestrator.execute('create an epic "Alpha"')
        orchestrator.execute('create a story "Login" in epic 1')
        orchestrator.execute('create a story "Pages" in epic 1')
        orchestrator.execute('create a task "Draw the page" in story 3')
        orchestrator.execute_task(4, "true")
        orchestrator.execute_task(2, "true")
        assert 'Created Task #5 "Ink it"' in orchestrator.execute('create a task "Ink it" in story 3').text
        answer = orchestrator.execute("What was the last task executed?").text
    assert "Login" in answer
    assert "Draw the page" not in answer
    assert "Ink it" not in answer
