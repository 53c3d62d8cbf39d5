"""Candidates for what a phrase means, how well an item fits a phrase and a need, and when to ask back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.language.mentions import Need
from orchestra_mem.core.language.references.phrases import Form, Phrase
from orchestra_mem.core.language.references.scene import Scene
from orchestra_mem.core.language.references.titles import match
from orchestra_mem.work_types import WorkItem, WorkKind

CLOSE = 0.76
"""From this share of the best score on, another candidate is too close to choose without asking."""

SURE = 0.72
"""What scores less was spoken of some while ago: of that, less closeness is doubt enough."""

CLOSE_OF_UNSURE = 0.67
CLOSE_OF_NAMED = 0.8

FLOOR = 0.15
"""What scores less is no answer."""

UNFIT = 0.4
"""What is left of a score where the status makes no sense for the command."""

_NAMED_ABOVE = 0.55
_KIND_SECOND = 0.95
_KIND_FAR = 0.4
_MAX_TOLD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Items that a phrase may mean. `score` is above 0, higher is likelier; `reasons` are words for people."""

    items: tuple[WorkItem, ...]
    score: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a phrase means: `items`, or a question in `ask` where that is not sure, never both.

    `candidates` are all that were weighed, the likeliest first.
    """

    phrase: Phrase
    items: tuple[WorkItem, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    ask: str = ""


def status_fit(items: Sequence[WorkItem], need: Need, *, unfit: float = UNFIT) -> float:
    """Tell how well the items' statuses suit a need, `unfit` to 1."""
    if not need.statuses or not items:
        return 1.0
    share = sum(item.status in need.statuses for item in items) / len(items)
    return unfit + (1 - unfit) * share


def kind_fit(item: WorkItem, phrase: Phrase, need: Need) -> float:
    """Tell how well an item's kind suits phrase and need: 0 where it cannot be meant."""
    if phrase.kind is not None and item.kind is not phrase.kind:
        return 0.0
    if not need.kinds or item.kind is need.kinds[0]:
        return 1.0
    if item.kind not in need.kinds:
        return 0.0
    return _KIND_FAR if item.kind is WorkKind.MILESTONE else _KIND_SECOND


def word_fit(item: WorkItem, phrase: Phrase, scene: Scene, *, above: bool = True) -> float:
    """Tell how well a description fits an item, or what is `above` it, 0 to 1; 1 where there is no description."""
    if not phrase.words:
        return 1.0
    own = max(name_fit(item, words) for words in phrase.words)
    if own or not above or phrase.is_bare or item.parent is None:
        return own
    return max(_fit_with_above(item, words, phrase, scene) for words in phrase.words)


def _fit_with_above(item: WorkItem, words: Sequence[str], phrase: Phrase, scene: Scene) -> float:
    """Fit "the kitchen story" to what stands under "Kitchen", "the kitchen wiring" to "New wiring" there."""
    for above in scene.ancestors(item):
        is_meant_itself = phrase.kind in (None, above.kind) and not phrase.statuses
        found = match(words, above.title)
        if found and not is_meant_itself:
            return _NAMED_ABOVE * found
        if not found and len(words) > 1 and (found := match(words, f"{above.title} {item.title}")):
            return _NAMED_ABOVE * found
    return 0.0


def name_fit(item: WorkItem, words: Sequence[str]) -> float:
    """Tell how well words name an item, 0 to 1; what stands in its description counts little."""
    found = match(words, item.title)
    return found or (0.5 * match(words, item.description) if item.description else 0.0)


def state_fit(item: WorkItem, phrase: Phrase) -> float:
    """Tell how well an item's status fits what the phrase says of it; a word of its title will do."""
    if not phrase.statuses or item.status in phrase.statuses:
        return 1.0
    return 0.6 if phrase.spare and all(match([word], item.title) for word in phrase.spare) else 0.0


def fit(item: WorkItem, phrase: Phrase, need: Need, scene: Scene) -> float:
    """Tell how well an item fits all that phrase and need say of kind, status and words."""
    score = kind_fit(item, phrase, need) * state_fit(item, phrase)
    return score and score * word_fit(item, phrase, scene)


def fitting(items: Iterable[WorkItem], phrase: Phrase, need: Need, scene: Scene) -> tuple[WorkItem, ...]:
    """List the items that a phrase can mean."""
    return tuple(item for item in items if fit(item, phrase, need, scene) > 0)


def decide(phrase: Phrase, found: Iterable[Candidate]) -> Resolution:
    """Choose the likeliest candidate, or ask where another is close or none is likely."""
    merged: dict[frozenset[int], Candidate] = {}
    for candidate in found:
        key = frozenset(item.id for item in candidate.items)
        if key and (key not in merged or merged[key].score < candidate.score):
            merged[key] = candidate
    ranked = tuple(sorted(merged.values(), key=lambda candidate: -candidate.score))
    if not ranked or ranked[0].score < FLOOR:
        return Resolution(phrase=phrase, candidates=ranked, ask=_none(phrase))
    share = CLOSE if ranked[0].score >= SURE else CLOSE_OF_UNSURE
    share = CLOSE_OF_NAMED if phrase.form is Form.NAMED else share
    close = [candidate for candidate in ranked if candidate.score > share * ranked[0].score]
    if len(close) > 1:
        return Resolution(phrase=phrase, candidates=ranked, ask=_which(phrase, close))
    return Resolution(phrase=phrase, items=ranked[0].items, candidates=ranked)


def _none(phrase: Phrase) -> str:
    if phrase.form is Form.NAMED:
        return f'Nothing is called "{phrase.text}". Which item do you mean?'
    return f'It is not clear what "{phrase.text}" stands for. Which item do you mean?'


def _which(phrase: Phrase, close: Sequence[Candidate]) -> str:
    told = [_told(candidate.items) for candidate in close[:_MAX_TOLD]]
    others = "" if len(close) <= _MAX_TOLD else f", or one of {len(close) - _MAX_TOLD} others"
    return f'Which do you mean by "{phrase.text}": {", ".join(told[:-1])} or {told[-1]}{others}?'


def _told(items: Sequence[WorkItem]) -> str:
    if len(items) == 1:
        return items[0].name
    numbers = ", ".join(f"#{item.id}" for item in items[:_MAX_TOLD])
    return numbers if len(items) <= _MAX_TOLD else f"{numbers} and {len(items) - _MAX_TOLD} more"


def scaled(candidates: Iterable[Candidate], factor: float, reason: str = "") -> list[Candidate]:
    """Give candidates with their scores multiplied."""
    more = (reason,) if reason else ()
    return [replace(each, score=each.score * factor, reasons=(*each.reasons, *more)) for each in candidates]
