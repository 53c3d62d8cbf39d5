"""Which of a line's phrases it acts on: what "and" joins, what something new is added to, what is ruled out."""

from __future__ import annotations

from collections.abc import Sequence

from orchestra_mem.core.language.phrases import Form, Phrase
from orchestra_mem.core.language.reference_words import COMMANDS

_CONTAINER_WORDS = tuple("to under in into on below beneath inside within onto of for as".split())


def is_subject(phrases: Sequence[Phrase]) -> bool:
    """Tell whether a line begins with what it speaks of, as in "it needs a task"."""
    return bool(phrases) and phrases[0].start == 0 and phrases[0].form in (Form.IT, Form.THAT, Form.THEM)


def affirmed(line: str, phrases: list[Phrase]) -> list[Phrase]:
    """Leave out what is named only to be ruled out, where something else is named: "signup, not login"."""
    kept = [phrase for phrase in phrases if word_before(line, phrase) not in ("not", "than")]
    return kept if any(not phrase.is_bare for phrase in kept) or len(kept) == len(phrases) else kept or phrases


def run_length(line: str, phrases: Sequence[Phrase]) -> int:
    """Count the phrases that "and" joins to the first."""
    length = 1
    while length < len(phrases) and is_joined(line, phrases[length - 1], phrases[length]):
        length += 1
    return length


def is_joined(line: str, left: Phrase, right: Phrase) -> bool:
    """Tell whether "and", "or" or a comma between two of a sort joins a phrase to the one before it."""
    between = line[left.end : right.start].lower().replace(",", " ").split()
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
