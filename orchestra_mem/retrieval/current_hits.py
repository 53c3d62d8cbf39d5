"""Bring the hits of a search up to date with the ledger, and mark what has been superseded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from orchestra_mem.core.search.chunking import chunk_fact
from orchestra_mem.core.search.echoes import plain_words
from orchestra_mem.core.summaries.kept import kept_numbers, with_states
from orchestra_mem.ports import Ledger
from orchestra_mem.search_types import Chunk, Hit
from orchestra_mem.types import MustKeep, MustKeepStatus


def current(hits: Sequence[Hit], ledger: Ledger, reindex: Callable[[Hit, Chunk], object]) -> Iterator[Hit]:
    """Yield the hits, leaving out facts that have been superseded, done or removed since they were indexed.

    A fact that a person has reworded is yielded with its new text and passed to `reindex`. The fact lines of a summary
    show the facts' current states, as in the summary's document.
    """
    numbers = {number for hit in hits for number in _facts_in(hit)}
    facts = {fact.id: fact for fact in ledger.must_keeps_by_id(sorted(numbers))} if numbers else {}
    for hit in hits:
        chunk = hit.chunk
        if _letter(hit) == "S":
            text = with_states(chunk.text, facts)
            if not text.strip():
                continue
            chunk = replace(chunk, text=text)
        elif _letter(hit) == "K":
            fact = facts.get(int(chunk.source[1:]))
            if fact is None or fact.status is not MustKeepStatus.STANDING:
                continue
            if fact.text != chunk.text:
                chunk = chunk_fact(fact)
                reindex(hit, chunk)
        yield hit if chunk is hit.chunk else replace(hit, chunk=chunk)


def marked(hits: Sequence[Hit], ledger: Ledger) -> list[Hit]:
    """Mark operations of which every fact has been superseded; the hit of what superseded one comes before it."""
    operations = {hit.chunk.operation for hit in hits if hit.chunk.operation and _letter(hit) != "K"}
    told: defaultdict[int, list[MustKeep]] = defaultdict(list)
    for fact in ledger.must_keeps_of(sorted(operations)) if operations else ():
        told[fact.operation].append(fact)
    replaced = ((hit.id, _superseded(hit, told[hit.chunk.operation])) for hit in hits)
    gone = {number: fact for number, fact in replaced if fact is not None}
    numbers = {fact.superseded_by for fact in gone.values()}
    newer = {fact.id: fact for fact in ledger.must_keeps_by_id(sorted(numbers))} if numbers else {}
    found = list(hits)
    for number, old in gone.items():
        by = newer.get(old.superseded_by)
        if by is None or plain_words(by.text) == plain_words(old.text):  # the same, said again
            continue
        at = next(place for place, hit in enumerate(found) if hit.id == number)
        found[at] = replace(found[at], superseded_by=f"K{by.id}")
        names = {f"K{by.id}", f"op {by.operation}"}
        later = next((place for place in range(at, len(found)) if found[place].chunk.source in names), None)
        if later is not None:
            found.insert(at, replace(found.pop(later), perhaps=found[at].perhaps))
    return found


def _superseded(hit: Hit, facts: Iterable[MustKeep]) -> MustKeep | None:
    """Return the last fact of a hit, if another fact has superseded each of its facts."""
    words = plain_words(hit.chunk.text) if _letter(hit) != "K" else ""
    here = [fact for fact in facts if words and plain_words(fact.found or fact.text) in words]
    is_gone = all(fact.status is MustKeepStatus.SUPERSEDED and fact.superseded_by for fact in here)
    return here[-1] if here and is_gone else None


def _facts_in(hit: Hit) -> list[int]:
    """Return the numbers of the facts that a hit shows."""
    if _letter(hit) == "K":
        return [int(hit.chunk.source[1:])]
    return kept_numbers(hit.chunk.text) if _letter(hit) == "S" else []


def _letter(hit: Hit) -> str:
    """Return the letter before the number of a hit's source: `K` for a fact, `S` for a summary; empty for others."""
    return hit.chunk.source[0] if hit.chunk.source[1:].isdigit() else ""
