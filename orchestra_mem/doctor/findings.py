"""What is found of a part, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How a part is: sound, sound with something to know, or at fault."""

    SOUND = "sound"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of a part, and what to do; `advice` is empty where nothing is to be done."""

    part: str
    health: Health
    words: str
    advice: str = ""


def sound(part: str, words: str) -> Finding:
    """Say that a part is in order."""
    return Finding(part, Health.SOUND, words)


def note(part: str, words: str, advice: str = "") -> Finding:
    """Say something of a part that is good to know."""
    return Finding(part, Health.NOTE, words, advice)


def fault(part: str, words: str, advice: str = "") -> Finding:
    """Say what is wrong with a part."""
    return Finding(part, Health.FAULT, words, advice)
