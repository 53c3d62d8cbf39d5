"""What a history that is read in consists of. How one is read lives in the adapters, how it is recorded above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from orchestra_mem.types import Json

VERSION, REPLACES = "version_sha", "replaces"
"""Keys in the data of what is recorded anew when it has changed: a digest of it, and `op 12`, whose place it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOperation:
    """An operation found in a history, as `record_operation` takes it.

    `place` tells people where it stands, as in `log.jsonl:12`. `position` is how far into the history it ends, in the
    unit of `History.total`. `version` is a digest of what a thing says that may change, such as a note, whose own name
    `idempotency_key` is then; the data are an object. It is recorded again, as the next version, when that has changed.
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
    """A place in a history that cannot be recorded, and why."""

    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


OnFault = Callable[[HistoryFault], None]
"""Is told a fault; where it returns, reading goes on behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A history that can be read once, oldest operation first.

    `total` is how long it is in `unit`, 0 where that is not known before the end. `note` is what people should know of
    it, or empty. `left_out` counts by kind what has been read so far and is no operation.
    """

    source: str
    operations: Iterator[HistoryOperation]
    total: int
    unit: str
    note: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
