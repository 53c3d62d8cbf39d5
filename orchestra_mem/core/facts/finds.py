"""What was found in an operation, on its way to a fact: the clearest of it, each thing once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime

from orchestra_mem.core.cues.cue import THRESHOLD, LazyPattern
from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.text import content_stems
from orchestra_mem.types import MustKeep, MustKeepKind

_SHORT_CHARS = 1_000  # of a text up to this size everything found is kept; of longer ones a share
_SHARE = 0.12
_MAX_FINDS = 24
_MIN_REPEATED_STEMS = 3
_NEGATION = LazyPattern(r"\b(?:not|never|no|nobody|nothing|only|without|\w+n't|cannot)\b")

RANK = {
    kind: rank
    for rank, kind in enumerate(
        (
            MustKeepKind.CONSTRAINT,
            MustKeepKind.DECISION,
            MustKeepKind.ROLE,
            MustKeepKind.OPEN_ITEM,
            MustKeepKind.FAILURE,
            MustKeepKind.COMPLETION,
        )
    )
}
"""Which kind a sentence is taken for where it may be of several, and what is kept first of too much."""


@dataclass(frozen=True, slots=True)
class Find:
    """A passage of some kind: how clearly it is of that kind, and which sentence of its text it is."""

    kind: MustKeepKind
    text: str
    score: float
    place: int

    @property
    def tentative(self) -> bool:
        """Whether it is a fact only if it contradicts one."""
        return self.score < THRESHOLD


class Tentative(MustKeep):
    """What may be a fact: it is one if it takes the place of another."""

    __slots__ = ()


def told_once(finds: list[Find]) -> list[Find]:
    """Leave out what another find of the same kind says with all its words, as a commit's subject and its body do."""
    told = [(find, frozenset(content_stems(find.text)), _NEGATION.search(find.text.lower()) is None) for find in finds]
    return [
        find
        for i, (find, stems, plain) in enumerate(told)
        if len(stems) < _MIN_REPEATED_STEMS
        or not any(
            find.kind is other.kind and plain is as_plain and (stems < theirs or (stems == theirs and i > j))
            for j, (other, theirs, as_plain) in enumerate(told)
        )
    ]


def clearest(finds: list[Find], size: int) -> list[Find]:
    """Keep the clearest finds of a long text, in the order of the text."""
    room = max(_SHORT_CHARS, int(size * _SHARE))
    if len(finds) <= _MAX_FINDS and sum(len(find.text) for find in finds) <= room:
        return finds
    kept: list[Find] = []
    for find in sorted(finds, key=lambda find: (-find.score, RANK[find.kind], find.place)):
        if len(find.text) <= room and len(kept) < _MAX_FINDS:
            kept.append(find)
            room -= len(find.text)
    return sorted(kept, key=lambda find: find.place)


def without_tentative(facts: Iterable[MustKeep]) -> list[MustKeep]:
    """Leave out what is no fact unless it takes the place of one; of those that do, facts are made."""
    told = list(facts)
    replacing = {fact.superseded_by for fact in told}
    return [
        MustKeep(**{field.name: getattr(fact, field.name) for field in fields(MustKeep)})
        if isinstance(fact, Tentative)
        else fact
        for fact in told
        if not isinstance(fact, Tentative) or (fact.id and fact.id in replacing)
    ]


def must_keeps_of(finds: list[Find], operation: int, timestamp: datetime) -> tuple[MustKeep, ...]:
    """The facts of an operation, each once, in the order in which they were found."""
    distinct = {(find.kind, find.text): find for find in reversed(finds)}
    return tuple(
        (Tentative if find.tentative else MustKeep)(
            kind=find.kind,
            text=find.text,
            operation=operation,
            timestamp=timestamp,
            identifiers=find_identifiers(find.text),
        )
        for find in reversed(distinct.values())
    )
