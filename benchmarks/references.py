"""Measure how often a phrase is resolved to the work item a careful listener would choose, or wrongly without asking.

Each case of `data/references.jsonl` is a dialogue about one of the worlds of `data/reference-worlds.jsonl`, followed by
a new line; its answer is the ids meant, or "ask". The cases cover the forms of reference and were not selected by what
the resolver gets right. Figures are of the test split; `--misses` prints the failed cases of the train split.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run
from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.references import Resolution
from orchestra_mem.orchestrator.resolving import resolve_line
from orchestra_mem.orchestrator.talk import Effect, Happening, Talk
from orchestra_mem.stores import WorkStore
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind, WorkStatus

TARGETS: dict[str, Target] = {
    "accuracy": (">=", 0.93),
    "wrong_without_asking": ("<=", 0.02),
    "resolve_p95_ms": ("<=", 5.0),
    "faults_in_data": ("<=", 0),
}
DATA = Path(__file__).resolve().parent / "data" / "references.jsonl"
WORLDS = DATA.with_name("reference-worlds.jsonl")
FORMS = (
    "it", "that", "this one", "them", "both", "the last three", "ordinal", "by words", "number", "by status",
    "the other one", "possessive", "same as before",
)  # fmt: skip
ASK = "ask"
_TIME = datetime(2025, 1, 1, tzinfo=UTC)
_MANY_ITEMS = 10_000
_MANY_UNDER = 10
_FILLED_KINDS = (WorkKind.EPIC, WorkKind.STORY, WorkKind.TASK)
_MISSES = "--misses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A written case. `answer`: the ids meant; empty if asking back is right."""

    id: str
    split: str
    form: str
    items: tuple[WorkItem, ...]
    mentions: tuple[Effect, ...]
    line: str
    answer: frozenset[int]


class Items:
    """In-memory lookup of items by kind, status and parent, as an index would do it."""

    def __init__(self, items: tuple[WorkItem, ...]) -> None:
        self._items = {item.id: item for item in items}
        self._by_parent: dict[int, list[WorkItem]] = {}
        for item in items:
            self._by_parent.setdefault(item.parent or 0, []).append(item)

    def item(self, item_id: int) -> WorkItem:
        """Return the item with an id."""
        if item_id not in self._items:
            raise NotFoundError(f"there is no item #{item_id}")
        return self._items[item_id]

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """List the items that pass a filter, by priority and id."""
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


def load_cases() -> list[Case]:
    """Read the written cases and the work items that they refer to.

    Raises:
        ValueError: A case is malformed.
    """
    there = {row["id"]: tuple(map(_item, row["items"])) for row in _rows(WORLDS)}
    return [_case(row, there) for row in _rows(DATA)]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _case(row: Mapping[str, Any], worlds: Mapping[str, tuple[WorkItem, ...]]) -> Case:
    try:
        answer = row["answer"]
        return Case(
            id=str(row["id"]),
            split=str(row["split"]),
            form=str(row["form"]),
            items=worlds[row["world"]],
            mentions=tuple(_mention(said) for said in reversed(row["dialogue"])),
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


def _mention(row: Mapping[str, Any]) -> Effect:
    return Effect(items=tuple(row.get("items") or ()), happening=Happening(row.get("did") or "mentioned"))


def faults_of(cases: list[Case]) -> Iterator[str]:
    """Yield faults in the data: a form without cases, an unknown id, a duplicate id."""
    forms = {case.form for case in cases if case.split == "test"}
    yield from (f"no case has the form {form!r}" for form in FORMS if form not in forms)
    counts = Counter(case.id for case in cases)
    yield from (f"case {name} occurs {count} times" for name, count in counts.items() if count > 1)
    for case in cases:
        there = {item.id for item in case.items}
        yield from (f"case {case.id}: its answer #{number} is not an item" for number in case.answer - there)


def resolve_case(case: Case) -> Resolution:
    """Resolve the line of a case."""
    return resolve_line(case.line, Talk(mentions=case.mentions, lookup=Items(case.items)))


def measure(options: Options, report: Report) -> None:
    """Measure the cases, and the time per line among many items."""
    every = load_cases()
    faults = list(faults_of(every))
    report.add("faults_in_data", len(faults), note="; ".join(faults[:3]))
    cases = [case for case in every if case.split == ("train" if _MISSES in sys.argv else "test")]
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
    report.add("accuracy", right.total() / len(cases), n=len(cases), note="the intended ids, or a question if correct")
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
    """Time the cases with their items among many others of the same titles, in the tracker's own database."""
    samples = []
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "obra.db")
        store = WorkStore(database)
        tracker = StateManager(store=store, clock=lambda: _TIME)
        _fill(store, [item.title for case in cases for item in case.items])
        for case in cases:
            talk = Talk(mentions=_moved(case, store), lookup=tracker)
            started = time.process_time()
            resolve_line(case.line, talk)
            samples.append((time.process_time() - started) * 1_000)
        database.close()
    report.percentiles("resolve", samples, (50, 95), note=f"processor time of one line, {_MANY_ITEMS:,} items")


def _fill(store: WorkStore, titles: list[str]) -> None:
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


def _moved(case: Case, store: WorkStore) -> tuple[Effect, ...]:
    """Store a case's items; return the mentions with the new ids."""
    ids: dict[int, int] = {}
    with store.changing("case"):
        for item in sorted(case.items, key=lambda item: list(WorkKind).index(item.kind)):
            ids[item.id] = store.add(replace(item, id=0, parent=ids.get(item.parent or 0))).id
    return tuple(replace(mention, items=tuple(ids[each] for each in mention.items)) for mention in case.mentions)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != _MISSES]
    sys.exit(run("references", measure, TARGETS, arguments))
