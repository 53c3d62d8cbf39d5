"""The catalog's promises: items of agents are kept apart, injected when relevant, and expire in time."""

from __future__ import annotations

import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._agent_calls import MARK, AgentCalls, fill, others_items
from orchestra_mem import (
    AccessDeniedError,
    InvalidItemError,
    ItemFilter,
    NotFoundError,
    OperationFilter,
    OrchestratorContextManager,
    StorageError,
    open_memory,
)
from orchestra_mem.build import load_settings
from orchestra_mem.catalog_types import AuditFilter, ItemStatus
from orchestra_mem.core.catalog.item_extraction import find_items
from orchestra_mem.doctor.documents import find_secrets
from orchestra_mem.search_types import SearchFilter
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.types import Author, DocumentName, MustKeepKind
from tests.builders import cases
from tests.conftest import Clock
from tests.memories import edit, problems_of
from tests.processes import python

Open = Callable[..., OrchestratorContextManager]
DAY = timedelta(days=1)
LIVE = ItemFilter()


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Open:
    """Open the memory of one folder with the given catalog settings."""

    def with_catalog(**catalog: Any) -> OrchestratorContextManager:
        return open_memory(tmp_path, config={"catalog": catalog}, clock=clock)

    return with_catalog


@pytest.fixture
def memory(opened: Open) -> Iterator[OrchestratorContextManager]:
    """A memory with the default settings."""
    with opened() as made:
        yield made


def _ids(memory: OrchestratorContextManager, message: str, agent: str = "ada", **more: Any) -> list[str]:
    return [each.item.summary for each in memory.relevant(message, agent=agent, **more).items]


def _live(memory: OrchestratorContextManager, agent: str = "ada") -> list[str]:
    return [item.content for item in memory.catalog.items(ItemFilter(agents=[agent]))]


# `inject` before an agent's call and `learn` after it


def test_a_read_waits_for_what_is_being_learnt(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read of the catalog includes an exchange from which the background thread is just learning."""
    has_begun = threading.Event()

    def slowly(*given: Any) -> Any:
        has_begun.set()
        time.sleep(0.5)
        return find_items(*given)

    monkeypatch.setattr("orchestra_mem.core.catalog.item_extraction.find_items", slowly)
    memory.learn("Which account?", "We decided to pay the plumber from the reserve account.", agent="ada")
    assert has_begun.wait(30)
    assert len(memory.inject("Who pays the plumber?", agent="ada").item_ids) == 1


def test_what_an_agent_answered_is_given_with_its_next_message(memory: OrchestratorContextManager) -> None:
    """A decision, insight, error and plan learnt from an answer are injected, fenced, before the next message."""
    said = (
        "We decided to use Redux for state management. I discovered that the old store leaks memory on reload. "
        "The build fails with ENOSPC on runner 3. Next step: migrate the settings page."
    )
    memory.learn("Which store do we take?", said, agent="ada")
    message = memory.inject("How is state management done?", agent="ada")
    kinds = {each.item.type.value for each in message.injection.items}
    assert kinds == {"decision", "insight", "error", "plan"}
    assert message.endswith("\nHow is state management done?")
    assert message.startswith("```recalled catalog\n- M")
    assert message.context_loaded
    assert len(message.item_ids) == 4
    assert message.injection.items[0].item.content == "We decided to use Redux for state management."
    assert message.tokens <= 2_000
    assert memory.inject("How?", agent="ada", use_memory=False) == "How?"


def test_a_question_becomes_no_item_but_what_the_answer_leaves_open_does(memory: OrchestratorContextManager) -> None:
    """What a person asks is no plan: the answer settles it, or says what is open."""
    asked = "Do we buy a wheelbarrow for the compost? Who takes care of the compost?"
    memory.learn(asked, "I do not know. Still to do: ask Lena about the wheelbarrow.", agent="ada")
    assert _live(memory) == ["Still to do: ask Lena about the wheelbarrow."]


def test_learning_survives_a_kill(tmp_path: Path) -> None:
    """An exchange that `learn` has acknowledged is learnt from by the next process after `kill -9`."""
    program = (
        "import os, signal, sys; from orchestra_mem import open_memory\n"
        "memory = open_memory(sys.argv[1])\n"
        "memory.learn('', 'We decided to keep the juniper archive in the cellar.', agent='ada')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    python(program, tmp_path, status=-signal.SIGKILL)
    with open_memory(tmp_path) as memory:
        assert _live(memory) == ["We decided to keep the juniper archive in the cellar."]


def test_what_was_given_is_not_learnt_again(memory: OrchestratorContextManager) -> None:
    """An answer that repeats an injected item neither adds nor strengthens one.

    A person who repeats the item strengthens it, and another agent who says the same gets a new item.
    """
    said = "We decided to keep the juniper archive in the cellar."
    memory.catalog.store({"content": said, "agent": "ada"})
    message = memory.inject("Where is the archive?", agent="ada")
    for asked, answer, times in ((message, said, 1), (said, "Yes.", 2)):
        memory.learn(asked, answer, agent="ada")
        assert [item.said for item in memory.catalog.items(LIVE)] == [times]
    memory.learn("Where is the archive?", said, agent="bob")
    assert _live(memory, "bob") == [said]


def test_items_of_every_agent_that_can_record_can_be_changed_and_exchanged(memory: OrchestratorContextManager) -> None:
    """A longest agent name works in every catalog call, and an invalid name is refused before anything is stored."""
    name = "a" * 200
    memory.record_operation("note", {"text": "x"}, agent=name)
    memory.learn("", "We decided to keep the lamp in the cellar.", agent=name)
    (item,) = memory.catalog.items(LIVE)
    assert memory.catalog.update(item.id, {"priority": 9}).ci_source == name
    assert memory.catalog.bring_in(memory.catalog.export(name)) == 1
    for bad in ("a" * 201, "a\nb", "rev\u200b"):
        for call in (
            lambda bad=bad: memory.learn("", "We decided to keep the map in the cellar.", agent=bad),
            lambda bad=bad: memory.catalog.store({"content": "x"}, agent=bad),
            lambda bad=bad: memory.catalog.store({"content": "x", "agent": bad}),
        ):
            with pytest.raises(InvalidItemError, match="200"):
                call()
    assert len(memory.catalog.items(LIVE)) == 1


def test_learning_takes_the_users_patterns_too_and_names_a_broken_one(opened: Open) -> None:
    """A configured pattern extracts items, and patterns that are invalid or could backtrack endlessly are problems."""
    patterns = {"plan": "gegebenenfalls", "error": "(", "insight": "a{99999999999}", "decision": "(a+)+"}
    with opened(extraction_patterns=patterns) as memory:
        memory.learn("", "Gegebenenfalls morgen der Keller.", agent="ada")
        assert _live(memory) == ["Gegebenenfalls morgen der Keller."]
        problems = str(memory.get_stats()["problems"])
        assert all(f"catalog.extraction_patterns.{name}: " in problems for name in ("error", "insight", "decision"))


def test_neither_fenced_code_nor_quoted_lines_are_learnt(memory: OrchestratorContextManager) -> None:
    """The patterns read what the classifier reads: no fenced code, no lines quoted with `>`, however long."""
    answer = (
        "Django's guide says:\n\n> We decided to never squash. We decided to rebase the branches.\n\nA template:\n\n"
        "```markdown\nWe decided to use MySQL for all data.\n```\n\n```python\n# We decided to use black\n```\n"
        "We decided to keep our own way."
    )
    memory.learn("How do others write it?", answer, agent="ada")
    assert _live(memory) == ["We decided to keep our own way."]
    memory.record_operation("note", {"text": answer})
    assert [fact.text for fact in memory.facts()] == ["We decided to keep our own way."]


def test_a_purge_leaves_no_word_in_the_index(opened: Open, tmp_path: Path) -> None:
    """A purged item's words leave the search index at once, not with the next search."""
    with opened() as memory:
        item = memory.catalog.store({"content": "The Zebulon ships in May."})
        assert memory.search("Zebulon").hits
        memory.catalog.delete(item.id)
        memory.catalog.purge(ItemFilter(statuses=[ItemStatus.DELETED]))
    found = [path.name for path in tmp_path.rglob("index/*") if b"zebulon" in path.read_bytes().lower()]
    assert found == []


def test_an_exchange_that_fails_is_tried_again_at_the_next_read(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed exchange is retried at each read of the catalog and reported as a problem after three attempts."""

    def broken(catalog: MemoryCatalog, *given: object, **more: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(MemoryCatalog, "prepare", broken)
    memory.learn("And bread?", "We decided to bake rye bread on Mondays.", agent="ada")
    for _ in range(3):
        assert _live(memory) == []
    assert "last error: ValueError: no" in str(memory.get_stats()["problems"])


# Repeating and superseding


@pytest.mark.parametrize(
    "again", ["for the cache we use Redis", "We use a Redis for the cache!", "We used Redis for the cache."]
)
def test_a_second_saying_strengthens_and_does_not_add(
    memory: OrchestratorContextManager, clock: Clock, again: str
) -> None:
    """Storing an item again in similar words adds none, but raises its count and priority and renews its expiry."""
    first = memory.catalog.store({"content": "We use Redis for the cache.", "type": "decision", "agent": "ada"})
    clock.now += DAY
    second = memory.catalog.store({"content": again, "type": "decision", "agent": "ada"})
    assert (second.id, second.said, second.priority) == (first.id, 2, first.priority + 1)
    assert second.expires == clock.now + 7 * DAY
    assert len(_live(memory)) == 1


@pytest.mark.parametrize(("content", "other"), cases("what_says_something_else_is_an_item_of_its_own"))
def test_what_says_something_else_is_an_item_of_its_own(
    memory: OrchestratorContextManager, content: str, other: str
) -> None:
    """Two texts that differ in a meaningful word or sign are two items."""
    memory.catalog.store({"content": content, "agent": "ada"})
    memory.catalog.store({"content": other, "agent": "ada"})
    assert len(memory.catalog.items(ItemFilter(statuses=[]))) == 2


def test_each_word_of_a_long_search_must_match(memory: OrchestratorContextManager) -> None:
    """A search of 300 words finds only items with all of them, and a very long id is reported as unknown."""
    words = [f"word{n}" for n in range(300)]
    memory.catalog.store({"content": " ".join(words)})
    assert len(memory.catalog.items(ItemFilter(text=" ".join(words)))) == 1
    assert memory.catalog.items(ItemFilter(text=" ".join([*words, "missing"]))) == []
    with pytest.raises(NotFoundError, match="there is no item 'M99"):
        memory.catalog.get("M" + "9" * 5_000)


def test_a_later_decision_takes_the_place_of_an_earlier_one_and_says_so(memory: OrchestratorContextManager) -> None:
    """A later decision hides the same agent's earlier one, which then names its successor; other agents' items stay."""
    old = memory.catalog.store(
        {"content": "We decided to use Redux for state management.", "type": "decision", "agent": "ada"},
        author=Author.MACHINE,
    )
    memory.catalog.store(
        {"content": "We use Redux for state management in the shop.", "type": "decision", "agent": "bob"},
        author=Author.MACHINE,
    )
    memory.learn("", "We no longer use Redux for state management; we decided to use Zustand.", agent="ada")
    (new,) = memory.catalog.items(ItemFilter(agents=["ada"]))
    gone = memory.catalog.get(old.id)
    assert (gone.status, gone.superseded_by) == (ItemStatus.SUPERSEDED, new.id)
    assert "Redux" not in "".join(_ids(memory, "state management")[1:])
    assert len(_live(memory, "bob")) == 1


@pytest.mark.parametrize(("observation", "gone"), cases("only_an_observation_of_a_completion_completes_a_plan"))
def test_only_an_observation_of_a_completion_completes_a_plan(
    memory: OrchestratorContextManager, observation: str, gone: bool
) -> None:
    """A plan is superseded by an observation that it was done, not by one that only shares its topic."""
    plan = {"content": "We plan to migrate the billing tables to Postgres.", "type": "plan", "agent": "ada"}
    old = memory.catalog.store(plan, author=Author.MACHINE)
    memory.catalog.store({"content": observation, "agent": "ada"}, author=Author.MACHINE)
    assert (memory.catalog.get(old.id).status is ItemStatus.SUPERSEDED) is gone


# Relevance and packing


def test_all_tags_matching_outranks_newer_with_none(memory: OrchestratorContextManager, clock: Clock) -> None:
    """An item whose tags all match outranks a newer one without matches, and each score has the design's four parts."""
    memory.catalog.store({"content": "Redux store", "tags": ["redux", "store"], "agent": "ada", "priority": 5})
    clock.now += 3 * DAY
    memory.catalog.store({"content": "Lamps are warm", "tags": ["lamps"], "agent": "ada", "priority": 5})
    first, second = memory.relevant("which redux store?", agent="ada").items
    assert (first.item.content, second.item.content) == ("Redux store", "Lamps are warm")
    parts = first.relevance
    assert (parts.tags, parts.affinity, parts.priority) == (0.4, 0.2, 0.05)
    assert parts.recency == pytest.approx(0.3 * 2.718281828 ** (-72 / 168), abs=1e-6)
    assert parts.score == pytest.approx(parts.recency + 0.65)


@pytest.mark.parametrize(("tag", "message"), cases("a_tag_of_several_words_matches"))
def test_a_tag_of_several_words_matches(memory: OrchestratorContextManager, tag: str, message: str) -> None:
    """A tag of several words matches a message that contains it, in scripts without spaces too."""
    memory.catalog.store({"content": "An item", "tags": [tag], "agent": "ada"})
    assert memory.relevant(message, agent="ada").items[0].relevance.tags == 0.4


def test_what_does_not_fit_is_given_as_its_summary_then_the_next(memory: OrchestratorContextManager) -> None:
    """An item over the budget is injected as its summary with a reference, and a smaller one after it in full."""
    long = "The parser reads tables. " + "It keeps every row of every table in order. " * 60
    item = memory.catalog.store({"content": long, "tags": ["parser"], "agent": "ada"})
    memory.catalog.store({"content": "Lamps are warm.", "tags": ["lamps"], "agent": "ada"})
    injection = memory.relevant("the parser", agent="ada", max_tokens=110)
    assert [(each.whole, each.item.number) for each in injection.items] == [(False, 1), (True, 2)]
    assert f"expand M{item.number}" in injection.text
    assert injection.tokens <= 110
    assert memory.expand(f"M{item.number}").memory_item == item


_words = st.text(st.sampled_from("abcde ä我,.\n`<>#"), min_size=1, max_size=300).filter(str.strip)
_contents = st.lists(st.tuples(_words, st.integers(0, 10), st.sampled_from(["ada", "bob", "global"])), max_size=12)


@settings(max_examples=15)
@given(_contents, st.integers(0, 400), _words)
def test_the_budget_holds_whatever_the_items_and_the_message(
    tmp_path_factory: pytest.TempPathFactory, items: list[tuple[str, int, str]], budget: int, message: str
) -> None:
    """An injection counts at most its budget in tokens, 0 included, and has no item of another agent."""
    with open_memory(tmp_path_factory.mktemp("memory")) as memory:
        for content, priority, agent in items:
            memory.catalog.store({"content": content, "priority": priority, "agent": agent})
        injected = memory.inject(message, agent="ada", max_tokens=budget)
        assert injected.tokens == memory.counter.count(injected.injection.text)
        assert injected.tokens <= budget
        assert {each.item.ci_source for each in injected.injection.items} <= {"ada", "global"}
        assert injected == (f"{injected.injection.text}\n{message}" if injected.tokens else message)


# Time


def test_an_expired_item_with_a_new_expiry_is_live_again(memory: OrchestratorContextManager, clock: Clock) -> None:
    """An expired item that gets a new time of expiry, or a permanent priority, is given to agents again."""
    items = [memory.catalog.store({"content": f"Check gate {each}."}, agent="ada") for each in range(3)]
    clock.now += 8 * DAY
    assert memory.catalog.expire_old() == 3
    memory.catalog.update(items[0].id, {"expires": (clock.now + DAY).isoformat()})
    memory.catalog.update(items[1].id, {"priority": 9})
    memory.catalog.update(items[2].id, {"tags": ["gate"]})
    live = memory.catalog.items(ItemFilter(agents=["ada"]))
    assert {item.content for item in live} == {"Check gate 0.", "Check gate 1."}


def test_what_has_expired_is_given_to_nobody(memory: OrchestratorContextManager, clock: Clock) -> None:
    """An expired item is hidden from its expiry on, before any clean-up; items of priority 8 or more never expire."""
    memory.catalog.store({"content": "Tea is at four.", "agent": "ada"})
    kept = memory.catalog.store({"content": "Never deploy on Fridays.", "agent": "ada", "priority": 8})
    assert kept.expires is None
    clock.now += 7 * DAY
    assert _ids(memory, "tea") == ["Never deploy on Fridays."]
    assert _live(memory) == ["Never deploy on Fridays."]
    assert [hit.chunk.text for hit in memory.search("tea at four").hits] == ["Never deploy on Fridays."]
    assert memory.catalog.count(ItemFilter()) == 1
    assert memory.catalog.expire_old() == 1
    assert _live(memory) == ["Never deploy on Fridays."]
    (gone,) = memory.catalog.items(ItemFilter(statuses=[ItemStatus.EXPIRED]))
    assert gone.content == "Tea is at four."


def test_a_clock_that_was_put_back_does_not_stop_the_clean_up(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A clean-up while the clock was a year ahead does not delay the next one after that, which takes it back."""
    memory.catalog.store({"content": "Tea is at four.", "agent": "ada"})
    clock.now += 365 * DAY
    memory.catalog.clean_up()
    assert _live(memory) == []
    due = [memory.catalog.cleanup_due]
    clock.now -= 365 * DAY
    due.append(memory.catalog.cleanup_due)
    memory.catalog.clean_up()
    assert [*due, memory.catalog.cleanup_due] == [False, True, False]
    assert _live(memory) == ["Tea is at four."]


def test_beyond_the_cap_the_least_important_go_then_the_oldest(opened: Open, clock: Clock) -> None:
    """Beyond the cap the least important items are hidden first, then the oldest; permanent items stay."""
    with opened(max_memories_per_ci=2) as memory:
        for content, priority in (("one", 9), ("two", 3), ("three", 5), ("four", 5)):
            clock.now += DAY / 24
            memory.catalog.store({"content": content, "priority": priority, "agent": "ada"})
        assert _live(memory) == ["four", "one"]
        hidden = memory.catalog.items(ItemFilter(statuses=[ItemStatus.DISPLACED]))
        assert [item.content for item in hidden] == ["three", "two"]
        kept = memory.catalog.store({"content": "five", "priority": 1, "agent": "ada", "expires": None})
        assert kept.expires is None
        assert _live(memory) == ["five", "one"]


def test_what_is_deleted_is_expanded_for_no_agent(memory: OrchestratorContextManager) -> None:
    """An agent that names a deleted item is not shown its text; the owner is."""
    item = memory.catalog.store({"content": "The zanzibar door is open.", "agent": "ada"})
    memory.catalog.delete(item.id)
    for name in (item.id, "M1"):
        with pytest.raises(NotFoundError, match="has been deleted"):
            memory.as_agent("ada").expand(name)
        assert memory.expand(name).memory_item is not None


def test_a_purge_removes_for_good_what_is_hidden(memory: OrchestratorContextManager, tmp_path: Path) -> None:
    """A purge deletes hidden items permanently, also from the texts kept to merge late saves; live items stay."""
    item = memory.catalog.store({"content": "The zanzibar door is open.", "agent": "ada"})
    memory.catalog.store({"content": "Lamps are warm.", "agent": "ada"})
    memory.refresh()
    assert memory.search("zanzibar").hits
    edit(tmp_path / ".obra" / "memory" / "catalog" / "ada.md", ("## Insights", "Mine.\n\n## Insights"))
    memory.refresh()
    memory.catalog.delete(item.id)
    memory.refresh()
    assert memory.catalog.purge(ItemFilter(statuses=[*ItemStatus])) == 1
    assert not any("zanzibar" in hit.chunk.text for hit in memory.search("zanzibar").hits)
    with pytest.raises(NotFoundError):
        memory.catalog.get(item.id)
    assert _live(memory) == ["Lamps are warm."]
    memory.refresh()
    find = load_settings(tmp_path, {}, {"redaction": {"patterns": {"word": "zanzibar"}}})
    assert find_secrets(tmp_path, find) == []


def test_what_cannot_be_written_is_told_and_written_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`status` names an audit trail and documents that wait while another program keeps the database locked."""
    memory = open_memory(tmp_path, config={"storage": {"busy_timeout_s": 0.1}})
    with memory, closing(sqlite3.connect(tmp_path / ".obra" / "obra.db", isolation_level=None)) as other:
        memory.catalog.store({"content": "Lamps are warm."})
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            memory.catalog.items(LIVE)
            memory.catalog.audit.flush()
            memory.write_catalog()
        assert {each["subject"] for each in problems_of(memory)} == {"catalog", "catalog documents"}
        assert caplog.text.count("the audit trail cannot be written") == caplog.text.count("catalog documents: ") == 1
        other.execute("ROLLBACK")
        memory.write_catalog()
        assert len(memory.audit(AuditFilter(call="list"))) == 2
        assert problems_of(memory) == []


# Who sees and changes what


def test_an_agent_sees_and_changes_its_own_alone(memory: OrchestratorContextManager) -> None:
    """An agent reads its own and global items and changes only its own; audited refusals name the permission."""
    mine = memory.as_agent("ada").remember("Ada keeps the key in the juniper box.", type="decision")
    shared = memory.catalog.store({"content": "The juniper office opens at nine."})
    assert (mine.ci_source, shared.ci_source) == ("ada", "global")
    bob = memory.as_agent("bob")
    assert "key" not in bob.inject("the juniper box")
    assert "office" in bob.inject("the juniper office")
    assert not any(hit.chunk.agent == "ada" for hit in bob.search("juniper").hits)
    for agents, is_given in (([], True), (["ada"], True), (["bob"], False), (["ada", "bob"], False)):
        assert ("key" in memory.retriever.retrieve_context("juniper", agents=agents).text) is is_given
        assert (mine.id in str(memory.retriever.get_recommendations("juniper", agents=agents))) is is_given
    told = []
    for reference in (mine.id, f"M{mine.number}", "M99"):
        with pytest.raises(NotFoundError) as caught:
            bob.expand(reference)
        told.append(str(caught.value).replace(reference, ""))
    assert len(set(told)) == 1, "whether an item is there must not be told"
    with pytest.raises(AccessDeniedError, match=r"write: \[global\]"):
        memory.catalog.delete(shared.id, agent="bob")
    with pytest.raises(AccessDeniedError):
        bob.remember("x", agent="ada")
    with pytest.raises(AccessDeniedError, match=r"read: \[ada\]"):
        memory.catalog.items(ItemFilter(agents=["ada"]), agent="bob")
    with pytest.raises(NotFoundError):
        bob.catalog.update(mine.id, {"priority": 9})
    with pytest.raises(NotFoundError):
        bob.catalog.delete(mine.id)
    refused = memory.audit(AuditFilter(agent="bob", outcome=None))
    calls = [(entry.call, entry.detail.split("; ")[0]) for entry in refused if entry.outcome == "refused"]
    hidden = f"there is no item '{mine.id}' in the catalog that agent 'bob' may see"
    assert calls[:2] == [("delete", hidden), ("update", hidden)]
    assert [call for call, _ in calls[2:]] == ["list", "store", "delete"]


def test_an_item_that_is_given_to_another_agent_is_that_ones_alone(memory: OrchestratorContextManager) -> None:
    """An item moved to another agent is at once in that agent's messages and document and no longer in the first's."""
    first = memory.catalog.store({"content": "The bread goes in at five.", "type": "decision"}, agent="ada")
    memory.catalog.store({"content": "The bread is sold from seven.", "type": "decision"}, agent="ada")
    memory.write_catalog()
    assert len(_ids(memory, "when does the bread go in?")) == 2
    memory.catalog.update(first.id, {"ci_source": "bob"})
    assert _ids(memory, "when does the bread go in?") == ["The bread is sold from seven."]
    assert _ids(memory, "when does the bread go in?", agent="bob") == ["The bread goes in at five."]
    memory.write_catalog()
    assert "at five" not in memory.documents.text("catalog/ada")
    assert "at five" in memory.documents.text("catalog/bob")


def test_grants_open_what_they_name(opened: Open) -> None:
    """A permission opens reading or writing of exactly the agents that it names."""
    with opened(permissions={"bob": {"read": ["ada"], "write": ["global"]}}) as memory:
        memory.as_agent("ada").remember("Ada keeps the key in the juniper box.")
        memory.as_agent("eve").remember("Eve keeps the lamp.")
        bob = memory.as_agent("bob")
        assert "juniper" in bob.inject("the key")
        assert "lamp" not in bob.inject("what else?")
        assert bob.remember("The office opens at nine.", agent="global").ci_source == "global"


def test_an_empty_catalog_gives_nothing_to_an_agent_that_may_read_all(opened: Open) -> None:
    """An empty catalog leaves the message of an agent that may read all unchanged and counts as loaded."""
    with opened(permissions={"eve": {"read": ["*"]}}) as memory:
        message = memory.as_agent("eve").inject("hello")
        assert (message, message.context_loaded, memory.catalog.get_relevant("", "hello").items) == ("hello", True, ())


def test_grants_open_what_is_recorded_to_strict_agents(opened: Open) -> None:
    """Under strict isolation a permission to read an agent's items also opens its operations; `*` opens all."""
    with opened(isolation="strict", permissions={"bob": {"read": ["ada"]}, "eve": {"read": ["*"]}}) as memory:
        for agent in ("ada", "bob", "cid"):
            memory.record_operation("message", {"role": "user", "text": f"The {agent} lamp is blue."}, agent=agent)
        for agent, seen in (("bob", ["ada", "bob"]), ("cid", ["cid"]), ("eve", ["ada", "bob", "cid"])):
            view = memory.as_agent(agent)
            assert [operation.agent for operation in view.operations()] == seen
            assert sorted({hit.chunk.agent for hit in view.search("lamp").hits if hit.chunk.agent}) == seen
            context = view.get_orchestrator_context("task").render()
            assert [name for name in ("ada", "bob", "cid") if f"The {name} lamp" in context] == seen
        assert memory.as_agent("bob").operations(OperationFilter(agents=("ada",)))[0].agent == "ada"


def test_the_owner_ends_in_a_chat_what_a_strict_agent_decided(opened: Open) -> None:
    """Under strict isolation the owner's word in a chat ends an agent's decision; another agent's does not."""
    old, new = "We keep the web sessions in Redis.", "We keep the web sessions in Postgres instead of Redis."
    with opened(isolation="strict") as memory:
        memory.as_agent("planner").record_operation("decision", {"decision": old})
        for agent, standing in (("coder", [old, new]), ("user", [new])):
            memory.record_operation("user_message", {"role": "user", "text": new}, agent=agent)
            assert [fact.text for fact in memory.facts()] == standing


@pytest.mark.parametrize("name", ["user", "assistant"])
def test_no_strict_agent_has_a_name_of_the_owners_chats(opened: Open, name: str) -> None:
    """Under strict isolation no agent has a name under which the owner's chats are recorded: it would see them."""
    with opened(isolation="strict") as memory, pytest.raises(AccessDeniedError, match=f"named '{name}'"):
        memory.as_agent(name)
    with opened() as memory:
        assert memory.as_agent(name).operations() == []


def test_a_strict_agent_has_what_it_did_itself_in_every_call(opened: Open) -> None:
    """Under strict isolation every call shows an agent its own operations and facts, and nothing of others."""
    with opened(isolation="strict") as memory:
        said = {"ada": "The ada archive goes to the cellar.", "bob": "We paint the bob archive blue on Mondays."}
        for agent in ("ada", "bob", "ada"):
            memory.as_agent(agent).record_operation("decision", {"decision": said[agent]})
        bob = memory.as_agent("bob")
        told = [
            bob.get_orchestrator_context("task", query="archive").render(),
            bob.retrieve_context("archive").text,
            bob.get_recommendations("archive").render(),
            *(fact.text for limit in (None, 1) for fact in bob.facts(limit=limit)),
            str(bob.expand("op 2").operations[0].data),
        ]
        assert all("bob archive" in each for each in told)
        assert "ada archive" not in "".join(told)
        assert bob.expand("op 2").around == ()
        assert len(memory.operations()) == 3
        memory.refresh()
        assert "ada archive" in (memory.episodic_memory.path(DocumentName.DECISION_LOG)).read_text()
        for reference in ("op 1", "op 99", "K1", "decision_log.md:1"):
            with pytest.raises(NotFoundError, match=r"there is nothing named .* that agent 'bob' may see"):
                bob.expand(reference)
        with pytest.raises(AccessDeniedError, match=r"items of 'ada'.*read: \[ada\]"):
            bob.search("archive", where=SearchFilter(agent="ada"))
        with pytest.raises(AccessDeniedError, match=r"read: \[ada\]"):
            bob.operations(OperationFilter(agent="ada"))
        refused = [entry for entry in memory.audit(AuditFilter(agent="bob")) if entry.outcome == "refused"]
        assert [entry.call for entry in refused] == ["operations", "search"]


@pytest.mark.parametrize("isolation", ["catalog", "strict"])
def test_with_strict_isolation_a_completion_ends_failures_of_its_own_agent_alone(opened: Open, isolation: str) -> None:
    """What an agent completes ends earlier tries at it: by every agent, but its own alone under strict isolation."""
    with opened(isolation=isolation) as memory:
        for agent, status in (("ada", "failed"), ("bob", "failed"), ("bob", "completed")):
            memory.record_operation("task_execution", {"task": "deploy the shop", "status": status}, agent=agent)
        failed = [each.operation for each in memory.facts() if each.kind is MustKeepKind.FAILURE]
        assert failed == ([1] if isolation == "strict" else [])


@pytest.mark.parametrize("isolation", ["catalog", "strict"])
def test_with_strict_isolation_a_deletion_holds_for_its_own_agent_alone(opened: Open, isolation: str) -> None:
    """Words that a person deletes are no fact of any agent's later operations, or of that agent's alone if strict."""
    said = {"decision": "Use MySQL as the orders database"}
    with opened(isolation=isolation) as memory:
        memory.record_operation("decision", said, agent="ada")
        memory.refresh()
        log = memory.documents.text("decision_log")
        memory.documents.save("decision_log", log.partition("### ")[0], expected=log)
        for agent in ("ada", "bob"):
            memory.record_operation("decision", said, agent=agent)
        assert [each.operation for each in memory.facts()] == ([3] if isolation == "strict" else [])


@pytest.mark.parametrize("isolation", ["catalog", "strict"])
def test_with_strict_isolation_a_decision_replaces_those_of_its_own_agent_alone(opened: Open, isolation: str) -> None:
    """A decision or its repetition replaces earlier ones: of every agent, but of its own alone under strict isolation.

    What is recorded without an agent replaces any.
    """
    with opened(isolation=isolation) as memory:
        for agent, database in (("ada", "MySQL"), ("bob", "MySQL"), ("bob", "SQLite")):
            memory.record_operation("decision", {"decision": f"Use {database} as the orders database"}, agent=agent)
        active = [each.operation for each in memory.facts()]
        assert active == ([1, 3] if isolation == "strict" else [3])
        memory.record_operation("decision", {"decision": "Use SQLite as the orders database"})
        assert [each.operation for each in memory.facts()] == [4]


def test_what_an_agent_was_given_is_not_recorded_with_what_it_did(memory: OrchestratorContextManager) -> None:
    """Injected text is removed from a message before the message is recorded for all agents to read."""
    ada = memory.as_agent("ada")
    ada.remember("Ada keeps the key in the juniper box.")
    message = ada.inject("Where is the key?")
    done = ada.record_operation("message", {"role": "user", "text": message})
    assert "juniper" in message
    assert done.data == {"role": "user", "text": "\nWhere is the key?"}


def test_an_agents_view_has_no_way_to_act_as_another(memory: OrchestratorContextManager) -> None:
    """An agent's view lacks the owner's methods and options, and an agent may not be called `global` or `*`."""
    view = memory.as_agent(" eve ")
    assert view.agent == "eve"
    for name in ("flush_session", "audit", "as_agent", "response_cache", "blame", "conflicts"):
        assert not hasattr(view, name)
    for name in ("commit", "get_relevant", "purged", "access", "_store"):
        with pytest.raises(AttributeError, match=f"no '{name}'; the owner of the memory uses memory.catalog"):
            getattr(view.catalog, name)
    with pytest.raises(TypeError, match="agent"):
        view.catalog.items(LIVE, agent="")
    with pytest.raises(AccessDeniedError, match="only the owner of the memory"):
        view.catalog.purge(LIVE)
    for name in ("", " ", "global", "*"):
        with pytest.raises(ValueError, match="does not name a single agent"):
            memory.as_agent(name)


@pytest.mark.parametrize("isolation", ["catalog", "strict"])
def test_no_call_of_an_agent_gives_or_changes_what_is_anothers(tmp_path: Path, isolation: str) -> None:
    """No method of an agent's view and no command with `--agent` returns or changes another agent's data."""
    (tmp_path / ".obra").mkdir()
    (tmp_path / ".obra" / "config.yaml").write_text(f"catalog: {{isolation: {isolation}}}\n")
    with open_memory(tmp_path) as memory:
        others = fill(memory, items=20, operations=20 if isolation == "strict" else 0)
        calls = AgentCalls(memory, tmp_path, "eve", random.Random(4))
        heard = {(name, calls.tell(name)) for name in [*calls.methods * 5, *calls.names]}
        assert [name for name, told in heard if MARK.casefold() in told.casefold()] == []
        assert others_items(memory) == others


@pytest.mark.parametrize("name", ["agent", "ci_source"])
def test_an_agent_hands_nothing_of_its_own_to_another(tmp_path: Path, name: str) -> None:
    """An agent may not move its own item to another agent, where the item would be injected into messages."""
    with open_memory(tmp_path) as memory:
        catalog = memory.as_agent("eve").catalog
        item = catalog.store({"content": "parser lexer cache"})
        with pytest.raises(AccessDeniedError, match="agent 'eve' may not change items of 'ada'"):
            catalog.update(item.id, {name: "ada"})
        assert memory.catalog.items(ItemFilter(agents=["ada"])) == []
        assert catalog.update(item.id, {name: "eve", "priority": 2}).priority == 2


@pytest.mark.parametrize("isolation", ["catalog", "strict"])
def test_a_catalog_document_is_for_people_and_no_agent_is_given_it(tmp_path: Path, isolation: str) -> None:
    """Catalog documents can be edited by people, and no agent can search or expand them."""
    with open_memory(tmp_path, config={"catalog": {"isolation": isolation}}) as memory:
        memory.as_agent("ada").remember("The key is in the juniper box.")
        memory.write_catalog()
        path = tmp_path / ".obra" / "memory" / "catalog" / "ada.md"
        path.write_text(path.read_text().replace("juniper box", "maple box"))
        assert [item.content for item in memory.as_agent("ada").catalog.items(LIVE)] == ["The key is in the maple box."]
        bob = memory.as_agent("bob")
        assert bob.search("maple box").hits == ()
        for view in (bob, memory.as_agent("ada")):
            with pytest.raises(NotFoundError):
                view.expand("ada.md:5")


def test_the_audit_trail_has_every_access_and_every_change(opened: Open, clock: Clock) -> None:
    """The audit trail has every access and change, with old and new values but no content, until retention ends."""
    with opened(audit_retention_days=30) as memory:
        item = memory.catalog.store({"content": "Tea is at four.", "agent": "ada", "priority": 3})
        memory.catalog.update(item.id, {"priority": 9})
        for _ in range(2):
            memory.inject("tea", agent="ada")
        memory.inject("tea", agent="bob")
        told = [(entry.agent, entry.call, entry.outcome.value) for entry in memory.audit()[::-1]]
        assert told == [
            ("", "store", "changed"), ("", "update", "changed"), ("ada", "inject", "given"),
            ("ada", "inject", "given"), ("bob", "inject", "empty"),
        ]  # fmt: skip
        (change,) = memory.audit(AuditFilter(call="update"))
        assert "priority: 3 -> 9" in change.detail
        assert "Tea" not in "".join(entry.detail for entry in memory.audit())
        (given,) = memory.catalog.audit.injections()
        assert (given.agent, given.item, given.times, given.messages, given.unused) == ("ada", item.id, 2, 2, 2)
        clock.now += 31 * DAY
        assert memory.catalog.clean_up().audit_entries == 5


def test_the_audit_trail_is_listed_by_time(opened: Open, clock: Clock) -> None:
    """Entries are listed newest first, although reads are stored later than changes that follow them."""
    with opened() as memory:
        for number in range(3):
            memory.inject("tea", agent="ada")
            clock.now += timedelta(minutes=1)
            memory.catalog.store({"content": f"Tea is at {number}."})
            clock.now += timedelta(minutes=1)
        told = [(entry.call, entry.time) for entry in memory.audit()]
        assert [call for call, _ in told] == ["store", "inject"] * 3
        assert told == sorted(told, key=lambda each: each[1], reverse=True)
        assert memory.audit(AuditFilter(limit=2)) == memory.audit()[:2]


def test_words_are_found_in_upper_and_lower_case_of_any_script(memory: OrchestratorContextManager) -> None:
    """Catalog search ignores case in every script, ß matching SS, but not accents."""
    item = memory.catalog.store({"content": "Der Ärger über die Straße nach Łódź; и ещё Москва."})
    for query in ("ÜBER", "über ÄRGER", "STRASSE", "łÓDŹ", "МОСКВА", "Ещё"):
        assert memory.catalog.search(query) == [item], query
    assert memory.catalog.search("UBER") == []


def test_the_report_of_injections_tells_share_and_disuse(memory: OrchestratorContextManager) -> None:
    """The injection report has each item's token share and unused streak; `get` by the agent counts as use."""
    tea = memory.catalog.store({"content": "Tea is at four.", "agent": "ada"})
    rule = memory.catalog.store({"content": "Tea " + "needs fresh water and time. " * 10, "agent": "ada"})
    memory.inject("tea", agent="ada", max_tokens=0)  # nothing is given; the message counts
    tokens = 0
    for number in range(4):
        tokens += memory.inject("tea", agent="ada").tokens
        if number == 1:
            memory.catalog.get(tea.id, agent="ada")
    memory.catalog.get(rule.id)  # by the owner: the agent has not used it
    found = {each.item: each for each in memory.catalog.audit.injections("ada", unused=4, share=0.5)}
    assert {item: (each.times, each.messages, each.unused) for item, each in found.items()} == {
        tea.id: (4, 5, 2), rule.id: (4, 5, 4),
    }  # fmt: skip
    assert abs(sum(each.tokens for each in found.values()) - tokens) <= 1
    assert sum(each.token_share for each in found.values()) == pytest.approx(1)
    assert found[rule.id].token_share > 5 * found[tea.id].token_share
    assert (found[tea.id].warnings, found[rule.id].warnings) == ((), ("unused", "share"))
    assert memory.catalog.audit.injections("bob") == []


# Bad input, other machines


def test_all_that_is_wrong_with_an_item_is_told_at_once(memory: OrchestratorContextManager) -> None:
    """An invalid item is refused with all its faults by field, and nothing is stored."""
    wrong = {
        "content": "x" * 5_000_000, "type": "rumour", "priority": 11, "expires": "2020-01-01T00:00:00Z",
        "tags": "redux", "colour": "red",
    }  # fmt: skip
    with pytest.raises(InvalidItemError) as told:
        memory.catalog.store(wrong)
    assert [fault.partition(":")[0] for fault in told.value.faults] == [
        "content", "type", "tags", "priority", "colour",
    ]  # fmt: skip
    with pytest.raises(InvalidItemError, match="expires: 2020-01-01T00:00:00"):
        memory.catalog.store({"content": "x", "expires": "2020-01-01T00:00:00Z"})
    for agent in ("", "  "):
        with pytest.raises(ValueError, match="agent"):
            memory.inject("x", agent=agent)
    with pytest.raises(ValueError, match="agent"):
        memory.catalog.store({"content": "x"}, agent="  ")
    assert memory.catalog.items(LIVE) == []


def test_a_catalog_goes_out_and_comes_in_as_the_source_designs_json(opened: Open, tmp_path: Path, clock: Clock) -> None:
    """An export has the design's JSON and imports elsewhere without its expired items; a fault names its item."""
    with opened() as memory:
        memory.catalog.store({"content": "Tea is at four.", "agent": "ada", "tags": ["tea"], "references": ["op 12"]})
        document = memory.catalog.export("ada")
    memories = document["memories"]
    assert isinstance(memories, list)
    (item,) = memories
    assert isinstance(item, dict)
    assert document["ci_name"] == "ada"
    assert document["statistics"]["total_memories"] == 1  # type: ignore[index, call-overload]
    assert str(item["timestamp"]).endswith("Z")
    (tmp_path / "other").mkdir()
    with open_memory(tmp_path / "other", clock=clock) as other:
        assert other.catalog.bring_in(document) == 1
        (brought,) = other.catalog.items(LIVE)
        assert (brought.content, brought.tags, brought.references) == ("Tea is at four.", ("tea",), ("op 12",))
        with pytest.raises(InvalidItemError, match="item 1: priority"):
            other.catalog.bring_in({"ci_name": "ada", "memories": [{"content": "x", "priority": "high"}]})
        clock.now += 8 * DAY
        assert other.catalog.bring_in(document) == 0


def test_a_catalog_that_cannot_be_read_never_keeps_a_message_back(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an unreadable catalog `inject` returns the message alone, with the reason."""

    def refuse(*_: object, **__: object) -> None:
        raise StorageError("the disk has gone")

    monkeypatch.setattr(memory._parts.agents.catalog, "get_relevant", refuse)
    message = memory.inject("How?", agent="ada")
    assert (message, message.context_loaded, message.injection.problem) == ("How?", False, "the disk has gone")
