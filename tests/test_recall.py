"""Going back to the originals: word for word, by every name that a summary or a document gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.errors import NotFoundError
from tests.builders import cases

START = datetime(2025, 1, 15, 10, tzinfo=UTC)
SMALL = {
    "orchestrator": {
        "context_window": {"max_tokens": 4_096},
        "working_memory": {"max_operations": 6},
        "session_compression_threshold": 1_200,
    },
    "compaction": {"verbatim_floor_tokens": 100, "segment_tokens": 200, "fan_in": 3},
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrchestratorContextManager]:
    """A memory with two sessions, in which summaries of several levels stand; the tests only read it."""
    now = [START]
    with open_memory(tmp_path_factory.mktemp("recall"), config=SMALL, clock=lambda: now[0]) as opened:
        for session in range(2):
            for number in range(150):
                now[0] += timedelta(minutes=15)
                odd = "\x00\ud800" if number == 77 else ""
                text = f"Part p{session}_{number} took {number + 20} ms in src/f_{number}.py.{odd}"
                opened.record_operation("step", {"n": number, "text": text})
            opened.record_operation(
                "decision", {"decision": f"We decided to use store {session} because it is embedded."}
            )
            opened.refresh()
            if session == 0:
                opened.flush_session()
        yield opened


def test_a_summary_and_an_operation_are_named_in_any_of_these_ways(memory: OrchestratorContextManager) -> None:
    """As headings and the command line write it; a mere number is a summary's."""
    for summary in ("S1", "s1", " S 1 ", "1", 1):
        assert memory.expand(summary).reference == "S1"
    for operation in ("op 2", "op2", "OP 2", "O2", "#2"):
        assert [op.id for op in memory.expand(operation).operations] == [2]


@pytest.mark.parametrize(("reference", "message"), cases("what_names_nothing_is_told"))
def test_what_names_nothing_is_told(memory: OrchestratorContextManager, reference: str | int, message: str) -> None:
    """In words that say what would."""
    with pytest.raises(NotFoundError) as caught:
        memory.expand(reference)
    assert str(caught.value) == message


def test_losses_are_of_one_session_or_of_all(memory: OrchestratorContextManager) -> None:
    """A session may be named by the beginning of its id."""
    first, second = memory.sessions()
    both = memory.losses()
    assert memory.losses(first.id[:8]) + memory.losses(second.id) == both
    assert {s.session for s in memory.losses(second.id)} == {second.id}
    with pytest.raises(NotFoundError, match=r"^no session begins with 'nothing'"):
        memory.losses("nothing")
