"""Show merge conflicts inside the document: the person's lines stay, the machine's follow in a marked block.

    - the person's line
    <!-- conflict 3f9a1c: the line above is yours and was kept; … run: orchestra-mem accept 3f9a1c -->
    > - the machine's line
    <!-- /conflict 3f9a1c: 1 line, 8c1f0e -->

The first marker is for people. The last is for this module: it holds the number of the person's lines above the block
and their digest. The id is a digest of both sides' lines, so the same conflict always gives the same block. A block
that was edited inside counts as the person's own text, and so do damaged, unpaired or nested markers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.markdown import as_typed, line_end

_ID = r"(?P<id>[0-9a-f]{6}(?:-[1-9]\d{0,3})?)"
_BLOCK = re.compile(
    rf"^<!-- conflict {_ID}: (?P<told>[^\n]*)-->[ \t\r]*\n(?P<said>(?:>[^\n]*\n)*)"
    r"<!-- /conflict (?P=id): (?P<count>\d{1,9}) lines?, (?P<digest>[0-9a-f]{6}) -->[ \t\r]*$",
    re.MULTILINE,
)
_SIDES = re.compile(r"(?:from|deleted here on) ([\w.@:-]+)(?: and w\w+ kept)?; ([\w.@:-]+) has ")
_MARKER = re.compile(r"[ \t]*<!-+[ \t]*/?[ \t]*conflict[ \t]+[0-9a-f]{4}", re.IGNORECASE)
_NOT_WHOLE = "this conflict marker does not belong to an intact block, so it counts as your text: delete this line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Lines that both sides changed. `line`: First of the person's lines in the merged text, from 1."""

    line: int
    base: str
    machine: str
    person: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The merged text, and the conflicts that it leaves open."""

    text: str
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictBlock:
    """An intact block in a document, from `line` to `last_line`, counted from 1.

    `machine`: Text that the machine would have written, "" if it would delete the person's lines.
    `person_lines`: Number of the person's lines above the block. `unchanged`: Whether these lines are still the same.
    `sides`: The two machines, the one with the lines above first, if the conflict is between people on two machines.
    """

    id: str
    line: int
    last_line: int
    machine: str
    person_lines: int
    unchanged: bool
    sides: tuple[str, ...] = ()

    @property
    def places(self) -> range:
        """Line indexes of the block, from 0."""
        return range(self.line - 1, self.last_line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A document after a conflict was accepted or rejected.

    `line`: First line of the former block, from 1. `replaced`: Whether the machine's lines replaced the person's.
    `note`: Message that says which lines were kept.
    """

    text: str
    line: int
    replaced: bool
    note: str


def mark(merged: Merged, machines: tuple[str, str] | None = None) -> str:
    """Write the conflicts of a merge into its text.

    Args:
        merged: Result of a merge.
        machines: Names of this machine and the other, if two copies were merged instead of person and machine.
    """
    lines = merged.text.split("\n")
    cr = "\r" if line_end(merged.text) == "\r\n" else ""
    earlier = find_conflicts(merged.text) if merged.conflicts else ()
    used, ends = {block.id for block in earlier}, {block.line - 1: block.last_line for block in earlier}
    added: list[tuple[int, list[str]]] = []
    for conflict in merged.conflicts:
        own = split_lines(conflict.person)
        at = min(conflict.line - 1, len(lines) - (not lines[-1])) + len(own)
        while not own and at in ends:  # a block of the line above stays directly below it
            at = ends[at]
        added.append((at, _block(conflict, own, used, cr, machines)))
    for at, block in reversed(added):
        if at == len(lines):
            # The text has no final line feed, so the block gets none either: removing the block restores the text.
            lines[-1] += cr
            block[-1] = block[-1].removesuffix("\r")
        lines[at:at] = block
    return "\n".join(lines)


def _block(
    conflict: Conflict, own: Sequence[str], used: set[str], cr: str, machines: tuple[str, str] | None
) -> list[str]:
    """Return the lines of a block, and add its id to `used`."""
    machine = split_lines(conflict.machine)
    digest = _digest(own)
    name = base = _digest([digest, str(len(own)), *machine])
    number = 1
    while name in used:
        number += 1
        name = f"{base}-{number}"
    used.add(name)
    said = _said(len(own), bool(machine), machines)
    return [
        f"<!-- conflict {name}: {said}. To reject this, delete the block; to accept it, run: "
        f"orchestra-mem accept {name} -->{cr}",
        *(f"> {line}{cr}" if line else f">{cr}" for line in machine),
        f"<!-- /conflict {name}: {len(own)} line{'s' if len(own) != 1 else ''}, {digest} -->{cr}",
    ]


def _said(own: int, has_other: bool, machines: tuple[str, str] | None) -> str:
    """Say whose lines stand, and what the other side has: the machine, or with `machines` the other machine."""
    above, stand, them = f"the {own} lines above are", "were kept", "them"
    if own == 1:
        above, stand, them = "the line above is", "was kept", "it"
    if machines is None:
        mine, gone = "yours", "you deleted lines here"
        theirs, out = "the machine would write this", f"the machine would delete {them}"
    else:
        here, there = machines
        mine, gone = f"from {here}", f"lines were deleted here on {here}"
        theirs, out = f"{there} has this", f"{there} has deleted {them}"
    if not own:
        return f"{gone}; {theirs}"
    return f"{above} {mine} and {stand}; {f'{theirs} instead' if has_other else out}"


def find_conflicts(text: str) -> tuple[ConflictBlock, ...]:
    """Return the intact blocks of a document, in order. Of two blocks with the same id, only the first counts."""
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
            sides=told.groups() if (told := _SIDES.search(match["told"])) else (),
        )
    return tuple(found.values())


def faults(text: str) -> tuple[tuple[int, str], ...]:
    """Return the faults of markers in a document: line (from 1) and problem. Faulty markers are served as text."""
    whole = {number for block in find_conflicts(text) for number in (block.line, block.last_line)}
    return tuple(
        (number, _NOT_WHOLE)
        for number, line in enumerate(text.split("\n"), 1)
        if "<!-" in line and number not in whole and _MARKER.match(line)
    )


def without_conflicts(text: str) -> str:
    """Return a document without its blocks, for the model. A block that a person has edited inside stays."""
    blocks = find_conflicts(text)
    lines = text.split("\n") if blocks else []
    for block in reversed(blocks):
        del lines[block.line - 1 : block.last_line]
    return "\n".join(lines) if blocks else text


def accept(text: str, conflict_id: str, *, both: bool = False) -> Resolved:
    """Remove a block and put the machine's lines in place of the person's, or after them if `both` is set.

    If the person has since changed the lines above the block, these stay and the machine's lines follow them.
    """
    lines, block = text.split("\n"), _found(text, conflict_id)
    cr = "\r" if line_end(text) == "\r\n" else ""
    machine = [f"{line}{cr}" for line in split_lines(block.machine)]
    start = block.line - 1
    mine, theirs = (f"{side}'s" for side in block.sides) if block.sides else ("your", "the machine's")
    if both:
        note = f"{mine} lines were kept, followed by {theirs} lines"
    elif block.unchanged:
        start -= block.person_lines
        note = f"{theirs} version was accepted"
    elif machine:
        note = f"the lines above were changed since then: they were kept, followed by {theirs} lines"
    else:
        note = f"the lines above were changed since then: they were kept; {theirs[:-2]} would have deleted them"
    at_end = block.last_line == len(lines)
    lines[start : block.last_line] = machine
    if at_end and lines:
        lines[-1] = lines[-1].removesuffix("\r")
    return Resolved(text="\n".join(lines), line=block.line, replaced=block.unchanged and not both, note=note)


def reject(text: str, conflict_id: str) -> Resolved:
    """Remove a block and keep the person's lines."""
    lines, block = text.split("\n"), _found(text, conflict_id)
    del lines[block.line - 1 : block.last_line]
    note = f"{block.sides[0]}'s lines were kept" if block.sides else "your lines were kept"
    return Resolved(text="\n".join(lines), line=block.line, replaced=False, note=note)


def _found(text: str, conflict_id: str) -> ConflictBlock:
    return next(block for block in find_conflicts(text) if block.id == conflict_id)


def _digest(lines: Sequence[str]) -> str:
    """Return six hexadecimal digits of a hash over lines, without the blanks and typography that editors change."""
    text = "\n".join(as_typed(line.rstrip()) for line in lines)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
