"""The OpenAI Agents SDK session behaves like the SDK's own, and its items become memories."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import InvalidOperationError, OperationFilter, OrchestratorContextManager, StorageError, open_memory
from orchestra_mem.integrations.openai_agents import OrchestraMemSession

_NAMES = count()
set_tracing_disabled(True)

texts = st.text(max_size=20)
parts = st.lists(st.fixed_dictionaries({"type": st.just("output_text"), "text": texts}), max_size=2)
items = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": texts | parts}),
    st.fixed_dictionaries({"type": st.just("function_call"), "name": texts, "arguments": texts, "call_id": texts}),
    st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": texts, "output": texts | parts}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "summary": parts, "encrypted_content": texts}),
    st.dictionaries(texts, st.integers() | texts | st.none(), max_size=3).filter(lambda item: "role" not in item),
)
steps = st.one_of(
    st.tuples(st.just("add_items"), st.lists(items, max_size=4)),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
    st.tuples(st.just("get_items"), st.none() | st.integers(-1, 4)),
)


async def _call(session: Any, step: Any) -> Any:
    name, *given = step
    return await getattr(session, name)(*given)


@given(st.lists(steps, max_size=10), st.none() | st.integers(0, 3))
def test_it_answers_as_the_sdks_own_session(exact: OrchestratorContextManager, calls: Any, limit: Any) -> None:
    """The session equals the SDK's own after any items added, popped or cleared, also when opened again."""
    name = f"ann {next(_NAMES)}"

    async def scenario() -> None:
        settings: dict[str, Any] = {"session_settings": {"limit": limit}}
        ours: Session = OrchestraMemSession(name, exact, **settings)
        theirs = SQLiteSession(name, **settings)
        assert isinstance(ours, Session)
        for step in calls:
            assert await _call(ours, step) == await _call(theirs, step)
        again = OrchestraMemSession(name, exact)
        assert await again.get_items(99) == await ours.get_items(99) == await theirs.get_items(99)
        theirs.close()

    asyncio.run(scenario())


@function_tool
def oven(heat: int) -> str:
    """Heat the oven."""
    return f"The oven has {heat} degrees."


def _agent() -> Agent[Any]:
    return Agent("baker", tools=[oven], model=ScriptedModel([
        [function_call("oven", {"heat": 200}, call_id="c1")], [assistant_message("It is hot.", item_id="m1")],
        [assistant_message("We baked rye bread.", item_id="m2")],
    ]))  # fmt: skip


def test_a_run_keeps_what_it_keeps_in_the_sdks_own_session(memory: OrchestratorContextManager) -> None:
    """Runs with tools keep the same items as in the SDK's own session, and all of them are in the memory."""

    async def scenario(session: Any) -> tuple[Any, Any]:
        agent = _agent()
        await Runner.run(agent, "We decided to bake rye bread on Tuesdays.", session=session)
        await Runner.run(agent, "What did we do?", session=session)
        model: Any = agent.model
        return model.last_call.input, await session.get_items()

    theirs = SQLiteSession("ann")
    assert asyncio.run(scenario(OrchestraMemSession("ann", memory))) == asyncio.run(scenario(theirs))
    theirs.close()
    kinds = ["user_message", "tool_call", "tool_result", "agent_message", "user_message", "agent_message"]
    assert [each.type for each in memory.operations()] == kinds
    assert [each.agent for each in memory.operations(OperationFilter(type="user_message"))] == ["user"] * 2
    assert [fact.text for fact in memory.facts()] == ["We decided to bake rye bread on Tuesdays."]
    assert memory.search("200 degrees", limit=1).hits[0].chunk.text == "Output: The oven has 200 degrees."
    # Contexts show what was said, without the SDK's own fields.
    shown = memory.get_orchestrator_context("x", 2_000).render()
    assert "We baked rye bread." in shown
    assert not any(word in shown for word in ("call_id", "annotations", "completed", "output_text", "as_given"))


def test_what_is_taken_back_stays_in_the_event_log(memory: OrchestratorContextManager) -> None:
    """Popped and cleared items leave the session but stay in the event log and in search."""
    session = OrchestraMemSession("ann", memory)

    async def scenario() -> None:
        await session.add_items([{"role": "user", "content": f"line {number}"} for number in range(3)])
        assert await session.pop_item() == {"role": "user", "content": "line 2"}
        await session.clear_session()
        assert await session.pop_item() is None
        assert await session.get_items() == []

    asyncio.run(scenario())
    assert [each.type for each in memory.operations()] == ["user_message"] * 3 + ["conversation_change"] * 2
    assert memory.search("line 2").hits


def test_items_are_added_all_or_none(memory: OrchestratorContextManager) -> None:
    """Items are added completely or not at all, if one is not JSON or the disk fails half-way."""

    class FullDisk:
        def __getattr__(self, name: str) -> Any:
            return getattr(memory, name)

        def record_operation(self, kind: str, *given: Any, **named: Any) -> Any:
            if kind == "tool_result":
                raise StorageError("full")
            return memory.record_operation(kind, *given, **named)

    async def scenario() -> None:
        session = OrchestraMemSession("ann", memory)
        first: Any = {"role": "user", "content": "first"}
        await session.add_items([first])
        with pytest.raises(InvalidOperationError, match=r"data\.content: a value of type set is not JSON"):
            await session.add_items([first, {"role": "user", "content": {1}}])  # type: ignore[list-item,misc]
        assert len(memory.operations()) == 1
        broken: Any = FullDisk()
        turn: Any = [{"type": "function_call", "name": "x"}, {"type": "function_call_output", "output": "y"}]
        with pytest.raises(StorageError):
            await OrchestraMemSession("ann", broken).add_items(turn)
        assert await session.get_items() == [first]
        await session.add_items(turn)
        assert await session.get_items() == [first, *turn]

    asyncio.run(scenario())


def test_each_item_is_popped_once_by_many(tmp_path: Path) -> None:
    """Sessions of two openings add and pop at once: each item is popped once, and none is lost."""

    async def scenario(sessions: list[OrchestraMemSession]) -> None:
        adding = [
            sessions[number % 2].add_items([{"role": "user", "content": f"{number}.{half}"} for half in (1, 2)])
            for number in range(8)
        ]
        await asyncio.gather(*adding)
        kept: list[Any] = await sessions[0].get_items()
        contents = [each["content"] for each in kept]
        assert all(contents[at][:-1] == contents[at + 1][:-1] for at in range(0, 16, 2))
        popped: list[Any] = await asyncio.gather(*(sessions[number % 2].pop_item() for number in range(12)))
        left: list[Any] = await sessions[1].get_items()
        assert Counter(each["content"] for each in [*popped, *left]) == Counter(contents)
        assert len(left) == 4

    with open_memory(tmp_path) as one, open_memory(tmp_path) as two:
        asyncio.run(scenario([OrchestraMemSession("ann", each) for each in (one, two)]))


def test_agents_conversations_are_apart_and_names_may_be_secrets(tmp_path: Path) -> None:
    """Agents' sessions of the same name are separate under strict isolation, and a name may be personal data."""
    config = {"catalog.isolation": "strict", "redaction.personal": True}
    name = "ann@example.com"

    async def scenario(memory: OrchestratorContextManager) -> None:
        ann, bob = memory.as_agent("ann"), memory.as_agent("bob")
        await OrchestraMemSession(name, ann).add_items([{"role": "user", "content": "The walrus is mine."}])
        assert await OrchestraMemSession(name, bob).get_items() == []
        assert await OrchestraMemSession(name, memory).get_items() == []
        assert await OrchestraMemSession(name, ann).get_items() == [{"role": "user", "content": "The walrus is mine."}]
        assert (len(ann.search("walrus").hits), len(bob.search("walrus").hits)) == (1, 0)
        assert name not in str(memory.operations())

    with open_memory(tmp_path, config=config) as memory:
        asyncio.run(scenario(memory))
