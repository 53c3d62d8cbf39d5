"""The result of a compression, and a record of the model calls made for it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from orchestra_mem.core.summaries.drafts import Draft, Material
from orchestra_mem.job_types import TrialVerdict
from orchestra_mem.ports import TokenCounter


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

    def followed_by(self, text: str, counter: TokenCounter) -> Compressed:
        """Return a copy with an uncompressed text appended to it and to its source."""
        whole = f"{self.text.rstrip()}\n{text}".lstrip()
        source_tokens = self.source_tokens + counter.count(text)
        return replace(self, text=whole, tokens=counter.count(whole), source_tokens=source_tokens)
