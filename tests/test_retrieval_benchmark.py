"""The retrieval benchmark counts as it says it does, and fits what can be fitted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks._fitting import SHARES, Profiles, fit, recall
from benchmarks._retrieval import Scores, index_of, judge, load_talks
from benchmarks.retrieval import calibration_error, exchange_speakers
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


def test_likelihoods_are_held_against_what_came_of_them(recording: Path) -> None:
    """Half right at 0.75 is 0.25 off, where there are two bins the mean counts; a question's speakers are exchanged."""
    assert calibration_error([(0.75, True), (0.75, False)]) == pytest.approx(0.25)
    assert calibration_error([(0.75, True), (0.75, False), (0.05, False), (0.0, False)]) == pytest.approx(0.1375)
    turns = [{"id": "D1:1", "speaker": name, "text": "Hello."} for name in ("Ann", "Bob")]
    sessions = [{"session": 1, "date_time": "1:05 pm on 1 May, 2024", "turns": turns}]
    recording.write_text(json.dumps([{**TALK, "sessions": sessions, "questions": []}]), encoding="utf-8")
    (talk,) = load_talks(recording)
    assert exchange_speakers("Did Ann tell Bob of Annecy?", talk) == "Did Bob tell Ann of Annecy?"
    assert exchange_speakers("Which turn?", talk) == ""


def test_a_fit_finds_the_share_that_tells() -> None:
    """Of noise and one share that marks the evidence, the weight of that share is raised until it decides."""
    rng = np.random.default_rng(1)
    values = rng.random((40, 60, len(SHARES)), dtype=np.float32)
    evidence = np.zeros(values.shape[:2], bool)
    evidence[:, 7] = True
    values[:, :, SHARES.index("period")] = evidence
    profiles = Profiles(values=values, evidence=evidence, wanted=np.ones(40, np.int64))
    start = dict.fromkeys(SHARES, 0.3)
    fitted = fit([profiles], start)
    assert fitted["period"] > start["period"]
    assert recall(profiles, start, 5) < recall(profiles, fitted, 5) == 1
