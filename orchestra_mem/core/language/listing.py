"""Which items a line asks to list: how far they are, whose they are, how urgent, and what holds them up."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from orchestra_mem.work_types import OPEN_STATUSES, WorkKind, WorkStatus

ME = "me"
"""Stands for whoever speaks."""

_KIND_WORDS = (*WorkKind, *(kind.plural for kind in WorkKind))
_KINDS = "|".join((*_KIND_WORDS, "items?", "work", "plate", "list", "backlog", "jobs?"))
_NAME = r"(?P<who>[^\W\d_][\w.-]*)"
_WHOSE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:assigned|given|handed|belongs?|belonging) to {_NAME}",
        rf"\bwhat(?:['\u2019]s| is| does| has| did) {_NAME} (?:working|doing|got|have|own|up to|busy|on\b)",
        rf"\b{_NAME}['\u2019]s (?:\w+ ){{0,2}}(?:{_KINDS})\b",
        rf"\b(?:is|does|has) {_NAME} (?:working on|doing|got|have|own|busy with)\b",
    )
]
_MINE = re.compile(r"\b(?:my|mine|am i|do i have|have i got|i have|to me)\b", re.IGNORECASE)
_NOBODYS = re.compile(
    r"\b(?:unassigned|unowned|not assigned|nobody['\u2019]?s|no one['\u2019]?s|without an? (?:owner|assignee)|"
    r"has no (?:owner|assignee)|have no (?:owner|assignee))\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[^\W\d_](?:[\w.-]*\w)?")
# Asks for what is done as well as for what is not.
_WHAT_BECAME = re.compile(r"\b(?:did|finish(?:ed)?|so far|(?:is|has|was) \w+ (?:done|finished|ready))\b", re.IGNORECASE)
_HELD_UP = re.compile(r"\b(?:block(?:ed|ers?|ing)|stuck|held up|waiting)\b", re.IGNORECASE)
_PRIORITIES = {"urgent": 1, "critical": 1, "highest": 1, "high": 2, "medium": 3, "normal": 3, "low": 4, "lowest": 5}
_PRIORITY = re.compile(rf"\b(?:{'|'.join(_PRIORITIES)})\b(?!-)", re.IGNORECASE)
_NO_NAMES = frozenset(_KIND_WORDS) | frozenset(
    "what who it that this there here today yesterday everyone everybody anyone the a an someone next left".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is to be listed; None and empty are no condition.

    `assignee` is a name as it was said, `ME`, or "" for what is nobody's. `held_up` wants what is blocked or waits for
    something open.
    """

    statuses: tuple[WorkStatus, ...] = ()
    assignee: str | None = None
    priority: int | None = None
    held_up: bool = False


def read_listing(line: str, persons: Collection[str] = ()) -> Listing:
    """Read which items a line asks for; what is somebody's or held up is wanted as long as it is open.

    Args:
        line: the question.
        persons: who has work, in lower case: found however the question is put.
    """
    said = line.lower()
    held_up = _HELD_UP.search(line) is not None
    assignee = _assignee(line)
    if assignee is None:
        assignee = next((name for name in _NAMED.findall(line) if name.lower() in persons), None)
    if assignee and _WHAT_BECAME.search(line):
        return Listing(assignee=assignee)
    statuses = tuple(status for status in WorkStatus if status is not WorkStatus.BLOCKED and status.value in said)
    wants_open = re.search(r"\b(?:open|left|remain(?:s|ing)?|outstanding)\b", said) or held_up or assignee is not None
    priority = _PRIORITY.search(line)
    return Listing(
        statuses=statuses or (OPEN_STATUSES if wants_open else ()),
        assignee=assignee,
        priority=_PRIORITIES[priority.group().lower()] if priority else None,
        held_up=held_up,
    )


def _assignee(line: str) -> str | None:
    if _NOBODYS.search(line):
        return ""
    for pattern in _WHOSE:
        for found in pattern.finditer(line):
            if found["who"].lower() == ME:
                return ME
            if found["who"].lower() not in _NO_NAMES:
                return found["who"]
    return ME if _MINE.search(line) else None
