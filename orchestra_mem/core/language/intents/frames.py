"""Entries of the lexicon held against words: which action they tell of, and what fills their places.

An entry is a row of places; each takes one of some words, or a phrase of a kind: the work, a person, a priority, a
state. All ways in which an entry fits are given; which is meant is for the caller to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from orchestra_mem.core.language.intents.inflection import forms
from orchestra_mem.core.language.intents.lexicon import STATES, VERBS
from orchestra_mem.core.language.intents.words import MACROS, fill

WORK, PERSON, LEVEL, STATE = "_", "who", "how", "so"
_DETERMINERS = frozenset("a an the my our your its their his her this that some".split())
_PARTICLES = frozenset("up off out over down away back on in aside through along forward".split())
_MOST_WORK, _MOST_PERSON, _MOST_LEVEL = 12, 3, 5

_NEVER_IN_NAMES = frozenset("pending until till because due since by with on at to is are was were it not".split())

Span = tuple[int, int]
Row = tuple[tuple[frozenset[str], bool], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of places, each with the words that fit and whether it may stay empty; `name` is its heading."""

    name: str
    row: Row


@dataclass(frozen=True, slots=True)
class Fit:
    """How an entry fits: where it ends, what fills its places, and how many of its own words were there."""

    name: str
    end: int
    spans: dict[str, Span]
    weight: int


@cache
def entries() -> dict[str, tuple[Entry, ...]]:
    """Give the entries of verbs by their verb."""
    found: dict[str, list[Entry]] = {}
    for name, source in _read(VERBS):
        for row in _rows(source):
            for verb in row[0][0]:
                found.setdefault(verb, []).append(Entry(name, row[1:]))
    return {verb: tuple(of) for verb, of in found.items()}


@cache
def states() -> dict[str, tuple[Entry, ...]]:
    """Give the entries of states by a word with which they may begin."""
    found: dict[str, list[Entry]] = {}
    for name, source in _read(STATES):
        row = _places(source)
        for place, (words, optional) in enumerate(row):
            for word in _DETERMINERS if words == {"my"} else words:
                found.setdefault(word, []).append(Entry(name, row[place:]))
            if not optional and words != {"my"}:
                break
    return {word: tuple(of) for word, of in found.items()}


@cache
def verb_forms() -> dict[str, dict[str, frozenset[str]]]:
    """Give the verbs of the lexicon by each of their forms, and what that form is of each."""
    return forms(entries())


def _read(table: str) -> Iterator[tuple[str, str]]:
    name = ""
    for line in re.sub(r"\n {4}", " ", table).strip().split("\n"):
        name, _, listed = line.partition(" ")
        for source in re.sub(r"\|\s+", "|", listed).split(";"):
            if source.strip():
                yield name, source.strip()


def _places(source: str) -> Row:
    return tuple((frozenset(word.rstrip("?").split("|")), word.endswith("?")) for word in source.split())


def _rows(source: str) -> Iterator[Row]:
    """Give the rows of an entry; the work stands behind all, or before a particle, where no place is marked."""
    row = _places(source)
    work: Row = ((frozenset((WORK,)), False),)
    if work[0] in row:
        yield row
        return
    yield (*row, *work)
    if len(row) == 2 and row[1][0] <= _PARTICLES:
        yield (row[0], *work, row[1])


@lru_cache(maxsize=256)
def fits(verb: str, words: tuple[str, ...], start: int) -> tuple[Fit, ...]:
    """Give the ways in which the entries of a verb fit the words behind it."""
    found = []
    for entry in entries().get(verb, ()):
        found += [Fit(entry.name, end, spans, weight) for end, spans, weight in _match(entry.row, 0, words, start)]
    return tuple(found)


def fits_without_work(verb: str, words: tuple[str, ...], start: int) -> Iterator[Fit]:
    """Give the ways in which they fit where the work stands elsewhere: "was put to bed"."""
    for entry in entries().get(verb, ()):
        row = tuple(place for place in entry.row if WORK not in place[0])
        for end, spans, weight in _match(row, 0, words, start):
            yield Fit(entry.name, end, spans, weight)


@lru_cache(maxsize=256)
def state_at(words: tuple[str, ...], start: int) -> Fit | None:
    """Give the longest state that begins somewhere."""
    best: Fit | None = None
    for entry in states().get(words[start], ()) if start < len(words) else ():
        for end, spans, weight in _match(entry.row, 0, words, start):
            if best is None or end > best.end:
                best = Fit(entry.name, end, spans, weight)
    return best


def is_level(text: str) -> bool:
    """Tell whether words name a priority and nothing else."""
    return _PRIORITY.fullmatch(text) is not None


def level_at(words: tuple[str, ...], start: int) -> int:
    """Give where the longest priority ends that begins somewhere, 0 where there is none."""
    for end in range(min(len(words), start + _MOST_LEVEL), start, -1):
        if _PRIORITY.fullmatch(" ".join(words[start:end])):
            return end
    return 0


_PRIORITY = re.compile(
    fill(
        r"(?:(?:a|an|the|our|of|at|very|really|super|extremely|most|as|so|pretty|quite|rather|mega|ultra) )*"
        r"(?:(?:priority|prio|level) (?:level )?(?:of )?(?:[0-5]|one|two|three|four|five|~LEVEL)"
        r"|(?:~LEVEL)(?: (?:in |on )?(?:priority|prio|importance|urgency|level))?)"
    )
)


def _match(row: Row, place: int, words: tuple[str, ...], i: int) -> Iterator[tuple[int, dict[str, Span], int]]:
    """Yield where a row ends that is held against words from `i` on, what fills its places, and its weight."""
    if place == len(row):
        yield i, {}, 0
        return
    choices, optional = row[place]
    if special := choices & _SPECIAL:
        (kind,) = special
        for end in _ends(kind, words, i):
            for last, spans, weight in _match(row, place + 1, words, end):
                yield last, {kind: (i, end), **spans}, weight
    elif choices == _MY:
        skip = i < len(words) and words[i] in _DETERMINERS
        yield from _match(row, place + 1, words, i + skip)
        return
    elif i < len(words) and words[i] in choices:
        for last, spans, weight in _match(row, place + 1, words, i + 1):
            yield last, spans, weight + 1
    if optional:
        yield from _match(row, place + 1, words, i)


_SPECIAL = frozenset((WORK, PERSON, LEVEL, STATE))
_MY = frozenset(("my",))


def _ends(kind: str, words: tuple[str, ...], i: int) -> Iterator[int]:
    if kind == STATE:
        state = state_at(words, i)
        if state:
            yield state.end
    elif kind == LEVEL:
        if end := level_at(words, i):
            yield end
    elif kind == WORK:
        yield from range(i + 1, min(len(words), i + _MOST_WORK) + 1)
    else:
        for end in range(i + 1, min(len(words), i + _MOST_PERSON) + 1):
            if words[end - 1] in _NEVER_IN_NAMES:
                return
            yield end


BE = frozenset(word for phrase in MACROS["BE"].split("|") for word in phrase.split()) - {"to"}
