"""The clauses of a fact: what each is about, its typed values, and the words that exclude others in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from orchestra_mem.core.cues.cue import LazyPattern
from orchestra_mem.core.text import content_stems, stem

# Words that tell of change and of time carry no topic.
NO_TOPIC = frozenset(
    stem(word)
    for word in (
        "without onto gone scrap forget actually instead mind minds change changed changes longer anymore any more "
        "decided decide decision agreed agree let lets go going use using used make made keep need needs needed "
        "want still now again today tomorrow yesterday week month morning afternoon evening night please sure thing "
        "things say said tell told plan plans rule rules always never must only may shall should can could would "
        "will get got getting fine okay ok allowed required forbidden move moved switch switched push pushed "
        "postponed raised raise lowered lower bump bumped extend extended cancel cancelled canceled drop dropped "
        "cut replace replaced replaces take takes took over back second thought thoughts new old one two three four "
        "five six seven eight nine ten twelve yet done finish finished complete completed already finally fixed fix "
        "waiting wait remind forget ask call sent send book booked ordered order settled settle pick picked chose "
        "choose chosen went come came we'll i'll we're i'm it's they're that's don't until unless before after at "
        "most least than per stick set put give given also just team people everyone nobody someone anyone really "
        "right well good great time times day days own owns run runs lead leads handle handles charge manage "
        "manages look looks care left rather previously last next first enough may might approved approve rejected "
        "reject deferred correction sorry goes heard working works work pending open todo day monday tuesday "
        "wednesday thursday friday saturday sunday january february march april june july august september october "
        "november december noon midnight hour hours minute minutes year years way bit lot think thinking guess turn "
        "turns turned flip flips become becomes shift shifts "
        "shifted us oh hey".split()
    )
)
_WORD_NUMBERS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|"
    "eighty|ninety|hundred"
)
_DAY_NAMES = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTHS = (
    "(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?)"
)
_FIRST_DAYS = "first|second|third"
_DAYS = (
    "fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|"
    "seventeenth|eighteenth|nineteenth|twentieth|twenty-(?:first|second|third|fourth|fifth|sixth|seventh|eighth|"
    "ninth)|thirtieth|thirty-first"
)
_VALUE = re.compile(
    # where none can begin, none is tried
    r"(?:(?<!\w)(?=[\d$€£jfmasondthwnqyebtz])|(?<=\w)(?=[$€£]))(?:"
    rf"(?P<date>\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)(?: of {_MONTHS}| {_MONTHS})?\b|\b{_MONTHS} \d{{1,2}}(?:st|nd|rd|"
    rf"th)?\b|\b\d{{1,2}} {_MONTHS}\b|"
    rf"\b(?:the )?(?=[a-z-]+ of )(?:{_FIRST_DAYS}|{_DAYS}) of {_MONTHS}\b|\b{_MONTHS} (?:{_FIRST_DAYS}|{_DAYS})\b|"
    rf"(?<=\bon )the (?:{_DAYS})(?= (?:at|and|so|then|instead|because|for|from|now|not|if|with)\b|[,;.!]|$)|"
    rf"\b\d{{4}}-\d\d-\d\d\b|\b{_DAY_NAMES}\b|\btomorrow\b|\bnext week\b)"
    r"|(?P<time>\b\d{1,2}(?:[:.]\d\d)? ?[ap]m\b|\b\d{1,2}:\d\d\b|\bnoon\b|\bmidnight\b|"
    rf"(?<=\bat )(?:half past |(?:a )?quarter (?:past|to) )?(?:\d{{1,2}}|{_WORD_NUMBERS})(?= o'clock| sharp| (?:on|in|"
    rf"from|every|tomorrow|today|tonight|until|till|and|or|at)\b|[,;]|\.(?!\d)|$))"
    r"|(?P<money>[$€£]\s?\d[\d,.]*k?|\b\d[\d,.]* ?(?:dollars?|euros?|pounds|usd|eur)\b)"
    r"|(?P<share>\b\d+(?:\.\d+)? ?(?:%|percent\b))"
    r"|(?P<pace>\b(?:hourly|daily|nightly|weekly|fortnightly|monthly|quarterly|yearly|annually|"
    r"(?:every|each|once an?|twice an?) (?:second |other )?(?:hour|day|night|morning|week|fortnight|month|quarter|"
    r"year))\b)"
    rf"|(?P<span>\b(?:\d[\d,.]* ?|(?:{_WORD_NUMBERS}) )(?:ms|s|sec|seconds?|min|minutes?|h|hours?|days?|weeks?|"
    rf"months?|years?)\b)"
    r"|(?P<size>\b\d[\d,.]* ?(?:[kmgt]i?b|[kmgt]?bits?|bytes?|tokens?|lines?|[kmg]?hz|fps|rpm)\b)"
    r"|(?P<measure>\b\d[\d,.]* ?(?:°[cf]?|degrees|mm|cm|m|km|kg|g|mg|ml|l|px)\b)"
    rf"|(?P<bound>(?<=most )|(?<=least )|(?<=than )|(?<=under )|(?<=over )|(?<=above )|(?<=below )|(?<=exceed )|"
    rf"(?<=maximum )|(?<=minimum )|(?<=from )|(?<=to )|(?<=is )|(?<=are )|(?<=limit )|(?<=of )|(?<=on )|^)"
    rf"(?P<number>\d[\d,.]*\d|\d|\b(?:{_WORD_NUMBERS})\b))"
)
NUMERIC = frozenset({"number", "span", "size", "measure", "money", "share"})
_VALUE_WORDS = frozenset(
    (
        f"{_WORD_NUMBERS}|mondays|monday|tuesdays|tuesday|wednesdays|wednesday|thursdays|thursday|fridays|friday|"
        "saturdays|saturday|sundays|sunday|noon|midnight|tomorrow|next|hourly|daily|nightly|weekly|fortnightly|"
        "monthly|quarterly|yearly|annually|every|each|once|twice|"
        f"{_FIRST_DAYS}|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|"
        "sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth"
    ).split("|")
)
# Closed sets of words of which one excludes the others in the same place. Different words may mean the same.
CLOSED = {
    word: (kind, group.split("/")[0])
    for kind, groups in (
        (
            "colour",
            "red orange yellow green blue purple/violet pink brown black white grey/gray beige turquoise gold silver",
        ),
        (
            "language",
            "english german french spanish italian portuguese dutch polish russian swedish danish norwegian finnish "
            "greek "
            "latin turkish arabic hebrew hindi chinese/mandarin japanese korean",
        ),
        (
            "transport",
            "car/drive/driving/drives train/rail bus/coach plane/fly/flying/flight/flights ferry/boat "
            "bike/bicycle/cycling/cycle foot/walk/walking truck/lorry tram underground/subway/metro",
        ),
        (
            "side",
            "north/northern south/southern east/eastern west/western left right upper/top lower/bottom upstairs "
            "downstairs inside/indoors "
            "outside/outdoors",
        ),
        ("part of day", "morning/mornings afternoon/afternoons evening/evenings night/nights"),
    )
    for group in groups.split()
    for word in group.split("/")
}
# What one goes by, from the verb that tells how one goes: `instead of driving` takes back `by car`.
GOES_BY = {
    stem(verb): stem(CLOSED[verb][1]) for verb in "drive driving fly flying flight cycling cycle walk walking".split()
}
# A thing among others of its kind, and where it stands as the place of something.
_LABEL = LazyPattern(
    r"(?P<place>\b(?:in|on|at|to|from|into) )?(?:the )?(?:\b(?P<kind>room|hall|floor|gate|platform|track|table|stall|"
    r"booth|"
    r"lot|bay|level|line|suite|unit|period|lane|building|desk|seat|shelf|pitch|court|stage|number|version|plan|option|"
    r"item|point|section|page|step|question|ticket|issue|part|chapter|paragraph|task|case|phase|row) "
    r"(?P<label>(?:\w?\d+\w?|one|two|three|four|five|six|seven|eight|nine|ten|[a-f])\b)|"
    r"\b(?P<rank>first|second|third|fourth|last) (?!of\b)(?P<ranked>[a-z]+))"
)
_LABEL_WORDS = frozenset(
    "room hall floor gate platform track table stall booth lot bay level line suite unit period lane building desk "
    "seat "
    "shelf pitch court stage number version plan option item point section page step question ticket issue part "
    "chapter paragraph task case phase row first second third fourth last".split()
)
_CLAUSE_END = LazyPattern(
    r"[.;!?—–]+(?=\s|$)|[,:](?=\s)|\s-\s|\b(?:so|and|but|hence|therefore|because|since|which|where|while)\b"
)
_SO = frozenset({"so", "hence", "therefore"})
_WORDS = re.compile(r"[^\W_](?:[\w'-]*\w)?")
LETTERS = re.compile(r"[a-z]+")
COUNTED = re.compile(rf"\b(?:\d[\d,.]*|{_WORD_NUMBERS}) (?P<thing>[a-z]+)\b")
_NEGATED = re.compile(r"n't\b|\b(?:not|no|never|cannot|nobody|none|without|neither|nor)\b")


_PLACES = re.compile(
    r"\b(in|on|at|(?:(?<=\bgo )|(?<=\bgoes )|(?<=\bmove )|(?<=\bmoves )|(?<=\bsend ))to|into|onto|under|behind|by|with|"
    r"via|"
    r"through|over|from|as|for)\b(?! (?:now on|today|tonight|then)\b)"
)
_GROUPS = {
    **dict.fromkeys(("in", "on", "at", "to", "into", "onto", "under", "behind"), "place"),
    **dict.fromkeys(("by", "with", "via", "through", "over", "from"), "means"),
    "as": "as",
    "for": "for",
}


class Clause:
    """A piece of a fact between commas and the like: the stems of its topic, its values, and words of closed sets.

    `which` tells a thing from others of its kind (`first lesson`, `room 12`); `concluded` says that a reason stands
    before it.
    """

    def __init__(self, text: str, *, concluded: bool, before: Clause | None = None) -> None:
        self.text = text
        self.concluded = concluded
        self.values, bare = values_of(text)
        spoken = _WORDS.findall(text)
        words = [word for word in spoken if word in CLOSED]
        self.closed = dict(CLOSED[word] for word in words)
        self.which: dict[str, str] = {}
        for found in () if _LABEL_WORDS.isdisjoint(spoken) else _LABEL.finditer(text):
            kind, label = (found["kind"], found["label"]) if found["kind"] else (found["ranked"], found["rank"])
            (self.closed if found["place"] and found["kind"] else self.which)[kind] = label
        self.closed_stems = frozenset(map(stem, words))
        days = days_of(self.values)
        stems = [word for word in content_stems(bare) if word not in NO_TOPIC]
        self.topic = frozenset(stems) | days
        counted = COUNTED.finditer(text) if self.values or _HAS_DIGIT(text) else ()
        apart = self.closed_stems.union(*(content_stems(found["thing"]) for found in counted))
        self.theme = tuple(dict.fromkeys(word for word in stems if word not in apart))
        if before and not self.theme and (self.values or self.closed):
            # `The export collides with the backup, so it runs at 4:15.`
            self.theme, self.topic = before.theme, self.topic | before.topic

    @cached_property
    def negated(self) -> bool:
        """Whether it says that something is not so."""
        return _NEGATED.search(self.text) is not None

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The stem right before a stem, where that tells which of a kind is meant (`the retry limit`)."""
        row = [content_stems(word)[:1] for word in self.text.split()]
        pairs = ((one[0], other[0]) for one, other in pairwise(row) if one and other)
        return {thing: kind for kind, thing in pairs if kind not in NO_TOPIC and kind not in self.closed_stems}

    @cached_property
    def frame(self) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
        """The stems before its prepositional phrases, and those inside them by the preposition's sense."""
        parts = _PLACES.split(self.text)
        inside: dict[str, frozenset[str]] = {}
        for word, text in zip(parts[1::2], parts[2::2], strict=True):
            group = _GROUPS[word]
            inside[group] = inside.get(group, frozenset()) | (frozenset(content_stems(text)) & self.topic)
        return frozenset(content_stems(parts[0])) - NO_TOPIC, inside


_MAX_DISLOCATED_WORDS = 3


def clauses_of(low: str) -> Iterator[Clause]:
    """Cut a text at commas and conjunctions; what stands before as its theme stays (`tokens: we rotate them`)."""
    begin, concluded, last = 0, False, None
    for border in _CLAUSE_END.finditer(low):
        piece = low[begin : border.start()].strip()
        if border.group()[0] in ",:" and 0 < piece.count(" ") + 1 <= _MAX_DISLOCATED_WORDS:
            continue
        if piece:
            last = Clause(piece, concluded=concluded, before=last)
            yield last
        begin = border.end()
        concluded = concluded or border.group() in _SO
    if low[begin:].strip():
        yield Clause(low[begin:].strip(), concluded=concluded, before=last)


def values_of(low: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Find the typed values of a text; with them comes what is left without them."""
    if not _HAS_DIGIT(low) and _VALUE_WORDS.isdisjoint(LETTERS.findall(low)):
        return (), low
    values: list[tuple[str, str]] = []
    rest: list[str] = []
    end = 0
    for match in _VALUE.finditer(low):
        kind, value = match.lastgroup or "", match.group().strip().removeprefix("the ")
        values.append((kind, value.rstrip("s") if kind == "date" else value))
        rest.append(low[end : match.start()])
        end = match.end()
    return tuple(values), " ".join([*rest, low[end:]])


_HAS_DIGIT = re.compile(r"[\d$€£]").search


def days_of(values: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Give the names of days among the values, which are topics as well."""
    return frozenset(value for kind, value in values if kind == "date" and value.endswith("day"))
