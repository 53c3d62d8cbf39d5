"""Extract tags, a one-line summary and key sentences from a text, and detect texts of the same meaning."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import pairwise

from orchestra_mem.core.search.terms import exact_names, read_query, terms_of
from orchestra_mem.core.text import STOP_WORDS, split_sentences, squeeze, stem, word_count, words

MAX_TAGS = 8
_MAX_TAG_CHARS = 40
_MAX_READ_CHARS = 20_000  # the beginning of a text shows what it is about
_MAX_RUN = 6
_MIN_CHARS = 3
_COMMON = 4.8  # words up to this rarity are ignored: most function words of the six languages are below it
_MAX_TOPICS = 3
_KEY_POINTS = 5
_ARTICLES = frozenset(("a", "an", "the"))
_MAX_TURNED_WORDS = 60
# Signs that change the meaning, as in `C++`, `C#`, `x < -5`, `5 %`; not `+`, `#` and `-` as part of a word.
_SIGNS = r"([<>=%$€£¥≠≤≥±]|\B\+|\+\B|(?<=\w)#(?!\w)|(?<!\w)-(?=\d)|!(?==))"


def extract_tags(text: str) -> tuple[str, ...]:
    """List up to `MAX_TAGS` tags of a text: its topics, then its exact names, then its most telling words."""
    found = [*identify_topics(text), *extract_keywords(text)]
    return tuple(dict.fromkeys(found))[:MAX_TAGS]


def extract_keywords(text: str) -> tuple[str, ...]:
    """List the exact names of a text, then its content words by frequency times rarity, all in lower case."""
    text = text[:_MAX_READ_CHARS]
    names = [name for name in exact_names(text) if len(name) <= _MAX_TAG_CHARS]
    said: dict[str, str] = {}  # the first word of each stem
    counts: Counter[str] = Counter()
    for word in _content_words(text):
        key = tag_key(word)
        counts[key] += 1
        said.setdefault(key, word)
    known = {key for name in names for key in (name, tag_key(name))}
    telling = {key: weight for key in counts if key not in known and (weight := _rarity(key)) > 0}
    order = sorted(telling, key=lambda key: -counts[key] * telling[key])
    return tuple(dict.fromkeys([*names, *(said[key] for key in order)]))


def _rarity(key: str) -> float:
    """Return how far a stem's rarity in the facts classifier's training sentences (six languages) exceeds `_COMMON`."""
    # Imported here, as NumPy loads slowly and importing the package must stay quick.
    from orchestra_mem.core.facts.classifier import rarity_of

    return rarity_of(key) - _COMMON


def identify_topics(text: str) -> tuple[str, ...]:
    """List up to three pairs of neighbouring content words that a text repeats, most frequent first."""
    pairs: Counter[tuple[str, str]] = Counter()
    for sentence in split_sentences(text[:_MAX_READ_CHARS]):
        pairs.update(pairwise(_content_words(sentence)))
    common = [pair for pair, count in pairs.most_common(_MAX_TOPICS) if count > 1 and pair[0] != pair[1]]
    return tuple(" ".join(pair) for pair in common)


def tag_key(tag: str) -> str:
    """Return the key by which a tag is compared: its exact name, or its stems, regardless of case and accents."""
    tag = squeeze(tag)
    names = exact_names(tag)
    if len(names) == 1 and len(names[0]) == len(tag):
        return names[0]
    return " ".join(term for term in read_query(tag).terms if term not in names) or tag.casefold()


def message_keys(message: str) -> frozenset[str]:
    """Return the tag keys that match a message: its exact names, its stems, and runs of up to six stems."""
    message = message[:_MAX_READ_CHARS]
    terms = terms_of(message)
    row = [term for term in terms if len(term) > 1 or term.isascii()]  # without single characters of unspaced scripts
    runs = (" ".join(row[place : place + size]) for size in range(2, _MAX_RUN + 1) for place in range(len(row)))
    return frozenset([*exact_names(message), *terms, *runs])


def _content_words(text: str) -> list[str]:
    """List the words of a text in lower case without stop words, in order; pairs of characters for unspaced scripts."""
    found = []
    for word in words(text):
        terms = terms_of(word)
        is_plain = (word.isascii() or word.isalpha()) and not (word.isdecimal() or word in STOP_WORDS)
        if is_plain and len(word) >= _MIN_CHARS and len(terms) == 1:
            found.append(word[:_MAX_TAG_CHARS])
        elif not word.isascii() and len(terms) > 1:
            found += [term for term in terms if len(term) > 1]
    return found


def create_summary(text: str, max_words: int) -> str:
    """Shorten a text to one line of at most `max_words` words: the first sentences that fit, else its beginning.

    In scripts without spaces, two characters count as a word.
    """
    chosen: list[str] = []
    left = max_words
    for sentence in split_sentences(text[:_MAX_READ_CHARS]):
        cost = word_count(sentence)
        if cost > left:
            break
        chosen.append(squeeze(sentence))
        left -= cost
    if chosen or not text.strip() or max_words <= 0:
        return " ".join(chosen)
    return _clipped(squeeze(text[:_MAX_READ_CHARS]), max_words)


def _clipped(text: str, max_words: int) -> str:
    cut = " ".join(text.split(" ")[:max_words])
    while word_count(cut) > max_words:
        cut = cut[: len(cut) * max_words // word_count(cut)]
    return f"{cut} …" if len(cut) < len(text) else cut


def extract_key_points(text: str) -> tuple[str, ...]:
    """List up to five key sentences of a text, those with the most frequent words, in order."""
    sentences = split_sentences(text[:_MAX_READ_CHARS])
    told = [set(_content_words(sentence)) for sentence in sentences]
    weights = Counter(word for words in told for word in words)
    fullest = sorted(range(len(sentences)), key=lambda place: -sum(weights[word] for word in told[place]))
    return tuple(squeeze(sentences[place]) for place in sorted(fullest[:_KEY_POINTS]))


def content_digest(content: str) -> str:
    """Return a digest that ignores word endings, articles and most punctuation, to detect contents of the same meaning.

    Contents of up to 60 words equal their rotations, as `use Redis for the cache` and `for the cache use Redis` do.
    """
    stems: list[str] = []
    for place, piece in enumerate(re.split(_SIGNS, content)):  # every second piece is a sign
        stems += [piece] if place % 2 else [stem(word) for word in words(piece) if word not in _ARTICLES]
    if len(stems) <= _MAX_TURNED_WORDS:
        stems = min((stems[place:] + stems[:place] for place in range(len(stems))), default=[])
    text = " ".join(stems) or squeeze(content)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
