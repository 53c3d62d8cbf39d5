"""Check the lines that a model wrote about a record: a line is accepted only if it repeats a sentence verbatim.

Small models join unrelated statements and obey instructions in the text. Leaving out a condition, an exception, a
place, a number or an actor changes what a sentence says, and no list of words covers them all. So a line must be a
complete sentence, or two consecutive ones; only articles and introductory words may be missing.

Extraction seldom uses all of a summary's size: accepted lines with new content fill the rest, and every extract stays.
Replacing extracts by lines was tried and rejected: lines of small models mention more names, but tear apart related
statements.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise, takewhile

from orchestra_mem.core.identifiers import find_identifiers, missing_identifiers
from orchestra_mem.core.prompts import MAX_LINES
from orchestra_mem.core.summaries.drafts import Draft, Material, checked, sound
from orchestra_mem.core.summaries.extractive import Passage, render
from orchestra_mem.core.summaries.kept import body_of
from orchestra_mem.core.text import MAX_SENTENCE_CHARS, content_stems, plain_word, split_sentences, squeeze, visible
from orchestra_mem.ports import TokenCounter

# Least number of new words or names in a line that is added to a summary.
_LEAST_NEWS = 2
# Least number of content words in a line about a session, where a name alone says nothing.
_LEAST_TOLD = 3
# Timestamps do not count as new: the date is above the line and in the original.
_STAMP = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?")
_MAX_NAMED = 3
# Up to this many lines may be one wrapped sentence, even if they begin with paths or numbers instead of words.
_MOST_WRAPPED = 2
# Two sentences. The prompt requests no longer line; of a longer one, only the beginning is checked.
_MOST_CHARS = 2 * MAX_SENTENCE_CHARS
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s+")
_ENDS = (".", "!", "?", ":", ";", "…")
_LIST = re.compile(r"^((?!- ).+\n)?((?:- .*\n)+)", re.MULTILINE)  # of an extract: a date, and what was said then
_SEMICOLON = re.compile(r";(?:\s+|$)")
# Introductory words without content, and field names before tool output: a line may omit both.
_LEADS = frozenset("i we so and but then now also well ok okay".split())
_LABELS = frozenset("output stdout result text message".split())
_ARTICLES = frozenset(("a", "an", "the"))
_OPENING, _CLOSING, _PAUSES = "([{\"'“‘«`*_<", ")]}\"'”’»`*_>", ",;:.!?…"
_Words = tuple[tuple[str, bool], ...]  # each word, and whether a pause follows it
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|all|your|the|any)\b"
    r"[^.\n]{0,40}\b(?:instructions?|rules?|prompts?|directions?|guidelines?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The part of a material that a model reads at once: passages, or a piece of a long one."""

    passages: tuple[Passage, ...]

    @property
    def text(self) -> str:
        """Text that the model reads."""
        return "\n\n".join(passage.text for passage in self.passages)

    def halves(self) -> tuple[Chunk, ...]:
        """Return two chunks that together have this text, or only this chunk if it cannot be divided."""
        if len(self.passages) > 1:
            middle = len(self.passages) // 2
            return Chunk(passages=self.passages[:middle]), Chunk(passages=self.passages[middle:])
        (passage,) = self.passages
        sentences = split_sentences(passage.text)
        middle = len(sentences) // 2
        if not middle:
            return (self,)
        parts = "\n".join(sentences[:middle]), "\n".join(sentences[middle:])
        return tuple(Chunk(passages=(replace(passage, text=part),)) for part in parts)


def chunks_of(material: Material, most_chars: int, *, heard: str) -> list[Chunk]:
    """Divide a material into chunks of up to `most_chars`. Chunks with fewer of the words in `heard` come first."""
    chunks: list[Chunk] = []
    gathered: list[Passage] = []
    for passage in material.passages:
        text = without_orders(passage.text).strip()
        if passage.weight <= 0 or not text:
            continue
        if gathered and sum(len(each.text) for each in gathered) + len(text) > most_chars:
            chunks.append(Chunk(passages=tuple(gathered)))
            gathered = []
        gathered.append(replace(passage, text=text))
    if gathered:
        chunks.append(Chunk(passages=tuple(gathered)))
    chunks = [small for chunk in chunks for small in _divided(chunk, most_chars)]
    known = set(content_stems(heard))

    def share(chunk: Chunk) -> float:
        stems = content_stems(chunk.text)
        return sum(stem in known for stem in stems) / len(stems) if stems else 1.0

    return sorted(chunks, key=share)


def _divided(chunk: Chunk, most_chars: int) -> list[Chunk]:
    halves = chunk.halves() if len(chunk.text) > most_chars else ()
    return [small for half in halves for small in _divided(half, most_chars)] if len(halves) > 1 else [chunk]


def without_orders(text: str) -> str:
    """Cut a text before the first sentence that tells a model to ignore its instructions."""
    order = _ORDER.search(text)
    if order is None:
        return text
    return "\n".join(takewhile(lambda each: not _ORDER.search(each), split_sentences(text[: order.end()])))


def read_lists(answer: str, keys: Sequence[str]) -> dict[str, list[str]]:
    """Parse the lists of texts in a model's answer, by key, each limited to `MAX_LINES`.

    Raises:
        ValueError: The answer has another shape. The message is addressed to the model.
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
    """A text against which a model's lines are checked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._stems = set(content_stems(text))
        self._said = [clause for sentence in _sentences(text) for line in _lines(sentence) for clause in _clauses(line)]
        words = [_words(sentence) for sentence in self._said]
        self._words = {*words, *(_joined(before, after) for before, after in pairwise(words))}

    def fault(self, line: str) -> str:
        """Return the fault of a line as a message to the model, empty if it has none."""
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
    """Return the words of a text in lower case, without articles and introduction, and whether it is a question."""
    found: list[tuple[str, bool]] = []
    for piece in text.lower().replace("’", "'").split():
        core = piece.lstrip(_OPENING)
        word = core.rstrip(_CLOSING + _PAUSES)
        closed = any(mark in core[len(word) :] for mark in _PAUSES)
        if word and word not in _ARTICLES:
            found.append((word, closed))
        elif found and (closed or not word):  # a separate dash or mark is a pause, too
            found[-1] = found[-1][0], True
    said = list(dropwhile(lambda each: each[0] in _LEADS or (each[1] and each[0] in _LABELS), found))
    asks = text.rstrip(_CLOSING).endswith("?")
    return (*said[:-1], *((word, False) for word, _ in said[-1:]), ("?", asks))


def _joined(before: _Words, after: _Words) -> _Words:
    """Return the words of two consecutive sentences as if they were one sentence."""
    *first, (last, _), _ = before if len(before) > 1 else (("", False), *before)
    return (*first, (last, True), *after)


def _sentences(text: str) -> list[str]:
    """Split a text into sentences; rejoin pieces of over-long sentences, and lines that may continue the line above."""
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
    """Split tool output into lines, which are separate statements; a wrapped sentence stays in one piece."""
    lines = sentence.splitlines()
    printed = len(lines) > _MOST_WRAPPED and not any(
        plain_word(line.split(None, 1)[0]) for line in lines[1:] if line.strip()
    )
    return lines if printed else [sentence]


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the parts of a sentence between semicolons: each is a separate statement."""
    start = 0
    for match in _SEMICOLON.finditer(sentence):
        yield sentence[start : match.end()]
        start = match.end()
    if start < len(sentence):
        yield sentence[start:]


def _stand_in_order(stems: Sequence[str], window: str) -> bool:
    """Check whether a text contains all the stems in this order, with anything between them."""
    there = iter(content_stems(window))
    return all(stem in there for stem in stems)


def _named(names: Sequence[str]) -> str:
    return ", ".join(f'"{name[:40]}"' for name in names[:_MAX_NAMED])


def improved(
    material: Material, base: Draft, lines: Sequence[Passage], *, target_tokens: int, counter: TokenCounter
) -> Draft | None:
    """Add the lines that have new content and fit to the extract; return None if there are no such lines.

    Args:
        material: Source of the summary.
        base: Extract of the material; all its lines stay.
        lines: Accepted lines, the most important first.
        target_tokens: Maximum size of the summary.
        counter: Counts tokens.
    """
    chosen = list(_news(sound(material, lines), base.text, target_tokens - base.tokens, counter))
    while chosen:
        added = render(sorted(chosen, key=lambda line: line.key))
        lists: dict[str, str] = {}
        for when, bullets in _LIST.findall(f"{body_of(base.text).rstrip()}\n{added}\n"):
            lists[when] = f"{lists.get(when, '')}{bullets}"
        draft = checked(material, "".join(f"{when}{lists[when]}" for when in sorted(lists)), counter)
        if draft.passed and draft.tokens <= target_tokens:
            return draft
        chosen.pop()
    return None


def news_by_key(
    lines: Mapping[str, Sequence[str]], base: str, room: float, counter: TokenCounter
) -> dict[str, list[str]]:
    """Return, by key, the lines with content that `base` lacks, as many as fit in `room` tokens together."""
    keys = list(lines)
    rows = [
        Passage(key=n, text=line)
        for n, key in enumerate(keys)
        for line in lines[key]
        if len(content_stems(line)) >= _LEAST_TOLD
    ]
    found: dict[str, list[str]] = {key: [] for key in keys}
    for row in _news(rows, base, room, counter):
        found[keys[row.key]].append(row.text)
    return found


def _news(lines: Sequence[Passage], base: str, room: float, counter: TokenCounter) -> Iterator[Passage]:
    """Yield the lines with content that `base` lacks, as many as fit in `room` tokens together."""
    known = {*content_stems(base), *find_identifiers(base)}
    for line in lines:
        bare = _STAMP.sub(" ", line.text)
        says = {*content_stems(bare), *find_identifiers(bare)}
        cost = counter.count(render([line]))
        if len(says - known) >= _LEAST_NEWS and cost <= room:
            known |= says
            room -= cost
            yield line
