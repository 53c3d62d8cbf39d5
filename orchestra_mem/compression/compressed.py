"""What came of a compression: the text, how it was made, and what the model did on the way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestra_mem.core.summaries.drafts import Draft, Material
from orchestra_mem.job_types import TrialVerdict
from orchestra_mem.ports import TokenCounter


@dataclass(slots=True)
class Talk:
    """What was asked of a model for one summary. `asked` counts first prompts, `first` those whose answer was taken."""

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
        """Return whether so many answers were rejected and none was taken."""
        return self.rejected >= patience and not self.lines

    def verdict(self, *, used: bool) -> TrialVerdict:
        """Return what to say of it; `used` where something of what the model wrote was."""
        if self.failed:
            return TrialVerdict.FAILED
        if used:
            return TrialVerdict.RETRIED if self.retried else TrialVerdict.ACCEPTED
        return TrialVerdict.NO_BETTER if self.lines or not self.rejected else TrialVerdict.REJECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """A compressed text and its line in the ledger.

    `verdict` is what came of the model's part, `fault` what was last wrong with it; `put_back` are the must-keeps that
    the text lacked and that were added word for word, `dropped` the identifiers that it no longer has.
    """

    text: str
    method: str
    tokens: int
    source_tokens: int
    verdict: TrialVerdict
    fault: str
    must_keeps: tuple[int, ...]
    put_back: tuple[str, ...]
    dropped: tuple[str, ...]
    talk: Talk = field(repr=False, compare=False)

    @classmethod
    def of(cls, material: Material, draft: Draft, method: str, verdict: TrialVerdict, talk: Talk) -> Compressed:
        """Tell what a talk about a material came to: a draft, made by a method."""
        return cls(
            text=draft.text,
            method=method,
            tokens=draft.tokens,
            source_tokens=draft.source_tokens,
            verdict=verdict,
            fault=talk.fault,
            must_keeps=draft.must_keeps,
            put_back=draft.put_back,
            dropped=material.dropped_from(draft.text),
            talk=talk,
        )

    @property
    def ratio(self) -> float:
        """Tokens of the text over those of its source, 0 and up."""
        return self.tokens / self.source_tokens if self.source_tokens else 0.0

    def __str__(self) -> str:
        return self.text

    def followed_by(self, text: str, counter: TokenCounter) -> Compressed:
        """Return the same with a text below it that was not compressed."""
        whole = f"{self.text.rstrip()}\n{text}".lstrip()
        return replace(self, text=whole, tokens=counter.count(whole))
