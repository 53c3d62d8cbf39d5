"""Text embeddings from a server that speaks OpenAI's `/v1/embeddings`: llama-server, Ollama, vLLM, or a remote one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.openai_http.server import Server
from orchestra_mem.core.search.late_interaction import unit
from orchestra_mem.core.search.terms import embeddable
from orchestra_mem.errors import EmbedderError, ModelError
from orchestra_mem.search_types import EmbeddingModel, Vector, Vectors

_BATCH = 64
_TRIES = 4  # for passages
_QUERY_TIMEOUT_S = 2.0  # of silence, in the only attempt to embed a query: a search waits for it
_MAX_CHARS = 8_000  # servers reject texts longer than the model's window; chunks are shorter


class HttpEmbedder:
    """Embeds texts with a model on a server. Safe to share between threads.

    Transient faults are retried with growing pauses: no connection, no response in time, an overloaded server.

    Args:
        base_url: Address, such as `http://127.0.0.1:8080`, with or without `/v1`. If it has another path, requests go
            to `/embeddings` below this path.
        model: The model's name on the server.
        api_key: Bearer token; empty for none.
        dimensions: Dimensions of the vectors; 0 to ask the server at the first use of `model`.

    Raises:
        EmbedderError: The address is invalid, or the key cannot be sent.
    """

    timeout_s = 60.0  # of silence, in each attempt to embed passages

    def __init__(self, base_url: str, model: str, *, api_key: str = "", dimensions: int = 0) -> None:
        try:
            # No circuit breaker: `MemorySearch` has a circuit breaker for its embedders.
            self._server = Server(base_url, api_key=api_key, failures=0, setting="search.base_url")
        except ModelError as error:
            raise EmbedderError(str(error)) from error
        path = urlsplit(base_url).path.rstrip("/")
        self._path = "/v1/embeddings" if not path or path.endswith("/v1") else "/embeddings"
        self._name = model
        self._dimensions = dimensions
        self._closed = False

    @cached_property
    def model(self) -> EmbeddingModel:
        """The embedding model. If its dimensions are unknown, the server is asked once."""
        dimensions = self._dimensions or self._asked(["dimensions"], _QUERY_TIMEOUT_S, 1).shape[1]
        return EmbeddingModel(name=f"http {self._name}", version="", dimensions=dimensions)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed any strings as unit vectors; blank strings become zeros.

        Raises:
            EmbedderError: The server cannot be reached, refuses, or returns vectors of other dimensions than before.
        """
        return self._embed(texts, self.timeout_s, _TRIES)

    def embed_query(self, query: str) -> Vector:
        """Embed a query in the same way as a text, but give up sooner."""
        vector: Vector = self._embed([query], _QUERY_TIMEOUT_S, 1)[0]
        return vector

    def close(self) -> None:
        """Abort requests in progress; later calls fail."""
        self._closed = True

    def _embed(self, texts: Sequence[str], timeout_s: float, tries: int) -> Vectors:
        vectors = np.zeros((len(texts), self.model.dimensions), np.float32)
        # Servers reject blank texts.
        rows = [row for row, text in enumerate(texts) if text.strip()]
        for start in range(0, len(rows), _BATCH):
            some = rows[start : start + _BATCH]
            found = self._asked([embeddable(texts[row])[:_MAX_CHARS] for row in some], timeout_s, tries)
            if found.shape[1] != self.model.dimensions:
                raise EmbedderError(
                    f"{self._server.url}{self._path} returned vectors of {found.shape[1]} dimensions for "
                    f"{self._name!r}, not of {self.model.dimensions}; set search.dimensions to {found.shape[1]}, then "
                    "run `orchestra-mem index --anew` to rebuild all vectors"
                )
            vectors[some] = found
        return unit(vectors)

    def _asked(self, texts: list[str], timeout_s: float, tries: int) -> NDArray[np.float32]:
        def require_open() -> None:
            if self._closed:
                raise ModelError(f"{self._server.url} gets no more requests: the memory was closed")

        try:
            answer = self._server.post(
                self._path, {"model": self._name, "input": [*texts], "encoding_format": "float"}, self._server.json,
                require_open, tries=tries, timeout_s=timeout_s,
            )  # fmt: skip
        except ModelError as error:
            raise EmbedderError(f"no embeddings from {self._name!r}: {error}") from error
        return self._read(answer, len(texts))

    def _read(self, answer: Any, count: int) -> NDArray[np.float32]:
        address = f"{self._server.url}{self._path}"
        try:
            found = sorted(answer["data"], key=lambda each: each["index"])
            vectors = np.array([each["embedding"] for each in found], np.float32)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise EmbedderError(f"{address} returned no embeddings: {type(error).__name__}: {error}") from error
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise EmbedderError(
                f"{address} returned embeddings of shape {vectors.shape} for {count} texts, or values that are "
                "not numbers"
            )
        return vectors
