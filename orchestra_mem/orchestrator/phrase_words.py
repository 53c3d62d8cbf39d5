"""The words that referring phrases are made of, a line as tokens, and a phrase as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz.distance import OSA

from orchestra_mem.orchestrator.talk import Happening
from orchestra_mem.work_types import OPEN_STATUSES, WorkKind, WorkStatus

_TOKEN = re.compile(
    r"[\"\u201c](?P<quoted>[^\"\u201d\n]+)[\"\u201d]|(?<!\w)'(?P<single>[^'\n]+)'(?!\w)|#\s?(?P<number>\d{1,18})\b(?P<owner>['\u2019]s)?"
    r"|(?P<word>[^\W_]+(?:['\u2019_.-][^\W_]+)*)(?P<plural>['\u2019](?!\w))?|(?P<mark>[^\w\s])"
)
_GLUED = re.compile(r"(milestone|epic|story|task|subtask|item)[-_]?(\d{1,18})")
_MOST_CHARS = 2_000

KINDS = {word: kind for kind in WorkKind for word in (kind.value, kind.plural)} | {
    "sub-task": WorkKind.SUBTASK, "sub-tasks": WorkKind.SUBTASK, "storys": WorkKind.STORY,
}  # fmt: skip
PLURALS = frozenset([*(kind.plural for kind in WorkKind), "storys", "sub-tasks"])
HEADS = frozenset("one item thing ticket issue card job piece bit entry guy place".split())
STATUSES = {
    word: statuses
    for statuses, listing in {
        (WorkStatus.FAILED,): "failed failing fails broken crashed errored red",
        (WorkStatus.BLOCKED,): "blocked stuck waiting",
        (WorkStatus.PENDING,): "pending unstarted todo queued untouched",
        (WorkStatus.DONE,): "done finished completed complete closed resolved shipped",
        (WorkStatus.CANCELLED,): "cancelled canceled dropped scrapped",
        (WorkStatus.DEFERRED,): "deferred postponed parked paused shelved snoozed",
        (WorkStatus.IN_PROGRESS,): "active running ongoing started wip current in-progress",
        OPEN_STATUSES: "open unfinished outstanding incomplete undone",
    }.items()
    for word in listing.split()
}
HAPPENINGS = {
    word: happening
    for happening, listing in {
        Happening.CREATED: "created added made new newest latest opened",
        Happening.STARTED: "started began",
        Happening.FINISHED: "finished completed closed",
        Happening.FAILED: "failed broke",
        Happening.CHANGED: "changed renamed updated edited moved touched",
        Happening.BLOCKED: "blocked",
        Happening.DEFERRED: "deferred postponed parked",
        Happening.CANCELLED: "cancelled canceled dropped scrapped",
        Happening.ASSIGNED: "assigned gave handed",
    }.items()
    for word in listing.split()
}
TWO_WORDS = {
    ("in", "progress"): (WorkStatus.IN_PROGRESS,), ("on", "hold"): (WorkStatus.DEFERRED,),
    ("not", "started"): (WorkStatus.PENDING,), ("not", "done"): OPEN_STATUSES, ("not", "finished"): OPEN_STATUSES,
}  # fmt: skip
NUMBERS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen".split(), 1,
    )
} | {"pair": 2, "couple": 2, "trio": 3} | {
    word: 10 * tens for tens, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}  # fmt: skip
ORDINALS = {
    word: place
    for place, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth".split(), 1
    )
} | {"top": 1, "former": 1, "middle": 0, "last": -1, "latest": -1, "newest": -1, "recent": -1, "final": -1,
     "latter": -1, "bottom": -1, "penultimate": -2}  # fmt: skip
RANGE = re.compile(r"(\d{1,9})[-\u2013](\d{1,9})")
MOST_IN_RANGE = 50
NTH = re.compile(r"(\d{1,3})(?:st|nd|rd|th)")
SELECTORS = {
    "other": "other", "others": "other", "rest": "rest", "remaining": "rest", "remainder": "rest", "next": "next",
    "previous": "previous", "prior": "previous", "same": "same",
}  # fmt: skip
DETERMINERS = frozenset("the this that these those its their our my your all both each every".split())
PRONOUNS = frozenset("it them they these those this that both all everything 'em".split())
STOPS = frozenset(
    """and or but then to for on in into under of from with by at about as is are was were be been has have had do
    does did can could will would should must may might goes go gets get got needs need waits wait depends
    depend belongs belong stays stay again now too also please already anyway instead so because since until
    till when while if unless after before except excluding not no there here well still what which who why how
    i we you he she they it them me us a an another some any more start begin finish done set mark make add
    create assign give block defer cancel put move""".split()
)  # fmt: skip
SPOKEN = frozenset("mentioned discussed talked spoke asked looked saw viewed had".split())
WITHIN = frozenset("of in from under below inside within".split())
NUMBERED = frozenset("number no no. num nr".split())
LISTS = frozenset("list lists listing".split())
QUANTITY = frozenset("priority prio level p rank by_to".split())
POSTPONED = frozenset(
    "still currently already recently been that which who i we you just have has had was were is are".split()
)
MADE = frozenset("created added started".split())
RELATIVES = frozenset("that which who i we you they he she nobody somebody everyone just".split())
ATTRIBUTES = frozenset("status state priority prio name title progress assignee owner description".split())
MOST_WORDS = 7
_CONTRACTED = {
    "thats": "that",
    "its": "its",
    "theyre": "they",
    "teh": "the",
    "hte": "the",
    "thatll": "that",
    "itll": "it",
}
_MENDED = [
    word for word in (*KINDS, *STATUSES, *ORDINALS, *SELECTORS, *NUMBERS, "those", "these")
    if len(word) > 4 and word not in ("bottom", "final", "other", "these", "latter", "active", "eight", "seven")
]  # fmt: skip
GRAMMAR = frozenset([*KINDS, *STATUSES, *ORDINALS, *SELECTORS, *NUMBERS, *HAPPENINGS, *DETERMINERS, *STOPS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word, number, quotation or mark; `low` as the grammar reads it, `owns` where it is a possessive."""

    low: str
    start: int
    end: int
    number: int | None = None
    owns: bool = False
    quoted: bool = False


def tokenise(line: str) -> list[Token]:
    """Cut a line into tokens."""
    found: list[Token] = []
    for match in _TOKEN.finditer(line[:_MOST_CHARS]):
        start, end = match.span()
        if quoted := match["quoted"] or match["single"]:
            found.append(Token(low=quoted.lower(), start=start, end=end, quoted=True))
        elif match["number"]:
            found.append(Token(low="#", start=start, end=end, number=int(match["number"]), owns=bool(match["owner"])))
        elif match["word"]:
            found += _words_of(match["word"].lower().replace("\u2019", "'"), start, end, bool(match["plural"]))
        else:
            found.append(Token(low=match["mark"], start=start, end=end))
    return found


def _words_of(low: str, start: int, end: int, plural_owner: bool) -> list[Token]:
    if glued := _GLUED.fullmatch(low):
        middle = start + len(glued[1])
        return [
            Token(low=glued[1], start=start, end=middle),
            Token(low=glued[2], start=middle, end=end, number=int(glued[2])),
        ]
    for ending in ("'s", "'ll", "'re", "'ve"):
        if low.endswith(ending):
            low, plural_owner = low[: -len(ending)], ending == "'s"
            break
    low = _CONTRACTED.get(low, low)
    if len(low) > 4 and low.isalpha() and low not in GRAMMAR and (near := _mended(low)):
        low = near
    number = int(low) if low.isdecimal() and len(low) < 19 else None
    return [Token(low=low, start=start, end=end, number=number, owns=plural_owner)]


@lru_cache(maxsize=4_096)
def _mended(word: str) -> str:
    """Give the word of the grammar that a word misspells by one letter, "" where there is none."""
    return next((right for right in _MENDED if OSA.distance(word, right, score_cutoff=1) == 1), "")


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

    @property
    def is_named(self) -> bool:
        """Tell whether the words alone describe what is meant."""
        return self.position is None and not self.select and not self.count

    @property
    def is_plain(self) -> bool:
        """Tell whether the phrase says no more than kind and number: "it", "them", "the epic"."""
        return not (self.words or self.statuses or self.happening or self.select or self.position is not None)


class Said:
    """What a noun phrase has said so far, word by word."""

    def __init__(self) -> None:
        self.kind: WorkKind | None = None
        self.many: bool | None = None
        self.count: int | None = None
        self.position: int | None = None
        self.statuses: tuple[WorkStatus, ...] = ()
        self.happening: Happening | None = None
        self.words: list[str] = []
        self.select = ""
        self.owner: Phrase | None = None
        self.part = False
        self.head = False

    @property
    def says_something(self) -> bool:
        """Tell whether a noun phrase says anything of what is meant."""
        return bool(
            self.kind or self.head or self.words or self.select or self.statuses or self.happening or self.count
            or self.position is not None
        )  # fmt: skip

    def determine(self, word: str) -> None:
        """Take a determiner in."""
        if word in ("all", "both", "these", "those", "each", "every"):
            self.many = True
        if word == "both":
            self.count = 2

    def read(self, word: str, number: int | None) -> None:
        """Take a word before or at the head in."""
        nth = NTH.fullmatch(word)
        plain = word.removesuffix("s")
        if word in KINDS:
            self.kind, self.head = KINDS[word], True
            self.many = self.many or word in PLURALS
        elif (plain in HEADS and (word == plain or not self.words)) or word in HEADS:
            self.head, self.many = True, self.many or word not in HEADS
        elif not self.words and word == "last" and self.position and self.position > 0:
            self.position = -self.position  # "the second last", "the second to last"
        elif not self.words and (nth or word in ORDINALS):
            self.position = int(nth[1]) if nth else ORDINALS[word]
            if word in ("newest", "latest"):
                self.happening = Happening.CREATED
        elif not self.words and (word in NUMBERS or number is not None) and self.count is None:
            self.count = number if number is not None else NUMBERS[word]
            self.many = self.count > 1
        elif (self.count or self.position is not None) and word in ("created", "added", "made"):
            self.happening, self.head = Happening.CREATED, True
        elif not self.words and word in SELECTORS:
            self.select = SELECTORS[word]
            self.many = True if word == "others" else None if self.select == "rest" else self.many
        elif not self.words and word == "new":
            self.happening = Happening.CREATED
        elif not self.words and word in STATUSES:
            self.statuses = STATUSES[word]
        elif word not in ("just", "only", "very", "whole", "most", "newly", "recently", "still", "whichever"):
            self.words.append(word)

    def fields(self) -> dict[str, object]:
        """The fields of the phrase."""
        many = self.many
        if many is None and (self.kind or self.head or self.position is not None or self.select == "other"):
            many = False
        return {
            "kind": self.kind, "many": many, "count": self.count, "position": self.position,
            "statuses": self.statuses, "happening": self.happening, "words": tuple(self.words),
            "select": self.select, "owner": self.owner, "part": self.part,
        }  # fmt: skip
