"""What a line is to the one before it: a yes, a no, the same of something else, a correction, a word in between."""

from __future__ import annotations

import re
from collections.abc import Collection

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_YES = frozenset(
    """confirmed agreed aye affirmative y yes yep yeah yup ok okay okey sure do go please correct right exactly
    definitely absolutely""".split()
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
_YES_WHY = re.compile(
    r"\W*(?:yes|yep|yeah|yup|sure|confirmed|right|exactly|correct|absolutely|definitely)(?: "
    r"please)?\s*[,.;:!\u2013-]+\s*\S",
    re.IGNORECASE,
)
_YES_BUT = re.compile(
    r"\b(?:but|if|unless|except|wait|no|only|not sure|later|first|instead)\b|\?|\bdon['\u2019]t (?!need|want)",
    re.IGNORECASE,
)
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
_HESITATES = r"\W*(?:(?:no|nope|hm+|sorry|oops|wait|but|ah|argh|actually|ok|well|please|and|not so fast)\b[\s,.!:;-]*)*"
_LEFT_OUT = re.compile(
    rf"{_HESITATES}(?:(?:not|except|without|but not|leave out|all but|everything but)(?: for| with| on)? "
    r"(?P<of>(?!yet\b|now\b|today\b|really\b|so\b|sure\b|at\b|done\b|if\b)\S.*?)|(?P<behind>\S.*?) not)"
    r"(?:,? (?:though|sorry|please|of course)|[,;:-]+ (?:i|we|it|he|she|they|that|this|because)(?:\b|['\u2019]).*)?\W*",
    re.IGNORECASE,
)
_ONLY = re.compile(rf"{_HESITATES}(?:only|just) (?P<of>\S.*?)(?:,? (?:though|sorry|please))?\W*", re.IGNORECASE)
_DENIES = re.compile(
    rf"{_HESITATES}(?:it|that|this|he|she|they|we|i)(?:(?:['\u2019]s| is| was| are| were| has| have| had| did| "
    r"do| does) not|"
    r" (?:is|was|are|were|has|have|had|did|do|does)n['\u2019]?t)(?: (?:really|yet|done|finished|started|true|"
    r"right|correct|"
    r"ready|been|at all|so|over|begun|quite))*\W*",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"(?P<said>\S.*?)[\s,.;!\u2013-]+(?:no,? wait|wait,? no|no,? sorry|sorry,? no|no,? actually|actually,? no|"
    r"no,? i mean|"
    r"(?:sorry,? )?i meant?|scratch that|correction|or rather|make that|hm+,? no|oops,? "
    r"no)[\s,:.-]+(?P<meant>\S.*?)\W*",
    re.IGNORECASE,
)
# A phrase for an item holds no verb: "no, it stays" corrects nothing.
_TELLS = re.compile(
    r"^(?:it|that|this|they|he|she|we|i|you|there)\b(?! one)|[.!?;]\s+\S|\b(?:is|are|was|were|has|have|had|will|"
    r"would|can|"
    r"could|should|must|do|does|did|stays?|keeps?|goes|comes|needs?|wants?|said|says)\b|['\u2019](?:s|ll|re|m|"
    r"ve|d)\s+(?:a|the|not|"
    r"been|got|done|going|still|fine|ok)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_ON_PERSON = re.compile(r"(?:on|by|with|from) ", re.IGNORECASE)
_SWAPPED = re.compile(
    rf"{_HESITATES}not (?:to |for |by |on )?(?P<was>[^\W\d_][\w-]*)[\s,.;:-]+(?:but )?(?:to |for |by |on "
    rf")?(?:\w+ ){{0,2}}?"
    r"(?P<now>[^\W\d_][\w-]*)(?: (?:does|has|takes|gets) (?:it|that|them)| instead)?\W*",
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


def says_yes(line: str) -> bool:
    """Whether a line says yes and why: "yes, nobody asked for it"; whether it is an order is for the caller to see."""
    return _YES_WHY.match(line) is not None and len(line.split()) <= 2 * _MOST_WORDS and not _YES_BUT.search(line)


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
    if found is None or not (found["meant"] or found["after"] or found["lead"]) or _TELLS.search(found["of"]):
        return ""
    return str(found["of"])


def person_in(phrase: str, persons: Collection[str]) -> str:
    """The person that a phrase is, one of `persons` in lower case or a name by its capital; empty where it is none."""
    found = _PERSON.fullmatch(_ON_PERSON.sub("", phrase, count=1))
    if found is None:
        return ""
    name = found["name"]
    if name.lower() in ("me", "mine", "i", "myself"):
        return "me"
    return name[:1].upper() + name[1:] if name.lower() in persons or name[:1].isupper() else ""


def left_out(line: str) -> str:
    """What is to be left out of what was done last: "not the desk"; empty where the line says no such thing."""
    found = _LEFT_OUT.fullmatch(line) if len(line.split()) <= 2 * _MOST_WORDS else None
    return (found["of"] or found["behind"]) if found else ""


def only_of(line: str) -> str:
    """To what alone that was meant which was done last: "only the hall"; empty where the line says no such thing."""
    found = _ONLY.fullmatch(line) if len(line.split()) <= _MOST_WORDS else None
    return found["of"] if found else ""


def swapped_person(line: str, was: str) -> str:
    """Who is meant in the place of a person: "not Tom, Ines"; empty where the line says no such thing."""
    found = _SWAPPED.fullmatch(line) if len(line.split()) <= _MOST_WORDS else None
    if found is None or found["was"].lower() != was.lower():
        return ""
    return person_in(found["now"], ())


def denies_last(line: str) -> bool:
    """Whether a line says that it is not as it was just told: "no wait, she hasn't"."""
    return len(line.split()) <= _MOST_WORDS and _DENIES.fullmatch(line) is not None


def corrects_itself(line: str) -> tuple[str, str]:
    """What a line says first, and what in its place: "start tiles. no wait, the sink"; empty where it does not."""
    found = _SELF.fullmatch(line) if len(line.split()) <= 2 * _MOST_WORDS else None
    return (found["said"], found["meant"]) if found else ("", "")


def goes_back(line: str) -> bool:
    """Whether what was done last is to be as before: "move it back"."""
    return _BACK.match(line) is not None


def _words(line: str) -> list[str]:
    words = [word.lower().replace("\u2019", "'") for word in _WORD.findall(line)]
    return words if len(words) <= _MOST_WORDS else []
