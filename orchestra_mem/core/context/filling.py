"""Choose which form of each item a part shows in a given room, and say why.

The budget as a whole is the assembly's business; here one part is filled, as often as the assembly likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from orchestra_mem.core.context.items import Item, Part, Placement, neutralise
from orchestra_mem.ports import TokenCounter

T = TypeVar("T")


class PartFill:
    """The items of one part, and which form of each is shown for a given room."""

    def __init__(self, items: Sequence[Item], border: str, counter: TokenCounter) -> None:
        self._items = items
        self._texts = [tuple(map(neutralise, item.forms)) for item in items]
        self._known: dict[tuple[int, int], int] = {}
        self._counter = counter
        self._order = sorted(
            range(len(items)),
            key=lambda i: (-items[i].priority, -i if items[i].part is Part.OPERATIONS else i),
        )
        self._chosen: list[int | None] = [None] * len(items)
        self._offered: list[int] = [0] * len(items)
        self.border = border
        self.border_cost = count_piece(counter, border)
        self.room = 0
        self.used = 0

    @property
    def complete(self) -> bool:
        """Whether all items are shown in full."""
        return all(form == len(item.forms) - 1 for form, item in zip(self._chosen, self._items, strict=True))

    def fill(self, room: int) -> int:
        """Choose again for `room` tokens, border line included; returns what is used of them."""
        self.room = room
        left = room - self.border_cost
        whole = sum(map(self._full_cost, range(len(self._items))))
        if whole <= left:  # mostly: then no other form has to be counted
            self._chosen = [len(item.forms) - 1 for item in self._items]
            left -= whole
        else:
            left = self._choose(left)
        self.used = room - left if any(form is not None for form in self._chosen) else 0
        return self.used

    def _choose(self, left: int) -> int:
        """Choose among the forms; returns what is left."""
        self._chosen = [None] * len(self._items)
        pinned = [i for i in self._order if self._items[i].pinned]
        others = [i for i in self._order if not self._items[i].pinned]
        for index in pinned:
            left = self._deepen(index, left)
        for index in others:
            left = self._deepen(index, left, fullest=0)
        for index in others:
            if self._chosen[index] is not None:
                left = self._deepen(index, left)
        return left

    def _deepen(self, index: int, left: int, fullest: int | None = None) -> int:
        """Show the fullest form up to `fullest` that fits into `left` and the item's present place."""
        now = self._chosen[index]
        offered = left + (self._form_cost(index, now) if now is not None else 0)
        self._offered[index] = offered
        last = len(self._items[index].forms) - 1 if fullest is None else fullest
        for form in range(last, -1 if now is None else now, -1):
            cost = self._form_cost(index, form)
            if cost <= offered:
                self._chosen[index] = form
                return offered - cost
        return left

    def _form_cost(self, index: int, form: int) -> int:
        known = self._known.get((index, form))
        if known is None:
            known = self._known[index, form] = count_piece(self._counter, self._texts[index][form])
        return known

    def _full_cost(self, index: int) -> int:
        return self._form_cost(index, len(self._items[index].forms) - 1)

    def pieces(self) -> list[str]:
        """Give the part as it is shown: nothing, or the border line and what follows it."""
        shown = [texts[form] for texts, form in zip(self._texts, self._chosen, strict=True) if form is not None]
        return [self.border, *shown] if shown else []

    def placements(self, budget_tokens: int) -> list[Placement]:
        """Tell what became of each item."""
        return [self._placement(index, budget_tokens) for index in range(len(self._items))]

    def _placement(self, index: int, budget_tokens: int) -> Placement:
        item, form = self._items[index], self._chosen[index]
        full = self._full_cost(index)
        offered = max(0, self._offered[index])
        if form is None and budget_tokens == 0:
            reason = "left out: the budget is 0 tokens"
        elif form is None:
            needs = f"{'its shortest form' if len(item.forms) > 1 else 'it'} needs {self._form_cost(index, 0):,} tokens"
            reason = f"left out: {needs}, {offered:,} were left of the {self.room:,} for this part"
        else:
            reason = shown_reason(item, form, full, f"{offered:,} could be had")
        tokens = 0 if form is None else self._form_cost(index, form)
        return placed(item, form, self._texts[index], tokens, full, reason)


def shown_reason(item: Item, form: int, full: int, limit: str) -> str:
    """Say why an item is shown in `form`; `limit` says what kept it from its fullest."""
    if form == len(item.forms) - 1:
        return f"{item.pinned_for}: in full" if item.pinned else "in full"
    pinned = f"{item.pinned_for}: " if item.pinned else ""
    return f"{pinned}form {form + 1} of {len(item.forms)}: the full one needs {full:,} tokens, {limit}"


def placed(item: Item, form: int | None, texts: Sequence[str], tokens: int, full: int, reason: str) -> Placement:
    """Record what became of an item whose neutralised forms are `texts`."""
    return Placement(
        key=item.key, part=item.part, form=form, forms=len(item.forms), tokens=tokens, full_tokens=full,
        reason=reason, pinned=item.pinned, source=item.source, text="" if form is None else texts[form],
    )  # fmt: skip


def largest_fit(layout: Callable[[int], T], tokens: Callable[[T], int], budget_tokens: int) -> T:
    """Find by bisection how far to fill a layout so that the whole, counted as one, is within the budget.

    With real tokenizers the first or second try holds. Filled to 0 a layout must be empty, so that one always does.
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
    """Count a piece. Where pieces do not add up none is free, so that a layout filled to 0 is empty."""
    tokens = counter.count(piece)
    return tokens if counter.additive else max(1, tokens)
