"""HTTP requests to a model server, prompts with retries after transient faults; and a relay of others' requests."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import cached_property, partial
from typing import Any, Generic, TypeVar
from urllib.parse import unquote, urlsplit

import httpx2 as httpx
from circuitbreaker import CircuitBreaker
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from orchestra_mem.core.addresses import address_fault
from orchestra_mem.errors import ModelError
from orchestra_mem.types import Json

_T = TypeVar("_T")

LOOK_EVERY_S = 0.02
_RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAX_QUOTED = 200
# No response of a model server is this long; an endless one must not fill the memory.
_MOST_BYTES = 16 * 1024 * 1024
_CONNECT_S = 5.0
# Questions about the server take milliseconds, but longer while the machine is busy generating.
_QUESTION_S = 10.0


class ServerFaultError(ModelError):
    """The server failed; the circuit breaker counts this fault."""


class PassingError(ServerFaultError):
    """A transient fault, after which the request is retried."""


class UnsupportedRequestError(ModelError):
    """The server does not support the request. `status`: HTTP status of its response."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class _Breaker(CircuitBreaker):  # type: ignore[misc]  # it has no types
    """A circuit breaker whose count of failures is not reset by a caller who cancels."""

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> bool:
        is_answer = kind is None or issubclass(kind, ModelError)
        return bool(is_answer and super().__exit__(kind, *rest))


class Server:
    """A model server. Safe to share between threads.

    Args:
        base_url: Address, with or without `/v1`. A user name and password in it are sent instead of the key, and are
            not part of `url`, which is shown and logged.
        api_key: Bearer token; empty for none.
        tries: Maximum number of attempts for a prompt.
        failures: Number of failed attempts in a row after which the server gets no more prompts; 0 for never.
        reset_s: Seconds until the server gets prompts again; if the next attempt fails, the pause is repeated.
        setting: Name of the setting that holds the address, for messages.

    Raises:
        ModelError: The address is invalid, or the key cannot be sent.
    """

    def __init__(
        self, base_url: str, *, api_key: str = "", tries: int = 3, failures: int = 5, reset_s: int = 60,
        setting: str = "llm.base_url",
    ) -> None:  # fmt: skip
        if problem := address_fault(base_url):
            raise ModelError(f"{setting} {problem}")
        if not (api_key.isascii() and api_key.isprintable()):
            key = setting.replace("base_url", "api_key")
            raise ModelError(f"{key} cannot be sent: it contains a control character, or letters that are not ASCII")
        parts = urlsplit(base_url)
        user, _, place = parts.netloc.rpartition("@")
        self.url = parts._replace(netloc=place).geturl().rstrip("/").removesuffix("/v1").rstrip("/")
        self._auth = (unquote(parts.username or ""), unquote(parts.password or "")) if user else None
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._host = parts.hostname or ""
        self._tries = tries
        self._failures = failures
        self._setting = setting
        self.answered_at = 0.0  # when it answered the last prompt, by the monotonic clock
        self._breaker = _Breaker(
            failure_threshold=failures or sys.maxsize, recovery_timeout=reset_s, expected_exception=ServerFaultError
        )

    def ask(self, method: str, path: str, body: Json = None, *, timeout_s: float = _QUESTION_S) -> Any:
        """Send a question, without retries, and return the JSON of the response.

        Raises:
            UnsupportedRequestError: The server does not support the question.
            ModelError: The server cannot be reached, or fails.
        """
        deadline = time.monotonic() + timeout_s

        def check() -> None:
            if time.monotonic() > deadline:
                raise ServerFaultError(f"{self.url} did not answer within {timeout_s:g} s")

        return self._exchange(method, path, body, self.json, check, 2 * timeout_s)

    def post(
        self, path: str, body: Json, read: Callable[[httpx.Response], _T], check: Callable[[], None], *,
        tries: int | None = None, timeout_s: float | None = None,
    ) -> _T:  # fmt: skip
        """Send a request, with retries after transient faults, and return what `read` returns for the response.

        Args:
            path, body: Path of the URL, and the JSON to send.
            read: Reads the response; called in another thread.
            check: Called many times a second; an exception from it ends the call.
            tries: Maximum number of attempts, in place of the server's default.
            timeout_s: Seconds that the server may stay silent, None for no limit.

        Raises:
            UnsupportedRequestError: The server does not support the request.
            ModelError: The server cannot be reached, fails, or has failed too often.
        """
        if self._breaker.opened:
            raise ModelError(
                f"{self.url} gets no requests after {self._failures} failures in a row; next attempt in "
                f"{max(1, self._breaker.open_remaining)} s; last failure: {self._breaker.last_failure}"
            )

        def pause(seconds: float) -> None:
            deadline = time.monotonic() + seconds
            while (left := deadline - time.monotonic()) > 0:
                check()
                time.sleep(min(left, LOOK_EVERY_S))

        retrying = Retrying(
            stop=stop_after_attempt(tries or self._tries),
            wait=wait_exponential_jitter(multiplier=0.2, max=5, jitter=0.2),
            retry=retry_if_exception_type(PassingError),
            sleep=pause,
            reraise=True,
        )
        exchange = partial(self._exchange, "POST", path, body, read, check, timeout_s)
        found: _T = retrying(self._breaker.call, exchange)
        self.answered_at = time.monotonic()
        return found

    def json(self, response: httpx.Response) -> Any:
        """Parse the body of a response as JSON; raise a `ServerFaultError` if it is not JSON."""
        try:
            return json.loads(self._body(response))
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "no type").partition(";")[0]
            raise ServerFaultError(
                f"{self.url} answered with {kind} instead of JSON: is {self._setting} the address of a model server?"
            ) from None

    def lines(self, response: httpx.Response) -> Iterator[str]:
        """Yield the lines of a response as they arrive; only line feeds end a line."""
        rest = b""
        for chunk in response.iter_bytes():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
            self._bound(len(rest))
        yield rest.decode("utf-8", "replace")

    def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            self._bound(len(body))
        return bytes(body)

    def _bound(self, size: int) -> None:
        if size > _MOST_BYTES:
            raise ServerFaultError(f"{self.url} sent too much data: {size:,} bytes so far")

    def _exchange(
        self, method: str, path: str, body: Json, read: Callable[[httpx.Response], _T], check: Callable[[], None],
        timeout_s: float | None = None,
    ) -> _T:  # fmt: skip
        """Send a request. `timeout_s`: Seconds of silence after which the request ends, even if the caller has left."""

        def accepted(response: httpx.Response) -> _T:
            if response.status_code < 300:
                return read(response)
            raise self._refusal(response)

        try:
            request = self._client.build_request(
                method, f"{self.url}{path}", json=body, headers=self._headers,
                timeout=httpx.Timeout(timeout_s, connect=_CONNECT_S),
            )  # fmt: skip
            return _Exchange(self._client, request, accepted).result(check)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.fault(error) from error

    @cached_property
    def _client(self) -> httpx.Client:
        # Connections are not reused, so that each can be closed before its response begins, and the server stops work.
        limits = httpx.Limits(max_keepalive_connections=0)
        return httpx.Client(limits=limits, **self._access)

    def asynchronous(self, silent_s: float) -> httpx.AsyncClient:
        """Return a client for an event loop, with this server's address, key and certificates; the caller closes it."""
        timeout = httpx.Timeout(silent_s, connect=_CONNECT_S)
        return httpx.AsyncClient(base_url=self.url, headers=self._headers, timeout=timeout, **self._access)

    @property
    def _access(self) -> dict[str, Any]:
        # For servers on this machine, ignore the environment's proxy, but use the environment's certificates.
        is_local = self._host in ("localhost", "::1") or self._host.startswith("127.")
        try:
            context = httpx.create_ssl_context(trust_env=self.url.startswith("https:"))
        except OSError as error:
            raise ModelError(f"SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {error}") from error
        return {"auth": self._auth, "verify": context, "trust_env": not is_local}

    def _refusal(self, response: httpx.Response) -> ModelError:
        status, refusal = response.status_code, self._body(response)
        words = f"{self.url} answered with {status}{_quoted(refusal)}"
        # llama-cpp-python's server responds with 500 if it does not support the `response_format`.
        if status in _RETRIED_STATUS and b"response_format" not in refusal:
            return PassingError(words)
        return UnsupportedRequestError(status, words)

    def fault(self, error: Exception) -> ServerFaultError:
        """Convert an error of the HTTP client to one with a helpful message."""
        if "CERTIFICATE_VERIFY" in str(error):
            return ServerFaultError(
                f"the certificate of {self.url} is not trusted: {error}; set SSL_CERT_FILE to the certificate of its "
                "authority"
            )
        if isinstance(error, httpx.ConnectError):
            return PassingError(f"{self.url} cannot be reached: {error}; start the server, or correct {self._setting}")
        if isinstance(error, httpx.TimeoutException):
            return PassingError(f"{self.url} does not answer: {type(error).__name__}")
        if isinstance(error, httpx.TransportError):
            why = str(error) or type(error).__name__  # a reset connection has no text
            return PassingError(f"the connection to {self.url} failed before the answer was complete: {why}")
        return ServerFaultError(f"{self.url}: {error}")


class _Exchange(Generic[_T]):
    """A request that runs in a separate thread, so that the caller can stop waiting at any time."""

    def __init__(self, client: httpx.Client, request: httpx.Request, read: Callable[[httpx.Response], _T]) -> None:
        self._found: Future[_T] = Future()
        self._left = threading.Event()
        self._stream: Any = None
        request.extensions["trace"] = self._trace

        def work() -> None:
            try:
                with closing(client.send(request, stream=True)) as response:
                    found = read(response)
                self._found.set_result(found)
            except BaseException as error:  # raised by `result`
                self._found.set_exception(error)

        threading.Thread(target=work, name="orchestra-mem request", daemon=True).start()

    def result(self, check: Callable[[], None]) -> _T:
        """Wait for the result of `read`; if `check` raises, shut the connection down."""
        try:
            check()
            while wait([self._found], timeout=LOOK_EVERY_S).not_done:
                check()
            return self._found.result()
        finally:
            self._left.set()
            self._end()

    def _end(self) -> None:
        sock = self._stream.get_extra_info("socket") if self._stream is not None else None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _trace(self, event: str, details: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._stream = details["return_value"]
            if self._left.is_set():
                self._end()


def _quoted(body: bytes) -> str:
    """Return the server's reason for a refusal, after a colon; "" if the body is not JSON with a reason."""
    try:
        found = json.loads(body)
        error = found.get("error", found)
        said = str(error.get("message", "") if isinstance(error, dict) else error)
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f": {' '.join(said.split())[:_MAX_QUOTED]}" if said else ""


# On a small machine, a large prompt is processed for minutes before the first token arrives.
_SILENT_S = 1_800.0


class Relay:
    """Forwards requests to one server, many at a time. For use in one event loop.

    Args:
        server: Provides the address, the key and the trusted certificates.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client = server.asynchronous(_SILENT_S)

    @asynccontextmanager
    async def send(self, method: str, path: str, body: Json = None) -> AsyncIterator[httpx.Response]:
        """Send a request and yield the response, whatever its status; its body is still to be read.

        Leaving the block before the body is read closes the connection, and the server stops its work.

        Raises:
            ModelError: The server cannot be reached, or the connection breaks while the block reads the body.
        """
        # ASCII: so a lone surrogate or NaN from a client reaches the server, which decides about it.
        content = None if body is None else json.dumps(body)
        kind = {"Content-Type": "application/json"}
        with self._translated():
            async with self._client.stream(method, path, content=content, headers=kind) as response:
                response.headers.setdefault("content-type", "application/json")
                yield response

    async def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Yield a response's body in pieces as they arrive, also after the block of `send`.

        Raises:
            ModelError: The connection broke.
        """
        with self._translated():
            async for chunk in response.aiter_bytes():
                yield chunk

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._server.fault(error) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
