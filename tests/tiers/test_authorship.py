"""Blame: each line of a document names who wrote it, also after further edits, moves and restores."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.blame import Writer
from orchestra_mem.types import DocumentName
from tests.conftest import Clock
from tests.memories import edit, live, say

CONFIG = {"orchestrator": {"working_memory": {"max_operations": 2}}}
PLAN = DocumentName.WORK_PLAN


@pytest.fixture
def memory(memory: OrchestratorContextManager, clock: Clock) -> OrchestratorContextManager:
    """A memory whose work plan has two items of the machine's."""
    _go_on(memory, clock, "TODO: write the migration guide.", "TODO: rotate the signing keys.")
    return memory


def _go_on(memory: OrchestratorContextManager, clock: Clock, *texts: str) -> None:
    say(memory, clock, *texts, "Tea was had.", "It rained.", agent="planner")


def _edit(memory: OrchestratorContextManager, old: str, new: str) -> None:
    edit(memory.episodic_memory.path(PLAN), (old, new))


def _writers(memory: OrchestratorContextManager, *words: str, document: str = "work_plan") -> list[Writer]:
    lines = memory.blame(document)
    return [next(line.origin.writer for line in lines if word in line.text) for word in words]


def test_a_machines_line_names_the_operation_it_comes_from(memory: OrchestratorContextManager) -> None:
    """By the number that the line bears, through the ledger; with the time at which the line was written."""
    (line,) = [line for line in memory.blame("work_plan.md") if "migration guide" in line.text]
    assert (line.origin.writer, line.origin.operations) == (Writer.MACHINE, ((1, 1),))
    assert line.origin.time is not None
    text = memory.episodic_memory.path(PLAN).read_text(encoding="utf-8").splitlines()
    assert text[line.line - 1] == line.text


def test_a_persons_lines_stay_theirs(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Through the machine's next writes, the number that is put behind one, and a section that moves."""
    _edit(memory, "## Backlog\n", "## Backlog\n\n- Ask Grace about the quota\n")
    assert _writers(memory, "Grace", "signing keys") == [Writer.PERSON, Writer.MACHINE]
    _go_on(memory, clock, "TODO: order a new disk.")
    assert _writers(memory, "Grace", "signing keys", "new disk") == [Writer.PERSON, Writer.MACHINE, Writer.MACHINE]
    path = memory.episodic_memory.path(PLAN)
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition("## Immediate Next Steps")
    steps, _, others = rest.partition("## Backlog")
    path.write_text(f"{head}## Backlog{others.rstrip()}\n\n## Immediate Next Steps{steps}", encoding="utf-8")
    assert _writers(memory, "Grace", "signing keys", "new disk") == [Writer.PERSON, Writer.MACHINE, Writer.MACHINE]


def test_a_restored_text_has_its_authors_again(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Who puts an earlier text back has not written it."""
    _edit(memory, "## Backlog\n", "## Backlog\n\nMine alone.\n")
    _go_on(memory, clock, "TODO: order a new disk.")
    version = memory.episodic_memory.history("work_plan")[-1]
    assert "Mine alone." in Path(version.path).read_text(encoding="utf-8")
    _edit(memory, "Mine alone.\n", "")
    memory.episodic_memory.restore("work_plan", version.sequence)
    assert _writers(memory, "Mine alone", "signing keys") == [Writer.PERSON, Writer.MACHINE]


def test_the_live_session_tells_agents_compactor_and_persons_apart(tmp_path: Path, clock: Clock) -> None:
    """An entry is its operation's agent's, a summary the compactor's, and what was changed in it a person's."""
    config = {**CONFIG, "compaction": {"verbatim_window_s": 0, "verbatim_floor_tokens": 0, "segment_tokens": 200}}
    with open_memory(tmp_path, config=config, clock=clock) as memory:
        for number in range(40):
            clock.now += timedelta(minutes=2)
            memory.record_operation("message", {"text": f"Part {number} of the parser was moved to module {number}."})
        memory.refresh()
        clock.now += timedelta(minutes=2)
        for number in range(3):
            memory.record_operation("message", {"text": f"The kiln number {number} cracked."})
        path = live(memory)
        text = path.read_text(encoding="utf-8")
        assert "Summary S1" in text
        path.write_text(text.replace("The kiln number 0 cracked.", "The kiln was fine."), encoding="utf-8")
        words = ("Summary S1", "(op 41)", "kiln was fine", "**Session ID**")
        assert _writers(memory, *words, document="session") == [
            Writer.COMPACTOR,
            Writer.AGENT,
            Writer.PERSON,
            Writer.MACHINE,
        ]
