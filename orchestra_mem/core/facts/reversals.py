"""Whether one fact takes the place of another: by a word of taking back, by another value, by another person.

Careful on purpose: a fact wrongly struck out is lost knowledge, one wrongly kept costs a line. What is set anew without
a word of taking back stands in `restatements`.
"""

from __future__ import annotations

from orchestra_mem.core.cues.cue import LazyPattern
from orchestra_mem.core.facts.clauses import NUMERIC
from orchestra_mem.core.facts.contradiction import MIN_OPERATIONS, contradicts
from orchestra_mem.core.facts.restatements import drops_choice, is_chosen, is_marked, sets_anew
from orchestra_mem.core.facts.topics import Profile
from orchestra_mem.core.text import content_stems
from orchestra_mem.types import MustKeep, MustKeepKind

HOLDING = frozenset({MustKeepKind.DECISION, MustKeepKind.CONSTRAINT, MustKeepKind.ROLE})
_SETTLING = frozenset({MustKeepKind.DECISION, MustKeepKind.CONSTRAINT})

# How far back, in operations, and how long facts may be of which a later one gives another value without a word of
# taking back: over a long distance and in long texts the same words mean another thing.
_FAR_OPERATIONS = 60
_ANY_OPERATIONS = 1 << 62
MAX_CHARS = 200
_ARRANGED = LazyPattern(
    r"\b(?:booked|ordered|reserved|arranged|scheduled|planned|hired|invited|rented|chosen|picked)\b"
)


def can_be_replaced(fact: MustKeep) -> bool:
    """Tell whether a fact holds on, as a decision or a booking does, and does not just tell what happened."""
    return fact.kind in HOLDING or (
        fact.kind is MustKeepKind.COMPLETION and _ARRANGED.search(fact.text.lower()) is not None
    )


def is_later(newer: MustKeep, older: MustKeep) -> bool:
    """Tell whether a fact is not from before another one."""
    return (newer.timestamp, newer.operation) >= (older.timestamp, older.operation)


def replaces(newer: Profile, older: Profile, new: MustKeep, old: MustKeep, evidence: Profile | None = None) -> bool:
    """Tell whether a later fact takes the place of an earlier one."""
    if new.text == old.text:
        return new.kind is old.kind
    if MustKeepKind.ROLE in (new.kind, old.kind) and _hands_on(newer, older, new, old):
        return True
    shared = newer.topic & older.topic
    if not (shared or (evidence and evidence.topic & older.topic)) or old.kind is MustKeepKind.ROLE:
        return False
    if new.kind is MustKeepKind.COMPLETION and _SWITCHED.search(newer.text) is None:
        return False
    if shared and new.kind in _SETTLING:
        if _is_called_off(newer, older, new, old, shared):
            return True
        if old.kind is not MustKeepKind.COMPLETION and _is_reversed(newer, older, new, old, shared):
            return True
    return _is_set_anew(newer, older, new, old, evidence)


_SWITCHED = LazyPattern(
    r"\b(?:moved|switched|changed|replaced|swapped|migrated|shifted|dropped|instead|rebooked|now)\b"
)


def _is_set_anew(newer: Profile, older: Profile, new: MustKeep, old: MustKeep, evidence: Profile | None = None) -> bool:
    """Tell whether a later fact settles what an earlier one had settled, without a word of taking back."""
    if not 0 < new.operation - old.operation <= _FAR_OPERATIONS or len(new.text) > MAX_CHARS:
        return False
    if old.kind not in (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT) or len(old.text) > MAX_CHARS:
        return False
    if old.kind is MustKeepKind.DECISION and newer.takes_back and _takes_back_choice(newer, older):
        return True
    if old.kind is MustKeepKind.DECISION and drops_choice(evidence or newer, older):
        return True
    if sets_anew(newer, older, limits=old.kind is MustKeepKind.CONSTRAINT, evidence=evidence):
        return True
    far = new.operation - old.operation >= MIN_OPERATIONS
    return far and new.kind is not MustKeepKind.ROLE and contradicts(newer, older)


def _takes_back_choice(newer: Profile, older: Profile) -> bool:
    """Tell whether what is taken back is what an earlier fact chose, and for the same purpose, if one is named."""
    named = newer.old & older.topic
    if not named or len(named) / len(newer.old) < 0.6 or not any(is_chosen(older, word) for word in named):
        return False
    purposes = (clause.frame[1].get("for") for clause in newer.clauses if not named.isdisjoint(clause.topic))
    return not any(purpose and purpose.isdisjoint(older.topic) for purpose in purposes)


def _is_reversed(newer: Profile, older: Profile, new: MustKeep, old: MustKeep, shared: frozenset[str]) -> bool:
    """Tell whether a later fact is the earlier one with another value, or says that it takes it back."""
    if newer.values and (_is_revalued(newer, older) or _is_recounted(newer, older, new, old, shared)):
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
    if newer.reverses or not types_of(newer.values) & types_of(older.values) or newer.values == older.values:
        return False
    return share >= 0.5 and (len(shared) >= 2 or cover >= 0.5 or (share == 1 and cover >= 0.3))


def reach_of(fact: MustKeep, profile: Profile, evidence: Profile | None) -> int:
    """How far back, in operations, what a fact replaces can stand; 0 where it has nothing by which it could replace."""
    if fact.kind is MustKeepKind.COMPLETION and _SWITCHED.search(profile.text) is None:
        return 0
    if profile.values or profile.reverses or (profile.changes and profile.old) or profile.gone or profile.refuted:
        return _ANY_OPERATIONS
    told = evidence or profile
    argues = fact.kind is MustKeepKind.DECISION and bool(told.parted[0])
    return _FAR_OPERATIONS if argues or told.contrasts or is_marked(told) else 0


def may_hand_on(fact: MustKeep, profile: Profile) -> bool:
    """Tell whether a fact may give a part to another person."""
    if fact.kind is MustKeepKind.ROLE or profile.changes or profile.reverses:
        return True
    return _LEFT.search(profile.text) is not None


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


def types_of(values: tuple[tuple[str, str], ...]) -> set[str]:
    """Give the types of values, with all that count as one."""
    return {"number" if kind in NUMERIC else kind for kind, _ in values}


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
    if not theirs:
        # `on call this week`: words that are no topic elsewhere
        told = frozenset(content_stems(newer.parted[1])) if newer.concludes else newer.frame
        mine, theirs = told - before - after, older.frame - before - after
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
