"""Generation over HTTP, token by token; servers that also report their window and count tokens are asked for them."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx

from orchestra_mem.adapters.openai_http.server import LOOK_EVERY_S, Server, ServerFaultError, UnsupportedRequestError
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation, Message
from orchestra_mem.types import Json

logger = logging.getLogger(__name__)

# Seconds after which the server is asked for its window again, as it may have been restarted with another window; and
# seconds that a chat waits for the answer.
_WINDOW_S, _WINDOW_TIMEOUT_S = 30.0, 2.0
# The lists of models of vLLM, and of loaded models of Ollama and LM Studio: path, and keys of list, name and window.
_LISTS = (
    ("/v1/models", "data", "id", "max_model_len"), ("/api/ps", "models", "model", "context_length"),
    ("/api/v0/models", "data", "id", "loaded_context_length"),
)  # fmt: skip
# If the server does not count: bytes per token (few texts have fewer), and tokens that a message adds to its text.
_BYTES_A_TOKEN, _MARKS = 3, 8
# No prose has more bytes per token; texts of fewer bytes are not checked.
_MOST_BYTES_A_TOKEN, _SHORT_BYTES = 10, 2_000
# No window is this large: a server that reports more tokens has not counted them.
_MOST_TOKENS = 10**9


class _CancelledError(Exception):
    """The caller has cancelled the answer."""


@dataclass(slots=True)
class _Answer:
    """A partial answer, and the server's figures for it. `most`: Maximum number of tokens."""

    most: int
    text: str = ""
    tokens: int = 0
    finish: str = ""
    started: float = 0.0
    first: float = 0.0
    usage: Any = None
    timings: Any = None

    def take(self, event: Any) -> None:
        """Add an event of the stream, or a complete response; data of any other shape are ignored."""
        choices = _within(event, "choices")
        for choice in choices if isinstance(choices, list) else ():
            text = _within(choice, "delta", "content") or _within(choice, "message", "content")
            if isinstance(text, str) and text:
                self.first = self.first or time.perf_counter()
                self.text += text
                self.tokens += 1
            self.finish = str(_within(choice, "finish_reason") or self.finish)
        self.usage = _within(event, "usage") or self.usage
        self.timings = _within(event, "timings") or self.timings

    def cut(self) -> bool:
        """End the answer if it exceeds its limit, which some servers ignore; return whether the limit was exceeded.

        An event counts as one token, however long its text is, so the number of characters is limited, too.
        """
        most_chars = _MOST_BYTES_A_TOKEN * self.most + _SHORT_BYTES
        if self.tokens <= self.most and len(self.text) <= most_chars:
            return False
        self.text, self.finish = self.text[:most_chars], "length"
        return True

    def generation(self, finish: Finish) -> Generation:
        """Return the answer with its figures."""
        now = time.perf_counter()
        prompt = _positive(_within(self.usage, "prompt_tokens"))
        cached = _positive(_within(self.usage, "prompt_tokens_details", "cached_tokens"))
        first = self.first or now
        return Generation(
            text=self.text,
            finish=finish,
            prompt_tokens=prompt,
            answer_tokens=_positive(_within(self.usage, "completion_tokens")) or self.tokens,
            evaluated_tokens=_positive(_within(self.timings, "prompt_n")) or max(0, prompt - cached),
            prompt_s=max(0.0, first - self.started) if self.started else 0.0,
            answer_s=max(0.0, now - first),
        )


class OpenAiModel:
    """A model on an OpenAI-compatible server. Implements `LanguageModel`.

    Args:
        server: Sends the requests.
        model: The model's name on the server; empty for the server's only model.
        context_tokens: Context window, in case the server does not report it.
        wanted_tokens: Window that contexts are built for; 0 if unknown.
    """

    where = "over HTTP"

    def __init__(self, server: Server, *, model: str = "", context_tokens: int = 8_192, wanted_tokens: int = 0) -> None:
        self._server = server
        self._model = model
        self.name = model or urlsplit(server.url).netloc  # the address if no model is named
        self._context_tokens = context_tokens
        self._window, self._window_asked, self._window_fault = 0, -_WINDOW_S, ""
        self._window_told = False  # whether the server has ever reported its window
        self._tells_progress = False
        self._serves: dict[str, bool] = {}  # by `_question`: whether the server has ever answered it
        self._way = 0  # index of the first of `_ways` that the server accepts
        self._wanted_tokens = wanted_tokens
        self._read_less = ""
        self._cut_to = 0  # tokens that the server read of the prompt that `_read_less` reports
        self._turn = threading.Lock()

    @property
    def context_tokens(self) -> int:
        """The context window as reported by the server: llama-server at `/props`, others in a list of models.

        A server that does not answer in time is not asked again for 30 s; until then its last reported window counts.

        Raises:
            ModelError: The server cannot be reached, or has never reported its window.
        """
        begun = time.monotonic()
        if begun - self._window_asked > _WINDOW_S:
            try:
                props = self._asked("GET", "/props", timeout_s=_WINDOW_TIMEOUT_S)
                told = _positive(_within(props, "default_generation_settings", "n_ctx"))
                self._tells_progress = told > 0
                told = told or self._listed_window()
                self._window_told = self._window_told or told > 0
                self._window = told or self._window or self._context_tokens
            except ModelError as error:
                if time.monotonic() - begun < _WINDOW_TIMEOUT_S:
                    raise
                self._window_fault = str(error)
            self._window_asked = time.monotonic()
        if self._window_fault and not self._window:
            raise ModelError(self._window_fault)
        return self._window

    def _listed_window(self) -> int:
        """Return the model's window from the first list that has it, without a name the one of all models; else 0."""
        for path, listed, name, window in _LISTS:
            models: Any = None  # servers may fail, or send a page, at paths that they lack
            with suppress(ServerFaultError) if path.startswith("/api/") else nullcontext():
                models = _within(self._asked("GET", path, timeout_s=_WINDOW_TIMEOUT_S), listed)
            windows = {
                _positive(_within(each, window))
                for each in (models if isinstance(models, list) else ())
                if not self._model or _within(each, name) in (self._model, f"{self._model}:latest")
            } - {0}
            if len(windows) == 1:  # of several loaded models one may be for embeddings
                return windows.pop()
        return 0

    def count_prompt(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Json]] = ()) -> int:
        """Count the tokens of a prompt by the server; if it does not count, return an estimate on the high side.

        Raises:
            ModelError: The server cannot be reached.
        """
        request: dict[str, Json] = {"messages": _spoken(messages)}
        if tools:
            request["tools"] = json.loads(json.dumps(tools, ensure_ascii=False).encode("utf-8", "replace"))
        prompt = _within(self._asked("POST", "/apply-template", request), "prompt")
        if isinstance(prompt, str):
            body: Json = {"content": prompt, "add_special": True, "parse_special": True}
            tokens = _within(self._asked("POST", "/tokenize", body), "tokens")
            if isinstance(tokens, list):
                return len(tokens)
        elif not self._serves[_question("/apply-template", request)]:  # then the server may be vLLM
            answer = self._asked("POST", "/tokenize", {"model": self._model, **request})
            if count := _positive(_within(answer, "count")):
                return count
        sizes = [*map(_bytes, messages), *(len(json.dumps(tool)) for tool in tools)]
        return sum(size // _BYTES_A_TOKEN + _MARKS for size in sizes)

    def busy(self) -> bool:
        """Check whether all slots are in use, as llama-server reports at `/slots`; False for other servers."""
        try:
            slots = self._asked("GET", "/slots")
        except ModelError:
            return False  # the next prompt reports the fault
        known = [_within(slot, "is_processing") for slot in slots] if isinstance(slots, list) else []
        return bool(known) and all(known)

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
        """Answer a prompt; see `LanguageModel.generate`. Cancelling closes the connection, so the server stops, too."""
        answer = _Answer(most=max_tokens)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s

        def check() -> None:
            if cancelled is not None and cancelled():
                raise _CancelledError
            if deadline is not None and time.monotonic() > deadline:
                raise ServerFaultError(
                    f"{self.name} timed out after {timeout_s:g} s, {answer.tokens:,} tokens into its answer"
                )

        body: dict[str, Json] = {
            "messages": _spoken(messages), "max_tokens": max_tokens, "temperature": temperature, "seed": seed,
            "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip
        if self._model:
            body["model"] = self._model
        if self._tells_progress:  # llama-server notices a closed connection when it next writes to it
            body["return_progress"] = True
        try:
            while not self._turn.acquire(timeout=LOOK_EVERY_S):
                check()
            try:
                self._answer(body, schema, answer, check)
            finally:
                self._turn.release()
        except _CancelledError:
            return answer.generation(Finish.CANCELLED)
        done = answer.generation(Finish.LENGTH if answer.finish == "length" else Finish.STOP)
        self._doubt(sum(map(_bytes, messages)), done)
        return done

    @property
    def doubts(self) -> list[str]:
        """Warnings about a small or unknown window, and about a prompt that the server cut. Sends no request."""
        small = ""
        if self._window and self._wanted_tokens > self._window:
            window, wanted = f"{self._window:,} tokens", f"contexts are built for {self._wanted_tokens:,}"
            if self._window_told:
                small = (
                    f"the window of {self.name} is {window}, but {wanted}: start the server with a larger window, or "
                    f"set orchestrator.context_window.max_tokens to {self._window}"
                )
            else:
                small = (
                    f"{self.name} does not report its window, so it is taken to be {window}, but {wanted}: set "
                    "llm.context_tokens and orchestrator.context_window.max_tokens to its window"
                )
        return [doubt for doubt in (small, self._read_less) if doubt]

    def _doubt(self, prompt_bytes: int, done: Generation) -> None:
        """Compare the prompt's size with the number of tokens that the server reports, and note a warning."""
        if not done.prompt_tokens:
            return
        if prompt_bytes > _MOST_BYTES_A_TOKEN * done.prompt_tokens + _SHORT_BYTES:
            self._cut_to = done.prompt_tokens
            self._read_less = (
                f"{self._server.url} read only {done.prompt_tokens:,} tokens of a prompt of {prompt_bytes:,} bytes, so "
                "it cut the prompt: its window is smaller than reported; start it with a larger one (Ollama: num_ctx)"
            )
        elif done.prompt_tokens > self._cut_to:
            self._read_less = ""

    def _answer(
        self, body: dict[str, Json], schema: Mapping[str, Json] | None, answer: _Answer, check: Callable[[], None]
    ) -> None:
        def read(response: httpx.Response) -> None:
            self._read(response, answer)

        ways = _ways(schema)
        for place in range(min(self._way, len(ways) - 1), len(ways)):
            answer.started = time.perf_counter()
            try:
                self._server.post("/v1/chat/completions", {**body, **ways[place]}, read, check)
            except UnsupportedRequestError as error:
                if error.status not in (400, 422, 500) or not ways[place]:
                    raise
                continue
            if place > self._way:
                self._way = place
                if not ways[place]:  # no error, as callers validate every answer
                    logger.warning(
                        "%s does not support JSON schemas: its answers are validated, but not constrained",
                        self._server.url,
                    )
            return

    def _read(self, response: httpx.Response, answer: _Answer) -> None:
        try:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                for line in self._server.lines(response):
                    if line.startswith("data:") and self._take(line.removeprefix("data:").strip(), answer):
                        return
                if not answer.finish:
                    raise httpx.ReadError("the stream ended without a finish reason")
                return
        except httpx.HTTPError as error:
            raise ServerFaultError(f"{self._server.url} broke off its answer after {answer.tokens:,} tokens") from error
        answer.take(self._server.json(response))
        if not (answer.tokens or answer.finish):
            raise ServerFaultError(f"{self._server.url} answered with JSON that is not a chat completion")
        answer.cut()
        answer.tokens = 0  # if the server does not stream, only `usage` reports them
        answer.finish = answer.finish or "stop"

    def _take(self, data: str, answer: _Answer) -> bool:
        """Add an event of the stream; return whether it was the last."""
        if data == "[DONE]":
            answer.finish = answer.finish or "stop"
            return True
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise ServerFaultError(f"{self._server.url} sent an event that is not JSON: {data[:80]!r}") from None
        if (error := _within(event, "error")) is not None:
            words = _within(error, "message") or error
            raise ServerFaultError(
                f"{self._server.url} failed {answer.tokens:,} tokens into its answer: {str(words)[:200]}"
            )
        answer.take(event)
        return answer.cut()

    def _asked(self, method: str, path: str, body: Json = None, **limits: float) -> Any:
        """Return the server's answer to a question, None if the server refuses.

        A server that refuses a question before it has ever answered it does not support the question, and is not asked
        again. A later refusal is temporary, or due to the content.
        """
        key = _question(path, body)
        if self._serves.get(key) is False:
            return None
        try:
            found = self._server.ask(method, path, body, **limits)
        except UnsupportedRequestError:
            self._serves.setdefault(key, False)
            return None
        self._serves[key] = True
        return found

    def close(self) -> None:
        """Do nothing: no connection outlives its request."""


def _question(path: str, body: Json) -> str:
    """Return a question's key in `_serves`: a server may count texts but not messages, or messages but not tools."""
    return " ".join([path, *(part for part in ("messages", "tools") if isinstance(body, dict) and part in body)])


def _ways(schema: Mapping[str, Json] | None) -> list[dict[str, Json]]:
    """Return alternative request fields for a schema, in order: OpenAI's, llama-cpp-python's, and no fields."""
    if schema is None:
        return [{}]
    form: Json = {"name": "answer", "strict": True, "schema": dict(schema)}
    return [
        {"response_format": {"type": "json_schema", "json_schema": form}},
        {"response_format": {"type": "json_object", "schema": dict(schema)}},
        {},
    ]


def _spoken(messages: Sequence[Message]) -> list[Json]:
    # Lone surrogates, which no server accepts, become question marks.
    return [
        {"role": message.role.value, "content": message.text.encode("utf-8", "replace").decode("utf-8")}
        for message in messages
    ]


def _bytes(message: Message) -> int:
    return len(message.text.encode("utf-8", "replace"))


def _within(found: Any, *keys: str) -> Any:
    """Return the value under nested keys of a server's response; None if the response has another shape."""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _positive(value: object) -> int:
    """Return a number of tokens reported by a server; 0 if it is no number, not positive, or absurdly large."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS else 0
