"""The context that callers get: its renderings, its explanation, and the memories recalled for one request.

Recalled memories are appended at the end, so that the bytes before them do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestra_mem.core.context.assembly import Epoch
from orchestra_mem.core.context.continuity import TurnWindow
from orchestra_mem.core.context.items import (
    Item,
    Part,
    PartFill,
    PartRoom,
    Placement,
    border_line,
    largest_fit,
    operation_key,
    placed,
)
from orchestra_mem.design_names import MappingAccess
from orchestra_mem.ports import TokenCounter
from orchestra_mem.serialize import to_object
from orchestra_mem.types import Json, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorContext(MappingAccess):
    """The context that the model gets before an operation; it never exceeds `budget_tokens`.

    `tokens` is the count of `render()` by the counter named `counter`; `exact` tells whether this is the serving
    model's own tokenizer. Contexts of the same `epoch` share their `prefix`, and each begins with the previous context
    without its recalled memories. `operations` are the shown operations, in order of time. `notes` are messages about
    data that could not be recalled or read. `turns` is the number of conversation turns that began the epoch in full.
    """

    for_operation: str
    budget_tokens: int
    tokens: int
    exact: bool
    counter: str
    epoch: int
    prefix: str = field(repr=False)
    preamble_tokens: int
    timeline: str = field(repr=False)
    placements: tuple[Placement, ...] = field(repr=False)
    rooms: tuple[PartRoom, ...] = field(repr=False)
    operations: tuple[Operation, ...] = field(repr=False)
    recalled: str = field(default="", repr=False)
    notes: tuple[str, ...] = ()
    turns: TurnWindow | None = None

    @classmethod
    def from_epoch(cls, epoch: Epoch, *, for_operation: str, operations: Iterable[Operation]) -> OrchestratorContext:
        """Build the context of `epoch` in its present state, with only those of `operations` that the epoch shows."""
        shown = {p.key for p in epoch.placements if p.part is Part.OPERATIONS and p.form is not None}
        return cls(
            for_operation=for_operation,
            budget_tokens=epoch.budget_tokens,
            tokens=epoch.tokens,
            exact=epoch.counter.exact,
            counter=epoch.counter.name,
            epoch=epoch.number,
            prefix=epoch.prefix,
            preamble_tokens=epoch.preamble_tokens,
            timeline=epoch.timeline,
            placements=epoch.placements,
            rooms=epoch.rooms,
            operations=tuple(operation for operation in operations if operation_key(operation.id) in shown),
        )

    @property
    def left_out(self) -> tuple[Placement, ...]:
        """The items that were left out, each with the reason."""
        return tuple(placement for placement in self.placements if placement.form is None)

    @property
    def is_full(self) -> bool:
        """Whether every item is shown in its fullest form or by another part, so that nothing had to be prioritised."""
        return all(p.form == p.forms - 1 or (p.form is None and p.text) for p in self.placements)

    def text(self, part: Part) -> str:
        """Return the text of `part` without its border line, with what another part shows in its place."""
        return "".join(p.text for p in self.placements if p.part is part)

    def render(self) -> str:
        """Return the complete context as one string."""
        return self.prefix + self.timeline + self.recalled

    def as_messages(self) -> list[dict[str, str]]:
        """Return the context as chat messages: the prefix as system message, the rest as user message.

        Their contents add up to `render()`. Empty messages are left out.
        """
        messages = (("system", self.prefix), ("user", self.timeline + self.recalled))
        return [{"role": role, "content": content} for role, content in messages if content]

    def as_dict(self) -> dict[str, Json]:
        """Return the context under the source design's keys (section 3.1); `context[key]` returns the same values.

        As in the design, operations come newest first, and decisions are under two keys. `recalled_memories` is present
        if memories were recalled by a query, and `shared_decisions` if projects share any.
        """
        decisions: list[Json] = [p.text.rstrip("\n") for p in self.placements if p.part is Part.DECISIONS and p.text]
        more: dict[str, Json] = {
            part.value: [p.text.rstrip("\n") for p in self.placements if p.part is part and p.text]
            for part in (Part.SHARED, Part.RECALLED)
            if any(room.part is part for room in self.rooms)
        }
        return {
            "working_memory": [to_object(operation) for operation in reversed(self.operations)],
            "session_summary": self.text(Part.SESSION),
            "project_state": self.text(Part.PROJECT_STATE),
            "work_plan": self.text(Part.WORK_PLAN),
            "recent_decisions": decisions,
            "decision_history": decisions,
            **more,
        }

    _by_key = as_dict

    def explain(self) -> str:
        """Explain by part why each item is in full (`+`), shortened (`~`) or left out (`-`), with tokens and shares."""
        whose = "the model's own" if self.exact else "not the model's own"
        lines = [
            f"Context for {self.for_operation}, epoch {self.epoch}: {self.tokens:,} of {self.budget_tokens:,} tokens"
            f"{_share(self.tokens, self.budget_tokens)}, counted by {self.counter} ({whose})"
        ]
        if self.preamble_tokens:
            lines.append(f"preamble: {self.preamble_tokens:,} tokens")
        if self.turns is not None:
            lines.append(f"the epoch begins with the last {self.turns.turns} turns in full: {self.turns.reason}")
        pieces = self.preamble_tokens
        for room in self.rooms:
            placements = [p for p in self.placements if p.part is room.part]
            tokens = room.border_tokens + sum(p.tokens for p in placements)
            lines += [self._headline(room, tokens, placements), *map(_line, placements)]
            pieces += tokens
        if pieces != self.tokens:
            lines.append(f"Counted one by one, the pieces have {pieces:,} tokens; the whole text has {self.tokens:,}.")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def _headline(self, room: PartRoom, tokens: int, placements: Sequence[Placement]) -> str:
        headline = (
            f"{room.part}: {tokens:,} tokens{_share(tokens, self.budget_tokens)}, "
            f"share {room.share_tokens:,}{_share(room.share_tokens, self.budget_tokens)}"
        )
        if room.room_tokens != room.share_tokens:
            headline += f", room {room.room_tokens:,}"
        return f"{headline}; {sum(p.form is not None for p in placements)} of {len(placements)} shown"


def _line(placement: Placement) -> str:
    mark = "-" if placement.form is None else "+" if placement.form == placement.forms - 1 else "~"
    where = f" ({placement.source})" if placement.source else ""
    return (
        f"  {mark} {placement.key}{where}: {placement.tokens:,} of {placement.full_tokens:,} tokens; {placement.reason}"
    )


def _share(tokens: int, whole: int) -> str:
    return f" ({tokens / whole:.0%})" if whole else ""


def recalled_tokens(items: Sequence[Item], most: int, counter: TokenCounter) -> int:
    """Return how many of `most` tokens recalled memories can use: their full size if it fits, else `most`."""
    return min(most, PartFill(items, border_line(Part.RECALLED, ""), counter).full_tokens())


def with_recalled(
    context: OrchestratorContext,
    items: Sequence[Item],
    *,
    counter: TokenCounter,
    reasons: Mapping[str, str],
    standing: Sequence[Item] = (),
    notes: Sequence[str] = (),
) -> OrchestratorContext:
    """Append as many recalled memories to a context as fit into its budget.

    Each is placed in its shortest form first, then the best ones in fuller forms. The text before them is unchanged.

    Args:
        context: The context of an epoch.
        items: The recalled memories, best first.
        counter: The counter that counted the context.
        reasons: Why each memory was recalled, by key, for `items` and `standing`.
        standing: Recalled memories that the context shows already; they are listed as left out.
        notes: Messages about data that could not be recalled or read.
    """
    room = max(0, context.budget_tokens - context.tokens)
    fill = PartFill(items, border_line(Part.RECALLED, ""), counter)

    def layout(fill_to: int) -> tuple[str, int, list[Placement]]:
        used = fill.fill(fill_to)
        text = "".join(fill.pieces())
        if text and not counter.additive:
            used = counter.count(context.render() + text) - context.tokens
        return text, used, fill.placements(context.budget_tokens)

    text, used, placements = largest_fit(layout, lambda filled: filled[1], room)
    told = [replace(each, reason=f"{reasons[each.key]}; {each.reason}") for each in placements]
    for item in standing:
        reason = f"{reasons[item.key]}; left out: already in the context"
        told.append(placed(item, None, "", 0, counter.count(item.forms[-1]), reason))
    border = fill.border_cost if text else 0
    recalled = PartRoom(part=Part.RECALLED, share_tokens=room, room_tokens=room, border_tokens=border)
    return replace(
        context, tokens=context.tokens + used, placements=(*context.placements, *told),
        rooms=(*context.rooms, recalled), recalled=text, notes=(*context.notes, *notes),
    )  # fmt: skip
