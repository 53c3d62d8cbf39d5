"""Items that may enter the context, and the choice of their forms to fit each part's number of tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from orchestra_mem.core.control_tokens import neutralise
from orchestra_mem.ports import TokenCounter


class Part(StrEnum):
    """The parts of a context in order, the most stable first; the values are the source design's keys."""

    PROJECT_STATE = "project_state"
    WORK_PLAN = "work_plan"
    DECISIONS = "decision_history"
    SHARED = "shared_decisions"
    SESSION = "session_summary"
    OPERATIONS = "working_memory"
    RECALLED = "recalled_memories"


DOCUMENT_PARTS = (Part.PROJECT_STATE, Part.WORK_PLAN, Part.DECISIONS, Part.SHARED)
STABLE_PARTS = (*DOCUMENT_PARTS, Part.SESSION)
# The parts of an epoch; recalled memories are appended to it for one request.
EPOCH_PARTS = (*STABLE_PARTS, Part.OPERATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that may enter the context, in one or more forms.

    `forms`: From the shortest to the fullest; `as_form` makes one from any text. `valid`: How many of them, from the
    shortest, show only what still holds; fuller ones come after all that holds. None: all. `priority`: Higher is placed
    first; a tie goes to the first item, among operations to the last. `pinned`: Placed before all unpinned items, in
    full if it fits; `pinned_for` is the reason to show. `source`: Location of the item, for people.

    Raises:
        ValueError: There is no form, or a form does not begin with a visible character and end with a line feed.
    """

    key: str
    part: Part
    forms: tuple[str, ...]
    valid: int | None = None
    priority: float = 0.0
    pinned: bool = False
    pinned_for: str = "pinned"
    source: str = ""

    def __post_init__(self) -> None:
        if not self.forms:
            raise ValueError(f"item {self.key!r} has no forms")
        for form in self.forms:
            # Required of pieces by `TokenCounter.additive`.
            if form[:1].isspace() or form[-1:] != "\n":
                raise ValueError(
                    f"item {self.key!r}: a form must begin with a visible character and end with a line feed"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How an item is shown. `form`: Index of the form, None if the item is left out. `text`: The text of that form.

    If another part says the same, the item is left out and `text` is all of it. `tokens`: Size of the shown form.
    `full_tokens`: Size of the fullest form.
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
    """The tokens of a part: its share, the room that it had at the epoch's start, and the size of its border line."""

    part: Part
    share_tokens: int
    room_tokens: int
    border_tokens: int = 0


def as_form(text: str) -> str:
    """Make a form of `text`: strip white space, and end it with a line feed; blank text yields an empty string."""
    stripped = text.strip()
    return f"{stripped}\n" if stripped else ""


def operation_key(operation_id: int) -> str:
    """Return the key of an operation's item."""
    return f"op {operation_id}"


def border_line(part: Part, source: str) -> str:
    """Return the first line of a part; `source` is the part's location, or empty."""
    named = re.sub(r'["<>\s]+', " ", source).strip()
    return f'<memory part="{part.value}" source="{named}">\n' if named else f'<memory part="{part.value}">\n'


T = TypeVar("T")
# A line that tells how many items are left out is shown in a room of at least this many times its size.
_TOLD_WORTH = 5


class PartFill:
    """The items of one part, and the form of each that is shown for a given number of tokens.

    `missing`: A line to show below the border line while items are left out; `{}` is replaced by their number. `kept`:
    Tokens that pinned items leave to the others.
    """

    def __init__(self, items: Sequence[Item], border: str, counter: TokenCounter, missing: str = "") -> None:
        self._items = items
        self._whole = [len(item.forms) for item in items]
        self._valid = [len(i.forms) if i.pinned or i.valid is None else i.valid for i in items]
        self._missing = missing
        self._known: dict[tuple[int, int], tuple[str, int]] = {}
        self._counter = counter
        self._order = sorted(
            range(len(items)), key=lambda i: (-items[i].priority, -i if items[i].part is Part.OPERATIONS else i)
        )
        self._chosen: list[int | None] = [None] * len(items)
        self._offered: list[int] = [0] * len(items)
        self._told = ""
        self.border = border
        self.border_cost = count_piece(counter, border)
        self.kept = 0
        self.room = 0
        self.used = 0

    def fill(self, room: int, *, valid: bool = False) -> int:
        """Choose forms anew for `room` tokens, border line included; return the number of tokens used.

        `valid`: Show only what still holds.
        """
        self.room = room
        self.used = self.full_tokens(valid=valid)
        self._told = ""
        if self.used <= room:  # the common case: no other form has to be counted
            self._chosen = [forms - 1 if forms else None for forms in (self._valid if valid else self._whole)]
            return self.used
        most = self._missing.format(len(self._items))
        told = count_piece(self._counter, most) if most else 0
        told = told if room >= _TOLD_WORTH * told else 0
        stages = [self._valid] if valid else [self._valid, self._whole]
        left = self._choose(room - self.border_cost - told, stages)
        shown = sum(form is not None for form in self._chosen)
        if told and 0 < shown < len(self._items):
            self._told = self._missing.format(len(self._items) - shown)
            told -= count_piece(self._counter, self._told)
        self.used = room - left - told if shown else 0
        return self.used

    def full_tokens(self, *, pinned: bool = False, valid: bool = False) -> int:
        """Return the tokens of all items in full, border line included; 0 if there are none.

        `pinned`: Count only pinned items. `valid`: Count only what still holds, with the line on what is left out.
        """
        forms = self._valid if valid else self._whole
        counted = [(i, n - 1) for i, n in enumerate(forms) if n and (self._items[i].pinned or not pinned)]
        told = self._missing.format(len(self._items)) if len(counted) < len(self._items) and valid else ""
        frame = self.border_cost + (count_piece(self._counter, told) if told else 0)
        return frame + sum(self._shown(*form)[1] for form in counted) if counted else 0

    @property
    def is_full(self) -> bool:
        """Whether all items are shown in full."""
        return self._chosen == [forms - 1 for forms in self._whole]

    def shortest_tokens(self) -> int:
        """Return the tokens of the pinned items in their shortest forms, border line included."""
        return self.border_cost + sum(self._shown(index, 0)[1] for index, item in enumerate(self._items) if item.pinned)

    def frame_tokens(self) -> int:
        """Return the tokens of the border line and the line on items that are left out; 0 if no item is shown."""
        told = count_piece(self._counter, self._told) if self._told else 0
        return self.border_cost + told if self.pieces() else 0

    def _choose(self, left: int, stages: Sequence[Sequence[int]]) -> int:
        """Choose a form for each item, in each stage among so many of its forms; return the number of tokens left."""
        self._chosen = [None] * len(self._items)
        pinned = [i for i in self._order if self._items[i].pinned]
        others = [i for i in self._order if not self._items[i].pinned]
        for index in pinned:
            left = self._deepen(index, left - self.kept, self._whole[index]) + self.kept
        for forms in stages:
            for index in others:
                left = self._deepen(index, left, min(1, forms[index]))
            for index in others:
                if self._chosen[index] is not None:
                    left = self._deepen(index, left, forms[index])
        return left

    def _deepen(self, index: int, left: int, most: int) -> int:
        """Show the fullest of `most` forms that fits into `left` tokens plus the present form; return the rest."""
        now = self._chosen[index]
        offered = left + (self._shown(index, now)[1] if now is not None else 0)
        self._offered[index] = offered
        forms = range(0 if now is None else now, most)
        fitting = bisect_right(forms, offered, key=lambda form: self._shown(index, form)[1])
        if not fitting:
            return left
        self._chosen[index] = forms[fitting - 1]
        return offered - self._shown(index, forms[fitting - 1])[1]

    def _shown(self, index: int, form: int) -> tuple[str, int]:
        """Return the neutralised text of a form and its tokens. Few of a long section's forms are ever asked for."""
        known = self._known.get((index, form))
        if known is None:
            text = neutralise(self._items[index].forms[form])
            known = self._known[index, form] = text, count_piece(self._counter, text)
        return known

    def pieces(self) -> list[str]:
        """Return the border line and the shown forms; empty if no item is shown."""
        shown = [self._shown(index, form)[0] for index, form in enumerate(self._chosen) if form is not None]
        return [self.border, *filter(None, [self._told]), *shown] if shown else []

    def placements(self, budget_tokens: int) -> list[Placement]:
        """Return the placement of each item."""
        return [self._placement(index, budget_tokens) for index in range(len(self._items))]

    def _placement(self, index: int, budget_tokens: int) -> Placement:
        item, form = self._items[index], self._chosen[index]
        full = self._shown(index, self._whole[index] - 1)[1]
        offered = max(0, self._offered[index])
        if form is None and budget_tokens == 0:
            reason = "left out: the budget is 0 tokens"
        elif form is None:
            needs = f"{'its shortest form' if len(item.forms) > 1 else 'it'} needs {self._shown(index, 0)[1]:,} tokens"
            reason = f"left out: {needs}, but only {offered:,} of this part's {self.room:,} were left"
        else:
            reason = shown_reason(item, form, full, f"but only {offered:,} were available")
        text, tokens = ("", 0) if form is None else self._shown(index, form)
        return placed(item, form, text, tokens, full, reason)


def shown_reason(item: Item, form: int, full: int, limit: str) -> str:
    """Explain why an item is shown in `form`; `limit` is the reason why it is not in its fullest form."""
    if form == len(item.forms) - 1:
        return f"{item.pinned_for}: in full" if item.pinned else "in full"
    pinned = f"{item.pinned_for}: " if item.pinned else ""
    return f"{pinned}form {form + 1} of {len(item.forms)}: the full form needs {full:,} tokens, {limit}"


def placed(item: Item, form: int | None, text: str, tokens: int, full: int, reason: str) -> Placement:
    """Build the placement of an item that is shown in `form`, whose neutralised text is `text`."""
    return Placement(
        key=item.key, part=item.part, form=form, forms=len(item.forms), tokens=tokens, full_tokens=full,
        reason=reason, pinned=item.pinned, source=item.source, text=text,
    )  # fmt: skip


def largest_fit(layout: Callable[[int], T], tokens: Callable[[T], int], budget_tokens: int) -> T:
    """Find the largest layout that fits the budget when counted as a whole, by bisection to 1 % of the budget.

    With real tokenizers the first or second try fits. A layout filled to 0 must be empty, so that it always fits.
    """
    whole = layout(budget_tokens)
    if tokens(whole) <= budget_tokens:
        return whole
    best = layout(0)
    low, high = 0, budget_tokens
    guess = budget_tokens - (tokens(whole) - budget_tokens)
    while high - low > max(1, budget_tokens // 100):
        fill_to = guess if low < guess < high else (low + high) // 2
        guess = 0
        tried = layout(fill_to)
        if tokens(tried) <= budget_tokens:
            low, best = fill_to, tried
        else:
            high = fill_to
    return best


def count_piece(counter: TokenCounter, piece: str) -> int:
    """Count a piece: at least 1 token if the counter is not additive, so that a layout filled to 0 is empty."""
    tokens = counter.count(piece)
    return tokens if counter.additive else max(1, tokens)
