"""Lines read by the language model: JSON that a schema binds, checked, and never more than a suggestion."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

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
            intents = intents_from_json(json.loads(answer.text))
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
    kinds: list[Json] = [*(kind.value for kind in WorkKind), None]
    properties: dict[str, Json] = {
        "action": {"type": "string", "enum": [action.value for action in Action]},
        "kind": {"enum": kinds},
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


def intents_from_json(value: Json) -> tuple[Intent, ...]:
    """Read what a model answered, any JSON whatever; half an answer is none.

    Raises:
        ValueError: it is not what the schema says; all faults are told together.
    """
    listed = value.get("intents") if isinstance(value, dict) else value
    if not isinstance(listed, list) or len(listed) > MAX_INTENTS:
        raise ValueError(f"a list of at most {MAX_INTENTS} intents was expected, not {str(listed)[:80]!r}")
    faults = [fault for place, entry in enumerate(listed) for fault in _faults(entry, f"intents[{place}]")]
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(_intent(entry) for entry in listed if isinstance(entry, dict))


def _faults(entry: Json, place: str) -> list[str]:
    """Say what in an entry is not as the schema wants it."""
    if not isinstance(entry, dict):
        return [f"{place} is not an object"]
    count, titles, kind = entry.get("count", 0), entry.get("titles", []), entry.get("kind")
    faults = [f"{place}.{key} is not known" for key in entry if key not in _KEYS]
    if entry.get("action") not in list(Action):
        faults.append(f"{place}.action is {entry.get('action')!r}: none of {', '.join(Action)}")
    if kind is not None and kind not in list(WorkKind):
        faults.append(f"{place}.kind is {kind!r}: none of {', '.join(WorkKind)}")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_COUNT:
        faults.append(f"{place}.count is {count!r}: a whole number from 0 to {MAX_COUNT} was expected")
    if not isinstance(titles, list) or len(titles) > MAX_TITLES or not all(isinstance(each, str) for each in titles):
        faults.append(f"{place}.titles is not a list of at most {MAX_TITLES} texts")
    return faults + [f"{place}.{name} is not a text" for name in _PHRASES if not isinstance(entry.get(name, ""), str)]


_KEYS = frozenset({"action", "kind", "count", "titles", *_PHRASES})


def _intent(entry: Mapping[str, Json]) -> Intent:
    titles, count, kind = entry.get("titles"), entry.get("count"), entry.get("kind")
    said = [str(title).strip() for title in titles] if isinstance(titles, list) else []
    return Intent(
        action=Action(str(entry["action"])),
        kind=WorkKind(str(kind)) if kind else None,
        count=count if isinstance(count, int) else 0,
        titles=tuple(title for title in said if title),
        sure=_SURE,
        **{name: str(entry.get(name, "")).strip() for name in _PHRASES},
    )


def _stands_in(intent: Intent, line: str) -> bool:
    """Tell whether all that a model has read in a line stands there."""
    words = " ".join(line.casefold().split())
    value = "" if intent.action is Action.PRIORITISE and intent.value in _LEVELS else intent.value
    told = (intent.target, intent.other, value, *intent.titles)
    return all(" ".join(said.casefold().split()) in words for said in told)
