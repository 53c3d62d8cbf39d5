"""What the documents show of work: sections of `project_state.md` and of `work_plan.md`. Pure.

Every list is bounded; what is left out is counted, with the command that lists it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestra_mem.core.documents.plan_lines import PlanLine, remark_row, render_line, shown_title
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A line of the plan with the machine's remarks below it."""

    line: PlanLine
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """An item that is told of, and what is told."""

    item: WorkItem
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkView:
    """What is known of work when the documents are written.

    `active`, `blocked` and `next` come in the order of the backlog, `done` oldest first. `backlog` is the tree of what
    is to be done, line by line, `future` what is deferred. `counts` are those of all items.
    """

    counts: Mapping[WorkKind, Mapping[WorkStatus, int]]
    active: Sequence[Mention] = ()
    done: Sequence[Mention] = ()
    blocked: Sequence[Mention] = ()
    next: Sequence[Mention] = ()
    backlog: Sequence[PlanRow] = field(default=())
    future: Sequence[PlanRow] = field(default=())

    def count(self, *statuses: WorkStatus) -> int:
        """How many items have one of these statuses."""
        return sum(by_status.get(status, 0) for by_status in self.counts.values() for status in statuses)


def mentions(told: Iterable[Mention]) -> str:
    """Items in a list, without a box."""
    return "".join(f"- {_name(each.item)}{f': {each.words}' if each.words else ''}\n" for each in told)


def _name(item: WorkItem) -> str:
    return f'{item.kind.capitalize()} #{item.id} "{shown_title(item.title)}"'


def more_active(view: WorkView) -> str:
    """How many items in progress are not shown."""
    return _more(view.count(WorkStatus.IN_PROGRESS) - len(view.active))


def more_blocked(view: WorkView) -> str:
    """How many items that are blocked or have failed are not shown."""
    shown = sum(1 for each in view.blocked if each.item.status in (WorkStatus.BLOCKED, WorkStatus.FAILED))
    return _more(view.count(WorkStatus.BLOCKED, WorkStatus.FAILED) - shown)


def statistics(view: WorkView) -> list[tuple[str, int]]:
    """The rows of the statistics."""
    totals = {kind: sum(view.counts.get(kind, {}).values()) for kind in WorkKind}
    return [
        *((f"Total {kind.plural.capitalize()}", count) for kind, count in totals.items() if count),
        ("Work Done", view.count(WorkStatus.DONE)),
        ("Work In Progress", view.count(WorkStatus.IN_PROGRESS)),
        ("Work Blocked", view.count(WorkStatus.BLOCKED)),
    ]


def backlog(view: WorkView, room: int) -> str:
    """The tree of what is to be done, in so many characters, and how much more there is."""
    shown = _fitting(view.backlog, room)
    left = view.count(WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED, WorkStatus.FAILED)
    is_open = sum(1 for row in shown if not (row.line.ticked or row.line.struck))
    return _rows(shown) + _more(left - is_open)


def future(view: WorkView, room: int) -> str:
    """What is deferred; see `backlog`."""
    shown = _fitting(view.future, room)
    return _rows(shown) + _more(view.count(WorkStatus.DEFERRED) - len(shown))


def _fitting(rows: Sequence[PlanRow], room: int) -> list[PlanRow]:
    shown: list[PlanRow] = []
    for row in rows:
        room -= len(_rows([row]))
        if room < 0 and shown:
            break
        shown.append(row)
    return shown


def _rows(rows: Iterable[PlanRow]) -> str:
    return "".join(
        f"{line}\n"
        for row in rows
        for line in [render_line(row.line), *(remark_row(text, row.line.indent + 2) for text in row.remarks)]
    )


def _more(count: int) -> str:
    return f"- … and {count:,} more: `orchestra-mem work`\n" if count > 0 else ""
