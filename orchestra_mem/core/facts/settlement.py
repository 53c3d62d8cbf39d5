"""Which facts still hold: what a later one replaces, completes or answers.

A fact is held only against those that share a stem of their topic with it; whether it takes the place of one of them
is told in `reversals`. Careful on purpose: a fact wrongly struck out is lost knowledge, one wrongly kept costs a line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from orchestra_mem.core.cues.cue import LazyPattern
from orchestra_mem.core.facts.doubts import doubted
from orchestra_mem.core.facts.finds import Tentative
from orchestra_mem.core.facts.reversals import (
    HOLDING,
    MAX_CHARS,
    can_be_replaced,
    is_later,
    may_hand_on,
    reach_of,
    replaces,
    types_of,
)
from orchestra_mem.core.facts.topics import Profile, profile_of
from orchestra_mem.types import MustKeep, MustKeepKind, MustKeepStatus

_UNFINISHED = frozenset({MustKeepKind.OPEN_ITEM, MustKeepKind.FAILURE})

# How far back a reversal without an object of its own ("scrap that") may point, in operations.
_NEAR_OPERATIONS = 3
# A stem that this many standing facts have says too little to find the one that is meant.
_COMMON = 40
_MAX_EVIDENCE = 2  # facts of the same operation, told right before, that may hold the reason
_MAX_CANDIDATES = 200


def supersedes(newer: MustKeep, older: MustKeep) -> bool:
    """Tell whether a later fact takes the place of an earlier one, judged by these two alone."""
    if newer.kind not in HOLDING or not can_be_replaced(older) or not is_later(newer, older):
        return False
    return replaces(profile_of(newer.text), profile_of(older.text), newer, older)


def settle(must_keeps: Sequence[MustKeep], *, known: int = 0) -> tuple[MustKeep, ...]:
    """Mark what later facts replaced (superseded) or completed, answered and repaired (done).

    Facts are read in order of time, whatever their order here, and come back in the order given; what was superseded
    or done before stays so. `superseded_by` is the id of the later fact, 0 where that has none yet; a fact that stands
    bears it if that one has perhaps taken its place. What is `Tentative` counts only if it replaces another, or perhaps
    does. Takes time about linear in the number of facts.

    Args:
        must_keeps: The facts.
        known: How many of the first of them have been settled among each other before. They may be marked, but mark
            nothing themselves any more.
    """
    order = sorted(range(len(must_keeps)), key=lambda i: (must_keeps[i].timestamp, must_keeps[i].operation, i))
    settled = list(must_keeps)
    standing = _Standing()
    said: list[MustKeep] = []
    for number in order:
        fact = settled[number]
        if number >= known:
            said = [before for before in said if before.operation == fact.operation]
            said.append(fact)
        if fact.status is not MustKeepStatus.STANDING:
            continue
        profile = profile_of(fact.text)
        if number >= known:
            replaced = standing.replaced_by(fact, profile, settled, said)
            for past in replaced:
                settled[past] = replace(settled[past], status=MustKeepStatus.SUPERSEDED, superseded_by=fact.id)
                standing.remove(past)
            if isinstance(fact, Tentative) and not replaced:
                continue
            for past in standing.done_by(fact, profile, settled):
                settled[past] = replace(settled[past], status=MustKeepStatus.DONE)
                standing.remove(past)
        standing.add(number, fact, profile)
    _doubt([number for number in order if number >= known], settled, standing)
    return tuple(settled)


def _doubt(numbers: Iterable[int], settled: list[MustKeep], standing: _Standing) -> None:
    """Name the later fact where one that stands in the end has perhaps been taken back; see `doubts`."""
    replacing = {fact.superseded_by for fact in settled}
    for number in numbers:
        fact = settled[number]
        if fact.status is MustKeepStatus.STANDING and fact.kind in HOLDING and fact.id and fact.id not in replacing:
            past = standing.doubted_by(number, settled)
            if past is not None:
                settled[past] = replace(settled[past], superseded_by=fact.id)


def _evidence(fact: MustKeep, said: Sequence[MustKeep]) -> Profile | None:
    """The fact together with what its operation says right before it, where that is short enough to be its reason."""
    text = " ".join(before.text for before in said[-_MAX_EVIDENCE - 1 :])
    return profile_of(text) if len(said) > 1 and len(text) <= MAX_CHARS else None


class _Standing:
    """The facts that hold so far, found by the stems of their topics."""

    def __init__(self) -> None:
        self._holding = _Index()
        self._roles = _Index()
        self._unfinished = _Index()
        self._by_text: dict[str, list[int]] = defaultdict(list)
        self._kinds: dict[int, MustKeepKind] = {}

    def add(self, number: int, fact: MustKeep, profile: Profile) -> None:
        if can_be_replaced(fact):
            (self._roles if fact.kind is MustKeepKind.ROLE else self._holding).add(number, profile)
            self._by_text[fact.text].append(number)
            self._kinds[number] = fact.kind
        elif fact.kind in _UNFINISHED:
            self._unfinished.add(number, profile)

    def remove(self, number: int) -> None:
        self._holding.remove(number)
        self._roles.remove(number)
        self._kinds.pop(number, None)
        self._unfinished.remove(number)

    def replaced_by(
        self, fact: MustKeep, profile: Profile, facts: Sequence[MustKeep], said: Sequence[MustKeep]
    ) -> list[int]:
        if fact.kind not in HOLDING and fact.kind is not MustKeepKind.COMPLETION:
            return []
        evidence = _evidence(fact, said)
        reach = reach_of(fact, profile, evidence)
        # Each pair is judged by itself: settling what is settled already changes nothing.
        same = self._standing_like(fact) if profile.topic else ()
        replaced = [number for number in same if is_later(fact, facts[number])]
        if self._roles.profiles and may_hand_on(fact, profile):
            replaced += [
                number
                for number in self._roles.near(profile.topic)
                if number not in replaced
                and is_later(fact, facts[number])
                and replaces(profile, self._roles.profiles[number], fact, facts[number])
            ]
        if reach:
            replaced += [
                number
                for number in self._holding.near((evidence or profile).topic)
                if fact.operation - facts[number].operation <= reach
                and number not in replaced
                and is_later(fact, facts[number])
                and replaces(profile, self._holding.profiles[number], fact, facts[number], evidence)
            ]
        return replaced or self._pointed_at(fact, profile, facts)

    def doubted_by(self, number: int, facts: Sequence[MustKeep]) -> int | None:
        """The fact that one which surely replaces none has perhaps taken back."""
        fact = facts[number]
        profile, own = profile_of(fact.text), number in self._holding.profiles
        near: dict[int, tuple[MustKeep, Profile]] = {}

        def standing() -> Iterable[tuple[MustKeep, Profile]]:
            profiles = self._holding.profiles
            near.update((past, (facts[past], profiles[past])) for past in self._holding.near(profile.topic))
            return near.values()

        found = doubted(fact, profile, standing, lambda word: self._holding.count(word) - own)
        return next((past for past, (older, _) in near.items() if older is found), None)

    def _standing_like(self, fact: MustKeep) -> list[int]:
        """The facts of the same kind that say the same in the same words; each, once said again, stands once."""
        same = self._by_text.get(fact.text, ())
        return [number for number in same if self._kinds.get(number) is fact.kind]

    def _pointed_at(self, fact: MustKeep, profile: Profile, facts: Sequence[MustKeep]) -> list[int]:
        """The decision right before, for a reversal that names nothing, as `Scrap that, oak instead.`"""
        if not _points_only(fact.text, profile):
            return []
        if fact.id and any(older.superseded_by == fact.id for older in facts):
            return []
        for number in reversed(self._holding.profiles):
            older = facts[number]
            if fact.operation - older.operation > _NEAR_OPERATIONS:
                continue
            if older.kind not in (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT) or not is_later(fact, older):
                continue
            if not profile.values or types_of(profile.values) & types_of(self._holding.profiles[number].values):
                return [number]
        return []

    def done_by(self, fact: MustKeep, profile: Profile, facts: Sequence[MustKeep]) -> list[int]:
        if fact.kind not in (MustKeepKind.COMPLETION, MustKeepKind.DECISION, MustKeepKind.ROLE):
            return []
        repairs = fact.kind is MustKeepKind.COMPLETION and _REPAIRED.search(profile.text) is not None
        done: list[int] = []
        for number in self._unfinished.near(profile.topic):
            older, past = facts[number], self._unfinished.profiles[number]
            if older.kind is MustKeepKind.FAILURE:
                closes = repairs and _repairs(fact, profile, older, past)
            else:
                settles = fact.kind is MustKeepKind.COMPLETION or past.undecided
                closes = settles and _closes(fact, profile, older, past)
            if closes and is_later(fact, older):
                done.append(number)
        return done


class _Index:
    """Facts by the stems of their topics."""

    def __init__(self) -> None:
        self.profiles: dict[int, Profile] = {}
        self._by_stem: dict[str, dict[int, None]] = defaultdict(dict)

    def add(self, number: int, profile: Profile) -> None:
        self.profiles[number] = profile
        for word in profile.topic:
            self._by_stem[word][number] = None

    def remove(self, number: int) -> None:
        profile = self.profiles.pop(number, None)
        for word in profile.topic if profile else ():
            self._by_stem[word].pop(number, None)

    def count(self, word: str) -> int:
        """How many facts are about a stem."""
        return len(self._by_stem.get(word, ()))

    def near(self, topic: frozenset[str]) -> Iterable[int]:
        """The facts that share a stem, those with rare ones first."""
        known = sorted((self._by_stem[word] for word in topic if word in self._by_stem), key=len)
        near: dict[int, None] = {}
        for numbers in known:
            if near and len(numbers) > _COMMON:
                break
            for number in reversed(numbers):
                near[number] = None
                if len(near) >= _MAX_CANDIDATES:
                    return near
        return near


_REPAIRED = LazyPattern(
    r"\b(?:fix(?:ed|es)?|repaired|resolved?|solved|works? again|working again|back (?:up|online)|pass(?:es|ing|ed)?|"
    r"replaced|sorted|"
    r"patched|restored|recovered|up and running|green|unblocked|closed|rebuilt|cleared|works now|running again|"
    r"reverted)\b"
)


def _shared_names(fact: MustKeep, older: MustKeep) -> bool:
    names = {name for name in older.identifiers if "#" in name or "-" in name or "_" in name}
    return bool(names) and not names.isdisjoint(fact.identifiers)


def _repairs(fact: MustKeep, profile: Profile, older: MustKeep, past: Profile) -> bool:
    """Tell whether a completion that speaks of repair is about a failure."""
    topic, wanted = profile.purpose, past.purpose
    shared = len(topic & wanted)
    if _shared_names(fact, older) or shared / max(1, len(topic)) >= 0.6:
        return True
    return shared >= 2 and (shared / len(wanted) >= 0.4 or shared / len(topic) >= 0.4)


def _closes(fact: MustKeep, profile: Profile, older: MustKeep, past: Profile) -> bool:
    """Tell whether a completion or a choice closes an open item."""
    topic, wanted = profile.purpose, past.purpose
    if not wanted:
        return False
    shared = len(topic & wanted)
    if _shared_names(fact, older):
        return True
    share, cover = shared / len(wanted), shared / max(1, len(topic))
    if shared == 1:
        return (share == 1 and cover >= 0.3) or (cover == 1 and share >= 0.3)
    return shared >= 2 and ((share >= 0.5 and cover >= 0.25) or cover >= 0.6)


_POINTER = LazyPattern(
    r"\b(?:(?:scrap|forget|strike|scratch|cancel|ignore|undo|drop|take|never ?mind|make) (?:that|it|this)\b|"
    r"on (?:second|further) thoughts?|chang(?:ed|ing) (?:my|our) minds?)"
)
_MAX_POINTER_CHARS = 90


def _points_only(text: str, profile: Profile) -> bool:
    """Tell whether a reversal leaves it to what was said just before what is taken back."""
    if len(text) > _MAX_POINTER_CHARS or len(profile.topic) > 2:
        return False
    return profile.reverses and _POINTER.search(profile.text) is not None
