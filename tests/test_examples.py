"""The programs in `examples/` run as their first lines say, each in a separate Python process."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from tests.adapters.test_openai_http import Llama, serving
from tests.processes import CHECKOUT, start


def _start(name: str, *arguments: str) -> subprocess.Popen[str]:
    return start(CHECKOUT / "examples" / f"{name}.py", *arguments, stdin=subprocess.PIPE)


def _run(name: str, *arguments: str, said: str = "") -> tuple[int, str, str]:
    program = _start(name, *arguments)
    answered, told = program.communicate(said, timeout=300)
    return program.returncode, answered, told


@pytest.mark.parametrize("name", [path.stem for path in (CHECKOUT / "examples").glob("*.py")])
def test_each_example_says_how_it_is_used_and_is_short(name: str) -> None:
    """An example without arguments prints a usage line and no traceback, and has at most 100 lines."""
    code, answered, told = _run(name)
    assert (code, answered) == (1, "")
    assert told.startswith(f"usage: {name}.py ")
    assert len((CHECKOUT / "examples" / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 100


@pytest.mark.slow
def test_an_agent_with_a_model_in_its_process_remembers(tmp_path: Path, smollm_gguf: Path) -> None:
    """The llama agent answers, runs a command, and finds what was said in its memory afterwards."""
    said = "We decided to bake rye bread on Tuesdays.\n!echo the oven is hot; exit 3\n\n"
    code, answered, told = _run("agent_llama", str(smollm_gguf), str(tmp_path / "project"), said=said)
    assert code == 0, told
    assert "the oven is hot" in answered
    with open_memory(tmp_path / "project") as memory:
        kinds = [op.type for op in memory.operations()]
        assert kinds == ["user_message", "agent_message", "task_execution"]
        assert "rye bread on Tuesdays" in memory.get_orchestrator_context("chat").render()


def test_an_agent_without_its_model_says_so(tmp_path: Path) -> None:
    """With a wrong path to the model the llama agent exits with 2 and one line that names the path."""
    model = tmp_path / "missing.gguf"
    code, answered, told = _run("agent_llama", str(model), str(tmp_path / "project"), said="Hello?\n")
    assert (code, answered) == (2, "")
    assert told == f"{model} does not exist; set llm.model_path or search.model_path to a GGUF model file\n"


@pytest.fixture
def server() -> Iterator[tuple[str, Llama]]:
    """An OpenAI-compatible server that repeats the last message and counts no tokens."""
    llama = Llama()
    llama.whole, llama.served = True, set()
    llama.answer = lambda body: f"You said: {body['messages'][-1]['content']}"
    with serving(llama) as url:
        yield f"{url}/v1", llama


def test_an_agent_with_a_client_of_its_own_sends_the_memory(tmp_path: Path, server: tuple[str, Llama]) -> None:
    """The prompt of the second session contains what was said in the first."""
    address, llama = server
    first = _run("agent_server", address, "any", str(tmp_path), said="The oven key hangs behind the blue door.\n")
    assert first[:2] == (0, "You said: The oven key hangs behind the blue door.\n"), first
    assert _run("agent_server", address, "any", str(tmp_path), said="Where is the oven key?\n")[0] == 0
    *before, last = next(body["messages"] for path, body, _ in reversed(llama.seen) if "chat" in path)
    assert "behind the blue door" in json.dumps(before)
    assert last == {"role": "user", "content": "Where is the oven key?"}


def test_an_agent_whose_server_is_gone_goes_on(tmp_path: Path) -> None:
    """Without a server the agent prints one line per failure, no traceback, and exits with 0."""
    code, answered, told = _run("agent_server", "http://127.0.0.1:9/v1", "any", str(tmp_path), said="Hello?\n")
    assert (code, answered) == (0, "")
    assert told.startswith("http://127.0.0.1:9/v1: ")
    assert "Traceback" not in told


def test_an_agent_says_that_an_answer_is_no_completion(tmp_path: Path, server: tuple[str, Llama]) -> None:
    """An answer that is HTML, or another JSON, is told in a line, and the agent goes on."""
    address, llama = server
    llama.statuses = [(200, {"Content-Type": "text/html"}, b"<html>"), (200, {}, b'{"error": "busy"}')]
    code, answered, told = _run("agent_server", address, "any", str(tmp_path), said="One?\nTwo?\nThree?\n")
    assert (code, answered) == (0, "You said: Three?\n"), told
    assert [line.startswith(f"{address}: the answer is no chat completion: ") for line in told.splitlines()] == [
        True
    ] * 2


def test_notes_are_taken_in_once_and_found(tmp_path: Path) -> None:
    """Each version of a note is recorded once, the new one is found by search, and Ctrl-C ends the watcher."""
    note = tmp_path / "keys.md"
    note.write_text("The cellar key is with Marta.", encoding="utf-8")
    program = _start("watch_notes", str(tmp_path))
    assert program.stderr is not None
    assert program.stderr.readline() == "1 notes read\n"
    note.write_text("The cellar key is with Otto since Monday.", encoding="utf-8")
    assert program.stderr.readline() == "1 notes read\n"
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=30)
    assert program.returncode == 130
    code, answered, told = _run("watch_notes", str(tmp_path), "who has the cellar key?")
    assert (code, told) == (0, "1 notes read\n")
    assert "with Otto since Monday" in answered
    with open_memory(tmp_path) as memory:
        assert len(memory.operations()) == 2
