"""MemoryCompressor: shorten texts by extraction, and improve the extract with a language model if there is one.

The source is read in chunks, beginning with the least covered by the extract. The model copies sentences from each.
Each line is checked; an answer without a valid line is retried once, with the fault named. Valid lines that add
something are inserted into the extract up to the target size, and the result is checked again. No line of the extract
is lost, and must-keeps are kept verbatim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial

from orchestra_mem.compression.model_reader import ModelReader, Talk
from orchestra_mem.compression.timeouts import never
from orchestra_mem.compression.trials import ModelTrials
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.prompts import SESSION_KEYS
from orchestra_mem.core.summaries.drafts import Draft, Material, Source, chars_for, draft_of, material_of, paragraphs_of
from orchestra_mem.core.summaries.extractive import Passage, render
from orchestra_mem.core.summaries.kept import without_heading
from orchestra_mem.core.summaries.model_lines import chunks_of, improved, news_by_key
from orchestra_mem.core.text import squeeze
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.job_types import TrialVerdict
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.ports import Clock, TokenCounter
from orchestra_mem.stores import TrialLog
from orchestra_mem.types import EXTRACTIVE, Json, Operation

VERBATIM = "verbatim"
# Chunk size: small models mix up the contents of longer texts.
_CHUNK_TOKENS = 500
# Minimum number of free tokens in a summary for asking the model: with fewer, no line fits.
_LEAST_ROOM = 16
# Stop reading once the lines have this many times the free tokens; more than fit, as some lines add nothing new.
_ENOUGH = 1.5
# Stop reading after this many rejected chunks if no line was accepted.
_PATIENCE = 3
# Maximum number of chunks to read from an entire session, whose segments have their own summaries.
_SESSION_CHUNKS = 6
_SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed(Draft):
    """A compressed text with the figures for the loss ledger.

    `verdict` is the outcome of the model's attempt. `put_back` lists the must-keeps that were missing and were added
    verbatim, `dropped` the identifiers of the source that the text does not contain.
    """

    method: str
    verdict: TrialVerdict
    dropped: tuple[str, ...]
    talk: Talk = field(repr=False, compare=False)

    @classmethod
    def of(cls, material: Material, draft: Draft, method: str, verdict: TrialVerdict, talk: Talk) -> Compressed:
        """Combine a draft, its source and the record of the model calls."""
        drafted = {each.name: getattr(draft, each.name) for each in fields(Draft)}
        dropped = material.dropped_from(draft.text)
        return cls(**drafted, method=method, verdict=verdict, dropped=dropped, talk=talk)

    @property
    def fault(self) -> str:
        """The last fault of the model."""
        return self.talk.fault

    @property
    def ratio(self) -> float:
        """Tokens of the text divided by tokens of its source, 0 and up."""
        return self.tokens / self.source_tokens if self.source_tokens else 0.0

    def __str__(self) -> str:
        return self.text


class MemoryCompressor(RejectsDesignArguments, use="open_memory(project, model=llm_interface).compressor"):
    """Compresses operations and texts to a size in tokens. Safe to share between threads.

    Args:
        model: The model that improves extracts; None for extraction only.
        counter: Counts tokens.
        clock: Returns the present time.
        timeout_s: Time limit in seconds for one answer of the model.
        trials: Records the outcome of each attempt, and decides for which kinds of content the model is used.
    """

    def __init__(
        self,
        model: LanguageModel | None,
        *,
        counter: TokenCounter,
        clock: Clock,
        timeout_s: float = 300.0,
        trials: TrialLog | None = None,
    ) -> None:
        self._counter = counter
        self._clock = clock
        self._reader = ModelReader(model, counter=counter, timeout_s=timeout_s) if model is not None else None
        self._trials = ModelTrials(model=model.name if model else "", log=trials, clock=clock, timeout_s=timeout_s)

    @property
    def model(self) -> LanguageModel | None:
        """The model that improves extracts, None if there is none."""
        return self._reader.model if self._reader else None

    def compress_operations(
        self, operations: Sequence[Operation], target_tokens: int, preserve_critical: bool = True
    ) -> Compressed:
        """Compress operations to about `target_tokens` (source design, section 3.6).

        Args:
            operations: The operations, oldest first.
            target_tokens: Target size without the preserved operations. Must-keeps are kept even if they exceed it.
            preserve_critical: Whether critical operations are appended uncompressed.
        """
        critical = [operation for operation in operations if operation.critical and preserve_critical]
        routine = [operation for operation in operations if not (operation.critical and preserve_critical)]
        below = "".join(map(_line, critical))
        if not routine:
            return self._whole(below)
        # Lazy import: it loads the classifier, and importing the package must stay fast.
        from orchestra_mem.core.facts.extraction import find_in_operations

        sources = [_source(operation, self._counter) for operation in routine]
        facts = [fact for found in find_in_operations(routine) for fact in found]
        material = Material.of_operations(sources, facts, numbered=False)
        whole = "".join(map(_line, routine))
        done = self._compressed(material, whole, target_tokens, content=content_of(routine))
        if not critical:
            return done
        below = f"\nCritical operations:\n\n{below}"
        text, source_tokens = f"{done.text.rstrip()}\n{below}".lstrip(), done.source_tokens + self._counter.count(below)
        return replace(done, text=text, tokens=self._counter.count(text), source_tokens=source_tokens)

    def hierarchical_summarize(self, text: str, levels: int = 3) -> list[str]:
        """Return a text followed by ever shorter summaries of it, each about half the size of the previous one.

        Returns:
            Up to `levels` texts; fewer if nothing more can be left out.
        """
        found = [text]
        while len(found) < levels:
            half = self._counter.count(found[-1]) // 2
            # Must-keeps are quoted in full for one level only, as in the compaction of documents.
            longer = without_heading(found[-1])
            passages, tokens = paragraphs_of(longer), self._counter.count(longer)
            material = Material.of_passages(passages, tokens)
            if len(found) == 1:
                material = material_of(passages, tokens, self._clock())
            done = self._compressed(material, longer, half, content="text")
            if not done.text.strip() or done.method == VERBATIM:
                break
            found.append(done.text)
        return found

    def summarize_session(self, extracted: Mapping[str, Json], operations: Sequence[Operation]) -> dict[str, Json]:
        """Add lines that the model finds in the operations to a session's structured summary; see `summarise_session`.

        No entry is lost, and each added line has passed the check.
        """
        summary = dict(extracted)
        if self._reader is None:
            return summary
        sources = [_source(operation, self._counter) for operation in operations]
        material = Material.of_operations(sources, (), numbered=False)
        heard = " ".join(map(str, extracted.values()))
        found, _, _ = self.session_notes(material, heard, room_tokens=math.inf, insist=True)
        for key, lines in found.items():
            summary[key] = _added(summary.get(key), lines)
        return summary

    def session_notes(
        self,
        material: Material,
        heard: str,
        *,
        room_tokens: float,
        subject: str = "",
        insist: bool = False,
        cancelled: Callable[[], bool] = never,
    ) -> tuple[dict[str, list[str]], Talk, TrialVerdict]:
        """Find results of a session that `heard` lacks. Return checked lines by `SESSION_KEYS`, figures and outcome.

        Args:
            material: The session.
            heard: The text to complete; results that it contains are left out.
            room_tokens: Upper limit for all lines together.
            subject, insist, cancelled: See `improve`, which raises the same errors.
        """
        found: dict[str, list[str]] = {key: [] for key in SESSION_KEYS}

        def ask(reader: ModelReader, talk: Talk) -> bool:
            chars = chars_for(_CHUNK_TOKENS * 2, material.source_text, self._counter)
            try:
                for chunk in chunks_of(material, chars, heard=heard)[:_SESSION_CHUNKS]:
                    for key, lines in reader.session_lines(chunk, talk, cancelled).items():
                        found[key] += lines
                    said = "\n".join(line for lines in found.values() for line in lines)
                    if talk.hopeless(_PATIENCE) or self._counter.count(said) >= _ENOUGH * room_tokens:
                        break
            finally:
                found.update(news_by_key(found, heard, room_tokens, self._counter))
            return any(found.values())

        talk, verdict = self._tried(ask, _SESSION, subject, insist=insist)
        return found, talk, verdict

    def improve(
        self,
        material: Material,
        base: Draft,
        *,
        target_tokens: int,
        content: str,
        subject: str = "",
        insist: bool = False,
        cancelled: Callable[[], bool] = never,
        merge: Callable[[Sequence[Passage]], Draft | None] | None = None,
    ) -> Compressed:
        """Improve an extract with lines that the model finds in the source; on failure return the extract unchanged.

        Args:
            material: The source.
            base: The extract of the source.
            target_tokens: Upper limit for the size of the summary.
            content: The kind of source text, such as an operation type, for the trial log.
            subject: The summary's name in the trial log; see `Job`.
            insist: Whether to ask the model even if it has mostly failed with this kind of content.
            cancelled: Polled during generation, which ends once it returns True.
            merge: Makes a summary from the valid lines; by default they are inserted into the extract.

        Raises:
            InterruptedGenerationError: `cancelled` returned True. Accepted answers are cached for the next attempt.
        """
        room, better = target_tokens - base.tokens, base

        def ask(reader: ModelReader, talk: Talk) -> bool:
            nonlocal better
            lines: list[Passage] = []
            chars = chars_for(_CHUNK_TOKENS, material.source_text, self._counter)
            for chunk in chunks_of(material, chars, heard=base.text):
                lines += reader.lines(chunk, talk, cancelled)
                if talk.hopeless(_PATIENCE) or self._counter.count(render(lines)) >= _ENOUGH * room:
                    break
            better = (merge or beside)(lines) or base
            return better is not base

        def beside(lines: Sequence[Passage]) -> Draft | None:
            return improved(material, base, lines, target_tokens=target_tokens, counter=self._counter)

        fault = "" if room >= _LEAST_ROOM else "the extract leaves no room for more lines"
        talk, verdict = self._tried(ask, content, subject, insist=insist, fault=fault)
        method = f"{EXTRACTIVE} + {self.model.name}" if self.model and better is not base else EXTRACTIVE
        return Compressed.of(material, better, method, verdict, talk)

    def _tried(
        self, ask: Callable[[ModelReader, Talk], bool], content: str, subject: str, *, insist: bool, fault: str = ""
    ) -> tuple[Talk, TrialVerdict]:
        """Run `ask` with the model if there is one; see `ModelTrials.attempt`."""
        if self._reader is None:
            return Talk(), TrialVerdict.SKIPPED
        return self._trials.attempt(partial(ask, self._reader), content, subject, insist=insist, fault=fault)

    def _compressed(self, material: Material, whole: str, target_tokens: int, *, content: str) -> Compressed:
        """Compress a source; return the text unchanged if it fits, or if no shorter text passes the check."""
        if self._counter.count(whole) <= target_tokens:
            return self._whole(whole)
        base = draft_of(material, target_tokens=target_tokens, counter=self._counter)
        if not base.passed:
            return self._whole(whole)
        return self.improve(material, base, target_tokens=target_tokens, content=content)

    def _whole(self, text: str) -> Compressed:
        tokens = self._counter.count(text)
        material = Material.of_passages([Passage(key=0, text=text)], tokens)
        return Compressed.of(
            material, Draft(text=text, tokens=tokens, source_tokens=tokens), VERBATIM, TrialVerdict.SKIPPED, Talk()
        )


def _source(operation: Operation, counter: TokenCounter) -> Source:
    text = plain_text(operation, max_chars=10**9)
    return Source(
        operation=operation.id, time=operation.timestamp, type=operation.type, text=text, tokens=counter.count(text)
    )


def _line(operation: Operation) -> str:
    return f"- [{operation.timestamp:%Y-%m-%d %H:%M}] {operation.type}: {squeeze(plain_text(operation))}\n"


def content_of(operations: Sequence[Operation]) -> str:
    """Return the most frequent type of operation; empty if there are no operations."""
    types = [operation.type for operation in operations]
    return max(dict.fromkeys(types), key=types.count, default="")


def _added(there: Json, lines: Sequence[str]) -> Json:
    """Append lines to a list, except lines that contain an entry of the list or are contained in one."""
    known = [squeeze(str(each)) for each in there] if isinstance(there, list) else []
    return [*known, *(line for line in lines if not any(line in each or each in line for each in known))]
