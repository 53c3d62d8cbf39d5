"""Recalled memories in a context: behind everything else and for one request alone, so that the rest keeps its bytes.

Pure: the memories come as items of the part `recalled_memories`, best first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.context.filling import PartFill, largest_fit
from orchestra_mem.core.context.items import Item, Part, PartRoom, Placement, border_line
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.ports import TokenCounter


@dataclass(frozen=True, slots=True)
class _Filled:
    text: str
    tokens: int
    placements: tuple[Placement, ...]


def with_recalled(
    context: OrchestratorContext,
    items: Sequence[Item],
    *,
    counter: TokenCounter,
    reasons: Mapping[str, str],
    standing: Sequence[Item] = (),
    notes: Sequence[str] = (),
) -> OrchestratorContext:
    """Add memories behind a context, as many as its budget leaves room for.

    Each in its short form first, then the best of them fuller. Nothing of the context itself changes.

    Args:
        context: an epoch's.
        items: what was recalled, best first.
        counter: the one that counted the context.
        reasons: why each was recalled, by key.
        standing: what was recalled and stands in the context already; it is told, and not shown again.
        notes: what could not be recalled or looked at.
    """
    room = max(0, context.budget_tokens - context.tokens)
    fill = PartFill(items, border_line(Part.RECALLED, ""), counter)

    def layout(fill_to: int) -> _Filled:
        used = fill.fill(fill_to)
        text = "".join(fill.pieces())
        if text and not counter.additive:
            used = counter.count(context.render() + text) - context.tokens
        return _Filled(text, used, tuple(fill.placements(context.budget_tokens)))

    filled = largest_fit(layout, lambda each: each.tokens, room)
    placements = [replace(each, reason=f"{reasons[each.key]}; {each.reason}") for each in filled.placements]
    placements += [_standing(item, counter, reasons[item.key]) for item in standing]
    border = fill.border_cost if filled.text else 0
    return replace(
        context,
        tokens=context.tokens + filled.tokens,
        placements=(*context.placements, *placements),
        rooms=(
            *context.rooms,
            PartRoom(part=Part.RECALLED, share_tokens=room, room_tokens=room, border_tokens=border),
        ),
        recalled=filled.text,
        notes=(*context.notes, *notes),
    )


def _standing(item: Item, counter: TokenCounter, reason: str) -> Placement:
    return Placement(
        key=item.key,
        part=Part.RECALLED,
        form=None,
        forms=len(item.forms),
        tokens=0,
        full_tokens=counter.count(item.forms[-1]),
        reason=f"{reason}; left out: the context has it already",
        source=item.source,
    )
