"""Turns of a conversation: each is a user's message with everything up to the next user's message.

The number of turns shown in full depends on continuity: the cosine between the user's new message and the centroid of
the three messages before it. Callers pass the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from orchestra_mem.types import Operation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MESSAGES = frozenset({"nl_command", "user_message", "user_input", "message"})
_USERS = frozenset({"user", "human"})
_TEXTS = ("user_input", "text", "message", "content", "prompt", "input")

# Thresholds and numbers of turns from the source design: a new topic needs few earlier turns, a continued one many.
CENTROID_MESSAGES = 3
LOW_CONTINUITY = 0.3
HIGH_CONTINUITY = 0.7
FEW_TURNS = 4
USUAL_TURNS = 6
MANY_TURNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnWindow:
    """The number of turns to show in full, and the reason. `continuity` is -1 to 1, None if it was not measured."""

    turns: int = USUAL_TURNS
    reason: str
    continuity: float | None = None


def user_message(operation: Operation) -> str:
    """Return the text of a user's message; empty if the operation is not a user's message."""
    data = operation.data
    if not isinstance(data, dict):
        return data if isinstance(data, str) and operation.type in _MESSAGES else ""
    role = data.get("role")
    if (isinstance(role, str) and role.lower() not in _USERS) or (role is None and operation.type not in _MESSAGES):
        return ""
    return next((text for name in _TEXTS if isinstance(text := data.get(name), str) and text.strip()), "")


def latest_messages(operations: Sequence[Operation]) -> list[str]:
    """Return the user's newest messages, oldest first: the last message and the three that it is compared with."""
    newest_first = filter(None, map(user_message, reversed(operations)))
    return list(islice(newest_first, CENTROID_MESSAGES + 1))[::-1]


def first_of_turns(operations: Sequence[Operation], turns: int) -> int:
    """Return the id of the first operation of the newest `turns` turns; 0 if there is no user message."""
    starts = [operation.id for operation in operations if user_message(operation)]
    return starts[-turns:][0] if starts else 0


def turn_window(message: NDArray[np.float32], earlier: Sequence[NDArray[np.float32]]) -> TurnWindow:
    """Choose how many turns of the conversation to show in full.

    Args:
        message: Vector of the new message, float32, shape (dim,).
        earlier: Unit vectors of the user's earlier messages, oldest first; zeros for a message without content.
    """
    measured = continuity(message, earlier[-CENTROID_MESSAGES:])
    if measured is None:
        return TurnWindow(reason="the messages have no content to compare")
    turns, reason = USUAL_TURNS, f"continuity {measured:.2f} is between {LOW_CONTINUITY} and {HIGH_CONTINUITY}"
    if measured < LOW_CONTINUITY:
        turns, reason = FEW_TURNS, f"a new topic: continuity {measured:.2f} is below {LOW_CONTINUITY}"
    elif measured > HIGH_CONTINUITY:
        turns, reason = MANY_TURNS, f"one topic: continuity {measured:.2f} is above {HIGH_CONTINUITY}"
    return TurnWindow(turns=turns, continuity=measured, reason=reason)


def continuity(message: NDArray[np.float32], earlier: Sequence[NDArray[np.float32]]) -> float | None:
    """Return the cosine between a vector and the centroid of others, -1 to 1; None if either is zero."""
    import numpy as np  # imported here, as it loads slowly and is only needed with an embedder

    new, centroid = message.astype(np.float64), np.sum(earlier, axis=0, dtype=np.float64)
    lengths = float(np.linalg.norm(new) * np.linalg.norm(centroid))
    return float(np.clip(new @ centroid / lengths, -1.0, 1.0)) if lengths else None
