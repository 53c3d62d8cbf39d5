"""Embeddings over HTTP from a real local server: requests, retries and error messages."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestra_mem import open_memory
from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.openai_http.embedder import HttpEmbedder
from orchestra_mem.errors import ClosedError, EmbedderError
from orchestra_mem.search_types import Embedder
from tests.adapters.test_openai_http import Llama
from tests.adapters.test_openai_http import serving as serve
from tests.timing import until

TABLE = WordLlamaEmbedder()


class Server(Llama):
    """An embeddings server. Each of `failures` answers one request first; None makes the server stall."""

    def __init__(self) -> None:
        super().__init__()
        self.served = {"/v1/embeddings"}
        self.url, self.refusal, self.refuse = "", "busy now", self.fail
        self.failures: list[int | None] = []
        self.dimensions = 64
        self.broken = False
        self.answer_with: Any = None
        self.silence_s = 0.6
        self.go_on = threading.Event()

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of all requests."""
        return [body for _, body, _ in self.seen]

    def fail(self, path: str, body: Any) -> int:
        """Return the status of a refusal, 0 for none."""
        status = self.failures.pop(0) if self.failures else 400 if self.broken else 0
        if status is None:
            self.go_on.wait(self.silence_s)
        return 503 if status is None else status

    def questions(self, path: str, body: Any) -> Any:
        """Return the bundled table's first dimensions, in reverse order."""
        if self.answer_with is not None:
            return self.answer_with
        rows = TABLE.embed(body["input"])[:, : self.dimensions].tolist()
        return {"data": [{"index": index, "embedding": row} for index, row in reversed([*enumerate(rows)])]}


@contextmanager
def serving() -> Iterator[Server]:
    """Run an embeddings server."""
    told = Server()
    with serve(told) as address:
        told.url = f"{address}/v1"
        yield told


def _embedder(server: Server, **options: Any) -> HttpEmbedder:
    return HttpEmbedder(server.url, "small", **options)


def test_it_gives_what_the_server_gives(server: Server) -> None:
    """Vectors come in the order of the texts, with unit length; blank texts are zeros and are not sent."""
    embedder: Embedder = _embedder(server, api_key="k-1")
    assert (embedder.model.name, embedder.model.dimensions) == ("http small", 64)
    texts = ["red bicycle", "", "quarterly revenue", " \n", "\ud800 half"]
    vectors = embedder.embed(texts)
    expected = TABLE.embed(["red bicycle", "quarterly revenue", "? half"])[:, :64]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert vectors[[0, 2, 4]] == pytest.approx(expected, abs=1e-6)
    assert not vectors[[1, 3]].any()
    assert embedder.embed_query("red bicycle") == pytest.approx(vectors[0])
    assert server.requests[1] == {
        "model": "small", "input": ["red bicycle", "quarterly revenue", "? half"], "encoding_format": "float",
    }  # fmt: skip
    assert {key for _, _, key in server.seen} == {"Bearer k-1"}


@pytest.mark.parametrize(
    ("address", "path"),
    [("", "/v1/embeddings"), ("/", "/v1/embeddings"), ("/x/v1/", "/x/v1/embeddings"), ("/v4", "/v4/embeddings")],
)
def test_an_address_without_a_path_means_v1(server: Server, address: str, path: str) -> None:
    """An address without a path means `/v1`, as in `llm.base_url`; any other path is kept."""
    server.served = {path}
    assert HttpEmbedder(server.url.removesuffix("/v1") + address, "small").embed(["red bicycle"]).any()


def test_what_may_pass_is_tried_again(server: Server) -> None:
    """A request that the server refuses with 429, or does not answer in time, is retried."""
    embedder = _embedder(server, dimensions=64)
    embedder.timeout_s = 1.0
    server.failures, server.silence_s = [429, None], 60.0
    assert embedder.embed(["red bicycle"]).any()
    assert len(server.requests) == 3


def test_a_query_gives_up_sooner_than_passages_do(server: Server) -> None:
    """A query is not retried, since a user waits for it; passages are retried three times."""
    embedder = _embedder(server, dimensions=64)
    server.failures = [503] * 9
    with pytest.raises(
        EmbedderError, match=r"^no embeddings from 'small': http://127\.0\.0\.1:\d+ answered with 503: busy now$"
    ):
        embedder.embed_query("red bicycle")
    assert len(server.requests) == 1
    with pytest.raises(EmbedderError, match="answered with 503"):
        embedder.embed(["red bicycle"])
    assert len(server.requests) == 1 + 4


def test_other_dimensions_are_told_with_both_numbers_and_the_command(server: Server) -> None:
    """Vectors of other dimensions, as after a change of model, are an error with both numbers and the command."""
    embedder = _embedder(server)
    embedder.embed(["a"])
    server.dimensions = 32
    with pytest.raises(EmbedderError) as told:
        embedder.embed(["b"])
    assert str(told.value) == (
        f"{server.url}/embeddings returned vectors of 32 dimensions for 'small', not of 64; set search.dimensions to "
        "32, then run `orchestra-mem index --anew` to rebuild all vectors"
    )


@pytest.mark.parametrize(
    "answer",
    [
        {}, [], {"data": [{"index": 0}]}, {"data": [{"index": 0, "embedding": ["x"]}]}, {"data": []},
        {"data": [{"index": 0, "embedding": [float("nan")] * 64}]},
        {"data": [{"index": 0, "embedding": [1.0] * 64}, {"index": 1, "embedding": [1.0]}]},
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_told(server: Server, answer: Any) -> None:
    """An answer without usable embeddings is an error."""
    server.answer_with = answer
    with pytest.raises(EmbedderError, match=r"returned (no embeddings|embeddings of shape)"):
        _embedder(server, dimensions=64).embed(["a"])


def test_without_the_extra_the_line_that_installs_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra `http`, a search has a note with the line that installs it."""
    for name in [name for name in sys.modules if name.startswith("orchestra_mem.adapters.openai_http")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with open_memory(tmp_path, config={"search": {"embedder": "http", "model": "small"}}) as memory:
        (note,) = memory.search("bicycle").notes
    assert "search.base_url needs `pip install 'orchestra-mem[http]'`: " in note


def test_the_key_is_shown_to_nobody(server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The API key appears neither in the settings' output nor in the log."""
    from orchestra_mem.build import load_settings

    caplog.set_level(logging.DEBUG)
    settings = load_settings(tmp_path, {"ORCHESTRA_MEM__SEARCH__API_KEY": "secret-key"})
    assert settings.search.api_key == "secret-key"
    _embedder(server, api_key=settings.search.api_key).embed(["a"])
    assert settings.flat()["search.api_key"] == "(set, not shown)"
    assert "secret-key" not in f"{settings!r} {caplog.text}"


def test_closing_a_memory_does_not_wait_for_the_server(server: Server, tmp_path: Path) -> None:
    """Closing a memory does not wait for an embedding request, and everything recorded is stored."""
    server.failures, server.silence_s = [None] * 9, 60.0
    search = {"embedder": "http", "base_url": server.url, "model": "small", "dimensions": 64}
    memory = open_memory(tmp_path, config={"search": search})
    memory.record_operation("note", {"text": "red bicycle"})

    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(memory.search, "bicycle")
        until(lambda: server.requests)
        start = time.monotonic()
        memory.close()
        assert time.monotonic() - start < 10
        server.go_on.set()
        with suppress(ClosedError):
            asked.result(30)
    with open_memory(tmp_path) as memory:
        assert memory.search("bicycle").hits
