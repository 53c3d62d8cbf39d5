"""The LangGraph store answers like LangGraph's `InMemoryStore`, and is persistent."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from orchestra_mem import (
    InvalidOperationError,
    OperationFilter,
    OrchestraMemError,
    OrchestratorContextManager,
    open_memory,
)
from orchestra_mem.integrations.langgraph import OrchestraMemStore
from orchestra_mem.search_types import SearchFilter
from orchestra_mem.types import Operation
from tests.memories import SMALL

_ROOTS = count()
EXACT: dict[str, Any] = {"redaction.mode": "off"}

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))
values = st.dictionaries(st.sampled_from(["a", "b", "text"]) | st.text(), json, max_size=4)
numbered = st.fixed_dictionaries(
    {"n": st.integers(-3, 3)}, optional={"a": st.sampled_from(["x", "y", {"b": 1, "c": [2]}])}
)
namespaces = st.lists(st.sampled_from(["u", "v", "w"]), min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(["k", "k.1", "ключ\n"])
puts = st.tuples(namespaces, keys, st.none() | values | numbered, st.sampled_from([None, False, ["a", "text"]]))
operators = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
filters = st.fixed_dictionaries({}, optional={
    "n": st.integers(-3, 3) | st.dictionaries(operators, st.integers(-3, 3), min_size=1),
    "a": st.sampled_from(["x", {"b": 1}, {"c": [2]}, {"$ne": "x"}]),
})  # fmt: skip
paths = st.lists(st.sampled_from(["u", "v", "*"]), max_size=2).map(tuple)
conditions = st.lists(st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), paths), max_size=2).map(tuple)


def _at(root: str, op: Any) -> Any:
    """Move an operation below a root namespace, so that the examples of a property can share a memory."""
    if isinstance(op, SearchOp):
        return op._replace(namespace_prefix=(root, *op.namespace_prefix))
    return op._replace(namespace=(root, *op.namespace))


def _shown(items: Any) -> list[tuple[Any, ...]]:
    return [(each.namespace, each.key, each.value) for each in items]


def _sorted(items: Any) -> list[tuple[Any, ...]]:
    return sorted(_shown(items), key=repr)


@settings(max_examples=20)
@given(st.lists(st.lists(puts, min_size=1, max_size=4), max_size=4), namespaces)
def test_every_value_comes_back_equal_also_after_a_restart(exact: Any, batches: Any, prefix: Any) -> None:
    """Gets and searches equal those of LangGraph's store after any puts and deletions, also in a new store."""
    root, ours, theirs = f"r{next(_ROOTS)}", OrchestraMemStore(exact), InMemoryStore()
    gets = [GetOp((root, *namespace), key) for namespace in [("u",), ("u", "v")] for key in ("k", "k.1")]
    for batch in batches:
        ops = [*gets, *(_at(root, PutOp(*put)) for put in batch)]
        before = [getattr(each, "value", None) for each in theirs.batch(ops)]
        assert [getattr(each, "value", None) for each in ours.batch(ops)] == before
    for store in (ours, OrchestraMemStore(exact)):
        assert _sorted(store.search((root,), limit=100)) == _sorted(theirs.search((root,), limit=100))
        assert _sorted(store.search((root, *prefix), limit=100)) == _sorted(theirs.search((root, *prefix), limit=100))
        pages = [store.search((root,), limit=2, offset=start) for start in range(0, 30, 2)]
        assert [each for page in pages for each in page] == store.search((root,), limit=100)


@settings(max_examples=20)
@given(st.lists(st.tuples(namespaces, keys, numbered), max_size=8), filters, st.booleans())
def test_filters_and_operators_choose_what_langgraph_chooses(exact: Any, items: Any, wanted: Any, first: bool) -> None:
    """Filters by equality, nested mappings, lists and all operators choose the same items as LangGraph's."""
    root, ours, theirs = f"r{next(_ROOTS)}", OrchestraMemStore(exact), InMemoryStore()
    for namespace, key, value in items:
        for store in (ours, theirs):
            store.put((root, *namespace), key, value)
    prefix = (root, "u") if first else (root,)
    found = ours.search(prefix, filter=wanted, limit=100)
    assert _sorted(found) == _sorted(theirs.search(prefix, filter=wanted, limit=100))


@given(
    st.lists(namespaces, max_size=8), conditions, st.none() | st.integers(1, 4), st.integers(0, 3), st.integers(0, 3)
)
@settings(max_examples=15)
def test_namespaces_are_listed_as_langgraph_lists_them(
    tmp_path_factory: Any, spaces: Any, path: Any, depth: Any, limit: int, offset: int
) -> None:
    """Namespaces are listed in LangGraph's order by prefix, suffix, wildcard, depth and page; empty ones are absent."""
    with open_memory(tmp_path_factory.mktemp("m"), config=EXACT) as memory:
        ours, theirs = OrchestraMemStore(memory), InMemoryStore()
        for namespace in spaces:
            for store in (ours, theirs):
                store.put(namespace, "k", {})
        ours.put(("gone",), "k", {})
        ours.delete(("gone",), "k")
        op = ListNamespacesOp(path, depth, limit, offset)
        assert ours.batch([op]) == theirs.batch([op])


def _texts(found: Any) -> list[str]:
    return [each.value["text"] for each in found]


def test_a_query_ranks_what_the_store_has_now(memory: OrchestratorContextManager) -> None:
    """A query ranks current items by the memory's search, with prefix, filter and pages, never replaced ones."""
    store = OrchestraMemStore(memory)
    for number, text in enumerate(
        ["Ann eats rye bread.", "Bob plays the violin.", "The port is 8080.", "Old: rye rolls."]
    ):
        store.put(("users", f"u{number % 2}"), f"k{number}", {"text": text, "n": number})
    store.put(("others",), "k", {"text": "Rye bread for others."})
    store.put(("users", "u1"), "k3", {"text": "New: the cat sleeps.", "n": 3})
    assert _texts(store.search(("users",), query="rye bread", limit=1)) == ["Ann eats rye bread."]
    assert "Old: rye rolls." not in _texts(store.search((), query="rye rolls"))
    assert _texts(store.search(("users",), query="music", limit=1, filter={"n": {"$lt": 3}})) == [
        "Bob plays the violin."
    ]
    every = store.search(("users",), query="rye bread", limit=4)
    assert every[1:3] == store.search(("users",), query="rye bread", limit=2, offset=1)
    assert all(each.score is not None for each in every)
    store.delete(("users", "u0"), "k0")
    assert "Ann eats rye bread." not in _texts(store.search((), query="rye bread"))
    assert "Ann eats rye bread." not in str(memory.search("rye bread").hits)
    # Text that the memory already showed to a model is still found once a program stores it.
    memory.retriever.retrieve_context("rye bread for others")
    store.put(("others",), "k", {"text": "Rye bread for others."})
    assert _texts(store.search((), query="rye bread for others", limit=1)) == ["Rye bread for others."]


def test_index_names_the_fields_that_an_item_is_found_and_shown_by(memory: OrchestratorContextManager) -> None:
    """`index` names the fields an item is found and shown by, `False` none; values come back complete."""
    store = OrchestraMemStore(memory)
    store.put(("a",), "whole", {"text": "alpha walrus", "more": "beta walrus"})
    store.put(("a",), "part", {"text": "gamma ibis", "deep": [{"more": "delta ibis"}]}, index=["deep[*].more"])
    store.put(("a",), "none", {"text": "epsilon ibis"}, index=False)
    assert [each.key for each in store.search(("a",), query="delta ibis", limit=1)] == ["part"]
    assert "none" not in [each.key for each in store.search(("a",), query="epsilon ibis")]
    assert [each.value["text"] for each in store.search(("a",))] == ["epsilon ibis", "gamma ibis", "alpha walrus"]
    shown = "".join(
        memory.get_orchestrator_context("x", 2_000, query=query).render() for query in ("walrus", "ibis", "epsilon")
    )
    assert [each in shown for each in ("beta walrus", "delta ibis", "gamma")] == [True, True, False]
    assert "epsilon ibis" not in shown


def test_an_item_keeps_when_it_was_made(memory: OrchestratorContextManager, clock: Any) -> None:
    """An item keeps its creation time when it changes; a change renews its update time and lists it first."""
    store = OrchestraMemStore(memory)
    clock.step = clock.step.resolution
    store.put(("a",), "k", {"n": 1})
    store.put(("a",), "l", {"n": 2})
    made = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 3})
    changed = store.get(("a",), "k")
    assert made is not None
    assert changed is not None
    assert changed.created_at == made.created_at == made.updated_at < changed.updated_at
    assert [each.key for each in store.search(("a",))] == ["k", "l"]
    changed.value["n"] = 4  # the caller's own copy
    assert _shown(store.search(("a",), filter={"n": 3})) == [(("a",), "k", {"n": 3})]


def test_what_was_put_is_seen_by_other_processes_at_once(tmp_path: Path) -> None:
    """Another opening of the memory sees a put or deletion as soon as the call has returned."""
    with open_memory(tmp_path) as one, open_memory(tmp_path) as other:
        here, there = OrchestraMemStore(one), OrchestraMemStore(other)
        assert there.search(()) == []
        here.put(("a",), "k", {"n": 1})
        here.put(("a",), "gone", {})
        assert len(there.search(())) == 2
        here.delete(("a",), "gone")
        assert _shown(there.search(())) == [(("a",), "k", {"n": 1})]


def test_faults_are_told_and_nothing_of_a_bad_batch_is_stored(memory: OrchestratorContextManager) -> None:
    """Invalid values, names, operators and expiry raise errors, and a batch with a fault stores nothing."""
    store = OrchestraMemStore(memory)
    with pytest.raises(InvalidOperationError, match=r"data\.value\.x: a value of type set is not JSON"):
        store.batch([PutOp(("a",), "k", {}), PutOp(("a",), "l", {"x": {1}})])
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {}, ttl=5)
    with pytest.raises(NotImplementedError, match="do not expire"):
        store.batch([PutOp(("a",), "k", {}, ttl=5)])
    with pytest.raises(InvalidNamespaceError):
        store.put(("langgraph",), "k", {})
    assert store.search(()) == []
    store.put(("a",), "k", {"n": 1})
    with pytest.raises(ValueError, match=r"'\$in' is not a filter operator; use one of: \$eq, \$ne, \$gt"):
        store.search((), filter={"n": {"$in": [1]}})
    assert store.search((), filter={"n": {"$gt": "x"}}) == []
    store.delete(("a",), "never was")
    assert len(memory.operations()) == 1
    memory.record_operation("store_item", {"text": "of another program"})
    assert [each.key for each in store.search(())] == ["k"]


def test_items_push_nothing_out_of_working_memory_and_stand_in_no_document(tmp_path: Path) -> None:
    """Items neither fill the window, push operations out of working memory, nor appear in documents."""
    with open_memory(tmp_path) as memory:
        memory.record_operation("decision", {"text": "We keep the ledger in SQLite"})
        used = memory.context_tracker.used_tokens()
        store = OrchestraMemStore(memory)
        for number in range(120):
            store.put(("notes",), f"k{number}", {"text": f"walrus number {number}"})
        assert memory.context_tracker.used_tokens() == used
        assert [each.type for each in memory.working_memory.get_all_operations()] == ["decision"]
        memory.refresh()
    with open_memory(tmp_path) as memory:
        assert len(memory.working_memory.get_all_operations()) <= 1
        (live,) = (tmp_path / ".obra").rglob("session_*.md")
        live.unlink(missing_ok=True)
        memory.record_operation("message", {"role": "user", "text": "Is the ledger safe?"})
        OrchestraMemStore(memory).put(("notes",), "last", {"n": 1})
        memory.refresh()
        context = memory.get_orchestrator_context("answer").render()
        path = memory.flush_session()
        assert path is not None
        document = path.read_text(encoding="utf-8")
        assert "Is the ledger safe?" in document
        assert "We keep the ledger in SQLite" in document
        assert "walrus" not in context + document
        assert _texts(OrchestraMemStore(memory).search(("notes",), query="walrus number 119", limit=1)) == [
            "walrus number 119"
        ]


def test_secrets_leave_values_and_names_and_are_still_addressed(memory: OrchestratorContextManager) -> None:
    """A secret in a value, key or namespace is stored as a placeholder, and the item is still found by it."""
    store = OrchestraMemStore(memory)
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    store.put(("a", secret), secret, {"token": secret, "n": 1})
    found = store.get(("a", secret), secret)
    assert found is not None
    assert found.value["n"] == 1
    assert found.value["token"].startswith("[redacted:github-token:")
    assert secret not in str([memory.operations(), store.search(()), store.list_namespaces()])


def test_an_agents_store_has_what_the_agent_may_see(tmp_path: Path) -> None:
    """With strict isolation, an agent's store hides items it may not read, and its puts do not change another's."""
    config = {"catalog.isolation": "strict", "catalog.permissions": {"ann": {"read": ["bob"]}}}
    with open_memory(tmp_path, config=config) as memory:
        owner, ann, bob = (OrchestraMemStore(each) for each in (memory, memory.as_agent("ann"), memory.as_agent("bob")))
        owner.put(("a",), "owners", {"text": "walrus of the owner"})
        bob.put(("a",), "bobs", {"text": "walrus of bob"})
        ann.put(("a",), "bobs", {"text": "walrus of ann"})
        assert _texts(owner.search(())) == ["walrus of ann", "walrus of the owner"]
        assert _texts(ann.search(())) == ["walrus of ann"]
        assert _texts(bob.search(())) == _texts(bob.search((), query="walrus")) == ["walrus of bob"]
        assert bob.get(("a",), "owners") is None


def test_asynchronous_calls_answer_alike(memory: OrchestratorContextManager) -> None:
    """The asynchronous methods answer like the synchronous ones, with many calls at a time."""
    store = OrchestraMemStore(memory)

    async def scenario() -> None:
        await asyncio.gather(*(store.aput(("a", str(number)), "k", {"n": number}) for number in range(20)))
        found = await asyncio.gather(*(store.aget(("a", str(number)), "k") for number in range(20)))
        assert [each and each.value["n"] for each in found] == [*range(20)]
        await store.adelete(("a", "3"), "k")
        assert len(await store.asearch(("a",), limit=100)) == len(await store.alist_namespaces()) == 19

    asyncio.run(scenario())
    kept: list[Operation] = memory.operations(OperationFilter(type="store_item"))
    assert len(kept) == 21
    memory.close()
    with pytest.raises(OrchestraMemError):
        store.get(("a", "1"), "k")


def test_search_has_the_last_of_each_name_wherever_operations_stand(tmp_path: Path) -> None:
    """Search finds only an item's last value: in working memory, spilled, archived and in a rebuilt index."""
    with open_memory(tmp_path, config=SMALL) as memory:
        store = OrchestraMemStore(memory)
        store.put(("a",), "gone", {"text": "We decided to paint the walrus green."})
        for number in range(60):
            store.put(("a",), "k", {"text": f"The walrus weighs {number} pounds."})
            if number == 40:
                store.delete(("a",), "gone")
                assert "green" not in str(memory.search("green walrus", limit=50).hits)
        for change in (memory.refresh, memory.flush_session, lambda: memory.update_index(anew=True)):
            change()
            hits = [hit.chunk.text for hit in memory.search("walrus", where=SearchFilter(kinds=("store_item",))).hits]
            assert hits == ["Namespace: a\nKey: k\nValue: Text: The walrus weighs 59 pounds."]
            assert _texts(store.search((), query="walrus")) == ["The walrus weighs 59 pounds."]
        assert memory.facts() == []
