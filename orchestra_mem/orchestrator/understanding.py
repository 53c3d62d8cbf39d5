"""Reading lines: by rules where they are sure, by a model where there is one and they are not."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from orchestra_mem.core.language.asked import read_question
from orchestra_mem.core.language.caution import careful
from orchestra_mem.core.language.conditions import read_condition
from orchestra_mem.core.language.grouping import gathered
from orchestra_mem.core.language.intents.correcting import corrected_line, takes_itself_back
from orchestra_mem.core.language.intents.parsing import (
    ASKS,
    DESTRUCTIVE,
    Action,
    Intent,
    Parsed,
    from_json,
    intent_schema,
    parse,
)
from orchestra_mem.core.language.made import read_made
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import namings, read_with_titles, with_kinds
from orchestra_mem.core.language.parts import bound_to_named, read_in_parts
from orchestra_mem.core.language.persons import persons_in
from orchestra_mem.core.language.sentences import read_sentences
from orchestra_mem.core.language.told import read_told
from orchestra_mem.core.language.turns import corrects_itself, person_in
from orchestra_mem.core.prompts import intent_prompt
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import LanguageModel

logger = logging.getLogger(__name__)

_SURE = 0.6
_NOBODY = re.compile(r"(?:maybe|perhaps|possibly|probably|someone|somebody|anyone|anybody|whoever)\b", re.IGNORECASE)
_ASKING = re.compile(r"\W*(?:who|what|why|when|where|how|show|list|find)\b", re.IGNORECASE)
_ANSWER_TOKENS = 400
_TIMEOUT_S = 30.0
_PRIORITIES = frozenset({"1", "2", "3", "4", "5", "higher", "lower"})


class Reader:
    """Reads lines into intents.

    Args:
        model: is asked where the rules are not sure, where there is one.
        foreground: keeps background work off the model meanwhile.
    """

    def __init__(self, model: LanguageModel | None, foreground: Callable[[], AbstractContextManager[None]]) -> None:
        self._model = model
        self._foreground = foreground

    def read(self, line: str, parsed: Parsed) -> Parsed:
        """Read what a line asks for; `parsed` is what the rules have made of it, and given back where that stands."""
        if is_sure(parsed) or self._model is None:
            return parsed
        try:
            with self._foreground():
                answer = self._model.generate(
                    intent_prompt(line), max_tokens=_ANSWER_TOKENS, schema=intent_schema(), timeout_s=_TIMEOUT_S
                )
            read = from_json(json.loads(answer.text))
        except (ModelError, ValueError) as error:
            logger.warning("the model could not read a line: %s", error)
            return parsed
        # What takes away is believed only where the rules have read it as well.
        known = {intent.action for intent in parsed.intents}
        if not read.understood or any(intent.action in DESTRUCTIVE - known for intent in read.intents):
            return parsed
        return read if all(_is_said(intent, line) for intent in read.intents) else parsed


def _is_said(intent: Intent, line: str) -> bool:
    """Whether all that a model has read in a line stands there."""
    words = " ".join(line.casefold().split())
    value = "" if intent.action is Action.PRIORITISE and intent.value in _PRIORITIES else intent.value
    told = (intent.target, intent.other, value, *intent.titles)
    return all(" ".join(said.casefold().split()) in words for said in told)


def is_command(line: str, parsed: Parsed) -> bool:
    """Whether a line surely tells to do something, or asks in a sentence, by what the rules have made of it."""
    asks = _ASKING.match(line) is not None
    return is_sure(parsed) and (asks or any(intent.action not in ASKS for intent in parsed.intents))


def by_rules(line: str, lookup: WorkLookup) -> Parsed:
    """Read a line without a model; `lookup` finds the items that it names.

    By its words, by the titles in it, clause by clause, sentence by sentence, and at last by what it seems to be about.
    """
    if line.isupper() and not _keeps_words(quiet := by_rules(line.lower(), lookup)):
        return quiet
    if takes_itself_back(line, parse):
        return parse(line)
    line = gathered(with_kinds(line))
    persons = persons_in(lookup)
    parsed = _corrected(line, lookup, persons)
    if parsed is None:
        line = corrected_line(line, parse) or line
        parsed = _of_one(line, lookup, persons)
    if not parsed.understood:
        parts = read_sentences(
            line, lambda text: _of_one(text, lookup, persons), lambda text: bool(namings(text, lookup, least=1))
        )
        parsed = parts or parsed
    return read_told(line, parsed, lookup)


def _keeps_words(parsed: Parsed) -> bool:
    """Whether nothing was understood, or something whose words are kept as they were said."""
    return not parsed.understood or any(intent.titles or intent.action in _KEEPS for intent in parsed.intents)


_KEEPS = frozenset({Action.RENAME, Action.NOTE, Action.DECIDE})


def _corrected(line: str, lookup: WorkLookup, persons: frozenset[str]) -> Parsed | None:
    """Read a line that takes back its own beginning, with what it means in its place."""
    said, meant = corrects_itself(line)
    first = _of_one(said, lookup, persons) if said else None
    if first is None or not first.understood or len(first.intents) != 1 or first.intents[0].action in ASKS:
        return None
    second = _of_one(meant, lookup, persons)
    if second.understood and all(intent.action not in ASKS for intent in second.intents):
        return second
    intent = first.intents[0]
    if intent.action is Action.ASSIGN and (who := person_in(meant, persons)):
        return replace(first, intents=(replace(intent, value=who),))
    if not intent.target or not (namings(f"- {meant}", lookup, least=1) or meant.lower().startswith("the ")):
        return None
    return replace(first, intents=(replace(intent, target=meant),))


def _of_one(line: str, lookup: WorkLookup, persons: frozenset[str]) -> Parsed:
    """Read a line, or one sentence of it."""

    def soundly(text: str) -> Parsed:
        return careful(text, parse(text), lookup, persons)

    if waits := read_condition(line, lookup):
        return waits
    plain = soundly(line)
    parsed = read_in_parts(line, plain, lookup, soundly)
    if parsed is plain or not parsed.understood:
        parsed = read_with_titles(line, plain, lookup, soundly)
        parsed = read_in_parts(line, parsed, lookup, soundly, asides=True)
    parsed = careful(line, bound_to_named(line, parsed), lookup, persons)
    if any(intent.action is Action.ASSIGN and _NOBODY.match(intent.value) for intent in parsed.intents):
        parsed = replace(parsed, intents=(), understood=False)
    parsed = read_made(line, parsed, lookup)
    return read_question(line, parsed, lookup, persons)


def is_sure(parsed: Parsed) -> bool:
    """Whether the rules have read a line, and no model is to be asked."""
    return parsed.understood and all(intent.sure >= _SURE for intent in parsed.intents)
