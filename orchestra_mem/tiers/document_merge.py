"""What becomes of an episodic document when machine and person have both changed it. Pure text, line by line.

Beside `core.documents.merge`, which knows nothing of what lines say, this knows the lines that are nobody's: times,
counts, and the line that says that a section is empty.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from functools import lru_cache

from orchestra_mem.core.documents.alignment import Section, count_said, matched_sections, sections, split_lines
from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.markdown import (
    Block,
    front_matter_fault,
    line_end,
    split_blocks,
    without_front_matter,
)
from orchestra_mem.core.documents.merge import Merged, merge
from orchestra_mem.core.documents.owned_lines import number_of, with_free_rows, with_numbers
from orchestra_mem.core.summaries.kept import squeeze
from orchestra_mem.core.work.plan_layout import carried, relaid
from orchestra_mem.types import DocumentName, MustKeep

# Lines that the machine writes anew each time, in its header and statistics: when, which session, how many. One that
# says something else there is a person's.
_COUNTER = re.compile(
    r"^(?P<key>\*\*(?:Last Updated|Session)\*\*: |- \*\*[A-Z][A-Za-z ]+\*\*: )"
    r"(?:Never|[\d: -]+UTC|none|[\da-f]{8}(?:-[\da-f]{4,12}){4}|[\d,]+)(?=\r?$)",
    re.MULTILINE,
)
# Nothing but the machine's: by this it knows its own texts again.
_UPDATED = re.compile(r"^(?P<key>updated: )[^\r\n]*", re.MULTILINE)
_STATISTICS = "Statistics"
# Stands in a section that has nothing else, so it comes and goes with the others' lines: merged as a line of its own it
# would stay beside what one side has put there, or be the line that both have changed.
_NONE = re.compile(r"^- None[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_HEADING = re.compile(r"[^\n]*(?P<end>\n|\Z)(?:[ \t]*\r?\n)?")


def merged(base: str | None, machine: str, person: str | None) -> Merged:
    """Merge the machine's new text into what stands in a document.

    Args:
        base: the machine's last text; None where it has never written the document.
        machine: its text now.
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
    base, person = relaid(base, machine, person)
    base, person = _with_counters(base, machine, person)
    base, machine = _agreed(base, machine, person)
    if machine in (base, person) or base == person or not any("- None" in text for text in (base, machine, person)):
        return merge(base, machine, person)
    texts = [split_blocks(text) for text in (base, machine, person)]
    ours = {block.title for blocks in texts[:2] for block in blocks if block.level == 2}
    found = merge(*(_without_none(blocks, ours) for blocks in texts))
    text = _with_none(split_blocks(found.text), machine=texts[1], person=texts[2])
    conflicts = tuple(replace(conflict, line=_line_in(text, found.text, conflict.line)) for conflict in found.conflicts)
    return Merged(text=text, conflicts=conflicts)


def _line_in(text: str, before: str, line: int) -> int:
    """Where a line (from 1) of the text `before` stands in one that has some lines more."""
    lines = iter(enumerate(text.split("\n"), 1))
    place = 0
    for wanted in before.split("\n")[:line]:
        place = next((number for number, said in lines if said == wanted), line)
    return place


def brought_forward(name: DocumentName, opened: str, left: str, person: str, own: Sequence[MustKeep]) -> str:
    """What a person did to a text that was `opened`, done to the file that the machine has `left` since.

    A line of theirs that has got its number since (see `own`) is the same line. Where both wrote at one place, what
    has come since follows the person's lines: who never saw it has not taken it out.
    """
    base, said = (with_numbers(name, text, own) for text in (without_conflicts(opened), person))
    left = without_conflicts(left)
    if _has_faulty_front(left) and not _has_faulty_front(said):
        # Somebody has put back a text from before that was damaged, which mends it.
        left = _head(said) + left[len(_head(left)) :]
    if name is DocumentName.WORK_PLAN:
        base, said = carried(base, left, said)
    base, left = _without_said(base, left, said)
    found = merge(base, left, said)
    lines, cr = found.text.split("\n"), line_end(found.text).removesuffix("\n")
    there = {number for line in split_lines(base) if (number := number_of(line))} if found.conflicts else set()
    for conflict in sorted(found.conflicts, key=lambda conflict: conflict.line, reverse=True):
        place = conflict.line - 1 + len(split_lines(conflict.person))
        came = count_said(split_lines(conflict.machine)) - count_said(split_lines(conflict.base))
        lines[place:place] = [f"{line}{cr}" for line in came if number_of(line) not in there]
    return with_free_rows("\n".join(lines), said, {fact.id for fact in own})


def _without_said(base: str, left: str, said: str) -> tuple[str, str]:
    """Two texts of the machine without the facts that a person took out, wherever the later one shows them.

    So too those that were reworded and that the later one shows in other words than the first, as where a decision has
    grown old and is listed in brief: what the person says of them stands in its place.
    """
    was, now, own = (_rows(text) for text in (base, left, said))
    decided = {
        number for number, rows in was.items()
        if number in now and (number not in own or (own[number] != rows and now[number] != rows))
    }  # fmt: skip
    if not decided:
        return base, left
    first, later = (
        "\n".join(line for line in text.split("\n") if number_of(line) not in decided) for text in (base, left)
    )
    return first, later


def _rows(text: str) -> dict[int, list[str]]:
    """The lines of facts by their numbers."""
    rows: defaultdict[int, list[str]] = defaultdict(list)
    for line in text.split("\n"):
        if number := number_of(line):
            rows[number].append(line)
    return rows


def _has_faulty_front(text: str) -> bool:
    return front_matter_fault(text) is not None or without_front_matter(text).startswith("---")


def _head(text: str) -> str:
    """What stands above the first heading; empty where there is none."""
    blocks = split_blocks(text)
    first = next((position for position, block in enumerate(blocks) if block.level), 0)
    return "".join(block.text for block in blocks[:first])


def _agreed(base: str, machine: str, person: str) -> tuple[str, str]:
    """Base and machine's text, as far as their lines of facts are the person's already.

    What a person says of a fact is in the ledger before the machine writes. So a fact that the machine lists stands,
    whether the person's text has it or not, and one that both have in the same words is in the person's.
    """
    old, new, own = (text.split("\n") for text in (base, machine, person))
    in_all = set(old).intersection(new, own)  # mostly nearly all: only of the others the numbers are looked at
    theirs = {number: line for line in own if line not in in_all and (number := number_of(line))}
    ours = {number: line for line in new if line not in in_all and (number := number_of(line))}
    same = {number for number, line in ours.items() if squeeze(theirs.get(number, "")) == squeeze(line)}

    def lines(texts: Sequence[str], gone: bool) -> str:
        found: list[str] = []
        for line in texts:
            number = 0 if line in in_all else number_of(line)
            if number in same:
                found.append(theirs[number])
            elif not (gone and number and number not in theirs):
                found.append(line)
        return "\n".join(found)

    return lines(old, True), lines(new, False)


def difference(before: str, after: str, from_name: str, to_name: str) -> str:
    """The unified difference of two texts, with the names in its head."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(unified_diff(old, new, fromfile=from_name, tofile=to_name))


@lru_cache(maxsize=len(DocumentName))
def shown_blocks(text: str) -> tuple[Block, ...]:
    """A document's blocks as contexts show them, without front matter and conflicts; a refresh asks several times."""
    return tuple(block for block in split_blocks(without_conflicts(text)) if not block.front)


def timeless(text: str) -> list[str]:
    """The lines that say something: not when the document was last written."""
    return [line for line in text.splitlines() if not line.startswith(("updated: ", "**Last Updated**: "))]


def _with_counters(base: str, machine: str, person: str) -> tuple[str, str]:
    """Base and person's text with the machine's present times and counts, so that these never collide with a change.

    Only where the machine has them, wherever a person moved that: what looks like one in their own text is theirs.
    """
    old, new, own = (sections(text, len(split_lines(text))) for text in (base, machine, person))
    present = {section.path: {match["key"]: match.group() for match in _counters(section)} for section in new}
    to_own = matched_sections(old, own)
    ours = {number: present.get(section.path, {}) for number, section in enumerate(old)}
    theirs = {to_own[number]: counters for number, counters in ours.items() if number in to_own}
    return _with_present(old, ours), _with_present(own, theirs)


def _counters(section: Section) -> Iterator[re.Match[str]]:
    """The times and counts in a section of the machine's text."""
    has_some = len(section.path) < 2 or section.path[1] == _STATISTICS
    return _pattern(section).finditer(section.block.text if has_some else "")


def _with_present(found: Sequence[Section], present: Mapping[int, Mapping[str, str]]) -> str:
    """A text with other times and counts, by the numbers of its sections."""

    def one(number: int, section: Section) -> str:
        counters = present.get(number)
        if not counters:
            return section.block.text
        return _pattern(section).sub(lambda match: counters.get(match["key"], match.group()), section.block.text)

    return "".join(one(number, section) for number, section in enumerate(found))


def _pattern(section: Section) -> re.Pattern[str]:
    return _UPDATED if section.block.front else _COUNTER


def _without_none(blocks: Sequence[Block], titles: set[str]) -> str:
    """A text whose sections of these names do not say that they are empty."""
    return "".join(
        _NONE.sub("", block.text) if block.level == 2 and block.title in titles else block.text for block in blocks
    )


def _with_none(blocks: Sequence[Block], *, machine: Sequence[Block], person: Sequence[Block]) -> str:
    """A text whose empty sections say so, unless the person has taken just that out."""
    blank = {block.title for block, empty in _sections(person) if empty}
    said = {block.title for block, _ in _sections(machine) if _NONE.search(block.text)} - blank
    said |= {block.title for block, _ in _sections(person) if _NONE.search(block.text)}
    front = "".join(block.text for block in blocks[: _first_section(blocks)])
    return front + "".join(_saying_none(block) if empty and block.title in said else block.text
                           for block, empty in _sections(blocks))  # fmt: skip


def _first_section(blocks: Sequence[Block]) -> int:
    return next((position for position, block in enumerate(blocks) if block.level == 2), len(blocks))


def _sections(blocks: Sequence[Block]) -> Iterator[tuple[Block, bool]]:
    """The blocks from the first section on, each with whether it is a section without anything in it."""
    found = blocks[_first_section(blocks) :]
    for position, block in enumerate(found, 1):
        alone = position == len(found) or found[position].level <= block.level
        yield block, block.level == 2 and alone and not block.text.partition("\n")[2].strip()


def _saying_none(block: Block) -> str:
    heading = _HEADING.match(block.text)
    assert heading is not None
    end = "\r\n" if "\r\n" in heading.group() else "\n"
    return f"{heading.group()}{'' if heading['end'] else end}- None{end}{block.text[heading.end() :]}"
