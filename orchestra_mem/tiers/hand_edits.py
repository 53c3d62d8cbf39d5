"""What people say of facts by editing the episodic documents: their facts are facts like any other.

A fact that a person takes out is shown nowhere again; one that is reworded says what the person says; one that is added
is listed, searched and never brought under by the machine. Doing it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from orchestra_mem.core.documents.owned_lines import Difference, Told, fact_edits, reworded, shows
from orchestra_mem.core.documents.plan_lines import has_work
from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.ports import Ledger
from orchestra_mem.tiers.document_writer import PersonText
from orchestra_mem.types import Author, DocumentName, MustKeep, MustKeepKind, MustKeepStatus

# What a person took the trouble to write counts as much as what an operation was marked critical for.
WEIGHT = 3.0


def fact_changes(
    texts: Mapping[str, PersonText], ledger: Ledger, now: datetime
) -> tuple[list[MustKeep], list[tuple[MustKeep, MustKeep]]]:
    """The facts that people have added to documents, and those that they changed (before, now)."""
    plan = texts.get(DocumentName.WORK_PLAN)
    edits = fact_edits(
        {name: (text.before, text.said) for name, text in texts.items()},
        work=plan is not None and has_work(plan.base),
    )
    numbers = sorted(int(number[1:]) for number in {*edits.gone, *edits.said})
    edited = [(fact, _edited(fact, edits)) for fact in ledger.must_keeps_by_id(numbers)]
    new = _new(edits.added, ledger.next_must_keep_id(), now)
    return new, [(before, after) for before, after in edited if after != before]


def _new(added: Sequence[Told], first: int, now: datetime) -> list[MustKeep]:
    return [
        MustKeep(
            kind=MustKeepKind(kind),
            text=visible(text),
            operation=0,
            timestamp=now,
            identifiers=find_identifiers(visible(text)),
            id=number,
            weight=WEIGHT,
            author=Author.PERSON,
        )
        for number, (kind, text, _) in enumerate(added, first)
        if kind
    ]


def _edited(fact: MustKeep, edits: Difference[Told]) -> MustKeep:
    """A fact as a person's edits leave it: taken out, brought back, or in other words."""
    if f"K{fact.id}" in edits.gone:
        return replace(fact, status=MustKeepStatus.REMOVED, author=Author.PERSON)
    if fact.status is MustKeepStatus.REMOVED:
        fact = replace(fact, status=MustKeepStatus.STANDING)
    was, (_, now, stands) = edits.said[f"K{fact.id}"]
    said = visible(reworded(fact.text, was[1] if was else "", now))
    if shows(now, fact.text) or squeeze(said) == squeeze(fact.text):
        return fact
    if squeeze(said) == squeeze(fact.found):  # what a person said of it is taken back
        return replace(fact, text=fact.found, found="", identifiers=find_identifiers(fact.found))
    found = (fact.found or fact.text) if fact.operation else ""
    # In a person's words, it is not brought under by the machine.
    status = MustKeepStatus.STANDING if stands else fact.status
    return replace(
        fact,
        text=said,
        found=found,
        identifiers=find_identifiers(said),
        weight=WEIGHT,
        author=Author.PERSON,
        status=status,
    )
