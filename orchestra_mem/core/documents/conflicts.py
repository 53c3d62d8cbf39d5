"""Conflicts shown in the document: a person's lines stand, the machine's follow in a marked block.

    - the person's line
    <!-- conflict 3f9a1c: the line above is yours and stands; … Delete this block, or: orchestra-mem accept 3f9a1c -->
    > - the machine's line
    <!-- /conflict 3f9a1c: 1 line, 8c1f0e -->

The first marker speaks to people, the last to this module: how many of the lines above are meant, and a digest of them.
The id is made of both sides' lines, so the same conflict is the same block, and a block that somebody edited inside is
known: it is that person's own text from then on. Markers that are damaged, halved or nested are text as well.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestra_mem.core.documents.alignment import matched_lines, split_lines
from orchestra_mem.core.documents.markdown import line_end

if TYPE_CHECKING:
    from orchestra_mem.core.documents.merge import Conflict, Merged

_ID = r"(?P<id>[0-9a-f]{6}(?:-[1-9]\d{0,3})?)"
_BLOCK = re.compile(
    rf"^<!-- conflict {_ID}: [^\n]*-->[ \t\r]*\n(?P<said>(?:>[^\n]*\n)*)"
    r"<!-- /conflict (?P=id): (?P<count>\d{1,9}) lines?, (?P<digest>[0-9a-f]{6}) -->[ \t\r]*$",
    re.MULTILINE,
)
_MARKER = re.compile(r"[ \t]*<!-+[ \t]*/?[ \t]*conflict[ \t]+[0-9a-f]{4}", re.IGNORECASE)
_NOT_WHOLE = "this marker is of no whole conflict: what stands there is your text now, delete this line"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictBlock:
    """An intact block in a document: lines `line` to `last_line`, from 1.

    `machine` is what the machine would have written, "" where it would take the person's lines out. `person_lines` is
    how many lines above are the person's; `unchanged` says whether they stand there as they did.
    """

    id: str
    line: int
    last_line: int
    machine: str
    person_lines: int
    unchanged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A document after a conflict was accepted or rejected.

    `line` is where the block began. `replaced` says whether the machine's lines took the place of the person's; `note`
    tells what became of both.
    """

    text: str
    line: int
    replaced: bool
    note: str


def mark(merged: Merged, before: str = "", machines: tuple[str, str] | None = None) -> str:
    """Write a merge's conflicts into its text, and keep those that stood there before and are not decided.

    Args:
        merged: what came of the merge; its person was `without_conflicts(before)`.
        before: the document as it stood. Its blocks are put back behind the lines that they followed, unless a new
            conflict concerns these lines.
    """
    lines = merged.text.split("\n")
    cr = "\r" if line_end(merged.text) == "\r\n" else ""
    last = len(lines) - (not lines[-1])
    new = [(min(each.line - 1, last), each, split_lines(each.person)) for each in merged.conflicts]
    places: defaultdict[int, list[list[str]]] = defaultdict(list)
    used: set[str] = set()
    for place, block, raw in _undecided(before, lines):
        if not any(_supersedes(each, range(start, start + len(own)), block, place) for start, each, own in new):
            used.add(block.id)
            places[place].append(raw)
    for start, conflict, own in new:
        places[start + len(own)].append(_block(conflict, own, used, cr, machines))
    for place in sorted(places, reverse=True):
        added = [line for block_lines in places[place] for line in block_lines]
        if place == len(lines):
            # The text has no final line feed; neither has the block, so that taking it out leaves no trace.
            lines[-1] += cr
            added[-1] = added[-1].removesuffix("\r")
        lines[place:place] = added
    return "\n".join(lines)


def _block(
    conflict: Conflict, own: Sequence[str], used: set[str], cr: str, machines: tuple[str, str] | None
) -> list[str]:
    """The lines of a block; its id is added to `used`."""
    machine = split_lines(conflict.machine)
    digest = _digest(own)
    name = base = _digest([digest, str(len(own)), *machine])
    number = 1
    while name in used:
        number += 1
        name = f"{base}-{number}"
    used.add(name)
    said = _said(len(own), bool(machine)) if machines is None else _said_of_two(len(own), bool(machine), *machines)
    return [
        f"<!-- conflict {name}: {said}. Delete this block, or: orchestra-mem accept {name} -->{cr}",
        *(f"> {line}{cr}" if line else f">{cr}" for line in machine),
        f"<!-- /conflict {name}: {len(own)} line{'s' if len(own) != 1 else ''}, {digest} -->{cr}",
    ]


def _said(own: int, machine: bool) -> str:
    if not own:
        return "you took lines out here; the machine would write this"
    if machine:
        return f"{_yours(own)}; the machine would write this instead"
    return f"{_yours(own)}; the machine would take {'it' if own == 1 else 'them'} out"


def _said_of_two(own: int, other: bool, here: str, there: str) -> str:
    if not own:
        return f"on {here} lines were taken out here; {there} has this"
    above = "the line above is" if own == 1 else f"the {own} lines above are"
    stands = "stands" if own == 1 else "stand"
    return f"{above} from {here} and {stands}; {there} has {'this instead' if other else 'taken it out'}"


def _yours(count: int) -> str:
    return "the line above is yours and stands" if count == 1 else f"the {count} lines above are yours and stand"


def _undecided(before: str, lines: Sequence[str]) -> list[tuple[int, ConflictBlock, list[str]]]:
    """The blocks of an earlier text, each with the place behind the line that it followed, and with its lines."""
    blocks = find_conflicts(before)
    if not blocks:
        return []
    bare = split_lines(without_conflicts(before))
    now = dict(matched_lines(bare, [line.removesuffix("\r") for line in lines]))
    found: list[tuple[int, ConflictBlock, list[str]]] = []
    taken = 0
    for block in blocks:
        above = block.line - 2 - taken
        while above >= 0 and above not in now:
            above -= 1
        raw = before.split("\n")[block.line - 1 : block.last_line]
        if raw[0].endswith("\r") and not raw[-1].endswith("\r"):
            raw[-1] += "\r"  # it was the last line of the text
        found.append((now[above] + 1 if above >= 0 else 0, block, raw))
        taken += len(raw)
    return found


def _supersedes(conflict: Conflict, own: range, block: ConflictBlock, place: int) -> bool:
    """Whether a new conflict is about the lines that an earlier block is about."""
    if own and block.person_lines:
        return own.start < place <= own.stop
    # Where nothing of the person's stands: about the same if the machine's last text is what the block has.
    said = {line for line in split_lines(conflict.base) if line.strip()}
    return not own and not block.person_lines and place == own.start and not said.isdisjoint(split_lines(block.machine))


def find_conflicts(text: str) -> tuple[ConflictBlock, ...]:
    """The intact blocks of a document, in its order; of two with one id the first."""
    found: dict[str, ConflictBlock] = {}
    lines = split_lines(text) if "<!-- conflict " in text else []
    for match in _BLOCK.finditer(text) if lines else ():
        start, count = text.count("\n", 0, match.start()), int(match["count"])
        machine = [line[2:] if line.startswith("> ") else line[1:] for line in split_lines(match["said"])]
        if match["id"] in found or match["id"].partition("-")[0] != _digest([match["digest"], str(count), *machine]):
            continue
        above = lines[max(0, start - count) : start]
        found[match["id"]] = ConflictBlock(
            id=match["id"],
            line=start + 1,
            last_line=start + 2 + len(machine),
            machine="".join(f"{line}\n" for line in machine),
            person_lines=count,
            unchanged=len(above) == count and _digest(above) == match["digest"],
        )
    return tuple(found.values())


def faults(text: str) -> tuple[tuple[int, str], ...]:
    """What is wrong with markers in a document: line (from 1) and problem. All of it is served as text."""
    whole = {number for block in find_conflicts(text) for number in (block.line, block.last_line)}
    return tuple(
        (number, _NOT_WHOLE)
        for number, line in enumerate(text.split("\n"), 1)
        if "<!-" in line and number not in whole and _MARKER.match(line)
    )


def without_conflicts(text: str) -> str:
    """A document without its blocks: what the model reads, and what the person has said for the next merge.

    A block that a person edited inside is that person's text and stays.
    """
    blocks = find_conflicts(text)
    lines = text.split("\n") if blocks else []
    for block in reversed(blocks):
        del lines[block.line - 1 : block.last_line]
    return "\n".join(lines) if blocks else text


def accept(text: str, conflict_id: str, *, both: bool = False) -> Resolved:
    """Put the machine's lines in the place of the person's, with `both` behind them, and take the block out.

    Where the person has changed the lines above meanwhile, these stay and the machine's follow them.
    """
    lines, block = text.split("\n"), _found(text, conflict_id)
    cr = "\r" if line_end(text) == "\r\n" else ""
    machine = [f"{line}{cr}" for line in split_lines(block.machine)]
    start = block.line - 1
    if both:
        note = "your lines stand, and the machine's follow them"
    elif block.unchanged:
        start -= block.person_lines
        note = "the machine's lines stand now"
    elif machine:
        note = "the lines above were changed meanwhile: they stay, and the machine's follow them"
    else:
        note = "the lines above were changed meanwhile: they stay; the machine would have taken them out"
    at_end = block.last_line == len(lines)
    lines[start : block.last_line] = machine
    if at_end and lines:
        lines[-1] = lines[-1].removesuffix("\r")
    return Resolved(text="\n".join(lines), line=block.line, replaced=block.unchanged and not both, note=note)


def reject(text: str, conflict_id: str) -> Resolved:
    """Take a block out; the person's lines stand. See `accept`."""
    lines, block = text.split("\n"), _found(text, conflict_id)
    del lines[block.line - 1 : block.last_line]
    return Resolved(text="\n".join(lines), line=block.line, replaced=False, note="your lines stand")


def _found(text: str, conflict_id: str) -> ConflictBlock:
    return next(block for block in find_conflicts(text) if block.id == conflict_id)


def _digest(lines: Sequence[str]) -> str:
    """Six hexadecimal digits that stand for lines; white space at their ends, which editors take out, left aside."""
    text = "\n".join(line.rstrip() for line in lines)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
