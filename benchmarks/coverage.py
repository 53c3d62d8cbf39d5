"""Measure whether a context made for a question holds the answer, and how well a small context uses its tokens.

A recorded talk is recorded turn by turn. After its end its questions are asked: `evidence_N` is the share of the turns
holding the answer that a context of N tokens contains verbatim, as a mean over questions. A short talk is the first
turns of a written dialogue, shown in 120 tokens: `content_share_120` is the share of the shown words that were said
in the talk, and `must_keeps_shown_120` the share of its facts that the context contains.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._dialogues import judge_dialogue, load_dialogues
from benchmarks._harness import Options, Report, Target, run, say
from benchmarks._retrieval import Talk, load_talks
from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.text import words
from orchestra_mem.types import Operation

TARGETS: dict[str, Target] = {
    "evidence_1000": (">=", 0.78),
    "evidence_2000": (">=", 0.85),
    "evidence_4000": (">=", 0.90),
    "budget_used": (">=", 0.90),
    "content_share_120": (">=", 0.85),
    "must_keeps_shown_120": (">=", 0.90),
}
BUDGETS = (1_000, 2_000, 4_000)
DIALOGUES = Path(__file__).resolve().parent / "data" / "dialogues.jsonl"
_SMALL, _SHORT_TURNS = 120, 8
_QUICK_EVERY, _QUICK_DIALOGUES = 2, 40


def record_talk(memory: OrchestratorContextManager, talk: Talk) -> None:
    """Record all turns of a talk."""
    for operation in talk.operations:
        memory.record_operation("message", operation.data, agent=operation.agent, timestamp=operation.timestamp)


def measure_evidence(talk: Talk, every: int, report: dict[str, list[float]]) -> None:
    """Ask every nth question of a talk at each token budget, once all its turns are in the index."""
    said = {operation.id: _plain(_text_of(operation)) for operation in talk.operations}
    with tempfile.TemporaryDirectory(prefix="coverage-") as folder, open_memory(folder) as memory:
        record_talk(memory, talk)
        memory.update_index()
        for question in talk.questions[::every]:
            wanted = [said[number] for number in question.evidence]
            for budget in BUDGETS:
                context = memory.get_orchestrator_context("answer", budget, query=question.text)
                shown = _plain(context.render())
                report.setdefault(f"evidence_{budget}", []).append(fmean(text in shown for text in wanted))
                report.setdefault("budget_used", []).append(context.tokens / budget)


def measure_small(dialogue: dict[str, object], report: dict[str, list[float]]) -> None:
    """Show the first turns of a dialogue in a context of 120 tokens."""
    turns = dialogue["turns"][:_SHORT_TURNS]  # type: ignore[index]
    facts = [fact for fact in dialogue["facts"] if fact["turn"] < _SHORT_TURNS]  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory(prefix="coverage-") as folder, open_memory(folder) as memory:
        for turn in turns:
            memory.record_operation("message", {"speaker": turn["speaker"], "text": turn["text"]})
        shown = memory.get_orchestrator_context("next", _SMALL).render()
    said = {word for turn in turns for word in words(f"{turn['speaker']} {turn['text']}")}
    told = words(shown)
    report.setdefault("content_share_120", []).append(sum(word in said for word in told) / max(1, len(told)))
    judged = judge_dialogue({"facts": facts}, shown)
    report.setdefault("must_keeps_shown_120", []).extend(float(each.kept) for each in judged)


def _text_of(operation: Operation) -> str:
    assert isinstance(operation.data, dict)
    return str(operation.data["text"])


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).lower().strip()


def measure(options: Options, report: Report) -> None:
    """Measure recorded talks and written dialogues."""
    found: dict[str, list[float]] = {}
    path = options.data / "locomo-dev.json"
    talks = load_talks(path) if path.exists() else []
    for talk in talks[:1] if options.quick else talks:
        measure_evidence(talk, _QUICK_EVERY if options.quick else 1, found)
        say(f"coverage: {talk.name} done")
    dialogues = load_dialogues(DIALOGUES)
    for dialogue in dialogues[:: len(dialogues) // _QUICK_DIALOGUES] if options.quick else dialogues:
        measure_small(dialogue, found)
    for key in TARGETS:
        if key in found:
            report.add(key, fmean(found[key]), n=len(found[key]))
        else:
            report.unmeasured(key, f"{path} is missing")


if __name__ == "__main__":
    sys.exit(run("coverage", measure, TARGETS))
