"""Give the lines that have an identity the same row in all three texts of a merge. No I/O.

An identity that both the machine and the person have gets one row, and one that either has removed is removed from the
base, or put back. `merge` then only places these rows. There is one function for each kind of merge.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.conflicts import Conflict, Merged
from orchestra_mem.core.documents.fact_lines import LooseFacts
from orchestra_mem.core.documents.markdown import PIN, as_typed, split_blocks
from orchestra_mem.core.documents.owned_lines import OwnedLine, by_identity, is_machines, owned_keys, owned_lines
from orchestra_mem.core.documents.plan_edits import merged_line
from orchestra_mem.core.documents.plan_lines import has_work, render_line, with_work_heading
from orchestra_mem.core.text import squeeze

# Separates a `- None` line from the name of its section, during a merge only. No document contains this character.
_MARK = "\0"
_LIST_MARK = re.compile(r"\A(?:[-*+]|\d{1,9}[.)]) ")
_MARKED = re.compile(rf"{_MARK}[^\r\n]*")
# A list item that is neither ticked nor struck out.
_ITEM = re.compile(
    r"(?P<mark>(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[ \] )?)(?!\[|~~)(?P<said>.+?)(?P<number>\s*\([KM]\d+\).*|\s*\Z)",
    re.DOTALL,
)
_STRUCK = r"\g<mark>~~\g<said>~~\g<number>"


def agreed_once_stored(base: str, machine: str, person: str, ended: Container[str]) -> tuple[str, str, str]:
    """Return the three texts with common rows if the person's edits are in the ledgers, and `machine` shows them.

    A fact or work item that the person removed comes back if the machine still has it, unless a row that is no list
    item has the fact. What the machine no longer has is removed, but not above a person's notes; `ended`: See `merged`.
    """
    texts = _Agreement(base, machine, person)
    for each in texts.of_person():
        if each.now:
            texts.give(each, each.mine.row if each.agrees_with(each.now) else _machines_row(each.now, each.mine))
        elif each.stays_with_notes(ended) and _has_notes(texts.person, each.mine):
            is_over = each.key in ended or each.key[0] == "@"
            texts.detach(each, _ITEM.sub(_STRUCK, each.mine.row) if is_over else None)
        elif each.was:
            texts.remove(each, unless_edited=each.key[0] != "#")
        elif each.key[0] == "@" and each.is_work:
            texts.in_person |= dict.fromkeys(place for copy in each.copies for place in copy.places)
    loose = LooseFacts([texts.person])
    for was, now in texts.removed_by_person():
        texts.settle_removed(was, now if now and _stays_away(was, now, loose) else None)
    return texts.with_rows()


def agreed_on_stale_edit(opened: str, left: str, person: str, free: Container[str]) -> tuple[str, str, str]:
    """Return the three texts with common rows if the person edited an older text, and no ledger has the edit yet.

    What the person changed or removed stays so. `free`: The person's rows that must not change.
    """
    texts = _Agreement(opened, left, person)
    for each in texts.of_person():
        if not any(row in free for row in each.mine.row.split("\n")):
            _settle_unstored(texts, each)
    for was, now in texts.removed_by_person():
        texts.settle_removed(was, now)
    return texts.with_rows()


def agreed_by_people(opened: str, theirs: str, mine: str) -> tuple[tuple[str, str, str], list[tuple[str, str, str]]]:
    """Return the three texts with common rows if two people edited one text; a row that both reworded is `mine`.

    Also returns the rows that both reworded, as (opened, theirs, kept). A row that one removed and the other reworded
    stays.
    """
    texts = _Agreement(opened, theirs, mine)
    reworded: list[tuple[str, str, str]] = []
    for each in texts.of_person():
        kept = _settle_unstored(texts, each)
        known = [line for line in (each.was, each.now, each.mine) if line]
        if each.now and len({*map(_words, known)}) == len(known):
            reworded.append((each.was.row if each.was else "", each.now.row, kept))
    for was, now in texts.removed_by_person():
        texts.settle_removed(was, now if now and _words(was) == _words(now) else None)
    return texts.with_rows(), reworded


def _settle_unstored(texts: _Agreement, each: _Shown) -> str:
    """Settle an identity by the person's edit, which no ledger has; return the person's row after that."""
    row = each.mine.row
    if each.now:
        row = _unstored_row(each, each.now)
        texts.give(each, row)
    elif each.key[0] == "K" and _has_notes(texts.person, each.mine):
        texts.detach(each, None)
    elif each.was:
        texts.remove(each, unless_edited=True)
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """An identity that the person's text shows: its line in the base (`was`), the machine's (`now`), the person's."""

    key: str
    was: OwnedLine | None
    now: OwnedLine | None
    mine: OwnedLine
    copies: list[OwnedLine]

    @property
    def is_work(self) -> bool:
        """Whether this is a work item or its next step, but no mention in another list."""
        return self.key[0] in "#@" and " " not in self.key

    @property
    def is_untouched(self) -> bool:
        """Whether the person has not changed the line."""
        return self.was is not None and _form(self.mine) == _form(self.was)

    def agrees_with(self, now: OwnedLine) -> bool:
        """Check whether the person's line says the same as the machine's, perhaps in another form."""
        if _form(self.mine) == _form(now):
            return True
        return self.key[0] in "KM" and self.mine.fact == now.fact and not self.is_untouched

    def stays_with_notes(self, ended: Container[str]) -> bool:
        """Check whether the line stays above a person's notes, if there are any, though the machine lacks it."""
        return self.key[0] == "K" or self.key in ended or self.is_work


class _Agreement:
    """The three texts of a merge, their lines by identity, and new rows by place (None: removed) for each text."""

    def __init__(self, base: str, machine: str, person: str) -> None:
        if has_work(machine):
            base, person = with_work_heading(base), with_work_heading(person)
        self.base, self.machine, self.person = base, machine, person
        self._lines = _lines(base, machine, person)
        self._old, self._new, self._own = (
            by_identity((line.key, line) for line in each if line.key) for each in self._lines
        )
        self.in_base: dict[int, str | None] = {}
        self.in_machine: dict[int, str | None] = {}
        self.in_person: dict[int, str | None] = {}

    def of_person(self) -> Iterator[_Shown]:
        """Yield the identities that the person's text shows, without changed mentions of work in other lists.

        No work item or fact is changed by such a mention, so it stays as the person's own line.
        """
        for key, copies in self._own.items():
            was, now = (each[key][0] if key in each else None for each in (self._old, self._new))
            mine = next((each for each in copies if was and _form(each) == _form(was)), copies[0])
            shown = _Shown(key=key, was=was, now=now, mine=mine, copies=copies)
            if not (key[0] == "@" and " " in key and was and not shown.is_untouched):
                yield shown

    def removed_by_person(self) -> Iterator[tuple[OwnedLine, OwnedLine | None]]:
        """Yield the base's line and the machine's line (if any) of each identity that the person's text lacks."""
        for key in self._old.keys() - self._own.keys():
            yield self._old[key][0], self._new[key][0] if key in self._new else None

    def give(self, each: _Shown, row: str) -> None:
        """Give an identity that machine and person show the same row in all texts."""
        assert each.now is not None
        self.in_machine |= at_line(each.now, row)
        self.in_person |= at_line(each.mine, row)
        self.in_base |= at_line(each.was, row) if each.was else {}

    def detach(self, each: _Shown, row: str | None) -> None:
        """Let the person's line stay, in another row if one is given, though the machine has it no longer."""
        self.in_base |= at_line(each.was, None) if each.was else {}
        self.in_person |= at_line(each.mine, row) if row is not None else {}

    def remove(self, each: _Shown, *, unless_edited: bool) -> None:
        """Remove a line that the machine no longer has; with `unless_edited`, not if the person changed it."""
        assert each.was is not None
        stays = unless_edited and not each.is_untouched
        self.in_base |= at_line(each.was, None if stays else each.mine.row)

    def settle_removed(self, was: OwnedLine, now: OwnedLine | None) -> None:
        """Let a line that the person removed stay away, though the machine shows it as `now`.

        With None, it comes back if the machine shows it: the base lacks it, so it counts as the machine's addition.
        """
        self.in_base |= at_line(was, now.row if now else None)
        if not now:
            self.in_base |= dict.fromkeys(_below_entry(was, self.base, self.person))

    def with_rows(self) -> tuple[str, str, str]:
        """Return the three texts with their new rows; a `- None` line is marked with the name of its section."""
        texts, rows = (self.base, self.machine, self.person), (self.in_base, self.in_machine, self.in_person)
        for changed, lines in zip(rows, self._lines, strict=True):
            for line in lines:
                if line.key[:1] == "-" and (shown := changed.get(line.place, line.row)):
                    changed[line.place] = f"{shown}{_MARK}{line.section}"
        base, machine, person = map(with_rows, texts, rows)
        return base, machine, person


def _unstored_row(each: _Shown, now: OwnedLine) -> str:
    """Return the common row for an identity if the person's edit is not in the ledgers."""
    if each.agrees_with(now):
        return each.mine.row
    if each.is_untouched or each.key[0] == "=":
        return _machines_row(now, each.mine)
    if each.was and each.was.plan and now.plan and each.mine.plan:
        return render_line(merged_line(each.was.plan, now.plan, each.mine.plan))
    return each.mine.row


def _machines_row(now: OwnedLine, mine: OwnedLine) -> str:
    """Return the machine's row, with the person's comments at its end."""
    return now.row.removesuffix(_tail(now)) + (_tail(mine) or _tail(now))


def _has_notes(text: str, line: OwnedLine) -> bool:
    """Check whether a person's indented text follows a list item."""
    row = "".join(split_lines(text)[line.places.stop : line.places.stop + 1])
    return row[:1] in (" ", "\t") and bool(row.strip()) and line.places.stop not in owned_keys(text)


def _below_entry(line: OwnedLine, base: str, person: str) -> Iterator[int]:
    """Yield the places of the machine's rows below an entry that the person removed as well: its full text and state.

    If they stayed in the base, they would stay deleted even if the entry comes back, and a new entry in their place
    would look like a rewording of them.
    """
    kept = {*split_lines(person)}
    for place, row in enumerate(split_lines(base)) if line.row.startswith("#") else ():
        if place > line.places[-1] and row.strip():
            if not (row.startswith(">") or is_machines(row)):
                return
            if row not in kept:
                yield place


def _stays_away(was: OwnedLine, now: OwnedLine, loose: LooseFacts) -> bool:
    """Check whether a line that the person removed stays away, or stands in another form, although the machine has it.

    A line that repeats a work item or an operation is back when it says something new.
    """
    if now.key[0] == "@" and " " in now.key:
        return _form(was) == _form(now)
    return now.key[0] in "@=-" or bool(now.fact and loose.has(now.key, now.fact.text))


def _lines(base: str, machine: str, person: str) -> list[list[OwnedLine]]:
    """Return the lines of each text that have an identity, or are not the same in all three."""
    alike = frozenset(base.split("\n")).intersection(machine.split("\n"), person.split("\n"))
    # A `- None` line in a section that the machine does not write is a person's.
    machines = {block.title.strip().lower() for text in (base, machine) for block in split_blocks(text)}
    return [
        [line for line in owned_lines(text, alike) if line.key[:1] != "-" or line.section in machines]
        for text in (base, machine, person)
    ]


def at_line(line: OwnedLine, row: str | None) -> dict[int, str | None]:
    """Map the place of a line to a new row, and its other rows to None; see `with_rows`."""
    return {**dict.fromkeys(line.places), line.place: row}


def _form(line: OwnedLine) -> object:
    """Return a key that is equal for rows with the same content and state, whatever their formatting."""
    plan = line.plan and replace(line.plan, title=as_typed(line.plan.title))
    return plan or as_typed(_LIST_MARK.sub("- ", squeeze(line.row)))


def _words(line: OwnedLine) -> object:
    """Return the part of a row that people reword: a work item's title, a fact, or else the entire row."""
    return line.plan.title if line.plan else line.fact.text if line.fact else line.row


def _tail(line: OwnedLine) -> str:
    """Return the comments at the end of a row."""
    if line.plan:
        return line.plan.tail
    row = line.row.rstrip()
    return line.row[len(row.removesuffix(PIN).rstrip()) :] if line.fact and row.endswith(PIN) else ""


def with_rows(text: str, changed: Mapping[int, str | None]) -> str:
    """Replace rows by place, or remove those that map to None; line ends stay."""
    if not changed:
        return text
    rows: list[str] = []
    for place, row in enumerate(text.split("\n")):
        new = changed.get(place, row)
        if new is not None:
            rows.append(new.replace("\n", "\r\n") + "\r" if place in changed and row.endswith("\r") else new)
    return "\n".join(rows)


def unmarked(found: Merged) -> Merged:
    """Remove the marks from a merged text, and `- None` from sections that are not empty."""
    lines = found.text.split("\n")
    surplus: set[int] = set()
    for block, below in pairwise([*split_blocks(found.text), None]):
        places = block.rows[1:] if block else ()
        marked = {place for place in places if _MARK in lines[place]}
        if (below and below.level > 2) or any(lines[place].strip() for place in places if place not in marked):
            surplus |= marked
    return Merged(
        text=_MARKED.sub("", "\n".join(line for place, line in enumerate(lines) if place not in surplus)),
        conflicts=tuple(
            Conflict(
                line=each.line - sum(place < each.line for place in surplus),
                **{side: _MARKED.sub("", getattr(each, side)) for side in ("base", "machine", "person")},
            )
            for each in found.conflicts
        ),
    )
