"""Measures how much of the answers to later questions about a talk survives the talk's compaction.

Reads the LoCoMo conversations (`locomo-dev.json`, Maharana et al., 2024), which are not part of this repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestra_mem.core.summaries.extractive import Passage
from orchestra_mem.core.text import STOP_WORDS, stem

ANSWERABLE_CATEGORIES = frozenset({1, 2, 4})
"""Multi-hop, temporal and single-hop questions; category 3 needs knowledge that is not in the conversation."""

Compress = Callable[[list[Passage], int], str]
"""Compacts passages to at most the given number of characters."""

_TOKEN = re.compile(r"[a-z0-9]+")


def answer_share(
    data_path: Path | str, compress: Compress, *, share: float = 0.2, by_session: bool = False, captions: bool = False
) -> dict[str, float]:
    """Measure the share, 0 to 1, of the gold answers' content words that the compacted conversations still contain.

    Words are lower-case runs of letters and digits, stemmed, without stop words, each counted once per answer. A
    conversation's figure sums over its questions of `ANSWERABLE_CATEGORIES`; `mean` is the mean over the conversations.

    Args:
        data_path: The conversations.
        compress: Gets the passages and the budget in characters.
        share: The budget as a share of the plain text (`speaker: text` lines).
        by_session: Compact each session separately and join the results, as piecewise compaction does.
        captions: Include captions of pictures in the text of the turn.

    Raises:
        ValueError: A compacted text is longer than its budget.
    """
    figures = {}
    for sample in json.loads(Path(data_path).read_text(encoding="utf-8")):
        sessions = passages_of(sample, captions=captions)
        groups = sessions if by_session else [[passage for session in sessions for passage in session]]
        compacted = "\n".join(_compacted(group, compress, share) for group in groups)
        figures[str(sample["sample_id"])] = _kept(sample, _stems(compacted))
    figures["mean"] = sum(figures.values()) / len(figures)
    return figures


def passages_of(sample: dict[str, Any], *, captions: bool = False) -> list[list[Passage]]:
    """Return a conversation's turns as passages, one list per session; keys count from 1."""
    sessions: list[list[Passage]] = []
    key = 0
    for session in sample["sessions"]:
        passages = []
        for turn in session["turns"]:
            key += 1
            caption = turn.get("image_caption") if captions else None
            text = f"{turn['text']} [shows {caption}]" if caption else turn["text"]
            passages.append(Passage(key=key, text=text, speaker=turn["speaker"], when=session["date_time"]))
        sessions.append(passages)
    return sessions


def plain_chars(passages: list[Passage]) -> int:
    """Count the characters of passages written as `speaker: text` lines."""
    return sum(len(passage.speaker) + len(passage.text) + len(": \n") for passage in passages)


def _compacted(passages: list[Passage], compress: Compress, share: float) -> str:
    budget = int(share * plain_chars(passages))
    compacted = compress(passages, budget)
    if len(compacted) > budget:
        raise ValueError(f"compacted to {len(compacted)} characters, over the budget of {budget}")
    return compacted


def _kept(sample: dict[str, Any], have: set[str]) -> float:
    kept = asked = 0
    for question in sample["questions"]:
        if question["category"] in ANSWERABLE_CATEGORIES:
            wanted = _stems(str(question["answer"]))
            kept += len(wanted & have)
            asked += len(wanted)
    return kept / asked if asked else 1.0


def _stems(text: str) -> set[str]:
    return {stem(word) for word in _TOKEN.findall(text.lower()) if word not in STOP_WORDS}
