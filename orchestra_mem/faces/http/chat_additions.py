"""What is put before a chat's messages: each thing once in a talk, and always at the same place again. Pure.

A client sends its whole talk with every request, without what was added to earlier ones. What was added to a message is
therefore added to it again, so that a prompt begins with the bytes of the one before and a model server's prompt cache
serves it. Messages are known by the talk that led to them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cachetools import LRUCache

from orchestra_mem.core.search.echoes import plain_words
from orchestra_mem.types import Json

ChatMessage = Mapping[str, Json]
"""A message as a client sends it."""

_MOST_MESSAGES = 20_000
# Of a long talk the end is looked through for what it says already.
_LOOKED_THROUGH = 100_000


@dataclass(frozen=True, slots=True)
class Addition:
    """What is put before a message: `text` of so many `tokens`, from `sources` such as `K12` and `op 44`."""

    text: str = ""
    tokens: int = 0
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Talk:
    """A talk as a client sent it.

    `keys` name its messages by all that was said up to each; `asked` is the place of the user's last line, -1 for none.
    """

    messages: tuple[ChatMessage, ...]
    keys: tuple[str, ...]
    asked: int

    @classmethod
    def of(cls, messages: Sequence[ChatMessage], *, agent: str | None) -> Talk:
        """Read a client's messages. What it says as the system may change without making it another talk.

        The same words of two agents are two talks: neither is given what was added to the other's.
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
        """Whether the user's line is the last message, and not one that tools are at work for."""
        return self.asked == len(self.messages) - 1

    @property
    def question(self) -> str:
        """What the user has said last."""
        return text_of(self.messages[self.asked]) if self.asked >= 0 else ""

    @property
    def unanswered(self) -> tuple[int, ...]:
        """The places of what was said since the model last answered, without what the client says as the system."""
        roles = [message.get("role") for message in self.messages]
        last = max((place for place, role in enumerate(roles) if role == "assistant"), default=-1)
        return tuple(place for place in range(last + 1, len(roles)) if roles[place] not in ("system", "developer"))

    def says(self, additions: Iterable[str]) -> Callable[[str], bool]:
        """Give what tells whether a text stands in the talk already, word for word, or in what was added to it."""
        said = plain_words("\n".join([*map(text_of, self.messages), *additions])[-_LOOKED_THROUGH:])
        return lambda text: plain_words(text) in said


def text_of(message: ChatMessage) -> str:
    """What a message says; of one in parts the texts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def others_of(message: ChatMessage) -> int:
    """Count the parts of a message that are no texts: pictures, sounds, files."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return sum(not (isinstance(part, dict) and part.get("type") == "text") for part in parts)


class Additions:
    """Remembers what was added to which message. Safe to share between threads; the longest unused go first."""

    def __init__(self) -> None:
        self._of: LRUCache[str, Addition] = LRUCache(_MOST_MESSAGES)
        self._lock = threading.Lock()

    def of(self, talk: Talk) -> dict[int, Addition]:
        """The additions to a talk's earlier messages, by place."""
        with self._lock:
            found = {
                place: self._of[talk.keys[place]]
                for place, message in enumerate(talk.messages)
                if message.get("role") == "user" and talk.keys[place] in self._of
            }
        if talk.is_new:
            found.pop(talk.asked, None)  # the same words may begin another talk, on another day
        return found

    def keep(self, talk: Talk, additions: Mapping[int, Addition], room_tokens: int) -> dict[int, Addition]:
        """Remember the additions of a talk, and give those that there is room for.

        Where they are too many the oldest go for good, down to half the room, so that this happens seldom.
        """
        kept = dict(additions)
        if sum(each.tokens for each in kept.values()) > room_tokens:
            for place in sorted(kept):
                if place == talk.asked or sum(each.tokens for each in kept.values()) <= room_tokens // 2:
                    break
                kept[place] = Addition(sources=kept[place].sources)
            if sum(each.tokens for each in kept.values()) > room_tokens:
                kept[talk.asked] = Addition()
        with self._lock:
            self._of.update({talk.keys[place]: addition for place, addition in kept.items()})
        return kept


def with_additions(messages: Sequence[ChatMessage], additions: Mapping[int, Addition]) -> list[ChatMessage]:
    """Put additions before what messages say; all else of them stays as the client sent it."""
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
