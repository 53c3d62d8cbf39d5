"""The port of the importers: a reader takes a `SourceFile` and gives its operations; the rest it tells the file."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestra_mem.core.histories import HistoryFault, HistoryOperation, OnFault
from orchestra_mem.types import Json

_MOST_FAULTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to be read: `start` is how many bytes of other files were read before, `agent` who did what it tells.

    `left_out` counts by kind what is there and is no operation.
    """

    path: Path
    start: int
    agent: str | None
    on_fault: OnFault
    left_out: Counter[str]

    def fault(self, place: int | str, problem: str) -> None:
        """Tell what cannot be read, by its line or what it is called; of more than 1,000 faults only how many."""
        self.left_out["faulty"] += 1
        if self.left_out["faulty"] <= _MOST_FAULTS:
            self.on_fault(HistoryFault(place=f"{self.path}:{place}", problem=problem))

    def text_of(self, content: Json) -> str:
        """Join the texts of a content, which is one or a list of blocks; blocks of another kind are left out."""
        texts = []
        for block in content if isinstance(content, list) else [content]:
            text = block.get("text") if isinstance(block, dict) else block
            if isinstance(text, str):
                texts.append(text)
            elif block is not None:
                self.left_out[kind_of(block)] += 1
        return "\n\n".join(texts)

    @property
    def modified(self) -> datetime:
        """When the file was changed last: the time of what names none."""
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC)


Reader = Callable[[SourceFile], Iterator[HistoryOperation]]
"""Reads a file of one kind. What it cannot read it tells, and goes on; an `OSError` ends that file alone."""


def text_or(value: Json, otherwise: str) -> str:
    """Give a value that is a text and not empty, else something else."""
    return value if isinstance(value, str) and value else otherwise


def kind_of(value: Json) -> str:
    """Name the kind of a line or block, as it calls it."""
    found = value if isinstance(value, dict) else {}
    return text_or(found.get("type"), text_or(found.get("content_type"), "of no type"))


def digest(content: str | bytes) -> str:
    """Name a content in few characters."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(raw).hexdigest()[:24]
