"""What a fact is about, for comparing it with others: its topic, its values, and what it takes back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from orchestra_mem.core.cues import LazyPattern
from orchestra_mem.core.roles import find_role
from orchestra_mem.core.text import content_stems, stem

# Words that take something back outright, and words that may only set one thing against another.
_TAKES_BACK = LazyPattern(
    r"\b(?:scrap|scratch that|forget (?:what|about|that|the|everything|my)|disregard|strike that|ignore (?:what|my|"
    r"the)|"
    r"never ?mind|take (?:it |that )?back|on (?:second|further) thoughts?|chang(?:ed|e|ing) (?:my|our|his|her|their) "
    r"minds?|"
    r"change of (?:plans?|heart)|i was wrong|no longer|not (?:\w+ ){0,5}any ?more|"
    r"(?:doesn't|don't|isn't|aren't|won't|needn't) (?:[\w' -]+ )?(?:any (?:more|longer)|anymore)|"
    r"cancel(?:led|ed|s)?|called off|"
    r"(?:is|are|was|were|been|'s|'re) (?:now |all |officially )*(?:lifted|scrapped|dropped|shelved|revoked|waived|"
    r"repealed|"
    r"abolished|overturned|reversed|off the table|suspended|withdrawn)|"
    r"(?:dropped|lifted|abandoned|reversed|waived|scrapped|ditched|overruled|overturned|revoked|suspended) "
    r"(?:the|that|our|it)|"
    r"(?:fine|ok|okay|allowed|permitted|acceptable|possible|welcome|back on|open|good)\b[\w' ]{0,40} "
    r"(?:now|again|after all)|after all|"
    r"(?:rule|limit|cap|ban|freeze|policy|requirement|restriction|curfew|embargo|plan|idea)s?\b[\w' ]{0,30} "
    r"(?:is|are|was|were) (?:gone|history|off|over|dead|obsolete|void|moot|relaxed|out)|"
    r"ditch(?:ed|ing)?|stop(?:ped|ping)? \w+ing|no more|is history|contrary to|dropping|"
    r"not (?:needed|necessary|required|allowed) (?:after all|any ?more|now)|correction|decided against|"
    r"(?:can|may) (?:now|[\w ]+ again)|go back on|undo|needn't|left the|stepped down|quit|retired|resigned)\b"
)
_SETS_AGAINST = LazyPattern(r"\b(?:instead of|rather than|\w+ instead|actually|back to|reverted?|reverse)\b")
_CHANGE = LazyPattern(
    r"\b(?:moved?|moves|moving|changed?|changes|changing|switched?|switching|switches|pushed|pushing|postponed?|"
    r"rescheduled|raised?|lowered?|"
    r"bump(?:ed)?|extend(?:ed)?|shortened|increased?|reduced?|cut|brought forward|put off|shifted|replaced?|replaces|"
    r"replacing|swap(?:ped)?|"
    r"make (?:it|that|them)|takes? over|took over|taken over|taking over|w(?:e|i)nt (?:up|down)|goes (?:up|down)|no "
    r"more|back to|misspoke|not \d\w*|now|from now on|instead|after all|set to|drop(?:ped)?|is now|actually|"
    r"delayed|deferred|updated?|revised?|upgraded?|downgraded?|stands in|fills in|succeeds|becomes?|turns|flips|"
    r"(?:down|up) to|goes to|change of plan)\b"
)
_OLD_VALUE = LazyPattern(
    r"\b(?:instead of|rather than|from|over from|replac(?:es|ed|ing)|not|no longer|scrap|cancel(?:led|ed)?|"
    r"drop(?:ped|ping)?|ditch(?:ed|ing)?|"
    r"forget about|forget|never mind|nevermind|succeeds|back what i said about|said about|minds? about|stop(?:ped|"
    r"ping)? \w+ing|no more|in place of|swap(?:ped)?) "
    r"(?:about |what i said about |using |the |a |an |our |my |that |with |on |to )*(?P<old>[\w'#$€£./:-]+(?: "
    r"[\w'#$€£./:-]+){0,5})"
)

# What is told to be off, out or gone, before or behind the word that says it.
_GONE = LazyPattern(
    r"(?:\b(?P<before>[\w'-]+) (?:is|are) (?:off|out|dead|gone|cancelled|canceled|history|too (?!many|much|few|"
    r"little|late|early)\w+)(?=[,.;!]|$| "
    r"(?:and|so|for|the))|"
    r"\b(?P<drops>[\w'-]+) (?:drops? out|falls? through|has to go)\b|"
    r"(?:^|[.,;:] |\bso |\bthen )no (?!(?:more|longer|one|problem|idea|later|way|need)\b)(?P<no>[\w.'-]+(?: "
    r"[\w-]+)?)(?=[,.;] )|"
    r"\b(?:bye|goodbye|farewell) (?P<bye>[\w'-]+)|\bthe (?P<goes>[\w'-]+) goes(?=[,.;]|$)|"
    r"\b(?:instead of|in place of) (?:the |a |an |our |my |using )?(?P<instead>(?!\w+ing\b)[\w'-]+))"
)
# A reason against something, and the decision that follows from it.
_REFUTES = LazyPattern(
    r"^(?P<reason>.*\b(?:no|not|nor|can't|cannot|won't|don't|doesn't|isn't|aren't|too|off|dead|gone|broken|costs?|"
    r"mess|fails?|"
    r"refus\w*|reject\w*)\b.*?)(?:[.!;] (?:so |hence |then |therefore )?(?:we |it's |[\w ]{1,30} (?:goes|moves|is|"
    r"are) )|,? (?:so|hence|"
    r"therefore) )(?=.*\b(?:we|it's|goes|go|becomes?|turns?|gets?|moves?|it is|is|are|instead)\b)"
)

# Words that tell of change and of time carry no topic.
_NO_TOPIC = frozenset(
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
        "november december noon midnight hour hours minute minutes year years way bit lot think thinking guess".split()
    )
)
# What was to be done and what has been done may differ in these.
DEEDS = frozenset(
    stem(word)
    for word in (
        "repair repaired resolved solve solved sorted restored merge merged ship shipped deploy deployed deliver "
        "delivered install installed submit submitted write written find found missing broken leaking failed "
        "failing fails crashed test tested upload uploaded name".split()
    )
)
_WORD_NUMBERS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|hundred"
)
_DAY_NAMES = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTHS = (
    "(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?)"
)
_VALUE = re.compile(
    rf"(?P<date>\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)(?: of {_MONTHS}| {_MONTHS})?\b|\b{_MONTHS} \d{{1,2}}(?:st|nd|rd|"
    rf"th)?\b|\b\d{{1,2}} {_MONTHS}\b|"
    rf"\b\d{{4}}-\d\d-\d\d\b|\b{_DAY_NAMES}\b|\btomorrow\b|\bnext week\b)"
    r"|(?P<time>\b\d{1,2}(?::\d\d)? ?[ap]m\b|\b\d{1,2}:\d\d\b|\bnoon\b|\bmidnight\b)"
    r"|(?P<money>[$€£]\s?\d[\d,.]*k?|\b\d[\d,.]* ?(?:dollars?|euros?|pounds|usd|eur)\b)"
    r"|(?P<share>\b\d+(?:\.\d+)? ?(?:%|percent\b))"
    rf"|(?P<span>\b(?:\d[\d,.]* ?|(?:{_WORD_NUMBERS}) )(?:ms|s|sec|seconds?|min|minutes?|h|hours?|days?|weeks?|"
    rf"months?|years?)\b)"
    r"|(?P<size>\b\d[\d,.]* ?(?:[kmgt]i?b|bytes?|tokens?|lines?)\b)"
    r"|(?P<measure>\b\d[\d,.]* ?(?:°[cf]?|degrees|mm|cm|m|km|kg|g|mg|ml|l|px)\b)"
    rf"|(?P<bound>(?<=most )|(?<=least )|(?<=than )|(?<=under )|(?<=over )|(?<=above )|(?<=below )|(?<=exceed )|"
    rf"(?<=maximum )|(?<=minimum )|(?<=from )|(?<=to )|(?<=is )|(?<=limit )|(?<=of )|(?<=on )|^)"
    rf"(?P<number>\d[\d,.]*\d|\d|\b(?:{_WORD_NUMBERS})\b)"
)
NUMERIC = frozenset({"number", "span", "size", "measure", "money", "share"})


@dataclass(frozen=True, slots=True)
class Profile:
    """What of a fact is compared, in stems.

    `topic` leaves out words of change, time and duty, `frame` the values alone; `values` are pairs of type and value;
    `old` is what the fact itself names as replaced, `gone` what it says is off,
    `refuted` what its reason speaks of; `who` is the person whose part it tells.
    """

    topic: frozenset[str]
    frame: frozenset[str]
    values: tuple[tuple[str, str], ...]
    old: frozenset[str]
    gone: frozenset[str]
    refuted: frozenset[str]
    takes_back: bool
    reverses: bool
    changes: bool
    who: str


_OLD_END = re.compile(r" (?:we|i|to|and|but|let's|they|is|are|for)\b|,")


@lru_cache(maxsize=1_024)
def profile_of(text: str) -> Profile:
    """Read from the text of a fact what is compared."""
    flat = " ".join(text.replace("’", "'").split())
    low = flat.lower()
    values: list[tuple[str, str]] = []
    for match in _VALUE.finditer(low):
        kind = match.lastgroup or ""
        values.append((kind, match.group().strip().removeprefix("the ")))
    bare = _VALUE.sub(" ", low)
    stems = frozenset(content_stems(bare))
    days = {value.rstrip("s") for kind, value in values if kind == "date" and value.rstrip("s").endswith("day")}
    old = {word for match in _OLD_VALUE.finditer(low) for word in content_stems(_OLD_END.split(match["old"])[0])}
    gone = {word for match in _GONE.finditer(low) for found in match.groups() if found for word in content_stems(found)}
    refuted = _REFUTES.match(low)
    takes_back = _TAKES_BACK.search(low) is not None
    vocabulary = set(re.findall(r"[a-z]+", low)) | {"'s"}
    role = find_role(flat.split(": ", 1)[-1], vocabulary)
    return Profile(
        topic=(stems - _NO_TOPIC) | frozenset(days),
        frame=stems,
        values=tuple(values),
        old=frozenset(old) - _NO_TOPIC,
        gone=frozenset(word for word in gone if not word[0].isdigit()) - _NO_TOPIC,
        refuted=frozenset(content_stems(refuted["reason"])) - _NO_TOPIC if refuted else frozenset(),
        takes_back=takes_back,
        reverses=takes_back or _SETS_AGAINST.search(low) is not None,
        changes=_CHANGE.search(low) is not None,
        who="" if role is None else flat.split(":", 1)[0] if role[0] == "I" and ": " in flat else role[0],
    )
