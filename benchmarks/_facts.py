"""Labelled records: conversations, notes, commits, tickets and operations, each line with the kind of fact it tells.

The format is told in `data/README.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, cycle, groupby
from pathlib import Path
from typing import Any, NamedTuple

from orchestra_mem.types import Json, MustKeep, MustKeepKind, Operation

START = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
NO_FACT = frozenset({"none", "heading"})
_MARKS = re.compile(r"^(?:\s*(?:[-*+•·–—]|\d{1,3}[.)]|\[[ xX✓✔]?\]))*\s*")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a record: its text, the kind of fact that it tells (`none`, `heading`), its speaker or field."""

    text: str
    kind: str
    speaker: str = ""
    field: str = ""

    @property
    def core(self) -> str:
        """The text without bullet and tick box, in single blanks."""
        return _BLANKS.sub(" ", _MARKS.sub("", self.text)).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Some lines of one writer that belong together."""

    writer: str
    language: str
    nature: str
    split: str
    lines: tuple[Line, ...]


class Pair(NamedTuple):
    """Two facts, and whether the later one has superseded or settled the earlier one."""

    newer: MustKeep
    older: MustKeep
    changed: bool


def _rows(file: Path, split: str = "") -> Iterator[Any]:
    """Read what a file holds, a row a line; of one split where that is given."""
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return (row for row in rows if not split or row["split"] == split)


def load_records(file: Path, split: str = "") -> list[Record]:
    """Read the records of a file; of one split where that is given."""
    records = []
    for row in _rows(file, split):
        lines = tuple(
            Line(text=line["t"], kind=line["k"], speaker=line.get("s", ""), field=line.get("f", ""))
            for line in row["lines"]
        )
        records.append(
            Record(
                writer=row["writer"], language=row["language"], nature=row["nature"], split=row["split"], lines=lines
            )
        )
    return records


def load_pairs(file: Path, split: str) -> Iterator[Pair]:
    """Read the written pairs of a split; so many operations lie between them as they do not say."""
    pairs = chain.from_iterable(row["pairs"] for row in _rows(file, split))
    for said, distance in zip(pairs, cycle((1, 2, 5, 10, 40))):
        older, newer = (
            MustKeep(
                kind=MustKeepKind(told["k"].replace("_", " ")),
                text=told["t"],
                operation=number,
                timestamp=START + timedelta(minutes=number),
                id=number,
            )
            for told, number in ((said["older"], 1), (said["newer"], 1 + distance))
        )
        yield Pair(newer, older, said["relation"] != "none")


class Told(NamedTuple):
    """A line of a series: what it says, and the numbers of the earlier lines that it ends, or says again."""

    number: int
    line: Line
    ends: frozenset[int]
    again: frozenset[int]


class Series(NamedTuple):
    """What somebody's work said one after the other, in which facts end others now and then."""

    writer: str
    language: str
    nature: str
    lines: tuple[Told, ...]

    def operations(self) -> list[Operation]:
        """The lines as operations with their numbers."""
        return [operation_of(*_data(self.nature, told.line.speaker, [told.line]), told.number) for told in self.lines]

    @property
    def record(self) -> Record:
        """The lines as a record."""
        lines = tuple(told.line for told in self.lines)
        return Record(writer=self.writer, language=self.language, nature=self.nature, split="", lines=lines)

    @property
    def ended(self) -> dict[int, int]:
        """Lines that another one ends, with the number of the first that does."""
        return {old: told.number for told in reversed(self.lines) for old in told.ends}

    @property
    def repeated(self) -> frozenset[int]:
        """Lines that are said again."""
        return frozenset().union(*(told.again for told in self.lines))


def load_series(file: Path, split: str) -> Iterator[Series]:
    """Read the written series of a split."""
    for row in _rows(file, split):
        lines = tuple(
            Told(
                number=line["n"],
                line=Line(text=line["t"], kind=line["k"], speaker=line.get("s", "")),
                ends=frozenset(line.get("ends", ())),
                again=frozenset(line.get("again", ())),
            )
            for line in row["lines"]
        )
        yield Series(row["writer"], row["language"], row["nature"], lines)


def operations_of(record: Record) -> Iterator[tuple[Operation, Sequence[Line]]]:
    """Give a record as the operations that a program would record, each with its lines."""
    for number, (speaker, run) in enumerate(groupby(record.lines, key=lambda line: line.speaker), 1):
        lines = list(run)
        yield operation_of(*_data(record.nature, speaker, lines), number), lines


def operation_of(kind: str, data: Json, number: int = 1) -> Operation:
    """Make an operation as a log gives it back."""
    time = START + timedelta(minutes=number)
    return Operation(id=number, session="s", type=kind, data=data, timestamp=time, tokens=1, entry_tokens=1)


def _data(nature: str, speaker: str, lines: Sequence[Line]) -> tuple[str, Json]:
    texts = [line.text for line in lines]
    if nature == "operation" and any(line.field for line in lines):
        fields: dict[str, Json] = {}
        for line in lines:
            name = line.field or "notes"
            fields[name] = f"{fields[name]}\n{line.text}" if name in fields else line.text
        return "task_execution", fields
    if nature in ("commit", "commits"):
        subject, _, body = "\n".join(texts).partition("\n")
        return "commit", {"hash": "0" * 12, "subject": subject, "body": body.strip(), "files_changed": 1}
    if speaker:
        return "message", {"role" if nature == "session" else "speaker": speaker, "text": " ".join(texts)}
    return "note", {"text": "\n".join(texts)}


def meets(passage: str, line: Line) -> bool:
    """Whether a passage tells what a line tells: one stands in the other."""
    passage, core = _BLANKS.sub(" ", passage), line.core
    return bool(core) and (core in passage or (len(passage) >= len(core) / 2 and passage.strip(" .") in core))
