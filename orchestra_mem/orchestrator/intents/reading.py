"""Reading a line: what the grammar reads whole is sure; everything else is a suggestion of the classifier or a model.

What a model reads is JSON that a schema binds, checked, and never more than a suggestion.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from orchestra_mem.core.prompts import intent_prompt
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.orchestrator.intents import DESTRUCTIVE, Action, Intent, Parsed
from orchestra_mem.orchestrator.intents.classifier import (
    FRAGMENT,
    NOTHING,
    Classifier,
    classifier,
    looks,
    tagging_traits,
    tokens_of,
)
from orchestra_mem.orchestrator.intents.grammar import as_command, borders, read_whole
from orchestra_mem.orchestrator.intents.slots import fill, title_in
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkKind

logger = logging.getLogger(__name__)

_MOST_OFFERED, _MOST_PIECES, _MOST_BORDERS = 3, 4, 12
_SURE_OF_CUT = 0.4  # how likely both halves must be commands of their own
_AGAIN = frozenset({"", "it", "that", "this", "them", "they"})
_MOST_TAGGINGS = 5  # of an action
_LEAST_SHARE = 1e-9  # keeps logarithms finite
_LEAST = 0.02  # how likely an action must be to be suggested at all
_NO_COMMAND = frozenset({NOTHING, FRAGMENT})
_REMEMBERED = 64  # pieces of lines
_LONGEST = 2_000  # characters of a line that are looked at; a command is not longer
MAX_INTENTS, MAX_TITLES, MAX_COUNT = 16, 100, 1_000
_PHRASES = ("target", "other", "value")
_LEVELS = frozenset({"1", "2", "3", "4", "5", "higher", "lower"})
_SURE = 0.7  # a model tells no measure of its own that would mean something
_ANSWER_TOKENS = 400
_TIMEOUT_S = 30.0


def read_line(line: str, titles: Sequence[str] = ()) -> Parsed:
    """Read what a line asks for.

    Args:
        line: as it was typed.
        titles: of the items that there are; one that stands in the line is found as a target.

    Returns:
        `understood` only where plain commands make up the whole line: that may be done. Else `intents` is the best
        suggestion, empty where the line seems to ask for nothing, and `nearest` are commands to choose from.
    """
    return _reader().read(line, titles)


@cache
def _reader() -> Reader:
    return Reader(classifier())


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """One way to read a piece of a line.

    `likelihoods` are the logs of those of the action, of the tags, of nothing, and of the action that speaks against
    nothing; `traits` are what else the choice among readings has learnt to look at.
    """

    intents: tuple[Intent, ...]
    likelihoods: tuple[float, float, float, float]
    traits: tuple[str, ...]


class Reader:
    """Reads lines with one trained classifier."""

    def __init__(self, trained: Classifier) -> None:
        self._trained = trained
        self._shares = lru_cache(maxsize=_REMEMBERED)(trained.probabilities)

    def read(self, line: str, titles: Sequence[str] = ()) -> Parsed:
        """See `read_line`."""
        line = _with_title_quoted(line.strip(), titles)
        if len(line) <= _LONGEST and (sure := read_whole(line)):
            return Parsed(intents=sure, understood=True)
        line = line[:_LONGEST]
        ranked = [self.readings(piece) for piece in self.pieces(line)]
        intents = _merged([intent for readings in ranked for intent in readings[0].intents])
        nearest = tuple(_nearest(intents, [each for readings in ranked for each in readings]))
        return Parsed(intents=tuple(intents), understood=False, nearest=nearest, reason=_reason(line, intents))

    def pieces(self, line: str, most: int = _MOST_PIECES) -> list[str]:
        """Cut a line where both halves are likely to be commands of their own."""
        if most < 2:
            return [line]
        scored = [(min(self._likely(left), self._likely(right)), left, right) for left, right in _halves(line)]
        share, left, right = max(scored, default=(0.0, "", ""))
        if share < _SURE_OF_CUT:
            return [line]
        head = self.pieces(left, most - 1)
        return head + self.pieces(right, most - len(head))

    def _likely(self, piece: str) -> float:
        """Tell how likely a piece's likeliest action is."""
        return max(share for label, share in self._shares(piece).items() if label not in _NO_COMMAND)

    def readings(self, piece: str) -> list[Guess]:
        """Give what a piece may ask for, best first: nothing, or a likely action with its words tagged in some way."""
        shares, tokens = self._shares(piece), tokens_of(piece)
        labels = list(islice((label for label in shares if label not in _NO_COMMAND), _MOST_OFFERED))
        logs = {label: math.log(share + _LEAST_SHARE) for label, share in shares.items()}
        none = (0.0, 0.0, max(logs[NOTHING], logs[FRAGMENT]), logs[labels[0]])
        words = looks(tokens, self._trained.vocabulary)
        found = [Guess(intents=(), likelihoods=none, traits=("none", f"none {labels[0]}"))]
        for label, taggings in zip(labels, self._trained.taggings(tokens, labels, _MOST_TAGGINGS), strict=True):
            for rank, (likelihood, tags) in enumerate(taggings):
                filled = fill(piece, Action(label), list(zip(tokens, tags, strict=True)))
                traits = (*tagging_traits(words, label, tags), *_traits(filled, label, rank))
                intents = tuple(replace(intent, sure=round(shares[label], 3)) for intent in filled)
                found.append(Guess(intents=intents, likelihoods=(logs[label], likelihood, 0.0, 0.0), traits=traits))
        return sorted(found, key=lambda each: -self._trained.weigh(each.likelihoods, each.traits))


def _nearest(intents: Sequence[Intent], readings: Sequence[Guess]) -> Iterable[str]:
    """Give up to three commands: the suggestion first, then the next best actions where it is no more than one."""
    found = {"; ".join(map(as_command, intents)): None} if intents else {}
    offered = [each for reading in readings for each in reading.intents[:1] if each.sure >= _LEAST]
    for action in dict.fromkeys(each.action for each in offered) if len(intents) < 2 else ():
        if action not in {intent.action for intent in intents}:
            found[as_command(next(each for each in offered if each.action is action))] = None
    return islice(found, _MOST_OFFERED)


def _traits(intents: Sequence[Intent], action: str, rank: int) -> Iterator[str]:
    """Tell what is filled, and which of the taggings has filled it."""
    intent = intents[0]
    said = bool(intent.target), bool(intent.other), bool(intent.value), min(len(intent.titles), 2)
    filled = f"{said}{intent.kind is not None}{intent.count > 0}{len(intents) > 1}"
    yield from (f"r{rank}", f"i{filled}", f"i{action}{filled}")


def _merged(intents: Sequence[Intent]) -> list[Intent]:
    """Leave out what only says the same again: "you can close #7, it's done"."""
    return [
        intent
        for at, intent in enumerate(intents)
        if not (at and intent.action is intents[at - 1].action and intent.target in _AGAIN and not intent.titles)
    ]


def _halves(line: str) -> list[tuple[str, str]]:
    return [(line[:left], line[right:]) for left, right in borders(line)[:_MOST_BORDERS]]


def _with_title_quoted(line: str, titles: Sequence[str]) -> str:
    """Put quotes around a title that a line names, so that its words are not taken for a command's."""
    place = title_in(line, titles) if titles and '"' not in line else None
    if place is None:
        return line
    start, end = place
    return f'{line[:start]}"{line[start:end]}"{line[end:]}'


def _reason(line: str, intents: Sequence[Intent]) -> str:
    said = line if len(line) <= 80 else f"{line[:79]}\u2026"
    return f'"{said}" {"is not a plain command" if intents else "does not seem to ask for anything known here"}'


class ModelReader:
    """Asks a model where the grammar has not read a line.

    Args:
        model: answers by a schema; without one the classifier's suggestion stands.
        foreground: keeps background work off the model meanwhile.
    """

    def __init__(self, model: LanguageModel | None, foreground: Callable[[], AbstractContextManager[None]]) -> None:
        self._model = model
        self._foreground = foreground

    def suggest(self, line: str, parsed: Parsed) -> Parsed:
        """Put the model's reading of a line before the classifier's, where it holds; `understood` stays False.

        What takes away is taken from the model only where the classifier has read it as well.
        """
        if parsed.understood or self._model is None:
            return parsed
        try:
            with self._foreground():
                answer = self._model.generate(
                    intent_prompt(line), max_tokens=_ANSWER_TOKENS, schema=intent_schema(), timeout_s=_TIMEOUT_S
                )
            intents = intents_from_json(answer.text)
        except (ModelError, ValueError) as error:
            logger.warning("the model could not read a line: %s", error)
            return parsed
        known = {intent.action for intent in parsed.intents}
        if any(intent.action in DESTRUCTIVE - known or not _stands_in(intent, line) for intent in intents):
            return parsed
        command = ["; ".join(map(as_command, intents))] if intents else []
        return replace(parsed, intents=intents, nearest=tuple(dict.fromkeys([*command, *parsed.nearest]))[:3])


def intent_schema() -> dict[str, Json]:
    """Give the JSON schema of a list of intents; an empty list where a line asks for nothing."""
    properties: dict[str, Json] = {
        "action": {"type": "string", "enum": [action.value for action in Action]},
        "kind": {"enum": [*(kind.value for kind in WorkKind), None]},
        "count": {"type": "integer", "minimum": 0, "maximum": MAX_COUNT},
        "titles": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_TITLES},
        **{name: {"type": "string"} for name in _PHRASES},
    }
    item: Json = {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}
    intents: Json = {"type": "array", "items": item, "maxItems": MAX_INTENTS}
    return {
        "type": "object",
        "properties": {"intents": intents},
        "required": ["intents"],
        "additionalProperties": False,
    }


class _Read(BaseModel):
    """An intent as a model tells it."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)
    action: Action
    kind: WorkKind | None = None
    count: int = Field(0, ge=0, le=MAX_COUNT, strict=True)
    titles: tuple[str, ...] = Field((), max_length=MAX_TITLES)
    target: str = ""
    other: str = ""
    value: str = ""


class _Answer(BaseModel):
    intents: list[_Read] = Field(max_length=MAX_INTENTS)


def intents_from_json(answer: str) -> tuple[Intent, ...]:
    """Read what a model answered, any text whatever; half an answer is none.

    Raises:
        ValueError: it is not what the schema says; all faults are told together, each with its place.
    """
    return tuple(Intent(**dict(read), sure=_SURE) for read in _Answer.model_validate_json(answer).intents)


def _stands_in(intent: Intent, line: str) -> bool:
    """Tell whether all that a model has read in a line stands there."""
    words = " ".join(line.casefold().split())
    value = "" if intent.action is Action.PRIORITISE and intent.value in _LEVELS else intent.value
    told = (intent.target, intent.other, value, *intent.titles)
    return all(" ".join(said.casefold().split()) in words for said in told)
