"""Decide which facts still hold: later facts supersede, complete or answer earlier ones.

Only facts that share a content word are compared. A linear model, trained by `tools/train_facts.py`, scores each pair
by topic, differing values, kinds, and how much the later fact sounds like taking something back or reporting a repair.
The thresholds are cautious, because in hardly one of twenty-five such pairs the later fact ends the earlier one. A
fact wrongly superseded is lost knowledge; a fact wrongly kept costs one line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from math import exp, log, log1p
from operator import mul, ne

from orchestra_mem.core.facts.classifier import load_table, rarity_of, signs_of
from orchestra_mem.core.facts.states import state_of
from orchestra_mem.core.text import content_stems
from orchestra_mem.types import Author, MustKeep, MustKeepKind, MustKeepStatus

SURE, REPORTED = 0.38, 0.35
"""Least likelihood at which a fact is marked superseded or done; `REPORTED` applies if a completion does this."""
PERHAPS = 0.008
"""Least likelihood at which an active fact is marked as perhaps superseded: `superseded_by` is set."""
AGAINST = 0.25
"""Least likelihood, averaged over both directions, at which decisions of two projects contradict each other."""
HOLDING = (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT, MustKeepKind.ROLE)
UNFINISHED = (MustKeepKind.OPEN_ITEM, MustKeepKind.FAILURE)
# Module-level names, because looking up a member of an enum takes as long as computing a feature.
_COMPLETION, _FAILURE, _OPEN, _ROLE = (
    MustKeepKind.COMPLETION, MustKeepKind.FAILURE, MustKeepKind.OPEN_ITEM, MustKeepKind.ROLE,
)  # fmt: skip
# Fields that tell the outcome of all of a task, and not of one check of it.
_WHOLE = frozenset("status state result outcome success succeeded passed completed done finished".split())
_CHANGED, _CHANGING = (*HOLDING, *UNFINISHED), (*HOLDING, _COMPLETION)
_KINDS = (*_CHANGED, _COMPLETION)
_FLAGS = {kind: tuple(float(kind is each) for each in _KINDS) for kind in MustKeepKind}
_SKEW = timedelta(minutes=15)  # clocks of machines differ by less
_NEAR_OPERATIONS = 3  # greatest distance of a decision that `scrap that` can refer to
_POINTS = 1.5  # least taking-back logit at which a fact without a topic refers to the last decision
_FEW = 3.0  # a topic up to this weight names nothing
_COMMON = 40  # words of more facts than this are used only if rarer words find no candidate
_MAX_CANDIDATES = 24
_MAX_CHARS = 400
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z\u00c0-\u00de\u0410-\u042f][\w'-]+")
# `room 12`, `part 3`: one of several things of a kind. Longer numbers are values: `port 8080`, `under 200 ms`.
_LABEL = re.compile(r"([^\W\d_]+) #?(\d{1,2}|[A-H])\b")
_NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
_WORD = re.compile(r"\w+")
_DOUBTED = log(PERHAPS / (1 - PERHAPS))
_MOST_OF_FORM = 2.0  # a common form of two facts adds hardly more than this to the logit
_ONE_FORM = 0.5  # least share of words in common, in the same order, for two texts of one form


@dataclass(frozen=True, slots=True)
class Topic:
    """Topic of a fact: its content words with their rarity, its numbers, names and labels (`room 12`)."""

    words: dict[str, float]
    weight: float
    numbers: frozenset[str]
    names: frozenset[str]
    labels: dict[str, str]


@lru_cache(maxsize=2_048)
def topic_of(text: str) -> Topic:
    """Return the topic of a text; a long text is truncated."""
    text = text[:_MAX_CHARS]
    words = {word: rarity_of(word) for word in content_stems(text) if not word[0].isdigit()}
    return Topic(
        words=words,
        weight=sum(words.values()),
        numbers=frozenset(_NUMBER.findall(text)),
        names=frozenset(name.lower() for name in _NAME.findall(text)),
        labels={stem: match[2] for match in _LABEL.finditer(text) for stem in content_stems(match[1])},
    )


@lru_cache(maxsize=1_024)
def _form_of(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a text in order, and the same with "" for each stop word. Few facts need them."""
    said = tuple(_WORD.findall(text[:_MAX_CHARS].lower()))
    return said, tuple(word if content_stems(word) else "" for word in said)


def _begin_alike_alone(newer: MustKeep, older: MustKeep) -> bool:
    """Check whether two facts share only an opening phrase, such as `The team decided to`.

    False if the phrase precedes at most one content word in either fact: that word may be a new value.
    """
    (mine, my_form), (theirs, their_form) = _form_of(newer.text), _form_of(older.text)
    alike = next((at for at, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), 0)
    here, there = ({*filter(None, form[alike:])} for form in (my_form, their_form))
    return alike > 0 and min(len(here), len(there)) > 1 and here.isdisjoint(there)


def differing_places(newer: MustKeep, older: MustKeep) -> int:
    """Count the places in which two facts of one form differ; -1 if their forms differ or a kind is not in `HOLDING`.

    Facts that differ in one place may state a new value for the same thing. Facts that differ in more places, such as
    in the action and its object, are about different things.
    """
    if newer.kind not in HOLDING or older.kind not in HOLDING:
        return -1
    (mine, my_form), (theirs, their_form) = _form_of(newer.text), _form_of(older.text)
    if len(mine) == len(theirs):  # fast path: compare word by word
        differs = bytes(map(ne, my_form, their_form))
        if differs.count(0) >= _ONE_FORM * len(differs):
            return (b"\0" + differs).count(b"\0\1")
    least = _ONE_FORM * (len(mine) + len(theirs)) / 2
    if sum(map({*theirs}.__contains__, mine)) < least:  # true of most pairs, whatever the word order
        return -1
    same = differing = start = there = 0
    for here, word in enumerate(mine):
        if word in theirs[there:]:
            place = theirs.index(word, there)
            differing += any(my_form[start:here]) and any(their_form[there:place])
            same, start, there = same + 1, here + 1, place + 1
    differing += any(my_form[start:]) and any(their_form[there:])
    return differing if same >= least else -1


def pair_features(
    newer: MustKeep, older: MustKeep, signs: Sequence[float], *, places: int | None = None
) -> list[float]:
    """Return the features of a pair of facts. `signs`: Row of `signs_of` for the newer fact.

    `places`: Result of `differing_places`, if known. Computing it takes as long as everything else.
    """
    if places is None:
        places = differing_places(newer, older)
    mine, theirs = topic_of(newer.text), topic_of(older.text)
    known = theirs.words
    shared = [weight for word, weight in mine.words.items() if word in known]
    common = sum(shared)
    cover, share = common / (theirs.weight or 1.0), common / (mine.weight or 1.0)
    frame = len(shared) / (len(mine.words) + len(known) - len(shared) or 1)
    numbers = bool(mine.numbers and theirs.numbers)
    other_number = numbers and mine.numbers.isdisjoint(theirs.numbers)
    labels = theirs.labels
    other_label = bool(labels) and any(labels.get(word, label) != label for word, label in mine.labels.items())
    other_name = not (mine.names <= theirs.names or theirs.names <= mine.names)
    taking_back, mending = signs
    older_kind, same_kind = older.kind, newer.kind is older.kind
    holds, distance = older_kind in HOLDING, max(0, newer.operation - older.operation)
    replaced = places == 1 and not other_label  # a new value for the same thing, not another thing of its kind
    # Only kinds in `HOLDING` can be taken back, and a fact that states a new value need not sound like taking back.
    back = max(-4.0, min(4.0, taking_back)) if holds and not replaced else 0.0
    completes = newer.kind is _COMPLETION and older_kind in UNFINISHED
    return [
        cover, cover * share, log1p(common), max(shared, default=0.0), frame,
        other_number, other_label, numbers and not other_number, other_name, other_name * (older_kind is _ROLE),
        back, same_kind, same_kind * cover, places > 1, replaced, exp(-distance / 10), holds * log1p(distance),
        len(mine.numbers ^ theirs.numbers) if numbers and holds else 0, holds * log1p(len(known)),
        log1p(len(mine.words)), next(iter(mine.words), "") in known, completes, completes * cover,
        (older_kind is _OPEN) * cover, (older_kind is _FAILURE) * cover, *_FLAGS[newer.kind], *_FLAGS[older_kind][:-1],
        mending if older_kind is _FAILURE else 0.0,
    ]  # fmt: skip


def likelihood(newer: MustKeep, older: MustKeep, signs: Sequence[float]) -> float:
    """Estimate how likely it is that a later fact has superseded or settled an earlier one, 0 to 1."""
    weights, bias = _pair_weights()
    logit = sum(map(mul, pair_features(newer, older, signs, places=-1), weights), bias)
    if logit > _DOUBTED - _MOST_OF_FORM and newer.kind in HOLDING and older.kind in HOLDING:
        if (places := differing_places(newer, older)) > 0:
            logit = sum(map(mul, pair_features(newer, older, signs, places=places), weights), bias)
        if logit > _DOUBTED and _begin_alike_alone(newer, older):
            return 0.0
    return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, logit))))


@lru_cache(maxsize=1)
def _pair_weights() -> tuple[tuple[float, ...], float]:
    """Return the weights of pairs as floats: for one pair, NumPy's overhead per call exceeds the computation."""
    table = load_table()
    return tuple(table.pairs.tolist()), table.pair_bias


def settle(
    must_keeps: Sequence[MustKeep], *, known: int = 0, agents: Mapping[int, str | None] | None = None
) -> tuple[MustKeep, ...]:
    """Mark the facts that later facts replaced (superseded), or completed, answered or repaired (done).

    Facts are compared in order of time and returned in the given order. Facts already superseded or done stay so.
    `superseded_by` of a superseded fact is the later fact's id, 0 if that fact has no id yet. On an active fact, it is
    the id of a fact that has perhaps replaced it. A decision, rule or role in a person's words is only marked as
    perhaps replaced, unless a person wrote the later fact, and only if that one is likely enough to replace any other.
    Takes time about linear in the number of facts.

    Args:
        must_keeps: The facts.
        known: Number of leading facts that an earlier call has already compared with each other. They can still be
            superseded by the remaining facts, but are not compared again.
        agents: The agents of operations, if facts of an agent's operations may change only facts of the same agent.
    """
    order = in_order(must_keeps)
    settled = list(must_keeps)
    new = [number for number in order if number >= known and must_keeps[number].kind in _CHANGING]
    signs = dict(zip(new, signs_of([settled[number].text for number in new]).tolist(), strict=True))
    standing = Standing(agents)
    for number in order if new else ():
        fact = settled[number]
        if fact.status is not MustKeepStatus.STANDING:
            continue
        if number in signs:
            for past, sure in standing.changed_by(fact, settled, signs[number]):
                older = settled[past]
                gone = older.kind in HOLDING
                is_persons = gone and older.author is Author.PERSON and fact.author is not Author.PERSON
                if is_persons and older.text == fact.text:  # drop the repetition, not the person's fact
                    settled[number] = replace(fact, status=MustKeepStatus.SUPERSEDED, superseded_by=older.id)
                    break
                if not sure or is_persons:
                    if sure or older.author is not Author.PERSON:
                        settled[past] = replace(older, superseded_by=fact.id)
                    continue
                settled[past] = replace(
                    older,
                    status=MustKeepStatus.SUPERSEDED if gone else MustKeepStatus.DONE,
                    superseded_by=fact.id if gone else 0,
                )
                standing.remove(past)
        if settled[number].status is MustKeepStatus.STANDING:
            standing.add(number, fact)
    return tuple(settled)


def in_order(must_keeps: Sequence[MustKeep]) -> list[int]:
    """Return the numbers of facts in order of time.

    Of operations whose timestamps differ by less than `_SKEW`, the one recorded later is the later: clocks of machines
    differ. An operation with a much earlier timestamp than one before it was imported, and is as old as it says. A fact
    without an operation, which a person wrote, follows the last operation with an earlier timestamp.
    """
    by_number = sorted(range(len(must_keeps)), key=lambda number: must_keeps[number].operation)
    recorded = [number for number in by_number if must_keeps[number].operation]
    times: dict[int, datetime] = {}
    latest: datetime | None = None
    for number in recorded:
        times[number] = told = must_keeps[number].timestamp
        if latest is None or latest - _SKEW < told:
            times[number] = latest = max(latest or told, told)
    recorded.sort(key=times.__getitem__)
    written = sorted(by_number[: -len(recorded) or None], key=lambda number: must_keeps[number].timestamp)
    order: list[int] = []  # from the newest
    for number in reversed(recorded):
        while written and must_keeps[written[-1]].timestamp > must_keeps[number].timestamp:
            order.append(written.pop())
        order.append(number)
    return [*written, *reversed(order)]


def contradicted(facts: Sequence[MustKeep], by: Sequence[MustKeep]) -> list[MustKeep | None]:
    """Return for each fact the fact in `by` that most likely contradicts it, None if there is none.

    The order of a pair in time does not matter: its likelihood is the mean of both directions. Facts with the same text
    do not contradict each other.
    """
    standing = Standing()
    for number, fact in enumerate(by):
        standing.add(number, fact)
    found: list[MustKeep | None] = []
    for fact in facts:
        near = [by[number] for number in standing.near(topic_of(fact.text))]
        likeliest = max(near, key=lambda each: _both_ways(fact, each), default=None)
        found.append(likeliest if likeliest and _both_ways(fact, likeliest) >= AGAINST else None)
    return found


@lru_cache(maxsize=16_384)
def _both_ways(fact: MustKeep, other: MustKeep) -> float:
    """Return the mean of the likelihoods that either fact supersedes the other, 0 to 1."""
    if fact.text == other.text:
        return 0.0
    return sum(likelihood(a, b, _signs(a.text)) for a, b in ((fact, other), (other, fact))) / 2


@lru_cache(maxsize=2_048)
def _signs(text: str) -> tuple[float, ...]:
    return tuple(signs_of([text])[0].tolist())


def _subject_of(text: str) -> str:
    """Return what an outcome such as `status: failed (deploy the shop)` is about; empty for other facts."""
    name, _, rest = text.partition(": ")
    value, _, about = rest.partition(" (")
    return about[:-1] if about.endswith(")") and state_of(name, value, about=about) else ""


def may_change(newer: MustKeep, older: MustKeep) -> bool:
    """Check whether kinds and times allow `newer` to change `older`; pinned texts and insights never change."""
    if newer.operation <= older.operation and newer.timestamp <= older.timestamp:
        return False
    return older.kind in UNFINISHED if newer.kind is _COMPLETION else newer.kind in HOLDING and older.kind in _CHANGED


class Standing:
    """Index of the active facts by their content words."""

    def __init__(self, agents: Mapping[int, str | None] | None = None) -> None:
        self._agents = agents or {}
        self._facts: dict[int, Topic] = {}
        self._by_word: dict[str, dict[int, None]] = defaultdict(dict)
        # The operations that had an outcome about a subject, and the subjects of the unfinished facts of operations.
        self._tries: dict[str, dict[int, None]] = defaultdict(dict)
        self._unfinished: dict[int, dict[int, str]] = defaultdict(dict)

    def add(self, number: int, fact: MustKeep) -> None:
        """Add a fact if it is of a kind that can be changed."""
        if fact.kind in _CHANGED:
            self._facts[number] = topic = topic_of(fact.text)
            for word in topic.words:
                self._by_word[word][number] = None
        if fact.kind in UNFINISHED and fact.operation:
            self._unfinished[fact.operation][number] = subject = _subject_of(fact.text)
            if subject:
                self._tries[subject][fact.operation] = None

    def remove(self, number: int) -> None:
        """Remove a fact that is no longer active."""
        topic = self._facts.pop(number, None)
        for word in topic.words if topic else ():
            self._by_word[word].pop(number, None)

    def changed_by(self, fact: MustKeep, facts: Sequence[MustKeep], signs: Sequence[float]) -> list[tuple[int, bool]]:
        """Return the numbers of the facts that a later fact changes, each with a flag: True if the change is certain.

        A fact may repeat any number of facts, but changes only the likeliest, with what ends together with that. Of the
        facts that it perhaps replaces, only the likeliest is returned.
        """
        topic = topic_of(fact.text)
        repeated: list[tuple[int, bool]] = []
        chances: dict[int, float] = {}
        for number in self.near(topic):
            older = facts[number]
            if not self._concerns(fact, older):
                continue
            if older.text == fact.text and older.kind is fact.kind and older.kind in HOLDING:
                repeated.append((number, True))  # a repeated fact stays active once
            elif may_change(fact, older) and (chance := likelihood(fact, older, signs)) >= PERHAPS:
                chances[number] = chance
        if not repeated and not chances and topic.weight <= _FEW and signs[0] >= _POINTS:
            return self._pointed_at(fact, facts)
        least = REPORTED if fact.kind is _COMPLETION else SURE
        likeliest = sorted(chances, key=lambda number: -chances[number])
        sure = [number for number in likeliest[:1] if chances[number] >= least]
        told = [facts[number].text for number in sure]
        ended = {*sure, *(number for number in chances if facts[number].text in told), *self._tried(fact, facts)}
        doubted = [(number, False) for number in likeliest if number not in ended]
        return [*repeated, *((number, True) for number in ended), *doubted[:1]]

    def _tried(self, fact: MustKeep, facts: Sequence[MustKeep]) -> Iterator[int]:
        """Yield the outcomes of earlier tries at the subject that a fact completes, and their failures.

        Failures of an operation with outcomes of several subjects may belong to any of these, and are not ended.
        """
        about = _subject_of(fact.text) if fact.kind is _COMPLETION and fact.text.partition(":")[0] in _WHOLE else ""
        for operation in self._tries.get(about, ()) if about else ():
            tried = self._unfinished[operation]
            alone = {*tried.values()} <= {about, ""}
            for number, subject in tried.items():
                ends = subject == about or (alone and facts[number].kind is _FAILURE)
                older = facts[number]
                if ends and number in self._facts and self._concerns(fact, older) and may_change(fact, older):
                    yield number

    def _concerns(self, newer: MustKeep, older: MustKeep) -> bool:
        """Check whether the agents of two facts allow the newer to change the older."""
        agent = self._agents.get(newer.operation)
        return agent is None or agent == self._agents.get(older.operation)

    def near(self, topic: Topic) -> Iterable[int]:
        """Return the numbers of facts that share a word with a topic, by rarity of the word, then newest first."""
        known = sorted((self._by_word[word] for word in topic.words if word in self._by_word), key=len)
        near: dict[int, None] = {}
        for numbers in known:
            if near and len(numbers) > _COMMON:
                break
            for number in reversed(numbers):
                near[number] = None
                if len(near) >= _MAX_CANDIDATES:
                    return near
        return near

    def _pointed_at(self, fact: MustKeep, facts: Sequence[MustKeep]) -> list[tuple[int, bool]]:
        """Return the last decision or rule, if near: `Scrap that.` takes it back without naming it."""
        for number in reversed(self._facts):
            older = facts[number]
            changes = self._concerns(fact, older) and may_change(fact, older)
            if changes and older.kind in (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT):
                near = fact.operation - older.operation <= _NEAR_OPERATIONS
                return [(number, True)] if near else []
        return []
