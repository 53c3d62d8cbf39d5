"""What is written as on a list, put as a sentence: headings with numbers, arrows, a cry before the work.

"Finished: 118, 121", "46 => Write path", "Blocked again! #90 this time, no flour", "subtask of 77 -> grease the tins".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from orchestra_mem.core.language.intents.common_words import COMMON_WORDS
from orchestra_mem.core.language.intents.frames import is_level, state_at, verb_forms
from orchestra_mem.core.language.intents.normalising import ARROWS, QUOTED, Clause, Word
from orchestra_mem.core.language.intents.phrases import clean_title, is_named, kind_of
from orchestra_mem.core.language.intents.rules import vocabulary
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.verbs import base_of, is_verb
from orchestra_mem.core.language.intents.words import expand, fill

_NUMBERED = re.compile(r"\d(?: |$)")
_MOST_HEAD, _MOST_ITEMS = 6, 16
_BESIDE = frozenset("again finally now still also today already at last then yet this time please the done".split())
_LEADS_ON = frozenset("to until till for".split())
_RENAMES = re.compile(
    r"(?:(?:new|better|right) (?:names?|titles?)|renam(?:e|es|ing|ings)|retitle)(?: (?:for|of))?"
    r"(?:(?: [:,\-])+ | (?=#?\d))"
)
_BUG = re.compile(
    r"(?:(?:file|log|open|new|add|create|raise|report|track) )?(?:an? |another )?(?:new )?(?:bug|defect|feature|"
    r"feature request|"
    r"spike|chore) : "
)
_TIME = re.compile(expand("~TIME"))
_NOBODY = re.compile(r"(?:nobody|no one|no-one|none|unassigned|free)")


@cache
def _items() -> re.Pattern[str]:
    one = r"(?:(?:the )?(?:~KIND|items?|numbers?) )?#?\d+"
    return re.compile(
        fill(rf"{one}(?:(?: ,)?(?: and)? {one})*(?= [,\-(]| (?:this time|by|on|until|till|because|for) |$)")
    )


@cache
def _new_head() -> re.Pattern[str]:
    on = r"(?:of|for|under|in|on|to|below|inside) (?P<parent>.+)"
    return re.compile(fill(rf"(?:(?:an?|one|another|new|one more) )*(?P<kind>~KIND)(?: {on})?"))


def as_sentences(parts: list[Clause]) -> list[Clause]:
    """Put what is written as on a list as sentences; a cry and the work behind it are one."""
    found: list[Clause] = []
    for part in parts:
        cried = found and _cried(found[-1], part)
        if cried:
            found[-1] = cried
        else:
            found.append(_headed(part) or _levelled(part, found) or part)
    return found


_LEVEL = re.compile(
    r"(?:(?:please|just|so|then|ok) )*(?:make|set|put|bump|drop|lower|raise|should be) (?:(?:it|that|this|them) )?"
    r"(?:up |down )?(?:to |at |a )?(?P<level>[0-5])"
)
_OF_LEVEL = re.compile(r"\b(?:p ?[0-5]|priority|urgent|critical|high|low|lowest|highest|important)\b")


def _levelled(part: Clause, before: list[Clause]) -> Clause | None:
    """Put "make it 3" behind a word about priorities as "make it priority 3"."""
    match = _LEVEL.fullmatch(part.text)
    if match is None or not before or not _OF_LEVEL.search(before[-1].text):
        return None
    head, level = part.part(0, match.start("level")), part.part(match.start("level"))
    place = level.words[0].start
    return Clause(part.line, (*head.words, Word("priority", place, place), *level.words))


def _cried(cry: Clause, part: Clause) -> Clause | None:
    """Put "blocked again!" and "#90 this time, no paper" together."""
    if not cry.line[cry.words[-1].end :].lstrip().startswith("!") or not 0 < len(cry.words) < _MOST_HEAD:
        return None
    return _of_items(part, cry) if _is_head(cry) else None


def _headed(part: Clause) -> Clause | None:
    """Put "blocked: 7 and 8" as "7 and 8 is blocked", "new names: 45 …" as "rename 45 …", "bug: …" as "task: …"."""
    if match := _BUG.match(part.text):
        first, rest = part.words[0], part.part(match.end())
        made = (Word(word, first.start, first.end) for word in ("create", "task", ":"))
        return Clause(part.line, (*made, *rest.words)) if rest.words else None
    if match := _RENAMES.match(part.text):
        first, rest = part.words[0], part.part(match.end())
        if rest.words and (_arrow(rest) or ":" in rest.text):
            return Clause(part.line, (Word("rename", first.start, first.end), *rest.words))
    if " : " not in part.text and " - " not in part.text:
        return None
    for place, word in enumerate(part.words[: _MOST_HEAD + 1]):
        if word.text in (":", "-") and place:
            head = part.between(0, place)
            return _of_items(part.between(place + 1), head) if _is_head(head) else None
    return None


def _is_head(head: Clause) -> bool:
    words = tuple(word.text for word in head.words)
    while words and words[0] in _BESIDE - {"done"}:
        words = words[1:]
    if not words:
        return False
    if is_level(" ".join(words)):
        return True
    state = state_at(words, 0)
    if state is None or state.name in ("assign", "mine"):
        return False
    rest = words[state.end :]
    return not rest or rest[0] in _LEADS_ON or set(rest) <= _BESIDE


def _of_items(items: Clause, head: Clause) -> Clause | None:
    while items.words and items.words[0].text in ("!", "."):
        items = items.between(1)
    match = _items().match(items.text)
    if match is None:
        return None
    listed, rest = items.part(0, match.end()), items.part(match.end()).words
    if [word.text for word in rest[:2]] == ["this", "time"]:
        rest = rest[2:]
    end = listed.words[-1].end
    return Clause(items.line, (*listed.words, Word("is", end, end), *head.words, *rest))


def _arrow(clause: Clause) -> int:
    """Give the place of the first arrow, 0 where there is none."""
    for place, word in enumerate(clause.words):
        if word.text == "=" or (word.text == "to" and clause.line[word.start : word.end] in ARROWS):
            return place
    return 0


def read_jotting(clause: Clause) -> Iterator[Clause | Intent]:
    """Yield what an arrow may mean, a state, a title or something new, and who has what: "Ada: 14 and 15"."""
    if not _NUMBERED.search(clause.text):
        return
    if len(clause.words) <= _MOST_ITEMS and (match := _person_and_items().fullmatch(clause.text)):
        name, group = ("first", "items") if match["first"] else ("last", "listed")
        items = clause.part(match.start(group), match.end(group))
        said = clause.part(match.start(name), match.end(name)).said
        if said.startswith("@") or (said[:1].isupper() and said[1:].islower() and _may_be_name(match[name])):
            yield Intent(
                action=Action.ASSIGN, kind=kind_of(items.text), target=items.said, value=said.removeprefix("@")
            )
    yield from _read_arrow(clause)


@cache
def _person_and_items() -> re.Pattern[str]:
    one = r"(?:(?:the )?(?:~KIND|items?|numbers?) )?#?\d+"
    items = rf"{one}(?:(?: ,)?(?: and)? {one})*"
    return re.compile(
        fill(
            rf"(?P<first>@?[a-z][\w-]*)(?: (?:on|gets|has|takes|owns)| [:\-]|) (?P<items>{items})|"
            rf"(?P<listed>{items}) (?:[:\-=] )?(?P<last>@[\w-]+)"
        )
    )


def _may_be_name(word: str) -> bool:
    known = word in COMMON_WORDS or word in vocabulary() or is_verb(word) or word in verb_forms()
    return not known and not base_of(word) and not state_at((word,), 0)


def _read_arrow(clause: Clause) -> Iterator[Clause | Intent]:
    place = _arrow(clause) if any(arrow in clause.line for arrow in (*ARROWS, "=")) else 0
    if not place or place + 1 == len(clause.words):
        return
    item, rest = clause.between(0, place), clause.between(place + 1)
    if match := _new_head().fullmatch(item.text):
        if not match["parent"] or is_named(match["parent"]):
            mark = clause.words[place]
            yield Clause(clause.line, (*item.words, Word(":", mark.start, mark.end), *rest.words))
        return
    if not is_named(item.text):
        return
    if _TIME.fullmatch(rest.text):
        yield Intent(action=Action.DEFER, kind=kind_of(item.text), target=item.said, value=clean_title(rest.said))
    if _NOBODY.fullmatch(rest.text):
        yield Intent(action=Action.ASSIGN, kind=kind_of(item.text), target=item.said, value="")
        return
    end = item.words[-1].end
    yield Clause(clause.line, (*item.words, Word("is", end, end), *rest.words))
    if _may_be_title(rest):
        yield Intent(action=Action.RENAME, kind=kind_of(item.text), target=item.said, value=clean_title(rest.said))


def _may_be_title(rest: Clause) -> bool:
    if rest.text == QUOTED:
        return True
    words = rest.said.split()
    named = all(word[:1].isupper() for word in words) and words[0].lower() not in COMMON_WORDS
    return len(words) > 1 and not named and words[0][0].isalpha() and not is_named(rest.text)
