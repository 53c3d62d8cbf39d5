"""Whether a later fact gives another value to what an earlier one settled, judged clause by clause.

In talk, a decision is seldom taken back in words of taking back: its theme comes again with another value, and a word
of change or a conclusion before it (`the log buffer moves into FRAM`, `so it's pumpkin soup`). So each rule here asks
for three things: a word that marks the change, a theme that both clauses share, and a value that differs in the same
place. What adds (`also`, `as well`), and what speaks of another purpose, replaces nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from orchestra_mem.core.cues.cue import LazyPattern
from orchestra_mem.core.facts.clauses import NO_TOPIC, NUMERIC, Clause
from orchestra_mem.core.facts.topics import Profile
from orchestra_mem.core.text import content_stems

ADDS = LazyPattern(
    r"\b(?:also|as well|additionally|besides|in addition|likewise|both|on top of|then next|next we)\b|\btoo$"
)
_CHOOSING = (
    r"(?:tak(?:e|es|en|ing)|us(?:e|es|ing)|cho(?:ose|se|sen)|pick(?:ed)?|rent|buy|hir(?:e|ed|ing)|book(?:ed)?|"
    r"order(?:ed)?|"
    r"serv(?:e|ed|es|ing)|wear(?:ing)?|hav(?:e|ing)|keep(?:ing)?|want(?:ed)?|get|play|plant|go(?:ing)? (?:with|for|by)|"
    r"settled on|agreed on|decided on|set up|stick(?:ing)? (?:with|to)|called?|mov(?:e|ing) to|switch(?:ing)? to)"
)
# What was chosen stands right behind the word of choosing, or at the end of the clause behind one of these.
_CHOSEN = re.compile(
    rf"\b(?:{_CHOOSING}|thinking|said|it's|is|are|be|per|in|with|by|as|on|via|over|through|at|to|from)"
    r"(?: (?:the|an?|our|my|some|two|"
    r"three|four|five|six|\d+|new|old))* (?P<what>[\w'-]+)(?=(?P<more> [\w'-]+)?)"
)
_PICKS = LazyPattern(
    r"\b(?:(?:we|i|they|let's|you|he|she)(?:'ll|'re| will| are|'m| am|'d)?(?: now| all| just| then|"
    r" be)? (?:going (?:to|with|"
    r"for) )?(?:tak|us|cho|pick|rent|buy|hir|book|order|serv|wear|go|switch|mov|stay|print|pay|play|plant|do|sign|send|"
    r"put|"
    r"hold|call|stor|writ|build|mak|get|lend)[a-z]*|(?:it|that) is|it's|back to|becomes?|instead|gets? \w+ed|"
    r"moves? (?:to|into|"
    r"onto)|(?:goes|go|are|comes?) (?:to|by|in|on|onto|with|through|over|from|behind)|will be|is (?:an?|at|in|on|"
    r"behind)|"
    r"(?:we're|i'm) (?:at|in|on|with)|gonna|going with|(?:is|are) going to be|make it|from now on)\b"
)
# A word of change, with its subject before it and the new value behind.
_TURNS = LazyPattern(
    r"(?P<theme>.*?)\b(?P<verb>becomes?|(?:moves?|moved|changed?|changes|switch(?:es|ed)?|shifts?|shifted|turns?|cut|"
    r"down|up) (?:up |down |over |back |out |in)?(?:to|into|onto|by)|goes (?:up |down |over |back |out |in)?(?:to|into|"
    r"onto|"
    r"by|with|on)|go (?:by|to|into|onto|over)|gets? \w+ed by|comes? from)\b(?P<value>.*)"
)
_IS_NOW = LazyPattern(r"(?P<theme>.*?)(?:\b(?:is|are|will be)|'s|'re)\b(?P<value>.*)")
_NOW = LazyPattern(
    r"(?<=\w )now\b|\bfrom (?:now on|today|tonight|tomorrow|\w+day)\b|\binstead\b|\bafter all\b|\bagain$"
)
_WEAK_TURNS = frozenset({"goes", "go", "gets", "get", "comes", "come"})
_OPPOSITES = tuple(
    (re.compile(rf"\b(?:{one})\b"), re.compile(rf"\b(?:{other})\b"))
    for one, other in (
        ("on", "off"), ("opens?|open", "closed|closes|shut"), ("keep|keeping|keeps", "drop|dropping|drops"),
        ("with", "without"), ("allowed|permitted", "forbidden|banned|prohibited"), ("online", "on site|in person"),
        ("public", "private"), ("always", "never"),
    )
)  # fmt: skip


def sets_anew(newer: Profile, older: Profile, *, limits: bool, evidence: Profile | None = None) -> bool:
    """Tell whether a clause of a later fact gives another value to what a clause of an earlier one is about.

    Args:
        newer: The later fact.
        older: The earlier fact.
        limits: Whether the earlier one is a rule, of which only the typed values can be replaced.
        evidence: The later fact together with what its operation says before it.
    """
    marked = is_marked(evidence or newer)
    mine_differs, theirs_differs = newer.values or newer.contrasts, older.values or older.contrasts
    if not (mine_differs and theirs_differs) and (not marked or (limits and not (mine_differs or theirs_differs))):
        return False
    for mine in newer.clauses:
        if mine.topic.isdisjoint(older.topic) or ADDS.search(mine.text):
            continue
        for theirs in older.clauses:
            if mine.topic.isdisjoint(theirs.topic) or _is_another(mine, theirs):
                continue
            if _has_other_value(mine, theirs, marked=marked, limits=limits) or _is_opposite(mine, theirs, marked):
                return True
            if limits or theirs.negated or mine.negated or not marked:
                continue
            if _is_turned(newer, mine, theirs) or _is_put_elsewhere(evidence or newer, mine, theirs):
                return True
    return False


def is_marked(newer: Profile) -> bool:
    """Tell whether a fact has a word of change, or draws a conclusion."""
    return newer.changes or newer.reverses or newer.concludes or newer.fails


def _is_another(mine: Clause, theirs: Clause) -> bool:
    """Tell whether two clauses speak of two things of a kind (`first lesson`), or of two purposes (`for the doors`)."""
    if is_other_of_kind(mine, theirs):
        return True
    purpose, another = mine.frame[1].get("for"), theirs.frame[1].get("for")
    return bool(purpose and another and purpose.isdisjoint(another))


def is_other_of_kind(mine: Clause, theirs: Clause) -> bool:
    """Tell whether two clauses speak of two things of a kind (`first lesson`, `room 12`)."""
    return any(
        other.which.get(kind) != which and kind not in other.closed
        for clause, other in ((mine, theirs), (theirs, mine))
        for kind, which in clause.which.items()
    )


def _has_other_value(mine: Clause, theirs: Clause, *, marked: bool, limits: bool) -> bool:
    """Tell whether both clauses have a value of the same type, and not the same one, about the same theme."""
    if not _differ(mine, theirs):
        return False
    first, second = frozenset(mine.theme), frozenset(theirs.theme)
    common = first & second
    if not common:
        return False
    cover, share = len(common) / len(first), len(common) / len(second)
    if cover == share == 1 and (marked or not limits):
        return True
    if _of_other_kind(mine, theirs, common) or _POINTS.search(mine.text):
        return False
    if max(cover, share) < 1 and (limits or common.isdisjoint(mine.theme[:2]) or common.isdisjoint(theirs.theme[:2])):
        return False
    if marked:
        return share >= 0.5 and (cover >= 0.5 or len(common) >= 2)
    return not limits and len(common) >= 2 and share >= 0.6 and cover >= 0.5


def _of_other_kind(mine: Clause, theirs: Clause, common: frozenset[str]) -> bool:
    """Tell whether what two clauses share is of two kinds (`the retry limit`, `the page limit`)."""
    pairs = ((mine.kinds.get(word), theirs.kinds.get(word)) for word in common)
    return any(one and other and one != other for one, other in pairs)


_POINTS = LazyPattern(r"\b(?:it|them|those|these)\b")


def _differ(mine: Clause, theirs: Clause) -> bool:
    ours, others = _by_type(mine), _by_type(theirs)
    return any(ours[kind].isdisjoint(others[kind]) for kind in ours if kind in others)


def _by_type(clause: Clause) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {kind: {value} for kind, value in clause.closed.items()}
    for kind, value in clause.values:
        found.setdefault("number" if kind in NUMERIC else kind, set()).add(value)
    return found


def _is_turned(newer: Profile, mine: Clause, theirs: Clause) -> bool:
    """Tell whether the subject of a verb of change is what the earlier clause is about, and its value another one."""
    match = _TURNS.match(mine.text)
    weak = match is not None and match["verb"].split()[0] in _WEAK_TURNS
    if match is None and _NOW.search(mine.text):
        match = _IS_NOW.match(mine.text)
    if match is None:
        return False
    subject = frozenset(content_stems(match["theme"])) - NO_TOPIC
    value, rest = mine.topic - subject, theirs.topic - subject
    common = subject & theirs.topic
    if not common or len(common) / len(subject) < 0.6 or value & rest or _of_other_kind(mine, theirs, common):
        return False
    if weak and len(subject) < 2 and not (newer.concludes or newer.fails or _NOW.search(newer.text)):
        return False
    if not (value or mine.values or mine.closed):
        return False  # `redis is up again`
    kinds, others = set(_by_type(mine)), set(_by_type(theirs))
    fits = bool(kinds & others) if mine.values or (theirs.values and not rest) else bool(rest)
    return fits and len(common) / len(theirs.topic) >= 0.25


def _is_put_elsewhere(newer: Profile, mine: Clause, theirs: Clause) -> bool:
    """Tell whether two clauses are about the same thing, but for what stands behind a preposition of the same sense."""
    if (
        not (mine.concluded or newer.fails or newer.reverses or _NOW.search(mine.text))
        or not mine.theme
        or not theirs.theme
    ):
        return False
    (head, inside), (their_head, others) = mine.frame, theirs.frame
    common = head & their_head
    if not common or common not in (head, their_head) or mine.theme[0] not in common:
        return False
    if len(common) / len(their_head) < 0.5:
        return False
    for group in ("place", "means", "as"):
        one, other = inside.get(group), others.get(group)
        if one and other and mine.topic.isdisjoint(other) and theirs.topic.isdisjoint(one):
            return True
    return False


def _is_opposite(mine: Clause, theirs: Clause, marked: bool) -> bool:
    """Tell whether two clauses say the opposite of the same thing."""
    first, second = mine.topic - _OPPOSED, theirs.topic - _OPPOSED
    if len(second) < (1 if marked else 2) or not second <= first or len(second) / len(first) < 0.5:
        return False
    if _by_type(mine) != _by_type(theirs) or mine.negated != theirs.negated:
        return False
    return any(
        (one.search(mine.text) and other.search(theirs.text) and not other.search(mine.text))
        or (other.search(mine.text) and one.search(theirs.text) and not one.search(mine.text))
        for one, other in _OPPOSITES
    )


_OPPOSED = frozenset(
    content_stems(
        "leave leaves stay stays open opens closed closes shut keep drop allowed forbidden banned online public"
    )
)


def drops_choice(newer: Profile, older: Profile) -> bool:
    """Tell whether a later fact speaks against what an earlier one chose, and chooses another thing."""
    return _is_dropped(newer, older) or _is_argued_away(newer, older)


# `No plaster`, `bin the pens`, `we don't host our own server`.
_DROPPED = LazyPattern(
    r"(?:(?:^|[.,;:!] |\bso |\bthen |\band )(?:no (?!(?:more|longer|one|problem|idea|later|way|need)\b)|"
    r"(?:bin|ditch|axe|kill|drop|lose|without) (?:the|those|these|that|our) )|"
    r"\b(?:don't|won't|not) (?:host|run|use|buy|rent|take) (?:our own|any|the) )(?P<what>[\w.-]+)"
)


@dataclass(frozen=True, slots=True)
class _Argument:
    """What a fact speaks against and what it concludes: it says no to `dropped`; `against` is in its reason."""

    dropped: frozenset[str]
    against: frozenset[str]
    after: frozenset[str]
    reason: str
    conclusion: str
    picks: bool
    switches: bool


@lru_cache(maxsize=64)
def _argument_of(newer: Profile) -> _Argument:
    """Take a fact apart; it is held against many others in a row."""
    reason, conclusion = newer.parted
    after = frozenset(content_stems(conclusion))
    heads = conclusion[:_MAX_PICK_CHARS]
    adds = not reason or ADDS.search(conclusion) is not None
    return _Argument(
        dropped=frozenset(word for match in _DROPPED.finditer(newer.text) for word in content_stems(match["what"])),
        against=frozenset() if adds else frozenset(content_stems(reason)) - after,
        after=after,
        reason=reason,
        conclusion=conclusion,
        picks=_PICKS.search(heads) is not None,
        switches=_SWITCHES.search(heads) is not None,
    )


def speaks_well(newer: Profile, chosen: Iterable[str]) -> bool:
    """Tell whether a fact argues with what was chosen, but not against it, and chooses nothing else."""
    told = _argument_of(newer)
    return not (newer.fails or told.picks or told.against.isdisjoint(chosen))


def _is_dropped(newer: Profile, older: Profile) -> bool:
    """Tell whether a later fact says no to what an earlier one chose, and names something else."""
    gone = _argument_of(newer).dropped & older.topic
    if not any(is_chosen(older, word) for word in gone) or _PICKS.search(newer.text) is None:
        return False
    kept = [clause for clause in newer.clauses if not clause.negated and clause.topic and gone.isdisjoint(clause.topic)]
    return any(clause.topic & older.topic or _OWN_SUBJECT.match(clause.text) is None for clause in kept)


def _is_argued_away(newer: Profile, older: Profile) -> bool:
    """Tell whether a later fact argues against what an earlier one chose, and concludes with something else."""
    told = _argument_of(newer)
    against = told.against & older.topic & older.frame
    if not against:
        return False
    chosen = [word for word in against if is_chosen(older, word) and not is_other_kind(word, told.reason, older.text)]
    if not chosen:
        return False
    linked = told.after & older.frame
    if linked - NO_TOPIC and older.frame <= linked | frozenset(chosen):
        return True  # the same sentence, but for what was chosen
    if linked - NO_TOPIC:
        return told.picks or _ACTS.match(told.conclusion) is not None
    if not told.picks or not (newer.fails or told.switches):
        return False
    return _OWN_SUBJECT.match(told.conclusion) is None and (bool(linked) or len(chosen) / len(older.topic) >= 0.33)


_MAX_PICK_CHARS = 80  # a conclusion says soon what is chosen
_SWITCHES = LazyPattern(r"\b(?:switch(?:ing)? to|instead|chang(?:e|ing) to|going with|chang(?:e|ing) it to)\b")
_ACTS = LazyPattern(
    r"\s*(?:we|i|let's)(?:'ll| will)? (?!(?:can|could|should|might|need|have|had|know|think|hope|guess|don't|won't|are|"
    r"am|"
    r"was|were|want|would)\b)\w+"
)
# Not `we take`, `it is` or `back to`, but a thing of which something is said.
_OWN_SUBJECT = LazyPattern(
    r"\s*(?!(?:we|i|they|you|he|she|it|that|this|let|let's|back|back to|gonna|going|please|then|just|only|now)\b|it's|"
    r"i'|we')"
    r"[\w'-]+(?: (?!it )[\w'-]+){0,3} (?:is|are|will|goes?|gets?|moves?|comes?|becomes?)\b"
)


def is_other_kind(word: str, reason: str, older: str) -> bool:
    """Tell whether a stem only tells the kind of two things (`the oak table`, `oak chairs`)."""
    if word not in reason or word not in older:
        return False
    kinds = re.compile(rf"\b(?:the|an?|our|this|that) {re.escape(word)}[\w]* (?P<thing>[a-z]+)").search(reason)
    other = re.compile(rf"\b{re.escape(word)}[\w]* (?P<thing>[a-z]+)").search(older)
    if kinds is None or other is None:
        return False
    mine, theirs = content_stems(kinds["thing"]), content_stems(other["thing"])
    return bool(mine and theirs) and mine != theirs


def is_chosen(older: Profile, word: str) -> bool:
    """Tell whether a stem is what a decision chose, and not something beside it."""
    for number, clause in enumerate(older.clauses):
        if word not in clause.topic or clause.negated:
            continue
        whole = len(clause.topic) <= 2 and (number == 0 or len(older.topic) <= 4)
        if whole and not any(kind == "for" and word in what for kind, what in clause.frame[1].items()):
            return True
        if any(word in content_stems(match["what"] + (match["more"] or "")) for match in _CHOSEN.finditer(clause.text)):
            return True
    return False
