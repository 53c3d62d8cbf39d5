"""Turns of a conversation: what a user said, and what was done about it until the user spoke again.

How many of them stand in full depends on continuity: the cosine of the new message and the centroid of the last three
messages of the user. Vectors are handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestra_mem.types import Operation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MESSAGES = frozenset({"nl_command", "user_message", "user_input", "message"})
_USERS = frozenset({"user", "human"})
_TEXTS = ("user_input", "text", "message", "content", "prompt", "input")

# Measures and numbers of turns are those of the source design: a new topic needs little of the old, a long one much.
CENTROID_MESSAGES = 3
LOW_CONTINUITY = 0.3
HIGH_CONTINUITY = 0.7
FEW_TURNS = 4
USUAL_TURNS = 6
MANY_TURNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnWindow:
    """How many turns stand in full, and why. `continuity` is -1 to 1, None where it could not be measured."""

    turns: int
    reason: str
    continuity: float | None = None


NO_EMBEDDER = TurnWindow(turns=USUAL_TURNS, reason="there is no embedder to compare messages with")


def user_message(operation: Operation) -> str:
    """Tell what a user said in an operation; empty where it is no message of a user."""
    data = operation.data
    if not isinstance(data, dict):
        return data if isinstance(data, str) and operation.type in _MESSAGES else ""
    role = data.get("role")
    if (isinstance(role, str) and role.lower() not in _USERS) or (role is None and operation.type not in _MESSAGES):
        return ""
    return next((text for name in _TEXTS if isinstance(text := data.get(name), str) and text.strip()), "")


def latest_messages(operations: Sequence[Operation]) -> list[str]:
    """Give the user's newest messages, oldest first: the last one, and those that it is compared with."""
    found: list[str] = []
    for operation in reversed(operations):
        if len(found) > CENTROID_MESSAGES:
            break
        if message := user_message(operation):
            found.append(message)
    return found[::-1]


def first_of_turns(operations: Sequence[Operation], turns: int) -> int:
    """Give the id of the operation that the newest `turns` turns begin with; 0 where nobody has said anything."""
    starts = [operation.id for operation in operations if user_message(operation)]
    return starts[-turns:][0] if starts else 0


def turn_window(message: NDArray[np.float32] | None, earlier: Sequence[NDArray[np.float32]] | None) -> TurnWindow:
    """Choose how many turns of the conversation stand in full.

    Args:
        message: the vector of the new message, shape (dim,), of any length; None where there is no embedder.
        earlier: vectors of the user's messages before it, oldest first; None where there is no embedder.

    Raises:
        ValueError: vectors differ in their dimension.
    """
    if message is None or earlier is None:
        return NO_EMBEDDER
    if len(earlier) < CENTROID_MESSAGES:
        return few_messages(len(earlier))
    measured = continuity(message, earlier[-CENTROID_MESSAGES:])
    if measured is None:
        return TurnWindow(turns=USUAL_TURNS, reason="a message says nothing that can be compared")
    turns, reason = USUAL_TURNS, f"continuity {measured:.2f} is within {LOW_CONTINUITY} to {HIGH_CONTINUITY}"
    if measured < LOW_CONTINUITY:
        turns, reason = FEW_TURNS, f"a new topic: continuity {measured:.2f} is under {LOW_CONTINUITY}"
    elif measured > HIGH_CONTINUITY:
        turns, reason = MANY_TURNS, f"one topic: continuity {measured:.2f} is over {HIGH_CONTINUITY}"
    return TurnWindow(turns=turns, continuity=measured, reason=reason)


def few_messages(earlier: int) -> TurnWindow:
    """Give the usual number of turns, as too few messages came before to compare with."""
    return TurnWindow(turns=USUAL_TURNS, reason=f"{earlier} earlier messages are fewer than {CENTROID_MESSAGES}")


def continuity(message: NDArray[np.float32], earlier: Sequence[NDArray[np.float32]]) -> float | None:
    """Give the cosine of a vector and the centroid of others, -1 to 1; None where either has no direction.

    The others are brought to unit length first, so that a long message counts no more than a short one.

    Raises:
        ValueError: vectors differ in their dimension, or there are none.
    """
    import numpy as np  # heavy, and contexts need it only where there is an embedder

    if not len(earlier) or any(vector.shape != message.shape for vector in earlier):
        shapes = ", ".join(str(vector.shape) for vector in earlier)
        raise ValueError(f"a message of shape {message.shape} cannot be compared with {shapes or 'nothing'}")
    units = [_unit(vector) for vector in earlier]
    present = [unit for unit in units if unit is not None]
    centroid = _unit(np.mean(present, axis=0)) if present else None
    new = _unit(message)
    if centroid is None or new is None:
        return None
    return float(np.clip(new @ centroid, -1.0, 1.0))


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float64] | None:
    import numpy as np

    exact = vector.astype(np.float64)
    if not np.all(np.isfinite(exact)):
        return None
    largest = float(np.max(np.abs(exact), initial=0.0))
    if largest < 1e-12:
        return None
    scaled = exact / largest  # first, so that no square overflows or vanishes
    unit: NDArray[np.float64] = scaled / np.linalg.norm(scaled)
    return unit
