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
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from orchestra_mem.core.documents.alignment import matched_lines, split_lines
from orchestra_mem.core.documents.markdown import line_end
from orchestra_mem.core.documents.merge import Conflict, Merged
from orchestra_mem.errors import NotFoundError

_ID = r"(?P<id>[0-9a-f]{6}(?:-[1-9]\d{0,3})?)"
_OPENING = re.compile(rf"<!-- conflict {_ID}: [^\n]*-->[ \t\r]*")
_CLOSING = re.compile(rf"<!-- /conflict {_ID}: (?P<count>\d{{1,9}}) lines?, (?P<digest>[0-9a-f]{{6}}) -->[ \t\r]*")
_TRACE = re.compile(r"[ \t]*<!-+[ \t]*(?P<slash>/?)[ \t]*conflict[ \t]+[0-9a-f]{4}", re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class _Scan:
    """What of conflicts is in a document; `lines` are without line feeds, blocks and faults in their order."""

    lines: list[str]
    blocks: list[ConflictBlock]
    faults: list[tuple[int, str]]


def mark(merged: Merged, before: str = "") -> str:
    """Write a merge's conflicts into its text, and keep those that stood there before and are not decided.

    Args:
        merged: what came of the merge; its person was `without_conflicts(before)`.
        before: the document as it stood. Its blocks are put back behind the lines that they followed, unless a new
            conflict concerns these lines.
    """
    lines = merged.text.split("\n")
    cr = "\r" if line_end(merged.text) == "\r\n" else ""
    new = [(conflict, split_lines(conflict.person)) for conflict in merged.conflicts]
    last = len(lines) - (not lines[-1])
    starts = [min(conflict.line - 1, last) for conflict, _ in new]
    places: defaultdict[int, list[list[str]]] = defaultdict(list)
    used: set[str] = set()
    for place, block, raw in _undecided(before, lines):
        if not any(
            _supersedes(conflict, range(start, start + len(own)), block, place)
            for start, (conflict, own) in zip(starts, new, strict=True)
        ):
            used.add(block.id)
            places[place].append(raw)
    for start, (conflict, own) in zip(starts, new, strict=True):
        places[start + len(own)].append(_block(conflict, own, used, cr))
    for place in sorted(places, reverse=True):
        added = [line for block_lines in places[place] for line in block_lines]
        if place == len(lines):
            # The text has no final line feed; neither has the block, so that taking it out leaves no trace.
            lines[-1] += cr
            added[-1] = added[-1].removesuffix("\r")
        lines[place:place] = added
    return "\n".join(lines)


def _block(conflict: Conflict, own: Sequence[str], used: set[str], cr: str) -> list[str]:
    """The lines of a block; its id is added to `used`."""
    machine = split_lines(conflict.machine)
    digest = _digest(own)
    name = base = _digest([digest, str(len(own)), *machine])
    number = 1
    while name in used:
        number += 1
        name = f"{base}-{number}"
    used.add(name)
    if not own:
        said = "you took lines out here; the machine would write this"
    elif machine:
        said = f"{_yours(len(own))}; the machine would write this instead"
    else:
        said = f"{_yours(len(own))}; the machine would take {'it' if len(own) == 1 else 'them'} out"
    return [
        f"<!-- conflict {name}: {said}. Delete this block, or: orchestra-mem accept {name} -->{cr}",
        *(f"> {line}{cr}" if line else f">{cr}" for line in machine),
        f"<!-- /conflict {name}: {len(own)} line{'s' if len(own) != 1 else ''}, {digest} -->{cr}",
    ]


def _yours(count: int) -> str:
    return "the line above is yours and stands" if count == 1 else f"the {count} lines above are yours and stand"


def _undecided(before: str, lines: Sequence[str]) -> list[tuple[int, ConflictBlock, list[str]]]:
    """The blocks of an earlier text, each with the place behind the line that it followed, and with its lines."""
    scan = _scan(before)
    if not scan.blocks:
        return []
    bare = [line.removesuffix("\r") for line in _without(scan)]
    now = dict(matched_lines(bare, [line.removesuffix("\r") for line in lines]))
    found: list[tuple[int, ConflictBlock, list[str]]] = []
    taken = 0
    for block in scan.blocks:
        above = block.line - 2 - taken
        while above >= 0 and above not in now:
            above -= 1
        raw = scan.lines[block.line - 1 : block.last_line]
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
    """The intact blocks of a document, in its order."""
    return tuple(_scan(text).blocks)


def faults(text: str) -> tuple[tuple[int, str], ...]:
    """What is wrong with markers in a document: line (from 1) and problem. All of it is served as text."""
    return tuple(_scan(text).faults)


def without_conflicts(text: str) -> str:
    """A document without its blocks: what the model reads, and what the person has said for the next merge.

    A block that a person edited inside is that person's text and stays.
    """
    scan = _scan(text)
    return "\n".join(_without(scan)) if scan.blocks else text


def accept(text: str, conflict_id: str) -> Resolved:
    """Put the machine's lines in the place of the person's, and take the block out.

    Where the person has changed the lines above meanwhile, these stay and the machine's follow them.

    Raises:
        NotFoundError: there is no intact block with that id.
    """
    scan, block = _found(text, conflict_id)
    cr = "\r" if line_end(text) == "\r\n" else ""
    machine = [f"{line}{cr}" for line in split_lines(block.machine)]
    start = block.line - 1
    if block.unchanged:
        start -= block.person_lines
        note = "the machine's lines stand now"
    elif machine:
        note = "the lines above were changed meanwhile: they stay, and the machine's follow them"
    else:
        note = "the lines above were changed meanwhile: they stay; the machine would have taken them out"
    lines = [*scan.lines[:start], *machine, *scan.lines[block.last_line :]]
    if block.last_line == len(scan.lines) and lines:
        lines[-1] = lines[-1].removesuffix("\r")
    return Resolved(text="\n".join(lines), line=block.line, replaced=block.unchanged, note=note)


def reject(text: str, conflict_id: str) -> Resolved:
    """Take a block out; the person's lines stand. See `accept`."""
    scan, block = _found(text, conflict_id)
    lines = [*scan.lines[: block.line - 1], *scan.lines[block.last_line :]]
    return Resolved(text="\n".join(lines), line=block.line, replaced=False, note="your lines stand")


def _found(text: str, conflict_id: str) -> tuple[_Scan, ConflictBlock]:
    scan = _scan(text)
    for block in scan.blocks:
        if block.id == conflict_id:
            return scan, block
    there = ", ".join(block.id for block in scan.blocks) or "none"
    damaged = "".join(f"; line {line}: {problem}" for line, problem in scan.faults if conflict_id in problem)
    raise NotFoundError(f"there is no conflict {conflict_id!r} in the document; open are: {there}{damaged}")


def _scan(text: str) -> _Scan:
    scan = _Scan(text.split("\n"), [], [])
    if "conflict" not in text.lower():
        return scan
    markers = [place for place, line in enumerate(scan.lines) if "<!-" in line]
    closings: defaultdict[str, deque[int]] = defaultdict(deque)
    for place in markers:
        if closing := _CLOSING.fullmatch(scan.lines[place]):
            closings[closing["id"]].append(place)
    done = 0
    for place in markers:
        line = scan.lines[place]
        if place < done:
            continue
        if opening := _OPENING.fullmatch(line):
            ends = closings[opening["id"]]
            while ends and ends[0] < place:
                ends.popleft()
            done = _read_block(scan, place, opening["id"], ends[0] if ends else None)
        elif closing := _CLOSING.fullmatch(line):
            scan.faults.append((place + 1, f"conflict {closing['id']} has no beginning: delete this line"))
        elif trace := _TRACE.match(line):
            what = "end" if trace["slash"] else "beginning"
            scan.faults.append((place + 1, f"the {what} of a conflict is damaged: {line.strip()[:80]!r}"))
    return scan


def _read_block(scan: _Scan, start: int, name: str, end: int | None) -> int:
    """Take note of the block that begins at a line, or of what is wrong with it; return where to read on."""
    if end is None:
        scan.faults.append((start + 1, f"conflict {name} has no end: delete this line"))
        return start + 1
    inside = [line.removesuffix("\r") for line in scan.lines[start + 1 : end]]
    machine = [line[2:] if line.startswith("> ") else line[1:] for line in inside]
    closing = _CLOSING.fullmatch(scan.lines[end])
    assert closing is not None
    if any(_OPENING.match(line) or _CLOSING.match(line) for line in inside):
        scan.faults.append((start + 1, f"conflict {name} has another inside: both are text now"))
    elif not all(line.startswith(">") for line in inside) or name.partition("-")[0] != _digest(
        [closing["digest"], str(int(closing["count"])), *machine]
    ):
        scan.faults.append((start + 1, f"conflict {name} was edited inside: it is your text now; delete its markers"))
    elif any(block.id == name for block in scan.blocks):
        scan.faults.append((start + 1, f"conflict {name} stands here again: this copy is text"))
    else:
        count = int(closing["count"])
        above = [line.removesuffix("\r") for line in scan.lines[max(0, start - count) : start]]
        scan.blocks.append(
            ConflictBlock(
                id=name,
                line=start + 1,
                last_line=end + 1,
                machine="".join(f"{line}\n" for line in machine),
                person_lines=count,
                unchanged=len(above) == count and _digest(above) == closing["digest"],
            )
        )
    return end + 1


def _without(scan: _Scan) -> list[str]:
    lines: list[str] = []
    at = 0
    for block in scan.blocks:
        lines += scan.lines[at : block.line - 1]
        at = block.last_line
    return lines + scan.lines[at:]


def _digest(lines: Sequence[str]) -> str:
    """Six hexadecimal digits that stand for lines; white space at their ends, which editors take out, left aside."""
    text = "\n".join(line.rstrip() for line in lines)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
