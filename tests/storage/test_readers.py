"""A user who may only read a memory on a server reads its documents there, and has no copies of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from orchestra_mem import NotFoundError, OrchestratorContextManager, StorageReadOnlyError
from orchestra_mem.build import initialise
from orchestra_mem.doctor.backups import make_backup, restore_backup
from orchestra_mem.doctor.documents import check_documents
from orchestra_mem.doctor.memory import Health, diagnose
from tests.faces.conftest import Program
from tests.memories import problems_of, work
from tests.storage.conftest import Machine
from tests.timing import until


def said(memory: OrchestratorContextManager) -> list[str]:
    """Return contexts of several sizes, with and without a question."""
    asked = [("answer", 500, None), ("plan", 2_000, None), ("answer", 8_000, "bread on Tuesdays")]
    return [memory.get_orchestrator_context(what, size, query=query).render() for what, size, query in asked]


def is_there(memory: OrchestratorContextManager, document: str) -> bool:
    """Check whether a document of a session can be expanded."""
    with suppress(NotFoundError):
        memory.expand(f"{document}:1")
        return True
    return False


def test_a_reader_gets_the_contexts_that_the_owner_gets(laptop: Machine, reader: Machine) -> None:
    """Contexts equal the owner's byte for byte, whatever is in the reader's own folder; histories are equal too."""
    with laptop.open() as owner:
        work(owner, 60)
        owner.flush_session()
        laptop.edit("## Decisions", "## Notes\n\nThe oven door is blue.\n\n## Decisions")
        owner.catalog.store({"content": "Flour comes from Ulm.", "type": "insight", "ci_source": "baker"})
        work(owner, 20)
        owner.refresh()
    (memory := reader.project / ".obra" / "memory").mkdir(parents=True)
    (memory / "decision_log.md").write_text("# Something else\n\nAn old copy.\n", "utf-8")
    with laptop.open() as owner, reader.open() as other:
        assert said(other) == said(owner)
        for name in owner.documents.names():
            assert other.documents.text(name) == owner.documents.text(name) != ""
            both = [[each.sequence for each in memory.documents.history(name)] for memory in (owner, other)]
            assert both[0] == both[1]
        first = owner.documents.history("decision_log")[0].sequence
        assert other.documents.diff("decision_log", first) == owner.documents.diff("decision_log", first) != ""
    assert [path.name for path in memory.iterdir()] == ["decision_log.md"]


def test_a_reader_sees_what_the_owner_changes_later(laptop: Machine, reader: Machine) -> None:
    """What the owner saves, or a session's end, is in the open reader's documents, contexts and hits within 2 s."""
    with laptop.open() as owner, reader.open() as other:
        laptop.edit("## Decisions", "## Notes\n\nThe oven door is blue.\n\n## Decisions")
        until(lambda: "door is blue" in other.get_orchestrator_context("x").render(), within_s=2.0)
        hit = other.search("which colour has the oven door?").hits[0].chunk
        assert (hit.source, "door is blue" in hit.text) == ("decision_log.md", True)
        owner.record_operation("note", {"text": "The yeast is fresh."})
        path = owner.flush_session()
        assert path is not None
        until(lambda: is_there(other, path.name), within_s=2.0)


def test_a_reader_is_refused_every_change_in_words(laptop: Machine, reader: Machine) -> None:
    """A reader's changes of documents are refused with the reason, and change nothing on the server."""
    before = laptop.files()
    with reader.open() as other:
        text = other.documents.text("decision_log")
        number = other.documents.history("decision_log")[0].sequence
        for change in (
            lambda: other.documents.save("decision_log", "Mine.", expected=text),
            lambda: other.documents.restore("decision_log", number),
            lambda: other.record_operation("note", {"text": "Not here."}),
        ):
            with pytest.raises(StorageReadOnlyError, match="this memory is read-only"):
                change()
        (problem,) = problems_of(other)
        assert "documents are read from there: edits in this folder are not read; grant INSERT" in problem["problem"]
    laptop.open().close()
    assert laptop.files() == before
    reader.write_settings()
    run = Program(reader.project)
    run("edit", "-C", reader.project, "decision_log", exit_code=4)
    assert "decision_log.md is on the server, and this user may only read it there" in run.errors


def test_doctor_and_check_find_no_copies_missing_at_a_reader(laptop: Machine, reader: Machine) -> None:
    """A reader's folder has no copies of documents: `init` names none, and that is no fault."""
    with laptop.open() as owner:
        owner.flush_session()
    reader.write_settings()
    assert [name for name in initialise(reader.project).made if name.startswith(".obra/memory/")] == []
    assert check_documents(reader.project, reader.settings()) == []
    findings = diagnose(reader.project)
    assert [each for each in findings if each.health is Health.FAULT] == []
    assert [
        each.words for each in findings if each.part in ("versions", "sessions") and each.health is Health.NOTE
    ] == []


def test_a_readers_backup_has_the_documents_of_the_server(laptop: Machine, reader: Machine, tmp_path: Path) -> None:
    """A reader's backup restores to the owner's memory: the same rows, and each document as the owner has it."""
    with laptop.open() as owner:
        work(owner, 60)
        owner.flush_session()
        owner.refresh()
    (old := reader.project / ".obra" / "memory" / "versions").mkdir(parents=True)
    (old / "an old copy.md").write_text("An old copy.", "utf-8")
    rows = []
    for machine in (laptop, reader):
        machine.write_settings()
        backup = make_backup(
            machine.project,
            machine.settings(),
            tmp_path / f"{machine.project.parent.name} backup",
            on_table=lambda *_: None,
        )
        rows.append((backup.rows, backup.digest))
    assert rows[0] == rows[1]
    restored = Machine(tmp_path / "restored", {})
    restored.project.mkdir()
    restore_backup(tmp_path / "reader backup", restored.project, replace=False)
    assert restored.files() == laptop.files()
