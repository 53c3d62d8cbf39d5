"""How far the talk has moved, and how many of its turns stand in full for that.

Continuity is the cosine of the new message and the centroid of the last three messages of the user, all as vectors that
are handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


def turn_window(message: NDArray[np.float32] | None, earlier: Sequence[NDArray[np.float32]] | None) -> TurnWindow:
    """Choose how many turns of the talk stand in full.

    Args:
        message: the vector of the new message, shape (dim,), of any length; None where there is no embedder.
        earlier: vectors of the user's messages before it, oldest first; None where there is no embedder.

    Raises:
        ValueError: vectors differ in their dimension.
    """
    if message is None or earlier is None:
        return TurnWindow(turns=USUAL_TURNS, reason="there is no embedder to compare messages with")
    if len(earlier) < CENTROID_MESSAGES:
        return TurnWindow(
            turns=USUAL_TURNS, reason=f"{len(earlier)} earlier messages are fewer than {CENTROID_MESSAGES}"
        )
    measured = continuity(message, earlier[-CENTROID_MESSAGES:])
    if measured is None:
        return TurnWindow(turns=USUAL_TURNS, reason="a message says nothing that can be compared")
    if measured < LOW_CONTINUITY:
        return TurnWindow(
            turns=FEW_TURNS,
            continuity=measured,
            reason=f"a new topic: continuity {measured:.2f} is under {LOW_CONTINUITY}",
        )
    if measured > HIGH_CONTINUITY:
        return TurnWindow(
            turns=MANY_TURNS,
            continuity=measured,
            reason=f"one topic: continuity {measured:.2f} is over {HIGH_CONTINUITY}",
        )
    return TurnWindow(
        turns=USUAL_TURNS,
        continuity=measured,
        reason=f"continuity {measured:.2f} is within {LOW_CONTINUITY} to {HIGH_CONTINUITY}",
    )


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
