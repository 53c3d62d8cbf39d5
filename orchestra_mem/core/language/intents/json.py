"""Intents as JSON: the schema that a model's answer obeys by grammar, and the check of what it answered."""

from __future__ import annotations

from collections.abc import Mapping

from orchestra_mem.core.language.intents.types import Action, Intent, Parsed
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkKind

MAX_INTENTS = 16
MAX_TITLES = 100
MAX_COUNT = 1_000
_PHRASES = ("target", "other", "value")
_KEYS = frozenset({"action", "kind", "count", "titles", *_PHRASES, "sure"})
_DEFAULT_SURE = 0.7  # a model tells no measure of its own that would mean something


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


def from_json(value: Json) -> Parsed:
    """Read what a model answered, any JSON whatever: `{"intents": [...]}` or the list alone.

    Where anything is wrong nothing is understood, and all faults are told together: half an answer is none.
    """
    listed = value.get("intents") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        return _refused([f"a list of intents was expected, not {_name(listed)}"])
    if len(listed) > MAX_INTENTS:
        return _refused([f"{len(listed)} intents are more than {MAX_INTENTS}"])
    faults: list[str] = []
    intents = [_intent(entry, f"intents[{place}]", faults) for place, entry in enumerate(listed)]
    if faults:
        return _refused(faults)
    read = tuple(intent for intent in intents if intent)
    return Parsed(intents=read, understood=bool(read), reason="" if read else "it asks for nothing that is known here")


def _refused(faults: list[str]) -> Parsed:
    return Parsed(intents=(), understood=False, reason="; ".join(faults))


def _intent(entry: Json, place: str, faults: list[str]) -> Intent | None:
    if not isinstance(entry, dict):
        faults.append(f"{place} is {_name(entry)}, not an object")
        return None
    found = [f"{place}.{key} is not known" for key in entry if key not in _KEYS]
    action, kind = entry.get("action"), entry.get("kind")
    if action not in list(Action):
        found.append(f"{place}.action is {action!r}: none of {', '.join(Action)}")
    if kind is not None and kind not in list(WorkKind):
        found.append(f"{place}.kind is {kind!r}: none of {', '.join(WorkKind)}")
    found += _faults_of_values(entry, place)
    if found:
        faults += found
        return None
    titles, sure = entry.get("titles", []), entry.get("sure", _DEFAULT_SURE)
    assert isinstance(titles, list)
    return Intent(
        action=Action(str(action)),
        kind=WorkKind(str(kind)) if kind is not None else None,
        count=_whole(entry.get("count", 0)),
        titles=tuple(title for title in (str(title).strip() for title in titles) if title),
        sure=float(sure) if isinstance(sure, int | float) else _DEFAULT_SURE,
        **{name: str(entry.get(name, "")).strip() for name in _PHRASES},
    )


def _faults_of_values(entry: Mapping[str, Json], place: str) -> list[str]:
    found = []
    count, titles, sure = entry.get("count", 0), entry.get("titles", []), entry.get("sure", _DEFAULT_SURE)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_COUNT:
        found.append(f"{place}.count is {_shown(count)}: a whole number from 0 to {MAX_COUNT} was expected")
    if not isinstance(titles, list) or not all(isinstance(title, str) for title in titles):
        found.append(f"{place}.titles is {_shown(titles)}: a list of texts was expected")
    elif len(titles) > MAX_TITLES:
        found.append(f"{place}.titles has {len(titles)}: at most {MAX_TITLES} are taken")
    if not isinstance(sure, int | float) or isinstance(sure, bool) or not 0 <= sure <= 1:
        found.append(f"{place}.sure is {_shown(sure)}: a number from 0 to 1 was expected")
    found += [
        f"{place}.{name} is {_name(entry[name])}, not a text"
        for name in _PHRASES
        if not isinstance(entry.get(name, ""), str)
    ]
    return found


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _name(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
