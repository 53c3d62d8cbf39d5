"""Train the model of `orchestra_mem/core/facts/values.py`, and write it into the table of facts, `facts.npz`.

The rarity of words is counted first, in the training texts of each language of `facts.jsonl` and `fact-series.jsonl`.

    python tools/train_values.py            # writes the table
    python tools/train_values.py --cross    # prints a cross-validation by writer, writes nothing

The training data are the pairs of one form in the splits `train`, `alike` and `lifted` of
`benchmarks/data/fact-pairs.jsonl`, each in both orders. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._facts import Pair, load_pairs, load_records, load_series
from orchestra_mem.core.facts import classifier
from orchestra_mem.core.facts.candidates import WORD
from orchestra_mem.core.facts.pairs import differing_places
from orchestra_mem.core.facts.values import COLUMNS, COMMON, value_columns

HERE = Path(__file__).resolve().parents[1]
DATA = HERE / "benchmarks" / "data"
PAIRS = DATA / "fact-pairs.jsonl"
TABLE = HERE / "orchestra_mem" / "core" / "facts" / "facts.npz"
_STRENGTH = 1.0  # inverse regularisation strength, chosen by cross-validation
_EXCEPTIONS = 2.0  # weight of pairs of which one has more words, half of them exceptions: others hardly have any
_HANDS_OF_EXCEPTIONS = frozenset({"ac1", "ac2"})
_FEW_TEXTS = 1_000  # as many texts without a word are added, so that no word is common in a language with few texts


def rarity_of_words() -> NDArray[np.float16]:
    """Return the log of the inverse text frequency of each word: float16, shape (classifier.COLUMNS,), 0 to `COMMON`.

    That of the language which has the word most often counts: over all of them, only English has common words.
    """
    said: dict[str, list[str]] = defaultdict(list)
    records = load_records(DATA / "facts.jsonl", "train")
    for record in (*records, *(each.record for each in load_series(DATA / "fact-series.jsonl", "train"))):
        said[record.language] += [line.text for line in record.lines]
    rarity = np.full(classifier.COLUMNS, COMMON)
    for texts in said.values():
        seen = Counter(map(classifier.column_of, (word for text in texts for word in {*WORD.findall(text.lower())})))
        for column, count in seen.items():
            rarity[column] = min(rarity[column], np.log((len(texts) + _FEW_TEXTS) / count))
    return rarity.clip(0).astype(np.float16)


def matrix_of(pairs: Sequence[Pair]) -> csr_matrix:
    """Return the features of pairs as a sparse matrix, shape (n, COLUMNS)."""
    cells = [(row, column) for row, pair in enumerate(pairs) for column in value_columns(pair.newer, pair.older)]
    rows, columns = np.array(cells).T
    return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(pairs), COLUMNS))


def fit(pairs: Sequence[Pair]) -> LogisticRegression:
    """Fit the model on pairs in both orders: which of the two came first does not tell a value from a subject."""
    both = [*pairs, *(Pair(pair.older, pair.newer, pair.changed) for pair in pairs)]
    weights = [_EXCEPTIONS if pair.writer in _HANDS_OF_EXCEPTIONS else 1.0 for pair in pairs] * 2
    model = LogisticRegression(C=_STRENGTH, max_iter=1_000)
    return model.fit(matrix_of(both), [pair.changed for pair in both], sample_weight=weights)


def cross_validate(hands: dict[str, list[Pair]]) -> None:
    """Print the shares of pairs of left-out writers that are taken for two values, by whether they are."""
    taken: dict[bool, list[bool]] = {True: [], False: []}
    for hand, own in hands.items():
        model = fit([pair for other, pairs in hands.items() if other != hand for pair in pairs])
        for pair, is_value in zip(own, model.predict(matrix_of(own)).tolist(), strict=True):
            taken[pair.changed].append(is_value)
    for changed, found in taken.items():
        print(f"{'two values' if changed else 'two subjects'}: {np.mean(found):.3f} of {len(found)}")


def main() -> None:
    """Train the model and write it into the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cross", action="store_true", help="cross-validate by writer, write nothing")
    crosses = parser.parse_args().cross
    if not crosses:
        store(value_rarity=rarity_of_words())
    hands: dict[str, list[Pair]] = {}
    for split in ("train", "alike", "lifted"):
        for pair in load_pairs(PAIRS, split):
            if differing_places(pair.newer, pair.older) > 0:
                hands.setdefault(pair.writer.partition("-")[0], []).append(pair)
    if crosses:
        cross_validate(hands)
        return
    model = fit([pair for pairs in hands.values() for pair in pairs])
    store(values=model.coef_[0].astype(np.float32), value_bias=np.float32(model.intercept_[0]))
    print(f"{TABLE.name}: {TABLE.stat().st_size:,} bytes")


def store(**arrays: NDArray[np.floating] | np.float32) -> None:
    """Replace arrays of the table."""
    with np.load(TABLE) as stored:
        kept = {name: stored[name] for name in stored.files}
    np.savez_compressed(TABLE, **{**kept, **arrays})


if __name__ == "__main__":
    main()
