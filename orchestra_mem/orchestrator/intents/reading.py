"""Read lines: the grammar gives certain results; the classifier only makes suggestions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, pairwise, product

from orchestra_mem.orchestrator.intents import Action, Intent, Parsed
from orchestra_mem.orchestrator.intents.classifier import (
    FRAGMENT,
    NOTHING,
    Classifier,
    classifier,
    looks,
    ngrams,
    tagging_traits,
    tokens_of,
)  # fmt: skip
from orchestra_mem.orchestrator.intents.grammar import as_command, borders, parse_line
from orchestra_mem.orchestrator.intents.languages import parse_foreign
from orchestra_mem.orchestrator.intents.slots import fill, title_in

_MOST_OFFERED, _MOST_PIECES, _MOST_BORDERS = 3, 4, 12
_WORTH_WEIGHING = 0.02  # drop actions and taggings with less than this share of the best probability
_LEAST_OF_CUT = 0.3  # consider a cut only if each half is a command with more than this probability
_LONGEST_CUT = 400  # characters; a longer line was probably pasted and is not cut
_AGAIN = frozenset({"", "it", "that", "this", "them", "they"})
_MOST_TAGGINGS = 5  # per action
_LEAST_SHARE = 1e-9  # keeps logarithms finite
_LEAST = 0.02  # minimum probability of an action to be offered
_NO_COMMAND = frozenset({NOTHING, FRAGMENT})
_REMEMBERED = 64  # cached pieces of lines
_LONGEST = 2_000  # characters; the rest of a line is ignored


def read_line(line: str, titles: Sequence[str] = (), reader: Reader | None = None) -> Parsed:
    """Parse the commands and questions of a line.

    Args:
        line: The line as typed.
        titles: Titles of existing items; the longest title in the line, even with typos, is quoted before parsing, if
            it is then read as an item.
        reader: Reads what the grammar cannot; by default with the models of the package.

    Returns:
        The parsed line. Unless it is `understood`, its intents need confirmation before they change anything.
    """
    said = line.strip()
    start, end = (title_in(said, titles) if '"' not in said else None) or (0, 0)
    title = said[start:end]
    line = f'{said[:start]}"{title}"{said[end:]}' if title else said
    for text in dict.fromkeys((line, said)) if len(line) <= _LONGEST else ():
        sure = parse_line(text) or parse_foreign(text)
        if sure and (text == said or not any('"' in part for each in sure for part in (*each.titles, each.value))):
            return Parsed(intents=sure, understood=True)
    reader = reader or _reader()
    readings = reader.readings(line[:_LONGEST])
    if title and not any(title in (each.target, each.other) for each in readings[0].intents):
        readings = reader.readings(said[:_LONGEST])
    intents = readings[0].intents
    return Parsed(intents=intents, understood=False, nearest=tuple(_nearest(intents, readings)))


@cache
def _reader() -> Reader:
    return Reader(classifier())


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """One possible reading of a line or of a piece of it, with its score; higher is better.

    `likelihoods` are five log-probabilities: of the actions; of the tags; of "no command" and of the likeliest action,
    if the reading is "no command"; and of the least likely piece, if the line was cut. Inapplicable values are 0.
    `traits` are the features for `Classifier.weigh`.
    """

    intents: tuple[Intent, ...]
    likelihoods: tuple[float, ...]
    traits: tuple[str, ...]
    score: float = 0.0


Cutting = tuple[float, tuple[tuple[int, int], ...]]
"""A cut line: the (start, end) offsets of its pieces, after the lowest of their probabilities of being a command."""


class Reader:
    """Reads lines with one trained classifier; caches recent pieces."""

    def __init__(self, trained: Classifier) -> None:
        self._trained = trained
        self._shares = lru_cache(maxsize=_REMEMBERED)(trained.probabilities)
        self._of_piece = lru_cache(maxsize=_REMEMBERED)(self._read_piece)

    def readings(self, line: str, most: int = 1) -> list[Guess]:
        """Return readings, best first: of the uncut line, and of each cutting all combinations of `most` per piece."""
        found = [*self._of_piece(line)]
        for share, spans in self._cuttings(line) if len(line) <= _LONGEST_CUT else ():
            rows = [self._of_piece(line[start:end])[:most] for start, end in spans]
            found += [self._joined(line, spans, share, row) for row in product(*rows)]
        return sorted(found, key=lambda each: -each.score)

    def _cuttings(self, line: str) -> Iterator[Cutting]:
        """Cut a line in two, then one of its pieces in two, and so on; yield the likeliest cutting after each step."""
        share: float = 1.0
        spans: tuple[tuple[int, int], ...] = ((0, len(line)),)
        while len(spans) < _MOST_PIECES:
            further = [
                (min(share, both), (*spans[:at], *halves, *spans[at + 1 :]))
                for at, span in enumerate(spans)
                for both, halves in self._halves(line, *span)
            ]
            if not further:
                return
            share, spans = max(further)
            yield share, spans

    def _halves(self, line: str, start: int, end: int) -> list[Cutting]:
        """List the ways to cut a part of a line into two probable commands."""
        cuts = [((start, start + left), (start + right, end)) for left, right in borders(line[start:end])]
        pieces = [(cut, [line[slice(*span)] for span in cut]) for cut in cuts[:_MOST_BORDERS]]
        likely = (each for each in pieces if all(self._likely(piece) > _LEAST_OF_CUT for piece in each[1]))
        return [(min(map(self._likely, halves)), cut) for cut, halves in likely]

    def _likely(self, piece: str) -> float:
        return max(share for label, share in self._shares(piece).items() if label not in _NO_COMMAND)

    def _read_piece(self, piece: str) -> list[Guess]:
        """Return readings of a piece, best first: no command, or a likely action with one of its likely taggings."""
        shares, tokens = self._shares(piece), tokens_of(piece)
        labels = list(islice((label for label in shares if label not in _NO_COMMAND), _MOST_OFFERED))
        labels = [label for label in labels if shares[label] >= _WORTH_WEIGHING * shares[labels[0]]]
        logs = {label: math.log(share + _LEAST_SHARE) for label, share in shares.items()}
        none = (0.0, 0.0, max(logs[NOTHING], logs[FRAGMENT]), logs[labels[0]], 0.0)
        words = looks(tokens, self._trained.vocabulary)
        worded = (f"none:{each}" for each in ngrams(["^", *words, "$"]))
        found = [self._guess((), none, ("none", f"none {labels[0]}", *worded))]
        for label, taggings in zip(labels, self._trained.taggings(tokens, labels, _MOST_TAGGINGS), strict=True):
            for rank, (likelihood, tags) in enumerate(taggings):
                if likelihood < taggings[0][0] + math.log(_WORTH_WEIGHING):
                    break
                intents = fill(piece, Action(label), tokens, tags, round(shares[label], 3))
                traits = (*tagging_traits(words, label, tags), *_traits(intents, label, rank))
                found.append(self._guess(intents, (logs[label], likelihood, 0.0, 0.0, 0.0), traits))
        return sorted(found, key=lambda each: -each.score)

    def _guess(self, intents: tuple[Intent, ...], likelihoods: tuple[float, ...], traits: tuple[str, ...]) -> Guess:
        score = self._trained.weigh(likelihoods, traits)
        return Guess(intents=intents, likelihoods=likelihoods, traits=traits, score=score)

    def _joined(self, line: str, spans: Sequence[tuple[int, int]], share: float, row: Sequence[Guess]) -> Guess:
        """Combine readings of the pieces of a line into a reading of the line."""
        traits = list(_cut_traits(line, spans, row))
        *sums, _ = map(sum, zip(*(each.likelihoods for each in row), strict=True))
        least = math.log(share)
        return Guess(
            intents=_merged([intent for each in row for intent in each.intents]),
            likelihoods=(*sums, least),
            traits=(*(trait for each in row for trait in each.traits), *traits),
            score=sum(each.score for each in row) + self._trained.weigh((0.0, 0.0, 0.0, 0.0, least), traits),
        )


def _cut_traits(line: str, spans: Sequence[tuple[int, int]], row: Sequence[Guess]) -> Iterator[str]:
    """Yield features of a cut line: text between the pieces, first words, and pairs of successive actions."""
    actions = [each.intents[0].action.value if each.intents else NOTHING for each in row]
    yield f"cut{len(spans)}"
    for (_, left), (right, end) in pairwise(spans):
        join = " ".join(line[left:right].lower().split())
        begin = line[right:end].lower().split(" ", 1)[0]
        yield from (f"cut {join}", f"cut {join} {begin}", f"cut {begin}")
    for one, two in pairwise(actions):
        yield from (f"cut>{one} {two}", f"cut>{one}", f"cut>>{two}", f"cut={one == two}")


def _nearest(intents: Sequence[Intent], readings: Sequence[Guess]) -> Iterable[str]:
    """Return up to three commands: the suggestion and, if it has at most one intent, commands for other actions."""
    found = {"; ".join(map(as_command, intents)): None} if all(map(as_command, intents)) else {}
    offered = [each for reading in readings for each in reading.intents[:1] if each.sure >= _LEAST]
    for action in dict.fromkeys(each.action for each in offered) if len(intents) < 2 else ():
        if action not in {intent.action for intent in intents}:
            found[as_command(next(each for each in offered if each.action is action))] = None
    return islice(filter(None, found), _MOST_OFFERED)


def _traits(intents: Sequence[Intent], action: str, rank: int) -> Iterator[str]:
    """Yield features of a reading: which slots are filled, and the rank of its tagging."""
    intent = intents[0]
    said = bool(intent.target), bool(intent.other), bool(intent.value), min(len(intent.titles), 2)
    filled = f"{said}{intent.kind is not None}{intent.count > 0}{len(intents) > 1}"
    yield from (f"r{rank}", f"i{filled}", f"i{action}{filled}")


def _merged(intents: Sequence[Intent]) -> tuple[Intent, ...]:
    """Drop an intent that only repeats the previous one: "you can close #7, it's done"."""
    return tuple(
        intent
        for at, intent in enumerate(intents)
        if not (at and intent.action is intents[at - 1].action and intent.target in _AGAIN and not intent.titles)
    )
