"""What a fact is about, for comparing it with others: its topic, its values, and what it takes back.

A `Profile` reads only what is asked for: most facts are never compared, and what costs is the reading.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from math import inf

from orchestra_mem.core.cues.cue import LazyPattern
from orchestra_mem.core.cues.grammar import weigh_decision
from orchestra_mem.core.facts.clauses import CLOSED, GOES_BY, LETTERS, NO_TOPIC, Clause, clauses_of, days_of, values_of
from orchestra_mem.core.facts.roles import find_role
from orchestra_mem.core.text import content_stems, split_sentences, stem

# Words that take something back outright, and words that may only set one thing against another.
_TAKES_BACK = LazyPattern(
    r"\b(?:scrap|scratch (?:that|what|the|those)|(?<!don't )(?<!not )(?<!never )forget (?:what|about|that|the|"
    r"everything|my)|disregard|"
    r"strike that|ignore (?:what|my|"
    r"the)|never ?mind|take (?:it |that )?back|on (?:second|further) thoughts?|chang(?:ed|e|ing) (?:my|our|his|her|"
    r"their) minds?|change of (?:plans?|heart|menu|mind|course|venue|date)|i was wrong|no longer|"
    r"not (?:\w+ ){0,5}any ?more|"
    r"(?:doesn't|don't|isn't|aren't|won't|needn't) (?:[\w' -]+ )?(?:any (?:more|longer)|anymore)|"
    r"cancel(?:led|ed|s)?|called off|"
    r"(?:is|are|was|were|been|'s|'re) (?:now |all |officially )*(?:lifted|scrapped|dropped|shelved|revoked|waived|"
    r"repealed|abolished|overturned|reversed|off the table|suspended|withdrawn)|"
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
    r"(?:down|up) to|goes to|change of plan|go(?:es|ing)? (?:up|down)|doubled|halved|"
    r"(?:from|as of|starting|effective) (?:today|tonight|tomorrow|next \w+|\w+day))\b"
)
_OLD_VALUE = LazyPattern(
    r"\b(?:instead of|rather than|from|over from|replac(?:es|ed|ing)|not|no longer|scrap|cancel(?:led|ed)?|"
    r"drop(?:ped|ping)?|ditch(?:ed|ing)?|"
    r"forget about|forget|never mind|nevermind|succeeds|back what i said about|said about|minds? about|stop(?:ped|"
    r"ping)? \w+ing|no more|in place of|swap(?:ped)?) "
    r"(?:about |what i said about |using |the |a |an |our |my |that |with |on |to )*(?P<old>[\w'#$€£./:-]+(?: "
    r"[\w'#$€£./:-]+){0,5})"
)
_OLD_END = re.compile(r" (?:we|i|to|and|but|let's|they|is|are|for)\b|,")

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
_GONE_WORDS = frozenset(
    "off out dead gone cancelled canceled history too drop drops fall falls has no bye goodbye farewell goes instead "
    "place".split()
)
# A reason against something, and the decision that follows from it.
_REFUTES = LazyPattern(
    r"^(?P<reason>.*\b(?:no|not|nor|can't|cannot|won't|don't|doesn't|isn't|aren't|too|off|dead|gone|broken|costs?|"
    r"mess|fails?|veto\w*|"
    r"refus\w*|reject\w*)\b.*?)(?:[.!;] (?:so |hence |then |therefore )?(?:we |it's |[\w ]{1,30} (?:goes|moves|is|"
    r"are) )|,? (?:so|hence|"
    r"therefore) )(?=.*\b(?:we|it's|goes|go|becomes?|turns?|gets?|moves?|it is|is|are|instead)\b)"
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
_CONCLUDES = LazyPattern(
    r"(?:^|[.,;:!?] ?|\s)(?:so|hence|therefore|that's why|which means)\b(?! (?:that|far|much|many|good|nice|cool|"
    r"sorry|long|loud|big|small|expensive|cheap)\b),?|[.!;] (?:(?:so|then|ok|right),? )?"
)
_SO_WORD = LazyPattern(
    r"(?:^|[.,;:!?—–-] ?|\s)(?:so|hence|therefore|that's why|which means)\b(?! (?:that|far|much|many|good|nice|cool|"
    r"sorry|"
    r"long|loud|big|small|expensive|cheap)\b)"
)
# What speaks against something, as a reason to choose another thing.
_FAILS = LazyPattern(
    r"\b(?:no|not|nor|never|too|off|dead|gone|broken|cancel\w*|costs?|mess|fail\w*|leak\w*|closed|shut|refus\w*|"
    r"reject\w*|full|taken|veto\w*|"
    r"booked|overbooked|sold out|out of|ill|sick|away|on leave|on strike|bust|sold|hates?|worse|"
    r"smells?|wants? \d+|expensive|slow|bends?|jams?|pain|unsafe|banned|illegal|wrong|retired|quit|left|problem)\b|"
    r"n't\b"
)
_UNDECIDED = LazyPattern(
    r"\b(?:choose|decide|decided|pick|select|settle|agree|whether|which|who|undecided|open question|not sure|unclear|"
    r"tbd)\b"
)


_EXCLUDING = frozenset(CLOSED) | frozenset(
    "keep keeping keeps drop open opens closed closes allowed forbidden without off never".split()
)


# `PDFs`, which no stemmer knows as a plural once it is in lower case.
_ACRONYMS = re.compile(r"([A-Z]{2,})s\b")


class Profile:
    """What of a fact is compared, in stems, read when it is first asked for.

    `topic` leaves out words of change, time and duty, `frame` the values alone; `values` are pairs of type and value.
    """

    def __init__(self, text: str) -> None:
        self._flat = _ACRONYMS.sub(r"\1", " ".join(text.replace("’", "'").split()))
        self.text = self._flat.lower()
        self.values, bare = values_of(self.text)
        self.frame = frozenset(content_stems(bare))
        self.topic = (self.frame - NO_TOPIC) | days_of(self.values)
        if not self.topic.isdisjoint(GOES_BY):
            self.topic = frozenset(GOES_BY.get(word, word) for word in self.topic)

    @cached_property
    def purpose(self) -> frozenset[str]:
        """The topic without the deed, in which what was to be done and what has been done may differ."""
        return (self.topic - DEEDS) or self.topic

    @cached_property
    def undecided(self) -> bool:
        """Whether it leaves a choice open."""
        return _UNDECIDED.search(self.text) is not None

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The clauses that say something, in order."""
        return tuple(clauses_of(self.text))

    @cached_property
    def parted(self) -> tuple[str, str]:
        """What may be a reason, and what was concluded from it; no reason where nothing stands before."""
        ends = [match for match in _CONCLUDES.finditer(self.text) if match.end() < len(self.text)]
        if ends:
            return self.text[: ends[-1].start()], self.text[ends[-1].end() :]
        reason, _, conclusion = self.text.partition(", ")
        return (reason, conclusion) if " " in reason and conclusion.count(" ") >= 2 else ("", self.text)

    @cached_property
    def concludes(self) -> bool:
        """Whether it draws a conclusion in so many words (`so`, `hence`)."""
        return _SO_WORD.search(self.text) is not None

    @cached_property
    def fails(self) -> bool:
        """Whether what may be its reason speaks of something that is bad or cannot be."""
        return bool(self.parted[0]) and _FAILS.search(self.parted[0]) is not None

    @cached_property
    def contrasts(self) -> bool:
        """Whether it has a word of which another one is the opposite, or excluded by it (`green`, `closed`)."""
        return not _EXCLUDING.isdisjoint(LETTERS.findall(self.text))

    @cached_property
    def old(self) -> frozenset[str]:
        """What the fact itself names as replaced."""
        found = _OLD_VALUE.finditer(self.text)
        stems = (word for match in found for word in content_stems(_OLD_END.split(match["old"])[0]))
        return frozenset(GOES_BY.get(word, word) for word in stems) - NO_TOPIC

    @cached_property
    def gone(self) -> frozenset[str]:
        """What it says is off."""
        if _GONE_WORDS.isdisjoint(LETTERS.findall(self.text)):
            return frozenset()
        named = (text for match in _GONE.finditer(self.text) for text in match.groups() if text)
        return frozenset(word for text in named for word in content_stems(text) if not word[0].isdigit()) - NO_TOPIC

    @cached_property
    def refuted(self) -> frozenset[str]:
        """What its reason speaks of, where that speaks against something."""
        match = _REFUTES.match(self.text)
        return frozenset(content_stems(match["reason"])) - NO_TOPIC if match else frozenset()

    @cached_property
    def takes_back(self) -> bool:
        """Whether it takes something back outright."""
        return _TAKES_BACK.search(self.text) is not None

    @cached_property
    def reverses(self) -> bool:
        """Whether it takes something back, or sets one thing against another."""
        return self.takes_back or _SETS_AGAINST.search(self.text) is not None

    @cached_property
    def changes(self) -> bool:
        """Whether it speaks of change."""
        return _CHANGE.search(self.text) is not None

    @cached_property
    def deciding(self) -> float:
        """How far the grammar of one of its sentences is that of a decision; see `weigh_decision`."""
        return max(map(weigh_decision, split_sentences(self._flat)), default=-inf)

    @cached_property
    def who(self) -> str:
        """The person whose part it tells."""
        reason, conclusion = self.parted
        if reason and len(self.text) == len(self._flat):
            # `Pavel's kid is ill, so Noor is on call.`
            role = find_role(self._flat[-len(conclusion) :].strip(), _vocabulary_of(conclusion))
            if role is not None and role[0] != "I":
                return role[0]
        role = find_role(self._flat.split(": ", 1)[-1], _vocabulary_of(self.text))
        if role is None:
            return ""
        return self._flat.split(":", 1)[0] if role[0] == "I" and ": " in self._flat else role[0]


def _vocabulary_of(low: str) -> set[str]:
    return set(LETTERS.findall(low)) | {"'s"}


@lru_cache(maxsize=640)
def profile_of(text: str) -> Profile:
    """Read from the text of a fact what is compared."""
    return Profile(text)
