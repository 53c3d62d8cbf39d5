"""New items as people list them in few words: "+ stories a, b", "story a, story b", "copy gets two tasks: a, b"."""

from __future__ import annotations

import re
from dataclasses import replace

from orchestra_mem.core.language.intents.types import Action, Intent, Parsed
from orchestra_mem.core.language.intents.words import KINDS, PLURALS
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import namings, numbered, restored
from orchestra_mem.work_types import WorkKind

_KIND = "|".join(sorted((*WorkKind, *(kind.plural for kind in WorkKind)), key=len, reverse=True))
_MANY = r"(?:\d+|an?|one|two|three|four|five|six|some|the|these|more|new|another|following|of|its|first)"
_LEAD = (
    r"\W*(?:(?:and|with|also|plus|then|ok|so|now|yo|hey|please|add|create|make|new|we need|need|needs|"
    r"under it|to it|in there|in it|into it|there|i'd like|i would like|i want|i need|let's have|we have|there "
    r"are|to be entered|"
    r"the following|are to be entered)\b[\s,:+-]*)*"
)
_OF = re.compile(
    rf"{_LEAD}(?P<item>#\d+) (?:has|have|gets?|needs?|contains?|consists of|will have|should have|wants?|:)\s*"
    rf"(?:{_MANY} )*(?P<kind>{_KIND})?\s*(?P<mark>[:-])?\s*(?P<list>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_TO = re.compile(
    rf"\W*(?:(?:and|also|plus|ok|then) )*(?:add |put |(?:{_MANY} )+)?(?:to|under|for|in|into|below) (?P<item>#\d+)"
    r"(?: too| as well| also)?\s*[:-]\s*(?P<list>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_COUNTED = re.compile(
    rf"{_LEAD}(?P<item>#\d+) (?:has|have|gets?|needs?|contains?) (?:{_MANY} )*(?:{_MANY}|"
    rf"(?P<kind>{_KIND}))\s*:\s*(?P<list>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_UNDER = re.compile(
    rf"{_LEAD}(?:{_MANY} )*(?P<kind>{_KIND}) (?:to|under|for|in|of|"
    rf"on) (?P<item>#\d+)\s*(?P<mark>[:,-])\s*(?P<list>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_FOR_ITEM = re.compile(
    r"\W*(?:(?:and|also|plus|ok|then|so) )*(?:for|under|to|in|into|below) (?P<item>#\d+)\s*,?\s*(?:(?:i|we) "
    r"(?:need|want|have|'d like)"
    rf"\s+|i would like |there are )?(?:{_MANY} )*(?P<kind>{_KIND})\b(?: too| as well| "
    r"also)?\s*[,:-]?\s*(?P<list>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_ENTERED = re.compile(
    rf"\W*(?:please )?(?:add |enter )?(?:the following |these )(?P<kind>{_KIND})\b(?: (?:are|is|should|must|"
    r"shall|to|be|added|entered|"
    rf"created|put|go|under|it|there|in))*\s*:\s*(?P<list>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_BARE = re.compile(
    rf"{_LEAD}(?:{_MANY} )*(?P<kind>{_KIND})\b\s*(?P<mark>[:-])?\s*(?P<list>\S.*)", re.IGNORECASE | re.DOTALL
)
_ANOTHER = re.compile(
    r"\W*(?:(?:and|oh|ok|also|plus|yes|wait|add|please|hm+)\b[\s,]*)*(?:another|one more|a new|one)(?: one| thing|"
    r" more)?(?: too)?\s*(?:[:,-]|\b(?:called|named)\b)\s*(?P<list>\S.*)",
    re.IGNORECASE,
)
_EACH = re.compile(
    rf"(?:an?|another|one|the|new) (?:new )?(?P<kind>{_KIND})\b[:\s]*|(?P<bare>{_KIND})\b[:\s]+", re.IGNORECASE
)
_BORDER = re.compile(r"\s*[,;\n•]\s*(?:and\s+|&\s+)?|\s+(?:and|&|\+)\s+")
_BORDER_KIND = re.compile(
    rf"\s*(?:[,;]\s*(?:and\s+)?|\band\b|&|\+)\s*(?=(?:an?\s+|another\s+)?(?:{_KIND})\b)", re.IGNORECASE
)
# What is said of work and is no name for it.
_SAYS = re.compile(
    r"\b(?:is|are|was|were|isn't|done|finished|started|failed|blocked|open|stuck|waits?|depends?|needs?|todo|goes|has|"
    r"have|takes|first|later|urgent|due|by|status|progress|please|me|him|her|it|them|that|this|we|you|i|not|no|yet|"
    r"too|again|now)\b|#\d|\?|^\d+$|^[0-9#]",
    re.IGNORECASE,
)
_THERE = re.compile(r"^(?:in|under|for|below) (?:there|it|that|this)\s*:\s*", re.IGNORECASE)
_WITH = re.compile(r"\W*(?:and )?(?:with|including|containing)\b", re.IGNORECASE)
_JOBS = re.compile(
    rf"{_LEAD}(?:{_MANY} )*(?:jobs?|todos?|to-dos?|steps?|things to do|parts?|items?)(?: (?:for|in|of) (?:it|"
    rf"that|this))?"
    r"\s*[:-]\s*(?P<list>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_FOR = re.compile(r"^(?:for|about|called|named) (?:the |our |my )?", re.IGNORECASE)
_MOST_WORDS = 6
_KEPT_WORDS = re.compile(r"\b(?:if|unless|when|maybe|don't|do not|never)\b|\?\s*$", re.IGNORECASE)


def read_made(line: str, plain: Parsed, lookup: WorkLookup) -> Parsed:
    """Read what a line lists as new, where what it was read as so far does not say.

    Args:
        line: the line.
        plain: what it was read as so far.
        lookup: finds items.
    """
    if counted := _counted(line, lookup):
        return counted
    makes = plain.understood and len(plain.intents) == 1 and plain.intents[0].action in (Action.CREATE, Action.ADD)
    if (plain.understood and not makes) or _KEPT_WORDS.search(line):
        return plain
    if makes:
        return _bettered(line, plain.intents[0], lookup) or plain
    named = namings(line, lookup)
    for naming in named[:1]:
        text, said = numbered(line, [naming])
        found = _OF.fullmatch(text) or _UNDER.fullmatch(text) or _FOR_ITEM.fullmatch(text)
        if found and (found["kind"] or found.groupdict().get("mark")) and (titles := _titles(found["list"])):
            kind = _kind(found["kind"]) if found["kind"] else None
            intent = Intent(action=Action.ADD, kind=kind, titles=titles, other=found["item"], sure=0.8)
            return _understood(restored(intent, said))
    if (found := _ENTERED.fullmatch(line)) and (titles := _titles(found["list"])):
        return _understood(Intent(action=Action.CREATE, kind=_kind(found["kind"]), titles=titles, sure=0.8))
    if found := _ANOTHER.fullmatch(line):
        titles = _titles(found["list"])
        return _understood(Intent(action=Action.CREATE, titles=titles, sure=0.8)) if titles else plain
    return _listed(line) or plain


def _counted(line: str, lookup: WorkLookup) -> Parsed | None:
    """Read how many an item has, and which: "copy gets two: a, b"."""
    if ":" not in line or _KEPT_WORDS.search(line):
        return None
    for naming in namings(line, lookup, least=1)[:1]:
        text, said = numbered(line, [naming])
        found = _COUNTED.fullmatch(text) or _TO.fullmatch(text)
        if found and (titles := _titles(found["list"])):
            kind = _kind(found["kind"]) if found.groupdict().get("kind") else None
            return _understood(restored(Intent(action=Action.ADD, kind=kind, titles=titles, other=found["item"]), said))
    return None


def _bettered(line: str, intent: Intent, lookup: WorkLookup) -> Parsed | None:
    """What is named under an item, and where each title has its kind before it."""
    titles = [_alone(part) for title in intent.titles for part in _BORDER_KIND.split(title)]
    if intent.kind and len(titles) > len(intent.titles) and all(titles):
        return _understood(replace(intent, titles=tuple(titles), count=0))
    if intent.other or intent.target or not intent.titles:
        return None
    for naming in namings(line, lookup):
        text, said = numbered(line, [naming])
        found = _UNDER.fullmatch(text)
        if found and (listed := _titles(found["list"])):
            made = replace(intent, titles=listed, other=found["item"], action=Action.ADD)
            return _understood(restored(made, said))
    return None


def _listed(line: str) -> Parsed | None:
    """Read a kind and titles: "stories a, b"; "an epic a and an epic b"."""
    found = _BARE.fullmatch(line)
    if found is None:
        jobs = _JOBS.fullmatch(line)
        titles = _titles(jobs["list"]) if jobs else ()
        return _understood(Intent(action=Action.CREATE, titles=titles, sure=0.8)) if titles else None
    kind = _kind(found["kind"])
    parts = _BORDER_KIND.split(line[found.start("kind") :])
    if len(parts) > 1:
        titles = tuple(_alone(part) for part in parts)
    elif found["kind"].lower() in PLURALS or found["mark"]:
        titles = _titles(_THERE.sub("", found["list"]))
    else:
        titles = (_FOR.sub("", found["list"].strip(" .!")),)
    if not titles or not all(map(_is_title, titles)):
        return None
    if _WITH.match(line):
        return _understood(Intent(action=Action.ADD, kind=kind, titles=titles, other="it", sure=0.8))
    return _understood(Intent(action=Action.CREATE, kind=kind, titles=titles, sure=0.8))


def _kind(word: str) -> WorkKind:
    return KINDS[word.lower()]


def _alone(part: str) -> str:
    found = _EACH.match(part.strip())
    return part.strip()[found.end() :].strip(" .!") if found else part.strip(" .!")


def _titles(listed: str) -> tuple[str, ...]:
    parts = [part.strip(" .!\"'") for part in _BORDER.split(listed)]
    titles = tuple(part for part in parts if part)
    return titles if all(map(_is_title, titles)) else ()


def _is_title(title: str) -> bool:
    return bool(title) and len(title.split()) <= _MOST_WORDS and not _SAYS.search(title)


def _understood(intent: Intent) -> Parsed:
    return Parsed(intents=(intent,), understood=True)
