"""What a phrase may mean, scored: by focus in the talk, kind, status, words, and place in what belongs together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from orchestra_mem.orchestrator.phrase_words import Phrase
from orchestra_mem.orchestrator.scene import MOST_BELOW, Group, Scene, title_fit
from orchestra_mem.orchestrator.talk import ANYTHING, Happening, Need
from orchestra_mem.work_types import OPEN_STATUSES, WorkFilter, WorkItem, WorkKind, WorkStatus

FLOOR = 0.15
"""What scores less is no answer."""

_SPOKEN_OF = 0.55  # a name's score where the item was spoken of long ago; 1 where it was just now
_ELSEWHERE = 0.5
_UNFIT = 0.4
_UNFIT_PLACED = 0.9
_UNFIT_POINTED = 0.95
_ONLY_ONE = 0.5
_LONE = 0.3
_BELOW = 0.7
_MOST_FOUND = 50
_MOST_SCANNED = 300
_PREFIX = 4
WIDTH = {kind: width for width, kind in enumerate(reversed(WorkKind))}

Items = tuple[WorkItem, ...]
Scored = tuple[Items, float]


def _kind_fit(item: WorkItem, phrase: Phrase, need: Need) -> float:
    if phrase.kind not in (None, item.kind) or (need.kinds and item.kind not in need.kinds):
        return 0.0
    if not need.kinds or item.kind is need.kinds[0]:
        return 1.0
    return 0.4 if item.kind is WorkKind.MILESTONE else 0.95


def _fit(item: WorkItem, phrase: Phrase, need: Need, scene: Scene) -> float:
    """Tell how well an item fits what phrase and need say of kind, status and words, 0 to 1."""
    if phrase.statuses and item.status not in phrase.statuses:
        return 0.0
    kind = _kind_fit(item, phrase, need)
    return kind and kind * scene.word_fit(item, phrase.words, phrase.kind)


def _status_fit(items: Items, need: Need, unfit: float) -> float:
    if not need.statuses or not items:
        return 1.0
    share = sum(item.status in need.statuses for item in items) / len(items)
    return unfit + (1 - unfit) * share


def fitting(items: Iterable[WorkItem], phrase: Phrase, need: Need, scene: Scene) -> Items:
    """List the items that a phrase can mean."""
    return tuple(item for item in items if _fit(item, phrase, need, scene) > 0)


def candidates(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Yield what a phrase without an owner may mean, each with a score above 0: the higher, the likelier."""
    if phrase.select == "same":
        yield from _same(phrase, need, scene)
    elif phrase.select in ("other", "rest"):
        yield from _others(phrase, need, scene)
    elif phrase.select:
        yield from _neighbours(phrase, need, scene)
    elif phrase.position is not None:
        yield from _placed(phrase, need, scene)
    elif phrase.many:
        yield from _several(phrase, need, scene)
    elif phrase.words:
        yield from _named(phrase, need, scene)
    elif phrase.happening:
        yield from _of_happening(phrase, need, scene)
    else:
        yield from _one(phrase, need, scene)


def _one(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "it", "the epic", "the failed one" by focus, else as the only one that there is."""
    is_pronoun = not phrase.kind and not phrase.statuses
    points = phrase.text.lower().startswith(("this", "that"))  # at what came last, be it one or several
    shown = {item.id for item in scene.seen[0].items} if scene.seen and not scene.head(scene.seen[0]) else set()
    if need.many and is_pronoun and scene.seen:
        yield scene.seen[0].items, 1.0
        return
    weights = dict(scene.focus)
    if phrase.kind or (need.kinds and is_pronoun):
        for item_id, weight in scene.above_focus(made_only=is_pronoun).items():
            weights[item_id] = max(weight, weights.get(item_id, 0.0))
    found = False
    top = max((weights.get(each, 0.0) for each in shown), default=0.0)
    if is_pronoun and top and top >= max(weights.values()):  # of several just shown one is as likely as another
        weights |= dict.fromkeys(shown, top)
    for item_id, weight in weights.items():
        item = scene.item(item_id)
        if item and (fit := _fit(item, phrase, need, scene)):
            if not is_pronoun or (points and item_id in shown):
                weight = scene.spoken_of.get(item_id, weight)
            found = found or weight >= FLOOR
            yield (item,), weight * fit * _status_fit((item,), need, _UNFIT_POINTED if points else _UNFIT)
    for item_id in list(scene.focus)[:3] if phrase.statuses else ():
        if holder := scene.item(item_id):
            for child in fitting(scene.below([holder], phrase.kind), phrase, need, scene):
                found = True
                yield (child,), _BELOW * scene.focus[item_id] * _status_fit((child,), need, _UNFIT)
    if found or is_pronoun:
        return
    for statuses in (phrase.statuses,) if phrase.statuses else ((), (WorkStatus.IN_PROGRESS,), OPEN_STATUSES):
        kinds = (phrase.kind,) if phrase.kind else need.kinds
        there = scene.find(WorkFilter(kinds=kinds, statuses=statuses, limit=_MOST_FOUND))
        there = list(fitting(there, phrase, need, scene))
        if len(there) == 1 or phrase.statuses:
            yield from (((item,), _ONLY_ONE) for item in there)
            return


def _of_happening(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "the one we just created" as the newest to which that was done."""
    weight = 1.0
    for seen in scene.seen:
        if seen.happening is phrase.happening and (pool := fitting(seen.items, phrase, need, scene)):
            yield from (((item,), weight) for item in pool)
            weight *= 0.7
    if weight == 1.0:
        yield from _one(replace(phrase, happening=None), need, scene)


def _named(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "the auth epic" by the words of titles, and what was spoken of lately before the rest."""
    pool = items_named(phrase, need, scene)
    if not pool and phrase.text.lower().startswith(("this ", "that ")) and not phrase.kind:
        yield from _one(replace(phrase, words=()), need, scene)
    above = scene.above_focus(made_only=False)
    for item in pool:
        focus = max(scene.focus.get(item.id, 0.0), 0.5 * above.get(item.id, 0.0))
        base = _SPOKEN_OF + (1 - _SPOKEN_OF) * focus if focus else _ELSEWHERE
        fit = _fit(item, phrase, need, scene)
        yield (item,), base * fit * _status_fit((item,), need, _UNFIT)


def items_named(phrase: Phrase, need: Need, scene: Scene) -> list[WorkItem]:
    """List what words may name: all that is in focus, and what a search by their beginnings finds."""
    found = {
        item_id: item
        for item_id in (*scene.focus, *scene.above_focus(made_only=False))
        if (item := scene.item(item_id))
    }
    kinds = (phrase.kind,) if phrase.kind else need.kinds
    prefixes = [word[:_PREFIX] for word in phrase.words if len(word) > 1]
    there = list(scene.find(WorkFilter(kinds=kinds, text=" ".join(prefixes), limit=_MOST_FOUND))) if prefixes else []
    if not phrase.bare and not fitting([*there, *found.values()], phrase, need, scene):
        holders = [each for word in prefixes for each in scene.find(WorkFilter(text=word, limit=_MOST_FOUND))]
        there += holders
        for holder in holders[:_MOST_FOUND]:
            there += scene.below([holder], phrase.kind)[:_MOST_FOUND] if phrase.kind or len(prefixes) > 1 else ()
    if not phrase.bare and not fitting([*there, *found.values()], phrase, need, scene):
        there += scene.find(WorkFilter(kinds=kinds, limit=_MOST_SCANNED))
    found |= {item.id: item for item in there}
    return list(fitting(found.values(), phrase, need, scene))


def _several(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "them", "both", "all three", "the auth stories", "the failed ones" as a group."""
    found = False
    for group in _groups(phrase, scene):
        pool = fitting(group.items, phrase, need, scene)
        if phrase.count is not None and len(pool) > phrase.count and group.at == 0 and not group.loose:
            return  # "both" of four that were just shown
        if not pool or (phrase.count or len(pool)) != len(pool):
            continue
        if group.loose and not (phrase.count == 2 and phrase.text.lower().startswith("both")):
            continue
        share = 1.0 if len(pool) > 1 else 0.6 if phrase.statuses else _LONE
        share *= min(_fit(item, phrase, need, scene) for item in pool) if phrase.words else 1.0
        yield pool, group.weight * share * _status_fit(pool, need, 0.6)
        found = True
    alike = [item for item in scene.subjects() if _fit(item, phrase, need, scene)]
    if not found and phrase.count and phrase.count > 2 and len(alike) == phrase.count and phrase.is_plain:
        yield tuple(reversed(alike)), 0.5
    if phrase.words or (not found and (phrase.statuses or phrase.kind)):
        yield from _several_there(phrase, need, scene)


def _several_there(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read a plural by what there is: under what the words name, under what is in focus, with that status."""
    plain = replace(phrase, words=())
    if phrase.words:
        wide = replace(phrase, kind=None, many=False, count=None, statuses=(), happening=None)
        for (named,), score in list(_named(wide, ANYTHING, scene))[:_MOST_FOUND]:
            if phrase.kind is None or WIDTH[named.kind] > WIDTH[phrase.kind]:
                pool = fitting(scene.below([named], phrase.kind), plain, need, scene)
                if pool and phrase.count in (None, len(pool)):
                    yield pool, score * (1.0 if len(pool) > 1 else 0.6)
        called = tuple(item for item in items_named(phrase, need, scene) if title_fit(phrase.words, item.title))
        if called and phrase.count in (None, len(called)):
            yield called, 0.4 if len(called) > 1 else 0.25
        return
    for item_id, weight in scene.focus.items():
        if (holder := scene.item(item_id)) and phrase.kind and WIDTH[holder.kind] > WIDTH[phrase.kind]:
            pool = fitting(scene.below([holder], phrase.kind), plain, need, scene)
            if len(pool) > 1 and phrase.count in (None, len(pool)):
                yield pool, 0.6 * weight
    kinds = (phrase.kind,) if phrase.kind else need.kinds
    there = scene.find(WorkFilter(kinds=kinds, statuses=phrase.statuses, limit=MOST_BELOW))
    pool = fitting(there, plain, need, scene)
    if pool and phrase.count in (None, len(pool)) and (phrase.statuses or not scene.seen):
        yield pool, 0.3


def _groups(phrase: Phrase, scene: Scene) -> list[Group]:
    """List the groups that a phrase may be about; with "that I started", all to which that was done."""
    if phrase.happening is None:
        return scene.groups
    found: dict[int, WorkItem] = {}
    for seen in scene.seen:
        if seen.happening is phrase.happening:
            found |= {item.id: item for item in reversed(seen.items) if item.id not in found}
    told = [
        Group(seen.items, seen.weight, at)
        for at, seen in enumerate(scene.seen) if seen.happening is phrase.happening and len(seen.items) > 1
    ]  # fmt: skip
    if phrase.happening is Happening.LISTED:
        return told or scene.groups
    whole = Group(tuple(reversed(found.values())), 1.0, 1) if found else None
    return [whole] if whole and (phrase.count or phrase.position is not None) and len(found) > 1 else told or (
        [whole] if whole else [])  # fmt: skip


def _placed(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "the second story", "the last three" by the order of the newest group that has so many."""
    named, found = replace(phrase, position=None, count=None), False
    groups = _groups(replace(phrase, count=phrase.count or 1), scene) if phrase.happening else scene.groups
    for group in groups:
        if group.loose:
            continue
        pool = fitting(group.items, named, need, scene)
        if len(pool) < 2:
            continue
        picked = at_place(pool, phrase)
        if not picked and (phrase.position or 0) >= 0:
            return
        found = True
        if not picked:
            break
        yield picked, group.weight * _status_fit(picked, need, _UNFIT_PLACED)
    made = [
        item for seen in reversed(scene.seen) if seen.happening is Happening.CREATED and (item := scene.head(seen))
    ]  # fmt: skip
    told = fitting(dict.fromkeys(made), named, need, scene) if phrase.kind and not found else ()
    if len(told) > 1:
        yield at_place(told, phrase), 0.5
    if (phrase.kind or phrase.words) and not found:
        for items, score in _several_there(replace(named, many=True), need, scene):
            yield at_place(items, phrase), score * 0.9


def at_place(items: Items, phrase: Phrase) -> Items:
    """Pick by position: the second, the middle one, the last three; nothing where there are not so many."""
    position, count = phrase.position or 0, phrase.count or 1
    if count > len(items) or abs(position) > len(items):
        return ()
    if position == 0:
        return (items[len(items) // 2],) if len(items) % 2 else ()
    if count > 1:
        return items[:count] if position > 0 else items[-count:]
    return (items[position - 1 if position > 0 else position],)


def owned(phrase: Phrase, holders: Items, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "its tasks", "the epic's second story", "the first of them" as a part of what its owner means."""
    plain = replace(phrase, owner=None, part=False, many=True if phrase.many is None else phrase.many)
    pool = holders
    if not phrase.part:
        pool = scene.below(holders, phrase.kind)
        if not pool and phrase.kind:
            pool = tuple(above for item in holders for above in scene.above(item) if above.kind is phrase.kind)
    pool = fitting(pool, plain, need, scene)
    if phrase.select in ("other", "rest"):
        dealt = {number for item in scene.subjects() for number in (item.id, item.parent)}
        pool = tuple(item for item in pool if item.id not in dealt)
        pool = tuple(item for item in pool if item.status.is_open or phrase.select == "other")
    if phrase.position is not None:
        yield at_place(pool, phrase), 1.0
    elif plain.many or len(pool) == 1:
        if phrase.count in (None, len(pool)):
            yield pool, 1.0
    else:
        yield from (((item,), 1.0) for item in pool)


def of_person(phrase: Phrase, name: str, scene: Scene) -> Items:
    """List somebody's items that a phrase may mean, the open ones where there are such: "Dana's interview"."""
    there = scene.find(WorkFilter(limit=_MOST_SCANNED))
    own = [item for item in there if (item.assignee or "").casefold() == name.casefold()]
    fit = fitting(own, replace(phrase, owner=None), ANYTHING, scene) if phrase.words or phrase.kind else tuple(own)
    return tuple(item for item in fit if item.status.is_open) or fit


def _others(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "the other one", "the rest" as a group less those that were dealt with since."""
    found = False
    for group in sorted(scene.groups, key=lambda group: group.loose):
        pool = fitting(group.items, phrase, need, scene)
        if len(pool) < 2 or (found and group.loose):
            continue
        dealt = {group.items[-1].id} if group.loose else scene.dealt_with(group)
        left = tuple(item for item in pool if item.id not in dealt)
        if not left:  # all were: the other one is not the newest
            left = tuple(item for item in pool if item is not next(each for each in scene.subjects() if each in pool))
        if not dealt and need.statuses:
            left = tuple(item for item in left if item.status in need.statuses) or left
        if phrase.select == "rest":
            left = tuple(item for item in left if item.status.is_open)
        if not left or (phrase.count or len(left)) != len(left) or (phrase.select == "rest" and len(left) == len(pool)):
            continue
        found = True
        if len(left) > 1 and phrase.many is False:
            yield from (((item,), group.weight * _status_fit((item,), need, _UNFIT_PLACED)) for item in left)
        else:
            yield left, group.weight


def _same(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "the same epic as before" as what was added to last, or what was spoken of last; a list is neither."""
    for seen in scene.seen if need.kinds else ():
        if seen.happening is Happening.CREATED:
            for holder in scene.above(seen.items[0]):
                if _fit(holder, phrase, need, scene):
                    yield (holder,), seen.weight
                    return
    for seen in scene.seen:
        if seen.happening is Happening.LISTED and not (phrase.many and seen is scene.seen[0]):
            continue
        if phrase.happening not in (None, seen.happening):
            continue
        pool = fitting(seen.items, phrase, need, scene)
        if not pool or (phrase.count or len(pool)) != len(pool):
            continue
        if phrase.many is not False or len(pool) == 1:
            yield (
                pool,
                seen.weight * (_LONE if phrase.many and len(pool) == 1 else 1.0) * _status_fit(pool, need, _UNFIT),
            )
        else:
            yield from (((item,), seen.weight) for item in pool)


def _neighbours(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Scored]:
    """Read "the next one", "the previous task" by the order of the group around what is in focus."""
    subjects = scene.subjects()
    if phrase.select == "previous":
        earlier = [item for item in subjects[1:] if _fit(item, phrase, need, scene)]
        yield from (((item,), 0.9) for item in earlier[:1])
    if not subjects:
        return
    focus, step = subjects[0], 1 if phrase.select == "next" else -1
    rows = [(group.items, group.weight) for group in scene.groups if not group.loose]
    parent = scene.item(focus.parent) if focus.parent else None
    rows.append((scene.below([parent], focus.kind) if parent else (), 0.4))
    for row, weight in rows:
        at = row.index(focus) + step if focus in row else -1
        if 0 <= at < len(row) and _fit(row[at], phrase, need, scene):
            yield (row[at],), weight
