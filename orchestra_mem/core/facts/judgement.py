"""Weighing a sentence: of which kinds of facts it speaks, by the cues in it. Pure; no operations, no documents."""

from __future__ import annotations

import re
from collections import defaultdict

from orchestra_mem.core.cues.arrangement import ARRANGEMENT_CUES
from orchestra_mem.core.cues.cue import ASKED, CHEER, HEDGE, NARRATION, SUPPOSED, TAG, TENTATIVE, THRESHOLD
from orchestra_mem.core.cues.decision import DECISION_CUES
from orchestra_mem.core.cues.duty import DUTY_CUES
from orchestra_mem.core.cues.event import COMPLETION_CUES, FAILURE_CUES
from orchestra_mem.core.cues.grammar import weigh_grammar
from orchestra_mem.core.cues.limit import LIMIT_CUES
from orchestra_mem.core.cues.open import OPEN_ITEM_CUES
from orchestra_mem.core.facts.roles import find_role
from orchestra_mem.types import MustKeepKind

_ROLE_WEIGHT = 2.5
_BEYOND_DOUBT = THRESHOLD + 0.5  # no grammar speaks against cues that weigh so much
_FACTS = frozenset({MustKeepKind.DECISION, MustKeepKind.FAILURE, MustKeepKind.COMPLETION, MustKeepKind.ROLE})
_HEDGED = frozenset({MustKeepKind.DECISION, MustKeepKind.COMPLETION, MustKeepKind.ROLE})

CUES = DUTY_CUES + LIMIT_CUES + DECISION_CUES + ARRANGEMENT_CUES + FAILURE_CUES + COMPLETION_CUES + OPEN_ITEM_CUES
_BY_TRIGGER: dict[str, list[int]] = defaultdict(list)
for _number, _cue in enumerate(CUES):
    for _trigger in _cue.triggers:
        _BY_TRIGGER[_trigger].append(_number)

_VOCABULARY = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_CLAUSE_START = re.compile(r"[,;:.!—–]\s|\s-\s")


def judge(
    sentence: str, *, imperative: bool = True, talk: bool = True, tentative: bool = False
) -> dict[MustKeepKind, tuple[float, int]]:
    """Weigh what a sentence says: for each kind that it speaks of, the score (from `THRESHOLD` up) and where it begins.

    Args:
        sentence: With straight apostrophes and single blanks.
        imperative: Whether an imperative tells somebody what to do, and not what has been done.
        talk: Whether people speak to each other, so that the grammar of what is said counts, not its words alone.
        tentative: Whether to tell of a decision from `TENTATIVE` up, too, where a sentence tells nothing else.
    """
    low = sentence.lower()
    if NARRATION.match(low):
        return {}
    words = _VOCABULARY.findall(low)
    vocabulary = _with_parts(words)
    question = _is_question(low)
    scores: dict[MustKeepKind, float] = defaultdict(float)
    places: dict[MustKeepKind, int] = {}
    for number in sorted(set().union(*[_BY_TRIGGER[word] for word in vocabulary if word in _BY_TRIGGER])):
        cue = CUES[number]
        if (question and not cue.asks) or (cue.imperative and not imperative):
            continue
        match = cue.pattern.search(low)
        if match is None or _is_open(low, match.start(), match.end(), cue.kind):
            continue
        scores[cue.kind] += cue.weight
        places[cue.kind] = min(places.get(cue.kind, match.start()), match.start())
    role = None if question else find_role(sentence, vocabulary)
    if role is not None and not _is_open(low, role[1], role[1], MustKeepKind.ROLE):
        scores[MustKeepKind.ROLE] += _ROLE_WEIGHT
        places.setdefault(MustKeepKind.ROLE, role[1])
    known, likely = any(score >= THRESHOLD for score in scores.values()), False
    if talk and not question and not (known and max(scores.values()) > _BEYOND_DOUBT):
        for kind, weight in weigh_grammar(sentence, low, words, known=known):
            # it tells of what no cue tells of, and casts doubt on what one does
            if not known or weight < 0:
                scores[kind] += weight
                places.setdefault(kind, 0)
            likely = likely or kind is MustKeepKind.DECISION
        known = known or any(score >= THRESHOLD for score in scores.values())
    likely = likely and tentative
    if not (known or likely):
        return {}
    if HEDGE.search(low):
        likely = False
        for kind in _HEDGED:
            scores[kind] -= 2
    if CHEER.search(low):
        for kind in scores:
            scores[kind] -= 0 if kind is MustKeepKind.ROLE else 1.5
    told = {kind: (score, places[kind]) for kind, score in scores.items() if score >= THRESHOLD}
    return told or ({MustKeepKind.DECISION: (TENTATIVE, 0)} if likely else {})


def vocabulary_of(low: str) -> set[str]:
    """The words of a sentence, those joined by a hyphen or an apostrophe also in their parts."""
    return _with_parts(_VOCABULARY.findall(low))


def _with_parts(words: list[str]) -> set[str]:
    vocabulary = set(words)
    for word in [word for word in vocabulary if not word.isalnum()]:
        vocabulary.update(word.split("-"))
        if "'" in word:
            vocabulary.add(word[word.index("'") :])
            vocabulary.add(word[: word.index("'")])
    return vocabulary


def _is_question(low: str) -> bool:
    return low.rstrip("\"')*_ ").endswith("?") and TAG.search(low) is None


def _is_open(low: str, start: int, end: int, kind: MustKeepKind) -> bool:
    """Tell whether a match stands in a clause that leaves open whether it is so: one that supposes, wishes or asks.

    A rule may well suppose something; only what is asked is none.
    """
    pattern = SUPPOSED if kind in _FACTS else ASKED if kind is MustKeepKind.CONSTRAINT else None
    if pattern is None:
        return False
    begin = 0
    for border in _CLAUSE_START.finditer(low, 0, max(start, 0) + 1):
        if border.end() <= start + 2:
            begin = border.end()
    return pattern.search(low, begin, end) is not None
