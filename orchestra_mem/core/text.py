"""Split text into sentences, words and stems. Scoring and interpreting them is left to the callers.

Every function takes time linear in the length of any text, because no pattern can start twice inside one run of
characters that it consumes.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

import snowballstemmer

MAX_SENTENCE_CHARS = 500
"""Longest piece that `split_sentences` returns, in characters; longer sentences are cut at the best earlier point."""

_MAX_LIST_NUMBER_CHARS = 8
_MIN_WRAPPED_CHARS = 40  # a shorter line without a full stop was ended on purpose, not wrapped by an editor


def _set_of(listing: str) -> frozenset[str]:
    return frozenset(listing.split())


# English function words; contractions with and without their apostrophe. Listed here to avoid a dependency.
STOP_WORDS: frozenset[str] = _set_of(
    """
    a about above after again against all am an and any are aren't as at be because been before being below between
    both but by can can't cannot could couldn't did didn't do does doesn't doing don don't down during each few for
    from further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself
    his how how's i i'd i'll i'm i've if in into is isn't it it'd it'll it's its itself just let's me more most
    mustn't my myself needn't no nor not now of off on once only or other ought our ours ourselves out over own same
    shan't she she'd she'll she's should should've shouldn't so some such than that that'll that's the their theirs
    them themselves then there there's these they they'd they'll they're they've this those through to too under until
    up very was wasn't we we'd we'll we're we've were weren't what what's when when's where where's which while who
    who's whom why why's will with won't would wouldn't you you'd you'll you're you've your yours yourself yourselves
    arent cant couldnt didnt doesnt dont hadnt hasnt havent im isnt ive shouldnt thats theres theyre wasnt werent whats
    wont wouldnt youre youve s t d ll m re ve
    """
)

_EMOJI = "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d"
_CLOSERS = "\"'\u201d\u2019\u00bb)\\]*_`~"
_FENCE = re.compile(r"`{3,}+(?=[^`]*$)|~{3,}+")
_MAX_FENCE_INDENT = 12
_BULLETS = "*+\u2022\u2023\u25aa\u25cf\u25e6\u00b7-"
_BULLET = re.compile(rf"(?:[{_BULLETS}][ \t]+)+")
_STARTS_BLOCK = re.compile(r"[*+\u2022\u2023\u25aa\u25cf\u25e6\u00b7>|#-]|\d{1,3}[.)]\s|\[")
_END = re.compile(
    rf"[.!?\u2026]+[{_CLOSERS}]*(?:[ \t]?[{_EMOJI}]+)*"
    r"|[\u3002\uff01\uff1f\uff61]+[\u300d\u300f\u201d\u2019)\uff09]*"
    rf"|[{_EMOJI}]+"
)
# `_END` for ASCII text, where a sentence ends only before white space. The leading set lets the engine skip to
# candidates; the lookbehind keeps a match from starting inside a run of stops.
_ASCII_END = re.compile(r"[.!?](?<![.!?][.!?])[.!?]*+[\"')\]*_`~]*+(?=\s)")
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]+")
_CJK_STOPS = frozenset("\u3002\uff01\uff1f\uff61")
_SPACE = re.compile(r"\s+")
_SOFT_BORDER = r"[;:,)\u2014\u3001\uff0c](?=\s|[\u3040-\u9fff])"  # compiled on first use, as that is slow
_NOT_PROSE = re.compile(r"[^\w\s,.'\"()-]")

# A word is letters and digits with single joints inside: the characters that join names, paths, versions and numbers.
_WORD = re.compile(r"#?[^\W_]+(?:(?:['\u2019._/:@+#-]|::|://|_+|(?<=\d),(?=\d))[^\W_]+)*")
_PUNCTUATION = ".,;:!?\"'()"
_JOINT = re.compile(r"[._/:@+#-]+")
_JOINTS_AS_SPACES = bytes.maketrans(b"._/:@+#-", b"        ")  # for bytes: `str.translate` is six times slower
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CJK = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+"
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
UNSPACED += "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
_LONG_WORD_CHARS = 80  # anything longer is data, not a word: it is neither split nor cached nor stemmed

# Abbreviations never end a sentence; weak ones do unless a lower-case letter follows, numbered ones unless a digit.
_ABBREVIATIONS = _set_of(
    "dr mr mrs ms prof rev hon gen sen rep capt lt col sgt st mt vs e.g eg i.e ie cf al viz approx ca bzw ggf evtl vgl"
)
_WEAK_ABBREVIATIONS = _set_of("etc inc ltd co corp jr sr a.m p.m u.s u.k e.u ph.d est dept misc incl excl max min")
_NUMBERED = _set_of(
    "no nr fig figs eq eqs sec ch vol p pp art par ver jan feb mar apr jun jul aug sep sept oct nov dec"
)
# German words before an ordinal number with its stop: "am 15. Mai", "im 3. Quartal", "der 2. Versuch".
_BEFORE_ORDINALS = _set_of("ab am beim bis das dem den der des die ein eine einem einen einer im seit vom zum zur")
_DOTTED_LETTERS = re.compile(r"(?<![^\W_])[^\W\d_]\. ?[^\W\d_]$")  # the end of "z. B", "т. е", "p. m"
_DOTTED_LETTER = re.compile(r" ?[^\W\d_]\.")
_WRAP_WORDS = _set_of(
    "a an the of in on at to and or with for by from as that which is are was were be been than into not this it its "
    "their our your his her my can will would should may if when while but"
)


def split_sentences(text: str) -> tuple[str, ...]:
    """Split text into sentences, list items and lines, in order.

    Each piece is verbatim, without surrounding white space and without a list item's bullet; together the pieces
    contain every word. A sentence that an editor wrapped over several lines stays in one piece, line feeds included.
    Lines of fenced code and table rows are only split if they are longer than `MAX_SENTENCE_CHARS`, the upper limit.
    """
    sentences: list[str] = []
    has_fences = "```" in text or "~~~" in text
    fenced = ""  # the open fence
    block = before = ""  # the open block, and its last line
    for line in text.splitlines(keepends=True):
        after = line.lstrip()
        if not after:
            before = ""
            continue
        fence = _FENCE.match(after) if has_fences and len(line) - len(after) <= _MAX_FENCE_INDENT else None
        fence = fence if after.startswith(fenced) else None  # another fence does not close this one
        may_go_on = len(before) > _MIN_WRAPPED_CHARS and not fence and len(block) <= 4 * MAX_SENTENCE_CHARS
        if may_go_on and _is_wrapped(before, after):
            block += line
            before = line
            continue
        _split_block(block.strip(), sentences)
        block = before = ""
        if fence:
            fenced = "" if fenced else fence[0]
        if fence or fenced or after[0] == "|":
            sentences.extend(_bounded(after.rstrip()))
            continue
        bullet = _BULLET.match(after) if after[0] in _BULLETS else None
        block = after[bullet.end() :] if bullet else after
        before = block if bullet else line
    _split_block(block.strip(), sentences)
    return tuple(sentences)


def _is_wrapped(before: str, after: str) -> bool:
    """Check whether a line continues the sentence that the previous line left open."""
    before = before.rstrip()
    if len(before) < _MIN_WRAPPED_CHARS or before[-1] in ".!?:;\u3002\u2026|{}" or " " not in before:
        return False
    if not after[0].islower():
        if before[-1] != "," and before.rsplit(None, 1)[-1].lower() not in _WRAP_WORDS:
            return False
        if _STARTS_BLOCK.match(after):
            return False
    return len(_NOT_PROSE.findall(before)) * 12 <= len(before)


def _split_block(block: str, sentences: list[str]) -> None:
    """Append the sentences of a stripped block: one line, or several that an editor wrapped."""
    find_end = (_ASCII_END if block.isascii() else _END).search
    begin = stop = 0
    end = len(block)
    while match := find_end(block, stop):
        stop = match.end()
        if stop < end and _ends_sentence(block, match):
            _add(block[begin:stop].strip(), sentences)
            begin = stop
    _add(block[begin:].strip() if begin else block, sentences)


def _add(sentence: str, sentences: list[str]) -> None:
    if len(sentence) > MAX_SENTENCE_CHARS:
        sentences.extend(_bounded(sentence))
    elif sentence:
        sentences.append(sentence)


def _ends_sentence(block: str, match: re.Match[str]) -> bool:
    """Check whether a run of stops, with the brackets and emoji after it, ends a sentence. More text must follow."""
    mark = match[0]
    if mark[0] in _CJK_STOPS:
        return True
    space = _SPACE.match(block, match.end())
    if space is None:
        return False
    after = block[space.end()]
    if mark[0] not in ".!?\u2026" or mark.startswith(("..", "\u2026")):
        return not after.islower()
    if mark[0] != "." or "!" in mark or "?" in mark:
        return not (after.islower() and mark[-1] in "\"'\u201d\u2019\u00bb)")
    return _full_stop_ends(block, match.start(), after)


def _full_stop_ends(block: str, stop: int, after: str) -> bool:
    """Check whether the single full stop at `stop` ends a sentence, not an abbreviation, initial or list number."""
    piece = block[max(0, stop - 24) : stop]
    token = piece.split()[-1] if piece and not piece[-1].isspace() else ""
    word = token.lstrip("(\"'\u201c\u2018[").lower()
    if not word or word in _ABBREVIATIONS:
        return False
    if word in _WEAK_ABBREVIATIONS:
        return not after.islower()
    if word in _NUMBERED:
        return not after.isdigit()
    if len(word) == 1 and word.isalpha() and word != "i":
        dotted = _DOTTED_LETTERS.search(piece) or _DOTTED_LETTER.match(block, stop + 1)
        return not (dotted or token[-1].isupper())
    before = piece.lower().split()[-2:-1]
    if word.isdigit() and len(word) < 3 and (after.islower() or _BEFORE_ORDINALS.intersection(before)):
        return False
    return not (word.isdigit() and block[:_MAX_LIST_NUMBER_CHARS].lstrip().startswith(token + "."))


def _bounded(sentence: str) -> Iterator[str]:
    """Split a sentence that is too long: after a comma or the like, else at white space, else inside a word."""
    begin = 0
    while len(sentence) - begin > MAX_SENTENCE_CHARS:
        limit = begin + MAX_SENTENCE_CHARS
        borders = [m.end() for m in re.compile(_SOFT_BORDER).finditer(sentence, begin + MAX_SENTENCE_CHARS // 3, limit)]
        spaces = [] if borders else [m.start() for m in _SPACE.finditer(sentence, begin + 1, limit)]
        cut = borders[-1] if borders else spaces[-1] if spaces else limit
        piece = sentence[begin:cut].strip()
        if piece:
            yield piece
        begin = cut
    rest = sentence[begin:].strip()
    if rest:
        yield rest


def tokens(text: str) -> list[str]:
    """List the words and identifiers of a text as written, in order."""
    return _WORD.findall(text)


def words(text: str) -> list[str]:
    """List the lower-case words of a text, in order.

    Numbers are words. An identifier (`record_operation`, `src/app.py`, `CamelCase`, `v1.2.3`, `#12`) is followed by its
    parts. Words joined only by hyphens yield just the parts, and a possessive loses its `'s`. Chinese, Japanese and
    Korean yield pairs of characters.
    """
    return [word for token in _WORD.findall(text) for word in _parts(token)]


def stem(word: str) -> str:
    """Stem a lower-case English word (Snowball); other scripts and identifiers are returned unchanged."""
    return _stem(word) if len(word) <= _LONG_WORD_CHARS else word


def content_stems(text: str) -> list[str]:
    """List the stems of the words of a text in order, with repeats but without stop words."""
    uncached = piece_stems.__wrapped__
    pieces = text.split()
    found = [(piece_stems if len(piece) <= _LONG_WORD_CHARS else uncached)(piece) for piece in pieces]
    return list(chain.from_iterable(found))


def plain_word(piece: str) -> str:
    """Return a piece of text without its punctuation if that leaves one plain ASCII word; else an empty string."""
    word = piece.strip(_PUNCTUATION)
    return word if word.isalpha() and word.isascii() and (word.islower() or word[1:].islower()) else ""


@lru_cache(maxsize=4_096)
def piece_stems(piece: str) -> tuple[str, ...]:
    """List the stems of a piece without white space. Cached, as no word spans two pieces and most pieces recur."""
    word = plain_word(piece)
    if word:
        word = word.lower()
        return () if word in STOP_WORDS else (stem(word),)
    if piece.isdigit():
        return (piece,)
    return tuple(chain.from_iterable(map(token_stems, _WORD.findall(piece))))


def token_stems(token: str) -> tuple[str, ...]:
    """List the stems of a word from `tokens` and of its parts, without stop words."""
    if len(token) > _LONG_WORD_CHARS:
        return (token.lower(),)
    # Numbers and identifiers are not stemmed: they must not occupy the stem cache.
    return tuple([_stem(word) if word.isalpha() else word for word in _parts(token) if word not in STOP_WORDS])


def _parts(token: str) -> list[str]:
    if len(token) > _LONG_WORD_CHARS:
        return [token.lower()]
    whole = token.lower().replace("\u2019", "'")
    if "'" in whole:
        return _apostrophe_parts(token, whole)
    if not whole.isascii() and re.search(_CJK, whole):
        return list(_pairs(whole))
    if token == whole:  # the common case: lower case has no CamelCase to split
        parts = whole.encode().translate(_JOINTS_AS_SPACES).decode().split()
    else:
        parts = [part.lower() for piece in _JOINT.split(token) if piece for part in _subparts(piece)]
    if parts[0] == whole or ("-" in whole and all(map(str.isalpha, whole.split("-")))):
        return parts
    return [whole, *parts]


def _apostrophe_parts(token: str, whole: str) -> list[str]:
    """Keep contractions intact, remove a possessive `'s`, and split tokens that have other joints as well."""
    if whole in STOP_WORDS:
        return [whole]
    if whole.endswith("'s"):
        return _parts(token[:-2])
    pieces = _JOINT.split(token.replace("\u2019", "'"))
    return [whole] if len(pieces) == 1 else [part for piece in pieces if piece for part in _parts(piece)]


def _subparts(piece: str) -> list[str]:
    """Split `CamelCase`; a piece that mixes letters and digits without a joint (`18th`, `a1b2c3`) is not split."""
    humps = _CAMEL.findall(piece) if piece.isascii() and piece.isalpha() and not piece.isupper() else []
    return [piece, *humps] if len(humps) > 1 else [piece]


def _pairs(whole: str) -> Iterator[str]:
    """Yield the pairs of neighbouring characters of each CJK run, and the text between the runs."""
    begin = 0
    for run in re.finditer(_CJK, whole):
        if run.start() > begin:
            yield whole[begin : run.start()]
        characters = run[0]
        yield from (characters[i : i + 2] for i in range(max(1, len(characters) - 1)))
        begin = run.end()
    if begin < len(whole):
        yield whole[begin:]


class _Stemmers(threading.local):
    """One stemmer for each thread, because a Snowball stemmer stores the word that it is processing."""

    def __init__(self) -> None:
        self.english = snowballstemmer.stemmer("english")


_stemmers = _Stemmers()


@lru_cache(maxsize=2_048)
def _stem(word: str) -> str:
    return str(_stemmers.english.stemWord(word)) if word.isascii() and word.isalpha() else word


def digest_of(*parts: str) -> str:
    """Return a digest of several texts in order, as 32 hexadecimal digits."""
    # U+DFFF ends each part, because no text contains it: halves of surrogate pairs are escaped beforehand.
    joined = "".join(f"{part}\udfff" for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def word_count(text: str) -> int:
    """Count the words of a text; in scripts without spaces, two characters count as a word."""
    if text.isascii():
        return len(text.split())
    return sum(max(1, len(re.findall(f"[{UNSPACED}]", piece)) // 2) for piece in text.split())


def squeeze(text: str) -> str:
    """Replace every run of white space by one space, and strip both ends."""
    return " ".join(text.split())


def visible(text: str) -> str:
    r"""Escape characters that text files or terminals cannot represent, as in `\x00`; line ends become line feeds.

    The opening of a markdown comment is escaped too, so that recorded data cannot pin themselves.
    """
    if "<!--" in text:
        text = text.replace("<!--", "<\\!--")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Everything that `_UNSHOWABLE` matches is unprintable, and `isprintable` is by far the faster test.
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _UNSHOWABLE.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)
