"""Pairs of facts for training, in addition to the written pairs: from dialogues, from series, and at random.

The importing script must have the checkout on its path; see `train_facts.py`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import cycle, islice
from pathlib import Path

from benchmarks._dialogues import is_unread, load_dialogues
from benchmarks._facts import START, Pair, Series
from orchestra_mem.core.facts.extraction import find_in_text
from orchestra_mem.core.facts.pairs import topic_of
from orchestra_mem.core.facts.superseding import Standing, may_change
from orchestra_mem.types import MustKeep, MustKeepKind

_CHANCE_STEP = 4  # one in this many random pairs of failure and completion is used
_UNRELATED = 100  # number of random pairs of decisions; with more, fewer reversals are found


def pairs_of_dialogues(file: Path) -> Iterator[Pair]:
    """Yield pairs of facts found in a dialogue that share a topic word, labelled by whether the older is reversed."""
    for dialogue in load_dialogues(file):
        if is_unread(dialogue):
            continue
        found = [
            replace(fact, id=100 * turn + place)
            for turn, said in enumerate(dialogue["turns"])
            for place, fact in enumerate(
                find_in_text(
                    said["text"], operation=turn, timestamp=START + timedelta(minutes=turn), speaker=said["speaker"]
                )
            )
        ]
        taken_back = {(told["turn"], told["old_turn"]) for told in dialogue["facts"] if told["kind"] == "reversal"}
        taken_back |= {(told["closed_turn"], told["turn"]) for told in dialogue["facts"] if "closed_turn" in told}
        for number, newer in enumerate(found):
            for older in found[:number]:
                if may_change(newer, older) and not topic_of(newer.text).words.keys().isdisjoint(
                    topic_of(older.text).words
                ):
                    yield Pair(newer, older, (newer.operation, older.operation) in taken_back)


def pairs_of_series(series: Iterable[Series]) -> Iterator[Pair]:
    """Yield pairs of facts of one series that share a topic word, if the older is active and not merely repeated."""
    for each in series:
        ended, facts = each.ended, _facts_of(each)
        for number, newer in enumerate(facts):
            told = each.lines[newer.id - 1]
            for older in facts[:number]:
                stands = ended.get(older.id, newer.id) >= newer.id and older.id not in told.again
                shares = not topic_of(newer.text).words.keys().isdisjoint(topic_of(older.text).words)
                if stands and shares and may_change(newer, older):
                    yield Pair(newer, older, older.id in told.ends)


def _facts_of(series: Series) -> list[MustKeep]:
    return [
        MustKeep(
            kind=MustKeepKind(told.line.kind.replace("_", " ")),
            text=told.line.text,
            operation=told.number,
            timestamp=START + timedelta(minutes=told.number),
            id=told.number,
        )
        for told in series.lines
        if told.line.kind != "none"
    ]


def pairs_across_series(series: Sequence[Series]) -> Iterator[Pair]:
    """Pair facts with facts of earlier, unrelated series of the same writer, as a search for candidates finds them.

    Real recordings are longer than series: most candidates there have nothing to do with the later fact.
    """
    writers: dict[tuple[str, str, str], list[Series]] = defaultdict(list)
    for each in series:
        writers[each.writer.partition("-")[0], each.nature, each.language].append(each)
    for several in writers.values():
        standing = Standing()
        facts: list[MustKeep] = []
        shift = 0
        for each in several:
            own = [
                replace(fact, operation=fact.operation + shift, timestamp=fact.timestamp + timedelta(minutes=shift))
                for fact in _facts_of(each)
            ]
            for fact in own:
                near = (facts[number] for number in standing.near(fact))
                yield from (Pair(fact, older, False) for older in near if may_change(fact, older))
            for fact in own:
                if fact.id not in each.ended:
                    standing.add(len(facts), fact)
                    facts.append(fact)
            shift += len(each.lines)


def pairs_by_chance(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yield failures paired with completions of something else that share a topic word."""
    failures = {pair.older.text: pair.older for pair in pairs if pair.older.kind is MustKeepKind.FAILURE}
    completions = [pair for pair in pairs if pair.newer.kind is MustKeepKind.COMPLETION]
    met = (
        Pair(other.newer, failure, False)
        for failure in failures.values()
        for other in completions
        if other.older.text != failure.text
        and not topic_of(failure.text).words.keys().isdisjoint(topic_of(other.newer.text).words)
    )
    for pair, distance in zip(islice(met, 0, None, _CHANCE_STEP), cycle(range(1, 40))):
        yield pair._replace(newer=replace(pair.newer, operation=1 + distance))


def unrelated_decisions(pairs: Sequence[Pair]) -> list[Pair]:
    """Return random pairs of decisions and rules about different things that share a topic word, such as `decided`."""
    kinds = (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT)
    older, newer = (
        list({fact.text: fact for fact in facts if fact.kind in kinds}.values())
        for facts in ([pair.older for pair in pairs], [pair.newer for pair in pairs])
    )
    known = {(pair.older.text, pair.newer.text) for pair in pairs}
    met = [
        (old, new)
        for old in older
        for new in newer
        if (old.text, new.text) not in known
        and old.text != new.text
        and not topic_of(old.text).words.keys().isdisjoint(topic_of(new.text).words)
    ]
    random.Random(0).shuffle(met)
    return [Pair(replace(new, operation=2 + at % 39), old, False) for at, (old, new) in enumerate(met[:_UNRELATED])]
