"""Labelled records: conversations, notes, commits, tickets and operations, each line labelled with its kind of fact.

`data/README.md` describes the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle, groupby
from pathlib import Path
from typing import Any, NamedTuple

from orchestra_mem.types import Json, MustKeep, MustKeepKind, Operation

START = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
NO_FACT = frozenset({"none", "heading"})
_MARKS = re.compile(r"^(?:\s*(?:[-*+•·–—]|\d{1,3}[.)]|\[[ xX✓✔]?\]))*\s*")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a record: its text, its kind of fact (or `none`, `heading`), its speaker or field."""

    text: str
    kind: str
    speaker: str = ""
    field: str = ""

    @property
    def core(self) -> str:
        """The text without bullet and check box, with single spaces."""
        return _BLANKS.sub(" ", _MARKS.sub("", self.text)).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A group of lines by one writer."""

    writer: str
    language: str
    nature: str
    split: str
    lines: tuple[Line, ...]


class Pair(NamedTuple):
    """Two facts, whether the newer one has superseded or settled the older one, and who wrote them."""

    newer: MustKeep
    older: MustKeep
    changed: bool
    writer: str = ""


def _rows(file: Path, split: str = "") -> Iterator[Any]:
    """Read the rows of a JSON Lines file; only those of one split if it is given."""
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return (row for row in rows if not split or row["split"] == split)


def load_records(file: Path, split: str = "") -> list[Record]:
    """Read the records of a file; only those of one split if it is given."""
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
    """Read the written pairs of a split whose later line is a fact.

    They name no distance in operations, so typical distances take turns.
    """
    pairs = (
        (row["writer"], said)
        for row in _rows(file, split)
        for said in row["pairs"]
        if said["newer"]["k"] not in NO_FACT
    )
    for (writer, said), distance in zip(pairs, cycle((1, 2, 5, 10, 40))):
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
        yield Pair(newer, older, said["relation"] != "none", writer)


def load_exchanges(file: Path, split: str) -> Iterator[tuple[list[Operation], bool]]:
    """Read the written pairs of a split as two messages of a person; with each, whether the later ends the earlier."""
    for row in _rows(file, split):
        for said in row["pairs"]:
            yield messages_of(said[which]["t"] for which in ("older", "newer")), said["relation"] != "none"


class Told(NamedTuple):
    """A line of a series: its text, and the numbers of the earlier lines that it ends or repeats."""

    number: int
    line: Line
    ends: frozenset[int]
    again: frozenset[int]


class Series(NamedTuple):
    """Consecutive lines from one piece of work, in which facts now and then end earlier facts."""

    writer: str
    language: str
    nature: str
    lines: tuple[Told, ...]

    def operations(self) -> list[Operation]:
        """Return the lines as numbered operations."""
        return [operation_of(*_data(self.nature, told.line.speaker, [told.line]), told.number) for told in self.lines]

    @property
    def record(self) -> Record:
        """Return the lines as a record."""
        lines = tuple(told.line for told in self.lines)
        return Record(writer=self.writer, language=self.language, nature=self.nature, split="", lines=lines)

    @property
    def ended(self) -> dict[int, int]:
        """Lines that a later line ends, with the number of the first such line."""
        return {old: told.number for told in reversed(self.lines) for old in told.ends}

    @property
    def repeated(self) -> frozenset[int]:
        """Lines that a later line repeats."""
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
    """Yield a record as the operations that a program would record, each with its lines."""
    for number, (speaker, run) in enumerate(groupby(record.lines, key=lambda line: line.speaker), 1):
        lines = list(run)
        yield operation_of(*_data(record.nature, speaker, lines), number), lines


def operation_of(kind: str, data: Json, number: int = 1) -> Operation:
    """Make an operation as an event log returns it."""
    time = START + timedelta(minutes=number)
    return Operation(id=number, session="s", type=kind, data=data, timestamp=time, tokens=1, entry_tokens=1)


def messages_of(texts: Iterable[str]) -> list[Operation]:
    """Return texts as the messages of a person."""
    return [operation_of("message", {"role": "user", "text": text}, number) for number, text in enumerate(texts, 1)]


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
        return "message", {"role" if nature == "session" else "speaker": speaker, "text": "\n".join(texts)}
    return "note", {"text": "\n".join(texts)}


def meets(passage: str, line: Line) -> bool:
    """Check whether a passage and a line tell the same, that is, whether one contains the other."""
    passage, core = _BLANKS.sub(" ", passage).removeprefix(f"{line.speaker}: "), line.core
    return bool(core) and (core in passage or (len(passage) >= len(core) / 2 and passage.strip(" .…") in core))
