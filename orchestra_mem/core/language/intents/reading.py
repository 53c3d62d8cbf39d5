"""One clause, held against the patterns: which fits, and the intent that it makes."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from orchestra_mem.core.language.intents.abilities import abilities
from orchestra_mem.core.language.intents.courtesies import (
    Stripped,
    strip,
    strip_ends,
    strip_tail,
    with_base_verb,
    without_time,
)
from orchestra_mem.core.language.intents.creating import read_creation, read_wanted
from orchestra_mem.core.language.intents.inventory import read_inventory
from orchestra_mem.core.language.intents.matching import MAX_CHARS, match_command, match_telling
from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.orders import read_idiom, read_order, without_lead
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_determined
from orchestra_mem.core.language.intents.questions import read_asking
from orchestra_mem.core.language.intents.rewording import rewordings
from orchestra_mem.core.language.intents.rules import Rules
from orchestra_mem.core.language.intents.telling import TELLING, TELLING_AT_LAST
from orchestra_mem.core.language.intents.topics import cores, read_topic
from orchestra_mem.core.language.intents.types import DESTRUCTIVE, Action, Intent
from orchestra_mem.core.language.intents.verbs import destructive_verbs, is_verb
from orchestra_mem.core.language.intents.words import fill


@cache
def _telling() -> Rules:
    return Rules(TELLING, dotall=True)


@cache
def _telling_at_last() -> Rules:
    return Rules(TELLING_AT_LAST, dotall=True)


def read_clause(clause: Clause) -> tuple[Intent, ...]:
    """Read one clause; nothing where no pattern fits it whole."""
    if len(clause.text) > MAX_CHARS:
        return _read_long(clause)
    lightly = strip_ends(clause)
    stripped = strip(clause)
    for words in dict.fromkeys((strip_tail(clause)[1].words, lightly.clause.words, stripped.clause.words)):
        asked = read_asking(Clause(clause.line, words))
        if asked and not (_HAVE_DONE.match(stripped.clause.text) and not lightly.question):
            return asked
    if not stripped.clause.words or stripped.asks or (lightly.question and not (stripped.asked or stripped.by_us)):
        return ()
    for words in dict.fromkeys((lightly.clause.words, stripped.clause.words)):
        found = _read_command(Clause(clause.line, words))
        if found:
            return () if _is_guessed(found, stripped) else found
    return ()


def read_reworded(clause: Clause) -> tuple[Intent, ...]:
    """Read a clause that is put in a roundabout way: passives, topics put first, questions within sentences."""
    lightly, stripped = strip_ends(clause), strip(clause)
    for words in dict.fromkeys((lightly.clause.words, stripped.clause.words)):
        candidate = Clause(clause.line, words)
        requested = not lightly.question or stripped.asked or stripped.by_us or _ASKS_FOR.match(candidate.text)
        commands = requested and not stripped.asks
        for other in abilities(candidate) if commands else ():
            if found := _read_command(other) or read_order(other):
                return found
        for other in rewordings(candidate, asks=stripped.asks or lightly.question):
            if found := read_asking(other):
                return found
            found = _read_command(other) if commands else ()
            if found and all(map(_is_sure, found)):
                return () if _is_guessed(found, stripped) else found
    return ()


def as_request(sentence: Clause) -> Clause:
    """Leave out the question mark of what only asks for something to be done: "could you start 12 and close 13?"."""
    if tag := _TAG.search(sentence.text):
        bare = sentence.part(0, tag.start())
        if bare.words and (tag["you"] or is_verb(strip(bare).clause.text.partition(" ")[0])):
            return bare
    put = strip(sentence)
    ours = put.by_us and not destructive_verbs() & {word.text for word in sentence.words}
    asked = put.question and not put.asks and (put.asked or ours)
    return sentence.between(0, -1) if asked and sentence.words[-1].text == "?" else sentence


_TAG = re.compile(
    r"(?: ,)? (?:(?P<you>(?:would|will|could|can) you(?: please| kindly| mind| do that(?: for me)?)?)|ok|okay|"
    r"alright|all right|yeah|deal|cool|"
    r"good|fine|yes|please)(?: ,? ?(?:please|thanks|mate))* \?$"
)


def is_destructive(clause: Clause) -> bool:
    """Tell whether a clause begins with a word that cancels or takes back."""
    return strip(clause).clause.text.partition(" ")[0] in destructive_verbs()


_HAVE_DONE = re.compile(r"(?:just |now )*have (?:just |now |finally |already )*(?:[a-z]+ed|done|begun)\b")
_ONLY_THOUGHT = re.compile(
    r"\b(?:wish|wished|thought|assumed|figured|believed)(?: that)? (?:\S+ ){1,8}?(?:was|were|had|would|could|did)\b|"
    r"\b(?:nice|great|good|lovely|better|cool|happy) if (?:\S+ ){1,8}?(?:was|were)\b(?! (?:called|named|renamed))|"
    r"\b(?:i|we) (?:(?:was|were) (?:just |really |actually )?(?:about|supposed|meant|ready|close|planning|hoping|"
    r"this close) to|"
    r"(?:have )?(?:almost|nearly) [a-z]+)\b|"
    r"\b(?:would|could|might)(?: \S+)? have (?:[a-z]+ed|done|begun|been|put|taken|given)\b"
)


def is_only_thought(clause: Clause) -> bool:
    """Tell whether a clause says how things are not: "I wish 12 was done", "we could have cancelled it"."""
    return _ONLY_THOUGHT.search(clause.text) is not None


def read_freely(clause: Clause) -> tuple[Intent, ...]:
    """Read a clause by its parts where no pattern fits it."""
    if is_only_thought(clause) and not strip(clause).question:
        return ()
    lightly, stripped = strip_ends(clause), strip(clause)
    asks = stripped.asks or (lightly.question and not (stripped.asked or stripped.by_us))
    if asks and not stripped.asks and _MAY_SOMEBODY.match(lightly.clause.text):
        found = read_order(lightly.clause)
        if found and all(intent.action is Action.ASSIGN for intent in found):
            return found
    for core in cores(lightly.clause):
        if found := _read_question(core):
            return found
    if not asks:
        for words in dict.fromkeys((lightly.clause.words, stripped.clause.words)):
            if found := read_order(Clause(clause.line, words)):
                return found
            found = _read_within(Clause(clause.line, words))
            doubtful = stripped.by_us or stripped.hedged or lightly.question
            if found and not (doubtful and any(intent.action in DESTRUCTIVE for intent in found)):
                return found
    for words in dict.fromkeys((lightly.clause.words, stripped.clause.words)):
        if found := read_inventory(Clause(clause.line, words)):
            return found
    return read_topic(stripped.clause, question=lightly.question or stripped.asks)


def _read_question(core: Clause) -> tuple[Intent, ...]:
    found = read_asking(core)
    for other in () if found else rewordings(core, asks=True):
        if found := read_asking(other):
            break
    return found or read_topic(core, question=True)


def _read_within(clause: Clause) -> tuple[Intent, ...]:
    """Read a command behind a row of courtesies that no pattern has: "would it be possible that you close 12"."""
    bare = without_lead(clause)
    core = with_base_verb(bare)
    if len(core.words) == len(clause.words) or not core.words:
        return ()
    found = _read_command(core)
    lead = {word.text for word in clause.words[: len(clause.words) - len(core.words)]}
    destroys = any(intent.action in DESTRUCTIVE for intent in found)
    plainly = lead <= _PLAINLY and core.words[0] == bare.words[0]
    return () if (destroys and not plainly) or not all(map(_is_sure, found)) else found


def read_idiomatic(clause: Clause, found: tuple[Intent, ...]) -> tuple[Intent, ...]:
    """Give what a clause was read as, or what its parts mean: where no pattern fits, or took an idiom for a name."""
    stripped = strip(clause)
    if not found and not stripped.asks and (stripped.asked or not stripped.question):
        return read_order(stripped.clause, named=True)
    if (
        len(found) != 1
        or found[0].action not in _ALSO_IDIOMS
        or (stripped.question and not stripped.asked)
        or stripped.asks
    ):
        return found
    idiom = read_idiom(stripped.clause, loosely=found[0].action is Action.REPORT)
    return idiom if idiom and idiom[0].action is not found[0].action else found


_MAY_SOMEBODY = re.compile(
    r"(?:can|could|will|would|might|may) (?!(?:i|we|you|it|that|they|there|this|anyone|anybody|someone|somebody)\b)"
)
_ALSO_IDIOMS = frozenset(Action) - DESTRUCTIVE - {Action.NOTE, Action.DECIDE, Action.WHY, Action.FIND, Action.BLOCK}


def _is_sure(intent: Intent) -> bool:
    return intent.action not in _TOLD and (not intent.target or is_determined(intent.target.lower()))


_PLAINLY = frozenset(
    "please kindly just to you be so good kind as and i would like want need now go ahead , ok it".split()
)
_ASKS_FOR = re.compile(r"(?:can|could|may) ")
_TOLD = frozenset({Action.NOTE, Action.DECIDE, Action.REPORT})


def _read_long(clause: Clause) -> tuple[Intent, ...]:
    """Read what is too long for a command: something told, or something new with a long title or many of them."""
    stripped = strip(clause).clause
    head = stripped.part(0, stripped.text.rfind(" ", 0, MAX_CHARS) + 1)
    told = match_telling(head, _telling())
    if told and told[0].value and clean_phrase(head.said).endswith(told[0].value):
        start = head.line.rfind(told[0].value, 0, head.words[-1].end)
        return (replace(told[0], value=clean_phrase(stripped.line[start : stripped.words[-1].end])),)
    return read_creation(stripped)


def _is_guessed(found: tuple[Intent, ...], stripped: Stripped) -> bool:
    """What destroys must be asked for plainly: not hedged, not as a question among ourselves."""
    return any(i.action in DESTRUCTIVE for i in found) and (stripped.hedged or (stripped.by_us and stripped.question))


def swallows(sentence: Clause) -> bool:
    """Tell whether all that follows a sentence belongs to it: the text of a note behind a colon."""
    text = strip(sentence).clause.text
    return _TEXT_HEAD.match(text) is not None


_TEXT_HEAD = re.compile(
    r"(?:(?:add|leave|make|put|write|post) (?:a|another|this|the)(?: \S+)? (?:note|comment|remark)|note|comment|"
    r"remark|memo|decision|report|"
    r"for the record|remember|write (?:this |that )?down|jot (?:this |that )?down|take a note|make a note|"
    r"record)\b[^:|]{0,80}? :"
)
_NEGATED = re.compile(
    r"(?:do not|never|let us not|we (?:do not|should not|must not|will not|can not)|no need to|i (?:do not|"
    r"will not|would not)|not) (?!.*\b(?:if|when|unless)\b)"
)
_LEFT_ALONE = re.compile(
    r"(?:keep|spare) (?:only |just )?(?:(?:task |story |epic )?#?\d+|the (?:rest|others?))(?: please)?|"
    r"(?:leave|keep|let)(?: me| us)? (?:\S+ ){1,8}?(?:open|as (?:it|they|that) (?:is|are|was|were)|as is|untouched|"
    r"unchanged|running|"
    r"where (?:it|they) (?:is|are)|the way (?:it|they) (?:is|are)|out of (?:it|this)|be|in peace)(?: please| for now|"
    r" still| though)*"
)
_SMALL_TALK = re.compile(
    r"(?:(?:that|this|it) (?:is|was|looks|sounds|seems) (?:all |completely |totally )?(?:wrong|a mistake|not right|"
    r"bad|that|by mistake|not what i (?:wanted|meant)|the wrong one|great|good|fine|nice|awesome|perfect|cool|it|"
    r"ok|okay|right|true|all|amazing|wonderful|correct|enough)|"
    r"(?:good|great|nice|excellent|amazing|well) (?:job|work|done|stuff|one|going)|you are (?:great|the best|"
    r"awesome|welcome|amazing)|(?:very|so) (?:good|nice|cool)|i (?:love|like) it|no(?: problem| worries)?|"
    r"(?:a |my |big |what a )?(?:mistake|error|typo|slip|blunder)|how are you|i am (?:back|here|tired|sorry|happy|"
    r"done thinking)|we are back|let us (?:go|see|begin|get going|"
    r"do this|get started)|(?:that|it) was not (?:right|what i (?:meant|wanted))|i (?:made a mistake|"
    r"did not mean (?:to do )?(?:that|this|it)|"
    r"changed my mind|misspoke|mistyped|got that wrong|am sure|did not mean that)|wrong (?:one|command|number)|"
    r"here (?:we go|goes)|my mistake|my bad|one sec(?:ond)?|wait|hold on|never mind|forget it|"
    r"(?:see|talk to|catch) (?:you|ya)(?: .*)?|talk (?:later|soon)|"
    r"thank(?:s| you).*|yes|ok|sure|(?:set|make|sort|fix|update|reflect|arrange|put) (?:that|it|this)(?: up| so| out|"
    r" down| in| right| "
    r"accordingly| on record| in order)+|(?:can|could|will) you (?:do|manage|see to|handle) (?:that|it|this))"
)


def is_courtesy(clause: Clause) -> bool:
    """Tell whether nothing is left of a clause without its courtesies: "good news"."""
    return not strip(clause).clause.words


def is_small_talk(clause: Clause) -> bool:
    """Tell whether a clause neither asks for anything nor forbids it: "that was wrong"."""
    text = strip(clause).clause.text
    return not text or _SMALL_TALK.fullmatch(text) is not None


def is_taken_back(line: Clause) -> bool:
    """Tell whether a line ends with a word that takes it back, or hangs on a condition: "cancel it, just kidding"."""
    return _TAKEN_BACK.search(line.text) is not None or _HANGS.search(_POLITE_IF.sub("", line.text)) is not None


_TAKEN_BACK = re.compile(
    r"\b(?:kidding|joking|joke|jk|(?:actually|no|or) (?:, )?(?:no|not|wait|do not)|never mind|forget (?:it|that)|no|"
    r"nope|nah|"
    r"not really|wait)[ .!?)]*(?:lol|haha|sorry|please)?[ .!?)]*$"
)
_HANGS = re.compile(r"\b(?:if|unless|in case)\b")
_POLITE_IF = re.compile(
    r"\bif (?:you (?:can|could|would|will|please|do not mind|have time|like|want|get a chance|wish)|possible|(?:that|"
    r"it) is (?:ok|okay|"
    r"fine|possible|alright|all right|not too much trouble))\b"
)


def may_be_dropped(sentence: Clause) -> bool:
    """Tell whether a sentence asks for nothing: small talk, or what is not to be done."""
    text = strip(sentence).clause.text
    return is_small_talk(sentence) or _NEGATED.match(text) is not None or _LEFT_ALONE.fullmatch(text) is not None


def _read_command(clause: Clause) -> tuple[Intent, ...]:
    if wanted := read_wanted(clause):
        return wanted
    told = match_telling(clause, _telling())
    if told and (match := _ANNOUNCED.match(clause.text)):
        announced = clause.part(match.end())
        state = match_command(announced) or _decided(announced)
        if state and not any(intent.action in DESTRUCTIVE for intent in state):
            return state
    if told:
        made = read_creation(clause) if told[0].action is not Action.REPORT and _MAY_CREATE.match(clause.text) else ()
        return made if made and made[0].kind else told
    since = _FROM_NOW.match(clause.text)
    later = clause.part(since.end()) if since else clause
    timeless = without_time(later).words
    for candidate in dict.fromkeys(
        (later.words, timeless) if later.text.endswith(" up again") else (timeless, later.words)
    ):
        found = match_command(Clause(clause.line, candidate))
        if found:
            return found
    return read_creation(clause) or match_telling(clause, _telling_at_last())


def _decided(clause: Clause) -> tuple[Intent, ...]:
    found = match_telling(clause, _telling())
    return found if found and found[0].action is Action.DECIDE else ()


_FROM_NOW = re.compile(r"(?:from now on|as of (?:now|today)|going forward|from today on)(?: ,)? (?=\S)")
# What is only announced is a note where it is not about how work stands: "fyi 14 waits for 13".
_ANNOUNCED = re.compile(
    r"(?:fyi|for your information|for the record|heads up|just so (?:you|we) know|so (?:you|we) know|good to know|psa)"
    r"(?: [,:\-])?(?: that)? "
)
_MAY_CREATE = re.compile(
    fill(
        r"(?:log|record|note down|jot down|file|put|track|save|add|create|make|write|new|open|post|enter|keep|"
        r"put down|document|note) (?:down )?(?:a|an|another|new|two|three|four|some|\d+) (?:\S+ ){0,5}?(?:~KIND)\b"
    )
)
