"""Lines that only say something by what was done last: the same of another item, another in its place, all but one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestra_mem.core.language.fragments import UNSURE
from orchestra_mem.core.language.intents.parsing import Action, Intent, Parsed
from orchestra_mem.core.language.mentions import Talk
from orchestra_mem.core.language.persons import persons_in
from orchestra_mem.core.language.references.needs import need_of
from orchestra_mem.core.language.turns import (
    corrected_to,
    denies_last,
    goes_back,
    left_out,
    only_of,
    person_in,
    same_of,
    swapped_person,
)
from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.resolving import AT_HAND, Resolver, Unclear
from orchestra_mem.work_types import OPEN_STATUSES, WorkFilter, WorkTracker

_THE_OTHER = frozenset({"the other one", "the other", "other one"})
_FEW = 10
_FRESH = 2  # so many lines later a correction may still come
# What was done to the wrong item can be done to another: nothing is made or taken away by it.
_CORRECTED = frozenset(
    {Action.START, Action.FINISH, Action.DEFER, Action.BLOCK, Action.ASSIGN, Action.PRIORITISE, Action.UNBLOCK}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The last command that was done, the items that it changed, and how many lines ago that was."""

    intent: Intent
    items: tuple[int, ...]
    age: int = 0

    def action_is(self, actions: frozenset[Action]) -> bool:
        """Tell whether one of some actions was done."""
        return self.intent.action in actions


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """What a line asks for by what was done last: `intents`, with items `chosen` for their phrases.

    `takes_back` is that what was done last is undone before.
    """

    intents: tuple[Intent, ...] = ()
    chosen: dict[str, tuple[int, ...]] = field(default_factory=dict)
    takes_back: bool = False


_ASKED_UNDO = Following(intents=(Intent(action=Action.UNDO, sure=UNSURE),))


def following(line: str, command: Parsed | None, last: Last, talk: Talk, tracker: WorkTracker) -> Following | None:
    """Read a line by what was done last; None where it is a line of its own.

    Args:
        line: the line.
        command: what it surely says by itself, if anything.
        last: what was done last.
        talk: what phrases are resolved against.
        tracker: knows the items and who has work.
    """
    fresh = last.age <= _FRESH
    if goes_back(line):
        return Following(takes_back=True) if fresh and _is_moved_back(last.intent) else _ASKED_UNDO
    if fresh and last.action_is(_CORRECTED) and (narrowed := _narrowed(line, last, talk, tracker)):
        return narrowed
    if command is not None:
        return None
    if fresh and denies_last(line):
        return _ASKED_UNDO
    too = same_of(line)
    target = too or (corrected_to(line) if fresh else "")
    if last.intent.action is Action.ASSIGN and not too and (who := person_in(target, persons_in(tracker))):
        return _given_to(who, last)
    items = _meant(target, last, talk, tracker) if target else ()
    if not items or (not too and not last.action_is(_CORRECTED)):
        return None
    if not too and set(items) & set(last.items):
        return None
    return Following(intents=(replace(last.intent, target=target),), chosen={target: items}, takes_back=not too)


def _is_moved_back(intent: Intent) -> bool:
    """Whether what an intent did is put back without a loss; what it made would go."""
    return intent.action in _CORRECTED or (intent.action is Action.ADD and bool(intent.target))


def _given_to(who: str, last: Last) -> Following:
    """What was given to somebody goes to another."""
    return Following(intents=(replace(last.intent, value=who),), chosen={last.intent.target or AT_HAND: last.items})


def _narrowed(line: str, last: Last, talk: Talk, tracker: WorkTracker) -> Following | None:
    """What was done last done only to some of the items, or given to another person."""
    if last.intent.action is Action.ASSIGN and (who := swapped_person(line, last.intent.value)):
        return _given_to(who, last)
    phrase = left_out(line)
    out = _among(phrase, last, talk)
    kept = tuple(item for item in last.items if item not in out) if out else ()
    if not phrase and len(last.items) > 1:
        kept = _among(only_of(line), last, talk)
    if not (out or kept):
        return None
    if not kept:
        return Following(takes_back=True)
    phrase = last.intent.target or AT_HAND
    return Following(intents=(last.intent,), chosen={phrase: kept}, takes_back=True)


def _among(phrase: str, last: Last, talk: Talk) -> tuple[int, ...]:
    """Those of the items changed last that a phrase means; none where it means another."""
    if not phrase:
        return ()
    try:
        found = {item.id for item in Resolver(talk).many(phrase)}
    except NotFoundError:
        return ()
    except Unclear as unclear:
        found = set(unclear.candidates) & set(last.items)
        return tuple(found) if len(found) == 1 else ()
    return tuple(item for item in last.items if item in found) if found <= set(last.items) else ()


def _meant(phrase: str, last: Last, talk: Talk, tracker: WorkTracker) -> tuple[int, ...]:
    """The items that a phrase means in the place of those that were last changed; none where that is unclear."""
    try:
        found = Resolver(talk).many(phrase, need_of(replace(last.intent, target=phrase)))
    except NotFoundError:
        return ()
    except Unclear:
        return _beside(last, tracker) if phrase.lower() in _THE_OTHER else ()
    return tuple(item.id for item in found)


def _beside(last: Last, tracker: WorkTracker) -> tuple[int, ...]:
    """The one open item that stands beside what was changed last."""
    parents = {tracker.item(each).parent for each in last.items}
    where = WorkFilter(parent=next(iter(parents)) or 0, statuses=OPEN_STATUSES, limit=_FEW)
    others = [item.id for item in tracker.items(where) if item.id not in last.items]
    return tuple(others) if len(parents) == 1 and len(others) == 1 else ()
