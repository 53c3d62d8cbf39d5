"""One clause, held against the patterns: which fits, and the intent that it makes."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from orchestra_mem.core.language.intents.courtesies import Stripped, strip, strip_ends, strip_tail, without_time
from orchestra_mem.core.language.intents.creating import read_creation
from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.phrases import (
    clean_phrase,
    is_determined,
    is_named,
    kind_of,
    priority_of,
)
from orchestra_mem.core.language.intents.questions import read_asking
from orchestra_mem.core.language.intents.rewording import rewordings
from orchestra_mem.core.language.intents.rules import Rule, read_rules, rules
from orchestra_mem.core.language.intents.slots import phrase_in, said_in, unquoted
from orchestra_mem.core.language.intents.telling import TELLING, TELLING_AT_LAST
from orchestra_mem.core.language.intents.types import DESTRUCTIVE, Action, Intent
from orchestra_mem.core.language.intents.verbs import base_of
from orchestra_mem.core.language.intents.words import fill

_MAX_CHARS = 600  # no command is longer, but for the titles and texts that it brings


@cache
def _telling() -> tuple[Rule, ...]:
    return tuple(read_rules(TELLING, dotall=True))


@cache
def _telling_at_last() -> tuple[Rule, ...]:
    return tuple(read_rules(TELLING_AT_LAST, dotall=True))


def read_clause(clause: Clause) -> tuple[Intent, ...]:
    """Read one clause; nothing where no pattern fits it whole."""
    if len(clause.text) > _MAX_CHARS:
        return _read_long(clause)
    lightly = strip_ends(clause)
    stripped = strip(clause)
    for words in dict.fromkeys((strip_tail(clause)[1].words, lightly.clause.words, stripped.clause.words)):
        asked = read_asking(Clause(clause.line, words))
        if asked:
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
        for other in rewordings(candidate, asks=stripped.asks or lightly.question):
            if found := read_asking(other):
                return found
            found = _read_command(other) if commands else ()
            if found and all(map(_is_sure, found)):
                return () if _is_guessed(found, stripped) else found
    return ()


def _is_sure(intent: Intent) -> bool:
    return intent.action not in _TOLD and (not intent.target or is_determined(intent.target.lower()))


_ASKS_FOR = re.compile(r"(?:can|could|may) ")
_TOLD = frozenset({Action.NOTE, Action.DECIDE, Action.REPORT})


def _read_long(clause: Clause) -> tuple[Intent, ...]:
    """Read what is too long for a command: something told, or something new with a long title or many of them."""
    stripped = strip(clause).clause
    head = stripped.part(0, stripped.text.rfind(" ", 0, _MAX_CHARS) + 1)
    told = _read_telling(head, _telling())
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
_SMALL_TALK = re.compile(
    r"(?:(?:that|this|it) (?:is|was|looks|sounds|seems) (?:all |completely |totally )?(?:wrong|a mistake|not right|"
    r"bad|that|by mistake|not what i (?:wanted|meant)|the wrong one|great|good|fine|nice|awesome|perfect|cool|it|"
    r"ok|okay|right|true|all|amazing|wonderful|correct|enough)|"
    r"(?:good|great|nice|excellent|amazing|well) (?:job|work|done|stuff|one|going)|you are (?:great|the best|"
    r"awesome|welcome|amazing)|(?:very|so) (?:good|nice|cool)|i (?:love|like) it|no(?: problem| worries)?|"
    r"how are you|i am (?:back|here|tired|sorry|happy|done thinking)|we are back|let us (?:go|see|begin|get going|"
    r"do this|get started)|(?:that|it) was not (?:right|what i (?:meant|wanted))|i (?:made a mistake|"
    r"changed my mind|misspoke|mistyped|got that wrong|am sure|did not mean that)|wrong (?:one|command|number)|"
    r"here (?:we go|goes)|my mistake|my bad|one sec(?:ond)?|wait|hold on|never mind|forget it|"
    r"thank(?:s| you).*|yes|ok|sure)"
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
    return is_small_talk(sentence) or _NEGATED.match(strip(sentence).clause.text) is not None


def _read_command(clause: Clause) -> tuple[Intent, ...]:
    told = _read_telling(clause, _telling())
    if told and (match := _ANNOUNCED.match(clause.text)):
        state = _read_rules(clause.part(match.end()))
        if state and not any(intent.action in DESTRUCTIVE for intent in state):
            return state
    if told:
        made = read_creation(clause) if told[0].action is not Action.REPORT and _MAY_CREATE.match(clause.text) else ()
        return made if made and made[0].kind else told
    since = _FROM_NOW.match(clause.text)
    later = clause.part(since.end()) if since else clause
    for candidate in dict.fromkeys((without_time(later).words, later.words)):
        found = _read_rules(Clause(clause.line, candidate))
        if found:
            return found
    return read_creation(clause) or _read_telling(clause, _telling_at_last())


_FROM_NOW = re.compile(r"(?:from now on|as of (?:now|today)|going forward|from today on)(?: ,)? (?=\S)")
# What is only announced is a note where it is not about how work stands: "fyi 14 waits for 13".
_ANNOUNCED = re.compile(
    r"(?:fyi|for your information|heads up|just so (?:you|we) know|so (?:you|we) know|good to know|psa)"
    r"(?: [,:\-])?(?: that)? "
)
_MAY_CREATE = re.compile(
    fill(
        r"(?:log|record|note down|jot down|file|put|track|save|add|create|make|write|new|open|post|enter|keep|"
        r"put down|document|note) (?:down )?(?:a|an|another|new|two|three|four|some|\d+) (?:\S+ ){0,5}?(?:~KIND)\b"
    )
)


def _read_telling(clause: Clause, table: tuple[Rule, ...]) -> tuple[Intent, ...]:
    for rule in table:
        match = rule.fits(clause.text)
        if match and (intent := _told(rule.action, clause, match)):
            return (intent,)
    return ()


def _told(action: Action, clause: Clause, match: re.Match[str]) -> Intent | None:
    target = phrase_in(clause, match)
    if target is None:
        return None
    value = said_in(clause, match, "value")
    if action is Action.DECIDE and match["value"].endswith(" up"):
        return None
    if action is Action.REPORT and _BEGINS_ANEW.match(match["value"]):
        return None
    if match["value"].startswith(("?", "up ")) or not any(c.isalnum() for c in value):
        return None
    return Intent(action=action, kind=kind_of(target.lower()), target=target, value=unquoted(value))


_BEGINS_ANEW = re.compile(
    r"(?:start|begin|finish|close|assign|move|create|add|block|then|cancel|what|let us|next|it is blocked|i am|"
    r"i will|ready|(?:(?:and )?(?:the |task |story |epic )*(?:#?\d+|it|that|them)(?: and|,)? ?)+$)(?= |$)"
)


def _read_rules(clause: Clause) -> tuple[Intent, ...]:
    text = clause.text
    if len(text) > _MAX_CHARS:
        return ()
    for rule in rules():
        match = rule.fits(text)
        if match and (intent := _built(rule, clause, match)):
            return (intent,)
    return ()


def _built(rule: Rule, clause: Clause, match: re.Match[str]) -> Intent | None:
    if rule.action is Action.RENAME and "value" in match.groupdict():
        return _renamed(clause, match)
    strict = rule.strict or rule.action in DESTRUCTIVE
    target, other = phrase_in(clause, match, strict=strict), phrase_in(clause, match, "other", strict=strict)
    if rule.action is Action.ASSIGN and target is None and match.groupdict().get("person"):
        return _assigned_later(clause, match)
    if target is None or other is None or (rule.action is Action.DEPEND and target.lower() in ("the one", "the ones")):
        return None
    groups = match.groupdict()
    if rule.action in DESTRUCTIVE and not _may_be_destroyed(rule.action, target.lower(), match):
        return None
    value = rule.value
    if groups.get("person"):
        value = _person(said_in(clause, match, "person"))
        if not value or _SENTENCE.search(groups["person"].removeprefix("to ")):
            return None
        if value == "me" and "target_named" in groups and not is_named((groups["target_named"] or "").lower()):
            return None
    elif groups.get("priority"):
        value = priority_of(groups["priority"])
    elif value is None:
        value = _time(clause.part(*match.span("value"))) if groups.get("value") else ""
    named = not target or is_named(target.lower()) or _is_determined(target)
    return Intent(
        action=rule.action,
        kind=kind_of(target.lower()),
        target=target,
        other=other,
        value=value,
        sure=1.0 if named else 0.8,
    )


def _is_determined(phrase: str) -> bool:
    return phrase.lower().startswith(("the ", "our ", "my ", "this ", "that ", "these ", "those ", '"', "'", "\u201c"))


_NOT_WORK = re.compile(
    r"\b(?:meeting|order|subscription|call|flight|appointment|reservation|trip|party|membership|booking|lunch|"
    r"dinner|database|tables?|"
    r"files?|folders?|branch|branches|server|index|columns?|users?|account|cache|logs?|disk|data|directory|repo|"
    r"repository|commit|pod|"
    r"containers?|process|note|comment|title|description|dependency|assignee|priority|blocker|decision|label|tag|"
    r"link|mic|ball|subject)\b"
)
_OURS = re.compile(
    r"(?:(?:all |both )?(?:of )?(?:it|that|this|them|everything|all|those|these|both|(?:the |my |our |your |that |"
    r"this |these |those )?(?:very |just )?(?:(?:last|previous|latest|recent|most|two|three|"
    r"four|five|ten|few|couple|of|\d+|final|newest) ?)*(?:one|ones|thing|things|change|changes|command|commands|"
    r"operation|operations|step|steps|"
    r"action|actions|edit|edits|move|rename|renaming|cancel|cancellation|assignment|creation|deletion|removal|note|"
    r"decision|block|start|"
    r"finish|update|prioritisation|deferral|report|two|three|four|five|few|\d+|last|bit|instruction|request|entry|"
    r"thing i did|thing we did|thing you did|work|mistake)"
    r"(?: (?:i|we|you) .{1,30}| of .{1,40}| please| again| done| made| to .{1,40}| on .{1,30})?|#?\d+))"
)


def _may_be_destroyed(action: Action, target: str, match: re.Match[str]) -> bool:
    """Tell whether the words are clear enough: work that is named, or (undo) something that was done."""
    if action is Action.UNDO:
        return not target or _OURS.fullmatch(target) is not None
    head = re.split(r" (?:of|from|on|in|for|about|with|under|to|at|by) ", target)[0]
    if " or " in target or match[0].startswith("drop everything"):
        return False
    if re.search(r" from (?:the )?(?:epic|story|task|milestone|#|\d|it\b)", target) or not target:
        return False
    if is_named(head):
        return True
    return "target" in match.groupdict() and target.startswith(("the ", "our ")) and not _NOT_WORK.search(target)


def _renamed(clause: Clause, match: re.Match[str]) -> Intent | None:
    """Build a rename; where nothing stands between phrase and title, the longest phrase that names work is taken."""
    groups = match.groupdict()
    target = phrase_in(clause, match)
    title = said_in(clause, match, "value")
    if target is None and groups.get("target_named"):
        start = match.start("target_named")
        words = clause.text[start:].split(" ")
        for last in range(len(words) - 1, 0, -1):
            phrase = " ".join(words[:last])
            if is_named(phrase):
                end = start + len(phrase)
                target, title = clean_phrase(clause.part(start, end).said), clean_phrase(clause.part(end + 1).said)
                break
    if target is None or not title or _STATE.fullmatch(title.lower()):
        return None
    return Intent(action=Action.RENAME, kind=kind_of(target.lower()), target=target, value=unquoted(title))


_STATE = re.compile(fill(r"(?:~DONE|~PROGRESS|~STUCK|~GONE|(?:as |to )?~LEVEL)"))


def _assigned_later(clause: Clause, match: re.Match[str]) -> Intent | None:
    """Build "give Anna Smith #12": the name is as long as it must be for the rest to name work."""
    groups = match.groupdict()
    if not groups.get("target_named") or match.start("person") > match.start("target_named"):
        return None
    start, text = match.start("person"), clause.text
    places = [start + m.start() for m in re.finditer(" ", text[start:])]
    for place in places[1:3]:
        if is_named(text[place + 1 :]):
            if _SENTENCE.search(clause.part(start, place).text):
                return None
            person = _person(clean_phrase(clause.part(start, place).said))
            target = clean_phrase(clause.part(place + 1).said)
            return (
                Intent(action=Action.ASSIGN, kind=kind_of(target.lower()), target=target, value=person)
                if person
                else None
            )
    return None


_NO_PERSON = re.compile(
    r"(?:us|nobody|anybody|anyone|not|never|me not|the|a|an|this|that|it|its|these|those|later|tomorrow|"
    r"today|next|done|progress|high|"
    r"low|medium|urgent|critical|to|be|not|do|is|are|and|or|in|on|"
    r"create|add|start|finish|block|cancel|start|close|what|who|how|why|which|if|when|we|you|he|she|they|there|"
    r"should|will|could|would|please|#?\d+|all|both|everything|no|nothing)(?: .*)?",
    re.IGNORECASE,
)


_SENTENCE = re.compile(
    r"\b(?:us|not|would|could|should|can|will|be|been|is|are|was|like|want|need|assigned|have|has|do|does|did|we|you|"
    r"they|and|or|if|"
    r"with|on|in|i \S+)\b"
)


def _person(said: str) -> str:
    """Give whom a name means: "me" for the speaker, empty for what is no name."""
    said = re.sub(r"^(?:to|user|dev|developer)\s+(?=\S)", "", said.strip(" .,!"), flags=re.IGNORECASE)
    if said.lower() in ("me", "myself", "i", "me please", "my self"):
        return "me"
    if is_named(said.lower()) or (said.islower() and base_of(said.split()[0], ends=("ing",))) or said == "going":
        return ""
    if re.fullmatch(
        r"the (?!top|bottom|end|front|back|backlog|list|next|last|other|plan|board|side|rest)[^\d#]+", said.lower()
    ):
        return said
    return "" if not said or _NO_PERSON.fullmatch(said) else said.removeprefix("@")


_BEFORE_TIME = frozenset("to until till on by for into".split())


def _time(value: Clause) -> str:
    """Give a time or a reason without the word that leads to it."""
    words = [word.text for word in value.words]
    first = 2 if words[:2] in (["because", "of"], ["due", "to"]) else 1 if words[0] in _BEFORE_TIME else 0
    return clean_phrase(value.between(first if len(words) > first else 0, None).said)
