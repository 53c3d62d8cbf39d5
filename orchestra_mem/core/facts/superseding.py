"""Decide which facts still hold: later facts supersede, complete or answer earlier ones.

Only facts that share a content word are compared. The thresholds are cautious, because in hardly one of twenty-five
such pairs the later fact ends the earlier one. A fact wrongly superseded is lost knowledge; a fact wrongly kept costs
one line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from orchestra_mem.core.facts.candidates import HOLDING, UNFINISHED, keys_near, nearest, subject_of, word_keys
from orchestra_mem.core.facts.classifier import OPEN, signs_of
from orchestra_mem.core.facts.pairs import PERHAPS, is_about_another, likelihood, topic_of
from orchestra_mem.core.repetition import as_said, in_same_words
from orchestra_mem.types import Author, MustKeep, MustKeepKind, MustKeepStatus

SURE, REPORTED, LIFTED = 0.36, 0.35, 0.55
"""Least likelihood at which a fact is marked superseded or done.

If a completion does this, `REPORTED` applies to failures and open items, `LIFTED` to decisions, rules and roles: most
reports about what a rule is about keep to the rule.
"""
BESIDE = 0.5
"""Least likelihood at which a fact that replaces what was decided also ends something unfinished."""
AGAINST = 0.25
"""Least likelihood, averaged over both directions, at which decisions of two projects contradict each other."""
# Module-level names, because looking up a member of an enum takes as long as computing a feature.
_COMPLETION, _FAILURE = MustKeepKind.COMPLETION, MustKeepKind.FAILURE
# Fields that tell the outcome of all of a task, and not of one check of it.
_WHOLE = frozenset("status state result outcome success succeeded passed completed done finished".split())
_CHANGED, _ENDING, _CHANGING = (*HOLDING, *UNFINISHED), (*HOLDING, _COMPLETION), (*HOLDING, *UNFINISHED, _COMPLETION)
_REPEATED = (*UNFINISHED, _COMPLETION)  # of these kinds, a fact is superseded by one in the same words
_SKEW = timedelta(minutes=15)  # clocks of machines differ by less
_LEAST_OPEN = 0.3  # least logit at which a fact leaves open what it says: it ends nothing for sure
# Least share of the words of a completed task, by weight, in an open item that it ends: of 77 pairs that share a word,
# this keeps 36 of 37 right ends and 2 of 25 wrong ones.
_NAMED = 0.6


def settle(
    must_keeps: Sequence[MustKeep],
    *,
    known: int = 0,
    agents: Mapping[int, str | None] | None = None,
    replaced: Sequence[MustKeep] = (),
) -> tuple[MustKeep, ...]:
    """Mark the facts that later facts replaced (superseded), or completed, answered or repaired (done).

    Facts are compared in order of time and returned in the given order. Facts already superseded or done stay so.
    `superseded_by` of a superseded fact is the later fact's id, 0 if that fact has no id yet. On an active fact, it is
    the id of a fact that has perhaps replaced it. A fact in a person's words is only marked as perhaps replaced, unless
    a person wrote the later fact or a completion ends an open item or failure, and only if that one is likely enough to
    replace any other.
    Takes time about linear in the number of facts.

    Args:
        must_keeps: The facts.
        known: Number of leading facts that an earlier call has already compared with each other. They can still be
            superseded by the remaining facts, but are not compared again.
        agents: The agents of operations, if facts of an agent's operations may change only facts of the same agent.
        replaced: Outcomes that later ones have superseded: they tell what the errors of their operations are about.
    """
    order = in_order(must_keeps)
    settled = list(must_keeps)
    new = [number for number in order if number >= known and must_keeps[number].kind in _CHANGING]
    judged = [number for number in new if must_keeps[number].kind not in UNFINISHED]
    signs = dict(zip(judged, signs_of([settled[number].text for number in judged]).tolist(), strict=True))
    standing = Standing(agents, _subjects_of([*must_keeps, *replaced]))
    for number in order if new else ():
        fact = settled[number]
        if fact.status is not MustKeepStatus.STANDING:
            continue
        if number >= known and fact.kind in _CHANGING:
            for past, sure in standing.changed_by(fact, settled, signs.get(number, ())):
                older = settled[past]
                gone = older.kind in HOLDING or older.kind is fact.kind  # the others are repaired, done or answered
                is_persons = older.author is Author.PERSON and fact.author is not Author.PERSON
                if is_persons and gone and in_same_words(older.text, fact.text):  # drop the repetition, not theirs
                    settled[number] = replace(fact, status=MustKeepStatus.SUPERSEDED, superseded_by=older.id)
                    break
                if not sure or (is_persons and (gone or fact.kind is not _COMPLETION)):
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

    The order of a pair in time does not matter: its likelihood is the mean of both directions. Facts in the same words
    do not contradict each other.
    """
    standing = Standing()
    for number, fact in enumerate(by):
        standing.add(number, fact)
    found: list[MustKeep | None] = []
    for fact in facts:
        near = [by[number] for number in standing.near(fact)]
        likeliest = max(near, key=lambda each: _both_ways(fact, each), default=None)
        found.append(likeliest if likeliest and _both_ways(fact, likeliest) >= AGAINST else None)
    return found


@lru_cache(maxsize=16_384)
def _both_ways(fact: MustKeep, other: MustKeep) -> float:
    """Return the mean of the likelihoods that either fact supersedes the other, 0 to 1."""
    if in_same_words(fact.text, other.text):
        return 0.0
    return sum(likelihood(a, b, _signs(a.text)) for a, b in ((fact, other), (other, fact))) / 2


@lru_cache(maxsize=2_048)
def _signs(text: str) -> tuple[float, ...]:
    return tuple(signs_of([text])[0].tolist())


def _subjects_of(facts: Iterable[MustKeep]) -> dict[int, tuple[str, ...]]:
    """Return the subjects of the outcomes that each operation has left unfinished."""
    subjects: dict[int, set[str]] = defaultdict(set)
    for fact in facts:
        if fact.kind in UNFINISHED and fact.operation and (subject := subject_of(fact.text)):
            subjects[fact.operation].add(subject)
    return {operation: tuple(sorted(each)) for operation, each in subjects.items()}


def may_change(newer: MustKeep, older: MustKeep) -> bool:
    """Check whether kinds and times allow `newer` to change `older`: completions and insights never change."""
    if newer.operation <= older.operation and newer.timestamp <= older.timestamp:
        return False
    return newer.kind in _ENDING and older.kind in _CHANGED


def _least(newer: MustKeep, older: MustKeep) -> float:
    """Return the least likelihood at which `newer` ends `older` for sure."""
    if newer.kind is not _COMPLETION:
        return SURE
    return LIFTED if older.kind in HOLDING else REPORTED


def _names(task: str, older: MustKeep) -> bool:
    """Check whether an unfinished fact says what a named task is; other facts need no name."""
    words, known = topic_of(task).words, topic_of(older.text).words
    shared = sum(weight for word, weight in words.items() if word in known)
    return older.kind not in UNFINISHED or shared >= _NAMED * sum(words.values())


class Standing:
    """Index of the active facts by their content words."""

    def __init__(
        self, agents: Mapping[int, str | None] | None = None, subjects: Mapping[int, tuple[str, ...]] | None = None
    ) -> None:
        self._agents, self._subjects = agents or {}, subjects or {}
        self._facts: dict[int, Sequence[str]] = {}  # with the keys of their words
        self._by_word: dict[str, dict[int, None]] = defaultdict(dict)
        self._said: dict[tuple[object, ...], int] = {}
        # The operations that had an outcome about a subject, and the unfinished facts of operations.
        self._tries: dict[str, list[int]] = defaultdict(list)
        for operation, about in self._subjects.items():
            for subject in about:
                self._tries[subject].append(operation)
        self._unfinished: dict[int, dict[int, None]] = defaultdict(dict)

    def add(self, number: int, fact: MustKeep) -> None:
        """Add a fact if it is of a kind that can be changed."""
        if fact.kind in _CHANGED:
            self._facts[number] = words = word_keys(fact.text, fact.kind)
            for word in words:
                self._by_word[word][number] = None
        if fact.kind in _REPEATED:
            self._said[self._saying(fact)] = number
        if fact.kind in UNFINISHED and fact.operation:
            self._unfinished[fact.operation][number] = None

    def remove(self, number: int) -> None:
        """Remove a fact that is no longer active."""
        for word in self._facts.pop(number, ()):
            self._by_word[word].pop(number, None)

    def changed_by(self, fact: MustKeep, facts: Sequence[MustKeep], signs: Sequence[float]) -> list[tuple[int, bool]]:
        """Return the numbers of the facts that a later fact changes, each with a flag: True if the change is certain.

        A fact may repeat any number of facts, but changes only the likeliest that holds and the likeliest unfinished
        one, with what ends together with these. Of the facts that it perhaps replaces, only the likeliest is returned.
        """
        repeated: list[tuple[int, bool]] = []  # a repeated fact stays active once
        before = self._said.get(self._saying(fact)) if fact.kind in _REPEATED else None
        if before is not None and facts[before].status is MustKeepStatus.STANDING:
            repeated.append((before, True))
        if fact.kind in UNFINISHED:
            return repeated
        about = subject_of(fact.text) if fact.kind is _COMPLETION else ""
        chances: dict[int, float] = {}
        for number in self.near(fact):
            older = facts[number]
            others = self._subjects_of(older) if about else ()
            if not self._concerns(fact, older) or (others and about not in others):
                continue
            if older.kind is fact.kind and older.kind in HOLDING and in_same_words(older.text, fact.text):
                repeated.append((number, True))
            elif may_change(fact, older) and (chance := likelihood(fact, older, signs)) >= PERHAPS:
                chances[number] = chance
        likeliest = sorted(chances, key=lambda number: -chances[number])
        is_open = fact.kind in HOLDING and signs[OPEN] >= _LEAST_OPEN
        ends = [number for number in likeliest if chances[number] >= _least(fact, facts[number]) and not is_open]
        meant = [number for number in ends if self._is_meant(fact, facts[number], about)]
        of_kind = {facts[number].kind in HOLDING: number for number in reversed(meant)}  # the likeliest of each
        sure = [number for holds, number in of_kind.items() if holds or len(of_kind) < 2 or chances[number] >= BESIDE]
        told = {as_said(facts[number].text) for number in sure}
        ended = {*sure, *(each for each in chances if as_said(facts[each].text) in told), *self._tried(fact, facts)}
        doubted = [(number, False) for number in likeliest if number not in ended]
        return [*((number, True) for number in ended), *doubted[:1], *repeated]

    @staticmethod
    def _is_meant(fact: MustKeep, older: MustKeep, about: str) -> bool:
        """Check whether a fact is about what an older one leaves open. `about`: The task that it completes, if any."""
        if older.kind in UNFINISHED and is_about_another(fact, older):
            return False
        return not about or _names(about, older)

    def _tried(self, fact: MustKeep, facts: Sequence[MustKeep]) -> Iterator[int]:
        """Yield the outcomes of earlier tries at the subject that a fact completes, and their failures.

        Failures of an operation with outcomes of several subjects may belong to any of these, and are not ended.
        """
        about = subject_of(fact.text) if fact.kind is _COMPLETION and fact.text.partition(":")[0] in _WHOLE else ""
        for operation in self._tries.get(about, ()) if about else ():
            alone = self._subjects.get(operation) == (about,)
            for number in self._unfinished[operation]:
                older = facts[number]
                ends = subject_of(older.text) == about or (alone and older.kind is _FAILURE)
                if ends and number in self._facts and self._concerns(fact, older) and may_change(fact, older):
                    yield number

    def _subjects_of(self, fact: MustKeep) -> Collection[str]:
        """Return the tasks that an outcome or an error may belong to; empty if no outcome names one."""
        if own := subject_of(fact.text):
            return (own,)
        return self._subjects.get(fact.operation, ()) if fact.kind is _FAILURE else ()

    def _saying(self, fact: MustKeep) -> tuple[object, ...]:
        """Return what facts have in common of which the last stands for all: kind, agent, words and tasks."""
        return fact.kind, self._agents.get(fact.operation), as_said(fact.text), *self._subjects_of(fact)

    def _concerns(self, newer: MustKeep, older: MustKeep) -> bool:
        """Check whether the agents of two facts allow the newer to change the older."""
        agent = self._agents.get(newer.operation)
        return agent is None or agent == self._agents.get(older.operation)

    def near(self, fact: MustKeep) -> Iterator[int]:
        """Yield the numbers of facts that share a word with a later fact, of the kinds that it may end."""
        for words, most in keys_near(fact)[0]:
            yield from nearest((self._by_word[word] for word in words if word in self._by_word), most)
