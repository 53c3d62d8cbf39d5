"""Where a line was read as more than it says: what it plans, denies, wishes or supposes is not carried out.

Also where a word that is no name was taken for a person, a date for a number, a title for a command.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from orchestra_mem.core.language.fragments import UNSURE
from orchestra_mem.core.language.intents.common_words import COMMON_WORDS
from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.types import ASKS, Action, Intent, Parsed
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import namings
from orchestra_mem.core.language.persons import DATES
from orchestra_mem.core.language.references.titles import title_words
from orchestra_mem.core.text import STOP_WORDS

_NOT = (
    r"\b(?:not|never|hardly|barely|neither|nor|nobody|no one|none|nothing|without|yet to|still to|(?:is|are|was|"
    r"were|has|"
    r"have|had|do|does|did|ca|wo|could|would|should)nt)\b|n['\u2019]t\b"
)
_APOSTROPHE = "['\u2019]"
# Past chances, past plans, and what others wish for.
_UNREAL = re.compile(
    rf"\b(?:should|would|could|might|must)(?:n{_APOSTROPHE}?t| not)?(?:{_APOSTROPHE}?ve| have| of)\b"
    r"|\b(?:was|were)(?: not|n't)? (?:supposed|meant|about|going|expected) to\b"
    rf"|\b(?!(?:i|we|you|please)\b)[\w'\u2019]+ (?:(?:really|also|still|just) )?(?:wants?|wanted|hopes?|"
    rf"hoping|plans?|planning|intends?|wishes|would like|would rather|{_APOSTROPHE}d (?:like|rather)|prefers?|had|has|"
    r"tried|is trying|refuses?) to\b"
    rf"|(?:\bwould|{_APOSTROPHE}d) (?:rather|prefer)\b"
    rf"|\b(?:i|we)(?: would|{_APOSTROPHE}d) (?:love|like|hate)\b(?= to (?:say|tell|report|have|be|see|hear))"
    r"|\b(?:i|we) (?:wish|hope|dream)\b"
    r"|\b(?:at some point|some ?day|one day|sometime|eventually|sooner or later)\b"
    r"|\b(?:should|ought to|could|must|need to) (?:probably|maybe|perhaps|really|just)\b"
    r"|\b(?:probably|maybe|perhaps) (?:should|ought to|could|must|need)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:commenced|started|began|begun|finished|completed|concluded|did|was|were|has|have|had|went|moved|"
    r"announced)\b",
    re.IGNORECASE,
)
_THERE = re.compile(
    r"\b(?:move|put|bring|shift|get|take|push)\b.* (?:over )?(?:there|here|in there|back)\W*$", re.IGNORECASE
)
_TO_BE = re.compile(r"\b(?:is|are) to be (?!(?:closed|marked)\b)\w+ (?:by|at|on|in|until|before)\b", re.IGNORECASE)
_WILL = rf"(?:will|{_APOSTROPHE}ll|shall|going to|gonna|would|might|may|could|should)"
_WILL_BE = re.compile(
    rf"(?:\b|(?<=\w)){_WILL} (?:\w+ )?be (?!(?:marked|closed|set|put|moved)\b)\w+|\bto be (?:done|finished)\b",
    re.IGNORECASE,
)
_TIME = (
    r"(?:tomorrow|tonight|later|soon|next|this (?:evening|afternoon|weekend)|(?:on |by )?(?:mon|tues|wednes|thurs|fri|"
    r"satur|sun)day|in (?:an?|\d+|two|three|some) \w+|(?:in|by) (?:january|february|march|april|may|june|july|august|"
    r"september|october|november|december)|when|after|once|as soon as|at \d)"
)
_PLANNED = re.compile(
    rf"(?:\b(?:i|we|he|she|they|you)\b|[A-Z]\w+)(?: {_WILL}|{_APOSTROPHE}ll|{_APOSTROPHE}m going to|"
    rf"{_APOSTROPHE}re going to| am going to|"
    rf" are going to| is going to| plan to| want to| starts?| begins?)\b.*\b{_TIME}\b",
    re.IGNORECASE,
)
_PARTLY = re.compile(
    r"\b(?:nearly|almost|half|halfway|partly|partially|mostly|basically|practically|not quite|\d+ ?(?:%|percent))\b"
    r"(?! an?\b)",
    re.IGNORECASE,
)
_DENIED = re.compile(_NOT, re.IGNORECASE)
_NO_DENIAL = re.compile(
    rf"\b(?:why (?:not|do(?:n{_APOSTROPHE}t| not)|are(?:n{_APOSTROPHE}t| not))|(?:not|no) (?:only|later than|"
    rf"problem|worries|matter|doubt|blocked|waiting|longer|any ?more)|do(?:n{_APOSTROPHE}t| not) "
    r"(?:forget|hesitate|worry|wait|mind|bother)|if not|or not|nothing (?:else )?(?:left|missing|to do|open))\b",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"\b(?:start\w*|beg[aiu]n\w*|commenc\w*|kick\w*|launch\w*|go(?:ing)? ahead|going|tackl\w*|work\w*|pick\w*|get\w*|"
    r"tak(?:e|es|ing)|resum\w*|continu\w*|on it|do(?:ing)? it|re-?(?:try|run|do|open)\w*|try|running|"
    r"under ?way|in (?:progress|the works)|activ\w+|attack\w*|initiat\w*|proceed\w*|open\w*)\b",
    re.IGNORECASE,
)
_FIRST, _NEXT = re.compile(r"\bfirst\b", re.IGNORECASE), re.compile(r"\b(?:next|then)\b", re.IGNORECASE)
_CALLS = re.compile(r"(?:^|[:;,-]\s*|\bto )(?:call|phone|ring) (?:the|an?|my|our|his|her|their)\b", re.IGNORECASE)
_ASKED = re.compile(r"\?\W*$")
_REQUESTED = re.compile(
    r"\b(?:can|could|would|will) (?:you|we|i|someone|somebody)\b|\b(?:please|pls|let{0}?s|let us|mind|shall|why "
    r"not|how about|"
    r"what about|ok|okay|right)\b".replace("{0}", "['\u2019]"),
    re.IGNORECASE,
)
_BEING = re.compile(r"\b(?:is|are)(?: now| still| just)? being \w+", re.IGNORECASE)
_THEM = frozenset({"them", "they", "these", "those"})
_THIS_TIME = re.compile(
    r"(?:this (?:year|month|week|quarter|season|spring|summer|autumn|fall|winter|sprint)|today|now|right now)",
    re.IGNORECASE,
)
_CAN_NOT = re.compile(r"\b[A-Z][\w-]+ (?:can(?:not| not|['\u2019]t)|could(?: not|n['\u2019]t)|won['\u2019]t)\b")
_CALLED = re.compile(r"\W*(?P<who>[A-Z][\w-]+)\s*[,:]\s*(?:please )?(?:can|could|would|will) you\b")
_AT_WORK = re.compile(
    r"(?P<who>[\w-]+) (?:is|are)(?: now| already| still| currently| busy)* (?:working on|at work on|busy with|"
    r"building)\b"
)
_ALL = frozenset({"all", "everything", "all of it", "both"})
_DETERMINED = re.compile(r"(?:the|an?|my|our|his|her|their)\b", re.IGNORECASE)
_OBJECT_FAILED = re.compile(
    rf"(?:\b(?:is|are|was|were)|{_APOSTROPHE}s) (?:\w+ )?(?:broken|dead|damaged|leaking|ruined|down|lost|missing)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:i|we|you|he|she|they|[A-Z][\w-]+) \w+s? (?:it|them|that|those|this)\b")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*"
_AMOUNT_AFTER = (
    rf"(?:st|nd|rd|th)?\.? ?(?:(?:of )?{_MONTH}|%|percent|euros?|dollars?|pounds?|bucks?|[ap]\.?m\.?|"
    rf"o{_APOSTROPHE}?clock|"
    r"minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|times|people|persons|guests|kids|units|pieces|boxes|"
    r"km|kg|mb|gb|metres|meters|litres|degrees)\b"
)
_CLAUSE_END = re.compile(r"[.;!?]\s+|,\s*|\s(?:and|but|so|then|because|since)\s", re.IGNORECASE)
_DONE_TO = frozenset(
    {
        Action.START, Action.FINISH, Action.ASSIGN, Action.RESUME, Action.BLOCK, Action.UNBLOCK, Action.DEFER,
        Action.REPORT, Action.ADD, Action.PRIORITISE,
    }
)  # fmt: skip
_DENIABLE = frozenset({Action.START, Action.FINISH, Action.RESUME})


def careful(line: str, read: Parsed, lookup: WorkLookup, persons: Collection[str]) -> Parsed:
    """Leave of what a line was read as only what may be done at its word.

    Args:
        line: the line, or a clause of one.
        read: what it was read as.
        lookup: finds items.
        persons: who has work, in lower case.

    Returns:
        Nothing understood where one part must not be done; less sure, to be asked about, where one may be.
    """
    if not read.understood or all(intent.action in ASKS for intent in read.intents):
        return read
    if _is_title(line, lookup) and len(read.intents) == 1 and not read.intents[0].titles:
        status = Intent(action=Action.STATUS, target=line.strip(" .!?"), sure=0.7)
        return Parsed(intents=(status,), understood=True)
    intents: list[Intent] = []
    for intent in read.intents:
        kept = _weighed(line, intent, len(read.intents) == 1, lookup, persons)
        if kept is None or _gainsays(kept, intents):
            return replace(read, intents=(), understood=False)
        if kept not in intents:
            intents.append(kept)
    return read if tuple(intents) == read.intents else replace(read, intents=tuple(intents))


def _weighed(line: str, intent: Intent, alone: bool, lookup: WorkLookup, persons: Collection[str]) -> Intent | None:
    """An intent as it may be done, or None."""
    clause = _clause_of(line, intent)
    if _is_amount(intent.target, line) or _is_amount(intent.other, line):
        return None
    if intent.action is Action.ASSIGN and intent.value == "me" and (called := _CALLED.match(line)):
        return replace(intent, value=called["who"])
    if (
        intent.action is Action.ASSIGN
        and (at_work := _AT_WORK.search(clause))
        and _reports(at_work, intent, lookup, persons)
    ):
        return replace(intent, action=Action.START, value="")
    if intent.action is Action.ASSIGN and not names_somebody(intent.value, line, persons):
        return None
    if intent.action in _DONE_TO and intent.target.lower() in _ALL and namings(line, lookup, least=1):
        return None  # "badges came back, all good, done"
    if intent.action in _DONE_TO and _UNREAL.search(clause):
        return None
    if intent.action in (Action.START, Action.DEFER) and _PLANNED.search(clause):
        return None
    if intent.action is Action.DEFER and (_THERE.search(line) or (intent.value and _PAST.search(clause))):
        return None
    if intent.action is Action.FINISH and _BEING.search(clause):
        return replace(intent, action=Action.START, value="")
    if intent.action is Action.FINISH and (
        _WILL_BE.search(clause) or _TO_BE.search(clause) or _PARTLY.search(clause) or _PLANNED.search(clause)
    ):
        return None
    if intent.action in _DENIABLE and _ASKED.search(line) and not _REQUESTED.search(line):
        return None
    if intent.action is Action.BLOCK and not intent.other and _THIS_TIME.fullmatch(intent.value):
        return replace(intent, action=Action.DEFER, value="")
    if intent.target.lower() in _THEM and (number := _plural_before(line, intent.target, lookup)):
        intent = replace(intent, target=f"#{number}")
    if intent.action is Action.BLOCK and not (intent.value or intent.other) and _CAN_NOT.search(clause):
        return None
    if intent.action in _DENIABLE and _DENIED.search(_NO_DENIAL.sub("", clause)):
        return None
    if intent.action is Action.RENAME and _CALLS.search(line) and _DETERMINED.match(intent.value):
        return None
    if intent.action in (Action.CREATE, Action.ADD) and any(_is_no_name(title, lookup) for title in intent.titles):
        return None
    if intent.action is Action.REPORT and _is_of_object(line, lookup):
        return None
    if intent.action is Action.START and alone and not _BEGINS.search(clause):
        if _FIRST.search(clause):
            return replace(intent, action=Action.PRIORITISE, value="1")
        if _NEXT.search(clause):
            return replace(intent, sure=UNSURE)
    return intent


def _reports(at_work: re.Match[str], intent: Intent, lookup: WorkLookup, persons: Collection[str]) -> bool:
    """Whether who is at work is told, and not who is to be: whoever has it already, or no name."""
    who = at_work["who"]
    number = _NUMBER.fullmatch(intent.target)
    if number and (lookup.item(int(number[1])).assignee or "").lower() == who.lower():
        return True
    return who.islower() and who not in persons and who not in ("i", "he", "she", "we", "they")


def _plural_before(line: str, pronoun: str, lookup: WorkLookup) -> int:
    """The one item with a plural for its title that a line names before a pronoun: "badges are wrong, reopen them"."""
    named = namings(line[: line.lower().rfind(pronoun.lower())], lookup, least=1)
    if len(named) != 1 or len(named[0].items) != 1:
        return 0
    return named[0].items[0] if line[named[0].start : named[0].end].lower().endswith("s") else 0


def _clause_of(line: str, intent: Intent) -> str:
    """The clause of a line that names what an intent is about; all of it where that is not plain."""
    clauses = [clause for clause in _CLAUSE_END.split(line) if clause.strip()]
    if len(clauses) < 2:
        return line
    words = intent.target.lower()
    found = [clause for clause in clauses if words and words in clause.lower()]
    return found[0] if len(found) == 1 else line


_NUMBER = re.compile(r"#(\d+)")


def names_somebody(value: str, line: str, persons: Collection[str]) -> bool:
    """Tell whether what work is given to may be a person: known, with a capital, or no everyday word."""
    words = value.split()
    if not words or value == "me" or value.lower() in persons:
        return True
    if any(word.lower() in _DATES for word in words):
        return False
    said = re.search(re.escape(value), line) or re.search(re.escape(value), line, re.IGNORECASE)
    if said is None or all(word[:1].isupper() for word in said.group().split()):
        return True
    if re.search(rf"\b(?:is|are|was|were|goes|went) on {re.escape(said.group())}\b", line, re.IGNORECASE):
        return False
    if words[0].lower() in _DETERMINERS:
        return True
    return not any(
        word.lower() in STOP_WORDS
        or word.endswith(("ed", "ing"))
        or (word.lower() in COMMON_WORDS and word.lower() in verb_forms())
        or word in _NO_NAMES
        for word in words
    )


_DATES = frozenset(date.lower() for date in DATES) | {"today", "tomorrow", "tonight", "now", "later", "soon"}
_DETERMINERS = frozenset("the our my a an".split())
_NO_NAMES = frozenset("are is was were be been had has have wants want goes stop start yet not done".split())


def _gainsays(intent: Intent, before: Collection[Intent]) -> bool:
    """Whether one item was to be given to two persons."""
    return intent.action is Action.ASSIGN and any(
        each.action is Action.ASSIGN and each.target == intent.target and each.value != intent.value for each in before
    )


def _is_amount(phrase: str, line: str) -> bool:
    """Whether a number is a date or an amount: "we launch on 3 May"."""
    if not phrase.isdecimal():
        return False
    return re.search(rf"\b{phrase}{_AMOUNT_AFTER}|\b{_MONTH} {phrase}\b", line, re.IGNORECASE) is not None


def _is_title(line: str, lookup: WorkLookup) -> bool:
    """Whether a line is the title of an item and nothing else: "skip button"."""
    said = line.strip(" .!?").lower()
    if len(said.split()) < 2:
        return False
    return any(naming.whole and lookup.item(naming.items[0]).title.lower() == said for naming in namings(line, lookup))


def _is_no_name(title: str, lookup: WorkLookup) -> bool:
    """Whether what was taken for a title tells something, or says to which item others are added."""
    before, colon, _ = title.partition(": ")
    return bool(
        _SENTENCE.match(title)
        or (colon and any(naming.whole for naming in namings(before, lookup, least=1)))
        or (colon and re.fullmatch(r"(?:in|under|to|for|into|on) (?:there|it|that|this|them)", before, re.IGNORECASE))
    )


def _is_of_object(line: str, lookup: WorkLookup) -> bool:
    """Whether a line tells that something is broken with which work is to be done: "the tractor is broken"."""
    if not _OBJECT_FAILED.search(line):
        return False
    return any(
        title_words(lookup.item(naming.items[0]).title)[0] not in line[naming.start : naming.end].lower()
        for naming in namings(line, lookup, least=1)
        if naming.items and not naming.whole
    )
