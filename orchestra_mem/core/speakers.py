"""Who speaks in an operation: a person, a model or a commit, by the operation's type and the role and names in it."""

from __future__ import annotations

import re
from enum import StrEnum

from orchestra_mem.types import CUT, Json, MustKeep, MustKeepKind, Operation

PEOPLE = frozenset("user human person developer system".split())
"""Roles of people. Whoever writes a system prompt or a developer's message is one."""
_MODELS = frozenset("assistant agent model ai llm bot subagent".split())
ASKING_TYPES = frozenset({"nl_command", "user_message"})
"""Types of operations that hold what a person says to a model."""
_MODEL_TYPES = re.compile(r"(?:^|_)(?:assistant|llm|model_(?:message|response|output|reply)|thinking)(?:_|$)")
_NAMES = ("speaker", "author", "user", "from", "sender", "name", "who")
_MAX_NAME_CHARS = 40
_FIRST_PERSON = r"\b(?:i|i'm|i'll|my|me|ich|mein\w*|yo|mi|je|j'|mon|ma|я|мой|моя)\b|我"
_SAYS_I = re.compile(_FIRST_PERSON, re.IGNORECASE)
_NAMED = re.compile(rf"\A[^:\n]{{1,{_MAX_NAME_CHARS}}}: (?=.*(?:{_FIRST_PERSON}))", re.IGNORECASE | re.DOTALL)
_COMMIT_TYPES = re.compile(r"(?:^|_)commits?(?:_|$)")
_COMMIT_KEYS = frozenset({"hash", "sha", "commit", "files", "files_changed"})


class Voice(StrEnum):
    """Author of a text. People make decisions; models, pasted texts and commit messages mostly describe them."""

    PERSON = "person"
    MODEL = "model"
    PASTED = "pasted"
    COMMIT = "commit"

    @property
    def judged_as(self) -> Voice:
        """The voice that the classifier knows: a pasted text is judged as a model's."""
        return Voice.MODEL if self is Voice.PASTED else self


def voice_of_type(operation: Operation) -> Voice:
    """Return the voice of an operation whose data name neither a role nor a speaker; a person's if nothing tells.

    The message of a commit says in the imperative what was done.
    """
    data, kind = operation.data, operation.type.lower()
    has_commit = isinstance(data, dict) and "subject" in data and not _COMMIT_KEYS.isdisjoint(data)
    if has_commit or _COMMIT_TYPES.search(kind):
        return Voice.COMMIT
    return Voice.MODEL if _MODEL_TYPES.search(kind) else Voice.PERSON


def voice_in(role: Json, speaker: str, around: Voice) -> Voice:
    """Return the voice of a mapping: by its role, else by its speaker, else the voice `around` it."""
    for name in (role, speaker):
        if name and isinstance(name, str) and around is not Voice.COMMIT:
            if name.lower() in _MODELS:
                return Voice.MODEL
            if name.lower() in PEOPLE:
                return Voice.PERSON
    return around


def speaker_in(value: dict[str, Json]) -> str:
    """Return the name of who speaks in a mapping; empty if it has none."""
    for key in _NAMES:
        name = value.get(key)
        if isinstance(name, str) and 0 < len(name) <= _MAX_NAME_CHARS and "\n" not in name:
            return name.strip()
    return ""


def with_speaker(text: str, speaker: str, kind: MustKeepKind) -> str:
    """Put a speaker's name before a role or rule in the first person, unless it only names a role such as `user`."""
    is_of_one = kind in (MustKeepKind.ROLE, MustKeepKind.CONSTRAINT) and _SAYS_I.search(text) is not None
    return f"{speaker}: {text}" if is_of_one and speaker and speaker.lower() not in PEOPLE else text


def passage_of(fact: MustKeep) -> str:
    """Return the passage of the operation that states a fact, without the mark of a cut and its speaker's name."""
    return _NAMED.sub("", (fact.found or fact.text).removesuffix(CUT))


def voice_of(operation: Operation) -> Voice:
    """Return the voice of an operation as a whole, a person's if nothing tells."""
    data, voice = operation.data, voice_of_type(operation)
    return voice_in(data.get("role"), speaker_in(data), voice) if isinstance(data, dict) else voice


def is_from_person(operation: Operation) -> bool:
    """Check whether an operation says, by its role, its type or a `speaker`, that a person said it, and no model."""
    data, asks = operation.data, operation.type.lower() in ASKING_TYPES
    if not isinstance(data, dict) or not data:
        return asks and isinstance(data, str) and bool(data)
    role = data.get("role")
    has_role = isinstance(role, str) and role.lower() in PEOPLE
    is_said = has_role or asks or ("speaker" in data and not holds_output(operation))
    return is_said and voice_of(operation) is not Voice.MODEL


def holds_output(operation: Operation) -> bool:
    """Check whether an operation holds what a tool printed."""
    return isinstance(operation.data, dict) and not operation.data.keys().isdisjoint(("output", "stdout", "stderr"))
