"""What a line is to the one before it: a yes, a no, the same of something else, a correction, a word in between."""

from __future__ import annotations

import re
from collections.abc import Collection

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_YES = frozenset(
    "y yes yep yeah yup ok okay okey sure do go please correct right exactly definitely absolutely".split()
)
_YES_BESIDE = _YES | frozenset(
    """it that this them both all one ahead of course really now thanks thx pls then i am we want just way remove delete
    cancel scrap drop kill undo cut bin the back away""".split()
)
_NO = frozenset(
    "n no nope nah nay don't dont not never neither none stop wait leave keep forget nevermind cancel".split()
)
_NO_BESIDE = _NO | frozenset(
    """it that this them both all one as is was joking kidding just mind do of better please pls sorry thanks thx thing
    anything me i am oops hm hmm ok okay actually rather alone for now then delete remove change undo hold on second
    sec minute moment a the misread mistake my bad haha lol""".split()
)
_OPENS_NO = _NO - {"cancel"} | frozenset("oops hm hmm sorry hold my ok okay actually".split())
_TOO = re.compile(
    r"\W*(?:(?:and|also|ok|plus|so) )*(?:the same (?:for|with|goes for) )?(?P<of>\S.*?)(?:,? (?:too|as well|"
    r"also|likewise))"
    r"[\s,.!]*(?:please|pls)?\W*$|\W*(?:and )?(?:the )?same (?:for|with|goes for) (?P<same>\S.*?)\W*$",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\W*(?P<lead>(?:(?:no|nope|sorry|oops|wait|hm+|nah|actually|argh|ups|damn|whoops|"
    r"not that(?: one)?)\b[\s,.!:;-]*)*)"
    r"(?P<meant>i mean[t]?\b|make (?:it|that)|i was thinking of)?[\s,:]*(?P<of>\S.*?)(?P<after>,? i (?:mean|"
    r"meant))?\W*$",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\W*(?:(?:no|hm+|sorry|oops|wait|actually|please|ok)\b[\s,.!]*)*(?:move|put|set|change|switch|turn|take|"
    r"name|rename) "
    r"(?:it|that|them|this) back(?: again)?\W*$",
    re.IGNORECASE,
)
_PERSON = re.compile(r"(?:to |for |give it to )?(?P<name>[^\W\d_][\w-]*?)(?:['\u2019]s)?", re.IGNORECASE)
_MOST_WORDS = 8


def is_yes(line: str) -> bool:
    """Whether a line says yes to a question, and nothing else."""
    words = _words(line)
    return bool(words) and words[0] in _YES and all(word in _YES_BESIDE for word in words)


def is_no(line: str) -> bool:
    """Whether a line says no to a question, or that all is to stay: "no, better keep them"."""
    words = _words(line)
    return (
        bool(words) and words[0] in _OPENS_NO and bool(set(words) & _NO) and all(word in _NO_BESIDE for word in words)
    )


def is_aside(line: str) -> bool:
    """Whether a line asks for nothing and tells nothing: "oops", "never mind, was joking"."""
    words = _words(line)
    return bool(words) and words[0] in _OPENS_NO and all(word in _NO_BESIDE for word in words)


def same_of(line: str) -> str:
    """Of what the same is asked for as before: "and the invoices too"; empty where it is not."""
    found = _TOO.match(line) if len(line.split()) <= _MOST_WORDS else None
    return (found["of"] or found["same"]) if found else ""


def corrected_to(line: str) -> str:
    """What was meant in the place of what was done: "no, I meant copy"; empty where the line is no correction."""
    found = _CORRECTS.match(line) if len(line.split()) <= _MOST_WORDS else None
    if found is None or not (found["meant"] or found["after"] or found["lead"]):
        return ""
    return str(found["of"])


def person_in(phrase: str, persons: Collection[str]) -> str:
    """The person that a phrase is, one of `persons` in lower case or a name by its capital; empty where it is none."""
    found = _PERSON.fullmatch(phrase)
    if found is None:
        return ""
    name = found["name"]
    if name.lower() in ("me", "mine", "i", "myself"):
        return "me"
    return name[:1].upper() + name[1:] if name.lower() in persons or name[:1].isupper() else ""


def goes_back(line: str) -> bool:
    """Whether what was done last is to be as before: "move it back"."""
    return _BACK.match(line) is not None


def _words(line: str) -> list[str]:
    words = [word.lower().replace("\u2019", "'") for word in _WORD.findall(line)]
    return words if len(words) <= _MOST_WORDS else []
