"""What a word and a sentence are worth in a summary, judged by general features of language alone.

The constants were set on two recorded conversations and checked on three others. Tried one at a time from about half to
double, none moved the share of kept answers (`benchmarks/_locomo.py`) by more than two points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from string import ascii_lowercase, ascii_uppercase, digits

from orchestra_mem.core.text import piece_stems, plain_word, token_stems, tokens

_Weighed = tuple[tuple[str, float], ...]  # what each of some stems weighs

_LIGHT_WORD = 0.25
_ADVERB = 0.4
_NAME = 1.6
_NUMBER = 1.2
_IDENTIFIER = 1.2  # for the whole of it, its parts share it
_DATA_WORD = 0.05  # hashes, keys, encoded data: the rarest of all words, and they say nothing
_UNPRONOUNCEABLE = 0.1
_MIN_ENCODED_CHARS = 10
_LONGEST_WORD_CHARS = 40

_CODE = 0.05
_FENCED = 0.4
_DATA_FIELD = 0.4
_QUESTION = 0.65
_SHORT = 0.3
_OUTCOME = 1.15
_KEY_FIELD = 1.3
_OF_ONESELF = 1.15
_OF_THE_OTHER = 0.85
_BACKWARD = 0.9
_FREE_SYMBOLS = 0.03  # share of the characters that prose may spend on symbols
_PROSE_SYMBOLS = 0.06
_SHORT_WORDS = 3
_HEAD_CHARS = 80  # enough for the few words that tell of whom a sentence speaks
_MIN_CODE_WORDS, _MAX_CODE_WORDS = 4, 30
_MAX_MEAN_WORD_CHARS = 25
_HALF_DEPTH_SENTENCES = 20

# Words that say little whatever the talk is about: light verbs, judgements, vague nouns, words of degree and discourse.
_LIGHT_STEMS = frozenset(
    found
    for word in """
    able absolutely actually ago ah aim almost alone along already alright also although always amazing another anybody
    anymore anyone anything anyway appreciate around ask aw away awesome awful back bad basically beautiful become
    believe besides best bet better big bit bring brilliant bunch bye call came care catch cause certain certainly
    chance change chat check clear clearly close cool come congrats consider could couple course crazy cute day deal
    deep definitely different difficult done dude easy either else end enjoy enough especially etc even ever every
    everybody everyone everything everywhere exactly excellent excited exciting fab fact fair fantastic far fascinating
    feel feeling felt figure find fine first forget forward found full fun funny gave get getting give given glad go
    goes going gone gonna good gorgeous got gotta great guess guy had haha happen happy hard hear heard hello help
    helpful hey hi hit hold honestly hope hopefully huge idea imagine important impressive incredible incredibly
    indeed inspiring instead interested interesting keep kept kind kinda knew know lately later least leave left less
    let level life like likely literally little load lol long look lot lots love lovely luck lucky made main maintain
    make making man many matter may maybe mean meet mention might mind moment much must name near nearly need never
    new next nice nobody nope nothing obviously often oh ok okay old one ones oops others otherwise part pass past
    people perfect perhaps person pic pick piece place plain please plenty plus point possible pretty probably proud put
    question quick quickly quite rather reach ready real really reason recently remember right rock said saw say see
    seem seen self sense several share short show side simple simply since small somebody somehow someone something
    sometimes somewhere soon sorry sort sound special start started stay step still stop stuff stunning super sure
    surely sweet take talk tell terrible terrific thank thanks thing things think though thought thrilled till
    time today together told tomorrow tonight took top totally tough toward treat tried true truly try turn type
    unbelievable understand unfortunately unless unique us use used useful usual usually valuable various via view
    wait wanna want wanted way week well went whatever whenever wherever whether whole wish without wonder wonderful
    word work world worry worth would wow wrong yay yeah yep yes yet yesterday yup
    """.split()
    for found in token_stems(word)
)
_IDENTIFIER_MARK = re.compile(r"[#@.]|[a-z][A-Z]|\d[A-Za-z]|[A-Za-z]\d|::")  # a dot in a token stands between words
_HASH = re.compile(r"(?=[0-9a-fA-F-]*\d)[0-9a-fA-F-]{7,}\Z")
_KIND_OF = dict.fromkeys(ascii_lowercase, "a") | dict.fromkeys(ascii_uppercase, "A") | dict.fromkeys(digits, "0")
_KINDS = "".join(_KIND_OF.get(chr(byte), "-") for byte in range(256)).encode()
_CHANGES_WITH_CAPITALS = (b"aA", b"0A", b"A0", b"AAa")  # a last capital begins the word behind it: `HTTPServer`
_VOWELS = frozenset("aeiouyAEIOUY")
_OUTCOME_STEMS = frozenset(
    found
    for word in """
    fail failure error fix broke broken crash decide decision chose chosen agree create add remove implement complete
    finish pass cause result switch replace release deploy merge revert rename update must never require block todo
    """.split()
    for found in token_stems(word)
)
_KEY_FIELDS = re.compile(
    r"\W{0,3}(?:error|status|result|decision|summary|reason|title|subject|goal|task|outcome|(?:root )?cause|fix|"
    r"message|note|warning|conclusion|question|answer|next steps?|todo)s?\W{0,3}:",
    re.IGNORECASE,
)
_SYMBOL = re.compile(r"[^\w\s.,;:'\"!?()\u2018\u2019\u201c\u201d\u2013\u2014\u2026-]")
_ASCII_SYMBOLS = bytes(code for code in range(128) if _SYMBOL.match(chr(code)))
_CODE_LINE = re.compile(
    r"\s*(?:\d+\s*[\u2192|]|(?:[^\s:]+:)?\d+[:-]\s?.*(?:\w\(| :?= )|[-dl][-rwx]{9}|"
    r"[-+]{1,3}\s?(?:[@$\w]+[({=:.]|\t| {2})|@@|[{}<>\\$|;/*\u2500-\u257f]|"
    r"(?:import|from|package|def|class|func|fn|return|const|let|var|async|await|export|public|private|static|type|struct|"
    r"enum|raise|throw|elif|else|except|catch|diff|index)\b(?=.*[({:;=]|.*\"| --git| [0-9a-f]{6,}))"
)
_CODE_MARK = re.compile(r"--+>|=>|->|:=|[!=]==?|\);|\{$")
_DATA_FIELD_LINE = re.compile(r"\s*[\"'][\w .$-]{1,40}[\"']\s*:")
_ANAPHOR = re.compile(r"(?:it|that|this|these|those|they|he|she|him|her)\b")
_SPEAKS_OF = re.compile(r"(?:\w++,? ){0,3}(?:i|we|my|our)\b|(?P<other>(?:\w++,? )?your?\b)")


class Vocabulary:
    """The words of a source by where they stand, which tells names and numbers from other words.

    It takes the pieces between white space: most come again and again, and each is weighed once.
    """

    __slots__ = ("_inside", "_opening", "_outside")

    def __init__(self) -> None:
        self._opening: set[str] = set()
        self._inside: set[str] = set()
        self._outside: set[str] = set()

    def add(self, pieces: Sequence[str], *, prose: bool) -> None:
        """Note the pieces of a sentence.

        The first one opens it, where a capital means nothing; outside prose neither capitals nor bare numbers do.
        """
        if prose:
            rest = iter(pieces)
            self._opening.add(next(rest))
            self._inside.update(rest)
        else:
            self._outside.update(pieces)

    def join(self, other: Vocabulary) -> None:
        """Note what another one has noted."""
        self._opening |= other._opening
        self._inside |= other._inside
        self._outside |= other._outside

    def weights(self) -> dict[str, float]:
        """Weigh each stem: the highest weight of the words that it comes from, over 0."""
        weighed = chain(map(_inside, self._inside), map(_opening, self._opening), map(_outside, self._outside))
        highest: dict[str, float] = {}
        for found, weight in chain.from_iterable(weighed):
            if weight > highest.get(found, 0.0):
                highest[found] = weight
        return highest


def of_language(weights: Mapping[str, float]) -> set[str]:
    """Give the stems that are words of language: not hashes, keys or encoded data."""
    return {found for found, weight in weights.items() if weight > _UNPRONOUNCEABLE}


@lru_cache(maxsize=4_096)
def _inside(piece: str) -> _Weighed:
    return _weighed(piece, False, False)


@lru_cache(maxsize=2_048)
def _opening(piece: str) -> _Weighed:
    return _weighed(piece, True, False)


@lru_cache(maxsize=2_048)
def _outside(piece: str) -> _Weighed:
    return _weighed(piece, False, True)


def _weighed(piece: str, opening: bool, plain: bool) -> _Weighed:
    """Weigh the words of a piece between white space."""
    word = plain_word(piece)
    found = [word] if word else tokens(piece)
    if len(found) == 1:
        return _shared(piece_stems(piece), found[0], plain or opening, plain)
    weighed: list[tuple[str, float]] = []
    for token in found:
        weighed += _shared(token_stems(token), token, plain or opening, plain)
        opening = False
    return tuple(weighed)


def _shared(stems: tuple[str, ...], token: str, opening: bool, plain: bool) -> _Weighed:
    """Let the stems of a token share its weight."""
    if not stems or len(token) > _LONGEST_WORD_CHARS:
        return ()
    weight = _token_weight(token, opening, plain)
    if len(stems) > 1:
        weight = 1.5 * weight / len(stems)
    return tuple([(found, weight * _LIGHT_WORD if found in _LIGHT_STEMS else weight) for found in stems])


def _token_weight(token: str, opening: bool, plain: bool) -> float:
    if token.isdigit():
        return _NUMBER if len(token) <= len("2024") and not plain else _NUMBER / 4
    if token.isalpha() and token[1:].islower():  # most are plain words: no identifiers, no data
        return _word_weight(token, opening)
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
    """Tell base64 and the like from names: their characters change kind every few places."""
    if len(token) < _MIN_ENCODED_CHARS:
        return False
    kinds = token.encode().translate(_KINDS)
    changes = kinds.count(b"a0") + kinds.count(b"0a")
    if b"A" in kinds:
        changes += sum(map(kinds.count, _CHANGES_WITH_CAPITALS))
    return changes * 3 >= len(token)


def sentence_weight(sentence: str, *, fenced: bool, place: int, count: int) -> tuple[float, bool]:
    """Weigh a sentence by its form and place, 0 and up, and tell whether it is prose, which may be shortened.

    `place` of `count` is where it stands in its passage: the beginning and the end say more than the middle.
    `fenced` says that it stands in a fenced block: code, or what a tool printed.
    """
    symbols = _count_symbols(sentence) / len(sentence)
    # No kind of code line begins with a capital unless a colon follows.
    may_be_code = ":" in sentence or not sentence[0].isupper()
    code = (may_be_code and _CODE_LINE.match(sentence) is not None) or (symbols > 0 and _has_code_mark(sentence))
    if (code or len(sentence) > _LONGEST_WORD_CHARS) and _says_nothing(sentence, code):
        return 0.0, False
    weight = _FENCED if fenced else 1.0
    if code:
        weight *= _CODE
    elif symbols > _FREE_SYMBOLS:
        weight *= max(0.1, 1.0 - 10.0 * (symbols - _FREE_SYMBOLS))
    depth = place if 2 * place < count else count - 1 - place
    if depth:
        weight *= 0.5 + 0.5 / (1.0 + depth / _HALF_DEPTH_SENTENCES)
    return weight, not (code or fenced) and symbols < _PROSE_SYMBOLS


def _count_symbols(sentence: str) -> int:
    if sentence.isascii():
        return len(sentence) - len(sentence.encode().translate(None, _ASCII_SYMBOLS))
    return len(_SYMBOL.findall(sentence))


def _has_code_mark(sentence: str) -> bool:
    may = "=" in sentence or ">" in sentence or ");" in sentence or sentence[-1] == "{"
    return may and _CODE_MARK.search(sentence) is not None


def _says_nothing(sentence: str, code: bool) -> bool:
    """Tell bare code, and long runs with hardly a space in them: encoded data, minified code.

    Scripts without spaces are not meant.
    """
    size = sentence.count(" ") + 1
    if code and not _MIN_CODE_WORDS <= size <= _MAX_CODE_WORDS:
        return True
    return len(sentence) > max(_LONGEST_WORD_CHARS, size * _MAX_MEAN_WORD_CHARS) and sentence.isascii()


def kind_weight(sentence: str, stems: Iterable[Iterable[str]]) -> float:
    """Weigh a sentence, whose clauses have these stems, by what kind of thing it says."""
    weight = 1.0
    if " because " in sentence or not all(map(_OUTCOME_STEMS.isdisjoint, stems)):
        weight = _OUTCOME
    elif sentence.count(" ") < _SHORT_WORDS:
        weight = _SHORT
    if ":" in sentence:
        if _KEY_FIELDS.match(sentence):
            return weight * _KEY_FIELD
        if _DATA_FIELD_LINE.match(sentence):
            return weight * _DATA_FIELD
    if sentence[-1] == "?":
        return weight * _QUESTION
    head = sentence[:_HEAD_CHARS].lower()
    if _ANAPHOR.match(head):
        weight *= _BACKWARD
    found = _SPEAKS_OF.match(head)
    if found:
        weight *= _OF_THE_OTHER if found["other"] else _OF_ONESELF
    return weight
