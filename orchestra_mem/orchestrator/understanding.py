"""Reading lines: by rules where they are sure, by a model where there is one and they are not."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from orchestra_mem.core.language.asked import read_question
from orchestra_mem.core.language.intents.parsing import (
    ASKS,
    DESTRUCTIVE,
    Action,
    Parsed,
    from_json,
    intent_schema,
    parse,
)
from orchestra_mem.core.language.made import read_made
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import read_with_titles
from orchestra_mem.core.language.parts import bound_to_named, read_in_parts
from orchestra_mem.core.language.persons import persons_in
from orchestra_mem.core.language.told import read_told
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import LanguageModel, Message, Role

logger = logging.getLogger(__name__)

_SURE = 0.6
_NOBODY = re.compile(r"(?:maybe|perhaps|possibly|probably|someone|somebody|anyone|anybody|whoever)\b", re.IGNORECASE)
_ASKING = re.compile(r"\W*(?:who|what|why|when|where|how|show|list|find)\b", re.IGNORECASE)
_ANSWER_TOKENS = 400
_TIMEOUT_S = 30.0
_INSTRUCTIONS = (
    "You read one line of a person who manages milestones, epics, stories and tasks, and say as JSON what it asks for. "
    "Copy phrases that refer to items word for word. Where it asks for none of the known actions, give an empty list."
)


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
        """Read what a line asks for; `parsed` is what the rules have made of it."""
        if _is_sure(parsed) or self._model is None:
            return parsed
        messages = (Message(role=Role.SYSTEM, text=_INSTRUCTIONS), Message(role=Role.USER, text=line))
        try:
            with self._foreground():
                answer = self._model.generate(
                    messages, max_tokens=_ANSWER_TOKENS, schema=intent_schema(), timeout_s=_TIMEOUT_S
                )
            read = from_json(json.loads(answer.text))
        except (ModelError, ValueError) as error:
            logger.warning("the model could not read a line: %s", error)
            return parsed
        # What takes away is believed only where the rules have read it as well.
        known = {intent.action for intent in parsed.intents}
        if not read.understood or any(intent.action in DESTRUCTIVE - known for intent in read.intents):
            return parsed
        return read


def is_command(line: str, parsed: Parsed) -> bool:
    """Whether a line surely tells to do something, or asks in a sentence, by what the rules have made of it."""
    asks = _ASKING.match(line) is not None
    return _is_sure(parsed) and (asks or any(intent.action not in ASKS for intent in parsed.intents))


def by_rules(line: str, lookup: WorkLookup) -> Parsed:
    """Read a line without a model; `lookup` finds the items that it names.

    By its words, by the titles in it, clause by clause, and at last by what it seems to be about.
    """
    plain = parse(line)
    parsed = read_in_parts(line, plain, lookup, parse)
    if parsed is plain or not parsed.understood:
        parsed = read_with_titles(line, plain, lookup, parse)
        parsed = read_in_parts(line, parsed, lookup, parse, asides=True)
    parsed = bound_to_named(line, parsed)
    if any(intent.action is Action.ASSIGN and _NOBODY.match(intent.value) for intent in parsed.intents):
        parsed = replace(parsed, intents=(), understood=False)
    parsed = read_made(line, parsed, lookup)
    parsed = read_question(line, parsed, lookup, persons_in(lookup))
    return read_told(line, parsed, lookup)


def _is_sure(parsed: Parsed) -> bool:
    return parsed.understood and all(intent.sure >= _SURE for intent in parsed.intents)
