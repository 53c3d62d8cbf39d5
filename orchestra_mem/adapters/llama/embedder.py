"""Text embeddings by llama.cpp, from an embedding model or as the mean of a language model's last layer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.llama.library import GgufVocabulary, LoadedModel
from orchestra_mem.adapters.llama.lifetime import Held, Stop, running
from orchestra_mem.adapters.llama.trial import require_room
from orchestra_mem.core.search.late_interaction import unit
from orchestra_mem.errors import EmbedderError, ModelError
from orchestra_mem.search_types import EmbeddingModel, Vector, Vectors

# A chunk has about 300 tokens, and most embedding models were trained with 512.
_MAX_TOKENS = 512
_MAX_CHARS = 8_000
# Values of llama_pooling_type: the file's own, the mean if the file has none, and a reranker's (scores, no embeddings).
_BY_MODEL, _MEAN, _RANK = -1, 1, 4


class GgufEmbedder:
    """Embeds the first 512 tokens of each text with a GGUF model. Safe to share between threads, which take turns.

    The constructor reads only the vocabulary; the weights are loaded with the first text.

    Args:
        path: The GGUF file.
        threads: Number of processor threads.

    Raises:
        EmbedderError: llama.cpp is not installed or does not run on this machine, or the file cannot be used.
    """

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        self._path = path
        vocabulary = GgufVocabulary(path)
        try:
            dimensions = vocabulary.number("embedding_length")
            context_tokens = min(_MAX_TOKENS, vocabulary.number("context_length") or _MAX_TOKENS)
            pooling = vocabulary.number("pooling_type")
            require_room(path, vocabulary.number, context_tokens=context_tokens, remedy="use a smaller model")
            size = path.stat().st_size
        except (ModelError, OSError) as error:
            raise EmbedderError(f"{path} cannot be used for embeddings: {error}") from error
        finally:
            vocabulary.close()
        if pooling == _RANK:
            raise EmbedderError(
                f"{path} is a reranker and returns no embeddings; set search.model_path to another model"
            )
        if not dimensions:
            raise EmbedderError(f"{path} does not state how many dimensions its embeddings have")
        self.model = EmbeddingModel(name=f"gguf {path.stem}", version=f"{size}", dimensions=dimensions)
        pooling = _MEAN if pooling is None else _BY_MODEL
        self._load = partial(_Weights, path, context_tokens=context_tokens, pooling=pooling, threads=threads)
        self._held = Held(path, self._load)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed any strings as unit vectors; blank strings become zeros.

        Raises:
            EmbedderError: The model cannot be loaded, fails, or is closed meanwhile.
        """
        held = self._held
        vectors = np.zeros((len(texts), self.model.dimensions), np.float32)
        for row, text in enumerate(texts):
            if text.strip():
                vectors[row] = self._embedded(held, text[:_MAX_CHARS])  # other threads get a turn between texts
        return unit(vectors)

    def embed_query(self, query: str) -> Vector:
        """Embed a query in the same way as a text."""
        return np.asarray(self.embed([query])[0])

    def close(self) -> None:
        """Free the model's memory, and abort its loading; the next use loads it again."""
        held, self._held = self._held, Held(self._path, self._load)
        held.close()

    def _embedded(self, held: Held[_Weights], text: str) -> NDArray[np.float32]:
        try:
            with held.use() as weights, running(held.stop):
                vector = weights.embed(text)
        except ModelError as error:
            raise EmbedderError(str(error)) from error
        if len(vector) != self.model.dimensions:
            raise EmbedderError(
                f"{self._path} returned a vector of {len(vector)} dimensions, but its metadata state "
                f"{self.model.dimensions}; set search.model_path to another model, then run `orchestra-mem index "
                "--anew` to rebuild all vectors"
            )
        return vector


class _Weights(LoadedModel):
    """A loaded model with a context for one text."""

    def __init__(self, path: Path, stop: Stop, *, context_tokens: int, pooling: int, threads: int) -> None:
        super().__init__(path, stop)
        self._most = context_tokens
        self._context = self.open_context(
            context_tokens,
            # Pooling needs all tokens of a text in one batch.
            n_batch=context_tokens, n_ubatch=context_tokens, n_seq_max=1,
            n_threads=threads, n_threads_batch=threads, embeddings=True, pooling_type=pooling,
        )  # fmt: skip
        self._dimensions = int(self.library.llama_model_n_embd(self.model))
        has_encoder, has_decoder = self.library.llama_model_has_encoder, self.library.llama_model_has_decoder
        only_encodes = has_encoder(self.model) and not has_decoder(self.model)
        self._run = self.library.llama_encode if only_encodes else self.library.llama_decode

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the model's vector for a text, not normalised; zeros if the text has no tokens."""
        tokens, library = self.tokens(text, marks=True), self.library
        if not tokens:
            return np.zeros(self._dimensions, np.float32)
        if len(tokens) > self._most:  # keep the token that marks the end
            tokens = [*tokens[: self._most - 1], tokens[-1]]
        if memory := library.llama_get_memory(self._context):
            library.llama_memory_clear(memory, True)
        row = (library.llama_token * len(tokens))(*tokens)
        code = self._run(self._context, library.llama_batch_get_one(row, len(tokens)))
        if code:
            raise ModelError(f"llama.cpp failed with code {code} on a text of {len(tokens):,} tokens ({self.path})")
        found = library.llama_get_embeddings_seq(self._context, 0)
        if not found:
            raise ModelError(f"{self.path} returns no embeddings of whole texts")
        return np.ctypeslib.as_array(found, (self._dimensions,)).astype(np.float32)
