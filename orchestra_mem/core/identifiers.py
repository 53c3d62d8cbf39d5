"""Identifiers in text: what a summary may neither invent nor lose unnoticed.

An identifier is `#12`, a path, a URL, a hash, a number with its unit, a version, a date or time, a quoted name, a
CamelCase or snake_case name. No disk, no clock, no state.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property

_MAX_QUOTED = 80

_EXTENSIONS = "|".join(
    "py pyi ipynb js jsx mjs cjs ts tsx go rs c h cc cpp hpp cs java kt swift rb php pl lua sh bash zsh ps1 bat sql db "
    "sqlite md rst txt adoc tex pdf doc docx xls xlsx ppt pptx odt csv tsv json jsonl ndjson yaml yml toml ini cfg "
    "conf env lock xml html htm css scss less svg png jpg jpeg gif webp ico mp3 mp4 wav zip tar gz tgz bz2 xz 7z whl "
    "jar war log out err bak tmp gguf bin exe dll so dylib proto graphql vue svelte tf gradle cmake mk patch diff pem "
    "key crt com org net io dev".split()
)
_MONTH = "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
_MONTH += "Nov(?:ember)?|Dec(?:ember)?)"
_UNIT = (
    "%|°[CF]?|percent\\b|(?:[kKMGTP]i?)?(?:B|bytes?|bits?|bps)\\b|[kmMGT]?Hz\\b|[µumn]s(?:ecs?)?\\b|"
    "s(?:ecs?|econds?)?\\b|"
    "mins?\\b|minutes?\\b|h(?:rs?|ours?)?\\b|days?\\b|weeks?\\b|months?\\b|years?\\b|milliseconds?\\b|[kcm]?m\\b|"
    "(?:kilo|centi|milli)?met(?:er|re)s?\\b|inch(?:es)?\\b|in\\b(?= by| x|[.,])|ft\\b|feet\\b|yards?\\b|miles?\\b|"
    "mph\\b|[kmµ]?g\\b|(?:kilo)?grams?\\b|kilos?\\b|lbs?\\b|pounds?\\b|oz\\b|ounces?\\b|tons?\\b|tonnes?\\b|[mcd]?[lL]\\b|"
    "lit(?:er|re)s?\\b|gallons?\\b|cups?\\b|tbsp\\b|tsp\\b|(?:milli)?[kM]?[VWA]h?\\b|volts?\\b|watts?\\b|amps?\\b|"
    "degrees?\\b|[CF]\\b|px\\b|em\\b|rem\\b|dpi\\b|tokens?\\b|req/s\\b|rps\\b|qps\\b|fps\\b|x\\b|k\\b|K\\b|M\\b|bn\\b|"
    "thousand\\b|million\\b|billion\\b|dollars?\\b|euros?\\b|USD\\b|EUR\\b|GBP\\b|[ap]\\.?m\\b|[AP]M\\b"
)
_NUMBER = r"(?:\d+/)?\d+(?:[.,]\d+)*"
# Only the first digit of a run may start a match: else a long run costs its square.
_AT_NUMBER = r"(?<!\d)(?<!\d[.,])"

# Spans that may hold a blank. A line feed never belongs to one, so that lines can be judged one by one. Here and below
# a look at the first character spares most places the attempts.
# Three that are compiled when they are first needed: that is slow.
_SPANS = (
    rf"(?=[$€£¥\dJFMASOND])(?:(?P<money>[$€£¥][ \t]?{_NUMBER}(?:[ \t]?(?:k|K|m|M|bn|thousand|million|billion)\b)?)"
    rf"|(?P<day>\d{{1,2}}(?:st|nd|rd|th)?(?:[ \t]of)?[ \t]{_MONTH}\b(?:,?[ \t]\d{{4}}\b)?)"
    r"|(?P<stamp>\d{4}-\d\d-\d\d(?:[T \t]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[ ]?UTC|[+-]\d\d:?\d\d)?)?)"
    r"|(?P<clock>\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[ \t]?[aApP]\.?[mM]\b)?)"
    rf"|(?P<amount>{_AT_NUMBER}{_NUMBER}[ \t]?(?:{_UNIT}))"
    rf"|(?P<month>\b{_MONTH}\.?[ \t]\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[ \t]\d{{4}}\b)?))"
)
_DIGIT = re.compile(r"\d")
_QUOTED = (
    rf"(?=[\"`“«'‘])(?:(?<![\w\"])\"(?![\s\"])([^\"\n]{{1,{_MAX_QUOTED}}})(?<!\s)\"(?!\w)"
    rf"|(?<!`)`([^`\n]{{1,{_MAX_QUOTED}}})`(?!`)"
    rf"|“([^“”\n]{{1,{_MAX_QUOTED}}})”"
    rf"|«([^«»\n]{{1,{_MAX_QUOTED}}})»"
    rf"|(?<![\w'’])['‘](?!\s)([^'‘’\n]{{1,{_MAX_QUOTED}}})(?<!\s)['’](?![\w'’]))"
)
_OPENS = re.compile(r"(?<!\w)[\"'‘]|[`“«]")
_CLOSES = re.compile(r"[\"'’](?!\w)|[`”»]")

# Tokens with a digit, a capital or a mark: in any other word there is no identifier.
_TOKEN = re.compile(r"(?<!\S)(?=[^\s\d_/\\@#.A-Z]*[\d_/\\@#.A-Z])\S+")
_WORD = re.compile(r"\w+")
# A token without any of these cannot hold an identifier; most words of prose end here.
_PROMISING = re.compile(r"[\d_/\\@#]|\.\w|[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_IN_TOKEN = (
    r"(?P<url>[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s<>\"`|]+)"
    r"|(?P<email>(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<uuid>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})"
    r"|(?P<windows>[A-Za-z]:\\[^\s\"'`<>|*?,;]*|\\\\[\w.$-]+(?:\\[\w.$ -]+)+|(?<![\w.\\-])[\w.-]+(?:\\[\w.-]+){2,}"
    rf"|(?<![\w.\\-])[\w.-]+\\[\w-]+\.(?:{_EXTENSIONS})\b)"
    r"|(?P<rooted>(?:(?<![\w.~-])(?:~|\.{1,2})?/|~[\w-]+/)[\w.@+~%-]+(?:/[\w.@+~%-]+)*/?)"
    r"|(?P<relative>(?<![\w.@+-])[\w.@+-]+(?:/[\w.@+-]+)+/?)"
    rf"|(?P<file>(?<![\w.-])[\w-]+(?:\.[\w-]+)*\.(?:{_EXTENSIONS})\b(?![\w-]))"
    r"|(?P<number>#(?:\d+|[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b"
    r"|\bv?\d+(?:[.,]\d+)+(?:[-.]?(?:a|b|rc|dev|post|alpha|beta)\.?\d*)?"
    r"|\bv\d+\b|\d{1,2}(?:st|nd|rd|th)\b)"
    r"|(?P<kebab>(?<![\w-])[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+)"
    r"|(?P<name>\w+)"
)
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_SNAKE = re.compile(r"[A-Za-z0-9]_[A-Za-z0-9]|__\w+__|_[A-Za-z]{2,}")
_CODE = re.compile(r"[A-Z]{1,6}\d+[A-Z0-9]*\Z")
_HEX = re.compile(r"(?:[0-9a-f]{7,128}|[0-9A-F]{7,128})\Z")

# Either side of a slash in prose: "and/or" is no path.
_PROSE_SIDES = frozenset(
    "a an and or nor not he she his her him hers they them we i you it if but yes no on off in out up down am pm "
    "true false input output read write start stop open close either both new old left right day night week month year "
    "min max mr mrs ms client server pass fail go no-go plus minus pros cons win lose before after".split()
)

_PLAIN = (("‘", "'"), ("’", "'"), ("“", '"'), ("”", '"'), ("\u00a0", " "), ("\u202f", " "))
_GROUP_COMMA = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_GAP = re.compile(r"(?<=\d) (?=[^\W\d]|[%°])|(?<=[$€£¥]) (?=\d)")
_BLANKS = re.compile(r"\s+")


def find_identifiers(text: str) -> tuple[str, ...]:
    """Find the distinct identifiers of a text, in the order of their first appearance.

    Quoted names come without their quotes; trailing punctuation is left off. Takes time linear in the text.
    """
    return _find(text, known=())


def _find(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Find the identifiers of a text, without those that stand within single tokens that are `known`."""
    found = sorted(_quoted(text), key=lambda span: span[0])
    spans = [
        (match.start(), match.end(), match.group())
        for start, end in _lines_with_digit(text)
        for match in re.compile(_SPANS).finditer(text, start, end)
        if _stands_alone(text, match.start(), match.end())
    ]
    found.extend(spans)
    found.extend(_outside(spans, _in_tokens(text, known)))
    found.sort(key=lambda span: (span[0], -span[1]))
    return tuple(dict.fromkeys(identifier for _, _, identifier in found))


def missing_identifiers(of: str, in_: str) -> tuple[str, ...]:
    """Name the identifiers of one text that another lacks, in order of first appearance.

    With a summary and its source this gives what was invented, the other way round what was dropped. White space, the
    shape of quotes, commas between thousands and the blank before a unit make no difference; `#13` is not there
    because `#134` is. A text made of passages of `in_`, cut at white space and set on lines of their own, lacks none.
    """
    there = _Haystack(in_)
    # A line that stands there word for word, cut at white space, lacks nothing.
    lines = (line for line in of.split("\n") if not _is_within(line, in_))
    # A token that stands there whole brings what is within it along.
    tokens = frozenset(in_.split())
    return tuple(identifier for identifier in _find("\n".join(lines), tokens) if identifier not in there)


def quoted_names(text: str) -> frozenset[str]:
    """Give what is in quotes or backticks in a text, without them."""
    return frozenset(name for _, _, name in _quoted(text))


def is_quoted_across(line: str, place: int) -> bool:
    """Tell whether something in quotes or backticks begins before a place of a line and ends behind it."""
    if not (_OPENS.search(line, max(0, place - _MAX_QUOTED - 1), place)
            and _CLOSES.search(line, place, place + _MAX_QUOTED + 1)):  # fmt: skip
        return False  # as for nearly all
    return any(match.start() < place < match.end() for match in re.finditer(_QUOTED, line))


def _is_within(line: str, text: str) -> bool:
    """Tell whether a line is in a text word for word, cut at white space."""
    bare = line.removeprefix("- ").strip()
    at = text.find(bare)
    end = at + len(bare)
    return at >= 0 and (at == 0 or text[at - 1].isspace()) and (end == len(text) or text[end].isspace())


def _lines_with_digit(text: str) -> Iterator[tuple[int, int]]:
    """Give where the lines are that may hold a span: every span has a digit, and most lines of prose have none."""
    digit = _DIGIT.search(text)
    while digit:
        end = text.find("\n", digit.start())
        end = len(text) if end < 0 else end
        yield text.rfind("\n", 0, digit.start()) + 1, end
        digit = _DIGIT.search(text, end)


def _quoted(text: str) -> Iterator[tuple[int, int, str]]:
    for match in re.finditer(_QUOTED, text):
        group = match.lastindex or 1
        name = match.group(group).strip().rstrip(".,;:!?").strip()
        start = match.start(group)
        if _WORD.search(name) and len(name) > 1:
            yield start, start + len(name), name


def _in_tokens(text: str, known: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the identifiers inside single tokens; one that is known or comes again is not looked at."""
    seen = set(known)
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in seen:
            continue
        seen.add(token)
        if _PROMISING.search(token) is None:
            continue
        for start, end in _token_spans(token):
            yield match.start() + start, match.start() + end, token[start:end]


def _token_spans(token: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(_IN_TOKEN, token):
        start, end = match.span()
        kind = match.lastgroup or ""
        if kind in ("url", "windows", "rooted", "relative"):
            end = start + len(match.group().rstrip(".,;:!?)]}'’*_-+@%"))
        is_one = _FURTHER.get(kind, bool)
        if is_one(token[start:end]) and _stands_alone(token, start, end):
            yield start, end


def _is_path(value: str) -> bool:
    """Tell a relative path from a pair of words with a slash between them."""
    sides = [side for side in value.split("/") if side]
    if len(sides) < 2 or (all(side.isdigit() for side in sides) and len(sides) != 3):
        return False
    return all(any(c.isalnum() for c in side) for side in sides) and not any(s.lower() in _PROSE_SIDES for s in sides)


def _is_rooted(value: str) -> bool:
    return any(c.isalpha() for c in value)


def _is_name(value: str) -> bool:
    if _HEX.match(value):
        return not value.isdigit() and not value.isalpha()
    return bool(_CAMEL.search(value) or _SNAKE.search(value) or _CODE.match(value)) and not value.isdigit()


def _is_kebab(value: str) -> bool:
    return any(c.isdigit() for c in value) or any(_is_name(part) for part in value.split("-"))


# What a match must be besides; those that are not here are identifiers as they are.
_FURTHER = {"rooted": _is_rooted, "relative": _is_path, "kebab": _is_kebab, "name": _is_name}


def _outside(
    spans: list[tuple[int, int, str]], inner: Iterator[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """Drop from `inner` what lies within one of `spans`; both in order of position."""
    at = 0
    for start, end, identifier in inner:
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        if at == len(spans) or not (spans[at][0] <= start and end <= spans[at][1]):
            yield start, end, identifier


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Tell whether what stands at `start` to `end` is not the middle of a longer word or number.

    Both the finding and the look-up ask this, so that whatever is found in a passage is found in its source.
    """
    first, last = text[start], text[end - 1]
    if _wordy(first) and start:
        before = text[start - 1]
        if _wordy(before) or (first.isdigit() and before in ".," and start > 1 and text[start - 2].isdigit()):
            return False
    if _wordy(last) and end < len(text):
        after = text[end]
        if _wordy(after) or (last.isdigit() and after in ".," and end + 1 < len(text) and text[end + 1].isdigit()):
            return False
    return True


def _wordy(character: str) -> bool:
    return character.isalnum() or character == "_"


def _canonical(text: str) -> str:
    """Fold what makes no difference: white space, quotes, thousands, the blank between number and unit."""
    for fine, plain in _PLAIN:  # `translate` takes thirty times as long
        text = text.replace(fine, plain)
    return _GROUP_COMMA.sub("", _BLANKS.sub(" ", text))


class _Haystack:
    """A text to look identifiers up in. What most look-ups do without is made by the first that needs it."""

    def __init__(self, text: str) -> None:
        self._raw = text

    def __contains__(self, identifier: str) -> bool:
        wanted = _canonical(identifier)
        return any(map(self._occurs, (wanted, *_variants(wanted)))) or identifier in self._found

    @cached_property
    def _text(self) -> str:
        return _canonical(self._raw)

    @cached_property
    def _found(self) -> frozenset[str]:
        return frozenset(find_identifiers(self._raw))

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for match in _WORD.finditer(self._text):
            places.setdefault(match.group(), []).append(match.start())
        return places

    def _occurs(self, wanted: str) -> bool:
        first = self._text.find(wanted)
        if first < 0 or (wanted and _stands_alone(self._text, first, first + len(wanted))):
            return first >= 0
        words = [(m.group(), m.start()) for m in _WORD.finditer(wanted)]
        if not words:
            return wanted in self._text
        # Bounded on both sides, an occurrence has each of its words as a whole word of the text: the rarest decides.
        word, offset = min(words, key=lambda pair: len(self._places.get(pair[0], ())))
        starts = (at - offset for at in self._places.get(word, ()) if at >= offset)
        return any(
            self._text.startswith(wanted, start) and _stands_alone(self._text, start, start + len(wanted))
            for start in starts
        )


def _variants(wanted: str) -> Iterator[str]:
    """Yield other ways to write a number with its unit: `250 ms` and `250ms`."""
    closed = _GAP.sub("", wanted)
    if closed != wanted:
        yield closed
    match = re.match(r"([$€£¥]?\d+(?:\.\d+)*)([^\W\d]+|%|°\w?)\Z", wanted)
    if match:
        yield f"{match[1]} {match[2]}"
