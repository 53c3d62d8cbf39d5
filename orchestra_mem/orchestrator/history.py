"""What was done lately, in words: which operations a question asks for, and what is said of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestra_mem.core.search.echoes import SHOWN
from orchestra_mem.core.search.question import periods_in
from orchestra_mem.orchestrator.intents.slots import KIND_WORDS as KINDS
from orchestra_mem.orchestrator.intents.slots import NUMBER_WORDS as NUMBERS
from orchestra_mem.orchestrator.intents.types import ASKS
from orchestra_mem.types import Json, Operation
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkKind, WorkStatus

_MOST = 10
_MOST_NAMED = 5
_MOST_CHARS = 160
_DID_STATUS = {
    WorkStatus.IN_PROGRESS: "started", WorkStatus.DONE: "finished", WorkStatus.PENDING: "put back",
}  # fmt: skip
_DID_FIELD = {
    "created": "created", "title": "renamed", "assignee": "assigned", "priority": "prioritised",
    "depends_on": "linked", "parent": "moved", "note": "noted on", "description": "described",
}  # fmt: skip
_FOLLOWING = frozenset({"started", "finished", "rank"})  # fields that change along with another
_ASKED_FOR = {
    "failed": "fail", "finished": "finish|complet|closed", "created": "creat|added", "started": "start|begun|began",
    "blocked": "block", "deferred": "defer|postpon", "cancelled": "cancel", "decided": "decid|decision",
    "noted on": "note", "assigned": "assign", "renamed": "renam",
}  # fmt: skip
_FAILURE = re.compile(r"\b(?:fail\w*|error|exception|crash\w*|timed out|timeout)\b", re.IGNORECASE)
_SPAN = re.compile(r"\b(?:last|past) (?:(\w+) )?(minute|hour|day|week)s?\b", re.IGNORECASE)
_SINCE = re.compile(r"\bsince\b", re.IGNORECASE)
_SESSION = re.compile(r"\b(this|the|current|last|previous) session\b", re.IGNORECASE)
_LAST = re.compile(rf"\b(?:last|latest|newest) (?:(\d{{1,3}}|{'|'.join(NUMBERS)}) )?(?:\w+ )?(\w+)\b", re.IGNORECASE)
_TIME_WORDS = re.compile(
    r"\b(?:today|yesterday|(?:this|last) (?:week|month|year)|(?:on |last )?\w+day|\w+ \w+ ago)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentQuestion:
    """Which operations are asked for: all that pass every condition given.

    `since` is inclusive, `until` exclusive. `did` is what must have been done ("failed", "created" ...). `session`
    counts back from 0, the newest. `limit` is how many of the newest are wanted. `when` is the time as it was said.
    """

    since: datetime | None = None
    until: datetime | None = None
    did: str = ""
    kind: WorkKind | None = None
    session: int | None = None
    limit: int | None = _MOST
    when: str = ""


def read_recent_question(text: str, now: datetime) -> RecentQuestion:
    """Read which operations a question asks for, any string whatever; `now` is what "yesterday" is told from."""
    since, until, when = _period(text, now)
    session, last = _SESSION.search(text), _LAST.search(text)
    limit: int | None = None if when or session else _MOST
    if last and limit:
        count = int(last[1]) if last[1] and last[1].isdecimal() else NUMBERS.get((last[1] or "").lower(), 0)
        limit = count or (_MOST if last[2].endswith("s") else 1)
    return RecentQuestion(
        since=since,
        until=until,
        did=next((did for did, stems in _ASKED_FOR.items() if re.search(rf"\b(?:{stems})", text.lower())), ""),
        kind=next((KINDS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in KINDS), None),
        session=int(session[1].lower() in ("last", "previous")) if session else None,
        limit=limit,
        when=when or (f"in {session[0].lower()}" if session else ""),
    )


def _period(text: str, now: datetime) -> tuple[datetime | None, datetime | None, str]:
    """Give since, until and the words of the time that a text names."""
    span = _SPAN.search(text)
    if span and (span[1] or span[2].lower() in ("minute", "hour")):
        word = (span[1] or "one").lower()
        count = int(word) if word.isdecimal() and len(word) < 5 else NUMBERS.get(word, 1)
        return now - timedelta(**{f"{span[2].lower()}s": count}), None, f"in the {span[0].lower()}"
    periods = periods_in(text, now)
    if not periods:
        return None, None, ""
    words = _TIME_WORDS.search(text)
    named = words[0].lower() if words else "then"
    is_open = _SINCE.search(text) is not None
    return periods[0].start, None if is_open else periods[0].end, f"since {named}" if is_open else named


def answer_recent(
    question: RecentQuestion,
    operations: Iterable[Operation],
    events: Sequence[WorkEvent],
    items: Mapping[int, WorkItem],
) -> tuple[str, tuple[Operation, ...]]:
    """Say what was done, and give the operations that say so, the newest first.

    Args:
        question: as it was read.
        operations: in any order; what only asked something is left out.
        events: changes of work; those that came from the operations say what was done to which items.
        items: by id.
    """
    came_from: dict[int, list[WorkEvent]] = {}
    for event in events:
        if event.item in items:
            came_from.setdefault(event.operation, []).append(event)
    newest = sorted((each for each in operations if not _only_asked(each.data)), key=lambda each: -each.id)
    sessions = list(dict.fromkeys(each.session for each in newest))
    wanted = sessions[question.session : question.session + 1] if question.session is not None else sessions
    chosen = tuple(
        each
        for each in newest
        if (question.since is None or each.timestamp >= question.since)
        and (question.until is None or each.timestamp < question.until)
        and each.session in wanted
        and _fits(question, each, came_from.get(each.id, []), items)
    )[: question.limit]
    if not chosen:
        what = " ".join(filter(None, ["nothing" if not question.kind else "no", question.did, question.kind]))
        return f"There is {what} on record{f' {question.when}' if question.when else ''}.", ()
    return _told(question, chosen, came_from, items), chosen


def _told(
    question: RecentQuestion,
    chosen: Sequence[Operation],
    came_from: Mapping[int, list[WorkEvent]],
    items: Mapping[int, WorkItem],
) -> str:
    """Say what operations did, the oldest first: what was done to items in one sentence, the rest in its own."""
    acts: dict[tuple[str, WorkKind], dict[int, None]] = {}
    texts: list[str] = []
    for operation in reversed(chosen):
        done = _acts(came_from.get(operation.id, []), question.did)
        if not done or (question.did == "failed" and has_failed(operation)):
            texts.append(_text_of(operation))
            continue
        for did, item in done:
            acts.setdefault((did, items[item].kind), {})[item] = None
    told = [f"{did} {_names(list(ids), items)}" for (did, _), ids in acts.items() if did != "failed"]
    failed = [f"{_names(list(ids), items)} failed" for (did, _), ids in acts.items() if did == "failed"]
    joined = f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else "".join(told)
    lead = f"{question.when} we {joined}" if question.when else f"we {joined}"
    sentences = [*([lead] if told else []), *failed, *texts]
    return " ".join(each[:1].upper() + each[1:] + ("" if each.endswith((".", "!", "?")) else ".") for each in sentences)


def _acts(events: Sequence[WorkEvent], did: str) -> list[tuple[str, int]]:
    """List what was done to which items; what follows from another change of the same item is left out."""
    made = {event.item for event in events if event.field == "created"}
    blocked = {event.item for event in events if _did(event) == "blocked"}
    acts = [
        (_did(event), event.item)
        for event in events
        if event.field not in _FOLLOWING
        and (event.item not in made or event.field == "created")
        and not (event.field == "depends_on" and event.item in blocked)
    ]
    return [act for act in acts if act[0] == did] or acts


def _did(event: WorkEvent) -> str:
    if event.field != "status":
        return _DID_FIELD.get(event.field, "changed")
    status = WorkStatus(event.after) if event.after in list(WorkStatus) else None
    return _DID_STATUS.get(status, status.value) if status else "changed"


def _only_asked(data: Json) -> bool:
    """Tell whether an operation changed nothing: a question, or a line that was not understood."""
    if not isinstance(data, dict):
        return False
    return SHOWN in data or str(data.get("intent") or data.get("intent_type")).lower() in ASKS


def _fits(
    question: RecentQuestion, operation: Operation, events: Sequence[WorkEvent], items: Mapping[int, WorkItem]
) -> bool:
    kinds = {items[event.item].kind for event in events}
    if question.kind and question.kind not in kinds and (kinds or question.kind not in operation.type.lower()):
        return False
    if not question.did or any(_did(event) == question.did for event in events):
        return True
    if question.did == "failed":
        return has_failed(operation)
    said = operation.data.get("intent") if isinstance(operation.data, dict) else ""
    return re.search(rf"\b(?:{_ASKED_FOR[question.did]})", f"{operation.type} {said}".lower()) is not None


def has_failed(operation: Operation) -> bool:
    """Tell whether an operation says of itself that it failed: by an error, its outcome, or its result."""
    data = operation.data
    if not isinstance(data, dict):
        return False
    if data.get("error") or data.get("success") is False or data.get("failed") is True:
        return True
    told = (data.get(name) for name in ("outcome", "status", "result"))
    return any(isinstance(value, str) and _FAILURE.search(value[:_MOST_CHARS]) is not None for value in told)


def _text_of(operation: Operation) -> str:
    """Say in one line what an operation says of itself."""
    kind, data = operation.type.replace("_", " "), operation.data
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
    line = " ".join(text[: 4 * _MOST_CHARS].split())
    return line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1].rstrip()}\u2026"


def _names(ids: Sequence[int], items: Mapping[int, WorkItem]) -> str:
    """Name one item by its title, several by kind and number."""
    if len(ids) == 1:
        return items[ids[0]].name
    listed = ", ".join(f"#{each}" for each in ids[:_MOST_NAMED])
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"{len(ids)} {items[ids[0]].kind.plural} ({listed}{more})"
