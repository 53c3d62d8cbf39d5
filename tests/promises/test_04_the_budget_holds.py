"""Promise 4: a context never exceeds its token budget, and names its token counter and whether that is exact."""

from __future__ import annotations

import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager
from orchestra_mem.adapters.tokenizers import open_counter
from tests.memories import work

COUNTER = open_counter("tiktoken")
TEXTS = st.one_of(
    st.text(max_size=400), st.sampled_from(["漢字" * 300, "```\n" * 50, "<memory part=", "é" * 700, "# " * 99])
)
ASKED = st.tuples(TEXTS, st.integers(0, 5_000), st.sampled_from([None, "the mail queue", "what failed?", "\ud800"]))


@given(st.lists(ASKED, min_size=1, max_size=4))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_context_exceeds_its_budget(
    memory: OrchestratorContextManager, asked: list[tuple[str, int, str | None]]
) -> None:
    """A context's token count equals a recount of its text and is within the budget, for any texts and queries."""
    work(memory, 3)
    for text, budget, query in asked:
        memory.record_operation("note", {"text": text})
        context = memory.get_orchestrator_context("next prompt", max_tokens=budget, query=query)
        assert context.tokens == COUNTER.count(context.render()) <= budget == context.budget_tokens


def test_the_window_is_never_exceeded_in_a_long_session(memory: OrchestratorContextManager) -> None:
    """Without an explicit budget, contexts and the tracker's count stay within the window over many refreshes."""
    window = memory.context_tracker.max_tokens
    for first in range(1, 150, 10):
        work(memory, 10, first)
        context = memory.get_orchestrator_context("next prompt")
        assert context.tokens <= context.budget_tokens <= window
        assert memory.context_tracker.used_tokens() <= window


def test_a_count_says_whether_it_is_exact(memory: OrchestratorContextManager) -> None:
    """A context names its token counter and says whether that counter is exact."""
    work(memory, 10)
    context = memory.get_orchestrator_context("next prompt")
    assert (context.counter, context.exact) == (COUNTER.name, COUNTER.exact)
    assert tiktoken.__name__ in context.counter
