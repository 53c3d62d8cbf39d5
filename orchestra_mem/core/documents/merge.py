"""Three-way merge: what the machine last wrote, what it writes now, what a person made of it meanwhile.

Sections are matched first, by heading and by what they hold, so that one that a person moved or renamed stays where it
was put and takes the machine's changes there. Within matched sections the algorithm is diff3's: lines that all three
have hold the others in place. Between them each line counts: what either side added is there, what either took out is
not. Only where both changed the very same line does the person's stand alone, and the machine's is returned beside it.
Lines are compared without their ends; those of the result are the person's.

The library merge3 does diff3 as well. It is licensed under GPL-2.0-or-later and this project under MIT, so the merge is
our own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise

from orchestra_mem.core.documents.alignment import (
    Section,
    count_said,
    line_ends,
    look_changed,
    matched_lines,
    matched_sections,
    sections,
    split_lines,
)
from orchestra_mem.core.documents.markdown import line_end


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Lines that both sides changed. `line` counts from 1 in the merged text, where the person's lines stand."""

    line: int
    base: str
    machine: str
    person: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The merged text, and what could not be merged."""

    text: str
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class _Text:
    """One of the three texts, cut into lines and sections."""

    lines: list[str]
    sections: list[Section]

    @classmethod
    def cut(cls, text: str) -> _Text:
        lines = split_lines(text)
        return cls(lines, sections(text, len(lines)))

    def of(self, number: int) -> list[str]:
        """The lines of a section."""
        return self.lines[self.sections[number].start : self.sections[number].stop]

    def stretch(self, first: int, last: int, left_out: Mapping[int, int]) -> list[str]:
        """The lines of neighbouring sections, of some without so many at the beginning."""
        return [line for number in range(first, last) for line in self.of(number)[left_out.get(number, 0) :]]


@dataclass(slots=True)
class _Draft:
    """The result so far: a person's line by its number, a machine's by its text.

    Of lines that both changed `collisions` tells where the person's begin in the draft, how many these are, and what
    base and machine have. `both` is `merge`'s.
    """

    person: list[str]
    both: bool = False
    lines: list[int | str] = field(default_factory=list)
    collisions: list[tuple[int, int, list[str], list[str]]] = field(default_factory=list)

    @property
    def last(self) -> str:
        """The last line so far."""
        return self.text(self.lines[-1]) if self.lines else ""

    def text(self, line: int | str) -> str:
        """What a line of the draft says."""
        return line if isinstance(line, str) else self.person[line]


@dataclass(frozen=True, slots=True)
class _Unit:
    """What of the three texts belongs together: lines of base and machine, and the range of the person's.

    `deleted` are the sections that the person deleted and the machine changed, as base and machine have them.
    """

    base: list[str]
    machine: list[str]
    person: tuple[int, int]
    deleted: list[tuple[list[str], list[str]]]


def merge(base: str, machine: str, person: str, *, both: bool = False) -> Merged:
    """Merge two texts that both come from `base`. A side that did not change takes the other's text whole.

    With `both` nothing collides: where both changed the same lines, what the machine wrote follows the person's.
    """
    if machine in (base, person):
        return Merged(text=person)
    if person == base:
        return Merged(text=machine)
    old, new, own = _Text.cut(base), _Text.cut(machine), _Text.cut(person)
    draft = _Draft(own.lines, both)
    for unit in _units(old, new, own):
        _merge_unit(unit, draft)
    _balance(draft, old.lines, new.lines)
    return _finished(draft, line_ends(person), line_end(person if "\n" in person else machine))


def _finished(draft: _Draft, ends: Sequence[str], end: str) -> Merged:
    """The draft as a text."""
    texts = [line + end if isinstance(line, str) else draft.person[line] + (ends[line] or end) for line in draft.lines]
    if draft.lines and isinstance(last := draft.lines[-1], int):
        texts[-1] = draft.person[last] + ends[last]  # it may be the only one without an end
    conflicts = tuple(
        Conflict(
            line=place + 1,
            base="".join(f"{line}{end}" for line in old),
            machine="".join(f"{line}{end}" for line in new),
            person="".join(texts[place : place + count]),
        )
        for place, count, old, new in draft.collisions
    )
    return Merged(text="".join(texts), conflicts=conflicts)


def _units(old: _Text, new: _Text, own: _Text) -> Iterator[_Unit]:
    """Cut the three texts where a section stands in all of them, in the order that the result has.

    That is the person's, or the machine's where the person moved nothing. What not all texts have follows the section
    that it stands behind.
    """
    to_new = matched_sections(old.sections, new.sections)
    to_own = matched_sections(old.sections, own.sections)
    leaders = [number for number in range(len(old.sections)) if number in to_new and number in to_own]
    order = sorted(leaders, key=to_own.__getitem__)
    if order == leaders:
        order.sort(key=to_new.__getitem__)
    in_old = _stretches(leaders, len(old.sections))
    in_new = _stretches(sorted(to_new[number] for number in leaders), len(new.sections))
    in_own = _stretches(sorted(to_own[number] for number in leaders), len(own.sections))
    deleted = _deleted(old, own, to_new, to_own)
    old_out = {number: len(old.of(number)) for number in deleted} | _kept_headings(old, own, to_new, to_own)
    new_out = {to_new[number]: len(new.of(to_new[number])) for number in deleted}
    for number in [-1, *order]:
        spans = in_old[number], in_new[to_new.get(number, -1)], in_own[to_own.get(number, -1)]
        # A section whose heading alone is missing from the person's is part of the one before: they go together.
        apart = number >= 0 and all(i in to_own or i in deleted for i in range(number + 1, spans[0][1]))
        parts = [[(first, first + 1) for first, _ in spans], [(first + 1, last) for first, last in spans]]
        for of_old, of_new, (first, last) in parts if apart else [spans]:
            changed = [(old.of(i), new.of(to_new[i])) for i in range(*of_old) if i in deleted]
            yield _Unit(
                old.stretch(*of_old, old_out),
                new.stretch(*of_new, new_out),
                (own.sections[first].start, own.sections[last - 1].stop) if first < last else (0, 0),
                [(before, now) for before, now in changed if count_said(now) - count_said(before)],
            )


def _stretches(leaders: Sequence[int], count: int) -> dict[int, tuple[int, int]]:
    """From each leader to the next, by the leader's number; under -1 what stands before the first."""
    borders = [*leaders, count]
    found = {leader: (leader, border) for leader, border in zip(leaders, borders[1:], strict=True)}
    found[-1] = (0, borders[0])
    return found


def _deleted(old: _Text, own: _Text, to_new: Mapping[int, int], to_own: Mapping[int, int]) -> set[int]:
    """Sections that the machine still has and the person deleted: heading, and at least half of the lines."""
    missing = [number for number in to_new if number not in to_own and old.sections[number].block.level]
    if not missing:
        return set()
    standing = set(own.lines)
    found: set[int] = set()
    for number in missing:
        lines = old.of(number)
        content = set(count_said(lines[old.sections[number].heading_lines :]))
        if lines[0] not in standing and 2 * len(content & standing) <= len(content):
            found.add(number)
    return found


def _kept_headings(old: _Text, own: _Text, to_new: Mapping[int, int], to_own: Mapping[int, int]) -> dict[int, int]:
    """Sections that the machine took out and the person wrote into, with the lines of their headings.

    Left out of the base, the heading is the person's: it stays above what the person wrote.
    """
    return {
        number: old.sections[number].heading_lines
        for number, other in to_own.items()
        if number not in to_new and count_said(own.of(other)) - count_said(old.of(number))
    }


def _merge_unit(unit: _Unit, draft: _Draft) -> None:
    """Add what comes of a unit to the draft."""
    start, stop = unit.person
    own, old, new = draft.person[start:stop], unit.base, unit.machine
    if own and draft.last.strip() and not draft.person[start - 1].strip():
        draft.lines.append(start - 1)  # the blank line above went with what stood there
    if new in (old, own):
        draft.lines += range(start, stop)
    else:
        b = m = p = 0
        for next_b, next_m, next_p, size in _anchors(old, new, own):
            _merge_stretch(old[b:next_b], new[m:next_m], range(start + p, start + next_p), draft)
            b, m, p = next_b + size, next_m + size, next_p + size
            draft.lines += range(start + next_p, start + p)
    for was, now in unit.deleted:
        _collide(draft, range(0), was, now)


def _anchors(base: list[str], machine: list[str], person: list[str]) -> list[tuple[int, int, int, int]]:
    """Runs of base lines that both sides kept: (in base, in machine, in person, length); the last is the end."""
    theirs = dict(matched_lines(base, person))
    anchors: list[tuple[int, int, int, int]] = []
    for in_base, in_machine in matched_lines(base, machine):
        in_person = theirs.get(in_base)
        if in_person is None:
            continue
        if anchors:
            b, m, p, size = anchors[-1]
            if (b + size, m + size, p + size) == (in_base, in_machine, in_person):
                anchors[-1] = (b, m, p, size + 1)
                continue
        anchors.append((in_base, in_machine, in_person, 1))
    anchors.append((len(base), len(machine), len(person), 0))
    return anchors


def _merge_stretch(old: list[str], new: list[str], places: range, draft: _Draft) -> None:
    """Add what comes of lines between two anchors."""
    own = draft.person[places.start : places.stop]
    if old == own:
        draft.lines += new
    elif new in (old, own):
        draft.lines += places
    else:
        lines = _combined(old, new, own, draft.last)
        if lines is None:
            _collide(draft, places, old, new)
        else:
            draft.lines += [places[line] if isinstance(line, int) else line for line in lines]


def _collide(draft: _Draft, places: range, old: list[str], new: list[str]) -> None:
    """Add a person's lines that the machine has changed as well."""
    if not draft.both:
        draft.collisions.append((len(draft.lines), len(places), old, new))
    draft.lines += places
    if draft.both:
        draft.lines += (count_said(new) - count_said(old)).elements()


def _combined(old: list[str], new: list[str], own: list[str], above: str) -> list[int | str] | None:
    """A person's lines (by place) with what the machine added and without what it took out.

    None where both changed one line. What the machine added and the person has as well is there once. `above` is the
    line before.
    """
    was, now, theirs = count_said(old), count_said(new), count_said(own)
    taken, added = was - now, now - was
    missing = added - (theirs - was)
    if both := taken & (was - theirs):
        if added and not missing and not taken & theirs:
            return list(range(len(own)))  # the person has already what came for it
        if theirs - was or look_changed(both, added):
            return None
    kept: dict[int, None] = {}
    for place, line in enumerate(own):
        if taken[line] > 0:
            taken[line] -= 1
        else:
            kept[place] = None
    return _inserted(old, new, own, missing, kept, above) if missing else list(kept)


def _inserted(
    old: list[str], new: list[str], own: list[str], missing: Counter[str], kept: Container[int], above: str
) -> list[int | str]:
    """The person's kept lines with the machine's missing ones where those stand at the machine's."""
    runs: defaultdict[int, list[str]] = defaultdict(list)
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(own):
        places[line].append(place)
    for spot, lines in _gaps(old, new, own):
        for line in lines:
            if missing[line] > 0:
                missing[line] -= 1
                runs[spot].append(line)
            elif not line or line.isspace():
                runs[spot].append("")
            elif (found := places.get(line)) and (nth := bisect_left(found, spot)) < len(found):
                spot = found[nth] + 1  # both wrote this line
    result: list[int | str] = []
    for place, below in enumerate([*own, ""]):
        if place in runs:
            last = result[-1] if result else above
            result += _spaced(runs[place], own[last] if isinstance(last, int) else last, below)
        if place in kept:
            result.append(place)
    return result


def _gaps(old: list[str], new: list[str], own: list[str]) -> Iterator[tuple[int, list[str]]]:
    """What the machine has between lines that it kept, with its place among the person's lines.

    That is behind the lines whose place it takes; else behind the line before it, or what the person made of that.
    """
    in_own = dict(matched_lines(old, own))
    next_in_own = [len(own)] * (len(old) + 1)
    for place in range(len(old) - 1, -1, -1):
        next_in_own[place] = in_own.get(place, next_in_own[place + 1])
    for (i, n), (j, k) in pairwise([(-1, -1), *matched_lines(old, new), (len(old), len(new))]):
        replaced = [in_own[place] for place in range(i + 1, j) if place in in_own]
        before = next_in_own[i] + (i in in_own) if i >= 0 else 0
        if n + 1 < k:
            yield replaced[-1] + 1 if replaced else before, new[n + 1 : k]


def _spaced(run: list[str], above: str, below: str) -> list[str]:
    """A run of new lines without the blank ones around it; one that has a heading stands apart from other text."""
    said = [number for number, line in enumerate(run) if line]
    lines = run[said[0] : said[-1] + 1] if said else []
    if any(line.startswith("#") for line in lines):
        lines = [*[""][: len(above.strip())], *lines, *[""][: len(below.strip())]]
    return lines


def _balance(draft: _Draft, old: list[str], new: list[str]) -> None:
    """Make up for lines that the machine moved: each move looks like one line taken out and another written.

    Only the counts over the whole text tell. Out of the machine's lines goes what stands there still or the person
    deleted, and what both wrote; of the latter only lines that each has once are the same line for sure. Back comes
    what of the person's was taken out although the machine has it as often as before.
    """
    was, now, theirs = count_said(old), count_said(new), count_said(draft.person)
    result = Counter(map(draft.text, draft.lines))
    surplus = {
        line: result[line] - (1 if theirs[line] == now[line] == 1 else theirs[line] + max(0, now[line] - was[line]))
        for line in count_said([line for line in draft.lines if isinstance(line, str)])
    }
    lacking = theirs - (was - now) - result
    if lacking:
        _put_back(draft, lacking)
    if any(count > 0 for count in surplus.values()):
        _leave_out(draft, surplus)


def _put_back(draft: _Draft, lacking: Counter[str]) -> None:
    """Return lines of the person's to the draft, each behind the one that it followed."""
    standing = {line for line in draft.lines if isinstance(line, int)}
    behind: defaultdict[int, list[int | str]] = defaultdict(list)
    for place, line in enumerate(draft.person):
        if place not in standing and lacking[line] > 0:
            lacking[line] -= 1
            behind[next((other for other in range(place - 1, -1, -1) if other in standing), -1)].append(place)
    pieces = [[line, *behind[line]] if isinstance(line, int) and line in behind else [line] for line in draft.lines]
    _rebuild(draft, pieces, behind.get(-1, []))


def _leave_out(draft: _Draft, surplus: dict[str, int]) -> None:
    """Take lines of the machine's out of the draft, so many of each; of stretches that lose all, also blank ones."""
    pieces: list[list[int | str]] = []
    for _, stretch in groupby(draft.lines, key=type):
        kept: list[list[int | str]] = []
        for line in stretch:
            out = isinstance(line, str) and surplus.get(line, 0) > 0
            if isinstance(line, str) and out:
                surplus[line] -= 1
            kept.append([] if out else [line])
        says = any(isinstance(line, int) or line.strip() for piece in kept for line in piece)
        pieces += kept if says or [] not in kept else [[] for _ in kept]
    _rebuild(draft, pieces, [])


def _rebuild(draft: _Draft, pieces: Sequence[list[int | str]], first: list[int | str]) -> None:
    """Put something else in the place of each line; collisions keep theirs."""
    places = list(accumulate((len(piece) for piece in pieces), initial=len(first)))
    draft.collisions = [
        (places[place], places[place + count] - places[place], old, new) for place, count, old, new in draft.collisions
    ]
    draft.lines = [*first, *(line for piece in pieces for line in piece)]
