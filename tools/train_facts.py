"""Train the classifier of facts and write its table, `orchestra_mem/core/facts/facts.npz`.

    python tools/train_facts.py            # writes the table
    python tools/train_facts.py --cross    # prints a cross-validation by writer, writes nothing
    python tools/train_facts.py --pairs    # trains only the model of pairs and its signs, keeps the rest of the table
    python tools/train_facts.py --sentences    # keeps the model of pairs, its signs and the rarity of words

The training data are split `train` of `facts.jsonl`, `fact-pairs.jsonl` and `fact-series.jsonl` in `benchmarks/data/`,
the splits `contrast` and `lifted`, and the dialogues that are not held out; split `test` is never read. One model
separates facts from other sentences; another, trained only on facts, classifies their kinds; a third classifies pairs
of facts. Needs scikit-learn; run `tools/train_values.py` afterwards.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags, hstack, vstack
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._dialogues import is_unread, load_dialogues
from benchmarks._facts import (
    NO_FACT,
    Pair,
    Record,
    Series,
    load_pairs,
    load_records,
    load_series,
    meets,
    operation_of,
    operations_of,
)
from benchmarks.facts import Tally, tally_records
from orchestra_mem.core.facts import classifier
from orchestra_mem.core.facts.candidates import HOLDING
from orchestra_mem.core.facts.classifier import COLUMNS, SIGNS, Sentence, column_of, features_of
from orchestra_mem.core.facts.pairs import differing_places, pair_features, topic_of
from orchestra_mem.core.facts.prose import Source, fields_of
from orchestra_mem.core.facts.sentences import candidates_of
from orchestra_mem.core.text import content_stems
from orchestra_mem.types import MustKeepKind
from tools.fact_pairs import (
    pairs_across_series,
    pairs_by_chance,
    pairs_of_dialogues,
    pairs_of_series,
    unrelated_decisions,
)

HERE = Path(__file__).resolve().parents[1]
DATA = HERE / "benchmarks" / "data" / "facts.jsonl"
PAIRS = DATA.with_name("fact-pairs.jsonl")
SERIES = DATA.with_name("fact-series.jsonl")
DIALOGUES = DATA.with_name("dialogues.jsonl")
TABLE = HERE / "orchestra_mem" / "core" / "facts" / "facts.npz"
CLASSES = ("none", "constraint", "decision", "open item", "role", "insight", "failure", "completion")
# Inverse regularisation strengths, chosen by cross-validation: of the model of facts, and of the model of kinds.
_STRENGTH, _KIND_STRENGTH = 6.0, 20.0
# Weights of examples, chosen by cross-validation: in dialogues only some of the facts are marked, in most real text
# facts are rare, and only few records are complete files.
_MARKED, _UNMARKED, _BARE, _RARE, _PLAIN, _FILE = 2.0, 0.3, 0.5, 4.0, 12.0, 4.0
_RARE_SHARE = 0.15
_FACTS = 0.35  # share of facts by weight: the package's thresholds hold for it, whatever texts are added
# Writers of short, plain lines: few examples that represent much of what people say.
_PLAIN_HANDS = frozenset({"h40", "h41", "h42", "h43", "x1", "x2", "x3", "x4"})
# Writers, or the letters that their names begin with, whose records have another weight than their share of facts
# would give: everyday text at the weight of rare facts hides plain rules.
_WEIGHTS = {"aa": 1.5, "ab1": 1.0, "ab3": 3.0, "ab4": 3.0, "tw": 4.0}
_DECIDED, _LEFT_OPEN = ("decision", "constraint", "role"), ("none", "open_item")
_BESIDE = 0.04  # weight of decided lines without a counterpart, chosen by leaving out one writer of contrasts
_FILE_HANDS = frozenset("np")  # the writers n1, p1 and so on wrote complete files
# Scales of n-grams and of predicted kinds in the features of a fix, chosen by cross-validation by writer.
_GRAM_SCALE, _KIND_SCALE = 4.0, 0.3
# Weights of pairs outside of series, as series have many: of any pair, of a pair that differs only in a value, and of
# facts of unrelated series.
_PAIR, _OF_ONE_FORM, _ACROSS = 3.0, 14.0, 0.5
_AS_DENSE = ("talk", "notes")  # series of commits and of agents hold more facts than real ones
_FOLDS = 6
_STEPS = 127  # quantisation steps per sign, all that int8 has: half as many let 5 % more text pass as facts
_KIND_OF = {"rule": "constraint", "reversal": "decision", "role": "role", "open": "open item"}


class Examples(NamedTuple):
    """Sentences as the package reads them, with the class and the weight of each."""

    sentences: list[Sentence]
    labels: list[int]
    weights: list[float]

    def with_those_of(self, other: Examples) -> Examples:
        """Return these examples followed by others."""
        return Examples(self.sentences + other.sentences, self.labels + other.labels, self.weights + other.weights)


class Linear(NamedTuple):
    """Weights (float64, shape (COLUMNS, classes)) and biases (shape (classes,)) of a linear model."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    def beside(self, other: Linear) -> Linear:
        """Return a model with the classes of both."""
        return Linear(np.column_stack((self.weights, other.weights)), np.append(self.bias, other.bias))


_UNKNOWN = Linear(np.ones((COLUMNS, SIGNS)), np.zeros(SIGNS))  # placeholder for the signs before they are trained


def hand_of(record: Record) -> str:
    """Return the person who wrote a record; one person may write as several writers (`h40-…`)."""
    return record.writer.partition("-")[0]


def examples_of(records: Sequence[Record]) -> Examples:
    """Return the sentences of records as examples."""
    examples = Examples([], [], [])
    for record in records:
        hand, weight = hand_of(record), _RARE if _share_of_facts([record]) < _RARE_SHARE else 1.0
        weight = _WEIGHTS.get(hand, _WEIGHTS.get(hand[:2], weight))
        if hand in _PLAIN_HANDS:
            weight = _PLAIN
        if hand[0] in _FILE_HANDS:
            weight *= _FILE
        for operation, lines in operations_of(record):
            for field in fields_of(operation):
                if field.source is Source.OUTPUT:
                    continue
                for candidate in candidates_of(field):
                    told = [line for line in lines if meets(candidate.text, line)]
                    if not told:
                        continue
                    # missing full stops join lines into one candidate: a line with a fact decides the class
                    line = max(told, key=lambda line: (line.kind not in NO_FACT, len(line.core)))
                    kind = "none" if line.kind in NO_FACT else line.kind.replace("_", " ")
                    examples.sentences.append(candidate.sentence)
                    examples.labels.append(CLASSES.index(kind))
                    examples.weights.append(weight)
    return examples


def examples_of_dialogues(file: Path) -> Examples:
    """Return the sentences of dialogues as examples; an unmarked sentence is usually, but not always, no fact."""
    examples = Examples([], [], [])
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
                examples.sentences.append(candidate.sentence)
                examples.labels.append(CLASSES.index(kind or "none"))
                examples.weights.append(_MARKED if kind else _UNMARKED)
    return examples


def matrix_of(sentences: Sequence[Sentence]) -> csr_matrix:
    """Return the features of sentences as a sparse matrix, shape (n, COLUMNS)."""
    features = features_of(sentences)
    return csr_matrix((features.values, (features.rows, features.columns)), shape=(len(sentences), COLUMNS))


def fit(examples: Examples) -> Linear:
    """Fit the models of facts and of kinds; sentences that need no context are added again without their context."""
    bare = [
        number
        for number, each in enumerate(examples.sentences)
        if not each.heading and not any(label.startswith("tick") for label in each.circumstances)
    ]
    plain = [replace(examples.sentences[number], circumstances=()) for number in bare]
    matrix = vstack((matrix_of(examples.sentences), matrix_of(plain))).tocsr()
    truth = np.array([*examples.labels, *(examples.labels[number] for number in bare)])
    weights = np.array([*examples.weights, *(_BARE * examples.weights[number] for number in bare)])
    weights = weights * _balance(truth)
    told, none = weights[truth > 0].sum(), weights[truth == 0].sum()
    weights[truth == 0] *= told / none * (1 - _FACTS) / _FACTS
    facts = np.flatnonzero(truth)
    columns, biases = [], []
    for rows, wanted, scale, strength in (
        (slice(None), [0], _telling(matrix, truth != 0), _STRENGTH),
        (facts, range(1, len(CLASSES)), _rare(matrix[facts]), _KIND_STRENGTH),
    ):
        scaled = (matrix[rows] @ diags(scale)).tocsr()
        for kind in wanted:
            model = LogisticRegression(
                C=strength, solver="liblinear", dual=True, tol=0.1, max_iter=50, random_state=0
            ).fit(scaled, truth[rows] == kind, sample_weight=weights[rows])
            # Folding the scale into the weights makes it free at run time.
            columns.append(model.coef_[0] * scale)
            biases.append(model.intercept_[0])
    return Linear(np.vstack(columns).T, np.array(biases))


def _telling(matrix: csr_matrix, truth: NDArray[np.bool_], least: int = 3) -> NDArray[np.float64]:
    """Return scales by how unevenly the classes use a column, as in naive Bayes features (Wang and Manning, 2012).

    Columns seen in fewer than `least` rows get 0.
    """
    seen = matrix > 0
    on_both = [np.asarray(seen[side].sum(axis=0)).ravel() for side in (truth, ~truth)]
    shares = [(counts + 0.5) / (counts + 0.5).sum() for counts in on_both]
    scale: NDArray[np.float64] = np.sqrt(0.2 + np.abs(np.log(shares[0] / shares[1])))
    return np.where(on_both[0] + on_both[1] >= least, scale, 0.0)


def _rare(matrix: csr_matrix) -> NDArray[np.float64]:
    """Return scales that favour rare columns, as in tf-idf; columns seen only once get 0."""
    seen = np.asarray((matrix > 0).sum(axis=0)).ravel()
    scale: NDArray[np.float64] = np.sqrt((np.log((1 + matrix.shape[0]) / (1 + seen)) + 1) / 4)
    return np.where(seen >= 2, scale, 0.0)


def cross_validate(records: Sequence[Record]) -> None:
    """Print recall, kinds and precision of facts in records of left-out writers, by density, nature and language."""
    hands = sorted({hand_of(record) for record in records} - {"own"})
    talk, tallies = examples_of_dialogues(DIALOGUES), {"": Tally()}
    for fold in range(_FOLDS):
        out = set(hands[fold::_FOLDS])
        model = fit(examples_of([record for record in records if hand_of(record) not in out]).with_those_of(talk))
        with in_use(model):
            for record in (record for record in records if hand_of(record) in out):
                groups = (
                    "",
                    record.nature,
                    f"language {record.language}",
                    f"{_density(record, records)} {record.nature}",
                )
                for group in groups:
                    tally_records([record], tallies.setdefault(group, Tally()))
    for name, tally in sorted(tallies.items()):
        print(
            f"{name or 'all':24} recall {tally.found / tally.marked:.3f}, right kind "
            f"{tally.right_kind / tally.marked:.3f}, precision {tally.told_rightly / max(1, tally.told):.3f}, "
            f"{tally.kept / tally.characters:.3f} kept, {tally.marked} facts"
        )


def _density(record: Record, records: Sequence[Record]) -> str:
    """Classify how frequent facts are in a writer's records: `rare`, `some` or `dense`."""
    share = _share_of_facts([other for other in records if hand_of(other) == hand_of(record)])
    return "rare" if share < _RARE_SHARE else "some" if share < 0.38 else "dense"


def _share_of_facts(records: Sequence[Record]) -> float:
    lines = [line for record in records for line in record.lines]
    return sum(line.kind not in NO_FACT for line in lines) / len(lines)


@contextmanager
def in_use(model: Linear) -> Iterator[None]:
    """Make the package use a model within the context."""
    bias = np.append(model.bias, _UNKNOWN.bias).astype(np.float32)
    table = classifier.load_table()._replace(
        weights=np.hstack((model.weights, _UNKNOWN.weights)).astype(np.float32),
        scales=np.ones_like(bias),
        bias=bias,
    )
    with patch.object(classifier, "load_table", lambda: table):
        yield


def _balance(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return weights that favour rare kinds of facts by the square root of their rarity."""
    counts = np.bincount(labels, minlength=len(CLASSES)).astype(float)
    weights = np.sqrt(counts[1:].mean() / np.maximum(counts, 1))
    weights[0] = 1.0
    balanced: NDArray[np.float64] = weights[labels]
    return balanced


def rarity_of(sentences: Sequence[Sentence]) -> NDArray[np.float16]:
    """Return the log of the inverse sentence frequency of each word: float16, shape (COLUMNS,)."""
    seen = Counter(column_of(word) for each in sentences for word in {*content_stems(each.text)})
    counts = np.full(COLUMNS, 0.5)
    for column, count in seen.items():
        counts[column] = count
    return np.log(len(sentences) / counts).clip(0, 8).astype(np.float16)


def fit_pairs(
    chosen: Sequence[Pair], natural: Sequence[Pair], kinds: Linear, weights: NDArray[np.float64]
) -> tuple[tuple[Linear, Linear], Linear]:
    """Fit the signs of a text (that it reverses something, that it reports a fix), and the model of pairs.

    The sign of a fix is fitted jointly with the model of pairs, so that it explains what the other features do not.
    Changes are far more frequent among `chosen` pairs than among `natural` ones, which occur as in real text. An extra
    column absorbs this difference and is dropped afterwards, which calibrates likelihoods for real text. `weights` are
    those of all pairs, the chosen ones first.
    """
    pairs = [*chosen, *natural]
    is_chosen = np.array([[float(number < len(chosen))] for number in range(len(pairs))])
    texts = list(
        {
            pair.newer.text: any(
                other.changed and other.newer.text == pair.newer.text and other.older.kind in HOLDING for other in pairs
            )
            for pair in pairs
        }.items()
    )
    matrix, truth = matrix_of([Sentence(text=text) for text, _ in texts]), [back for _, back in texts]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = LogisticRegression(C=4.0, max_iter=400, class_weight="balanced")
    logits = cross_val_predict(model, matrix, truth, cv=folds, method="decision_function")
    back_of = {text: float(logit) for (text, _), logit in zip(texts, logits, strict=True)}
    weighed = [pair_features(pair.newer, pair.older, (back_of[pair.newer.text], 0.0)) for pair in pairs]
    failed = np.array([[pair.older.kind is MustKeepKind.FAILURE] for pair in pairs])
    grams = matrix_of([Sentence(text=pair.newer.text) for pair in pairs])
    likely = grams @ kinds.weights + kinds.bias
    blocks = (np.array(weighed), is_chosen, grams.multiply(_GRAM_SCALE * failed), _KIND_SCALE * failed * likely)
    rows = hstack(blocks).tocsr()
    changed = np.array([pair.changed for pair in pairs])
    weigh = LogisticRegression(C=1.0, max_iter=2_000, solver="liblinear", tol=1e-3, random_state=0)
    shares = cross_val_predict(weigh, rows, changed, cv=folds, method="predict_proba")[:, 1]
    shares, met = shares[len(chosen) :], changed[len(chosen) :]
    for threshold in (0.2, 0.3, 0.4, 0.5, 0.6):
        found = shares >= threshold
        print(
            f"natural pairs from {threshold}: recall {(found & met).sum() / met.sum():.3f}, precision "
            f"{(found & met).sum() / max(1, found.sum()):.3f} of {met.sum()} in {len(met)}"
        )
    model.fit(matrix, truth)
    fitted = weigh.fit(rows, changed, sample_weight=weights).coef_[0]
    of_pair, _, of_grams, of_kinds = np.split(fitted, [len(weighed[0]), len(weighed[0]) + 1, -len(CLASSES)])
    mends = _GRAM_SCALE * of_grams + _KIND_SCALE * kinds.weights @ of_kinds
    of_pair[-1] = 1.0  # the sign of a fix already includes its weight
    mending = Linear(mends[:, None], np.array([_KIND_SCALE * kinds.bias @ of_kinds]))
    return (Linear(model.coef_.T, model.intercept_), mending), Linear(of_pair, weigh.intercept_)


def _is_lifting(pair: Pair) -> bool:
    return pair.newer.kind is MustKeepKind.COMPLETION and pair.older.kind in HOLDING


def _fit_pairs_of(
    written: Sequence[Pair], series: Sequence[Series], model: Linear, but: Callable[[Pair], bool] = lambda _: False
) -> tuple[tuple[Linear, Linear], Linear]:
    """Fit the signs and the model of pairs to written pairs, and to those of dialogues and series except `but`."""
    # The series contain hardly any pairs that differ only in a value, the plainest form of a reversal.
    of_one_form = [pair for pair in written if differing_places(pair.newer, pair.older) >= 0]
    others = [pair for pair in written if differing_places(pair.newer, pair.older) < 0]
    chosen = [*others, *pairs_by_chance(written), *unrelated_decisions(written)]
    natural = pairs_of_dialogues(DIALOGUES), of_one_form, pairs_of_series(series), pairs_across_series(series)
    parts = [[pair for pair in part if not but(pair)] for part in (chosen, *natural)]
    weights = np.repeat([_PAIR, _PAIR, _OF_ONE_FORM, 1.0, _ACROSS], [len(part) for part in parts])
    return fit_pairs(parts[0], list(chain(*parts[1:])), model, weights)


def fit_open(records: Sequence[Record], contrasts: Sequence[Record]) -> Linear:
    """Fit the sign that a text only proposes, wishes, asks or denies what it says.

    `contrasts` tell both of the same matters, once decided and once left open. The decided lines of all `records` make
    up for what such pairs lack.
    """
    decided = [line for record in records for line in record.lines if line.kind in _DECIDED]
    told = [line for record in contrasts for line in record.lines if line.kind in (*_DECIDED, *_LEFT_OPEN)]
    matrix = matrix_of([Sentence(text=line.core) for line in (*decided, *told)])
    weights = np.repeat([_BESIDE, 1.0], [len(decided), len(told)])
    truth = np.array([line.kind in _LEFT_OPEN for line in (*decided, *told)])
    scale = _telling(matrix, truth, least=1)
    model = LogisticRegression(C=30.0, solver="liblinear", dual=True, tol=0.01, max_iter=200, random_state=0)
    model.fit((matrix @ diags(scale)).tocsr(), truth, sample_weight=weights)
    return Linear((model.coef_ * scale).T, model.intercept_)


def write_table(model: Linear, rarity: NDArray[np.float16], signs: Sequence[Linear], weigh: Sequence[Linear]) -> None:
    """Store the weights of the models; those of n-grams are quantised to int8, which compresses well."""
    for sign in signs:
        model = model.beside(sign)
    weights = model.weights
    scales = np.abs(weights).max(axis=0) / _STEPS
    kept = classifier.load_table()  # `train_values.py` trains these
    np.savez_compressed(
        TABLE,
        weights=np.round(weights / scales).astype(np.int8),
        scales=scales.astype(np.float32),
        bias=model.bias.astype(np.float32),
        classes=np.array(CLASSES),
        rarity=rarity,
        pairs=np.array([each.weights for each in weigh], dtype=np.float32),
        pair_bias=np.concatenate([each.bias for each in weigh]).astype(np.float32),
        values=kept.values,
        value_bias=np.float32(kept.value_bias),
        value_rarity=kept.value_rarity,
    )
    classifier.load_table.cache_clear()
    topic_of.cache_clear()
    print(f"{TABLE.name}: {TABLE.stat().st_size:,} bytes")


def main() -> None:
    """Train the models and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cross", action="store_true", help="cross-validate by writer, write nothing")
    parser.add_argument("--pairs", action="store_true", help="train only the model that weighs pairs")
    parser.add_argument("--sentences", action="store_true", help="keep the model that weighs pairs")
    options = parser.parse_args()
    series = list(load_series(SERIES, "train"))
    records = [*load_records(DATA, "train"), *(each.record for each in series if each.nature in _AS_DENSE)]
    if options.cross:
        cross_validate(records)
        return
    if options.pairs:
        table = classifier.load_table()
        stored, scales, bias = table.weights[:, :-SIGNS], table.scales[:-SIGNS], table.bias[:-SIGNS]
        model = Linear(stored.astype(float) * scales, bias.astype(float))
        rarity = table.rarity
    else:
        examples = examples_of(records)
        print(len(examples.labels), "sentences:", dict(Counter(CLASSES[label] for label in examples.labels)))
        examples = examples.with_those_of(examples_of_dialogues(DIALOGUES))
        model, rarity = fit(examples), rarity_of(examples.sentences)
    contrasts = [*load_records(DATA, "contrast"), *(each for each in records if hand_of(each) == "r4")]
    left_open = fit_open(records, contrasts)
    if options.sentences:
        table, kept = classifier.load_table(), slice(-SIGNS, -1)
        signs = Linear(table.weights[:, kept].astype(float) * table.scales[kept], table.bias[kept].astype(float))
        weigh = [Linear(of_pair, np.array([bias])) for of_pair, bias in zip(table.pairs, table.pair_bias, strict=True)]
        write_table(model, table.rarity, [signs, left_open], weigh)
        return
    if not options.pairs:
        write_table(model, rarity, [_UNKNOWN], [Linear(np.zeros(1), np.zeros(1))])
    # The models of pairs are fitted on the facts that the first models find.
    written = list(load_pairs(PAIRS, "train"))
    (back, _), holding = _fit_pairs_of([*written, *load_pairs(PAIRS, "lifted")], series, model)
    # Beside the many completions that lift no rule, those that close something would be found less often.
    (_, mends), unfinished = _fit_pairs_of(written, series, model, but=_is_lifting)
    write_table(model, rarity, [back, mends, left_open], [holding, unfinished])


if __name__ == "__main__":
    main()
