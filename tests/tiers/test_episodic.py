"""Episodic memory: earlier texts are kept, people's edits survive the machine's writes, and conflicts are shown."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.damage import unchangeable
from orchestra_mem.core.documents.episodic import ProjectView, render_document
from orchestra_mem.types import Author, DocumentName, MustKeep, MustKeepKind, VersionReason
from tests.builders import cases
from tests.conftest import Clock
from tests.memories import machine_writes
from tests.tiers.conftest import Desk

CONFIG = {"orchestrator": {"keep_versions": 3}}
START = datetime(2025, 1, 15, 10, tzinfo=UTC)
PLAN, LOG, STATE = DocumentName.WORK_PLAN, DocumentName.DECISION_LOG, DocumentName.PROJECT_STATE
COUNTER = open_counter("tiktoken")


class Shelf(Desk):
    """The documents of a memory, which the machine and a person write in turn."""

    def machine(self, text: str, name: DocumentName = PLAN) -> None:
        """Write a text as the machine."""
        machine_writes(self.memory, {name: text})

    def refresh(self, known: ProjectView) -> None:
        """Write all documents as the machine."""
        machine_writes(self.memory, {name: render_document(name, known) for name in DocumentName})


@pytest.fixture
def shelf(memory: OrchestratorContextManager, clock: Clock) -> Shelf:
    """The documents of a new memory."""
    return Shelf(memory, clock)


def view(facts: list[MustKeep], *, size: int = 2_000) -> ProjectView:
    """A view of a project with these facts."""
    kinds = {kind: [f for f in facts if f.kind is kind] for kind in MustKeepKind}
    return ProjectView(
        project="demo", updated=START, session="s", size_tokens=size, operations=len(facts), sessions=1, facts=kinds,
        counts={kind: len(found) for kind, found in kinds.items()},
    )  # fmt: skip


def test_old_versions_of_the_machine_go_and_a_persons_stay(shelf: Shelf) -> None:
    """`keep_versions` limits the machine's versions; a person's versions are kept without limit."""
    for number in range(8):
        shelf.machine(f"machine {number}\nfoot\n")
        shelf.plan.save(shelf.plan.text + f"person {number}\n")
        shelf.machine(f"machine {number} again\nfoot\n")
        shelf.machine(f"machine {number} at last\nfoot\n")
    authors = [version.author for version, _ in shelf.plan.versions()]
    assert authors.count(Author.PERSON) == 8
    assert authors.count(Author.MACHINE) == 3
    texts = "".join(text for version, text in shelf.plan.versions() if version.author is Author.PERSON)
    assert all(f"person {number}\n" in texts for number in range(8))


TEXT = st.text() | st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape"))
# Data that is no text, such as UTF-16 or with NULs in it, is never changed by the machine.
SAVED = TEXT.filter(
    lambda text: (
        not any("\ud800" <= c <= "\udc7f" or (c > "\udcff" and c <= "\udfff") for c in text)
        and unchangeable(text.encode("utf-8", "surrogateescape")) is None
    )
)


@given(st.lists(SAVED, min_size=1, max_size=3))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_restoring_what_was_saved_gives_it_back_byte_for_byte(shelf: Shelf, clock: Clock, texts: list[str]) -> None:
    """Restoring a version restores its bytes, and keeps the replaced text as a new version."""
    for number, text in enumerate(texts):
        shelf.machine(f"machine {clock.now} {number}\n")
        shelf.plan.save(text)
        clock.now += timedelta(seconds=1)
        shelf.machine(f"machine {clock.now} {number} again\n")
        if shelf.plan.text == text:
            continue
        version = next(each for each, _ in reversed(shelf.plan.versions()) if each.author is Author.PERSON)
        before = shelf.plan.text
        kept = shelf.plan.restore(version.sequence)
        assert shelf.plan.text == text
        assert (kept.reason, shelf.plan.versions()[-1]) == (VersionReason.RESTORE, (kept, before))
        assert shelf.plan.restore(kept.sequence).sequence
        assert shelf.plan.text == before


def test_a_document_that_a_person_had_before_keeps_its_text(tmp_path: Path) -> None:
    """The machine's text is appended to a document that existed before, and the old text is kept as a version."""
    path = tmp_path / ".obra" / "memory" / "work_plan.md"
    path.parent.mkdir(parents=True)
    path.write_text("# My plan\n\nStep one.")
    with open_memory(tmp_path) as memory:
        shelf = Shelf(memory, Clock())
        shelf.machine("---\nformat: 1\n---\n\n# Work Plan\n")
        assert shelf.plan.text == "# My plan\n\nStep one.\n\n# Work Plan\n"
        ((version, text),) = shelf.plan.versions()
        assert (version.author, version.reason, text) == (
            Author.PERSON,
            VersionReason.REFRESH,
            "# My plan\n\nStep one.",
        )


@pytest.mark.parametrize("budget", [0, 10, 100, 1_000])
def test_what_is_read_out_fits(shelf: Shelf, budget: int) -> None:
    """Documents and decisions fit the token budget, and the newest decisions are chosen."""
    facts = [
        MustKeep(id=n, kind=MustKeepKind.DECISION, text=f"Use part {n}.", operation=n, timestamp=START)
        for n in range(1, 31)
    ]
    shelf.refresh(view(facts))
    assert COUNTER.count(shelf.memory.episodic_memory.get_project_state(budget)) <= budget
    assert COUNTER.count(shelf.memory.episodic_memory.get_work_plan(budget)) <= budget
    decisions = shelf.memory.episodic_memory.get_recent_decisions(budget)
    assert COUNTER.count("\n".join(decisions)) <= budget
    assert decisions == [f"### [2025-01-15 10:00:00] Use part {n}. (K{n})" for n in range(31 - len(decisions), 31)]
    assert bool(decisions) is (budget >= 100)


def test_lines_are_found_with_their_document(shelf: Shelf) -> None:
    """Search ignores case and front matter, and returns each line with its document."""
    facts = [MustKeep(id=1, kind=MustKeepKind.CONSTRAINT, text="Never on Fridays.", operation=1, timestamp=START)]
    shelf.refresh(view(facts))
    memory = shelf.memory.episodic_memory
    assert memory.search("FRIDAYS") == ["[project_state.md] - Never on Fridays. (K1)"]
    assert memory.search("format: 1") == []
    assert memory.search("e", max_results=2) == memory.search("e", max_results=9)[:2]


def _sectioned(blockers: str, steps: str = "- None\n") -> str:
    return f"---\nformat: 1\n---\n\n# Plan\n\n## Blockers\n\n{blockers}\n## Next Steps\n\n{steps}"


@pytest.mark.parametrize(
    ("earlier", "later", "then", "expected"), cases("a_section_says_that_it_is_empty_where_it_is_and_nowhere_else")
)
def test_a_section_says_that_it_is_empty_where_it_is_and_nowhere_else(
    shelf: Shelf, earlier: str, later: str, then: str, expected: str
) -> None:
    """Exactly the empty sections say `- None`, also after a restore, and that line never causes a conflict."""
    shelf.machine(_sectioned(earlier))
    shelf.machine(_sectioned(later))
    shelf.plan.restore(shelf.plan.versions()[-1][0].sequence)
    shelf.machine(_sectioned(then, "- more\n"))
    assert shelf.plan.text == _sectioned(expected, "- more\n")
    assert shelf.problems() == "[]"


def test_what_a_person_says_of_an_empty_section_stands(shelf: Shelf) -> None:
    """A person can delete the `- None` of a section, or use it in own sections, and the machine leaves both."""
    shelf.machine(_sectioned("- None\n"))
    own = "\n## Mine\n\n- None\n- yet\n\n## Also Mine\n\n- None"
    shelf.plan.save(_sectioned("") + own)
    shelf.machine(_sectioned("- None\n", "- more\n"))
    assert shelf.plan.text == _sectioned("", "- more\n") + own
    shelf.machine(_sectioned("- one\n", "- more\n"))
    assert shelf.plan.text == _sectioned("- one\n", "- more\n") + own


def test_a_section_that_is_emptied_says_so_in_the_documents_line_ends(shelf: Shelf) -> None:
    """Emptying a section of a document with CRLF line ends keeps CRLF throughout."""
    shelf.machine(_sectioned("- one\n"))
    shelf.plan.save(_sectioned("- one\n", "- None\n- mine\n").replace("\n", "\r\n"))
    shelf.machine(_sectioned("- None\n", "- None\n"))
    assert shelf.plan.text == _sectioned("- None\n", "- mine\n").replace("\n", "\r\n")


def test_a_refresh_waits_for_the_disk_once_for_each_file_and_each_folder(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh calls fsync once per file and folder that it changes, and not at all if nothing changes."""
    flushed: list[str] = []
    fsync = os.fsync

    def counting(descriptor: int) -> None:
        flushed.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", counting)

    def facts(number: int) -> list[MustKeep]:
        return [
            MustKeep(id=number, kind=kind, text=f"Part {number} is next.", operation=1, timestamp=START)
            for kind in (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT, MustKeepKind.OPEN_ITEM)
        ]

    for number in (1, 2):
        shelf.refresh(view(facts(number)))
        assert (flushed.count("file"), flushed.count("folder")) == (6, 2), "three documents and their versions"
        flushed.clear()
    before = shelf.memory.episodic_memory.states()
    shelf.refresh(view(facts(2)))
    assert flushed == []
    assert shelf.memory.episodic_memory.states() == before


def test_a_document_in_which_only_the_time_would_change_is_not_written(shelf: Shelf) -> None:
    """A document is not rewritten for its time alone, even if a conflict with the machine is open."""
    shelf.machine("updated: 1\na\nb\nc\n")
    shelf.plan.save("updated: 1\na\nmine\nc\n")
    shelf.machine("updated: 2\na\nB\nc\n")
    before = shelf.memory.episodic_memory.states()
    shelf.machine("updated: 3\na\nB\nc\n")
    assert shelf.memory.episodic_memory.states() == before
    assert without_conflicts(shelf.plan.text) == "updated: 2\na\nmine\nc\n"


def test_a_conflict_outlives_the_save_of_an_older_text(shelf: Shelf) -> None:
    """Saving a text from before a conflict keeps the block of the conflict, below the same line."""
    shelf.machine("updated: 1\na\nb\nc\n")
    shelf.plan.save("updated: 1\na\nmine\nc\n")
    shelf.machine("updated: 2\na\nB\nc\n")
    marked = shelf.plan.text
    shelf.plan.save("updated: 1\na\nmine\nc\nnote\n")
    shelf.machine("updated: 3\na\nB\nc\n")
    assert shelf.plan.text == marked.replace("updated: 2", "updated: 3") + "note\n"


def _counted(count: int, session: str) -> str:
    """Return a project state as the machine writes it at minute `count`."""
    facts = [MustKeep(id=1, kind=MustKeepKind.CONSTRAINT, text=f"Rule {count}.", operation=1, timestamp=START)]
    now = START + timedelta(minutes=count)
    return render_document(STATE, replace(view(facts), updated=now, session=session, operations=count))


def test_what_looks_like_the_machines_counts_in_a_persons_section_is_theirs(shelf: Shelf) -> None:
    """Times and counts are updated only in the machine's header and statistics, not in a person's section."""
    first, second = "11111111-2222-4333-8444-555555555555", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
    own = (
        "\n## Load Test of March\n\n**Last Updated**: 2024-03-01 09:00:00 UTC\n**Session**: afternoon, with Ann\n"
        "- **Operations**: 90,000\n- **Sessions**: 250\nupdated: the numbers above are from the new server\n"
    )
    shelf.machine(_counted(1, first), STATE)
    shelf.state.save(shelf.state.text + own)
    shelf.machine(_counted(2, second), STATE)
    assert shelf.state.text == _counted(2, second) + own


def test_a_persons_words_in_the_place_of_a_time_or_count_stand(shelf: Shelf) -> None:
    """Words in place of a time or count stay without a conflict; a count replaced by a number is updated again."""
    first, second = "11111111-2222-4333-8444-555555555555", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
    ours = [f"**Session**: {first}", "- **Operations**: 1\n", "updated: 2025-01-15T10:01:00.000+00:00", "Sessions**: 1"]
    said = ["**Session**: my note", "- **Operations**: many\n", "updated: yesterday", "Sessions**: 7"]
    edited = _counted(1, first)
    for before, now in zip(ours, said, strict=True):
        assert edited.count(before) == 1
        edited = edited.replace(before, now)
    shelf.machine(_counted(1, first), STATE)
    shelf.state.save(edited)
    shelf.machine(_counted(2, second), STATE)
    expected = _counted(2, second).replace(second, "my note").replace("- **Operations**: 2\n", said[1])
    assert shelf.state.text == expected


@pytest.mark.parametrize("heading", ["## In Numbers", "# Statistics"])
def test_statistics_that_a_person_renamed_are_counted_on(shelf: Shelf, heading: str) -> None:
    """Statistics are updated under a renamed heading and next to a person's line."""
    session = "11111111-2222-4333-8444-555555555555"
    shelf.machine(_counted(1, session), STATE)
    mine = ("## Statistics", heading), ("- **Sessions**: 1\n", "- **Sessions**: 1\n- **Tea**: 5\n")
    shelf.state.save(shelf.state.text.replace(*mine[0]).replace(*mine[1]))
    shelf.machine(_counted(2, session), STATE)
    assert shelf.state.text == _counted(2, session).replace(*mine[0]).replace(*mine[1])


def test_one_document_that_is_saved_meanwhile_keeps_no_other_from_being_written(tmp_path: Path) -> None:
    """A document saved during a refresh is merged, the others are written, and versions are stored before renames."""
    saving: list[str] = []
    points: list[str] = []

    def point(name: str) -> None:
        points.append(name)
        if name in saving:
            saving.clear()
            opened.state.save(opened.state.text.replace("## Blockers\n\n- None", "## Blockers\n\n- Mine"))

    with open_memory(tmp_path, write_point=point) as memory:
        opened = Shelf(memory, Clock())
        opened.refresh(view([]))
        points.clear()
        saving.append("document.fsync.after")
        kinds = MustKeepKind.DECISION, MustKeepKind.CONSTRAINT, MustKeepKind.OPEN_ITEM
        facts = [
            MustKeep(id=number, kind=kind, text=f"Part {number}.", operation=1, timestamp=START)
            for number, kind in enumerate(kinds, 1)
        ]
        opened.refresh(view(facts))
        assert saving == []
        assert "- Mine\n" in opened.state.text
        assert "- Part 2. (K2)" in opened.state.text
        assert "- Part 3. (K3)\n" in opened.plan.text
        assert "Part 1. (K1)" in opened.log.text
        assert points.index("version.folder-fsync.after") < points.index("document.rename.before")
        assert opened.state.versions()[-1][0].author is Author.PERSON
