"""What the tables of cues share: the cue itself, and fragments of patterns.

A cue is a pattern that speaks for one kind of fact. It is matched against one sentence in lower case, with straight
apostrophes and single blanks. Weights add up within a kind; `THRESHOLD` makes a fact. Names of people need capitals
and stand in `roles`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from orchestra_mem.types import MustKeepKind

THRESHOLD = 2.0


class LazyPattern:
    """A pattern that is compiled when it is first tried: most are never needed, and compiling all takes 0.2 s."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        """Find the first place in a text."""
        return re.compile(self.pattern).search

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        """Match at the start of a text."""
        return re.compile(self.pattern).match

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        """Find all places in a text."""
        return re.compile(self.pattern).finditer


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """A pattern that speaks for one kind of fact.

    `triggers` are words of which a sentence must have one before the pattern is tried: most patterns are never run on
    most sentences. `imperative` marks what in a commit message says what the commit does, and is no rule there. `asks`
    marks what holds in a question, too.
    """

    kind: MustKeepKind
    weight: float
    pattern: LazyPattern
    triggers: frozenset[str]
    imperative: bool = False
    asks: bool = False


def cue(weight: float, triggers: str, pattern: str, *, imperative: bool = False, asks: bool = False) -> Cue:
    """Make a row of a table; `triggers` are set apart by blanks or bars. `table` sets the kind."""
    return Cue(
        kind=MustKeepKind.CONSTRAINT,
        weight=weight,
        pattern=LazyPattern(pattern),
        triggers=frozenset(re.split(r"[ |]+", triggers)),
        imperative=imperative,
        asks=asks,
    )


def table(kind: MustKeepKind, *rows: Cue) -> tuple[Cue, ...]:
    """Give the rows of a table their kind."""
    return tuple(replace(row, kind=kind) for row in rows)


def words(listing: str) -> str:
    """Turn words into the alternatives of a pattern."""
    return "|".join(listing.split())


START = (
    r"(?:^|(?:[,;:.!(\"*\]—–]|\s-)\s*|\b(?:and|but|so|then|please|also|just|again|or|otherwise|because|since|means|"
    r"remember|ok|okay|actually|everyone|everybody|folks|all|guys|kindly|simply|instead|therefore|hence)\s+)"
    r"(?:(?:please|just|also|and|so|but|then|always|kindly|really)\b,? ?)*"
)
PAST = (
    r"(?:\w{2,}ed|was|were|had|been|did|went|got|came|made|took|said|saw|knew|thought|felt|found|told|gave|became|"
    "left|"
    "heard|met|ran|brought|wrote|kept|began|showed|grew|lost|fell|stood|spoke|won|ate|drank|woke|slept|taught|"
    "caught|"
    "bought|rang|sang|swam|wore|broke|chose|drove|flew|forgot|hid|rode|rose|shook|stole|threw|understood|seen|gone|"
    "done|given|taken|known|happened|looked|wanted)"
)
NUMBER = (
    r"(?:[$€£]?\d|a (?:dozen|hundred|thousand|single|day|week|month|minute|hour)|half|one|two|three|four|five|six|"
    "seven|"
    "eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety|hundred|zero|noon|midnight|monday|"
    "tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|july|august|september|"
    r"october|november|december|tomorrow|tonight|today|next|end of|the \d)"
)
BASE = words(
    "treat speak cut boil bake roast chop peel drain chill freeze thaw stir season fry grill simmer knead label "
    "wash rinse dry wipe "
    "mop sweep dust store stack sort fold wrap pack unpack load unload lift carry haul drag push pull lock unlock "
    "shut close "
    "switch unplug plug charge refill empty fill top post sign stamp "
    "initial record log note file archive back encrypt redact hide mask round convert calibrate balance weigh "
    "measure "
    "count pipette centrifuge incubate sterilise sterilize autoclave tag brace shore prop nail screw glue sand "
    "prime paint "
    "seal insulate cover mark flag fence route reroute pin squash rebase tag bump lint format mock stub cache "
    "throttle "
    "retry escalate page seat serve plate garnish pour decant park drive walk ride cross "
    "enter exit leave wear tuck tie zip address spell quote credit invoice refund budget "
    "rotate swap alternate water feed groom muzzle leash supervise escort accompany prefix suffix "
    "name capitalise capitalize indent comment document report bring keep put place hang mount set"
)

# Who tells how nice something was or will be has not decided it.
NICE = (
    r"(?!.*\b(?:fun|great time|love|amazing|awesome|blast|so much|happy|excited|wonderful|good time|beautiful|enjoy|"
    r"great|a lot)\b)"
)

# Between one of these and a cue in the same clause, the cue tells of something supposed.
SUPPOSED = LazyPattern(
    r"\b(?:if|whether|suppose|supposing|imagine|what if|in case|assuming|would|could have|wonder(?:ing|ed|s)?|wish|"
    "hope|"
    r"hoping|hopefully|asked|might|pretend|as though|as if)\b"
)
# Who hedges has not decided.
HEDGE = LazyPattern(
    r"\b(?:maybe|perhaps|might|i think we could|i guess|possibly|wonder|would have|could have|i hope|hopefully|i "
    "wish|"
    r"what if|suppose|imagine|how about|not sure|thinking (?:of|about)|tempted|considering|dream of)\b"
)
# A statement with a question behind it, which does not put it in question.
TAG = LazyPattern(r",? (?:ok|okay|please|yes|understood|got it|alright|deal|clear|all right|yeah|agreed|capisce)\?+$")
# Praise and comfort borrow the words of rules and plans; they weigh against them.
CHEER = LazyPattern(
    r"\b(?:proud|amazing|awesome|incredible|dreams?|believe in|journey|joy|happiness|smiles?|cheer(?:ing|s)?|"
    r"inspir\w+|positiv\w+|"
    r"motivat\w+|encourag\w+|passions?|yourself|good (?:work|luck|vibes)|great work|support(?:ing|ive)? (?:you|each|"
    "me|us|network)|blessed|"
    "thankful|grateful|memories|hearts|heartwarming|love (?:you|it|that|this|how|the|to)|keep (?:it up|up|going|"
    "pushing|shining|doing|being|"
    "spreading|dreaming|fighting|moving|at it|believing|learning|growing)|so (?:happy|glad|excited|fun|cool|good|"
    r"nice)|congrat\w+|wow|"
    r"feelings?|feels?|lovely|wonderful|beautiful|fun|excited|enjoy\w*|kindness|adventures?|healing|self-care|stay "
    "(?:safe|strong|positive)|"
    r"strength|courage|hugs?|rewarding|rock)\b"
)
# A model that tells what it is about to do tells nothing that must be kept.
NARRATION = LazyPattern(
    r"^(?:(?:ok|okay|now|good|great|perfect|alright|right|first|next|so|and|then|also|finally|interesting)[,.:!—–-]* )*"
    r"(?:let me(?! know)|let's (?:see|check|look)|i'll (?:now|start|begin|first)|i'm (?:now |going to )?(?:checking|"
    r"reading|"
    r"looking|running)|now i(?:'ll| will| need to| have| can)|here(?:'s| is| are))\b"
)
