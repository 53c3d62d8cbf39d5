"""Find the identifiers of a text, which a summary may neither invent nor lose unnoticed.

An identifier is `#12`, a path, a URL, a hash, a number with its unit, a version, a date or time, a quoted name, a
CamelCase or snake_case name. No disk, no clock, no state.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache

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
# Only the first digit of a run may start a match; otherwise a long run takes quadratic time.
_AT_NUMBER = r"(?<!\d)(?<!\d[.,])"

# Identifiers that may contain a space, but never a line feed, so that lines can be searched one by one. Here and below
# a lookahead for the first character rejects most positions cheaply.
# `_SPANS`, `_QUOTED` and `_IN_TOKEN` are compiled on first use, because that is slow.
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

# Tokens with a digit, a capital or one of `_/\@#.`; no other word contains an identifier.
_TOKEN = re.compile(r"(?<!\S)(?=[^\s\d_/\\@#.A-Z]*[\d_/\\@#.A-Z])\S+")
_WORD = re.compile(r"\w+")
# A token without any of these contains no identifier; most words of prose are rejected by this test.
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

# Words that occur next to a slash in prose: "and/or" is no path.
_PROSE_SIDES = frozenset(
    "a an and or nor not he she his her him hers they them we i you it if but yes no on off in out up down am pm "
    "true false input output read write start stop open close either both new old left right day night week month year "
    "min max mr mrs ms client server pass fail go no-go plus minus pros cons win lose before after".split()
)

_PLAIN = (("‘", "'"), ("’", "'"), ("“", '"'), ("”", '"'), ("\u00a0", " "), ("\u202f", " "))
_GROUP_COMMA = re.compile(r",(?<=\d,)(?=\d{3}(?!\d))")
_GAP = re.compile(r"(?<=\d) (?=[^\W\d]|[%°])|(?<=[$€£¥]) (?=\d)")


def find_identifiers(text: str) -> tuple[str, ...]:
    """Return the distinct identifiers of a text, in order of first appearance.

    Quoted names are returned without their quotes, other identifiers without trailing punctuation. Linear time.
    """
    return _find(text, known=())


def _find(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Find the identifiers of a text, but skip tokens that are `known`."""
    spans = [
        (match.start(), match.end(), match.group())
        for start, end in _lines_with_digit(text)
        for match in re.compile(_SPANS).finditer(text, start, end)
        if _stands_alone(text, match.start(), match.end())
    ]
    found = [*_quoted(text), *spans, *_outside(spans, _in_tokens(text, known))]
    found.sort(key=lambda span: (span[0], -span[1]))
    return tuple(dict.fromkeys(identifier for _, _, identifier in found))


def missing_identifiers(of: str, in_: str) -> tuple[str, ...]:
    """Return the identifiers of the text `of` that the text `in_` lacks, in order of first appearance.

    If `of` is a summary and `in_` its source, these are the invented identifiers; the other way round, the lost ones.
    White space, the style of quotes, thousands separators and the space before a unit are ignored. `#134` does not
    count as `#13`. A text lacks none if each of its lines is a passage of `in_` that was cut out at white space.
    """
    there = _Haystack(in_)
    # A line that `in_` contains verbatim, cut at white space, lacks nothing.
    lines = (line for line in of.split("\n") if not _is_within(line, in_))
    # The identifiers inside a token of `in_` are in `in_` as well.
    tokens = frozenset(in_.split())
    return tuple(identifier for identifier in _find("\n".join(lines), tokens) if identifier not in there)


def quoted_names(text: str) -> frozenset[str]:
    """Return the passages of a text that are in quotes or backticks, without the quotes."""
    return frozenset(name for _, _, name in _quoted(text))


def is_quoted_across(line: str, place: int) -> bool:
    """Check whether a passage in quotes or backticks begins before offset `place` of a line and ends after it."""
    if not (_OPENS.search(line, max(0, place - _MAX_QUOTED - 1), place)
            and _CLOSES.search(line, place, place + _MAX_QUOTED + 1)):  # fmt: skip
        return False  # the common case
    return any(match.start() < place < match.end() for match in re.finditer(_QUOTED, line))


def _is_within(line: str, text: str) -> bool:
    """Check whether the first occurrence of a line, without its bullet, is bounded by white space in a text."""
    bare = line.removeprefix("- ").strip()
    at = text.find(bare)
    end = at + len(bare)
    return at >= 0 and (at == 0 or text[at - 1].isspace()) and (end == len(text) or text[end].isspace())


def _lines_with_digit(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line with a digit: every match of `_SPANS` has one, most lines of prose have none."""
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
    """Yield the identifiers inside single tokens; known tokens are skipped."""
    spans: dict[str, tuple[tuple[int, int], ...]] = {}
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token not in spans:
            find = _token_spans if len(token) <= _MAX_QUOTED else _token_spans.__wrapped__  # cache no long data
            spans[token] = find(token) if token not in known and _PROMISING.search(token) else ()
        for start, end in spans[token]:
            yield match.start() + start, match.start() + end, token[start:end]


@lru_cache(maxsize=2_048)
def _token_spans(token: str) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for match in re.finditer(_IN_TOKEN, token):
        start, end = match.span()
        kind = match.lastgroup or ""
        if kind in ("url", "windows", "rooted", "relative"):
            end = start + len(match.group().rstrip(".,;:!?)]}'’*_-+@%"))
        is_one = _FURTHER.get(kind, bool)
        if is_one(token[start:end]) and _stands_alone(token, start, end):
            found.append((start, end))
    return tuple(found)


def _is_path(value: str) -> bool:
    """Distinguish a relative path from words joined by slashes."""
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


# Further conditions by kind of match; a match of any other kind is always an identifier.
_FURTHER = {"rooted": _is_rooted, "relative": _is_path, "kebab": _is_kebab, "name": _is_name}


def _outside(
    spans: list[tuple[int, int, str]], inner: Iterator[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """Yield the items of `inner` that lie within none of `spans`; both are in order of position."""
    at = 0
    for start, end, identifier in inner:
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        if at == len(spans) or not (spans[at][0] <= start and end <= spans[at][1]):
            yield start, end, identifier


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Check whether the text from `start` to `end` is not part of a longer word or number.

    Search and look-up share this rule, so that every identifier found in a passage is also found in its source.
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
    """Normalise white space and quotes, and remove thousands separators and white space at the ends."""
    for fine, plain in _PLAIN:  # `translate` is thirty times slower
        text = text.replace(fine, plain)
    return _GROUP_COMMA.sub("", " ".join(text.split()))


class _Haystack:
    """A text in which identifiers are looked up. Data that few look-ups need are computed on first use."""

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

    def _occurs(self, wanted: str) -> bool:
        at = self._text.find(wanted)
        while at >= 0 and wanted and not _stands_alone(self._text, at, at + len(wanted)):
            at = self._text.find(wanted, at + 1)
        return at >= 0


def _variants(wanted: str) -> Iterator[str]:
    """Yield the other spelling of a number with its unit or currency: `250ms` for `250 ms` and the reverse."""
    closed = _GAP.sub("", wanted)
    if closed != wanted:
        yield closed
    match = re.match(r"([$€£¥]?\d+(?:\.\d+)*)([^\W\d]+|%|°\w?)\Z", wanted)
    if match:
        yield f"{match[1]} {match[2]}"
    if match := re.match(r"([$€£¥])(\d.*)", wanted):
        yield f"{match[1]} {match[2]}"
