"""A line that takes back a part of itself: "start 12, no wait, 13" is "start 13"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from orchestra_mem.core.language.intents.phrases import is_determined
from orchestra_mem.core.language.intents.types import ASKS, Action, Intent, Parsed

_MAX_CHARS = 400
_MOST_MARKERS = 4
_LONGEST_MEANT = 8  # words
_HUMS = r"(?:(?:oh|oops|ah|argh|er|erm|uh|um|hm+)[\s,.!\u2013-]{1,3}){0,2}"
# What says by itself that something is taken back, and what does so only between marks.
_PLAIN = (
    r"no,? wait|wait,? no|no,? hang on|hang on,? no|no,? sorry|sorry,? no|no,? actually|actually,? no|oops,? no|"
    r"(?:(?:no|sorry|wait),? )?(?:what )?(?:i|we) mean(?:t to say|t| to say)?|scratch that|strike that|"
    r"correction|or rather|(?:(?:no|sorry|wait|actually),? )?make that"
)
_SLIGHT = r"no|nope|sorry|wait|actually|rather"
_MARKER = re.compile(
    rf"[\s,.;:!(\u2013\u2014-]{_HUMS}(?:{_PLAIN})\b[\s,:.;!\u2013-]{{1,4}}|"
    rf"[,.;!(\u2013\u2014-]\s?{_HUMS}(?:{_SLIGHT})\b"
    r"(?:[,:.;!\u2013-]{1,3}\s*|\s(?=(?:to|for|by|on|the|until|till)\b|#?\d))",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    rf"[,.;!(\u2013\u2014-]\s?{_HUMS}(?:(?:no|nope|wait|actually|sorry|or)[\s,.!-]{{1,3}}){{0,2}}"
    r"(?:no|nope|nah|wait|don['\u2019]?t|do not|not|never ?mind|nvm|forget (?:it|that|about it)|(?:just )?kidding|"
    r"scratch that|strike that|(?:leave|keep) (?:it|that|them)(?: as (?:it|they) (?:is|are))?)[\s.!?;)]{0,4}\Z",
    re.IGNORECASE,
)
_ENDS = " \t\n.,;:!()-\u2013\u2014"
_LEADS = re.compile(r"(?:(?:to|for|by|on|as|until|till|under|from|with|at|in|into|of|not)\s+)", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|that|this|them)\b(?! one)", re.IGNORECASE)
_NUMBER = re.compile(r"(?:(?:epic|story|task|subtask|milestone|item|number|no\.?)\s+)?#?\d+", re.IGNORECASE)
_NO_NAME = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|should|do|does|did|don['\u2019]?t|not|it|they|we|you|i|"
    r"he|she|let['\u2019]?s)\b|[.!?;]\s",
    re.IGNORECASE,
)
_PERSON = re.compile(r"@?[^\W\d_][\w.'-]*(?: [A-Z][\w.'-]*)?")
_FREE = frozenset({Action.RENAME, Action.DEFER})
_TEXTS = frozenset({Action.NOTE, Action.DECIDE, Action.REPORT})


def corrected_line(line: str, read: Callable[[str], Parsed]) -> str:
    """Give a line as its speaker meant it where it takes back a part of itself; empty where it does not.

    `read` reads the line without that part. Only a phrase is put in the place of another of its sort, and only where
    the line is then read as the same command.
    """
    if len(line) > _MAX_CHARS:
        return ""
    for marker in islice(_MARKER.finditer(line), _MOST_MARKERS):
        said, meant = line[: marker.start()].rstrip(_ENDS), line[marker.end() :].strip(_ENDS)
        if said and meant and not said.count('"') % 2 and (better := _corrected(said, meant, read)):
            return better
    return ""


def takes_itself_back(line: str, read: Callable[[str], Parsed]) -> bool:
    """Tell whether a line ends by taking back all that it has asked for: "start 12, actually no"."""
    found = _TAKES_BACK.search(line) if len(line) <= _MAX_CHARS else None
    if found is None or line[: found.start()].count('"') % 2:
        return False
    first, whole = read(line[: found.start()]), read(line)
    return (
        first.understood
        and all(intent.action not in ASKS for intent in first.intents)
        and not any(intent.action in _TEXTS and intent.value for intent in whole.intents)
    )


def _corrected(said: str, meant: str, read: Callable[[str], Parsed]) -> str:
    if len(meant.split()) > _LONGEST_MEANT:
        return ""
    first = read(said)
    if not first.understood or first.intents[-1].action in ASKS:
        return ""
    if len(first.intents) == 1 and (other := _as_command(meant, read)):
        target = first.intents[0].target
        return _PRONOUN.sub(lambda _: target, other, count=1) if target else other
    if _NO_NAME.search(meant):
        return ""
    if lead := _LEADS.match(meant):
        meant = meant[lead.end() :]
    for start, end in _places(said, first.intents[-1], meant):
        line = f"{said[:start]}{meant}{said[end:]}"
        second = read(line)
        if second.understood and _actions(second) == _actions(first):
            return line
    return ""


def _as_command(meant: str, read: Callable[[str], Parsed]) -> str:
    parsed = read(meant)
    tells = parsed.understood and all(intent.action not in ASKS and intent.sure == 1 for intent in parsed.intents)
    return meant if tells else ""


def _actions(parsed: Parsed) -> list[Action]:
    return [intent.action for intent in parsed.intents]


def _places(said: str, intent: Intent, meant: str) -> Iterator[tuple[int, int]]:
    """Give where phrases of the sort of `meant` stand in what was said, the last first."""
    number, named = _NUMBER.fullmatch(meant) is not None, is_determined(meant.lower())
    phrases = [
        phrase
        for phrase in (intent.target, intent.other)
        if phrase and (number or named or not (_NUMBER.fullmatch(phrase) or is_determined(phrase.lower())))
    ]
    if not number and intent.action is Action.ASSIGN and intent.value and _PERSON.fullmatch(meant):
        phrases.append(intent.value)
    if not number and intent.titles:
        phrases.append(intent.titles[-1])
    if intent.action in _FREE and intent.value:
        phrases.append(intent.value)
    found = [_span(said, phrase) for phrase in phrases]
    if intent.action is Action.PRIORITISE and not number and (to := said.lower().rfind(" to ")) > 0:
        found.append((to + len(" to "), len(said)))
    return iter(sorted({span for span in found if span[0] < span[1]}, reverse=True))


def _span(said: str, phrase: str) -> tuple[int, int]:
    """Give where a phrase stands last, in whole words; nowhere is from 0 to 0."""
    whole = rf"(?<!\w){re.escape(phrase)}(?!\w)"
    return max((found.span() for found in re.finditer(whole, said, re.IGNORECASE)), default=(0, 0))
