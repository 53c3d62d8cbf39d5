"""Check the lines that a model wrote of a record: one is believed if it repeats a sentence of it, word for word.

A small model joins what does not belong together and does as the text tells it. A condition, an exception, a place, a
number or the one who did it all turn what a sentence says, and no list of words knows them all. So a line is a whole
sentence, or two neighbours one behind the other: nothing may be missing but articles, and words at the front that only
lead to what is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise

from orchestra_mem.core.identifiers import missing_identifiers
from orchestra_mem.core.prompts import MAX_LINES
from orchestra_mem.core.summaries.kept import squeeze
from orchestra_mem.core.text import MAX_SENTENCE_CHARS, content_stems, plain_word, split_sentences, visible

_MAX_NAMED = 3
# So many lines that begin with no word, as paths and numbers, may be a sentence that is wrapped.
_MOST_WRAPPED = 2
# Two sentences; what is longer is none that was asked for, and its beginning is judged.
_MOST_CHARS = 2 * MAX_SENTENCE_CHARS
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s+")
_ENDS = (".", "!", "?", ":", ";", "…")
_SEMICOLON = re.compile(r";(?:\s+|$)")
# Words that a sentence may begin with and that say nothing, and the names of fields in front of what a tool printed.
_LEADS = frozenset("i we so and but then now also well ok okay".split())
_LABELS = frozenset("output stdout result text message".split())
_ARTICLES = frozenset(("a", "an", "the"))
_OPENING, _CLOSING, _PAUSES = "([{\"'“‘«`*_<", ")]}\"'”’»`*_>", ",;:.!?…"
_Words = tuple[tuple[str, bool], ...]  # each with whether a pause stands behind it
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|all|your|the|any)\b"
    r"[^.\n]{0,40}\b(?:instructions?|rules?|prompts?|directions?|guidelines?)\b",
    re.IGNORECASE,
)


def without_orders(text: str) -> str:
    """Leave out what stands from a sentence on that tells a model to forget what it was told."""
    order = _ORDER.search(text)
    if order is None:
        return text
    kept: list[str] = []
    for sentence in split_sentences(text[: order.end()]):
        if _ORDER.search(sentence):
            break
        kept.append(sentence)
    return "\n".join(kept)


def read_lists(answer: str, keys: Sequence[str]) -> dict[str, list[str]]:
    """Read the lists of texts of an answer, of each as many as were asked for.

    Raises:
        ValueError: it has another shape; the message is for the model.
    """
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise ValueError("the answer is no JSON, or does not end") from None
    if not isinstance(found, dict) or not all(
        isinstance(found.get(key), list) and all(isinstance(line, str) for line in found[key]) for key in keys
    ):
        raise ValueError(f"the answer must be a JSON object with lists of texts under {', '.join(keys)}")
    return {key: list(dict.fromkeys(filter(None, map(_flat, found[key]))))[:MAX_LINES] for key in keys}


def _flat(line: str) -> str:
    return _BULLET.sub("", squeeze(visible(line[:_MOST_CHARS])))


class Record:
    """A text that lines are held against."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._stems = set(content_stems(text))
        self._said = [clause for sentence in _sentences(text) for line in _lines(sentence) for clause in _clauses(line)]
        words = [_words(sentence) for sentence in self._said]
        self._words = {*words, *(_beside(before, after) for before, after in pairwise(words))}

    def fault(self, line: str) -> str:
        """What is wrong with a line, in words for the model; empty where nothing is."""
        if invented := missing_identifiers(line, self.text):
            return f"the record has no {_named(invented)}"
        stems = content_stems(line)
        if not stems:
            return f'"{line[:60]}" says nothing'
        if not self._stems.issuperset(stems):
            new = [word for word in line.split() if not self._stems.issuperset(content_stems(word))]
            return f"the record does not say {_named(new)}"
        if _words(line) in self._words:
            return ""
        found = [sentence for sentence in self._said if _stand_in_order(stems, sentence)]
        if found:
            return f'"{line[:60]}" is not said so there; copy the sentence "{found[0][:120]}"'
        return f'"{line[:60]}" joins what stands in different places'


def _words(text: str) -> _Words:
    """The words of a text in lower case, without articles, without what leads to them, and its question mark."""
    found: list[tuple[str, bool]] = []
    for piece in text.lower().replace("’", "'").split():
        core = piece.lstrip(_OPENING)
        word = core.rstrip(_CLOSING + _PAUSES)
        closed = any(mark in core[len(word) :] for mark in _PAUSES)
        if word and word not in _ARTICLES:
            found.append((word, closed))
        elif found and (closed or not word):  # a dash or a mark that stands alone parts as well
            found[-1] = found[-1][0], True
    said = list(dropwhile(lambda each: each[0] in _LEADS or (each[1] and each[0] in _LABELS), found))
    asks = text.rstrip(_CLOSING).endswith("?")
    return (*said[:-1], *((word, False) for word, _ in said[-1:]), ("?", asks))


def _beside(before: _Words, after: _Words) -> _Words:
    """The words of two sentences one behind the other."""
    *first, (last, _), _ = before if len(before) > 1 else (("", False), *before)
    return (*first, (last, True), *after)


def _sentences(text: str) -> list[str]:
    """The sentences of a text, also very long ones; what may go on one left open on the line before is none itself."""
    found: list[str] = []
    behind = 0
    for sentence in split_sentences(text):
        begin = text.find(sentence, behind)
        between, behind = text[behind:begin], begin + len(sentence)
        goes_on = "\n" not in between or (
            between.count("\n") == 1 and sentence[0].islower() and plain_word(sentence.split(None, 1)[0])
        )
        if found and goes_on and not between.strip() and not found[-1].endswith(_ENDS):
            found[-1] += between + sentence
        else:
            found.append(sentence)
    return found


def _lines(sentence: str) -> list[str]:
    """The lines of what a tool printed, each of which says something of its own; a sentence that is wrapped is one."""
    lines = sentence.splitlines()
    printed = len(lines) > _MOST_WRAPPED and not any(
        plain_word(line.split(None, 1)[0]) for line in lines[1:] if line.strip()
    )
    return lines if printed else [sentence]


def _clauses(sentence: str) -> Iterator[str]:
    """What semicolons part: each side says something of its own."""
    start = 0
    for match in _SEMICOLON.finditer(sentence):
        yield sentence[start : match.end()]
        start = match.end()
    if start < len(sentence):
        yield sentence[start:]


def _stand_in_order(stems: Sequence[str], window: str) -> bool:
    """Whether all these stems stand in a text in this order, whatever stands between them."""
    there = iter(content_stems(window))
    return all(stem in there for stem in stems)


def _named(names: Sequence[str]) -> str:
    return ", ".join(f'"{name[:40]}"' for name in names[:_MAX_NAMED])
