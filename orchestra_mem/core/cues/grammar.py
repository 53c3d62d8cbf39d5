"""What makes a sentence a rule, a part or an open point in whatever words: its grammar, weighed.

The other tables know phrases. Here a sentence is known by many weak signs that hold for any topic: what kind of subject
it has, whether it tells of a habit, of the past or of a wish, what scope it names, whether it concludes. The weights
are the coefficients of a logistic regression, rounded to halves; nothing is asked of the words that carry the topic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import inf

from orchestra_mem.core.cues.cue import TENTATIVE, THRESHOLD
from orchestra_mem.types import MustKeepKind

# Words that are a sign wherever they stand.
_WORDS = {
    "past": "was were had did been wasn't weren't didn't hadn't used went came got said told felt thought knew saw "
    "took made found gave left met heard kept became began he'd she'd they'd",
    "unreal": "would could might maybe perhaps if wish hope guess wonder think suppose imagine probably wouldn't "
    "couldn't should whether would've could've seems seem like hopefully",
    "feeling": "love loves fun great amazing nice lovely happy glad excited beautiful awesome wonderful feel feels "
    "feeling cool proud thanks thank sorry haha lol wow hate sounds dream dreams enjoy best favourite favorite",
    "negation": "doesn't don't isn't aren't won't can't cannot not never no without neither nor",
    "scope": "until till unless without before after once while whenever ever both either always never only every each "
    "any anyone nobody nothing none except everywhere anywhere anybody neither otherwise whoever",
    "change": "instead now longer back rather switch switched move moved moves moving swap swapped scrap forget drop "
    "dropped drops cancel cancelled changed change replaced becomes become goes stays out off today tomorrow from "
    "again",
    "arrange": "use uses using take takes taking go goes going keep keeps keeping run runs running open opens start "
    "starts starting switch do put puts gets get moves move comes come close closes end ends stay stays serve call "
    "called named lives live sits sit ships ship eat eats meet meets buy pay pays wear wears sell build hang hangs "
    "stand stands leaves leave",
    "number": "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty "
    "eighty hundred half noon midnight once twice dozen",
    "date": "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays "
    "saturdays sundays january february march april june july august september october november december first second "
    "third fourth fifth sixth seventh eighth ninth tenth",
    "instead": "instead",
    "still": "still yet",
    "unknown": "whether which who unknown unclear undecided nobody nobody's knows know knew idea answer answered reply "
    "replied waiting result word sure open",
    "unmet": "haven't hasn't couldn't need needs missing lack somebody someone ask",
    "duty": "owns runs leads handles decides signs holds keys charge responsible takes call duty cover covers looks "
    "job care boss deputy head lead contact",
    "able": "can could able may",
    "owning": "have has having had there there's",
    "third": "he she they",
    "me": "i i'm i've i'd i'll",
    "hearer": "you you're you've you'd you'll",
    "group": "we we're we'll we've we'd let's us",
}
# What kind of subject a sentence has is told by its first word that is no particle.
_SUBJECTS = {
    "of any": "a an any every each all both neither whoever anyone anybody anything everyone everybody everything "
    "nobody nothing no no-one whatever people only",
    "of a thing": "the our this these that those my your her his their",
    "of a pronoun": "he she they it it's he's she's they're that's there there's they've he'd she'd",
    "of me": "i i'm i've i'd i'll",
    "of us": "we we're we'll we've we'd let's us",
}
_PARTICLES = frozenset(
    "and so but also ok okay well oh ah right listen please anyway look now then yes yeah no fine good hey um uh just "
    "one more again alright all remember note actually hence therefore first".split()
)
# What a question begins with, though it has no mark.
_ASKING = frozenset(
    "what is are do does did can could how why where who when would will shall should which has have was were am "
    "what's who's how's where's".split()
)
_WISHFUL = frozenset(f"{_WORDS['feeling']} {_WORDS['unreal']}".split())
_CONCLUDING = frozenset("so then hence therefore".split())
_DEGREES = frozenset("much many far long good sorry happy glad".split())  # `so much`
_MAX_PARTICLES = 5
# What stands behind a verb in the third person (`goes in`, `keeps its`), and seldom behind a plural.
_BEHIND_VERB = frozenset(
    "in on at to into onto from for with by through out off up down over under behind between outside inside the a an "
    "its their his her my our no only away back home where what as via per".split()
)
_NO_S_FORM = ("ss", "us", "is")
_PARTICIPLE = (
    r"(?:\w{2,}ed|done|kept|made|sent|paid|held|taken|given|put|set|cut|read|run|sold|worn|shut|written|driven|fed|"
    r"shown|hung|built|brought|drawn|left|chosen|thrown|seen|told|eaten|drunk|hidden|torn|lent|bought|spent|split)"
)
_NAME = r"[A-ZÀ-ÖØ-Þ][^\W\dA-Z_]+(?:['’-]\w+)?\b"
# Signs that need more than a word: the pattern, and words of which a sentence must have one.
_PATTERNS: dict[str, tuple[re.Pattern[str], str]] = {
    "passive": (
        re.compile(
            rf"\b(?:is|are|isn't|aren't|gets?|be|'s|'re)(?: (?:not|only|always|never|all|now|then|just|also|\w+ly))? "
            rf"{_PARTICIPLE}\b"
        ),
        "is are isn't aren't gets get be it's they're that's he's she's",
    ),
    "bound": (
        re.compile(
            r"\bat (?:most|least|the (?:most|latest|earliest|very \w+))\b|\bno (?:more|less|later|earlier|fewer) than\b"
            r"|\b(?:max|tops|maximum|minimum)\b"
        ),
        "most least latest earliest very than max tops maximum minimum",
    ),
    "emphatic": (
        re.compile(
            r", (?:and )?not (?!sure|only|yet|bad|really|even|me)\w+|\bnot an? (?:single |\w+ of )|"
            r"\bno \w+ (?:of any|at all|whatsoever)|\b(?:with|by) no \w+|\bno \w+,? no \w+|\bat all\b|\bfor good\b|"
            r"\bthat's (?:all|it|final)\b|\bno (?:questions|matter|exceptions)\b|\bor (?:it|they|you|else)\b|"
            r"\bfull stop\b|\beven if\b|\b(?:at|under|in) any\b|\bthat same\b"
        ),
        "not no all good that's or stop even any same",
    ),
    "it is": (
        re.compile(r"\bit is(?=[,.!;]|$)|\bso (?:now )?it's\b|\bit's .{2,40} (?:then|now)\b"),
        "it it's",
    ),
    "concluded": (
        re.compile(r"[\w,;.!—–] ?\b(?:so|hence|therefore)\b(?! (?:much|many|far|long|good|that)\b)"),
        "so hence therefore",
    ),
    "at last": (re.compile(r"\bthen(?:,|[.!]?$)"), "then"),
    "unanswered": (
        re.compile(
            r"\b(?:hasn't|haven't|has not|have not|isn't|aren't|not|never|no|nobody|still|can't|nothing)\b.*\b(?:yet|"
            r"answer\w*|repl\w+|said|heard|back|know|result|word|say|decided|whether|if|who|which)\b"
        ),
        "hasn't haven't not isn't aren't never no nobody still can't nothing",
    ),
}
_NAMED = {
    "to a name": re.compile(
        rf"\b(?:to|through|with|via|by|ask|is|it's|that's|call|tell|under) (?:young |old |our |the )?{_NAME}"
    ),
    "of a name": re.compile(
        rf"(?:[,;:.—] |\b(?:and|so|but|then|that) )(?!I\b|I'){_NAME}(?:,? (?:he|she|who))?(?:'s| is| has|'ll| will)? "
        r"(?:[a-z]+ly |now |also |still )?[a-z]+s?\b"
    ),
}
_INNER_NAME = re.compile(rf"(?<=[\w,;:—-] )(?!I\b|I'){_NAME}")
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_LABEL = re.compile(r"[\w' -]{2,40}: \w")
# What has a path, a name of code or a masked passage in it is seldom talk.
_CODE = re.compile(r"xxx|\w[_/(]|[)#<>=\n]")
_MIN_WORDS = 6
_BRIEF_WORDS = 9  # too few for their grammar to speak against anything
_LONG_WORDS = 12  # who lays something down says where, when and for whom

_BIAS = "bias"
# fmt: off
_WEIGHTS: dict[MustKeepKind, dict[str, float]] = {
    MustKeepKind.CONSTRAINT: {
        _BIAS: -3.5, "passive": 2.0, "bound": 1.5, "label": 1.5, "long": 1.5, "negation": 1.5, "arrange": 1.0,
        "emphatic": 1.0, "number": 1.0, "of any": 1.0, "scope": 1.0, "scopes": 0.5, "concludes": -0.5,
        "instead": -0.5, "me": -0.5, "name": -0.5, "of us": -0.5, "past": -0.5, "third": -0.5, "to a name": -0.5,
        "unknown": -0.5, "unreal": -0.5, "exclaims": -1.0, "feeling": -1.0, "of a pronoun": -1.0, "of me": -1.0,
        "still": -1.0,
    },
    MustKeepKind.DECISION: {
        _BIAS: -5.0, "concludes": 2.0, "change": 1.5, "concluded": 1.5, "long": 1.5, "arrange": 1.0, "of us": 1.0,
        "at last": 0.5, "date": 0.5, "group": 0.5, "number": 0.5, "asks": -0.5, "emphatic": -0.5,
        "hearer": -0.5, "negation": -0.5, "of a thing": -0.5, "of any": -0.5, "owning": -0.5, "past": -0.5,
        "scope": -0.5, "scopes": -0.5, "still": -0.5, "unanswered": -0.5, "unknown": -0.5, "unreal": -0.5,
        "label": -1.0,
    },
    MustKeepKind.ROLE: {
        _BIAS: -3.5, "name": 2.0, "duty": 1.5, "of a name": 1.5, "to a name": 1.0, "habit": 1.0, "third": 1.0,
        "long": 0.5, "able": -0.5, "arrange": -0.5, "asks": -0.5, "concludes": -0.5, "date": -0.5, "group": -0.5,
        "it is": -0.5, "of any": -0.5, "of me": -0.5, "of us": -0.5, "past": -0.5, "exclaims": -1.0, "me": -1.0,
        "number": -1.0, "feeling": -1.5, "of a pronoun": -1.5,
    },
    MustKeepKind.OPEN_ITEM: {
        _BIAS: -4.0, "still": 2.0, "unknown": 2.0, "unanswered": 1.5, "unmet": 1.5, "date": 1.0, "of a thing": 1.0,
        "change": 0.5, "long": 0.5, "negation": 0.5, "of us": 0.5, "owning": 0.5, "emphatic": -0.5, "exclaims": -0.5,
        "hearer": -0.5, "feeling": -1.5,
    },
}
# fmt: on
# From where on a sum makes a fact by itself, from where on it supports a cue that does not, and up to where it speaks
# against one.
_SURE = 0.0
_LIKELY = -0.5
LIKELY_DECISION = -2.0
"""From where on a sum (see `weigh_decision`) makes a decision of what contradicts another; alone it makes none."""
_UNLIKELY = {MustKeepKind.CONSTRAINT: -2.5, MustKeepKind.OPEN_ITEM: -4.0}

_SIGNS = (
    *_WORDS, *_SUBJECTS, *_PATTERNS, *_NAMED, "name", "label", "concludes", "scopes", "habit", "long", "exclaims",
    "asks",
)  # fmt: skip
_BIT = {sign: 1 << number for number, sign in enumerate(_SIGNS)}


def _masks(listed: dict[str, str]) -> dict[str, int]:
    masks: dict[str, int] = {}
    for sign, listing in listed.items():
        for word in listing.split():
            masks[word] = masks.get(word, 0) | _BIT[sign]
    return masks


_SUBJECT_MASKS = _masks(_SUBJECTS)
# A word is a sign itself, or lets a pattern be one: that stands in the bits from `_LATER` up.
_LATER = len(_SIGNS)
_EARLY = (1 << _LATER) - 1
_WORD_MASKS = _masks(_WORDS)
for _sign, (_, _listing) in _PATTERNS.items():
    for _word in _listing.split():
        _WORD_MASKS[_word] = _WORD_MASKS.get(_word, 0) | _BIT[_sign] << _LATER
_SEARCHES = tuple((_BIT[sign], pattern.search) for sign, (pattern, _) in _PATTERNS.items())
_NAMED_SEARCHES = tuple((_BIT[sign], pattern.search) for sign, pattern in _NAMED.items())
_ANY_NAME = _BIT["name"] | sum(_BIT[sign] for sign in _NAMED)
_SCOPE_BIT, _NUMBER_BIT = _BIT["scope"], _BIT["number"]
_DIGIT = re.compile(r"\d")
_Weights = tuple[tuple[MustKeepKind, float], ...]


def weigh_grammar(sentence: str, low: str, words: Sequence[str], *, known: bool) -> _Weights:
    """Weigh a sentence by its grammar: the weight, as that of a cue, for each kind that it may tell.

    Args:
        sentence: A sentence that is no question, with straight apostrophes.
        low: The sentence in lower case.
        words: Its words, in order.
        known: Whether cues tell of what it speaks, so that only what speaks against them is asked for.
    """
    if len(words) < (_BRIEF_WORDS if known else _MIN_WORDS):
        return ()
    signs = _signs_of_words(low, words)
    possible, signs = signs >> _LATER, signs & _EARLY
    if sentence[1:] != low[1:]:
        possible |= _ANY_NAME
    if not (known or _can_tell(signs, possible)) or _CODE.search(low):
        return ()
    return _weights_of(signs | _signs_of_patterns(sentence, low, possible))


def _signs_of_patterns(sentence: str, low: str, possible: int) -> int:
    signs = 0
    for bit, search in _SEARCHES:
        if possible & bit and search(low):
            signs |= bit
    if possible & _ANY_NAME and _INNER_NAME.search(sentence):
        signs |= _BIT["name"]
        for bit, search in _NAMED_SEARCHES:
            if search(sentence):
                signs |= bit
    return signs


def is_wishful(low: str) -> bool:
    """Tell whether a text in lower case has a word of feeling, or of what is not so but might be."""
    return not _WISHFUL.isdisjoint(_WORD.findall(low))


def weigh_decision(sentence: str) -> float:
    """Weigh how far the grammar of a sentence, however short, is that of a decision: likely from `LIKELY_DECISION`."""
    low = sentence.lower()
    words = _WORD.findall(low)
    if not words or _CODE.search(low):
        return -inf
    signs = _signs_of_words(low, words)
    possible, signs = signs >> _LATER, signs & _EARLY
    if sentence[1:] != low[1:]:
        possible |= _ANY_NAME
    return _totals_of(signs | _signs_of_patterns(sentence, low, possible))[_DECISION]


def _signs_of_words(low: str, words: Sequence[str]) -> int:
    signs, scopes = 0, 0
    for word in words:
        if found := _WORD_MASKS.get(word):
            signs |= found
            scopes += found & _SCOPE_BIT != 0
    if scopes > 1:
        signs |= _BIT["scopes"]
    if not signs & _NUMBER_BIT and _DIGIT.search(low):
        signs |= _NUMBER_BIT
    if len(words) > _LONG_WORDS:
        signs |= _BIT["long"]
    if low.endswith("!"):
        signs |= _BIT["exclaims"]
    return signs | _signs_of_subject(low, words)


def _signs_of_subject(low: str, words: Sequence[str]) -> int:
    signs, first = 0, 0
    if ": " in low and (label := _LABEL.match(low)):
        signs = _BIT["label"]
        first = min(label.group().count(" "), len(words) - 1)
    else:
        last = min(_MAX_PARTICLES, len(words) - 1)
        while first < last and words[first] in _PARTICLES:
            first += 1
    if not _CONCLUDING.isdisjoint(words[: first + 1]) and words[first] not in _DEGREES:
        signs |= _BIT["concludes"]
    if words[first] in _ASKING:
        signs |= _BIT["asks"]
    signs |= _SUBJECT_MASKS.get(words[first], 0)
    for number in range(first + 1, min(first + 8, len(words) - 1)):
        word = words[number]
        if word[-1] == "s" and words[number + 1] in _BEHIND_VERB and len(word) > 3 and not word.endswith(_NO_S_FORM):
            return signs | _BIT["habit"]
    return signs


_KINDS = tuple(_WEIGHTS)
_DECISION = _KINDS.index(MustKeepKind.DECISION)
_LEAST = tuple(LIKELY_DECISION if kind is MustKeepKind.DECISION else _LIKELY for kind in _KINDS)
_BIASES = tuple(_WEIGHTS[kind][_BIAS] for kind in _KINDS)
_VECTORS = tuple((_BIT[sign], tuple(_WEIGHTS[kind].get(sign, 0.0) for kind in _KINDS)) for sign in _SIGNS)
_GAINS = tuple((bit, tuple(max(0.0, weight) for weight in vector)) for bit, vector in _VECTORS)


@lru_cache(maxsize=8192)
def _totals_of(signs: int) -> tuple[float, ...]:
    """The sums of the weights, one for each of `_KINDS`."""
    return tuple(map(sum, zip(_BIASES, *[vector for bit, vector in _VECTORS if signs & bit], strict=True)))


@lru_cache(maxsize=1024)
def _gains_of(possible: int) -> tuple[float, ...]:
    """What the sums could still gain, were every sign there that the words allow."""
    return tuple(map(sum, zip([0.0] * len(_KINDS), *[gains for bit, gains in _GAINS if possible & bit], strict=True)))


def _can_tell(signs: int, possible: int) -> bool:
    totals, gains = _totals_of(signs), _gains_of(possible)
    return any(total + gain >= least for total, gain, least in zip(totals, gains, _LEAST, strict=True))


def _weights_of(signs: int) -> _Weights:
    found = []
    for kind, total, least in zip(_KINDS, _totals_of(signs), _LEAST, strict=True):
        if total >= least:
            weight = THRESHOLD if total >= _SURE else THRESHOLD / 2
            found.append((kind, TENTATIVE if kind is MustKeepKind.DECISION else weight))
        elif total < _UNLIKELY.get(kind, total):
            found.append((kind, -THRESHOLD / 2))
    return tuple(found)
