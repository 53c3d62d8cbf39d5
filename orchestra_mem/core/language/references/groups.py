"""What is picked out of items that belong together: the second, the last three, the other one, the rest, the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestra_mem.core.language.mentions import Happening, Need
from orchestra_mem.core.language.references.judgement import Candidate, fitting, status_fit
from orchestra_mem.core.language.references.phrases import Form, Phrase
from orchestra_mem.core.language.references.scene import Group, Scene
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkStatus

Items = tuple[WorkItem, ...]

_CLOSED = (WorkStatus.DONE, WorkStatus.CANCELLED)
_ONE_OF_MANY = 0.7
_MAX_COUNTED = 100
_LATELY = 3
_GROUPED = 0.5  # who has seen a list means its last by "the last one", and not the one of it spoken of last
_OVER = 0.7  # nobody starts or finishes again what is closed
_MILD = 0.95  # an order or a number tells more than a status that does not suit


def pick_position(items: Items, phrase: Phrase) -> Items:
    """Pick by position: the second, the middle one, the last three; nothing where there are not so many."""
    position, count = phrase.position, phrase.count
    if position is None:
        return ()
    if position == 0:
        return (items[len(items) // 2],) if len(items) % 2 else ()
    if count is not None and count > 0:
        if count > len(items):
            return ()
        return items[:count] if position > 0 else items[-count:]
    if phrase.many:
        return items if position < 0 and len(items) > 1 else ()
    at = position - 1 if position > 0 else len(items) + position
    return (items[at],) if 0 <= at < len(items) else ()


def pick(items: Sequence[WorkItem], phrase: Phrase, need: Need, scene: Scene) -> list[tuple[Items, float]]:
    """Pick from a known set what a phrase means of it, each with a share of the set's score."""
    pool = fitting(items, phrase, need, scene)
    if phrase.position is not None:
        picked = pick_position(pool, phrase)
        return [(picked, 1.0)] if picked else []
    if phrase.form is Form.REST:
        pool = tuple(item for item in pool if item.status not in _CLOSED)
    if phrase.many is not False or len(pool) == 1:
        return [(pool, 1.0)] if pool and (phrase.count is None or len(pool) == phrase.count) else []
    return [((item,), 1.0) for item in pool]


def by_position(phrase: Phrase, need: Need, scene: Scene) -> tuple[list[Candidate], bool]:
    """Pick by position from each group; a newer group that is too small, which is told, keeps an older one out."""
    found: list[Candidate] = []
    groups = _of_happening(scene.groups(), phrase)
    for group in groups:
        pool = fitting(group.items, phrase, need, scene)
        is_pair = bool({"former", "latter"} & set(phrase.spare))
        if len(pool) < 2 or (group.is_loose and not is_pair):
            continue
        picked = pick_position(pool, phrase)
        if not picked:
            if (phrase.position or 0) < 0 or _is_part(group, groups):
                continue  # "the third" of three, of which two were dealt with together
            return found, True
        is_over = _is_over(picked, need)
        left_over = group.happening is Happening.FINISHED and all(item.status in _CLOSED for item in picked)
        if (is_over or left_over) and _is_part(group, groups):
            continue
        score = group.weight * status_fit(picked, need, unfit=_OVER if is_over else _MILD)
        found.append(Candidate(items=picked, score=score, reasons=(group.reason, phrase.form.value)))
    return found, False


def _is_over(items: Items, need: Need) -> bool:
    """Whether items are closed that something is wanted of for which they must not be: nobody starts them again."""
    wanted = need.statuses and not set(need.statuses) & set(_CLOSED)
    return bool(wanted) and all(item.status in _CLOSED for item in items)


def _is_part(group: Group, groups: Sequence[Group]) -> bool:
    return any(set(group.items) < set(wide.items) for wide in groups)


def by_focus_children(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Pick from what stands below the items in focus: "the second story" where an epic is spoken of."""
    for item_id, weight in list(scene.singles().items())[:4]:
        item = scene.item(item_id)
        if item is None:
            continue
        for picked, share in pick(scene.children([item], phrase.kind), phrase, need, scene):
            yield Candidate(items=picked, score=0.6 * weight * share, reasons=(f"under {item.name}",))


def by_order_created(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the first epic" as the first made of those spoken of, which the order of all that there are may gainsay."""
    if phrase.kind is None or phrase.words:
        return
    made = [seen.subject for seen in reversed(scene.seen) if seen.happening is Happening.CREATED and seen.subject]
    told = fitting(dict.fromkeys(made), phrase, need, scene)
    if len(told) < 2:
        return
    there = scene.find(WorkFilter(kinds=(phrase.kind,), statuses=phrase.statuses, limit=_MAX_COUNTED))
    for items in (told, fitting(sorted(there, key=lambda item: item.id), phrase, need, scene)):
        yield Candidate(items=pick_position(items, phrase), score=0.5, reasons=("by the order of their making",))


def lately(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the last one", "the last three" as those touched last."""
    touched: dict[int, WorkItem] = {}
    newest = 0.0
    for seen in scene.seen:
        if phrase.happening and seen.happening is not phrase.happening:
            continue
        if seen.happening is Happening.LISTED and seen.subject is None:
            continue
        if phrase.count and seen.happening in (Happening.LISTED, Happening.MENTIONED):
            continue
        pool = fitting((seen.subject,) if seen.subject else seen.items, phrase, need, scene)
        if pool and not touched:
            newest = seen.weight
        touched |= {item.id: item for item in reversed(pool) if item.id not in touched}
    found = tuple(touched.values())
    count = phrase.count or 1
    if (phrase.many and phrase.count is None) or len(found) < count:
        return
    picked = tuple(reversed(found[:count]))
    if count > 1 and _is_mixed(picked, scene):
        return
    if _is_over(picked, need) and phrase.happening is None:
        return
    is_grouped = any(found[0] in group.items for group in scene.groups() if not group.is_loose)
    if is_grouped and count > 1 and status_fit(picked, need) < 1.0:
        return  # nobody would do it to all of these, and a group tells better
    score = newest * (_GROUPED if is_grouped else 1.0) * status_fit(picked, need)
    yield Candidate(items=picked, score=score, reasons=("touched last",))


def _is_mixed(picked: Items, scene: Scene) -> bool:
    """Tell whether some of what was told together is chosen for its place there, and some for what was done since."""
    for at, seen in enumerate(scene.seen):
        if seen.subject is None and set(picked) <= set(seen.group):
            since = {each.subject for each in scene.seen[:at]}
            return 0 < sum(item in since for item in picked) < len(picked)
    return False


def together(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "them", "both", "all three", "the stories" as a group."""
    for group in _of_happening(scene.groups(), phrase):
        pool = fitting(group.items, phrase, need, scene)
        if phrase.count is not None and len(pool) > phrase.count and group.at == 0 and not group.is_loose:
            return  # "both" of four that were just shown
        if not pool or (phrase.count is not None and len(pool) != phrase.count):
            continue
        if group.is_loose and phrase.form is not Form.BOTH and phrase.count != 2 and not _is_alike(pool):
            continue
        if group.is_loose and phrase.form is Form.THEM and phrase.count is None and len(_alike_lately(pool, scene)) > 2:
            continue  # "them" of three that were spoken of one by one
        share = 1.0 if len(pool) > 1 else _ONE_OF_MANY if phrase.statuses else 0.3
        score = group.weight * share * status_fit(pool, need, unfit=0.6)
        yield Candidate(items=pool, score=score, reasons=(group.reason,))


def _alike_lately(items: Items, scene: Scene) -> list[WorkItem]:
    return [item for item, _ in scene.subjects()[:_LATELY] if item.kind is items[0].kind]


def _is_alike(items: Items) -> bool:
    return len({item.kind for item in items}) == 1


def _of_happening(groups: Sequence[Group], phrase: Phrase) -> list[Group]:
    return [group for group in groups if phrase.happening in (None, group.happening)]


def others(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the other one", "the others", "the rest": a group less those that were dealt with since."""
    groups = scene.groups()
    told = [group for group in groups if not group.is_loose and len(fitting(group.items, phrase, need, scene)) > 1]
    touched = {item.id for item, _ in scene.subjects()} | scene.changed_since(len(scene.seen)).keys()
    wide = [set(group.items) for group in told if not touched.issuperset(item.id for item in group.items)]
    pairs = [group for group in told if phrase.many is False and _is_pair_begun(group, scene)]
    told = pairs[:1] or [group for group in told if not any(set(group.items) < items for items in wide)]
    for group in told or groups:
        pool = fitting(group.items, phrase, need, scene)
        if len(pool) < 2:
            continue
        left, is_known = _left(pool, group, phrase, need, scene)
        if not left or (phrase.count is not None and len(left) != phrase.count):
            continue
        if phrase.form is Form.REST and not is_known:
            continue
        score = group.weight * (1.0 if is_known else 0.9)
        is_any = phrase.form is Form.OTHER and len(left) == len(pool)  # other than which?
        if len(left) > 1 and (phrase.many is False or is_any):
            yield from (
                Candidate(
                    items=(item,),
                    score=score * status_fit((item,), need, unfit=_MILD),
                    reasons=(group.reason, "not yet dealt with"),
                )
                for item in left
            )  # fmt: skip
        elif phrase.many is not True or len(left) > 1 or phrase.form is Form.REST:
            yield Candidate(items=left, score=score, reasons=(group.reason, "not yet dealt with"))


def _is_pair_begun(group: Group, scene: Scene) -> bool:
    """Whether one of two that were told together was dealt with since: the other one is plain."""
    return (
        group.at <= _LATELY
        and len(group.items) == 2
        and len(set(group.items) & set(scene.touched_since(group.at).values())) == 1
    )


def _left(pool: Items, group: Group, phrase: Phrase, need: Need, scene: Scene) -> tuple[Items, bool]:
    """Give what is left of a group, and whether the talk tells so."""
    if group.is_loose or (group.at == 0 and group.items[-1] is scene.focus()):
        return tuple(item for item in pool if item is not group.items[-1]), True
    touched = scene.touched_since(group.at)
    dealt_with = {item.id for item in pool if item.id in touched or item.id in scene.changed_since(group.at)}
    if not dealt_with:
        older = scene.focus()
        if older is not None and older in pool:
            dealt_with = {older.id}
    left = tuple(item for item in pool if item.id not in dealt_with)
    if phrase.form is Form.REST:
        open_left = tuple(item for item in left if item.status not in _CLOSED)
        suited = tuple(item for item in open_left if not need.statuses or item.status in need.statuses)
        return suited or open_left, len(left) < len(pool) or len(open_left) < len(left)
    if not left:  # all were: the other one is not the newest
        newest = next(iter(touched or scene.changed_since(group.at)))
        return tuple(item for item in pool if item.id != newest), True
    if not dealt_with and need.statuses:
        left = tuple(item for item in left if item.status in need.statuses)
    return (left, True) if dealt_with or len(left) == 1 else (left, False)


def other_of_kind(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the other epic" as the one that is spoken of besides the one in focus."""
    pool = [
        (item, weight)
        for item_id, weight in scene.singles().items()
        if (item := scene.item(item_id)) and fitting((item,), phrase, need, scene)
    ]
    if phrase.kind and not pool[1:]:
        there = scene.find(WorkFilter(kinds=(phrase.kind,), limit=3))
        left = [item for item in there if pool and item is not pool[0][0] and item.id != pool[0][0].id]
        if len(left) == 1 and fitting(left, phrase, need, scene):
            yield Candidate(items=(left[0],), score=0.5, reasons=(f"the only other {phrase.kind}",))
    for item, weight in pool[1:]:
        score = 0.5 + 0.3 * weight if len(pool) == 2 else 0.5
        yield Candidate(items=(item,), score=score, reasons=("spoken of besides the one in focus",))


def siblings(phrase: Phrase, need: Need, scene: Scene) -> Iterator[Candidate]:
    """Read "the other stories", "the rest" as what stands beside the item in focus."""
    focus = scene.focus()
    parent = scene.item(focus.parent) if focus and focus.parent else None
    if focus is None:
        return
    beside = scene.children([parent], focus.kind) if parent else []
    if phrase.kind and (phrase.kind is not focus.kind):
        beside = scene.children([focus], phrase.kind)
    left = tuple(item for item in fitting(beside, phrase, need, scene) if item.id != focus.id)
    if phrase.form is Form.REST:
        left = tuple(item for item in left if item.status not in _CLOSED)
        left = tuple(item for item in left if not need.statuses or item.status in need.statuses) or left
    if not left or (phrase.count is not None and phrase.count != len(left)):
        return
    if phrase.many is False and len(left) > 1:
        yield from (Candidate(items=(item,), score=0.5, reasons=(f"beside {focus.name}",)) for item in left)
    else:
        yield Candidate(items=left, score=0.5, reasons=(f"beside {focus.name}",))


def neighbours(phrase: Phrase, need: Need, scene: Scene, focus: WorkItem | None = None) -> Iterator[Candidate]:
    """Read "the next one", "the previous one" by the order of a group around an item, which is the one in focus."""
    focus = focus or scene.focus()
    if focus is None:
        return
    rows = [(group.items, group.weight, group.reason) for group in scene.groups() if not group.is_loose]
    parent = scene.item(focus.parent) if focus.parent else None
    if parent is not None:
        rows.append((tuple(scene.children([parent], focus.kind)), 0.4, f"under {parent.name}"))
    for items, weight, reason in rows:
        if focus not in items:
            continue
        at = items.index(focus)
        row = items[at + 1 :] if phrase.form is Form.NEXT else items[:at][::-1]
        row = fitting(row, phrase, need, scene)
        if phrase.form is Form.NEXT:
            row = tuple(item for item in row if item.status not in _CLOSED and status_fit((item,), need) == 1.0)
        count = phrase.count or 1
        if len(row) >= count:
            yield Candidate(items=row[:count], score=weight * 0.95, reasons=(reason, f"beside {focus.name}"))
