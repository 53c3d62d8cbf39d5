"""Read a text for the extractive summariser: split it into sentences, and weigh sentences and words.

The constants were set on two recorded conversations and checked on three others. Varied one at a time from about half
to double, none changed the share of answers kept (`benchmarks/compaction.py`) by more than two points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from itertools import chain
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

from orchestra_mem.core.facts.prose import reads_as_prose
from orchestra_mem.core.text import MAX_SENTENCE_CHARS, piece_stems, plain_word, split_sentences, token_stems, tokens

_Weighed = tuple[tuple[str, float], ...]  # stems with their weights

_LIGHT_WORD = 0.25
_ADVERB = 0.4
_NAME = 1.6
_NUMBER = 1.2
_IDENTIFIER = 1.2  # for the complete identifier; divided among its parts
_DATA_WORD = 0.05  # hashes, keys, encoded data: the rarest of all words, but meaningless
_UNPRONOUNCEABLE = 0.1
_MIN_ENCODED_CHARS = 10
_LONGEST_WORD_CHARS = 40

_FENCED = 0.4
_CODE = 0.05
_QUESTION = 0.65
_SHORT = 0.3
_SHORT_WORDS = 3
_FIGURES = 0.25  # for a row of figures, in which each number would count as a word
_MOST_DIGITS = 0.4  # share of digits among the characters that other sentences have
_FREE_SYMBOLS = 0.03  # share of symbols among the characters that is normal in prose
_MAX_MEAN_WORD_CHARS = 25
_HALF_DEPTH_SENTENCES = 20

# Words that say little on any topic: light verbs, judgements, vague nouns, words of degree and discourse.
_LIGHT_STEMS = frozenset(
    found for word in files(__package__).joinpath("light_words.txt").read_text().split() for found in token_stems(word)
)
_IDENTIFIER_MARK = re.compile(r"[#@.]|[a-z][A-Z]|\d[A-Za-z]|[A-Za-z]\d|::")  # dots in tokens are never at an end
_HASH = re.compile(r"(?=[0-9a-fA-F-]*\d)[0-9a-fA-F-]{7,}\Z")
_KIND_OF = dict.fromkeys(ascii_lowercase, "a") | dict.fromkeys(ascii_uppercase, "A") | dict.fromkeys(digits, "0")
_KINDS = "".join(_KIND_OF.get(chr(byte), "-") for byte in range(256)).encode()
_CHANGES_WITH_CAPITALS = (b"aA", b"0A", b"A0", b"AAa")  # the last capital of a run begins a word: `HTTPServer`
_VOWELS = frozenset("aeiouyAEIOUY")
_SYMBOL = re.compile(r"[^\w\s.,;:'\"!?()\u2018\u2019\u201c\u201d\u2013\u2014\u2026-]")
_ASCII_SYMBOLS = bytes(code for code in range(128) if _SYMBOL.match(chr(code)))
_FENCE_MARKS = ("```", "~~~")
_MARKS = re.compile("#{1,6}|>+")  # markdown headings and block quotations
_FIRST_CJK = "\u2e80"  # from this character on, scripts put no space between sentences


class Sentence(NamedTuple):
    """A candidate sentence on one line, its weight by form and position, and its stems in order with their weights."""

    text: str
    weight: float
    words: dict[str, float]


def read(text: str, known: set[str]) -> Iterator[Sentence]:
    """Yield the candidate sentences of a text that are not in `known`, and add them to `known`, against repetition."""
    sentences = split_sentences(text)
    count = len(sentences)
    cut_ones = _cut_inside_words(text, sentences)
    depth = 0  # of nested fenced blocks: tool output in one may contain others
    for place, sentence in enumerate(sentences):
        if sentence.startswith(_FENCE_MARKS):
            depth = depth + 1 if len(sentence) > len("```") or not depth else depth - 1
            continue
        pieces = sentence.split()
        if _MARKS.fullmatch(pieces[0]):
            del pieces[0]
        if not pieces or place in cut_ones:
            continue
        line = " ".join(pieces)
        if line in known:
            continue
        known.add(line)
        weight = _sentence_weight(line, len(pieces), fenced=depth > 0, depth=min(place, count - 1 - place))
        words = dict(chain(_opening(pieces[0]), *map(_inside, pieces[1:])))
        if weight > 0 and max(words.values(), default=0.0) > _UNPRONOUNCEABLE:
            yield Sentence(line, weight, words)


def _sentence_weight(sentence: str, words: int, *, fenced: bool, depth: int) -> float:
    """Weigh a sentence by its form and position, 0 and up.

    `words`: Number of words. `fenced`: Whether it is in a fenced block (code or tool output). `depth`: Number of
    sentences between it and the nearer end of the passage: beginnings and ends say more than the middle.
    """
    symbols = _count_symbols(sentence) / len(sentence)
    if len(sentence) > max(_LONGEST_WORD_CHARS, words * _MAX_MEAN_WORD_CHARS) and sentence.isascii():
        return 0.0  # encoded data, minified code
    weight = (_FENCED if fenced else 1.0) * (1.0 if reads_as_prose(sentence) else _CODE)
    if symbols > _FREE_SYMBOLS:
        weight *= max(_CODE, 1.0 - 10.0 * (symbols - _FREE_SYMBOLS))
    if sum(map(sentence.count, digits)) > _MOST_DIGITS * len(sentence):
        weight *= _FIGURES
    weight *= 0.5 + 0.5 / (1.0 + depth / _HALF_DEPTH_SENTENCES)
    if sentence[-1] == "?":
        weight *= _QUESTION
    return weight * _SHORT if words <= _SHORT_WORDS else weight


def _count_symbols(sentence: str) -> int:
    if sentence.isascii():
        return len(sentence) - len(sentence.encode().translate(None, _ASCII_SYMBOLS))
    return len(_SYMBOL.findall(sentence))


def _cut_inside_words(text: str, sentences: Sequence[str]) -> set[int]:
    """Return the indexes of fragments cut inside a word, as happens in over-long sentences: fragments say nothing."""
    found: set[int] = set()
    if len(text) <= MAX_SENTENCE_CHARS or MAX_SENTENCE_CHARS not in map(len, sentences):
        return found
    end = 0
    for place, sentence in enumerate(sentences):
        start = text.find(sentence, end)
        end = start + len(sentence)
        if _cuts_word(text, start) or _cuts_word(text, end):
            found.add(place)
    return found


def _cuts_word(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return False
    before = text[place - 1]
    return before < _FIRST_CJK and not before.isspace() and not text[place].isspace()


def _weighed(piece: str, *, opening: bool) -> _Weighed:
    """Weigh the stems in a piece of text between white space."""
    if word := plain_word(piece):
        return _shared(piece_stems(piece), word, opening)
    found = [_shared(token_stems(token), token, opening) for token in tokens(piece)]
    return found[0] if len(found) == 1 else tuple(chain.from_iterable(found))


# The first piece of a sentence has a separate cache: its capital does not indicate a name.
_inside = lru_cache(maxsize=4_096)(partial(_weighed, opening=False))
_opening = lru_cache(maxsize=2_048)(partial(_weighed, opening=True))


def _shared(stems: tuple[str, ...], token: str, opening: bool) -> _Weighed:
    """Divide the weight of a token among its stems."""
    if not stems or len(token) > _LONGEST_WORD_CHARS:
        return ()
    weight = _token_weight(token, opening)
    if len(stems) > 1:
        weight = 1.5 * weight / len(stems)
    return tuple([(found, weight * _LIGHT_WORD if found in _LIGHT_STEMS else weight) for found in stems])


def _token_weight(token: str, opening: bool) -> float:
    if token.isdigit():
        return _NUMBER if len(token) <= len("2024") else _NUMBER / 4
    joined = "_" in token or "/" in token
    if (not joined and _HASH.match(token)) or _is_encoded(token):
        return _DATA_WORD
    weight = _word_weight(token, opening)
    return _IDENTIFIER if weight > _UNPRONOUNCEABLE and (joined or _IDENTIFIER_MARK.search(token)) else weight


def _word_weight(word: str, opening: bool) -> float:
    if len(word) > len("rhythm") and word.isascii() and _VOWELS.isdisjoint(word):
        return _UNPRONOUNCEABLE
    if word.endswith("ly"):
        return _ADVERB
    return _NAME if word[0].isupper() and not opening else 1.0


def _is_encoded(token: str) -> bool:
    """Check whether a token is encoded data such as base64, not a name: lower case, capitals and digits alternate."""
    if len(token) < _MIN_ENCODED_CHARS:
        return False
    kinds = token.encode().translate(_KINDS)
    changes = kinds.count(b"a0") + kinds.count(b"0a")
    if b"A" in kinds:
        changes += sum(map(kinds.count, _CHANGES_WITH_CAPITALS))
    return changes * 3 >= len(token)
