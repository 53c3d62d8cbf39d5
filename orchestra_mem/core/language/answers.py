"""Answers in words about what was done: which operations a question asks for, and what they say of it.

No model: the words come from work events and from the operations themselves. The present is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from orchestra_mem.core.language.intents.types import ASKS
from orchestra_mem.core.language.intents.words import KINDS, NUMBERS
from orchestra_mem.core.search.echoes import SHOWN
from orchestra_mem.core.search.question import periods_in
from orchestra_mem.types import Json, Operation
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkKind, WorkStatus

DEFAULT_OPERATIONS = 10
_MOST_ACTS = 6
_MOST_NAMED = 5
_TEXT_CHARS = 160

# What became of work, by the value that the status took.
_DID = {
    WorkStatus.IN_PROGRESS: "started", WorkStatus.DONE: "finished", WorkStatus.BLOCKED: "blocked",
    WorkStatus.DEFERRED: "deferred", WorkStatus.CANCELLED: "cancelled", WorkStatus.FAILED: "failed",
    WorkStatus.PENDING: "put back",
}  # fmt: skip
_DID_FIELD = {
    "created": "created", "title": "renamed", "assignee": "assigned", "priority": "prioritised",
    "depends_on": "linked", "parent": "moved", "note": "noted on", "description": "described",
}  # fmt: skip
_FOLLOWING = frozenset({"started", "finished", "rank"})
# What the words of a question pick, by stems; the first that fits.
_PICKS = {
    "failed": r"fail\w*|errors?|broke\w*|crash\w*|went wrong|gone wrong|go wrong",
    "finished": r"finish\w*|complet\w*|closed?|done (?:today|yesterday|since|this|last)|shipp?e?d?|got done|delivered",
    "created": r"creat\w*|added|add|made|new (?:tasks?|stor\w+|epics?)",
    "started": r"start\w*|begun|began|kicked off|picked up",
    "blocked": r"block\w*",
    "deferred": r"defer\w*|postpon\w*",
    "cancelled": r"cancel\w*|dropped|abandon\w*",
    "decided": r"decid\w*|decisions?|agreed?|chose\w*",
    "noted on": r"notes?|noted|wrote down",
    "assigned": r"assign\w*",
    "renamed": r"renam\w*",
}  # fmt: skip
_PICKED = {name: re.compile(rf"\b(?:{source})\b", re.IGNORECASE) for name, source in _PICKS.items()}
_BY_INTENT = {"decided": "decide", "noted on": "note"}
_FAILURE = re.compile(r"\b(?:fail\w*|error|exception|crash\w*|timed out|timeout)\b", re.IGNORECASE)
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_COUNT = r"(?P<count>\d{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten|few|couple of|couple)"
_SPAN = re.compile(
    rf"\b(?:(?:last|past|previous) (?:{_COUNT} )?(?P<unit>minute|hour|day|week)s?"
    rf"|{_COUNT.replace('count', 'ago_count')} (?P<ago_unit>minute|hour)s? ago)\b",
    re.IGNORECASE,
)
_SINCE = re.compile(r"\b(?:since|from|after)\b", re.IGNORECASE)
_WEEKDAY = re.compile(r"\b(?:since|on|from|after) (?=(?:mon|tues|wednes|thurs|fri|satur|sun)day\b)", re.IGNORECASE)
_LAST = re.compile(
    rf"\b(?:last|latest|newest|most recent|previous|recent|past) (?:{_COUNT} )?(?:failed |finished |completed |"
    rf"created |blocked )?"
    r"(?P<what>operations?|changes?|commands?|steps?|actions?|things?|tasks?|stor(?:y|ies)|epics?|milestones?|"
    r"subtasks?|"
    r"decisions?|notes?|failures?|errors?|events?|entries|entry|items?|edits?|one)\b",
    re.IGNORECASE,
)
_SESSION = re.compile(r"\b(?P<which>this|the|last|previous|current) session\b", re.IGNORECASE)
_DAY_PARTS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (18, 24), "tonight": (18, 24)}
_DAY_PART = re.compile(r"\b(?:this )?(?P<part>morning|afternoon|evening|tonight)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentQuestion:
    """Which operations are asked for: all that pass every condition given.

    `since` is inclusive, `until` exclusive. `did` is what must have been done ("failed", "created" …). `session` counts
    back: 0 is the newest one, 1 that before, None any. `limit` is how many of the newest are wanted. `when` is the time
    as the question put it.
    """

    since: datetime | None = None
    until: datetime | None = None
    did: str = ""
    kind: WorkKind | None = None
    session: int | None = None
    limit: int | None = DEFAULT_OPERATIONS
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentAnswer:
    """What was done, in words, and the operations that say so, newest first."""

    text: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class _Act:
    """Something done to items, or `text` where no item tells of it."""

    did: str
    items: tuple[int, ...]
    text: str = ""


def read_recent_question(text: str, now: datetime) -> RecentQuestion:
    """Read which operations a question asks for, any string whatever; `now` is what "yesterday" is told from."""
    since, until, when = _period(text, now.astimezone(UTC))
    last = _LAST.search(text)
    session = _SESSION.search(text)
    did = next((name for name, regex in _PICKED.items() if regex.search(text)), "")
    limit: int | None = None if when or session else DEFAULT_OPERATIONS
    if last and not when:
        limit = _count(last["count"]) or (DEFAULT_OPERATIONS if last["what"].lower().endswith("s") else 1)
    return RecentQuestion(
        since=since,
        until=until,
        did=did,
        kind=next((KINDS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in KINDS), None),
        session=int(session["which"].lower() in ("last", "previous")) if session else None,
        limit=limit,
        when=when or (session[0].lower() if session else ""),
    )


def _period(text: str, now: datetime) -> tuple[datetime | None, datetime | None, str]:
    """Give since, until and the words of the time that a text names."""
    if span := _SPAN.search(text):
        unit, count = (span["unit"], span["count"]) if span["unit"] else (span["ago_unit"], span["ago_count"])
        if span["count"] or span["ago_unit"] or unit.lower() in ("hour", "minute"):
            since = now - (_count(count) or 1) * _UNITS[unit.lower()]
            return since, None, f"in the {span[0].lower()}" if span["unit"] else f"since {span[0].lower()}"
    if part := _DAY_PART.search(text):
        begin, end = _DAY_PARTS[part["part"].lower()]
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        since = midnight + timedelta(hours=begin)
        open_ended = _SINCE.search(text[: part.start()]) is not None
        return since, None if open_ended else midnight + timedelta(hours=end), part[0].lower()
    named = _WEEKDAY.sub(lambda match: f"{match[0]}last ", text)
    periods = periods_in(named, now)
    if not periods:
        return None, None, ""
    period = periods[0]
    if _SINCE.search(named):
        return period.start, None, _words_of_time(text, "since")
    return period.start, period.end, _words_of_time(text, "")


_TIME_WORDS = re.compile(
    r"\b(?:since |from |after |on )?((?:this |last |past )?(?:today|yesterday|week|month|year|(?:mon|tues|wednes|"
    r"thurs|fri|satur|sun)day)"
    r"|\S+ (?:days?|weeks?|months?|years?) ago)\b",
    re.IGNORECASE,
)


def _words_of_time(text: str, lead: str) -> str:
    match = _TIME_WORDS.search(text)
    named = match[1].lower() if match else "then"
    return f"{lead} {named}".strip()


def _count(word: str | None) -> int:
    if not word:
        return 0
    word = word.lower().removesuffix(" of")
    return int(word) if word.isdecimal() else {"few": 3, "couple": 2}.get(word, NUMBERS.get(word, 0))


def select_operations(
    question: RecentQuestion,
    operations: Sequence[Operation],
    events: Iterable[WorkEvent] = (),
    items: Mapping[int, WorkItem] | None = None,
) -> tuple[Operation, ...]:
    """Choose the operations that a question asks for, newest first; what only asked something is none.

    Args:
        question: as it was read.
        operations: in any order.
        events: changes of work; those that came from the operations say what was done to which items.
        items: by id; without them a kind is looked for in the operation's type alone.
    """
    newest = sorted((each for each in operations if not _only_asked(each.data)), key=lambda each: each.id, reverse=True)
    sessions = list(dict.fromkeys(each.session for each in newest))
    by_operation = _by_operation(events)
    chosen = [
        each
        for each in newest
        if (question.since is None or each.timestamp >= question.since)
        and (question.until is None or each.timestamp < question.until)
        and (question.session is None or each.session in sessions[question.session : question.session + 1])
        and _fits(question, each, by_operation.get(each.id, []), items or {})
    ]
    return tuple(chosen[: question.limit])


def answer_recent(
    question: RecentQuestion,
    operations: Sequence[Operation],
    events: Sequence[WorkEvent] = (),
    items: Mapping[int, WorkItem] | None = None,
) -> RecentAnswer:
    """Say what was done, from the operations that the question asks for and the changes that came from them.

    Arguments as of `select_operations`.
    """
    known = items or {}
    chosen = select_operations(question, operations, events, known)
    lead = f"{question.when[0].upper()}{question.when[1:]} " if question.when else ""
    if not chosen:
        what = f"nothing {question.did}" if question.did else "nothing"
        if question.did and question.kind:
            what = f"no {question.did} {question.kind}"
        return RecentAnswer(
            text=f"There is {what} on record{f' {question.when}' if question.when else ''}.", operations=()
        )
    by_operation = _by_operation(events)
    acts = [act for each in reversed(chosen) for act in _acts(each, by_operation.get(each.id, []), question, known)]
    merged = _merged(acts, known)
    done = [_said(act, known) for act in merged if not act.text and act.did != "failed"]
    told = [_sentence(act.text) for act in merged if act.text]
    failed = [f"{_names(act.items, known)} failed" for act in merged if act.did == "failed" and not act.text]
    sentences = [f"{lead}{'we' if lead else 'We'} {_joined(done)}."] if done else []
    sentences += [_sentence(each) for each in failed]
    text = " ".join([*sentences, *told])
    return RecentAnswer(text=text if done or not lead else f"{lead.rstrip()}: {text}", operations=chosen)


def _only_asked(data: Json) -> bool:
    """Tell whether an operation changed nothing: a question, or a line that was not understood."""
    if not isinstance(data, dict):
        return False
    if SHOWN in data:
        return True
    intent = data.get("intent") or data.get("intent_type")
    return isinstance(intent, str) and intent.lower() in ASKS


def _by_operation(events: Iterable[WorkEvent]) -> dict[int, list[WorkEvent]]:
    grouped: dict[int, list[WorkEvent]] = {}
    for event in events:
        grouped.setdefault(event.operation, []).append(event)
    return grouped


def _fits(
    question: RecentQuestion, operation: Operation, events: list[WorkEvent], items: Mapping[int, WorkItem]
) -> bool:
    kinds = {items[event.item].kind for event in events if event.item in items}
    if question.kind and question.kind not in kinds and (kinds or question.kind not in operation.type.lower()):
        return False
    if not question.did:
        return True
    if any(_did(event) == question.did for event in events):
        return True
    if question.did == "failed":
        return has_failed(operation)
    data = operation.data
    said = str(data.get("intent") or data.get("intent_type") or "").lower() if isinstance(data, dict) else ""
    wanted = _BY_INTENT.get(question.did, question.did[:5])
    return wanted in said or (question.did == "decided" and "decision" in operation.type.lower())


def has_failed(operation: Operation) -> bool:
    """Tell whether an operation says of itself that it failed: by an error, its outcome, or its result."""
    data = operation.data
    if not isinstance(data, dict):
        return False
    if data.get("error") or data.get("success") is False or data.get("failed") is True:
        return True
    told = (data.get(name) for name in ("outcome", "status", "result"))
    return any(isinstance(value, str) and _FAILURE.search(value[:_TEXT_CHARS]) is not None for value in told)


def _did(event: WorkEvent) -> str:
    if event.field == "status":
        return _DID.get(WorkStatus(event.after), "changed") if event.after in list(WorkStatus) else "changed"
    return _DID_FIELD.get(event.field, "changed")


def _acts(
    operation: Operation, events: list[WorkEvent], question: RecentQuestion, items: Mapping[int, WorkItem]
) -> list[_Act]:
    known = [event for event in events if event.item in items or not items]
    blocked = {event.item for event in known if _did(event) == "blocked"}
    wanted = [
        event
        for event in known
        # What follows from another change of the same item says nothing of its own.
        if event.field not in _FOLLOWING and not (event.field == "depends_on" and event.item in blocked)
    ]
    if question.did:
        wanted = [event for event in wanted if _did(event) == question.did] or wanted
    created = {event.item for event in wanted if event.field == "created"}
    acts: dict[str, list[int]] = {}
    for event in wanted:
        # What is set while something is made is no change of its own.
        if event.item not in created or event.field == "created":
            acts.setdefault(_did(event), []).append(event.item)
    if acts and not (question.did == "failed" and has_failed(operation)):
        return [_Act(did, tuple(dict.fromkeys(ids))) for did, ids in acts.items()]
    return [_Act("", (), _text_of(operation))]


def _text_of(operation: Operation) -> str:
    """What an operation says of itself in one line."""
    kind = operation.type.replace("_", " ")
    data = operation.data
    if not isinstance(data, dict):
        return f"{kind}: {_clipped(str(data))}" if data not in (None, "") else kind
    name = next((data[key] for key in ("title", "task_title", "name", "command") if isinstance(data.get(key), str)), "")
    number = next((data[key] for key in ("task_id", "story_id", "epic_id") if isinstance(data.get(key), int)), None)
    subject = " ".join(filter(None, [kind, f"#{number}" if number is not None else "", f'"{name}"' if name else ""]))
    fields = ("error", "decision", "note", "result", "outcome", "status", "text", "message", "user_input")
    told = next((str(data[key]) for key in fields if isinstance(data.get(key), str) and str(data[key]).strip()), "")
    if operation.type == "nl_command" and told:
        return _clipped(told)
    return f"{subject}: {_clipped(told)}" if told else subject


def _clipped(text: str) -> str:
    line = " ".join(text[: 4 * _TEXT_CHARS].split())
    return line if len(line) <= _TEXT_CHARS else f"{line[: _TEXT_CHARS - 1].rstrip()}…"


def _merged(acts: list[_Act], items: Mapping[int, WorkItem]) -> list[_Act]:
    """Put neighbours of one doing together, and if that is still too much all of one doing."""
    together: list[_Act] = []
    for act in acts:
        last = together[-1] if together else None
        if last and not act.text and not last.text and last.did == act.did and _kind(last, items) == _kind(act, items):
            together[-1] = _Act(act.did, tuple(dict.fromkeys((*last.items, *act.items))))
        else:
            together.append(act)
    if len(together) <= _MOST_ACTS:
        return together
    grouped: dict[tuple[str, object, str], list[int]] = {}
    for act in together:
        grouped.setdefault((act.did, _kind(act, items), act.text), []).extend(act.items)
    return [_Act(did, tuple(dict.fromkeys(ids)), text) for (did, _, text), ids in grouped.items()]


def _kind(act: _Act, items: Mapping[int, WorkItem]) -> WorkKind | None:
    kinds = {items[each].kind for each in act.items if each in items}
    return kinds.pop() if len(kinds) == 1 else None


def _said(act: _Act, items: Mapping[int, WorkItem]) -> str:
    return f"{act.did} {_names(act.items, items)}"


def _names(ids: tuple[int, ...], items: Mapping[int, WorkItem]) -> str:
    if len(ids) == 1:
        return items[ids[0]].name if ids[0] in items else f"#{ids[0]}"
    kinds = {items[each].kind for each in ids if each in items}
    kind = kinds.pop() if len(kinds) == 1 else None
    word = kind.plural if kind else "items"
    listed = ", ".join(f"#{each}" for each in ids[:_MOST_NAMED])
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"{len(ids)} {word} ({listed}{more})"


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _sentence(text: str) -> str:
    text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
