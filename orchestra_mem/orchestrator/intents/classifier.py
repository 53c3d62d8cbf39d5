"""The trained models that read lines: a classifier of actions, a slot tagger, and a scorer that ranks whole readings.

All three are linear models over hashed features and need only NumPy. `tools/train_intents.py` trains `intents.npz` on
the train split of `benchmarks/data/intents.jsonl`. The code contains no phrases of any language.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, islice, pairwise
from operator import mul
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA

Floats = NDArray[np.float32]
Tagging = tuple[float, list[str]]
"""The log-likelihood of a tag sequence, and its tags, one of `TAGS` per token."""

MODEL = Path(__file__).with_name("intents.npz")
NOTHING = "none"
"""The class of a piece that asks for nothing."""
FRAGMENT = "part"
"""The class of a piece that is only part of a command: an item of a list, a reason."""
SLOTS = ("target", "other", "value", "titles")
TAGS = ("O", *(f"{place}-{slot}" for slot in SLOTS for place in "BI"))
_TOKEN = re.compile(
    r"#?\d+(?:\.\d+)*|[^\W\d_]+n['\u2019]t\b|['\u2019](?:s|ll|m|ve|re|d)\b|\w+(?:[-_.+&]\w+)*|[^\w\s]", re.IGNORECASE
)
QUOTED = re.compile(r'"[^"]+"|\u201c[^\u201d]+\u201d|(?<!\w)[\'`\u2018][^\'`\u2019]+[\'`\u2019](?!\w)')
_GRAMS = (3, 4, 5)
_MENDED_FROM = 4  # letters; typos in shorter words are not corrected
_MOST_PAIRS = 60
_MOST_TELLING = 60  # maximum number of words that the features for `TWO_SIDED` actions pair with each token
_BARRED = -1e3  # a tag path that scores less contains a forbidden step, which scores -1e4
_DOT = "\u00b7"
TWO_SIDED = frozenset({"depend", "block", "unblock"})
"""Actions between two items, where any word of the piece may show which item waits for the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word, number or punctuation mark of a line; `start` and `end` are its offsets in the line."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The token as the models see it: in lower case, with any number as `0`."""
        return "0" if self.text.lstrip("#")[:1].isdigit() else self.text.lower().replace("\u2019", "'")


def tokens_of(line: str) -> list[Token]:
    """Split a line into words, numbers and punctuation marks; a clitic ("'s") is a separate token."""
    return [Token(text=match[0], start=match.start(), end=match.end()) for match in _TOKEN.finditer(line)]


class Vocabulary:
    """Common words, and clusters of words with similar meaning.

    Args:
        arrays: `common`: words that many writers use; `words`: sorted word hashes, stored as the gaps between them;
            `kinds`: the number of each hashed word's cluster.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._common = frozenset(arrays["common"].tolist())
        self._long = [word for word in sorted(self._common) if len(word) >= _MENDED_FROM]
        self._kinds = dict(zip(np.cumsum(arrays["words"]).tolist(), arrays["kinds"].tolist(), strict=True))
        self.mended = lru_cache(maxsize=4_096)(self._mended)

    def is_common(self, word: str) -> bool:
        """Check whether many writers use a word, whatever their subject."""
        return word in self._common

    def kind(self, word: str) -> str:
        """Return a word's cluster as a feature, `k?` if unknown; return numbers and punctuation marks unchanged."""
        return f"k{self._kinds.get(word_hash(word), '?')}" if word.isalpha() else word

    def _mended(self, word: str) -> str:
        """Replace a typo by a common word with the same first letter, one edit away; return other words unchanged."""
        if len(word) < _MENDED_FROM or not word.isalpha() or word in self._common or word_hash(word) in self._kinds:
            return word
        near = nearest_word(word, self._long)
        return near if near[:1] == word[0] else word


def nearest_word(word: str, known: Collection[str]) -> str:
    """Return a known word within one edit of a word, "" if there is none; swapping two letters is one edit."""
    found = process.extractOne(word, known, scorer=OSA.distance, score_cutoff=1)
    return found[0] if found else ""


def line_features(line: str, known: Vocabulary) -> tuple[list[str], ...]:
    """Return the features of a line for the classifier, in four groups.

    The groups are: unigrams and bigrams of words; character n-grams within words; the frame, which is the line with a
    dot for each run of uncommon words, as bigrams, trigrams, and pairs of common words at any distance; and unigrams
    and bigrams of word clusters. Quoted text is a name, unrelated to the action, and is replaced by a placeholder.
    """
    words = [known.mended(token.word) for token in tokens_of(QUOTED.sub(" \u00a7 ", line))]
    of_words = words + [f"{one} {two}" for one, two in pairwise(["^", *words, "$"])]
    padded = [f" {word} " for word in words]
    letters = [word[at : at + n] for word in padded for n in _GRAMS for at in range(len(word) - n + 1)]
    masked = ["^", *(word if known.is_common(word) else _DOT for word in words), "$"]
    frame = [word for at, word in enumerate(masked) if word != _DOT or masked[at - 1] != _DOT]
    framed = [f"m{one} {two}" for one, two in pairwise(frame)]
    framed += [f"m{one} {two} {three}" for one, two, three in zip(frame, frame[1:], frame[2:], strict=False)]
    told = [word for word in dict.fromkeys(frame) if word not in (_DOT, "^", "$")]
    framed += [f"s{one} {two}" for one, two in islice(combinations(told, 2), _MOST_PAIRS)]
    kinds = [known.kind(word) for word in words]
    return of_words, letters, framed, kinds + [f"{one} {two}" for one, two in pairwise(["k^", *kinds, "k$"])]


def tag_features(tokens: Sequence[Token], known: Vocabulary, *, two_sided: bool) -> Iterator[list[str]]:
    """Yield the tagger's features of each token: neighbouring words, shape, position.

    Args:
        known: Vocabulary. An uncommon word is represented by its shape, so that the tagger works for any name.
        two_sided: Whether to add features for `TWO_SIDED` actions.
    """
    seen_as = looks(tokens, known)
    words = ["^", "^", *seen_as, "$", "$"]
    before_all = _nearest(seen_as)
    after_all = _nearest(seen_as[::-1])[::-1]
    telling = [(place, each) for place, each in enumerate(seen_as) if each not in _SAYS_LITTLE][:_MOST_TELLING]
    colons = quotes = numbers = 0
    for at, token in enumerate(tokens):
        before2, before, word, after, after2 = words[at : at + 5]
        state = f"{min(colons, 1)}{quotes % 2}{min(numbers, 2)}"
        look = _shape(token)
        seen = [
            f"w{word}", f"p{before}", f"n{after}", f"q{before2} {before}", f"m{after} {after2}",
            f"l{before_all[at]}", f"r{after_all[at]}", f"c{state}{look}", f"h{look}{at == 0}",
            f"b{before} {word}", f"f{word} {after}", f"t{before} {word} {after}",
            f"x{before_all[at]} {look} {after_all[at]}", f"d{min(len(tokens) - at, 3)}{word}", "",
        ]  # fmt: skip
        if two_sided:
            numbered = min(numbers, 2)
            seen += [f"g{each}{place > at}{numbered}" for place, each in telling]
        yield seen
        colons += token.text in (":", "=", "->", ">")
        quotes += token.text in "\"\u201c\u201d'`"
        numbers += word == "0"


def tag_hashes(seen: Iterable[str], action: str = "") -> list[int]:
    """Hash a token's features, alone or combined with the action of its piece."""
    start = crc32(f"{action}|".encode()) if action else 0
    return [crc32(each.encode("utf-8", "replace"), start) for each in seen]


def looks(tokens: Sequence[Token], known: Vocabulary) -> list[str]:
    """Return the tokens as the models see them: common words unchanged, any other token as its shape."""
    return [token.word if known.is_common(token.word) else _shape(token) for token in tokens]


def _shape(token: Token) -> str:
    """Return a token's shape: `0` for numbers, `A` if capitalised, a dot for other words, else its first character."""
    if token.word == "0":
        return "0"
    return "A" if token.text[0].isupper() else _DOT if token.text[0].isalpha() else token.text[0]


def _nearest(words: Sequence[str]) -> list[str]:
    """Return, for each word, the last informative token before it, `^` if there is none."""
    found, last = [], "^"
    for word in words:
        found.append(last)
        last = last if word in _SAYS_LITTLE else word
    return found


_SAYS_LITTLE = frozenset({"A", _DOT, "0", "the", "a", "an", "#", '"', "'", "my", "our"})


def tagging_traits(words: Sequence[str], action: str, tags: Sequence[str]) -> Iterator[str]:
    """Yield features of a complete tag sequence: phrase boundaries, phrases per slot, and words outside all slots.

    `words` is the result of `looks`.
    """
    seen_as = ["^", *words, "$"]
    names = [look in ("A", _DOT) for look in seen_as]
    free = [look for look, tag in zip(seen_as[1:], tags, strict=False) if tag == "O"]
    left = min(sum(look in ("A", _DOT) for look in free), 4)
    numbers = min(free.count("0"), 2)
    counts = "".join(str(min(tags.count(f"B-{slot}"), 2)) for slot in SLOTS)
    frame = ["^", *_framed(words, tags), "$"]
    yield from (f"o{action} {each}" for each in ngrams(frame))
    yield from (f"s{counts}", f"s{action}{counts}", f"a{action}")
    yield from (f"u{left}", f"u{action}{min(left, 2)}", f"n{numbers}", f"n{action}{min(numbers, 1)}")
    for begin, tag in enumerate(tags):
        if not tag.startswith("B-"):
            continue
        slot = tag[2:]
        end = next((at for at in range(begin + 1, len(tags)) if tags[at] != f"I-{slot}"), len(tags))
        for sign, at in (("f", begin + 1), ("l", end), ("p", begin), ("x", end + 1)):
            yield f"{slot}{action}{sign}{seen_as[at]}"
        inside = seen_as[begin + 1 : end + 1]
        yield from (
            f"{slot}:{min(end - begin, 6)}", f"{slot}<{names[begin] and names[begin + 1]}",
            f"{slot}>{names[end] and names[end + 1]}", f"{slot}{any(names[begin + 1 : end + 1])}{'0' in inside}",
        )  # fmt: skip


def ngrams(words: Sequence[str]) -> Iterator[str]:
    """Yield distinct unigrams, then bigrams and trigrams."""
    yield from dict.fromkeys(words)
    yield from map(" ".join, pairwise(words))
    yield from map(" ".join, zip(words, words[1:], words[2:], strict=False))


def _framed(words: Sequence[str], tags: Sequence[str]) -> Iterator[str]:
    """Replace each tagged phrase by its first tag: `B-TARGET is blocked`."""
    for word, tag in zip(words, tags, strict=True):
        if not tag.startswith("I-"):
            yield word if tag == "O" else tag.upper()


@lru_cache(maxsize=8_192)
def word_hash(word: str) -> int:
    """Hash a word or any other feature; training and reading share this function."""
    return crc32(word.encode("utf-8", "replace"))


class _Table:
    """A row of weights for each hashed feature; `keys` holds the gaps between the sorted hashes."""

    def __init__(self, keys: NDArray[np.uint32], weights: NDArray[np.int8], scale: float) -> None:
        self._rows = {key: row for row, key in enumerate(np.cumsum(keys).tolist())}
        self._weights = weights.astype(np.float32) * np.float32(scale)

    def sum(self, hashes: Iterable[int], *, root: bool = False) -> Floats:
        """Add up the rows of the known features; with `root`, divide by the square root of their number."""
        rows = [row for row in map(self._rows.get, hashes) if row is not None]
        total: Floats = np.add.reduce(self._weights.take(np.array(rows, np.intp), axis=0))
        return total / np.float32(max(1, len(rows)) ** 0.5) if root else total


class Classifier:
    """The models that `tools/train_intents.py` stores.

    Args:
        arrays: `labels`, `bias`, `keys`, `weights` and `scale` of the action classifier; `tag_keys`, `tag_weights`,
            `tag_scale` and `steps` (transition scores between tags) of the tagger; `shares`, `trait_keys`,
            `trait_weights` and `trait_scale` of the scorer of readings; and the arrays of `Vocabulary`.
    """

    def __init__(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        self.labels = [str(label) for label in arrays["labels"]]
        self._bias = arrays["bias"].astype(np.float32)
        self._classes = _Table(arrays["keys"], arrays["weights"], float(arrays["scale"]))  # type: ignore[arg-type]
        self._tags = _Table(arrays["tag_keys"], arrays["tag_weights"], float(arrays["tag_scale"]))  # type: ignore[arg-type]
        self.vocabulary = Vocabulary(arrays)
        self._steps = arrays["steps"].astype(np.float32)
        self._shares: list[float] = arrays["shares"].tolist()
        weights: list[float] = (arrays["trait_weights"].astype(float) * float(arrays["trait_scale"])).ravel().tolist()
        self._traits: dict[int, float] = dict(zip(np.cumsum(arrays["trait_keys"]).tolist(), weights, strict=True))

    def probabilities(self, piece: str) -> dict[str, float]:
        """Return the probability of each class for a piece of a line, highest first."""
        scores = self._bias.copy()
        for group in line_features(piece, self.vocabulary):
            scores += self._classes.sum(set(map(word_hash, group)), root=True)
        odds = np.exp(scores - scores.max())
        shares = dict(zip(self.labels, (odds / odds.sum()).tolist(), strict=True))
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    def taggings(self, tokens: Sequence[Token], actions: Sequence[str], most: int) -> list[list[Tagging]]:
        """Return, for each action, up to `most` tag sequences of a piece, most likely first."""
        if not tokens or not actions:
            return [[] for _ in actions]
        seen = {
            side: list(tag_features(tokens, self.vocabulary, two_sided=side))
            for side in {action in TWO_SIDED for action in actions}
        }
        alone = {side: [self._tags.sum(tag_hashes(each)) for each in rows] for side, rows in seen.items()}
        rows = [
            [one + self._tags.sum(tag_hashes(each, action)) for one, each in zip(alone[side], seen[side], strict=True)]
            for action in actions
            for side in [action in TWO_SIDED]
        ]
        found = best_paths(np.stack(rows, axis=1), self._steps, most)
        return [[(share, [TAGS[tag] for tag in path]) for share, path in paths] for paths in found]

    def weigh(self, shares: Sequence[float], traits: Iterable[str]) -> float:
        """Score a reading by its log-likelihoods and traits; higher is better."""
        known = (self._traits.get(key, 0.0) for key in map(word_hash, traits))
        return sum(map(mul, self._shares, shares), sum(known))


def best_paths(scores: Floats, steps: Floats, most: int) -> list[list[tuple[float, list[int]]]]:
    """Find the tag sequences with the highest sums of tag scores and transition scores (list Viterbi).

    Args:
        scores: Tag scores, float32, shape (tokens, sequences decoded at once, tags).
        steps: Transition scores, float32, shape (tags + 1, tags); the last row is the transition to the first token.
        most: Maximum number of paths for each sequence.

    Returns:
        For each sequence its best paths, as pairs of log-probability (among all paths) and tag numbers.
    """
    _, many, tags = scores.shape
    total = scores[0] + steps[-1]
    best, backs = total[:, :, None], []
    for row in scores[1:]:
        total = np.logaddexp.reduce(total[:, :, None] + steps[:-1], axis=1) + row
        ways = (best[:, :, :, None] + steps[:-1, None, :]).reshape(many, -1, tags)
        back = np.argsort(-ways, axis=1)[:, :most]
        backs.append((back, best.shape[2]))
        best = np.take_along_axis(ways, back, axis=1).transpose(0, 2, 1) + row[:, :, None]
    found = []
    for at in range(many):
        ends = best[at].reshape(-1)
        paths: list[tuple[float, list[int]]] = []
        for end in np.argsort(-ends)[:most]:
            if ends[end] < _BARRED:
                break
            tag, rank = divmod(int(end), best.shape[2])
            path = [tag]
            for back, width in reversed(backs):
                tag, rank = divmod(int(back[at, rank, tag]), width)
                path.append(tag)
            paths.append((float(ends[end] - np.logaddexp.reduce(total[at])), path[::-1]))
        found.append(paths)
    return found


@cache
def classifier() -> Classifier:
    """Return the models that ship with the package, loaded on first use."""
    with np.load(MODEL) as stored:
        return Classifier({name: stored[name] for name in stored.files})
