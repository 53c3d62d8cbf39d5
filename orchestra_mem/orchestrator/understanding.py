"""Reading lines: by rules where they are sure, by a model where there is one and they are not."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager

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
from orchestra_mem.core.language.listing import read_listing
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import read_with_titles
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import LanguageModel, Message, Role

logger = logging.getLogger(__name__)

_SURE = 0.6
_ASKING = re.compile(r"\W*(?:who|what|why|when|where|how|show|list|find)\b", re.IGNORECASE)
_YES = frozenset("y|yes|yep|yeah|ok|okay|sure|do it|do that|yes please|yes do it|go ahead|please do".split("|"))
_NO = frozenset("n|no|nope|don't|do not|no thanks|leave it|never mind|nevermind|stop|forget it".split("|"))
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

    def read(self, line: str, lookup: WorkLookup) -> Parsed:
        """Read what a line asks for; `lookup` finds the items that it names."""
        parsed = read_with_titles(line, parse(line), lookup, parse)
        if not parsed.understood and _ASKING.match(line) and read_listing(line).assignee is not None:
            return Parsed(intents=(Intent(action=Action.LIST),), understood=True)
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

    def is_command(self, line: str) -> bool:
        """Whether a line surely tells to do something, or asks in a sentence, by the rules alone."""
        parsed = parse(line)
        asks = _ASKING.match(line) is not None
        return _is_sure(parsed) and (asks or any(intent.action not in ASKS for intent in parsed.intents))


def _is_sure(parsed: Parsed) -> bool:
    return parsed.understood and all(intent.sure >= _SURE for intent in parsed.intents)


def is_yes(line: str) -> bool:
    """Whether a line says yes to a question."""
    return _plain(line) in _YES


def is_no(line: str) -> bool:
    """Whether a line says no to a question."""
    return _plain(line) in _NO


def _plain(line: str) -> str:
    return " ".join(line.lower().replace(",", " ").replace("\u2019", "'").strip(" .!\t\r\n").split())
