"""Chats that another program keeps in the memory: each message an operation, and the list as that program left it.

Nothing is deleted. What the program takes back is recorded as a change, and the list is what the operations of a chat
say one after the other: so it is the same for all processes, and after any kill.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from orchestra_mem.memory.agent_view import AgentMemory
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.serialize import checked_json
from orchestra_mem.types import AS_GIVEN, Json, Operation, OperationFilter

ACTIVE, ARCHIVED = "active", "archived"
_CHANGE = "conversation_change"
_PREFIX = "integrations.conversation "
_TYPES = {"user": "user_message", "assistant": "agent_message"}


class NewMessage(NamedTuple):
    """A message as it is recorded: an operation of type `kind` that tells people `data`, and what the program gave."""

    kind: str
    data: Mapping[str, Json]
    given: Json


class KeptMessage(NamedTuple):
    """A message of the list as the program gave it; `status` is active or archived."""

    given: Json
    status: str


def spoken(role: str, text: str, given: Json) -> NewMessage:
    """Make a message of what somebody said, or a tool printed, as the memory knows them from other chats."""
    if role in ("tool", "function"):
        return NewMessage("tool_result", {"output": text}, given)
    return NewMessage(_TYPES.get(role, "message"), {"role": role, "text": text}, given)


class Conversation:
    """One chat, by its name; an agent's are its own. Safe to share between threads and processes.

    Args:
        memory: where it is kept; an agent's view records in the agent's name.
        name: which one; any text.
    """

    def __init__(self, memory: OrchestratorContextManager | AgentMemory, name: str) -> None:
        self._memory = memory
        self._agent = memory.agent if isinstance(memory, AgentMemory) else None
        self._name = name
        # A digest, as the name may be long, of several lines, or a secret that is not stored as it is.
        digest = hashlib.sha256(json.dumps([self._agent, name]).encode()).hexdigest()
        self._address = f"{_PREFIX}{digest[:32]} "

    @classmethod
    def names(cls, memory: OrchestratorContextManager | AgentMemory) -> list[str]:
        """Name the chats that have messages, in the order in which they began."""
        recorded = memory.operations(OperationFilter(idempotency_prefix=_PREFIX))
        named = dict.fromkeys(_given(each)["conversation"] for each in recorded)
        return [name for name in named if cls(memory, name).messages()]

    def add(self, messages: Sequence[NewMessage], status: str = ACTIVE, replace: bool = False) -> None:
        """Add messages, all or none of them, or put them in the place of all; when this returns they are kept.

        Raises:
            InvalidOperationError: one of them is no JSON; none is added.
            StorageError: they could not be stored.
        """
        if replace and not messages:
            self.change("remove")
        # They count from the last one on: where a process dies before, the list stays as it was.
        batch = f"{uuid4().hex} {status} {int(replace)} {len(messages)}"
        for each in messages:
            checked_json(each.given)
        for place, (kind, data, given) in enumerate(messages, 1):
            agent = "user" if kind == _TYPES["user"] else "assistant"
            self._record(kind, data, {"message": given}, f"{batch} {place}", agent)

    def messages(self, through: int | None = None) -> list[KeptMessage]:
        """Give the list, oldest first, as it is, or was right behind an operation."""
        where = OperationFilter(idempotency_prefix=self._address, through=through)
        return _replayed(self._memory.operations(where))

    def change(
        self, change: str, first: int | None = None, last: int | None = None, status: str | None = None
    ) -> list[Json]:
        """Remove or archive messages, and give them as they were given.

        Args:
            change: `remove` or `archive`.
            first, last: which, as a slice has it.
            status: of those with it alone.
        """
        which: dict[str, Json] = {"change": change, "first": first, "last": last, "status": status}
        if not _chosen(self.messages(), which):
            return []
        done = self._record(_CHANGE, {}, which, uuid4().hex)
        # Another process may have been faster: what stood there right before is what was taken.
        before = self.messages(done.id - 1)
        return [before[place].given for place in _chosen(before, which)]

    def _record(
        self, kind: str, data: Mapping[str, Json], given: Mapping[str, Json], key: str, agent: str | None = None
    ) -> Operation:
        return self._memory.record_operation(
            kind, {**data, AS_GIVEN: {"conversation": self._name, **given}}, agent=self._agent or agent,
            idempotency_key=f"{self._address}{key}",
        )  # fmt: skip


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
    """Run a call in a thread, so that the loop goes on.

    Where the caller is cancelled the call still comes to its end first: a thread cannot be stopped, and who asks next
    is to see what it did.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call, *given))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # looked at: the caller hears of the cancellation
        raise
