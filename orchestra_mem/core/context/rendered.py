"""The context that a caller is given, and how it explains itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestra_mem.core.context.assembly import Epoch
from orchestra_mem.core.context.continuity import TurnWindow
from orchestra_mem.core.context.items import Part, PartRoom, Placement, operation_key
from orchestra_mem.serialize import to_object
from orchestra_mem.types import Json, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """What a part of the context holds. `tokens` has the part's border line in it."""

    part: Part
    share_tokens: int
    room_tokens: int
    tokens: int
    shown: int
    shortened: int
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorContext:
    """What the model is given before an operation, never over `budget_tokens`.

    `tokens` is the count of `render()` by the counter called `counter`; `exact` tells whether that is the serving
    model's own. Contexts of the same `epoch` share their `prefix`, and each begins with the whole of the one before,
    what that had recalled for its own request apart. `operations` are those shown, in order of time. `notes` tell what
    could not be recalled or looked at, in words. `turns` is how many turns of the talk its epoch began with in full.
    """

    for_operation: str
    budget_tokens: int
    tokens: int
    exact: bool
    counter: str
    epoch: int
    prefix: str = field(repr=False)
    prefix_tokens: int
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
        """Take the context out of `epoch` as it is now; of `operations` those are kept that it shows."""
        shown = {p.key for p in epoch.placements if p.part is Part.OPERATIONS and p.form is not None}
        return cls(
            for_operation=for_operation,
            budget_tokens=epoch.budget_tokens,
            tokens=epoch.tokens,
            exact=epoch.counter.exact,
            counter=epoch.counter.name,
            epoch=epoch.number,
            prefix=epoch.prefix,
            prefix_tokens=epoch.prefix_tokens,
            preamble_tokens=epoch.preamble_tokens,
            timeline=epoch.timeline,
            placements=epoch.placements,
            rooms=epoch.rooms,
            operations=tuple(operation for operation in operations if operation_key(operation.id) in shown),
        )

    @property
    def left_out(self) -> tuple[Placement, ...]:
        """The items that did not enter, each with its reason."""
        return tuple(placement for placement in self.placements if placement.form is None)

    def text(self, part: Part) -> str:
        """Give what `part` shows, without its border line; empty where it shows nothing."""
        return "".join(p.text for p in self.placements if p.part is part)

    def render(self) -> str:
        """Give the whole context as one string."""
        return self.prefix + self.timeline + self.recalled

    def as_messages(self) -> list[dict[str, str]]:
        """Give the context as chat messages: what is stable from the system, the rest from the user.

        Joined, their contents are `render()`. An empty one is left out.
        """
        messages = (("system", self.prefix), ("user", self.timeline + self.recalled))
        return [{"role": role, "content": content} for role, content in messages if content]

    def as_dict(self) -> dict[str, Json]:
        """Give the context by the source design's keys (section 3.1).

        Operations come newest first, as there. The decisions stand under both names that the design has for them.
        Where memories were asked for by a query, these stand under `recalled_memories`.
        """
        decisions: list[Json] = [p.text.rstrip("\n") for p in self.placements if p.part is Part.DECISIONS and p.text]
        asked = any(room.part is Part.RECALLED for room in self.rooms)
        recalled: list[Json] = [p.text.rstrip("\n") for p in self.placements if p.part is Part.RECALLED and p.text]
        return {
            "working_memory": [to_object(operation) for operation in reversed(self.operations)],
            "session_summary": self.text(Part.SESSION),
            "project_state": self.text(Part.PROJECT_STATE),
            "work_plan": self.text(Part.WORK_PLAN),
            "recent_decisions": decisions,
            "decision_history": decisions,
            **({"recalled_memories": recalled} if asked else {}),
        }

    def part_reports(self) -> tuple[PartReport, ...]:
        """Give the figures of each part, in the order of the context."""
        return tuple(self._report(room) for room in self.rooms)

    def explain(self) -> str:
        """Tell of each item why it entered, shrank (`~`) or stayed out (`-`), by part, with tokens and shares."""
        whose = "the model's own" if self.exact else "not the model's own"
        lines = [
            f"Context for {self.for_operation}, epoch {self.epoch}: {self.tokens:,} of {self.budget_tokens:,} tokens"
            f"{_share(self.tokens, self.budget_tokens)}, counted by {self.counter} ({whose})"
        ]
        if self.preamble_tokens:
            lines.append(f"preamble: {self.preamble_tokens:,} tokens")
        if self.turns is not None:
            lines.append(f"the last {self.turns.turns} turns begin the epoch in full: {self.turns.reason}")
        for report in self.part_reports():
            lines.append(self._headline(report))
            lines += [_line(p) for p in self.placements if p.part is report.part]
        pieces = self.preamble_tokens + sum(report.tokens for report in self.part_reports())
        if pieces != self.tokens:
            lines.append(f"The pieces count {pieces:,} tokens one by one, the whole {self.tokens:,}.")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def _report(self, room: PartRoom) -> PartReport:
        placements = [p for p in self.placements if p.part is room.part]
        shown = [p for p in placements if p.form is not None]
        return PartReport(
            part=room.part,
            share_tokens=room.share_tokens,
            room_tokens=room.room_tokens,
            tokens=room.border_tokens + sum(p.tokens for p in shown),
            shown=len(shown),
            shortened=sum(p.form != p.forms - 1 for p in shown),
            left_out=len(placements) - len(shown),
        )

    def _headline(self, report: PartReport) -> str:
        headline = (
            f"{report.part}: {report.tokens:,} tokens{_share(report.tokens, self.budget_tokens)}, "
            f"share {report.share_tokens:,}{_share(report.share_tokens, self.budget_tokens)}"
        )
        if report.room_tokens != report.share_tokens:
            headline += f", room {report.room_tokens:,}"
        return f"{headline}; {report.shown} of {report.shown + report.left_out} shown"


def _line(placement: Placement) -> str:
    mark = "-" if placement.form is None else "+" if placement.form == placement.forms - 1 else "~"
    where = f" ({placement.source})" if placement.source else ""
    return (
        f"  {mark} {placement.key}{where}: {placement.tokens:,} of {placement.full_tokens:,} tokens; {placement.reason}"
    )


def _share(tokens: int, whole: int) -> str:
    return f" ({tokens / whole:.0%})" if whole else ""
