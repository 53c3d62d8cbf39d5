"""Words that say when, how or from whose side and change nothing of what is asked: "as of last night", "at long last".

They are looked at where a clause is not understood with them, or where one was taken for the end of a phrase.
"""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.types import Intent
from orchestra_mem.core.language.intents.words import MACROS

_DAYS = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_PAST = (
    rf"(?:last (?:night|week|month|{_DAYS})|this (?:very )?(?:morning|afternoon|evening|week|minute|moment)|today|"
    rf"yesterday(?: (?:morning|afternoon|evening|night))?|tonight|earlier(?: today| on)?|lunch|noon|"
    r"(?:a|an|one|two|three|a few|\d+) (?:minutes?|moments?|seconds?|secs?|hours?|days?|weeks?|while|bit) ago|"
    r"(?:the )?(?:day|morning|afternoon|evening|week))"
)
_PLAIN = (
    rf"as (?:of|from) (?:now|right now|{_PAST}|{_DAYS})|as we speak|as (?:you|we) (?:can see|know|see)|"
    rf"(?:since|late|early|first thing|earlier|right after|just after|over) {_PAST}|"
    r"(?:from |right |exactly )?where (?:we|i|you) (?:had )?(?:left|stopped)(?: it| things)?(?: off)?|"
    r"at (?:long )?last|at this (?:point|stage|time|moment)|at the end of the day|at least|at present|"
    r"(?:from|on|at) (?:our|my|his|her|their|this|the) (?:side|end|part|behalf)|"
    r"from (?:the )?[a-z]+ (?:side|end)|in the end|in the meantime|"
    r"for (?:real|sure|good|once|certain|ever)|once and for all|any longer|any more|anymore|no matter what|"
    r"(?:if|when) (?:that|it) (?:is|was) (?:ok|okay|fine)|by the (?:looks|look) of (?:it|things)|"
    r"as (?:planned|agreed|promised|usual|expected|discussed|mentioned|requested|instructed|per (?:plan|discussion))|"
    r"on time|ahead of time|without a hitch|only just|pretty much|more or less|all of a sudden|in one go|"
    r"with immediate effect|effective immediately|for the record|right this (?:minute|second|moment|instant)|"
    r"like (?:i|we) said|as (?:i|we) said|once (?:more|again)|at your end|your end|you see|all in all|by now|"
    r"to be (?:honest|fair|frank|safe|sure)|kind of|sort of|a bit|a little|a tad|somehow|sadly|unfortunately|luckily|"
    r"thankfully|fortunately|regrettably|apparently|obviously|frankly|honestly|finally|eventually|nearly|almost|"
    r"alas|happily|mercifully|of course|naturally|i am afraid|i fear|it (?:seems|appears|turns out)|as it happens|"
    r"(?:by|with|through) (?:the )?(?:god 's |his )?(?:grace|help|mercy|will)(?: of god)?|by god 's grace|god willing|"
    r"thank god|thanks be to god|praise (?:god|the lord|be)|inshallah|insha'allah|insha allah|alhamdulillah|"
    r"mashallah|touch wood|knock on wood|fingers crossed|all being well|all going well|weather permitting|"
    r"at our end|at my end|on our end|on my end|since (?:the )?(?:morning|yesterday|last night)"
)
_END = (
    rf"(?:{_PLAIN}|{_PAST}|in (?:a|one|two) (?:minute|moment|sec|second|hour)s?|just now|right now|now|already|first|"
    r"together|properly|completely|fully)"
)
_FRONT_RE = re.compile(rf"(?:{_PLAIN}|{_PAST}|in (?:a|one|two) (?:minute|moment|sec|second|hour)s?)(?: ,| -)? (?=\S)")
_BACK_RE = re.compile(rf"(?: ,| -)? {_END}(?: (?:please|though|then|too))?$")
_WITHIN_RE = re.compile(
    rf" , (?:{_PLAIN}) ,(?= )| (?:{_PLAIN})(?= )|(?<=ing) (?:today|now|tonight|this (?:morning|afternoon|evening)|"
    rf"immediately|"
    rf"straight away)(?= (?:the|my|our|on|with|#?\d))|"
    r"(?<=[a-z]ed) (?:yesterday(?: (?:morning|afternoon|evening|night))?|last (?:night|week)|this (?:morning|"
    r"afternoon|evening|"
    r"week)|earlier(?: today)?|today|just now)(?= (?:the|my|our|on|with|#?\d|task|story|epic))|"
    r"(?<=begin) (?:now|today)(?= with)|(?<=start) (?:now|today)(?= with)"
)
_ADVERB_RE = re.compile(
    r"(?<= )(?:both|just|only|already|even|hereby|ever|all|(?!(?:early|daily|weekly|monthly|yearly|family|"
    r"supply|apply|reply|assembly|friendly|lovely|only|directly|nearly|hardly|barely|reply)\b)[a-z]{4,}ly) (?=\S)"
)
_TAKEN_IN = re.compile(rf".* {_END}", re.IGNORECASE)
_CALLED = re.compile(r" (?:called|named|titled|about|on|for|of) |[\"']", re.IGNORECASE)
_WORD_BEFORE = frozenset(f"{MACROS['BE']}|not|no|the|a|an|my|our|this|that|of|from|since|until|by".split("|"))


def without_adverbials(clause: Clause) -> Clause:
    """Leave out adverbials at both ends and within; the clause itself where it has none."""
    for _ in range(3):
        if not (match := _FRONT_RE.match(clause.text)):
            break
        clause = clause.part(match.end())
    for _ in range(3):
        match = _BACK_RE.search(clause.text)
        if not match or not match.start() or clause.text[: match.start()].rpartition(" ")[2] in _WORD_BEFORE:
            break
        clause = clause.part(0, match.start())
    while match := _WITHIN_RE.search(clause.text):
        before, after = clause.part(0, match.start() + 1), clause.part(match.end())
        clause = Clause(clause.line, (*before.words, *after.words))
    return clause


def without_adverbs(clause: Clause) -> Clause:
    """Leave out single words that say how: "15 and 16 both depend on 14", "successfully completed"."""
    text, words = f"{clause.text} ", clause.words
    for match in reversed(list(_ADVERB_RE.finditer(text))):
        place = text.count(" ", 0, match.start())
        words = (*words[:place], *words[place + 1 :])
    return Clause(clause.line, words) if len(words) < len(clause.words) else clause


def took_adverbial(intents: tuple[Intent, ...]) -> bool:
    """Tell whether an adverbial stands at the end of a phrase that names work: "the mezzanine story any longer"."""
    phrases = (phrase for intent in intents for phrase in (intent.target, intent.other))
    return any(_TAKEN_IN.fullmatch(phrase) and not _CALLED.search(phrase) for phrase in phrases)
