"""What is added without its kind, and what is moved: "add login and signup to epic 5", "move 12 under it"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestra_mem.core.language.intents.new_patterns import (
    ADDED,
    ADDED_AS,
    ADDED_THESE,
    GOES_UNDER,
    MOVED,
    NO_PARENT,
    NUMBERS_UNDER,
)
from orchestra_mem.core.language.intents.normalising import QUOTED, Clause
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_named, kind_of, split_titles
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.words import KINDS, fill


def read_addition(clause: Clause) -> tuple[Intent, ...]:
    """Read "add login and signup to epic 5", and "move 12 under epic 5"."""
    text = clause.text
    if (match := ADDED_THESE.fullmatch(text)) and _may_be_these(match):
        return _these(clause, match)
    if match := NUMBERS_UNDER.fullmatch(text):
        return moved(clause, match)
    if (match := _HOLDS.fullmatch(text)) and is_named(match["target"]) and is_named(match["parent"]):
        return moved(clause, match)
    if (
        (match := GOES_UNDER.fullmatch(text))
        and is_named(match["target"])
        and (kind_of(match["parent"]) or _UNDER_NUMBER.search(text))
    ):
        return moved(clause, match)
    if _QUOTED_AS.match(text) and (match := ADDED.fullmatch(text)) and match["kind"]:
        return _added(clause, match)
    if (match := MOVED.fullmatch(text)) and is_named(match["target"]) and is_named(match["parent"]):
        return moved(clause, match) if not _QUOTED_NEW.match(text) else _added(clause, ADDED.fullmatch(text))
    if (
        (match := ADDED.fullmatch(text))
        and match["kind"]
        and is_named(match["parent"])
        and not is_named(match["titles"])
    ):
        return _added(clause, match)
    if match := _MADE_ONE.fullmatch(text):
        title = split_titles(clause.part(match.start("title"), match.end("title")), 1, False)
        return (Intent(action=Action.CREATE, kind=KINDS[match["kind"]], count=1, titles=title),)
    if match := ADDED_AS.fullmatch(text):
        if is_named(match["titles"]) and not _ALL_QUOTED.fullmatch(match["titles"]):
            return ()
        return _added(clause, match)
    for match in _endings(ADDED, text):
        if NO_PARENT.fullmatch(match["parent"]) and _ALL_QUOTED.fullmatch(match["titles"]):
            return _added(clause, match)
        if is_named(match["titles"]):
            return _added(clause, match) if _QUOTED_NEW.match(text) else _moved_if_named(clause, match)
        if is_named(match["parent"]) or NO_PARENT.fullmatch(match["parent"]):
            return _added(clause, match)
    return ()


def _may_be_these(match: re.Match[str]) -> bool:
    parent = match["parent"]
    if parent is None:
        return bool(match["kind"]) and " as " in match[0]
    return is_named(parent.split(" as ")[0]) if match["kinds"] else is_named(parent)


def _these(clause: Clause, match: re.Match[str]) -> tuple[Intent, ...]:
    """Build "add the following as tasks to epic 5: booth; banner"."""
    titles = split_titles(clause.part(match.start("titles")), 0, True)
    word = match["kind"] or match["kinds"] or ""
    kind = KINDS.get(word.split()[-1]) if word else None
    other = said_of(clause, match, "parent") if match["parent"] else ""
    action = Action.ADD if other else Action.CREATE
    return (Intent(action=action, kind=kind, count=len(titles), titles=titles, other=other),)


_HOLDS = re.compile(
    fill(
        r"(?P<parent>\S.{0,80}?) (?:should|must|has to|needs to|ought to) (?:also )?(?:include|contain|have|hold|get) "
        r"(?P<target>(?:(?:the )?(?:~KIND) )?#?\d+|the .{1,60}(?:~KIND))"
    )
)
_UNDER_NUMBER = re.compile(r" (?:under|inside|within|below|beneath) #?\d+$")
_MADE_ONE = re.compile(
    fill(
        rf"(?:make|turn) (?P<title>{QUOTED}) (?:into )?(?:an?|another|"
        rf"one) (?:new )?(?P<kind>~KIND)"
    )
)
_ALL_QUOTED = re.compile(rf"{QUOTED}(?:(?: ,| and| , and)? {QUOTED})*")
_QUOTED_NEW = re.compile(
    rf"(?:add|append|insert|include) (?:{QUOTED}[ ,&]*(?:and )?)+(?:to|under|in|into|on|onto|"
    rf"below|inside) "
)


_QUOTED_AS = re.compile(
    fill(
        rf"(?:[a-z]+) {QUOTED} (?:to|under|in|into|on|onto|below|inside) .* as (?:a|an|"
        rf"another|one) "
    )
)


def _endings(regex: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    match = regex.fullmatch(text)
    if match:
        yield match


def _added(clause: Clause, match: re.Match[str] | None) -> tuple[Intent, ...]:
    if match is None:
        return ()
    region = clause.part(match.start("titles"), match.end("titles"))
    if region.words and region.words[0].text in ("a", "an", "the") and len(region.words) > 1:
        region = region.between(1)
    titles = split_titles(region, 0, True)
    kind_word = match["kind"] or ""
    kind = KINDS.get(kind_word.split()[-1]) if kind_word else None
    parent = match["parent"] or ""
    phrase = "" if not parent or NO_PARENT.fullmatch(parent) else said_of(clause, match, "parent")
    action = Action.ADD if phrase else Action.CREATE
    return (Intent(action=action, kind=kind, count=len(titles), titles=titles, other=phrase, sure=0.9),)


def _moved_if_named(clause: Clause, match: re.Match[str]) -> tuple[Intent, ...]:
    if not is_named(match["parent"]):
        return ()
    target, other = clause.part(match.start("titles"), match.end("titles")).said, said_of(clause, match, "parent")
    return (Intent(action=Action.ADD, kind=kind_of(match["titles"]), target=target, other=other),)


def moved(clause: Clause, match: re.Match[str]) -> tuple[Intent, ...]:
    """Build what moves the target of a pattern under its parent."""
    target = said_of(clause, match, "target")
    return (
        Intent(action=Action.ADD, kind=kind_of(match["target"]), target=target, other=said_of(clause, match, "parent")),
    )


def said_of(clause: Clause, match: re.Match[str], group: str) -> str:
    """Give what the user wrote where a group of a pattern fitted."""
    return clean_phrase(clause.part(match.start(group), match.end(group)).said)
