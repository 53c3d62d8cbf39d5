"""Lists asked for in any order of words: "all stories in epic 4 that are open", "is anything overdue".

The line is taken apart from left to right; every word must be one of a list's: its kind, a state, a place, a person.
"""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_named
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.words import KINDS, PLURALS, fill
from orchestra_mem.work_types import WorkKind

_MOST_WORDS = 20
_OPENS = re.compile(
    fill(
        r"(?:show|list|give|tell|get|display|print|see|view|name|fetch|bring|pull|let me see|what|which|who|how many|"
        r"how much|are there|is there|do we|do i|have we|have i|have you|got|any|is any|are any|is anything|"
        r"anything|all|"
        r"every|everything|whatever|(?:(?:my|our|the) )?(?:(?:[a-z]+|high|low|top) ){0,2}(?:~KIND)s?\b)"
    )
)
_ASKS = re.compile(r"(?:what|which|who|how|are|is|do|have|any|anything|show|list|give|tell|see|got)\b")
_SPARE = frozenset(
    """
    show list give tell get display print see view name fetch bring pull up let me us all the my our your any of every
    each everything anything items item work things thing stuff what which how many much there do we i you have got
    currently now still right at moment please else as yet and left so far today a an complete full already ready
    being just only out also whole entire here exactly kind kinds other those these ones one whatever
    """.split()
)
_PARTS = frozenset("children parts contents subitems members pieces steps".split())
_BE = frozenset("is are 's has have been was were".split())
_STATE = re.compile(
    r"(?:in progress|on hold|high priority|low priority|medium priority|top priority|not (?:started|done|finished|"
    r"assigned|"
    r"yet started)|to do|under way|being worked on|worked on|up for grabs|waiting|(?:blocked|open|pending|done|"
    r"finished|"
    r"completed|complete|closed|deferred|postponed|parked|paused|cancelled|failed|active|started|unstarted|ongoing|"
    r"unfinished|stuck|stalled|overdue|late|urgent|critical|important|unassigned|outstanding|remaining|ready|free|"
    r"running|left)(?: work)?)(?= |$)"
)
_PRIORITY = re.compile(
    fill(
        r"(?:(?:with|of|at|that have|having) )?(?:a )?(?:(?:~LEVEL)(?: (?:priority|prio))?|(?:priority|"
        r"prio) (?:~LEVEL|\d))(?= |$)"
    )
)
_EXTRA = re.compile(
    r"(?:due|from|since|for) (?:today|tomorrow|this \S+|next \S+|last \S+|\S+day)(?= |$)|"
    r"(?:(?:that |which )?(?:nobody|no one) (?:owns|has|does|took|is on)|without an? (?:owner|assignee)|"
    r"with no (?:owner|assignee))(?= |$)"
)
_PLACE = re.compile(
    r"(?:in|under|of|for|inside|within|from|below|belonging to|"
    r"part of) (?P<target>\S.*?)(?= (?:that|which|are|is)\b|$)"
)
_OWNED = re.compile(r"(?:assigned to|owned by|belonging to|given to|with|on) (?P<who>(?:me|us|[^\s,]+)(?: [^\s,]+)?)$")
_DOES = re.compile(
    r"(?:what|which)(?: (?P<kind>[a-z]+))? (?:is|are|am|does|do|has|have) (?P<who>\S+(?: \S+)??) (?:all |"
    r"currently |still |now )*"
    r"(?:working on|busy with|doing|having|have|got|responsible for|assigned to|handling|on|have open|have left|"
    r"have to do|got to do|got on)(?: (?:at the moment|right now|now|today|currently|this week|these days|"
    r"on (?:his|her|"
    r"their|my|our) \S+|going|open|left|to do))*"
)


def read_inventory(clause: Clause) -> tuple[Intent, ...]:
    """Read a list by its words; nothing where a word of it belongs to none."""
    text = clause.text
    if match := _DOES.fullmatch(text):
        return _of_person(clause, match)
    if len(clause.words) > _MOST_WORDS or not _OPENS.match(text):
        return ()
    kind: WorkKind | None = None
    target, states, pieces = "", [], 0
    may_be = _ASKS.match(text) is not None
    place = 0
    while place < len(text):
        rest = text[place:]
        word = rest.partition(" ")[0]
        if match := _STATE.match(rest) or _PRIORITY.match(rest) or _EXTRA.match(rest):
            states.append(match[0])
            end = match.end()
        elif word in PLURALS or (word in KINDS and text.startswith(("every ", "each ", "any ", "which ", "what "))):
            if kind is not None:
                return ()
            kind, end = KINDS[word], len(word)
        elif (match := _OWNED.match(rest)) and (states or kind or pieces):
            states.append(match[0])
            end = match.end()
        elif (match := _PLACE.match(rest)) and is_named(match["target"]) and not target:
            begin = place + match.start("target")
            target = clean_phrase(clause.part(begin, place + match.end("target")).said)
            end = match.end()
        elif word in ("that", "which") or (word in _BE and (may_be or " that " in text or " which " in text)):
            end, may_be = len(word), True
        elif word in _PARTS and not kind:
            pieces, may_be, end = pieces + 1, True, len(word)
        elif word in _SPARE:
            pieces += word in ("everything", "anything", "all", "what", "whatever", "which")
            end = len(word)
        else:
            return ()
        place += end + 1
    if not (kind and (states or target or may_be)) and not (pieces and (states or target)):
        return ()
    return (Intent(action=Action.LIST, kind=kind, target=target, value=" ".join(states), sure=0.8),)


def _of_person(clause: Clause, match: re.Match[str]) -> tuple[Intent, ...]:
    who = match["who"]
    if is_named(who) or set(who.split()) & _NOBODY or (match["kind"] and match["kind"] not in KINDS):
        return ()
    said = clean_phrase(clause.part(match.start("who"), match.end("who")).said)
    value = "in progress" if who in _ALL else f"assigned to {'me' if who == 'i' else said}"
    return (Intent(action=Action.LIST, kind=KINDS.get(match["kind"] or ""), value=value, sure=0.8),)


_ALL = frozenset("everyone everybody people we they folks".split()) | {"the team", "the others"}
_NOBODY = frozenset("it that this there you the what".split()) - {"the"}
