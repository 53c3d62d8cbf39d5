"""Prompt a model to copy notable lines from a text, check the lines, and retry once if none is valid."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cachetools import LRUCache

from orchestra_mem.compression.timeouts import ModelWithTimeout
from orchestra_mem.core.identifiers import missing_identifiers
from orchestra_mem.core.prompts import (
    ANSWER_TOKENS,
    NOTES_KEYS,
    RETRY_TOKENS,
    SESSION_KEYS,
    lines_schema,
    notes_prompt,
    retry_prompt,
    session_prompt,
)
from orchestra_mem.core.summaries.extractive import Passage
from orchestra_mem.core.summaries.model_lines import Chunk, Record, read_lists
from orchestra_mem.job_types import TrialVerdict
from orchestra_mem.model_types import Finish, Generation, LanguageModel, Message
from orchestra_mem.ports import TokenCounter

# Number of prompts whose lines are cached, so that an interrupted summary does not start over.
_REMEMBERED = 256

_Asked = tuple[Message, ...]


@dataclass(slots=True)
class Talk:
    """Figures of the model calls for one summary. `asked` counts chunks sent, `first` chunks accepted without retry."""

    asked: int = 0
    first: int = 0
    retried: int = 0
    rejected: int = 0
    lines: int = 0
    invented: int = 0
    failed: bool = False
    fault: str = ""
    prompt_tokens: int = 0
    answer_tokens: int = 0
    prompt_s: float = 0.0
    answer_s: float = 0.0
    seconds: float = 0.0

    def hopeless(self, patience: int) -> bool:
        """Check whether at least `patience` chunks were rejected and no line was accepted."""
        return self.rejected >= patience and not self.lines

    def verdict(self, *, used: bool) -> TrialVerdict:
        """Return the outcome; `used`: Whether the summary contains text by the model."""
        if self.failed:
            return TrialVerdict.FAILED
        if used:
            return TrialVerdict.RETRIED if self.retried else TrialVerdict.ACCEPTED
        return TrialVerdict.NO_BETTER if self.lines or not self.rejected else TrialVerdict.REJECTED


class ModelReader:
    """Reads chunks of text with a model and returns the valid lines. Safe to share between threads."""

    def __init__(self, model: LanguageModel, *, counter: TokenCounter, timeout_s: float) -> None:
        self.model = model
        self._counter = counter
        self._patient = ModelWithTimeout(model, timeout_s=timeout_s)
        self._read: LRUCache[_Asked, dict[str, list[str]]] = LRUCache(_REMEMBERED)
        self._lock = threading.Lock()

    def lines(self, chunk: Chunk, talk: Talk, cancelled: Callable[[], bool]) -> list[Passage]:
        """Return the notable lines of a chunk, each as a copy of the passage that contains it.

        Raises:
            InterruptedGenerationError: `cancelled` returned True.
            ModelError: The model does not answer.
        """
        found = self._lists(chunk, notes_prompt, NOTES_KEYS, talk, cancelled)
        passages = [(passage, Record(passage.text)) for passage in chunk.passages]
        return [
            replace(passage, text=line)
            for line in found["lines"]
            for passage in [passage for passage, record in passages if not record.fault(line)][:1]
        ]

    def session_lines(self, chunk: Chunk, talk: Talk, cancelled: Callable[[], bool]) -> dict[str, list[str]]:
        """Return the results of a session that a chunk reports, by `SESSION_KEYS`. Raises the errors of `lines`."""
        return self._lists(chunk, session_prompt, SESSION_KEYS, talk, cancelled)

    def _lists(
        self, chunk: Chunk, prompt: Callable[[str], _Asked], keys: Sequence[str], talk: Talk,
        cancelled: Callable[[], bool],
    ) -> dict[str, list[str]]:  # fmt: skip
        """Return the valid lines about a chunk by key. One that exceeds the window is split; a sentence is rejected."""
        asked = prompt(chunk.text)
        answer_tokens = self._answer_tokens(len(keys)) + RETRY_TOKENS
        if self._patient.fits(asked, answer_tokens=answer_tokens, counter=self._counter):
            return self._taken(asked, keys, [Record(passage.text) for passage in chunk.passages], talk, cancelled)
        merged: dict[str, list[str]] = {key: [] for key in keys}
        halves = chunk.halves()
        if len(halves) < 2:
            talk.rejected += 1
            talk.fault = f"the context window of {self.model.name} is too small for a single sentence"
            return merged
        for half in halves:
            for key, lines in self._lists(half, prompt, keys, talk, cancelled).items():
                merged[key] += lines
        return merged

    def _answer_tokens(self, lists: int) -> int:
        """Return the token limit for an answer with `lists` lists; a small window is left mostly to the prompt."""
        return min(ANSWER_TOKENS * lists, max(ANSWER_TOKENS, self.model.context_tokens // 4))

    def _taken(
        self, asked: _Asked, keys: Sequence[str], records: Sequence[Record], talk: Talk, cancelled: Callable[[], bool]
    ) -> dict[str, list[str]]:
        """Return the valid lines of the answer to a prompt, from the cache if possible; retry once if none is valid."""
        with self._lock:
            known = self._read.get(asked)
        if known is not None:
            talk.lines += sum(map(len, known.values()))
            return known
        talk.asked += 1
        first, most = asked, self._answer_tokens(len(keys))
        for attempt in range(2):
            done = self._patient.ask(asked, max_tokens=most, schema=lines_schema(keys), cancelled=cancelled)
            talk.prompt_tokens += done.prompt_tokens
            talk.answer_tokens += done.answer_tokens
            talk.prompt_s += done.prompt_s
            talk.answer_s += done.answer_s
            good, fault = self._judged(done, keys, records, talk)
            count = sum(map(len, good.values()))
            if count or not fault:
                talk.first += attempt == 0
                talk.retried += attempt
                talk.lines += count
                with self._lock:
                    self._read[first] = good
                return good
            talk.fault = fault
            asked = retry_prompt(asked, done.text, fault)
        talk.rejected += 1
        return {key: [] for key in keys}

    @staticmethod
    def _judged(
        done: Generation, keys: Sequence[str], records: Sequence[Record], talk: Talk
    ) -> tuple[dict[str, list[str]], str]:
        """Return the valid lines of an answer by key, and the fault of the first invalid line."""
        good: dict[str, list[str]] = {key: [] for key in keys}
        try:
            found = read_lists(done.text, keys)
        except ValueError as error:
            return good, "the answer is too long" if done.finish is Finish.LENGTH else str(error)
        fault = ""
        text = "\n".join(record.text for record in records)
        for key, lines in found.items():
            for line in lines:
                talk.invented += len(missing_identifiers(line, text))
                faults = [record.fault(line) for record in records]
                if "" in faults:
                    good[key].append(line)
                elif not fault:
                    fault = faults[0]
        return good, fault
