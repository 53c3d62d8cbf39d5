"""What is meant by focus, kind, status, happening or name: looked for in the talk first and then in the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from orchestra_mem.core.language.mentions import Happening, Need
from orchestra_mem.core.language.references.groups import together
from orchestra_mem.core.language.references.judgement import (
    FLOOR,
    Candidate,
    fit,
    fitting,
    kind_fit,
    name_fit,
    scaled,
    status_fit,
    word_fit,
)
from orchestra_mem.core.language.references.phrases import Form, Phrase
from orchestra_mem.core.language.references.scene import DECAY, MAX_CHILDREN, Scene
from orchestra_mem.core.language.references.titles import match, numeral
from orchestra_mem.core.text import STOP_WORDS
from orchestra_mem.work_types import OPEN_STATUSES, WorkFilter, WorkItem, WorkKind, WorkStatus

_SPOKEN_OF = 0.6  # of a description's score, for an item that was spoken of at all
_BELOW_FOCUS = 0.5
_ELSEWHERE = 0.42
_ONLY_ONE = 0.5
_SHOWN = 0.6
_ALL_OF_IT = 1.3
_ONE_OF_SHOWN = 0.35
_HOLDER_OF_NEWEST = 0.7
_JUST_NOW = 1.25
_RUN = 3
_MAX_FOUND = 15
_MAX_SCANNED = 60
_MAX_HOLDERS = 3
_PREFIX_CHARS = 5
_ALIKE = 0.45
_SURE_BARE = 0.6
_STATUS_OF: dict[Happening, tuple[WorkStatus, ...]] = {
    Happening.STARTED: (WorkStatus.IN_PROGRESS,),
    Happening.FINISHED: (WorkStatus.DONE,),
    Happening.FAILED: (WorkStatus.FAILED,),
    Happening.BLOCKED: (WorkStatus.BLOCKED,),
    Happening.DEFERRED: (WorkStatus.DEFERRED,),
    Happening.CANCELLED: (WorkStatus.CANCELLED,),
}
_CHANGES = frozenset({*_STATUS_OF, Happening.ASSIGNED})
_HAPPENING_OF = {statuses: happening for happening, statuses in _STATUS_OF.items()}


def in_focus(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "it", "that one" as the one thing that is spoken of."""
    for item_id, weight in scene.singles().items():
        item = scene.item(item_id)
        if item is not None and (share := fit(item, phrase, need, scene)):
            if phrase.kind is None and not need.kinds and not scene.was_said(item):
                continue
            if phrase.kind is None and scene.is_one_of_shown(item):
                weight = min(weight, _ONE_OF_SHOWN)
            elif phrase.form is Form.THAT and phrase.kind is None and not need.kinds and scene.seen[0].subject is None:
                is_shown = scene.seen[0].happening is Happening.LISTED and scene.holder(scene.seen[0]) is not item
                weight = min(weight, _ONE_OF_SHOWN if is_shown else _HOLDER_OF_NEWEST)
            score = weight * share * status_fit((item,), need)
            yield Candidate(items=(item,), score=score, reasons=(f"in focus by {weight:.2f}",))
    if need.many and scene.seen and phrase.kind is None:
        newest = scene.seen[0]
        yield Candidate(items=newest.items, score=_ALL_OF_IT, reasons=(f"all that was {newest.happening} just now",))


def of_kind(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the epic": the one in focus, else the only one that there is or that is open."""
    found = list(in_focus(phrase, need, scene))
    yield from found
    for item_id, weight in scene.above().items():
        item = scene.item(item_id)
        if item and (share := fit(item, phrase, need, scene)):
            score = weight * share * status_fit((item,), need)
            found.append(Candidate(items=(item,), score=score, reasons=("above what was spoken of",)))
            yield found[-1]
    if scene.seen and scene.seen[0].subject is None:
        shown = fitting(scene.seen[0].group, phrase, need, scene)
        if len(shown) > 1:  # who has just seen several has to say which
            yield from (Candidate(items=(item,), score=_SHOWN, reasons=("one of those told last",)) for item in shown)
    if phrase.kind is None or any(candidate.score >= FLOOR for candidate in found):
        return
    for statuses in ((), (WorkStatus.IN_PROGRESS,), OPEN_STATUSES):
        there = scene.find(WorkFilter(kinds=(phrase.kind,), statuses=statuses, limit=2))
        if len(there) == 1 and kind_fit(there[0], phrase, need):
            yield Candidate(items=(there[0],), score=_ONLY_ONE, reasons=(f"the only {phrase.kind}",))
            return


def of_status(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the failed one", "the blocked tasks": spoken of lately, else there at all."""
    if phrase.many:
        found = list(together(phrase, need, scene))
        lone = [
            item for item in _spoken_of(scene) if fit(item, phrase, need, scene) and scene.singles()[item.id] > FLOOR
        ]
        if lone and not found and phrase.count in (None, len(lone)):
            found.append(Candidate(items=tuple(lone), score=0.5, reasons=("spoken of lately",)))
        yield from found
    else:
        found = list(_spoken_of_with_status(phrase, need, scene))
        yield from found
    least = FLOOR if phrase.many and phrase.kind is None else _ONLY_ONE  # "the blocked ones" are some of those told
    if any(candidate.score >= least for candidate in found):
        return
    is_of_shown = scene.seen and scene.seen[0].happening is Happening.LISTED and scene.seen[0].subject is None
    if is_of_shown and phrase.many and phrase.kind is None:
        return  # "the blocked ones" of a list that has none
    kinds = (phrase.kind,) if phrase.kind else need.kinds
    there = scene.find(
        WorkFilter(kinds=kinds, statuses=phrase.statuses, limit=MAX_CHILDREN if phrase.many else _MAX_FOUND)
    )
    there = [item for item in there if fit(item, phrase, need, scene)]
    if phrase.many and there and phrase.count in (None, len(there)):
        yield Candidate(items=tuple(there), score=0.45, reasons=("all that there are",))
    elif not phrase.many:
        yield from (Candidate(items=(item,), score=_ELSEWHERE, reasons=(f"is {item.status}",)) for item in there)


def _spoken_of_with_status(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    happening = phrase.happening or _HAPPENING_OF.get(phrase.statuses)
    newest = scene.seen[0].subject if scene.seen and scene.seen[0].happening is happening else None
    if any(seen.happening is happening and seen.subject is not newest for seen in scene.seen[:_RUN]):
        newest = None  # one of several to which it happened
    for item_id, weight in scene.singles().items():
        item = scene.item(item_id)
        share = fit(item, phrase, need, scene) if item else 0.0
        if item is None or not share:
            continue
        spoken_of = _SPOKEN_OF + (1 - _SPOKEN_OF) * weight if scene.was_said(item) else _BELOW_FOCUS
        score = spoken_of * share * status_fit((item,), need, unfit=0.6)
        if item is newest:
            score *= _JUST_NOW
        yield Candidate(items=(item,), score=score, reasons=(f"is {item.status}", "spoken of lately"))


def of_happening(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the one we just created": the newest to which that was done."""
    wanted = phrase.happening
    if phrase.many:
        yield from together(phrase, need, scene)
        yield from _all_of_happening(phrase, need, scene)
        return
    rank = 1.0
    for seen in scene.seen:
        if seen.happening is not wanted and not (wanted is Happening.CHANGED and seen.happening in _CHANGES):
            continue
        pool = fitting((seen.subject,) if seen.subject else seen.items, phrase, need, scene)
        yield from (
            Candidate(items=(item,), score=rank * fit(item, phrase, need, scene), reasons=(f"{wanted} lately",))
            for item in pool
        )
        rank *= 0.7 if pool else 1.0
    if rank == 1.0 and wanted in _STATUS_OF:
        yield from of_status(replace(phrase, statuses=_STATUS_OF[wanted], happening=None), need, scene)
    elif rank == 1.0 and wanted in (Happening.MENTIONED, Happening.LISTED, Happening.CHANGED):
        yield from in_focus(phrase, need, scene)


def _all_of_happening(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "both tasks I started", "the ones we added" over several mentions, the newest so many."""
    found: dict[int, WorkItem] = {}
    for seen in scene.seen:
        if seen.happening is phrase.happening:
            pool = fitting((seen.subject,) if seen.subject else seen.group, phrase, need, scene)
            found |= {item.id: item for item in reversed(pool) if item.id not in found}
    items = tuple(found.values())[: phrase.count]
    if len(items) > 1 and phrase.count in (None, len(items)):
        score = 0.9 if phrase.count else 0.6
        yield Candidate(items=items[::-1], score=score, reasons=(f"{phrase.happening} lately",))


def previous(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the previous task" as the one spoken of before the newest."""
    subjects = scene.subjects()
    pool = [(item, weight) for item, weight in subjects if fit(item, phrase, need, scene)]
    if not pool:
        return
    newest = pool[0][0]
    current = scene.seen[0].subject
    is_newest = current is not None and (newest is current or newest in scene.ancestors(current))
    count = phrase.count or 1
    earlier = pool[1:] if is_newest else pool
    if len(earlier) >= count:
        items = tuple(item for item, _ in earlier[:count])
        yield Candidate(items=items, score=max(weight for _, weight in earlier[:count]), reasons=("before the newest",))
    elif count == 1 and is_newest:
        yield Candidate(items=(newest,), score=FLOOR * 2, reasons=("the only one spoken of",))


def same(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "same as before" as all that the newest thing done was done to; what was merely shown is none."""
    holders = list(_same_holders(phrase, need, scene))
    if holders and need.kinds:
        yield from holders
        return
    done = [seen for seen in scene.seen if seen.happening is not Happening.LISTED]
    done = [seen for seen in done if phrase.happening in (None, seen.happening)]
    for seen in done or [replace(seen, weight=1.0) for seen in scene.seen]:
        items = (seen.subject,) if seen.subject and phrase.many is not True else seen.group
        pool = fitting(items, phrase, need, scene)
        if not pool or (phrase.count is not None and len(pool) != phrase.count):
            continue
        if phrase.many is False and len(pool) > 1:
            yield from (Candidate(items=(item,), score=seen.weight, reasons=("one of the newest",)) for item in pool)
            continue
        share = 0.4 if phrase.many and len(pool) == 1 else 1.0
        score = seen.weight * share * status_fit(pool, need)
        yield Candidate(items=pool, score=score, reasons=(f"{seen.happening} before",))
    yield from scaled(holders, FLOOR * 2)


def _same_holders(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "add one to the same epic" as what something was added to before."""
    rank = 1.0
    for seen in scene.seen:
        holder = scene.holder(seen) if seen.happening is Happening.CREATED else None
        if holder and fit(holder, phrase, need, scene):
            yield Candidate(items=(holder,), score=rank, reasons=("added to before",))
            rank *= DECAY


def named(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the auth epic", "the login and signup stories": by the words of titles."""
    if len(phrase.words) > 1:
        yield from _each_named(phrase, need, scene)
        return
    if phrase.many:
        yield from _several_named(phrase, need, scene)
        return
    yield from _one_named(phrase, need, scene)


def _one_named(phrase: Phrase, need: Need, scene: Scene) -> list[Candidate]:
    found = [
        Candidate(items=(item,), score=score, reasons=(reason,))
        for item, base, reason in _pool(phrase, need, scene)
        if (score := base * fit(item, phrase, need, scene) * status_fit((item,), need, unfit=0.6))
        and (not phrase.is_bare or word_fit(item, phrase, scene) >= _SURE_BARE)
    ]
    if not found and not phrase.is_bare:
        found = list(_similar(phrase, need, scene))
    return found


def _each_named(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    chosen: dict[int, WorkItem] = {}
    score = 1.0
    for words in phrase.words:
        one = replace(phrase, words=(words,), many=False, count=None)
        ranked = sorted(_one_named(one, need, scene), key=lambda candidate: -candidate.score)
        if not ranked:
            return
        if len(ranked) > 1 and ranked[1].score > 0.8 * ranked[0].score:
            yield from ranked[:2]
            return
        chosen |= {item.id: item for item in ranked[0].items}
        score = min(score, ranked[0].score)
    yield Candidate(items=tuple(chosen.values()), score=score, reasons=("each named",))


def _several_named(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the auth stories": those of what is called so, else those that are called so themselves."""
    wide = replace(phrase, kind=None, statuses=(), many=False)
    below: list[WorkItem] = []
    plain = replace(phrase, words=())
    ranked = sorted(_one_named(wide, Need(), scene), key=lambda candidate: -candidate.score)
    for candidate in [each for each in ranked if word_fit(each.items[0], wide, scene, above=False)][:_MAX_HOLDERS]:
        holder = candidate.items[0]
        if _is_wider(holder.kind, phrase.kind):
            found = scene.children([holder], phrase.kind)
            if phrase.kind is None:
                found = [item for item in found if item.parent == holder.id]
            below += found
            if items := fitting(found, plain, need, scene):
                yield Candidate(items=items, score=candidate.score, reasons=(f"under {holder.name}",))
    called = [item for item, _, _ in _pool(phrase, need, scene) if word_fit(item, phrase, scene, above=False)]
    mentioned = fitting(called, phrase, need, scene)
    if mentioned and not all(item in below for item in mentioned):
        yield Candidate(items=mentioned, score=0.6 if len(mentioned) > 1 else 0.3, reasons=("called so",))


def _is_wider(kind: WorkKind, than: WorkKind | None) -> bool:
    kinds = list(WorkKind)
    return than is None or kinds.index(kind) < kinds.index(than)


def _spoken_of(scene: Scene) -> Iterator[WorkItem]:
    return filter(None, map(scene.item, scene.singles()))


def _pool(phrase: Phrase, need: Need, scene: Scene) -> Iterator[tuple[WorkItem, float, str]]:
    """Yield what may be called by a name, with how likely each place is: spoken of, below that, anywhere."""
    told: set[int] = set()
    for item_id, weight in scene.singles().items():
        if item := scene.item(item_id):
            told.add(item_id)
            was_said = scene.was_said(item)
            yield item, _SPOKEN_OF + (1 - _SPOKEN_OF) * weight if was_said else _BELOW_FOCUS, "spoken of lately"
    for item_id in list(scene.singles())[:3]:
        if (item := scene.item(item_id)) and item.kind not in (WorkKind.TASK, WorkKind.SUBTASK):
            for child in scene.children([item], phrase.kind):
                if child.id not in told:
                    told.add(child.id)
                    yield child, _BELOW_FOCUS, f"under {item.name}"
    for item in _anywhere(phrase, need, scene):
        if item.id not in told:
            told.add(item.id)
            yield item, _ELSEWHERE, "called so"


def _anywhere(phrase: Phrase, need: Need, scene: Scene) -> Iterable[WorkItem]:
    """Look a name up by the beginnings of its words; failing that, along the backlog as far as that is cheap."""
    kinds = (phrase.kind,) if phrase.kind else need.kinds
    found: list[WorkItem] = []
    for words in phrase.words:
        beginnings = [
            str(numeral(word) or word[:_PREFIX_CHARS]) for word in words if len(word) > 1 and word not in STOP_WORDS
        ]
        if beginnings:
            found += scene.find(WorkFilter(kinds=kinds, text=" ".join(beginnings), limit=_MAX_FOUND))
    fitting_names = [item for item in found if any(name_fit(item, words) for words in phrase.words)]
    fitting_names = fitting_names or list(_below_named(phrase, scene))
    if fitting_names:
        return fitting_names
    found = scene.find(WorkFilter(kinds=kinds, limit=_MAX_SCANNED))
    return [item for item in found if any(match(words, item.title) for words in phrase.words)]


def _below_named(phrase: Phrase, scene: Scene) -> Iterator[WorkItem]:
    """Yield what stands under something that a word of the phrase names: "the german glossary", "the kitchen story"."""
    if phrase.is_bare:
        return
    for word in {word for words in phrase.words for word in words if len(word) > 2}:
        for holder in scene.find(WorkFilter(text=word[:_PREFIX_CHARS], limit=_MAX_HOLDERS)):
            if match([word], holder.title):
                yield from scene.children([holder], phrase.kind)[:_MAX_FOUND]


def _similar(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Ask the embedding, where there is one, which titles mean what the phrase says."""
    if scene.talk.similarity is None:
        return
    plain = replace(phrase, words=())
    pool = {item.id: (item, base) for item, base, _ in _pool(plain, need, scene) if fit(item, plain, need, scene)}
    said = " ".join(word for words in phrase.words for word in words)
    scores = scene.talk.similarity(said, [item.title for item, _ in pool.values()])
    for (item, base), alike in zip(pool.values(), scores, strict=True):
        if alike >= _ALIKE:
            yield Candidate(items=(item,), score=base * float(alike), reasons=(f"means much the same by {alike:.2f}",))
