"""Render work items as lines of `work_plan.md`, and parse these lines after people have edited them. No I/O.

    - [ ] #5 User authentication (epic, high, 1 of 3 done)
      - [x] #10 Login form (story)
      - [ ] #11 Signup form (story, blocked by #10)
      - [ ] ~~#12 MFA~~ (story, cancelled)

The last brackets hold fields if all their words are known or one word is a kind; other words belong to the title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.markdown import Block, fenced_rows, item_end, legible, split_blocks
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus

NEXT, BACKLOG, FUTURE = "immediate next steps", "prioritized backlog", "future work"
# Sections in which a box is a work item, by title, with their names in this module.
_SECTIONS = {NEXT: NEXT, BACKLOG: BACKLOG, "backlog": BACKLOG, FUTURE: FUTURE}
NORMAL_PRIORITY = 3
_PRIORITIES = {1: "urgent", 2: "high", 4: "low", 5: "lowest"}
_PRIORITY_WORDS = {
    **{word: number for number, word in _PRIORITIES.items()},
    **{f"{start}{number}": number for start in ("p", "priority ") for number in range(1, 6)},
    "critical": 1, "highest": 1, "normal": 3, "medium": 3,
}  # fmt: skip
_KIND_WORDS = {kind.value: kind for kind in WorkKind} | {"sub-task": WorkKind.SUBTASK}
_STATUS_WORDS = {status.value: status for status in WorkStatus} | {
    "in-progress": WorkStatus.IN_PROGRESS,
    "started": WorkStatus.IN_PROGRESS,
    "canceled": WorkStatus.CANCELLED,
}
# Statuses that the box expresses, so the brackets do not repeat them.
_UNSPOKEN = frozenset({WorkStatus.PENDING, WorkStatus.DONE})
# Missing spaces before, in or after the box are accepted as typos.
_BULLET = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|(?=\[[ \txX✓✔]{0,3}\]))")
_BOX = re.compile(r"\[(?P<mark>[ \t]?[ \txX✓✔]?[ \t]?)\](?:[ \t]+|$|(?=[~*_]{0,5}#\d))")
_EMPHASIS = re.compile(r"(?P<marks>[*_]{1,3})(?P<said>#\d(?:(?!(?P=marks)).)*)(?P=marks)")
_NUMBER = re.compile(r"(?P<stars>\*{0,2})#(?P<number>\d{1,18})(?P=stars)(?![\w#-])[:.]?[ \t]*")
_BRACKETS = re.compile(r"(?:^|[ \t]+)\((?P<words>[^()]*)\)[ \t]*$")
_COMMENTS = re.compile(r"(?:[ \t]*<!--(?:(?!-->).)*-->)+[ \t]*$")
_FACT = re.compile(rf"\(K\d{{1,18}}\)(?:[ \t]*$|{_COMMENTS.pattern})")
_PROGRESS = re.compile(r"\d+ of \d+ done")
_WAITING = re.compile(
    r"(?:(?:blocked by|waits for|waiting for|depends on) )?#\d{1,18}(?:(?: and | & |[ \t]+)#\d{1,18})*"
)
_ASSIGNEE = re.compile(r"@[^(),@]*[^(),@\s]")
# A strike around the title; bullet, box, number and brackets may be outside of it.
_STRUCK = re.compile(
    rf"(?P<before>(?:{_BULLET.pattern})?(?:{_BOX.pattern})?(?:{_NUMBER.pattern})?)~~(?P<said>(?:(?!~~[^~]).)+)~~"
    r"(?P<behind>(?:[ \t]+\([^()]*\))?)"
)
_STRIKE, _SHOWN_STRIKE = re.compile("~(?=~)"), re.compile(r"~\\(?=~)")
_NAMED = "|".join(kind.capitalize() for kind in WorkKind)
_REMARK = re.compile(rf"[ \t]*<!-- (?:{_NAMED}) #(?P<number>\d{{1,18}}) .*-->[ \t]*")
_REFERENCE = re.compile(rf'(?:[-*+]|\d{{1,9}}[.)])[ \t]+(?:{_NAMED}) #(?P<number>\d{{1,18}}) ["“„]')
_MENTION = re.compile(rf'{_REFERENCE.pattern}(?P<title>.*)["“”](?:: (?P<words>[^"“”]*?))?[ \t\r]*')
_STEP = re.compile(r"(?:in progress|can be (?:started|finished))(?:, under #\d{1,18})?")
# Status of an item by the words that begin its mention; other words mean that the item is in progress.
_MENTIONED = {
    "can be ": WorkStatus.PENDING,
    "done ": WorkStatus.DONE,
    "blocked": WorkStatus.BLOCKED,
    "failed": WorkStatus.FAILED,
}
_WORK_HEADING = re.compile(r"^## Prioritized Backlog[ \t]*\r?$", re.MULTILINE)
_OLD_HEADING = re.compile(r"^## Backlog(?=[ \t]*\r?$)", re.MULTILINE)
_TAB = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """A work item as a line describes it.

    `number`: 0 if the line has none. `title`: Empty if the line has only a number. `names_kind`: Whether the brackets
    name a kind, as the machine's do; then a missing field means that the item lacks it. `status`: Status in the
    brackets, None if there is none. `parent`: Number of the item that the line is indented under, 0 at the top level;
    None if that item has no number (see `under`) or is no work item. `progress`: Count of finished items, as the
    machine wrote it.

    Comparisons ignore the fields below. `place`, `under`: Rows of this line and its parent, from 0; `under` is -1 for
    none. `rows`: Number of its rows, more than one if a formatter has wrapped it. `section`: Name of the section,
    "" for a person's own. `indent`: Width of the indentation in columns. `tail`: Comments at the end.
    """

    number: int
    title: str
    ticked: bool = False
    struck: bool = False
    names_kind: bool = True
    kind: WorkKind | None = None
    priority: int | None = None
    status: WorkStatus | None = None
    waits_for: tuple[int, ...] = ()
    assignee: str = ""
    progress: str = ""
    parent: int | None = 0
    place: int = field(default=-1, compare=False)
    under: int = field(default=-1, compare=False)
    rows: int = field(default=1, compare=False)
    section: str = field(default=BACKLOG, compare=False)
    indent: int = field(default=0, compare=False)
    tail: str = field(default="", compare=False)

    @property
    def says(self) -> WorkStatus | None:
        """Status that the line expresses, None if it may be any of several."""
        if self.struck:
            return WorkStatus.CANCELLED
        if self.ticked:
            return WorkStatus.DONE
        if self.status is None and self.section == FUTURE:
            return WorkStatus.DEFERRED
        return self.status or (WorkStatus.PENDING if self.names_kind and not self.waits_for else None)


def item_line(item: WorkItem, *, waits_for: tuple[int, ...] = (), progress: str = "", depth: int = 0) -> PlanLine:
    """Return the machine's line for an item. `waits_for`: Open items that it depends on."""
    spoken = None if item.status in _UNSPOKEN or (item.status is WorkStatus.BLOCKED and waits_for) else item.status
    assignee = squeeze(visible(item.assignee or ""))
    return PlanLine(
        number=item.id,
        title=shown_title(item.title),
        ticked=item.status is WorkStatus.DONE,
        struck=item.status is WorkStatus.CANCELLED,
        kind=item.kind,
        priority=item.priority,
        status=spoken,
        waits_for=waits_for,
        assignee=assignee if _ASSIGNEE.fullmatch(f"@{assignee}") else "",
        progress=progress,
        parent=(item.parent or 0) if depth else 0,
        section=FUTURE if item.status is WorkStatus.DEFERRED else BACKLOG,
        indent=2 * depth,
    )


def shown_title(title: str) -> str:
    """Escape a title for a line, so that it can neither begin nor end a comment or a strike."""
    return _STRIKE.sub("~\\\\", _uncommented(title))


def said_title(shown: str) -> str:
    """Return the title that `shown_title` has escaped."""
    return _SHOWN_STRIKE.sub("~", shown).replace("--\\>", "-->").replace("<\\!--", "<!--")


def _uncommented(text: str) -> str:
    return squeeze(visible(text)).replace("-->", "--\\>")


def render_line(line: PlanLine) -> str:
    """Render a line as the machine writes it, without a line end."""
    said = f"#{line.number} {line.title}" if line.number else line.title
    said = f"~~{said}~~" if line.struck else said
    words = ", ".join(_words(line))
    return f"{' ' * line.indent}- [{'x' if line.ticked else ' '}] {said}{f' ({words})' if words else ''}{line.tail}"


def _words(line: PlanLine) -> Iterator[str]:
    if line.kind:
        yield line.kind.value
    if line.priority and line.priority in _PRIORITIES:
        yield _PRIORITIES[line.priority]
    if line.status:
        yield line.status.value
    if line.waits_for:
        yield "blocked by " + " and ".join(f"#{number}" for number in line.waits_for)
    if line.assignee:
        yield f"@{line.assignee}"
    if line.progress:
        yield line.progress


def remark_row(text: str, indent: int) -> str:
    """Render a remark of the machine's to put below an item's line; `text` begins with the item's name."""
    return f"{' ' * indent}<!-- {_uncommented(text)} -->"


def remark_number(row: str) -> int:
    """Return the number of the item that a remark of the machine's is about; 0 if the row is no remark."""
    found = _REMARK.fullmatch(row.removesuffix("\r")) if "<!-- " in row else None
    return int(found["number"]) if found else 0


def is_reference(row: str) -> bool:
    """Check whether a row is a list item of the machine's that names a work item, other than the item's own line."""
    return _REFERENCE.match(row) is not None


def is_mention(row: str) -> bool:
    """Check whether a row names a work item as the machine does, without a person's additions."""
    found = _MENTION.fullmatch(row)
    words = (found["words"] or "") if found else ""
    return bool(found) and (not words.startswith(("in progress", "can be ")) or bool(_STEP.fullmatch(words)))


def reference_now(row: str, status_of: Callable[[int], WorkStatus | None]) -> str | None:
    """Update a row that names a work item; return None if the row describes a status that the item no longer has.

    Args:
        row: Any row; rows that name no item are returned unchanged.
        status_of: Returns an item's status by its number, None if there is no such item.
    """
    found = _MENTION.fullmatch(row)
    if found is None:
        return row
    words, status = found["words"] or "", status_of(int(found["number"]))
    if words.startswith("can be started") and status is WorkStatus.IN_PROGRESS:
        return row.replace(": can be started", ": in progress", 1)
    told = next((each for start, each in _MENTIONED.items() if words.startswith(start)), WorkStatus.IN_PROGRESS)
    return row if status is told else None


def next_step(row: str) -> tuple[int, str]:
    """Return the item number and title of a row that has the form of the machine's next steps; else 0 and ""."""
    found = _MENTION.fullmatch(legible(row))
    is_step = found and _STEP.fullmatch(found["words"] or "")
    return (int(found["number"]), squeeze(found["title"])) if found and is_step else (0, "")


def has_work(text: str) -> bool:
    """Check whether a work plan shows work items. If not, a line with a box is a fact like any other list item."""
    # Substring search first: the pattern would be tried at each line of every document.
    return "## Prioritized Backlog" in text and _WORK_HEADING.search(text) is not None


def with_work_heading(text: str) -> str:
    """Rename the heading `## Backlog` of a plan without work items: a person may have restored such an old plan."""
    return text if has_work(text) else _OLD_HEADING.sub("## Prioritized Backlog", text, count=1)


def work_section(block: Block) -> str:
    """Return the name of a section in which boxes are work items, if the block begins such a section; else ""."""
    return _SECTIONS.get(block.title.strip().lower(), "") if block.level == 2 else ""


# Reading and writing a plan parses the same few texts many times.
@lru_cache(maxsize=8)
def plan_lines(text: str) -> tuple[PlanLine, ...]:
    """Return the lines of a plan that are work items, in order, without facts and boxes without a number below them.

    In a section of a person's own, only a line that is as the machine writes it, and stands nowhere else, is an item.
    """
    found: list[PlanLine] = []
    name, work = "", has_work(text)
    above: list[tuple[int, PlanLine | None, bool]] = []
    for block in split_blocks(text):
        if block.front or block.level in (1, 2):
            name = work_section(block)
            above = []
        rows = split_lines(block.text) if name or (work and not block.front) else []
        fenced = fenced_rows(block.text) if rows else ()
        for at, row in enumerate(rows):
            bare, end = row.lstrip(" \t"), at + 1
            indent = len(row[: len(row) - len(bare)].expandtabs(_TAB))
            if not (_BULLET.match(bare) or parse_row(bare)):
                continue
            if at in fenced and not ((known := parse_row(bare)) and known.number):
                continue  # code; but a fence that is open by mistake hides no item that is known
            if (stop := item_end(rows, at, _is_whole)) > end and _is_whole(said := squeeze(" ".join(rows[at:stop]))):
                bare, end = said, stop  # a wrapped line of the machine's; the rows below another line are notes
            line = parse_row(bare)
            if line and not (name or (line.number and line.names_kind)):
                line = None
            while above and above[-1][0] + 1 >= indent:
                above.pop()
            over, in_fact = above[-1][1:] if above else (None, False)
            in_fact = (in_fact or bool(_FACT.search(bare))) and not (line and line.number)
            if line is not None and not in_fact:
                under, parent = (over.place, over.number or None) if over else (-1, None if indent >= 2 else 0)
                place = block.rows[at]
                line = replace(
                    line, parent=parent, place=place, under=under, rows=end - at, section=name, indent=indent
                )
                found.append(line)
            above.append((indent, line, in_fact))
    listed = {line.number for line in found if line.section}
    return tuple(line for line in found if line.section or line.number not in listed)


def _is_whole(item: str) -> bool:
    """Check whether an item ends with a mark of the machine's: a fact's number, or brackets that name a kind."""
    row = item.lstrip(" \t")
    line = parse_row(row)
    return bool(line.names_kind if line else _FACT.search(row))


@lru_cache(maxsize=1_024)
def parse_row(row: str) -> PlanLine | None:
    """Parse an unindented row with a box, or a numbered row that is struck out, as a work item; else return None."""
    if row[:1] not in "-*+~0123456789" or not row:
        return None
    row = legible(row.replace("\xa0", " "))
    tail = _COMMENTS.search(row)
    said = (row[: tail.start()] if tail else row).strip()
    struck = _STRUCK.fullmatch(said)
    if _FACT.search(said):
        return None
    if struck:
        said = f"{struck['before']} {struck['said']}{struck['behind']}".strip()
    bullet = _BULLET.match(said)
    if bullet is None:
        return None
    box = _BOX.match(said, bullet.end())
    said, brackets = _without_brackets(_plain(said[box.end() if box else bullet.end() :].strip()))
    said = _plain(said)
    number = _NUMBER.match(said)
    title = squeeze(said[number.end() :] if number else said)
    if not (title or number) or not (box or (number and struck)):
        return None
    return PlanLine(
        number=int(number["number"]) if number else 0,
        title=title,
        ticked=bool(box and box["mark"].strip()),
        struck=bool(struck),
        tail=tail.group().rstrip() if tail else "",
        **brackets,  # type: ignore[arg-type]
    )


def _plain(text: str) -> str:
    """Remove emphasis that surrounds an entire text, if the text begins with a number."""
    found = _EMPHASIS.fullmatch(text)
    return found["said"] if found else text


def _without_brackets(text: str) -> tuple[str, dict[str, object]]:
    """Split a line into its text and the fields in the brackets at its end."""
    nothing: dict[str, object] = {"names_kind": False}
    found = _BRACKETS.search(text)
    if found is None:
        return text, nothing
    words = [word for each in found["words"].split(",") if (word := squeeze(each))]
    known: dict[str, object] = dict(nothing)
    unknown = [word for word in words if not _take(word, known)]
    if not words or (unknown and not known["names_kind"]):
        return text, nothing
    rest = text[: found.start()]
    return (f"{rest} ({', '.join(unknown)})" if unknown else rest), known


def _take(said: str, known: dict[str, object]) -> bool:
    """Add a word of the brackets to `known`, and return whether it was recognised."""
    word = said.casefold()
    if word in _KIND_WORDS:
        known |= {"kind": _KIND_WORDS[word], "names_kind": True}
        known.setdefault("priority", NORMAL_PRIORITY)
    elif word in _PRIORITY_WORDS:
        known["priority"] = _PRIORITY_WORDS[word]
    elif word in _STATUS_WORDS:
        known["status"] = _STATUS_WORDS[word]
    elif _WAITING.fullmatch(word):
        before = known.get("waits_for", ())
        assert isinstance(before, tuple)
        known["waits_for"] = (*before, *map(int, re.findall(r"\d+", word)))
    elif _ASSIGNEE.fullmatch(said):
        known["assignee"] = said[1:]
    elif _PROGRESS.fullmatch(word):
        known["progress"] = word
    else:
        return False
    return True
