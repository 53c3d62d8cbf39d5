"""Written dialogues, compacted five times: the rules, reversals, roles and open items that the context still holds.

`data/README.md` describes the format. A fact is kept if one line of the context has all its words. For a reversal it is
also reported whether the old decision is marked as superseded wherever it appears as a fact, or is gone.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestra_mem import OrchestratorContextManager, open_memory

COMPACTIONS = 5
TALK_BETWEEN = 20
KINDS = ("rule", "reversal", "role", "open")
# The default sizes, but with no verbatim window, so that everything is compacted at once.
_CONFIG = {
    "orchestrator": {"working_memory": {"max_operations": 2}},
    "compaction": {"verbatim_window_s": 0, "verbatim_floor_tokens": 0, "segment_tokens": 1_000},
}
_START = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
_FACT_LINE = re.compile(r"\bK\d+\b")
_READ_SINCE = (106, 109, 139)


def load_dialogues(file: Path) -> list[dict[str, Any]]:
    """Read the dialogues of a file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def is_unread(dialogue: dict[str, Any]) -> bool:
    """Check whether a dialogue was hidden from the authors of fact extraction; see `data/README.md`."""
    number = int(dialogue["id"][1:])
    return (71 <= number <= 141 or number >= 172) and number not in _READ_SINCE


def after_compactions(dialogue: dict[str, Any], others: Sequence[dict[str, Any]]) -> str:
    """Return the context after a dialogue was compacted five times with other talk in between."""
    with tempfile.TemporaryDirectory() as folder, open_memory(folder, config=_CONFIG) as memory:
        time = iter(_START + timedelta(seconds=40 * step) for step in range(10_000))
        for turn in dialogue["turns"]:
            _say(memory, turn, next(time))
        talk = _other_talk(others)
        for _ in range(COMPACTIONS):
            for turn in (next(talk) for _ in range(TALK_BETWEEN)):
                _say(memory, turn, next(time))
            memory.refresh()
        return memory.get_orchestrator_context("benchmark").render()


def _say(memory: OrchestratorContextManager, turn: dict[str, Any], time: datetime) -> None:
    memory.record_operation("message", {"speaker": turn["speaker"], "text": turn["text"]}, timestamp=time)


def _other_talk(others: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield turns of other dialogues that contain no fact, so that none supersedes a fact by accident."""
    while True:
        for other in others:
            told = {fact[key] for fact in other["facts"] for key in ("turn", "old_turn", "closed_turn") if key in fact}
            yield from (turn for number, turn in enumerate(other["turns"]) if number not in told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Verdict on a fact: whether it is `kept`, and for a reversal whether the old decision is `marked`."""

    fact: dict[str, Any]
    kept: bool
    marked: bool


def judge_dialogue(dialogue: dict[str, Any], context: str) -> list[Judged]:
    """Judge each fact of a dialogue by the context."""
    lines = [line.lower().replace("’", "'") for line in context.splitlines()]
    return [_judged(fact, lines) for fact in dialogue["facts"] if fact["kind"] in KINDS]


def _judged(fact: dict[str, Any], lines: Sequence[str]) -> Judged:
    words = [*fact["keep"], *([fact["polarity"]] if fact.get("polarity") else [])]
    return Judged(
        fact=fact,
        kept=any(_has(line, words) for line in lines),
        marked=fact["kind"] == "reversal" and _is_marked(fact, lines),
    )


def _is_marked(fact: dict[str, Any], lines: Sequence[str]) -> bool:
    """Check whether the old decision is marked wherever it appears as a fact, or is gone."""
    old = [
        position for position, line in enumerate(lines)
        if _has(line, fact["old"]) and not _has(line, fact["keep"]) and _FACT_LINE.search(line.upper())
    ]  # fmt: skip
    return all("supersede" in " ".join(lines[at : at + 3]) for at in old)


def _has(line: str, words: Sequence[str]) -> bool:
    return all(re.search(rf"(?<!\w){re.escape(word.lower())}(?!\w)", line) for word in words)
