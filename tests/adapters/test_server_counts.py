"""Counts by a real HTTP server as llama-server's: at once by estimate, exactly for contexts, in words where not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.openai_http import OpenAiModel, Server, ServerCounts
from orchestra_mem.adapters.openai_http import counter as counter_module
from orchestra_mem.adapters.tokenizers import EstimateCounter, TiktokenCounter
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.model_types import Message, Role
from tests.adapters.test_openai_http import Llama, Quiet, _handler

OWN = TiktokenCounter()


class Counting(Llama):
    """A llama-server whose vocabulary is cl100k's; it may be slow, gone, or of another kind."""

    def __init__(self) -> None:
        super().__init__()
        self.delay_s = 0.0
        self.asked: list[str] = []
        self.count: Callable[[str], int] = OWN.count
        self.model: dict[str, Any] = {"id": "own.gguf", "meta": {"n_vocab": 5}}

    def questions(self, path: str, body: Any) -> Any:
        """Count what is asked for."""
        if path == "/props":
            return {"default_generation_settings": {"n_ctx": self.window}}
        if path == "/v1/models":
            return {"object": "list", "data": [{"created": time.time(), **self.model}]}
        if path != "/tokenize":
            return super().questions(path, body)
        time.sleep(self.delay_s)
        if "content" not in body:
            return {"error": "no content"}
        self.asked.append(body["content"])
        return {"tokens": [0] * self.count(body["content"])}


@pytest.fixture
def llama() -> Counting:
    """What the server does."""
    return Counting()


@pytest.fixture
def url(llama: Counting) -> Iterator[str]:
    """Where it listens."""
    server = Quiet(("127.0.0.1", 0), _handler(llama))
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def counts(url: str) -> Iterator[ServerCounts]:
    """Counts by it."""
    made = ServerCounts(Server(url, tries=1, failures=10**6), rough=EstimateCounter(), fallback=TiktokenCounter())
    yield made
    made.close()


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


def opened(folder: Path, url: str, window: int = 8_192) -> OrchestratorContextManager:
    """A memory of which the server counts."""
    config = {
        "llm": {"base_url": url},
        "orchestrator": {"context_window": {"max_tokens": window}, "working_memory": {"max_operations": 8}},
        "compression": {"auto": False},
    }
    return open_memory(folder, config=config)


def test_a_count_is_an_estimate_at_once_and_the_servers_own_later(counts: ServerCounts, llama: Counting) -> None:
    """Nothing waits, however slow the server is; the estimate is not below."""
    llama.delay_s = 2.0
    text = "def parse(line): return line.split(',')  # 12 columns\n" * 9
    start = time.monotonic()
    first = counts.count(text)
    assert time.monotonic() - start < 1.5
    assert first > OWN.count(text)
    llama.delay_s = 0.0
    until(lambda: counts.count(text) == OWN.count(text))
    asked = len(llama.asked)
    assert counts.count(text) == OWN.count(text)
    assert len(llama.asked) == asked
    assert counts.exact
    assert counts.additive
    assert counts.name.startswith("the server at 127.0.0.1:")
    assert counts.doubts == []


def test_estimates_are_as_far_on_the_high_side_as_any_text_was(counts: ServerCounts, llama: Counting) -> None:
    """A vocabulary that takes more tokens than is usual is learned."""
    llama.count = lambda text: 8 * len(text) // 10
    before = counts.count("x" * 100)
    until(lambda: counts.count("x" * 100) == 80)
    assert before < 80 <= counts.count("y" * 100)


def test_a_vocabulary_whose_pieces_do_not_add_up_is_noticed(counts: ServerCounts, llama: Counting) -> None:
    """As of one that puts a space before each text."""
    llama.count = lambda text: OWN.count(text) + 1
    until(lambda: counts.exact)
    assert not counts.additive


@pytest.mark.parametrize("kind", ["no such path", "other answer", "the same for all"])
def test_a_server_that_does_not_count_is_told_and_the_fallback_counts(
    counts: ServerCounts, llama: Counting, kind: str
) -> None:
    """Ollama has no /tokenize; counts are those of tiktoken, and say so."""
    if kind == "no such path":
        llama.served -= {"/tokenize"}
    elif kind == "other answer":
        llama.questions = lambda path, body: {"tokens": "many"}  # type: ignore[method-assign]
    else:
        llama.count = lambda text: 1
    until(lambda: bool(counts.doubts) or counts.exact)
    assert (counts.exact, counts.name, counts.additive) == (False, "tiktoken cl100k_base", True)
    assert counts.count("a b c") == OWN.count("a b c")
    (doubt,) = counts.doubts
    assert doubt.endswith("does not count tokens: tiktoken cl100k_base does, not the model's own")


@pytest.mark.parametrize("status", [404, 401])
def test_a_server_that_has_counted_is_asked_again_after_a_refusal(
    counts: ServerCounts, llama: Counting, status: int
) -> None:
    """As where it does not answer: estimates with the reason meanwhile, and then its own counts."""
    until(lambda: counts.exact)
    text = "def parse(line): return line.split(',')\n" * 9
    statuses = [status]
    llama.refuse = lambda path, body: statuses.pop() if statuses else 0
    assert counts.count(text) > OWN.count(text)
    until(lambda: bool(counts.doubts))
    assert counts.doubts == [
        f"tokens are estimated, on the high side: {counts._server.url} answered with {status}: not this"
    ]
    assert counts.name.startswith("estimate, until the server at ")
    until(lambda: counts.count(text) == OWN.count(text))
    assert counts.exact


@pytest.mark.parametrize("status", [400, 413])
def test_a_text_that_is_refused_is_estimated_and_no_other(counts: ServerCounts, llama: Counting, status: int) -> None:
    """What is too long for a server is not sent to it again and again."""
    sent: list[str] = []

    def refuse(path: str, body: Any) -> int:
        long = path == "/tokenize" and len(body["content"]) > 1_000
        sent.extend([body["content"]] * long)
        return status * long

    until(lambda: counts.exact)
    llama.refuse = refuse
    long, short = "x = 1  # as before\n" * 99, "x = 1  # as before\n" * 9
    assert counts.count(long) > OWN.count(long)
    counts.count(short)
    until(lambda: counts.count(short) == OWN.count(short))
    assert counts.count(long) > OWN.count(long)
    assert (counts.exact, counts.doubts, sent) == (True, [], [long])


def test_a_server_that_refuses_every_text_is_left_alone_for_a_while(counts: ServerCounts, llama: Counting) -> None:
    """That is not the fault of any text."""
    until(lambda: counts.exact)
    llama.refuse = lambda path, body: 400
    text = "x = 1  # as before\n" * 9
    counts.count(text)
    until(lambda: bool(counts.doubts))
    assert not counts.exact
    llama.refuse = lambda path, body: 0
    until(lambda: counts.count(text) == OWN.count(text))
    assert counts.exact


def test_another_model_that_refuses_at_first_is_asked_again(
    counts: ServerCounts, llama: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has counted, and what it said of the model before does not count for this one."""
    monkeypatch.setattr(counter_module, "_SILENCE_S", 0.0)
    llama.served.add("/v1/models")
    until(lambda: counts.exact)
    llama.model = {"id": "other.gguf", "meta": {"n_vocab": 7}}
    llama.count = lambda text: 2 * OWN.count(text)
    llama.refuse = lambda path, body: 404 * (path == "/tokenize")
    text = "def parse(line): return line.split(',')\n" * 9
    counts.count(text)
    until(lambda: bool(counts.doubts))
    assert counts.doubts == [f"tokens are estimated, on the high side: no tokens come of {counts._server.url}/tokenize"]
    llama.refuse = lambda path, body: 0
    until(lambda: counts.count(text) == 2 * OWN.count(text))
    assert counts.exact


def test_a_server_that_comes_late_and_does_not_count_is_told(llama: Counting) -> None:
    """It is not taken for one that cannot be reached."""
    late = Quiet(("127.0.0.1", 0), _handler(llama), bind_and_activate=False)
    late.server_bind()
    llama.served -= {"/tokenize"}
    url = f"http://127.0.0.1:{late.server_address[1]}"
    counts = ServerCounts(Server(url, tries=1, failures=10**6), rough=EstimateCounter(), fallback=TiktokenCounter())
    thread = threading.Thread(target=lambda: late.serve_forever(poll_interval=0.01), daemon=True)
    try:
        counts.count("a b c")
        until(lambda: bool(counts.doubts))
        assert "cannot be reached" in counts.doubts[0]
        late.server_activate()
        thread.start()
        until(lambda: counts.count("a b c") == OWN.count("a b c") and "does not count tokens" in counts.doubts[0])
        assert counts.name == "tiktoken cl100k_base"
    finally:
        counts.close()
        late.shutdown()
        late.server_close()


def test_no_server_means_estimates_with_the_reason(llama: Counting) -> None:
    """It is asked again after a pause, not with each count."""
    counts = ServerCounts(
        Server("http://127.0.0.1:9", tries=1, failures=10**6), rough=EstimateCounter(), fallback=TiktokenCounter()
    )
    try:
        until(lambda: bool(counts.doubts) or counts.exact)
        start = time.monotonic()
        assert counts.count("a b c") >= 3
        assert time.monotonic() - start < 0.5
        assert counts.name == "estimate, until the server at 127.0.0.1:9 answers"
        assert "127.0.0.1:9 cannot be reached" in counts.doubts[0]
    finally:
        counts.close()


# A memory of which the server counts


def fill(memory: OrchestratorContextManager, count: int = 30, first: int = 0) -> None:
    """Operations of some size."""
    for number in range(first, first + count):
        memory.record_operation("note", {"text": f"Row {number}: {'0x1f, ' * 40} is in module_{number}.py."})


def test_a_server_started_again_with_another_model_is_counted_anew(
    tmp_path: Path, url: str, llama: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it said of texts before is of no use then; contexts are exact by the new model, and within the budget."""
    llama.served.add("/v1/models")
    with opened(tmp_path, url) as memory:
        fill(memory, 6)
        before = memory.get_orchestrator_context("x", 3_000)
        assert before.exact
        llama.model = {"id": "other.gguf", "meta": {"n_vocab": 7}}
        llama.count = lambda text: 2 * OWN.count(text)
        monkeypatch.setattr(counter_module, "_SILENCE_S", 0.0)
        after = memory.get_orchestrator_context("x", 3_000)
        assert after.exact
        assert OWN.count(after.render()) * 2 <= after.tokens <= 3_000
        asked = len(llama.asked)
        assert memory.get_orchestrator_context("x", 3_000).tokens == after.tokens
        assert len(llama.asked) == asked
        llama.served.remove("/v1/models")
        fill(memory, 1, first=100)
        assert memory.get_orchestrator_context("x", 3_000).exact


def test_contexts_are_counted_by_the_server_and_never_over_the_budget(
    tmp_path: Path, url: str, llama: Counting
) -> None:
    """Also right after a refresh, which waits for no server; the prefix stays within an epoch."""
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
        budgets = (1_000, 7_000)
        found = [memory.get_orchestrator_context("x", budget) for budget in budgets]
        assert [each.exact for each in found] == [True, True]
        again = [memory.get_orchestrator_context("x", budget) for budget in budgets]
        assert [each.epoch for each in again] == [each.epoch for each in found]
        assert memory.get_stats()["context_window"]["exact"]  # type: ignore[index,call-overload]


def note(memory: OrchestratorContextManager, lines: int = 20) -> None:
    """A person's words in a document, which are told behind the epoch's border, and which nobody has counted yet."""
    path = memory.episodic_memory.folder / "project_state.md"
    said = "\n".join(f"Line {n} of what I wrote, 0x{n:04x}." for n in range(lines))
    path.write_text(f"{path.read_text(encoding='utf-8')}\n## Mine\n\n{said}\n", encoding="utf-8")


@pytest.mark.parametrize("more", [0, 1], ids=["pieces add up", "pieces do not"])
def test_what_was_told_by_estimate_is_counted_again(tmp_path: Path, url: str, llama: Counting, more: int) -> None:
    """At once where the server answers, else as soon as it does; the bytes stay, and `exact` is never said before."""
    llama.count = lambda text: OWN.count(text) + more
    with opened(tmp_path, url) as memory:
        fill(memory)
        memory.refresh()
        before = memory.get_orchestrator_context("x", 6_000)
        assert before.exact
        note(memory)
        after = memory.get_orchestrator_context("x", 6_000)
        assert (after.epoch, after.exact, after.tokens) == (before.epoch, True, llama.count(after.render()))
        assert after.render().startswith(before.render())
        llama.delay_s = 1.5
        fill(memory, 1, first=100)
        shown = memory.get_orchestrator_context("x", 6_000)
        assert not shown.exact
        llama.delay_s = 0.0
        until(lambda: memory.get_orchestrator_context("x", 6_000).exact, 20)
        again = memory.get_orchestrator_context("x", 6_000)
        assert again.render() == shown.render()
        assert again.tokens == llama.count(again.render())


@pytest.mark.parametrize("more", [0, 1], ids=["pieces add up", "pieces do not"])
def test_no_epoch_ends_by_an_estimate_or_for_another_budget(
    tmp_path: Path, url: str, llama: Counting, more: int
) -> None:
    """It ends where the server's count is over its budget, as with a counter at hand."""
    llama.count = lambda text: OWN.count(text) + more
    shown: dict[int, OrchestratorContext] = {}
    with opened(tmp_path, url) as memory:
        fill(memory)
        memory.refresh()
        for number in range(6):
            note(memory, 3 + number)
            for budget in (4_000, 2_500):
                context = memory.get_orchestrator_context("x", budget)
                assert (context.exact, context.tokens) == (True, llama.count(context.render()))
                if (before := shown.get(budget)) and context.epoch != before.epoch:
                    room = budget - before.tokens
                    assert room < 300, f"an epoch ended with {room} tokens left"
                elif before:
                    assert context.render().startswith(before.render())
                shown[budget] = context


def test_no_context_is_over_its_budget_while_the_server_refuses(tmp_path: Path, url: str, llama: Counting) -> None:
    """By the server's own count, which is far above another vocabulary's; then contexts are exact again."""
    llama.count = lambda text: 2 * OWN.count(text)
    with opened(tmp_path, url) as memory:
        fill(memory, 6)
        assert memory.get_orchestrator_context("x", 2_000).exact
        llama.refuse = lambda path, body: 404 * (path == "/tokenize")
        fill(memory, 6, first=100)
        memory.refresh()
        context = memory.get_orchestrator_context("x", 2_000)
        assert not context.exact
        assert llama.count(context.render()) <= context.tokens <= 2_000
        llama.refuse = lambda path, body: 0
        until(lambda: memory.get_orchestrator_context("x", 2_000).exact)


def test_recording_never_waits_for_the_server(tmp_path: Path, url: str, llama: Counting) -> None:
    """Not in refreshes either, while each count takes a second; the contexts of that time are told as estimates."""
    llama.delay_s = 1.0
    with opened(tmp_path, url) as memory:
        slowest = 0.0
        for number in range(30):
            start = time.monotonic()
            fill(memory, 1, first=number)
            slowest = max(slowest, time.monotonic() - start)
        start = time.monotonic()
        memory.refresh()
        assert time.monotonic() - start < 0.9
        assert slowest < 0.9
        start = time.monotonic()
        context = memory.get_orchestrator_context("x", 3_000)
        assert time.monotonic() - start < 4
        assert not context.exact
        assert OWN.count(context.render()) <= context.tokens <= 3_000
        llama.delay_s = 0.0
        until(lambda: memory.get_orchestrator_context("x", 3_000).exact, 20)
        context = memory.get_orchestrator_context("x", 3_000)
        assert context.tokens == OWN.count(context.render()) <= 3_000


def test_a_sum_that_the_server_does_not_bear_out_is_counted_as_a_whole(
    tmp_path: Path, url: str, llama: Counting
) -> None:
    """The first context of each epoch is counted whole; the budget holds by that count."""
    llama.count = lambda text: OWN.count(text) + (OWN.count(text) // 10 if len(text) > 900 else 0)
    with opened(tmp_path, url) as memory:
        fill(memory)
        context = memory.get_orchestrator_context("x", 2_000)
        assert context.exact
        assert context.tokens == llama.count(context.render()) <= 2_000


def test_status_tells_what_the_server_does_not_or_tells_wrongly(tmp_path: Path, url: str, llama: Counting) -> None:
    """A window smaller than contexts are made for, and that it does not count."""
    llama.served -= {"/tokenize"}
    with opened(tmp_path, url, 16_384) as memory:
        fill(memory, 2)
        assert not memory.get_orchestrator_context("x").exact
        model = memory.model
        assert model is not None
        assert model.context_tokens == 4_096
        told = [each["problem"] for each in memory.compression.problems() if isinstance(each, dict)]
        name = url.removeprefix("http://")
        assert told == [
            f"the window of {name} is 4,096 tokens, and contexts are made for 16,384: start the server with a larger "
            "one, or set orchestrator.context_window.max_tokens to 4096",
            f"{url} does not count tokens: tiktoken cl100k_base does, not the model's own",
        ]


@pytest.mark.parametrize("reported", [0, 300])
def test_usage_that_is_not_reported_or_cannot_be_is_noticed(url: str, llama: Counting, reported: int) -> None:
    """Zero tokens of a prompt, or far fewer than it has: it was cut to a window that the server did not tell."""
    llama.reported = reported
    model = OpenAiModel(url)
    try:
        assert model.doubts == []
        prompt = [Message(role=Role.USER, text="The cursor was closed too early. " * 400)]
        model.generate(prompt, max_tokens=4)
        (doubt,) = model.doubts
        assert doubt.startswith(url)
        expected = "does not report how many tokens" if not reported else "read 300 tokens of a prompt of 13,200 bytes"
        assert expected in doubt
        llama.reported = 2_801
        model.generate(prompt, max_tokens=4)
        assert model.doubts == ([] if not reported else [doubt])
    finally:
        model.close()
