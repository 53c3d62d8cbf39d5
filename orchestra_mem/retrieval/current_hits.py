"""Bring the hits of a search up to date with the ledger, and mark what was superseded, reworded, removed or settled."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestra_mem.core.documents.owned_lines import owned_lines
from orchestra_mem.core.facts.candidates import UNFINISHED
from orchestra_mem.core.search.chunking import chunk_fact
from orchestra_mem.core.search.echoes import plain_words
from orchestra_mem.core.search.terms import is_statement
from orchestra_mem.core.speakers import passage_of
from orchestra_mem.core.text import split_sentences
from orchestra_mem.search_types import Chunk, Hit, Tier
from orchestra_mem.stores import Ledger
from orchestra_mem.types import MustKeep, MustKeepStatus

_MOST_IN_TURN = 8  # facts that supersede each other in turn and are looked up
_REPLACED = frozenset({MustKeepStatus.SUPERSEDED, MustKeepStatus.REMOVED})  # if they name a later fact
_MOSTLY = 0.6  # share of a text that superseded facts must make up, without the reason for them
_REASON = re.compile(r"^(?:Reason|Rationale|Why|Because): .*(?:\n(?![A-Z][\w ]*: ).*)*", re.MULTILINE)
# A label whose lines are passages of their own, or the state of the fact in the heading.
_MESSAGES = frozenset({"message", "user_message", "user_input"})
_NO_CONTENT = re.compile(r"\s*(?:(?:\*\*[^*\n]+\*\*|[\w-]+):|\*(?:Perhaps s|S)uperseded[^*\n]*\*)?\s*")


def current(hits: Sequence[Hit], ledger: Ledger, reindex: Callable[[Hit, Chunk], object]) -> Iterator[Hit]:
    """Yield the hits that have content, without facts that have been superseded, done or removed since.

    A fact that a person has reworded is yielded with its new text and passed to `reindex`. The fact lines of a summary
    show the facts' current states, as in the summary's document.
    """
    numbers = [int(hit.chunk.source[1:]) for hit in hits if source_letter(hit) == "K"]
    facts = {fact.id: fact for fact in ledger.must_keeps_by_id(numbers)} if numbers else {}
    texts = iter(ledger.with_states([hit.chunk.text for hit in hits if source_letter(hit) == "S"]))
    for hit in hits:
        chunk = hit.chunk
        if source_letter(hit) == "S":
            chunk = replace(chunk, text=next(texts))
        elif source_letter(hit) == "K":
            fact = facts.get(int(chunk.source[1:]))
            if fact is None or fact.status is not MustKeepStatus.STANDING:
                continue
            if fact.text != chunk.text:
                chunk = chunk_fact(fact)
                reindex(hit, chunk)
        if not chunk.operation and _NO_CONTENT.fullmatch(chunk.text):
            continue
        yield hit if chunk is hit.chunk else replace(hit, chunk=chunk)


def marked(hits: Sequence[Hit], ledger: Ledger) -> list[Hit]:
    """Mark hits of operations and of lines in documents that say little but what was superseded, reworded or removed.

    The hit of what replaced it is put before. Hits with a failure or an open item are marked if all of the operation's
    are settled.
    """
    operations = {hit.id: hit.chunk.operation for hit in hits if hit.chunk.operation and source_letter(hit) != "K"}
    lines = {hit.id: number for hit in hits if hit.chunk.tier is Tier.EPISODIC and (number := _line_fact(hit.chunk))}
    facts = ledger.must_keeps_of(sorted({*operations.values()})) if operations else []
    # The line of a reworded fact has its new words.
    by_line = ledger.must_keeps_by_id(sorted({*lines.values()})) if lines else []
    stated = {fact.id: replace(fact, found="") for fact in by_line}
    facts_of: defaultdict[int, list[MustKeep]] = defaultdict(list)
    for fact in facts:
        facts_of[fact.operation].append(fact)
    later = _later([*facts, *by_line], ledger)
    found = list(hits)
    for hit in hits:
        line, own = stated.get(lines.get(hit.id, 0)), facts_of[operations.get(hit.id, 0)]
        by = _replaced_by(line.text, [line], later) if line else _replaced_by(hit.chunk.text, own, later)
        if by is None and not _is_settled(hit.chunk.text, own):
            continue
        at = next(place for place, each in enumerate(found) if each.id == hit.id)
        if by is None:
            found[at] = replace(found[at], settled=True)
            continue
        if by.status is MustKeepStatus.REMOVED:
            found[at] = replace(found[at], removed=True)
            continue
        found[at] = replace(found[at], superseded_by=f"K{by.id}")
        names = {f"K{by.id}", f"op {by.operation}"} - {hit.chunk.source}
        newer = next((place for place, each in enumerate(found) if each.chunk.source in names), 0)
        if newer > at and found[newer].perhaps <= found[at].perhaps:
            found.insert(at, found.pop(newer))
    return found


def questions_last(hits: Iterable[Hit]) -> list[Hit]:
    """Mark messages that only ask as `perhaps`, and put them last: what people asked before is hardly an answer."""
    told, asked = list[Hit](), list[Hit]()
    for hit in hits:
        tells = hit.chunk.kind not in _MESSAGES or any(map(is_statement, split_sentences(hit.chunk.text)))
        (told if tells else asked).append(hit)
    return [*told, *(replace(hit, perhaps=True) for hit in asked)]


def _line_fact(chunk: Chunk) -> int:
    """Return the number of the fact that a document's list item, entry, or quote of an entry states; 0 for others."""
    entry = chunk.heading[-1] if chunk.heading and chunk.text[:1] == ">" else chunk.text
    lines = (*owned_lines(chunk.text), *owned_lines(f"### {entry}"))
    return next((int(line.key[1:]) for line in lines if line.key[:1] == "K"), 0)


def _later(facts: Iterable[MustKeep], ledger: Ledger) -> dict[int, MustKeep]:
    """Return the facts that superseded these, and those that superseded them in turn, by id."""
    later: dict[int, MustKeep] = {}
    for _ in range(_MOST_IN_TURN):
        numbers = {fact.superseded_by for fact in facts if fact.status in _REPLACED} - {0, *later}
        if not numbers:
            break
        facts = ledger.must_keeps_by_id(sorted(numbers))
        later |= {fact.id: fact for fact in facts}
    return later


def _replaced_by(text_of_hit: str, facts: Sequence[MustKeep], later: Mapping[int, MustKeep]) -> MustKeep | None:
    """Return the active fact that replaced what a text says, or else a fact of it that a person removed.

    None if a part of it stands, or was only said again.
    """
    words, covered, by = plain_words(_REASON.sub("", text_of_hit)), 0, None
    for fact in facts:
        now = fact
        for _ in range(_MOST_IN_TURN):
            now = later.get(now.superseded_by, now) if now.status in _REPLACED else now
        text = plain_words(passage_of(fact))
        if now.status is MustKeepStatus.STANDING and plain_words(now.text) != text:
            by = now
        elif now is fact and fact.status is MustKeepStatus.REMOVED:
            by = by or fact
        else:
            return None
        covered += len(text) if text in words else 0
    return by if covered > len(words) * _MOSTLY else None


def _is_settled(text_of_hit: str, facts: Sequence[MustKeep]) -> bool:
    """Check whether a text tells failures or open items of its operation, which are all solved or done."""
    due = [fact for fact in facts if fact.kind in UNFINISHED]
    if not due or any(fact.status is not MustKeepStatus.DONE for fact in due):
        return False
    words = plain_words(text_of_hit)
    return any(plain_words(passage_of(fact).partition(" (")[0]) in words for fact in due)  # without a field's subject


def source_letter(hit: Hit) -> str:
    """Return the letter before the number of a hit's source: `K` for a fact, `S` for a summary; empty for others."""
    return hit.chunk.source[0] if hit.chunk.source[1:].isdigit() else ""
