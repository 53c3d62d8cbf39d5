"""Which of a line's phrases it acts on: what "and" joins, what something new is added to, what is ruled out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestra_mem.core.language.references.phrase_words import first_command
from orchestra_mem.core.language.references.phrases import Form, Phrase
from orchestra_mem.core.language.references.words import COMMANDS, NEEDING, STATUSES, tokenise

_LEAVING = frozenset("wait waits stay stays stayed remain remains leave keep skip ignore forget later not".split())
_CLAUSE_ENDS = frozenset([",", ";", "-", "\u2013", "\u2014", ".", "but", "and"])
_CLAUSE_END = re.compile(r"[,;.\u2013\u2014-]|\b(?:but|and)\b", re.IGNORECASE)
_CONTAINER_WORDS = tuple("to under in into on below beneath inside within onto of for as".split())


def split_aside(line: str) -> tuple[str, str]:
    """Split a line into what it says first of something that stays as it is, and its order; the former may be empty.

    "flyers can wait, start the other one" orders something of what is not the flyers.
    """
    if not _CLAUSE_END.search(line):
        return "", line
    tokens = tokenise(line)
    verb = first_command(tokens)
    if verb >= 0 and tokens[verb].low not in _LEAVING:
        return "", line
    for at in range(verb + 2, len(tokens) - 1):
        if tokens[at].low not in _CLAUSE_ENDS:
            continue
        order = first_command(tokens[at + 1 :])
        said = {token.low for token in tokens[:at]}
        if order >= 0 and tokens[at + 1 + order].low in COMMANDS and (said & _LEAVING or not said & STATUSES.keys()):
            return line[: tokens[at].start], line[tokens[at + 1].start :]
    return "", line


def is_subject(line: str, phrases: Sequence[Phrase]) -> bool:
    """Tell whether a line begins with what it speaks of, as in "it needs a task", "the mailing gets two stories"."""
    if not phrases or phrases[0].start > 0:
        return False
    after = line[phrases[0].end :].split()
    return phrases[0].form in (Form.IT, Form.THAT, Form.THEM) or after[:1] in ([verb] for verb in NEEDING)


def affirmed(line: str, phrases: list[Phrase]) -> list[Phrase]:
    """Leave out what is named only to be ruled out, where something else is named: "signup, not login"."""
    kept = [phrase for phrase in phrases if not _is_ruled_out(line, phrase)]
    return kept if any(not phrase.is_bare for phrase in kept) or len(kept) == len(phrases) else kept or phrases


def _is_ruled_out(line: str, phrase: Phrase) -> bool:
    before = line[: phrase.start].lower().split()[-2:]
    return before[-1:] in (["not"], ["than"]) or before == ["instead", "of"]


def run_length(line: str, phrases: Sequence[Phrase]) -> int:
    """Count the phrases that "and" joins to the first."""
    length = 1
    while length < len(phrases) and is_joined(line, phrases[length - 1], phrases[length]):
        length += 1
    return length


def is_joined(line: str, left: Phrase, right: Phrase) -> bool:
    """Tell whether "and", "or" or a comma between two of a sort joins a phrase to the one before it."""
    between = line[left.end : right.start].lower().replace(",", " ").split()
    if right.is_bare and not left.is_bare and right.words and right.words[0][0] in COMMANDS:
        return False  # "finish it and start signup"
    if not between:
        return "," in line[left.end : right.start] and left.form is right.form and left.is_bare is right.is_bare
    return between in (["or"], ["and"], ["&"], ["+"], ["plus"], ["and", "also"], ["as", "well", "as"])


def containers(line: str, phrases: Sequence[Phrase]) -> list[Phrase]:
    """List what something new can be added to: what a preposition leads, "of" and "for" failing others."""
    led = [(phrase, word_before(line, phrase)) for phrase in phrases]
    for leaders in (_CONTAINER_WORDS[:10], _CONTAINER_WORDS[10:12]):
        found = [phrase for phrase, word in led if word in leaders and not phrase.is_bare]
        if found:
            return found
    bare = [phrase for phrase, word in led if word in _CONTAINER_WORDS]
    return bare or [phrase for phrase, word in led if not phrase.is_bare and word not in ("about",)]


def word_before(line: str, phrase: Phrase) -> str:
    """Give the word before a phrase, in lower case."""
    before = line[: phrase.start].split()
    return before[-1].lower().strip(",;:") if before else ""


def is_object(line: str, phrase: Phrase) -> bool:
    """Tell whether a title stands where a verb's object does, or begins the line."""
    return phrase.is_bare and (phrase.start == 0 or word_before(line, phrase) in COMMANDS)
