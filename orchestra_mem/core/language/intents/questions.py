"""One clause, held against the patterns of questions: which fits, and what it asks."""

from __future__ import annotations

import re
from functools import cache

from orchestra_mem.core.language.intents.asking import ASKING_OF_WORK
from orchestra_mem.core.language.intents.asking_of_talk import ASKING
from orchestra_mem.core.language.intents.normalising import NEWLINE, QUOTED, Clause
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_named, kind_of
from orchestra_mem.core.language.intents.rules import Rule, Rules
from orchestra_mem.core.language.intents.slots import phrase_in, said_in, unquoted
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.verbs import alternatives, verbs
from orchestra_mem.core.language.intents.words import KINDS, fill
from orchestra_mem.work_types import WorkKind

_ASK_CHARS = 240


@cache
def _asking() -> Rules:
    return Rules(ASKING + ASKING_OF_WORK)


def read_asking(clause: Clause) -> tuple[Intent, ...]:
    """Read a question; nothing where no pattern fits the whole clause."""
    text = clause.text
    if not text or len(text) > _ASK_CHARS or NEWLINE in text:
        return ()
    for rule, match in _asking().fitting(text):
        if intent := _asked(rule, clause, match):
            return (intent,)
    return ()


def _asked(rule: Rule, clause: Clause, match: re.Match[str]) -> Intent | None:
    groups, action = match.groupdict(), rule.action
    if action is Action.LIST:
        return _listed(clause, match)
    if (action is Action.RECENT and (_asks_which(clause.text) or _OWNS.fullmatch(clause.text))) or _NOT_OF_WORK.match(
        clause.text
    ):
        return None
    if action is Action.RECENT and (news := _NEWS_OF.search(clause.text)) and is_named(news["target"]):
        of = clean_phrase(clause.part(news.start("target")).said)
        return Intent(action=Action.STATUS, kind=kind_of(news["target"]), target=of)
    if action is Action.RECENT and (said := _MENTIONED.fullmatch(clause.text)):
        return Intent(action=Action.FIND, value=clean_phrase(clause.part(said.start("value")).said))
    if action is Action.RECENT and (said := _SAID_ABOUT.fullmatch(clause.text)):
        return Intent(action=Action.FIND, value=clean_phrase(clause.part(said.start("value")).said))
    if action is Action.RECENT and _ANYONE.fullmatch(clause.text):
        return None
    target = phrase_in(clause, match, strict=not rule.strict)
    if target is None:
        return None
    if action is Action.RECENT:
        return Intent(action=action, kind=kind_of(clause.text), value=clean_phrase(clause.said))
    if action is Action.WHY and _NO_WHY.match(groups.get("value") or "") and not _WHY_DID.match(clause.text):
        return None
    if action in (Action.WHY, Action.FIND):
        value = said_in(clause, match, "value") if groups.get("value") else ""
        if action is Action.FIND and not _may_be_sought(value):
            return None
        return Intent(action=action, kind=_kind_sought(clause, match), value=unquoted(value))
    if action is Action.STATUS and groups.get("target_named") == QUOTED and clause.text.startswith("look up"):
        return None
    if (
        action is Action.STATUS
        and clause.text.startswith("where ")
        and " about " in f" {target} ".replace(" abt ", " about ")
    ):
        about = re.split(r" (?:about|abt) ", target, maxsplit=1)[1]
        return Intent(action=Action.FIND, kind=kind_of(target.lower()), value=about)
    if action is Action.NEXT and (left := _LEFT_IN.search(clause.text)) and kind_of(left["target"]):
        return Intent(action=Action.STATUS, kind=kind_of(left["target"]), target=clean_phrase(left["target"]))
    if action is Action.NEXT:
        return Intent(action=action, kind=kind_of(clause.text))
    return Intent(action=action, kind=kind_of(target) if target else None, target=target)


_A_NUMBER = re.compile(fill(r"(?:the )?(?:~KIND) #?\d+"))
# "Have it …" commands, "is it ok to …" asks for advice.
_NOT_OF_WORK = re.compile(
    r"is it (?:ok|okay|alright|possible|safe|fine|wise|smart|allowed|right|good|bad|dangerous|advisable|sensible|"
    r"a good idea)(?: for \S+)? to \S|(?:just )?thinking (?:out|aloud)|remember when|log (?:the|this|a|that|"
    r"our) (?:decision|"
    r"note|result|report|outcome|fact)|should (?!we |i |you ).{1,60} , \S|have (?:#?\d|it|this|that|"
    r"the (?!\S+ (?:stories|tasks|epics)\b|stories|tasks|epics|others|"
    r"two))"
)
_NEWS_OF = re.compile(
    r"\b(?:news|updates?(?: me| us)?|latest|progress|new|happening|going on|going|cooking|movement) (?:on|with|"
    r"about|for|in|of|"
    r"from) "
    r"(?P<target>(?!(?:the |this |that )?(?:last|past|session|week|day)).*(?:\d|epic|story|task|milestone).*)$"
)
_SAID_ABOUT = re.compile(
    r"(?:remind me |tell me )?what (?:exactly )?(?:we|i|you|did|have|has|was|were|had) .*\b(?:said|say|decide|"
    r"decided|note|noted|agree|agreed|"
    r"write|wrote|written|"
    r"recorded?|conclude|concluded|settle|settled)\b(?: on| upon| down)? (?:about|regarding|concerning|on|re|around) "
    r"(?P<value>(?!(?:last|this|that|it|the \S+day|monday|tuesday|wednesday|thursday|friday)\b)\S.*)"
)
_MENTIONED = re.compile(
    r"(?:did|has|have) (?:anyone|anybody|someone|somebody|we|i|"
    r"you) (?:ever )?(?:mention(?:ed)?|say anything about) (?P<value>\S.*)"
)
_ANYONE = re.compile(
    fill(
        r"(?:has|have|did) (?:anyone|anybody|someone|somebody) .* (?:it|that|(?:~KIND )?#?\d+|"
        r"the .*~KIND)(?: yet| already| now)?"
    )
)
_OWNS = re.compile(fill(r"who (?:has|has got) (?:it|that|(?:the )?(?:~KIND )?#?\d+|the (?:\S+ ){1,4}?~KIND)"))
_LEFT_IN = re.compile(
    r"\b(?:left|remaining|remains|outstanding|missing|open)(?: to do| to be done)? (?:in|on|under|for|of|with|"
    r"from) (?P<target>.+)$"
)
_NO_WHY = re.compile(
    rf"(?:would|should|shall|can|could|not (?:just )?(?:{alternatives(verbs())})|do not we|"
    rf"do not you|will|might)\b|.*\b(?:cancel|delete)\b"
)
_WHY_DID = re.compile(r"why (?:did|was|were|has|have|had) ")
_TIME_WORDS = re.compile(
    r"\b(?:yesterday|today|since|last|recently|just|this|ago|monday|tuesday|wednesday|thursday|friday|saturday|"
    r"sunday|so far|lately|latest|past|now)\b"
)


def _asks_which(text: str) -> bool:
    """Tell whether work is asked for by its state ("which tasks failed?") and not by the time when it came about."""
    return _WHICH.match(text) is not None and _TIME_WORDS.search(text) is None


_WHICH = re.compile(
    fill(
        r"(?:(?:what|which|how many) (?:of (?:the|our|my) )?(?:other )?|(?:show|list|give|display)(?: me|"
        r" us)? (?:all |the |my |our )*(?:\w+ )?)~KIND\b"
    )
)


def _may_be_sought(value: str) -> bool:
    return bool(value) and value.lower() not in ("out", "it", "up", "that", "them", "you", "we", "i", "they")


def _kind_sought(clause: Clause, match: re.Match[str]) -> WorkKind | None:
    before = clause.text[: match.start("value")] if match.groupdict().get("value") else clause.text
    return next((KINDS[word] for word in before.split() if word in KINDS), None)


_UNDER = re.compile(
    r"(?:^| )(?:of|in|under|for|from|below|inside|within|on|belonging to|belongs? to|beneath|underneath|"
    r"that belongs? to|does|"
    r"has|have|part of|behind) (?P<target>.+?)(?: (?:have|has|contain|include|there|left))*"
    r"(?: (?:that|which) (?:is|are) (?P<state>.+))?$"
)
_EMPTY = frozenset(
    """all every the of my our your any a an list me us show items item things thing please there are is still
    currently now
    do we have that which 's   right at moment so far work one ones been and i what everything board backlog plan issues
    cards left exist see""".split()
)


_NOT_LISTED = re.compile(
    r"\b(?:up|status|state|(?<!in )progress|details?|priority|owner|assignee|update|news|next|last|latest|recent|"
    r"happening|happened|point|matter|wrong|"
    r"going|reason|idea|clue|chance|about|mention|mentions|mentioning|difference|weather|time|name|date|word|title)\b"
)


_FOR_ME = re.compile(r" for (?:me|us)$")
_IS_TOLD = re.compile(
    r"(?!what|which|who|how|is|are|show|list|do|have|any|give|tell|count|there|get|see|view|"
    r"fetch)\S.* (?<!that )(?<!which )(?:is|are|has|have|was|were|"
    r"needs|will|should|must|can|'s) "
)
_GIVES_NEW = re.compile(
    r"(?:give|get)(?: me| us)? (?:an?(?! (?:full |quick |short )?(?:list|overview))|another|one|"
    r"new|\d+|two|three|four|five|some more)\b"
)
_WHAT_IS = re.compile(r"what (?:is|are)\b")
_WHOSE = re.compile(r"\b(?:assigned to|owned by|belonging to|blocked by|waiting for|due) \S")
_STATE_WORDS = frozenset(
    """blocked open pending done finished in progress deferred cancelled failed active unassigned unfinished stuck on
    hold overdue     urgent high low priority medium ongoing completed complete started not unstarted under way
    underway postponed to
    do closed
    late outstanding stalled paused parked waiting ready blockers blocker being worked unblocked critical important
    top lowest
    highest it them mine for me assigned due today tomorrow week anything everything else todo still yet remaining p1
    p2 p3 p4
    p5 whole full complete tree roadmap list unblock free else started p0 by""".split()
)


_PLATE = re.compile(
    r"what (?:has|have|does|do|is) (?P<who>\S+) (?:got |have |having )?on (?:his|her|their|my|"
    r"our) \S+.*"
)


def _listed(clause: Clause, match: re.Match[str]) -> Intent | None:
    """Build a list's intent: the kind, what it stands under, and the words that say which of them."""
    groups = match.groupdict()
    if plate := _PLATE.fullmatch(clause.text):
        return Intent(action=Action.LIST, value=f"assigned to {clause.part(*plate.span('who')).said}")
    named = next((name for name in ("target_named", "target") if groups.get(name)), "")
    if named:
        target = groups[named]
        if not is_named(target):
            return None
        return Intent(
            action=Action.LIST,
            kind=_first_kind(clause.text[: match.start(named)]),
            target=said_in(clause, match, named),
        )
    clause = clause.part(0, found.start()) if (found := _FOR_ME.search(clause.text)) else clause
    if _A_NUMBER.fullmatch(groups.get("listed") or ""):
        return None
    start = min((match.start(name) for name in ("listed", "rest") if groups.get(name)), default=0)
    region = clause.part(start)
    border = _UNDER.search(region.text)
    under = border is not None and is_named(border["target"])
    head = region.part(0, border.start()) if border and under else region
    stated = (border["state"] or "").split() if border and under else []
    words = [word for word in (*head.text.split(), *stated) if word not in KINDS and word not in _EMPTY]
    if _NOT_LISTED.search(head.text):
        return None
    kind = _first_kind(head.text) or _first_kind(clause.text if not under else "")
    target = clean_phrase(region.part(border.start("target"), border.end("target")).said) if border and under else ""
    if _IS_TOLD.match(clause.text) or _GIVES_NEW.match(clause.text):
        return None
    if (
        (not kind or _WHAT_IS.match(clause.text))
        and not _WHOSE.search(head.text)
        and not all(word in _STATE_WORDS for word in words)
    ):
        return None
    return Intent(action=Action.LIST, kind=kind, target=target, value=" ".join(words))


def _first_kind(text: str) -> WorkKind | None:
    return next((KINDS[word] for word in text.split() if word in KINDS), None)
