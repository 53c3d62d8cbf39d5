"""What is done ahead of a refresh: it is taken where it is still true, and what comes of the refresh is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.summaries.compaction import Draft, Source, summarise
from orchestra_mem.services.preparation import Preparation
from orchestra_mem.tiers import foresight
from orchestra_mem.types import MustKeep, MustKeepStatus, Operation, Summary
from tests.conftest import Clock

SMALL = {
    "orchestrator": {
        "context_window": {"max_tokens": 8_192},
        "working_memory": {"max_operations": 6},
        "session_compression_threshold": 2_400,
        "auto_refresh_enabled": False,
    },
    "compaction": {"verbatim_floor_tokens": 100, "segment_tokens": 300, "fan_in": 3},
}
SAID = (
    "We decided to use MySQL for the event log.",
    "The tests of part {n} fail with a timeout after {n}30 ms.",
    "The parser of part {n} reads its window twice and keeps a ledger of {n}4 rows.",
    "We no longer use MySQL for the event log; we decided to use SQLite for the event log instead.",
    "Never deploy part {n} on a Friday. Mira owns the release of part {n}.",
)


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done ahead is done when a test says so."""
    monkeypatch.setattr(Preparation, "_wake", lambda self: None)


@pytest.fixture
def drafted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first operations of what has been summarised, each time that it was."""
    made: list[int] = []

    def counted(sources: Sequence[Source], facts: list[MustKeep], **options: object) -> Draft:
        made.append(sources[0].operation)
        return summarise(sources, facts, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(foresight, "summarise", counted)
    return made


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[OrchestratorContextManager]:
    """A memory that compacts when it is told to."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as opened:
        yield opened


def record(memory: OrchestratorContextManager, clock: Clock, count: int) -> list[Operation]:
    """Operations with facts in them, of which later ones close earlier ones."""
    operations = []
    for number in range(memory._flow.last_id + 1, memory._flow.last_id + count + 1):
        clock.now += timedelta(minutes=10)
        text = SAID[number % len(SAID)].format(n=number // len(SAID))
        operations.append(memory.record_operation("step", {"task_id": number // 3, "text": text}))
    return operations


def prepare(memory: OrchestratorContextManager) -> None:
    """Do ahead all that can be."""
    while memory._flow.preparation._step():
        pass


def told(memory: OrchestratorContextManager) -> tuple[list[Summary], list[MustKeep]]:
    """The summaries, without their session, and all facts."""
    return [replace(summary, session="") for summary in memory.losses()], memory.facts(standing=False)


def test_a_refresh_comes_to_the_same_however_much_was_done_ahead(tmp_path: Path, drafted: list[int]) -> None:
    """Summaries and facts are equal, of one refresh after another; drafts that were ready are not made again."""
    come_to, made = [], []
    for name, each in (("none", 0), ("some", 45), ("all", 1)):
        clock = Clock()
        (tmp_path / name).mkdir()
        with open_memory(tmp_path / name, config=SMALL, clock=clock) as memory:
            outcomes = []
            for _ in range(2):
                for number in range(70):
                    record(memory, clock, 1 + number % 2)
                    if each and number % each == 0:
                        prepare(memory)
                drafted.clear()
                assert memory.refresh() is not None
                outcomes.append(told(memory))
                made.append(len(drafted))
            come_to.append(outcomes)
    assert come_to[0] == come_to[1] == come_to[2]
    assert {fact.status for fact in come_to[0][1][1]} > {MustKeepStatus.STANDING}
    assert made[0] > made[2]
    assert made[4] <= made[0] // 2


def test_what_a_person_edits_is_summarised_as_it_is_now(
    memory: OrchestratorContextManager, clock: Clock, drafted: list[int]
) -> None:
    """A draft of what stood there before is thrown away."""
    record(memory, clock, 80)
    prepare(memory)
    assert drafted[0] == 1
    path = memory.session_memory.path
    assert path is not None
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("The parser of part 0 reads its window twice", "Turquoise zeppelins"), "utf-8")
    drafted.clear()
    memory.refresh()
    assert drafted[0] == 1
    assert "Turquoise zeppelins" in memory.losses()[0].text


def test_nothing_is_foreseen_where_operations_are_missing(
    memory: OrchestratorContextManager, clock: Clock, drafted: list[int]
) -> None:
    """Facts are numbered in the order of operations: with one unread the numbers of the later ones are not known."""
    record(memory, clock, 1)
    memory._flow.preparation._waiting.clear()
    record(memory, clock, 79)
    prepare(memory)
    assert drafted == []
    assert memory.refresh() is not None
    assert drafted[0] == 1


def test_a_new_session_is_foreseen_from_its_own_beginning(
    memory: OrchestratorContextManager, clock: Clock, drafted: list[int]
) -> None:
    """Nothing of the one before goes into its drafts."""
    record(memory, clock, 10)
    prepare(memory)
    assert memory.flush_session() is not None
    first = record(memory, clock, 80)[0].id
    prepare(memory)
    assert drafted[0] == first == 11
    drafted.clear()
    memory.refresh()
    assert first not in drafted


def test_how_much_is_foreseen_is_bounded(
    memory: OrchestratorContextManager, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is ever compacted, no more than so many operations are kept in mind."""
    monkeypatch.setattr(foresight, "REMEMBERED", 20)
    record(memory, clock, 60)
    prepare(memory)
    assert len(memory._flow.preparation._foresight._sources) == 20
