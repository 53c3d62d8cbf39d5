"""Find the known facts that a later fact may end: those with a rare word, the same text or the same subject."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from orchestra_mem.core.facts.outcomes import kind_of_value
from orchestra_mem.core.repetition import as_said
from orchestra_mem.core.text import content_stems
from orchestra_mem.types import Author, MustKeep, MustKeepKind, MustKeepStatus

HOLDING = (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT, MustKeepKind.ROLE)
QUOTED = (*HOLDING, MustKeepKind.INSIGHT)
"""Kinds of facts that a model repeats when it answers from the memory."""
UNFINISHED = (MustKeepKind.OPEN_ITEM, MustKeepKind.FAILURE)
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
"""A word; in scripts without spaces, a character."""
MAX_CHARS = 400
"""Number of a text's leading characters that count."""
_COMPLETION = MustKeepKind.COMPLETION
_COMMON = 40  # words of more facts than this are used only if rarer words find no candidate
# Most candidates of each kind. A decision, rule or role hardly ever ends unfinished facts, nor a completion what holds.
_MOST, _FEW = 24, 4


@lru_cache(maxsize=2_048)
def words_of(text: str) -> tuple[str, ...]:
    """Return the content words of a text in order, without repeats and numbers; a long text is truncated."""
    return tuple(dict.fromkeys(word for word in content_stems(text[:MAX_CHARS]) if not word[0].isdigit()))


@lru_cache(maxsize=2_048)
def subject_of(text: str) -> str:
    """Return what an outcome such as `status: failed (deploy the shop)` is about; empty for other facts."""
    name, _, rest = text.partition(": ")
    value, _, about = rest.partition(" (")
    return about[:-1] if about.endswith(")") and kind_of_value(name, value, about=about) else ""


def nearest(listed: Iterable[dict[int, None]], most: int) -> dict[int, None]:
    """Return the numbers of at most `most` facts that share words, by rarity of the word, then newest first.

    `listed`: For each word, the numbers of its facts in ascending order.
    """
    near: dict[int, None] = {}
    for numbers in sorted(listed, key=len):
        if near and len(numbers) > _COMMON:
            break
        for number in reversed(numbers):
            near[number] = None
            if len(near) >= most:
                return near
    return near


def keys_of(fact: MustKeep, command: str = "") -> set[str]:
    """Return the keys under which a fact is found. `command`: What identifies the command whose failure it is.

    An active fact is found by its words, its text and its subject. An outcome that a later one replaced is found by its
    subject: it tells what the errors of its operation are about. What a model may quote, and a person's fact, is found
    by its texts also if it is no longer active, so that the machine does not bring it back.
    """
    stands = fact.status is MustKeepStatus.STANDING
    changeable = stands and fact.kind in (*HOLDING, *UNFINISHED)
    keys = {*word_keys(fact.text, fact.kind)} if changeable else set[str]()
    if changeable or (stands and fact.kind is _COMPLETION) or fact.kind in QUOTED or fact.author is Author.PERSON:
        keys.update(text_key(text) for text in fact.wordings)
    is_replaced = fact.status is MustKeepStatus.SUPERSEDED and fact.kind in UNFINISHED
    if (changeable or is_replaced) and (subject := subject_of(fact.text)):
        keys.add(f"about {subject}")
    if stands and command:
        keys.add(command_key(command))
    return keys


@lru_cache(maxsize=2_048)
def word_keys(text: str, kind: MustKeepKind) -> tuple[str, ...]:
    """Return the keys of the words of a text of a kind; decisions, rules and roles count as one kind.

    The kinds are apart, so that no number of failures with a word hides an open item or a decision with it.
    """
    group = "held" if kind in HOLDING else kind.value
    return tuple(f"{group} {word}" for word in words_of(text))


def text_key(text: str) -> str:
    """Return the key of the facts in the words of a text."""
    return f"says {as_said(text)}"


def command_key(command: str) -> str:
    """Return the key of the failures of a command."""
    return f"ran {command}"


def keys_near(fact: MustKeep, *, late: bool = False) -> tuple[list[tuple[tuple[str, ...], int]], list[str]]:
    """Return the keys of the facts that a fact may end: word keys, with how many of their `nearest` count, and others.

    `late`: The fact was found late, so that known facts may also end it.
    """
    counts: dict[MustKeepKind, int] = {}
    if fact.kind in (*HOLDING, _COMPLETION) or (late and fact.kind in UNFINISHED):
        counts[HOLDING[0]] = _FEW if fact.kind is _COMPLETION else _MOST
    if fact.kind in HOLDING or fact.kind is _COMPLETION:
        counts |= dict.fromkeys(UNFINISHED, _MOST if fact.kind is _COMPLETION else _FEW)
    subject = subject_of(fact.text)
    others = [text_key(fact.text), *([f"about {subject}"] if subject else [])]
    return [(word_keys(fact.text, kind), most) for kind, most in counts.items()], others
