"""Helpers of tests for a memory: its clock, operations, session and document, and edits by a person.

Programs that tests start import this module, so it loads no more than they need.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem import OrchestratorContextManager
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.ports import WritePoint
from orchestra_mem.types import DocumentName, Session, Summary, VersionReason

if TYPE_CHECKING:
    import pytest

START = datetime(2025, 1, 15, 10, tzinfo=UTC)
PLACES = ["login form", "token service", "audit trail", "mail queue", "rate limiter"]
# A window so small that the memory spills, compacts and refreshes within a few dozen operations.
SMALL: dict[str, Any] = {
    "orchestrator": {
        "context_window": {"max_tokens": 4_096},
        "working_memory": {"max_operations": 6, "max_tokens": 600},
        "session_compression_threshold": 900,
    },
    "compaction": {"verbatim_window_s": 60, "verbatim_floor_tokens": 100, "segment_tokens": 100, "fan_in": 2},
}


class Clock:
    """A clock that tests set through `now`; if it has a step, each call advances it by that."""

    def __init__(self, now: datetime = START, *, step_s: float = 0) -> None:
        self.now = now
        self.step = timedelta(seconds=step_s)

    def __call__(self) -> datetime:
        """Advance the clock by its step and return the time."""
        self.now += self.step
        return self.now


def operation(number: int) -> tuple[str, dict[str, Any]]:
    """Return operation `number` of an agent: a decision, a failed task, or a message that contains the number."""
    place = PLACES[number % len(PLACES)]
    if number % 11 == 3:
        return "decision", {"text": f"We decided to keep batch {number} of the {place} in table t{number}."}
    if number % 13 == 5:
        return "task_execution", {"task": f"migrate the {place}", "status": "failed", "error": f"exit code {number}"}
    said = f"Step {number}: wrote src/part_{number}.py for the {place} and looked at {number % 9 + 2} of its tests."
    return "agent_message", {"text": said}


def work(memory: OrchestratorContextManager, count: int, first: int = 1) -> None:
    """Record operations `first` to `first + count - 1`."""
    for number in range(first, first + count):
        memory.record_operation(*operation(number))


def session_of(memory: OrchestratorContextManager) -> Session:
    """Return the active session."""
    session = memory.session_memory.session
    assert session is not None
    return session


def live(memory: OrchestratorContextManager) -> Path:
    """Return the path of the active session's document."""
    path = memory.session_memory.path
    assert path is not None
    return path


def text_of(memory: OrchestratorContextManager) -> str:
    """Read the live document; bytes that are not UTF-8 become surrogates."""
    return live(memory).read_bytes().decode("utf-8", "surrogateescape")


def say(memory: OrchestratorContextManager, clock: Clock, *texts: str, agent: str | None = None) -> None:
    """Record user messages one minute apart, then refresh."""
    for text in texts:
        clock.now += timedelta(minutes=1)
        memory.record_operation("message", {"role": "user", "text": text}, agent=agent)
    memory.refresh()


def record_decisions(memory: OrchestratorContextManager, count: int) -> None:
    """Record decisions about different things, of which hardly any supersedes another."""
    chance, nouns = (
        random.Random(1),
        "ledger parser courier kettle harbour lantern orchard violin glacier pigeon".split(),
    )
    nouns += "saddle turbine walnut zipper mosaic quarry ribbon sparrow anchor basket candle engine feather".split()
    for _ in range(count):
        what, its, where, there = chance.sample(nouns, 4)
        memory.record_operation("decision", {"text": f"We decided to store the {what} {its} in the {where} {there}."})


def killing(points: Collection[str]) -> WritePoint:
    """Return a `write_point` that interrupts a memory at the named points, as a kill would."""

    def pass_by(point: str) -> None:
        if point in points:
            raise KeyboardInterrupt

    return pass_by


def machine_writes(memory: OrchestratorContextManager, texts: Mapping[DocumentName, str]) -> None:
    """Merge texts into documents, as the machine's versions of them."""
    (writer,) = memory.episodic_memory.writers

    def known() -> Mapping[str, str]:
        with writer.reading() as read:
            for document, person in read.items():
                writer.ledger.note_read(document, person.as_read)
        return {name.value: text for name, text in texts.items()}

    assert not writer.write_all(known, VersionReason.REFRESH)


def edited(text: str, *changes: tuple[str, str]) -> str:
    """Replace passages of a text, each of which must occur exactly once."""
    for old, new in changes:
        assert text.count(old) == 1, (old, text)
        text = text.replace(old, new)
    return text


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Replace passages of a document that occur exactly once, as a person does in an editor."""
    path.write_bytes(edited(path.read_bytes().decode(), *changes).encode())


def take_out(path: Path, *words: str) -> None:
    """Delete the lines of a document that contain any of the words, as a person does in an editor."""
    lines = path.read_bytes().decode().splitlines(keepends=True)
    kept = [line for line in lines if not any(word in line for word in words)]
    assert kept != lines, words
    path.write_bytes("".join(kept).encode())


def collide(memory: OrchestratorContextManager, mine: str = "- buy rye flour") -> Path:
    """Let a person and the machine both change the last line of the work plan, and return the plan's path."""
    plan = DocumentName.WORK_PLAN
    path = memory.episodic_memory.path(plan)
    text = path.read_text()
    machine_writes(memory, {plan: f"{text}\n- buy flour\n"})
    edit(path, ("- buy flour", mine))
    machine_writes(memory, {plan: f"{text}\n- buy wheat flour\n"})
    return path


def flushed(memory: OrchestratorContextManager) -> Path:
    """End the session and return the path of its archived document."""
    path = memory.flush_session()
    assert path is not None
    return path


def work_all(memory: OrchestratorContextManager) -> None:
    """Do all background work that is due."""
    while memory.compression.work():
        pass


def problems_of(memory: OrchestratorContextManager) -> list[Any]:
    """List the problems that `get_stats` reports."""
    problems = memory.get_stats()["problems"]
    assert isinstance(problems, list)
    return problems


def standing(memory: OrchestratorContextManager) -> list[Summary]:
    """List the summaries that no other summary covers, by the operations that they cover."""
    return sorted((each for each in memory.losses() if not each.parent), key=lambda each: each.first_operation)


def everywhere(memory: OrchestratorContextManager) -> list[int]:
    """List the live session's operations, each as often as a tier or a summary holds it."""
    document = SessionDocument.parse(text_of(memory))
    found = [operation.id for operation in memory.working_memory.get_all_operations()] + [*document.entries()]
    for number in document.summaries():
        found += [operation.id for operation in memory.expand(f"S{number}").operations]
    return sorted(found)


def closed_to_writing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder appear read-only to `os.access`: tests may run as root, whom permissions do not bind."""
    access = os.access

    def denied(path: Path, mode: int, **options: bool) -> bool:
        return access(path, mode, **options) and not (mode == os.W_OK and Path(path) == folder)

    monkeypatch.setattr(os, "access", denied)
    monkeypatch.setattr(os, "supports_effective_ids", {denied})
