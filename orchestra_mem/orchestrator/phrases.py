"""Read referring phrases in a line as data: "it", "the last two", "#12 and #14", "the auth epic's stories".

What a phrase stands for is found in `references`. The words here are those that say *which* one; what people say around
them is left to the trained reader of lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from orchestra_mem.core.text import STOP_WORDS
from orchestra_mem.orchestrator.intents.classifier import classifier, slip_of
from orchestra_mem.orchestrator.intents.slots import KIND_WORDS, NUMBER_WORDS, numbers_in
from orchestra_mem.orchestrator.talk import Happening
from orchestra_mem.work_types import OPEN_STATUSES, WorkKind, WorkStatus

Words = tuple[str, ...]
_MOST_CHARS = 2_000
_PLAIN_MARKS = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2019": "'"})
_STATUSES = {
    word: statuses
    for statuses, listing in {
        (WorkStatus.FAILED,): "failed, failing, broken, crashed",
        (WorkStatus.BLOCKED,): "blocked, stuck, waiting",
        (WorkStatus.PENDING,): "pending, unstarted",
        (WorkStatus.DONE,): "done, finished, completed, closed",
        (WorkStatus.CANCELLED,): "cancelled, canceled, dropped",
        (WorkStatus.DEFERRED,): "deferred, postponed, parked",
        (WorkStatus.IN_PROGRESS,): "active, running, ongoing, started, current, in progress",
        OPEN_STATUSES: "open, unfinished",
    }.items()
    for word in listing.split(", ")
}
_HAPPENINGS = {
    **{each.value: each for each in Happening if each not in (Happening.MENTIONED, Happening.LISTED)},
    **dict.fromkeys("added made new newest latest".split(), Happening.CREATED),
    **{"renamed": Happening.CHANGED, "gave": Happening.ASSIGNED, "completed": Happening.FINISHED},
}
_PLACES = {word: place for place, word in enumerate("first second third fourth fifth sixth seventh".split(), 1)} | {
    **dict.fromkeys("last latest newest final latter bottom".split(), -1),
    **{"top": 1, "former": 1, "middle": 0, "penultimate": -2},
}
_COUNTS = {word: count for word, count in NUMBER_WORDS.items() if count > 1} | {"pair": 2, "couple": 2}
_SELECTORS = {
    **dict.fromkeys(("other", "others"), "other"), **dict.fromkeys(("rest", "remaining"), "rest"),
    **{"next": "next", "previous": "previous", "prior": "previous", "same": "same"},
}  # fmt: skip
_PLURALS = frozenset(kind.plural for kind in WorkKind)
_NO_NAME = STOP_WORDS - {"own", "few", "over", "up", "off", "out"} | frozenset(
    """done finish start set mark make add assign give block defer cancel put also still please except excluding
    without""".split()
)


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_SAYS_WHICH = [*_STATUSES, *_PLACES, *_COUNTS, *_SELECTORS, *KIND_WORDS, "new", "these", "those"]
_MENDED = [word for word in _SAYS_WHICH if len(word) > 4]
_KNOWN = frozenset([*_SAYS_WHICH, *_HAPPENINGS, *_NO_NAME])
_HEAD = rf"(?:{_any(KIND_WORDS)}|(?:one|thing|ticket|issue|item|place)s?)\b"
_WORD = rf"(?:\"[^\"]+\"|(?!(?:{_any(_NO_NAME)})\b)[^\W_](?:[\w.&/+-]*\w)?)"
_MODIFIER = rf"(?:{_any(_SAYS_WHICH[: -len(KIND_WORDS) - 3])}|new|\d+(?:st|nd|rd|th)|\d{{1,3}})\b"
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
_COUNTS_WHAT = re.compile(rf"(?i) (?:more |new )?(?:{_HEAD}|of\b)")
_LEVEL = re.compile(r"(?i)(?:priority|prio|level|p|rank)(?: to)? ?$")
_WHICH = re.compile(rf"(?i)(?:{_any(_SAYS_WHICH)})\b")
_TITLE = re.compile(rf"(?i){_WORD}(?: {_WORD}){{0,6}}")
_POINTS = re.compile(r"\b(?:this|that|all|both|these|those)\b")
_SEVERAL = re.compile(r"\b(?:all|both|these|those|each|every)\b")
_ALONE = re.compile(
    rf"(?i)(?!(?:{_any(_COUNTS)}|\d+)\b)(?:{_MODIFIER} ?)+{_HEAD}|(?:{_any(_PLURALS)}) (?:of|in)\b"
    rf"|(?:one|any|either) of\b|same\b|(?:{_any(_PLACES)}|\d+(?:st|nd|rd|th))(?=\W*$| (?:and|is|to|please))"
)
_IN_PROGRESS, _BEFORE = re.compile(r"(?i) in progress\b"), re.compile(r"(?i) (?:as )?before\b")
_FOR = re.compile(r"(?i) ?(?:for|with)\b")
_ABOUT = re.compile(rf"(?i) (?:about|with|called|named) (?:the |an? )?(?P<words>{_WORD}(?: {_WORD}){{0,6}})")
_CLAUSE = re.compile(
    r"(?i) (?:(?:that|which|who|i|we|you|just)\b ?(?:(?:i|we|you|just|have|has|is|was|had|been)\b ?)*(?=\w)"
    rf"|(?=created|added))(?P<did>{_any({*_HAPPENINGS, *_STATUSES})})\b(?: (?P<place>first|last))?"
)
_TELLS = re.compile(r"(?i) (?:that|which|who|i|we|they|nobody)\b[^,;:.]*| (?-i:[A-Z][a-z]+ \w+ed)\b")
_LIST = re.compile(r"(?i) (?:in|on|of|from) (?:the|that|this) list\b")
_WHOLE = re.compile(r"(?i) (?:of|in|from|under) ")
_OWNS = re.compile(rf"(?i)'s? | (?=(?:{_any(_PLURALS)})\b)")  # the apostrophe may be left out
_EXCEPT = re.compile(r"(?i),? (?:but|except|without|excluding)(?: for)? ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A referring phrase.

    `many` is False for one item, True for several, None where the words leave it open; `count` is how many. `position`
    counts from 1, from the end below 0; 0 is the middle. `words` describe, in lower case. `select` is one of "other",
    "rest", "next", "previous", "same" or "". `owner` is what the phrase is a part of (`part`) or stands under, `but`
    what is left out of it. `bare` is that nothing but its words marks it as a reference.
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
    words: tuple[str, ...] = ()
    select: str = ""
    owner: Phrase | None = None
    part: bool = False
    but: Phrase | None = None
    bare: bool = False


class PhraseReader:
    """Reads the phrases of one line; `names` tells whether words name an item, and looks further with True."""

    def __init__(self, line: str, names: Callable[[Words, bool], bool]) -> None:
        plain = line[:_MOST_CHARS].translate(_PLAIN_MARKS)
        self.line = re.sub(r"[^\W\d_]{5,}", lambda word: _mended(word[0]), plain)
        self._names = names

    def phrases(self) -> list[Phrase]:
        """List the phrases in order."""
        found = list[Phrase]()
        for word in re.finditer(r"#?\w+|\"", self.line):
            if found and word.start() < found[-1].end:
                continue
            if read := self.phrase(word.start()) or self._title(word.start()):
                found.append(read)
        return found

    def phrase(self, at: int) -> Phrase | None:
        """Read the phrase that begins at a place; None where none begins there."""
        found = self._number(at) or self._noun(at) or self._pronoun(at)
        if found is None:
            return None
        found = self._owning(found)
        found = replace(found, text=self.line[found.start : found.end])
        but = _EXCEPT.match(self.line, found.end)
        out = (self.phrase(but.end()) or self._title(but.end())) if but else None
        return replace(found, but=out, end=out.end) if out else found

    def _said(self, start: int, end: int, **said: Any) -> Phrase:
        return Phrase(text=self.line[start:end], start=start, end=end, **said)

    def _number(self, at: int) -> Phrase | None:
        """Read "#12", "epic five", "task number 14", "12, 13 and 15", "stories 3 to 5"."""
        found = _NUMBER.match(self.line, at)
        if found is None or not (found["told"] or found["first"].lstrip("#").isdigit()):
            return None
        told, said = found["told"].lower().split(), found[0][found.end("told") - at :]
        if not {*_PLURALS, "items"} & {*told}:
            said = re.split(r"(?i) to (?!#)", said)[0]  # "set 12 to 2"
        end, ids, bare = found.end("told") + len(said), numbers_in(f"number {said}"), not told and "#" not in said
        if bare and (_COUNTS_WHAT.match(self.line, end) or _LEVEL.search(self.line[:at])):
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
        """Read the longest run of words from here that names an item, and what it owns: "login's tasks"."""
        found = _TITLE.match(self.line, at)
        if found is None or _WHICH.match(found[0]):
            return None
        words = _words(found[0])
        count = self._named(words) or int(self.line.startswith("'s ", at + len(words[0])))  # or somebody's
        if not count or len(words[0]) < 3:
            return None
        title = self._said(at, at + len(" ".join(found[0].split()[:count])), words=words[:count], bare=True)
        owned = self._owning(title)
        return owned if owned is not title or self._names(title.words, False) else None

    def _named(self, words: Words) -> int:
        """Count the words up to where they name an item, as many as can be; 0 where none does."""
        return next((count for count in range(len(words), 0, -1) if self._names(words[:count], False)), 0)

    def _noun(self, at: int, owner: Phrase | None = None) -> Phrase | None:
        """Read determiners, modifiers and head, and what stands behind: "the two failed stories of the auth epic"."""
        found = _NOUN.match(self.line, at)
        if found is None or not (owner or found["determiner"] or _ALONE.match(self.line, at)):
            return None
        determiner, head = found["determiner"].lower(), (found["head"] or "").lower()
        words, end = _words(found["words"] or ""), found.end("head") if head else found.end("modifiers")
        if found["only"]:  # as much of it as names something; else all, where nothing else says which one is meant
            only = _words(found["only"])
            least = int(not found["modifiers"] and not _POINTS.search(determiner))
            is_told = only[0] in _HAPPENINGS  # "the last three created"
            count = 0 if is_told else max(self._named(only), _rare(only), least)
            words = only[:count]
            end = found.start("only") + len(" ".join(found["only"].split(" ")[:count])) if count else end
        if not (found["modifiers"] or head or words):
            return None
        said: dict[str, Any] = {"kind": KIND_WORDS.get(head), "owner": owner, "words": words}
        said["many"] = bool(_SEVERAL.search(determiner)) or head.endswith("s") or None
        said["count"] = 2 if "both" in determiner else None
        for word in re.findall(r"in progress|[\w-]+", found["modifiers"].lower()):
            _modify(word, said)
        if whose := re.search(r"\b(?:its|their)\b", determiner):
            start = at + whose.start()
            said["owner"] = self._said(start, start + len(whose[0]), many=None if whose[0] == "its" else True)
        if said["many"] is None and (head or said.get("position") is not None or said.get("select") == "other"):
            said["many"] = False
        if said.get("select") == "same" and not head and _FOR.match(self.line, end):
            return None  # "the same for 232"
        plain = self._said(at, at + len(self.line[at:end].rstrip()), **said)
        phrase = self._behind(plain, headed=bool(head or found["modifiers"]))
        is_side = phrase.owner and words and not head and not self._names(words, True)
        return replace(phrase.owner, start=at, end=phrase.end) if is_side and phrase.owner else phrase  # "its status"

    def _behind(self, phrase: Phrase, headed: bool) -> Phrase:
        """Read what stands behind the head: "in progress", "about login", "I just created", "of the epic"."""
        line, end = self.line, phrase.end
        if headed and (found := _IN_PROGRESS.match(line, end)):
            phrase, end = replace(phrase, statuses=(WorkStatus.IN_PROGRESS,), end=found.end()), found.end()
        if headed and not phrase.words and (found := _ABOUT.match(line, end)):
            words = _words(found["words"])
            return replace(phrase, words=words[: self._named(words) or None], end=found.end())
        if headed and (found := _BEFORE.match(line, end)):
            return replace(phrase, select=phrase.select or "previous", end=found.end())
        if found := _LIST.match(line, end):
            return replace(phrase, happening=Happening.LISTED, end=found.end())
        if headed and (found := _CLAUSE.match(line, end)):
            did, doers = found["did"].lower(), re.search(r"(?i)\b(?:i|we|you|just)\b", found[0])
            position = _PLACES[found["place"].lower()] if found["place"] else phrase.position
            is_status = did in _STATUSES and (not doers or did not in _HAPPENINGS)
            told: dict[str, Any] = {"statuses": _STATUSES[did]} if is_status else {"happening": _HAPPENINGS[did]}
            return replace(phrase, end=found.end(), position=position, **told)
        if headed and (found := _TELLS.match(line, end)):
            return replace(phrase, words=(*phrase.words, *_words(found[0])[1:]), end=found.end())
        whole = _WHOLE.match(line, end)
        if whole and not phrase.owner and ("of" in whole[0] or phrase.many or phrase.position is not None):
            owner = self.phrase(whole.end()) or self._title(whole.end())
            return replace(phrase, owner=owner, part=bool(owner.many), end=owner.end) if owner else phrase
        return phrase

    def _owning(self, phrase: Phrase) -> Phrase:
        """Read on behind a possessive: "the epic's stories"."""
        mark = _OWNS.match(self.line, phrase.end) if phrase.kind or self.line[phrase.end :].startswith("'") else None
        if not mark or phrase.text.lower() in ("it", "that", "this", "they", "what"):
            return phrase
        owner = replace(phrase, many=False, count=None) if phrase.many and phrase.kind else phrase
        owned = self._noun(mark.end(), owner)
        if owned is None or (owned.words and not owned.kind) or owned.start == phrase.start:
            return phrase  # "this one's urgent", "login's done"
        text = self.line[phrase.start : owned.end]
        return self._owning(replace(owned, start=phrase.start, text=text, bare=phrase.bare))


def _modify(word: str, said: dict[str, Any]) -> None:
    """Take in a word before the head that says which one is meant."""
    nth = re.fullmatch(r"(\d+)(?:st|nd|rd|th)", word)
    if nth or word in _PLACES:
        said["position"] = int(nth[1]) if nth else _PLACES[word]
    elif word in _SELECTORS:
        said["select"] = _SELECTORS[word]
        said["many"] = True if word == "others" else None if word == "rest" else said["many"]
    elif word in _COUNTS or word.isdigit():
        said["count"] = _COUNTS.get(word) or int(word)
        said["many"] = said["count"] > 1
    elif word in _STATUSES:
        said["statuses"] = _STATUSES[word]
    if word in ("new", "newest", "latest"):
        said["happening"] = Happening.CREATED


def _rare(words: Words) -> int:
    """Count the words before the first that people use whatever they write about: "draft" of "draft goes"."""
    return next((at for at, word in enumerate(words) if classifier().vocabulary.is_common(word)), len(words))


def _words(text: str) -> Words:
    return tuple(word for word in text.lower().replace('"', " ").split())


@lru_cache(maxsize=4_096)
def _mended(word: str) -> str:
    """Give the word that says which one is meant and that a word misspells by one letter, else the word itself."""
    low = word.lower()
    return word if low in _KNOWN else slip_of(low, _MENDED) or word
