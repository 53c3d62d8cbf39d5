"""Lines of several sentences, of which some only tell: those that say what is to be done or was done are read alone.

A sentence that supposes, doubts, denies or asks keeps the whole line from being read so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from orchestra_mem.core.language.fragments import UNSURE
from orchestra_mem.core.language.intents.types import ASKS, DESTRUCTIVE, Action, Intent, Parsed

_END = re.compile(
    r"(?<=[.!?])['\"\u2019\u201d)]*\s+|\s+(?:[;\u2013\u2014]|-{1,2})\s+|(?<=\w)\.{2,}\s*|,\s+(?:so|and so)\s+"
)
_DOUBT = re.compile(
    r"\b(?:if|unless|maybe|perhaps|might|would|could|should|suppose|imagine|whether|not|never|neither|nobody|"
    r"without|instead|"
    r"kidding|joking|wait|stop|means?|meant|wants?|asks?|asked|tells?|told|says|claims?|thinks?|pretend|almost|"
    r"nearly)\b|"
    r"n['\u2019]t\b|\?|[\"\u201c\u2018]|(?<!\w)'",
    re.IGNORECASE,
)
_MOST_SENTENCES = 6
_LEAST_REASON = 3
_ECHO = re.compile(r"\W*(?:\w+\W+){0,2}\?\W*$")


def read_sentences(line: str, read: Callable[[str], Parsed], names: Callable[[str], bool]) -> Parsed | None:
    """Read those sentences of a line that ask for something or tell what was done; None where that is not plain.

    Args:
        line: the line.
        read: reads one sentence.
        names: whether a sentence names an item.
    """
    sentences = [sentence.strip() for sentence in _END.split(line) if sentence and sentence.strip(" .!?,;-")]
    if not 1 < len(sentences) <= _MOST_SENTENCES:
        return None
    parsed = [read(sentence) for sentence in sentences]
    told = [sentence for sentence, each in zip(sentences, parsed, strict=True) if not _is_done(each)]
    if len(told) == len(sentences) or any(_DOUBT.search(each) and not _ECHO.fullmatch(each) for each in told):
        return None
    intents: list[Intent] = []
    named = ""
    for sentence, each in zip(sentences, parsed, strict=True):
        if not _is_done(each):
            named = sentence if names(sentence) else named
            continue
        intents += [_because(intent, told) for intent in each.intents]
    if named and any(not intent.target or intent.target.lower() in ("it", "that", "this") for intent in intents):
        return None  # of what was named before, or of something else?
    if any(intent.action in DESTRUCTIVE for intent in intents):
        intents = [replace(intent, sure=UNSURE) for intent in intents if intent.action in DESTRUCTIVE][:1]
    return Parsed(intents=tuple(dict.fromkeys(intents)), understood=True)


def _is_done(parsed: Parsed) -> bool:
    """Whether a sentence was read as something to be done, for sure."""
    return parsed.understood and all(
        intent.action not in ASKS and (intent.sure > UNSURE or intent.action in DESTRUCTIVE)
        for intent in parsed.intents
    )


def _because(intent: Intent, told: list[str]) -> Intent:
    """With what else was told as the reason, where one is kept and none was given."""
    reasons = [each.strip(" .!") for each in told if len(each.split()) >= _LEAST_REASON]
    if intent.action in (Action.BLOCK, Action.DEFER, Action.FINISH) and not (intent.value or intent.other) and reasons:
        return replace(intent, value="; ".join(reasons))
    return intent
