"""Promise 3: the machine's text is merged with people's edits; where both changed a line, the person's version wins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager
from orchestra_mem.work_types import WorkKind
from tests.memories import edit, work
from tests.promises.conftest import Open, documents


def _save(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def project(memory: OrchestratorContextManager, tmp_path: Path) -> Path:
    """A project whose three documents have content written by the machine."""
    epic = memory.state.create(WorkKind.EPIC, "Sign in")
    memory.state.create(WorkKind.STORY, "Login form", parent=epic.id)
    work(memory, 40)
    memory.refresh()
    return tmp_path


def test_lines_of_a_person_stand_through_all_that_follows(
    memory: OrchestratorContextManager, project: Path, open_project: Open
) -> None:
    """Lines that a person adds to a document stay, byte for byte, through records, refreshes and new sessions."""
    for path in documents(project):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        middle = max(at for at, line in enumerate(lines) if line.startswith("## ")) + 1
        lines[middle:middle] = ["\n", "A line in the middle, by Ada.\n"]
        _save(path, "".join(lines) + "\n## Ada's notes\n\nThe  odd   spacing stays.\t\n")
    for first in (100, 200, 300):
        work(memory, 40, first)
        memory.refresh()
    memory.flush_session()
    memory.close()
    with open_project() as again:
        work(again, 40, 400)
        again.flush_session()
    for path in documents(project):
        text = path.read_text(encoding="utf-8")
        assert text.count("A line in the middle, by Ada.") == 1, path.name
        assert text.count("\nThe  odd   spacing stays.\t\n") == 1, path.name


def test_a_fact_that_a_person_rewords_or_deletes_stays_so(memory: OrchestratorContextManager, project: Path) -> None:
    """A fact reworded in the document is shown in the new words; a deleted one does not return with a refresh."""
    log = documents(project)[2]
    edit(log, ("keep batch 3 of the mail queue in table t3", "keep batch 3 of the mail queue in REDIS"))
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    _save(log, "".join(line for line in lines if "table t14." not in line))
    work(memory, 60, 100)
    memory.refresh()
    text, context = log.read_text(encoding="utf-8"), memory.get_orchestrator_context("next prompt").render()
    assert "mail queue in REDIS" in text
    assert "mail queue in REDIS" in context
    assert text.count("keep batch 3 of the mail queue") == 1
    assert "table t14." not in text + context
    assert any("REDIS" in fact.text for fact in memory.facts())
    assert not any("table t14." in fact.text for fact in memory.facts())


def test_an_old_text_with_a_time_of_its_editors_takes_out_nothing_that_came_since(
    memory: OrchestratorContextManager, project: Path
) -> None:
    """A decision recorded while the file was missing stays when the old, editor-stamped text is saved again."""
    log = documents(project)[2]
    for table in ("t3.", "t14.", "t25."):
        edit(log, (f"in table {table}", f"in the old table {table}"))
    entries = "".join(f"### Use lamp {number} in the hall\n\nIt is warm.\n\n" for number in range(6))
    edit(log, ("## Decisions\n\n", f"## Decisions\n\n{entries}"))
    stamped = re.sub("^updated: .*$", "updated: 2025-03-01T09:30", log.read_text(encoding="utf-8"), flags=re.M)
    _save(log, stamped)
    memory.get_orchestrator_context("next prompt")
    log.unlink()
    memory.record_operation("decision", {"text": "We decided to ship the parser on Monday."})
    memory.refresh()
    _save(log, stamped.replace("Use lamp 3", "Use lamp 33"))
    memory.refresh()
    memory.refresh()
    text = log.read_text(encoding="utf-8")
    assert "ship the parser on Monday" in text
    assert text.count("in the old table") == 3
    assert "Use lamp 33" in text
    assert "Use lamp 3 " not in text


def test_an_entry_stands_whose_explanation_is_taken_out_while_the_file_was_away(
    memory: OrchestratorContextManager, project: Path
) -> None:
    """A person's entry stays when its explanation is deleted from a saved copy of a file that was missing meanwhile."""
    log = documents(project)[2]
    entry = "### Use the old lamp\n\nBecause it is warm.\n\n"
    edit(log, ("## Decisions\n\n", f"## Decisions\n\n{entry}"))
    memory.refresh()
    saved = log.read_text(encoding="utf-8")
    log.unlink()
    work(memory, 5, 500)
    memory.refresh()
    _save(log, saved.replace("Because it is warm.\n", ""))
    memory.refresh()
    text = log.read_text(encoding="utf-8")
    assert "### Use the old lamp" in text
    assert "Because it is warm" not in text


@pytest.mark.parametrize("away", [True, False])
@pytest.mark.parametrize("old", [True, False])
def test_an_undo_is_heard_whose_file_was_empty_or_away_when_the_machine_wrote(
    memory: OrchestratorContextManager, project: Path, away: bool, old: bool
) -> None:
    """An undo is applied even if the file was empty or missing when the machine last wrote.

    This also holds if the editor opened the file before the machine's last write.
    """
    log = documents(project)[2]
    edit(log, ("the mail queue in table t3", "the mail queue in REDIS"))
    memory.refresh()
    first = f"{log.read_text(encoding='utf-8')}\n## Mine\n\nA note.\n"
    _save(log, first)
    memory.get_orchestrator_context("next prompt")
    if old:
        memory.record_operation("decision", {"text": "We decided to bake the bread at night."})
        memory.refresh()
    _save(log, first.replace("the mail queue in REDIS", "the mail queue in KAFKA"))
    memory.get_orchestrator_context("next prompt")
    log.unlink() if away else _save(log, "")
    work(memory, 5, 500)
    memory.refresh()
    assert "KAFKA" in log.read_text(encoding="utf-8")
    _save(log, f"{first}Another note.\n")
    memory.refresh()
    memory.refresh()
    text = log.read_text(encoding="utf-8")
    assert "the mail queue in REDIS" in text
    assert "KAFKA" not in text


def test_every_text_that_is_replaced_is_kept(memory: OrchestratorContextManager, project: Path) -> None:
    """Every text of a document that a person saved is its current text or one of its versions after a refresh."""
    state = documents(project)[0]
    for number in range(3):
        _save(state, state.read_text(encoding="utf-8") + f"\nNote {number} by Ada.\n")
        saved = state.read_text(encoding="utf-8")
        work(memory, 30, 100 * number + 100)
        memory.refresh()
        versions = [path.read_text(encoding="utf-8") for path in state.parent.glob("versions/project_state*")]
        assert saved in [*versions, state.read_text(encoding="utf-8")]
