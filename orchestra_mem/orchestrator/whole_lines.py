"""What a whole line acts on or asks about, found without knowing how the line is read."""

from __future__ import annotations

import re

from orchestra_mem.orchestrator.intents.types import Action, Intent
from orchestra_mem.orchestrator.phrase_words import KINDS
from orchestra_mem.orchestrator.phrases import Phrase, phrases_in
from orchestra_mem.orchestrator.references import Resolution, items_named, resolve_all, sharing_kind
from orchestra_mem.orchestrator.scene import Scene
from orchestra_mem.orchestrator.talk import ANYTHING, Happening, Need, Talk, container_need, need_of
from orchestra_mem.work_types import WorkStatus

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
_REOPENS = Need(statuses=(WorkStatus.DONE, WorkStatus.CANCELLED, WorkStatus.FAILED, WorkStatus.DEFERRED))
_NEW = re.compile(
    r"\b(?:a|an|another|more|one|two|three|four|five|\d+|add|create)\s+(?:(?!to\b|under\b|in\b|the\b)[\w-]+\s+){0,2}?"
    r"(milestone|epic|story|stories|subtask|task)s?\b", re.IGNORECASE)  # fmt: skip
_PAYLOAD = re.compile(r"(?<=\w):\s.*|\b(?:called|named)\s.*")
_QUOTED = re.compile(r"[\"\u201c][^\"\u201d]*[\"\u201d]|(?<!\w)'[^']+'(?!\w)")
_OLD = frozenset("the same those these last first next other both all".split())
_SURELY_NAMED = 0.6
_UNDER = frozenset("to under in into of on for below beneath inside within there".split())


def resolve_line(line: str, talk: Talk) -> Resolution:
    """Say what a whole line acts on or asks about; of a line that adds something, what that is added to."""
    scene = Scene(talk)
    said = {word.casefold() for word in re.findall(r"[\w-]+", line)}
    first = next((word for word in re.findall(r"[\w-]+", line.casefold()) if word in _VERBS or word == "reopen"), "")
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
        need = _REOPENS if first == "reopen" else need_of(Intent(action=action)) if action else ANYTHING
    cut = _PAYLOAD.sub("", line)

    def names(phrase: Phrase) -> bool:
        return any(
            scene.word_fit(item, phrase.words, None) >= _SURELY_NAMED for item in items_named(phrase, ANYTHING, scene)
        )

    phrases = phrases_in(cut, names) or phrases_in(line, names)
    marked = next((at for at, phrase in enumerate(phrases) if not phrase.bare or phrase.ids), 0)
    if marked and not adds:
        between = line[phrases[0].end : phrases[marked].start]
        turns = re.search(r"[,;.\u2013-].*\b(\w+) $", between)  # "the flyers can wait, start the other one"
        selects = phrases[marked].select or phrases[marked].position is not None
        if selects or not _is_object(line, phrases[0]) or (turns and turns[1].lower() in _VERBS):
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
    found = resolve_all(sharing_kind(run), need, scene)
    return found if found.items or found.candidates or new or not adds else resolve_all(run, ANYTHING, scene)


def _last_word(text: str) -> str:
    return (text.lower().split() or [""])[-1].strip(",;:")


def _is_object(line: str, phrase: Phrase) -> bool:
    """Tell whether a title begins the line or stands behind its verb."""
    return phrase.start == 0 or _last_word(line[: phrase.start]) in _VERBS.keys() | {"and", "is", "are", "mark", "set"}
