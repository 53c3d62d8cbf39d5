"""Drawing how full the window is, in characters that every terminal has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rich.text import Text

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_STYLES = ("green", "yellow", "dark_orange", "bold red")


def bar(share: float, thresholds: Sequence[float], width: int = 50) -> Text:
    """A horizontal bar of a share of 1, the thresholds marked in it."""
    filled = min(width, round(share * width))
    marks = {min(width - 1, int(threshold * width)) for threshold in thresholds}
    shown = Text("│")
    for column in range(width):
        style = style_of((column + 0.5) / width, thresholds)
        if column < filled:
            shown.append("█", style=style)
        else:
            shown.append("┊" if column in marks else "·", style=style if column in marks else "dim")
    return shown.append("│")


def style_of(share: float, thresholds: Sequence[float]) -> str:
    """The colour of a share: the more thresholds it has reached, the louder."""
    return _STYLES[min(len(_STYLES) - 1, sum(share >= threshold for threshold in sorted(thresholds)))]


def plot(values: Sequence[float], marks: Mapping[float, str], *, width: int = 62, height: int = 10) -> Text:
    """Draw shares of 1 over time, `height` lines high, with a labelled line at each of the marks.

    Of more values than columns, each column shows the highest of its own.
    """
    columns = _highest(values, width)
    shown = Text()
    rows = {min(height - 1, int(mark * height)): (mark, label) for mark, label in sorted(marks.items())}
    for row in range(height - 1, -1, -1):
        mark, label = rows.get(row, (None, ""))
        edge = f"{mark:>4.0%} ┤" if mark is not None else "  0% ┤" if row == 0 else "     │"
        shown.append(edge)
        for value in columns:
            level = max(0, min(8, round((value * height - row) * 8)))
            if level:
                shown.append(_EIGHTHS[level], style=style_of(value, list(marks)))
            else:
                shown.append("┄" if mark is not None else " ", style="dim")
        if label:
            shown.append(f" {label}", style="dim")
        shown.append("\n")
    shown.append("     └" + "─" * len(columns))
    return shown


def _highest(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    edges = [len(values) * column // width for column in range(width + 1)]
    return [max(values[start:end]) for start, end in pairwise(edges)]
