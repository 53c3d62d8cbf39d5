"""What a query asks for beyond its words: when, who, at what time; and how much a text says.

The words are English; queries in other languages are answered by their terms and vectors alone.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.search.dates import Period, periods_in
from orchestra_mem.core.search.terms import MAX_QUERY_CHARS, content_words, read_query
from orchestra_mem.search_types import Terms

MAX_QUESTION_WORDS = 32

_FULL_TEXT_WORDS = 30  # what says so many different things says enough

_ASKS_WHEN = re.compile(
    r"^\W*when\b|\b(?:when (?:did|do|does|was|were|is|are|will|has|have|had|should|can|could)|since when|how long"
    r"|how (?:recently|soon)|(?:what|which) (?:date|day|week|month|year|time))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query as it is read.

    `terms` go to the keyword index; `words` are its distinct content words as late interaction compares them;
    `periods` the times that it names; `asks_when` whether the answer is a time.
    """

    text: str
    terms: Terms
    words: tuple[str, ...]
    periods: tuple[Period, ...]
    asks_when: bool


def read_question(query: str, now: datetime) -> Question:
    """Read a query, any string whatever; `now` is what "last week" is told from."""
    query = query[:MAX_QUERY_CHARS]
    return Question(
        text=query,
        terms=read_query(query),
        words=tuple(content_words(query)[:MAX_QUESTION_WORDS]),
        periods=periods_in(query, now),
        asks_when=_ASKS_WHEN.search(query) is not None,
    )


def names_agent(question: Question, agent: str | None) -> bool:
    """Tell whether a question names an agent: all words of the agent's name stand in it."""
    words = content_words(agent) if agent else []
    return bool(words) and all(word in question.words for word in words)


def substance(word_counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """How much texts say, 0 to 1, by how many different words they have: greetings and thanks answer nothing."""
    return np.minimum(1.0, np.log1p(word_counts) / math.log1p(_FULL_TEXT_WORDS)).astype(np.float32)
