"""Execute commands: one method per action changes work items and describes the change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.orchestrator.intents import Action, Intent
from orchestra_mem.orchestrator.intents.grammar import LEVELS
from orchestra_mem.orchestrator.intents.slots import numbers_in
from orchestra_mem.orchestrator.resolving import Resolver, Unclear, speaker
from orchestra_mem.orchestrator.talk import Effect, Happening, IntentResult, Need, expected_parent, expected_target
from orchestra_mem.types import Json
from orchestra_mem.work_types import PARENT_KINDS, WorkFilter, WorkItem, WorkKind, WorkStatus, WorkTracker

_CHILD = {parents[0]: kind for kind, parents in PARENT_KINDS.items() if parents}
_FAILED = re.compile(r"(?i)\b(?:fail\w*|reject\w*|crash\w*|broke\w*|errors?|went wrong|did(?:n't| not) work)\b")
_NAMED_AT_MOST = 20
_INTERRUPTED = (WorkStatus.DEFERRED, WorkStatus.BLOCKED, WorkStatus.FAILED, WorkStatus.CANCELLED)
_UNBLOCKED = tuple(status for status in WorkStatus if status.is_open and status is not WorkStatus.BLOCKED)


class Commands:
    """Executes commands on the state of work: `actions` maps each kind of command to its method.

    A method raises `Unclear` for a phrase that is ambiguous, matches no item or is missing, `InvalidChangeError` if the
    state of work forbids the change, and `NotFoundError` for an unknown item.
    """

    def __init__(self, tracker: WorkTracker) -> None:
        self._tracker = tracker
        self.actions: Mapping[Action, Callable[[Intent, Resolver], IntentResult]] = {
            Action.CREATE: self._create, Action.ADD: self._create, Action.RENAME: self._rename,
            Action.START: partial(self._moved, WorkStatus.IN_PROGRESS, Happening.STARTED, "Started"),
            Action.FINISH: partial(self._moved, WorkStatus.DONE, Happening.FINISHED, "Finished"),
            Action.STOP: partial(self._moved, WorkStatus.PENDING, Happening.CHANGED, "Pending again:"),
            Action.DEFER: partial(self._moved, WorkStatus.DEFERRED, Happening.DEFERRED, "Deferred"),
            Action.CANCEL: partial(self._moved, WorkStatus.CANCELLED, Happening.CANCELLED, "Cancelled"),
            Action.BLOCK: self._block, Action.UNBLOCK: self._unblock, Action.DEPEND: self._depend,
            Action.ASSIGN: self._assign, Action.PRIORITISE: self._prioritise, Action.RESUME: self._resume,
            Action.NOTE: partial(self._note, "Noted", "note"), Action.REPORT: self._report,
            Action.DECIDE: partial(self._note, "Decided", "decision"),
        }  # fmt: skip

    def _create(self, intent: Intent, resolver: Resolver) -> IntentResult:
        if intent.target and intent.other:
            return self._put_under(intent, resolver)
        kind, phrase = intent.kind, intent.other or intent.target
        for item in map(self._tracker.item, resolver.named(phrase) if phrase and not intent.titles else ()):
            if item.kind is kind and item.title.casefold() == phrase.casefold():
                raise InvalidChangeError(f"{item.name} exists already")
        parent: WorkItem | None
        if intent.action is Action.CREATE and not phrase and kind is not WorkKind.SUBTASK:
            kind = kind or WorkKind.TASK
            parent = resolver.container(kind)
        elif kind is WorkKind.MILESTONE:
            raise Unclear("A milestone cannot have a parent; say `create a milestone …`.")
        else:
            parent = resolver.one(phrase, expected_parent(kind) if kind else Need(kinds=tuple(_CHILD)))
            kind = kind or _CHILD[parent.kind]
        titles = [_capitalised(title) for title in intent.titles]
        if not titles and not intent.count:
            raise Unclear(f"What should the {kind} be called?")
        whose, under = (f" of {parent.title}", f" under {_short(parent)}") if parent else ("", "")
        titles += [f"{kind.capitalize()} {number}{whose}" for number in range(len(titles) + 1, intent.count + 1)]
        priority = int(intent.value) if intent.value in LEVELS else 3
        above = parent.id if parent else None
        items = [self._tracker.create(kind, title, parent=above, priority=priority) for title in titles]
        return _done(Happening.CREATED, items, f"Created {_named(items)}{under}")

    def _put_under(self, intent: Intent, resolver: Resolver) -> IntentResult:
        """Move existing items under another parent."""
        items = resolver.many(intent.target)
        parent = resolver.one(intent.other, expected_parent(items[0].kind))
        now = [self._tracker.change(item.id, parent=parent.id) for item in items]
        return _done(Happening.CHANGED, now, f"{_named(now)} {'is' if len(now) == 1 else 'are'} under {_short(parent)}")

    def _unblock(self, intent: Intent, resolver: Resolver) -> IntentResult:
        items = resolver.many(intent.target, expected_target(intent))
        gone = set(_ids(resolver.many(intent.other))) if intent.other else set()
        blocked = [each for each in items if (gone & {*each.depends_on} if gone else each.status is WorkStatus.BLOCKED)]
        if not blocked:
            raise InvalidChangeError(f"{items[0].name} is {items[0].status}, not blocked{self._waiting(items[:1])}")
        now = []
        for item in blocked:
            after = self._tracker.change(item.id, depends_on=[each for each in item.depends_on if each not in gone])
            is_blocked = item.status is WorkStatus.BLOCKED
            now.append(self._tracker.set_status(item.id, WorkStatus.PENDING) if is_blocked else after)
        return _done(Happening.CHANGED, now, f"Unblocked {_named(now)}{self._waiting(now)}")

    def reopens(self, intent: Intent, resolver: Resolver) -> bool:
        """Check whether an intent to stop work means items that are done or cancelled."""
        items = resolver.many(intent.target, expected_target(intent)) if intent.action is Action.STOP else []
        return any(not item.status.is_open for item in items)

    def resume_changes_items(self, intent: Intent, resolver: Resolver) -> bool:
        """Check whether a `resume` changes its items: all of them are deferred, blocked, failed or cancelled."""
        return bool(intent.target) and all(item.status in _INTERRUPTED for item in resolver.many(intent.target))

    def _resume(self, intent: Intent, resolver: Resolver) -> IntentResult:
        for item in resolver.many(intent.target):
            if item.status is WorkStatus.BLOCKED and (waits := self._waiting([item])):
                raise InvalidChangeError(f"{item.name} is blocked{waits}")
            if item.status in (WorkStatus.BLOCKED, WorkStatus.CANCELLED):
                self._tracker.set_status(item.id, WorkStatus.PENDING)
        return self._moved(WorkStatus.IN_PROGRESS, Happening.STARTED, "Resumed", intent, resolver)

    def _moved(
        self, status: WorkStatus, happening: Happening, word: str, intent: Intent, resolver: Resolver
    ) -> IntentResult:
        items = resolver.many(intent.target, expected_target(intent))
        changed = [item for item in items if item.status is not status or intent.value]
        now = [self._tracker.set_status(item.id, status, reason=intent.value) for item in items]
        if not changed:
            return _done(happening, now, f"{_named(now)} {'is' if len(now) == 1 else 'are'} already {status}")
        rest = self._waiting(now) if status is WorkStatus.IN_PROGRESS else "" if status.is_open else self._freed(now)
        return _done(happening, now, f"{word} {_named(changed)}{rest}")

    def _waiting(self, items: Sequence[WorkItem]) -> str:
        open_ones = {blocker.id: blocker for item in items for blocker in self._tracker.blockers(item.id)}
        return f"; still waiting for {', '.join(map(_short, open_ones.values()))}" if open_ones else ""

    def _freed(self, closed: Sequence[WorkItem]) -> str:
        """Describe the dependents of closed items that now wait for no open item; "" if there are none."""
        filters = (WorkFilter(blocked_by=item.id, statuses=_UNBLOCKED, limit=_NAMED_AT_MOST) for item in closed)
        waited = {each.id: each for where in filters for each in self._tracker.items(where)}
        free = [item for item in waited.values() if not self._tracker.blockers(item.id)]
        return f"; {_named(free)} no longer {_waits(free)} for anything" if free else ""

    def _made_to_wait(self, items: Sequence[WorkItem], others: Sequence[WorkItem]) -> list[WorkItem]:
        return [self._tracker.change(item.id, depends_on=sorted({*item.depends_on, *_ids(others)})) for item in items]

    def _block(self, intent: Intent, resolver: Resolver) -> IntentResult:
        items = resolver.many(intent.target, expected_target(intent))
        blockers, why = self._held_by(intent, resolver)
        self._made_to_wait(items, blockers)
        now = [self._tracker.set_status(item.id, WorkStatus.BLOCKED, reason=why) for item in items]
        by = f" by {', '.join(map(_short, blockers))}" if blockers else ""
        return _done(Happening.BLOCKED, now, f"Blocked {_named(now)}{by}{f': {why}' if why else ''}")

    def _held_by(self, intent: Intent, resolver: Resolver) -> tuple[list[WorkItem], str]:
        """Return the blocking items and the reason; a phrase that names no item is the reason ("stuck with legal")."""
        if not intent.other:
            return [], intent.value
        try:
            return resolver.many(intent.other), intent.value
        except Unclear as unclear:
            if unclear.candidates or re.search(r"[#\d]", intent.other):
                raise
            return [], intent.value or intent.other

    def _depend(self, intent: Intent, resolver: Resolver) -> IntentResult:
        items, wanted = resolver.many(intent.target, expected_target(intent)), resolver.many(intent.other)
        now = self._made_to_wait(items, wanted)
        return _done(Happening.CHANGED, now, f"{_named(now)} {_waits(now)} for {', '.join(map(_short, wanted))}")

    def _rename(self, intent: Intent, resolver: Resolver) -> IntentResult:
        item = resolver.one(intent.target)
        if not intent.value:
            raise Unclear(f"What should {item.name} be called?")
        now = self._tracker.change(item.id, title=intent.value)
        return _done(Happening.CHANGED, [now], f'Renamed {_short(now)} from "{item.title}" to "{now.title}"')

    def _assign(self, intent: Intent, resolver: Resolver) -> IntentResult:
        items = resolver.many(intent.target, expected_target(intent))
        who = speaker() if intent.value == "me" else intent.value
        now = [self._tracker.change(item.id, assignee=who) for item in items]
        text = f"Assigned {_named(now)} to {who}" if who else f"Unassigned {_named(now)}"
        return _done(Happening.ASSIGNED, now, text)

    def _prioritise(self, intent: Intent, resolver: Resolver) -> IntentResult:
        items = resolver.many(intent.target, expected_target(intent))
        now = [self._tracker.change(item.id, priority=_priority(item, intent.value)) for item in items]
        word = LEVELS[str(now[0].priority)] if len({item.priority for item in now}) == 1 else "new"
        return _done(Happening.CHANGED, now, f"{_named(now)}: {word} priority")

    def _note(self, word: str, kind: str, intent: Intent, resolver: Resolver) -> IntentResult:
        if not intent.value:
            raise Unclear(f"What should be {word.lower()}?")
        items = resolver.many(intent.target, expected_target(intent)) if intent.target else []
        for item in items:
            self._tracker.note(item.id, intent.value)
        text = f"{word} for {_named(items)}: {intent.value}" if items else f"{word}: {intent.value}"
        return _done(Happening.MENTIONED, items, text, kind, {"text": intent.value, "role": "user"})

    def _report(self, intent: Intent, resolver: Resolver) -> IntentResult:
        if not intent.value:
            raise Unclear("What was the result?")
        failed = _FAILED.search(intent.value) is not None
        try:
            items = resolver.many(intent.target, Need(statuses=(WorkStatus.IN_PROGRESS,)))
        except Unclear as unclear:
            if unclear.candidates or not intent.target or numbers_in(intent.target):
                raise
            # The subject is no work item; keep the report as a note.
            noting = replace(intent, target="", value=f"{intent.target} {intent.value}")
            return self._note("Noted", "note", noting, resolver)
        now = []
        for item in items:
            self._tracker.note(item.id, intent.value)
            if failed and item.status in (WorkStatus.PENDING, WorkStatus.IN_PROGRESS):
                self._tracker.set_status(item.id, WorkStatus.IN_PROGRESS)  # only items in progress can fail
                item = self._tracker.set_status(item.id, WorkStatus.FAILED, reason=intent.value)
            now.append(item)
        marked = failed and any(item.status is WorkStatus.FAILED for item in now)
        text = f"{'Marked as failed:' if marked else 'Reported on'} {_named(now)}: {intent.value}"
        happening = Happening.FAILED if failed else Happening.MENTIONED
        return _done(happening, now, text, "report", {"about": _named(now), "report": intent.value})


def _done(
    happening: Happening, items: Sequence[WorkItem], text: str, kind: str = "", data: Mapping[str, Json] | None = None
) -> IntentResult:
    effect = Effect(happening=happening, items=_ids(items), text=text)
    return IntentResult(text=text, effects=(effect,), kind=kind, data=data)


def _capitalised(title: str) -> str:
    """Capitalise a title that starts with a plain lower-case word."""
    first = title.split(" ", 1)[0]
    return title[:1].upper() + title[1:] if first.isalpha() and first.islower() else title


def _ids(items: Sequence[WorkItem]) -> tuple[int, ...]:
    return tuple(item.id for item in items)


def _short(item: WorkItem) -> str:
    return f"{item.kind.capitalize()} #{item.id}"


def _waits(items: Sequence[WorkItem]) -> str:
    return "waits" if len(items) == 1 else "wait"


def _named(items: Sequence[WorkItem]) -> str:
    """Name one item with its title, or several by number, grouped by kind."""
    if len(items) == 1:
        return items[0].name
    kinds = {item.kind: [f"#{each.id}" for each in items if each.kind is item.kind] for item in items}
    return ", ".join(
        f"{(kind.plural if len(numbers) > 1 else kind.value).capitalize()} {' '.join(numbers)}"
        for kind, numbers in kinds.items()
    )


def _priority(item: WorkItem, value: str) -> int:
    if value in {"higher", "lower"}:
        return min(5, max(1, item.priority + (-1 if value == "higher" else 1)))
    if value not in LEVELS:
        raise Unclear("Which priority: urgent, high, medium, low or lowest?")
    return int(value)
