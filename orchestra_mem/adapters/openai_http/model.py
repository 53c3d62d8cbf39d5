"""A language model over HTTP: answers token by token, and what llama-server and vLLM tell of window and counts."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx

from orchestra_mem.adapters.openai_http.server import NotServedError, Server, ServerFaultError, Stopped
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation, Message
from orchestra_mem.types import Json

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.02
# A server may be started again with another window, which is seen this soon.
_WINDOW_S = 30.0
# Where nobody counts: few texts have more tokens than a third of their bytes, and a message has its marks.
_BYTES_A_TOKEN, _MARKS = 3, 8
# No text of words has more bytes a token; of short texts nothing is concluded.
_MOST_BYTES_A_TOKEN, _SHORT_BYTES = 10, 2_000
# No window has as many tokens: who reports more has not counted.
_MOST_TOKENS = 10**9


class _CancelledError(Exception):
    """The answer ends where it is."""


@dataclass(slots=True)
class _Answer:
    """What there is of an answer so far, and what the server told of it; `most` is how many tokens it may have."""

    most: int
    text: str = ""
    tokens: int = 0
    finish: str = ""
    started: float = 0.0
    first: float = 0.0
    usage: Any = None
    timings: Any = None


class OpenAiModel:
    """A model behind an OpenAI-compatible server. Fulfils `LanguageModel`.

    Args:
        base_url: the server's address, as http://127.0.0.1:8080.
        model: its name there; empty for the one that the server has.
        api_key: sent along where it is not empty.
        context_tokens: the window, where the server does not tell it.
        wanted_tokens: the window that contexts are made for; 0 where that is not known.
        server: makes the calls; by default one with that address and key.

    Raises:
        ModelError: the address is none.
    """

    def __init__(
        self, base_url: str, *, model: str = "", api_key: str = "", context_tokens: int = 8_192,
        wanted_tokens: int = 0, server: Server | None = None,
    ) -> None:  # fmt: skip
        self._server = server or Server(base_url, api_key=api_key, keep_alive=False)
        self._model = model
        self._context_tokens = context_tokens
        self._window, self._window_told = 0, 0.0
        self._tells_progress = False
        self._serves: dict[str, bool] = {}  # questions, and whether each was ever answered
        self._way = 0  # of `_ways`, the first that the server takes
        self._reached = False
        self._wanted_tokens = wanted_tokens
        self._silent = self._cut = ""
        self._turn = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name, or the server's address where none was given."""
        return self._model or urlsplit(self._server.url).netloc

    @property
    def loaded(self) -> bool:
        """Whether the server has answered."""
        return self._reached

    @property
    def context_tokens(self) -> int:
        """The window as the server tells it: llama-server in `/props`, vLLM in its list of models.

        Raises:
            ModelError: the server cannot be reached.
        """
        if not self._window or time.monotonic() - self._window_told > _WINDOW_S:
            told = _positive(_within(self._asked("GET", "/props"), "default_generation_settings", "n_ctx"))
            self._tells_progress = told > 0
            self._window = told or self._listed_window() or self._window or self._context_tokens
            self._window_told = time.monotonic()
        return self._window

    def _listed_window(self) -> int:
        models = _within(self._asked("GET", "/v1/models"), "data")
        for each in models if isinstance(models, list) else ():
            if self._model in ("", _within(each, "id")):
                return _positive(_within(each, "max_model_len"))
        return 0

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Count a prompt as the server does; where it does not tell, an estimate on the high side.

        Raises:
            ModelError: the server cannot be reached.
        """
        spoken = _spoken(messages)
        prompt = _within(self._asked("POST", "/apply-template", {"messages": spoken}), "prompt")
        if isinstance(prompt, str):
            body: Json = {"content": prompt, "add_special": True, "parse_special": True}
            tokens = _within(self._asked("POST", "/tokenize", body), "tokens")
            if isinstance(tokens, list):
                return len(tokens)
        elif not self._serves["/apply-template"]:  # then it may be vLLM
            found = self._asked("POST", "/tokenize", {"model": self._model, "messages": spoken})
            if count := _positive(_within(found, "count")):
                return count
        return sum(len(message.text.encode("utf-8", "replace")) // _BYTES_A_TOKEN + _MARKS for message in messages)

    def idle(self) -> bool:
        """Whether the server has a free slot, as llama-server tells in `/slots`; yes where it does not tell."""
        try:
            slots = self._asked("GET", "/slots")
        except ModelError:
            return True  # the next prompt says what is wrong
        known = [_within(slot, "is_processing") for slot in slots] if isinstance(slots, list) else []
        return not known or not all(known)

    def generate(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: Mapping[str, Json] | None = None,
        cancelled: Callable[[], bool] | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        timeout_s: float | None = None,
    ) -> Generation:
        """Answer a prompt, as `LanguageModel.generate` has it. Cancelled, the connection ends, and the server stops."""
        answer = _Answer(most=max_tokens)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s

        def stopped() -> str:
            if cancelled is not None and cancelled():
                raise _CancelledError
            late = deadline is not None and time.monotonic() > deadline
            return f"{answer.tokens:,} tokens of an answer in {timeout_s:g} s" if late else ""

        body: dict[str, Json] = {
            "messages": _spoken(messages), "max_tokens": max_tokens, "temperature": temperature, "seed": seed,
            "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip
        if self._model:
            body["model"] = self._model
        if self._tells_progress:  # llama-server sees that a connection has ended when it next writes to it
            body["return_progress"] = True
        finish = Finish.CANCELLED
        try:
            with self._turn_taken(stopped):
                self._answer(body, schema, answer, stopped)
                finish = Finish.LENGTH if answer.finish == "length" else Finish.STOP
        except _CancelledError:
            pass
        done = _generation(answer, finish)
        if answer.finish:
            self._doubt(sum(len(message.text.encode("utf-8", "replace")) for message in messages), done)
        return done

    @property
    def doubts(self) -> list[str]:
        """What the server does not tell, or tells wrongly, as far as was seen; in words. Nothing is asked for it."""
        small = ""
        if self._window and self._wanted_tokens > self._window:
            small = (
                f"the window of {self.name} is {self._window:,} tokens, and contexts are made for "
                f"{self._wanted_tokens:,}: start the server with a larger one, or set "
                f"orchestrator.context_window.max_tokens to {self._window}"
            )
        return [doubt for doubt in (small, self._silent, self._cut) if doubt]

    def _doubt(self, prompt_bytes: int, done: Generation) -> None:
        """Compare what the server tells of an answer with what it was given."""
        if not done.prompt_tokens:
            self._silent = f"{self._server.url} does not report how many tokens a prompt has: nothing is learned of it"
            return
        self._silent = ""
        if prompt_bytes > _MOST_BYTES_A_TOKEN * done.prompt_tokens + _SHORT_BYTES:
            self._cut = (
                f"{self._server.url} read {done.prompt_tokens:,} tokens of a prompt of {prompt_bytes:,} bytes, so not "
                "all of it: its window is smaller than it says; start it with a larger one (Ollama: num_ctx)"
            )

    @contextmanager
    def _turn_taken(self, stopped: Stopped) -> Iterator[None]:
        while not self._turn.acquire(timeout=_LOOK_EVERY_S):
            if why := stopped():
                raise ModelError(f"{self.name} was given up: {why}")
        try:
            yield
        finally:
            self._turn.release()

    def _answer(
        self, body: dict[str, Json], schema: Mapping[str, Json] | None, answer: _Answer, stopped: Stopped
    ) -> None:
        ways = _ways(schema)
        for place in range(min(self._way, len(ways) - 1), len(ways)):
            try:
                self._streamed({**body, **ways[place]}, answer, stopped)
            except NotServedError as error:
                if error.status not in (400, 422, 500) or not ways[place]:
                    raise ModelError(str(error)) from error
                continue
            if place > self._way:
                self._way = place
                if not ways[place]:  # who asks checks the shape of every answer anyway
                    logger.warning("%s takes no JSON schema: its answers are checked, not guided", self._server.url)
            return

    def _streamed(self, body: dict[str, Json], answer: _Answer, stopped: Stopped) -> None:
        answer.started = time.perf_counter()
        with self._server.calling("POST", "/v1/chat/completions", body, stopped, lambda: answer.tokens) as reply:
            self._reached = True
            if reply.headers.get("content-type", "").startswith("text/event-stream"):
                for line in reply.lines():
                    if line.startswith("data:") and self._take(line.removeprefix("data:").strip(), answer):
                        break
                    if _cut(answer):
                        break
                if not answer.finish:
                    raise httpx.ReadError("the stream ended without an end")
            else:
                self._take_whole(reply.json(), answer)

    def _take(self, data: str, answer: _Answer) -> bool:
        """Take in an event of the stream; whether it was the last."""
        if data == "[DONE]":
            answer.finish = answer.finish or "stop"
            return True
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise ServerFaultError(f"{self._server.url} sent an event that is no JSON: {data[:80]!r}") from None
        if not isinstance(event, dict):
            return False
        if (error := event.get("error")) is not None:
            words = error.get("message") if isinstance(error, dict) else error
            raise ServerFaultError(
                f"{self._server.url} failed {answer.tokens:,} tokens into its answer: {str(words)[:200]}"
            )
        try:
            for choice in event.get("choices") or ():
                said = (choice.get("delta") or {}).get("content")
                if isinstance(said, str) and said:
                    answer.first = answer.first or time.perf_counter()
                    answer.text += said
                    answer.tokens += 1
                answer.finish = choice.get("finish_reason") or answer.finish
        except (TypeError, AttributeError):
            raise ServerFaultError(f"{self._server.url} sent an event of another shape: {data[:80]!r}") from None
        answer.usage = event.get("usage") or answer.usage
        answer.timings = event.get("timings") or answer.timings
        return False

    def _take_whole(self, found: Any, answer: _Answer) -> None:
        """Take in the answer of a server that does not stream."""
        try:
            (choice, *_) = found["choices"]
            answer.text = str(choice["message"]["content"] or "")
            answer.finish = choice.get("finish_reason") or "stop"
            answer.usage, answer.timings = found.get("usage"), found.get("timings")
            _cut(answer)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ServerFaultError(f"{self._server.url} answered with JSON that is no chat completion") from None

    def _asked(self, method: str, path: str, body: Json = None) -> Any:
        """What the server says to a question; None where it refuses.

        What it has never answered it does not know, and is not asked again. Else the refusal passes, or concerns what
        was sent.
        """
        key = f"{path} of messages" if isinstance(body, dict) and path == "/tokenize" and "messages" in body else path
        if self._serves.get(key) is False:
            return None
        try:
            found = self._server.ask(method, path, body)
        except NotServedError:
            self._serves.setdefault(key, False)
            return None
        self._reached = self._serves[key] = True
        return found

    def close(self) -> None:
        """Let go of connections; opened anew when used again."""
        self._server.close()


def _ways(schema: Mapping[str, Json] | None) -> list[dict[str, Json]]:
    """How an answer by a schema is asked for: OpenAI's way, that of llama-cpp-python's server, and last not at all."""
    if schema is None:
        return [{}]
    form: Json = {"name": "answer", "strict": True, "schema": dict(schema)}
    return [
        {"response_format": {"type": "json_schema", "json_schema": form}},
        {"response_format": {"type": "json_object", "schema": dict(schema)}},
        {},
    ]


def _cut(answer: _Answer) -> bool:
    """End an answer that is longer than was asked for, of a server that does not heed that; whether it was.

    An event counts as one token, whatever it holds: so its characters are bounded as well.
    """
    most_chars = _MOST_BYTES_A_TOKEN * answer.most + _SHORT_BYTES
    if answer.tokens <= answer.most and len(answer.text) <= most_chars:
        return False
    answer.text, answer.finish = answer.text[:most_chars], "length"
    return True


def _generation(answer: _Answer, finish: Finish) -> Generation:
    now = time.perf_counter()
    prompt = _positive(_within(answer.usage, "prompt_tokens"))
    cached = _positive(_within(answer.usage, "prompt_tokens_details", "cached_tokens"))
    first = answer.first or now
    return Generation(
        text=answer.text,
        finish=finish,
        prompt_tokens=prompt,
        answer_tokens=_positive(_within(answer.usage, "completion_tokens")) or answer.tokens,
        evaluated_tokens=_positive(_within(answer.timings, "prompt_n")) or max(0, prompt - cached),
        prompt_s=max(0.0, first - answer.started) if answer.started else 0.0,
        answer_s=max(0.0, now - first),
    )


def _spoken(messages: Sequence[Message]) -> list[Json]:
    # Halves of characters, which no server takes, become question marks.
    return [
        {"role": message.role.value, "content": message.text.encode("utf-8", "replace").decode("utf-8")}
        for message in messages
    ]


def _within(found: Any, *keys: str) -> Any:
    """What stands under keys within keys of what a server said; None where it said something of another shape."""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _positive(value: object) -> int:
    """A number of tokens as a server tells it; 0 where it is none, or absurd."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS else 0
