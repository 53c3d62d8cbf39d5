"""The real llama-server, built by `make llama-server`: every request that this project makes of it."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from orchestra_mem import open_memory
from orchestra_mem.adapters.llama import GgufVocabulary
from orchestra_mem.adapters.openai_http import OpenAiModel, Server
from orchestra_mem.core.prompts import NOTES_KEYS, lines_schema
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Message, Role
from tests.conftest import record
from tests.timing import until
from tools.llama_server import default_path

pytestmark = pytest.mark.slow

WINDOW, SLOTS = 2_048, 2
START_S = 60.0
LONG = "Count to ten thousand."
ODD = ["", "a", "你好, world", "don't <|im_end|> stop", "x = [1,\n  2]\n\n", "\U0001f600 \ud800", "123 " * 90]


class Running:
    """A running llama-server with two slots."""

    def __init__(self, gguf: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [str(default_path()), "--model", str(gguf), "--port", str(self.port), "--threads", "1",
             "--ctx-size", str(WINDOW * SLOTS), "--parallel", str(SLOTS), "--no-kv-unified"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def await_health(self) -> None:
        """Wait until the model is loaded."""
        until(lambda: self._healthy() or self.process.poll() is not None, START_S)
        assert self.process.poll() is None, "the server has ended"

    def _healthy(self) -> bool:
        try:
            with urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def kill(self) -> None:
        """Kill the server as a crash would."""
        self.process.kill()
        self.process.wait(30)


@pytest.fixture(scope="module")
def binary() -> Path:
    """The path of the server's program."""
    path = default_path()
    if not path.is_file():
        pytest.skip("needs llama.cpp's own server, see `make llama-server`")
    return path


@pytest.fixture(scope="module")
def running(binary: Path, smollm_gguf: Path) -> Iterator[Running]:
    """A running server, shared by all tests that do not kill it."""
    server = Running(smollm_gguf)
    server.await_health()
    yield server
    server.kill()


@pytest.fixture
def model(running: Running) -> OpenAiModel:
    """The server's model."""
    return OpenAiModel(Server(running.url))


def asked(text: str) -> list[Message]:
    """Return a prompt that asks this."""
    return [Message(role=Role.SYSTEM, text="You are brief."), Message(role=Role.USER, text=text)]


@pytest.mark.parametrize("text", ODD)
def test_a_prompt_is_counted_as_it_is_read(model: OpenAiModel, text: str) -> None:
    """Prompt counts equal the usage that the server reports, also with special tokens, emoji and surrogates."""
    done = model.generate(asked(text), max_tokens=1)
    assert model.count_prompt(asked(text)) == done.prompt_tokens
    assert not model.doubts


def test_an_answer_comes_by_schema_with_its_figures(model: OpenAiModel) -> None:
    """An answer follows its schema unless cut off, and a repeated prompt comes almost entirely from the cache."""
    prompt = asked("Tell what was done: the parser in src/rows.py was mended. " * 12)
    first = model.generate(prompt, max_tokens=400, schema=lines_schema(NOTES_KEYS))
    again = model.generate(prompt, max_tokens=400, schema=lines_schema(NOTES_KEYS))
    assert first.finish in (Finish.STOP, Finish.LENGTH)
    if first.finish is Finish.STOP:
        assert set(json.loads(first.text)) <= set(lines_schema(NOTES_KEYS)["properties"])  # type: ignore[arg-type]
    assert first.prompt_tokens == again.prompt_tokens > 100
    assert again.evaluated_tokens <= 8 < first.prompt_tokens
    assert first.answer_tokens > 0
    assert first.answer_s > 0


def test_a_cancelled_answer_frees_its_slot(running: Running, model: OpenAiModel) -> None:
    """A cancelled answer frees its slot within seconds, since the server stops when the connection closes."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(model.generate, asked(LONG), max_tokens=1_500, cancelled=stop.is_set)
        until(lambda: busy_slots(running) == 1)
        stop.set()
        assert answer.result(10).finish is Finish.CANCELLED
    until(lambda: busy_slots(running) == 0, 5)


def busy_slots(server: Running) -> int:
    """Return the number of slots that the server reports as busy."""
    slots = Server(server.url).ask("GET", "/slots")
    return sum(bool(slot["is_processing"]) for slot in slots)


def test_a_memory_counts_by_it_and_never_exceeds(running: Running, smollm_gguf: Path, tmp_path: Path) -> None:
    """A context becomes exact and stays within budget; the GGUF's vocabulary counts no more tokens than it states."""
    vocabulary = GgufVocabulary(smollm_gguf)
    config = {
        "llm": {"base_url": running.url},
        "compression": {"auto": False},
        "orchestrator": {"context_window": {"max_tokens": WINDOW}},
    }
    with open_memory(tmp_path, config=config) as memory:
        record(memory, 120, say="Step {n}: don't touch src/rows_{n}.py — 你好 \U0001f600, it's 12345 bytes.")
        context = memory.get_orchestrator_context("next", 1_200)
        if not context.exact:  # counted in the background meanwhile
            until(lambda: memory.get_orchestrator_context("next", 1_200).exact)
            context = memory.get_orchestrator_context("next", 1_200)
        rendered = context.render()
    counted = len(vocabulary.tokens(rendered))
    vocabulary.close()
    assert counted <= context.tokens <= 1_200


def test_one_that_dies_is_told(binary: Path, smollm_gguf: Path) -> None:
    """A server that dies is an error: in mid-answer that it broke off, afterwards that it cannot be reached."""
    server = Running(smollm_gguf)
    server.await_health()
    model = OpenAiModel(Server(server.url, tries=1))
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(model.generate, asked(LONG), max_tokens=1_500)
        until(lambda: busy_slots(server) == 1)
        server.kill()
        with pytest.raises(ModelError, match="broke off its answer after"):
            answer.result(20)
    with pytest.raises(ModelError, match="cannot be reached"):
        model.generate(asked("Still there?"), max_tokens=2)
