"""Embeddings from a server that speaks OpenAI's `/v1/embeddings`: llama-server, Ollama, vLLM, or one far away."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.search.late_interaction import unit
from orchestra_mem.core.search.terms import embeddable
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EmbeddingModel, Vector, Vectors
from orchestra_mem.settings import without_user

logger = logging.getLogger(__name__)

INSTALL_HTTP = "pip install 'orchestra-mem[http]'"

_BATCH = 64
_MAX_CHARS = 8_000  # servers refuse what is longer than the model's window; chunks are shorter
_TOO_MANY_REQUESTS, _SERVER_FAULTS = 429, 500


class HttpEmbedder:
    """Embeds with the model of a server. Safe to share between threads.

    What may pass is tried again with growing pauses: no connection, no answer in time, an overloaded server.

    Args:
        base_url: as in `http://127.0.0.1:8080/v1`.
        model: the name under which the server has it.
        api_key: sent as a bearer token; empty for none.
        dimensions: of its vectors; 0 to ask the server, with the first use of `model`.
        timeout_s: for one try to embed passages.
        query_timeout_s: for one try to embed a query, on which somebody waits.
        tries: how often passages are tried; queries are tried twice at most.
        first_pause_s: doubled with each try, up to 8 seconds.

    Raises:
        EmbedderError: the `http` extra is not installed.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str = "",
        dimensions: int = 0,
        timeout_s: float = 60.0,
        query_timeout_s: float = 5.0,
        tries: int = 4,
        first_pause_s: float = 0.5,
    ) -> None:
        try:
            import httpx2
            import tenacity
        except ImportError as error:
            raise EmbedderError(f"no embeddings can be had over HTTP ({error}); {INSTALL_HTTP}") from error
        self._httpx = httpx2
        self._tenacity = tenacity
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._shown = without_user(self._url)
        self._name = model
        self._dimensions = dimensions
        self._timeout_s, self._query_timeout_s = timeout_s, query_timeout_s
        self._tries = tries
        self._first_pause_s = first_pause_s
        self._client = httpx2.Client(headers={"Authorization": f"Bearer {api_key}"} if api_key else {})

    @cached_property
    def model(self) -> EmbeddingModel:
        """What the vectors are made with; the server is asked once where the dimensions are not known.

        Raises:
            EmbedderError: the server gives none.
        """
        dimensions = self._dimensions or self._asked(["dimensions"], self._query_timeout_s, 2).shape[1]
        return EmbeddingModel(name=f"http {self._name}", version="", dimensions=dimensions)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, any strings whatever.

        Raises:
            EmbedderError: the server cannot be reached, refuses, or gives vectors of other dimensions than before.
        """
        return self._embed(texts, self._timeout_s, self._tries)

    def embed_query(self, query: str) -> Vector:
        """Embed a query as any text, and give up sooner."""
        vector: Vector = self._embed([query], self._query_timeout_s, min(2, self._tries))[0]
        return vector

    def _embed(self, texts: Sequence[str], timeout_s: float, tries: int) -> Vectors:
        vectors = np.zeros((len(texts), self.model.dimensions), np.float32)
        # Servers refuse texts that say nothing.
        rows = [row for row, text in enumerate(texts) if text.strip()]
        for start in range(0, len(rows), _BATCH):
            some = rows[start : start + _BATCH]
            found = self._asked([embeddable(texts[row])[:_MAX_CHARS] for row in some], timeout_s, tries)
            if found.shape[1] != self.model.dimensions:
                raise EmbedderError(
                    f"{self._shown} gives vectors of {found.shape[1]} dimensions for {self._name!r}, not of "
                    f"{self.model.dimensions}; set search.dimensions to {found.shape[1]}, then "
                    "`orchestra-mem index --anew` makes all vectors anew"
                )
            vectors[some] = found
        return unit(vectors)

    def _asked(self, texts: list[str], timeout_s: float, tries: int) -> NDArray[np.float32]:
        retrying = self._tenacity.Retrying(
            stop=self._tenacity.stop_after_attempt(tries),
            wait=self._tenacity.wait_exponential_jitter(
                multiplier=self._first_pause_s, max=8.0, jitter=self._first_pause_s
            ),
            retry=self._tenacity.retry_if_exception(self._may_pass),
            before_sleep=self._tenacity.before_sleep_log(logger, logging.DEBUG),
            reraise=True,
        )
        try:
            answer = retrying(self._post, texts, timeout_s)
        except self._httpx.HTTPStatusError as error:
            said = " ".join(error.response.text.split())[:300]
            raise EmbedderError(
                f"{self._shown} answers {error.response.status_code} for {self._name!r}: {said}"
            ) from error
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            raise EmbedderError(f"{self._shown} cannot be asked: {type(error).__name__}: {error}") from error
        return self._read(answer, len(texts))

    def _post(self, texts: list[str], timeout_s: float) -> Any:
        given = {"model": self._name, "input": texts, "encoding_format": "float"}
        return self._client.post(self._url, json=given, timeout=timeout_s).raise_for_status()

    def _may_pass(self, error: BaseException) -> bool:
        if isinstance(error, self._httpx.HTTPStatusError):
            status = int(error.response.status_code)
            return status == _TOO_MANY_REQUESTS or status >= _SERVER_FAULTS
        return isinstance(error, self._httpx.TransportError) and not isinstance(error, self._httpx.UnsupportedProtocol)

    def _read(self, answer: Any, count: int) -> NDArray[np.float32]:
        try:
            found = sorted(answer.json()["data"], key=lambda each: each["index"])
            vectors = np.array([each["embedding"] for each in found], np.float32)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise EmbedderError(f"{self._shown} gives no embeddings: {type(error).__name__}: {error}") from error
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise EmbedderError(
                f"{self._shown} gives embeddings of shape {vectors.shape} for {count} texts, or no numbers"
            )
        return vectors
