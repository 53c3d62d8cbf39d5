"""What "it", "the second story", "the auth epic" or "#12" stand for, given what was said and done lately.

Each phrase is a few features; each candidate gets one score from focus, kind, status and words. Where two are close,
or none is likely, a question comes back instead of a guess. A number that is named is never replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.text import words
from orchestra_mem.orchestrator.candidates import (
    FLOOR,
    WIDTH,
    Items,
    Scored,
    at_place,
    candidates,
    fitting,
    items_named,
    of_person,
    owned,
)  # fmt: skip
from orchestra_mem.orchestrator.phrase_words import Phrase, tokenise
from orchestra_mem.orchestrator.phrases import Reader, phrases_in
from orchestra_mem.orchestrator.scene import Scene, title_fit
from orchestra_mem.orchestrator.talk import ANYTHING, Need, Talk
from orchestra_mem.work_types import WorkKind

CLOSE = 0.72
"""From this share of the best score on, another candidate is too close to choose without asking."""
_MOST_TOLD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a phrase means: `items`, or a question in `ask` where that is not sure, never both.

    `candidates` are the items that were weighed, the likeliest first.
    """

    items: Items = ()
    ask: str = ""
    candidates: Items = ()


def resolve_text(text: str, need: Need, talk: Talk) -> Resolution:
    """Resolve what a command was told as its target: "the second one", "login and signup", "#12"."""
    scene = Scene(talk)
    return resolve_all(_phrases_of(text, scene), need, scene)


def is_reference(text: str, talk: Talk) -> bool:
    """Tell whether a text is one plain reference and no more: "13", "the second one", a title word for word."""
    phrases = phrases_in(text, lambda phrase: False)
    if len(phrases) == 1 and phrases[0].text.strip() == text.strip(" .!"):
        return True
    return any(title_fit(tuple(words(text)), item.title) == 1.0 for item in resolve_text(text, ANYTHING, talk).items)


def _phrases_of(text: str, scene: Scene) -> list[Phrase]:
    """Read a target as phrases that "and" or a comma joins; a title that has such words is one."""
    reader = Reader(text)
    whole = tuple(token.low for token in reader.tokens if token.low[0].isalnum())
    title = Phrase(text=text, start=0, end=len(text), words=whole)
    found: list[Phrase] = []
    at = 0
    while at < len(reader.tokens):
        read = reader.phrase(at) or reader.bare(at)
        if read:
            found.append(read[0])
        at = read[1] if read else at + 1
    if any(title_fit(whole, item.title) == 1.0 for item in items_named(title, ANYTHING, scene)):
        return [title]
    is_title = whole and all(phrase.bare and not phrase.ids for phrase in found) and len(found) != 1
    if is_title and (not found or items_named(title, ANYTHING, scene)):
        return [title]
    return [replace(phrase, bare=False) for phrase in found]


def resolve_all(phrases: Sequence[Phrase], need: Need, scene: Scene) -> Resolution:
    """Resolve phrases that stand for all of their items together; the first question stands for all."""
    if not phrases:
        return Resolution(ask="Which item do you mean?")
    tied = list(phrases)
    for place, phrase in enumerate(tied[1:], 1):
        if phrase.owner and phrase.owner.text.lower() in ("its", "their"):  # "login and its tasks"
            tied[place] = replace(phrase, owner=tied[place - 1])
    resolved = [_resolve(phrase, need, scene) for phrase in tied]
    if asked := next((each for each in resolved if each.ask), None):
        return asked
    items = tuple({item.id: item for each in resolved for item in each.items}.values())
    return Resolution(items=items, candidates=items)


def _resolve(phrase: Phrase, need: Need, scene: Scene) -> Resolution:
    if phrase.ids:
        return _by_number(phrase, need, scene)
    if phrase.owner:
        return _owned(phrase, phrase.owner, need, scene)
    whole = _decide(phrase, candidates(phrase, need, scene))
    if not whole.items and not whole.candidates and phrase.words and not phrase.is_named:
        title = tuple(token.low for token in tokenise(phrase.text) if token.low.isalnum())
        for other in (Phrase(text=phrase.text, start=0, end=0, words=title), replace(phrase, words=())):
            if (found := _decide(other, candidates(other, need, scene))).items:
                return found
    if phrase.but is None or whole.ask:
        return whole
    out = _resolve(phrase.but, ANYTHING, scene) if phrase.but.ids else _among(phrase.but, whole.items, scene)
    if out.ask:
        return out
    left = tuple(item for item in whole.items if item not in out.items)
    return Resolution(items=left, candidates=left) if left else Resolution(ask="Nothing is left of that.")


def _owned(phrase: Phrase, owner: Phrase, need: Need, scene: Scene) -> Resolution:
    """Resolve "its tasks", "Dana's interview", "the first of them" by what the owner means."""
    wanted = ANYTHING
    if not phrase.part and phrase.kind and not owner.kind:
        wanted = Need(kinds=tuple(kind for kind in reversed(WorkKind) if WIDTH[kind] > WIDTH[phrase.kind]))
    if len(owner.words) == 1 and (own := of_person(phrase, owner.words[0], scene)):
        return _decide(phrase, [(own, 1.0)] if phrase.many else [((item,), 1.0) for item in own])
    holder = _resolve(owner, wanted, scene)
    return holder if holder.ask else _decide(phrase, owned(phrase, holder.items, need, scene))


def _among(phrase: Phrase, items: Items, scene: Scene) -> Resolution:
    """Resolve a phrase to some of a known set."""
    pool = fitting(items, phrase, ANYTHING, scene)
    if phrase.position is not None:
        pool = at_place(pool, phrase)
    return _decide(phrase, [(pool, 1.0)] if phrase.many else [((item,), 1.0) for item in pool])


def _by_number(phrase: Phrase, need: Need, scene: Scene) -> Resolution:
    """Take the item of a number; one that is not there or of the wrong kind is told, not replaced."""
    if phrase.position is not None:  # "number two" of what was just shown
        place = replace(phrase, ids=(), many=False)
        placed = _resolve(place, need, scene)
        if placed.candidates and (phrase.owner or scene.item(phrase.position) is None):
            return placed
    items = tuple(filter(None, map(scene.item, phrase.ids)))
    kinds = (phrase.kind,) if phrase.kind else need.kinds
    faults = [f"There is no #{number}." for number in phrase.ids if scene.item(number) is None]
    for item in items:
        if kinds and item.kind not in kinds:
            faults.append(f"#{item.id} is {_a(item.kind)}, not {' or '.join(map(_a, kinds))}.")
        elif need.kinds and item.kind not in need.kinds:
            faults.append(f"{item.name} cannot be meant: {' or '.join(map(_a, need.kinds))} is wanted.")
    if faults:
        return Resolution(ask=" ".join([*faults, "Which do you mean?"]))
    return Resolution(items=items, candidates=items)


def _a(kind: WorkKind) -> str:
    return f"an {kind}" if kind is WorkKind.EPIC else f"a {kind}"


def _decide(phrase: Phrase, found: Iterable[Scored]) -> Resolution:
    """Choose the likeliest candidate, or ask where another is close or none is likely."""
    best: dict[frozenset[int], Scored] = {}
    for items, score in found:
        key = frozenset(item.id for item in items)
        if key and (key not in best or best[key][1] < score):
            best[key] = (items, score)
    ranked = sorted(best.values(), key=lambda scored: -scored[1])
    weighed = tuple({item.id: item for items, _ in ranked for item in items}.values())
    if not ranked or ranked[0][1] < FLOOR:
        known = f'Nothing is called "{phrase.text}".' if phrase.words else f'It is not clear what "{phrase.text}" is.'
        return Resolution(ask=f"{known} Which item do you mean?", candidates=weighed)
    close = [items for items, score in ranked if score > CLOSE * ranked[0][1]]
    if len(close) > 1:
        told = [_told(items) for items in close[:_MOST_TOLD]]
        others = f", or one of {len(close) - _MOST_TOLD} others" if len(close) > _MOST_TOLD else ""
        ask = f'Which do you mean by "{phrase.text}": {", ".join(told[:-1])} or {told[-1]}{others}?'
        near = tuple({item.id: item for items in close for item in items}.values())
        return Resolution(ask=ask, candidates=near)
    return Resolution(items=ranked[0][0], candidates=weighed)


def _told(items: Items) -> str:
    return items[0].name if len(items) == 1 else ", ".join(f"#{item.id}" for item in items[:_MOST_TOLD])
