"""Parse referring phrases in a line: "it", "the last two", "#12 and #14", "the auth epic's stories".

`references` resolves the phrases to items. The word lists here cover only words that say *which* item is meant; the
trained classifier reads the rest of the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from orchestra_mem.core.text import STOP_WORDS
from orchestra_mem.orchestrator.intents.classifier import classifier
from orchestra_mem.orchestrator.intents.slots import ENGLISH, KIND_WORDS, NUMBER_WORDS, numbers_in
from orchestra_mem.orchestrator.talk import Happening
from orchestra_mem.work_types import OPEN_STATUSES, WorkKind, WorkStatus

Words = tuple[str, ...]
_MOST_CHARS = 2_000
_PLAIN_MARKS = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2019": "'"})


def _table(field: str, listing: dict[Any, str]) -> dict[str, dict[str, Any]]:
    return {word: {field: value} for value, words in listing.items() for word in words.split()}


_COUNTS = {word: count for word, count in NUMBER_WORDS.items() if count > 1} | {"pair": 2, "couple": 2}
_ORDINALS = "first second third fourth fifth sixth seventh".split()
_PLACES = {word: {"position": place} for place, word in enumerate(_ORDINALS, 1)} | _table(
    "position", {0: "middle", -1: "last latest newest final latter bottom", -2: "penultimate", 1: "top former"}
)
STATUS_WORDS: dict[str, tuple[WorkStatus, ...]] = {
    word: OPEN_STATUSES if status == "open" else (WorkStatus(status),)
    for status, words in ENGLISH["statuses"].items()
    for word in words.split()
}
"""The statuses that each word means."""
_STATUSES = {word: {"statuses": statuses} for word, statuses in STATUS_WORDS.items()}
_SAYS: dict[str, dict[str, Any]] = {
    **_PLACES, **_STATUSES, **{word: {"count": count, "many": True} for word, count in _COUNTS.items()},
    **_table("select", {"other": "other", "next": "next", "previous": "previous prior", "same": "same"}),
    **_table("select", {"rest": "rest remaining"}), "others": {"select": "other", "many": True}, "new": {},
}  # fmt: skip
"""The fields of `Phrase` that each modifier (a word before the head noun) sets."""
_HAPPENINGS = {each.value: each for each in Happening} | dict.fromkeys(("added", "made"), Happening.CREATED)
_PLURALS = frozenset(kind.plural for kind in WorkKind)
_NO_NAME = STOP_WORDS - {"own", "few", "over", "up", "off", "out"} | frozenset(
    """done finish start set mark make add assign give block defer cancel put also still please except excluding
    without""".split()
)


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_HEAD = rf"(?:{_any(KIND_WORDS)}|(?:one|thing|ticket|issue|item|place)s?)\b"
_WORD = rf"(?:\"[^\"]+\"|(?!(?:{_any(_NO_NAME)})\b)[^\W_](?:[\w.&/+-]*\w)?)"
_NAME = rf"{_WORD}(?: {_WORD}){{0,6}}"
_MODIFIER = rf"(?:{_any(_SAYS)}|\d+(?:st|nd|rd|th)|\d{{1,3}})\b"
_DETERMINER = (
    r"(?:all|both|each|every|the|this|that|these|those|its|their|my|our|your|only|just"
    rf"|what(?=\ (?:{_any(_STATUSES)})\b))\b\ ?(?:of\ )?"
)
_NOUN = re.compile(
    rf"""(?ix) (?P<determiner>(?:{_DETERMINER})*) (?P<modifiers>(?:{_MODIFIER}\ ?)*)
    (?: (?P<words>(?:{_WORD}\ ){{0,6}}?) (?P<head>{_HEAD}) | (?P<only>{_WORD}(?:\ {_WORD}){{0,6}}) )?"""
)
_PRONOUN = re.compile(
    r"(?i)(?:(?P<both>both|all|everything)|(?P<many>(?:(?:both|all) of )?(?:them|they|these|those)(?: all)?)"
    r"|(?P<one>it|this|that)(?: one)?)\b(?!-)"
)
_CARDINAL = rf"(?:#?\d{{1,18}}|(?:{_any(NUMBER_WORDS)})(?:[ -](?:{_any(NUMBER_WORDS)}))?)\b(?!-[a-z])"
_NUMBER = re.compile(
    rf"(?i)(?P<told>(?:(?:the )?(?:{_any(KIND_WORDS)}|issues?|tickets?|items?|number|n[or]\.?)(?:\b ?|(?=\d)))*)"
    rf"(?P<first>{_CARDINAL})(?:(?:,? (?:and|&|or) |, ?| ?[&+/-] ?| (?:to|thru|through) | (?=#))#?{_CARDINAL})*"
)
_LEVEL = re.compile(r"(?i)(?:priority|prio|level|p|rank)(?: to)? ?$")
_TITLE = re.compile(rf"(?i){_NAME}")
_JOINED = re.compile(r"(?i)^\W*(?:,|&|and\b)|(?:,|&|\band)\W*$")
_POINTS = re.compile(r"\b(?:this|that|all|both|these|those)\b")
_SEVERAL = re.compile(r"\b(?:all|both|these|those|each|every)\b")
_ALONE = re.compile(
    rf"(?i)(?!(?:{_any(_COUNTS)}|\d+)\b)(?:{_MODIFIER} ?)+{_HEAD}"
    rf"|(?:one|any|either) of\b|same\b|(?:{_any(_PLACES)}|\d+(?:st|nd|rd|th))(?=\W*$| (?:and|is|to|please))"
)
_SAME_FOR, _BEFORE = re.compile(r"(?i)(?:the )?same (?:for|with)\b"), re.compile(r"(?i) (?:as )?before\b")
_ABOUT = re.compile(rf"(?i) (?:about|with|called|named) (?:the |an? )?(?P<words>{_NAME})")
_DID = re.compile(
    r"(?i)(?= (?:that|which|who|i|we|you|just|created|added)\b)"
    rf"(?: (?:that|which|who|i|we|you|just|have|has|is|was|been))* (?P<did>{_any({*_HAPPENINGS, *_STATUSES})})\b"
    r"(?: (?P<place>first|last)\b)?"
)
# Any other clause that restricts the phrase becomes a single "word" that no title contains: the phrase must not match.
_TELLS = re.compile(
    r"(?i)(?: (?:that|which|who|i|we|they|nobody)\b|,? (?:but|except|without|excluding) )[^,;:.]*"
    r"| (?-i:[A-Z][a-z]+ \w+ed)\b"
)
_WHOLE = re.compile(r"(?i) (?P<of>of|in|from|under) ")
_OWNS = re.compile(rf"(?i)'s? | (?=(?:{_any(_PLURALS)})\b)")  # before a plural the apostrophe is optional


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A referring phrase; `start` and `end` are its offsets in `PhraseReader.line`.

    `many` is False for one item, True for several, None if undecided; `count` is the number of items. `position` counts
    from 1, or from -1 at the end; 0 is the middle. `words` are descriptive words in lower case. `select` is "other",
    "rest", "next", "previous", "same" or "". If `owner` is set, the items are below the owner's items, or with `part`
    among them. A `bare` phrase has no determiner, kind or `#` that marks it as a reference.
    """

    text: str
    start: int
    end: int
    many: bool | None = False
    count: int | None = None
    kind: WorkKind | None = None
    ids: tuple[int, ...] = ()
    position: int | None = None
    statuses: tuple[WorkStatus, ...] = ()
    happening: Happening | None = None
    words: Words = ()
    select: str = ""
    owner: Phrase | None = None
    part: bool = False
    bare: bool = False


class PhraseReader:
    """Finds the phrases of a line. `names(words, wide)` checks if words name an item, among more items if `wide`."""

    def __init__(self, line: str, names: Callable[[Words, bool], bool]) -> None:
        plain, mended = line[:_MOST_CHARS].translate(_PLAIN_MARKS), classifier().vocabulary.mended
        self.line = re.sub(r"[^\W\d_]{5,}", lambda word: mended(word[0]), plain)
        self._offsets = [word.start() for word in re.finditer(r"#?\w+|\"", self.line)]
        self._names = names
        self._phrase = lru_cache(maxsize=None)(self._phrase_at)

    def references(self) -> list[Phrase]:
        """Return the phrases; without titles, which are slow to look up, if others are sure and nothing is joined."""
        sure = [phrase for phrase in self.phrases(titles=False) if not phrase.bare or phrase.ids]
        sides = (side for each in sure for side in (self.line[: each.start], self.line[each.end :]))
        return sure if sure and not any(map(_JOINED.search, sides)) else self.phrases()

    def phrases(self, *, titles: bool = True) -> list[Phrase]:
        """Return the phrases in order, by default with titles that no word marks as references."""
        found = list[Phrase]()
        for at in self._offsets:
            if not found or at >= found[-1].end:
                read = self._phrase(at) or (self._title(at) if titles else None)
                found += [read] if read else []
        return found

    def _phrase_at(self, at: int) -> Phrase | None:
        """Parse the phrase at an offset; return None if no phrase starts there."""
        found = self._number(at) or self._noun(at) or self._pronoun(at)
        found = self._owning(found) if found else None
        return replace(found, text=self.line[found.start : found.end]) if found else None

    def _said(self, start: int, end: int, **said: Any) -> Phrase:
        return Phrase(text=self.line[start:end], start=start, end=end, **said)

    def _number(self, at: int) -> Phrase | None:
        """Parse "#12", "epic five", "task number 14", "12, 13 and 15", "stories 3 to 5"."""
        found = _NUMBER.match(self.line, at)
        if found is None or not (found["told"] or found["first"].lstrip("#").isdigit()):
            return None
        told, said = found["told"].lower().split(), found[0][found.end("told") - at :]
        if not {*_PLURALS, "items"} & {*told}:
            said = re.split(r"(?i) to (?!#)", said)[0]  # "set 12 to 2"
        end, ids, bare = found.end("told") + len(said), numbers_in(f"number {said}"), not told and "#" not in said
        if bare and _LEVEL.search(self.line[:at]):
            return None
        kind = next((KIND_WORDS[word] for word in told if word in KIND_WORDS), None)
        return self._said(at, end, ids=ids, kind=kind, many=len(ids) > 1, bare=bare)

    def _pronoun(self, at: int) -> Phrase | None:
        found = _PRONOUN.match(self.line, at)
        if found is None:
            return None
        phrase = self._said(at, found.end(), many=not found["one"], count=2 if "both" in found[0].lower() else None)
        return self._behind(phrase, headed=found["one"] != "it" and not found["many"])

    def _title(self, at: int) -> Phrase | None:
        """Parse the longest run of words that names an item, and a possession after it: "login's tasks"."""
        found = _TITLE.match(self.line, at)
        words = _words(found[0]) if found else ()
        if not found or not words or words[0] in _SAYS or len(words[0]) < 3:
            return None
        count = self._named(words) or int(self.line.startswith("'s ", at + len(words[0])))  # a person's
        title = self._said(at, at + len(" ".join(found[0].split()[:count])), words=words[:count], bare=True)
        owned = self._owning(title) if count else title
        return owned if count and (owned is not title or self._names(title.words, False)) else None

    def _named(self, words: Words) -> int:
        """Return the number of leading words that together name an item; 0 if the first word names none."""
        counts = range(1, len(words) + 1)
        return next((count for count in counts if not self._names(words[:count], False)), len(words) + 1) - 1

    def _noun(self, at: int, owner: Phrase | None = None) -> Phrase | None:
        """Parse determiners, modifiers, head noun and complement: "the two failed stories of the auth epic"."""
        found = _NOUN.match(self.line, at)
        if found is None or not (owner or found["determiner"] or _ALONE.match(self.line, at)):
            return None
        determiner, head = found["determiner"].lower(), (found["head"] or "").lower()
        words, end = _words(found["words"] or ""), found.end("head") if head else found.end("modifiers")
        if found["only"]:  # the words that name an item; else the first word, if it can only be a name
            only = _words(found["only"])
            is_name = only[0] not in classifier().vocabulary.common
            is_name = is_name or not (found["modifiers"] or _POINTS.search(determiner))
            words = only[: self._named(only) or is_name]
            end = found.start("only") + len(" ".join(found["only"].split(" ")[: len(words)])) if words else end
        if not (found["modifiers"] or head or words):
            return None
        said: dict[str, Any] = {"kind": KIND_WORDS.get(head), "owner": owner, "words": words}
        said["many"] = bool(_SEVERAL.search(determiner)) or head.endswith("s") or None
        said["count"] = 2 if "both" in determiner else None
        for word in found["modifiers"].lower().split():
            said |= _modifier(word)
        if whose := re.search(r"\b(?:its|their)\b", determiner):
            start = at + whose.start()
            said["owner"] = self._said(start, start + len(whose[0]), many=None if whose[0] == "its" else True)
        if said["many"] is None and (head or said.get("position") is not None or said.get("select") == "other"):
            said["many"] = False
        if _SAME_FOR.match(self.line, at):
            return None  # "the same for 232"
        plain = self._said(at, at + len(self.line[at:end].rstrip()), **said)
        phrase = self._behind(plain, headed=bool(head or found["modifiers"]))
        is_side = phrase.owner and words and not head and not self._names(words, True)
        return replace(phrase.owner, start=at, end=phrase.end) if is_side and phrase.owner else phrase  # "its status"

    def _behind(self, phrase: Phrase, headed: bool) -> Phrase:
        """Parse a complement after the head noun: "about login", "that failed", "I just created", "of the epic"."""
        line, end = self.line, phrase.end
        said: dict[str, Any] = {}
        found = _WHOLE.match(line, end) if not phrase.owner else None
        if found and (owner := self._phrase(found.end()) or self._title(found.end())):
            return replace(phrase, owner=owner, part=bool(owner.many), end=owner.end)
        if not headed:
            return phrase
        if not phrase.words and (found := _ABOUT.match(line, end)):
            words = _words(found["words"])
            said = {"words": words[: self._named(words) or None]}
        elif found := _BEFORE.match(line, end):
            said = {"select": phrase.select or "previous"}
        elif found := _DID.match(line, end):
            did = found["did"].lower()
            is_done = did in _HAPPENINGS and re.search(r"(?i)\b(?:i|we|you|just)\b", found[0])
            said = {"happening": _HAPPENINGS[did]} if is_done or did not in _STATUSES else _STATUSES[did]
            said = said | _PLACES.get((found["place"] or "").lower(), {})
        elif found := _TELLS.match(line, end):
            said = {"words": (*phrase.words, found[0])}
        return replace(phrase, end=found.end(), **said) if found else phrase

    def _owning(self, phrase: Phrase) -> Phrase:
        """Extend a phrase by a noun that it possesses: "the epic's stories"."""
        mark = _OWNS.match(self.line, phrase.end) if phrase.kind or self.line[phrase.end :].startswith("'") else None
        if not mark or phrase.text.lower() in ("it", "that", "this", "they", "what"):
            return phrase
        owner = replace(phrase, many=False, count=None) if phrase.many and phrase.kind else phrase
        owned = self._noun(mark.end(), owner)
        if owned is None or (owned.words and not owned.kind) or owned.start == phrase.start:
            return phrase  # "this one's urgent", "login's done"
        return self._owning(replace(owned, start=phrase.start, bare=phrase.bare))


def _modifier(word: str) -> dict[str, Any]:
    """Return the fields of `Phrase` that a modifier sets."""
    if word in _SAYS:
        return _SAYS[word]
    number = int(re.sub(r"\D", "", word))
    return {"count": number, "many": number > 1} if word.isdigit() else {"position": number}


def _words(text: str) -> Words:
    return tuple(text.lower().replace('"', " ").split())
