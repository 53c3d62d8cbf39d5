"""How full the window was, as the shapes of a picture: numbers from 0 to 100, whatever its size on the page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestra_mem.core.context.window import UsageEvent, UsagePoint

_MOST_STEPS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowChart:
    """A line over the operations in their order; `refreshes` are where it fell: place, height, and what happened."""

    line: str
    refreshes: tuple[tuple[float, float, UsagePoint], ...]
    first: datetime | None
    last: datetime | None


def window_chart(points: Sequence[UsagePoint], max_tokens: int) -> WindowChart:
    """Draw usage. Of many points each step shows the fullest, and every refresh is there."""
    step = max(1, -(-len(points) // _MOST_STEPS))
    pieces, refreshes = [], []

    def at(place: int, tokens: int) -> tuple[float, float]:
        return round(100 * place / max(1, len(points)), 2), round(max(0.0, 100 - 100 * tokens / max_tokens), 2)

    for begin in range(0, len(points), step):
        fullest = max(points[begin : begin + step], key=lambda point: point.used_tokens)
        place = begin + min(step, len(points) - begin)
        falls = [point for point in points[begin:place] if point.event is UsageEvent.RESET]
        for point in falls:
            x, y = at(place, point.before_tokens)
            refreshes.append((x, y, point))
            pieces += [(x, y), at(place, point.used_tokens)]
        pieces += [] if falls else [at(place, fullest.used_tokens)]
    start = at(0, points[0].before_tokens) if points else (0.0, 100.0)
    line = " L".join(f"{x:g} {y:g}" for x, y in (start, *pieces))
    first, last = (points[0].time, points[-1].time) if points else (None, None)
    return WindowChart(line=f"M{line}", refreshes=tuple(refreshes), first=first, last=last)
