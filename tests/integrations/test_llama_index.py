"""LlamaIndex adapters: the chat store answers like LlamaIndex's own, and the block recalls within a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.agent import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from llama_index.core.utils import get_tokenizer

from orchestra_mem import OrchestratorContextManager
from orchestra_mem.integrations.llama_index import OrchestraMemBlock, OrchestraMemChatStore

ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED
_EXAMPLES = count()

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
blocks = st.builds(TextBlock, text=texts) | st.builds(
    ToolCallBlock,
    tool_call_id=st.none(),
    tool_name=texts,
    tool_kwargs=st.dictionaries(texts, st.integers(), max_size=2),
)
messages = st.builds(
    ChatMessage, role=st.sampled_from(["user", "assistant", "tool", "system"]), blocks=st.lists(blocks, max_size=2),
    additional_kwargs=st.dictionaries(texts, st.integers() | texts, max_size=1),
)  # fmt: skip
status = st.sampled_from([ACTIVE, ARCHIVED])
some = st.lists(messages, min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.just("add_message"), messages, status),
    st.tuples(st.just("add_messages"), some, status),
    st.tuples(st.just("set_messages"), some, status),
    st.tuples(st.just("archive_oldest_messages"), st.integers(0, 4)),
    st.tuples(st.just("delete_oldest_messages"), st.integers(0, 4)),
    st.tuples(st.just("delete_messages"), st.none() | status),
    st.tuples(st.just("get_messages"), st.none() | status, st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("count_messages"), st.none() | status),
)


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """Set an event loop for LlamaIndex's synchronous calls, which otherwise create their own and leave it open."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield
        asyncio.set_event_loop(None)


@given(st.lists(st.tuples(st.integers(0, 1), steps), max_size=8))
@settings(max_examples=20)
def test_the_chat_store_answers_as_llamaindexs_own(exact: OrchestratorContextManager, calls: Any) -> None:
    """The chat store equals LlamaIndex's own after any calls that add, set, archive or delete messages."""
    example = next(_EXAMPLES)

    async def scenario(ours: AsyncDBChatStore) -> None:
        theirs = SQLAlchemyChatStore("t")
        chats = [f"ann {example}", f"bob {example}"]
        for chat, (name, *more) in calls:
            assert await getattr(ours, name)(chats[chat], *more) == await getattr(theirs, name)(chats[chat], *more)
        known = [key for key in await ours.get_keys() if key in chats]
        assert sorted(known) == sorted(await theirs.get_keys())
        for key in chats:
            assert await ours.get_messages(key, None) == await theirs.get_messages(key, None)
        engine = theirs._async_engine  # it has no way to be closed
        if engine is not None:
            await engine.dispose()

    asyncio.run(scenario(OrchestraMemChatStore(exact)))


def test_the_rest_of_the_chat_store(memory: OrchestratorContextManager) -> None:
    """An empty batch adds nothing, setting an empty list clears, and a message is deleted by its position."""
    store = OrchestraMemChatStore(memory)

    async def scenario() -> None:
        await store.add_messages("ann", [])
        assert await store.get_keys() == []
        picture = ChatMessage(role="user", blocks=[ImageBlock(image=b"aW1hZ2U="), TextBlock(text="look")])
        await store.set_messages("ann", [ChatMessage(role="user", content=each) for each in "abc"])
        await store.add_message("ann", picture)
        taken = await store.delete_message("ann", 1)
        assert taken is not None
        assert taken.content == "b"
        assert await store.delete_message("ann", 7) is None
        kept = await store.get_messages("ann")
        assert [each.content for each in kept] == ["a", "c", "look"]
        assert kept[2].model_dump() == picture.model_dump()
        await store.set_messages("ann", [])
        assert await store.get_messages("ann", None) == []

    asyncio.run(scenario())
    assert [each.type for each in memory.operations()] == ["user_message"] * 4 + ["conversation_change"] * 2


def _text(content: Any) -> str:
    return "".join(each.text for each in content)


def _memory(memory: Any, **more: Any) -> Memory:
    return Memory.from_defaults(session_id="ann", chat_store=OrchestraMemChatStore(memory), **more)


def test_what_leaves_a_chat_that_grows_too_long_is_recalled(memory: OrchestratorContextManager) -> None:
    """Turns archived by LlamaIndex are recalled when relevant, fenced, without control tokens, within the budget."""
    block = OrchestraMemBlock(memory=memory, max_tokens=200)
    chat_memory = _memory(memory, token_limit=400, token_flush_size=100, memory_blocks=[block])
    for number, thing in enumerate(["flour", "yeast", "rye", "butter", "violin", "ladder"]):
        told = f"The {thing} is stored in cellar {number} [INST]. " + "Filler. " * 30
        chat_memory.put(ChatMessage(role="user", content=told))
        chat_memory.put(ChatMessage(role="assistant", content="Understood."))
    active = chat_memory.get_all(ACTIVE)
    assert active == chat_memory.get_all()[-len(active) :]
    assert 0 < len(active) < len(chat_memory.get_all()) == 12
    assert active[0].role == "user"
    chat_memory.put(ChatMessage(role="user", content="In which cellar is the flour stored?"))
    first, *chat = chat_memory.get()
    assert first.role == "system"
    assert "The flour is stored in cellar 0" in (first.content or "")
    assert not any("flour is stored in" in (each.content or "") for each in chat)
    recalled = _text(asyncio.run(block.aget(chat)))
    assert "conversation_change" not in {hit.chunk.kind for hit in memory.search("conversation change").hits}
    assert 0 < len(get_tokenizer()(recalled)) <= 200
    assert recalled.startswith("```recalled ")
    assert r"cellar 0 [\INST]" in recalled


def test_the_block_recalls_what_the_chat_does_not_say(memory: OrchestratorContextManager) -> None:
    """The block recalls nothing without a question or budget, and nothing that the chat already says."""
    memory.record_operation("decision", {"text": "We decided to bake rye bread on Tuesdays."}, agent="bob")
    asked = ChatMessage(role="user", content="When do we bake rye bread?")
    told = ChatMessage(role="assistant", content="We decided to bake rye bread on Tuesdays.")

    def recalled(*chat: ChatMessage, of: Any = memory, max_tokens: int = 300) -> str:
        return _text(asyncio.run(OrchestraMemBlock(memory=of, max_tokens=max_tokens).aget(list(chat))))

    assert len(memory.facts()) == recalled(asked).count("on Tuesdays") == 1
    assert recalled(told, asked) == recalled() == recalled(told) == recalled(asked, max_tokens=0) == ""
    assert "on Tuesdays" in recalled(asked, of=memory.as_agent("ann"))


def test_the_block_gives_way_where_the_prompt_is_too_long(memory: OrchestratorContextManager) -> None:
    """The block is shortened or dropped before the chat if the prompt is too long; with priority 0 it stays."""
    for number in range(4):
        memory.record_operation("note", {"text": f"Rye bread number {number} is baked in oven {number}. " * 4})
    asked = ChatMessage(role="user", content="When do we bake rye bread number 2?")
    lengths = []
    for priority, limit in ((0, 20), (1, 10_000), (1, 220), (1, 20)):
        block = OrchestraMemBlock(memory=memory, priority=priority)
        chat = _memory(memory, token_limit=limit, memory_blocks=[block])
        chat.set([asked])
        *recalled, last = chat.get()
        assert last == asked
        lengths.append(sum((each.content or "").count("```recalled") for each in recalled))
    assert lengths[0] == lengths[1] > lengths[2] > lengths[3] == 0


def test_the_block_records_what_leaves_a_chat_that_is_kept_elsewhere(memory: OrchestratorContextManager) -> None:
    """The block records messages that leave the chat only if `accept_short_term_memory` is set."""
    message = ChatMessage(role="user", content="The flour is stored in cellar 7.")
    for accepts in (False, True):
        block = OrchestraMemBlock(memory=memory, accept_short_term_memory=accepts)
        asyncio.run(block.aput([message.model_copy(deep=True)], from_short_term_memory=True, session_id="ann"))
        assert len(memory.operations()) == accepts
    assert memory.search("flour", limit=1).hits[0].chunk.text == "The flour is stored in cellar 7."


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LlamaIndex's own
def test_an_agent_of_llamaindex_keeps_its_chat(memory: OrchestratorContextManager) -> None:
    """An agent's runs keep one chat, also with a new `Memory` of the same session."""

    async def scenario() -> list[str]:
        for line in ("We decided to bake rye bread on Tuesdays.", "When do we bake?"):
            agent = FunctionAgent(llm=MockFunctionCallingLLM(), tools=[], streaming=False)
            await agent.run(line, memory=_memory(memory))
        return [each.role.value for each in await _memory(memory).aget_all()]

    assert asyncio.run(scenario()) == ["user", "assistant", "user", "assistant"]
    assert "We decided to bake rye bread on Tuesdays." in [fact.text for fact in memory.facts()]
