"""Train the reader of intents and write its table, `orchestra_mem/orchestrator/intents/intents.npz`.

Reads only the train split of `benchmarks/data/intents.jsonl`. The same data produce the same file. With `--cross` one
third of the writers at a time is left out of training, and the accuracy on each writer's lines is printed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import wordllama
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack
from sklearn.cluster import MiniBatchKMeans
from sklearn.svm import LinearSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.intents import judge, load_records
from orchestra_mem.orchestrator.intents import Parsed
from orchestra_mem.orchestrator.intents.classifier import (
    FRAGMENT,
    MODEL,
    NOTHING,
    SLOTS,
    TAGS,
    TWO_SIDED,
    Classifier,
    Token,
    Vocabulary,
    hashes_of,
    line_features,
    tag_features,
    tag_hashes,
    tokens_of,
)
from orchestra_mem.orchestrator.intents.grammar import borders, parse_line
from orchestra_mem.orchestrator.intents.reading import Guess, Reader, read_line

Record = dict[str, Any]
Weights = NDArray[np.floating[Any]]
Judged = tuple[Guess, bool]  # a reading of a line, and whether it is right
Example = tuple[str, str]  # a piece of a line, and its class
Tagged = tuple[list[Token], str, list[int]]  # the tokens of a piece, its class, and the index of each token's tag

_STRENGTH = 0.3  # inverse regularisation strength
_SHARPNESS = 2.1  # scale from margins to logits; chosen with --cross
_KINDS_OF_WORDS = 300
_FEATURES, _LEVELS = 48_000, 30  # quantisation levels per sign: more features in few levels beat few in many
_TAG_FEATURES, _TAG_LEVELS = 34_000, 127
_COMMON_TO, _COMMON_IN_SLOTS = 2, 8  # number of writers
_RENAMED = 2
_ROUNDS = 60
_TAG_PENALTY = 1.0
_FOLDS = 3
_TRAITS, _TRAIT_COUNT, _TRAIT_PENALTY = 10_000, 5, 4.0
_JOINED = 4  # readings considered for each piece of a line that was cut
_SEED = 7
_POINTS = re.compile(r"[#\d ]+|it|them|they|this|that|these|those|both|all|both of them|all of them", re.IGNORECASE)


def train(records: Sequence[Record]) -> dict[str, Any]:
    """Train all three models; return the arrays that `Classifier` takes.

    The choice among readings is trained on readings by models that have not seen the writers of the lines.
    """
    chosen = [
        found
        for kept, left in _folds(records)
        for reader in [Reader(Classifier({**_tables(kept), **_NO_CHOICE}))]
        for record in left
        if (found := _judged(record, reader))
    ]
    return {**_tables(records), **_choice(chosen)}


def _folds(records: Sequence[Record]) -> Iterable[tuple[list[Record], list[Record]]]:
    """Split the lines by writer into parts of about equal size; yield the rest and the part."""
    parts: list[list[Record]] = [[] for _ in range(_FOLDS)]
    counts = Counter(record["writer"] for record in records)
    for writer, _ in counts.most_common():
        min(parts, key=len).extend(record for record in records if record["writer"] == writer)
    for part in parts:
        yield [record for other in parts if other is not part for record in other], part


def _tables(records: Sequence[Record]) -> dict[str, Any]:
    """Train the models of classes and of tags."""
    words = {"common": np.array(sorted(_common(records))), **kinds_of_words()}
    plain = [(record["line"], label_of(record["intents"])) for record in records if len(record["intents"]) < 2]
    first = Classifier({**words, **_classes(plain, Vocabulary(words)), **_NO_TAGS})
    pieces = plain + _with_other_texts(records) + [each for record in records for each in _pieces(record, first)]
    tagged = [found for record in records for found in _tagged(record, first)]
    known = Vocabulary(words)
    return {**words, **_classes(_with_typos(pieces), known), **_tags([*tagged, *_with_other_names(tagged)], known)}


@cache
def kinds_of_words() -> dict[str, NDArray[np.integer[Any]]]:
    """Cluster the words that are single tokens of WordLlama by their vectors into kinds of similar meaning."""
    folder = Path(wordllama.__file__).parent
    found = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    places = {
        token[1:]: place
        for token, place in found.tokenizer.get_vocab().items()
        if re.fullmatch("\u2581[a-z]{3,}", token)
    }
    words = sorted(places)
    vectors = found.embedding[[places[word] for word in words]].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-6
    kinds = MiniBatchKMeans(_KINDS_OF_WORDS, random_state=0, n_init=3).fit_predict(vectors)
    hashes = np.array(hashes_of(words), dtype=np.uint32)
    order = np.argsort(hashes)
    return {"words": _gaps(hashes[order]), "kinds": kinds[order].astype(np.uint16)}


def _with_other_texts(records: Sequence[Record]) -> list[Example]:
    """Return each line of one intent with other names and texts in it, so that these carry no information."""
    rng = random.Random(_SEED)
    texts: dict[str, list[str]] = defaultdict(list)
    for record in records:
        for key, text in _texts_of(record["intents"]):
            texts[key].append(text)
    found = []
    for record in records:
        line = record["line"]
        for key, text in _texts_of(record["intents"]) if len(record["intents"]) == 1 else ():
            if line.count(text) == 1:
                line = line.replace(text, rng.choice(texts[key]))
        if line != record["line"]:
            found.append((line, label_of(record["intents"])))
    return found


def _texts_of(intents: Sequence[Record]) -> Iterable[tuple[str, str]]:
    """Yield the texts that intents quote from the line, each with the group of texts that can replace it."""
    for intent in intents:
        said = [("name", intent.get("target", "")), ("name", intent.get("other", ""))]
        said += [("title", title) for title in intent.get("titles", ())]
        if intent["action"] not in ("prioritise", "list", "recent"):
            said.append((intent["action"], intent.get("value", "")))
        yield from ((key, text) for key, text in said if len(text) > 2 and not _POINTS.fullmatch(text))


def _common(records: Sequence[Record]) -> set[str]:
    """Return words that many writers use whatever the subject; a word from names needs more writers."""
    frames: dict[str, set[str]] = defaultdict(set)
    names: dict[str, set[str]] = defaultdict(set)
    for record in records:
        said = " ".join(
            text
            for intent in record["intents"]
            for text in (
                intent.get("target", ""),
                intent.get("other", ""),
                intent.get("value", ""),
                *intent.get("titles", ()),
            )
        )
        in_slots = {token.word for token in tokens_of(said)}
        for token in tokens_of(record["line"]):
            (names if token.word in in_slots else frames)[token.word].add(record["writer"])
    common = {word for word, found in frames.items() if len(found) >= _COMMON_TO}
    return common | {word for word, found in names.items() if len(found) >= _COMMON_IN_SLOTS}


def label_of(intents: Sequence[Record]) -> str:
    """Return the class of a line of at most one intent; adding counts as creating under a parent."""
    action = intents[0]["action"] if intents else NOTHING
    return "create" if action == "add" else str(action)


def _pieces(record: Record, first: Classifier) -> Iterable[Example]:
    """Cut a line at its possible borders; of a line of one intent, one half has the intent and one is a fragment."""
    line, intents = record["line"], record["intents"]
    if len(intents) > 1:
        yield from zip(_cut(line, intents, first), [label_of([intent]) for intent in intents], strict=False)
    elif intents:
        for left, right in borders(line):
            halves = line[:left], line[right:]
            said = [first.probabilities(half).get(label_of(intents), 0.0) for half in halves]
            says = int(said[1] > said[0])
            yield halves[1 - says], FRAGMENT
            yield halves[says], label_of(intents)


def _cut(line: str, intents: Sequence[Record], first: Classifier) -> list[str]:
    """Cut a line of several intents where their actions are most likely."""
    if len(intents) == 1:
        return [line]
    best: tuple[float, list[str]] = (-1.0, [])
    for left, right in borders(line):
        head = first.probabilities(line[:left])[label_of(intents[:1])]
        rest = _cut(line[right:], intents[1:], first)
        if len(rest) == len(intents) - 1:
            share = head * first.probabilities(rest[0])[label_of(intents[1:2])]
            best = max(best, (share, [line[:left], *rest]))
    return best[1]


def _with_typos(examples: Sequence[Example]) -> list[Example]:
    """Add each line once more with a typing error in one of its words."""
    rng = random.Random(_SEED)
    return [*examples, *((_slip(line, rng), label) for line, label in examples)]


def _slip(line: str, rng: random.Random) -> str:
    words = line.split(" ")
    long = [at for at, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    if not long:
        return line
    at = rng.choice(long)
    word = words[at]
    cut = rng.randrange(len(word) - 1)
    one, two = word[cut], word[cut + 1]
    words[at] = word[:cut] + rng.choice([two + one, one, one + one + two]) + word[cut + 2 :]
    return " ".join(words)


def _classes(examples: Sequence[Example], known: Vocabulary) -> dict[str, Any]:
    """Fit the classes, and keep the features of the largest weights."""
    seen = [line_features(line, known) for line, _ in examples]
    labels = [label for _, label in examples]
    counts = Counter(key for groups in seen for group in groups for key in group)
    keys = sorted(key for key, count in counts.items() if count > 1)
    model = _fitted(seen, keys, labels)
    kept = _heaviest(model.coef_.T, _FEATURES)
    weights, scale = _small(_SHARPNESS * model.coef_.T[kept], _LEVELS)
    bias = (_SHARPNESS * model.intercept_).astype(np.float32)
    return {
        "labels": np.array(model.classes_, dtype="U12"), "bias": bias,
        "keys": _gaps(np.array(keys, dtype=np.uint32)[kept]), "weights": weights, "scale": scale,
    }  # fmt: skip


def _fitted(seen: Sequence[Sequence[set[int]]], keys: Sequence[int], labels: Sequence[str]) -> LinearSVC:
    columns = {key: at for at, key in enumerate(keys)}
    total = None
    for group in range(len(seen[0])):
        rows = [sorted(columns[key] for key in groups[group] if key in columns) for groups in seen]
        values = [1 / len(row) ** 0.5 for row in rows for _ in row]
        ends = np.cumsum([0, *map(len, rows)])
        matrix = csr_matrix((values, [at for row in rows for at in row], ends), shape=(len(rows), len(keys)))
        total = matrix if total is None else total + matrix
    return LinearSVC(C=_STRENGTH, random_state=_SEED).fit(total, labels)


def _heaviest(weights: Weights, most: int) -> NDArray[np.intp]:
    """Return the rows of the features with the largest weights, in order."""
    return np.sort(np.argsort(-np.linalg.norm(weights, axis=1), kind="stable")[:most])


def _gaps(keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return sorted keys as differences, which compress better."""
    return np.diff(keys, prepend=np.uint32(0))


def _small(weights: Weights, levels: int) -> tuple[NDArray[np.int8], float]:
    """Quantise weights to a few levels, which compress well; return them and their scale."""
    scale = float(np.abs(weights).max()) / levels
    return np.round(weights / scale).astype(np.int8), scale


_NO_CHOICE: dict[str, Any] = {
    "shares": np.array([1, 1, 1, 0, 0], np.float32),  # the product of the other models' likelihoods
    "trait_keys": np.zeros(0, np.uint32), "trait_weights": np.zeros((0, 1), np.int8), "trait_scale": 1.0,
}  # fmt: skip
_NO_TAGS: dict[str, Any] = {
    **_NO_CHOICE,
    "tag_keys": np.zeros(0, dtype=np.uint32), "tag_weights": np.zeros((0, len(TAGS)), dtype=np.int8), "tag_scale": 1.0,
    "steps": np.zeros((len(TAGS) + 1, len(TAGS)), dtype=np.float32),
}  # fmt: skip


def _tagged(record: Record, first: Classifier) -> Iterable[Tagged]:
    """Yield the pieces of a line with the tag of each token, if the piece contains every text of its intent."""
    intents = record["intents"]
    pieces = _cut(record["line"], intents, first) if intents else []
    for piece, intent in zip(pieces, intents, strict=False):
        tokens = tokens_of(piece)
        tags = tags_of(piece, tokens, intent)
        if tags is not None:
            yield tokens, label_of([intent]), tags


def tags_of(piece: str, tokens: Sequence[Token], intent: Record) -> list[int] | None:
    """Tag the texts of an intent in a piece; None if one of them is not in it."""
    tags = [0] * len(tokens)
    for slot in SLOTS:
        said = intent.get(slot) or []
        for text in [said] if isinstance(said, str) else said:
            if slot == "value" and intent["action"] in ("prioritise", "create", "add"):
                continue
            wanted = "(?:me|i|my|mine|myself)" if (slot, text) == ("value", "me") else re.escape(str(text))
            place = next(
                (
                    span
                    for match in re.finditer(rf"(?<!\w){wanted}(?!\w)", piece, re.IGNORECASE)
                    if (span := [at for at, token in enumerate(tokens) if match.start() <= token.start < match.end()])
                    and not any(tags[at] for at in span)
                ),
                None,
            )
            if not place:
                return None
            for at in place:
                tags[at] = TAGS.index(f"{'B' if at == place[0] else 'I'}-{slot}")
    return tags


def _tags(examples: Sequence[Tagged], known: Vocabulary) -> dict[str, Any]:
    """Fit the tagger: a linear-chain conditional random field (Lafferty et al., 2001) with a Gaussian prior."""
    # Sorted by length and stored by position: the words at position `t` belong to the first `active[t]` pieces.
    examples = sorted((each for each in examples if each[0]), key=lambda each: -len(each[0]))
    features = ((tag_features(tokens, known, two_sided=action in TWO_SIDED), action) for tokens, action, _ in examples)
    seen = [np.concatenate([*tag_hashes(each, [action])], axis=1).tolist() for each, action in features]
    counts = Counter(key for lines in seen for keys in lines for key in keys)
    columns = {key: at for at, key in enumerate(sorted(key for key, count in counts.items() if count > 1))}
    active = [sum(len(lines) > place for lines in seen) for place in range(len(seen[0]))]
    rows = [
        [columns[key] for key in lines[place] if key in columns]
        for place, many in enumerate(active)
        for lines in seen[:many]
    ]
    ends = np.cumsum([0, *map(len, rows)])
    flat = [at for row in rows for at in row]
    words = csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape=(len(rows), len(columns)))
    gold = np.eye(len(TAGS), dtype=np.float32)[
        [tags[place] for place, many in enumerate(active) for _, _, tags in examples[:many]]
    ]
    weights, steps = _fitted_field(words, gold, active)
    keys = np.array(sorted(columns), dtype=np.uint32)
    kept = _heaviest(weights, _TAG_FEATURES)
    small, scale = _small(weights[kept], _TAG_LEVELS)
    return {
        "tag_keys": _gaps(keys[kept]), "tag_weights": small, "tag_scale": scale, "steps": steps.astype(np.float32),
    }  # fmt: skip


def _fitted_field(words: csr_matrix, gold: Weights, active: Sequence[int]) -> tuple[Weights, Weights]:
    """Find the weights of features and of tag transitions that maximise the likelihood of the gold tags."""
    size, places = len(TAGS), [slice(end - many, end) for many, end in zip(active, np.cumsum(active), strict=True)]
    allowed, turned = _start_steps() > -1, words.T.tocsr()
    gold_words, gold_steps = turned @ gold, np.zeros((size + 1, size), np.float32)
    gold_steps[-1] = gold[places[0]].sum(axis=0)
    for before, place in pairwise(places):
        gold_steps[:-1] += gold[before][: place.stop - place.start].T @ gold[place]

    def loss(flat: Weights) -> tuple[float, Weights]:
        weights, steps = np.split(flat.astype(np.float32).reshape(-1, size), [words.shape[1]])
        scores, moves = words @ weights, np.where(allowed, np.exp(steps), 0)
        tops = scores.max(axis=1, keepdims=True)
        odds = np.exp(scores - tops)
        ahead = [odds[places[0]] * moves[-1]]  # forward messages, normalised to sum 1
        sums: list[Weights] = []
        for place in places:
            if sums:
                ahead.append((ahead[-1][: place.stop - place.start] @ moves[:-1]) * odds[place])
            sums.append(ahead[-1].sum(axis=1, keepdims=True))
            ahead[-1] = ahead[-1] / sums[-1]
        shares, met = np.empty_like(scores), np.zeros_like(moves)
        behind = np.ones((0, size), np.float32)  # backward messages
        for at in range(len(places) - 1, -1, -1):
            behind = np.concatenate([behind, np.ones((active[at] - len(behind), size), np.float32)])
            shares[places[at]] = ahead[at] * behind
            behind = odds[places[at]] * behind / sums[at]
            if at:
                met[:-1] += moves[:-1] * (ahead[at - 1][: active[at]].T @ behind)
                behind = behind @ moves[:-1].T
        met[-1] = shares[places[0]].sum(axis=0)
        weighed = np.where(allowed, steps, 0)
        likely = (
            (scores * gold).sum() + (weighed * gold_steps).sum() - tops.sum() - sum(np.log(each).sum() for each in sums)
        )
        penalty = _TAG_PENALTY / 2 * ((weights**2).sum() + (weighed**2).sum())
        slopes = turned @ shares - gold_words + _TAG_PENALTY * weights
        slopes_of_steps = np.where(allowed, met - gold_steps + _TAG_PENALTY * steps, 0)
        return float(penalty - likely), np.concatenate([slopes, slopes_of_steps]).ravel().astype(np.float64)

    found = minimize(
        loss, np.zeros((words.shape[1] + size + 1) * size), jac=True, method="L-BFGS-B", options={"maxiter": _ROUNDS}
    )
    weights, steps = np.split(found.x.reshape(-1, size), [words.shape[1]])
    return weights, np.where(allowed, steps, _start_steps())


def _judged(record: Record, reader: Reader) -> list[Judged]:
    """Judge the readings of a line; empty if all are right or all are wrong."""
    line = record["line"].strip()
    if parse_line(line):
        return []
    found = [
        (each, judge(record, Parsed(intents=each.intents, understood=False)).right)
        for each in reader.readings(line, _JOINED)
    ]
    return found if len({right for _, right in found}) > 1 else []


def _choice(examples: Sequence[list[Judged]]) -> dict[str, Any]:
    """Fit the choice: maximise the share of the right readings among the readings of each line."""
    readings = [reading for found in examples for reading, _ in found]
    rights = np.array([right for found in examples for _, right in found])
    lines = np.repeat(np.arange(len(examples)), [len(found) for found in examples])
    counts = Counter(trait for reading in readings for trait in hashes_of(reading.traits))
    keys = sorted(key for key, count in counts.items() if count >= _TRAIT_COUNT)
    columns = {key: at for at, key in enumerate(keys)}
    rows = [[columns[key] for key in hashes_of(reading.traits) if key in columns] for reading in readings]
    flat = [at for row in rows for at in row]
    traits = csr_matrix((np.ones(len(flat)), flat, np.cumsum([0, *map(len, rows)])), shape=(len(rows), len(keys)))
    likelihoods = np.array([reading.likelihoods for reading in readings])
    seen = hstack([csr_matrix(likelihoods), traits]).tocsr()
    penalty = np.array([0.01] * likelihoods.shape[1] + [_TRAIT_PENALTY] * len(keys))

    def loss(weights: Weights) -> tuple[float, Weights]:
        scores = seen @ weights
        tops = np.maximum.reduceat(scores, np.flatnonzero(np.diff(lines, prepend=-1)))
        odds = np.exp(scores - tops[lines]) + 1e-30
        whole, right = np.bincount(lines, odds), np.bincount(lines, odds * rights)
        slopes = seen.T @ (odds / whole[lines] - odds * rights / right[lines])
        return float(np.log(whole / right).sum() + (penalty * weights**2).sum() / 2), slopes + penalty * weights

    found = minimize(loss, np.zeros(seen.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    shares, weights = np.split(found, [likelihoods.shape[1]])
    kept = _heaviest(weights[:, None], _TRAITS)
    small, scale = _small(weights[kept, None], _TAG_LEVELS)
    return {
        "shares": shares.astype(np.float32), "trait_keys": _gaps(np.array(keys, dtype=np.uint32)[kept]),
        "trait_weights": small, "trait_scale": scale,
    }  # fmt: skip


def _with_other_names(examples: Sequence[Tagged]) -> list[Tagged]:
    """Return copies of each example with other items in it, so that any phrase can occur in any sentence."""
    rng = random.Random(_SEED)
    begins = {TAGS.index("B-target"), TAGS.index("B-other")}
    pool = [tokens[start:end] for tokens, _, tags in examples for start, end in _spans(tags, begins)]
    return [_renamed(example, pool, begins, rng) for example in examples for _ in range(_RENAMED)]


def _spans(tags: Sequence[int], begins: Container[int]) -> list[tuple[int, int]]:
    """Return the spans of the phrases whose first tag is one of `begins`."""
    starts = [at for at, tag in enumerate(tags) if tag in begins]
    return [
        (at, next((end for end in range(at + 1, len(tags)) if tags[end] != tags[at] + 1), len(tags))) for at in starts
    ]


def _renamed(example: Tagged, pool: Sequence[list[Token]], begins: Container[int], rng: random.Random) -> Tagged:
    tokens, action, tags = example
    for start, end in reversed(_spans(tags, begins)):
        name = rng.choice(pool)
        tokens = [*tokens[:start], *name, *tokens[end:]]
        tags = [*tags[:start], tags[start], *[tags[start] + 1] * (len(name) - 1), *tags[end:]]
    return tokens, action, tags


def _start_steps() -> np.ndarray:
    """Forbid the transitions into the inside of a slot that has not begun."""
    steps = np.zeros((len(TAGS) + 1, len(TAGS)), np.float32)
    for at, tag in enumerate(TAGS):
        if tag.startswith("I-"):
            allowed = [TAGS.index(f"B-{tag[2:]}"), at]
            steps[[row for row in range(len(TAGS) + 1) if row not in allowed], at] = -1e4
    return steps


def main() -> None:
    """Train on the complete train split, or cross-validate with `--cross`."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--cross", action="store_true", help="cross-validate: leave out a third of the writers at a time"
    )
    records = load_records("train")
    if options.parse_args().cross:
        cross(records)
        return
    np.savez_compressed(MODEL, **train(records))
    print(f"{MODEL}: {MODEL.stat().st_size:,} bytes of {len(records):,} lines")


def cross(records: Sequence[Record]) -> None:
    """Print how well each writer's lines are read by a model trained on other writers."""
    rights: dict[str, list[bool]] = defaultdict(list)
    for kept, left in _folds(records):
        reader = Reader(Classifier(train(kept)))
        for record in left:
            rights[record["writer"]].append(judge(record, read_line(record["line"], reader=reader)).right)
    for writer, found in sorted(rights.items()):
        print(f"{writer}: {np.mean(found):.3f} of {len(found)}")
    print(f"all: {np.mean([right for found in rights.values() for right in found]):.3f}")


if __name__ == "__main__":
    main()
