"""What a person says of work by editing `work_plan.md`: the difference of two texts of it. Pure text.

Each line is compared with itself by its number. What a line lacks says something only where it has brackets as the
machine writes them. A line that is gone was taken out only where its number stands nowhere else and its section is
still there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.documents.alignment import reordered
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.documents.owned_lines import difference
from orchestra_mem.core.documents.plan_lines import FUTURE, PlanLine, next_step, plan_lines, work_section
from orchestra_mem.work_types import WorkKind, WorkStatus

# A row that begins with a number, whatever marks stand before it: a line of work that was put where it is none, or
# written in a way that is not read.
_MARKS = r"[^\w#＃]{0,8}"
_ELSEWHERE = re.compile(
    rf"{_MARKS}(?:\d{{1,9}}[.)]{_MARKS})?(?:\[[^\]]?\])?(?:{_MARKS}<\w{{1,9}}>)?{_MARKS}[#＃](\d{{1,18}})(?![\w-])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdit:
    """What a person changed of an item; None for what stayed as it was. `was` is the line before.

    `waits_for` are the numbers that were added and those that were taken out.
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
    """Siblings in the order that a person gave them, and which of them moved; by place where they bear no number yet.

    A place in the document (from 0) stands for a new line as its negative, less one: -1 is the first row.
    """

    order: tuple[int, ...]
    moved: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEdits:
    """All that was said: lines changed, lines added (top down), items taken out, and new orders.

    `unread` are the items whose lines are gone while their numbers stand before something that is no line of work.
    """

    changed: tuple[LineEdit, ...] = ()
    added: tuple[PlanLine, ...] = ()
    removed: tuple[PlanLine, ...] = ()
    orders: tuple[Reordered, ...] = ()
    unread: tuple[int, ...] = ()


def key_of(line: PlanLine) -> int:
    """The line's number, or what stands for it in an order; see `Reordered`."""
    return line.number or -1 - line.place


def plan_edits(before: str, now: str, known: Callable[[int], PlanLine | None] = lambda number: None) -> PlanEdits:
    """Compare a plan as it was with what a person has made of it.

    Args:
        before: the text that the person's is a change of.
        now: the text that stands there.
        known: gives by its number the line, as the machine would write it, of an item that only `now` has.
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
    named = {_named(row) for row in rows} if gone else set()
    # A line that begins with a number in a way that is not read is none of a new item.
    added = [line for line in new_lines if not (line.number or line.struck)]
    numbered = {line.place: _named(rows[line.place]) for line in added}
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
    """The lines that bear a number, each with that and its section: where it stands says something."""
    return [(str(line.number), (line, line.section)) for line in lines if line.number]


def _with_renamed(edits: Sequence[LineEdit], before: str, now: str) -> Iterator[LineEdit]:
    """Take a new title in a next step for the item's, unless its line says another."""
    found = difference(_steps(before), _steps(now)).said
    renamed = {int(key): (was, title) for key, (was, title) in found.items() if was and title}
    for edit in edits:
        _, title = renamed.pop(edit.number, ("", None))
        yield edit if edit.title else replace(edit, title=title)
    lines = {line.number: line for line in plan_lines(before)}
    for number, (was, title) in renamed.items():
        line = lines.get(number, PlanLine(number=number, title=was))
        if line.title != title:
            yield LineEdit(number=number, was=line, title=title)


def _steps(text: str) -> list[tuple[str, str]]:
    """The titles by which the next steps of a plan call items, each with the item's number."""
    return [(str(step[0]), step[1]) for row in text.split("\n") if (step := next_step(row))[0]]


def _edit(was: PlanLine, line: PlanLine, standing: Container[int]) -> LineEdit:
    gained = tuple(number for number in line.waits_for if number not in was.waits_for)
    lost = tuple(number for number in was.waits_for if number not in line.waits_for) if line.told else ()
    # Under whom a line stands says something where it was put there, not where the line above was taken out.
    moved = line.parent not in (None, was.parent) and (not was.parent or was.parent in standing)
    return LineEdit(
        number=was.number,
        was=was,
        title=line.title if line.title and line.title != was.title else None,
        status=_status(was, line),
        priority=line.priority if line.priority is not None and line.priority != was.priority else None,
        assignee=line.assignee if line.assignee != was.assignee and (line.told or line.assignee) else None,
        parent=line.parent if moved and FUTURE not in (line.section, was.section) else None,
        waits_for=(gained, lost) if gained or lost else None,
        kind=line.kind if line.kind is not was.kind and was.kind else None,
    )


def _status(was: PlanLine, line: PlanLine) -> WorkStatus | None:
    """The status that a line now tells of, where it tells another than before."""
    if (line.ticked, line.struck) != (was.ticked, was.struck):
        # The words in the brackets are those of before.
        return WorkStatus.CANCELLED if line.struck else WorkStatus.DONE if line.ticked else WorkStatus.PENDING
    if line.section != was.section and FUTURE in (line.section, was.section):
        return WorkStatus.DEFERRED if line.section == FUTURE else WorkStatus.PENDING
    if line.status == was.status or (line.status is None and not line.told):
        return None
    return line.status or WorkStatus.PENDING


def _named(row: str) -> int:
    """The number that a row begins with; 0 where there is none."""
    found = _ELSEWHERE.match(row.lstrip())
    return int(found[1]) if found else 0


def _orders(old: Sequence[PlanLine], new: Sequence[PlanLine]) -> Iterator[Reordered]:
    """The siblings of which some have another place among the others than before, or are new among them."""
    place = {line.number: (line.section, line.parent, position) for position, line in enumerate(old) if line.number}
    groups: defaultdict[tuple[str, int | None, int], list[PlanLine]] = defaultdict(list)
    for line in new:
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
    """A line as it was left, with what a person changed of it."""
    changed = {
        name: getattr(person, name)
        for name in ("title", "assignee", "priority", "status", "waits_for")
        if (said := getattr(person, name)) != getattr(was, name) and (said or (person.told and name != "title"))
    }
    if (person.ticked, person.struck) != (was.ticked, was.struck):
        changed |= {"ticked": person.ticked, "struck": person.struck}
    if person.parent != was.parent:
        changed["indent"] = person.indent
    return replace(left, **changed, tail=person.tail or left.tail)


def with_item_numbers(text: str, number_of: Callable[[PlanLine], int]) -> str:
    """A plan in which new lines bear their numbers; all else stays byte for byte.

    Args:
        text: the plan.
        number_of: gives a line's number, 0 where it has none.
    """
    rows = text.split("\n")
    for line in plan_lines(text):
        if not line.number and (number := number_of(line)):
            at = rows[line.place].find("]") + 1
            at += len(rows[line.place][at:]) - len(rows[line.place][at:].lstrip())
            rows[line.place] = f"{rows[line.place][:at]}#{number} {rows[line.place][at:]}"
    return "\n".join(rows)
