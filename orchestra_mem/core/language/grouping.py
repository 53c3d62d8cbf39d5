"""Items that a line speaks of by no title: "all but the desk", "the rest", "Dana's interview", "what Lukas has"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from orchestra_mem.core.language.references.titles import match
from orchestra_mem.core.text import words
from orchestra_mem.work_types import WorkItem

_ALL = r"(?:all(?: of (?:it|them|those|these))?|everything|every one|all (?:the )?(?:stories|tasks|epics|items|others))"
_BUT = r"(?:but|except(?: for)?|besides|apart from|other than|minus)"
# A list of names ends where a verb, a preposition or the line does.
_NAMES_END = (
    r"(?=\s+(?:is|are|was|were|has|have|goes|go|to|for|can|gets?|done|finished|started|now|please|until|till|will|by|"
    r"first|too|as well)\b|\s*[,.;:!?)-]|\s*$)"
)
_ALL_BUT = re.compile(rf"\b{_ALL} {_BUT} (?:\S+ ){{0,6}}?\S+?{_NAMES_END}", re.IGNORECASE)
_LEFT = re.compile(
    r"\b(?:everything else|all the rest|the rest(?: of (?:it|them|those))?|(?:all )?(?:the )?remaining(?: ones| "
    r"stories|"
    r" tasks| items)?|all the others)(?= )",
    re.IGNORECASE,
)
_SCATTERED = re.compile(
    rf"(?P<lead>^\W*(?:(?:so|ok|and|now|we are|we're)\W+)*)(?P<all>{_ALL})(?P<says>(?: is| are|'s)? (?:done|"
    r"finished|complete|"
    rf"completed|started|ready|closed)(?: with)?)(?P<but> {_BUT} .+)$|"
    rf"^(?P<with>.*\bdone with )(?P<what>{_ALL} {_BUT} .+)$",
    re.IGNORECASE,
)
_THINGS = (
    r"(?:stuff|things?|items?|work|tasks?|stories|epics?|story|jobs?|ones?|part|share|open (?:tasks|stories|items))"
)
_OWNED = r"(?:the (?:one|ones|thing|things|stuff|story|task)|everything|all|what|whatever|all that)"


def gathered(line: str) -> str:
    """A line with what is left out right behind what it is left out of: "all except the cake are done"."""
    found = _SCATTERED.match(line)
    if found is None or not found["all"]:
        return line
    return f"{found['lead']}{found['all']}{found['but'].rstrip(' .!')}{found['says']}"


def group_spans(line: str, persons: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield where a line speaks of items as all but some, as those left, or as somebody's.

    Args:
        line: the line.
        persons: who has work, in lower case.
    """
    for pattern in (_ALL_BUT, _LEFT):
        yield from (found.span() for found in pattern.finditer(line))
    if persons:
        yield from (found.span() for found in _of_person(persons).finditer(line))


def _of_person(persons: Collection[str]) -> re.Pattern[str]:
    who = "|".join(sorted(map(re.escape, persons), key=len, reverse=True))
    return re.compile(
        rf"\b(?:the )?(?:{who})(?:['\u2019]s?|s['\u2019]) (?!(?:on|in|at|is|was|not|already|done|finished|"
        r"started|still|"
        rf"working|doing|taking|got|been|a|an|the|to|going|job|turn|now)\b)(?:(?:open|other|last|first) )?[\w-]+"
        rf"(?=\W*$|\s+(?:is|are|was|were|to|goes|go|has|can|done|finished|started|waits?|first)\b)"
        rf"|\b{_OWNED}(?: that)? (?:{who}|i|she|he) (?:has|have|had|owns?|got)(?: got)?\b",
        re.IGNORECASE,
    )


_OF_PERSON = re.compile(
    rf"(?:the |all )*(?P<who>[\w-]+?)(?:['\u2019]s?|s['\u2019]) (?P<of>\S.*)|"
    rf"(?P<many>{_OWNED})(?: that)? (?P<whose>[\w-]+)(?: (?:has|have|had|owns?|got)(?: got)?)?",
    re.IGNORECASE,
)


def owned(phrase: str, items: Sequence[WorkItem]) -> tuple[WorkItem, ...] | None:
    """The open items that a phrase means as somebody's; None where it is no such phrase.

    Args:
        phrase: "Dana's interview", "the one Lukas has", "everything Gita has".
        items: those to choose from.
    """
    found = _OF_PERSON.fullmatch(phrase.strip())
    if found is None:
        return None
    who = (found["who"] or found["whose"]).lower()
    own = [item for item in items if (item.assignee or "").lower() == who]
    if not own:
        return None
    of = found["of"] or ""
    if of and not re.fullmatch(_THINGS, of, re.IGNORECASE):
        own = [item for item in own if match(words(of), item.title)]
    return tuple(item for item in own if item.status.is_open) or tuple(own)


def means_one(phrase: str) -> bool:
    """Tell whether an owned phrase means a single item: "the one Lukas has", "Dana's interview"."""
    lower = phrase.lower()
    if re.match(r"(?:everything|all|what)", lower) or re.search(r"\b(?:stuff|things|work|jobs|share)$", lower):
        return False
    return lower.startswith(("the one ", "the thing ", "the story ", "the task ")) or not lower.endswith("s")
