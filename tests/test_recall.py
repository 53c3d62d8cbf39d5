"""Expanding summaries and references to the original operations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.errors import NotFoundError
from orchestra_mem.types import DocumentName
from tests.builders import cases
from tests.conftest import Clock, record
from tests.memories import SMALL


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrchestratorContextManager]:
    """A memory with two sessions that have summaries; the tests only read it."""
    with open_memory(tmp_path_factory.mktemp("recall"), config=SMALL, clock=Clock(step_s=60)) as opened:
        for _ in range(2):
            opened.flush_session()
            record(opened, 40, say="Part p{n} took {n} ms in src/f_{n}.py, which is what it took before.")
            opened.refresh()
        yield opened


def test_a_summary_and_an_operation_are_named_in_any_of_these_ways(memory: OrchestratorContextManager) -> None:
    """A summary or an operation can be named as headings and the command line do; a bare number means a summary."""
    for summary in ("S1", "s1", " S 1 ", "1", 1):
        assert memory.expand(summary).reference == "S1"
    for operation in ("op 2", "op2", "OP 2", "O2", "#2"):
        assert [op.id for op in memory.expand(operation).operations] == [2]


@pytest.mark.parametrize(("reference", "message"), cases("what_names_nothing_is_told"))
def test_what_names_nothing_is_told(memory: OrchestratorContextManager, reference: str | int, message: str) -> None:
    """A reference that names nothing raises `NotFoundError` with a message that says which would be valid."""
    with pytest.raises(NotFoundError) as caught:
        memory.expand(reference)
    assert str(caught.value) == message


def test_a_document_has_no_lines_behind_its_last(memory: OrchestratorContextManager) -> None:
    """The last line of a document can be expanded; a later one is refused with the number of the last."""
    path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
    last = len(path.read_text(encoding="utf-8").splitlines())
    assert memory.expand(f"decision_log.md:{last}").place is not None
    with pytest.raises(NotFoundError) as caught:
        memory.expand("decision_log.md:9999")
    assert str(caught.value) == f"there is no line 9,999 in decision_log.md; its last line is {last}"


@pytest.mark.parametrize(("query", "notes"), cases("a_search_for_a_reference_names_expand"))
def test_a_search_for_a_reference_names_expand(
    memory: OrchestratorContextManager, query: str, notes: list[str]
) -> None:
    """A search for the name of something that exists has a note with the call that shows it."""
    assert [*memory.search(query).notes] == notes


def test_losses_are_of_one_session_or_of_all(memory: OrchestratorContextManager) -> None:
    """`losses` lists one session, which the beginning of its id names, or all; any other name is refused."""
    first, second = memory.sessions()
    assert memory.losses(first.id[:8]) + memory.losses(second.id) == memory.losses()
    assert {s.session for s in memory.losses(second.id)} == {second.id}
    for name in ("nothing", "%"):
        with pytest.raises(
            NotFoundError, match=f"^no session id starts with '{name}'; `orchestra-mem sessions` lists them$"
        ):
            memory.losses(name)
    with pytest.raises(NotFoundError, match=r"^several session ids start with ''"):
        memory.session_document("")
