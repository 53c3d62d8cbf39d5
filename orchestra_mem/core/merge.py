"""Three-way merge of lines: what the machine last wrote, what it writes now, what a person made of it meanwhile.

Where both changed the same lines the person's stand, and the machine's are returned beside them. The algorithm is
diff3's: lines that all three have hold the others in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Lines that both sides changed. `line` counts from 1 in the merged text."""

    line: int
    base: str
    machine: str
    person: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The merged text, and what could not be merged."""

    text: str
    conflicts: tuple[Conflict, ...] = ()


def merge(base: str, machine: str, person: str) -> Merged:
    """Merge two texts that both come from `base`. A side that did not change takes the other's text whole."""
    if machine in (base, person):
        return Merged(text=person)
    if person == base:
        return Merged(text=machine)
    base_lines, machine_lines, person_lines = (t.splitlines(keepends=True) for t in (base, machine, person))
    result: list[str] = []
    conflicts: list[Conflict] = []
    b = m = p = 0
    for anchor_b, anchor_m, anchor_p, size in _anchors(base_lines, machine_lines, person_lines):
        old, new, own = base_lines[b:anchor_b], machine_lines[m:anchor_m], person_lines[p:anchor_p]
        if old == own:
            result += new
        else:
            if new not in (old, own):
                conflicts.append(
                    Conflict(line=len(result) + 1, base="".join(old), machine="".join(new), person="".join(own))
                )
            result += own
        result += base_lines[anchor_b : anchor_b + size]
        b, m, p = anchor_b + size, anchor_m + size, anchor_p + size
    return Merged(text="".join(result), conflicts=tuple(conflicts))


def _anchors(base: list[str], machine: list[str], person: list[str]) -> list[tuple[int, int, int, int]]:
    """Runs of base lines that both sides kept: (in base, in machine, in person, length); the last is the end."""
    anchors: list[tuple[int, int, int, int]] = []
    ours = SequenceMatcher(None, base, machine, autojunk=False).get_matching_blocks()
    theirs = SequenceMatcher(None, base, person, autojunk=False).get_matching_blocks()
    i = j = 0
    while i < len(ours) and j < len(theirs):
        (a_base, a_side, a_size), (b_base, b_side, b_size) = ours[i], theirs[j]
        start, end = max(a_base, b_base), min(a_base + a_size, b_base + b_size)
        if start < end:
            anchors.append((start, a_side + start - a_base, b_side + start - b_base, end - start))
        if a_base + a_size < b_base + b_size:
            i += 1
        else:
            j += 1
    anchors.append((len(base), len(machine), len(person), 0))
    return anchors
