"""Calls to a server over HTTP: tried again where that may help, left alone where it does not, and faults in words."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from queue import Empty, Full, Queue
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2 as httpx
from circuitbreaker import CircuitBreaker
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from orchestra_mem.errors import ModelError
from orchestra_mem.settings import address_fault
from orchestra_mem.types import Json

_RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAX_QUOTED = 200
# No answer of a model's server is as long; one that does not end must not fill the memory.
_MOST_BYTES = 32 * 1024 * 1024
_LOOK_EVERY_S = 0.02
# So many chunks of a body are read before somebody wants them.
_AHEAD = 64
# Questions about the server itself take milliseconds; a machine that is busy generating takes longer.
_QUESTION_S = 10.0

Stopped = Callable[[], str]
"""Says why a call is to end, empty where it is not; what it raises ends the call as well."""


class ServerFaultError(Exception):
    """The server failed; counted by the breaker."""

    def __init__(self, words: str, *, after_s: float = 0.0) -> None:
        super().__init__(words)
        self.after_s = after_s


class _PassingError(ServerFaultError):
    """One that may pass: the call is made again."""


class NotServedError(Exception):
    """The server does not know what is asked of it; `status` is what it answered with."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Reply:
    """A response and its body, which comes from a thread of its own: whoever waits for it can leave at any time."""

    def __init__(self, client: httpx.Client, request: httpx.Request, check: Callable[[], None], url: str) -> None:
        self._check = check
        self._url = url
        self._came: Queue[Any] = Queue(_AHEAD)  # the response, chunks of its body, None at the end; or an error
        self._left = threading.Event()
        self._stream: Any = None
        self._whole = False
        request.extensions["trace"] = self._trace
        work = partial(self._exchange, client, request)
        threading.Thread(target=work, name="orchestra-mem request", daemon=True).start()
        try:
            self._response: httpx.Response = self._next()
        except BaseException:
            self.close()
            raise
        self.status, self.headers = self._response.status_code, self._response.headers

    def lines(self) -> Iterator[str]:
        """Give the lines of the body as they come; they end with line feeds and with nothing else."""
        rest = b""
        for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
            self._bound(len(rest))
        yield rest.decode("utf-8", "replace")

    def body(self) -> bytes:
        """Give the whole body."""
        body = bytearray()
        for chunk in self._chunks():
            body += chunk
            self._bound(len(body))
        return bytes(body)

    def json(self) -> Any:
        """Give the body as JSON; something else is a fault."""
        try:
            return json.loads(self.body())
        except (ValueError, RecursionError):
            kind = self.headers.get("content-type", "no type").partition(";")[0]
            raise ServerFaultError(
                f"{self._url} answered with {kind}, not with JSON: is llm.base_url the address of a model's server?"
            ) from None

    def close(self) -> None:
        """End the connection, unless the body has been read to its end: then it may be used again."""
        self._left.set()
        sock = self._stream.get_extra_info("socket") if self._stream is not None and not self._whole else None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _chunks(self) -> Iterator[bytes]:
        while (chunk := self._next()) is not None:
            yield chunk
        self._whole = True

    def _next(self) -> Any:
        while True:
            self._check()
            with suppress(Empty):
                came = self._came.get(timeout=_LOOK_EVERY_S)
                if isinstance(came, Exception):
                    raise came
                return came

    def _bound(self, size: int) -> None:
        if size > _MOST_BYTES:
            raise ServerFaultError(f"{self._url} sent {size:,} bytes without an end")

    def _trace(self, event: str, told: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._stream = told["return_value"]
            if self._left.is_set():
                self.close()

    def _exchange(self, client: httpx.Client, request: httpx.Request) -> None:
        try:
            with closing(client.send(request, stream=True)) as response:
                self._stream = self._stream or response.extensions.get("network_stream")
                self._hand_on(response)
                for chunk in response.iter_bytes():
                    self._hand_on(chunk)
                    if self._left.is_set():
                        return
            self._hand_on(None)
        except Exception as error:  # raised to whoever waits
            self._hand_on(error)

    def _hand_on(self, what: httpx.Response | bytes | Exception | None) -> None:
        while not self._left.is_set():
            with suppress(Full):
                self._came.put(what, timeout=_LOOK_EVERY_S)
                return


class Server:
    """One server. Safe to share between threads.

    Args:
        base_url: its address, with or without `/v1`. A name and a password in it are sent along in place of the key,
            and are no part of `url`, which is shown and logged.
        api_key: sent along where it is not empty.
        connect_s: the most that connecting may take.
        tries: how often a call is made at the most.
        failures: after so many in a row it is left alone ...
        reset_s: ... for so long; then one more decides.
        verify: the certificates that are trusted; the system's by default.
        keep_alive: whether connections are used again. One of its own can be ended before its answer begins, and then
            a server ends its work.

    Raises:
        ModelError: the address is none, or the key cannot be sent.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "",
        connect_s: float = 5.0,
        tries: int = 3,
        failures: int = 5,
        reset_s: float = 60.0,
        verify: ssl.SSLContext | bool = True,
        keep_alive: bool = True,
    ) -> None:
        if problem := address_fault(base_url):
            raise ModelError(f"llm.base_url {problem}")
        parts = urlsplit(base_url)
        user, _, place = parts.netloc.rpartition("@")
        self.url = parts._replace(netloc=place).geturl().rstrip("/").removesuffix("/v1").rstrip("/")
        self._auth = (unquote(parts.username or ""), unquote(parts.password or "")) if user else None
        if not (api_key.isascii() and api_key.isprintable()):
            raise ModelError("llm.api_key cannot be sent: it holds a line feed, or letters that are not ASCII")
        # What is on this machine is not behind the proxy that the environment names.
        host = parts.hostname or ""
        self._local = host == "localhost" or host.startswith("127.") or host == "::1"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._connect_s = connect_s
        self._tries = tries
        self._failures = failures
        self._verify = verify
        self._keep_alive = keep_alive
        self._breaker = CircuitBreaker(
            failure_threshold=failures, recovery_timeout=int(reset_s), expected_exception=ServerFaultError
        )
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def ask(self, method: str, path: str, body: Json = None, *, timeout_s: float = _QUESTION_S) -> Any:
        """Give the JSON that the server answers a question with.

        Raises:
            NotServedError: it does not know the question.
            ModelError: it cannot be reached, or fails.
        """
        deadline = time.monotonic() + timeout_s

        def stopped() -> str:
            return f"no answer in {timeout_s:g} s" if time.monotonic() > deadline else ""

        with self.calling(method, path, body, stopped, lambda: 0, timeout_s=2 * timeout_s) as reply:
            return reply.json()

    @contextmanager
    def calling(
        self,
        method: str,
        path: str,
        body: Json,
        stopped: Stopped,
        received: Callable[[], int],
        *,
        timeout_s: float | None = None,
    ) -> Iterator[Reply]:
        """Call the server, as often as is worth while, and give its reply to be read.

        Args:
            method: of HTTP.
            path: behind the address.
            body: sent as JSON.
            stopped: asked all the time; the call ends where it says why.
            received: how many tokens there are of the answer; for words, where it breaks off.
            timeout_s: how long the server may stay silent, be the call waited for or not.

        Raises:
            NotServedError: the server does not know what is asked of it.
            ModelError: it cannot be reached, or fails.
        """
        if self._breaker.opened:
            raise ModelError(
                f"{self.url} is left alone after {self._failures} failures in a row, the next try is in "
                f"{max(1, self._breaker.open_remaining)} s: {self._breaker.last_failure}"
            )
        check = partial(self._end_if, stopped)
        try:
            reply = self._retrying(check)(self._begin, method, path, body, check, timeout_s)
            with closing(reply), self._breaker:
                try:
                    yield reply
                except httpx.HTTPError as error:
                    raise ServerFaultError(
                        f"{self.url} broke off in mid-answer, {received():,} tokens into it"
                    ) from error
        except ServerFaultError as error:
            raise ModelError(str(error)) from error

    def _begin(self, method: str, path: str, body: Json, check: Callable[[], None], timeout_s: float | None) -> Reply:
        """Send a request and give the reply, its status well, before its body is read."""
        with self._breaker, self._translated():
            client = self._opened()
            request = client.build_request(
                method, f"{self.url}{path}", json=body, headers=self._headers,
                timeout=httpx.Timeout(timeout_s, connect=self._connect_s),
            )  # fmt: skip
            reply = Reply(client, request, check, self.url)
            if reply.status < 300:
                return reply
            with closing(reply):
                refusal = reply.body()
            words = f"{self.url} answered with {reply.status}{_quoted(refusal)}"
            # llama-cpp-python's server says 500 where it does not know the form that is asked for.
            if reply.status in _RETRIED_STATUS and b"response_format" not in refusal:
                raise _PassingError(words, after_s=_seconds(reply.headers.get("retry-after", "")))
        raise NotServedError(reply.status, words)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise self._fault(error) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServerFaultError(f"{self.url}: {error}") from error

    def _fault(self, error: Exception) -> ServerFaultError:
        if any(isinstance(each, ssl.SSLError) for each in _causes(error)) or "CERTIFICATE_VERIFY" in str(error):
            return ServerFaultError(
                f"the certificate of {self.url} is not trusted: {error}; name its authority in SSL_CERT_FILE"
            )
        if isinstance(error, httpx.ConnectError):
            return _PassingError(f"{self.url} cannot be reached: {error}; start the server, or mend llm.base_url")
        if isinstance(error, httpx.TimeoutException):
            return _PassingError(f"{self.url} does not answer: {type(error).__name__}")
        return _PassingError(f"{self.url} broke off before its answer: {error}")

    def _retrying(self, check: Callable[[], None]) -> Retrying:
        jittered = wait_exponential_jitter(multiplier=0.2, max=5, jitter=0.2)

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = error.after_s if isinstance(error, _PassingError) else 0.0
            return max(asked, jittered(state))

        def sleep(seconds: float) -> None:
            deadline = time.monotonic() + seconds
            while (left := deadline - time.monotonic()) > 0:
                check()
                time.sleep(min(left, _LOOK_EVERY_S))

        return Retrying(
            stop=stop_after_attempt(self._tries),
            wait=wait,
            retry=retry_if_exception_type(_PassingError),
            sleep=sleep,
            reraise=True,
        )

    def _end_if(self, stopped: Stopped) -> None:
        if why := stopped():
            raise ServerFaultError(f"{self.url} was given up: {why}")

    def _opened(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                limits = httpx.Limits(max_keepalive_connections=None if self._keep_alive else 0)
                self._client = httpx.Client(
                    auth=self._auth, verify=self._verify, limits=limits, trust_env=not self._local
                )
            return self._client

    def close(self) -> None:
        """Let go of connections; opened anew when used again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _quoted(body: bytes) -> str:
    """What a server says of its refusal, where it says it in JSON."""
    try:
        found = json.loads(body)
        error = found.get("error", found)
        said = str(error.get("message", "") if isinstance(error, dict) else error)
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f": {' '.join(said.split())[:_MAX_QUOTED]}" if said else ""


def _seconds(text: str) -> float:
    try:
        return min(30.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
