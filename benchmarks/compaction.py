"""Measure what compaction keeps, loses and invents on real histories, long talks and written dialogues.

Histories go through the real manager: operations are recorded, refreshes compact them, and every summary is compared
with the operations that it covers. Dialogues (`data/dialogues.jsonl`) are compacted five times with other talk in
between; then each rule, reversal, role and open item is looked for in the context that the model would get.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._dialogues import KINDS, Judged, after_compactions, is_unread, judge_dialogue, load_dialogues
from benchmarks._harness import CHECKOUT, Options, Report, Target, run, say
from benchmarks._operations import Recorded, own_history, recordings
from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.facts.extraction import find_in_operations
from orchestra_mem.core.identifiers import missing_identifiers
from orchestra_mem.core.summaries.extractive import Passage, extract, render
from orchestra_mem.core.summaries.kept import body_of
from orchestra_mem.core.text import STOP_WORDS, squeeze, stem, visible
from orchestra_mem.serialize import dump_json
from orchestra_mem.types import Operation, Summary

TARGETS: dict[str, Target] = {
    "ratio": ("<=", 0.25),
    "must_keep_retained": (">=", 1.0),
    "invented_identifiers": ("<=", 0),
    "expand_exact": (">=", 1.0),
    "locomo_answer_tokens_at_20": (">=", 0.80),
    "rules_kept_after_5": (">=", 1.0),
}
_HERE = Path(__file__).resolve().parent
_QUICK_OPERATIONS = 400
_QUICK_DIALOGUES = 30


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts over all summaries of one history."""

    summaries: int = 0
    tokens: int = 0
    source_tokens: int = 0
    facts: int = 0
    facts_kept: int = 0
    invented: list[str] = field(default_factory=list)
    expanded: int = 0
    exact: int = 0
    covered: int = 0


def measure(options: Options, report: Report) -> None:
    """Measure histories, conversations and dialogues."""
    tallies: dict[str, Tally] = {}
    for name, whole in {"own_git": own_history(CHECKOUT), **recordings(options.data)}.items():
        history = whole[:_QUICK_OPERATIONS] if options.quick else whole
        say(f"history {name}: {len(history):,} operations")
        tallies[name] = _compacted(history)
        _report_history(report, name, tallies[name])
    _report_total(report, list(tallies.values()))
    _measure_locomo(options, report)
    _measure_dialogues(options, report)


def _compacted(history: list[Recorded]) -> Tally:
    """Record a history with the default settings, compact what is due, and check every summary."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, open_memory(folder) as memory:
        given: dict[int, str] = {}
        for item in history:
            operation = memory.record_operation(item.kind, item.data, timestamp=item.time)
            given[operation.id] = dump_json(operation.data)
        memory.refresh()
        for summary in memory.losses():
            _judge_summary(memory, summary, given, tally)
    return tally


def _judge_summary(memory: OrchestratorContextManager, summary: Summary, given: dict[int, str], tally: Tally) -> None:
    operations = memory.expand(f"S{summary.id}").operations
    wanted = [number for number in given if summary.first_operation <= number <= summary.last_operation]
    tally.expanded += 1
    tally.exact += [(op.id, dump_json(op.data)) for op in operations] == [(n, given[n]) for n in wanted]
    tally.summaries += 1
    numbers = " ".join(f"K{number}" for number in summary.must_keeps)  # its lines may quote facts with these numbers
    tally.invented += missing_identifiers(body_of(summary.text), f"{numbers}\n{_all_text(operations)}")
    # Compare with the text as documents show it: invalid characters and comment markers are escaped there.
    texts = [squeeze(visible(fact.text)) for found in find_in_operations(operations) for fact in found]
    if summary.level == 1:
        tally.tokens += summary.tokens
        tally.source_tokens += summary.source_tokens
        tally.covered += summary.operation_count
        text = squeeze(summary.text)
        tally.facts += len(texts)
        tally.facts_kept += sum(fact in text for fact in texts)
        return
    # Higher levels refer to facts by number; expanding the number must yield the exact text.
    named = Counter(squeeze(fact.text) for number in summary.must_keeps if (fact := memory.expand(f"K{number}").fact))
    wanted_texts = Counter(texts)
    tally.facts += wanted_texts.total()
    tally.facts_kept += (named & wanted_texts).total()


def _all_text(operations: tuple[Operation, ...]) -> str:
    """Return everything that was recorded, with dates in the format of the summaries."""
    return "\n".join(
        f"{op.timestamp:%Y-%m-%d}\n{plain_text(op, max_chars=10**9)}\n{json.dumps(op.data, ensure_ascii=False)}"
        for op in operations
    )


def _report_history(report: Report, name: str, tally: Tally) -> None:
    if not tally.source_tokens:
        report.note(f"{name}: too short to be compacted with the default settings")
        return
    report.add(f"ratio_{name}", tally.tokens / tally.source_tokens, n=tally.summaries,
               note=f"{tally.source_tokens:,} tokens of {tally.covered:,} operations")  # fmt: skip
    report.add(f"must_keep_retained_{name}", tally.facts_kept / max(1, tally.facts), n=tally.facts)
    report.add(f"invented_identifiers_{name}", len(tally.invented), n=tally.summaries)
    if tally.invented:
        report.note(f"{name} invented: {', '.join(tally.invented[:10])}")


def _report_total(report: Report, tallies: list[Tally]) -> None:
    source = sum(tally.source_tokens for tally in tallies)
    ratios = [tally.tokens / tally.source_tokens for tally in tallies if tally.source_tokens]
    facts = sum(tally.facts for tally in tallies)
    count = sum(tally.summaries for tally in tallies)
    if not ratios:
        for key in ("ratio", "must_keep_retained", "invented_identifiers", "expand_exact"):
            report.unmeasured(key, "no history was long enough to be compacted")
        return
    report.add("ratio", max(ratios), n=source, note="the largest of all histories: summary tokens / source tokens")
    report.add("must_keep_retained", sum(t.facts_kept for t in tallies) / max(1, facts), n=facts)
    report.add("invented_identifiers", sum(len(t.invented) for t in tallies), n=count)
    report.add("expand_exact", sum(t.exact for t in tallies) / max(1, sum(t.expanded for t in tallies)), n=count)


def _measure_locomo(options: Options, report: Report) -> None:
    path = options.data / "locomo-dev.json"
    if not path.exists():
        report.unmeasured("locomo_answer_tokens_at_20", f"{path} is missing")
        return
    shares = answer_shares(path)
    report.add("locomo_answer_tokens_at_20", sum(shares) / len(shares), n=len(shares), note="of each conversation")


def _measure_dialogues(options: Options, report: Report) -> None:
    dialogues = load_dialogues(_HERE / "data" / "dialogues.jsonl")
    chosen = dialogues[:: max(1, len(dialogues) // _QUICK_DIALOGUES)] if options.quick else dialogues
    found: dict[str, list[Judged]] = {kind: [] for kind in KINDS}
    unread: list[Judged] = []
    for dialogue in chosen:
        for judged in _judged(dialogue, dialogues):
            found[judged.fact["kind"]].append(judged)
            if is_unread(dialogue):
                unread.append(judged)
    for kind, of_kind in found.items():
        report.add(f"{kind}_kept_after_5", _share_kept(of_kind), n=len(of_kind))
    judged_all = [judged for each in found.values() for judged in each]
    report.add("rules_kept_after_5", _share_kept(judged_all), n=len(judged_all),
               note=f"facts of {len(chosen)} dialogues")  # fmt: skip
    report.add("rules_kept_unread", _share_kept(unread), n=len(unread), note="of held-out dialogues")
    for key, reversals in (
        ("reversals_marked_after_5", found["reversal"]),
        ("reversals_marked_unread", [judged for judged in unread if judged.fact["kind"] == "reversal"]),
    ):
        marked = sum(judged.kept and judged.marked for judged in reversals)
        report.add(key, marked / len(reversals), n=len(reversals),
                   note="reversed decisions that are shown as reversed, or not shown")  # fmt: skip
    fresh = load_dialogues(_HERE / "data" / "fresh-dialogues.jsonl")[:: 3 if options.quick else 1]
    kept = [judged for dialogue in fresh for judged in _judged(dialogue, dialogues)]
    report.add("rules_kept_fresh", _share_kept(kept), n=len(kept),
               note=f"the same for {len(fresh)} dialogues written after all rules were fixed")  # fmt: skip


def _judged(dialogue: dict[str, Any], dialogues: list[dict[str, Any]]) -> list[Judged]:
    """Judge a dialogue's facts after compaction."""
    others = [other for other in dialogues if other is not dialogue]
    at = int(dialogue["id"][1:]) % len(others)
    return judge_dialogue(dialogue, after_compactions(dialogue, [*others[at:], *others[:at]]))


def _share_kept(judged: list[Judged]) -> float:
    return sum(each.kept for each in judged) / len(judged)


ANSWERABLE_CATEGORIES = frozenset({1, 2, 4})
"""Multi-hop, temporal and single-hop questions; category 3 needs knowledge that is not in the conversation."""

_SHARE = 0.2
"""The budget of a compacted conversation, as a share of its plain text (`speaker: text` lines)."""

_TOKEN = re.compile(r"[a-z0-9]+")


def answer_shares(path: Path) -> list[float]:
    """Return for each conversation the share, 0 to 1, of the gold answers' content words that its extract contains.

    Words are lower-case runs of letters and digits, stemmed, without stop words, each counted once per answer, over the
    questions of `ANSWERABLE_CATEGORIES`. A conversation is compacted as one text.
    """
    samples = json.loads(path.read_text(encoding="utf-8"))
    return [_kept(sample, _stems(_extract(_passages_of(sample)))) for sample in samples]


def _passages_of(sample: dict[str, Any]) -> list[Passage]:
    turns = [(turn, session["date_time"]) for session in sample["sessions"] for turn in session["turns"]]
    return [
        Passage(key=key, text=turn["text"], speaker=turn["speaker"], when=when)
        for key, (turn, when) in enumerate(turns, start=1)
    ]


def _extract(passages: list[Passage]) -> str:
    budget = int(_SHARE * sum(len(passage.speaker) + len(passage.text) + len(": \n") for passage in passages))
    compacted = render(extract(passages, budget=budget))
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


if __name__ == "__main__":
    sys.exit(run("compaction", measure, TARGETS))
