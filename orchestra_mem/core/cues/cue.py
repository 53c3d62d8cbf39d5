"""What the tables of cues share: the cue itself, and fragments of patterns.

A cue is a pattern that speaks for one kind of fact. It is matched against one sentence in lower case, with straight
apostrophes and single blanks. Weights add up within a kind; `THRESHOLD` makes a fact, and `TENTATIVE` a decision
where that contradicts what was said before. Names of people need capitals and stand in `roles`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from orchestra_mem.types import MustKeepKind

THRESHOLD = 2.0
TENTATIVE = 0.5


_PATTERNS: list[LazyPattern] = []


def compile_patterns() -> Iterator[None]:
    """Compile all patterns that have been loaded, one a step, for who has the time."""
    for pattern in _PATTERNS:
        _ = pattern.compiled
        yield


class LazyPattern:
    """A pattern that is compiled when it is first tried: most are never needed, and compiling all takes 0.2 s.

    `needs` are strings of which every match has one: `search` looks for these first, which costs a tenth.
    """

    def __init__(self, pattern: str, needs: tuple[str, ...] = ()) -> None:
        self.pattern = pattern
        self.needs = needs
        _PATTERNS.append(self)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, ready for use."""
        return re.compile(self.pattern)

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        """Find the first place in a text."""
        search = self.compiled.search
        return _guarded(search, self.needs) if self.needs else search

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        """Match at the start of a text."""
        return self.compiled.match

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        """Find all places in a text."""
        finditer = self.compiled.finditer
        return (lambda text: finditer(text) if self.can_match(text) else iter(())) if self.needs else finditer

    def can_match(self, text: str) -> bool:
        """Tell whether a text has what every match needs; it may match then, else it does not."""
        return not self.needs or any(need in text for need in self.needs)


def _guarded(
    search: Callable[..., re.Match[str] | None], needs: tuple[str, ...]
) -> Callable[..., re.Match[str] | None]:
    def guarded(text: str) -> re.Match[str] | None:
        for need in needs:
            if need in text:
                return search(text)
        return None

    return guarded


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


def cue(
    weight: float, triggers: str, pattern: str, *, imperative: bool = False, asks: bool = False, needs: str = ""
) -> Cue:
    """Make a row of a table; `triggers` are set apart by blanks or bars, `needs` by bars. `table` sets the kind."""
    return Cue(
        kind=MustKeepKind.CONSTRAINT,
        weight=weight,
        pattern=LazyPattern(pattern, tuple(needs.split("|")) if needs else ()),
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
    "done|given|taken|known|happened|looked|wanted|held|led|sent|spent|built|paid|sold|sat|laid|meant|dealt|fought|"
    "sought|shot|struck|stuck|swept|tore|drew|blew|dug|fed|fled|hung|lent|bent|bound|slid|froze|sank|swore|wound)"
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
# What somebody asks is no rule yet.
ASKED = LazyPattern(r"\b(?:whether|(?:ask(?:s|ed|ing)?|wonder(?:s|ed|ing)?|not sure|unsure) (?:\w+ ){0,2}if)\b")
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
# Reports: what a model says of its work, and what a commit's message says. They tell how things are, mostly, and in
# what order the next steps come. A fact in a report says of itself that it is one, by these words.
_OUGHT = (
    r"\bmust(?:n't)?\b(?! (?:already|mean|come from|have|(?:be (?!\w+ed\b)(?:a|an|the|in|some|something|due|because|"
    r"\w+ing|that|where|why|there)))\b)|\b(?:shall|shan't|may (?:not|only|never)|ought to|supposed to|not to be)\b|"
    r"(?<!\bi )(?<!\bwe )\b(?:has|have) to\b|\b(?:not|isn't|aren't|is|are|only) (?:allowed|permitted|acceptable|"
    r"negotiable|optional|required|mandatory|compulsory|obligatory|forbidden|prohibited|banned|off[- ]limits|"
    r"non-negotiable|disallowed)\b|\bshould(?:n't| not| never| always| only)\b|\byou (?:can't|cannot|can only)\b|"
    r"^\W*[a-z]+ (?:it|this|that|them|the \w+) only\b"
)
_SAID = (
    r"\b(?:you|user|client|customer|team|owner|they|he|she)(?:'ve|'d| would| have| has)? (?:want|wants|wanted|asked|"
    r"said|told|insists?)\b"
)
_ORDERED = (
    r"^\W*(?:(?:please|and|so|but|also|important|note|remember|rule|constraint)\b[,:]? ?)*(?:never|always|only|don't|"
    r"do not|avoid|make sure|ensure|please) (?!\w+(?:ed|ing|s)\b)\w|\b(?:i|we)(?:'ll| will) (?:never|always|only)\b|"
    r"\b(?:we|you) (?:never|always|only) (?!\w+ed\b)\w|\bonly [^,.;:]{1,40} (?:may|should|must|gets? to)\b|\b(?:nobody|"
    r"no one|nothing|none|no \w+) (?:may|must|should|shall|is to)\b"
)
_RULED = (
    r"\b(?:polic(?:y|ies)|conventions?|guidelines?|regulations?|constraints?|restrictions?|(?:the|our|a|one|house|hard|"
    r"ground|project|golden) rules?|from (?:now|here|today|tomorrow|this point|next \w+) on(?:wards?)?|going forward|"
    r"henceforth|until further notice|at all times|under no circumstances|on no account|no exceptions|approval|"
    r"sign-?off|permission|consent|go-ahead|prefers?|allerg\w+|(?:limit|budget|cap|quota|deadline|maximum|minimum|"
    r"threshold) (?:is|are|stays|remains|of)|at most|no (?:more|later|fewer|less|earlier) than|not exceed)\b"
)
_CHOSE = (
    r"\b(?:decid\w+|decision|chose|chosen|choose|agreed (?:to|on|that|with)|settled (?:on|for)|opted|voted|verdict|"
    r"consensus|change of plans?|let's|scrap (?:that|the)|(?:was|were|been|got|now) (?:\w+ )?(?:approved|rejected|"
    r"postponed|cancelled|canceled|deferred|shelved|vetoed|ruled out|adopted|scrapped|called off|abandoned|put on hold|"
    r"overruled)|(?:you|user|client|customer|team|board|management|he|she|they)(?:'ve| has| have)? (?:\w+ "
    r")?(?:approved|rejected|postponed|cancelled|canceled|deferred|declined|vetoed|accepted|signed off|picked|selected|"
    r"wanted|preferred))\b|\b(?:we|you|they|team|user|client)(?:'ve|'re|'ll|'d| have| are| will)? (?:now |also |all |"
    r"just |going to |both )*(?:switch\w*|mov(?:e|ed|ing) (?:to|from|away)|adopt\w*|drop\w*|keep\w*|kept|skip\w*|"
    r"postpon\w*|defer\w*|cancel\w*|scrap\w*|replac\w+|us(?:e|ed|ing)|no longer)\b|\b(?:we|you|they|team|user|client|"
    r"i)(?:'ve|'re|'ll|'d|'m| have| are| will| am)? (?:now |also |all |just |going to |both )*(?:go(?:ing)? (?:with|"
    r"for)|went (?:with|for)|stick(?:ing)? (?:with|to))\b|\bi(?:'ll| will|'m going to) (?:not |now |just )?(?:use|take|"
    r"skip|drop|switch|adopt|hold|postpone|cancel|replace|choose|pick|defer|keep|leave)\b"
)
_LEFT_OPEN = (
    r"\b(?:todo|to-do|tbd|fixme|outstanding|pending|unresolved|undecided|unanswered|unclear|unconfirmed|waiting (?:on|"
    r"for)|awaiting|blocked (?:on|by|until)|blockers?|remains? (?:open|to|unresolved|undecided)|left (?:to|over|open)|"
    r"what's left|next steps?|follow[- ]?ups?|(?:open|remaining) (?:question|item|issue|point|task|work)s?|action "
    r"items?|still (?:open|need\w*|to (?:do|be|come)|missing|waiting|ha(?:s|ve) to|not|no|unclear|unfixed|unsure)|"
    r"(?:not|hasn't|haven't|nobody has|no one has)(?: \w+){0,4}? yet|(?:hasn't|haven't|has not|have not) (?:been "
    r")?(?:run|tested|done|started|finished|decided|confirmed|answered|heard|reviewed|verified|validated|merged|"
    r"deployed|fixed|addressed|checked|updated)|later|tomorrow|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day|next "
    r"(?:week|sprint|month|session|release)|once (?:you|he|she|they)|before (?:the |we |you )?(?:release|launch|"
    r"merg\w+|deploy\w*|prod\w*|go-live|ship\w*)|(?:your|his|her|their) (?:\w+ )?(?:call|decision|approval|"
    r"confirmation|input|go-ahead|answer|review|sign-?off)|(?:needs?|requires?) (?:more|another|further|\w+'s|approval|"
    r"review)|you(?:'ll| will| still| also)* (?:need|have) to|(?:could|can|would) you|please|let me know|remind|(?:not "
    r"sure|don't know|unsure) (?:if|whether|who|when|which|what)|promised|owes?)\b|\byet[.!]*$"
)
_DONE = (
    r"^\W*(?:(?:and|ok|okay|great|good|perfect|right|yes|so|then|finally|just|already|successfully|also|now|both|all|"
    r"x{3,}|\d+)\b[\s,.:;)*–—-]*)*(?:(?!(?:confirmed|checked|agreed|verified|based|needed)\b)\w{2,}ed|built|made|sent|"
    r"wrote|put|set|done|complete|ready|green)\b|\b(?:i|we|you|he|she|they)(?:'ve|'d| have| has| had)? (?:\w+ly |just |"
    r"already |now |also |all |both )*(?:\w{2,}ed|built|made|sent|wrote|put|set|cut|ran|did)\b|(?:\b(?:is|are|was|were|"
    r"been|got|everything)|'s|'re) (?:\w+ly |now |all |already |both )*(?:done|finished|completed?|fixed|merged|closed|"
    r"deployed|released|shipped|resolved|implemented|live|in place|renamed|migrated|updated|removed|added|replaced|"
    r"verified|approved|published|clean|green|up and running|back (?:up|online)|working|passing|in)\b|\b(?:tests?|"
    r"checks?|suites?|lint\w*|builds?|pipeline|ci)\b[^.;]{0,40}\b(?:pass\w*|succe\w+|green|clean)\b|\b(?:succeeded|"
    r"went (?:through|live|out)|works? again|\w+ing again|(?:has|have) been \w+)\b"
)
_FAILS = (
    r"\b(?:(?:is|are|was|were|still|keeps?|now|got|been) (?:\w+ly |still |now )*(?:failing|broken|down|stuck|blocked|"
    r"unavailable|unreachable|offline|corrupt\w*|crashing|hanging|leaking)|(?<!nothing )(?<!never )(?:failed|"
    r"fails)(?=[,.:;]|$| (?:to|on|in|at|with|for|because|again|since|after|due|and|but|from|too|often|when|whenever|if|"
    r"every)\b| [(—-])|crashed|timed out|could(?:n't| not)|unable to|(?:did|does|do|will|wo)(?:n't| not) (?:work|start|"
    r"build|compile|load|run|pass|boot|connect)|regressions?|outage|blockers?|deadlocks?|data loss|ran out|broke(?= "
    r"(?:on|in|again|the|our)\b|[.,!]|$))\b|^\W*(?:\w*error|\w*exception|fatal|panic|traceback)\b"
)
TOLD_AS_SUCH = {
    MustKeepKind.FAILURE: LazyPattern(_FAILS),
    MustKeepKind.COMPLETION: LazyPattern(_DONE),
    MustKeepKind.CONSTRAINT: LazyPattern("|".join((_OUGHT, _SAID, _ORDERED, _RULED))),
    MustKeepKind.DECISION: LazyPattern(_CHOSE),
    MustKeepKind.OPEN_ITEM: LazyPattern(_LEFT_OPEN),
}
# What a report says of failures that are supposed, or no longer are.
NO_LONGER_FAILS = LazyPattern(
    r"\b(?:would|could|might|unless|instead of|no longer|previously|used to)\b|^\W*(?:fix|avoid|prevent|handl|rais|"
    r"wrap|resolv|correct|drop|add|remov|don't|document|ensur|re-?activ|re-?enabl|catch|assert|guard|return|ignor|skip|"
    r"mak|explicitl|allow|support|improv|updat|default|expand|show)\w*\b"
)
# What opens the message of a compiler, an interpreter or a command: its `must` is no rule of anybody's.
MESSAGE = LazyPattern(
    r"\W{0,3}(?:[\w./\\-]*\w\.[a-z]\w{0,4}:\d+(?::\d+)?:? |[\w.]+(?:error|exception|warning)(?:\[\w+\])?: |"
    r"error(?:\[\w+\])?: |(?:fatal|panic): |npm err! )"
)
# The value of a field that tells of nothing.
NOTHING = LazyPattern(
    r"(?:none|null|nil|false|no|nothing|n/a|na|0|ok|-+|\[\]|\{\}|not applicable)"
    r"(?: (?:errors?|failures?|exceptions?|blockers?|issues?|problems?|open (?:items|questions)|(?:next )?steps|"
    r"follow-?ups?|yet|so far|known|found|reported|at (?:the moment|present)|left|remaining|pending))*[.!]?$"
)
# A model that tells what it is about to do tells nothing that must be kept.
NARRATION = LazyPattern(
    r"^(?:(?:ok|okay|now|good|great|perfect|alright|right|first|next|so|and|then|also|finally|interesting)[,.:!—–-]* )*"
    r"(?:let me(?! know)|let's (?:see|check|look)|i'll (?:now|start|begin|first)|i'm (?:now |going to )?(?:checking|"
    r"reading|"
    r"looking|running)|now i(?:'ll| will| need to| have| can)|here(?:'s| is| are))\b"
)
