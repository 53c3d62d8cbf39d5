"""Two texts of `work_plan.md` brought together: the lines of work are the tracker's, all else is for the merge.

What a person says of work by editing a line is in the tracker before the machine writes the plan anew. So the machine's
lines of work stand, in its order; what people have written between them stays below the line that it followed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.documents.markdown import line_end
from orchestra_mem.core.work.plan_lines import (
    NEXT,
    PlanLine,
    has_work,
    is_next_step,
    plan_lines,
    remark_number,
    render_line,
    work_sections,
)

_OLD_HEADING = re.compile(r"^## Backlog(?=[ \t]*\r?$)", re.MULTILINE)
# The machine's own list items below the lines of work.
_FACT = re.compile(r"- (?:… and [\d,]+ more: |.*\(K\d+\)[ \t\r]*$)")


@dataclass(frozen=True, slots=True)
class _Owned:
    """A row of the machine's: an item's line with the remarks below it."""

    line: PlanLine
    row: str
    remarks: tuple[str, ...]


def relaid(base: str, machine: str, person: str) -> tuple[str, str]:
    """Base and person's text with the machine's lines of work in the machine's order, for merging with its text.

    A line that says the same stays as the person has written it. What stands between the lines stays in its text.
    """
    if base == person or not has_work(machine):
        return base, person
    base, person = _with_heading(base), _with_heading(person)
    owned = _owned(machine)
    steps, taken_out = _next_steps(machine), {*_next_steps(base)} - {*_next_steps(person)}
    left = [step for step in steps if step not in taken_out]
    return _with_steps(_laid_out(base, owned), steps), _with_steps(_laid_out(person, owned), left)


def _with_heading(text: str) -> str:
    """A plan from before there was work, or one that a person has brought back from then, with today's heading."""
    return text if has_work(text) else _OLD_HEADING.sub("## Prioritized Backlog", text, count=1)


def _next_steps(text: str) -> list[str]:
    return [row.removesuffix("\r") for row in text.split("\n") if is_next_step(row)]


def _with_steps(text: str, steps: Sequence[str]) -> str:
    """A plan with these next steps where its first one stands, or else at the top of their section."""
    rows = text.split("\n")
    cr = "\r" if line_end(text) == "\r\n" else ""
    places = [place for place, row in enumerate(rows) if is_next_step(row)]
    top = next((start + 1 for name, start, _ in work_sections(text) if name == NEXT), None)
    first = places[0] if places else top
    if first is None:
        return text
    while not places and first < len(rows) and not rows[first].strip():
        first += 1
    for place in reversed(places):
        del rows[place]
    new = [f"{step}{cr}" for step in steps]
    rows[first:first] = [*new, cr] if new and rows[first : first + 1] and rows[first].startswith("#") else new
    return "\n".join(rows)


def _owned(text: str) -> dict[str, dict[int, _Owned]]:
    """The machine's lines of work by section and number."""
    rows = [row.removesuffix("\r") for row in text.split("\n")]
    found: defaultdict[str, dict[int, _Owned]] = defaultdict(dict)
    for line in plan_lines(text):
        if line.number:
            stop = line.place + 1
            while stop < len(rows) and remark_number(rows[stop]) == line.number:
                stop += 1
            found[line.section].setdefault(
                line.number, _Owned(line, rows[line.place], tuple(rows[line.place + 1 : stop]))
            )
    return found


@dataclass(slots=True)
class _Part:
    """A section's own rows: those before the first line of work, those below each, and those behind the last."""

    name: str
    start: int
    stop: int
    head: list[str]
    notes: list[tuple[int, list[str]]]
    rest: list[str]


def _laid_out(text: str, owned: Mapping[str, Mapping[int, _Owned]]) -> str:
    rows = text.split("\n")
    lines = {line.place: line for line in plan_lines(text) if line.number}
    mine: dict[int, PlanLine] = {}
    for line in lines.values():
        mine.setdefault(line.number, line)
    parts = [_part(rows, lines, *section) for section in work_sections(text)]
    waiting = {name: owned.get(name, {}) for name in {part.name for part in parts}}
    notes = _handed_on(parts, {number for each in waiting.values() for number in each})
    cr = "\r" if line_end(text) == "\r\n" else ""
    result: list[str] = []
    done = 0
    for part in parts:
        result += [*rows[done : part.start], *part.head]
        for number, each in waiting.pop(part.name, {}).items():
            result += [_row(each, mine.get(number), rows, cr), *(f"{remark}{cr}" for remark in each.remarks)]
            result += notes.get(number, [])
        result += part.rest
        done = part.stop
    return "\n".join([*result, *rows[done:]])


def _part(rows: list[str], lines: Mapping[int, PlanLine], name: str, start: int, stop: int) -> _Part:
    """A section; what is indented right below its last line of work belongs to that, what follows does not."""
    start += 1
    last = max((place for place in range(start, stop) if place in lines), default=-1)
    end = start if last < 0 else last + 1
    while end < stop and (rows[end][:1] in (" ", "\t") and rows[end].strip() if last >= 0 else not rows[end].strip()):
        end += 1
    part = _Part(name, start, stop, [], [], [])
    below = part.head
    for place in range(start, end):
        if place in lines:
            below = []
            part.notes.append((lines[place].number, below))
        elif not remark_number(rows[place]):
            (part.rest if _FACT.match(rows[place]) else below).append(rows[place])
    part.rest += rows[end:stop]
    return part


def _handed_on(parts: Sequence[_Part], there: Container[int]) -> dict[int, list[str]]:
    """What stands below each line that is there; what stood below others follows the line before them."""
    notes: dict[int, list[str]] = {}
    for part in parts:
        below = part.head
        for number, kept in part.notes:
            if number in there:
                below = notes.setdefault(number, [])
            below += kept
    return notes


def _row(each: _Owned, mine: PlanLine | None, rows: list[str], cr: str) -> str:
    if mine is None:
        return f"{each.row}{cr}"
    return rows[mine.place] if mine == each.line else f"{each.row}{mine.tail}{cr}"


def carried(opened: str, left: str, person: str) -> tuple[str, str]:
    """A text that was opened, and what a person made of it, with what has come since of the lines of work.

    Each line is merged by what it says: what the person changed of it is the person's, the rest is as it was `left`.
    """
    if not has_work(left):
        return opened, person
    opened, person = _with_heading(opened), _with_heading(person)
    before, now = _numbered(opened), _numbered(left)
    rows = left.split("\n")

    def current(line: PlanLine, row: str) -> str:
        was, is_now = before.get(line.number), now.get(line.number)
        if was is None or is_now is None:
            return row
        if line == was:
            return rows[is_now.place].removesuffix("\r") + row[len(row.removesuffix("\r")) :]
        return render_line(_merged(was, is_now, line)) + row[len(row.removesuffix("\r")) :]

    return _with_rows(opened, current), _with_rows(person, current)


def _numbered(text: str) -> dict[int, PlanLine]:
    found: dict[int, PlanLine] = {}
    for line in plan_lines(text):
        if line.number:
            found.setdefault(line.number, line)
    return found


def _merged(was: PlanLine, left: PlanLine, person: PlanLine) -> PlanLine:
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


def _with_rows(text: str, row_of: Callable[[PlanLine, str], str]) -> str:
    rows = text.split("\n")
    for line in plan_lines(text):
        if line.number:
            rows[line.place] = row_of(line, rows[line.place])
    return "\n".join(rows)


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
