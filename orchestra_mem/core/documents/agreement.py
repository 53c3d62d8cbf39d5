"""What becomes of an episodic document when machine and person have both changed it. Pure text, line by line.

The machine's lines bear an identity: the number of a fact (`K12`), of a work item (`#5`), the item that a next step
names, what a count counts, or the section that a line calls empty. Of each that both sides have, one row stands in all
three texts before they are merged; so `merge` only decides where it stands, and merges what people wrote between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping
from itertools import pairwise

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.markdown import PIN, front_matter_fault, split_blocks, without_front_matter
from orchestra_mem.core.documents.merge import Conflict, Merged, merge
from orchestra_mem.core.documents.owned_lines import OwnedLine, by_identity, free_rows, owned_keys, owned_lines
from orchestra_mem.core.documents.plan_edits import merged_line
from orchestra_mem.core.documents.plan_lines import has_work, render_line
from orchestra_mem.core.text import squeeze

_OLD_HEADING = re.compile(r"^## Backlog(?=[ \t]*\r?$)", re.MULTILINE)
# Stands between a line that calls a section empty and that section's name while texts are merged: in no document.
_MARK = "\0"
_MARKED = re.compile(rf"{_MARK}[^\r\n]*")


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
        base, machine, person = _agreed(base, machine, person)
    rows = split_lines(machine)
    # The tracker knows the order of work, a person's too.
    keys = owned_keys(machine) if has_work(machine) else {}
    work = {rows[place] for place, key in keys.items() if key[0] in "#@"}
    return _unmarked(merge(base, machine, person, follow=work))


def brought_forward(opened: str, left: str, person: str, own: Container[str] = ()) -> str:
    """What a person did to a text that was `opened`, done to the file that the machine has `left` since.

    Where both wrote at one place, what has come since follows the person's lines: who never saw it has not taken it
    out. Each free line that the person saved stands, as the machine takes none of these back: two editors may have been
    open, or the file was gone for a moment. `own` are the facts that people wrote or took out:
    these count as free.
    """
    if _has_faulty_front(left) and not _has_faulty_front(person):
        # Somebody has put back a text from before that was damaged, which mends it.
        left = _head(person) + left[len(_head(left)) :]
    had, has = Counter(free_rows(opened, own)), Counter(free_rows(left, own))
    free = {row for row in free_rows(person, own) if has[row] < max(1, had[row])}
    base, left, person = _agreed(opened, left, person, free)
    base = "\n".join(row for row in base.split("\n") if row.removesuffix("\r") not in free)
    return _unmarked(merge(base, left, person, both=True)).text


def rebased(opened: str, theirs: str, mine: str) -> Merged:
    """Merge what two people have made of a text that both had `opened`: each one's changes, deletions too.

    Where both changed the same lines of free text, both stand. Of a fact or a task that both reworded mine stands, and
    theirs is a conflict; where one took it out, it stands as the other reworded it.
    """
    reworded: list[tuple[str, str, str]] = []
    found = _unmarked(merge(*_agreed(opened, theirs, mine, frozenset(), reworded), peers=True))
    places = {row: place for place, row in reversed([*enumerate(split_lines(found.text), 1)])}
    return Merged(
        text=found.text,
        conflicts=tuple(
            Conflict(line=places[stands], base=was and f"{was}\n", machine=f"{other}\n", person=f"{stands}\n")
            for was, other, stands in reworded
            if stands in places
        ),
    )


def _has_faulty_front(text: str) -> bool:
    return front_matter_fault(text) is not None or without_front_matter(text).startswith("---")


def _head(text: str) -> str:
    """What stands above the first heading; empty where there is none."""
    blocks = split_blocks(text)
    first = next((position for position, block in enumerate(blocks) if block.level), 0)
    return "".join(block.text for block in blocks[:first])


def _agreed(
    base: str,
    machine: str,
    person: str,
    free: Container[str] | None = None,
    reworded: list[tuple[str, str, str]] | None = None,
) -> tuple[str, str, str]:
    """The three texts with one row for each identity that machine and person both have, but for those that are `free`.

    Of what the machine has no more, a row that the person has not touched goes; one that they changed is theirs. What
    the person took out comes back where the machine's ledger has it nevertheless, and stays away where the texts alone
    can tell, as they do where the person is ahead of the ledgers: then some rows may be free. Where both are
    people's, rows that both have reworded are told in `reworded`: as they were, the machine's, and what stands.
    """
    ahead = free is not None
    if has_work(machine):
        base, person = _with_heading(base), _with_heading(person)
    alike = frozenset(base.split("\n")).intersection(machine.split("\n"), person.split("\n"))
    # Who writes into a section of their own that it is empty is believed.
    machines = {block.title.strip().lower() for text in (base, machine) for block in split_blocks(text)}
    lines = [
        [line for line in owned_lines(text, alike) if line.key and (line.key[0] != "-" or line.section in machines)]
        for text in (base, machine, person)
    ]
    old, new, own = (by_identity((line.key, line) for line in each) for each in lines)
    in_base, in_machine, in_person = rows = [dict[int, str | None](), dict[int, str | None](), dict[int, str | None]()]
    for key, copies in own.items():
        was, now = (each[key][0] if key in each else None for each in (old, new))
        mine = next((each for each in copies if was and _form(each) == _form(was)), copies[0])
        if free and mine.row in free:
            continue
        if now:
            row = in_machine[now.place] = in_person[mine.place] = _row(key, was, now, mine, ahead=ahead)
            said = [each for each in (was, now, mine) if each]
            if reworded is not None and len({*map(_words, said)}) == len(said):
                reworded.append((was.row if was else "", now.row, row))
            if was:
                in_base[was.place] = row
        elif was:
            taken_back = _form(mine) == _form(was) or (key[0] == "#" and not ahead)
            in_base[was.place] = mine.row if taken_back else None
        elif key[0] == "@" and not ahead:
            in_person |= dict.fromkeys([copy.place for copy in copies])
    for key in old.keys() - own.keys():
        stays_away = key in new and (ahead or key[0] in "@=-")
        if reworded is not None and stays_away and _words(old[key][0]) != _words(new[key][0]):
            stays_away = False
        place = old[key][0].place
        in_base[place] = new[key][0].row if stays_away else None
        # What says below an entry of the shared log for whom it is goes with it, or it would stay away from a new one.
        if not stays_away and "".join(base.split("\n")[place + 1 : place + 3]).lstrip().startswith("*Shared by "):
            in_base[place + 2] = None
    for changed, line in ((changed, line) for changed, each in zip(rows, lines, strict=True) for line in each):
        if line.key[0] == "-" and changed.get(line.place, line.row):
            changed[line.place] = f"{line.row}{_MARK}{line.section}"
    return _with_rows(base, in_base), _with_rows(machine, in_machine), _with_rows(person, in_person)


def _with_heading(text: str) -> str:
    """A plan from before there was work, or one that a person has brought back from then, with today's heading."""
    return text if has_work(text) else _OLD_HEADING.sub("## Prioritized Backlog", text, count=1)


def _row(key: str, was: OwnedLine | None, now: OwnedLine, mine: OwnedLine, *, ahead: bool) -> str:
    """The row that stands for an identity. The ledger has heard the person, unless they are `ahead` of it."""
    untouched = was is not None and _form(mine) == _form(was)
    if _form(mine) == _form(now) or (key[0] in "KM" and mine.fact == now.fact and not untouched):
        return mine.row
    if ahead and not untouched and key[0] != "=":
        if was and was.plan and now.plan and mine.plan:
            return render_line(merged_line(was.plan, now.plan, mine.plan))
        return mine.row
    return now.row.removesuffix(_tail(now)) + (_tail(mine) or _tail(now))


def _form(line: OwnedLine) -> object:
    """What is equal for rows that are written alike."""
    return line.plan or (squeeze(line.row) if line.fact else line.row)


def _words(line: OwnedLine) -> object:
    """What people say in a row."""
    return line.plan.title if line.plan else line.fact or line.row


def _tail(line: OwnedLine) -> str:
    """The comments behind a row."""
    if line.plan:
        return line.plan.tail
    row = line.row.rstrip()
    return line.row[len(row.removesuffix(PIN).rstrip()) :] if line.fact and row.endswith(PIN) else ""


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


def _unmarked(found: Merged) -> Merged:
    """A merged text without marks; a section of the machine's says that it is empty only where it is."""
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
