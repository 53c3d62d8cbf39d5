"""Persons: which words can name one."""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.phrases import is_named
from orchestra_mem.core.language.intents.verbs import base_of

_NO_PERSON = re.compile(
    r"(?:us|nobody|someone|somebody|everyone|everybody|yours|anybody|anyone|not|never|me not|the|a|an|this|that|"
    r"it|its|these|those|later|tomorrow|"
    r"today|next|done|progress|high|"
    r"low|medium|urgent|critical|to|be|not|do|is|are|and|or|in|on|"
    r"create|add|start|finish|block|cancel|start|close|what|who|how|why|which|if|when|we|you|he|she|they|there|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|july|august|september|october|"
    r"november|december|indefinitely|winter|spring|autumn|"
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


_FUNCTION = frozenset(
    "a an at on up off out round about over into with by from for some any no my our your short away back".split()
)


_MARK = re.compile(r"[,:;!?()\"]| - |[\u2019']s ")


def _is_no_name(word: str) -> bool:
    """Tell whether a word in small letters can be no part of a name: "made", "round", "a"."""
    of = verb_forms().get(word)
    return word in _FUNCTION or (of is not None and all(what <= {"past", "done"} for what in of.values()))


def person_in(said: str) -> str:
    """Give whom a name means: "me" for the speaker, empty for what is no name."""
    said = re.sub(r"^(?:to|user|dev|developer)\s+(?=\S)", "", said.strip(" .,!"), flags=re.IGNORECASE)
    if said.lower() in ("me", "myself", "i", "me please", "my self"):
        return "me"
    if (
        _MARK.search(said)
        or _THING.search(said.lower())
        or any(word.isdecimal() for word in said.split())
        or is_named(said.lower())
        or any(map(_is_no_name, said.split()))
        or (said.islower() and base_of(said.split()[0], ends=("ing",)))
        or said == "going"
    ):
        return ""
    if re.fullmatch(
        r"the (?!\S+ing$|\S+ \S+ing$|top|bottom|end|front|back|backlog|list|next|last|other|plan|board|side|"
        r"rest)[^\d#]+",
        said.lower(),
    ):
        return said
    return "" if not said or _NO_PERSON.fullmatch(said) else said.removeprefix("@")
