"""Embeddings by llama.cpp: a GGUF of an embedding model, or the mean of what a language model makes of a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from orchestra_mem.adapters.llama.ending import Stop, Turn, running
from orchestra_mem.adapters.llama.library import load_library
from orchestra_mem.adapters.llama.room import require_room
from orchestra_mem.adapters.llama.session import load_model
from orchestra_mem.adapters.llama.trial import require_sound
from orchestra_mem.adapters.llama.vocabulary import GgufVocabulary, cut
from orchestra_mem.errors import EmbedderError, ModelError
from orchestra_mem.search_types import EmbeddingModel, Vector, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A chunk is some 300 tokens, and most embedding models were trained with 512.
_MAX_TOKENS = 512
_MAX_CHARS = 8_000
_BY_MODEL, _MEAN = -1, 1  # llama_pooling_type: what the file says, or the mean where it says nothing


class GgufEmbedder:
    """Embeds with a GGUF. Safe to share between threads; one text at a time, by its first 512 tokens.

    Made with the vocabulary alone; the weights are loaded with the first text.

    Args:
        path: the GGUF.
        threads: of the processor.

    Raises:
        EmbedderError: llama.cpp is not installed or does not run here, or the file cannot be used.
    """

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        self._path = path
        self._threads = threads
        self._turn = Turn()
        self._weights: _Weights | None = None
        vocabulary = GgufVocabulary(path)
        try:
            dimensions = vocabulary.number("embedding_length")
            self._context_tokens = min(_MAX_TOKENS, vocabulary.number("context_length") or _MAX_TOKENS)
            self._pooling = _MEAN if vocabulary.number("pooling_type") is None else _BY_MODEL
            require_room(path, vocabulary.number, context_tokens=self._context_tokens)
            size = path.stat().st_size
        except (ModelError, OSError) as error:
            raise EmbedderError(f"no embeddings can be had of {path}: {error}") from error
        finally:
            vocabulary.close()
        if not dimensions:
            raise EmbedderError(f"{path} does not say how many dimensions its embeddings have")
        self.model = EmbeddingModel(name=f"gguf {path.stem}", version=f"{size}", dimensions=dimensions)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, any strings whatever.

        Raises:
            EmbedderError: the model cannot be loaded, fails, or is closed meanwhile.
        """
        import numpy as np

        stop = self._turn.stop
        vectors = np.zeros((len(texts), self.model.dimensions), np.float32)
        for row, text in enumerate(texts):
            if text.strip():
                with self._turn.lock:  # between two texts others have their turn
                    vectors[row] = self._embedded(text[:_MAX_CHARS], stop)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        return unit

    def embed_query(self, query: str) -> Vector:
        """Embed a query as any text.

        Raises:
            EmbedderError: as `embed`.
        """
        vector: Vector = self.embed([query])[0]
        return vector

    def close(self) -> None:
        """Let go of the model's memory, ending its loading; loaded anew when used again."""
        with self._turn.closing():
            if self._weights is not None:
                self._weights.close()
                self._weights = None

    def _embedded(self, text: str, stop: Stop) -> NDArray[np.float32]:
        try:
            with running(stop):
                stop.require_wanted(self._path)
                if self._weights is None:
                    require_sound(self._path, weights=True, stop=stop)
                    self._weights = _Weights(self._path, self._pooling, self._context_tokens, self._threads, stop)
                vector = self._weights.embed(text)
        except ModelError as error:
            raise EmbedderError(str(error)) from error
        if len(vector) != self.model.dimensions:
            raise EmbedderError(
                f"{self._path} gives vectors of {len(vector)} dimensions, not of {self.model.dimensions} as it says; "
                "set another search.model_path, then `orchestra-mem index --anew` makes all vectors anew"
            )
        return vector


class _Weights:
    """A loaded model with room for one text. For one thread at a time."""

    def __init__(self, path: Path, pooling: int, context_tokens: int, threads: int, stop: Stop) -> None:
        self._path = path
        self._most = context_tokens
        self._library = library = load_library()
        model: Any = load_model(path, stop)
        parameters = library.llama_context_default_params()
        # What pools over a text has to see all of it at once.
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = context_tokens
        parameters.n_seq_max = 1
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.embeddings = True
        parameters.pooling_type = pooling
        parameters.no_perf = True
        self._context: Any = library.llama_init_from_model(model, parameters)
        if not self._context:
            library.llama_model_free(model)
            raise ModelError(f"llama.cpp cannot make embeddings with {path}")
        # Free all of it; happens by itself when nobody holds it any more.
        self.close = finalize(self, _free, library, self._context, model)
        # The interpreter's end frees nothing: a thread may be at work with it.
        self.close.atexit = False
        self._vocabulary = library.llama_model_get_vocab(model)
        self._dimensions = int(library.llama_model_n_embd(model))
        only_encodes = library.llama_model_has_encoder(model) and not library.llama_model_has_decoder(model)
        self._run = library.llama_encode if only_encodes else library.llama_decode

    def embed(self, text: str) -> NDArray[np.float32]:
        """Give the vector of a text, as the model makes it; zeros where the text has no tokens."""
        import numpy as np

        tokens = cut(self._library, self._vocabulary, text, marks=True)
        if not tokens:
            return np.zeros(self._dimensions, np.float32)
        if len(tokens) > self._most:  # the mark of the end stays
            tokens = [*tokens[: self._most - 1], tokens[-1]]
        if memory := self._library.llama_get_memory(self._context):
            self._library.llama_memory_clear(memory, True)
        row = (self._library.llama_token * len(tokens))(*tokens)
        code = self._run(self._context, self._library.llama_batch_get_one(row, len(tokens)))
        if code:
            raise ModelError(f"llama.cpp failed with code {code} over a text of {len(tokens):,} tokens ({self._path})")
        found = self._library.llama_get_embeddings_seq(self._context, 0)
        if not found:
            raise ModelError(f"{self._path} gives no embeddings of whole texts")
        return np.ctypeslib.as_array(found, (self._dimensions,)).astype(np.float32)


def _free(library: Any, context: Any, model: Any) -> None:
    library.llama_free(context)
    library.llama_model_free(model)
