"""Find the changes of work items in a person's edit of `work_plan.md`, by comparing two texts of it. No I/O.

Lines are matched by number. A missing field is a change only if the brackets of the line name a kind, as the machine's
do. A missing line is a removal only if its number is nowhere else in the plan and its section still exists.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.documents.alignment import reordered
from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.markdown import as_typed, is_plainer, split_blocks
from orchestra_mem.core.documents.owned_lines import difference
from orchestra_mem.core.documents.plan_lines import FUTURE, PlanLine, next_step, plan_lines, work_section
from orchestra_mem.work_types import WorkKind, WorkStatus

# A row that begins with a number after any marks: a line of work in the wrong place, or in a form that is not parsed.
_MARKS = r"[^\w#＃]{0,8}"
_ELSEWHERE = re.compile(
    rf"{_MARKS}(?:\d{{1,9}}[.)]{_MARKS})?(?:\[[^\]]?\])?(?:{_MARKS}<\w{{1,9}}>)?{_MARKS}[#＃](\d{{1,18}})(?![\w-])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdit:
    """A person's changes of a work item; None for unchanged fields.

    `was`: The line before. `waits_for`: Numbers that were added, and numbers that were removed.
    """

    number: int
    was: PlanLine
    title: str | None = None
    status: WorkStatus | None = None
    priority: int | None = None
    assignee: str | None = None
    parent: int | None = None
    waits_for: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    kind: WorkKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reordered:
    """Siblings in the order that a person gave them, and the siblings that the person moved, by number.

    A new line without a number is identified by `-1 - place`, so -1 is the first row of the document.
    """

    order: tuple[int, ...]
    moved: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEdits:
    """All edits of a plan: changed lines, added lines, removed lines, and new orders of siblings.

    `added`: Top down, first those that bring a number along.
    `unread`: Items whose lines are gone, but whose numbers begin a row that is not parsed as a line of work.
    """

    changed: tuple[LineEdit, ...] = ()
    added: tuple[PlanLine, ...] = ()
    removed: tuple[PlanLine, ...] = ()
    orders: tuple[Reordered, ...] = ()
    unread: tuple[int, ...] = ()


def key_of(line: PlanLine) -> int:
    """Return the line's number, or the negative id of a new line; see `Reordered`."""
    return line.number or -1 - line.place


def plan_edits(before: str, now: str, known: Callable[[int], PlanLine | None] = lambda number: None) -> PlanEdits:
    """Compare a plan with a person's edit of it.

    Args:
        before: Text that the person edited.
        now: Text after the edit.
        known: Callback that returns the machine's line for an item number that only `now` has; None if it is unknown.
            The line is then a new one, and brings its number along: an older database has been put back.
    """
    old_lines, new_lines = plan_lines(before), plan_lines(now)
    found = difference(_numbered(old_lines), _numbered(new_lines))
    standing = {line.number for line in new_lines}
    edits = [
        _edit(was, line, standing)
        for key, (old, (line, _)) in found.said.items()
        if (was := old[0] if old else known(int(key)))
    ]
    edits = [edit for edit in edits if edit != LineEdit(number=edit.number, was=edit.was)]
    gone = {line.number: line for line, _ in found.gone.values()}
    rows, stood = now.split("\n"), {*before.split("\n")}
    named = {_named(row) for row in without_conflicts(now).split("\n")} if gone else set()
    # A line that begins with a number in a form that is not parsed is not a new item.
    brought = {line.place for key, (old, (line, _)) in found.said.items() if not old and known(int(key)) is None}
    added = [line for line in new_lines if line.place in brought or not (line.number or line.struck)]
    added.sort(key=lambda line: line.place not in brought)  # or another line might get a number that is brought along
    numbered = {line.place: _named(rows[line.place]) for line in added if not line.number}
    no_new = {place for place, number in numbered.items() if number in gone or (number and rows[place] in stood)}
    sections = {work_section(block) for block in split_blocks(now)}
    return PlanEdits(
        changed=tuple(_with_renamed(edits, before, now)),
        added=tuple(line for line in added if line.place not in no_new),
        removed=tuple(line for number, line in gone.items() if number not in named and line.section in sections),
        orders=tuple(_orders(old_lines, new_lines)),
        unread=tuple(named.intersection(gone)),
    )


def _numbered(lines: Sequence[PlanLine]) -> list[tuple[str, tuple[PlanLine, str]]]:
    """Return the numbered lines by number, each with its section, because a move to another section is a change."""
    return [(str(line.number), (line, line.section)) for line in lines if line.number]


def _with_renamed(edits: Sequence[LineEdit], before: str, now: str) -> Iterator[LineEdit]:
    """Add the titles that a person changed in next steps, unless the item's own line has a new title."""
    found = difference(_steps(before), _steps(now)).said
    renamed = {int(key): (was, title) for key, (was, title) in found.items() if was and _is_new(title, was)}
    for edit in edits:
        _, title = renamed.pop(edit.number, ("", None))
        yield edit if edit.title else replace(edit, title=title)
    lines = {line.number: line for line in plan_lines(before)}
    for number, (was, title) in renamed.items():
        line = lines.get(number, PlanLine(number=number, title=was))
        if _is_new(title, line.title):
            yield LineEdit(number=number, was=line, title=title)


def _is_new(title: str, was: str) -> bool:
    return bool(title) and (as_typed(title) != as_typed(was) or is_plainer(title, was))


def _steps(text: str) -> list[tuple[str, str]]:
    """Return the item number and title of each next step in a plan."""
    return [(str(step[0]), step[1]) for row in text.split("\n") if (step := next_step(row))[0]]


def _edit(was: PlanLine, line: PlanLine, standing: Container[int]) -> LineEdit:
    gained = tuple(number for number in line.waits_for if number not in was.waits_for)
    lost = tuple(number for number in was.waits_for if number not in line.waits_for) if line.names_kind else ()
    # A new parent counts if the line was moved there, not if the line of the old parent was removed.
    moved = line.parent not in (None, was.parent) and (not was.parent or was.parent in standing)
    return LineEdit(
        number=was.number,
        was=was,
        title=line.title if _is_new(line.title, was.title) else None,
        status=_status(was, line),
        priority=line.priority if line.priority is not None and line.priority != was.priority else None,
        assignee=line.assignee if line.assignee != was.assignee and (line.names_kind or line.assignee) else None,
        parent=line.parent if moved and {"", FUTURE}.isdisjoint((line.section, was.section)) else None,
        waits_for=(gained, lost) if gained or lost else None,
        kind=line.kind if line.kind is not was.kind and was.kind else None,
    )


def _status(was: PlanLine, line: PlanLine) -> WorkStatus | None:
    """Return the status that a line expresses, None if it is the same as before."""
    if (line.ticked, line.struck) != (was.ticked, was.struck):
        # The status in the brackets is outdated: only the box or the strike was edited.
        return WorkStatus.CANCELLED if line.struck else WorkStatus.DONE if line.ticked else WorkStatus.PENDING
    if line.section and line.section != was.section and FUTURE in (line.section, was.section):
        return WorkStatus.DEFERRED if line.section == FUTURE else WorkStatus.PENDING
    if line.status == was.status or (line.status is None and not line.names_kind):
        return None
    return line.status or WorkStatus.PENDING


def _named(row: str) -> int:
    """Return the number that a row begins with, 0 if there is none."""
    found = _ELSEWHERE.match(row.lstrip())
    return int(found[1]) if found else 0


def _orders(old: Sequence[PlanLine], new: Sequence[PlanLine]) -> Iterator[Reordered]:
    """Yield groups of siblings in which some changed their order, or new ones were added before the last place."""
    place = {line.number: (line.section, line.parent, position) for position, line in enumerate(old) if line.number}
    groups: defaultdict[tuple[str, int | None, int], list[PlanLine]] = defaultdict(list)
    for line in filter(lambda line: line.section, new):  # in their own sections, people order lines for themselves
        groups[line.section, line.parent, line.under if line.parent is None else -1].append(line)
    for (section, parent, _), lines in groups.items():
        order = list(dict.fromkeys(key_of(line) for line in lines))
        stayed = [key for key in order if place.get(key, ("", None, 0))[:2] == (section, parent)]
        turned = reordered([float(place[key][2]) for key in stayed])
        moved = {key for position, key in enumerate(stayed) if position in turned}
        moved |= {key for key in order if key not in stayed and key != order[-1]}
        if moved:
            yield Reordered(order=tuple(order), moved=frozenset(moved))


def merged_line(was: PlanLine, left: PlanLine, person: PlanLine) -> PlanLine:
    """Apply a person's changes of a line to the machine's current line, `left`."""
    changed = {
        name: getattr(person, name)
        for name in ("title", "assignee", "priority", "status", "waits_for")
        if (said := getattr(person, name)) != getattr(was, name) and (said or (person.names_kind and name != "title"))
    }
    if (person.ticked, person.struck) != (was.ticked, was.struck):
        changed |= {"ticked": person.ticked, "struck": person.struck}
    if person.parent != was.parent:
        changed["indent"] = person.indent
    return replace(left, **changed, tail=person.tail or left.tail)


def with_item_numbers(text: str, number_of: Callable[[PlanLine], int]) -> str:
    """Insert the numbers of items into new lines of a plan; all else stays byte for byte.

    Args:
        text: The plan.
        number_of: Returns a line's number, 0 if it has none.
    """
    rows = text.split("\n")
    for line in plan_lines(text):
        if not line.number and (number := number_of(line)):
            at = rows[line.place].find("]") + 1
            at += len(rows[line.place][at:]) - len(rows[line.place][at:].lstrip())
            rows[line.place] = f"{rows[line.place][:at]}#{number} {rows[line.place][at:]}"
    return "\n".join(rows)
