"""What "it", "the second story", "the auth epic" or "#12" stand for: resolved against what was said and done lately.

A phrase is read by grammar, candidates are scored by focus, kind, status, number and words, and where two are close or
none fits, a question comes instead of a guess. A number that is named is never replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from orchestra_mem.core.language.intents.types import Action
from orchestra_mem.core.language.mentions import ANYTHING, Happening, Mention, Need, Talk
from orchestra_mem.core.language.references.groups import (
    by_focus_children,
    by_order_created,
    by_position,
    lately,
    neighbours,
    other_of_kind,
    others,
    pick,
    siblings,
    together,
)
from orchestra_mem.core.language.references.judgement import FLOOR, Candidate, Resolution, decide, fitting, scaled
from orchestra_mem.core.language.references.lines import (
    affirmed,
    containers,
    is_joined,
    is_object,
    is_subject,
    run_length,
    split_aside,
)
from orchestra_mem.core.language.references.needs import container_need, guess_need, need_of
from orchestra_mem.core.language.references.phrase_grammar import find_references
from orchestra_mem.core.language.references.phrases import Form, Phrase, Relation
from orchestra_mem.core.language.references.scene import Scene
from orchestra_mem.core.language.references.singles import (
    in_focus,
    named,
    of_happening,
    of_kind,
    of_status,
    previous,
    same,
)
from orchestra_mem.core.language.references.titles import title_words
from orchestra_mem.core.language.references.words import COMMANDS, POSSESSIVES, STATUSES
from orchestra_mem.core.text import stem
from orchestra_mem.work_types import WorkItem, WorkKind

__all__ = [
    "ANYTHING", "Candidate", "Form", "Happening", "Mention", "Need", "Phrase", "Resolution", "Talk", "find_references",
    "need_of", "resolve", "resolve_line", "resolve_text",
]  # fmt: skip

_ABOVE_SCORE = 0.9
_MAX_PHRASES = 20
_COMMAND_STEMS = frozenset(map(stem, COMMANDS))


def resolve(phrase: Phrase, need: Need, talk: Talk) -> Resolution:
    """Say what a phrase means to a command with this need, or ask."""
    return _resolve(phrase, need, Scene(talk))


def resolve_text(text: str, need: Need, talk: Talk) -> Resolution:
    """Resolve what a command was told as its target: "the second one", "login and signup", "#12"."""
    scene = Scene(talk)
    phrases = find_references(text, _known(scene))
    if not phrases:
        return _nothing(text)
    return _joint(text, phrases[: run_length(text, phrases)], need, scene)


def resolve_line(line: str, talk: Talk) -> Resolution:
    """Say what a line acts on or asks about; what it wants of that is guessed from its verb.

    Of a line that adds something, that is what it is added to.
    """
    aside, order = split_aside(line)
    if aside:
        resolved = _resolve_order(aside, order, talk)
        if resolved.items or resolved.candidates:
            return resolved
    scene = Scene(talk)
    phrases = affirmed(line, find_references(line, _known(scene))[:_MAX_PHRASES])
    action, need = guess_need(line)
    if action is Action.ADD and need is ANYTHING:  # "add another one"
        need = container_need(next((s.items[0].kind for s in scene.seen if s.happening is Happening.CREATED), None))
    if action in (Action.CREATE, Action.ADD) and not is_subject(line, phrases):
        phrases = containers(line, phrases)
    marked = [phrase for phrase in phrases if not phrase.is_bare]
    if not marked:
        return _first_title(line, phrases, need, scene)
    if phrases[0] is not marked[0] and is_object(line, phrases[0]):
        title = _joint(line, phrases[: run_length(line, phrases)], need, scene)
        if title.items:
            return title
    first = marked[0]
    at = phrases.index(first)
    while at > 0 and is_joined(line, phrases[at - 1], phrases[at]):
        at -= 1
    return _joint(line, phrases[at : at + run_length(line, phrases[at:])], need, scene)


def _resolve_order(aside: str, order: str, talk: Talk) -> Resolution:
    """Resolve an order behind something said aside, which is spoken of by then."""
    said = resolve_line(aside, talk)
    mentions = talk.mentions
    if said.items:
        ids = tuple(item.id for item in said.items)
        mentions = [Mention(items=ids, happening=Happening.MENTIONED, text=aside), *mentions]
    return resolve_line(order, replace(talk, mentions=mentions))


def _first_title(line: str, phrases: Sequence[Phrase], need: Need, scene: Scene) -> Resolution:
    """Take the first title that there is; words that name nothing are no references."""
    asked: Resolution | None = None
    at = 0
    while at < len(phrases):
        length = run_length(line, phrases[at:])
        resolution = _joint(line, phrases[at : at + length], need, scene)
        if resolution.items:
            return resolution
        if (resolution.candidates or phrases[at].ids) and asked is None:
            asked = resolution
        at += length
    return asked or _nothing(line)


def _nothing(line: str) -> Resolution:
    phrase = Phrase(text=line[:80], start=0, end=min(len(line), 80), form=Form.NAMED)
    return Resolution(phrase=phrase, ask="Which item do you mean?")


def _known(scene: Scene) -> set[str]:
    return {word for seen in scene.seen[:10] for item in seen.items[:20] for word in title_words(item.title)}


def _joint(line: str, phrases: Sequence[Phrase], need: Need, scene: Scene) -> Resolution:
    """Resolve phrases that "and" joins into one; the first question asked stands for all."""
    resolved = [_resolve(phrase, need, scene) for phrase in _tied(phrases)]
    if any("or" in line[a.end : b.start].lower().split() for a, b in pairwise(phrases)):
        either = [candidate for each in resolved for candidate in each.candidates[:1]]
        return decide(phrases[0], [replace(candidate, score=1.0) for candidate in either])
    resolved = [each for each in resolved if each.candidates or not each.phrase.is_bare] or resolved[:1]
    asked = next((each for each in resolved if each.ask), None)
    if asked or len(resolved) == 1:
        return asked or resolved[0]
    items = tuple({item.id: item for each in resolved for item in each.items}.values())
    start, end = phrases[0].start, phrases[-1].end
    phrase = replace(phrases[0], text=line[start:end], end=end, many=len(items) > 1)
    candidates = tuple(candidate for each in resolved for candidate in each.candidates)
    return Resolution(phrase=phrase, items=items, candidates=candidates)


def _tied(phrases: Sequence[Phrase]) -> Iterator[Phrase]:
    """Yield joined phrases; "its" means the one before: "login and its tasks"."""
    yield phrases[0]
    for before, phrase in pairwise(phrases):
        is_tied = phrase.owner is not None and phrase.owner.text.lower() in POSSESSIVES
        yield replace(phrase, owner=before) if is_tied else phrase


def _resolve(phrase: Phrase, need: Need, scene: Scene) -> Resolution:
    if phrase.ids:
        return _by_number(phrase, need, scene)
    if phrase.is_choice and phrase.owner:
        return _choice(phrase, need, scene)
    if phrase.excepted:
        return _all_but(phrase, phrase.excepted, need, scene)
    if phrase.owner:
        return _owned(phrase, phrase.owner, need, scene)
    return decide(phrase, _candidates(phrase, need, scene))


def _by_number(phrase: Phrase, need: Need, scene: Scene) -> Resolution:
    """Take the items of these numbers; one that is not there or of the wrong kind is told, not replaced."""
    if len(phrase.ids) == 1 and "num" in phrase.text.lower():
        place = replace(phrase, ids=(), form=Form.ORDINAL, position=phrase.ids[0])
        there = filter(None, map(scene.item, phrase.ids))
        named = [Candidate(items=(item,), score=1.0, reasons=("named by number",)) for item in there]
        if found := _placed(place, need, scene):  # "number two" of what was just shown
            return decide(place, [*named, replace(found[0], score=1.0)])
    faults = []
    items = []
    for number in phrase.ids:
        item = scene.item(number)
        kinds = (phrase.kind,) if phrase.kind else need.kinds
        if item is None:
            faults.append(f"There is no #{number}.")
        elif kinds and item.kind not in kinds:
            faults.append(f"#{number} is {_a(item.kind)}, not {' or '.join(_a(kind) for kind in kinds)}.")
        elif phrase.kind and need.kinds and phrase.kind not in need.kinds:
            faults.append(f"{item.name} cannot be meant: {' or '.join(_a(kind) for kind in need.kinds)} is wanted.")
        else:
            items.append(item)
    if faults:
        return Resolution(phrase=phrase, ask=" ".join([*faults, "Which do you mean?"]))
    chosen = Candidate(items=tuple(items), score=1.0, reasons=("named by number",))
    return Resolution(phrase=phrase, items=chosen.items, candidates=(chosen,))


def _a(kind: WorkKind) -> str:
    return f"an {kind}" if kind is WorkKind.EPIC else f"a {kind}"


def _choice(phrase: Phrase, need: Need, scene: Scene) -> Resolution:
    assert phrase.owner is not None
    of = _resolve(phrase.owner, need, scene)
    return decide(phrase, [Candidate(items=(item,), score=1.0, reasons=("one of them",)) for item in of.items])


def _all_but(phrase: Phrase, excepted: Phrase, need: Need, scene: Scene) -> Resolution:
    whole = _resolve(replace(phrase, excepted=None), need, scene)
    if whole.ask:
        return replace(whole, phrase=phrase)
    out = _picked(excepted, whole.items, scene) if not excepted.ids else _resolve(excepted, ANYTHING, scene)
    if out.ask:
        return replace(out, phrase=phrase)
    left = tuple(item for item in whole.items if item not in out.items)
    return decide(phrase, [Candidate(items=left, score=1.0, reasons=("all but what was left out",))] if left else [])


def _picked(phrase: Phrase, items: Sequence[WorkItem], scene: Scene) -> Resolution:
    found = pick(items, phrase, ANYTHING, scene)
    return decide(phrase, [Candidate(items=each, score=share) for each, share in found])


def _owned(phrase: Phrase, owner: Phrase, need: Need, scene: Scene) -> Resolution:
    holder = _resolve(owner, _need_of_owner(phrase, owner), scene)
    is_loose = owner.form is Form.NAMED and owner.kind is None
    if not holder.candidates and is_loose:
        return _resolve(replace(phrase, owner=None, relation=None, form=_plain_form(phrase)), need, scene)
    if holder.ask:
        return Resolution(phrase=phrase, candidates=holder.candidates, ask=holder.ask)
    plain = replace(phrase, owner=None, relation=None)
    if phrase.relation is Relation.BESIDE:
        return decide(phrase, neighbours(plain, need, scene, holder.items[-1]))
    if phrase.relation is Relation.PART:
        return decide(phrase, _within(plain, holder.items, need, scene))
    if phrase.relation is Relation.ABOVE or _asks_above(phrase, holder.items):
        return decide(phrase, _above(plain, holder.items, need, scene))
    below = scene.children(holder.items, phrase.kind)
    if phrase.kind is None and phrase.many is False:  # "its failed one" is one right below
        held = {item.id for item in holder.items}
        next_below = [item for item in below if item.parent in held]
        below = next_below if fitting(next_below, plain, need, scene) else below
    return decide(phrase, _within(plain, below, need, scene))


def _plain_form(phrase: Phrase) -> Form:
    if phrase.form is not Form.CHILDREN:
        return phrase.form
    return Form.KIND if phrase.kind else Form.THEM


def _need_of_owner(phrase: Phrase, owner: Phrase) -> Need:
    """Say what can own: what is wider than the kind asked for, or narrower where one thing above is."""
    if phrase.relation in (Relation.PART, Relation.BESIDE) or owner.kind is not None:
        return ANYTHING
    kinds = list(WorkKind)
    if phrase.kind is None:
        return ANYTHING
    if phrase.relation is Relation.ABOVE:
        return Need(kinds=tuple(kinds[kinds.index(phrase.kind) + 1 :]))
    if phrase.form is Form.CHILDREN and phrase.many is False:
        return Need(kinds=tuple(kind for kind in reversed(kinds) if kind is not phrase.kind))
    return Need(kinds=tuple(reversed(kinds[: kinds.index(phrase.kind)])))


def _asks_above(phrase: Phrase, holders: Sequence[WorkItem]) -> bool:
    kinds = list(WorkKind)
    return phrase.kind is not None and any(kinds.index(item.kind) > kinds.index(phrase.kind) for item in holders)


def _above(phrase: Phrase, items: Sequence[WorkItem], need: Need, scene: Scene) -> Iterator[Candidate]:
    found: dict[int, WorkItem] = {}
    for item in items:
        above = fitting(scene.ancestors(item), phrase, need, scene)
        found |= {each.id: each for each in above[:1]}
    yield from (
        Candidate(items=(item,), score=_ABOVE_SCORE, reasons=("what it stands under",)) for item in found.values()
    )


def _within(phrase: Phrase, items: Sequence[WorkItem], need: Need, scene: Scene) -> Iterator[Candidate]:
    """Pick what a phrase means from a known set; those dealt with lately are not among the others."""
    pool = scene.in_shown_order(fitting(items, phrase, need, scene))
    if phrase.form in (Form.OTHER, Form.REST):
        dealt_with = {item.id for item, _ in scene.subjects()}
        pool = tuple(item for item in pool if item.id not in dealt_with)
    if phrase.happening and any(seen.happening is phrase.happening for seen in scene.seen):
        told = {item.id for seen in scene.seen if seen.happening is phrase.happening for item in seen.items}
        pool = tuple(item for item in pool if item.id in told)
    for picked, share in pick(pool, phrase, need, scene):
        yield Candidate(items=picked, score=share, reasons=("of those",))


_Source = Callable[[Phrase, Need, Scene], Iterable[Candidate]]
_SOURCES: dict[Form, tuple[_Source, ...]] = {
    Form.IT: (in_focus,),
    Form.THAT: (in_focus,),
    Form.KIND: (of_kind,),
    Form.STATUS: (of_status,),
    Form.HAPPENED: (of_happening,),
    Form.NAMED: (named,),
    Form.PREVIOUS: (previous, neighbours),
    Form.NEXT: (neighbours,),
    Form.SAME: (same,),
    Form.OTHER: (others,),
    Form.REST: (others,),
}


def _candidates(phrase: Phrase, need: Need, scene: Scene) -> list[Candidate]:
    if phrase.many and phrase.form in (Form.KIND, Form.THEM, Form.BOTH, Form.ALL, Form.CHILDREN, Form.THAT):
        return _several(phrase, need, scene)
    if phrase.form in (Form.ORDINAL, Form.LAST):
        return _placed(phrase, need, scene)
    sources = _SOURCES.get(phrase.form, (together,))
    found = [candidate for source in sources for candidate in source(phrase, need, scene)]
    if phrase.form is Form.OTHER and phrase.many is False and phrase.kind:
        found = found or list(other_of_kind(phrase, need, scene))
    if phrase.form is Form.REST or (phrase.form is Form.OTHER and (phrase.many or phrase.kind or phrase.words)):
        found = found or list(siblings(phrase, need, scene))
    if not found and phrase.form is Form.NAMED and len(phrase.words[0]) > 1:
        for words in _shortened(phrase):
            found = found or scaled(named(replace(phrase, words=(words,)), need, scene), 0.8, "but for a word")
    if not found and phrase.loose:
        return _candidates(_without_loose(phrase), need, scene)
    return found


def _shortened(phrase: Phrase) -> Iterator[tuple[str, ...]]:
    """Yield a description without what may be no part of it.

    That is a verb before it, known or not, who gets it ("give Kim login form"), or what it becomes ("login done").
    """
    words = phrase.words[0]
    first, second = phrase.text.split()[:2] if " " in phrase.text else ("", "")
    is_person = phrase.is_bare and first[:1].isupper() and not second[:1].isupper()
    if phrase.start == 0 or stem(words[0]) in _COMMAND_STEMS or is_person:
        yield words[1:]
    if phrase.is_bare and words[-1] in STATUSES:
        yield words[:-1]


def _without_loose(phrase: Phrase) -> Phrase:
    """Take off what may as well belong to the rest of the line."""
    form = phrase.form
    if form is Form.NAMED:
        plain = Form.KIND if phrase.kind else Form.THEM if phrase.many else Form.THAT
        form = Form.HAPPENED if phrase.happening else Form.STATUS if phrase.statuses else plain
    return replace(phrase, words=(), loose=False, form=form)


def _placed(phrase: Phrase, need: Need, scene: Scene) -> list[Candidate]:
    """Resolve what is told by its place in an order: of a group, of time, or of what stands below the focus."""
    if {"newest", "latest"} & set(phrase.spare) and phrase.happening is None:
        created = _placed(replace(phrase, happening=Happening.CREATED), need, scene)
        if created:
            return created
    found, is_short = by_position(phrase, need, scene)
    if phrase.form is Form.LAST and (phrase.position or 0) < 0 and "final" not in phrase.spare:
        found += lately(phrase, need, scene)
    if not found and not is_short and phrase.kind:
        found += by_focus_children(phrase, need, scene)
        found += by_order_created(phrase, need, scene) if phrase.form is Form.ORDINAL else ()
    if not found and phrase.words and (phrase.position or phrase.spare):
        spare = replace(phrase, words=((*phrase.spare, *phrase.words[0]),), position=None, form=Form.NAMED)
        found = list(named(spare, need, scene))
    if phrase.form is Form.LAST and phrase.statuses and not found:
        found = list(of_status(phrase, need, scene))
    if not found and phrase.loose:
        return _placed(_without_loose(phrase), need, scene)
    return found


def _several(phrase: Phrase, need: Need, scene: Scene) -> list[Candidate]:
    found = list(together(phrase, need, scene))
    if phrase.kind and (phrase.form is Form.ALL or not found):
        found += by_focus_children(phrase, need, scene)
    if (phrase.kind or phrase.count) and not any(candidate.score >= FLOOR for candidate in found):
        told = fitting((item for item, _ in scene.subjects()), phrase, need, scene)
        if len(told) > 1 and phrase.count in (None, len(told)):
            found.append(Candidate(items=told[::-1], score=0.5, reasons=("all that were spoken of",)))
    return found
