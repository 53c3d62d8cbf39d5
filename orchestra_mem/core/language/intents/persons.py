"""Persons: which words can name one."""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.phrases import is_named
from orchestra_mem.core.language.intents.verbs import base_of

_NO_PERSON = re.compile(
    r"(?:us|nobody|anybody|anyone|not|never|me not|the|a|an|this|that|it|its|these|those|later|tomorrow|"
    r"today|next|done|progress|high|"
    r"low|medium|urgent|critical|to|be|not|do|is|are|and|or|in|on|"
    r"create|add|start|finish|block|cancel|start|close|what|who|how|why|which|if|when|we|you|he|she|they|there|"
    r"should|will|could|would|please|#?\d+|all|both|everything|no|nothing)(?: .*)?",
    re.IGNORECASE,
)


_THING = re.compile(
    r"\b(?:title|name|label|priority|prio|status|state|nod|boot|chop|axe|rest|break|tick|hold|ice|note|comment|"
    r"deadline)\b"
)
SENTENCE = re.compile(
    r"\b(?:us|not|would|could|should|can|will|be|been|is|are|was|like|want|need|assigned|have|has|do|does|did|we|you|"
    r"they|and|or|if|"
    r"with|on|in|i \S+)\b"
)


def person_in(said: str) -> str:
    """Give whom a name means: "me" for the speaker, empty for what is no name."""
    said = re.sub(r"^(?:to|user|dev|developer)\s+(?=\S)", "", said.strip(" .,!"), flags=re.IGNORECASE)
    if said.lower() in ("me", "myself", "i", "me please", "my self"):
        return "me"
    if (
        "," in said
        or _THING.search(said.lower())
        or any(word.isdecimal() for word in said.split())
        or is_named(said.lower())
        or (said.islower() and base_of(said.split()[0], ends=("ing",)))
        or said == "going"
    ):
        return ""
    if re.fullmatch(
        r"the (?!top|bottom|end|front|back|backlog|list|next|last|other|plan|board|side|rest)[^\d#]+", said.lower()
    ):
        return said
    return "" if not said or _NO_PERSON.fullmatch(said) else said.removeprefix("@")
