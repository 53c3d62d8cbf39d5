"""Which facts still hold: what a later one replaces, completes or answers.

Careful on purpose: a fact wrongly struck out is lost knowledge, one wrongly kept costs a line. A later fact replaces an
earlier one where it says that it does (a word of reversal) about the same thing, or where both are the same sentence
but for one value, or where the same part is given to another person.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from orchestra_mem.core.cues import LazyPattern
from orchestra_mem.core.text import content_stems
from orchestra_mem.core.topics import DEEDS, NUMERIC, Profile, profile_of
from orchestra_mem.types import MustKeep, MustKeepKind, MustKeepStatus

_HOLDING = frozenset({MustKeepKind.DECISION, MustKeepKind.CONSTRAINT, MustKeepKind.ROLE})

# How far back a reversal without an object of its own ("scrap that") may point, in operations.
_NEAR_OPERATIONS = 3
# A stem that this many standing facts have says too little to find the one that is meant.
_COMMON = 40
_MAX_CANDIDATES = 200


def supersedes(newer: MustKeep, older: MustKeep) -> bool:
    """Tell whether a later fact takes the place of an earlier one, judged by these two alone."""
    if newer.kind not in _HOLDING or not _can_be_replaced(older) or not _is_later(newer, older):
        return False
    return _replaces(profile_of(newer.text), profile_of(older.text), newer, older)


def settle(must_keeps: Sequence[MustKeep], *, known: int = 0) -> tuple[MustKeep, ...]:
    """Mark what later facts replaced (superseded) or completed, answered and repaired (done).

    Facts are read in order of time, whatever their order here, and come back in the order given; what was superseded
    or done before stays so. `superseded_by` is the id of the later fact, 0 where that has none yet. Takes time
    about linear in the number of facts.

    Args:
        must_keeps: The facts.
        known: How many of the first of them have been settled among each other before. They may be marked, but mark
            nothing themselves any more.
    """
    order = sorted(range(len(must_keeps)), key=lambda i: (must_keeps[i].timestamp, must_keeps[i].operation, i))
    settled = list(must_keeps)
    standing = _Standing()
    for number in order:
        fact = settled[number]
        if fact.status is not MustKeepStatus.STANDING:
            continue
        profile = profile_of(fact.text)
        if number >= known:
            for past in standing.replaced_by(fact, profile, settled):
                settled[past] = replace(settled[past], status=MustKeepStatus.SUPERSEDED, superseded_by=fact.id)
                standing.remove(past)
            for past in standing.done_by(fact, profile, settled):
                settled[past] = replace(settled[past], status=MustKeepStatus.DONE)
                standing.remove(past)
        standing.add(number, profile)
    return tuple(settled)


class _Standing:
    """The facts that hold so far, found by the stems of their topics."""

    def __init__(self) -> None:
        self._by_stem: dict[str, dict[int, None]] = defaultdict(dict)
        self._profiles: dict[int, Profile] = {}

    def add(self, number: int, profile: Profile) -> None:
        self._profiles[number] = profile
        for word in profile.topic:
            self._by_stem[word][number] = None

    def remove(self, number: int) -> None:
        for word in self._profiles.pop(number).topic:
            self._by_stem[word].pop(number, None)

    def replaced_by(self, fact: MustKeep, profile: Profile, facts: Sequence[MustKeep]) -> list[int]:
        if fact.kind not in _HOLDING and fact.kind is not MustKeepKind.COMPLETION:
            return []
        # Each pair is judged by itself: settling what is settled already changes nothing.
        replaced = [
            number
            for number in self._near(profile)
            if _can_be_replaced(facts[number])
            and _is_later(fact, facts[number])
            and _replaces(profile, self._profiles[number], fact, facts[number])
        ]
        return replaced or self._pointed_at(fact, profile, facts)

    def _pointed_at(self, fact: MustKeep, profile: Profile, facts: Sequence[MustKeep]) -> list[int]:
        """The decision right before, for a reversal that names nothing, as `Scrap that, oak instead.`"""
        if not (profile.reverses and _points_only(fact.text, profile)):
            return []
        if fact.id and any(older.superseded_by == fact.id for older in facts):
            return []
        for number in reversed(self._profiles):
            older = facts[number]
            if fact.operation - older.operation > _NEAR_OPERATIONS:
                break
            if older.kind not in (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT) or not _is_later(fact, older):
                continue
            if not profile.values or _types(profile) & _types(self._profiles[number]):
                return [number]
        return []

    def done_by(self, fact: MustKeep, profile: Profile, facts: Sequence[MustKeep]) -> list[int]:
        if fact.kind not in (MustKeepKind.COMPLETION, MustKeepKind.DECISION, MustKeepKind.ROLE):
            return []
        return [
            number
            for number in self._near(profile)
            if _is_later(fact, facts[number]) and _completes(fact, profile, facts[number], self._profiles[number])
        ]

    def _near(self, profile: Profile) -> Iterable[int]:
        near: dict[int, None] = {}
        for word in sorted(profile.topic, key=lambda word: len(self._by_stem.get(word, ()))):
            numbers = self._by_stem.get(word, {})
            if near and len(numbers) > _COMMON:
                break
            for number in reversed(numbers):
                near[number] = None
                if len(near) >= _MAX_CANDIDATES:
                    return near
        return near


_ARRANGED = LazyPattern(
    r"\b(?:booked|ordered|reserved|arranged|scheduled|planned|hired|invited|rented|chosen|picked)\b"
)


def _can_be_replaced(fact: MustKeep) -> bool:
    """Tell whether a fact holds on, as a decision or a booking does, and does not just tell what happened."""
    return fact.kind in _HOLDING or (
        fact.kind is MustKeepKind.COMPLETION and _ARRANGED.search(fact.text.lower()) is not None
    )


def _is_later(newer: MustKeep, older: MustKeep) -> bool:
    return (newer.timestamp, newer.operation) >= (older.timestamp, older.operation)


def _replaces(newer: Profile, older: Profile, new: MustKeep, old: MustKeep) -> bool:
    """Tell whether a later fact takes the place of an earlier one."""
    if new.text == old.text:
        return new.kind is old.kind
    if MustKeepKind.ROLE in (new.kind, old.kind):
        return _hands_on(newer, older, new, old)
    shared = newer.topic & older.topic
    if not shared or new.kind is MustKeepKind.COMPLETION:
        return False
    if old.kind is MustKeepKind.COMPLETION:
        return _is_called_off(newer, older, new, old, shared)
    if _is_revalued(newer, older) or _is_called_off(newer, older, new, old, shared):
        return True
    if _is_recounted(newer, older, new, old, shared):
        return True
    if not (newer.reverses or newer.changes):
        return False
    cover = len(shared) / len(newer.topic)
    share = len(shared) / len(older.topic)
    if not _differ_in_day(newer, older):
        if _is_named(newer, older, cover):
            return True
        if newer.reverses:
            return _is_taken_back(newer, new, old, len(shared), cover, share)
    if newer.reverses or not _types(newer) & _types(older) or newer.values == older.values:
        return False
    return share >= 0.5 and (len(shared) >= 2 or cover >= 0.5 or (share == 1 and cover >= 0.3))


_AMENDS = LazyPattern(r"\b(?:actually|on (?:second|further) thoughts?|instead|change of plans?|correction)\b")


def _is_called_off(newer: Profile, older: Profile, new: MustKeep, old: MustKeep, shared: frozenset[str]) -> bool:
    """Tell whether a later decision says that what an earlier one chose is off, or gives a reason against it.

    What is off must be a good part of the earlier fact, or stand in it beside something else that both speak of.
    """
    if new.kind is not MustKeepKind.DECISION or old.kind not in (MustKeepKind.DECISION, MustKeepKind.COMPLETION):
        return False
    named = newer.gone & older.topic
    if named and len(named) / len(newer.gone) >= 0.5:
        beside = any(not word[0].isdigit() for word in shared - named)
        return beside or len(named) / len(older.topic) >= 0.33
    share = len(shared) / len(older.topic)
    reasoned = not shared.isdisjoint(newer.refuted) or (bool(newer.refuted) and len(shared) >= 2)
    return old.kind is MustKeepKind.DECISION and reasoned and share >= 0.6


def _is_recounted(newer: Profile, older: Profile, new: MustKeep, old: MustKeep, shared: frozenset[str]) -> bool:
    """Tell whether a later decision gives another number for all that an earlier one counts."""
    if not (new.kind is old.kind is MustKeepKind.DECISION) or len(shared) < 2 or shared != older.topic:
        return False
    mine, theirs = ([value for value in fact.values if value[0] in NUMERIC] for fact in (newer, older))
    return len(mine) == len(theirs) == 1 and mine != theirs and len(shared) / len(newer.topic) >= 0.5


def _is_named(newer: Profile, older: Profile, cover: float) -> bool:
    """Tell whether what the later fact names as replaced stands in the earlier one."""
    named = newer.old & older.topic
    # In a long text the old value stands beside much else, and it need not be this one that is replaced.
    if not named or cover < 0.25 or len(named) / len(newer.old) < 0.6:
        return False
    return len(named) >= 2 or len(named) / len(older.topic) >= 0.33


def _is_taken_back(newer: Profile, new: MustKeep, old: MustKeep, shared: int, cover: float, share: float) -> bool:
    """Tell whether a reversal is about the earlier fact, by how much of either topic the other has."""
    if newer.takes_back and not _AMENDS.search(new.text.lower()):
        return (shared >= 2 and max(cover, share) >= 0.6 and cover >= 0.25) or (cover == 1 and share >= 0.3)
    both = new.kind is old.kind is MustKeepKind.DECISION
    return cover >= 0.5 and share >= 0.5 and (shared >= 2 or cover + share > 1 or both)


def _types(profile: Profile) -> set[str]:
    return {"number" if kind in NUMERIC else kind for kind, _ in profile.values}


def _differ_in_day(newer: Profile, older: Profile) -> bool:
    """Tell whether both name days, and other ones: then they speak of different days."""
    mine = {value for kind, value in newer.values if kind == "date"}
    theirs = {value for kind, value in older.values if kind == "date"}
    return bool(mine and theirs) and mine.isdisjoint(theirs) and not newer.changes


def _is_revalued(newer: Profile, older: Profile) -> bool:
    """Tell whether two facts are the same sentence but for one value of the same type."""
    if len(newer.values) != len(older.values) or newer.frame != older.frame or not newer.topic:
        return False
    changed = [(mine, theirs) for mine, theirs in zip(newer.values, older.values, strict=True) if mine != theirs]
    return len(changed) == 1 and changed[0][0][0] == changed[0][1][0]


_LEFT = LazyPattern(r"\b(?:left|leaves|quit|retired|resigned|stepped down|is leaving|moved to)\b")
_EXCLUSIVE = LazyPattern(
    r"\b(?:owns?|leads?|runs?|heads?|chairs?|manages?|in charge|responsible|takes? over|took over|replaces|replaced|"
    r"succeeds|on call|on duty|"
    r"is (?:now |still )?(?:the|our|my)|is called|reports? to|owner|lead|point person|contact|boss|oversees|"
    r"coordinates|maintains)\b"
)


def _hands_on(newer: Profile, older: Profile, new: MustKeep, old: MustKeep) -> bool:
    """Tell whether a later fact gives the same part to another person, or says that the person is gone."""
    if not older.who or old.kind is not MustKeepKind.ROLE:
        return False
    before, after = _names(older.who), _names(newer.who)
    mine, theirs = newer.topic - before - after, older.topic - before - after
    shared = mine & theirs
    left = _LEFT.search(new.text.lower()) is not None
    if newer.who and not before & after:
        same = bool(shared) and len(shared) / len(theirs) >= 0.6 and len(shared) / max(1, len(mine - newer.old)) >= 0.5
        exclusive = mine == theirs and bool(_EXCLUSIVE.search(new.text)) and bool(_EXCLUSIVE.search(old.text))
        return same and (newer.changes or left or exclusive)
    gone = (newer.reverses or left) and bool(before) and before <= newer.topic
    return gone and (bool(shared) or left) and new.kind is not MustKeepKind.COMPLETION


def _names(who: str) -> frozenset[str]:
    return frozenset(content_stems(who.removesuffix("'s")))


_REPAIRED = LazyPattern(
    r"\b(?:fix(?:ed|es)?|repaired|resolved?|solved|works? again|working again|back (?:up|online)|pass(?:es|ing|ed)?|"
    r"replaced|sorted|"
    r"patched|restored|recovered|up and running|green|unblocked|closed|rebuilt|cleared|works now|running again|"
    r"reverted)\b"
)
_CHOSEN = LazyPattern(
    r"\b(?:choose|decide|decided|pick|select|settle|agree|whether|which|who|undecided|open question|not sure|unclear|"
    r"tbd)\b"
)


def _completes(fact: MustKeep, profile: Profile, older: MustKeep, past: Profile) -> bool:
    """Tell whether a later fact closes an open item or repairs a failure."""
    topic, wanted = (profile.topic - DEEDS) or profile.topic, (past.topic - DEEDS) or past.topic
    shared = topic & wanted
    same = set(fact.identifiers) & {name for name in older.identifiers if "#" in name or "-" in name or "_" in name}
    if older.kind is MustKeepKind.FAILURE:
        if fact.kind is not MustKeepKind.COMPLETION or not _REPAIRED.search(fact.text.lower()):
            return False
        share, cover = len(shared) / max(1, len(wanted)), len(shared) / max(1, len(topic))
        return bool(same) or cover >= 0.6 or (len(shared) >= 2 and (share >= 0.4 or cover >= 0.4))
    if older.kind is not MustKeepKind.OPEN_ITEM or not wanted:
        return False
    if fact.kind is not MustKeepKind.COMPLETION and not _CHOSEN.search(older.text.lower()):
        return False
    share, cover = len(shared) / len(wanted), len(shared) / max(1, len(topic))
    if len(shared) == 1:
        return bool(same) or (share == 1 and cover >= 0.3) or (cover == 1 and share >= 0.3)
    return bool(same) or (len(shared) >= 2 and ((share >= 0.5 and cover >= 0.25) or cover >= 0.6))


_POINTER = LazyPattern(
    r"\b(?:(?:scrap|forget|strike|scratch|cancel|ignore|undo|drop|take|never ?mind|make) (?:that|it|this)\b|"
    r"on (?:second|further) thoughts?|chang(?:ed|ing) (?:my|our) minds?)"
)
_MAX_POINTER_CHARS = 90


def _points_only(text: str, profile: Profile) -> bool:
    """Tell whether a reversal leaves it to what was said just before what is taken back."""
    return len(text) <= _MAX_POINTER_CHARS and _POINTER.search(text.lower()) is not None and len(profile.topic) <= 2
