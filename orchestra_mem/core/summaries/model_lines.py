"""Lines that a model wrote of a record, and the check of each: a line is believed if it shortens what is said there.

A small model joins what does not belong together and does as the text tells it. So a line may leave words out of one
sentence of the record, or of two neighbours, and it may not leave out what turns their meaning: a negation, a
condition, a doubt, a failure, or that something was only to be said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from orchestra_mem.core.documents.entries import visible
from orchestra_mem.core.identifiers import missing_identifiers
from orchestra_mem.core.text import content_stems, piece_stems, split_sentences

_MAX_NAMED = 3
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s+")
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_CLAUSE_END = (",", ";", ":", ".", "!", "?", "…")
# Words that turn the meaning of what stands beside them; a line has those of the place that it shortens, and no others.
_TURNING = frozenset(
    "not no never none nothing nobody nowhere neither nor cannot without hardly barely only except instead "
    "if unless whether until till should could would might may must maybe perhaps probably possibly "
    "seems seem seemed likely unlikely almost nearly supposed expected want wants wanted need needs needed plan plans "
    "planned will shall todo try tries trying tried attempt attempted propose proposed suggest suggested consider "
    "let lets write writes say says saying claim claims claimed pretend pretends tell tells reply respond answer "
    "ignore assume assumes assumed think thinks believe believes hope hopes unable refuse refused avoid avoided "
    "prevent prevented reject rejected denied stop stopped".split()
)
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
    """Read the lists of texts of an answer.

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
    return {key: list(dict.fromkeys(filter(None, map(_flat, found[key])))) for key in keys}


def _flat(line: str) -> str:
    return _BULLET.sub("", " ".join(visible(line).split()))


class Record:
    """A text that lines are held against."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._stems = set(content_stems(text))
        sentences = [clause for sentence in split_sentences(text) for clause in _clauses(sentence.split())]
        self._windows = [*sentences, *(before + after for before, after in pairwise(sentences))]

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
        faults = [fault for window in self._windows if (fault := _window_fault(line, stems, window)) is not None]
        if "" in faults:
            return ""
        return faults[0] if faults else f'"{line[:60]}" joins what stands in different places'


def _clauses(pieces: list[str]) -> Iterator[list[str]]:
    """What semicolons part: each side says something of its own."""
    start = 0
    for place, piece in enumerate(pieces):
        if piece.endswith(";"):
            yield pieces[start : place + 1]
            start = place + 1
    if start < len(pieces):
        yield pieces[start:]


def _window_fault(line: str, stems: Sequence[str], pieces: Sequence[str]) -> str | None:
    """What is wrong with a line as a shortening of these pieces of text; None where it is none of them."""
    wanted = iter(stems)
    needed, last = next(wanted, None), 0
    for place, piece in enumerate(pieces):
        for stem in piece_stems(piece) if len(piece) < 100 else content_stems(piece):
            if stem == needed:
                needed, last = next(wanted, None), place
    if needed is not None:
        return None
    while last + 1 < len(pieces) and not pieces[last].endswith(_CLAUSE_END):
        last += 1
    said, there = _turning(line.split()), _turning(pieces)
    if lost := _turning(pieces[: last + 1]) - said:
        return f'"{line[:60]}" leaves out {_named(sorted(lost))}'
    if added := said - there:
        return f'"{line[:60]}" adds {_named(sorted(added))}'
    if pieces[last].endswith("?") and not line.endswith("?"):
        return f'"{line[:60]}" is asked there, not told'
    return ""


def _turning(pieces: Iterable[str]) -> set[str]:
    """The words that turn a meaning; contractions with "not" count as such."""
    found: set[str] = set()
    for piece in pieces:
        for match in _WORD.findall(piece.lower()):
            if match.endswith(("n't", "n’t")) or match == "cant":
                found.add("not")
            elif match in _TURNING or match.startswith("fail"):
                found.add("fail" if match.startswith("fail") else match)
    return found


def _named(names: Sequence[str]) -> str:
    return ", ".join(f'"{name[:40]}"' for name in names[:_MAX_NAMED])
