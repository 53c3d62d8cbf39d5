"""What may enter the context, part by part, and what became of it. The words that the assembly speaks in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Part(StrEnum):
    """The parts of a context in their order, the most stable first; the values are the source design's keys."""

    PROJECT_STATE = "project_state"
    WORK_PLAN = "work_plan"
    DECISIONS = "decision_history"
    SHARED = "shared_decisions"
    SESSION = "session_summary"
    OPERATIONS = "working_memory"
    RECALLED = "recalled_memories"


STABLE_PARTS = (Part.PROJECT_STATE, Part.WORK_PLAN, Part.DECISIONS, Part.SHARED, Part.SESSION)
# What an epoch consists of; recalled memories come behind it, for one request.
EPOCH_PARTS = (*STABLE_PARTS, Part.OPERATIONS)
# The source design, section 3.1.
DEFAULT_SHARES: Mapping[Part, float] = MappingProxyType(
    {Part.PROJECT_STATE: 0.25, Part.WORK_PLAN: 0.15, Part.DECISIONS: 0.10, Part.SESSION: 0.20, Part.OPERATIONS: 0.30}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that may enter the context, in one or more forms.

    `forms` go from the shortest to the fullest; `as_form` makes one of any text. Of items with the same `priority`
    the first goes before, among operations the last. A pinned one stands in full before others have more than their
    shortest form, for the reason in `pinned_for`. `source` tells people where it stands.

    Raises:
        ValueError: there is no form, or one does not begin with a visible character and end with a line feed.
    """

    key: str
    part: Part
    forms: tuple[str, ...]
    priority: float = 0.0
    pinned: bool = False
    pinned_for: str = "pinned"
    source: str = ""

    def __post_init__(self) -> None:
        if not self.forms:
            raise ValueError(f"item {self.key!r} has no form")
        for form in self.forms:
            # What `TokenCounter.additive` asks of a piece.
            if form[:1].isspace() or form[-1:] != "\n":
                raise ValueError(f"item {self.key!r}: a form begins with a visible character and ends with a line feed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What became of an item. `form` counts from 0 and is None where the item was left out; `text` is what is shown.

    `tokens` is what the item takes, `full_tokens` what its fullest form would take.
    """

    key: str
    part: Part
    form: int | None
    forms: int
    tokens: int
    full_tokens: int
    reason: str
    pinned: bool = False
    source: str = ""
    text: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRoom:
    """The tokens of a part: its share, what it could use at the epoch's start, and what its border line takes."""

    part: Part
    share_tokens: int
    room_tokens: int
    border_tokens: int = 0


def as_form(text: str) -> str:
    """Make a form of `text`: white space before and behind it goes, a line feed ends it; blank text gives ""."""
    stripped = text.strip()
    return f"{stripped}\n" if stripped else ""


def operation_key(operation_id: int) -> str:
    """Name the item of an operation."""
    return f"op {operation_id}"


# A border of ours, or a control token of a model family's chat template, that stands in an item's text. A backslash
# goes in, one more where there is one already, so that what was meant can be read off.
_FORGED = re.compile(
    r"<(?=\\*(?:/?\s*memory\b|\|\w+\|>|\uff5c[^\uff5c<>\n]{1,40}\uff5c>|/?(?:s|bos|eos|pad|unk)>|</?SYS>>"
    r"|(?:start|end)_of_turn>|(?:start|end)_of_(?:role|text)\b))"
    r"|\[(?=\\*/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)


def neutralise(text: str) -> str:
    r"""Keep `text` from speaking as the frame around it: `<memory …>` becomes `<\memory …>`."""
    return _FORGED.sub(r"\g<0>\\", text) if "<" in text or "[" in text else text


def border_line(part: Part, source: str) -> str:
    """Make the line that a part begins with; `source` tells where the part stands, or is empty."""
    named = re.sub(r'["<>\s]+', " ", source).strip()
    return f'<memory part="{part.value}" source="{named}">\n' if named else f'<memory part="{part.value}">\n'
