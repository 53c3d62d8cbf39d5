"""Three-way merge of an episodic document that both the machine and a person have changed, line by line. No I/O.

The machine's lines have an identity: the number of a fact (`K12`) or work item (`#5`), the item that a next step names,
the label of a counter, or the section that a `- None` line marks as empty. Before the merge, each identity that both
sides have gets the same row in all three texts. `merge` then only places these rows, and merges the text between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.conflicts import Conflict, Merged, mark
from orchestra_mem.core.documents.fact_lines import LooseFacts
from orchestra_mem.core.documents.markdown import PIN, as_typed, front_matter_fault, split_blocks, without_front_matter
from orchestra_mem.core.documents.merge import merge
from orchestra_mem.core.documents.opened_text import ancestor, nearest, shared
from orchestra_mem.core.documents.owned_lines import (
    OwnedLine,
    at_line,
    by_identity,
    free_rows,
    is_machines,
    owned_keys,
    owned_lines,
    with_rows,
)
from orchestra_mem.core.documents.plan_edits import merged_line
from orchestra_mem.core.documents.plan_lines import has_work, plan_lines, render_line, with_work_heading
from orchestra_mem.core.documents.signature import Copy, is_later
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
_TIME = re.compile(r"^(?P<key>written|updated|\*\*Last Updated\*\*): [^\r\n]*", re.MULTILINE)
_NUMBER = re.compile(r" \([KM]\d+\)|(?<=\] )#\d+ ")


def merged(
    base: str | None, machine: str, person: str, ended: Container[str] = (), others: Iterable[str] = ()
) -> Merged:
    """Merge the machine's new text into a document, after the person's edits were stored in the ledgers.

    Args:
        base: Last text of the machine; None if it has never written the document.
        machine: New text of the machine, rendered after the person's edits of the machine's lines were stored.
        person: Current text of the document.
        ended: Numbers of facts and catalog items that no longer stand. A line of the machine with a person's notes
            below it stays above them, struck out if it has ended or is no next step any more. The line of an ended
            fact that a person wrote or changed is struck out as well.
        others: Texts of other documents, to which a person may have moved lines. Read only if a line is missing.
    """
    if base is None and without_front_matter(person) == person:
        # The machine has never written this document: its text is appended, and the rest is left unchanged.
        return Merged(text=f"{person.rstrip()}\n\n{without_front_matter(machine)}")
    if base is None or is_later(person, base):
        # An older or lost database. The facts it lacks are a person's by now; figures and titles are the machine's.
        known = {*owned_keys(base or "").values()}
        free = {*free_rows(person, {key for key in owned_keys(person).values() if key[0] in "KM#"} - known)}
        base = "\n".join(row for row in person.split("\n") if row.removesuffix("\r") not in free)
    if without_front_matter(person) == person:
        # The person removed the front matter, or damaged it beyond recognition: keep it so, do not merge the machine's.
        base, machine = without_front_matter(base), without_front_matter(machine)
    if base != person:
        base, machine, person = _rows_once_stored(base, machine, person, ended, others).texts()
    rows = split_lines(machine)
    # Work lines take the machine's order: the work tracker already knows how a person reordered them. In a section of
    # the person's own they stay where they are.
    keys = owned_keys(machine) if has_work(machine) else {}
    own = split_lines(person) if keys else []
    stay = {own[line.place] for line in plan_lines(person) if not line.section} if keys else set()
    work = {rows[place] for place, key in keys.items() if key[0] in "#@"} - stay
    return _unmarked(merge(base, machine, person, follow=work))


def apply_stale_edit(opened: str, left: str, person: str, own: Container[str] = ()) -> str:
    """Apply a person's edit of the older text `opened` to `left`, the text that the machine has written since.

    If both wrote at the same place, the machine's additions follow the person's lines: the person never saw these
    additions, so their absence is no deletion. Every free line of `person` is kept. If `left` lacks such a line, a
    second editor or a briefly missing file has dropped it, since the machine removes no free lines. `own`: Numbers of
    facts and items that people wrote, removed or put back; their lines count as free.
    """
    if _has_faulty_front(left) and not _has_faulty_front(person):
        # The front matter was damaged after the person's text was written: repair it from that text.
        left = _head(person) + left[len(_head(left)) :]
    had, has = Counter(free_rows(opened, own)), Counter(free_rows(left, own))
    free = {row for row in free_rows(person, own) if has[row] < max(1, had[row])}
    rows = _rows_before_stored(opened, left, person, free)
    rows.settle_removed(lambda was, now: True)
    base, left, person = rows.texts()
    base = "\n".join(row for row in base.split("\n") if row.removesuffix("\r") not in free)
    return _unmarked(merge(base, left, person, both=True)).text


def merge_people(opened: str, theirs: str, mine: str) -> Merged:
    """Merge two people's edits of the text `opened`, deletions included.

    If both changed the same free lines, both versions are kept. If both reworded a fact or task, `mine` is kept and
    `theirs` reported as a conflict. If one deleted a fact or task that the other reworded, the reworded line is kept.
    """
    rows = _rows_before_stored(opened, theirs, mine)
    rows.settle_removed(lambda was, now: _words(was) == _words(now))
    found = _unmarked(merge(*rows.texts(), both=True))
    places = {row: place for place, row in reversed([*enumerate(split_lines(found.text), 1)])}
    return Merged(
        text=found.text,
        conflicts=tuple(
            Conflict(
                line=places[stands], base=f"{was.row}\n" if was else "", machine=f"{now.row}\n", person=f"{stands}\n"
            )
            for key, was, now, mine in rows.shown()
            if now and len({*map(_words, filter(None, (was, now, mine)))}) == 2 + bool(was)
            if (stands := _edited_row(key, was, now, mine)) in places
        ),
    )


def merge_copy(
    held: Sequence[Copy], theirs: str, mine: Copy, *, machines: tuple[str, str], is_later: bool = True
) -> str:
    """Apply an edit that was saved on this machine to the text of another machine.

    If both changed the same lines, those saved later stay and the other's follow in a conflict block.

    Args:
        held: Earlier texts of this machine's copy, oldest first.
        theirs, mine: Current text of the document, and the copy that was saved on this machine.
        machines: Names of this machine and of the other.
        is_later: Whether the copy was saved after the last person's save of the current text.
    """
    known = [copy.text for copy in held if mine.stamp in (copy.stamp, None)]
    said, *texts = _as_in(theirs, mine.text, *known)
    if not texts:
        opened = shared(theirs, said)  # older than all known texts: no line counts as deleted
    else:
        opened = nearest(texts, said) if mine.stamp is None else ancestor(texts, said)
    earlier, later = (theirs, said) if is_later else (said, theirs)
    return mark(merge_people(opened, earlier, later), machines if is_later else machines[::-1])


def _as_in(theirs: str, *texts: str) -> Iterator[str]:
    """Yield texts with times of writing and numbers of facts and items (`K12`, `M4`, `#5`) taken from `theirs`."""
    times = {found["key"]: found[0] for found in _TIME.finditer(theirs)}
    numbered = {_NUMBER.sub("", row): row for row in theirs.split("\n") if _NUMBER.search(row)}
    known = {*_NUMBER.findall(theirs)}
    for text in texts:
        text = _TIME.sub(lambda found: times.get(found["key"], found[0]), text)
        # A number that `theirs` lacks is that of a deleted line, which came back under another.
        yield "\n".join(
            row if known.intersection(_NUMBER.findall(row)) else numbered.get(_NUMBER.sub("", row), row)
            for row in text.split("\n")
        )


def _has_faulty_front(text: str) -> bool:
    return front_matter_fault(text) is not None or without_front_matter(text).startswith("---")


def _head(text: str) -> str:
    """Return the text above the first heading; empty if there is no heading."""
    blocks = split_blocks(text)
    first = next((position for position, block in enumerate(blocks) if block.level), 0)
    return "".join(block.text for block in blocks[:first])


class _Rows:
    """The lines of a merge's three texts by identity, and new rows by place for each text; see `with_rows`."""

    def __init__(self, base: str, machine: str, person: str) -> None:
        if has_work(machine):
            base, person = with_work_heading(base), with_work_heading(person)
        self.base_text, self.machine_text, self.person_text = base, machine, person
        self._lines = _lines(base, machine, person)
        self._old, self._new, self.own = (by_identity((x.key, x) for x in each if x.key) for each in self._lines)
        self.base: dict[int, str | None] = {}
        self.machine: dict[int, str | None] = {}
        self.person: dict[int, str | None] = {}

    def shown(self) -> Iterator[tuple[str, OwnedLine | None, OwnedLine | None, OwnedLine]]:
        """Yield each identity that the person's text shows, with its lines in the base, the machine's and that text."""
        for key, copies in self.own.items():
            was, now = (each[key][0] if key in each else None for each in (self._old, self._new))
            mine = next((each for each in copies if was and _form(each) == _form(was)), copies[0])
            # An edited mention changes no work item and no fact, so it stays as the person's own line.
            if not (key[0] == "@" and " " in key and was and _form(mine) != _form(was)):
                yield key, was, now, mine

    def agree(self, was: OwnedLine | None, now: OwnedLine, mine: OwnedLine, row: str) -> None:
        """Give the lines of an identity that machine and person show the same row."""
        self.machine |= at_line(now, row)
        self.person |= at_line(mine, row)
        self.base |= at_line(was, row) if was else {}

    def settle_removed(self, stays_away: Callable[[OwnedLine, OwnedLine], bool]) -> None:
        """Settle what the person removed: let lines stay away, or come back if the machine has them.

        Args:
            stays_away: Takes the lines of the base and of the machine; returns whether the line stays away.
        """
        for key in self._old.keys() - self.own.keys():
            was, now = self._old[key][0], self._new[key][0] if key in self._new else None
            if now and stays_away(was, now):
                self.base |= at_line(was, now.row)
            else:  # the base lacks it, so a line of the machine counts as an addition
                self.base |= at_line(was, None) | dict.fromkeys(_below_entry(was, self.base_text, self.person_text))

    def texts(self) -> tuple[str, str, str]:
        """Return the base, the machine's and the person's text with their new rows."""
        for changed, lines in zip((self.base, self.machine, self.person), self._lines, strict=True):
            for line in lines:
                if line.key[:1] == "-" and (shown := changed.get(line.place, line.row)):
                    changed[line.place] = f"{shown}{_MARK}{line.section}"
        return (
            with_rows(self.base_text, self.base),
            with_rows(self.machine_text, self.machine),
            with_rows(self.person_text, self.person),
        )


def _rows_once_stored(base: str, machine: str, person: str, ended: Container[str], others: Iterable[str]) -> _Rows:
    """Give lines common rows if the ledgers have the person's edits, and the machine's text shows them; see `merged`.

    A fact or work item that the person removed comes back if the machine still has it, unless the `others`, or a row
    that is no list item, have the fact. A row that the machine no longer has is removed, but not above notes.
    """
    rows, machines = _Rows(base, machine, person), {block.title.strip().lower() for block in split_blocks(machine)}
    for key, was, now, mine in rows.shown():
        is_work = key[0] in "#@" and " " not in key  # no mention in another list
        is_over = key[0] == "K" and key in ended and not (was and _form(mine) == _form(was))
        if now:
            rows.agree(was, now, mine, mine.row if _says_same(key, was, now, mine) else _machines_row(now, mine))
            figures = [each for each in rows.own[key] if key[0] == "=" and each != mine]
            surplus = [
                each
                for each in figures
                if each.section == mine.section or (each.row.startswith("**") and each.section in machines)
            ]
            rows.person |= dict.fromkeys(each.place for each in surplus)  # git has kept both sides' figures
        elif is_over or ((key[0] == "K" or key in ended or is_work) and _has_notes(rows.person_text, mine)):
            rows.base |= at_line(was, None) if was else {}
            rows.person |= at_line(mine, _ITEM.sub(_STRUCK, mine.row)) if key in ended or key[0] == "@" else {}
        elif was:
            rows.base |= at_line(was, mine.row if key[0] == "#" or _form(mine) == _form(was) else None)
        elif key[0] == "@" and is_work:
            rows.person |= dict.fromkeys([place for copy in rows.own[key] for place in copy.places])
    loose = LooseFacts(chain([rows.person_text], others))
    rows.settle_removed(lambda was, now: _stays_away(was, now, loose))
    return rows


def _rows_before_stored(base: str, machine: str, person: str, free: Collection[str] = ()) -> _Rows:
    """Give lines common rows if no ledger has the person's edits yet: what the person changed stays.

    Lines that the person removed are not settled. `free`: The person's rows that must not change.
    """
    rows = _Rows(base, machine, person)
    for key, was, now, mine in rows.shown():
        if free and any(row in free for row in mine.row.split("\n")):
            continue
        if now:
            rows.agree(was, now, mine, _edited_row(key, was, now, mine))
        elif was:
            stays = _form(mine) != _form(was) or (key[0] == "K" and _has_notes(rows.person_text, mine))
            rows.base |= at_line(was, None if stays else mine.row)
    return rows


def _says_same(key: str, was: OwnedLine | None, now: OwnedLine, mine: OwnedLine) -> bool:
    """Check whether the person's line says what the machine's says, perhaps in another form."""
    if _form(mine) == _form(now):
        return True
    return key[0] in "KM" and mine.fact == now.fact and not (was is not None and _form(mine) == _form(was))


def _edited_row(key: str, was: OwnedLine | None, now: OwnedLine, mine: OwnedLine) -> str:
    """Return the common row of a line if the person's edit of it is not in the ledgers."""
    if _says_same(key, was, now, mine):
        return mine.row
    if key[0] == "=" or (was is not None and _form(mine) == _form(was)):
        return _machines_row(now, mine)
    if was and was.plan and now.plan and mine.plan:
        return render_line(merged_line(was.plan, now.plan, mine.plan))
    return mine.row


def _machines_row(now: OwnedLine, mine: OwnedLine) -> str:
    """Return the machine's row, with the person's comments at its end; in a section of their own indented as theirs."""
    row = now.row.removesuffix(_tail(now)) + (_tail(mine) or _tail(now))
    is_own = mine.plan is not None and not mine.plan.section
    return mine.row[: len(mine.row) - len(mine.row.lstrip())] + row.lstrip() if is_own else row


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


def _unmarked(found: Merged) -> Merged:
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
