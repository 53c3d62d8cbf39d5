"""Resolve phrases such as "it", "the second story", "the auth epic" or "#12" to items, given the recent conversation.

Candidates are single items or groups, scored by focus, kind, status and words. If two scores are close, or none is high
enough, the result is a question instead of a guess. An item number is never reinterpreted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.work.wording import a, either
from orchestra_mem.orchestrator.phrases import Phrase
from orchestra_mem.orchestrator.talk import ANYTHING, Group, Happening, Items, Need, Talk
from orchestra_mem.work_types import OPEN_STATUSES, PARENT_KINDS, WorkFilter, WorkItem

Scored = tuple[Items, float]

_CLOSE = 0.72  # ask if another candidate has more than this share of the best score
_FLOOR = 0.15  # minimum score of an answer
_UNFIT = 0.5  # factor for a status that the command does not expect
_UNSPOKEN = 0.35  # score of an item that was not mentioned
_MOST_FOUND, _MOST_TOLD, _PREFIX = 50, 4, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The meaning of a phrase: either `items`, or the question `ask` if the meaning is uncertain.

    `candidates` are the items that were considered, likeliest first.
    """

    items: Items = ()
    ask: str = ""
    candidates: Items = ()


NOTHING_NAMED = Resolution(ask="Which item do you mean?")


def resolve_all(phrases: Sequence[Phrase], need: Need, talk: Talk) -> Resolution:
    """Resolve several phrases to all of their items; if one of them is uncertain, return the first question."""
    resolved = [_resolve(phrase, need, talk) for phrase in phrases] or [NOTHING_NAMED]
    if asked := next((each for each in resolved if each.ask), None):
        return asked
    items = _distinct(each.items for each in resolved)
    return Resolution(items=items, candidates=items)


def _distinct(rows: Iterable[Items]) -> Items:
    return tuple({item.id: item for items in rows for item in items}.values())


def _resolve(phrase: Phrase, need: Need, talk: Talk) -> Resolution:
    if phrase.ids:
        return _by_number(phrase, need, talk)
    if phrase.owner:
        return _owned(phrase, phrase.owner, need, talk)
    return _decide(phrase, Choice(phrase, need, talk).scored())


def _owned(phrase: Phrase, owner: Phrase, need: Need, talk: Talk) -> Resolution:
    """Resolve a phrase whose owner is an item or a person: "its tasks", "Dana's interview", "the first of them"."""
    choice = Choice(phrase, need, talk)
    there = talk.find(WorkFilter(statuses=OPEN_STATUSES, limit=300)) if len(owner.words) == 1 else ()
    pool = choice.fitting(item for item in there if (item.assignee or "").casefold() == owner.words[0])
    if not pool:
        wanted = Need(kinds=PARENT_KINDS[phrase.kind]) if phrase.kind and not (phrase.part or owner.kind) else ANYTHING
        holder = _resolve(owner, wanted, talk)
        if holder.ask:
            return holder
        pool = choice.fitting(holder.items if phrase.part else talk.below(holder.items, phrase.kind))
    return _decide(phrase, choice.picked(pool, 1.0))


def _by_number(phrase: Phrase, need: Need, talk: Talk) -> Resolution:
    """Resolve item numbers; a question reports unknown numbers and items of the wrong kind."""
    items = tuple(filter(None, map(talk.item, phrase.ids)))
    faults = [f"There is no #{number}." for number in phrase.ids if talk.item(number) is None]
    wanted = [kinds for kinds in ((phrase.kind,) if phrase.kind else (), need.kinds) if kinds]
    missed = [(item, kinds) for item in items for kinds in wanted if item.kind not in kinds]
    faults += [f"#{item.id} is {a(item.kind)}, not {either(map(a, kinds))}." for item, kinds in missed]
    if faults:
        return Resolution(ask=" ".join([*faults, "Which do you mean?"]))
    return Resolution(items=items, candidates=items)


def _decide(phrase: Phrase, found: Iterable[Scored]) -> Resolution:
    """Choose the candidate with the highest score, or ask if another score is close or all scores are low."""
    best: dict[frozenset[int], Scored] = {}
    for items, score in sorted(found, key=lambda scored: -scored[1]):
        best.setdefault(frozenset(item.id for item in items), (items, score))
    ranked = [scored for ids, scored in best.items() if ids]
    if not ranked or ranked[0][1] < _FLOOR:
        known = f'Nothing is called "{phrase.text}".' if phrase.words else f'It is not clear what "{phrase.text}" is.'
        weighed = _distinct(items for items, _ in ranked)
        return Resolution(ask=f"{known} Which item do you mean?", candidates=weighed)
    close = [items for items, score in ranked if score > _CLOSE * ranked[0][1]]
    if len(close) == 1:
        return Resolution(items=close[0], candidates=_distinct(items for items, _ in ranked))
    names = [_item_names(items) for items in close[:_MOST_TOLD]] + ["others"] * (len(close) > _MOST_TOLD)
    return Resolution(ask=f'Which do you mean by "{phrase.text}": {either(names)}?', candidates=_distinct(close))


def _item_names(items: Items) -> str:
    return items[0].name if len(items) == 1 else ", ".join(f"#{item.id}" for item in items[:_MOST_TOLD])


class Choice:
    """The candidates for a phrase, scored by focus, kind, status, words, and position in a group."""

    def __init__(self, phrase: Phrase, need: Need, talk: Talk) -> None:
        self._phrase = phrase
        self._need = need
        fitting = [each for each in talk.mentions if each.happening is phrase.happening]
        self._talk = Talk(fitting, talk.lookup) if fitting else talk
        self._kinds = (phrase.kind,) if phrase.kind else need.kinds

    def scored(self) -> Iterator[Scored]:
        """Yield candidates for a phrase without an owner, each with its score; a higher score is likelier."""
        phrase = self._phrase
        if phrase.select == "same":
            return self._same()
        if phrase.select in ("next", "previous"):
            return self._neighbours()
        if phrase.many or phrase.select or phrase.position is not None:
            return self._of_groups()
        return self._named() if phrase.words else self._one()

    def fit(self, item: WorkItem) -> float:
        """Score how well an item fits the phrase's kind, status and words and the required kinds, 0 to 1."""
        phrase, kinds = self._phrase, self._need.kinds
        fits = phrase.kind in (None, item.kind) and (not kinds or item.kind in kinds)
        fits = fits and (not phrase.statuses or item.status in phrase.statuses)
        return self._talk.word_fit(item, phrase.words, phrase.kind) if fits else 0.0

    def fitting(self, items: Iterable[WorkItem]) -> Items:
        """Return the items with a fit above 0."""
        return tuple(item for item in items if self.fit(item) > 0)

    def _wanted(self, items: Items) -> float:
        """Return a score factor: 1 if the command expects the statuses of all items, down to `_UNFIT` if of none."""
        statuses = self._need.statuses
        share = sum(item.status in statuses for item in items) / len(items) if statuses and items else 1.0
        return _UNFIT + (1 - _UNFIT) * share

    def picked(self, pool: Items, weight: float) -> Iterator[Scored]:
        """Yield the phrase's selections from a pool: the items at a position, the entire pool, or each item alone."""
        phrase = self._phrase
        if phrase.position is not None:
            yield _at_place(pool, phrase), weight
        elif phrase.many is not False or len(pool) == 1:
            if phrase.count in (None, len(pool)):
                yield pool, weight
        else:
            yield from (((item,), weight) for item in pool)

    # One item

    def _one(self) -> Iterator[Scored]:
        """Resolve "it", "the epic", "the failed one" by focus; without a match in focus, yield all items that fit."""
        phrase, talk = self._phrase, self._talk
        is_pronoun = not phrase.kind and not phrase.statuses
        points = phrase.text.lower().startswith(("this", "that"))  # means the newest mention, of one item or several
        weights = dict(talk.focus)
        if points or not is_pronoun:
            weights |= talk.spoken_of
        elif talk.seen and len(talk.seen[0].items) > 1:  # all items of a list just shown are equally likely
            shown = [item.id for item in talk.seen[0].items]
            weights |= dict.fromkeys(shown, max(weights[each] for each in shown))
        rows = [(item, weight) for each, weight in weights.items() if (item := talk.item(each)) and self.fit(item)]
        yield from (((item,), weight * self._wanted((item,))) for item, weight in rows)
        if not is_pronoun and all(weight < _FLOOR for _, weight in rows):
            where = WorkFilter(kinds=self._kinds, statuses=phrase.statuses, limit=_MOST_FOUND)
            yield from (((item,), _UNSPOKEN) for item in self.fitting(talk.find(where)))

    def _named(self) -> Iterator[Scored]:
        """Resolve "the auth epic" by the words of titles."""
        for item in self.named_items():
            yield (item,), self.fit(item) * self._wanted((item,))

    def named_items(self) -> Items:
        """Return items that fit the phrase: items in focus, and items found by the first letters of its words."""
        phrase, talk = self._phrase, self._talk
        found = {item.id: item for item in map(talk.item, talk.focus) if item}
        prefixes = " ".join(word[:_PREFIX] for word in phrase.words if len(word) > 1)
        for text in (prefixes,) if phrase.bare else (prefixes, ""):
            most = None if phrase.many and text else _MOST_FOUND  # "all login tasks" means every one
            where = WorkFilter(kinds=self._kinds, text=text, limit=most)
            found |= {item.id: item for item in talk.find(where)}
            if fits := self.fitting(found.values()):
                return fits
        return ()

    # Of a group

    def _of_groups(self) -> Iterator[Scored]:
        """Resolve "them", "the second story", "the other one", "the last three" by the groups of the conversation."""
        phrase = self._phrase
        found, placed = False, phrase.position is not None or bool(phrase.select)
        says_all = phrase.text.lower().startswith(("both", "all"))
        for group in self._talk.groups:
            pool = self.fitting(group.items)
            if (phrase.position or 0) < 0 and not group.loose:  # "the last one" may be younger than the list
                newer = [seen for seen in self._talk.seen[: group.at] if seen.happening is Happening.CREATED]
                made = self.fitting(item for seen in newer[::-1] for item in seen.items)
                pool = tuple(dict.fromkeys((*pool, *made)))
            of_loose = 2 * (phrase.select == "other" and not found) if phrase.select else says_all and phrase.count
            if (placed and len(pool) < 2) or (group.loose and len(group.items) != of_loose):
                continue
            left = self._left(pool, group) if phrase.select else pool
            chosen = [(items, weight) for items, weight in self.picked(left, group.weight) if items]
            if not chosen and group.at == 0 and len(pool) > 1 and not (phrase.select or group.loose):
                return  # "both" after a list of four
            for items, weight in chosen:
                found = True
                yield items, weight
        if not phrase.select and (phrase.words or not found):
            yield from self._there()

    def _left(self, pool: Items, group: Group) -> Items:
        """Return "the other one" or "the rest" of a group: the items that were not handled since its mention."""
        dealt, rest = self._talk.dealt_with(pool, group.at), self._phrase.select == "rest"
        left = tuple(item for item in pool if item.id not in dealt and (item.status.is_open or not rest))
        return () if rest and len(left) == len(pool) else left

    def _there(self) -> Iterator[Scored]:
        """Resolve a plural or a position among all items: below named or focused items, or by title or status."""
        phrase, talk = self._phrase, self._talk
        plain = Choice(replace(phrase, words=()), self._need, talk)
        if phrase.words:
            wide = replace(phrase, kind=None, many=False, count=None, statuses=(), position=None)
            holders = [(item, score) for (item,), score in Choice(wide, ANYTHING, talk)._named()]
        else:
            focus = talk.focus if phrase.kind else {}
            holders = [(item, 0.6 * weight) for each, weight in focus.items() if (item := talk.item(each))]
        pools = [(plain.fitting(talk.below([item], phrase.kind)), score) for item, score in holders[:_MOST_FOUND]]
        pools = [(pool, score) for pool, score in pools if len(pool) > 1 or phrase.words]
        called: Iterable[WorkItem] = ()
        if phrase.statuses or (phrase.kind and not talk.seen and phrase.position is None):
            called = talk.find(WorkFilter(kinds=self._kinds, statuses=phrase.statuses))
        if phrase.position is not None and phrase.kind:
            pools.append((plain.fitting(talk.made), 0.5))
        for pool, score in (*pools, (plain.fitting(called), _UNSPOKEN)):
            yield from self.picked(pool, score)

    def _same(self) -> Iterator[Scored]:
        """Resolve "the same epic" to the newest item's parent or to the last mention; only a plural means a list."""
        talk, phrase = self._talk, self._phrase
        made = next((seen for seen in talk.seen if seen.happening is Happening.CREATED), None)
        if self._kinds and made and (holders := self.fitting(talk.above(made.items[0]))):
            yield holders[:1], made.weight
            return
        for seen in talk.seen:
            if (not seen.is_shown or (phrase.many and not seen.at)) and (pool := self.fitting(seen.items)):
                yield from self.picked(pool, seen.weight * self._wanted(pool))

    def _neighbours(self) -> Iterator[Scored]:
        """Resolve "the next one", "the previous task" by the newest subject's place among subjects or in a group."""
        subjects, count = self._talk.subjects, self._phrase.count or 1
        step = 1 if self._phrase.select == "next" else -count
        if step < 0 and len(earlier := self.fitting(subjects[1:])[:count]) == count:
            yield earlier, 0.9
        for group in self._talk.groups:
            at = group.items.index(subjects[0]) + step if subjects and subjects[0] in group.items else -1
            near = self.fitting(group.items[at : at + count]) if at >= 0 and not group.loose else ()
            if len(near) == count:
                yield near, group.weight


def _at_place(items: Items, phrase: Phrase) -> Items:
    """Return the items at a position: the second, the middle one, the last three; () if there are too few."""
    position, count = phrase.position or 0, phrase.count or 1
    if count > len(items) or abs(position) > len(items):
        return ()
    if position == 0:
        return (items[len(items) // 2],) if len(items) % 2 else ()
    start = position - 1 if position > 0 else len(items) + position + 1 - count
    return items[start : start + count]
