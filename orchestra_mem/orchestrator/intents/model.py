"""Lines read by the language model: JSON that a schema binds, checked, and never more than a suggestion."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from orchestra_mem.core.prompts import intent_prompt
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.orchestrator.intents.rendering import as_command
from orchestra_mem.orchestrator.intents.types import DESTRUCTIVE, Action, Intent, Parsed
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkKind

logger = logging.getLogger(__name__)

MAX_INTENTS, MAX_TITLES, MAX_COUNT = 16, 100, 1_000
_PHRASES = ("target", "other", "value")
_LEVELS = frozenset({"1", "2", "3", "4", "5", "higher", "lower"})
_SURE = 0.7  # a model tells no measure of its own that would mean something
_ANSWER_TOKENS = 400
_TIMEOUT_S = 30.0


class ModelReader:
    """Asks a model where the grammar has not read a line.

    Args:
        model: answers by a schema; without one the classifier's suggestion stands.
        foreground: keeps background work off the model meanwhile.
    """

    def __init__(self, model: LanguageModel | None, foreground: Callable[[], AbstractContextManager[None]]) -> None:
        self._model = model
        self._foreground = foreground

    def suggest(self, line: str, parsed: Parsed) -> Parsed:
        """Put the model's reading of a line before the classifier's, where it holds; `understood` stays False.

        What takes away is taken from the model only where the classifier has read it as well.
        """
        if parsed.understood or self._model is None:
            return parsed
        try:
            with self._foreground():
                answer = self._model.generate(
                    intent_prompt(line), max_tokens=_ANSWER_TOKENS, schema=intent_schema(), timeout_s=_TIMEOUT_S
                )
            intents = intents_from_json(answer.text)
        except (ModelError, ValueError) as error:
            logger.warning("the model could not read a line: %s", error)
            return parsed
        known = {intent.action for intent in parsed.intents}
        if any(intent.action in DESTRUCTIVE - known or not _stands_in(intent, line) for intent in intents):
            return parsed
        command = ["; ".join(map(as_command, intents))] if intents else []
        return replace(parsed, intents=intents, nearest=tuple(dict.fromkeys([*command, *parsed.nearest]))[:3])


def intent_schema() -> dict[str, Json]:
    """Give the JSON schema of a list of intents; an empty list where a line asks for nothing."""
    properties: dict[str, Json] = {
        "action": {"type": "string", "enum": [action.value for action in Action]},
        "kind": {"enum": [*(kind.value for kind in WorkKind), None]},
        "count": {"type": "integer", "minimum": 0, "maximum": MAX_COUNT},
        "titles": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_TITLES},
        **{name: {"type": "string"} for name in _PHRASES},
    }
    item: Json = {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}
    intents: Json = {"type": "array", "items": item, "maxItems": MAX_INTENTS}
    return {
        "type": "object",
        "properties": {"intents": intents},
        "required": ["intents"],
        "additionalProperties": False,
    }


class _Read(BaseModel):
    """An intent as a model tells it."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)
    action: Action
    kind: WorkKind | None = None
    count: int = Field(0, ge=0, le=MAX_COUNT, strict=True)
    titles: tuple[str, ...] = Field((), max_length=MAX_TITLES)
    target: str = ""
    other: str = ""
    value: str = ""


class _Answer(BaseModel):
    intents: list[_Read] = Field(max_length=MAX_INTENTS)


def intents_from_json(answer: str) -> tuple[Intent, ...]:
    """Read what a model answered, any text whatever; half an answer is none.

    Raises:
        ValueError: it is not what the schema says; all faults are told together, each with its place.
    """
    return tuple(Intent(**dict(read), sure=_SURE) for read in _Answer.model_validate_json(answer).intents)


def _stands_in(intent: Intent, line: str) -> bool:
    """Tell whether all that a model has read in a line stands there."""
    words = " ".join(line.casefold().split())
    value = "" if intent.action is Action.PRIORITISE and intent.value in _LEVELS else intent.value
    told = (intent.target, intent.other, value, *intent.titles)
    return all(" ".join(said.casefold().split()) in words for said in told)
