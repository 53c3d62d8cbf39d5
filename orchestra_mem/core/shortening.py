"""Make a spoken sentence shorter without changing what it says. It only deletes words; it never adds or swaps one.

What goes: greetings, interjections, the name of the one spoken to, emphasis, tag questions, empty lead-ins. What stays:
every negation, condition, limit and doubt. Code and data are not for this module: its callers leave them alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_MAX_CLAUSES = 8
_MIN_SPLIT_CHARS = 45  # a shorter sentence is not worth a cut
_MAX_OPENINGS = 4
_MAX_ENDING_CHARS = 32

_INTERJECTIONS = (
    r"wow|whoa|woah|yeah|yep|yup|yes|hey there|hey|hi there|hi|hello|ohh?|ahh?|aww?|haha\w*|hah|lol|omg|gosh|okay|ok|"
    r"well|"
    r"thank you(?: so much| again)?|thanks(?: so much| again| a lot| a ton| a bunch)?|cheers|congrats|congratulations|"
    r"sure(?: thing)?|of course|cool|nice|great|awesome|amazing|sweet|perfect|excellent|gotcha|got it|"
    r"no problem|no worries|absolutely|definitely|totally|exactly|right|really|hmm+|um+|uh+|man|dude|"
    r"anyways?|by the way|btw|so|and|but|"
    r"to be honest|tbh|honestly|frankly|you know(?: what)?|i mean|guess what|i must say|i have to say|i gotta say|"
    r"i must admit|as you know|in fact|actually|also|plus|basically|good (?:morning|evening|afternoon)"
)
_EMOJI = re.compile("[\U0001f300-\U0001faff\ufe0f\u200d]+")
_DELIMITED = re.compile(r"[\w'\u2019 ]{1,60}?(?:[,!.\u2026]| [-\u2013\u2014] |$)")
_LEAD_CONJUNCTION = re.compile(
    r"(?:so|and|but|also|plus) (?=(?:i|we|he|she|they|it|you|there|my|our)\b)", re.IGNORECASE
)
_LEAD_FRAME = re.compile(r"(?:i )?just (?:wanted|want) to (?:say|let you know|tell you)(?: that)?,? ", re.IGNORECASE)
_EMPHATIC = frozenset(
    "really truly totally absolutely literally honestly basically super definitely incredibly extremely very "
    "actually".split()
)
# Not behind a word of degree or an article ("the very end"), where they carry meaning.
_EMPHASIS = re.compile(
    r"(?<!\bhow )(?<!\bthe )(?<!\bif )(?<!\bas )(?<!\btoo )(?<!\bmore )(?<!\bless )(?<!\bonly )"
    rf"(?<!\S)(?:{'|'.join(sorted(_EMPHATIC))}) (?=[a-z])(?!much\b|well\b|few\b|little\b|and\b|or\b)",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not?|never|none|nothing|nor|neither|without|hardly|barely|cannot|\w+n['\u2019]?t)\b", re.IGNORECASE
)
# Only where white space stands on the outer side: taking it away must not join two words.
_BOLD = re.compile(r"(?<!\S)\*\*(?=\w)|(?<=[\w.:!?`)])\*\*(?=[.,:;!?]?(?:\s|$))")
_MARKS = re.compile(r"(?:#{1,6}|>+)\s+")
_TAG = re.compile(
    r",? (?:right|huh|eh|you know|y'?know|don['\u2019]t you think|(?:is|are|was|do|did|wo|ca)n['\u2019]t \w+)(?=\?+$)"
    r"|,? (?:haha|hehe|lol)(?=[.!?]*$)"
    r"|, you know(?=[.!]*$)",
    re.IGNORECASE,
)
_PLAIN_WORD = re.compile(r"[a-z]+(?:['\u2019][a-z]+)?,?(?: |[.!?]*$)")
_ENDS = ".!?\u2026"

# Borders between clauses: a strong mark, or a comma before a connector, or a connector before a new subject.
_SUBJECT = r"(?:i|we|he|she|they|it|you|there)(?:['\u2019](?:m|s|re|ve|d|ll))?\b"
_BORDER = re.compile(
    r"(?=[;\s,.\u2014\u2026-])(?:"  # most places are turned down by this alone
    r"(?P<strong>;\s+|\s+[-\u2013\u2014]{1,2}\s+|(?<=\w)--\s*|\s*\u2014\s*|\.{3}\s+|\u2026\s+)"
    r"|(?P<comma>,\s+)(?=(?:and|but|so|plus|because|which|as|since|while)\b)"
    rf"|(?P<bare>\s+)(?=(?:and|but) {_SUBJECT}))",
    re.IGNORECASE,
)
_DASHES = ("-", "--", "\u2013", "\u2014", "\u2013\u2013", "\u2014\u2014")
_SPACED_DASHES = (" - ", "--", "\u2013", "\u2014")
_LISTS_ON = re.compile(r"(?:and|plus|as|or)\b", re.IGNORECASE)
_OWN_SUBJECT = re.compile(
    rf"(?:(?P<link>and|but|so|plus)\s+)?(?:then |now |today |yesterday )?{_SUBJECT}", re.IGNORECASE
)
_LINK = re.compile(r"(?:and|but|so|plus)\s+", re.IGNORECASE)
# What a clause in front must not hold if the one behind it is to stand alone: it would lose its wish or condition.
_FRAMES_THE_REST = re.compile(
    r"\b(?:if|when|whenever|while|unless|once|after|before|until|although|though|because|since|as soon as|think|thinks|"
    r"thought|hope|hopes|hoped|hoping|wish|wished|imagine|imagined|dream|dreamed|believe|believed|guess|suppose|maybe|"
    r"perhaps|might|would|could|should|may|said|says|told|asked|asks|heard|says|whether|suggest|suggested|claim|claimed|"
    r"either|not only|neither|pretend|what|who|how|why|where)\b",
    re.IGNORECASE,
)
_WAITS_FOR_MAIN = re.compile(
    r"(?:if|when|whenever|while|unless|once|after|before|until|although|though|because|since|as|even|given|either|"
    r"neither|not only|whether|for|in|on|at|with|without|despite|during|instead)\b",
    re.IGNORECASE,
)
# What a clause behind must not hold if it is to be dropped: it would take back or limit what stands before it.
_LIMITS = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|nor|neither|unless|except|only|until|till|if|but|however|although|though|"
    r"without|instead|rather|otherwise|yet|cannot|hardly|barely|almost|supposed|when|as long as|provided|in case|"
    r"assuming|depending|pending|besides|kidding|joking|cancel\w*|revert\w*|chang\w+|actually|fail\w*|wrong|mistake\w*|"
    r"\w+n['\u2019]?t)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A part of a sentence. `opens`: a text may begin with it; `closes`: a text may end behind it."""

    start: int
    end: int
    opens: bool
    closes: bool


class Shortener:
    """Shortens sentences of a talk whose speakers are known, so that their names as forms of address can go."""

    def __init__(self, speakers: Iterable[str]) -> None:
        names = sorted({part for name in speakers for part in (name, *name.split()) if part[:1].isupper()})
        name = "|".join(re.escape(found) for found in names[:50]) or r"(?!)"
        self._opener, self._vocative, self._closing = _address_patterns(name)

    def shorten(self, sentence: str) -> str:
        """Give the sentence without its filler; empty where it is filler as a whole."""
        text = unmarked(sentence if sentence.isascii() else _EMOJI.sub(" ", sentence))
        if "**" in text:
            text = _BOLD.sub("", text)
        before = text
        text = self._without_ending(text)
        text = self._without_opening(text)
        if not _EMPHATIC.isdisjoint(text.lower().split()) and not _NEGATION.search(text):
            text = _EMPHASIS.sub("", text)
        text = text.lstrip(" ,").rstrip(" ,-\u2013\u2014")
        return text if not text or text == before else _capitalised(text)

    def _without_opening(self, text: str) -> str:
        for _ in range(_MAX_OPENINGS):
            if not _DELIMITED.match(text):
                break
            found = self._opener.match(text) or self._vocative.match(text)
            if found is None or not found.end():
                break
            text = text[found.end() :]
        for pattern in (_LEAD_CONJUNCTION, _LEAD_FRAME):
            found = pattern.match(text)
            text = text[found.end() :] if found else text
        return text

    def _without_ending(self, text: str) -> str:
        comma = text.rfind(", ", -_MAX_ENDING_CHARS)
        found = self._closing.match(text, comma) if comma >= 0 else None
        if found:
            text = text[:comma] + found[1]
        tag = _TAG.search(text, max(0, len(text) - _MAX_ENDING_CHARS))
        return text[: tag.start()] + text[tag.end() :] if tag else text


@lru_cache(maxsize=64)
def _address_patterns(name: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    address = rf"(?:,? (?:{name}|guys|buddy|bro|man|friend|everyone|all|folks))?"
    opener = re.compile(
        rf"(?:(?:{_INTERJECTIONS}){address}(?:[,!.\u2026]+(?: |$)| [-\u2013\u2014]+ |$))", re.IGNORECASE
    )
    vocative = re.compile(rf"(?:{name})(?:!+(?: |$)|, (?!and\b|or\b|(?:[A-Z]\w+,? )))")
    closing = re.compile(rf", (?:{name}|guys|buddy|bro|man|dude)([.!?\u2026]+)$")
    return opener, vocative, closing


def unmarked(text: str) -> str:
    """Give a line without the marks of a markdown heading or quotation, its white space as single spaces."""
    text = " ".join(text.split())
    mark = _MARKS.match(text)
    return text[mark.end() :] if mark else text


def _capitalised(text: str) -> str:
    """Give a sentence whose beginning was cut off its capital again, unless its first word is a name of its own."""
    return text[0].upper() + text[1:] if _PLAIN_WORD.match(text) else text


def whole(sentence: str) -> tuple[Clause]:
    """Give a sentence as the one clause that it is."""
    return (Clause(start=0, end=len(sentence), opens=True, closes=True),)


def clauses(sentence: str) -> tuple[Clause, ...]:
    """Split a sentence at the borders where it can be cut and both read and mean the same."""
    if len(sentence) < _MIN_SPLIT_CHARS or sentence[-1] == "?":
        return whole(sentence)
    borders = [border for border in _BORDER.finditer(sentence) if _is_border(sentence, border)][: _MAX_CLAUSES - 1]
    if not borders:
        return whole(sentence)
    starts = [0, *(border.end() for border in borders)]
    ends = [*(border.start() for border in borders), len(sentence)]
    closes = [True] * len(ends)
    waits = _WAITS_FOR_MAIN.match(sentence) is not None
    for i in range(len(ends) - 2, -1, -1):
        closes[i] = not waits and closes[i + 1] and not _LIMITS.search(sentence, starts[i + 1], ends[i + 1])
    opens = [True]
    free = True
    for i in range(1, len(starts)):
        free = free and not _FRAMES_THE_REST.search(sentence, starts[i - 1], ends[i - 1])
        opens.append(free and borders[i - 1]["bare"] is None and _OWN_SUBJECT.match(sentence, starts[i]) is not None)
    return tuple(
        Clause(start=start, end=end, opens=opening, closes=closing)
        for start, end, opening, closing in zip(starts, ends, opens, closes, strict=True)
    )


def _is_border(sentence: str, border: re.Match[str]) -> bool:
    """Tell a border from the marks of an insertion (two dashes) and the last comma of a list."""
    if border["strong"]:
        if sentence[: border.start()][-1:].isdigit() and sentence[border.end() : border.end() + 1].isdigit():
            return False
        return border[0].strip() not in _DASHES or sum(sentence.count(dash) for dash in _SPACED_DASHES) <= 1
    if border["comma"] and _LISTS_ON.match(sentence, border.end()):
        return "," not in sentence[: border.start()] or _OWN_SUBJECT.match(sentence, border.end()) is not None
    return True


def cut(sentence: str, first: Clause, last: Clause) -> str:
    """Give the sentence from one clause through another, as a sentence."""
    text = sentence[first.start : last.end]
    if first.start:
        link = _LINK.match(text)
        text = _capitalised(text[link.end() :] if link else text)
    if last.end < len(sentence):
        text = text.rstrip(" ,;:-\u2013\u2014")
        text = text if text[-1:] in _ENDS else text + "."
    return text
