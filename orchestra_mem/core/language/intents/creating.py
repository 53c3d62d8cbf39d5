"""What is to be new: how many of which kind, under what, and their titles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestra_mem.core.language.intents.adding import moved, read_addition, said_of
from orchestra_mem.core.language.intents.common_words import COMMON_WORDS
from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.new_patterns import (
    ADDED_ONLY,
    ADDED_TO,
    AT_INTRO,
    BECOMES,
    CONTINUED,
    COUNTED,
    LAST_LEVEL,
    LAST_NEED,
    LAST_OWNER,
    LAST_PARENT,
    LEADING_PARENT,
    NEEDS,
    NEW_BEGINS,
    NO_PARENT,
    PARENT_WORD,
    QUALITY,
    SINGLE,
    SPLIT_INTO,
    SPLIT_UP,
    STOPS,
    SURE_PARENT,
    any_verb,
    heads,
)
from orchestra_mem.core.language.intents.normalising import QUOTED, Clause
from orchestra_mem.core.language.intents.persons import person_in
from orchestra_mem.core.language.intents.phrases import (
    clean_phrase,
    is_named,
    is_phrase,
    kind_of,
    number_of,
    priority_of,
    split_titles,
)
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.verbs import base_of, is_verb
from orchestra_mem.core.language.intents.wanting import wanted
from orchestra_mem.core.language.intents.words import KINDS, PLURALS, fill
from orchestra_mem.work_types import WorkKind


def read_creation(clause: Clause) -> tuple[Intent, ...]:
    """Read what a clause wants new; nothing where it wants nothing new."""
    text = clause.text
    if (match := SPLIT_UP.match(text)) and is_named(match["parent"]) and not _TURNS_INTO_ONE.match(match[0]):
        parent = said_of(clause, match, "parent")
        return tuple(_made(clause, match.end(), match["count"] or "", match["kind"], parent))
    if (match := NEEDS.match(text)) and _may_need(match):
        return tuple(_made(clause, match.end(), match["count"], match["kind"], said_of(clause, match, "parent")))
    if (match := LEADING_PARENT.match(text)) and is_named(match["parent"]):
        rest = read_creation(clause.part(match.end()))
        if rest and not rest[0].other:
            return (_under(rest[0], said_of(clause, match, "parent")), *rest[1:])
        if only := ADDED_ONLY.fullmatch(clause.part(match.end()).text):
            titles = split_titles(clause.part(match.end() + only.start("titles")), 0, True)
            return (
                Intent(action=Action.ADD, count=len(titles), titles=titles, other=said_of(clause, match, "parent")),
            )
    if match := ADDED_TO.match(text):
        for stop in list(NEW_BEGINS.finditer(text, match.end()))[:4]:
            if is_named(text[match.end() : stop.start()].strip()):
                rest = read_creation(Clause(clause.line, (clause.words[0], *clause.part(stop.start() + 1).words)))
                if rest and rest[0].kind and not rest[0].other:
                    parent = clean_phrase(clause.part(match.end(), stop.start()).said)
                    return (_under(rest[0], parent), *rest[1:])
    if (match := BECOMES.fullmatch(text)) and is_named(match["target"]) and is_named(match["parent"]):
        return moved(clause, match)
    for name, regex in heads().items():
        match = regex.match(text)
        if (
            match
            and (name != "make_before" or _may_stand_before(match))
            and (name != "wish_before" or _may_stand_before(match))
        ):
            return tuple(_from_head(clause, match))
    return read_addition(clause) or tuple(_from_any_verb(clause)) or _from_parts(clause)


def read_wanted(clause: Clause) -> tuple[Intent, ...]:
    """Read what is only said to be missing, needed, or to be there."""
    for other in wanted(clause):
        if (found := read_creation(other)) and (
            found[0].kind or QUOTED in other.text or other.text.endswith(" the list")
        ):
            return found
    return ()


_TURNS_INTO_ONE = re.compile(r"(?:turn|expand) .* an? \S+$")


def _may_need(match: re.Match[str]) -> bool:
    parent = match["parent"]
    return is_named(parent) or (number_of(match["count"]) > 1 and is_phrase(parent))


_PARTICLE = re.compile(r"(?:in|up|down|on|out) (?=(?:for|to|about|called|named|titled|:|under)\b)")


def _from_any_verb(clause: Clause) -> Iterator[Intent]:
    """Read "whack a new task on #3 called Tiles": what is new is told by "a", whatever the verb."""
    match = any_verb().match(clause.text)
    known = match and (is_verb(match["verb"]) or base_of(match["verb"]))
    if match and (not known or _PUTS_IN.match(clause.text)):
        yield from _from_head(clause, match)


_PUTS_IN = re.compile(
    r"(?:chuck|toss|throw|drop|shove|slip|knock|pop|stick|bung|sling|whack) (?:an?|another|one more|two|three|four|"
    r"some) .* (?:in|into|onto|on|under|to) "
)


def _from_parts(clause: Clause) -> tuple[Intent, ...]:
    """Read "break #9 into parsing, lexing and printing"."""
    match = SPLIT_INTO.fullmatch(clause.text)
    if match is None or not is_named(match["parent"]):
        return ()
    titles = split_titles(clause.part(match.start("titles")), 0, True)
    if len(titles) < 2:
        return ()
    parent = said_of(clause, match, "parent")
    return (Intent(action=Action.ADD, count=len(titles), titles=titles, other=parent, sure=0.8),)


def _may_stand_before(match: re.Match[str]) -> bool:
    """Words before the kind are its title, unless they name work that is there: "add it to the story"."""
    before = match["before"].strip()
    named = is_named(before) or is_named(re.sub(r" an?$", "", before))
    return not named and before.split()[0] not in (
        "it",
        "that",
        "the",
        "them",
        "this",
        "these",
        "those",
        "my",
    )


def _from_head(clause: Clause, match: re.Match[str]) -> Iterator[Intent]:
    groups = match.groupdict()
    level = priority_of(groups.get("level") or "")
    before = clause.part(match.start("before"), match.end("before")) if groups.get("before") else None
    if before and before.words and before.words[0].text in ("a", "an", "new"):
        before = before.between(1)
    yield from _made(clause, match.end(), groups.get("count") or "", match["kind"], "", level=level, before=before)


def _made(
    clause: Clause, end: int, count: str, kind_word: str, parent: str, *, level: str = "", before: Clause | None = None
) -> Iterator[Intent]:
    """Read what stands behind the kind, and yield what is new and what is said of it."""
    number = number_of(count)
    many = kind_word.split()[-1] in PLURALS or number > 1 or kind_word in ("parts", "pieces", "steps", "items")
    number = number if number > 1 else (0 if many else 1)
    kind = KINDS.get(kind_word.split()[-1].replace("sub ", "sub"))
    if kind_word.startswith("sub "):
        kind = WorkKind.SUBTASK
    tail = clause.part(end + 1)
    if particle := _PARTICLE.match(tail.text):
        tail = tail.part(particle.end())
    if within := _WITHIN.match(tail.text) or (_BELOW.match(tail.text) if kind is WorkKind.SUBTASK else None):
        parent = parent or clean_phrase(tail.part(within.start("parent"), within.end("parent")).said)
        tail = tail.part(within.end())
    tail, owner = _owner(tail, kind)
    tail, nested = _nested(tail)
    tail, level, further = _attributes(tail, level)
    if owner:
        further.append(Intent(action=Action.ASSIGN, target="it", value=owner))
    found, region = _parent_and_region(tail, many)
    titles = split_titles(region, number, many) if region.words else ()
    if before is not None and before.words:
        titles = titles or split_titles(before, number, many)
    parent = parent or found
    number = number or len(titles)
    action = Action.ADD if parent and not _CREATES.match(clause.text) else Action.CREATE
    yield Intent(action=action, kind=kind, count=number, titles=titles, other=parent, value=level)
    yield from (
        further if not many else (Intent(action=i.action, target="them", other=i.other, value=i.value) for i in further)
    )
    if nested is not None:
        yield from _in_what_is_new(nested)


_WITHIN = re.compile(fill(r"\( (?:in |under |of |for )?(?P<parent>(?:(?:~KIND) )?#?\d+) \) "))
_BELOW = re.compile(fill(r"(?P<parent>(?:(?:~KIND) )?#?\d+) (?=:)"))
_FOR_SOMEBODY = re.compile(rf"for (?P<person>\S+)(?: (?=[:\-,] \S)| (?=(?:{PARENT_WORD}) \S.* : )| (?=to [a-z]))")


def _owner(tail: Clause, kind: WorkKind | None) -> tuple[Clause, str]:
    """Take off whom a task is for: "a subtask for Jo to 14: …", "a task for me to …"; not what it is about."""
    match = _FOR_SOMEBODY.match(tail.text)
    if match is None or kind not in (WorkKind.TASK, WorkKind.SUBTASK):
        return tail, ""
    said = tail.words[1]
    name = tail.line[said.start : said.end]
    speaker = match["person"] in ("me", "myself")
    capital = name[:1].isupper() and name[1:].islower() and match["person"] not in COMMON_WORDS
    if not (speaker or name.startswith("@") or capital):
        return tail, ""
    return tail.part(match.end()), "me" if speaker else person_in(name)


_NEW = (
    rf"(?:(?P<count>{COUNTED}|{SINGLE}) (?:{QUALITY} )*(?P<kind>~KIND)|"
    r"(?P<kinds>(?:the )?(?:stories|tasks|subtasks|epics)))\b"
)
_NESTED = re.compile(fill(rf"(?:, ?)?{CONTINUED}{_NEW}"))


_CREATES = re.compile(
    r"(?:create|make|new|open|set up|start|begin|draft|define|generate|write|log|file|register|kick off|plan)\b"
)


def _nested(tail: Clause) -> tuple[Clause, Clause | None]:
    """Take off what is to be new in the new: "an epic for payments with 3 stories: …"."""
    for match in _NESTED.finditer(tail.text):
        if match.start() and tail.text[match.start() - 1] != " ":
            continue
        return tail.part(0, match.start()), tail.part(match.start("count" if match["count"] else "kinds"))
    return tail, None


def _in_what_is_new(nested: Clause) -> Iterator[Intent]:
    match = re.compile(fill(_NEW)).match(nested.text)
    if match:
        kind_word = match["kind"] or match["kinds"]
        for intent in _made(nested, match.end(), match["count"] or "", kind_word, ""):
            yield _under(intent, "it") if intent.action is Action.CREATE and not intent.other else intent


def _under(intent: Intent, parent: str) -> Intent:
    action = Action.ADD if intent.action is Action.CREATE else intent.action
    return Intent(
        action=action, kind=intent.kind, count=intent.count, titles=intent.titles, other=parent, value=intent.value
    )


def _attributes(tail: Clause, level: str) -> tuple[Clause, str, list[Intent]]:
    """Take priority, assignee and dependency off the end."""
    further: list[Intent] = []
    for _ in range(3):
        text = f" {tail.text}"
        if not level and (match := LAST_LEVEL.search(text)):
            level = priority_of(match["level"])
        elif match := LAST_OWNER.search(text):
            person = tail.part(max(0, match.start("person") - 1)).said
            further.append(Intent(action=Action.ASSIGN, target="it", value=clean_phrase(person)))
        elif (match := LAST_NEED.search(text)) and is_named(match["other"]):
            action = Action.BLOCK if match["how"].startswith("blocked") else Action.DEPEND
            other = tail.part(max(0, match.start("other") - 1)).said
            further.append(Intent(action=action, target="it", other=clean_phrase(other)))
        else:
            break
        tail = tail.part(0, max(0, match.start() - 1) if match.start() else 0)
    return tail, level, further


def _parent_and_region(tail: Clause, many: bool) -> tuple[str, Clause]:
    """Find the parent and the stretch of titles in what stands behind the kind."""
    parent, rest = _first_parent(tail)
    infinitive, region = _without_intro(rest)
    if not parent:
        parent, region = _last_parent(region, infinitive)
    return parent, region


def _first_parent(tail: Clause) -> tuple[str, Clause]:
    match = re.match(rf"(?:, )?(?P<word>{PARENT_WORD}) ", tail.text)
    if match is None:
        return "", tail
    best = None
    for stop in STOPS.finditer(tail.text, match.end()):
        candidate = tail.text[match.end() : stop.start()]
        if len(candidate) > 120:
            break
        if (
            is_named(candidate)
            or (SURE_PARENT.match(match["word"]) and is_phrase(candidate))
            or (
                match["word"] in ("to", "on", "in", "into", "onto", "for")
                and _CALLED_NEXT.match(stop[0])
                and _may_hold(candidate)
            )
            or NO_PARENT.fullmatch(candidate)
        ):
            best = (candidate, stop.start())
            if not (stop[0].strip() in (",", "and") and _goes_on(tail.text[stop.end() :])):
                break
    if best is None:
        return "", tail
    phrase = "" if NO_PARENT.fullmatch(best[0]) else clean_phrase(tail.part(match.end(), best[1]).said)
    return phrase, tail.part(best[1] + 1)


_CALLED_NEXT = re.compile(r" (?:called|named|titled|entitled)$")


def _may_hold(phrase: str) -> bool:
    """Tell whether a phrase behind "to" may be a parent and no deed: "add a task to plot four called …"."""
    return is_phrase(phrase) and not is_verb(phrase.split()[0]) and phrase.split()[0] not in verb_forms()


def _goes_on(rest: str) -> bool:
    return re.match(r" ?(?:and )?#?\d+\b", rest) is not None


def _without_intro(tail: Clause) -> tuple[bool, Clause]:
    """Take off what leads to the titles; tells whether they are what is to be done ("to fix the login")."""
    infinitive = False
    for _ in range(3):
        match = AT_INTRO.match(tail.text)
        if match is None or not tail.words:
            break
        if match["mark"] == "(" and ")" not in tail.text:
            break
        infinitive = match["to"] is not None
        after = tail.part(match.end() + 1 if tail.text[match.end() : match.end() + 1] == " " else match.end())
        if match["about"] and after.words and after.words[0].text in ("the", "a", "an") and len(after.words) > 1:
            after = after.between(1)
        tail = after
        if match["mark"] in (":", "-", "="):
            break
        if infinitive or match["called"] or match["about"]:
            if after.words and after.words[0].text in (":", "-", "|"):
                continue
            break
    return infinitive, tail


def _last_parent(region: Clause, infinitive: bool) -> tuple[str, Clause]:
    text = region.text
    starts = [m.start() for m in re.finditer(rf"(?: ,)? (?={PARENT_WORD} )", text)][-4:]
    for start in starts:
        match = LAST_PARENT.match(text, start)
        if match is None:
            continue
        phrase, word = match["parent"], match["word"]
        by_number = re.search(r"#?\d", phrase) or kind_of(phrase)
        if NO_PARENT.fullmatch(phrase) and word in ("to", "on", "in", "into", "onto"):
            return "", region.part(0, start)
        sure = SURE_PARENT.match(word) is not None
        if (is_named(phrase) and (sure or not infinitive or by_number)) or (
            sure
            and word != "within"
            and not infinitive
            and is_phrase(phrase)
            and (phrase.startswith(("the ", "our ")) or (word == "under" and " " in phrase))
        ):
            return clean_phrase(region.part(match.start("parent")).said), region.part(0, start)
    return "", region
