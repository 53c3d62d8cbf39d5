"""Three-way merge of an episodic document that both the machine and a person have changed, line by line. No I/O.

The machine's lines have an identity: the number of a fact (`K12`) or work item (`#5`), the item that a next step names,
the label of a counter, or the section that a `- None` line marks as empty. Before the merge, each identity that both
sides have gets the same row in all three texts. `merge` then only places these rows, and merges the text between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.conflicts import Conflict, Merged, mark
from orchestra_mem.core.documents.line_agreement import (
    agreed_by_people,
    agreed_on_stale_edit,
    agreed_once_stored,
    unmarked,
)
from orchestra_mem.core.documents.markdown import front_matter_fault, split_blocks, without_front_matter
from orchestra_mem.core.documents.merge import merge
from orchestra_mem.core.documents.owned_lines import free_rows, owned_keys
from orchestra_mem.core.documents.plan_lines import has_work, plan_lines
from orchestra_mem.core.documents.signature import Copy, is_later

# Largest saved change, in lines, that an editor may have undone before its next save.
_MOST_TAKEN_BACK = 4
_TIME = re.compile(r"^(?P<key>written|updated|\*\*Last Updated\*\*): [^\r\n]*", re.MULTILINE)
_NUMBER = re.compile(r" \([KM]\d+\)|(?<=\] )#\d+ ")


def merged(base: str | None, machine: str, person: str, ended: Container[str] = ()) -> Merged:
    """Merge the machine's new text into a document, after the person's edits were stored in the ledgers.

    Args:
        base: Last text of the machine; None if it has never written the document.
        machine: New text of the machine, rendered after the person's edits of the machine's lines were stored.
        person: Current text of the document.
        ended: Numbers of facts and catalog items that no longer stand. A line of the machine with a person's notes
            below it stays above them, struck out if it has ended or is no next step any more.
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
        base, machine, person = agreed_once_stored(base, machine, person, ended)
    rows = split_lines(machine)
    # Work lines take the machine's order: the work tracker already knows how a person reordered them. In a section of
    # the person's own they stay where they are.
    keys = owned_keys(machine) if has_work(machine) else {}
    own = split_lines(person) if keys else []
    stay = {own[line.place] for line in plan_lines(person) if not line.section} if keys else set()
    work = {rows[place] for place, key in keys.items() if key[0] in "#@"} - stay
    return unmarked(merge(base, machine, person, follow=work))


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
    base, left, person = agreed_on_stale_edit(opened, left, person, free)
    base = "\n".join(row for row in base.split("\n") if row.removesuffix("\r") not in free)
    return unmarked(merge(base, left, person, both=True)).text


def ancestor(known: Sequence[str], text: str) -> str:
    """Reconstruct the text that was edited into `text`, from the texts `known`, in the order of saving.

    The editor last had the newest save that left a trace in `text`: a line that the save added is there, or a line that
    the save removed is missing. A small change may also have been undone without a trace. If no save qualifies, the
    editor had the oldest text. Lines of `text` that the newest text lacks count as restored; see `undone`.
    """
    lines, *counts = (Counter(filter(str.strip, split_lines(each))) for each in (text, *known))
    for (was, now), saved in reversed(list(zip(pairwise(counts), known[1:], strict=True))):
        came, went = now - was, was - now
        if came & lines or went - lines or (came + went).total() <= _MOST_TAKEN_BACK:
            return undone(saved, known[-1], text)
    return undone(known[0], known[-1], text)


def nearest(known: Sequence[str], text: str) -> str:
    """Return the text in `known` (in the order of writing) that differs from `text` in the fewest lines.

    If the first of several is nearest, `text` may be older than all. Then no line may count as deleted; see `shared`.
    """
    lines, *counts = (Counter(filter(str.strip, split_lines(each))) for each in (text, *known))
    distances = [((lines - count) + (count - lines)).total() for count in counts]
    place = distances.index(min(distances))
    return known[place] if place or known[0] == known[-1] else shared(known[-1], text)


def shared(text: str, said: str) -> str:
    """Reconstruct the unknown text that a person edited into `said`, given the machine's current `text`.

    The result has the rows of `said` that are about work or also in `text`, so that nothing counts as deleted.
    """
    rows, keys = {*split_lines(text)}, owned_keys(said)
    return "\n".join(
        row
        for place, row in enumerate(said.split("\n"))
        if row.removesuffix("\r") in rows or keys.get(place, "K")[0] not in "KM"
    )


def undone(opened: str, later: str, said: str) -> str:
    """Reconstruct the text that was edited into `said`, from the text that the editor had `opened` and a `later` one.

    The result is the later text without lines that neither `opened` nor `said` has: the editor may never have had them.
    Lines of `said` that the later text lacks were restored, for example by an undo, and count as new.
    """
    there = {*split_lines(opened), *split_lines(said)}
    if there.issuperset(split_lines(later)):
        return later
    keys, known = owned_keys(later), {*owned_keys(said).values()}
    return "\n".join(
        row
        for place, row in enumerate(later.split("\n"))
        if not row.strip() or row.removesuffix("\r") in there or keys.get(place) in known
    )


def merge_people(opened: str, theirs: str, mine: str) -> Merged:
    """Merge two people's edits of the text `opened`, deletions included.

    If both changed the same free lines, both versions are kept. If both reworded a fact or task, `mine` is kept and
    `theirs` reported as a conflict. If one deleted a fact or task that the other reworded, the reworded line is kept.
    """
    texts, reworded = agreed_by_people(opened, theirs, mine)
    found = unmarked(merge(*texts, both=True))
    places = {row: place for place, row in reversed([*enumerate(split_lines(found.text), 1)])}
    return Merged(
        text=found.text,
        conflicts=tuple(
            Conflict(line=places[stands], base=was and f"{was}\n", machine=f"{other}\n", person=f"{stands}\n")
            for was, other, stands in reworded
            if stands in places
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
