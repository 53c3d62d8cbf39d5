"""The trained models that read lines: a classifier of actions, a slot tagger, and a scorer that ranks whole readings.

All three are linear models over hashed features and need only NumPy. `tools/train_intents.py` trains `intents.npz` on
the train split of `benchmarks/data/intents.jsonl`. The code contains no phrases of any language.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, combinations, islice, pairwise, repeat
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple
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
_INSIDE = {f"B-{slot}": f"I-{slot}" for slot in SLOTS}
_TOKEN = re.compile(
    r"#?\d+(?:\.\d+)*|[^\W\d_]+n['\u2019]t\b|['\u2019](?:s|ll|m|ve|re|d)\b|\w+(?:[-_.+&]\w+)*|[^\w\s]", re.IGNORECASE
)
QUOTED = re.compile(r'"[^"]+"|\u201c[^\u201d]+\u201d|(?<!\w)[\'`\u2018][^\'`\u2019]+[\'`\u2019](?!\w)')
_GRAMS = (3, 4, 5)
_MENDED_FROM = 4  # letters; typos in shorter words are not corrected
_MOST_PAIRS = 60
_MOST_TELLING = 60  # maximum number of words that the features for `TWO_SIDED` actions pair with each token
_ONE_SIDED = 15  # number of a token's features for all other actions
_BARRED = -1e3  # a tag path that scores less contains a forbidden step, which scores -1e4
_DOT = "\u00b7"
TWO_SIDED = frozenset({"depend", "block", "unblock"})
"""Actions between two items, where any word of the piece may show which item waits for the other."""


class Token(NamedTuple):
    """A word, number or punctuation mark of a line; `start` and `end` are its offsets in the line.

    `word` is the token as the models see it: in lower case, with any number as `0`.
    """

    text: str
    word: str
    start: int
    end: int


def tokens_of(line: str) -> list[Token]:
    """Split a line into words, numbers and punctuation marks; a clitic ("'s") is a separate token."""
    return [Token(match[0], _word(match[0]), match.start(), match.end()) for match in _TOKEN.finditer(line)]


def _word(text: str) -> str:
    return "0" if text.lstrip("#")[:1].isdigit() else text.lower().replace("\u2019", "'")


class Vocabulary:
    """Common words, and clusters of words with similar meaning.

    Args:
        arrays: `common`: words that many writers use; `words`: sorted word hashes, stored as the gaps between them;
            `kinds`: the number of each hashed word's cluster.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.common = frozenset(arrays["common"].tolist())
        self._long = [word for word in sorted(self.common) if len(word) >= _MENDED_FROM]
        self._kinds = dict(zip(np.cumsum(arrays["words"]).tolist(), arrays["kinds"].tolist(), strict=True))
        self.mended = lru_cache(maxsize=4_096)(self._mended)

    def kind(self, word: str) -> str:
        """Return a word's cluster as a feature, `k?` if unknown; return numbers and punctuation marks unchanged."""
        return f"k{self._kinds.get(hashes_of([word])[0], '?')}" if word.isalpha() else word

    def _mended(self, word: str) -> str:
        """Replace a typo by a common word with the same first letter, one edit away; return other words unchanged."""
        if len(word) < _MENDED_FROM or not word.isalpha() or word in self.common or self.kind(word) != "k?":
            return word
        near = nearest_word(word, self._long)
        return near if near[:1] == word[0] else word

    def knows(self, line: str) -> bool:
        """Check whether a line has a common word, perhaps misspelt; a line in another language may have none."""
        return any(token.word.isalpha() and self.mended(token.word) in self.common for token in tokens_of(line))


def nearest_word(word: str, known: Collection[str]) -> str:
    """Return a known word within one edit of a word, "" if there is none; swapping two letters is one edit."""
    found = process.extractOne(word, known, scorer=OSA.distance, score_cutoff=1)
    return found[0] if found else ""


def line_features(line: str, known: Vocabulary) -> tuple[set[int], ...]:
    """Return the hashed features of a line for the classifier, in four groups.

    The groups are: unigrams and bigrams of words; character n-grams within words; the frame, which is the line with a
    dot for each run of uncommon words, as bigrams, trigrams, and pairs of common words at any distance; and unigrams
    and bigrams of word clusters. Quoted text is a name, unrelated to the action, and is replaced by a placeholder.
    """
    words = [known.mended(_word(text)) for text in _TOKEN.findall(QUOTED.sub(" \u00a7 ", line))]
    told = words + [f"{one} {two}" for one, two in pairwise(["^", *words, "$"])]
    letters = set(chain.from_iterable(map(_letters, words)))
    masked = ["^", *(word if word in known.common else _DOT for word in words), "$"]
    frame = [word for at, word in enumerate(masked) if word != _DOT or masked[at - 1] != _DOT]
    framed = [f"m{one} {two}" for one, two in pairwise(frame)]
    framed += [f"m{one} {two} {three}" for one, two, three in zip(frame, frame[1:], frame[2:], strict=False)]
    distinct = [word for word in dict.fromkeys(frame) if word not in (_DOT, "^", "$")]
    framed += [f"s{one} {two}" for one, two in islice(combinations(distinct, 2), _MOST_PAIRS)]
    kinds = [known.kind(word) for word in words]
    kinds += [f"{one} {two}" for one, two in pairwise(["k^", *kinds, "k$"])]
    return set(hashes_of(told)), letters, set(hashes_of(framed)), set(hashes_of(kinds))


@lru_cache(maxsize=4_096)
def _letters(word: str) -> tuple[int, ...]:
    """Return the hashed character n-grams of a word."""
    padded = f" {word} "
    return tuple(hashes_of(padded[at : at + n] for n in _GRAMS for at in range(len(padded) - n + 1)))


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


def tag_hashes(seen: Iterable[Sequence[str]], actions: Sequence[str]) -> NDArray[np.uint32]:
    """Hash the tokens' features, alone and after each action: uint32, shape (1 + actions, tokens, features)."""
    rows = [*seen]
    texts = [each.encode("utf-8", "replace") for features in rows for each in features]
    starts = [0, *(crc32(f"{action}|".encode()) for action in actions)]
    found = [np.fromiter(map(crc32, texts, repeat(start)), np.uint32, len(texts)) for start in starts]
    return np.stack(found).reshape(len(starts), len(rows), -1)


def looks(tokens: Sequence[Token], known: Vocabulary) -> list[str]:
    """Return the tokens as the models see them: common words unchanged, any other token as its shape."""
    return [token.word if token.word in known.common else _shape(token) for token in tokens]


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


def tagging_traits(words: Sequence[str], action: str, tags: Sequence[str]) -> list[str]:
    """Return features of a complete tag sequence: phrase boundaries, phrases per slot, and words outside all slots.

    `words` is the result of `looks`.
    """
    seen_as = ["^", *words, "$"]
    names = [look in ("A", _DOT) for look in seen_as]
    free = [look for look, tag in zip(words, tags, strict=True) if tag == "O"]
    left = min(free.count("A") + free.count(_DOT), 4)
    numbers = min(free.count("0"), 2)
    counts = "".join([str(min(tags.count(begin), 2)) for begin in _INSIDE])
    # Each tagged phrase is replaced by its first tag: `B-TARGET is blocked`.
    frame = [word if tag == "O" else tag.upper() for word, tag in zip(words, tags, strict=True) if tag[0] != "I"]
    found = [f"o{action} {each}" for each in ngrams(["^", *frame, "$"])]
    found += (
        f"s{counts}", f"s{action}{counts}", f"a{action}", f"u{left}", f"u{action}{min(left, 2)}", f"n{numbers}",
        f"n{action}{min(numbers, 1)}",
    )  # fmt: skip
    for begin, tag in enumerate(tags):
        if tag not in _INSIDE:
            continue
        slot, end = tag[2:], begin + 1
        while end < len(tags) and tags[end] == _INSIDE[tag]:
            end += 1
        inside, named, own = seen_as[begin + 1 : end + 1], names[begin + 1 : end + 1], slot + action
        found += (
            f"{own}f{inside[0]}", f"{own}l{inside[-1]}", f"{own}p{seen_as[begin]}", f"{own}x{seen_as[end + 1]}",
            f"{slot}:{min(end - begin, 6)}", f"{slot}<{names[begin] and named[0]}",
            f"{slot}>{named[-1] and names[end + 1]}", f"{slot}{any(named)}{'0' in inside}",
        )  # fmt: skip
    return found


def ngrams(words: Sequence[str]) -> list[str]:
    """Return distinct unigrams, then bigrams and trigrams."""
    pairs = [f"{one} {two}" for one, two in pairwise(words)]
    return [*dict.fromkeys(words), *pairs, *(f"{one} {two}" for one, two in zip(pairs, words[2:], strict=False))]


def hashes_of(features: Iterable[str]) -> list[int]:
    """Hash words or any other features; training and reading share this function."""
    return [crc32(each.encode("utf-8", "replace")) for each in features]


class _Table:
    """A row of weights for each hashed feature; `keys` holds the gaps between the sorted hashes."""

    def __init__(self, keys: NDArray[np.uint32], weights: NDArray[np.int8], scale: float) -> None:
        self._keys = np.append(np.cumsum(keys), 2**32 - 1).astype(np.uint32)
        unknown = np.zeros((1, weights.shape[1]), np.float32)  # the row of all features that have no weights
        self._weights = np.concatenate([weights.astype(np.float32) * np.float32(scale), unknown])

    def sums(self, hashes: NDArray[np.uint32], *, root: bool = False) -> Floats:
        """Add up the rows along the last axis; with `root`, divide by the square root of the number of known ones."""
        found = np.searchsorted(self._keys, hashes)
        is_known = self._keys.take(found) == hashes
        rows = np.where(is_known, found, len(self._keys) - 1)
        total: Floats = np.add.reduce(self._weights.take(rows, axis=0), axis=-2)
        return total / np.float32(max(1, int(np.count_nonzero(is_known))) ** 0.5) if root else total


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
            scores += self._classes.sums(np.fromiter(group, np.uint32, len(group)), root=True)
        odds = np.exp(scores - scores.max())
        shares = dict(zip(self.labels, (odds / odds.sum()).tolist(), strict=True))
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    def taggings(self, tokens: Sequence[Token], actions: Sequence[str], most: int) -> list[list[Tagging]]:
        """Return, for each action, up to `most` tag sequences of a piece, most likely first."""
        if not tokens or not actions:
            return [[] for _ in actions]
        sides = [action in TWO_SIDED for action in actions]
        hashes = tag_hashes(tag_features(tokens, self.vocabulary, two_sided=any(sides)), actions)
        sums = {side: self._tags.sums(hashes if side else hashes[:, :, :_ONE_SIDED]) for side in {*sides}}
        scores = np.stack([sums[side][0] + sums[side][at] for at, side in enumerate(sides, 1)], axis=1)
        found = best_paths(scores, self._steps, most)
        return [[(share, [TAGS[tag] for tag in path]) for share, path in paths] for paths in found]

    def weigh(self, shares: Sequence[float], traits: Iterable[str]) -> float:
        """Score a reading by its log-likelihoods and traits; higher is better."""
        known = map(self._traits.get, hashes_of(traits), repeat(0.0))
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
    between = steps[:-1]
    onto = between.T
    each_one, each_tag, _ = np.ogrid[:many, :tags, :1]
    total = scores[0] + steps[-1]
    best, backs = total[:, :, None], []
    for row in scores[1:]:
        total = np.logaddexp.reduce(total[:, :, None] + between, axis=1) + row
        width = best.shape[2]
        if onto.shape[1] != tags * width:
            onto = np.repeat(between.T, width, axis=1)
        ways = best.reshape(many, 1, -1) + onto
        back = np.argsort(-ways)[:, :, :most]
        backs.append((back, width))
        best = ways[each_one, each_tag, back] + row[:, :, None]
    found = []
    for at in range(many):
        ends, whole = best[at].reshape(-1), np.logaddexp.reduce(total[at])
        paths: list[tuple[float, list[int]]] = []
        for end in np.argsort(-ends)[:most]:
            if ends[end] < _BARRED:
                break
            tag, rank = divmod(int(end), best.shape[2])
            path = [tag]
            for back, width in reversed(backs):
                tag, rank = divmod(int(back[at, tag, rank]), width)
                path.append(tag)
            paths.append((float(ends[end] - whole), path[::-1]))
        found.append(paths)
    return found


@cache
def classifier() -> Classifier:
    """Return the models that ship with the package, loaded on first use."""
    with np.load(MODEL) as stored:
        return Classifier({name: stored[name] for name in stored.files})
