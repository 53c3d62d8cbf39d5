"""Token counts by a llama-server over HTTP: exact for contexts, estimates elsewhere."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.openai_http import OpenAiModel, Server, ServerTokenCounter
from orchestra_mem.adapters.tokenizers import TiktokenCounter
from orchestra_mem.model_types import Message, Role
from tests.adapters.test_openai_http import Llama, serving
from tests.timing import until

OWN = TiktokenCounter()


class Counting(Llama):
    """A llama-server with cl100k's vocabulary, which may be slow, fail or answer otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.delay_s = 0.0
        self.asked: list[str] = []
        self.count: Callable[[str], int] = OWN.count

    def questions(self, path: str, body: Any) -> Any:
        """Answer a request, counting tokens for `/tokenize`."""
        if path == "/props":
            return {"default_generation_settings": {"n_ctx": self.window}}
        if path != "/tokenize":
            return super().questions(path, body)
        time.sleep(self.delay_s)
        if "content" not in body:
            return {"error": "no content"}
        self.asked.append(body["content"])
        return {"tokens": [0] * self.count(body["content"])}


@pytest.fixture
def llama() -> Counting:
    """The behaviour of the server."""
    return Counting()


@pytest.fixture
def url(llama: Counting) -> Iterator[str]:
    """The server's address."""
    with serving(llama) as address:
        yield address


def opened(folder: Path, url: str, window: int = 8_192) -> OrchestratorContextManager:
    """Open a memory whose tokens the server counts."""
    config = {
        "llm": {"base_url": url},
        "orchestrator": {"context_window": {"max_tokens": window}, "working_memory": {"max_operations": 8}},
        "compression": {"auto": False},
    }
    return open_memory(folder, config=config)


def problems(memory: OrchestratorContextManager) -> list[object]:
    """Return the texts of the reported problems."""
    return [each["problem"] for each in memory.compression.problems() if isinstance(each, dict)]


def fill(memory: OrchestratorContextManager, count: int = 30, first: int = 0) -> None:
    """Record long notes."""
    for number in range(first, first + count):
        memory.record_operation("note", {"text": f"Row {number}: {'0x1f, ' * 40} is in module_{number}.py."})


def test_only_what_the_server_has_counted_is_exact(tmp_path: Path, url: str, llama: Counting) -> None:
    """Contexts are exact; retrieved text and the window's figures say that they are estimates."""
    with opened(tmp_path, url) as memory:
        fill(memory, 4)
        assert memory.get_orchestrator_context("x").exact
        found = memory.retriever.retrieve_context("which module?", max_tokens=500)
        assert (found.exact, found.counter) == (False, f"estimate, corrected by the server at {url[7:]}")
        window = memory.get_stats()["context_window"]
        assert isinstance(window, dict)
        assert (window["exact"], window["counter"]) == (False, found.counter)


def test_a_short_context_is_exact_at_once(tmp_path: Path, url: str, llama: Counting) -> None:
    """A context is exact even if it is too short to correct the estimates."""
    with opened(tmp_path, url) as memory:
        memory.record_operation("note", {"text": "Rain."})
        context = memory.get_orchestrator_context("x")
        assert (context.exact, len(llama.asked)) == (True, 1)
        assert context.tokens == OWN.count(context.render()) < 100


def test_estimates_are_corrected_by_the_counts_of_contexts(tmp_path: Path, url: str, llama: Counting) -> None:
    """Counts of contexts correct the estimates, so that a budget is filled also with an unusual vocabulary."""
    llama.count = lambda text: 3 * OWN.count(text)
    with opened(tmp_path, url) as memory:
        fill(memory)
        context = memory.get_orchestrator_context("x", 4_000)
        assert context.exact
        assert 3_000 < context.tokens == llama.count(context.render()) <= 4_000


@pytest.mark.parametrize("kind", ["no such path", "other answer", "the same for all"])
def test_a_server_that_does_not_count_is_told_and_the_fallback_counts(
    tmp_path: Path, url: str, llama: Counting, kind: str
) -> None:
    """If the server does not count, as Ollama does not, tiktoken counts, with a reported problem."""
    if kind == "no such path":
        llama.served -= {"/tokenize"}
    elif kind == "other answer":
        llama.questions = lambda path, body: {"tokens": "many"}  # type: ignore[method-assign]
    else:
        llama.count = lambda text: 1
    with opened(tmp_path, url) as memory:
        fill(memory, 2)
        context = memory.get_orchestrator_context("x", 4_000)
        assert (context.exact, context.counter) == (False, "tiktoken cl100k_base")
        assert context.tokens >= OWN.count(context.render())
        assert (
            problems(memory)[-1]
            == f"{url} does not count tokens; tiktoken cl100k_base counts instead of the model's tokenizer"
        )


@pytest.mark.parametrize("status", [404, 401, 400, 413])
def test_a_server_that_has_counted_is_asked_again_after_a_refusal(
    tmp_path: Path, url: str, llama: Counting, status: int
) -> None:
    """After a refusal, counts are estimates with a reported reason, until the server counts again."""
    with opened(tmp_path, url) as memory:
        fill(memory, 2)
        assert memory.get_orchestrator_context("x").exact
        llama.refuse = lambda path, body: status
        fill(memory, 1, first=100)
        context = memory.get_orchestrator_context("x")
        assert not context.exact
        assert context.counter.startswith("estimate, until the server at 127.0.0.1:")
        problem = str(*problems(memory))
        assert problem.startswith("tokens are estimated, on the high side: at the last attempt ")
        assert re.search(rf" {url} answered with {status}: not this; next attempt in \d+ s$", problem)
        llama.refuse = lambda path, body: 0
        until(lambda: memory.get_orchestrator_context("x").exact)
        assert problems(memory) == []


def test_a_server_that_is_back_counts_again_once_it_has_answered_a_prompt(
    tmp_path: Path, url: str, llama: Counting
) -> None:
    """A server that was away is left alone for seconds, but only until the model has answered a prompt."""
    server = Server(url, tries=1)
    counter, model = ServerTokenCounter(server, near=OWN), OpenAiModel(server)
    with opened(tmp_path, url) as memory:
        fill(memory, 2)
        context = memory.get_orchestrator_context("x")
    assert counter.assemble(lambda epoch: context).exact
    llama.refuse = lambda path, body: 503
    for _ in range(2):
        until(lambda: not counter.doubts or counter.doubts[0].endswith("next attempt with the next context"))
        assert not counter.assemble(lambda epoch: context).exact
    llama.refuse = lambda path, body: 0
    assert not counter.assemble(lambda epoch: context).exact
    assert counter.doubts[0].endswith("; next attempt in 2 s")
    model.generate([Message(role=Role.USER, text="Hello")], max_tokens=4)
    assert counter.assemble(lambda epoch: context).exact
    assert counter.doubts == []


def test_contexts_are_counted_by_the_server_and_never_over_the_budget(
    tmp_path: Path, url: str, llama: Counting
) -> None:
    """Contexts are exact and within budget, also after a refresh, and keep their prefix within an epoch."""
    with opened(tmp_path, url) as memory:
        fill(memory)
        memory.refresh()
        for number in range(3):
            before = memory.get_orchestrator_context("x", 7_000)
            assert before.exact
            assert before.tokens == OWN.count(before.render()) <= 7_000
            fill(memory, 1, first=100 + number)
            after = memory.get_orchestrator_context("x", 7_000)
            assert after.exact
            assert after.tokens == OWN.count(after.render()) <= 7_000
            assert after.render().startswith(before.render())
            assert after.epoch == before.epoch
            assert "the model's own" in after.explain()


def note(memory: OrchestratorContextManager, lines: int = 20) -> None:
    """Add a person's lines to a document; the context shows them after the epoch's border, still uncounted."""
    path = memory.episodic_memory.folder / "project_state.md"
    said = "\n".join(f"Line {n} of what I wrote, 0x{n:04x}." for n in range(lines))
    path.write_text(f"{path.read_text(encoding='utf-8')}\n## Mine\n\n{said}\n", encoding="utf-8")


def test_what_was_told_by_estimate_is_counted_again(tmp_path: Path, url: str, llama: Counting) -> None:
    """Estimated parts of a context are counted again once the server answers; the text stays the same."""
    llama.count = lambda text: OWN.count(text) + 1
    with opened(tmp_path, url) as memory:
        fill(memory)
        memory.refresh()
        before = memory.get_orchestrator_context("x", 6_000)
        assert before.exact
        note(memory)
        after = memory.get_orchestrator_context("x", 6_000)
        assert (after.epoch, after.exact, after.tokens) == (before.epoch, True, llama.count(after.render()))
        assert after.render().startswith(before.render())
        llama.delay_s = 3.0
        fill(memory, 1, first=100)
        shown = memory.get_orchestrator_context("x", 6_000)
        assert not shown.exact
        llama.delay_s = 0.0
        until(lambda: memory.get_orchestrator_context("x", 6_000).exact, 20)
        again = memory.get_orchestrator_context("x", 6_000)
        assert again.render() == shown.render()
        assert again.tokens == llama.count(again.render())


def test_recording_never_waits_for_the_server(tmp_path: Path, url: str, llama: Counting) -> None:
    """Recording and refreshing do not wait for a slow server; contexts are estimates meanwhile."""
    llama.delay_s = 3.0
    with opened(tmp_path, url) as memory:
        slowest = 0.0
        for number in range(30):
            start = time.monotonic()
            fill(memory, 1, first=number)
            slowest = max(slowest, time.monotonic() - start)
        start = time.monotonic()
        memory.refresh()
        assert time.monotonic() - start < 2.5
        assert slowest < 2.5
        start = time.monotonic()
        context = memory.get_orchestrator_context("x", 3_000)
        assert time.monotonic() - start < 4
        assert not context.exact
        assert OWN.count(context.render()) <= context.tokens <= 3_000
        llama.delay_s = 0.0
        until(lambda: memory.get_orchestrator_context("x", 3_000).exact, 20)
        context = memory.get_orchestrator_context("x", 3_000)
        assert context.tokens == OWN.count(context.render()) <= 3_000


def test_status_tells_what_the_server_does_not_or_tells_wrongly(tmp_path: Path, url: str, llama: Counting) -> None:
    """The status reports a window that is too small, and a server that does not count."""
    llama.served -= {"/tokenize"}
    with opened(tmp_path, url, 16_384) as memory:
        fill(memory, 2)
        assert not memory.get_orchestrator_context("x").exact
        model = memory.model
        assert model is not None
        assert model.context_tokens == 4_096
        name = url.removeprefix("http://")
        assert problems(memory) == [
            f"the window of {name} is 4,096 tokens, but contexts are built for 16,384: start the server with a larger "
            "window, or set orchestrator.context_window.max_tokens to 4096",
            f"{url} does not count tokens; tiktoken cl100k_base counts instead of the model's tokenizer",
        ]


def test_a_window_that_is_not_reported_is_not_asserted(tmp_path: Path, url: str, llama: Counting) -> None:
    """The status says that a server does not report its window, what is assumed, and which settings to correct."""
    llama.served -= {"/props"}
    with opened(tmp_path, url, 16_384) as memory:
        assert memory.model is not None
        assert memory.model.context_tokens == 8_192
        name = url.removeprefix("http://")
        assert problems(memory) == [
            f"{name} does not report its window, so it is taken to be 8,192 tokens, but contexts are built for 16,384: "
            "set llm.context_tokens and orchestrator.context_window.max_tokens to its window",
        ]


OTHER = {"model": "other:1b", "context_length": 512}
OLLAMA = {"models": [OTHER, {"model": "qwen3:latest", "context_length": 32_768}]}
LM_STUDIO = {"data": [{"id": "qwen3", "max_context_length": 131_072, "loaded_context_length": 6_144}]}


@pytest.mark.parametrize(
    ("model", "told", "fails", "window"),
    [
        ("qwen3", {"/api/ps": OLLAMA}, 0, 32_768),
        ("qwen3", {"/api/v0/models": LM_STUDIO}, 0, 6_144),
        ("qwen3", {"/v1/models": {"data": [{"id": "qwen3", "max_model_len": 16_384}]}, "/api/ps": OLLAMA}, 0, 16_384),
        ("qwen3", {"/v1/models": {"data": [{"id": "qwen3"}]}, "/api/ps": {"models": []}}, 0, 8_192),
        ("qwen3", {"/api/ps": {"models": [OTHER]}, "/api/v0/models": "no"}, 0, 8_192),
        ("qwen3", {"/v1/models": {"data": []}}, 500, 8_192),
        ("", {"/api/ps": OLLAMA}, 0, 8_192),
    ],
)
def test_the_window_of_a_loaded_model_is_asked_for(
    url: str, llama: Counting, model: str, told: dict[str, Any], fails: int, window: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """vLLM, Ollama and LM Studio report the window of a loaded model in their lists; else the setting counts.

    A server may fail at the lists of others. Without a name, a window counts only if all loaded models have it: one of
    them may be for embeddings.
    """
    llama.served = {*told}
    llama.refuse = lambda path, body: fails if path.startswith("/api/") else 0
    monkeypatch.setattr(llama, "questions", lambda path, body: told[path])
    assert OpenAiModel(Server(url), model=model).context_tokens == window


def test_usage_that_cannot_be_is_noticed(url: str, llama: Counting) -> None:
    """A model is doubted while its server reports far fewer tokens than the prompt has."""
    llama.reported = 300
    model = OpenAiModel(Server(url))
    assert model.doubts == []
    prompt = [Message(role=Role.USER, text="The cursor was closed too early. " * 400)]
    model.generate(prompt, max_tokens=4)
    (doubt,) = model.doubts
    assert doubt.startswith(f"{url} read only 300 tokens of a prompt of 13,200 bytes")
    llama.reported = 10
    model.generate([Message(role=Role.USER, text="A prompt that any window holds.")], max_tokens=4)
    assert model.doubts == [doubt]
    llama.reported = 2_801  # the server was restarted with a larger window
    model.generate(prompt, max_tokens=4)
    assert model.doubts == []


def test_a_server_started_again_with_another_model_is_counted_anew(tmp_path: Path, url: str, llama: Counting) -> None:
    """After the server changes its model, contexts are exact by the new model and within budget."""
    with opened(tmp_path, url) as memory:
        fill(memory, 6)
        assert memory.get_orchestrator_context("x", 3_000).exact
        llama.count = lambda text: 2 * OWN.count(text)
        after = memory.get_orchestrator_context("x", 3_000)
        assert after.exact
        assert OWN.count(after.render()) * 2 == after.tokens <= 3_000
