"""Analyse texts and queries, both in the same way, into the terms of the keyword index.

Latin words are folded (case, accents, width) and stemmed. Identifiers yield themselves and their parts; scripts without
spaces between words yield pairs of characters. Any string is valid; characters that cannot be in a term are skipped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import chain

from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.text import STOP_WORDS, UNSPACED, stem, words
from orchestra_mem.search_types import Chunk, IndexedText, Terms

ANALYSIS_VERSION = "5"
"""Must change if a chunk is indexed otherwise, or a text cut otherwise; an index with another version is outdated."""

MAX_QUERY_CHARS = 4_096
"""Longer queries are cut to this length: nobody asks a longer question."""

MAX_QUERY_TERMS = 64

_MAX_TERM_CHARS = 80  # a longer word is data; its beginning suffices to find it
_MAX_CACHED_CHARS = 40
_MAX_EMBEDDED_CHARS = 32_000  # chunks are far shorter; of other texts the beginning is embedded

# Scripts without spaces between words, with their combining marks: Han, kana, Thai, Lao, Burmese, Khmer. Hangul too,
# as its spaces do not separate endings.
_PAIRED_RUN = f"([{UNSPACED}]+)"  # compiled at the first use, because compiling it is slow
# Indic and Tibetan letters with their vowel signs, which `\w` leaves out.
_MARKS = re.compile("[\u0900-\u0dff\u0f00-\u0fff]")
_MARKED_WORD = re.compile("(?:[^\\W_]|[\u0900-\u0dff\u0f00-\u0fff])+")
# Marks above and below letters that are often omitted: accents, Hebrew points, Arabic vowels.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc]")
_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u036f\u0370-\u06ff\u1e00-\u1fff]")
_UNREADABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_BLANK = re.compile(r"\s")
_LETTERS_AND_DIGITS = bytes(code if chr(code).isalnum() and code < 128 else ord(" ") for code in range(256))
# Stop words, and the first parts of stop words that are split at apostrophes.
_UNCOMPARED = STOP_WORDS | frozenset(
    "ain aren couldn didn doesn hadn hasn haven isn mustn needn shan shouldn wasn weren won wouldn".split()
)
_SIGNS = re.compile(r"[^\w]+|_+")

_TIME_WORDS = frozenset(
    "yesterday today tonight tomorrow ago last next since recently soon week weeks weekend weekends month months "
    "year years day days morning afternoon evening monday tuesday wednesday thursday friday saturday sunday january "
    "february march april may june july august september october november december".split()
)
_YEAR_DIGITS = 4

# Exact names: `#12`, hashes, paths, addresses, joined words, versions, codes. Plain numbers, dates, amounts with a unit
# and quoted names are not: too many chunks hold them for other reasons.
_EXACT = re.compile(
    r"#\d+|#?(?=[a-f]*\d)[0-9a-f]{7,}|[^\s_/\\@:]+(?:[_/\\@]|::|://)\S+|[/~\\_.]\S+|\S+\.[a-z]\w*|v?\d+\.\d+\.\S+|v\d[\w.]*"
    r"|[a-z]{1,8}-?\d[\w-]*"
)
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
# The time at which an entry of a document was written. Only its date is indexed: the clock time is not content.
_WRITTEN = re.compile(r"\[(?:(\d{4}-\d\d-\d\d) \d\d:\d\d(?::\d\d)?|\d\d:\d\d:\d\d)\] ")


def index_text(chunk: Chunk) -> IndexedText:
    """Return the indexed form of a chunk."""
    text, heading, embedded, days = chunk.text, " ".join(chunk.heading), chunk.embedded_text, []
    if not chunk.operation:
        days = [*filter(None, _WRITTEN.findall(text))]
        text, heading, embedded = (_WRITTEN.sub("", each) for each in (text, heading, embedded))
    compared = tuple(content_words(embedded))
    return IndexedText(
        title=" ".join(terms_of(chunk.title)),
        heading=" ".join(terms_of(heading)),
        identifiers=" ".join(chunk_names(chunk)),
        body=" ".join([*terms_of(text), *days]),
        words=compared,
        is_statement=is_statement(chunk.text),
        tells_time=tells_time(compared),
    )


def chunk_names(chunk: Chunk) -> tuple[str, ...]:
    """Return the exact names of a chunk: its operation's number, as `#12`, then the names in its title and text."""
    names = exact_names(f"{chunk.title}\n{chunk.text}")
    return tuple(dict.fromkeys((f"#{chunk.operation}", *names))) if chunk.operation else names


def read_query(query: str) -> Terms:
    """Return the terms of a query, which may be any string; stop words only if there are no other words.

    A query is cut to `MAX_QUERY_CHARS` characters, then to `MAX_QUERY_TERMS` terms, exact names first.
    """
    query = query[:MAX_QUERY_CHARS]
    names = exact_names(query)[:MAX_QUERY_TERMS]
    found = dict.fromkeys([*names, *terms_of(query, singles=False)])
    return Terms(terms=tuple(found)[:MAX_QUERY_TERMS], identifiers=names)


def terms_of(text: str, *, singles: bool = True) -> list[str]:
    """Return the terms of a text in order, with duplicates; stop words only if there are no other words.

    Scripts without spaces yield pairs of characters, and single ones if `singles`: a query of one character finds them.
    """
    found: list[tuple[str, bool]] = []
    for piece in _clean(text).split():
        found += (_short_terms if len(piece) <= _MAX_CACHED_CHARS else _analyse)(piece, singles)
    return [term for term, is_stop in found if not is_stop] or [term for term, _ in found]


def content_words(text: str) -> list[str]:
    """Return the distinct words of a text for late interaction: lower-case, not stemmed, without stop words."""
    return [word for word in distinct_words(text) if word not in _UNCOMPARED]


def distinct_words(text: str) -> list[str]:
    """Return the distinct words of a text, lower-case and not stemmed."""
    found = _ascii_words(text) if text.isascii() else chain.from_iterable(map(_other_words, _clean(text).split()))
    return list(dict.fromkeys(found))


def tells_time(words: Collection[str]) -> bool:
    """Check whether a text with these content words names a time, such as a weekday, a month or a year."""
    return not _TIME_WORDS.isdisjoint(words) or any(len(word) == _YEAR_DIGITS and word.isdecimal() for word in words)


def is_statement(text: str) -> bool:
    """Check whether a text does not end with a question mark: questions seldom answer a query."""
    return not text.rstrip().endswith(("?", "\uff1f"))


def embeddable(text: str) -> str:
    """Cut a text to the length that is embedded; lone surrogates, which tokenizers refuse, become question marks."""
    return text[:_MAX_EMBEDDED_CHARS].encode("utf-8", "replace").decode("utf-8")


def _ascii_words(text: str) -> list[str]:
    return text.lower().encode().translate(_LETTERS_AND_DIGITS).decode().split()  # twice as fast as a regex


def _other_words(piece: str) -> Iterator[str]:
    folded = fold(piece.replace("\u2019", "'"))
    if folded.isascii():
        yield from _ascii_words(folded)
        return
    for number, part in enumerate(re.split(_PAIRED_RUN, folded)):  # every second part is a run
        yield from _pairs(part, singles=False) if number % 2 else _MARKED_WORD.findall(part)


def exact_names(text: str) -> tuple[str, ...]:
    """Return the distinct exact names of a text, folded, by first appearance: `#12`, paths, `snake_case`."""
    names = [
        name for name in find_identifiers(_clean(text)) if len(name) <= _MAX_TERM_CHARS and not _BLANK.search(name)
    ]
    return tuple(dict.fromkeys(fold(name) for name in names if _CAMEL.search(name) or _EXACT.fullmatch(name.lower())))


def _clean(text: str) -> str:
    """Replace characters that cannot be stored or seen (control characters, lone surrogates) by spaces."""
    return _UNREADABLE.sub(" ", text)


def _analyse(piece: str, singles: bool) -> Iterator[tuple[str, bool]]:
    """Yield the terms of a text without white space, each with a flag for stop words."""
    if piece.isascii():
        yield from _latin_terms(piece)
        return
    folded = _strip_accents(piece)  # the case is kept, to split CamelCase names
    for number, part in enumerate(re.split(_PAIRED_RUN, folded)):
        yield from ((term, False) for term in _pairs(part, singles)) if number % 2 else _spaced_terms(part)


_short_terms = lru_cache(maxsize=4_096)(lambda piece, singles: tuple(_analyse(piece, singles)))


def _spaced_terms(text: str) -> Iterator[tuple[str, bool]]:
    if _MARKS.search(text):
        yield from ((word.lower()[:_MAX_TERM_CHARS], False) for word in _MARKED_WORD.findall(text))
    else:
        yield from _latin_terms(text)


def _latin_terms(text: str) -> Iterator[tuple[str, bool]]:
    if len(text) > _MAX_TERM_CHARS:  # data, or names joined by signs
        text = _SIGNS.sub(" ", text)
    for word in words(text):
        yield stem(word.replace(",", ""))[:_MAX_TERM_CHARS], word in STOP_WORDS  # 1,000 is 1000


def _pairs(run: str, singles: bool) -> Iterator[str]:
    if singles or len(run) == 1:
        yield from run
    yield from (run[at : at + 2] for at in range(len(run) - 1))


def fold(text: str) -> str:
    """Return a text in lower case, without accents and compatibility characters."""
    return text.lower() if text.isascii() else _strip_accents(text).lower()


def _strip_accents(text: str) -> str:
    """Normalise compatibility characters such as full-width letters, and remove marks above and below letters."""
    text = unicodedata.normalize("NFKC", text)
    if _ACCENTED.search(text):
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    return text
