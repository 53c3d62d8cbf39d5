"""Lines that live by the one before: yes and no, a choice by number, a correction, the same of something else."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.intents.types import Action, Intent
from orchestra_mem.orchestrator.references import is_reference
from orchestra_mem.orchestrator.resolving import AT_HAND, Resolver, Unclear
from orchestra_mem.orchestrator.talk import Talk, need_of

_WORD = re.compile(r"[\w'\u2019]+")
_YES = frozenset("y yes yep yeah yup yea ja si oui ok okay sure confirm confirmed correct right exactly agreed".split())
_NO = frozenset("n no nope nah nay nein non don't dont never nothing none stop leave keep forget cancel".split())
_BESIDE = frozenset("""please do it that this them both all thanks thank you thx of course go ahead i am is was as now
    mind matter just then the one everything changed oops sorry wait hm hmm actually mean meant did i'm let's keep not
    leave alone nothing was joking""".split())  # fmt: skip
_TAKES_BACK = frozenset("oops nevermind wait sorry hm hmm actually".split())
_CORRECTS = re.compile(
    r"\W*(?:(?:no|nope|sorry|oops|wait|not that(?: one)?|actually)\b[\s,.!:;-]*)+(?:i (?:mean|meant)\b[\s,:]*)?"
    r"(?P<of>\S.*?)(?P<after>,? i meant?)?\W*|\W*i (?:mean|meant)\b[\s,:]*(?P<meant>\S.*?)\W*",
    re.IGNORECASE,
)
_SAME = re.compile(
    r"\W*(?:(?:and|also|ok|plus|so) )*(?:(?:do )?(?:the )?same (?:for|with|goes for) (?P<for>\S.*?)"
    r"|(?P<too>\S.*?),? (?:too|as well|also))[\s,.!]*(?:please)?\W*",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\W*(?:(?:no|hm+|sorry|oops|wait|actually|please|ok)\b[\s,.!]*)*(?:move|put|set|change|switch|turn) "
    r"(?:it|that|them|this) back(?: again)?\W*",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"\W*(?:yes|yep|yeah|yup)\b(?!.*(?:\b(?:but|if|unless|except|wait|no|not|only|later|first|instead)\b|\?|n't)).{1,60}",
    re.IGNORECASE,
)
_PERSON = re.compile(r"(?:to |for )?(?P<name>[^\W\d_][\w-]*)")
_MOST_WORDS = 8
_FRESH = 2
"""So many lines later a correction may still come."""
# What was done to the wrong item can be done to another: nothing is made or taken away by it.
_CORRECTED = frozenset(
    {Action.START, Action.FINISH, Action.DEFER, Action.BLOCK, Action.ASSIGN, Action.PRIORITISE, Action.UNBLOCK}
)


def _said(line: str) -> list[str]:
    words = [word.lower().replace("\u2019", "'") for word in _WORD.findall(line)]
    return words if len(words) <= _MOST_WORDS else []


def is_yes(line: str) -> bool:
    """Tell whether a line says yes to a question, and nothing else."""
    words = _said(line)
    return bool(words) and words[0] in _YES and "?" not in line and all(word in _YES | _BESIDE for word in words)


def is_agreed(line: str) -> bool:
    """Tell whether a line says yes to a question and gives a reason: "yes, nobody asked for it"."""
    return is_yes(line) or _AGREES.fullmatch(line) is not None


def is_no(line: str) -> bool:
    """Tell whether a line says no to a question, or that all is to stay, and nothing else."""
    words = _said(line)
    says = bool(set(words) & _NO) or (bool(words) and words[0] in _TAKES_BACK)
    opens = bool(words) and (words[0] in _NO - {"cancel"} or words[0] in _TAKES_BACK)
    return says and opens and all(word in _NO | _BESIDE | _TAKES_BACK for word in words)


def choice_in(line: str, options: int) -> int | None:
    """Tell which of so many options a line chooses, from 0; a yes is for the first."""
    said = line.strip().rstrip(".!)")
    if said.isdecimal() and len(said) < 3 and 1 <= int(said) <= options:
        return int(said) - 1
    return 0 if options and is_agreed(line) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The last command that was done, the items that it changed, and how many lines ago that was."""

    intent: Intent
    items: tuple[int, ...]
    age: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """What a line asks for by what was done last: `intent` with the items it is for; both may be missing.

    `takes_back` is that what was done last is undone before. `sure` is that the line says it plainly.
    """

    intent: Intent | None = None
    items: tuple[int, ...] = ()
    takes_back: bool = False
    sure: bool = True


def following(line: str, last: Last, talk: Talk) -> Following | None:
    """Read a line by what was done last; None where it is a line of its own."""
    fresh = last.age <= _FRESH
    if _BACK.fullmatch(line):
        moved = last.intent.action in _CORRECTED
        return Following(takes_back=True) if fresh and moved else Following(intent=Intent(action=Action.UNDO))
    if last.intent.action not in _CORRECTED or not _said(line) or line.rstrip().endswith("?"):
        return None
    same = _SAME.fullmatch(line)
    corrected = _CORRECTS.fullmatch(line) if fresh else None
    found = same or corrected
    if found is None:
        return None
    phrase = next(filter(None, found.groupdict().values()))
    return _again(phrase.removesuffix(", i meant"), last, talk, takes_back=same is None)


def _again(phrase: str, last: Last, talk: Talk, *, takes_back: bool) -> Following | None:
    """Do what was done last to other items, or give the same items to another person."""
    person = _PERSON.fullmatch(phrase) if last.intent.action is Action.ASSIGN and takes_back else None
    if person and person["name"][:1].isupper() and not is_reference(phrase, talk):
        intent = replace(last.intent, value=person["name"], target=last.intent.target or AT_HAND)
        return Following(intent=intent, items=last.items)
    intent = replace(last.intent, target=phrase)
    try:
        items = tuple(item.id for item in Resolver(talk).many(phrase, need_of(intent)))
    except (Unclear, NotFoundError):
        return None
    if set(items) & set(last.items):
        return None
    return Following(intent=intent, items=items, takes_back=takes_back, sure=is_reference(phrase, talk))
