"""Compare summaries by real models with extraction: facts kept, facts invented, questions answered, time.

The real manager compacts recorded sessions and histories; then each model is asked to improve the same summaries, and
what would be stored is compared with the operations. Without recordings nothing is measured.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, find_model, run, say
from benchmarks._operations import Recorded, recordings
from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.facts.extraction import find_in_operations
from orchestra_mem.core.identifiers import find_identifiers, missing_identifiers
from orchestra_mem.core.summaries.drafts import Material, draft_of
from orchestra_mem.core.summaries.kept import body_of
from orchestra_mem.core.text import content_stems, split_sentences, squeeze, visible
from orchestra_mem.job_types import TrialVerdict
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.tiers.session_compaction import read_source
from orchestra_mem.types import Operation, Summary

_OUTCOME = re.compile(
    r"\b(?:pass(?:es|ed)?|fail(?:s|ed|ure)?|succeed(?:s|ed)?|success\w*|errors?|fixe[sd]|fix|done|complete[sd]?|"
    r"add(?:s|ed)|remove[sd]|update[sd]|merged?|released?|created|returns?|exit code)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:because(?: of)?|since|due to|so that|caused by|as a result of|in order to)\b\s+([^.;:!?\n]{12,200})",
    re.IGNORECASE,
)
_MAX_SENTENCE_CHARS = 300
_MAX_ASKED = 8


@dataclass(slots=True)
class Answered:
    """The sum of the found shares of answers, and the number of questions."""

    share: float = 0.0
    asked: int = 0

    def add(self, shares: Iterable[float]) -> None:
        """Add the found shares of answers, each 0 to 1."""
        for share in shares:
            self.share += share
            self.asked += 1

    @property
    def mean(self) -> float:
        """Mean share; 0 if nothing was asked."""
        return self.share / self.asked if self.asked else 0.0


@dataclass(slots=True)
class Answers:
    """Found answers to questions that need no judge: derived from an operation by template, answered by look-up.

    Which names does the operation contain? What was its outcome? Why? The answers are its identifiers, and the content
    words of a sentence with an outcome or of a clause after "because" and the like. Of content words, the share counts
    that occurs together in one line of the summary.
    """

    names: Answered
    outcomes: Answered
    causes: Answered

    @classmethod
    def none(cls) -> Answers:
        """Return empty counts."""
        return cls(Answered(), Answered(), Answered())

    @property
    def answerable(self) -> float:
        """Mean over the kinds for which there were questions, 0 to 1."""
        kinds = [kind.mean for kind in (self.names, self.outcomes, self.causes) if kind.asked]
        return sum(kinds) / len(kinds) if kinds else 0.0

    def ask(self, operations: Sequence[Operation], context: str) -> None:
        """Ask about each operation, and look the answers up in a context."""
        lines = [set(content_stems(line)) for line in context.splitlines()]
        for operation in operations:
            text = plain_text(operation, max_chars=2_400)
            names = find_identifiers(text)
            lost = set(missing_identifiers("\n".join(names), context)) if names else set()
            self.names.add(float(name not in lost) for name in names)
            sentences = [each for each in split_sentences(text) if len(each) <= _MAX_SENTENCE_CHARS]
            told = [sentence for sentence in sentences if _OUTCOME.search(sentence)][:_MAX_ASKED]
            self.outcomes.add(_best(sentence, lines) for sentence in told)
            self.causes.add(_best(clause, lines) for clause in _CAUSE.findall(text)[:_MAX_ASKED])


def _best(answer: str, lines: Sequence[set[str]]) -> float:
    wanted = set(content_stems(answer))
    return max((len(wanted & line) for line in lines), default=0) / len(wanted) if wanted else 0.0


MODELS = {
    "qwen05": "qwen2.5-coder-0.5b-instruct-q4_k_m",
    "smollm2": "smollm2-135m-instruct-q4_1",
    "qwen15": "qwen2.5-coder-1.5b-instruct-q4",
}
_FULL_RUN_ONLY = "qwen15"
_WINDOW_TOKENS = 4_096
# Number of operations of each recording that are compacted, and of their summaries that models improve.
_OPERATIONS, _SUMMARIES = 400, 4
_QUICK_OPERATIONS, _QUICK_SUMMARIES = 160, 1


@dataclass(slots=True)
class Tally:
    """Counts over the summaries of one summariser."""

    answers: Answers = field(default_factory=Answers.none)
    as_large: Answers = field(default_factory=Answers.none)  # answers found in extracts of the same size
    summaries: int = 0
    used: int = 0
    tokens: int = 0
    source_tokens: int = 0
    facts: int = 0
    facts_kept: int = 0
    invented: int = 0
    said_invented: int = 0
    asked: int = 0
    first: int = 0
    seconds: float = 0.0
    prompt_tokens: int = 0
    prompt_s: float = 0.0
    answer_tokens: int = 0
    answer_s: float = 0.0


def measure(options: Options, report: Report) -> None:
    """Measure extraction, then each model."""
    histories = _histories(options)
    if not histories:
        for key in TARGETS:
            report.unmeasured(key, f"no recordings in {options.data}")
        return
    tallies = {"extraction": Tally(), **{name: Tally() for name in MODELS}}
    for name, history in histories.items():
        with tempfile.TemporaryDirectory() as folder:
            _compact(Path(folder), history)
            for summariser, tally in tallies.items():
                if summariser == _FULL_RUN_ONLY and options.quick:
                    continue
                say(f"{name}: {summariser}")
                _measure(Path(folder), summariser, tally, options)
    for summariser, tally in tallies.items():
        _report(report, summariser, tally, tallies["extraction"])
    done = [tally for tally in tallies.values() if tally.summaries]
    report.add("must_keep_retained", min(t.facts_kept / max(1, t.facts) for t in done), n=sum(t.facts for t in done))
    report.add("invented_identifiers", sum(t.invented for t in done), n=sum(t.summaries for t in done),
               note="in the stored summaries of all summarisers")  # fmt: skip


def _histories(options: Options) -> dict[str, list[Recorded]]:
    found = recordings(options.data)
    found.pop("locomo_dev", None)
    most = _QUICK_OPERATIONS if options.quick else _OPERATIONS
    names = list(found)[: 2 if options.quick else None]
    return {name: found[name][:most] for name in names}


def _compact(folder: Path, history: Sequence[Recorded]) -> None:
    with open_memory(folder) as memory:
        for item in history:
            memory.record_operation(item.kind, item.data, timestamp=item.time)
        memory.refresh()


def _measure(folder: Path, summariser: str, tally: Tally, options: Options) -> None:
    model = find_model(MODELS[summariser], context_tokens=_WINDOW_TOKENS) if summariser in MODELS else None
    try:
        with open_memory(folder, config={"compression": {"auto": False}}, model=model) as memory:
            for summary in _chosen(memory.losses(), _QUICK_SUMMARIES if options.quick else _SUMMARIES):
                _judge(memory, summary, model, tally)
    finally:
        if model is not None:
            model.close()


def _chosen(summaries: Sequence[Summary], count: int) -> list[Summary]:
    """Choose `count` level-1 summaries, evenly spread over all."""
    first = [summary for summary in summaries if summary.level == 1]
    return first[:: max(1, len(first) // count)][:count]


def _judge(memory: OrchestratorContextManager, summary: Summary, model: LanguageModel | None, tally: Tally) -> None:
    text, tokens = summary.text, summary.tokens
    if model is not None and not summary.parent:
        done = memory.compression.redo(summary.id)
        talk, text, tokens = done.talk, done.text, done.tokens
        tally.used += done.verdict.good
        tally.said_invented += talk.invented
        for name in ("asked", "first", "seconds", "prompt_tokens", "prompt_s", "answer_tokens", "answer_s"):
            setattr(tally, name, getattr(tally, name) + getattr(talk, name))
        if done.verdict is TrialVerdict.FAILED:
            say(f"S{summary.id}: {done.fault}")
    operations = memory.expand(f"S{summary.id}").operations
    days = "\n".join(f"{operation.timestamp:%Y-%m-%d}" for operation in operations)
    source = "\n".join([days, *(plain_text(operation, max_chars=10**9) for operation in operations)])
    facts = [squeeze(visible(fact.text)) for found in find_in_operations(operations) for fact in found]
    tally.summaries += 1
    tally.tokens += tokens
    tally.source_tokens += summary.source_tokens
    tally.invented += len(missing_identifiers(body_of(text), source))
    tally.facts += len(facts)
    tally.facts_kept += sum(fact in squeeze(text) for fact in facts)
    tally.answers.ask(operations, text)
    if model is not None:
        tally.as_large.ask(operations, text if summary.parent else _as_large(operations, text))


def _as_large(operations: Sequence[Operation], text: str) -> str:
    """Return the largest extract no larger than a text; an extract rarely fills the size that is requested for it."""
    counter, facts = open_counter(), [fact for found in find_in_operations(operations) for fact in found]
    material, tokens = Material.of_operations(list(map(read_source, operations)), facts), counter.count(text)
    tried = [draft_of(material, target_tokens=tokens * n // 20, counter=counter) for n in range(12, 33)]
    fitting = [draft for draft in tried if draft.tokens <= tokens] or tried[:1]
    return max(fitting, key=lambda draft: draft.tokens).text


def _report(report: Report, name: str, tally: Tally, base: Tally) -> None:
    if not tally.summaries:
        report.unmeasured(f"{name}_answerable_gain", "full run only")
        return
    kinds = ((kind, getattr(tally.answers, kind)) for kind in ("names", "outcomes", "causes"))
    told = ", ".join(f"{kind} {found.mean:.3f} of {found.asked:,}" for kind, found in kinds)
    report.add(f"{name}_answerable", tally.answers.answerable, n=tally.summaries, note=told)
    report.add(f"{name}_ratio", tally.tokens / tally.source_tokens, n=tally.summaries)
    if name not in MODELS:
        return
    report.add(f"{name}_answerable_gain", tally.answers.answerable - base.answers.answerable, n=tally.summaries)
    report.add(f"{name}_equal_size_gain", tally.answers.answerable - tally.as_large.answerable, n=tally.summaries)
    report.add(f"{name}_used", tally.used / tally.summaries, n=tally.summaries, note="summaries with the model's lines")
    report.add(f"{name}_accepted_first_try", tally.first / max(1, tally.asked), n=tally.asked, note="answers")
    report.add(f"{name}_said_invented", tally.said_invented, n=tally.asked,
               note="in the model's answers; none of them is stored")  # fmt: skip
    report.add(f"{name}_seconds", tally.seconds / tally.summaries, n=tally.summaries, note="a summary")
    report.add(f"{name}_prompt_tokens_per_s", tally.prompt_tokens / max(1e-9, tally.prompt_s), n=tally.prompt_tokens,
               note="including tokens from its cache")  # fmt: skip
    report.add(f"{name}_answer_tokens_per_s", tally.answer_tokens / max(1e-9, tally.answer_s), n=tally.answer_tokens)


TARGETS: dict[str, Target] = {
    "must_keep_retained": (">=", 1.0),
    "invented_identifiers": ("<=", 0),
    **{f"{name}_answerable_gain": (">=", 0.0) for name in MODELS},
}

if __name__ == "__main__":
    sys.exit(run("summaries", measure, TARGETS))
