"""The memory's part in a chat: add relevant memories to the prompt, and record the messages.

A client sends the complete conversation with every request, without the additions to earlier messages. Each addition is
therefore put before the same message again, so that a prompt begins with the bytes of the previous prompt, which a
model server's prompt cache can reuse. No memory is added twice to a conversation. A message is identified by a digest
of the conversation up to that message.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from cachetools import LRUCache

from orchestra_mem.core.search.echoes import fenced, plain_words
from orchestra_mem.core.text import neutralise
from orchestra_mem.errors import ModelError, OrchestraMemError
from orchestra_mem.faces.records import Caller
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.settings import ServerSettings
from orchestra_mem.types import Json, OperationFilter

ChatMessage = Mapping[str, Json]
"""A message in the form that a client sends."""

_MOST_MESSAGES = 20_000
_LOOKED_THROUGH = 100_000  # characters at the end of a conversation that are searched for repeated passages


@dataclass(frozen=True, slots=True)
class Addition:
    """Text that is put before a message, its size in tokens, and its `sources`, such as `K12` and `op 44`."""

    text: str = ""
    tokens: int = 0
    sources: tuple[str, ...] = ()


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
    def unanswered(self) -> tuple[int, ...]:
        """The indexes of the messages after the last assistant message, without system messages."""
        roles = [message.get("role") for message in self.messages]
        last = max((place for place, role in enumerate(roles) if role == "assistant"), default=-1)
        return tuple(place for place in range(last + 1, len(roles)) if roles[place] not in ("system", "developer"))

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


class Additions:
    """A thread-safe LRU cache of the additions to messages."""

    def __init__(self) -> None:
        self._of: LRUCache[str, Addition] = LRUCache(_MOST_MESSAGES)
        self._lock = threading.Lock()

    def of(self, talk: Talk) -> dict[int, Addition]:
        """Return the additions to the messages of a conversation, by index."""
        with self._lock:
            return {
                place: self._of[talk.keys[place]]
                for place, message in enumerate(talk.messages)
                if message.get("role") == "user" and talk.keys[place] in self._of
            }

    def keep(self, talk: Talk, additions: Mapping[int, Addition], room_tokens: int) -> dict[int, Addition]:
        """Store the additions of a conversation, and return those that fit `room_tokens`.

        If the additions do not fit, the oldest lose their text permanently, until the rest fills at most half of the
        room, so that the prompt's prefix changes seldom. Sources are kept, so that no memory is added again.
        """
        kept, total = dict(additions), sum(each.tokens for each in additions.values())
        if total > room_tokens:
            for place in sorted(kept):
                if place == talk.asked or total <= room_tokens // 2:
                    break
                total -= kept[place].tokens
                kept[place] = Addition(sources=kept[place].sources)
            if total > room_tokens:
                kept[talk.asked] = Addition()
        with self._lock:
            self._of.update({talk.keys[place]: addition for place, addition in kept.items()})
        return kept


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


_MOST_HITS = 12
_END = b"[DONE]"
_ANSWER_TOKENS = 1_024
_MARKS_TOKENS = 8  # upper limit of the tokens that a chat template adds to a message
# An image takes 256 tokens with Gemma 3, 576 with LLaVA 1.5, 765 with GPT-4o, 1,369 with Qwen2.5-VL at 1036 x 1036.
_PICTURE_TOKENS = 1_024
# An unanswered message repeated within one interval of this length is a client's retry, and is not recorded again.
_SAME_SAYING_S = 600


@dataclass(slots=True, kw_only=True)
class Collected:
    """The answer of a model as received so far. `finish` is "" until known; `ended` is set by the event `[DONE]`."""

    text: str = ""
    finish: str = ""
    ended: bool = False
    tools: dict[int, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of_body(cls, raw: bytes) -> Collected:
        """Parse a complete response body; an invalid body gives an empty answer."""
        collected = cls()
        collected._take(raw, "message")
        return collected

    @property
    def calls(self) -> Json:
        """The tool calls, each with name and arguments; None if there are none."""
        return [dict(tool) for tool in self.tools.values()] or None

    async def events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield server-sent events unchanged, in complete lines. Collect contents before yielding them."""
        rest = b""
        async for chunk in chunks:
            whole, end, rest = (rest + chunk).rpartition(b"\n")
            self._read(whole)
            if whole or end:
                yield whole + end
        self._read(rest)
        if rest:
            yield rest

    def _read(self, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            if line.startswith(b"data:"):
                data = line.removeprefix(b"data:").strip()
                self.ended = self.ended or data == _END
                self._take(data, "delta")

    def _take(self, raw: bytes, where: str) -> None:
        """Collect the contents of the first choice. Malformed JSON is skipped, because a server may send anything."""
        with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError, StopIteration):
            choice: Any = next(each for each in json.loads(raw)["choices"] if not each.get("index"))
            said = choice.get(where) or {}
            self.text += text_of(said)
            self.finish = choice.get("finish_reason") or self.finish
            for number, call in enumerate(said.get("tool_calls") or ()):
                tool = self.tools.setdefault(call.get("index", number), {"name": "", "arguments": ""})
                for name, text in (call.get("function") or {}).items():
                    if name in tool:
                        tool[name] += text or ""


def answer_tokens(body: Mapping[str, Json]) -> int:
    """Return the token limit that a request sets for its answer, by default `_ANSWER_TOKENS`."""
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    return asked if isinstance(asked, int) and asked > 0 else _ANSWER_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt for the model: a client's messages with additions.

    `tokens`: Size of all additions. `sources`: Sources of the addition to the last user message. `problem`: The error
    of adding memories or of recording the question; "" if both succeeded.
    """

    messages: list[ChatMessage]
    talk: Talk
    caller: Caller
    tokens: int = 0
    sources: tuple[str, ...] = ()
    problem: str = ""


class ChatDesk:
    """Adds memories to prompts, and records conversations. Thread-safe; its calls block on the disk."""

    def __init__(self, memory: OrchestratorContextManager, settings: ServerSettings) -> None:
        self._memory = memory
        self._settings = settings
        self._additions = Additions()

    def prompt(self, body: Mapping[str, Any], caller: Caller, problem: str = "") -> Prompt:
        """Add relevant memories to a client's messages. If the memory fails, the prompt reports it as its `problem`.

        Args:
            body: The request body.
            caller: The caller that the client authenticated as.
            problem: If set, the memory is not searched for this reason, and only earlier additions are used.
        """
        talk = Talk.of(body["messages"], agent=caller.acting(None))
        additions = self._additions.of(talk)
        # Made for this message, or for an earlier conversation that began with the same messages and was answered.
        before = additions.pop(talk.asked, None) if talk.is_new else None
        try:
            if talk.is_new and talk.question.strip() and not problem:
                recorded = OperationFilter(idempotency_key=_key(talk, talk.asked, caller.view))
                if before is None or not caller.view.count_operations(recorded):
                    before = self._relevant(talk, additions, caller.view)
                additions[talk.asked] = before
        except OrchestraMemError as error:
            problem = str(error)
        found = additions.get(talk.asked)
        additions = self._additions.keep(talk, additions, self._room(talk, body))
        if additions.get(talk.asked) != found:
            full = "the messages, the tools and the answer (`max_tokens`) fill the model's window"
            problem = problem or f"no memories were added: {full}"
        return Prompt(
            messages=with_additions(talk.messages, additions), talk=talk, caller=caller,
            tokens=sum(each.tokens for each in additions.values()),
            sources=additions[talk.asked].sources if talk.asked in additions else (), problem=problem,
        )  # fmt: skip

    def _relevant(self, talk: Talk, before: Mapping[int, Addition], view: Any) -> Addition:
        """Select memories for the last user message. A conversation's first addition also has the project's state."""
        count = self._memory.counter.count
        given = {source for each in before.values() for source in each.sources}
        texts, sources, left = [], [], self._settings.chat_turn_tokens
        if not before:
            context = view.get_orchestrator_context("chat", self._settings.chat_first_tokens)
            texts = [context.render()] * bool(context.tokens)
        says = talk.says([*(each.text for each in before.values()), *texts])
        for hit in view.search(talk.question, limit=_MOST_HITS).hits:
            said = hit.chunk.text
            if hit.perhaps or hit.chunk.source in given or says(said):
                continue
            text = neutralise(fenced(said, f"{hit.chunk.source}{hit.doubt}"))
            if (tokens := count(text)) <= left:
                left -= tokens
                texts.append(text)
                sources.append(hit.chunk.source)
        text = "".join(texts)
        return Addition(text, count(text), tuple(dict.fromkeys(sources)))

    def _room(self, talk: Talk, body: Mapping[str, Any]) -> int:
        """Return how many tokens of the model's window remain for additions after messages, tools and answer."""
        if self._memory.model is None:
            return self._settings.chat_first_tokens + self._settings.chat_turn_tokens
        try:
            window = self._memory.model.context_tokens
        except ModelError:  # reported when the answer is requested; earlier additions stay as they are
            return sys.maxsize
        count = self._memory.counter.count
        said = sum(count(text_of(message)) + _MARKS_TOKENS for message in talk.messages)
        pictures = sum(len(others_of(message)) for message in talk.messages) * _PICTURE_TOKENS
        calls = sum(count(json.dumps(message["tool_calls"])) for message in talk.messages if message.get("tool_calls"))
        tools = count(json.dumps([body[name] for name in ("tools", "functions", "response_format") if body.get(name)]))
        return max(0, window - said - pictures - calls - tools - answer_tokens(body))

    def record_question(self, prompt: Prompt) -> None:
        """Record the messages since the model's last answer: the user's, and the results of tools.

        Raises:
            StorageError: A message could not be stored.
        """
        for place in prompt.talk.unanswered:
            message = prompt.talk.messages[place]
            by_user = message.get("role") == "user"
            text = "\n".join(filter(None, [text_of(message), *others_of(message)]))
            call = _call_of(prompt.talk, place)
            if not text.strip() and not call:
                continue
            said: dict[str, Json] = {"role": "user", "text": text} if by_user else {**call, "output": text}
            prompt.caller.view.record_operation(
                "user_message" if by_user else "tool_result", said, agent=prompt.caller.agent or "user",
                idempotency_key=_key(prompt.talk, place, prompt.caller.view),
            )  # fmt: skip

    def record_answer(self, prompt: Prompt, answer: Collected) -> None:
        """Record the model's answer, or why there is none. If the caller is an agent, queue the exchange for learning.

        Raises:
            StorageError: The answer could not be stored.
        """
        agent, view, last = prompt.caller.agent, prompt.caller.view, len(prompt.talk.messages) - 1
        said: dict[str, Json] = {"role": "assistant", "text": answer.text}
        key = f"{_prefix(prompt.talk, last)}answer {uuid4().hex}"
        if answer.calls:
            said["tool_calls"] = answer.calls
        elif not answer.text.strip():
            said["finish"] = f"no answer ({answer.finish or 'it could not be read'})"
            key = f"{_key(prompt.talk, last, view)} failed"
        if answer.finish not in ("", "stop"):
            said.setdefault("finish", answer.finish)
        view.record_operation("agent_message", said, agent=agent or "assistant", idempotency_key=key)
        if agent and answer.text.strip() and prompt.talk.question.strip():
            self._memory.learn(prompt.talk.question, answer.text, agent=agent)


def _call_of(talk: Talk, place: int) -> dict[str, Json]:
    """Return the tool and input of the call that a tool's result answers; {} if the call is missing or malformed."""
    number = talk.messages[place].get("tool_call_id")
    earlier: Any = reversed(talk.messages[:place])
    with suppress(LookupError, TypeError, AttributeError, StopIteration):
        calls = (call for message in earlier for call in message.get("tool_calls") or ())
        function = next(call for call in calls if number and call["id"] == number)["function"]
        return {"tool": function["name"], "input": function["arguments"]}
    return {}


def _key(talk: Talk, place: int, view: Any) -> str:
    """Return a message's idempotency key: the same for a retry, another once the message has been answered."""
    prefix = _prefix(talk, place)
    return f"{prefix}{view.count_operations(OperationFilter(idempotency_prefix=f'{prefix}answer '))}"


def _prefix(talk: Talk, place: int) -> str:
    return f"chat {talk.keys[place]} {int(time.time() // _SAME_SAYING_S)} "
