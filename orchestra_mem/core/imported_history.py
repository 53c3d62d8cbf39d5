"""Types for importing a history, which `adapters.importers` reads and `memory.importing` records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from orchestra_mem.types import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOperation:
    """An operation found in a history, with the arguments of `record_operation`.

    `place` is its location for people, as in `log.jsonl:12`. `position` is its end within the history, in the unit of
    `History.total`. `version` is a digest of a source that may change, such as a note; whenever it differs, a new
    version of the operation is recorded. With a `version`, `idempotency_key` names the source and `data` is an object.
    """

    type: str
    data: Json
    timestamp: datetime | None
    idempotency_key: str
    place: str
    position: int
    tokens: int | None = None
    agent: str | None = None
    critical: bool | None = None
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFault:
    """A part of a history that cannot be recorded: its location and the reason."""

    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


OnFault = Callable[[HistoryFault], None]
"""Called for each fault. If it returns, reading continues after the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A history that can be read once, oldest operation first.

    `total` is its length in `unit`, 0 if unknown until the end. `note` is a remark for the user, or empty. `left_out`
    counts the records read so far that are not operations, by kind.
    """

    source: str
    operations: Iterator[HistoryOperation]
    total: int
    unit: str
    note: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
