"""Blame: each line of a document names its writer, also after further edits, moves and restores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestra_mem.core.documents.blame import Writer
from tests.memories import edit, live
from tests.tiers.conftest import Desk

CONFIG = {
    "orchestrator": {"working_memory": {"max_operations": 2}},
    "compaction": {"verbatim_window_s": 0, "verbatim_floor_tokens": 0, "segment_tokens": 200},
}
MACHINE, PERSON = Writer.MACHINE, Writer.PERSON


@pytest.fixture
def desk(empty: Desk) -> Desk:
    """A memory whose work plan has two items by the machine."""
    empty.go_on("TODO: write the migration guide.", "TODO: rotate the signing keys.")
    return empty


def _writers(desk: Desk, *words: str, document: str = "work_plan") -> list[Writer]:
    lines = desk.memory.blame(document)
    return [next(line.origin.writer for line in lines if word in line.text) for word in words]


def test_a_machines_line_names_the_operation_it_comes_from(desk: Desk) -> None:
    """A machine's line names, through its fact number, the operation it comes from, and the time of writing."""
    (line,) = [line for line in desk.memory.blame("work_plan.md") if "migration guide" in line.text]
    assert (line.origin.writer, line.origin.operations) == (MACHINE, ((1, 1),))
    assert line.origin.time is not None
    assert desk.plan.text.splitlines()[line.line - 1] == line.text


def test_a_persons_lines_stay_theirs(desk: Desk) -> None:
    """A person's line stays theirs when the machine writes, adds a fact number, or a section moves."""
    desk.plan.edit(("## Backlog\n", "## Backlog\n\n- Ask Grace about the quota\n"))
    assert _writers(desk, "Grace", "signing keys") == [PERSON, MACHINE]
    desk.go_on("TODO: order a new disk.")
    assert _writers(desk, "Grace", "signing keys", "new disk") == [PERSON, MACHINE, MACHINE]
    head, _, rest = desk.plan.text.partition("## Immediate Next Steps")
    steps, _, others = rest.partition("## Backlog")
    desk.plan.save(f"{head}## Backlog{others.rstrip()}\n\n## Immediate Next Steps{steps}")
    assert _writers(desk, "Grace", "signing keys", "new disk") == [PERSON, MACHINE, MACHINE]


def test_a_restored_text_has_its_authors_again(desk: Desk) -> None:
    """Restoring a version restores the writers of its lines; the restorer is not their writer."""
    desk.plan.edit(("## Backlog\n", "## Backlog\n\nMine alone.\n"))
    desk.go_on("TODO: order a new disk.")
    version, text = desk.plan.versions()[-1]
    assert "Mine alone." in text
    desk.plan.edit(("Mine alone.\n", ""))
    desk.plan.restore(version.sequence)
    assert _writers(desk, "Mine alone", "signing keys") == [PERSON, MACHINE]


def test_the_live_session_tells_agents_compactor_and_persons_apart(empty: Desk) -> None:
    """An entry is by its agent, a summary by the compactor, and a line edited in an entry by a person."""
    for number in range(40):
        empty.clock.now += timedelta(minutes=2)
        empty.memory.record_operation("message", {"text": f"Part {number} of the parser was moved to module {number}."})
    empty.memory.refresh()
    empty.clock.now += timedelta(minutes=2)
    for number in range(3):
        empty.memory.record_operation("message", {"text": f"The kiln number {number} cracked."})
    edit(live(empty.memory), ("The kiln number 0 cracked.", "The kiln was fine."))
    words = ("Summary S1", "(op 41)", "kiln was fine", "**Session ID**")
    expected = [Writer.COMPACTOR, Writer.AGENT, PERSON, MACHINE]
    assert _writers(empty, *words, document="session") == expected
