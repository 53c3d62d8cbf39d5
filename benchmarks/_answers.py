"""Questions about operations that need no judge: derived from an operation by template, answered by look-up.

The questions are: Which names does the operation contain? What was its outcome? Why? The answers are its identifiers,
and the content words of a sentence with an outcome or of a clause after "because" and the like. Of content words, the
share counts that occurs together in one line of the summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.identifiers import find_identifiers, missing_identifiers
from orchestra_mem.core.text import content_stems, split_sentences
from orchestra_mem.types import Operation

_OUTCOME = re.compile(
    r"\b(?:pass(?:es|ed)?|fail(?:s|ed|ure)?|succeed(?:s|ed)?|success\w*|errors?|fixe[sd]|fix|done|complete[sd]?|"
    r"add(?:s|ed)|remove[sd]|update[sd]|merged?|released?|created|returns?|exit code)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:because(?: of)?|since|due to|so that|caused by|as a result of|in order to)\b\s+([^.;:!?\n]{12,200})",
    re.IGNORECASE,
)
_MAX_SENTENCE_CHARS = 300
_MAX_ASKED = 8


@dataclass(slots=True)
class Answered:
    """The sum of the found shares of answers, and the number of questions."""

    share: float = 0.0
    asked: int = 0

    def add(self, shares: Iterable[float]) -> None:
        """Add the found shares of answers, each 0 to 1."""
        for share in shares:
            self.share += share
            self.asked += 1

    @property
    def mean(self) -> float:
        """Mean share; 0 if nothing was asked."""
        return self.share / self.asked if self.asked else 0.0


@dataclass(slots=True)
class Answers:
    """Found answers of the three kinds of question."""

    names: Answered
    outcomes: Answered
    causes: Answered

    @classmethod
    def none(cls) -> Answers:
        """Return empty counts."""
        return cls(Answered(), Answered(), Answered())

    @property
    def answerable(self) -> float:
        """Mean over the kinds for which there were questions, 0 to 1."""
        kinds = [kind.mean for kind in (self.names, self.outcomes, self.causes) if kind.asked]
        return sum(kinds) / len(kinds) if kinds else 0.0

    def ask(self, operations: Sequence[Operation], context: str) -> None:
        """Ask about each operation, and look the answers up in a context."""
        lines = [set(content_stems(line)) for line in context.splitlines()]
        for operation in operations:
            text = plain_text(operation, max_chars=2_400)
            names = find_identifiers(text)
            lost = set(missing_identifiers("\n".join(names), context)) if names else set()
            self.names.add(float(name not in lost) for name in names)
            sentences = [each for each in split_sentences(text) if len(each) <= _MAX_SENTENCE_CHARS]
            told = [sentence for sentence in sentences if _OUTCOME.search(sentence)][:_MAX_ASKED]
            self.outcomes.add(_best(sentence, lines) for sentence in told)
            self.causes.add(_best(clause, lines) for clause in _CAUSE.findall(text)[:_MAX_ASKED])


def _best(answer: str, lines: Sequence[set[str]]) -> float:
    wanted = set(content_stems(answer))
    return max((len(wanted & line) for line in lines), default=0) / len(wanted) if wanted else 0.0
