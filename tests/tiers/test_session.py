"""Session memory: appends are cheap, torn writes are repaired, and a person's text stays."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.errors import StorageError
from orchestra_mem.types import SessionStatus
from tests.conftest import Clock, record
from tests.memories import live, session_of, text_of
from tests.timing import assert_quick

# Spills after four operations and never compacts.
CONFIG = {"orchestrator": {"working_memory": {"max_operations": 4}}, "compaction": {"verbatim_window_s": 31_536_000}}
COUNTER = open_counter("tiktoken")


def entries(memory: OrchestratorContextManager) -> list[int]:
    """Return the operations that have an entry in the live document."""
    return list(SessionDocument.parse(live(memory).read_text(encoding="utf-8")).entries())


def test_before_the_first_operation_there_is_nothing(memory: OrchestratorContextManager) -> None:
    """Before the first operation there is no session and no document, and every query returns an empty result."""
    session = memory.session_memory
    assert (session.session, session.path) == (None, None)
    assert (session.get_summary(1_000), session.generate_summary()) == ("", {})
    assert (session.search("x"), session.token_count()) == ([], 0)
    assert session.get_current_state() == {
        "session_id": None, "operation_count": 0, "tokens_used": 0, "started_at": None, "duration_seconds": 0.0,
    }  # fmt: skip
    assert list(session.place.folder.glob("*.md")) == []


@pytest.mark.parametrize("cut", [1, 40])
def test_a_torn_entry_is_mended_at_the_next_start(tmp_path: Path, clock: Clock, cut: int) -> None:
    """After a kill during an append, the torn entry is replaced by the complete one, exactly once."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        record(memory, 5)
        path = live(memory)
        spilled = len(entries(memory))
        record(memory, 3, first=6)
        assert len(entries(memory)) > spilled
        after = path.read_bytes()
    torn = after[: len(after) - cut]
    path.write_bytes(torn)
    undo_spill(tmp_path, spilled)
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        record(memory, 8, first=9)
        numbers = entries(memory)
        text = path.read_text(encoding="utf-8")
        assert numbers == list(range(1, len(numbers) + 1))
        assert all(text.count(f"Step number {number} was taken.") == 1 for number in numbers)
        assert [op.id for op in memory.working_memory.get_all_operations()] == list(range(len(numbers) + 1, 17))


def test_a_torn_entry_is_taken_out_wherever_it_ends(tmp_path: Path) -> None:
    """A torn entry is removed at the next start, wherever it was cut: in the heading, at a line end, or in the body."""
    with open_memory(tmp_path, config=CONFIG) as memory:
        for number in range(7):
            memory.record_operation("task", {"title": f"task {number}", "a": "b", "status": "completed"})
        path = live(memory)
        entry = memory.working_memory.entries()[0].text
    whole = path.read_text(encoding="utf-8")
    lines = [place for place, character in enumerate(entry) if character == "\n"]
    ends = {1, 2, 5, 6, 7, 20, *(line + more for line in lines[:-1] for more in range(8) if line + more < len(entry))}
    for end in sorted(ends):
        path.write_text(whole + entry[:end], encoding="utf-8")
        open_memory(tmp_path, config=CONFIG).close()
        assert path.read_text(encoding="utf-8") == whole, f"an entry cut after {end} of {len(entry)} characters stands"


def undo_spill(project: Path, through: int) -> None:
    """Reset the database to its state before the killed process recorded its append."""
    connection = sqlite3.connect(project / ".obra" / "obra.db")
    connection.execute("UPDATE sessions SET spilled_through = ?", (through,))
    connection.commit()
    connection.close()


def test_a_persons_words_survive_spills_byte_for_byte(memory: OrchestratorContextManager) -> None:
    """A person's section stays byte for byte, and later entries follow in a continued log."""
    record(memory, 10)
    path = live(memory)
    own = b"## Mine\r\n\r\nOdd \xff bytes,\ttabs  \r\nand no end"
    path.write_bytes(path.read_bytes() + own)
    record(memory, 10, first=11)
    data = path.read_bytes()
    assert own in data
    assert data.index(own) < data.index(b"(op 11)")
    document = SessionDocument.parse(text_of(memory))
    sections = [p.block.title for p in document.parts if p.block.level == 2]
    assert sections == ["Operations Log", "Mine", "Operations Log (continued)"]
    assert list(document.entries()) == list(range(1, len(document.entries()) + 1))


@pytest.mark.parametrize(
    "heading", ["### my note (op 10)", "### [10:00:00] Step (op 8)", "### (op 999999)", "#### x (op 9)"]
)
def test_a_heading_that_names_an_operation_is_not_taken_for_its_entry(
    memory: OrchestratorContextManager, heading: str
) -> None:
    """A person's heading that names an operation does not stop the machine from spilling that operation."""
    record(memory, 10)
    path = live(memory)
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{heading}\n\nSee above.\n", encoding="utf-8")
    record(memory, 10, first=11)
    spilled = session_of(memory)
    text = path.read_text(encoding="utf-8")
    for number in range(1, spilled.spilled_through + 1):
        assert text.count(f"Step number {number} was taken.") == 1
    assert f"{heading}\n\nSee above.\n" in text


@pytest.mark.parametrize("budget", [0, 1, 40, 200, 100_000])
def test_a_summary_of_so_many_tokens(memory: OrchestratorContextManager, budget: int) -> None:
    """The summary is the complete document if it fits the budget, otherwise the newest entries that fit."""
    record(memory, 30)
    text = memory.session_memory.get_summary(budget)
    assert COUNTER.count(text) <= budget
    if budget >= 100_000:
        assert text == live(memory).read_text(encoding="utf-8")
    elif budget == 200:
        newest = max(entries(memory))
        assert text.startswith("### [10:00:00] Step (op ")
        assert text.rstrip().endswith(f"Step number {newest} was taken.")


def test_a_summary_of_a_large_document_takes_a_moment(tmp_path: Path, clock: Clock) -> None:
    """Summarising a document of 1,500 operations takes less than 0.2 seconds."""
    with open_memory(
        tmp_path, config={**CONFIG, "orchestrator": {"auto_refresh_enabled": False}}, clock=clock
    ) as memory:
        record(memory, 1_500)
        assert memory.session_memory.get_summary(20_000)
        assert_quick(0.2, lambda: memory.session_memory.get_summary(20_000))


def test_the_structured_summary_has_the_source_designs_keys(memory: OrchestratorContextManager) -> None:
    """The structured summary lists decisions, issues and next steps under the keys of the source design."""
    memory.record_operation("decision", {"decision": "We decided to use SQLite because it is embedded."})
    memory.record_operation(
        "task_execution", {"task_id": 5, "status": "failed", "error": "The build failed: exit code 2."}
    )
    memory.record_operation("note", {"text": "TODO: write the migration guide."})
    record(memory, 3)
    summary = memory.session_memory.generate_summary()
    assert list(summary) == [
        "total_operations", "key_accomplishments", "decisions_made", "issues_encountered", "project_state_changes",
        "recommended_next_steps",
    ]  # fmt: skip
    assert summary["total_operations"] == 6
    assert any("SQLite" in str(text) for text in as_list(summary["decisions_made"]))
    assert any("exit code 2" in str(text) for text in as_list(summary["issues_encountered"]))
    assert any("migration guide" in str(text) for text in as_list(summary["recommended_next_steps"]))
    assert str(summary["project_state_changes"]).startswith("6 operations (3 Step, ")


def test_the_summary_of_an_ended_session_has_its_rules_and_roles(memory: OrchestratorContextManager) -> None:
    """The closing sections quote rules, roles and insights, each once; a kind without facts has no list there."""
    session = memory.record_operation(
        "message", {"speaker": "Greta", "text": "Never sell sesame to the school."}
    ).session
    for text in ("We found out that guests book by telephone.", "we found out that guests book by telephone"):
        memory.record_operation("message", {"speaker": "Greta", "text": text})
    memory.record_operation("message", {"speaker": "Greta", "text": "Marek takes over the delivery tours."})
    record(memory, 30)
    memory.flush_session()
    summary = memory.session_summary(session)
    assert summary is not None
    assert summary.text.endswith(
        "**Rules**:\n- Never sell sesame to the school.\n\n"
        "**People and Roles**:\n- Marek takes over the delivery tours.\n\n"
        "**Insights**:\n- we found out that guests book by telephone\n"
    )


def as_list(value: object) -> list[object]:
    """Return the value, which must be a list."""
    assert isinstance(value, list)
    return value


def test_lines_are_found_newest_first(memory: OrchestratorContextManager) -> None:
    """Search ignores case, and returns at most `max_results` lines, newest first."""
    record(memory, 12)
    newest = max(entries(memory))
    assert memory.session_memory.search("STEP NUMBER", max_results=2) == [
        f"**Text**: Step number {newest} was taken.",
        f"**Text**: Step number {newest - 1} was taken.",
    ]
    assert memory.session_memory.search("step number 3 ") == ["**Text**: Step number 3 was taken."]
    assert memory.session_memory.search("x", max_results=0) == []


def test_a_flush_that_the_disk_refused_is_ended_by_the_next(tmp_path: Path, clock: Clock) -> None:
    """After a full disk interrupted a flush, flushing again archives the session exactly once."""
    failing: list[str] = []

    def point(name: str) -> None:
        if name in failing:
            failing.clear()
            raise OSError(28, "No space left on device")

    with open_memory(tmp_path, config=CONFIG, clock=clock, write_point=point) as memory:
        for name in ("flush.rename.before", "archive.rename.before", "document.rename.before"):
            record(memory, 6)
            memory.record_operation("decision", {"decision": f"We decided {name}."})
            session = session_of(memory)
            failing.append(name)
            try:
                path = memory.flush_session()
            except StorageError as error:
                assert "No space left on device" in str(error)
                path = memory.flush_session()
            assert path is not None, name
            assert path.name.endswith(f"{session.id[:8]}.md")
            assert list((tmp_path / ".obra" / "sessions").glob("*.md")) == []
        assert [s.status for s in memory.sessions()] == [SessionStatus.ARCHIVED] * 3
