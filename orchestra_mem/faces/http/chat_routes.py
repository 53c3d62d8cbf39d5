"""OpenAI-compatible chat routes: any client that uses this server as its `base_url` gets memory in its chats."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio
from anyio.to_thread import run_sync
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from orchestra_mem.errors import ModelError, OrchestraMemError
from orchestra_mem.faces.http.chat_additions import Additions, answer_tokens, others_of, text_of
from orchestra_mem.faces.http.chat_desk import ChatDesk, Collected, Prompt
from orchestra_mem.faces.http.guard import PROBLEMS, Problem, chat_error
from orchestra_mem.faces.http.json_answers import CallerDep, Shape, shown
from orchestra_mem.faces.records import Caller
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.model_types import Finish, Generation, Message, Role
from orchestra_mem.serialize import readable_json
from orchestra_mem.settings import ServerSettings
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.build import Relay

_MOST_SOURCES = 1_000
_GONE = 499  # nginx's status for a client that has disconnected; only the log shows it
_Result = TypeVar("_Result")
_Record: TypeAlias = "Callable[[Collected], Awaitable[dict[str, str]]]"

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/v1", tags=["chat"])

_ERROR = {"type": "object", "required": ["error"]}
# The model's server answers in its own form.
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {**told, "content": {**told["content"], "application/json": {"schema": _ERROR}}}
    for status, told in PROBLEMS.items()
}
_STREAM = {"text/event-stream": {"schema": {"type": "string"}, "example": "data: [DONE]"}}
_CHAT = _ERRORS | shown(Shape("Completion", choices=list[dict[str, Any]]))
_CHAT[200]["content"] = _STREAM
_MODELS = _ERRORS | shown(Shape("Models", data=list[dict[str, Any]]))
_MESSAGE = {"type": "object", "required": ["role"], "properties": {"role": {"type": "string"}}}
_BODY = {
    "schema": {
        "type": "object", "required": ["messages"],
        "properties": {"messages": {"type": "array", "minItems": 1, "items": _MESSAGE}},
    },
    "example": {"model": "local", "messages": [{"role": "user", "content": "Where did we stop?"}]},
}  # fmt: skip
_REQUEST = {"required": True, "content": {"application/json": _BODY}}


@router.post("/chat/completions", response_class=Response, responses=_CHAT, openapi_extra={"requestBody": _REQUEST})
async def complete_chat(request: Request, caller: CallerDep) -> Response:
    """Add relevant memories to a chat, answer it with the model, and record it; with `X-Memory: off`, only answer."""
    raw = await request.body()
    request.scope["time_limit"].reschedule(None)  # a model may take minutes, and has its own timeouts
    endpoint: ChatEndpoint = request.app.state.chat
    response = Response(status_code=_GONE)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_if_gone, request, tasks.cancel_scope)
        try:
            response = await endpoint.answer(_read(raw), caller, off=_is_off(request))
        except HTTPException as error:
            response = Problem(error.status_code, error.detail)
        except ModelError as error:
            response = Problem(502, str(error))
        tasks.cancel_scope.cancel()
    return response


async def _cancel_if_gone(request: Request, answering: anyio.CancelScope) -> None:
    await request.receive()  # after the body, the only message is the disconnect
    answering.cancel()


@router.get("/models", response_class=Response, responses=_MODELS)
async def list_models(request: Request, caller: CallerDep) -> Response:
    """List the models that can answer chats."""
    endpoint: ChatEndpoint = request.app.state.chat
    try:
        return await endpoint.models()
    except ModelError as error:
        return Problem(502, str(error))


def _is_off(request: Request) -> bool:
    wish = request.headers.get("x-memory", "on")
    if wish.lower() not in ("on", "off"):  # do not record against a wish that is not understood
        raise HTTPException(400, f"the header `X-Memory` must be `on` or `off`, but is {wish!r}")
    return wish.lower() == "off"


def _read(raw: bytes) -> dict[str, Json]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages:
        raise HTTPException(400, "the body must have `messages`, a list of at least one message")
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise HTTPException(400, f"messages[{place}] must be an object with a `role`")
    found: dict[str, Json] = body
    return found


class ChatEndpoint:
    """Answers chats with the model's server or with the model in this process.

    Args:
        memory: The memory; its model answers if there is no `relay`.
        settings: Token limits for additions, and the time to wait for the memory.
        relay: Forwards requests to the model's server.
        additions: The additions to earlier messages.
    """

    def __init__(
        self, memory: OrchestratorContextManager, settings: ServerSettings, relay: Relay | None, additions: Additions
    ) -> None:
        self._memory = memory
        self._desk = ChatDesk(memory, settings, additions)
        self._relay = relay
        self._wait_s = settings.chat_wait_s
        self._model_turn = anyio.CapacityLimiter(1)  # so that waiting chats hold no threads that other routes need
        self._under_way: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Wait for pending recordings, and close the connections to the model's server."""
        if self._under_way:
            await asyncio.wait(self._under_way)
        if self._relay is not None:
            await self._relay.close()

    async def models(self) -> Response:
        """List the models."""
        if self._relay is not None:
            async with self._relay.send("GET", "/v1/models") as answer:
                return Response(await answer.aread(), answer.status_code, media_type=answer.headers["content-type"])
        model = self._memory.model
        listed = [{"id": model.name, "object": "model", "created": 0, "owned_by": "local"}] if model else []
        return JSONResponse({"object": "list", "data": listed})

    async def answer(self, body: dict[str, Json], caller: Caller, *, off: bool) -> Response:
        """Answer a request; `off` bypasses the memory."""
        if self._relay is None and self._memory.model is None:
            raise ModelError("no model is configured: set llm.base_url or llm.model_path in .obra/config.yaml")
        if body.get("n") not in (None, 1) and not (off and self._relay):
            raise HTTPException(
                400, "`n` must be 1, as one answer is recorded; a model server gives more with `X-Memory: off`"
            )
        answer = self._by_model if self._relay is None else self._by_server
        if off:
            return await answer(body, _forget, {"X-Memory": "off"})
        asking = self._start(run_sync(self._prepare, body, caller))
        prompt = await self._soon(asking)
        if prompt is None:
            problem = f"the memory did not answer within {self._wait_s:g} s: no memories were added, and the question "
            prompt = await run_sync(self._desk.prompt, body, caller, f"{problem}is recorded later")
        body = {**body, "messages": [dict(message) for message in prompt.messages]}
        record = partial(self._record, prompt, asking)
        try:
            return await answer(body, record, _headers(prompt))
        except (ModelError, HTTPException) as error:
            await record(Collected(finish=str(error)))
            raise

    def _start(self, work: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        """Start a task that completes even if the client disconnects; `close` waits for it."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _soon(self, task: asyncio.Task[_Result]) -> _Result | None:
        """Return a task's result; None if it takes longer than `_wait_s`, for example while the database is locked."""
        done, _ = await asyncio.wait({task}, timeout=self._wait_s)
        return task.result() if done else None

    def _prepare(self, body: Mapping[str, Json], caller: Caller) -> Prompt:
        prompt = self._desk.prompt(body, caller)
        problem = _recorded("a question", self._desk.record_question, prompt)
        return replace(prompt, problem=problem) if problem else prompt

    async def _by_server(self, body: dict[str, Json], record: _Record, headers: dict[str, str]) -> Response:
        """Forward a request to the model's server, and return its response unchanged; event streams as they arrive."""
        assert self._relay is not None
        async with AsyncExitStack() as stack:
            stack.enter_context(self._memory.foreground())
            response = await stack.enter_async_context(self._relay.send("POST", "/v1/chat/completions", body))
            if (kind := response.headers["content-type"]).startswith("text/event-stream") and response.is_success:
                return _Stream(self._relay.chunks(response), headers, kind, record, stack.pop_all())
            wait = response.headers.get("retry-after", "")
            if wait.isascii() and wait.isprintable() and 0 < len(wait) < 64:
                headers["Retry-After"] = wait
            raw = await response.aread()
            failed = Collected(finish=f"the model's server answered {response.status_code}")
            headers |= await record(Collected.of_body(raw) if response.is_success else failed)
            return Response(raw, response.status_code, headers, kind)

    async def _record(self, prompt: Prompt, asking: asyncio.Task[Prompt], answer: Collected) -> dict[str, str]:
        """Record an answer once its question is recorded. Return an `X-Memory-Problem` header; {} without problems."""

        async def record() -> str:
            await asyncio.wait({asking})
            asked = replace(prompt, aside=asking.result().aside)
            return await run_sync(_recorded, "an answer", self._desk.record_answer, asked, answer)

        problem = await self._soon(self._start(record()))
        if problem is None:
            problem = f"the memory did not record the answer within {self._wait_s:g} s: it is recorded later"
        problems = dict.fromkeys(filter(None, (prompt.problem, problem)))
        return {"X-Memory-Problem": _plain("; ".join(problems))} if problems else {}

    async def _by_model(self, body: dict[str, Json], record: _Record, headers: dict[str, str]) -> Response:
        """Answer with the model in this process; generation stops if the client disconnects."""
        model = self._memory.model
        assert model is not None
        messages, options = prompt_of(body)
        gone = threading.Event()

        def generate() -> Any:
            with self._memory.foreground():
                return model.generate(messages, max_tokens=answer_tokens(body), cancelled=gone.is_set, **options)

        try:
            generation = await run_sync(generate, abandon_on_cancel=True, limiter=self._model_turn)
        finally:
            gone.set()
        generation = until_stop(generation, body.get("stop"))
        headers |= await record(Collected(text=generation.text, finish=generation.finish.value))
        completion = answered(generation, model.name)
        if body.get("stream") is True:
            wanted = body.get("stream_options")
            events = as_stream(completion, with_usage=isinstance(wanted, dict) and wanted.get("include_usage") is True)
            return StreamingResponse(events, 200, headers, "text/event-stream")
        return JSONResponse(completion, 200, headers)


class _Stream(StreamingResponse):
    """Forwards a server's events. However the stream ends, its text is recorded and the connection is closed."""

    def __init__(
        self, chunks: AsyncIterator[bytes], headers: Mapping[str, str], kind: str,
        record: Callable[[Collected], Awaitable[object]], stack: AsyncExitStack,
    ) -> None:  # fmt: skip
        super().__init__(self._events(chunks), 200, headers, kind)
        self._collected = Collected()
        self._record = record
        self._recorded = False
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._stack.aclose()
                await self._keep()

    async def _events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the events. `[DONE]` is delayed until the answer is recorded, or until recording takes too long."""
        try:
            async for events in self._collected.events(chunks):
                if self._collected.ended:
                    await self._keep()
                yield events
            await self._keep()
        except ModelError as error:
            self._collected.finish, self._collected.cut = str(error), True
            # The leading newline ends an incomplete event.
            yield f"\ndata: {readable_json({'error': chat_error(502, str(error))})}\n\n".encode()

    async def _keep(self) -> None:
        if not self._recorded:
            self._recorded = True
            if not self._collected.finish:
                self._collected.cut = not self._collected.ended
                self._collected.finish = "cancelled" if self._collected.cut else "stop"
            await self._record(self._collected)


def _recorded(what: str, record: Callable[..., None], *given: object) -> str:
    """Call `record` and return "". If the memory raises an error, log it and return its message."""
    try:
        record(*given)
    except OrchestraMemError as error:
        logger.error("%s could not be recorded: %s", what, type(error).__name__)
        return str(error)
    return ""


async def _forget(answer: Collected) -> dict[str, str]:
    return {}


def _headers(prompt: Prompt) -> dict[str, str]:
    if prompt.aside:
        return {"X-Memory": "off"}
    headers = {"X-Memory": "on", "X-Memory-Tokens": str(prompt.tokens)}
    if prompt.sources:
        headers["X-Memory-Sources"] = _plain(", ".join(prompt.sources))
    if prompt.problem:
        headers["X-Memory-Problem"] = _plain(prompt.problem)
    return headers


def _plain(text: str) -> str:
    return " ".join(text.encode("ascii", "replace").decode().split())[:_MOST_SOURCES]


_ROLES = {"developer": Role.SYSTEM, **{role.value: role for role in Role}}


def prompt_of(body: Mapping[str, Json]) -> tuple[list[Message], dict[str, Any]]:
    """Convert a request for a model in this process: return its messages and the options for `generate`.

    Raises:
        HTTPException: The request has tools, non-text content or an unknown role, which are not supported.
    """
    asked: Any = body
    if asked.get("tools"):
        raise HTTPException(400, "the model in this process calls no tools; llama-server does: set llm.base_url")
    messages = []
    for message in asked["messages"]:
        role = _ROLES.get(message["role"])
        if role is None or others_of(message):
            raise HTTPException(400, f"the model in this process accepts only text, with the roles {', '.join(_ROLES)}")
        messages.append(Message(role=role, text=text_of(message)))
    kinds: dict[str, Any] = {"temperature": int | float, "seed": int}
    options = {name: asked[name] for name, kind in kinds.items() if isinstance(asked.get(name), kind)}
    form = asked.get("response_format")
    if isinstance(form, dict) and form.get("type") in ("json_schema", "json_object"):
        told = form.get("json_schema")
        schema = (told if isinstance(told, dict) else form).get("schema")
        options["schema"] = schema if isinstance(schema, dict) else {"type": "object"}
    return messages, options


def until_stop(generation: Generation, stop: Json) -> Generation:
    """Cut an answer before the first of the request's `stop` texts: a text or a list of texts."""
    text = generation.text
    for each in stop if isinstance(stop, list) else [stop]:
        if isinstance(each, str) and each:
            text = text.partition(each)[0]
    return generation if text == generation.text else replace(generation, text=text, finish=Finish.STOP)


def answered(generation: Generation, model: str) -> dict[str, Json]:
    """Return a model's answer as a completion of OpenAI's API."""
    finish = "length" if generation.finish is Finish.LENGTH else "stop"
    total = generation.prompt_tokens + generation.answer_tokens
    cached = max(0, generation.prompt_tokens - generation.evaluated_tokens)
    message: Json = {"role": "assistant", "content": generation.text}
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "created": int(time.time()), "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": generation.prompt_tokens, "completion_tokens": generation.answer_tokens,
            "total_tokens": total, "prompt_tokens_details": {"cached_tokens": cached},
        },
    }  # fmt: skip


def as_stream(completion: Mapping[str, Any], *, with_usage: bool) -> Iterator[bytes]:
    """Yield a completion as server-sent events: the complete text, its end and, if requested, its usage."""
    choice = completion["choices"][0]
    head = {**{key: completion[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    for event in (
        {"choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        *[{"choices": [], "usage": completion["usage"]}] * with_usage,
    ):
        yield f"data: {readable_json(head | event)}\n\n".encode()
    yield b"data: [DONE]\n\n"
