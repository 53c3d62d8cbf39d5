"""Answers in OpenAI's protocol: what is in those of a server, and those of a model in this process."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from orchestra_mem.faces.http.chat_additions import others_of, text_of
from orchestra_mem.model_types import Finish, Generation, Message, Role
from orchestra_mem.types import Json


class BadRequestError(Exception):
    """A request that is none, or that the model cannot do; its words go to the client."""


_ROLES = {"developer": Role.SYSTEM, **{role.value: role for role in Role}}
_END = b"[DONE]"
_ANSWER_TOKENS = 1_024


@dataclass(slots=True, kw_only=True)
class Collected:
    """What a model has said in an answer so far: its text, the tools it calls, and why it ended, "" before that."""

    text: str = ""
    finish: str = ""
    ended: bool = False
    tools: dict[int, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of_body(cls, raw: bytes) -> Collected:
        """Read a whole answer; what is none says nothing."""
        collected = cls()
        collected._take(raw, "message")
        return collected

    @property
    def calls(self) -> Json:
        """The tools that it calls, each with name and arguments; None where it calls none."""
        return [dict(tool) for tool in self.tools.values()] or None

    async def events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Give whole lines of a stream of events, byte for byte, after what they say is collected."""
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
        """Collect what the first of the choices says, as far as it has the shape of one: a server may send anything."""
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
    """Say how long the answer to a request may be."""
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    return asked if isinstance(asked, int) and asked > 0 else _ANSWER_TOKENS


def prompt_of(body: Mapping[str, Json]) -> tuple[list[Message], dict[str, Any]]:
    """Read a request as a model in this process takes it: messages, and what it is told beside them.

    Raises:
        BadRequestError: it asks for what such a model cannot do.
    """
    asked: Any = body
    if asked.get("tools"):
        raise BadRequestError("the model in this process calls no tools; llama-server does: give llm.base_url")
    messages = []
    for message in asked["messages"]:
        role = _ROLES.get(message["role"])
        if role is None or others_of(message):
            raise BadRequestError(f"the model in this process reads texts alone, of {', '.join(_ROLES)}")
        messages.append(Message(role=role, text=text_of(message)))
    options: dict[str, Any] = {}
    if isinstance(asked.get("temperature"), int | float):
        options["temperature"] = float(asked["temperature"])
    if isinstance(asked.get("seed"), int):
        options["seed"] = asked["seed"]
    form = asked.get("response_format")
    if isinstance(form, dict) and form.get("type") in ("json_schema", "json_object"):
        told = form.get("json_schema")
        schema = (told if isinstance(told, dict) else form).get("schema")
        options["schema"] = schema if isinstance(schema, dict) else {"type": "object"}
    return messages, options


def answered(generation: Generation, model: str) -> dict[str, Json]:
    """Write a model's answer as a completion."""
    finish = "length" if generation.finish is Finish.LENGTH else "stop"
    total = generation.prompt_tokens + generation.answer_tokens
    cached = max(0, generation.prompt_tokens - generation.evaluated_tokens)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": generation.text}, "finish_reason": finish}
        ],
        "usage": {
            "prompt_tokens": generation.prompt_tokens, "completion_tokens": generation.answer_tokens,
            "total_tokens": total, "prompt_tokens_details": {"cached_tokens": cached},
        },
    }  # fmt: skip


def as_stream(completion: Mapping[str, Any]) -> Iterator[bytes]:
    """Write a completion as the events of a stream: the whole text in one of them."""
    choice = completion["choices"][0]
    head = {**{key: completion[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    for delta, finish in ((choice["message"], None), ({}, choice["finish_reason"])):
        chunk = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        yield f"data: {json.dumps(chunk)}\n\n".encode()
    yield b"data: [DONE]\n\n"
