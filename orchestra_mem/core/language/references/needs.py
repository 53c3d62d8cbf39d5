"""What a command wants of the items that it is told: kinds that can be meant, statuses that make sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.mentions import ANYTHING, Need
from orchestra_mem.core.language.references.phrase_words import first_command, low, rank_at
from orchestra_mem.core.language.references.words import (
    ALL_KINDS,
    INDEFINITE,
    NEEDING,
    NUMBERS,
    Token,
    is_one_off,
    tokenise,
)
from orchestra_mem.work_types import OPEN_STATUSES, PARENT_KINDS, WorkKind, WorkStatus

_PENDING, _ACTIVE, _BLOCKED = WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED
_DEFERRED, _FAILED, _DONE, _CANCELLED = WorkStatus.DEFERRED, WorkStatus.FAILED, WorkStatus.DONE, WorkStatus.CANCELLED

_STATUSES: dict[Action, tuple[WorkStatus, ...]] = {
    Action.START: (_PENDING, _DEFERRED, _FAILED, _BLOCKED),
    Action.FINISH: (_ACTIVE, _PENDING, _BLOCKED, _FAILED),
    Action.BLOCK: (_PENDING, _ACTIVE, _DEFERRED, _FAILED),
    Action.UNBLOCK: (_BLOCKED,),
    Action.DEFER: (_PENDING, _ACTIVE, _BLOCKED, _FAILED),
    Action.CANCEL: OPEN_STATUSES,
    Action.RESUME: (_DEFERRED, _BLOCKED, _ACTIVE, _PENDING, _FAILED),
}
_RETRY = Need(statuses=(_FAILED,))
_REOPEN = Need(statuses=(_DONE, _CANCELLED, _FAILED, _DEFERRED))
_WHY_BLOCKED = Need(statuses=(_BLOCKED,))
_WHY_FAILED = Need(statuses=(_FAILED,))

_VERBS: dict[str, Action] = {
    word: action
    for action, listing in {
        Action.CREATE: "create make build write draft",
        Action.ADD: "add append attach",
        Action.START: "start begin kick pick",
        Action.FINISH: "finish complete close end ship resolve finalise finalize done",
        Action.BLOCK: "block hold",
        Action.UNBLOCK: "unblock",
        Action.DEFER: "defer postpone park pause shelve snooze delay",
        Action.CANCEL: "cancel drop kill delete remove scrap abandon discard",
        Action.RESUME: "resume continue",
        Action.UNDO: "undo revert",
        Action.ASSIGN: "assign give hand reassign",
        Action.PRIORITISE: "prioritise prioritize bump raise lower promote",
        Action.RENAME: "rename retitle call",
    }.items()
    for word in listing.split()
}
_MARKS = {
    "done": Action.FINISH, "finished": Action.FINISH, "complete": Action.FINISH, "completed": Action.FINISH,
    "closed": Action.FINISH, "blocked": Action.BLOCK, "unblocked": Action.UNBLOCK, "deferred": Action.DEFER,
    "cancelled": Action.CANCEL, "canceled": Action.CANCEL, "started": Action.START, "in-progress": Action.START,
    "on-hold": Action.DEFER,
}  # fmt: skip


def need_of(intent: Intent) -> Need:
    """Say what an intent wants of its target."""
    if intent.action in (Action.CREATE, Action.ADD):
        return container_need(intent.kind)
    return need_for(intent.action)


def need_for(action: Action) -> Need:
    """Say what an action wants of the items that it changes."""
    return Need(statuses=_STATUSES.get(action, ()), many=action is Action.UNDO)


def container_need(kind: WorkKind | None) -> Need:
    """Say what something new of a kind can be added to."""
    return Need(kinds=PARENT_KINDS[kind] if kind else ())


def guess_need(line: str) -> tuple[Action | None, Need]:
    """Guess by its verb what a line does and wants, where nobody has read its intent."""
    tokens = tokenise(line)
    at = first_command(tokens)
    verb = low(tokens, at)
    said = {token.low for token in tokens}
    if verb in ("retry", "rerun", "redo"):
        return Action.START, _RETRY
    if verb in ("reopen", "restart"):
        return Action.START, _REOPEN
    action = _VERBS.get(verb) or next((_VERBS[w] for w in _VERBS if len(verb) > 3 and is_one_off(verb, w)), None)
    if verb in _PLACING and (kind := _new_kind(tokens[at + 1 :], is_adding=True, next_only=True)):
        return Action.ADD, container_need(kind)
    if verb in ("mark", "set", "flag", "make", "put", "move", "tag", "is"):
        marked = next((_MARKS[token.low] for token in reversed(tokens) if token.low in _MARKS), None)
        if marked or verb != "make":
            return marked, need_for(marked) if marked else ANYTHING
    if verb == "make" and low(tokens, at + 1) not in INDEFINITE and rank_at(tokens, at + 2) < len(tokens):
        return Action.PRIORITISE, need_for(Action.PRIORITISE)
    if verb in ("break", "split"):
        return None, Need(kinds=(WorkKind.STORY, WorkKind.EPIC, WorkKind.TASK))
    is_adding = action in (Action.CREATE, Action.ADD)
    if action is None or is_adding:
        kind = _new_kind(tokens[at + 1 :], is_adding=is_adding)
        if kind and not said & _NOTES:
            return action or Action.ADD, container_need(kind)
        is_one = bool(said & {"one", "another", "something"})
        return (action, ANYTHING) if is_adding and is_one and not said & _NOTES else (None, _asked(said))
    return action, replace(need_for(action), many=action is Action.UNDO)


_PLACING = frozenset("put place stick file nest write throw".split())
_NOTES = frozenset("note comment depend dependency blocked reminder".split())
_BEFORE_OLD = frozenset("the this that its their to under in into of for on below".split())


def _new_kind(tokens: Sequence[Token], *, is_adding: bool, next_only: bool = False) -> WorkKind | None:
    """Find the kind of what is new: "a story", "3 tasks", "another login task"."""
    for at, token in enumerate(tokens):
        is_told = is_adding or (at > 0 and tokens[at - 1].low in NEEDING)
        is_amount = token.low in INDEFINITE or token.low in NUMBERS or token.digits is not None
        is_new = token.low in ("a", "an", "another", "more") or (is_told and is_amount)
        if not is_new:
            if next_only:
                return None
            continue
        for near in tokens[at + 1 : at + 6]:
            if near.low in ALL_KINDS:
                return ALL_KINDS[near.low]
            if near.low in _BEFORE_OLD:
                break
    if next_only or not is_adding:
        return None
    for token in tokens[low(tokens, 0) == "the" :]:
        if token.low in _BEFORE_OLD:
            return None
        if token.low in ALL_KINDS:
            return ALL_KINDS[token.low]
    return None


def _asked(said: set[str]) -> Need:
    if said & {"why", "what", "what's", "who"}:
        if said & {"blocked", "blocking", "stuck", "blocks"}:
            return _WHY_BLOCKED
        if said & {"fail", "failed", "wrong", "broke"}:
            return _WHY_FAILED
    return ANYTHING
