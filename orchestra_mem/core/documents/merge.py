"""Three-way merge of the machine's last text (the base), the machine's new text, and a person's edit of the base.

The machine's changes are applied to the person's text. Each line is traced from text to text, even if it moved. Lines
that the machine removed are removed. A line that the machine added follows the same line as in the machine's text, even
if the person moved that line. A line that only the machine moved is moved. If both changed the same lines, the person's
stay and the machine's are returned as a conflict. Comparisons ignore line ends; the result has the person's line ends.

The library merge3 (diff3) is under GPL-2.0-or-later and this project under MIT, so the merge is implemented here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise

from orchestra_mem.core.documents.alignment import look_changed, matched_lines, moved_lines, split_lines
from orchestra_mem.core.documents.conflicts import Conflict, Merged, find_conflicts
from orchestra_mem.core.documents.markdown import Block, line_end, split_blocks
from orchestra_mem.core.documents.owned_lines import is_machines

# Stands for each row of a conflict block: white space that no text contains, so that the row counts as blank.
_BLOCK_ROW = "\x1f"


def merge(base: str, machine: str, person: str, *, both: bool = False, follow: Container[str] = ()) -> Merged:
    """Merge two texts that were derived from `base`. If one side made no change, the other's text is returned as is.

    Args:
        both: Whether to return no conflicts: lines that both sides changed stay in both versions, the person's first.
            An entry that one side removed stays removed, but text that the other side wrote below the entry is kept.
        follow: Lines that take the machine's order, even if the person moved them.
    """
    if machine in (base, person):
        return Merged(text=person)
    if person == base:
        return Merged(text=machine)
    return _Merge(base, machine, person, both=both, follow=follow).merged()


class _Merge:
    """State of a merge. Places are line indexes from 0; -1 is before the first line."""

    def __init__(self, base: str, machine: str, person: str, *, both: bool, follow: Container[str]) -> None:
        self._base, self._machine, self._rows = map(split_lines, (base, machine, person))
        # Conflict blocks that the person has not decided: each stays below the line above.
        known = {block.id for block in find_conflicts(base)}
        self._blocks = [block for block in find_conflicts(person) if block.id not in known]
        rows = {place for block in self._blocks for place in block.places}
        self._person = [_BLOCK_ROW if place in rows else row for place, row in enumerate(self._rows)]
        *ended, last = person.split("\n")
        self._whole = [*(f"{row}\n" for row in ended), last]  # with the line ends
        self._end = line_end(person if "\n" in person else machine)
        self._both, self._follow = both, follow
        self._sections = split_blocks(base)
        # Places of headings in the person's text, each with the end of its section.
        self._heads = {block.rows[0]: block.rows.stop for block in split_blocks(person) if block.level}
        in_machine = dict(matched_lines(self._base, self._machine))
        in_person = dict(matched_lines(self._base, self._person))
        moved = moved_lines(self._base, self._machine, in_machine)
        # For lines of base, their place in the person's text, and the reverse.
        self._where = in_person | moved_lines(self._base, self._person, in_person)
        self._came_from = {place: line for line, place in self._where.items()}
        # Lines to move as the machine moved them: from place in the machine's text to place in the person's.
        self._goes = {
            place: in_person[line]
            for line, place in moved.items()
            if line in in_person and self._base[line].strip() and self._section(line).rows[0] in in_machine
        }
        for place, mine in self._out_of_order(follow):
            self._goes[place] = mine
            line = self._came_from.get(mine, -1)
            if in_machine.get(line) == place:
                moved[line] = in_machine.pop(line)
        self._in_order = sorted(in_machine.items())
        self._added = {*range(len(self._machine))}.difference(in_machine.values(), moved.values(), self._goes)
        self._taken = {*range(len(self._base))}.difference(in_machine, moved)
        own = self._came_from.keys() ^ range(len(self._person))
        self._extra = Counter(self._person[place] for place in own)
        self._gone: set[int] = set()
        # Lines to insert after a line of the person's text.
        self._behind: defaultdict[int, list[str]] = defaultdict(list)
        # Conflicts: the places of the person's lines, which stay, and the lines of base and machine.
        self._collisions: list[tuple[range, Sequence[str], Sequence[str]]] = []
        # By the start of a removed section: the list of the machine's lines for it, which grows hunk by hunk.
        self._left_out: dict[int, list[str]] = {}

    def _section(self, line: int) -> Block:
        """Return the section of base that contains a line."""
        return self._sections[bisect_right(self._sections, line, key=lambda block: block.line - 1) - 1]

    def _out_of_order(self, follow: Container[str]) -> Iterator[tuple[int, int]]:
        """Yield the lines of `follow` that the person reordered, as (machine's place, person's place)."""
        first = {line: place for place, line in reversed([*enumerate(self._person)]) if line in follow}
        new = [place for place, line in enumerate(self._machine) if line in first]
        own = [self._person[place] for place in sorted(first.values())]
        in_order = {new[number] for number, _ in matched_lines([self._machine[place] for place in new], own)}
        yield from ((place, first[self._machine[place]]) for place in new if place not in in_order)

    def merged(self) -> Merged:
        """Merge hunk by hunk, then assemble the result."""
        border = len(self._base), len(self._machine)
        for (line, place), (next_line, next_place) in pairwise([(-1, -1), *self._in_order, border]):
            if next_line - line > 1 or next_place - place > 1:
                self._merge_hunk(range(line + 1, next_line), range(place + 1, next_place))
        self._keep_headings()
        return self._finished()

    def _merge_hunk(self, old: range, new: range) -> None:
        """Apply one hunk to the person's text: the lines `old` of base, which the machine replaced with `new`."""
        added = [line for place in new if place in self._added and (line := self._machine[place]).strip()]
        gone = [line for line in old if line in self._taken and self._base[line].strip()]
        opens = next((self._machine[place] for place in new if self._machine[place].strip()), "").startswith("#")
        if gone:  # else the machine removed at most blank lines
            self._gone.update(self._where[line] for line in old if line in self._taken and line in self._where)
        at, changed = self._anchor(old, opens=opens)
        if at is None:
            first = next((place for place in new if self._machine[place].startswith("#")), new.stop)
            self._leave_out(
                old.start - 1, [self._machine[place] for place in new if place < first and place in self._added]
            )
            self._insert(range(first, new.stop), self._anchor(old, opens=True)[0] or 0, range(0), opens=True)
            return
        lost = [self._base[line] for line in gone if line not in self._where]
        places = range(at + 1, self._own_stop(at, old))
        own = Counter(self._person[place] for place in places if self._is_own(place))
        has_all = added and not Counter(added) - own and len(gone) == len(lost)
        if lost and not has_all and (own or look_changed(Counter(lost), Counter(added))):
            if self._both:
                self._insert(new, places.stop - 1, places, opens=False)
            else:
                self._collide(places, old, new)
            return
        replaced = [self._where[line] for line in old if self._where.get(line, -1) in places]
        last = max(replaced, default=places.stop - 1 if own and (changed or lost) else self._below_blank(at, old.start))
        self._insert(new, last, places, opens=opens, whole=not (own or lost or changed))

    def _anchor(self, old: range, *, opens: bool) -> tuple[int | None, bool]:
        """Find the person's last line before a hunk, and whether the person changed lines between this and the hunk.

        The place is None if the person removed the section that contains the hunk.
        """
        section = self._section(max(old.start - 1, 0)) if self._base else None
        start = section.rows[0] if section and not opens else 0
        at = self._above(old.start, start)
        if at >= 0:
            line = self._came_from[at]
            return at, any(self._base[between].strip() for between in range(line + 1, old.start))
        if opens or section is None or not section.level or section.rows[0] >= old.start:
            return -1, False
        below = [self._where[line] for line in range(old.start, section.rows.stop) if self._stands(line)]
        if below:
            return min(below) - 1, False
        place = self._above(start, 0) + 1
        while place < len(self._person) and (self._is_own(place) or not self._person[place].strip()):
            if place in self._heads:  # the person renamed the heading
                return place, True
            place += 1
        return None, True

    def _below_blank(self, at: int, line: int) -> int:
        """Return the person's place of the last blank line from `at` to the base's `line`; `at` if there is none."""
        blank = range(self._came_from.get(at, -1) + 1, line)
        below = max((self._where[each] for each in blank if each in self._where), default=at)
        return below if below > at and not any(place in self._heads for place in range(at + 1, below + 1)) else at

    def _stands(self, line: int) -> bool:
        """Check whether a line of base is in the person's text and not blank."""
        return line in self._where and bool(self._base[line].strip())

    def _above(self, line: int, start: int) -> int:
        """Return the person's place of the last kept, non-blank base line from `start` to before `line`; else -1."""
        return next((self._where[each] for each in range(line - 1, start - 1, -1) if self._stands(each)), -1)

    def _own_stop(self, at: int, old: range) -> int:
        """Return the end of the lines that the person has in place of a hunk."""
        stop = place = at + 1
        while place < len(self._person) and place not in self._heads:
            if self._person[place].strip():
                if not self._is_own(place) and self._came_from[place] not in old:
                    break
                stop = place + 1
            place += 1
        return stop

    def _is_own(self, place: int) -> bool:
        """Check whether the person wrote a line: it is not blank and not in base."""
        return place not in self._came_from and bool(self._person[place].strip())

    def _collide(self, places: range, old: range, new: range) -> None:
        """Keep the person's lines although the machine changed them too, and record the conflict."""
        while places and not self._person[places[0]].strip():
            places = places[1:]
        self._gone.difference_update(place for place in places if self._came_from.get(place) in self._taken)
        lines = [self._base[line] for line in old], [self._machine[place] for place in new]
        if [self._person[place] for place in places] != lines[1]:  # else both made the same change
            self._record(places, *lines)

    def _record(self, places: range, base: Sequence[str], machine: Sequence[str]) -> None:
        """Record a conflict about the person's lines in `places`. It takes the place of earlier blocks about them."""
        said = {line for line in base if line.strip()}
        for block in self._blocks:
            at = block.places.start
            if places and block.person_lines:
                is_same = places.start < at <= places.stop
            else:  # about deleted lines, if the lines were the same
                is_here = not (places or block.person_lines) and places.start in (at, block.places.stop)
                is_same = is_here and not said.isdisjoint(split_lines(block.machine))
            self._gone.update(block.places if is_same else ())
        self._collisions.append((places, base, machine))

    def _leave_out(self, line: int, added: Sequence[str]) -> None:
        """Record all additions to a removed section as one conflict; with `both`, insert them below its heading."""
        rows = self._section(line).rows
        added = [line for line in added if line.strip()]
        is_entry = self._base[rows.start].startswith("###")
        if is_entry and self._both:  # the machine's explanation of an entry is removed with the entry
            added = [line for line in added if not (line.startswith(">") or is_machines(line))]
        if not added:
            return
        if rows.start not in self._left_out:
            at, heading = self._section_end(self._above(rows.start, 0)), self._base[rows.start]
            if self._both:
                lines = self._behind[at]
                lines += [""] if is_entry else ["", heading, ""]
            else:
                lines = [heading, ""]
                self._record(range(at + 1, at + 1), self._base[rows.start : rows.stop], lines)
            self._left_out[rows.start] = lines
        self._left_out[rows.start] += added

    def _section_end(self, at: int) -> int:
        """Return the last line of the section that contains a line of the person's."""
        while at + 1 < len(self._person) and at + 1 not in self._heads:
            at += 1
        return at

    def _insert(self, new: range, at: int, around: range, *, opens: bool, whole: bool = False) -> None:
        """Insert the machine's added and moved lines in `new` below line `at`. `whole`: Keep outer blank lines."""
        run: list[str] = []
        for place in new:
            line = self._machine[place]
            if place in self._goes:
                run += self._with_notes(self._goes.pop(place))
            elif not line.strip():
                run += [""] if place in self._added or not whole else []
            elif place in self._added and self._extra[line] > 0:
                self._extra[line] -= 1  # the person added the same line
                mine = next((mine for mine in around if mine > at and self._person[mine] == line), None)
                if mine is not None:
                    self._put(run, at, opens=opens, whole=whole)
                    run, at = [], mine
            elif place in self._added:
                run.append(line)
        self._put(run, at, opens=opens, whole=whole)

    def _with_notes(self, place: int) -> list[str]:
        """Remove a line to be moved, and the person's notes below it, from their place; return the removed lines."""
        stop = place + 1
        while self._is_note(stop):
            stop += 1
        self._gone.update(range(place, stop))
        return self._rows[place:stop]

    def _is_note(self, place: int) -> bool:
        """Check whether a line belongs to the line above: the person's indented lines, and conflict blocks."""
        if place >= len(self._person) or self._person[place] in self._follow:
            return False
        return self._person[place] == _BLOCK_ROW or (self._is_own(place) and self._person[place][0] in (" ", "\t"))

    def _put(self, run: Sequence[str], at: int, *, opens: bool, whole: bool) -> None:
        said = [number for number, line in enumerate(run) if line != ""]
        if not said:
            return
        if opens:  # the run begins with a heading, which starts a new section
            at = self._section_end(at)
            while at >= 0 and not self._person[at].strip():
                at -= 1
        while self._is_note(at + 1):
            at += 1
        self._behind[at] += run if whole and not opens else run[said[0] : said[-1] + 1]

    def _keep_headings(self) -> None:
        """Keep headings that the machine removed but below which the person wrote something."""
        for start, stop in self._heads.items():
            if self._both and self._person[start].startswith("###"):
                continue
            written = any(self._is_own(place) and place not in self._gone for place in range(start + 1, stop))
            if written and start in self._gone:
                around = [place for place in (start - 1, start + 1) if not self._person[max(place, 0)].strip()]
                self._gone.difference_update([start, *around])

    def _finished(self) -> Merged:
        """Apply removals and insertions to the person's text, and compute the line numbers of conflicts."""
        texts: list[str] = []
        lines: list[int] = []
        for place in range(-1, len(self._person)):
            lines.append(len(texts))
            if place >= 0 and place not in self._gone:
                texts.append(self._whole[place])
            if place in self._behind:
                self._write(self._behind[place], texts, below=place + 1)
        lines.append(len(texts))
        conflicts = tuple(
            Conflict(
                line=lines[own.start + 1] + 1,
                base=self._text(base),
                machine=self._text(machine),
                person="".join(texts[lines[own.start + 1] : lines[own.stop + 1]]),
            )
            for own, base, machine in sorted(self._collisions, key=lambda each: each[0].start)
        )
        return Merged(text="".join(texts), conflicts=conflicts)

    def _write(self, run: Sequence[str], texts: list[str], below: int) -> None:
        """Append lines to the result; blank lines separate a run with a heading from other text."""
        apart = any(line.startswith("#") for line in run)
        if texts and not texts[-1].endswith("\n"):
            texts[-1] += self._end
        if apart and texts and texts[-1].strip() and run[0] != "":
            texts.append(self._end)
        texts += [line + self._end for line in run]
        standing = next((place for place in range(below, len(self._person)) if place not in self._gone), None)
        if apart and standing is not None and self._person[standing].strip():
            texts.append(self._end)

    def _text(self, lines: Sequence[str]) -> str:
        return "".join(f"{line}{self._end}" for line in lines)
