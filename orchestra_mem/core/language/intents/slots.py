"""What a pattern has taken out of a clause, as the user wrote it, where it can be what it is taken for."""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_determined, is_named, is_phrase
from orchestra_mem.core.language.intents.words import fill

_NEW_ONE = re.compile(
    fill(
        r"(?:an?|another|some|more|new|one (?:new )?(?:~KIND)|(?:\d+|two|three|four|five|six) (?:new |"
        r"more )?(?:~KIND)|one more)(?= |"
        r"$)(?! one)"
    )
)


def phrase_in(clause: Clause, match: re.Match[str], role: str = "target", *, strict: bool = False) -> str | None:
    """Give a phrase as it was said, "" where the pattern has none; None where what stands there can be none."""
    groups = match.groupdict()
    if named := groups.get(f"{role}_named"):
        names = is_named if strict else is_determined
        return said_in(clause, match, f"{role}_named") if names(named) and not _NEW_ONE.match(named) else None
    if loose := groups.get(role):
        said = said_in(clause, match, role)
        return said if (is_phrase(loose) or _is_title(said, loose)) and not _NEW_ONE.match(loose) else None
    return ""


def _is_title(said: str, text: str) -> bool:
    """Tell whether capitals make a title of what begins like a command: "assign Close the gate to Nina"."""
    return said[:1].isupper() and not said.isupper() and is_phrase(text.partition(" ")[2])


def said_in(clause: Clause, match: re.Match[str], group: str) -> str:
    """Give what the user wrote where a group of a pattern fitted."""
    return clean_phrase(clause.part(match.start(group), match.end(group)).said)


def unquoted(said: str) -> str:
    """Take quotes off both ends."""
    if len(said) > 1 and said[0] in "\"'`\u201c\u2018\u00ab" and said[-1] in "\"'`\u201d\u2019\u00bb":
        return said[1:-1].strip()
    return said
