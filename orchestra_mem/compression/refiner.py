"""Betters a summary of the ledger with a model; the draft waits for an epoch's border."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from orchestra_mem.compression.compressed import Compressed
from orchestra_mem.compression.compressor import MemoryCompressor
from orchestra_mem.compression.timeouts import never
from orchestra_mem.core.summaries.compaction import Limits
from orchestra_mem.core.summaries.drafts import Draft, Material
from orchestra_mem.job_types import DraftStore, SummaryDraft
from orchestra_mem.ports import Clock, EventLog, Ledger, TokenCounter
from orchestra_mem.tiers.episodic import section_material
from orchestra_mem.tiers.session_compaction import read_source, told_now
from orchestra_mem.tiers.session_ending import NOTED, with_lines
from orchestra_mem.types import EXTRACTIVE, MustKeepKind, MustKeepStatus, Operation, OperationFilter, Summary

HIGHER, DOCUMENT = "summaries", "document"
# Prose fills the size of a short form with extracts: so much larger may it be with a model's lines in it.
_WITH_LINES = 1.25
_KINDS = {
    "key_accomplishments": MustKeepKind.COMPLETION,
    "decisions_made": MustKeepKind.DECISION,
    "issues_encountered": MustKeepKind.FAILURE,
    "recommended_next_steps": MustKeepKind.OPEN_ITEM,
}


@dataclass(frozen=True, slots=True)
class SummaryRefiner:
    """Makes drafts. Reads what was recorded; of documents, the section alone that a short form is of."""

    compressor: MemoryCompressor
    log: EventLog
    ledger: Ledger
    drafts: DraftStore
    counter: TokenCounter
    clock: Clock
    limits: Limits
    section: Callable[[Summary], str | None]

    def why_not(self, summary: Summary) -> str:
        """Why a summary stays as it is, in words; empty where it may be bettered."""
        if summary.parent:
            return f"it has gone into S{summary.parent}"
        if summary.edited:
            return "people had changed or taken out some of what it covers, and operations do not tell that"
        if summary.document and self.section(summary) is None:
            return f"{summary.document} has another text now"
        return ""

    def improve(self, number: int, *, insist: bool = False, cancelled: Callable[[], bool] = never) -> Compressed | None:
        """Let the model better a summary; None where it stays as it is.

        Args:
            number: the summary's.
            insist: whether to ask even where the model has mostly failed with such content.
            cancelled: asked again and again; where it says yes, it ends there.

        Raises:
            NotFoundError: there is no such summary.
            InterruptedGenerationError: `cancelled` said so.
        """
        summary = self.ledger.summary(number)
        if self.why_not(summary):
            return None
        base = Draft(
            text=summary.text,
            tokens=summary.tokens,
            source_tokens=summary.source_tokens,
            must_keeps=summary.must_keeps,
            put_back=summary.put_back,
        )
        if summary.level or summary.document:
            material, target, content = self._material(summary)
            done = self.compressor.improve(
                material,
                base,
                target_tokens=target,
                content=content,
                subject=f"S{number}",
                insist=insist,
                cancelled=cancelled,
            )
        else:
            done = self._session(summary, base, insist=insist, cancelled=cancelled)
        if done.verdict.good:
            self.drafts.put(
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
                    created=self.clock(),
                )
            )
        return done

    def _material(self, summary: Summary) -> tuple[Material, int, str]:
        """What a summary is of, how large it may be, and the kind of what it is of."""
        target = int(summary.source_tokens * self.limits.summary / self.limits.segment)
        if summary.document:
            material = section_material(self.section(summary) or "", self.counter, self.clock)
            return material, int(_WITH_LINES * target), DOCUMENT
        if summary.children:
            children = [self.ledger.summary(child) for child in summary.children]
            return told_now(self.ledger, children), self.limits.summary, HIGHER
        operations = self.log.operations(
            OperationFilter(session=summary.session, after=summary.first_operation - 1, through=summary.last_operation)
        )
        facts = self.ledger.must_keeps(first_operation=summary.first_operation, last_operation=summary.last_operation)
        sources = list(map(read_source, operations))
        types = [operation.type for operation in operations]
        return Material.of_operations(sources, facts), target, max(dict.fromkeys(types), key=types.count)

    def _session(self, summary: Summary, base: Draft, *, insist: bool, cancelled: Callable[[], bool]) -> Compressed:
        """What a session came to, with the lines beside it that a model finds and the extract does not say."""
        material = self._session_material(summary)
        found, talk, verdict = self.compressor.session_notes(
            material,
            summary.text,
            room_tokens=self.limits.summary,
            subject=f"S{summary.id}",
            insist=insist,
            cancelled=cancelled,
        )
        model = self.compressor.model
        text = with_lines(summary.text, _by_kind(found, self.clock())) if verdict.good else summary.text
        method = f"{EXTRACTIVE} + {model.name}" if model and verdict.good else summary.method
        return Compressed.of(material, replace(base, text=text, tokens=self.counter.count(text)), method, verdict, talk)

    def _session_material(self, summary: Summary) -> Material:
        """A session as its document has it: summaries of what is older, and the operations that none covers.

        What a person took out or said in other words is not read in the words that it had.
        """
        standing = self.ledger.summaries(summary.session, standing=True)
        rest = [read_source(operation) for operation in self._between(standing, summary)]
        facts = self.ledger.must_keeps(first_operation=summary.first_operation, last_operation=summary.last_operation)
        changed = [fact for fact in facts if fact.status is MustKeepStatus.REMOVED or fact.found]
        return Material.of_operations(rest, changed, numbered=False).behind(told_now(self.ledger, standing))

    def _between(self, standing: list[Summary], whole: Summary) -> Iterator[Operation]:
        borders = [
            (whole.first_operation, whole.first_operation - 1),
            *((each.first_operation, each.last_operation) for each in standing),
            (whole.last_operation + 1, whole.last_operation),
        ]
        for (_, last), (following, _) in pairwise(borders):
            if following > last + 1:
                yield from self.log.operations(
                    OperationFilter(session=whole.session, after=last, through=following - 1)
                )


def _by_kind(found: Mapping[str, Sequence[str]], now: datetime) -> dict[str, list[str]]:
    """Lines under the keys of what they are: not by a model's word for it, but by the words of the line."""
    # Here, as the classifier is heavy and loads on first use: to import the package must stay quick.
    from orchestra_mem.core.facts.extraction import find_in_text

    sorted_: dict[str, list[str]] = {}
    for key, lines in found.items():
        for line in lines:
            kinds = {fact.kind for fact in find_in_text(line, operation=0, timestamp=now)}
            sorted_.setdefault(key if _KINDS[key] in kinds else NOTED, []).append(line)
    return sorted_
