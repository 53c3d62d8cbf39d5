"""Verbs that commands begin with, and their forms: "starting", "was put", "moved"."""

from __future__ import annotations

import re
from functools import cache

from orchestra_mem.core.language.intents.cancel_patterns import CANCEL, UNDO
from orchestra_mem.core.language.intents.order_patterns import ORDER
from orchestra_mem.core.language.intents.words import first_words, templates
from orchestra_mem.core.language.intents.work_patterns import WORK

_MORE = """
create make note write log find list show decide launch nest attach initiate ditch kill trash transfer reopen
split report break describe introduce work insert append include define draft generate prepare register submit
"""
_NO_VERBS = frozenset(
    """
    all am are back blocked every finally first getting go got i its next now onward onwards please prio priority fast
    that the up we done finished started work bench cap round rate button a case completed currently game job mission
    new not nothing presently sorted spelling there this through which half most before
    """.split()
)
_IRREGULAR = {
    "begun": "begin", "began": "begin", "given": "give", "gave": "give", "taken": "take", "took": "take",
    "made": "make", "got": "get", "gotten": "get", "done": "do", "held": "hold", "brought": "bring", "left": "leave",
    "kept": "keep", "sent": "send", "thrown": "throw", "threw": "throw", "struck": "strike", "withdrawn": "withdraw",
    "written": "write", "wrote": "write", "found": "find", "tied": "tie", "laid": "lay", "undone": "undo",
    "frozen": "freeze", "put": "put", "set": "set", "cut": "cut", "split": "split",
    "let": "let", "rolled": "roll", "dealt": "deal",
}  # fmt: skip
_HARMLESS = frozenset(
    "archive call change close complete do end finish flag get give go make mark move put resolve retire set shut step "
    "switch take treat turn update".split()
)
_INFLECTED = re.compile(r"(?P<stem>[a-z-]{2,}?)(?P<end>ing|ed)")


@cache
def verbs() -> frozenset[str]:
    """Give the verbs with which the patterns of commands begin, and those by which something new is asked for."""
    return (_heads(UNDO + ORDER + CANCEL + WORK) | frozenset(_MORE.split())) - _NO_VERBS


@cache
def destructive_verbs() -> frozenset[str]:
    """Give the verbs that hardly do anything but cancel or undo."""
    return _heads(UNDO + CANCEL) - _HARMLESS


def _heads(table: str) -> frozenset[str]:
    """Give the words with which the patterns of a table begin."""
    return frozenset[str]().union(*(first_words(line) or () for line in templates(table) if line.startswith(" ")))


def alternatives(words: frozenset[str]) -> str:
    """Write words as alternatives of a regular expression, the longest first."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


def is_verb(word: str) -> bool:
    """Tell whether a word is such a verb as it stands."""
    return word in verbs()


def base_of(word: str, *, ends: tuple[str, ...] = ("ing", "ed")) -> str:
    """Give the verb that a word is a form of, "" where it is none: "starting" is of "start"."""
    if "ed" in ends and word in _IRREGULAR:
        return _IRREGULAR[word]
    match = _INFLECTED.fullmatch(word)
    if match is None or match["end"] not in ends:
        return ""
    stem = match["stem"]
    single = stem[:-1] if stem[-1:] == stem[-2:-1] else stem
    bases = (stem, f"{stem}e", single, f"{stem[:-1]}y" if stem.endswith("i") else stem)
    return next((base for base in bases if is_verb(base)), "")
