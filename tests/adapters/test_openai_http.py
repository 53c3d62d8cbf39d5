"""The model over HTTP, against a real local server that imitates llama-server and its faults."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import Any

import httpx2
import pytest
import trustme

from orchestra_mem.adapters.openai_http import OpenAiModel, Server
from orchestra_mem.core.prompts import NOTES_KEYS, lines_schema
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Message, Role
from orchestra_mem.types import Json
from tests.builders import cases
from tests.timing import until

ASKED = [Message(role=Role.SYSTEM, text="You answer."), Message(role=Role.USER, text="What? \ud800")]


class Llama:
    """Behaviour of the fake server: the shapes follow llama-server's documentation (tools/server/README.md)."""

    def __init__(self) -> None:
        self.pieces = ["The ", "answer ", "is ", "42."]
        self.finish = "stop"
        self.pause_s = 0.0
        self.statuses: list[tuple[int, dict[str, str], bytes]] = []
        self.served = {"/props", "/apply-template", "/tokenize", "/slots"}
        self.busy_slots = [False, False]
        self.reported = 9
        self.window = 4096
        self.ends = "well"
        self.body: Any = None
        self.whole = False
        self.answer: Callable[[Any], str] = lambda body: "".join(self.pieces)
        self.takes_schema = True
        self.refuse: Callable[[str, Any], int] = lambda path, body: 0
        self.refusal = "not this"
        self.seen: list[tuple[str, Any, str]] = []
        self.told = 0
        self.broken_off = threading.Event()

    def questions(self, path: str, body: Any) -> Any:
        """Answer a request about the server itself."""
        if path == "/props":
            return {
                "default_generation_settings": {"n_ctx": self.window, "params": {}},
                "total_slots": 2,
                "model_path": "m.gguf",
            }
        if path == "/slots":
            return [{"id": n, "n_ctx": 4096, "is_processing": busy} for n, busy in enumerate(self.busy_slots)]
        if path == "/apply-template":
            said = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in body["messages"])
            return {"prompt": said + "".join(f"{json.dumps(tool)}\n" for tool in body.get("tools", []))}
        if "messages" in body:  # as vLLM
            return {"count": 100 * len(body["messages"]) + 10 * len(body.get("tools", []))}
        assert body["add_special"]
        return {"tokens": list(range(len(body["content"].split())))}

    def events(self) -> Iterator[bytes]:
        """Yield an answer as server-sent events."""
        for piece in self.pieces[: {"well": None, "reading": 0}.get(self.ends, 2)]:
            yield _event(choices=[{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
        while self.ends == "reading":
            time.sleep(0.02)
            choice = {"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}
            progress = {"total": 1_791, "cache": 0, "processed": 128, "time_ms": 1_214}
            yield _event(choices=[choice], prompt_progress=progress)
        if self.ends == "error":
            yield _event(error={"code": 500, "message": "out of slots"})
        if self.ends == "garbage":
            yield b"data: <html>\n\n"
        if self.ends != "well":
            return
        timings = {"prompt_n": 4, "prompt_ms": 1.0, "predicted_n": 4, "predicted_ms": 1.0}
        yield _event(choices=[{"index": 0, "delta": {}, "finish_reason": self.finish}], timings=timings)
        usage = {"prompt_tokens": self.reported, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
        yield _event(choices=[], usage=usage)
        yield b"data: [DONE]\n\n"


def _event(**data: Any) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _handler(llama: Llama) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True  # as in llama-server; else each answer waits 40 ms for an acknowledgement
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            """Answer a request about the server."""
            self._answer(None)

        def do_POST(self) -> None:
            """Answer a request about the server, or a prompt."""
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            llama.seen.append((self.path, body, self.headers.get("Authorization", "")))
            if self.path == "/v1/chat/completions":
                return self._complete(body)
            if status := llama.refuse(self.path, body):
                return self._send(status, {}, json.dumps({"error": llama.refusal}).encode())
            if self.path in llama.served:
                return self._send(200, {}, json.dumps(llama.questions(self.path, body)).encode())
            return self._send(404, {}, b'{"error": {"code": 404, "message": "File Not Found"}}')

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json"} | headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _complete(self, body: Any) -> None:
            if llama.statuses:
                return self._send(*llama.statuses.pop(0))
            if "response_format" in body and not llama.takes_schema:
                return self._send(400, {}, b'{"error": "response_format is not supported"}')
            if llama.whole:
                message = {"role": "assistant", "content": llama.answer(body)}
                choice = {"index": 0, "message": message, "finish_reason": llama.finish}
                return self._send(200, {}, json.dumps({"choices": [choice]}).encode())
            if llama.ends == "hang":
                self.connection.settimeout(20)
                if not self.connection.recv(1):
                    llama.broken_off.set()
                return None
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for event in llama.events():
                    time.sleep(llama.pause_s)
                    self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
                    self.wfile.flush()
                    llama.told += 1
                if llama.ends == "silence":
                    self.connection.settimeout(20)
                    self.connection.recv(1)
                if llama.ends == "early":
                    self.close_connection = True
                    return None
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                pass
            llama.broken_off.set()
            return None

    return Handler


class Quiet(ThreadingHTTPServer):
    """A server that prints nothing when a client disconnects."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


@pytest.fixture
def llama() -> Llama:
    """The behaviour of the fake server."""
    return Llama()


@contextmanager
def serving(llama: Llama, tls: ssl.SSLContext | None = None, *, port: int = 0) -> Iterator[str]:
    """Run the fake server and yield its address."""
    server = Quiet(("127.0.0.1", port), _handler(llama))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http{'s' * (tls is not None)}://127.0.0.1:{server.server_address[1]}"
    finally:
        llama.broken_off.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def url(llama: Llama) -> Iterator[str]:
    """The address of a running fake server."""
    with serving(llama) as address:
        yield address


@pytest.fixture
def model(url: str) -> OpenAiModel:
    """A model with two attempts per call, suspended for one second after three failures."""
    return OpenAiModel(Server(url, tries=2, failures=3, reset_s=1), model="qwen", context_tokens=2048)


def fault(model: OpenAiModel, **options: Any) -> str:
    """Return the message of the error that a generation raises."""
    with pytest.raises(ModelError) as error:
        model.generate(ASKED, max_tokens=9, **options)
    return str(error.value)


def test_an_answer_comes_with_its_figures(model: OpenAiModel, llama: Llama) -> None:
    """An answer has its text, finish and token figures, and its request has the schema and all options."""
    done = model.generate(ASKED, max_tokens=9, schema=lines_schema(NOTES_KEYS), temperature=0.5, seed=7, timeout_s=10)
    assert (done.text, done.finish) == ("The answer is 42.", Finish.STOP)
    assert (done.prompt_tokens, done.answer_tokens, done.evaluated_tokens) == (9, 4, 4)
    assert done.prompt_s > 0
    assert model.name == "qwen"
    ((path, body, key),) = llama.seen
    assert (path, key) == ("/v1/chat/completions", "")
    asked = [body[name] for name in ("model", "max_tokens", "temperature", "seed", "stream")]
    assert asked == ["qwen", 9, 0.5, 7, True]
    assert body["messages"] == [{"role": "system", "content": "You answer."}, {"role": "user", "content": "What? ?"}]
    assert body["response_format"]["json_schema"]["schema"] == lines_schema(NOTES_KEYS)


def test_an_answer_cut_by_its_length_says_so(model: OpenAiModel, llama: Llama) -> None:
    """An answer cut by its length says so; a server that does not stream reports no token counts."""
    llama.finish = "length"
    assert model.generate(ASKED, max_tokens=4).finish is Finish.LENGTH
    llama.whole = True
    done = model.generate(ASKED, max_tokens=4)
    assert (done.text, done.finish) == ("The answer is 42.", Finish.LENGTH)
    assert (done.prompt_tokens, done.answer_tokens) == (0, 0)


def test_window_and_counts_are_those_of_llama_server(model: OpenAiModel, llama: Llama) -> None:
    """The window comes from `/props`, prompt counts from template and vocabulary, and "busy" from the slots."""
    assert model.context_tokens == 4096
    assert model.count_prompt(ASKED) == len(
        "<|im_start|>system You answer.<|im_end|> <|im_start|>user What? ?<|im_end|>".split()
    )
    for llama.busy_slots in ([False, False], [True, False]):
        assert not model.busy()
    llama.busy_slots = [True, True]
    assert model.busy()


TOOL: dict[str, Json] = {"type": "function", "function": {"name": "look_up", "description": "Look it up: \ud800"}}


def test_tools_are_counted_by_whatever_counts_the_messages(url: str, llama: Llama) -> None:
    """Tools are counted by llama-server's template or vLLM's count, and estimated otherwise."""
    model = OpenAiModel(Server(url))
    without = model.count_prompt(ASKED)
    assert model.count_prompt(ASKED, tools=[TOOL]) == without + len(json.dumps(TOOL).split())
    # A server whose template takes no tools: tools are estimated, and messages counted as before.
    llama.refuse = lambda path, body: 400 if "tools" in body else 0
    model = OpenAiModel(Server(url))
    assert model.count_prompt(ASKED, tools=[TOOL]) == 11 // 3 + 7 // 3 + 16 + len(json.dumps(TOOL)) // 3 + 8
    assert model.count_prompt(ASKED) == without
    llama.refuse, llama.served = lambda path, body: 0, {"/tokenize"}
    model = OpenAiModel(Server(url), model="m")
    assert (model.count_prompt(ASKED), model.count_prompt(ASKED, tools=[TOOL])) == (200, 210)


def test_a_server_that_tells_nothing_is_estimated(model: OpenAiModel, llama: Llama) -> None:
    """Counts are estimated for a server without endpoints for them; each is tried once, and the set window is used."""
    llama.served = set()
    assert [model.context_tokens for _ in range(2)] == [2048, 2048]
    assert model.count_prompt(ASKED) == model.count_prompt(ASKED) == 11 // 3 + 7 // 3 + 16
    assert not model.busy()
    asked = [path for path, _, _ in llama.seen]
    lists = ["/api/ps", "/api/v0/models", "/v1/models"]
    assert sorted(asked) == sorted([*lists, "/apply-template", "/props", "/slots", "/tokenize"])
    assert "/v1/chat/completions" not in asked


def test_a_key_is_sent_and_v1_in_the_address_makes_no_difference(url: str, llama: Llama) -> None:
    """A key is sent; `/v1` in the address is optional; without a set name, the address names the model."""
    made = OpenAiModel(Server(f"{url}/v1/", api_key="secret"))
    assert made.generate(ASKED, max_tokens=9).finish is Finish.STOP
    assert llama.seen[0][0::2] == ("/v1/chat/completions", "Bearer secret")
    assert "model" not in llama.seen[0][1]
    assert made.name == url.removeprefix("http://")


def test_a_password_in_the_address_is_sent_and_never_shown(url: str, llama: Llama) -> None:
    """A password in the address replaces the key and appears in neither the model's name nor an error."""
    made = OpenAiModel(Server(f"{url.replace('//', '//alice:S3%2FCRET@')}/v1", api_key="secret"))
    assert made.generate(ASKED, max_tokens=9).finish is Finish.STOP
    assert llama.seen[0][0::2] == ("/v1/chat/completions", f"Basic {b64encode(b'alice:S3/CRET').decode()}")
    assert made.name == url.removeprefix("http://")
    llama.statuses = [(401, {}, b"")]
    assert fault(made) == f"{url} answered with 401"


@pytest.mark.parametrize(
    "address",
    ["http://[::1", "http://[zz]:1", "http://", "http://h:abc", "http://h:99999", "http://h:0", "ftp://h", "h"],
)
def test_an_address_that_is_none_is_told_in_words(address: str) -> None:
    """An invalid address is an error that explains the form and hides everything before an `@`."""
    words = (
        "is not a server address: use a form such as http://127.0.0.1:8080 or http://[::1]:8080, with a port of "
        "at most 65535"
    )
    with pytest.raises(ModelError) as error:
        Server(address)
    assert str(error.value) == f"llm.base_url {address!r} {words}"
    with pytest.raises(ModelError) as error:
        Server("http://alice:S3/CRET@h")
    assert str(error.value) == f"llm.base_url 'http://***@h' {words}"


def test_a_cancelled_answer_ends_at_once_and_the_server_stops(model: OpenAiModel, llama: Llama) -> None:
    """Cancelling ends an answer and its connection soon, whether the server is sending, silent or hanging."""
    llama.pieces = ["word "] * 1_000
    llama.pause_s = 0.02
    start = time.monotonic()
    done = model.generate(ASKED, max_tokens=999, cancelled=lambda: llama.told > 3)
    assert done.finish is Finish.CANCELLED
    assert 0 < done.answer_tokens < 500
    assert time.monotonic() - start < 15  # the complete answer would take 20 s
    assert llama.broken_off.wait(5)
    for llama.ends in ("silence", "hang"):
        llama.pause_s = 0
        llama.broken_off.clear()
        assert _cancelled_after(model, 0.2) < 1.5
        assert llama.broken_off.wait(5), llama.ends
    assert model.generate(ASKED, max_tokens=9, cancelled=lambda: True).finish is Finish.CANCELLED


def test_a_prompt_that_is_being_read_is_read_no_further(model: OpenAiModel, llama: Llama, url: str) -> None:
    """llama-server is asked to report progress, so that it notices a cancelled prompt; other servers are not."""
    assert model.context_tokens == 4096
    llama.ends = "reading"
    assert _cancelled_after(model, 0.3) < 1.5
    assert llama.broken_off.wait(5)
    llama.ends = "well"
    assert model.generate(ASKED, max_tokens=9).text == "The answer is 42."
    assert llama.seen[-1][1]["return_progress"]
    llama.served = set()
    other = OpenAiModel(Server(url))
    assert other.context_tokens == 8_192
    other.generate(ASKED, max_tokens=9)
    assert "return_progress" not in llama.seen[-1][1]


def _cancelled_after(model: OpenAiModel, seconds: float) -> float:
    """Return the duration of an answer that is cancelled after so many seconds."""
    start = time.monotonic()
    done = model.generate(ASKED, max_tokens=9, cancelled=lambda: time.monotonic() > start + seconds)
    assert done.finish is Finish.CANCELLED
    return time.monotonic() - start


@pytest.mark.parametrize("ends", ["hang", "silence"])
def test_a_server_that_hangs_is_given_up(model: OpenAiModel, llama: Llama, ends: str) -> None:
    """A hanging server is given up after the set time, before its first word or after it."""
    llama.ends = ends
    start = time.monotonic()
    tokens = 2 if ends == "silence" else 0
    assert fault(model, timeout_s=0.3) == f"qwen timed out after 0.3 s, {tokens} tokens into its answer"
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(("ends", "words"), cases("a_server_that_dies_in_mid_answer_is_told"))
def test_a_server_that_dies_in_mid_answer_is_told(
    model: OpenAiModel, llama: Llama, url: str, ends: str, words: str
) -> None:
    """A server that fails in mid-answer is an error, and the request is not repeated."""
    llama.ends = ends
    assert fault(model) == f"{url} {words}"
    assert len(llama.seen) == 1


@pytest.mark.parametrize("whole", [False, True])
def test_an_answer_of_more_characters_than_its_tokens_can_have_is_cut(
    model: OpenAiModel, llama: Llama, whole: bool
) -> None:
    """An answer is cut at 2,000 characters plus ten per token, even if one event holds more."""
    llama.whole = whole
    llama.pieces = ["x" * 2_090]
    assert model.generate(ASKED, max_tokens=9).finish is Finish.STOP
    llama.pieces = ["x" * 244_000]
    done = model.generate(ASKED, max_tokens=9)
    assert (len(done.text), done.finish) == (2_090, Finish.LENGTH)


def test_an_answer_that_does_not_end_is_ended(model: OpenAiModel, llama: Llama) -> None:
    """An endless answer is cut at its token limit, and an endless line or body is an error."""
    llama.pieces = ["word "] * 100_000
    start = time.monotonic()
    done = model.generate(ASKED, max_tokens=9)
    assert (done.finish, done.answer_tokens) == (Finish.LENGTH, 10)
    assert llama.broken_off.wait(5)
    assert time.monotonic() - start < 5
    llama.events = lambda: repeat(b"data: " + b"x" * 1_000_000)  # type: ignore[method-assign]
    assert fault(model).endswith(" bytes so far")
    llama.statuses = [(200, {}, b"[" * 17_000_000)]
    assert fault(model).endswith(" bytes so far")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(model: OpenAiModel, llama: Llama, url: str, status: int) -> None:
    """A 429, 500 or 503 is retried once; a second one is an error."""
    refusal = (status, dict[str, str](), b'{"error": {"message": "busy"}}')
    llama.statuses = [refusal]
    assert model.generate(ASKED, max_tokens=9).text == "The answer is 42."
    llama.statuses = [refusal] * 2
    assert fault(model) == f"{url} answered with {status}: busy"


def test_what_will_not_pass_is_not_tried_again(model: OpenAiModel, llama: Llama, url: str) -> None:
    """A refused key, a redirect, HTML or foreign JSON is an error without a retry."""
    llama.statuses = [(401, {}, b'{"error": {"message": "Invalid API Key"}}')]
    assert fault(model) == f"{url} answered with 401: Invalid API Key"
    llama.statuses = [(302, {"Location": "http://elsewhere"}, b"")]
    assert fault(model) == f"{url} answered with 302"
    page = "instead of JSON: is llm.base_url the address of a model server?"
    llama.statuses = [(200, {"Content-Type": "text/html; charset=x"}, b"<html>")]
    assert fault(model) == f"{url} answered with text/html {page}"
    llama.statuses = [(200, {}, b'{"choices": []}')]
    assert fault(model) == f"{url} answered with JSON that is not a chat completion"
    assert len(llama.seen) == 4


def test_a_server_that_takes_no_schema_is_asked_without(model: OpenAiModel, llama: Llama) -> None:
    """A server that refuses a schema is asked without one, from then on at once."""
    llama.takes_schema = False
    for _ in range(2):
        assert model.generate(ASKED, max_tokens=9, schema=lines_schema(NOTES_KEYS)).text == "The answer is 42."
    assert ["response_format" in body for _, body, _ in llama.seen] == [True, True, False, False]


def test_a_server_that_wants_the_schema_another_way_gets_it(model: OpenAiModel, llama: Llama) -> None:
    """A server that rejects `json_schema` as llama-cpp-python does gets `json_object`, from then on at once."""
    said = "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}"
    llama.statuses = [(500, {}, json.dumps({"error": {"message": said, "code": None}}).encode())]
    for _ in range(2):
        assert model.generate(ASKED, max_tokens=9, schema=lines_schema(NOTES_KEYS)).text == "The answer is 42."
    assert model.generate(ASKED, max_tokens=9).text == "The answer is 42."
    forms = [body.get("response_format") for _, body, _ in llama.seen]
    assert forms[0]["type"] == "json_schema"
    assert forms[1:] == [{"type": "json_object", "schema": lines_schema(NOTES_KEYS)}] * 2 + [None]


def test_a_server_that_keeps_failing_is_left_alone_for_a_while(model: OpenAiModel, llama: Llama, url: str) -> None:
    """A server is left alone after three failures; then one call decides, and a success ends the pause."""
    llama.statuses = [(500, {}, b"{}")] * 9  # more than are asked for: the cancelled request may still arrive
    assert fault(model) == f"{url} answered with 500"
    assert model.generate(ASKED, max_tokens=9, cancelled=lambda: True).finish is Finish.CANCELLED
    fault(model)
    words = (
        f"{url} gets no requests after 3 failures in a row; next attempt in 1 s; last failure: {url} answered with 500"
    )
    assert fault(model) == words
    assert len(llama.seen) <= 5
    llama.statuses = [(401, {}, b"{}")]
    time.sleep(1.1)
    assert fault(model) == f"{url} answered with 401"
    assert model.generate(ASKED, max_tokens=9).text == "The answer is 42."


def test_no_server_at_all() -> None:
    """An unreachable or reset server is an error with a reason; a key that no header can hold is refused at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    made = OpenAiModel(Server(address, tries=1))
    with pytest.raises(
        ModelError, match=rf"^{address} cannot be reached: .*; start the server, or correct llm.base_url"
    ):
        made.count_prompt(ASKED)
    assert fault(made).startswith(f"{address} cannot be reached: ")
    assert str(Server(address).fault(httpx2.ReadError(""))).endswith("before the answer was complete: ReadError")
    assert not made.busy()
    for key in ("schlüssel", "key\n"):
        with pytest.raises(ModelError, match=r"^llm.api_key cannot be sent: it contains a control character, or"):
            Server(address, api_key=key)


def test_a_wrong_certificate_is_refused(llama: Llama, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate of an unknown authority is refused; the authority may be given in the environment."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with serving(llama, context) as url:
        words = fault(OpenAiModel(Server(url)))
        assert words.startswith(f"the certificate of {url} is not trusted: "), words
        assert words.endswith("; set SSL_CERT_FILE to the certificate of its authority")
        assert llama.seen == []
        with authority.cert_pem.tempfile() as file:
            monkeypatch.setenv("SSL_CERT_FILE", file)
            monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")  # not used for servers on this machine
            assert OpenAiModel(Server(url)).generate(ASKED, max_tokens=9).text == "The answer is 42."


def test_one_answer_at_a_time_and_others_wait_for_their_turn(model: OpenAiModel, llama: Llama) -> None:
    """Only one answer runs at a time, and a waiting call ends at its timeout or when cancelled."""
    llama.pieces, llama.pause_s = ["word "] * 40, 0.02
    first = threading.Thread(target=model.generate, args=(ASKED,), kwargs={"max_tokens": 99})
    first.start()
    until(lambda: llama.seen)
    assert fault(model, timeout_s=0.1) == "qwen timed out after 0.1 s, 0 tokens into its answer"
    assert model.generate(ASKED, max_tokens=99, cancelled=lambda: True).finish is Finish.CANCELLED
    first.join()
    assert len(llama.seen) == 1
