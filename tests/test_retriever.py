"""The retriever over a complete memory: context within the budget, recommendations, and a cache that is never stale."""

from __future__ import annotations

import tempfile
import time
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.types import DocumentName, MustKeepKind
from tests.conftest import Clock
from tests.memories import say

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 4}}}
SAID = (
    "We decided to hash passwords with bcrypt, as the auditors know it.",
    "Never deploy the shop on a Friday.",
    "The garnet parser was slow because of the regular expressions.",
    "The deploy of the shop failed because the certificate had run out, and the gateway refused all.",
    "Tea was had in the long hall.",
    "A heron stood on the roof.",
)


@pytest.fixture
def memory(memory: OrchestratorContextManager, clock: Clock) -> OrchestratorContextManager:
    """A memory with facts in its documents."""
    say(memory, clock, *SAID, agent="dana")
    failed = {"task": "deploy the shop to production", "status": "failed", "pattern": "parallel"}
    memory.record_operation("task_execution", failed, agent="lin")
    memory.refresh()
    time.sleep(0.06)  # file times have coarse ticks: younger documents are not cached
    return memory


def test_the_best_is_retrieved_within_the_budget(memory: OrchestratorContextManager) -> None:
    """The retrieved context is within its budget: an index, then the best passages, each fenced with its source."""
    found = memory.retriever.retrieve_context("why did we choose bcrypt?", max_tokens=400)
    assert found.notes == ()
    assert found.tokens == memory.counter.count(found.text) <= 400
    assert found.counter == memory.counter.name
    first = found.entries[0]
    assert "bcrypt" in first.text
    assert {first.source, *first.also} >= {"op 1", "K1", "decision_log.md"}, found.explain()
    assert "by words" in first.explanation
    assert first.explanation in found.explain()
    assert found.text.index("```recalled index") < found.text.index(f"```recalled {first.source} (")


def test_any_string_is_a_task(memory: OrchestratorContextManager) -> None:
    """Any string is accepted as a task, and the budget holds."""
    for task in ("", " ", "\x00", "\ud800", "x" * 100_000, '"NEAR(', "🧪"):
        assert memory.retriever.retrieve_context(task, max_tokens=300).tokens <= 300
        assert memory.retriever.get_recommendations(task).task == task


def test_whose_work_it_is_goes_a_little_before(memory: OrchestratorContextManager) -> None:
    """Of equally good hits, those of the named agents come first."""
    for agent in ("ada", "bob"):
        memory.record_operation("task_execution", {"task": f"polish the amber lamp, {agent}"}, agent=agent)
    for agent, other in (("ada", "bob"), ("bob", "ada")):
        found = memory.retriever.retrieve_context("polish the amber lamp", agents=[agent])
        agents = [entry.agent for entry in found.entries]
        assert agents.index(agent) < agents.index(other)


def test_past_work_is_grouped_with_its_sources(memory: OrchestratorContextManager) -> None:
    """Recommendations group rules, failures and similar tasks with their sources, up to a limit for each group."""
    said = memory.retriever.get_recommendations("deploy the shop")
    assert [each.source for each in said.rules] == ["K2"]
    assert "certificate had run out" in " ".join(each.text for each in said.failures)
    task = next(each for each in said.similar_tasks if each.agent == "lin")
    assert (task.source, task.outcome) == ("op 7", "failed")
    assert "```recalled op 7 (" in said.render()
    assert [name for name, _ in said.groups()] == ["rules", "failures", "similar_tasks"]
    few = memory.retriever.get_recommendations("deploy the shop", limit=1)
    assert {len(found) for _, found in few.groups()} == {1}
    assert [each.source for each in memory.retriever.get_recommendations("passwords bcrypt").decisions] == ["K1"]


def test_errors_of_the_catalog_are_past_failures(memory: OrchestratorContextManager) -> None:
    """A catalog item of type `error` is recommended as a failure, and a decision as a decision; neither twice."""
    said = {"error": "The otter feeder jams on frozen seed.", "decision": "The heron feeder is filled on Mondays."}
    items = {kind: memory.catalog.store({"content": text, "type": kind}) for kind, text in said.items()}
    found = memory.retriever.get_recommendations("repair the otter feeder")
    assert {name: [each.source for each in group] for name, group in found.groups()} == {
        "decisions": [items["decision"].id],
        "failures": [items["error"].id],
    }


def test_a_decision_that_was_just_taken_is_said_and_one_that_was_taken_back_is_not(
    memory: OrchestratorContextManager,
) -> None:
    """A new decision is recommended at once, and no longer after a person has removed it."""
    memory.record_operation("decision", {"text": "We decided to keep amber lamps in the shop window."})
    said = memory.retriever.get_recommendations("amber lamps").decisions
    assert [each.source for each in said] == ["op 8"]
    memory.refresh()
    fact = next(f for f in memory.facts(MustKeepKind.DECISION) if "amber" in f.text)
    assert [each.source for each in memory.retriever.get_recommendations("amber lamps").decisions] == [f"K{fact.id}"]
    path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
    blocks = path.read_text(encoding="utf-8").split("\n### ")
    path.write_text("\n### ".join(block for block in blocks if f"(K{fact.id})" not in block), encoding="utf-8")
    assert memory.retriever.get_recommendations("amber lamps").decisions == ()


def test_an_answer_is_kept_while_the_memory_is_the_same(memory: OrchestratorContextManager) -> None:
    """The same call returns the cached object, until the cache is cleared; another budget or agent misses."""
    retriever = memory.retriever
    first = retriever.retrieve_context("deploy the shop", agents=["b", "a"])
    assert retriever.retrieve_context("deploy the shop", agents=["a", "b"]) is first
    assert retriever.retrieve_context("deploy the shop", agents=["a"]) is not first
    assert retriever.retrieve_context("deploy the shop", agents=["a", "b"], max_tokens=500) is not first
    stats = retriever.get_stats()
    assert (stats["hits"], stats["misses"]) == (1, 3)
    retriever.clear_cache()
    assert retriever.retrieve_context("deploy the shop", agents=["a", "b"]) is not first


def test_what_goes_out_of_the_cache_is_what_was_not_used_for_longest(tmp_path: Path, clock: Clock) -> None:
    """The least recently used entries are evicted; with a size of 0 nothing is cached."""
    for entries, hits in ((2, 1), (0, 0)):
        config = {**CONFIG, "retrieval": {"cache_entries": entries}}
        with open_memory(tmp_path, config=config, clock=clock) as memory:
            memory.record_operation("note", {"text": "The amber lamp was lit."})
            time.sleep(0.06)
            for task in ("one", "two", "one", "three", "two"):
                memory.retriever.retrieve_context(task)
            assert (memory.retriever.get_stats()["hits"], memory.retriever.get_stats()["cached"]) == (hits, entries)


def test_another_process_knows_what_was_recalled(tmp_path: Path, memory: OrchestratorContextManager) -> None:
    """Text that one memory recalled and recorded again is not indexed by the next one either."""
    memory.retriever.retrieve_context("why bcrypt for passwords?")
    memory.record_operation("answer", {"text": SAID[0]})
    memory.close()
    with open_memory(tmp_path, config=CONFIG) as other:
        found = other.search("bcrypt", limit=30).hits
        assert "op 8" not in {hit.chunk.source for hit in found}
        assert "op 1" in {hit.chunk.source for hit in found}


def test_what_was_said_before_it_was_recalled_and_what_names_a_task_stays(memory: OrchestratorContextManager) -> None:
    """Text recorded before its recall is still found, and so are operations with a recalled task's title."""
    title = "polish the amber lamp in the window of the shop"
    memory.record_operation("task_created", {"task": title})
    memory.record_operation("note", {"text": SAID[2]})
    memory.retriever.retrieve_context(f"{title} garnet parser")
    number = memory.record_operation("task_execution", {"task": title, "status": "failed"}).id
    sources = [hit.chunk.source for hit in memory.search(title, limit=30).hits]
    assert {"op 8", f"op {number}"} <= set(sources)
    assert "op 9" in [hit.chunk.source for hit in memory.search("garnet parser slow", limit=30).hits]


class Memory(RuleBasedStateMachine):
    """Whatever is recorded, edited, refreshed or flushed, a cached answer equals a fresh one."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.memory = open_memory(self.folder.name, config=CONFIG, clock=self.clock)
        self.other = open_memory(self.folder.name, config=CONFIG, clock=self.clock)
        self.count = 0

    @initialize()
    def begin(self) -> None:
        """Record operations to search for."""
        for text in SAID:
            self.memory.record_operation("message", {"text": text})

    @rule(what=st.sampled_from(SAID), other=st.booleans())
    def record(self, what: str, other: bool) -> None:
        """Record by this memory or another one."""
        self.count += 1
        writer = self.other if other else self.memory
        writer.record_operation("message", {"text": f"{what} For the {self.count}. time, said {self.count}."})

    @rule(seconds=st.integers(1, 90_000))
    def wait(self, seconds: int) -> None:
        """Advance the clock by up to 25 hours."""
        self.clock.now += timedelta(seconds=seconds)

    @rule(name=st.sampled_from(list(DocumentName)), replaced=st.booleans())
    def edit(self, name: DocumentName, replaced: bool) -> None:
        """Save a document as a person does, in place or as a new file, often with the same size as before."""
        path = self.memory.episodic_memory.path(name)
        self.count += 1
        text = path.read_text(encoding="utf-8")
        line = f"- The shop has {self.count:04} doors.\n"
        text = "".join(each for each in text.splitlines(keepends=True) if "doors." not in each) + line
        if replaced:
            fresh = path.with_suffix(".new")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
        else:
            path.write_text(text, encoding="utf-8")

    @rule(flush=st.booleans(), other=st.booleans())
    def settle(self, flush: bool, other: bool) -> None:
        """Refresh or flush."""
        writer = self.other if other else self.memory
        if flush:
            writer.flush_session()
        else:
            writer.refresh()

    @invariant()
    def the_cache_is_not_stale(self) -> None:
        """The first answer, the cached one and the one after clearing the cache are equal."""
        self.memory.facts()  # otherwise a pause could add facts between two calls
        self.memory.update_index()
        for task in ("the doors of the shop", "what was said last?"):
            first = self.memory.retriever.retrieve_context(task)
            kept = self.memory.retriever.retrieve_context(task)
            self.memory.retriever.clear_cache()
            fresh = self.memory.retriever.retrieve_context(task)
            assert first.notes == ()
            assert first.text == kept.text == fresh.text
            assert first.entries == fresh.entries

    def teardown(self) -> None:
        """Close both memories and remove the folder."""
        self.memory.close()
        self.other.close()
        self.folder.cleanup()


TestTheCacheIsNeverStale = Memory.TestCase
TestTheCacheIsNeverStale.settings = settings(max_examples=4, stateful_step_count=12, deadline=None)
