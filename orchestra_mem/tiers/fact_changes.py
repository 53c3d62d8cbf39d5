"""Find what people's edits of the documents change about facts.

A deleted fact is not shown again, a reworded fact takes the person's text, and an added fact is listed and searched
like any other. Applying an edit twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from orchestra_mem.core.documents.fact_lines import LooseFacts, Told, fact_edits, reworded, shows
from orchestra_mem.core.documents.markdown import is_plainer
from orchestra_mem.core.documents.owned_lines import Difference
from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.stores import Ledger
from orchestra_mem.tiers.edited_text import EditedText
from orchestra_mem.tiers.fact_extractor import HEAVIEST, RECURRING
from orchestra_mem.types import Author, DocumentName, MustKeep, MustKeepKind, MustKeepStatus

_STANDING, _SUPERSEDED = MustKeepStatus.STANDING, MustKeepStatus.SUPERSEDED
_TO_DO = (MustKeepKind.OPEN_ITEM, MustKeepKind.FAILURE)
_MOST_ALIKE = 100  # most facts in the same words that an edit counts for


def fact_changes(
    texts: Mapping[str, EditedText], ledger: Ledger, now: datetime
) -> tuple[list[MustKeep], list[tuple[MustKeep, MustKeep]]]:
    """Return the facts that people added to documents, and pairs (before, after) of the facts that they changed.

    A line that brings along a number of no fact keeps it: if an older database is put back, its facts are in its lines.
    """
    plan = texts.get(DocumentName.WORK_PLAN)
    edits = fact_edits(
        {name: (text.before, text.said) for name, text in texts.items()},
        work=plan is not None and plan.has_work,
        known=partial(_texts_of, ledger),
    )
    found = ledger.must_keeps_by_id(sorted(int(number[1:]) for number in {*edits.gone, *edits.said}))
    edited = [(fact, _edited(fact, edits)) for fact in found]
    known, said = {fact.id for fact in found}, [(int(key[1:]), told) for key, (_, told) in edits.said.items()]
    brought = sorted((number, told) for number, told in said if told[0] and number not in known)
    first = max([ledger.next_must_keep_id(), *(number + 1 for number, _ in brought)])
    new = [_new(number, told, now) for number, told in (*brought, *enumerate(edits.added, first)) if told[0]]
    changed = [(before, after) for before, after in edited if after != before]
    before = LooseFacts([text.before for text in texts.values()])
    return new, [*changed, *_repeated(changed, before, ledger), *_reworded_with(changed, ledger)]


def _repeated(
    changed: Sequence[tuple[MustKeep, MustKeep]], documents: LooseFacts, ledger: Ledger
) -> Iterator[tuple[MustKeep, MustKeep]]:
    """Yield the active facts in the words of edited ones, as pairs (before, after): one line stood for all of them.

    `documents`: The documents before the edits. A fact that had a line of its own there is not repeated.
    """
    if not changed:
        return
    from orchestra_mem.core.facts.candidates import text_key  # loads slowly, and few edits need it

    after_of = {(fact.kind, text_key(fact.text)): after for fact, after in changed if fact.kind not in RECURRING}
    if not after_of:
        return
    alike = ledger.words.newest({key for _, key in after_of}, _MOST_ALIKE)
    numbers = {number for several in alike.values() for number in several} | {*ledger.words.unindexed()}
    others, shown = numbers - {fact.id for fact, _ in changed}, documents.numbers()
    for fact in ledger.must_keeps_by_id(sorted(others)):
        after = after_of.get((fact.kind, text_key(fact.text)))
        if after is None or fact.status is not _STANDING or fact.author is Author.PERSON or f"K{fact.id}" in shown:
            continue
        if after.status is not _STANDING:
            yield fact, replace(fact, status=after.status, author=after.author)
        elif text_key(after.text) != text_key(fact.text):
            yield fact, replace(fact, status=_SUPERSEDED, superseded_by=after.id)


def _reworded_with(changed: Sequence[tuple[MustKeep, MustKeep]], ledger: Ledger) -> Iterator[tuple[MustKeep, MustKeep]]:
    """Yield the facts of another kind that an operation states in a reworded sentence, as pairs (before, after)."""
    now = {(fact.operation, fact.text): after for fact, after in changed if fact.operation and after.text != fact.text}
    edited = {fact.id for fact, _ in changed}
    for fact in ledger.must_keeps_of(sorted({operation for operation, _ in now})) if now else ():
        after = now.get((fact.operation, fact.text))
        if after and {fact.status, after.status} == {_STANDING} and fact.id not in edited:
            yield fact, replace(after, id=fact.id, kind=fact.kind)


def _texts_of(ledger: Ledger, numbers: Collection[str]) -> dict[str, set[str]]:
    """Return the texts of facts by number: the present one, and the one found in an operation."""
    facts = ledger.must_keeps_by_id([int(number[1:]) for number in numbers])
    return {f"K{fact.id}": {fact.text, fact.found or fact.text} for fact in facts}


def _new(number: int, told: Told, now: datetime) -> MustKeep:
    kind, text, status = MustKeepKind(str(told[0])), visible(told[1]), told[2]
    if status is MustKeepStatus.DONE and kind not in _TO_DO:
        status = _STANDING
    return MustKeep(
        kind=kind, text=text, operation=0, timestamp=now, identifiers=find_identifiers(text),
        id=number, weight=HEAVIEST, author=Author.PERSON, status=status,
    )  # fmt: skip


def _edited(fact: MustKeep, edits: Difference[Told]) -> MustKeep:
    """Return a fact after a person's edits: removed, done, restored, or reworded."""
    is_closed = fact.status is MustKeepStatus.DONE and fact.author is Author.PERSON
    if f"K{fact.id}" in edits.gone or edits.said[f"K{fact.id}"][1][2] is MustKeepStatus.REMOVED:
        by = fact.superseded_by if fact.status is _SUPERSEDED else 0  # of an active fact, only a doubt
        removed = replace(fact, status=MustKeepStatus.REMOVED, author=Author.PERSON, superseded_by=by)
        return fact if is_closed else removed
    was, (_, now, status) = edits.said[f"K{fact.id}"]
    if status is MustKeepStatus.DONE and fact.kind in _TO_DO:
        fact = replace(fact, status=status, author=Author.PERSON)
    elif is_closed or fact.status is MustKeepStatus.REMOVED:
        is_replaced = status is _SUPERSEDED and fact.superseded_by
        fact = replace(fact, status=status if is_replaced else _STANDING)
    elif was and (was[2], status) == (_SUPERSEDED, _STANDING):  # the person deleted the mark
        fact = replace(fact, status=_STANDING, superseded_by=0)
    said = visible(reworded(fact.text, was[1] if was else "", now))
    if (shows(now, fact.text) or shows(said, fact.text)) and not is_plainer(said, fact.text):
        return fact
    found = (fact.found or fact.text) if fact.operation else ""
    former = fact.former if fact.text == found else tuple(dict.fromkeys((*fact.former, fact.text)))
    if squeeze(said) == squeeze(fact.found):  # the person undid their rewording
        return replace(fact, text=fact.found, found="", identifiers=find_identifiers(fact.found), former=former)
    # A person's wording overrides the machine: the fact is active unless its line marks it as superseded or done.
    status = _STANDING if status is _STANDING else fact.status
    return replace(
        fact,
        text=said,
        found=found,
        former=former,
        identifiers=find_identifiers(said),
        weight=HEAVIEST,
        author=Author.PERSON,
        status=status,
        superseded_by=0 if status is _STANDING else fact.superseded_by,
    )
