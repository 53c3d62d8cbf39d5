"""How must-keeps stand below a summary: a line each, with number and state; on higher levels by number alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from orchestra_mem.core.text import squeeze as squeeze
from orchestra_mem.types import Author, MustKeep, MustKeepKind, MustKeepStatus

KEPT = "Kept:"
# Ids of facts that a higher level names one by one; of more it gives the range and the number.
_MAX_NAMED_RANGES = 12
_KEPT_LINE = re.compile(
    r"^(?P<head>- (?:" + "|".join(kind.value.capitalize() for kind in MustKeepKind) + r") K(?P<number>\d+))"
    r"(?: \((?:done|superseded(?: by K\d+)?|perhaps superseded by K\d+)\))?: (?P<said>[^\n]*)\n?",
    re.MULTILINE,
)


def kept_lines(facts: Sequence[MustKeep]) -> str:
    """Return the must-keeps as they stand below a summary."""
    return f"\n{KEPT}\n\n" + "".join(kept_line(fact) for fact in facts) if facts else ""


def kept_line(fact: MustKeep) -> str:
    """Return one must-keep, with its number and state, in one line."""
    return f"- {fact.kind.value.capitalize()} K{fact.id}{state_of(fact)}: {squeeze(fact.text)}\n"


def state_of(fact: MustKeep) -> str:
    """Return what became of a fact, as it stands in its line; nothing of one that stands for sure."""
    if fact.status is MustKeepStatus.SUPERSEDED:
        return f" (superseded by K{fact.superseded_by})" if fact.superseded_by else " (superseded)"
    if fact.status is MustKeepStatus.STANDING and fact.superseded_by:
        return f" (perhaps superseded by K{fact.superseded_by})"
    return " (done)" if fact.status is MustKeepStatus.DONE else ""


def name_facts(numbers: Sequence[int]) -> str:
    """Name must-keeps by number, as in `Kept facts: K3–K7, K9.`; of very many the first, the last and the count."""
    if not numbers:
        return ""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])]
    if len(runs) > _MAX_NAMED_RANGES:
        return f"{KEPT} {len(numbers):,} facts between K{min(numbers)} and K{max(numbers)}.\n"
    names = ", ".join(f"K{run[0]}" if len(run) == 1 else f"K{run[0]}–K{run[-1]}" for run in runs)
    return f"{KEPT} {names}.\n"


def body_of(text: str) -> str:
    """Return a summary's text without the must-keeps below it."""
    if text.startswith(KEPT):
        return ""
    body, _, _ = text.partition(f"\n{KEPT}")
    return body


def kept_part(text: str) -> str:
    """Return the must-keeps below a summary, with the line that announces them; empty where there are none."""
    start = 0 if text.startswith(KEPT) else text.find(f"\n{KEPT}") + 1
    return text[start:] if start or text.startswith(KEPT) else ""


def kept_numbers(text: str) -> list[int]:
    """Return the numbers of the must-keeps that stand in a text, a line each."""
    return [int(match["number"]) for match in _KEPT_LINE.finditer(text)]


def with_states(text: str, facts: Mapping[int, MustKeep]) -> str:
    """Return a text whose lines of must-keeps tell their present state; what people changed behind it stays.

    Lines of facts that a person took out are gone, and those that one reworded say so.
    """

    def line(match: re.Match[str]) -> str:
        fact = facts.get(int(match["number"]))
        if fact is None:
            return match.group()
        if fact.status is MustKeepStatus.REMOVED:
            return ""
        said = squeeze(fact.text) if fact.author is Author.PERSON else match["said"]
        return f"{match['head']}{state_of(fact)}: {said}{match.group()[match.end('said') - match.start() :]}"

    return _KEPT_LINE.sub(line, text)


def told(text: str) -> str:
    """Return what a summary tells: its body, and what its must-keeps say."""
    return "\n".join([body_of(text), *(match["said"] for match in _KEPT_LINE.finditer(text))]).strip()


def without_states(text: str) -> str:
    """A text whose lines of must-keeps tell no state: what the machine may change in a summary is nobody's edit."""
    return _KEPT_LINE.sub(
        lambda match: f"{match['head']}: {match.group()[match.start('said') - match.start() :]}", text
    )
