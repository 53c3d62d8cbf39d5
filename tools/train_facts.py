"""Train the classifier of facts and write its table, `orchestra_mem/core/facts/facts.npz`.

    python tools/train_facts.py            # writes the table
    python tools/train_facts.py --cross    # prints figures of a cross-validation by writer, writes nothing

Trained are the records of split `train` in `benchmarks/data/facts.jsonl` and `fact-pairs.jsonl`, and the dialogues that
are not held out; nothing of split `test` is looked at. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._dialogues import is_unread, load_dialogues
from benchmarks._facts import NO_FACT, START, Record, load_records, meets, operation_of, operations_of
from orchestra_mem.core.facts import classifier
from orchestra_mem.core.facts.extraction import find_in_text
from orchestra_mem.core.facts.features import COLUMNS, Sentence, column_of, features_of
from orchestra_mem.core.facts.prose import Source, fields_of
from orchestra_mem.core.facts.sentences import candidates_of
from orchestra_mem.core.facts.superseding import HOLDING, may_change, pair_features, topic_of
from orchestra_mem.core.text import content_stems
from orchestra_mem.types import MustKeep, MustKeepKind

HERE = Path(__file__).resolve().parents[1]
DATA = HERE / "benchmarks" / "data" / "facts.jsonl"
PAIRS = DATA.with_name("fact-pairs.jsonl")
DIALOGUES = DATA.with_name("dialogues.jsonl")
TABLE = HERE / "orchestra_mem" / "core" / "facts" / "facts.npz"
CLASSES = ("none", "constraint", "decision", "open item", "role", "insight", "failure", "completion")
STRENGTH = 12.0
"""Inverse of the regularisation, chosen by cross-validation."""
_UNMARKED = 0.3
_KIND_OF = {"rule": "constraint", "reversal": "decision", "role": "role", "open": "open item"}


def examples_of(records: Sequence[Record]) -> tuple[list[Sentence], list[int], list[str]]:
    """The sentences of records as the package reads them, with the class and the writer of each."""
    sentences, labels, writers = [], [], []
    for record in records:
        for operation, lines in operations_of(record):
            for field in fields_of(operation):
                if field.source is Source.OUTPUT:
                    continue
                for candidate in candidates_of(field):
                    told = [line for line in lines if meets(candidate.text, line)]
                    if not told:
                        continue
                    # people leave full stops out: where lines have run together, the fact among them counts
                    line = max(told, key=lambda line: (line.kind not in NO_FACT, len(line.core)))
                    kind = "none" if line.kind in NO_FACT else line.kind.replace("_", " ")
                    sentences.append(candidate.sentence)
                    labels.append(CLASSES.index(kind))
                    writers.append(record.writer)
    return sentences, labels, writers


def examples_of_dialogues(file: Path) -> tuple[list[Sentence], list[int], list[float]]:
    """The sentences of dialogues with their classes and weights; what is not marked there is only mostly no fact."""
    sentences, labels, weights = [], [], []
    for dialogue in load_dialogues(file):
        if is_unread(dialogue):
            continue
        marked = [
            (told["turn"], told["keep"], _KIND_OF[told["kind"]])
            for told in dialogue["facts"]
            if told["kind"] in _KIND_OF
        ]
        marked += [(told["old_turn"], told["old"], "decision") for told in dialogue["facts"] if "old_turn" in told]
        for turn, said in enumerate(dialogue["turns"]):
            data = {"speaker": said["speaker"], "text": said["text"]}
            for candidate in chain.from_iterable(map(candidates_of, fields_of(operation_of("message", data)))):
                low = candidate.text.lower()
                kind = next(
                    (kind for at, keep, kind in marked if at == turn and all(word in low for word in keep)), None
                )
                sentences.append(candidate.sentence)
                labels.append(CLASSES.index(kind or "none"))
                weights.append(1.0 if kind else _UNMARKED)
    return sentences, labels, weights


def matrix_of(sentences: Sequence[Sentence]) -> csr_matrix:
    """Give the features of sentences as a sparse matrix, shape (n, COLUMNS)."""
    features = features_of(sentences)
    return csr_matrix((features.values, (features.rows, features.columns)), shape=(len(sentences), COLUMNS))


def fit(
    sentences: Sequence[Sentence], labels: Sequence[int], weights: Sequence[float] | None = None
) -> LogisticRegression:
    """Fit the model; sentences that say enough by themselves also without what is known beside their words."""
    bare = [
        number
        for number, each in enumerate(sentences)
        if not each.heading and not any(label.startswith("tick") for label in each.circumstances)
    ]
    matrix = matrix_of([*sentences, *(replace(sentences[number], circumstances=()) for number in bare)])
    truth = [*labels, *(labels[number] for number in bare)]
    whole = np.ones(len(labels)) if weights is None else np.array(weights)
    both = np.concatenate((whole, 0.5 * whole[bare])) * _balance(truth)
    # Rare columns count more, as in tf-idf; the scale goes into the weights, and costs nothing later.
    seen = np.asarray((matrix > 0).sum(axis=0)).ravel()
    scale = np.sqrt((np.log((1 + matrix.shape[0]) / (1 + seen)) + 1) / 4)
    model = LogisticRegression(C=STRENGTH, max_iter=200, tol=1e-3)
    model.fit((matrix @ diags(scale)).tocsr(), truth, sample_weight=both)
    model.coef_ = model.coef_ * scale
    return model


def cross_validate(sentences: Sequence[Sentence], labels: Sequence[int], writers: Sequence[str]) -> None:
    """Print recall, precision and kinds over five folds that share no hand."""
    hands = sorted({writer.partition("-")[0] for writer in writers})
    fold_of = {hand: number % 5 for number, hand in enumerate(hands)}
    folds = np.array([fold_of[writer.partition("-")[0]] for writer in writers])
    matrix, truth = matrix_of(sentences), np.array(labels)
    talk, talk_labels, talk_weights = examples_of_dialogues(DIALOGUES)
    shares = np.zeros((len(labels), len(CLASSES)))
    for fold in range(5):
        if (folds == fold).any():
            train = np.flatnonzero(folds != fold).tolist()
            model = fit(
                [*(sentences[number] for number in train), *talk],
                [*truth[train].tolist(), *talk_labels],
                [*np.ones(len(train)), *talk_weights],
            )
            shares[np.ix_(folds == fold, model.classes_)] = model.predict_proba(matrix[folds == fold])
    for threshold in (0.3, 0.4, 0.5, 0.6):
        found = 1 - shares[:, 0] >= threshold
        kinds = shares[:, 1:].argmax(axis=1) + 1
        facts = truth > 0
        print(
            f"from {threshold}: recall {(found & facts).sum() / facts.sum():.3f}, right kind "
            f"{(found & facts & (kinds == truth)).sum() / facts.sum():.3f}, precision "
            f"{(found & facts).sum() / found.sum():.3f}"
        )


def _balance(labels: Sequence[int]) -> NDArray[np.float64]:
    """Weights that make rare kinds of facts count as much as frequent ones, by the root."""
    counts = np.bincount(labels, minlength=len(CLASSES)).astype(float)
    weights = np.sqrt(counts[1:].mean() / np.maximum(counts, 1))
    weights[0] = 1.0
    balanced: NDArray[np.float64] = weights[np.array(labels)]
    return balanced


class Pair(NamedTuple):
    """Two facts, and whether the later one has superseded or settled the earlier one."""

    newer: MustKeep
    older: MustKeep
    changed: bool


def rarity_of(sentences: Sequence[Sentence]) -> NDArray[np.float16]:
    """How telling each word is: the logarithm of how many sentences there are for each that has it."""
    seen = Counter(column_of(word) for each in sentences for word in {*content_stems(each.text)})
    counts = np.full(COLUMNS, 0.5)
    for column, count in seen.items():
        counts[column] = count
    return np.log(len(sentences) / counts).clip(0, 8).astype(np.float16)


def pairs_of(file: Path) -> Iterator[Pair]:
    """The written pairs of split `train`."""
    for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        if row["split"] == "train":
            older, newer = (
                _fact(row[key]["t"], row[key]["k"], 10 * place) for place, key in enumerate(("older", "newer"), 1)
            )
            yield Pair(newer, older, row["relation"] != "none")


def pairs_of_dialogues(file: Path) -> Iterator[Pair]:
    """Pairs of facts as they are found in dialogues that share a telling word, with those that were taken back."""
    for dialogue in load_dialogues(file):
        if is_unread(dialogue):
            continue
        found = [
            replace(fact, id=100 * turn + place)
            for turn, said in enumerate(dialogue["turns"])
            for place, fact in enumerate(
                find_in_text(
                    said["text"], operation=turn, timestamp=START + timedelta(minutes=turn), speaker=said["speaker"]
                )
            )
        ]
        taken_back = {(told["turn"], told["old_turn"]) for told in dialogue["facts"] if told["kind"] == "reversal"}
        taken_back |= {(told["closed_turn"], told["turn"]) for told in dialogue["facts"] if "closed_turn" in told}
        for number, newer in enumerate(found):
            for older in found[:number]:
                if may_change(newer, older) and not topic_of(newer.text).words.keys().isdisjoint(
                    topic_of(older.text).words
                ):
                    yield Pair(newer, older, (newer.operation, older.operation) in taken_back)


def _fact(text: str, kind: str, operation: int) -> MustKeep:
    kind_of = MustKeepKind(kind.replace("_", " "))
    return MustKeep(kind=kind_of, text=text, operation=operation, timestamp=START + timedelta(minutes=operation))


def fit_pairs(pairs: Sequence[Pair]) -> tuple[LogisticRegression, LogisticRegression]:
    """Fit what tells whether a text takes something back, and what weighs two facts."""
    texts = list(
        {
            pair.newer.text: any(
                other.changed and other.newer.text == pair.newer.text and other.older.kind in HOLDING for other in pairs
            )
            for pair in pairs
        }.items()
    )
    matrix, truth = matrix_of([Sentence(text=text) for text, _ in texts]), [back for _, back in texts]
    model = LogisticRegression(C=4.0, max_iter=400, class_weight="balanced")
    logits = cross_val_predict(model, matrix, truth, cv=5, method="decision_function")
    back_of = {text: float(logit) for (text, _), logit in zip(texts, logits, strict=True)}
    rows = np.array([pair_features(pair.newer, pair.older, back_of[pair.newer.text]) for pair in pairs])
    changed = np.array([pair.changed for pair in pairs])
    weigh = LogisticRegression(C=1.0, max_iter=2_000)
    shares = cross_val_predict(weigh, rows, changed, cv=5, method="predict_proba")[:, 1]
    for threshold in (0.35, 0.5, 0.6, 0.7):
        found = shares >= threshold
        print(
            f"pairs from {threshold}: recall {(found & changed).sum() / changed.sum():.3f}, precision "
            f"{(found & changed).sum() / max(1, found.sum()):.3f} of {changed.sum()} in {len(pairs)}"
        )
    return model.fit(matrix, truth), weigh.fit(rows, changed)


def write_table(
    model: LogisticRegression,
    rarity: NDArray[np.float16],
    back: LogisticRegression | None = None,
    weigh: LogisticRegression | None = None,
) -> None:
    """Store the weights of the models, those of n-grams in eight bits each."""
    backs = back.coef_.T if back is not None else np.ones((COLUMNS, 1))
    weights: NDArray[np.float64] = np.hstack([model.coef_.T, backs])
    scales = np.abs(weights).max(axis=0) / 127
    bias = np.append(model.intercept_, back.intercept_ if back is not None else 0.0)
    width = len(pair_features(_fact("a", "decision", 2), _fact("b", "decision", 1), 0.0)) if TABLE.exists() else 1
    np.savez_compressed(
        TABLE,
        weights=np.round(weights / scales).astype(np.int8),
        scales=scales.astype(np.float32),
        bias=bias.astype(np.float32),
        classes=np.array(CLASSES),
        rarity=rarity,
        pairs=(weigh.coef_[0] if weigh is not None else np.zeros(width)).astype(np.float32),
        pair_bias=np.float32(weigh.intercept_[0] if weigh is not None else 0.0),
    )
    classifier.load_table.cache_clear()
    topic_of.cache_clear()
    print(f"{TABLE.name}: {TABLE.stat().st_size:,} bytes")


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cross", action="store_true", help="cross-validate by writer, write nothing")
    options = parser.parse_args()
    sentences, labels, writers = examples_of(load_records(DATA, "train"))
    print(len(sentences), "sentences:", dict(Counter(CLASSES[label] for label in labels)))
    if options.cross:
        cross_validate(sentences, labels, writers)
        return
    talk, talk_labels, talk_weights = examples_of_dialogues(DIALOGUES)
    model = fit([*sentences, *talk], [*labels, *talk_labels], [*np.ones(len(labels)), *talk_weights])
    rarity = rarity_of([*sentences, *talk])
    write_table(model, rarity)
    # what weighs pairs is fitted on facts as the first model finds them
    pairs = list(chain(pairs_of(PAIRS), pairs_of_dialogues(DIALOGUES)))
    write_table(model, rarity, *fit_pairs(pairs))


if __name__ == "__main__":
    main()
