"""Measure how well a question finds the turns of a talk that hold its answer, and what each part of search adds.

Each turn is an operation: the speaker is the agent, the session's time the timestamp. Questions are asked after the end
of the talk. Recall is the share of a question's evidence among the first hits, as a mean over all questions. Each talk
has its own on-disk index.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run, say
from benchmarks._retrieval import (
    CATEGORIES,
    SEARCHED,
    Answer,
    Scores,
    Talk,
    find_minilm,
    index_of,
    judge,
    load_notes,
    load_talks,
)
from orchestra_mem.adapters.embedders import OnnxEmbedder, WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.core.search.hybrid import Searcher
from orchestra_mem.core.search.ranking import Weights
from orchestra_mem.core.search.terms import read_query
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EVERYTHING, Chunk, Embedder, Ids, SearchIndex, WordEmbedder

SHARES = (
    "own", "coverage", "before", "second_before", "group", "agent", "statement", "substance", "tells_time",
    "period",
)  # fmt: skip
"""Names of the fitted weights; the others mix the parts of `own`, or are priors."""

TARGETS: dict[str, Target] = {
    "recall_at_10": (">=", 0.75),
    "recall_at_5": (">=", 0.65),
    "mrr": (">=", 0.54),
    "session_recall_at_5": (">=", 0.87),
    "minilm_recall_at_10": (">=", 0.76),
    "other_languages_recall_at_5": (">=", 0.65),
    "nothing_certain_unanswerable": (">=", 0.8),
    "nothing_certain_answerable": ("<=", 0.1),
    "calibration_error": ("<=", 0.03),
}
_NOTES = Path(__file__).resolve().parent / "data" / "notes.jsonl"
_QUICK_TALKS = 1
_MEASURES = {
    "recall_at_10": "recall_at_10",
    "recall_at_5": "recall_at_5",
    "mrr": "reciprocal_rank",
    "session_recall_at_5": "session_recall_at_5",
}
_DEFAULTS = Weights()
_PLAIN = replace(_DEFAULTS, **{name: float(name == "own") for name in SHARES})
_NEUTRAL = 0.3
_PRIORS = ("recency", "importance", "same_session")


def measure(options: Options, report: Report) -> None:
    """Measure all variants on the conversations in the data folder, and the search on notes in other languages."""
    _report_languages(report, WordLlamaEmbedder())
    path = options.data / "locomo-dev.json"
    if not path.exists():
        for key in TARGETS.keys() - {"other_languages_recall_at_5"}:
            report.unmeasured(key, f"{path} is missing")
        return
    all_talks = load_talks(path)
    talks = all_talks[: _QUICK_TALKS if options.quick else None]
    embedder = WordLlamaEmbedder()
    with tempfile.TemporaryDirectory(prefix="retrieval-") as folder:
        indexes = [index_of(talk, embedder, Path(folder)) for talk in talks]
        whole = _searched(talks, indexes, embedder, embedder, _DEFAULTS)
        _report_whole(report, talks, whole)
        _report_certainty(report, all_talks, indexes, embedder)
        _report_minilm(options, report, talks, embedder)
        _report_parts(options, report, talks, indexes, embedder)
        if not options.quick:
            _report_left_out(report, talks, indexes, embedder)


def _report_languages(report: Report, embedder: WordLlamaEmbedder) -> None:
    memories = load_notes(_NOTES)
    with tempfile.TemporaryDirectory(prefix="retrieval-") as folder:
        indexes = [index_of(each, embedder, Path(folder)) for each in memories]
        scores = _searched(memories, indexes, embedder, embedder, _DEFAULTS)
    by_memory = ", ".join(f"{each.name} {scores.mean('recall_at_5', talk=each.name):.2f}" for each in memories)
    note = f"mrr {scores.mean('reciprocal_rank'):.3f}; {by_memory}"
    report.add("other_languages_recall_at_5", scores.mean("recall_at_5"), n=len(scores.judged), note=note)


def _searched(
    talks: list[Talk],
    indexes: list[DiskSearchIndex],
    embedder: Embedder | None,
    words: WordEmbedder | None,
    weights: Weights,
) -> Scores:
    scores = Scores()
    for talk, index in zip(talks, indexes, strict=True):
        judge(talk, _by_searcher(Searcher(index, embedder, words, weights=weights), talk), scores)
    return scores


def _by_searcher(searcher: Searcher, talk: Talk) -> Answer:
    return lambda question: [hit.chunk for hit in searcher.search(question.text, talk.ended, limit=SEARCHED)]


def _report_whole(report: Report, talks: list[Talk], scores: Scores) -> None:
    n = len(scores.judged)
    for key, name in _MEASURES.items():
        by_talk = ", ".join(f"{scores.mean(name, talk=talk.name):.3f}" for talk in talks)
        report.add(key, scores.mean(name), n=n, note=f"by talk {by_talk}")
    for category, what in CATEGORIES.items():
        asked = sum(each.category == category for each in scores.judged)
        if asked:
            value = scores.mean("recall_at_10", category=category)
            report.add(f"recall_at_10_{what.replace(' ', '_')}", value, n=asked)
    report.percentiles("search_cpu", scores.cpu_ms, (50, 95), note="processor time")


def _report_certainty(
    report: Report, talks: list[Talk], indexes: list[DiskSearchIndex], embedder: WordLlamaEmbedder
) -> None:
    """Report how often no hit is certain, and how well likelihoods match how often hits hold evidence.

    The recordings lack LoCoMo's unanswerable questions. Substitutes are the questions of the next talk and, like the
    adversarial ones of LoCoMo, those of the same talk with the speakers exchanged; a few of these can be answered.
    """
    none: frozenset[int] = frozenset()
    uncertain = defaultdict[str, list[bool]](list)
    hits_of: list[tuple[float, bool]] = []
    for at, (talk, index) in enumerate(zip(talks, indexes, strict=False)):
        searcher = Searcher(index, embedder, embedder)
        asked = [("answerable", question.text, question.evidence) for question in talk.questions]
        asked += [("unanswerable", question.text, none) for question in talks[at + 1 - len(talks)].questions]
        exchanged = (exchange_speakers(question.text, talk) for question in talk.questions)
        asked += [("speakers_exchanged", text, none) for text in exchanged if text]
        for kind, text, evidence in asked:
            hits = searcher.search(text, talk.ended)
            uncertain[kind].append(all(hit.perhaps for hit in hits))
            if kind != "speakers_exchanged":
                hits_of += [(hit.likelihood, hit.chunk.operation in evidence) for hit in hits]
    for kind, answers in uncertain.items():
        report.add(f"nothing_certain_{kind}", fmean(answers), n=len(answers))
    report.add("calibration_error", calibration_error(hits_of), n=len(hits_of), note="answerable and unanswerable")


def exchange_speakers(text: str, talk: Talk) -> str:
    """Ask the same of the other speaker; an empty text if the question names no speaker."""
    names = list(dict.fromkeys(operation.agent or "" for operation in talk.operations))
    other = dict(zip(names, names[::-1], strict=True))
    changed = re.sub(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b", lambda match: other[match[0]], text)
    return changed if changed != text else ""


def calibration_error(hits: Sequence[tuple[float, bool]]) -> float:
    """Return the expected calibration error in ten bins (Guo et al., 2017) of pairs (likelihood, outcome)."""
    likely, happened = np.array(hits).T
    gaps = np.bincount(np.minimum((likely * 10).astype(int), 9), likely - happened)
    return float(np.abs(gaps).sum()) / len(hits)


def _report_minilm(options: Options, report: Report, talks: list[Talk], words: WordEmbedder) -> None:
    key = "minilm_recall_at_10"
    with tempfile.TemporaryDirectory() as folder:
        found = find_minilm(options.data, Path(folder))
        if found is None:
            report.unmeasured(key, f"put model.onnx and tokenizer.json into {options.data / 'all-MiniLM-L6-v2'}")
            return
        try:
            minilm = OnnxEmbedder(found)
        except EmbedderError as error:
            report.unmeasured(key, str(error))
            return
        say("embedding with MiniLM …")
        scores = _searched(talks, [index_of(talk, minilm, Path(folder)) for talk in talks], minilm, words, _DEFAULTS)
    report.add(key, scores.mean("recall_at_10"), n=len(scores.judged), note="with its vectors instead of WordLlama's")


def _report_parts(
    options: Options,
    report: Report,
    talks: list[Talk],
    indexes: list[DiskSearchIndex],
    embedder: WordLlamaEmbedder,
) -> None:
    """Report each search alone, each fusion without context features, and the full search less one part at a time."""
    for name, answers in _alone(talks, indexes, embedder):
        scores = Scores()
        for talk, answer in zip(talks, answers, strict=True):
            judge(talk, answer, scores)
        _report_variant(report, name, scores)
    for name, weights in _fusions().items() if options.quick else {**_fusions(), **_without()}.items():
        say(f"{name} …")
        _report_variant(report, name, _searched(talks, indexes, embedder, embedder, weights))
    _report_variant(report, "without_embedder", _searched(talks, indexes, None, None, _DEFAULTS))


def _report_variant(report: Report, name: str, scores: Scores) -> None:
    others = ", ".join(f"{key} {scores.mean(measure):.3f}" for key, measure in list(_MEASURES.items())[1:])
    report.add(name, scores.mean("recall_at_10"), n=len(scores.judged), note=f"recall_at_10; {others}")


def _alone(
    talks: list[Talk], indexes: list[DiskSearchIndex], embedder: WordLlamaEmbedder
) -> Iterator[tuple[str, list[Answer]]]:
    def keyword(index: DiskSearchIndex) -> Answer:
        return lambda question: _chunks(index, index.keyword(read_query(question.text), EVERYTHING, SEARCHED).ids)

    def dense(index: DiskSearchIndex) -> Answer:
        return lambda question: _chunks(
            index, index.dense(embedder.model, embedder.embed_query(question.text), EVERYTHING, SEARCHED).ids
        )

    yield "keyword_alone", [keyword(index) for index in indexes]
    yield "dense_alone_unweighted", [dense(index) for index in indexes]


def _chunks(index: DiskSearchIndex, ids: Ids) -> list[Chunk]:
    return [chunk for chunk in index.chunks(ids) if chunk is not None]


def _fusions() -> Mapping[str, Weights]:
    def mix(keyword: float, dense: float, late: float) -> Weights:
        return replace(_PLAIN, keyword=keyword, dense=dense, late=late)

    return {
        "dense_alone": mix(0, 1, 0),
        "late_alone": mix(0, 0, 1),
        "weighted_dense_0_7_keyword_0_3": mix(0.3, 0.7, 0),
        "weighted_all_three": mix(_DEFAULTS.keyword, _DEFAULTS.dense, _DEFAULTS.late),
    }


def _without() -> Mapping[str, Weights]:
    names = ("keyword", "dense", "late", *SHARES, "diversity")
    variants = {f"without_{name}": replace(_DEFAULTS, **{name: 0.0}) for name in names}
    return {**variants, "without_priors": replace(_DEFAULTS, **dict.fromkeys(_PRIORS, 0.0))}


def _report_left_out(
    report: Report, talks: list[Talk], indexes: list[DiskSearchIndex], embedder: WordLlamaEmbedder
) -> None:
    """Leave one talk out at a time: fit the weights, equal at first, to the other talks, and test them on that one."""
    say("leaving one out …")
    profiles = [profiles_of(talk, index, embedder, embedder) for talk, index in zip(talks, indexes, strict=True)]
    default = {name: getattr(_DEFAULTS, name) for name in SHARES}
    start = dict.fromkeys(SHARES, _NEUTRAL)
    fitted = [fit([other for other in profiles if other is not left_out], start) for left_out in profiles]
    recalls = [recall(each, weights, 10) for each, weights in zip(profiles, fitted, strict=True)]
    sizes = [len(talk.questions) for talk in talks]
    value = sum(size * each for size, each in zip(sizes, recalls, strict=True)) / sum(sizes)
    by_talk = ", ".join(f"{each:.3f}" for each in recalls)
    report.add("left_out_recall_at_10", value, n=sum(sizes), note=f"fitted to the other talks; by talk {by_talk}")
    for name in SHARES:
        values = [weights[name] for weights in fitted]
        report.note(f"weight {name}: {default[name]:g}, fitted {min(values):g} to {max(values):g}")


_CANDIDATES = 150
_STEPS = (0.2, 0.1, 0.05)
_LEAST_GAIN = 2e-4

Fitted = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """Unweighted shares of the candidates for a talk's questions.

    `values`: float32, shape (questions, candidates, shares). `evidence`: Marks candidates that hold evidence. `wanted`:
    Number of turns with evidence for each question, found or not.
    """

    values: NDArray[np.float32]
    evidence: NDArray[np.bool_]
    wanted: NDArray[np.int64]


def profiles_of(talk: Talk, index: SearchIndex, embedder: Embedder, words: WordEmbedder) -> Profiles:
    """Search for a talk's questions, and return the shares of all candidates."""
    ones = replace(Weights(), **dict.fromkeys(SHARES, 1.0), diversity=0.0)
    searcher = Searcher(index, embedder, words, weights=ones)
    values = np.zeros((len(talk.questions), _CANDIDATES, len(SHARES)), np.float32)
    evidence = np.zeros(values.shape[:2], bool)
    for row, question in enumerate(talk.questions):
        hits = searcher.search(question.text, talk.ended, limit=_CANDIDATES)
        for column, hit in enumerate(hits):
            shares = dict(hit.reasons.shares)
            values[row, column] = [shares.get(name, 0.0) for name in SHARES]
            evidence[row, column] = hit.chunk.operation in question.evidence
    wanted = np.array([len(question.evidence) for question in talk.questions])
    return Profiles(values=values, evidence=evidence, wanted=wanted)


def recall(profiles: Profiles, weights: Fitted, depth: int) -> float:
    """Return the mean share of a question's evidence among the first `depth` hits."""
    return float(_recalls(profiles, _scores(profiles, weights), depth).mean())


def fit(talks: Sequence[Profiles], start: Fitted) -> dict[str, float]:
    """Fit the weights to talks, for recall at 10 plus half of recall at 5 and half of the reciprocal rank.

    Coordinate ascent: one weight at a time changes by a step, until no step improves the result.
    """
    weights = dict(start)
    best = _goodness(talks, weights)
    for step in _STEPS:
        better = True
        while better:
            better = False
            for name in SHARES:
                for tried in (weights[name] - step, weights[name] + step):
                    goodness = _goodness(talks, {**weights, name: tried}) if tried >= 0 else -1.0
                    if goodness > best + _LEAST_GAIN:
                        best, weights[name], better = goodness, round(tried, 2), True
    return weights


def _goodness(talks: Sequence[Profiles], weights: Fitted) -> float:
    return float(np.mean([_goodness_of(profiles, _scores(profiles, weights)) for profiles in talks]))


def _goodness_of(profiles: Profiles, scores: NDArray[np.float32]) -> float:
    first = np.where(profiles.evidence, scores, -np.inf).max(axis=1, keepdims=True)
    found = np.isfinite(first[:, 0])
    ranks = (scores > first).sum(axis=1) + 1
    recalls = _recalls(profiles, scores, 10) + 0.5 * _recalls(profiles, scores, 5)
    return float((recalls + 0.5 * found / ranks).mean())


def _scores(profiles: Profiles, weights: Fitted) -> NDArray[np.float32]:
    scores: NDArray[np.float32] = profiles.values @ np.array([weights[name] for name in SHARES], np.float32)
    return scores


def _recalls(profiles: Profiles, scores: NDArray[np.float32], depth: int) -> NDArray[np.float64]:
    top = np.argpartition(-scores, depth, axis=1)[:, :depth]
    found = np.take_along_axis(profiles.evidence, top, axis=1).sum(axis=1)
    recalls: NDArray[np.float64] = found / profiles.wanted
    return recalls


if __name__ == "__main__":
    sys.exit(run("retrieval", measure, TARGETS))
