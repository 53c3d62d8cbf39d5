"""Compaction of the session document: it gets shorter, must-keeps stay, and people's text is never lost."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.markdown import PIN
from orchestra_mem.core.documents.session_document import SessionDocument, summary_block
from orchestra_mem.types import Author, OperationFilter, VersionReason
from tests.builders import cases
from tests.conftest import Clock
from tests.memories import edit as edit_file
from tests.memories import live, session_of, standing, text_of

# Compacts only on request.
CONFIG = {
    "orchestrator": {
        "context_window": {"max_tokens": 8_192},
        "working_memory": {"max_operations": 6},
        "session_compression_threshold": 2_400,
        "auto_refresh_enabled": False,
    },
    "compaction": {"verbatim_floor_tokens": 100, "segment_tokens": 300, "fan_in": 3},
}
TAKEN_BACK = "We no longer use MySQL for the event log; we decided to use SQLite for the event log instead."
WORDS = "parser cache router index queue ledger window budget reads writes drops keeps".split()


def record(memory: OrchestratorContextManager, clock: Clock, count: int, *, say: str = "") -> None:
    """Record operations with different texts, ten minutes apart."""
    for _ in range(count):
        clock.now += timedelta(minutes=10)
        newest = memory.operations(OperationFilter(limit=1))
        number = newest[0].id + 1 if newest else 1
        said = " ".join(f"Then I read {WORDS[number * k % 12]}/part_{number}.py and its tests." for k in range(1, 4))
        text = f"{said} It took {number + 100} ms. {say}"
        memory.record_operation("step", {"task_id": number // 3, "text": text})


def record_and_refresh(memory: OrchestratorContextManager, clock: Clock, count: int) -> None:
    """Record operations, then refresh."""
    record(memory, clock, count)
    memory.refresh()


def edit(memory: OrchestratorContextManager, old: str, new: str) -> None:
    """Change the live document as a person does."""
    edit_file(live(memory), (old, new))


def shown(memory: OrchestratorContextManager) -> SessionDocument:
    """Parse the live document."""
    return SessionDocument.parse(text_of(memory))


def kept_words(memory: OrchestratorContextManager, tmp_path: Path) -> str:
    """Return the text of the document and of its versions."""
    versions = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / ".obra/memory/versions").glob("session_*"))
    return text_of(memory) + versions


def test_what_somebody_pastes_between_two_spills_is_counted(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Text that a person pastes into the document counts towards its tokens at the next spill."""
    record(memory, clock, 30)
    before = memory.session_memory.token_count()
    live(memory).write_text(f"{text_of(memory)}\n## Notes\n\n{'The kettle is on. ' * 2_000}\n", encoding="utf-8")
    record(memory, clock, 30)
    assert memory.session_memory.token_count() > before + 8_000


def test_old_operations_become_summaries_and_the_newest_stay(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Summaries cover the oldest operations in order without a gap, in at most a quarter of their size."""
    record(memory, clock, 60)
    before = memory.session_memory.token_count()
    done = memory.refresh()
    assert done is not None
    assert done.compacted.covered_operations > 40
    assert done.compacted.ratio <= 0.25
    assert done.compacted.tokens_before >= before
    assert done.compacted.tokens_after == memory.session_memory.token_count() < before
    ranges = [(s.first_operation, s.last_operation) for s in standing(memory)]
    assert ranges[0][0] == 1
    assert all(a[1] + 1 == b[0] for a, b in pairwise(ranges))
    entries = list(shown(memory).entries())
    assert entries[0] == ranges[-1][1] + 1
    assert entries == list(range(entries[0], entries[-1] + 1))
    assert list(shown(memory).summaries()) == [s.id for s in standing(memory)]


def test_a_decision_taken_back_is_marked_where_it_stands(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A superseded decision is marked in earlier summaries, and stays marked if the document is rewritten."""
    memory.record_operation("decision", {"decision": "We decided to use MySQL for the event log."})
    record_and_refresh(memory, clock, 18)
    assert "(superseded by K" not in text_of(memory)
    memory.record_operation("decision", {"decision": TAKEN_BACK})
    record_and_refresh(memory, clock, 4)
    line = next(line for line in text_of(memory).splitlines() if "MySQL for the event log" in line and "K1" in line)
    assert line.startswith("- Decision K1 (superseded by K")
    live(memory).unlink()
    record(memory, clock, 8)
    assert line in text_of(memory)


def test_a_pinned_entry_stays_and_is_compacted_once_it_is_unpinned(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """A pinned entry is not compacted; once unpinned, it is always either an entry or in a summary, never both."""
    record(memory, clock, 12)
    edit(memory, "(op 3)\n", f"(op 3)\n{PIN}\n")
    record_and_refresh(memory, clock, 60)
    assert shown(memory).entries()[3].pinned
    assert not any(s.first_operation <= 3 <= s.last_operation for s in standing(memory))
    edit(memory, f"(op 3)\n{PIN}\n", "(op 3)\n")
    for _ in range(5):
        memory.refresh()
        covering = [s for s in standing(memory) if s.first_operation <= 3 <= s.last_operation]
        assert (3 in shown(memory).entries()) != bool(covering)
        assert all(len(memory.expand(f"S{s.id}").operations) == s.operation_count for s in standing(memory))
        record(memory, clock, 20)
    ranges = [(s.first_operation, s.last_operation) for s in standing(memory)]
    assert all(a[1] < b[0] for a, b in pairwise(ranges))


def test_an_edited_entry_goes_into_its_summary_and_stays_as_a_version(
    memory: OrchestratorContextManager, clock: Clock, tmp_path: Path
) -> None:
    """The summary is made from a person's edit; the edited text is kept as a version, as private as the document."""
    record(memory, clock, 20)
    live(memory).chmod(0o600)
    words = "CORRECTION: the zebra module took 17 minutes, not the parser, and Grace confirmed it."
    lines = shown(memory).entries()[4].text.splitlines()
    edit(memory, lines[2], words)
    memory.refresh()
    assert 4 not in shown(memory).entries()
    versions = memory.episodic_memory.history(live(memory).stem)
    assert [(v.author, v.reason) for v in versions] == [(Author.PERSON, VersionReason.COMPACTION)]
    assert words in Path(versions[0].path).read_text(encoding="utf-8")
    assert Path(versions[0].path).stat().st_mode & 0o777 == 0o600
    assert words in kept_words(memory, tmp_path)
    assert "zebra" in next(
        s.text for s in memory.losses() if s.level == 1 and s.first_operation <= 4 <= s.last_operation
    )


@pytest.mark.parametrize("moment", [
    "judge.commit.after", "compaction.commit.before", "compaction.commit.after", "compact.write.before",
    "compact.fsync.after",
])  # fmt: skip
def test_an_entry_edited_while_it_is_being_compacted_is_not_lost(tmp_path: Path, clock: Clock, moment: str) -> None:
    """An edit saved at any step of a compaction stays in the document or in a version."""
    words = "SAVED AT THE LAST MOMENT"
    waiting = [moment]

    def point(name: str) -> None:
        if name in waiting:
            waiting.clear()
            path = next((tmp_path / ".obra/sessions").glob("session_*.md"))
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace("(op 4)\n", f"(op 4)\n{words}\n", 1), encoding="utf-8")

    with open_memory(tmp_path, config=CONFIG, clock=clock, write_point=point) as memory:
        record_and_refresh(memory, clock, 20)
        assert waiting == []
        assert words in kept_words(memory, tmp_path)


def test_a_persons_edit_of_a_summary_survives_its_merging(
    memory: OrchestratorContextManager, clock: Clock, tmp_path: Path
) -> None:
    """An edit of a summary stays in the document or in a version after the summary is merged."""
    record_and_refresh(memory, clock, 30)
    first = standing(memory)[0]
    edit(memory, summary_block(first), summary_block(first).rstrip("\n") + "\nThe ZEBRA case was closed by Grace.\n\n")
    for _ in range(6):
        record_and_refresh(memory, clock, 60)
    assert first.id not in {s.id for s in standing(memory)}
    assert "ZEBRA" in kept_words(memory, tmp_path)


def test_what_a_person_writes_into_a_summary_that_says_nothing_survives_its_merging(
    tmp_path: Path, clock: Clock
) -> None:
    """A merged summary is checked against the summaries as the document shows them, not as the machine wrote them."""
    config = {**CONFIG, "compaction": {"verbatim_floor_tokens": 100, "segment_tokens": 100, "fan_in": 2}}
    with open_memory(tmp_path, config=config, clock=clock) as memory:
        for _ in range(60):
            clock.now += timedelta(minutes=10)
            memory.record_operation("tick", {})
        record_and_refresh(memory, clock, 20)
        block = shown(memory).summaries()[1].text
        mine = (
            "The reactor of hall 7 was switched off by hand because the pump had leaked for two days. The lamps "
            "are green again. Hall 8 was never touched, and its doors stay shut until the end of May. "
            "A new pump was ordered from the shop in town, and Grace will fit it on Monday."
        )
        edit(memory, block.rstrip(), f"{block.rstrip()}\n\n{mine}")
        record_and_refresh(memory, clock, 120)
        first = memory.session_memory.ledger.summary(memory.session_memory.ledger.summary(1).parent)
        assert (first.level, "Hall 8 was never touched" in first.text) == (2, True)


def test_a_deleted_summary_and_a_deleted_entry_stay_deleted(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A deleted summary or entry does not come back, but its operations can still be expanded."""
    record_and_refresh(memory, clock, 30)
    first = standing(memory)[0]
    edit(memory, summary_block(first), "")
    gone = min(shown(memory).entries())
    edit(memory, shown(memory).entries()[gone].text, "")
    for _ in range(2):
        record_and_refresh(memory, clock, 10)
        assert first.id not in shown(memory).summaries()
        assert gone not in shown(memory).entries()
    assert memory.expand(f"op {gone}").operations[0].id == gone
    assert len(memory.expand(f"S{first.id}").operations) == first.operation_count


def test_a_persons_own_sections_stay_byte_for_byte(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Spills, compactions and merges leave a person's sections unchanged, byte for byte."""
    memory.record_operation("decision", {"decision": "We decided to use MySQL for the event log."})
    record(memory, clock, 20)
    path = live(memory)
    own = [each.encode() for each in cases("a_persons_own_section_stays_byte_for_byte")]
    for number, section in enumerate(own, 3):
        at = shown(memory).entries()[number].text.encode()
        path.write_bytes(path.read_bytes().replace(at, at + section))
    memory.record_operation("decision", {"decision": TAKEN_BACK})
    for _ in range(4):
        record_and_refresh(memory, clock, 40)
    assert [section for section in own if section not in path.read_bytes()] == []


def test_an_unclosed_fence_in_an_entry_takes_nothing_with_it(memory: OrchestratorContextManager, clock: Clock) -> None:
    """An unclosed fence in an entry does not swallow later entries or a person's section."""
    record(memory, clock, 20)
    edit(memory, "(op 2)\n", "(op 2)\n```\nunclosed\n")
    path = live(memory)
    path.write_text(text_of(memory) + "## Mine\n\nMY OWN SECTION\n", encoding="utf-8")
    record_and_refresh(memory, clock, 30)
    assert "MY OWN SECTION" in text_of(memory)
    covered = {n for s in standing(memory) for n in range(s.first_operation, s.last_operation + 1)}
    spilled = session_of(memory)
    assert covered | set(shown(memory).entries()) == set(range(1, spilled.spilled_through + 1))


def test_a_summary_copied_from_another_session_is_a_persons_own(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """A summary copied from another session is treated as a person's text and stays."""
    for _ in range(4):
        record_and_refresh(memory, clock, 60)
    merged = next(s for s in memory.losses() if s.parent)
    memory.flush_session()
    record(memory, clock, 20)
    copied = summary_block(merged)
    live(memory).write_text(text_of(memory) + copied, encoding="utf-8")
    record_and_refresh(memory, clock, 40)
    assert copied.strip() in text_of(memory)


def test_more_entries_than_are_remembered_are_all_read(tmp_path: Path) -> None:
    """In a document of 700 short entries, every summarised operation keeps its fact."""
    config = {"orchestrator": {"session_compression_threshold": 8_000, "auto_refresh_enabled": False}}
    with open_memory(tmp_path, config=config) as memory:
        for number in range(700):
            memory.record_operation(
                "message", {"speaker": "Ann", "text": f"We decided to use part{number} for job{number}."}
            )
        memory.refresh()
        assert memory.losses()[-1].last_operation > 512
        for summary in memory.losses():
            facts = [fact for fact in memory.facts(standing=False) if fact.id in summary.must_keeps]
            told = {fact.operation for fact in facts}
            assert told == set(range(summary.first_operation, summary.last_operation + 1))
