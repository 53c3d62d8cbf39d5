"""A session for the OpenAI Agents SDK whose items are stored in the memory and found by its search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestra_mem.integrations.conversations import OPENAI_AGENTS, Conversation, NewMessage, in_thread, spoken

try:
    from agents.memory import SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
except ImportError as error:
    raise ImportError(
        f"the OpenAI Agents session needs `pip install 'orchestra-mem[openai-agents]'`: {error}"
    ) from error

if TYPE_CHECKING:
    from agents import TResponseInputItem

    from orchestra_mem.memory.agent_view import AgentMemory
    from orchestra_mem.memory.manager import OrchestratorContextManager


class OrchestraMemSession:
    """Stores a conversation as operations: `Runner.run(agent, line, session=OrchestraMemSession("ann", memory))`.

    Safe to share between threads and processes. Popped or cleared items leave the session, but stay in the event log.

    Args:
        session_id: Name of the conversation; the same name continues it.
        memory: The memory to store it in; each agent's view has separate conversations.
        session_settings: See the SDK's sessions.
    """

    def __init__(
        self, session_id: str, memory: OrchestratorContextManager | AgentMemory, *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.session_id = session_id
        self.session_settings: SessionSettings | None = coerce_session_settings(session_settings or SessionSettings())
        self._conversation = Conversation(memory, session_id, OPENAI_AGENTS)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest `limit` items, oldest first; None means the settings' limit, a negative number no limit."""
        most = resolve_session_limit(limit, self.session_settings)
        items: list[Any] = [each.given for each in await in_thread(self._conversation.messages)]
        return items if most is None or most < 0 else items[max(0, len(items) - most) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all or none. When this returns, they are stored permanently.

        Raises:
            InvalidOperationError: An item is not JSON.
            StorageError: The write failed.
        """
        await in_thread(self._conversation.add, [_as_message(each) for each in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item from the session and return it; None if the session is empty."""
        taken: list[Any] = await in_thread(self._conversation.change, "remove", -1)
        return taken[0] if taken else None

    async def clear_session(self) -> None:
        """Remove all items from the session."""
        await in_thread(self._conversation.change, "remove")


def _as_message(item: Mapping[str, Any]) -> NewMessage:
    given: Any = item
    kind = str(item.get("type"))
    if "role" in item:
        return spoken(str(item["role"]), _text(item.get("content")), given)
    if kind.endswith("_call"):
        return NewMessage("tool_call", {"tool": item.get("name") or kind, "arguments": item.get("arguments")}, given)
    if kind.endswith("_output"):
        return spoken("tool", _text(item.get("output")), given)
    return spoken("assistant", _text(item.get("summary")), given)


def _text(content: object) -> str:
    """Return the text of content, which is a string or a list of parts; a part without text yields its type."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = [part for part in content if isinstance(part, dict)]
    return "\n".join(str(part.get("text") or part.get("refusal") or f"[{part.get('type')}]") for part in parts)
