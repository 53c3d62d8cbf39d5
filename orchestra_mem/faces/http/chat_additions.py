"""The additions to a chat's messages: keep them, and put each before the same message in every later request.

A client sends the complete conversation with every request, without the additions to earlier messages. Each addition is
therefore put before the same message again, so that a prompt begins with the bytes of the previous prompt, which a
model server's prompt cache can reuse. No memory is added twice to a conversation. A message is identified by a digest
of the conversation up to that message.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from cachetools import LRUCache

from orchestra_mem.core.search.echoes import plain_words
from orchestra_mem.faces.records import written_aside
from orchestra_mem.types import Json

ChatMessage = Mapping[str, Json]
"""A message in the form that a client sends."""

_MOST_MESSAGES = 20_000
_MOST_BYTES = 16 << 20  # of the file; some 5,000 messages with additions of usual size
_ANSWER_TOKENS = 1_024
_LOOKED_THROUGH = 100_000  # characters at the end of a conversation that are searched for repeated passages


STATE = "context"
"""The source of the project's state with its rules, where passages have such as `K12`."""


@dataclass(frozen=True, slots=True)
class Addition:
    """Text that is put before a message, its size in tokens, and its `sources`, such as `STATE`, `K12` and `op 44`."""

    text: str = ""
    tokens: int = 0
    sources: tuple[str, ...] = ()

    @property
    def has_state(self) -> bool:
        """Whether the text has the project's state with its rules, or had it until it made room."""
        return STATE in self.sources


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation as a client sent it.

    `keys` are digests of the conversation up to each message. `asked` is the index of the last user message, or -1.
    """

    messages: tuple[ChatMessage, ...]
    keys: tuple[str, ...]
    asked: int

    @classmethod
    def of(cls, messages: Sequence[ChatMessage], *, agent: str | None) -> Talk:
        """Build from a client's messages. The keys ignore system messages, which may change between requests.

        The agent is part of the keys, so that an agent never receives an addition made for another agent.
        """
        digest, keys = hashlib.sha256(repr(agent).encode()), []
        for message in messages:
            if message.get("role") not in ("system", "developer"):
                digest.update(f"{message.get('role')}\0{text_of(message)}\0".encode("utf-8", "surrogatepass"))
            keys.append(digest.hexdigest())
        users = [place for place, message in enumerate(messages) if message.get("role") == "user"]
        return cls(tuple(messages), tuple(keys), users[-1] if users else -1)

    @property
    def is_new(self) -> bool:
        """Whether the user's message is the last one, rather than followed by tool calls and their results."""
        return self.asked == len(self.messages) - 1

    @property
    def question(self) -> str:
        """The text of the last user message, "" if there is none."""
        return text_of(self.messages[self.asked]) if self.asked >= 0 else ""

    @property
    def answered(self) -> int:
        """The index of the last assistant message, or -1."""
        answers = (place for place, message in enumerate(self.messages) if message.get("role") == "assistant")
        return max(answers, default=-1)

    @property
    def unanswered(self) -> tuple[int, ...]:
        """The indexes of the messages after the last assistant message, without system messages."""
        roles = [message.get("role") for message in self.messages]
        after = range(self.answered + 1, len(roles))
        return tuple(place for place in after if roles[place] not in ("system", "developer"))

    def says(self, additions: Iterable[str]) -> Callable[[str], bool]:
        """Return a function that checks whether messages or `additions` have a text, ignoring case and punctuation."""
        said = plain_words("\n".join([*map(text_of, self.messages), *additions])[-_LOOKED_THROUGH:])
        return lambda text: plain_words(text) in said


def text_of(message: ChatMessage) -> str:
    """Return the text of a message; if it has several parts, the texts of its text parts, one a line."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def others_of(message: ChatMessage) -> list[str]:
    """Return the types of the parts of a message that are not text, such as `[image_url]`."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    types = [part.get("type") if isinstance(part, dict) else None for part in parts]
    return [f"[{each}]" for each in types if each != "text"]


def answer_tokens(body: Mapping[str, Json]) -> int:
    """Return the token limit that a request sets for its answer, by default `_ANSWER_TOKENS`."""
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    return asked if isinstance(asked, int) and asked > 0 else _ANSWER_TOKENS


class Additions:
    """A thread-safe LRU cache of the additions to messages. Its `file` supplies those of other and earlier processes.

    The file has a line of JSON for each addition. It may be deleted; unreadable lines, which a crash may leave, are
    skipped.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._of: LRUCache[str, Addition] = LRUCache(_MOST_MESSAGES)
        self._lock = threading.Lock()
        self._read_bytes = 0
        self._read()

    def _read(self) -> None:
        """Read the lines that were added to the file since; the last one again, as it may have been incomplete."""
        with suppress(OSError), self._file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size < self._read_bytes:  # halved, or deleted and written anew
                self._read_bytes = 0
            stream.seek(self._read_bytes)
            lines = stream.read()
            self._read_bytes += max(0, lines.rfind(b"\n"))
            for line in lines.split(b"\n"):
                with suppress(ValueError, TypeError, RecursionError):
                    key, text, tokens, sources = json.loads(line)
                    self._of[str(key)] = Addition(str(text), int(tokens), tuple(map(str, sources)))

    def of(self, talk: Talk) -> dict[int, Addition]:
        """Return the additions to the messages of a conversation, by index."""
        with self._lock:
            self._read()
            return {
                place: self._of[talk.keys[place]]
                for place, message in enumerate(talk.messages)
                if message.get("role") == "user" and talk.keys[place] in self._of
            }

    def keep(self, talk: Talk, additions: Mapping[int, Addition], room_tokens: int) -> dict[int, Addition]:
        """Store the additions of a conversation, and return those that fit `room_tokens`.

        If the additions do not fit, the oldest lose their text permanently, until the rest fills at most half of the
        room, so that the prompt's prefix changes seldom. One with the project's state loses its text last, and only if
        the rest still does not fit. Sources are kept, so that no memory is added again.
        """
        kept, total = dict(additions), sum(each.tokens for each in additions.values())
        if total > room_tokens:
            older = [place for place in kept if place != talk.asked]
            for place in sorted(older, key=lambda place: (kept[place].has_state, place)):
                if total <= (room_tokens if kept[place].has_state else room_tokens // 2):
                    break
                total -= kept[place].tokens
                kept[place] = Addition(sources=kept[place].sources)
            if total > room_tokens:
                kept[talk.asked] = Addition()
        with self._lock:
            changed = {talk.keys[place]: each for place, each in kept.items() if self._of.get(talk.keys[place]) != each}
            self._of.update(changed)
            if changed:
                self._append(changed)
        return kept

    def _append(self, changed: Mapping[str, Addition]) -> None:
        """Append additions to the file, and halve it if it is too large. If that fails, a restart loses additions."""
        lines = "".join(f"\n{json.dumps([key, *astuple(each)])}" for key, each in changed.items())
        with suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)  # not its parents: a removed memory stays removed
            with self._file.open("ab") as stream:
                stream.write(lines.encode())
                size = stream.tell()
            if size > _MOST_BYTES:
                with written_aside(self._file, self._file.read_bytes()[-_MOST_BYTES // 2 :], 0o666) as aside:
                    os.replace(aside, self._file)


def with_additions(messages: Sequence[ChatMessage], additions: Mapping[int, Addition]) -> list[ChatMessage]:
    """Put additions before the contents of their messages; everything else stays as the client sent it."""
    return [
        {**message, "content": _before(additions[place].text, message.get("content"))}
        if place in additions and additions[place].text
        else message
        for place, message in enumerate(messages)
    ]


def _before(added: str, content: Json) -> Json:
    if isinstance(content, list):
        return [{"type": "text", "text": added}, *content]
    return f"{added}\n{content or ''}"
