"""Make a spoken sentence shorter without changing what it says. It only deletes words; it never adds or swaps one.

What goes: greetings, interjections, the name of the one spoken to, emphasis, tag questions, empty lead-ins. What stays:
every negation, condition, limit and doubt. Code and data are not for this module: its callers leave them alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_MAX_CLAUSES = 8
_MIN_SPLIT_CHARS = 45  # a shorter sentence is not worth a cut
_MAX_OPENINGS = 4
_MAX_ENDING_CHARS = 32
_MAX_NAME_CHARS = 60

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
_OPENER_END = r"(?:[,!.\u2026]+(?: |$)| [-\u2013\u2014]+ |$)"
_OPENER = re.compile(rf"(?:{_INTERJECTIONS}){_OPENER_END}")
# Whether it is a name is looked up behind the match: a pattern of the names would have to be compiled for each talk.
_ADDRESSED_OPENER = re.compile(rf"(?:{_INTERJECTIONS}),? (?P<name>[^,!\u2026]{{1,{_MAX_NAME_CHARS}}}?){_OPENER_END}")
_VOCATIVE = re.compile(rf"(?P<name>[^,!]{{1,{_MAX_NAME_CHARS}}})(?:!+(?: |$)|, (?!and\b|or\b|(?:[A-Z]\w+,? )))")
_CLOSING = re.compile(rf", (?P<name>.{{1,{_MAX_NAME_CHARS}}}?)(?P<marks>[.!?\u2026]+)$")
_SPEAKS_TO = re.compile(r"\byou(?:rs?|'[a-z]+)?\b")
_COMMON_ADDRESSES = frozenset("guys buddy bro man friend everyone all folks".split())
_CLOSING_ADDRESSES = frozenset("guys buddy bro man dude".split())
# The first words of those above and of the lead-ins below; what is spelled in many ways by its first letters.
_HEADS = frozenset(
    "wow whoa woah yeah yep yup yes hey hi hello oh ohh ah ahh aw aww hah lol omg gosh okay ok well thank thanks "
    "cheers congrats congratulations sure of cool nice great awesome amazing sweet perfect excellent gotcha got no "
    "absolutely definitely totally exactly right really man dude anyway anyways by btw so and but to tbh honestly "
    "frankly you guess as in actually also plus basically good just".split()
)
_HEAD_STARTS = ("haha", "hmm", "um", "uh")
_HEAD_ENDS = ",!.\u2026"
_AFTER_I = frozenset("mean must have gotta just".split())
_LAUGHS = frozenset("haha hehe lol".split())
_EMOJI = re.compile("[\U0001f300-\U0001faff\ufe0f\u200d]+")
_OPENING_WORDS = re.compile(r"[\w'\u2019 ]{1,60}")
_DELIMITERS = ",!.\u2026-\u2013\u2014"
_LEAD = re.compile(
    r"(?:(?:so|and|but|also|plus) (?=(?:i|we|he|she|they|it|you|there|my|our)\b))?"
    r"(?:(?:i )?just (?:wanted|want) to (?:say|let you know|tell you)(?: that)?,? )?"
)
_EMPHATIC = frozenset(
    "really truly totally absolutely literally honestly basically super definitely incredibly extremely very "
    "actually".split()
)
_EMPHATIC_FORMS = frozenset(form for word in _EMPHATIC for form in (word, word.capitalize(), word.upper()))
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
_MARK_CHARS = ("#", ">")
_TAG = re.compile(
    r",? (?:right|huh|eh|you know|y'?know|don['\u2019]t you think|(?:is|are|was|do|did|wo|ca)n['\u2019]t \w+)(?=\?+$)"
    r"|,? (?:haha|hehe|lol)(?=[.!?]*$)"
    r"|, you know(?=[.!]*$)",
    re.IGNORECASE,
)
_PLAIN_WORD = re.compile(r"[a-z]+(?:['\u2019][a-z]+)?,?(?: |[.!?]*$)")
_ENDS = ".!?\u2026"

# Borders between clauses: a strong mark, or a comma before a connector, or a connector before a new subject. Each way
# begins with a character of its own, so that the engine skips to the candidates.
_SUBJECT = r"(?:i|we|he|she|they|it|you|there)(?:['\u2019](?:m|s|re|ve|d|ll))?\b"
_BORDER = re.compile(
    r"; | [-\u2013\u2014]{1,2} |-(?<=\w-)- ?| \u2014 ?|\u2014 ?|\.\.\. |\u2026 "
    r"|, (?=(?:and|but|so|plus|because|which|as|since|while)\b)"
    rf"| (?=(?:and|but) {_SUBJECT})"
)
_DASHES = ("-", "--", "\u2013", "\u2014", "\u2013\u2013", "\u2014\u2014")
_SPACED_DASHES = (" - ", "--", "\u2013", "\u2014")
_LISTS_ON = re.compile(r"(?:and|plus|as|or)\b")
_OWN_SUBJECT = re.compile(rf"(?:(?P<link>and|but|so|plus)\s+)?(?:then |now |today |yesterday )?{_SUBJECT}")
_LINK = re.compile(r"(?:and|but|so|plus)\s+", re.IGNORECASE)
# What a clause in front must not hold if the one behind it is to stand alone: it would lose its wish or condition.
_FRAMES_THE_REST = re.compile(
    r"\b(?:if|when|whenever|while|unless|once|after|before|until|although|though|because|since|as soon as|think|thinks|"
    r"thought|hope|hopes|hoped|hoping|wish|wished|imagine|imagined|dream|dreamed|believe|believed|guess|suppose|maybe|"
    r"perhaps|might|would|could|should|may|said|says|told|asked|asks|heard|says|whether|suggest|suggested|claim|claimed|"
    r"either|not only|neither|pretend|what|who|how|why|where)\b"
)
_WAITS_FOR_MAIN = re.compile(
    r"(?:if|when|whenever|while|unless|once|after|before|until|although|though|because|since|as|even|given|either|"
    r"neither|not only|whether|for|in|on|at|with|without|despite|during|instead)\b"
)
# What a clause behind must not hold if it is to be dropped: it would take back or limit what stands before it.
_LIMITS = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|nor|neither|unless|except|only|until|till|if|but|however|although|though|"
    r"without|instead|rather|otherwise|yet|cannot|hardly|barely|almost|supposed|when|as long as|provided|in case|"
    r"assuming|depending|pending|besides|kidding|joking|cancel\w*|revert\w*|chang\w+|actually|fail\w*|wrong|mistake\w*|"
    r"\w+n['\u2019]?t)\b"
)


class Clause(NamedTuple):
    """A part of a sentence. `opens`: a text may begin with it; `closes`: a text may end behind it."""

    start: int
    end: int
    opens: bool
    closes: bool


class Shortener:
    """Shortens sentences of a talk whose speakers are known, so that their names as forms of address can go."""

    def __init__(self, speakers: Iterable[str]) -> None:
        self._names = {part for name in speakers for part in (name, *name.split()) if part[:1].isupper()}
        self._addresses = _COMMON_ADDRESSES.union(name.lower() for name in self._names)
        self._last_words = {name.split()[-1] for name in self._addresses}
        self._heads = _HEADS.union(name.split()[0].rstrip(_HEAD_ENDS) for name in self._addresses)

    def shorten(self, sentence: str) -> str:
        """Give the sentence without its filler; empty where it is filler as a whole."""
        text = unmarked(sentence if sentence.isascii() else _EMOJI.sub(" ", sentence))
        if "**" in text:
            text = _BOLD.sub("", text)
        pieces = text.split(" ")
        before = text
        if text[-1:] == "?" or ", " in text[-_MAX_ENDING_CHARS:] or pieces[-1].rstrip(_ENDS).lower() in _LAUGHS:
            text = self._without_ending(text)
        if self._may_open_empty(pieces):
            text = self._without_opening(text)
        if not _EMPHATIC_FORMS.isdisjoint(pieces) and not _NEGATION.search(text):
            text = _EMPHASIS.sub("", text)
        text = text.lstrip(" ,").rstrip(" ,-\u2013\u2014")
        return text if not text or text == before else _capitalised(text)

    def _may_open_empty(self, pieces: list[str]) -> bool:
        """Tell whether a sentence may begin with what can go. It is asked of every one, the patterns of few."""
        head = pieces[0].rstrip(_HEAD_ENDS).lower()
        if head == "i":
            return len(pieces) > 1 and pieces[1].rstrip(_HEAD_ENDS).lower() in _AFTER_I
        return head in self._heads or head.startswith(_HEAD_STARTS)

    def _without_opening(self, text: str) -> str:
        lowered = _lowered(text)
        begin = 0
        for _ in range(_MAX_OPENINGS):
            end = self._opening_end(text, lowered, begin)
            if end <= begin:
                break
            begin = end
        lead = _LEAD.match(lowered, begin)
        return text[lead.end() if lead else begin :]

    def _opening_end(self, text: str, lowered: str, begin: int) -> int:
        """Find where an interjection, with whom it speaks to, or the name alone of the one spoken to ends."""
        head = _OPENING_WORDS.match(text, begin)
        if head is None or text[head.end() : head.end() + 1] not in _DELIMITERS:
            return begin
        found = _OPENER.match(lowered, begin)
        if found:
            return found.end()
        words = head[0].rstrip()
        if words[words.rfind(" ") + 1 :].lower() in self._last_words:
            found = _ADDRESSED_OPENER.match(lowered, begin)
            if found and found["name"] in self._addresses:
                return found.end()
            found = _VOCATIVE.match(text, begin)
            # "Lena, the bookings are yours": without the name nobody knows whose.
            if found and found["name"] in self._names and not _SPEAKS_TO.search(lowered, found.end()):
                return found.end()
        return begin

    def _without_ending(self, text: str) -> str:
        comma = text.rfind(", ", -_MAX_ENDING_CHARS)
        found = _CLOSING.match(text, comma) if comma >= 0 else None
        if found and (found["name"] in self._names or found["name"] in _CLOSING_ADDRESSES):
            text = text[:comma] + found["marks"]
        tag = _TAG.search(text, max(0, len(text) - _MAX_ENDING_CHARS))
        return text[: tag.start()] + text[tag.end() :] if tag else text


def _lowered(text: str) -> str:
    """Give a text in lower case for patterns, which are slow where they have to compare both cases themselves."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def unmarked(text: str) -> str:
    """Give a line without the marks of a markdown heading or quotation, its white space as single spaces."""
    text = " ".join(text.split())
    mark = _MARKS.match(text) if text[:1] in _MARK_CHARS else None
    return text[mark.end() :] if mark else text


def _capitalised(text: str) -> str:
    """Give a sentence whose beginning was cut off its capital again, unless its first word is a name of its own."""
    return text[0].upper() + text[1:] if _PLAIN_WORD.match(text) else text


@lru_cache(maxsize=512)
def _one(chars: int) -> tuple[Clause]:
    return (Clause(start=0, end=chars, opens=True, closes=True),)


def whole(sentence: str) -> tuple[Clause]:
    """Give a sentence as the one clause that it is."""
    return _one(len(sentence))


def clauses(sentence: str) -> tuple[Clause, ...]:
    """Split a sentence at the borders where it can be cut and both read and mean the same.

    Its white space is single spaces, as `unmarked` leaves it.
    """
    if len(sentence) < _MIN_SPLIT_CHARS or sentence[-1] == "?":
        return whole(sentence)
    lowered = _lowered(sentence)
    borders = [border for border in _BORDER.finditer(lowered) if _is_border(lowered, border)][: _MAX_CLAUSES - 1]
    if not borders:
        return whole(sentence)
    starts = [0, *(border.end() for border in borders)]
    ends = [*(border.start() for border in borders), len(sentence)]
    closes = [True] * len(ends)
    waits = _WAITS_FOR_MAIN.match(lowered) is not None
    for i in range(len(ends) - 2, -1, -1):
        closes[i] = not waits and closes[i + 1] and not _LIMITS.search(lowered, starts[i + 1], ends[i + 1])
    opens = [border[0] != " " and _OWN_SUBJECT.match(lowered, border.end()) is not None for border in borders]
    opens.insert(0, True)
    for i in range(1, len(starts)):
        if any(opens[i:]) and _FRAMES_THE_REST.search(lowered, starts[i - 1], ends[i - 1]):
            opens[i:] = [False] * (len(opens) - i)
    return tuple(
        Clause(start=start, end=end, opens=opening, closes=closing)
        for start, end, opening, closing in zip(starts, ends, opens, closes, strict=True)
    )


def _is_border(sentence: str, border: re.Match[str]) -> bool:
    """Tell a border from the marks of an insertion (two dashes) and the last comma of a list."""
    mark = border[0]
    if mark == ", ":
        if not _LISTS_ON.match(sentence, border.end()):
            return True
        return "," not in sentence[: border.start()] or _OWN_SUBJECT.match(sentence, border.end()) is not None
    if mark != " ":
        if sentence[: border.start()][-1:].isdigit() and sentence[border.end() : border.end() + 1].isdigit():
            return False
        return mark.strip() not in _DASHES or sum(sentence.count(dash) for dash in _SPACED_DASHES) <= 1
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
