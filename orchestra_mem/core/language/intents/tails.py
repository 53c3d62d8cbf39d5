"""What stands behind a command: a time, a reason, a blocker, a priority; nothing is read where it is none of these."""

from __future__ import annotations

import re
from dataclasses import replace

from orchestra_mem.core.language.intents.frames import is_level
from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.persons import person_in
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_named, is_phrase, priority_of
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.words import expand, fill

_TIME = re.compile(expand("~TIME"))
_REASON = re.compile(
    r"(?:, |- |\( )?(?:because|since|cause|seeing|given|now that|as|so|in order to|due to|thanks to) (?P<why>\S.*)"
)
_BLOCKER = re.compile(
    r"(?:, |: |- |\( )?(?:by|on|with|for|because of|due to|behind|until|till|pending|over|at|from|after|thanks to|"
    r"owing to|waiting (?:for|on)|"
    r"against|through|:|-|,) (?P<blocker>\S.*?)(?: \))?"
)
_CAUSE = re.compile(
    r"[,:\-(] (?:because |as |since |and )?(?P<why>\S.* (?:is|are|was|were|has|have|had|does|do|did|can|could|will|"
    r"would|\S{3,}ed) .*)"
)
_NEEDED = re.compile(
    r"(?:, |and )?(?:(?:it |which |that )?is )?(?P<how>blocked by|blocked on|waiting for|waiting on|depends on|"
    r"depending on|dependent on) "
    r"(?P<other>\S.*)"
)
_GIVEN_UP = re.compile(fill(r"^(?:[,:(-] )?(?:as |it is |because it is )?~MOOT(?: (?:of|by) .*)?$"))
_OFF_ME = re.compile(r"(?:over )?(?:from|off|instead of) (?:me|us|my (?:hands|plate|list|desk))|in my (?:place|stead)")
_LEVELLED = re.compile(r"(?:, )?(?:with|at|as|and make it|and it is|,)(?: a| an| the)? (?P<level>\S.*)")
_FUTURE = frozenset((Action.START, Action.RESUME))
_SPARE = frozenset(
    """
    now then today already again too also please thanks thank cheers asap immediately straight right away quickly soon
    finally officially actually after all at last first next for me us good yet , . ! - ) ( there here by way ok okay
    once more this morning afternoon evening week as well you can will would kindly instead fully completely entirely
    totally properly definitely really though yay woohoo hooray phew haha lol tonight just sure everyone team folks
    guys mate finally so we are go and be done with it very much in advance i guess think believe suppose yesterday
    from on ahead up out off down back if not
    """.split()
) - {"if", "not", "and", "down", "back", "out", "off"}
_LEADS_ON = frozenset("in at after for from by and as of with very me us you (".split())


def with_tail(clause: Clause, words: tuple[str, ...], start: int, intent: Intent) -> tuple[Intent, ...]:
    """Put to an intent what stands behind it; nothing where that is none of what may stand there."""
    last = len(words)
    while last > start and words[last - 1] in _SPARE:
        last -= 1
    while start < last and words[start] in _SPARE - _LEADS_ON and not _TIME.fullmatch(" ".join(words[start:last])):
        if _BLOCKER.fullmatch(" ".join(words[start:last])) and intent.action is Action.BLOCK:
            break
        start += 1
    if start >= last:
        return (intent,)
    rest = " ".join(words[start:last])
    said = clause.between(start, last)
    if match := _NEEDED.fullmatch(rest):
        if not is_named(match["other"]):
            return ()
        action = Action.DEPEND if match["how"].startswith("depend") else Action.BLOCK
        return (intent, Intent(action=action, target="it", other=_said(said, match, "other")))
    if (match := _LEVELLED.fullmatch(rest)) and is_level(match["level"]):
        return (intent, Intent(action=Action.PRIORITISE, target="it", value=priority_of(match["level"])))
    if intent.action in (Action.START, Action.FINISH) and rest.startswith("by ") and person_in(said.between(1).said):
        return (intent,)
    if intent.action is Action.FINISH and _GIVEN_UP.search(rest):
        return ()  # "closed 12 as a duplicate" finishes nothing
    if intent.action is Action.ASSIGN and _OFF_ME.fullmatch(rest):
        return (intent,)
    if _TIME.fullmatch(rest):
        if intent.action in _FUTURE or intent.action is Action.DEFER:
            return (replace(intent, action=Action.DEFER, value=_without_lead(said)),)
        return () if intent.action is Action.FINISH else (intent,)
    if intent.action is Action.FINISH and _HOW_DONE.fullmatch(rest):
        return (intent,)
    if intent.action is Action.DEFER and _TIME_AND_WHY.fullmatch(rest):
        return (replace(intent, value=_without_lead(said)),)
    if intent.action is Action.DEFER and _waits(words, start) and rest.startswith(("for ", "on ")):
        other = clean_phrase(said.between(1).said)
        if is_phrase(rest.split(" ", 1)[1]) and " " in other:
            return (replace(intent, action=Action.DEPEND, other=other),)
    if intent.action is Action.DEFER and (match := _UNTIL.fullmatch(rest)):
        return (replace(intent, value=_said(said, match, "until")),)
    if intent.action is Action.BLOCK and (match := _CAUSE.fullmatch(rest)):
        return (replace(intent, value=_said(said, match, "why")),)
    if intent.action is Action.BLOCK and rest[0] in ":-,(" and len(said.words) > 1:
        why = clean_phrase(said.between(1).said).rstrip(")")
        return (replace(intent, other=why) if is_named(why.lower()) else replace(intent, value=why),)
    if intent.action is Action.BLOCK and (match := _BLOCKER.fullmatch(rest)):
        return (replace(intent, other=_said(said, match, "blocker")),)
    if match := _REASON.fullmatch(rest):
        value = _said(said, match, "why") if intent.action in (Action.DEFER, Action.BLOCK) else intent.value
        return (replace(intent, value=value),)
    return ()


def _waits(words: tuple[str, ...], start: int) -> bool:
    return words[start - 1] in ("wait", "waits", "waiting")


_HOW_DONE = re.compile(
    r"(?:in|after|within|with|at|ahead of|on|despite|thanks to|and|to|for) "
    r"(?!(?:if|not|to|when|unless|it|start|begin|finish|assign|block|move)\b)[^?]+"
)
_TIME_AND_WHY = re.compile(expand(r"(~TIME)(?: ,)? (when|once|until|after|as soon as|because|since|as) .+"))
_UNTIL = re.compile(r"(?:until|till|to|by|for|because of|due to|pending|,|-) (?P<until>\S.*)")


def _without_lead(said: Clause) -> str:
    first = 1 if said.words[0].text in ("until", "till", "to", "by", "for", "on", "into") and len(said.words) > 1 else 0
    return clean_phrase(said.between(first).said)


def _said(clause: Clause, match: re.Match[str], group: str) -> str:
    return clean_phrase(clause.part(match.start(group), match.end(group)).said)
