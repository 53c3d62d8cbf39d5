"""Patterns held against a clause, and the intent that the first of them makes."""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.persons import SENTENCE, person_in
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_named, is_of_the_world, kind_of, priority_of
from orchestra_mem.core.language.intents.rules import Rule, Rules, rules
from orchestra_mem.core.language.intents.slots import phrase_in, said_in, unquoted
from orchestra_mem.core.language.intents.types import DESTRUCTIVE, Action, Intent
from orchestra_mem.core.language.intents.words import fill

MAX_CHARS = 600  # no command is longer, but for the titles and texts that it brings


def match_telling(clause: Clause, table: Rules) -> tuple[Intent, ...]:
    """Read what is told: a note, a decision, a report."""
    for rule, match in table.fitting(clause.text):
        if intent := _told(rule.action, clause, match, strict=rule.strict):
            return (intent,)
    return ()


def _told(action: Action, clause: Clause, match: re.Match[str], *, strict: bool = False) -> Intent | None:
    target = phrase_in(clause, match, strict=strict)
    if target is None:
        return None
    value = said_in(clause, match, "value")
    if action is Action.DECIDE and (_PICKED_UP.search(match["value"]) or match["value"].startswith(("if ", "it if "))):
        return None
    if action is Action.REPORT and is_of_the_world(target.lower()):
        return None
    if action is Action.REPORT and _BEGINS_ANEW.match(match["value"]):
        return None
    if match["value"].startswith(("?", "up ")) or not any(c.isalnum() for c in value):
        return None
    return Intent(action=action, kind=kind_of(target.lower()), target=target, value=unquoted(value))


_PICKED_UP = re.compile(
    r" up (?:where|from) |^(?:me|us) a |"
    r" up(?: again| now| next| first| too| today| then|"
    r" please)*$"
)
_BEGINS_ANEW = re.compile(
    r"(?:start|begin|finish|close|assign|move|create|add|block|then|cancel|what|let us|next|it is blocked|i am|"
    r"i will|ready|(?:(?:and )?(?:the |task |story |epic )*(?:#?\d+|it|that|them)(?: and|,)? ?)+$)(?= |$)"
)


def match_command(clause: Clause) -> tuple[Intent, ...]:
    """Read a command by the first pattern that fits it whole, and whose phrases can be what they are taken for."""
    text = clause.text
    if len(text) > MAX_CHARS:
        return ()
    for rule, match in rules().fitting(text):
        if intent := _built(rule, clause, match):
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
    if rule.action is Action.RESUME and target and _CAME_BACK.match(match[0]) and not is_named(target.lower()):
        return None
    groups = match.groupdict()
    meant = groups.get("target") or groups.get("target_named") or ""
    if rule.action in DESTRUCTIVE and not _may_be_destroyed(rule.action, meant, match):
        return None
    if rule.action is Action.BLOCK and is_of_the_world(target.lower()):
        return None
    if rule.action is Action.BLOCK and not is_named(target.lower()) and _NARRATED.search(match[0]):
        return None
    if rule.action is Action.ASSIGN and _ASSIGNED.match(match[0]):
        return None
    if (
        rule.action is Action.ASSIGN
        and rule.value == ""
        and groups.get("person")
        and not person_in(said_in(clause, match, "person"))
    ):
        return None
    value = rule.value
    if value is None and groups.get("person"):
        value = person_in(said_in(clause, match, "person"))
        if not value or SENTENCE.search(groups["person"].removeprefix("to ")):
            return None
        if value == "me" and "target_named" in groups and not is_named((groups["target_named"] or "").lower()):
            return None
    elif groups.get("priority"):
        value = priority_of(groups["priority"])
    elif value is None:
        value = _time(clause.part(*match.span("value"))) if groups.get("value") else ""
    if rule.action is Action.DEPEND and not is_named(other.lower()) and _LATER.search(match[0]):
        return Intent(action=Action.DEFER, kind=kind_of(target.lower()), target=target, value=f"after {other}")
    named = not target or is_named(target.lower()) or _is_determined(target)
    return Intent(
        action=rule.action,
        kind=kind_of(target.lower()),
        target=target,
        other=other,
        value=value,
        sure=1.0 if named else 0.8,
    )


_ASSIGNED = re.compile(
    fill(
        r"(?:everything|anything|all|whatever|stuff|things|(?:all )?(?:the |my )?(?:~KIND)) (?:assigned|given|"
        r"belonging) "
    )
)
_CAME_BACK = re.compile(r"(?:back|return|come back|get back) from ")
_LATER = re.compile(r" after (?:the|our|we|i) \S+(?: \S+)*$")
_NARRATED = re.compile(r" (?:was|were) ")


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
    if target and (number := _NUMBER.match(title)) and target.replace(" ", "").isalpha():
        target, title = f"{target} {number[1]}", title[number.end() :]
    title = _TO.sub("", title) or title
    title = title if title[:1] in _QUOTES else _WHY.sub("", title) or title
    if target is None or not title or _STATE.fullmatch(title.lower()):
        return None
    return Intent(action=Action.RENAME, kind=kind_of(target.lower()), target=target, value=unquoted(title))


_TO = re.compile(
    r"^(?:(?:wrong|bad|misleading|outdated|old|too \S+)\b[^,;]*[,;] )?(?:(?:it|that|this) (?:should|must|shall|"
    r"ought to) (?:be|read)"
    r"(?: called| named)?|(?:it's|it is|to|as|into))\s+",
    re.IGNORECASE,
)
_WHY = re.compile(r"(?:\s*,)?\s+(?:because|since|as it|so that)\s.+$", re.IGNORECASE)
_QUOTES = "\"'\u201c\u2018\u00ab`"
_NUMBER = re.compile(r"(#?\d+) +(?=\S)")
_STATE = re.compile(fill(r"(?:~DONE|~PROGRESS|~STUCK|~GONE|~BADLY|(?:as |to )?~LEVEL)"))


def _assigned_later(clause: Clause, match: re.Match[str]) -> Intent | None:
    """Build "give Anna Smith #12": the name is as long as it must be for the rest to name work."""
    groups = match.groupdict()
    if not groups.get("target_named") or match.start("person") > match.start("target_named"):
        return None
    start, text = match.start("person"), clause.text
    places = [start + m.start() for m in re.finditer(" ", text[start:])]
    for place in places[1:3]:
        if is_named(text[place + 1 :]):
            if SENTENCE.search(clause.part(start, place).text):
                return None
            person = person_in(clean_phrase(clause.part(start, place).said))
            target = clean_phrase(clause.part(place + 1).said)
            return (
                Intent(action=Action.ASSIGN, kind=kind_of(target.lower()), target=target, value=person)
                if person
                else None
            )
    return None


_BEFORE_TIME = frozenset("to until till on by for into".split())


def _time(value: Clause) -> str:
    """Give a time or a reason without the word that leads to it."""
    words = [word.text for word in value.words]
    first = 2 if words[:2] in (["because", "of"], ["due", "to"]) else 1 if words[0] in _BEFORE_TIME else 0
    return clean_phrase(value.between(first if len(words) > first else 0, None).said)
