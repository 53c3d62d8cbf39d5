"""Blame: each line of a document names who wrote it, also after further edits, moves and restores."""

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
    """A memory whose work plan has two items of the machine's."""
    empty.go_on("TODO: write the migration guide.", "TODO: rotate the signing keys.")
    return empty


def _writers(desk: Desk, *words: str, document: str = "work_plan") -> list[Writer]:
    lines = desk.memory.blame(document)
    return [next(line.origin.writer for line in lines if word in line.text) for word in words]


def test_a_machines_line_names_the_operation_it_comes_from(desk: Desk) -> None:
    """By the number that the line bears, through the ledger; with the time at which the line was written."""
    (line,) = [line for line in desk.memory.blame("work_plan.md") if "migration guide" in line.text]
    assert (line.origin.writer, line.origin.operations) == (MACHINE, ((1, 1),))
    assert line.origin.time is not None
    assert desk.plan.text.splitlines()[line.line - 1] == line.text


def test_a_persons_lines_stay_theirs(desk: Desk) -> None:
    """Through the machine's next writes, the number that is put behind one, and a section that moves."""
    desk.plan.edit(("## Backlog\n", "## Backlog\n\n- Ask Grace about the quota\n"))
    assert _writers(desk, "Grace", "signing keys") == [PERSON, MACHINE]
    desk.go_on("TODO: order a new disk.")
    assert _writers(desk, "Grace", "signing keys", "new disk") == [PERSON, MACHINE, MACHINE]
    head, _, rest = desk.plan.text.partition("## Immediate Next Steps")
    steps, _, others = rest.partition("## Backlog")
    desk.plan.save(f"{head}## Backlog{others.rstrip()}\n\n## Immediate Next Steps{steps}")
    assert _writers(desk, "Grace", "signing keys", "new disk") == [PERSON, MACHINE, MACHINE]


def test_a_restored_text_has_its_authors_again(desk: Desk) -> None:
    """Who puts an earlier text back has not written it."""
    desk.plan.edit(("## Backlog\n", "## Backlog\n\nMine alone.\n"))
    desk.go_on("TODO: order a new disk.")
    version, text = desk.plan.versions()[-1]
    assert "Mine alone." in text
    desk.plan.edit(("Mine alone.\n", ""))
    desk.plan.restore(version.sequence)
    assert _writers(desk, "Mine alone", "signing keys") == [PERSON, MACHINE]


def test_the_live_session_tells_agents_compactor_and_persons_apart(empty: Desk) -> None:
    """An entry is its operation's agent's, a summary the compactor's, and what was changed in it a person's."""
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
