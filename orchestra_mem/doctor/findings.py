"""What is found of a part, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How a part is: sound, sound with something to know, or at fault."""

    SOUND = "sound"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of a part, and what to do; `advice` is empty where nothing is to be done."""

    part: str
    health: Health
    words: str
    advice: str = ""
