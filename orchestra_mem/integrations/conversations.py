"""Chats of other programs, stored in the memory as operations: one for each message.

Nothing is deleted: removing or archiving messages is recorded as an operation too. The list of messages is computed by
replaying a chat's operations in order, so it is the same in all processes, and after a crash.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from orchestra_mem.memory.agent_view import AgentMemory
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.serialize import checked_json
from orchestra_mem.types import AS_GIVEN, Json, Operation, OperationFilter

ACTIVE, ARCHIVED = "active", "archived"
_CHANGE = "conversation_change"
_PREFIX = "integrations.conversation "
LLAMA_INDEX, OPENAI_AGENTS = "llama-index", "openai-agents"
_TYPES = {"user": "user_message", "assistant": "agent_message"}


class NewMessage(NamedTuple):
    """A message to record: operation type, readable data, and the program's original value."""

    kind: str
    data: Mapping[str, Json]
    given: Json


class KeptMessage(NamedTuple):
    """A message of a chat: the program's original value, and its status, `active` or `archived`."""

    given: Json
    status: str


def spoken(role: str, text: str, given: Json) -> NewMessage:
    """Return a spoken message or a tool's output as a `NewMessage`, with the same types and fields for all chats."""
    if role in ("tool", "function"):
        return NewMessage("tool_result", {"output": text}, given)
    return NewMessage(_TYPES.get(role, "message"), {"role": role, "text": text}, given)


class Conversation:
    """A chat, identified by its name and its program. Each agent has separate chats. Safe for threads and processes.

    Args:
        memory: The memory to store it in; through an agent's view, operations are recorded as that agent's.
        name: Any text.
        program: The program whose chat it is: `LLAMA_INDEX` or `OPENAI_AGENTS`.
    """

    def __init__(self, memory: OrchestratorContextManager | AgentMemory, name: str, program: str) -> None:
        self._memory = memory
        self._agent = memory.agent if isinstance(memory, AgentMemory) else None
        self._name = name
        self._program = program

    @classmethod
    def names(cls, memory: OrchestratorContextManager | AgentMemory, program: str) -> list[str]:
        """Return the names of a program's chats that have messages, in the order of their first messages."""
        recorded = memory.operations(OperationFilter(idempotency_prefix=_PREFIX))
        named = dict.fromkeys(_given(each)["conversation"] for each in recorded)
        return [name for name in named if cls(memory, name, program).messages()]

    def add(self, messages: Sequence[NewMessage], status: str = ACTIVE, replace: bool = False) -> None:
        """Add all messages or none; with `replace`, replace the list. When this returns, they are stored permanently.

        Raises:
            InvalidOperationError: A message is not JSON; none is added.
            StorageError: The write failed; none is added.
        """
        if replace and not messages:
            self.change("remove")
        # A batch counts only once its last message is recorded; an earlier crash leaves the list unchanged.
        batch = f"{uuid4().hex} {status} {int(replace)} {len(messages)}"
        for each in messages:
            checked_json(each.given)
        for place, (kind, data, given) in enumerate(messages, 1):
            agent = "user" if kind == _TYPES["user"] else "assistant"
            self._record(kind, data, {"message": given}, f"{batch} {place}", agent)

    def messages(self, through: int | None = None) -> list[KeptMessage]:
        """Return the messages, oldest first: the current list, or the list after the operation `through`."""
        where = OperationFilter(idempotency_prefix=self._address, through=through)
        return _replayed(self._memory.operations(where))

    def change(
        self, change: str, first: int | None = None, last: int | None = None, status: str | None = None
    ) -> list[Json]:
        """Remove or archive messages, and return their original values.

        Args:
            change: `remove` or `archive`.
            first, last: Bounds of a slice of the messages with `status`.
            status: Restricts the change to messages with this status; None for all.
        """
        which: dict[str, Json] = {"change": change, "first": first, "last": last, "status": status}
        if not _chosen(self.messages(), which):
            return []
        done = self._record(_CHANGE, {}, which, uuid4().hex)
        # Another process may have changed the list meanwhile: replay it up to just before this operation.
        before = self.messages(done.id - 1)
        return [before[place].given for place in _chosen(before, which)]

    @cached_property
    def _address(self) -> str:
        # Addresses once lacked the program. A chat that it began there goes on there; only LlamaIndex's messages have
        # `blocks`.
        old = _address_of(self._agent, self._name)
        begun = self._memory.operations(OperationFilter(idempotency_prefix=old))
        if begun and ("blocks" in _given(begun[0])["message"]) == (self._program == LLAMA_INDEX):
            return old
        return _address_of(self._agent, self._name, self._program)

    def _record(
        self, kind: str, data: Mapping[str, Json], given: Mapping[str, Json], key: str, agent: str | None = None
    ) -> Operation:
        return self._memory.record_operation(
            kind, {**data, AS_GIVEN: {"conversation": self._name, **given}}, agent=self._agent or agent,
            idempotency_key=f"{self._address}{key}",
        )  # fmt: skip


def _address_of(*parts: str | None) -> str:
    # A digest, because the name may be long, have several lines, or be a secret and so be redacted.
    return f"{_PREFIX}{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]} "


def _replayed(operations: Iterable[Operation]) -> list[KeptMessage]:
    live: list[KeptMessage] = []
    begun: dict[str, list[KeptMessage]] = {}
    for each in operations:
        given = _given(each)
        if each.type == _CHANGE:
            chosen = set(_chosen(live, given))
            live = [
                message._replace(status=ARCHIVED) if place in chosen else message
                for place, message in enumerate(live)
                if given["change"] == "archive" or place not in chosen
            ]
            continue
        *_, batch, status, replaces, count, place = (each.idempotency_key or "").split(" ")
        begun.setdefault(batch, []).append(KeptMessage(given["message"], status))
        if place == count:
            live = [*([] if replaces == "1" else live), *begun.pop(batch)]
    return live


def _chosen(live: Sequence[KeptMessage], which: Mapping[str, Any]) -> list[int]:
    places = [place for place, each in enumerate(live) if which["status"] in (None, each.status)]
    return places[which["first"] : which["last"]]


def _given(operation: Operation) -> dict[str, Any]:
    return operation.data[AS_GIVEN] if isinstance(operation.data, dict) else {}  # type: ignore[return-value]


Result = TypeVar("Result")


async def in_thread(call: Callable[..., Result], *given: Any) -> Result:
    """Run a call in a thread without blocking the event loop.

    If the caller is cancelled, wait for the call to end first: a thread cannot be stopped, and the next call must see
    its effect.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call, *given))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # marks it as retrieved; the caller gets the cancellation instead
        raise
