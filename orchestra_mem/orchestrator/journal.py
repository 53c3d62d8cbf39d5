"""Record lines, task attempts and changes of work as operations, and read them again; hooks for the catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from orchestra_mem.core.periods import bounds_in
from orchestra_mem.core.text import split_sentences, squeeze, stem, words
from orchestra_mem.core.work.transitions import describe_changes, net_changes
from orchestra_mem.hooks import hookimpl
from orchestra_mem.memory.agent_view import InjectedMessage
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.orchestrator.intents import ASKS, TELLING, Action
from orchestra_mem.orchestrator.intents.slots import ENGLISH, KIND_WORDS, NUMBER_WORDS
from orchestra_mem.orchestrator.talk import Effect, Happening, Outcome, Reply, Talk, shown
from orchestra_mem.serialize import local_day
from orchestra_mem.types import SHOWN, Author, Json, Operation, OperationFilter, SessionStatus
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkKind, WorkStatus, WorkTracker

LINE, TASK = "nl_command", "task_execution"
"""Types of the operations that an orchestrator records: a line, a task attempt."""
WORK = "work_change"
"""Type of an operation for changes made outside any operation, such as a person's edits."""
_REACH = 40  # number of newest operations searched for mentioned items
_CHANGES = 1_000  # number of newest changes of work searched for one to undo
_AN_HOUR = timedelta(hours=1)
_OTHERS_MAY_TELL = timedelta(seconds=2)  # another process may still record a younger change itself
UNDONE = "undone"
"""Key in an undo operation's data; the value is the id of the undone line's first operation."""
PART_OF = "part_of"
"""Key in the data of a line's later operations; the value is the id of the line's first operation."""
_NOTED = ("note", "decision")  # types of the operations that keep a line's text
_CHANGED, _SPOKEN_OF = "changed", "spoken_of"
_MOST, _MOST_CHARS, _MANY = 10, 160, 20
_DID: Mapping[str, str] = {
    WorkStatus.IN_PROGRESS: "started", WorkStatus.DONE: "finished", "title": "renamed", "assignee": "assigned",
    "note": "noted",
}  # fmt: skip
_NAMED = {stem(word): did for did, words in ENGLISH["facts"].items() for word in words.split()}
_ASKED_FOR = {stem(word): did for did, words in ENGLISH["happened"].items() for word in words.split()} | _NAMED
_ANYTHING = re.compile(r"(?i)\b(?:did|have|has) (?:we|i|you|it|they) (?:do|done)\b")
_TELLS = "error decision note result outcome status text message user_input"
_FAILURE = re.compile(r"(?i)\b(?:fail\w*|error|exception|crash\w*|timed out|timeout)\b")
_SESSION = re.compile(r"(?i)\b(this|the|current|last|previous) session\b")
_A_NOUN = rf"(?:{'|'.join(KIND_WORDS)}|thing|\w+(?<![su])s)"
_LAST = re.compile(
    rf"(?i)\b(?:last|latest|newest) (?:(\d{{1,3}}|{'|'.join(NUMBER_WORDS)}) )?(?:(?!{_A_NOUN}\b)\w+ )?(\w+)\b"
)


@dataclass(frozen=True, slots=True)
class Journal:
    """Records an orchestrator's lines, task attempts and work changes under the name `agent`, and reads them again."""

    memory: OrchestratorContextManager
    tracker: WorkTracker
    agent: str
    running: set[int] = field(default_factory=set)  # ids of events that running task attempts will record

    def record(
        self, reply: Reply, changes: Sequence[WorkEvent] = (), *, kind: str = LINE,
        data: Mapping[str, Json] | None = None,
    ) -> Reply:  # fmt: skip
        """Record a line with its answer (or `data`) as the cause of changes; return the reply with the operation id."""
        recorded = {**(data if data is not None else line_record(reply)), **_spoken_of(reply.effects, bool(changes))}
        return replace(reply, operation=self.record_changes(kind, recorded, changes, author=Author.PERSON).id)

    def record_changes(
        self, kind: str, data: dict[str, Json], changes: Sequence[WorkEvent], tokens_used: int | None = None,
        key: str | None = None, author: Author | None = None,
    ) -> Operation:  # fmt: skip
        """Record an operation as the cause of changes of work. With an idempotency `key` it is recorded once."""
        operation = self.memory.record_operation(kind, data, tokens_used, agent=self.agent, idempotency_key=key)
        if changes:
            self.tracker.attribute([event.id for event in changes], operation.id, author)
        return operation

    def record_unattributed_changes(self) -> None:
        """Record work changes without an operation: a person's edits, and changes that a crash left unrecorded."""
        changes = [each for each in self.tracker.unattributed(_OTHERS_MAY_TELL) if each.id not in self.running]
        if not changes:
            return
        data: dict[str, Json] = {
            "result": describe_changes(changes, self.tracker.item),
            "by": ", ".join(sorted({event.author.value for event in changes})),
            "settled": True,  # the work items show the result; it is not a fact itself
            _CHANGED: {Happening.CHANGED.value: list(dict.fromkeys(event.item for event in changes))},
        }
        self.record_changes(WORK, data, changes, key=f"work events {changes[0].id} to {changes[-1].id}")

    def talk(self, now: datetime) -> Talk:
        """Return the recent conversation, which goes on if its last operation is of the last hour."""
        recent = self.memory.query_recent_operations(limit=_REACH)
        goes_on = bool(recent) and now - recent[0].timestamp < _AN_HOUR
        return Talk([each for op in recent for each in _mentions(op.data)], self.tracker, goes_on=goes_on)

    def last_change(self) -> tuple[Operation, ...]:
        """Return the operations of the newest line that changed work and has not been undone, newest first."""
        undone, caused = set[Json](), dict[int, list[WorkEvent]]()
        found, first = list[Operation](), 0
        for event in self.tracker.events(limit=_CHANGES):
            caused.setdefault(event.operation, []).append(event)
        for number in sorted(caused, reverse=True):
            if number < first:
                break
            for operation in self.memory.operations(OperationFilter(after=number - 1, through=number)):
                data = operation.data if isinstance(operation.data, dict) else {}
                line = data.get(PART_OF, number)
                if UNDONE in data:
                    undone.add(data[UNDONE])
                elif line not in undone and _CHANGED in data and net_changes(caused[number]) and first in (0, line):
                    found.append(operation)  # what has no net effect, such as a repeated "defer", is passed over
                    first = line if isinstance(line, int) else number
        return tuple(found)

    def why_not_undone(self, last: Sequence[Operation]) -> str:
        """Say why the `last` change is not undone: there is none, or a later command changed nothing; "" if it is."""
        recent = self.memory.operations(OperationFilter(agent=self.agent, limit=_REACH))
        commands = (each for each in recent[::-1] if each.type in _NOTED or _asked_for(each) not in ("", *ASKS))
        command, reason = next(commands, None), "The last command left nothing to undo."
        if command is None or _asked_for(command) == Action.UNDO or (last and last[0].id >= command.id):
            return "" if last else "There is nothing to undo."
        if command.type in _NOTED:
            text = squeeze(_first_of(command.data, "text note decision"))[:120]
            reason = f'"{text}" was noted, and undo reverts only changes of work: say what holds instead, or delete '
            reason += "its line in the documents."
        return f"{reason} Another undo reverts the change before." if last else reason

    def change_just_made(self, now: datetime) -> tuple[Operation, ...]:
        """Return the last command's changes, which may be undone without naming them; () if it made none, or is old."""
        last = self.last_change()
        return () if not last or self.why_not_undone(last) or self.old_date(last[0], now) else last

    def old_date(self, operation: Operation, now: datetime) -> str:
        """Return an operation's date if it is of an earlier session or more than an hour old, else ""."""
        live = [each.id for each in self.memory.sessions() if each.status is SessionStatus.ACTIVE]
        is_old = operation.session not in live or now - operation.timestamp > _AN_HOUR
        return local_day(operation.timestamp) if is_old else ""


def said(operation: Operation) -> str:
    """Return an operation's subject in at most 120 characters."""
    return squeeze(_first_of(operation.data, "user_input task_title result") or operation.type)[:120]


def line_record(reply: Reply) -> dict[str, Json]:
    """Return an operation's data for a line.

    An answer under `shown` is not indexed, because the memory already holds its content. A line with intents is
    `settled`: the state of work holds its outcome, so no facts are extracted from it, nor from a line that only asks.
    """
    only_asks = all(each.endswith(("?", "\uff1f")) for each in split_sentences(reply.line))
    return {
        "intent": ", ".join(dict.fromkeys(intent.action.value for intent in reply.intents)) or None,
        "user_input": reply.line,
        "result" if reply.outcome is Outcome.DONE else SHOWN: reply.text,
        **({"settled": True} if reply.intents or only_asks else {}),
    }


def _spoken_of(effects: Sequence[Effect], changed: bool) -> dict[str, Json]:
    """Return the ids of changed and of mentioned items, in the format of an operation's data."""
    done: dict[str, list[Json]] = {}
    rest: list[Json] = []
    for effect in effects:
        is_quiet = not (changed and effect.items) or effect.happening in (Happening.MENTIONED, Happening.LISTED)
        (rest if is_quiet else done.setdefault(effect.happening.value, [])).extend(effect.items)
    kept: dict[str, Json] = {_CHANGED: dict(done), _SPOKEN_OF: rest}
    return {name: items for name, items in kept.items() if items}


def _mentions(data: Json) -> Iterator[Effect]:
    """Yield the mentions in an operation's data, newest first."""
    if not isinstance(data, dict):
        return
    spoken_of, changed = _ids(data.get(_SPOKEN_OF)), data.get(_CHANGED)
    rest = len(spoken_of) - (data.get("intent") == Action.NEXT)  # the last is "it"; see `Answers`
    yield from (*shown(spoken_of[rest:]), *shown(spoken_of[:rest]))
    for did, listed in reversed(changed.items()) if isinstance(changed, dict) else ():
        if did in set(Happening) and (items := _ids(listed)):
            yield Effect(items=items, happening=Happening(did))


def _ids(value: Json) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(each for each in listed if isinstance(each, int) and not isinstance(each, bool) and each > 0)


# Questions about recent operations


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentQuestion:
    """A filter for the operations that a question is about; all given conditions must hold.

    `since` is inclusive, `until` exclusive. `did` is what was done ("failed", "created", …), or the kind of fact asked
    for ("decided", "rule", "learnt"); "" for anything. `session` counts back from 0, the newest. `limit` is the maximum
    number of newest operations, None for all.
    """

    since: datetime | None = None
    until: datetime | None = None
    did: str = ""
    kind: WorkKind | None = None
    session: int | None = None
    limit: int | None = _MOST


def read_recent_question(text: str, now: datetime) -> RecentQuestion:
    """Parse a question about recent operations; any string is valid. `now` defines "yesterday"."""
    since, until = bounds_in(text, now)
    session, last, said = _SESSION.search(text), _LAST.search(text), words(text.lower())
    limit = None if since or until or session else _MOST
    if last and limit:
        limit = _number(last[1]) or (_MOST if last[2].endswith("s") else 1)
    asked = [each for each in map(stem, said) if each in _ASKED_FOR]
    if _ANYTHING.search(text):  # "what did we do about the problem?" does not ask for failures
        asked = [each for each in asked if each not in _NAMED]
    did = _ASKED_FOR[asked[0]] if asked else ""
    kind = next((KIND_WORDS[word] for word in said if word in KIND_WORDS), None)
    return RecentQuestion(
        since=since, until=until, limit=limit, did=did,
        kind=None if did == "executed" and kind is WorkKind.TASK else kind,  # people call anything that ran a task
        session=int(session[1].lower() in ("last", "previous")) if session else None,
    )  # fmt: skip


def _number(word: str | None) -> int:
    """Parse a number below 10,000 in digits or words; return 0 for anything else."""
    is_figure = word is not None and word.isdecimal() and len(word) < 5
    return int(word or 0) if is_figure else NUMBER_WORDS.get((word or "").lower(), 0)


def answer_recent(
    question: RecentQuestion, operations: Iterable[Operation], events: Sequence[WorkEvent],
    item: Callable[[int], WorkItem], sessions: Sequence[str], ended: Mapping[int, str] | None = None,
    telling: Container[int] = (),
) -> tuple[str, tuple[Operation, ...]]:  # fmt: skip
    """Describe the operations that a question is about, oldest first; return the text and the operations, newest first.

    Args:
        operations: Operations in any order; questions among them are left out.
        events: Changes of work; those caused by the operations show what was done to which items.
        item: Returns an item's present state.
        sessions: Ids of all sessions, newest first. The first is "" if no session is active.
        ended: Ids of operations whose facts have all ended since, each with what became of them.
        telling: Ids of operations that left facts. Of more than `_MANY` operations only these, and those that changed
            work, are told, or else the newest.
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
        with_work = {each.session for each in fitting}
        older = (each for each in sessions[question.session :] if each in with_work)
        wanted = next(older, None) if question.session else sessions[0]
        fitting = [each for each in fitting if each.session == wanted]
    chosen = tuple(fitting[: question.limit])
    if not chosen:
        return " ".join(filter(None, ["No", question.did, question.kind, "records match that."])), ()
    listed = chosen
    if len(chosen) > _MANY:
        listed = tuple(each for each in chosen if each.id in telling or each.id in came_from) or chosen[:_MOST]
    changes, texts = list[WorkEvent](), list[str]()
    for operation in reversed(listed):
        done = came_from.get(operation.id, [])
        changes += done
        if not done or (question.did == "failed" and has_failed(operation)):
            fate = (ended or {}).get(operation.id)
            source = f"op {operation.id}, {local_day(operation.timestamp)}" + (f", {fate} since" if fate else "")
            texts.append(f"{_text_of(operation)} [{source}]")
    if others := len(chosen) - len(listed):
        texts.append(f"\u2026 and {others:,} more: `orchestra-mem ops --limit 0`")
    return "\n".join([*([describe_changes(changes, item)] if changes else []), *texts]), chosen


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
    asked = ("executed", "finished") if question.did == "executed" else (question.did,)
    if not question.did or any(each in asked for event in events for each in (_did(event), event.field)):
        return True
    named = words(f"{operation.type.replace('_', ' ')} {_asked_for(operation)}".lower())
    return has_failed(operation) if question.did == "failed" else question.did in map(_ASKED_FOR.get, map(stem, named))


def has_failed(operation: Operation) -> bool:
    """Check whether an operation's data report a failure: by an error, a flag, an outcome, a status, or a result."""
    data = operation.data
    if not isinstance(data, dict):
        return False
    says_so = bool(data.get("error")) or data.get("success") is False or data.get("failed") is True
    outcomes = (value for name in ("outcome", "status", "result") if isinstance(value := data.get(name), str))
    return says_so or any(_FAILURE.search(value[:_MOST_CHARS]) for value in outcomes)


def _text_of(operation: Operation) -> str:
    kind, data = operation.type.replace("_", " ").capitalize(), operation.data
    name, outcome = _first_of(data, "title task_title task subject name command input"), _first_of(data, _TELLS)
    subject = f'{kind} "{name}"' if name else kind
    text = f"{subject}: {outcome}" if outcome and operation.type != LINE else outcome or subject
    line = squeeze(text[: 4 * _MOST_CHARS])
    return line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1].rstrip()}\u2026"


def _first_of(data: Json, fields: str) -> str:
    """Return the first non-blank text among space-separated fields. For `_TELLS`, data without fields is the text."""
    if not isinstance(data, dict):
        return str(data or "") if fields == _TELLS else ""
    values = (data.get(field) for field in fields.split())
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


_UNREAD = (Outcome.ASKED, Outcome.NOT_UNDERSTOOD)


class CatalogHooks:
    """Adds relevant catalog items to lines and tasks, and learns catalog items from lines, but not from tasks.

    An `Orchestrator` adds this plugin itself if the setting `catalog.hooks` is on.
    """

    def __init__(self, memory: OrchestratorContextManager, tracker: WorkTracker) -> None:
        self._memory = memory
        self._tracker = tracker

    @hookimpl
    def before_execution(self, kind: str, subject: Json, agent: str, use_memory: bool) -> InjectedMessage | None:
        """Return a task's text after the relevant catalog items; None for a line or without `use_memory`."""
        if kind != TASK or not use_memory or not isinstance(subject, int):
            return None
        item = self._tracker.item(subject)
        return self._memory.inject(f"{item.title}\n{item.description}", agent=agent)

    @hookimpl
    def pre_message(self, text: str, agent: str, use_memory: bool) -> InjectedMessage | None:
        """Return the line after the relevant catalog items; None for an empty line or without `use_memory`."""
        return self._memory.inject(text, agent=agent) if use_memory and text.strip() else None

    @hookimpl
    def post_message(self, text: str, agent: str, use_memory: bool, result: Mapping[str, Any]) -> None:
        """Learn from a line, except from commands and questions: the state of work holds their outcome.

        Answers are not learnt from: they report what was done, or what the memory already holds.
        """
        actions = {intent["action"] for intent in result["intents"]}
        is_command = result["outcome"] not in _UNREAD and actions and not actions & TELLING
        if use_memory and not is_command:
            self._memory.learn(text, "", agent=agent)
