"""Betters a summary of the ledger with a model; the draft waits for an epoch's border."""

from __future__ import annotations

from collections.abc import Callable

from orchestra_mem.compressor import MemoryCompressor
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.summaries.compaction import Draft, Limits, Verdict
from orchestra_mem.core.summaries.model_drafts import Material
from orchestra_mem.job_types import DraftStore, SummaryDraft
from orchestra_mem.ports import Clock, EventLog, Ledger
from orchestra_mem.services.compressed import Compressed
from orchestra_mem.tiers.session_compaction import MOST_READ, source_of
from orchestra_mem.types import OperationFilter, Summary

HIGHER = "summaries"


class SummaryImprover:
    """Makes drafts. Reads what was recorded, never a document."""

    def __init__(
        self,
        compressor: MemoryCompressor,
        *,
        log: EventLog,
        ledger: Ledger,
        drafts: DraftStore,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._compressor = compressor
        self._log = log
        self._ledger = ledger
        self._drafts = drafts
        self._clock = clock
        self._limits = limits

    @staticmethod
    def why_not(summary: Summary) -> str:
        """Why a summary stays as it is, in words; empty where it may be bettered."""
        if summary.parent:
            return f"it has gone into S{summary.parent}"
        if summary.edited:
            return "people had changed or taken out some of what it covers, and operations do not tell that"
        return ""

    def improve(
        self, number: int, *, insist: bool = False, cancelled: Callable[[], bool] | None = None
    ) -> Compressed | None:
        """Let the model better a summary; None where it stays as it is.

        Args:
            number: the summary's.
            insist: whether to ask even where the model has mostly failed with such content.
            cancelled: asked again and again; where it says yes, it ends there.

        Raises:
            NotFoundError: there is no such summary.
            InterruptedGenerationError: `cancelled` said so.
        """
        summary = self._ledger.summary(number)
        if self.why_not(summary):
            return None
        material, target, content = self._material(summary)
        done = self._compressor.improve(
            material,
            _draft(summary),
            target_tokens=target,
            content=content,
            summary=number,
            insist=insist,
            cancelled=cancelled,
        )
        if done.verdict.good:
            self._drafts.put(
                SummaryDraft(
                    summary=number,
                    base=summary.text,
                    text=done.text,
                    tokens=done.tokens,
                    method=done.method,
                    must_keeps=done.must_keeps,
                    put_back=done.put_back,
                    verdict=done.verdict.value,
                    seconds=done.talk.seconds,
                    created=self._clock(),
                )
            )
        return done

    def _material(self, summary: Summary) -> tuple[Material, int, str]:
        """What a summary is of, how large it may be, and the kind of what it is of."""
        if summary.children:
            children = [self._ledger.summary(child) for child in summary.children]
            return Material.of_summaries(children), self._limits.summary, HIGHER
        operations = self._log.operations(
            OperationFilter(session=summary.session, after=summary.first_operation - 1, through=summary.last_operation)
        )
        facts = self._ledger.must_keeps(first_operation=summary.first_operation, last_operation=summary.last_operation)
        sources = [source_of(operation, plain_text(operation, max_chars=MOST_READ)) for operation in operations]
        types = [operation.type for operation in operations]
        target = int(summary.source_tokens * self._limits.summary / self._limits.segment)
        return Material.of_operations(sources, facts), target, max(dict.fromkeys(types), key=types.count)


def _draft(summary: Summary) -> Draft:
    return Draft(
        text=summary.text,
        tokens=summary.tokens,
        source_tokens=summary.source_tokens,
        must_keeps=summary.must_keeps,
        put_back=summary.put_back,
        verdict=Verdict(tokens=summary.tokens, source_tokens=summary.source_tokens, invented=(), missing=()),
    )
