"""How often a phrase is taken for what a careful listener takes it for, and how often wrongly without asking back.

Each case is a state of work, a dialogue and a new line; its answer are the ids meant, or "ask". The cases are written
from the forms of reference, not from what passes. `--misses` prints those that went wrong.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run
from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.work_store import SqliteWorkStore
from orchestra_mem.core.language.references.resolving import Happening, Mention, Resolution, Talk, resolve_line
from orchestra_mem.errors import NotFoundError
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind, WorkStatus

TARGETS: dict[str, Target] = {
    "accuracy": (">=", 0.95),
    "wrong_without_asking": ("<=", 0.02),
    "resolve_p95_ms": ("<=", 5.0),
    "faults_in_data": ("<=", 0),
}
DATA = Path(__file__).resolve().parent / "data" / "references.yaml"
FORMS = (
    "it", "that", "this one", "them", "both", "the last three", "ordinal", "by words", "number", "by status",
    "the other one", "possessive", "same as before",
)  # fmt: skip
ASK = "ask"
MIN_CASES = 300
MIN_DISTRACTED = 0.5
_TIME = datetime(2025, 1, 1, tzinfo=UTC)
_MANY_ITEMS = 10_000
_MANY_UNDER = 10
_FILLED_KINDS = (WorkKind.EPIC, WorkKind.STORY, WorkKind.TASK)
_MISSES = "--misses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A written case. `answer` are the ids meant, empty where asking back is right."""

    id: str
    form: str
    distractors: bool
    items: tuple[WorkItem, ...]
    mentions: tuple[Mention, ...]
    line: str
    answer: frozenset[int]


class Items:
    """Looks items up in main memory, by kind, status and parent as an index would."""

    def __init__(self, items: tuple[WorkItem, ...]) -> None:
        self._items = {item.id: item for item in items}
        self._by_parent: dict[int, list[WorkItem]] = {}
        for item in items:
            self._by_parent.setdefault(item.parent or 0, []).append(item)

    def item(self, item_id: int) -> WorkItem:
        """Give the item of an id."""
        if item_id not in self._items:
            raise NotFoundError(f"there is no item #{item_id}")
        return self._items[item_id]

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """List what passes a filter, by priority and id."""
        where = where or WorkFilter()
        pool = self._items.values() if where.parent is None else self._by_parent.get(where.parent, ())
        found = sorted((item for item in pool if _passes(item, where)), key=lambda item: (item.priority, item.id))
        return found[: where.limit]


def _passes(item: WorkItem, where: WorkFilter) -> bool:
    text = f"{item.title} {item.description}".lower()
    return (
        (not where.kinds or item.kind in where.kinds)
        and (not where.statuses or item.status in where.statuses)
        and all(word in text for word in where.text.lower().split())
    )


def load_cases(path: Path) -> list[Case]:
    """Read the written cases.

    Raises:
        ValueError: a case is not as its form demands.
    """
    rows = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [_case(row) for row in rows]


def _case(row: Mapping[str, Any]) -> Case:
    try:
        answer = row["answer"]
        return Case(
            id=str(row["id"]),
            form=str(row["form"]),
            distractors=bool(row["distractors"]),
            items=tuple(map(_item, row["items"])),
            mentions=tuple(_mention(said) for said in reversed(row.get("dialogue") or [])),
            line=str(row["line"]),
            answer=frozenset() if answer == ASK else frozenset(map(int, answer)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"case {row.get('id')}: {error!r}") from error


def _item(row: Mapping[str, Any]) -> WorkItem:
    return WorkItem(
        id=row["id"],
        kind=WorkKind(row["kind"]),
        title=str(row["title"]),
        description=str(row.get("description", "")),
        status=WorkStatus(row.get("status", "pending")),
        parent=row.get("parent"),
        created=_TIME,
        changed=_TIME,
    )


def _mention(row: Mapping[str, Any]) -> Mention:
    return Mention(
        items=tuple(row.get("items") or ()), happening=Happening(row.get("did") or "mentioned"), text=str(row["said"])
    )


def faults_of(cases: list[Case]) -> Iterator[str]:
    """Say what is wrong with the data: too few, a form missing, an id that is not there, an id given twice."""
    if len(cases) < MIN_CASES:
        yield f"{len(cases)} cases are fewer than {MIN_CASES}"
    forms = {case.form for case in cases}
    yield from (f"no case has the form {form!r}" for form in FORMS if form not in forms)
    if sum(case.distractors for case in cases) < MIN_DISTRACTED * len(cases):
        yield f"fewer than {MIN_DISTRACTED:.0%} of the cases have distractors"
    yield from (f"case {name} is there {count} times" for name, count in _counts(cases).items() if count > 1)
    for case in cases:
        there = {item.id for item in case.items}
        yield from (f"case {case.id}: its answer #{number} is no item" for number in case.answer - there)


def _counts(cases: list[Case]) -> Counter[str]:
    return Counter(case.id for case in cases)


def resolve_case(case: Case) -> Resolution:
    """Resolve a case's line."""
    return resolve_line(case.line, Talk(mentions=case.mentions, lookup=Items(case.items)))


def measure(options: Options, report: Report) -> None:
    """Measure all cases, and the time that one line takes where there are many items."""
    cases = load_cases(DATA)
    faults = list(faults_of(cases))
    report.add("faults_in_data", len(faults), note="; ".join(faults[:3]))
    right: Counter[str] = Counter()
    wrong = needless = 0
    for case in cases:
        resolution = resolve_case(case)
        found = frozenset(item.id for item in resolution.items)
        right[case.form] += found == case.answer
        wrong += bool(found) and found != case.answer
        needless += not found and bool(case.answer)
        if _MISSES in sys.argv and found != case.answer:
            report.note(_told(case, resolution))
    report.add("accuracy", right.total() / len(cases), n=len(cases), note="the ids meant, or asked where that is right")
    report.add("wrong_without_asking", wrong / len(cases), n=len(cases))
    report.add("asked_needlessly", needless / len(cases), n=len(cases))
    for form, count in sorted(Counter(case.form for case in cases).items()):
        report.add(f"accuracy of {form}", right[form] / count, n=count)
    _measure_time(cases[:: 4 if options.quick else 1], report)


def _told(case: Case, resolution: Resolution) -> str:
    wanted = sorted(case.answer) or ASK
    found = [item.id for item in resolution.items] or resolution.ask
    return f"{case.id} ({case.form}): {case.line!r} wants {wanted}, got {found}"


def _measure_time(cases: list[Case], report: Report) -> None:
    """Put the cases' items among many others of the same titles, in the tracker's own database."""
    samples = []
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "obra.db")
        store = SqliteWorkStore(database)
        tracker = StateManager(store=store, clock=lambda: _TIME)
        _fill(store, [item.title for case in cases for item in case.items])
        for case in cases:
            talk = Talk(mentions=_moved(case, store), lookup=tracker)
            started = time.process_time()
            resolve_line(case.line, talk)
            samples.append((time.process_time() - started) * 1_000)
        database.close()
    report.percentiles("resolve", samples, (50, 95), note=f"processor time of one line, {_MANY_ITEMS:,} items")


def _fill(store: SqliteWorkStore, titles: list[str]) -> None:
    holders: list[int] = []
    with store.changing("filling"):
        for place in range(_MANY_ITEMS):
            kind = _FILLED_KINDS[min(place % _MANY_UNDER, len(_FILLED_KINDS) - 1)]
            depth = _FILLED_KINDS.index(kind)
            title = f"{titles[place % len(titles)]} {place}"
            item = WorkItem(
                id=0, kind=kind, title=title, parent=holders[depth - 1] if depth else None, created=_TIME, changed=_TIME
            )
            holders[depth:] = [store.add(item).id]


def _moved(case: Case, store: SqliteWorkStore) -> tuple[Mention, ...]:
    """Store a case's items; the mentions with the ids that they got."""
    ids: dict[int, int] = {}
    with store.changing("case"):
        for item in sorted(case.items, key=lambda item: list(WorkKind).index(item.kind)):
            ids[item.id] = store.add(replace(item, parent=ids.get(item.parent or 0))).id
    return tuple(replace(mention, items=tuple(ids[each] for each in mention.items)) for mention in case.mentions)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != _MISSES]
    sys.exit(run("references", measure, TARGETS, arguments))
