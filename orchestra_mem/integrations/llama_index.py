"""A chat store and a memory block for LlamaIndex's `Memory`: they store its chats, and recall relevant passages."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from orchestra_mem.core.control_tokens import neutralise
from orchestra_mem.core.search.echoes import fenced, plain_words
from orchestra_mem.errors import EmbedderError, SearchError, StorageError
from orchestra_mem.integrations.conversations import LLAMA_INDEX, Conversation, NewMessage, in_thread, spoken
from orchestra_mem.memory.agent_view import AgentMemory
from orchestra_mem.memory.manager import OrchestratorContextManager

try:
    from llama_index.core.base.llms.types import ChatMessage, ContentBlock, TextBlock
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
    from llama_index.core.utils import get_tokenizer
except ImportError as error:
    raise ImportError(
        f"the LlamaIndex integration needs `pip install 'orchestra-mem[llama-index]'`: {error}"
    ) from error

logger = logging.getLogger(__name__)

_ACTIVE = MessageStatus.ACTIVE
_MOST_HITS = 20


class OrchestraMemChatStore(AsyncDBChatStore):
    """Stores the chats of LlamaIndex's `Memory` as operations: `Memory.from_defaults(chat_store=…)`.

    Deleted or replaced messages leave the chat, but stay in the event log.

    Args:
        memory: The memory to store chats in; each agent's view has separate chats.
    """

    _memory: OrchestratorContextManager | AgentMemory = PrivateAttr()

    def __init__(self, memory: OrchestratorContextManager | AgentMemory) -> None:
        super().__init__()
        self._memory = memory

    async def get_messages(
        self, key: str, status: MessageStatus | None = _ACTIVE, limit: int | None = None, offset: int | None = None
    ) -> list[ChatMessage]:
        """Return a chat's messages with a status, oldest first: at most `limit`, after skipping the first `offset`."""
        kept = await in_thread(self._chat(key).messages)
        found = [each.given for each in kept if status in (None, each.status)]
        return _read(found[offset or 0 :][:limit])

    async def count_messages(self, key: str, status: MessageStatus | None = _ACTIVE) -> int:
        """Return the number of a chat's messages with a status, of all messages if `status` is None."""
        return len(await self.get_messages(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = _ACTIVE) -> None:
        """Add a message. When this returns, it is stored permanently."""
        await self.add_messages(key, [message], status)

    async def add_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = _ACTIVE) -> None:
        """Add messages, all or none."""
        await in_thread(self._chat(key).add, _written(messages), status.value)

    async def set_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = _ACTIVE) -> None:
        """Replace all messages of a chat, all or none."""
        await in_thread(self._chat(key).add, _written(messages), status.value, True)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete and return the message at `idx`, counted from 0 over all messages; None if `idx` is out of range."""
        return next(iter(await self._change(key, "remove", None, idx, idx + 1)), None)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete all messages of a chat, or only the messages with a status."""
        await self._change(key, "remove", status)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the `n` oldest active messages, and return them."""
        return await self._change(key, "remove", _ACTIVE, 0, max(0, n))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the `n` oldest active messages, and return them."""
        return await self._change(key, "archive", _ACTIVE, 0, max(0, n))

    async def get_keys(self) -> list[str]:
        """Return the keys of all chats that have messages."""
        return await in_thread(Conversation.names, self._memory, LLAMA_INDEX)

    async def _change(
        self, key: str, change: str, status: MessageStatus | None, first: int | None = None, last: int | None = None
    ) -> list[ChatMessage]:
        return _read(await in_thread(self._chat(key).change, change, first, last, status and status.value))

    def _chat(self, key: str) -> Conversation:
        return Conversation(self._memory, key, LLAMA_INDEX)

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class, for serialisation."""
        return "OrchestraMemChatStore"


class OrchestraMemBlock(BaseMemoryBlock[list[ContentBlock]]):
    """Recalls passages for the user's last message: `Memory.from_defaults(memory_blocks=[OrchestraMemBlock(…)])`.

    Searches the entire memory. Passages that are still in the chat are left out; the others are fenced as data with
    their sources.

    Args:
        memory: The memory to search; an agent's view finds what the agent may see.
        max_tokens: Maximum number of recalled tokens, by LlamaIndex's tokenizer.
        accept_short_term_memory: Whether to record messages that leave the chat. False by default, because
            `OrchestraMemChatStore` has recorded them already; set it if another store keeps the chat.
    """

    name: str = "orchestra_mem"
    priority: int = 1  # with 0 it would not be truncated if the prompt is too long
    accept_short_term_memory: bool = False
    max_tokens: int = Field(default=500, ge=0)
    memory: OrchestratorContextManager | AgentMemory = Field(exclude=True)

    async def _aget(self, messages: list[ChatMessage] | None = None, **more: Any) -> list[ContentBlock]:
        asked = [each.content or "" for each in messages or () if each.role == "user"]
        return await in_thread(self._recalled, asked[-1], messages) if asked and asked[-1].strip() else []

    def _recalled(self, question: str, messages: Sequence[ChatMessage]) -> list[ContentBlock]:
        said = plain_words("\n".join(each.content or "" for each in messages))
        recalled: list[ContentBlock] = []
        left, count = self.max_tokens, get_tokenizer()
        try:
            hits = self.memory.search(question, limit=_MOST_HITS).hits
        except (SearchError, EmbedderError, StorageError):
            logger.warning("no memories were recalled for a chat: search is not available", exc_info=True)
            return []
        for hit in hits:
            text = neutralise(fenced(hit.chunk.text, hit.chunk.source))
            tokens = len(count(text))
            words = plain_words(hit.chunk.text)
            if not hit.perhaps and tokens <= left and words not in said:
                said += f"\n{words}"
                left -= tokens
                recalled.append(TextBlock(text=text))
        return recalled

    async def atruncate(self, content: list[ContentBlock], tokens_to_truncate: int) -> list[ContentBlock] | None:
        """Drop the least relevant passages until `tokens_to_truncate` tokens are freed; None if none are left."""
        kept, count = list(content), get_tokenizer()
        while kept and tokens_to_truncate > 0:
            tokens_to_truncate -= len(count(getattr(kept.pop(), "text", "")))
        return kept or None

    async def _aput(self, messages: list[ChatMessage]) -> None:
        record = self.memory.record_operation
        await in_thread(lambda: [record(kind, data) for kind, data, _ in _written(messages)])


def _written(messages: Sequence[ChatMessage]) -> list[NewMessage]:
    return [spoken(each.role.value, each.content or "", each.model_dump(mode="json")) for each in messages]


def _read(given: Sequence[Any]) -> list[ChatMessage]:
    return [ChatMessage.model_validate(each) for each in given]
