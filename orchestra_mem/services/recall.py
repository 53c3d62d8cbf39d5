"""Going back to what was: the originals behind summaries and facts, the loss ledger, lines that hold a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.identifiers import missing_identifiers
from orchestra_mem.errors import NotFoundError
from orchestra_mem.ports import EventLog, Ledger
from orchestra_mem.types import MustKeep, Operation, OperationFilter, Summary

_REFERENCE = re.compile(r"\s*(?:(?P<kind>S|K|op|O|#)\s*)?(?P<number>\d{1,18})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The originals behind a reference: operations as they were recorded, and what led to them."""

    reference: str
    operations: tuple[Operation, ...]
    summary: Summary | None = None
    fact: MustKeep | None = None


class Recall:
    """Looks things up in the event log and the ledger. Holds nothing."""

    def __init__(self, log: EventLog, ledger: Ledger) -> None:
        self._log = log
        self._ledger = ledger

    def expand(self, reference: str | int) -> Expansion:
        """Follow `S12` (a summary; so does a mere number), `K7` (a fact) or `op 104` to the operations behind it.

        Raises:
            NotFoundError: it names nothing.
        """
        match = _REFERENCE.fullmatch(str(reference))
        if match is None:
            raise NotFoundError(
                f"{reference!r} names nothing: give S12 for a summary, K7 for a fact, op104 for an operation"
            )
        number, kind = int(match["number"]), (match["kind"] or "S").upper()
        if kind == "K":
            fact = self._ledger.must_keep(number)
            # What a person wrote by hand stands in no operation.
            behind = (self._log.operation(fact.operation),) if fact.operation else ()
            return Expansion(reference=f"K{number}", operations=behind, fact=fact)
        if kind in {"OP", "O", "#"}:
            return Expansion(reference=f"op {number}", operations=(self._log.operation(number),))
        summary = self._ledger.summary(number)
        return Expansion(reference=f"S{number}", operations=tuple(self._covered(summary)), summary=summary)

    def _covered(self, summary: Summary) -> list[Operation]:
        return self._log.operations(
            OperationFilter(session=summary.session, after=summary.first_operation - 1, through=summary.last_operation)
        )

    def losses(self, session: str | None = None, limit: int | None = None) -> list[Summary]:
        """Summaries in the order of their making, each with the identifiers that it dropped; of many the newest.

        What was dropped is found by comparing again: a level-1 summary with its operations, a higher one with the
        summaries in it.
        """
        whole = self._log.session(session).id if session else None
        found = sorted(self._ledger.summaries(whole), key=lambda summary: summary.id)
        if limit is not None:
            found = found[-limit:] if limit > 0 else []
        return [replace(summary, dropped=self._dropped(summary)) for summary in found]

    def _dropped(self, summary: Summary) -> tuple[str, ...]:
        if summary.children:
            source = "\n".join(self._ledger.summary(child).text for child in summary.children)
        else:
            source = "\n".join(plain_text(operation) for operation in self._covered(summary))
        return missing_identifiers(source, summary.text)

    @staticmethod
    def best_lines(query: str, lines: Sequence[str], max_results: int) -> list[str]:
        """The lines that hold most words of a query, upper and lower case alike; of equal ones the first."""
        words = set(query.casefold().split())
        scored: list[tuple[int, int, str]] = []
        for position, line in enumerate(lines):
            folded = line.casefold()
            score = sum(word in folded for word in words)
            if score:
                scored.append((-score, position, line))
        return list(dict.fromkeys(line for _, _, line in sorted(scored)))[: max(0, max_results)]
