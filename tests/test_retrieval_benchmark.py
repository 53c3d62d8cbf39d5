"""The retrieval benchmark counts as it says it does, and fits what can be fitted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks._retrieval import Scores, index_of, judge, load_talks
from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.search_types import Chunk

TALK = {
    "sample_id": "t1",
    "sessions": [
        {
            "session": number,
            "date_time": f"{number}:05 pm on {number} May, 2024",
            "turns": [
                {"id": f"D{number}:{turn}", "speaker": "Ann", "text": f"Turn {turn} of session {number}."}
                for turn in range(1, 5)
            ],
        }
        for number in range(1, 8)
    ],
    "questions": [
        {"question": "Which turn?", "answer": "x", "evidence": ["D2:1", "D7:4"], "category": 1},
        {"question": "Which other turn?", "answer": "x", "evidence": ["D1:3"], "category": 4},
    ],
}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording of one talk."""
    path = tmp_path / "locomo-dev.json"
    path.write_text(json.dumps([TALK]), encoding="utf-8")
    return path


def test_answers_are_held_against_the_evidence(recording: Path) -> None:
    """Turns in their order find the third turn third, and of the other question one of two, in one of two sessions."""
    (talk,) = load_talks(recording)
    index = index_of(talk, WordLlamaEmbedder(), recording.parent)
    chunks = [chunk for chunk in index.chunks(np.arange(1, 29)) if chunk is not None]
    assert [chunk.operation for chunk in chunks] == list(range(1, 29))

    def in_order(_: object) -> list[Chunk]:
        return chunks

    scores = Scores()
    judge(talk, in_order, scores)
    several, one = scores.judged
    assert (several.recall_at_10, several.recall_at_5, several.reciprocal_rank) == (0.5, 0.5, 1 / 5)
    assert several.session_recall_at_5 == 0.5
    assert (one.recall_at_10, one.recall_at_5, one.reciprocal_rank) == (1, 1, 1 / 3)
    assert scores.mean("recall_at_10") == 0.75
    assert scores.mean("recall_at_10", category=4) == 1
    assert len(scores.cpu_ms) == 2
