"""The turns of a talk among operations: what a user said, and what was done about it until he spoke again."""

from __future__ import annotations

from collections.abc import Sequence

from orchestra_mem.core.context.continuity import CENTROID_MESSAGES, USUAL_TURNS, TurnWindow
from orchestra_mem.types import Operation

_MESSAGES = frozenset({"nl_command", "user_message", "user_input", "message"})
_USERS = frozenset({"user", "human"})
_TEXTS = ("user_input", "text", "message", "content", "prompt", "input")

NO_EMBEDDER = TurnWindow(turns=USUAL_TURNS, reason="there is no embedder at hand to compare messages with")


def user_message(operation: Operation) -> str:
    """What a user said in an operation; empty where it is none of his."""
    data = operation.data
    if not isinstance(data, dict):
        return data if isinstance(data, str) and operation.type in _MESSAGES else ""
    role = data.get("role")
    if (isinstance(role, str) and role.lower() not in _USERS) or (role is None and operation.type not in _MESSAGES):
        return ""
    return next((text for name in _TEXTS if isinstance(text := data.get(name), str) and text.strip()), "")


def latest_messages(operations: Sequence[Operation]) -> list[str]:
    """The user's newest messages, oldest first: the last one, and those that it is compared with."""
    found: list[str] = []
    for operation in reversed(operations):
        if len(found) > CENTROID_MESSAGES:
            break
        if message := user_message(operation):
            found.append(message)
    return found[::-1]


def first_of_turns(operations: Sequence[Operation], turns: int) -> int:
    """The id of the operation that the newest `turns` turns begin with; 0 where nobody has said anything."""
    starts = [operation.id for operation in operations if user_message(operation)]
    return starts[-turns:][0] if starts else 0
