"""Mark text that is recalled from the memory, and recognise it when it is recorded again.

A fence around recalled text has one backtick more than the text's longest run of backticks; `recalled` and the source
follow the opening fence. When an operation is indexed, fenced recalled text is left out, because it is in the index
already. Sentences that a model was shown recently are left out too, if the operation repeats them verbatim.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable

from orchestra_mem.core.context.assembly import PREAMBLE
from orchestra_mem.core.text import split_sentences, visible
from orchestra_mem.types import SHOWN, Json

MARK = "recalled"

LEAST_WORDS = 6
"""Minimum number of words of a sentence or line to be recognised: shorter ones are often repeated by chance."""

_RUN = re.compile(r"`+")
# A fence that is not closed, as in a text that was cut, extends to the end.
_FENCED = re.compile(
    rf"^(?P<fence>`{{3,}}){MARK} [^\n`]*\n.*?(?:^(?P=fence)[ \t]*(?:\n|\Z)|\Z)", re.DOTALL | re.MULTILINE
)
_FRAME = re.compile(r'^<memory part="[a-z_]+"[^>\n]*>\n', re.MULTILINE)
_ADDED = re.compile(r"\[\d{4}-\d\d-\d\d[^\]\n]*\]|\((?:K|S|op )\d+\)")
_WORD = re.compile(r"\w+")
_LABEL = re.compile(
    r"^(?:[\s>#+-]|\*(?=\s))*(?:\*\*[^*\n]{1,80}\*\*:?\s*|[^\n]{1,160}?\(op \d+\): |\[[^\]\n]{1,40}\]\s*)?"
)
_MOST_DEPTH = 50
_NAMES = frozenset("title subject name task task_title goal item command intent".split())


def fenced(text: str, source: str) -> str:
    """Fence a text as data from `source`, which follows the opening backticks in one line.

    Nothing in the text can end the fence. Characters that a text file cannot hold become escapes.
    """
    body = visible(text).strip("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in _RUN.findall(body)), default=0))
    named = " ".join(visible(source).replace("`", "'").split())
    return f"{fence}{MARK} {named}\n{body}\n{fence}\n"


def without_recalled(value: Json) -> Json:
    """Copy a JSON value without text that this memory has rendered: marked fences, contexts, and answers in `SHOWN`.

    A context is left out up to the end of the string that contains it, because nothing marks its end.
    """
    if isinstance(value, dict):  # the program adds this field only at the top level; deeper, it is the user's
        value = {name: item for name, item in value.items() if name != SHOWN}
    return _with_texts(value, lambda text, name: _own_text(text))


def _with_texts(value: Json, change: Callable[[str, str], str], name: str = "", depth: int = 0) -> Json:
    """Copy a JSON value with each string replaced by `change(string, field name)`, to a depth of 50."""
    if isinstance(value, str):
        return change(value, name)
    if depth >= _MOST_DEPTH:
        return value
    if isinstance(value, dict):
        return {key: _with_texts(item, change, key, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_texts(item, change, name, depth + 1) for item in value]
    return value


def _own_text(text: str) -> str:
    if f"``{MARK} " in text:
        text = _FENCED.sub("", text)
    if '<memory part="' in text and (frame := _FRAME.search(text)):
        text = text[: frame.start()]
    return text.replace(PREAMBLE, "")


def plain_words(text: str) -> str:
    """Return the words of a text, case-folded and joined by spaces: equal for texts with the same words in order."""
    return " ".join(_WORD.findall(text.casefold()))


def own_words(text: str) -> str:
    """Return `plain_words` without the times and references that documents add to a memory's text."""
    return plain_words(_ADDED.sub(" ", text))


class Echoes:
    """Hashes of the sentences that a model was shown recently, each with the id of the newest operation at that time.

    At most `max_sentences`; the oldest are evicted. Safe to share between threads.
    """

    def __init__(self, max_sentences: int = 2_048) -> None:
        self._max = max_sentences
        self._after: dict[str, int] = {}
        self._loaded = ""
        self._lock = threading.Lock()
        self.changed = False

    def note(self, passages: Iterable[str], *, after: int) -> None:
        """Record the sentences of passages that a model is shown now; `after` is the id of the newest operation."""
        hashes = [found for passage in passages for sentence in split_sentences(passage) if (found := _hash(sentence))]
        with self._lock:
            for each in hashes:
                if each not in self._after:
                    self._after[each] = after
                    self.changed = True
            self._forget()

    def without(self, value: Json, operation: int) -> Json:
        """Copy the data of an operation, with id `operation`, without the sentences that a model was shown earlier.

        Titles and names stay, so that work on a thing is found by the thing's name.
        """
        if not self._after:
            return value
        return _with_texts(value, lambda text, name: text if name in _NAMES else self._own_sentences(text, operation))

    def _own_sentences(self, text: str, operation: int) -> str:
        sentences = split_sentences(text)
        own = [sentence for sentence in sentences if self._after.get(_hash(sentence), operation) >= operation]
        return text if len(own) == len(sentences) else "\n".join(own)

    def dump(self) -> str:
        """Serialise everything for `load`, in this process or another."""
        with self._lock:
            self.changed = False
            self._loaded = " ".join(f"{each}:{after}" for each, after in self._after.items())
            return self._loaded

    def load(self, text: str) -> None:
        """Add the sentences from a text of `dump`; a sentence that is known already keeps its operation."""
        if text == self._loaded:
            return
        pairs = (each.partition(":") for each in text.split())
        found = {name: int(after) for name, _, after in pairs if after.isdecimal()}
        with self._lock:
            self._loaded = text
            self._after = found | self._after
            self._forget()

    def _forget(self) -> None:
        while len(self._after) > self._max:
            del self._after[next(iter(self._after))]


def _hash(sentence: str) -> str:
    """Return the hash of a sentence without list marks and labels before it; empty if it is too short."""
    words = own_words(_LABEL.sub("", sentence, count=1))
    if words.count(" ") < LEAST_WORDS - 1:
        return ""
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:12]
