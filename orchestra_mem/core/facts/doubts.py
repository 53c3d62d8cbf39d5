"""Which standing fact a later one has perhaps taken back, where nothing says so outright: weak signs, weighed together.

`reversals` tells what is sure. A theme that comes again, another value of the same type, a word of change, the grammar
of a decision say little each; where enough of them meet, the earlier fact is perhaps superseded, and stands on.
Rather none than a wrong one: in talk that goes on about a theme, most that shares its words takes nothing back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from orchestra_mem.core.cues.cue import LazyPattern
from orchestra_mem.core.cues.grammar import is_wishful
from orchestra_mem.core.facts.clauses import CLOSED, COUNTED, LETTERS, NO_TOPIC, NUMERIC
from orchestra_mem.core.facts.contradiction import MIN_OPERATIONS, concludes
from orchestra_mem.core.facts.restatements import ADDS
from orchestra_mem.core.facts.topics import Profile
from orchestra_mem.core.text import content_stems
from orchestra_mem.types import MustKeep, MustKeepKind

_SETTLING = frozenset({MustKeepKind.DECISION, MustKeepKind.CONSTRAINT})
_MAX_CHARS = 200
_FAR_OPERATIONS = 60

# Set by hand on written dialogues and recorded talk, and near to the coefficients of a logistic regression over these.
# Of the facts that reach the sum, more have been taken back than not.
_ENOUGH = 3.5
_SHARED = ((1, 3.0), (3, 2.0), (8, 1.0))  # up to so many standing facts have the stem: what it counts
_SHARED_BY_MANY = 0.3
_SAME_AGAIN = 3  # what shares more stems tells the same again, or goes into detail
_SHARE = 2.0  # for all that the earlier one is about
_OTHER_COUNT = 4.0  # `eleven towns`, `seven towns`
_OTHER_VALUE = 3.0
_NAMED = 2.0  # what it says is off, or speaks against, stands in the earlier one
_TAKES_BACK = 2.0
_SETS_AGAINST = 1.0
_ARGUES = 0.5  # for each of: a conclusion, a word of change, a reason against something
_GRAMMAR = 0.5
_LEAST_GRAMMAR = -5.0
_BRIEF_BLANKS, _OF_BRIEF = 4, -3.0  # so few words have no grammar of either sort
_OF_RULE = -2.0  # rules are seldom taken back

# A noun, as far as what stands before it tells: only these say what a fact is about.
_THING = LazyPattern(
    r"\b(?:the|an?|our|my|your|his|her|their|this|that|those|these|no|any|each|every|of|for|with|about|from|to|in|on|"
    r"at|by|through|as|into|\d+) (?P<thing>[\w.'-]+(?: [\w.'-]+)?)|^(?P<first>[\w.'-]+)|(?P<label>[\w.'-]+):"
)
# Two things of a kind, told apart by number.
_NUMBERED = LazyPattern(
    r"\b(point|item|rule|section|page|step|question|ticket|issue|part|chapter|paragraph|task|case|phase|room|table|"
    r"line|option) (\d+|one|two|three|four|five|six|seven|eight|nine|ten)\b"
)
_TOO = re.compile(r"\btoo[.!]?$")
# What comes next, or was said before, leaves what was settled as it is.
_PROPOSES = re.compile(r"(?:\w+,? ){0,2}(?:let's|remember|remind)\b")


def doubted(
    fact: MustKeep,
    profile: Profile,
    standing: Callable[[], Iterable[tuple[MustKeep, Profile]]],
    count: Callable[[str], int],
) -> MustKeep | None:
    """Find the fact that a later one has most likely taken back, if one is likely enough.

    Args:
        fact: The later fact, which surely takes back none.
        profile: What it is about.
        standing: Gives facts that share a stem with it.
        count: How many standing facts are about a stem.
    """
    if fact.kind not in _SETTLING or not _settles_plainly(fact, profile):
        return None
    alone = _weigh_alone(profile)
    found: tuple[float, int, MustKeep] | None = None
    for older, past in standing():
        if not MIN_OPERATIONS <= fact.operation - older.operation <= _FAR_OPERATIONS:
            continue
        if older.kind not in _SETTLING or older.superseded_by:
            continue
        weight = alone + (_OF_RULE if older.kind is MustKeepKind.CONSTRAINT else 0.0)
        if weight + _most(profile, past) < _ENOUGH or not _can_be_meant(fact, profile, older, past):
            continue
        weight += _weigh_both(profile, past, count)
        if weight >= _ENOUGH and (found is None or (weight, older.id) > found[:2]):
            found = (weight, older.id, older)
    return found[2] if found else None


def _settles_plainly(fact: MustKeep, profile: Profile) -> bool:
    """Tell whether a fact is short, and speaks of no feeling, no wish, and nothing that is added."""
    if len(fact.text) > _MAX_CHARS or not profile.topic or ADDS.search(profile.text) or _TOO.search(profile.text):
        return False
    if _PROPOSES.match(profile.text) and not profile.reverses:
        return False
    return not is_wishful(profile.text)


def _weigh_alone(newer: Profile) -> float:
    """Add up what speaks for a fact taking back something, whatever that is."""
    weight = _TAKES_BACK if newer.takes_back else _SETS_AGAINST * newer.reverses
    weight += _ARGUES * (concludes(newer) + newer.changes + newer.fails)
    brief = newer.text.count(" ") <= _BRIEF_BLANKS
    return weight + _GRAMMAR * (_OF_BRIEF if brief else max(_LEAST_GRAMMAR, newer.deciding))


def _most(newer: Profile, older: Profile) -> float:
    """The most that two facts can come to together, told without reading the earlier one; mostly it is too little."""
    shared = newer.topic & older.topic
    if len(shared) > _SAME_AGAIN and not newer.reverses:
        return -inf
    signs = _signs_of(newer)
    values = max(_OTHER_COUNT if signs.counts else 0.0, _OTHER_VALUE if signs.types else 0.0)
    against = _NAMED if signs.against else 0.0
    return values + against + len(shared) * _SHARED[0][1] + _SHARE * len(shared) / (len(older.topic) or 1)


def _can_be_meant(fact: MustKeep, profile: Profile, older: MustKeep, past: Profile) -> bool:
    """Tell whether a later fact may take back an earlier one: it says something else, of the same thing, plainly."""
    if len(older.text) > _MAX_CHARS or older.weight > fact.weight or is_wishful(past.text):
        return False
    if past.topic <= profile.topic and not (profile.reverses or profile.fails):
        return False
    mine, theirs = _signs_of(profile), _signs_of(past)
    if _differ(mine.labels, theirs.labels):
        return False
    marked = _differ(mine.counts, theirs.counts) or _exclude(mine.types, theirs.types)
    return marked or older.kind is not MustKeepKind.CONSTRAINT or len(profile.topic & past.topic) > 1


def _weigh_both(newer: Profile, older: Profile, count: Callable[[str], int]) -> float:
    """Add up what speaks for a later fact having taken back just this earlier one."""
    shared = newer.topic & older.topic
    mine, theirs = _signs_of(newer), _signs_of(older)
    weight = _SHARE * len(shared) / (len(older.topic) or 1)
    if _differ(mine.counts, theirs.counts):
        weight += _OTHER_COUNT
    elif _exclude(mine.types, theirs.types):
        weight += _OTHER_VALUE
    if not mine.against.isdisjoint(older.topic):
        weight += _NAMED
    things = shared if newer.takes_back else mine.things | theirs.things | mine.against
    return weight + sum(_worth(count(word)) for word in shared if word in things and not word[0].isdigit())


def _worth(count: int) -> float:
    return next((worth for most, worth in _SHARED if count <= most), _SHARED_BY_MANY)


@dataclass(frozen=True, slots=True)
class _Signs:
    """What two facts are compared by: stems of nouns and of what is spoken against, and what excludes another."""

    things: frozenset[str]
    against: frozenset[str]
    counts: dict[str, str]
    types: dict[str, set[str]]
    labels: dict[str, str]


@lru_cache(maxsize=640)
def _signs_of(fact: Profile) -> _Signs:
    text = fact.text
    named = (word for match in _THING.finditer(text) for word in match.groups() if word)
    types: dict[str, set[str]] = {}
    closed = (CLOSED[word] for word in LETTERS.findall(text) if word in CLOSED)
    for kind, value in (*fact.values, *closed):
        types.setdefault("number" if kind in NUMERIC else kind, set()).add(value)
    counted = ((match.group().split()[0], content_stems(match["thing"])) for match in COUNTED.finditer(text))
    return _Signs(
        things=frozenset(stem for word in named for stem in content_stems(word)) - NO_TOPIC,
        against=fact.gone | fact.old | fact.refuted,
        counts={stem: number for number, stems in counted for stem in stems},
        types=types,
        labels={match[1]: match[2] for match in _NUMBERED.finditer(text)},
    )


def _differ(mine: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    return any(mine[kind] != theirs[kind] for kind in mine if kind in theirs)


def _exclude(mine: Mapping[str, set[str]], theirs: Mapping[str, set[str]]) -> bool:
    return any(mine[kind].isdisjoint(theirs[kind]) for kind in mine if kind in theirs)
