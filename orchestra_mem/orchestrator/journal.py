"""What an orchestrator remembers of itself: lines, tries of tasks, changes of work; and what its catalog gives it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from orchestra_mem.core.search.echoes import SHOWN
from orchestra_mem.core.search.question import periods_in
from orchestra_mem.core.text import squeeze, stem, words
from orchestra_mem.core.work.transitions import told_changes
from orchestra_mem.hooks import hookimpl
from orchestra_mem.memory.agent_view import InjectedMessage
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.orchestrator.intents import ASKS, Action
from orchestra_mem.orchestrator.intents.slots import KIND_WORDS, NUMBER_WORDS
from orchestra_mem.orchestrator.talk import Effect, Happening, Mention, Outcome, Reply, Talk
from orchestra_mem.types import Json, Operation
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkKind, WorkStatus, WorkTracker

LINE, TASK = "nl_command", "task_execution"
"""The types of the operations that an orchestrator records: a line, a task that it ran."""
WORK = "work_change"
"""What became of work without an orchestrator: by a person's edit, or by another program."""
_REACH = 40  # so many of the newest operations are looked through for what a phrase may mean
_OTHERS_MAY_TELL = timedelta(seconds=2)  # a change this fresh may be another process's, about to be told by that
UNDONE = "undone"
"""The key of the id of the operation that a line took back."""
_CHANGED, _SPOKEN_OF = "changed", "spoken_of"
_MOST, _MOST_CHARS = 10, 160
_DID: Mapping[str, str] = {
    WorkStatus.IN_PROGRESS: "started", WorkStatus.DONE: "finished", "title": "renamed", "assignee": "assigned",
    "note": "noted",
}  # fmt: skip
_ASKED_FOR = {
    stem(did): did
    for did in (*_DID.values(), "created", "failed", "blocked", "deferred", "cancelled", "decided", "executed")
} | {"complet": "finished", "add": "created", "ran": "executed"}  # fmt: skip
_TELLS = "error decision note result outcome status text message user_input"
_FAILURE = re.compile(r"(?i)\b(?:fail\w*|error|exception|crash\w*|timed out|timeout)\b")
_SPAN = re.compile(r"(?i)\b(?:last|past) (?:(\w+) )?(minute|hour|day|week)s?\b")
_SESSION = re.compile(r"(?i)\b(this|the|current|last|previous) session\b")
_LAST = re.compile(rf"(?i)\b(?:last|latest|newest) (?:(\d{{1,3}}|{'|'.join(NUMBER_WORDS)}) )?(?:\w+ )?(\w+)\b")


@dataclass(frozen=True, slots=True)
class Journal:
    """Records what an orchestrator did, under the name `agent`, and reads it again."""

    memory: OrchestratorContextManager
    tracker: WorkTracker
    agent: str

    def record(
        self, reply: Reply, changes: Sequence[WorkEvent] = (), *, kind: str = LINE,
        data: Mapping[str, Json] | None = None,
    ) -> Reply:  # fmt: skip
        """Record a line with its answer, or `data` of a `kind` instead, and say of changes that they came from it."""
        told = {**(data if data is not None else line_record(reply)), **_spoken_of(reply.effects, bool(changes))}
        return replace(reply, operation=self.record_changes(kind, told, changes).id)

    def record_changes(
        self, kind: str, data: dict[str, Json], changes: Sequence[WorkEvent], tokens_used: int | None = None,
        key: str | None = None,
    ) -> Operation:  # fmt: skip
        """Record an operation, once with a `key`, and say of changes of work that they came from it."""
        operation = self.memory.record_operation(kind, data, tokens_used, agent=self.agent, idempotency_key=key)
        if changes:
            self.tracker.attribute([event.id for event in changes], operation.id)
        return operation

    def tell_of_changes(self) -> None:
        """Record what has become of work that no operation tells of: a person's edits, and what a crash left untold."""
        changes = self.tracker.unattributed(_OTHERS_MAY_TELL)
        if not changes:
            return
        data: dict[str, Json] = {
            "result": told_changes(changes, self.tracker.item),
            "by": ", ".join(sorted({event.author.value for event in changes})),
            _CHANGED: {Happening.CHANGED.value: list(dict.fromkeys(event.item for event in changes))},
        }
        self.record_changes(WORK, data, changes, key=f"work events {changes[0].id} to {changes[-1].id}")

    def talk(self) -> Talk:
        """What the talk was about lately."""
        mentions = [each for operation in self._recent() for each in _mentions(operation.data)]
        return Talk(mentions=mentions, lookup=self.tracker)

    def last_change(self) -> Operation | None:
        """The newest operation that changed work and has not been taken back."""
        undone = set[Json]()
        for operation in self._recent():
            data = operation.data if isinstance(operation.data, dict) else {}
            if UNDONE in data:
                undone.add(data[UNDONE])
            elif data.get(_CHANGED) and operation.id not in undone:
                return operation
        return None

    def _recent(self) -> list[Operation]:
        return self.memory.query_recent_operations(limit=_REACH)


def said(operation: Operation) -> str:
    """What an operation was about, in few words."""
    return squeeze(_first_of(operation.data, "user_input task_title result") or operation.type)[:120]


def line_record(reply: Reply) -> dict[str, Json]:
    """What a line is recorded as.

    What is `shown` the memory knows already. A line that was read is `settled`: what came of it stands in the state of
    work, and no facts are looked for in it.
    """
    return {
        "intent": ", ".join(dict.fromkeys(intent.action.value for intent in reply.intents)) or None,
        "user_input": reply.line,
        "result" if reply.outcome is Outcome.DONE else SHOWN: reply.text,
        **({"settled": True} if reply.intents else {}),
    }


def _spoken_of(effects: Sequence[Effect], changed: bool) -> dict[str, Json]:
    """The items of effects as an operation's data keep them: what was changed, and what was spoken of."""
    done: dict[str, list[Json]] = {}
    rest: list[Json] = []
    for effect in effects:
        is_quiet = not (changed and effect.items) or effect.happening in (Happening.MENTIONED, Happening.LISTED)
        (rest if is_quiet else done.setdefault(effect.happening.value, [])).extend(effect.items)
    kept: dict[str, Json] = {_CHANGED: dict(done), _SPOKEN_OF: rest}
    return {name: items for name, items in kept.items() if items}


def _mentions(data: Json) -> Iterator[Mention]:
    """Yield what an operation with these data has spoken of, newest first."""
    if not isinstance(data, dict):
        return
    spoken_of, changed = _ids(data.get(_SPOKEN_OF)), data.get(_CHANGED)
    rest = len(spoken_of) - (data.get("intent") == Action.NEXT)  # "it" is what should come next
    for items in filter(None, (spoken_of[rest:], spoken_of[:rest])):
        yield Mention(items=items, happening=Happening.MENTIONED if len(items) == 1 else Happening.LISTED)
    for did, listed in reversed(changed.items()) if isinstance(changed, dict) else ():
        if did in set(Happening) and (items := _ids(listed)):
            yield Mention(items=items, happening=Happening(did))


def _ids(value: Json) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(each for each in listed if isinstance(each, int) and not isinstance(each, bool) and each > 0)


# What was done lately, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentQuestion:
    """Which operations are asked for: all that pass every condition given.

    `since` is inclusive, `until` exclusive. `did` is what must have been done ("failed", "created" ...). `session`
    counts back from 0, the newest. `limit` is how many of the newest are wanted.
    """

    since: datetime | None = None
    until: datetime | None = None
    did: str = ""
    kind: WorkKind | None = None
    session: int | None = None
    limit: int | None = _MOST


def read_recent_question(text: str, now: datetime) -> RecentQuestion:
    """Read which operations a question asks for, any string whatever; `now` is what "yesterday" is told from."""
    since, until = _period(text, now)
    session, last, said = _SESSION.search(text), _LAST.search(text), words(text.lower())
    limit = None if since or session else _MOST
    if last and limit:
        limit = _number(last[1]) or (_MOST if last[2].endswith("s") else 1)
    did = next((_ASKED_FOR[each] for each in map(stem, said) if each in _ASKED_FOR), "")
    kind = next((KIND_WORDS[word] for word in said if word in KIND_WORDS), None)
    return RecentQuestion(
        since=since, until=until, limit=limit, did=did,
        kind=None if did == "executed" and kind is WorkKind.TASK else kind,  # whatever ran is called a task
        session=int(session[1].lower() in ("last", "previous")) if session else None,
    )  # fmt: skip


def _period(text: str, now: datetime) -> tuple[datetime | None, datetime | None]:
    span = _SPAN.search(text)
    if span and (span[1] or span[2].lower() in ("minute", "hour")):
        return now - timedelta(**{f"{span[2].lower()}s": _number(span[1]) or 1}), None
    if periods := periods_in(text, now):
        return periods[0].start, None if re.search(r"(?i)\bsince\b", text) else periods[0].end
    return None, None


def _number(word: str | None) -> int:
    """Read a number below 10,000 in figures or words, 0 for anything else."""
    is_figure = word is not None and word.isdecimal() and len(word) < 5
    return int(word or 0) if is_figure else NUMBER_WORDS.get((word or "").lower(), 0)


def answer_recent(
    question: RecentQuestion, operations: Iterable[Operation], events: Sequence[WorkEvent],
    item: Callable[[int], WorkItem], sessions: Sequence[str],
) -> tuple[str, tuple[Operation, ...]]:  # fmt: skip
    """Say what was done, the oldest first, and give the operations that say so, the newest first.

    Args:
        operations: in any order; what only asked something is left out.
        events: changes of work; those that came from the operations say what was done to which items.
        item: gives an item as it now is.
        sessions: the ids of all sessions, the newest first; "" before them where none is under way.
    """
    came_from: dict[int, list[WorkEvent]] = {}
    for event in events:
        came_from.setdefault(event.operation, []).append(event)
    fitting = [
        each
        for each in sorted(operations, key=lambda each: -each.id)
        if not (isinstance(each.data, dict) and (SHOWN in each.data or _asked_for(each) in ASKS))
        and (question.since is None or each.timestamp >= question.since)
        and (question.until is None or each.timestamp < question.until)
        and _fits(question, each, came_from.get(each.id, []), item)
    ]
    if question.session is not None:
        wanted = _session_meant(question.session, sessions, {each.session for each in fitting})
        fitting = [each for each in fitting if each.session == wanted]
    chosen = tuple(fitting[: question.limit])
    if not chosen:
        return " ".join(filter(None, ["Nothing", question.did, question.kind, "is on record for that."])), ()
    changes, texts = list[WorkEvent](), list[str]()
    for operation in reversed(chosen):
        done = came_from.get(operation.id, [])
        changes += done
        if not done or (question.did == "failed" and has_failed(operation)):
            texts.append(_text_of(operation))
    return "\n".join([*([told_changes(changes, item)] if changes else []), *texts]), chosen


def _session_meant(back: int, sessions: Sequence[str], with_work: Set[str]) -> str | None:
    """The session so far back, or the first before it in which something was done: questions alone make no session."""
    older = (each for each in sessions[back:] if each in with_work)
    return next(older, None) if back else sessions[0]


def _did(event: WorkEvent) -> str:
    return _DID.get((event.after if event.field == "status" else event.field) or "", event.after or "")


def _asked_for(operation: Operation) -> str:
    return _first_of(operation.data, "intent intent_type").lower()


def _fits(
    question: RecentQuestion, operation: Operation, events: Sequence[WorkEvent], item: Callable[[int], WorkItem]
) -> bool:
    kinds = {item(event.item).kind for event in events}
    if question.kind and question.kind not in kinds and (kinds or question.kind not in operation.type.lower()):
        return False
    if not question.did or any(question.did in (_did(event), event.field) for event in events):
        return True
    told = {stem(word) for word in words(f"{operation.type.replace('_', ' ')} {_asked_for(operation)}".lower())}
    return has_failed(operation) if question.did == "failed" else stem(question.did) in told


def has_failed(operation: Operation) -> bool:
    """Tell whether an operation says of itself that it failed: by an error, its outcome, or its result."""
    data = operation.data
    if not isinstance(data, dict):
        return False
    says_so = bool(data.get("error")) or data.get("success") is False or data.get("failed") is True
    told = (value for name in ("outcome", "status", "result") if isinstance(value := data.get(name), str))
    return says_so or any(_FAILURE.search(value[:_MOST_CHARS]) for value in told)


def _text_of(operation: Operation) -> str:
    kind, data = operation.type.replace("_", " ").capitalize(), operation.data
    name, told = _first_of(data, "title task_title name command"), _first_of(data, _TELLS)
    subject = f'{kind} "{name}"' if name else kind
    text = f"{subject}: {told}" if told and operation.type != LINE else told or subject
    line = squeeze(text[: 4 * _MOST_CHARS])
    return line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1].rstrip()}\u2026"


def _first_of(data: Json, fields: str) -> str:
    """Give the first of some fields that holds words; data that are no fields tell of themselves."""
    if not isinstance(data, dict):
        return str(data or "") if fields == _TELLS else ""
    values = (data.get(field) for field in fields.split())
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


_UNREAD = (Outcome.ASKED, Outcome.NOT_UNDERSTOOD)
_TELLING = frozenset((Action.NOTE, Action.DECIDE, Action.REPORT))


class CatalogHooks:
    """Gives an orchestrator what its agent has learnt, and learns from what is said to it; from tasks nothing.

    An `Orchestrator` adds it by itself where the setting `catalog.hooks` is on.
    """

    def __init__(self, memory: OrchestratorContextManager, tracker: WorkTracker) -> None:
        self._memory = memory
        self._tracker = tracker

    @hookimpl
    def before_execution(self, kind: str, subject: Json, agent: str, use_memory: bool) -> InjectedMessage | None:
        """Give a task's work the relevant items."""
        if kind != TASK or not use_memory or not isinstance(subject, int):
            return None
        item = self._tracker.item(subject)
        return self._memory.inject(f"{item.title}\n{item.description}", agent=agent)

    @hookimpl
    def pre_message(self, text: str, agent: str, use_memory: bool) -> InjectedMessage | None:
        """Give the line with relevant items before it."""
        return self._memory.inject(text, agent=agent) if use_memory and text.strip() else None

    @hookimpl
    def post_message(self, text: str, agent: str, use_memory: bool, result: Mapping[str, Any]) -> None:
        """Learn from a line, unless it was a command: what came of that stands in the state of work.

        The answer is not learnt from: it says what was done, or what the memory holds already.
        """
        actions = {intent["action"] for intent in result["intents"]}
        is_command = result["outcome"] not in _UNREAD and actions and not actions & _TELLING
        if use_memory and not is_command:
            self._memory.learn(text, "", agent=agent)
