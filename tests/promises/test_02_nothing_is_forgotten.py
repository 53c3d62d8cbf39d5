"""Promise 2: compaction shortens what is shown, never what is stored; summaries expand to their operations."""

from __future__ import annotations

import pytest

from orchestra_mem import OrchestratorContextManager
from tests.builders import cases
from tests.memories import everywhere, operation, work
from tests.promises.conftest import Open


def test_every_summary_expands_to_its_operations_word_for_word(memory: OrchestratorContextManager) -> None:
    """Every summary expands to exactly the operations that it covers, without a gap and as they were recorded.

    Operations without a summary are in working memory or in the session's document.
    """
    work(memory, 150)
    memory.refresh()
    summaries = memory.losses()
    assert {summary.level for summary in summaries} >= {1, 2}
    for summary in summaries:
        covered = memory.expand(f"S{summary.id}").operations
        assert [op.id for op in covered] == list(range(summary.first_operation, summary.last_operation + 1))
        assert len(covered) == summary.operation_count
        assert [(op.type, op.data) for op in covered] == [operation(op.id) for op in covered]
    assert everywhere(memory) == list(range(1, 151))


def test_every_fact_leads_to_its_operation(memory: OrchestratorContextManager) -> None:
    """Every fact expands to its source operation, after compaction and the end of the session."""
    work(memory, 100)
    memory.flush_session()
    facts = memory.facts()
    assert {fact.text for fact in facts} >= {operation(number)[1]["text"] for number in range(3, 101, 11)}
    for fact in facts:
        (source,) = memory.expand(f"K{fact.id}").operations
        assert source.id == fact.operation
        if source.type != "task_execution":  # its fact's text is composed from several fields
            assert fact.text in str(source.data)


@pytest.mark.parametrize(("later", "stands"), cases("a_failure_stands_until_it_is_mended"))
def test_a_failure_stands_until_it_is_mended(memory: OrchestratorContextManager, later: str, stands: bool) -> None:
    """A failure stays active until it is fixed: later work on the same topic alone does not close it."""
    failure = "The nightly backup of the search index fails."
    for text in (failure, later):
        memory.record_operation("user_message", {"text": text})
    memory.flush_session()
    assert (failure in [fact.text for fact in memory.facts()]) is stands


def test_facts_stand_in_what_the_model_is_given(open_project: Open) -> None:
    """A rule from the first minute is in the context of a later session, after 180 other operations."""
    rule = "Never write card numbers to the log."
    with open_project() as memory:
        memory.record_operation("user_message", {"text": rule})
        work(memory, 120, 2)
        memory.flush_session()
    with open_project() as memory:
        work(memory, 60, 200)
        assert rule in memory.get_orchestrator_context("next prompt").render()
