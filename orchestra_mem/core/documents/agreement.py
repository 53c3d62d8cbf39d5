"""What becomes of an episodic document when machine and person have both changed it. Pure text, line by line.

The machine's lines bear an identity: the number of a fact (`K12`), of a work item (`#5`), the item that a next step
names, or what a count counts. Of each that both sides have, one row stands in all three texts before they are merged;
so `merge` only decides where it stands, and merges what people wrote between such lines.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.markdown import (
    PIN,
    Block,
    front_matter_fault,
    line_end,
    split_blocks,
    without_front_matter,
)
from orchestra_mem.core.documents.merge import Merged, merge
from orchestra_mem.core.documents.owned_lines import fact_in, with_free_rows
from orchestra_mem.core.documents.plan_edits import merged_line
from orchestra_mem.core.documents.plan_lines import (
    NEXT,
    PlanLine,
    has_work,
    next_step_number,
    plan_lines,
    render_line,
    work_sections,
)
from orchestra_mem.core.text import squeeze

# Lines that the machine writes anew each time, in its header and statistics: when, which session, how many. One that
# says something else there is a person's. By `updated` the machine knows its own texts again.
_COUNTER = re.compile(
    r"(?P<key>updated: (?=\S)|(?:\*\*(?:Last Updated|Session)\*\*|- \*\*[A-Z][A-Za-z ]+\*\*): "
    r"(?=(?:Never|[\d: -]+UTC|none|[\da-f]{8}(?:-[\da-f]{4,12}){4}|[\d,]+)$))"
)
_OLD_HEADING = re.compile(r"^## Backlog(?=[ \t]*\r?$)", re.MULTILINE)
# Stands in a section that has nothing else, so it comes and goes with the others' lines.
_NONE = re.compile(r"^- None[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Owned:
    """A row with an identity: where it stands, what is compared of it, and the comments behind it.

    `form` is equal for rows that are written alike, `words` for those that say the same.
    """

    place: int
    row: str
    form: object
    words: object
    tail: str = ""
    line: PlanLine | None = None


def merged(base: str | None, machine: str, person: str | None) -> Merged:
    """Merge the machine's new text into what stands in a document. What its ledgers have taken in stands there.

    Args:
        base: the machine's last text; None where it has never written the document.
        machine: its text now, made after what the person says of the machine's lines was taken in.
        person: what stands there; None where nothing does.
    """
    if person is None or not person.strip():
        return Merged(text=machine)
    if base is None:
        # A document that the machine has never written: it stays as it is, and ours follows.
        return Merged(text=f"{person.rstrip()}\n\n{without_front_matter(machine)}")
    if without_front_matter(person) == person:
        # Taken out, or damaged beyond knowing it: it stays so, and the machine's is no change to merge.
        base, machine = without_front_matter(base), without_front_matter(machine)
    if base != person:
        base, machine, person = _agreed(base, machine, person, ahead=False)
    rows = split_lines(machine)
    # The tracker knows the order of work, a person's too.
    work = {rows[place] for place in _work_keys(machine)} if has_work(machine) else ()
    if machine in (base, person) or base == person or not any("- None" in text for text in (base, machine, person)):
        return merge(base, machine, person, follow=work)
    titles = {block.title for text in (base, machine) for block in split_blocks(text) if block.level == 2}
    found = merge(*(_without_none(text, titles) for text in (base, machine, person)), follow=work)
    left_blank = {block.title for block in _empty(split_blocks(person))}
    return _with_none(found, (_saying_none(machine) | _saying_none(person)) - left_blank)


def brought_forward(opened: str, left: str, person: str, own: Container[int] = ()) -> str:
    """What a person did to a text that was `opened`, done to the file that the machine has `left` since.

    Where both wrote at one place, what has come since follows the person's lines: who never saw it has not taken it
    out. Each free line that the person saved stands; `own` are the facts in their own words, which count as such.
    """
    said = person
    if _has_faulty_front(left) and not _has_faulty_front(person):
        # Somebody has put back a text from before that was damaged, which mends it.
        left = _head(person) + left[len(_head(left)) :]
    base, left, person = _agreed(opened, left, person, ahead=True)
    return with_free_rows(merge(base, left, person, both=True).text, said, own)


def _has_faulty_front(text: str) -> bool:
    return front_matter_fault(text) is not None or without_front_matter(text).startswith("---")


def _head(text: str) -> str:
    """What stands above the first heading; empty where there is none."""
    blocks = split_blocks(text)
    first = next((position for position, block in enumerate(blocks) if block.level), 0)
    return "".join(block.text for block in blocks[:first])


def _agreed(base: str, machine: str, person: str, *, ahead: bool) -> tuple[str, str, str]:
    """The three texts with one row for each identity that machine and person both have.

    Of what the machine has no more, a row that the person has not touched goes; one that they changed is theirs. What
    the person took out comes back where the machine's ledger has it nevertheless, and stays away where the texts alone
    can tell, as they do where the person is `ahead` of the ledgers.
    """
    work = has_work(machine)
    if work:
        base, person = _with_heading(base), _with_heading(person)
    rows = [[row.removesuffix("\r") for row in text.split("\n")] for text in (base, machine, person)]
    alike = set(rows[0]).intersection(rows[1], rows[2])  # mostly nearly all: only at the others is looked closely
    old, new, own = (
        _owned(text, lines, alike, work=work) for text, lines in zip((base, machine, person), rows, strict=True)
    )
    in_base: dict[int, str | None] = {}
    in_machine: dict[int, str | None] = {}
    in_person: dict[int, str | None] = {}
    for key, copies in own.items():
        was, now = (each[key][0] if key in each else None for each in (old, new))
        mine = next((each for each in copies if was and each.form == was.form), copies[0])
        if now:
            row = in_machine[now.place] = in_person[mine.place] = _row(key, was, now, mine, ahead=ahead)
            if was:
                in_base[was.place] = row
        elif was:
            taken_back = mine.form == was.form or (key[0] == "#" and not ahead)
            in_base[was.place] = mine.row if taken_back else None
        elif key[0] == "@" and not ahead:
            in_person |= dict.fromkeys([copy.place for copy in copies])
    for key in old.keys() - own.keys():
        stays_away = key in new and (ahead or key[0] in "@=")
        in_base[old[key][0].place] = new[key][0].row if stays_away else None
    return _with_rows(base, in_base), _with_rows(machine, in_machine), _with_rows(person, in_person)


def _with_heading(text: str) -> str:
    """A plan from before there was work, or one that a person has brought back from then, with today's heading."""
    return text if has_work(text) else _OLD_HEADING.sub("## Prioritized Backlog", text, count=1)


def _row(key: str, was: _Owned | None, now: _Owned, mine: _Owned, *, ahead: bool) -> str:
    """The row that stands for an identity. The ledger has heard the person, unless they are `ahead` of it."""
    untouched = was is not None and mine.form == was.form
    if mine.form == now.form or (mine.words == now.words and not untouched):
        return mine.row
    if ahead and not untouched and key[0] != "=":
        if was and was.line and now.line and mine.line:
            return render_line(merged_line(was.line, now.line, mine.line))
        return mine.row
    return now.row.removesuffix(now.tail) + (mine.tail or now.tail)


def _owned(text: str, rows: Sequence[str], alike: Container[str], *, work: bool) -> dict[str, list[_Owned]]:
    """The rows of a text that have an identity, by that; of those that are `alike` in all texts the plan's alone."""
    found: defaultdict[str, list[_Owned]] = defaultdict(list)
    plan = {line.place: line for line in plan_lines(text)} if work else {}
    keys = _work_keys(text) if work else {}
    for place, row in enumerate(rows):
        if key := keys.get(place):
            line = plan.get(place)
            found[key].append(_Owned(place, row, line or row, line or row, line.tail if line else "", line))
        elif row in alike:
            continue
        elif fact := fact_in(row):
            tail = row[len(row.replace(PIN, "").rstrip()) :] if row.rstrip().endswith(PIN) else ""
            found[f"K{fact.number}"].append(_Owned(place, row, squeeze(row), fact, tail))
        elif count := _COUNTER.match(row):
            found[f"={count['key']}"].append(_Owned(place, row, row, row))
    return found


def _work_keys(text: str) -> dict[int, str]:
    """The identities of a plan's lines of work and next steps, by their places."""
    rows = text.split("\n")
    keys = {line.place: f"#{line.number}" for line in plan_lines(text) if line.number}
    for name, start, stop in work_sections(text):
        for place in range(start, stop) if name == NEXT else ():
            if number := next_step_number(rows[place].removesuffix("\r")):
                keys[place] = f"@{number}"
    return keys


def _with_rows(text: str, changed: Mapping[int, str | None]) -> str:
    """A text with other rows at some places, or without the row that stood there; line ends stay."""
    if not changed:
        return text
    rows: list[str] = []
    for place, row in enumerate(text.split("\n")):
        new = changed.get(place, row)
        if new is not None:
            rows.append(new if place not in changed else new + "\r" * row.endswith("\r"))
    return "\n".join(rows)


def _without_none(text: str, titles: Container[str]) -> str:
    """A text whose sections of these names do not say that they are empty."""
    return "".join(
        _NONE.sub("", block.text) if block.level == 2 and block.title in titles else block.text
        for block in split_blocks(text)
    )


def _saying_none(text: str) -> set[str]:
    return {block.title for block in split_blocks(text) if block.level == 2 and _NONE.search(block.text)}


def _empty(blocks: Sequence[Block]) -> list[Block]:
    """The sections without anything in them."""
    return [
        block
        for block, below in zip(blocks, [*blocks[1:], None], strict=True)
        if block.level == 2 and (below is None or below.level <= 2) and not block.text[len(block.heading) :].strip()
    ]


def _with_none(found: Merged, titles: Container[str]) -> Merged:
    """A merged text whose empty sections of these names say that they are empty."""
    blocks = split_blocks(found.text)
    empty = [block for block in _empty(blocks) if block.title in titles]
    end = line_end(found.text)
    text = "".join(_none_below(block, end) if block in empty else block.text for block in blocks)
    conflicts = tuple(
        replace(conflict, line=conflict.line + sum(block.line < conflict.line for block in empty))
        for conflict in found.conflicts
    )
    return Merged(text=text, conflicts=conflicts)


def _none_below(block: Block, end: str) -> str:
    """An empty section with its line below the heading and the blank line that follows that."""
    heading = block.heading if block.heading.endswith("\n") else f"{block.heading}{end}"
    blank, feed, rest = block.text[len(block.heading) :].partition("\n")
    return f"{heading}{blank}{feed}- None{end}{rest}"
