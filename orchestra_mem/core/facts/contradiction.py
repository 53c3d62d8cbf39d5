"""Whether a later fact takes an earlier one's place where no word of taking back tells: by what both are about.

`reversals` and `restatements` know the forms of taking back. Here the grammar of the later fact is that of a decision,
whatever its words, and its theme is that of an earlier one: it gives another value, or it concludes something else.
"""

from __future__ import annotations

from orchestra_mem.core.cues.cue import LazyPattern
from orchestra_mem.core.cues.grammar import LIKELY_DECISION
from orchestra_mem.core.facts.clauses import COUNTED, NO_TOPIC, NUMERIC
from orchestra_mem.core.facts.restatements import is_chosen, is_other_kind, is_other_of_kind, speaks_well
from orchestra_mem.core.facts.topics import Profile
from orchestra_mem.core.text import content_stems

# What is said of a theme within so few operations goes into detail, and takes nothing back.
MIN_OPERATIONS = 4

# `so main can use it`: what it is for, and no conclusion.
_PURPOSE = LazyPattern(r"\bso (?:that|(?:[\w.]+ ){1,3}(?:can|could|may|won't|doesn't|don't))\b")


def contradicts(newer: Profile, older: Profile) -> bool:
    """Tell whether a later fact settles anew what an earlier one settled.

    It does where it has another value of a type for the theme, or where it draws a conclusion about the same things
    and says something new of them. What takes something back in so many words says itself what that is.
    """
    shared = newer.topic & older.topic
    if not shared:
        return False
    if not _differ(newer, older) and (len(shared) < 2 or newer.topic <= older.topic or not concludes(newer)):
        return False
    if newer.takes_back or newer.deciding < LIKELY_DECISION or _is_of_others(newer, older, shared):
        return False
    return not speaks_well(newer, [word for word in shared if is_chosen(older, word)])


def _differ(newer: Profile, older: Profile) -> bool:
    """Tell whether both have values of a type, and none in common."""
    mine, theirs = _by_type(newer), _by_type(older)
    return any(mine[kind].isdisjoint(theirs[kind]) for kind in mine if kind in theirs)


def _by_type(fact: Profile) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind, value in fact.values:
        found.setdefault("number" if kind in NUMERIC else kind, set()).add(value)
    return found


def concludes(fact: Profile) -> bool:
    """Tell whether a fact draws a conclusion, and does not just tell what something is for."""
    return fact.concludes and _PURPOSE.search(fact.text) is None


def _is_of_others(newer: Profile, older: Profile, shared: frozenset[str]) -> bool:
    """Tell whether two facts speak of two things of a kind, or count different things."""
    mine, theirs = _counted(newer), _counted(older)
    if mine and theirs and mine.isdisjoint(theirs):
        return True
    if all(is_other_kind(word, newer.text, older.text) for word in shared):
        return True
    return any(
        is_other_of_kind(one, other)
        for one in newer.clauses
        for other in older.clauses
        if not one.topic.isdisjoint(other.topic)
    )


def _counted(fact: Profile) -> frozenset[str]:
    found = COUNTED.finditer(fact.text) if fact.values else ()
    return frozenset(stem for match in found for stem in content_stems(match["thing"])) - NO_TOPIC
