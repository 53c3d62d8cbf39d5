"""What a whole line acts on or asks about, found without knowing how the line is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from orchestra_mem.orchestrator.candidates import items_named
from orchestra_mem.orchestrator.intents.types import Action, Intent
from orchestra_mem.orchestrator.phrase_words import KINDS, Phrase
from orchestra_mem.orchestrator.phrases import phrases_in
from orchestra_mem.orchestrator.references import Resolution, resolve_all
from orchestra_mem.orchestrator.scene import Scene
from orchestra_mem.orchestrator.talk import ANYTHING, Happening, Talk, container_need, need_of
from orchestra_mem.work_types import WorkItem

_VERBS = {
    word: action
    for action, listing in {
        Action.ADD: "add create append another more",
        Action.START: "start begin restart kick retry resume run redo",
        Action.FINISH: "finish complete close done finished ship",
        Action.UNDO: "undo revert",
        Action.BLOCK: "block",
        Action.UNBLOCK: "unblock",
        Action.DEFER: "defer postpone park",
        Action.CANCEL: "cancel drop kill delete",
        Action.ASSIGN: "assign give",
    }.items()
    for word in listing.split()
}
_NEW = re.compile(
    r"\b(?:a|an|another|more|one|two|three|four|five|\d+|add|create)\s+(?:(?!to\b|under\b|in\b|the\b)[\w-]+\s+){0,2}?"
    r"(milestone|epic|story|stories|subtask|task)s?\b", re.IGNORECASE)  # fmt: skip
_PAYLOAD = re.compile(r"(?<=\w):\s.*|\b(?:called|named)\s.*")
_QUOTED = re.compile(r"[\"\u201c][^\"\u201d]*[\"\u201d]|(?<!\w)'[^']+'(?!\w)")
_OLD = frozenset("the same those these last first next other both all".split())
_SURELY_NAMED = 0.6
_UNDER = frozenset("to under in into of on for below beneath inside within there".split())


def titled_in(line: str, talk: Talk) -> list[WorkItem]:
    """List the items that a line names by words of their titles, without a determiner or with one."""
    scene = Scene(talk)
    named = [phrase for phrase in phrases_in(line, _namer(scene)) if phrase.words]
    found = (resolve_all([replace(phrase, bare=False)], ANYTHING, scene).items for phrase in named)
    return list({item.id: item for items in found for item in items}.values())


def _namer(scene: Scene) -> Callable[[Phrase], bool]:
    def names(phrase: Phrase) -> bool:
        pool = items_named(phrase, ANYTHING, scene)
        return any(scene.word_fit(item, phrase.words, None) >= _SURELY_NAMED for item in pool)

    return names


def resolve_line(line: str, talk: Talk) -> Resolution:
    """Say what a whole line acts on or asks about; of a line that adds something, what that is added to."""
    scene = Scene(talk)
    said = {word.casefold() for word in re.findall(r"[\w-]+", line)}
    first = next((word for word in re.findall(r"[\w-]+", line.casefold()) if word in _VERBS), "")
    action = _VERBS.get(first)
    new = next((each for each in _NEW.finditer(line) if _last_word(line[: each.start()]) not in _OLD), None)
    adds = action is Action.ADD or (bool(new) and bool(said & {"put", "needs", "gets", "make", "file", "called"}))
    if adds:
        newest = next((seen.items[0].kind for seen in scene.seen if seen.happening is Happening.CREATED), None)
        kind = KINDS.get(new[1].lower()) if new else newest if said & {"one", "another", "same"} else None
        need = container_need(kind)
        line = _QUOTED.sub(lambda found: " " * len(found[0]), line)
        line = (line[: new.start()] + " " * (new.end() - new.start()) + line[new.end() :]) if new else line
    else:
        need = need_of(Intent(action=action)) if action else ANYTHING
    cut = _PAYLOAD.sub("", line)
    names = _namer(scene)
    phrases = phrases_in(cut, names) or phrases_in(line, names)
    if not adds:
        marked = next((at for at, phrase in enumerate(phrases) if not phrase.bare or (phrase.ids and not at)), 0)
        if marked and line[phrases[marked - 1].end : phrases[marked].start].strip() != "and":
            phrases = phrases[marked:]
    if adds:
        led = [phrase for phrase in phrases if _last_word(line[: phrase.start]) in _UNDER]
        phrases = led[:1] or phrases
    if not phrases:
        return Resolution(ask="Which item do you mean?")
    run = [phrases[0]]
    for phrase in phrases[1:]:
        between = line[run[-1].end : phrase.start].lower()
        joins = between.strip(" ,") in ("and", "&") or (between.strip() == "," and phrase.bare is run[-1].bare)
        if not joins or (not phrase.ids and phrase.is_plain and not phrase.kind):
            break
        run.append(phrase)
    found = resolve_all(run, need, scene)
    return found if found.items or found.candidates or new or not adds else resolve_all(run, ANYTHING, scene)


def _last_word(text: str) -> str:
    return (text.lower().split() or [""])[-1].strip(",;:")
