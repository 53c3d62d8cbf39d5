"""Embedders that run in this process: WordLlama's table, which ships with its package, and ONNX models.

A WordLlama embedder is loaded at its first use, an ONNX model when its embedder is created, each with its packages.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.search.late_interaction import unit
from orchestra_mem.core.search.terms import embeddable
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EmbeddingModel, Tokens, Vector, Vectors

_INSTALL_WORDLLAMA = "pip install wordllama"

_Encode: TypeAlias = "Callable[[list[str]], list[list[int]]]"
_EncodeWords: TypeAlias = "Callable[[list[str]], tuple[NDArray[np.int64], NDArray[np.int64]]]"

_FEW, _SOME = 32, 512
_TOKENS = ("numbers", "counts", "lengths")  # fields of `Tokens`
_loading = threading.Lock()


class WordLlamaEmbedder:
    """Embeds texts by the mean of their words' vectors in WordLlama's table of 256 dimensions.

    Texts are lower-cased, as the table knows most capitalised words only as names. Embeds thousands of texts a second
    on one core. Safe to share between threads.
    """

    model = EmbeddingModel(name="wordllama l2_supercat", version="1 lower", dimensions=256)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed any strings: float32, shape (n, 256); zeros for a text without tokens."""
        return unit(self._sums(texts))

    def embed_query(self, query: str) -> Vector:
        """Embed a query in the same way as a text: float32, shape (256,)."""
        return np.asarray(self.embed([query])[0])

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Embed words one by one, not normalised: float32, shape (n, 256). The norm is larger for rarer words."""
        return self._cut(words)[1]

    def cut(self, words: Sequence[str]) -> Tokens:
        """Tokenize words, some at a time: the vectors of many words take much memory."""
        parts = [self._cut(words[start : start + _SOME])[0] for start in range(0, max(1, len(words)), _SOME)]
        return Tokens(**{name: np.concatenate([getattr(each, name) for each in parts]) for name in _TOKENS})

    def token_vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of tokens: float32, shape (n, 256)."""
        table, _, _ = _loaded()
        return table.take(numbers, axis=0, mode="clip").astype(np.float32)

    def _cut(self, words: Sequence[str]) -> tuple[Tokens, NDArray[np.float32]]:
        """Tokenize words, and sum their tokens' vectors."""
        _, _, encode_words = _loaded()
        numbers, owners = encode_words(list(map(_plain, words)))
        counts = np.bincount(owners, minlength=len(words))
        vectors = np.zeros((len(words), self.model.dimensions), np.float32)
        having = counts > 0
        if having.any():
            vectors[having] = np.add.reduceat(self.token_vectors(numbers), (np.cumsum(counts) - counts)[having])
        return Tokens(numbers=numbers, counts=counts, lengths=np.sqrt(np.vecdot(vectors, vectors))), vectors

    def _sums(self, texts: Sequence[str]) -> NDArray[np.float32]:
        table, encode, _ = _loaded()
        sums = np.zeros((len(texts), table.shape[1]), np.float32)
        for start in range(0, len(texts), 1_024):
            tokens = encode([_plain(text) for text in texts[start : start + 1_024]])
            # Most tokens occur repeatedly: each token's vector is converted to float32 once.
            used, places = np.unique(np.fromiter(chain.from_iterable(tokens), np.int64), return_inverse=True)
            vectors, end = table[used].astype(np.float32), 0
            for row, ids in enumerate(tokens, start):
                begin, end = end, end + len(ids)
                sums[row] = vectors[places[begin:end]].sum(0)
        return sums


def _loaded() -> tuple[NDArray[np.float16], _Encode, _EncodeWords]:
    with _loading:
        return load_table()


@cache
def load_table() -> tuple[NDArray[np.float16], _Encode, _EncodeWords]:
    """Load the table, a tokenizer of texts, and a tokenizer of words, once per process: it takes 80 ms.

    The tokenizer of words returns the token ids of all words, and for each id the index of its word.

    Raises:
        EmbedderError: WordLlama is not installed, or its files cannot be read.
    """
    # Read the files directly: the package is slow to import, sets up logging, and needs twice the memory.
    package = find_spec("wordllama")
    if package is None or package.origin is None:
        raise EmbedderError(f"WordLlama is not installed; {_INSTALL_WORDLLAMA}")
    folder = Path(package.origin).parent
    try:
        from tokenizers import Tokenizer

        table = _map_table(folder / "weights" / "l2_supercat_256.safetensors")
        tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    except Exception as error:  # tokenizers raises plain `Exception`
        raise EmbedderError(f"WordLlama's table cannot be loaded ({error}); {_INSTALL_WORDLLAMA}") from error
    tokenizer.no_padding()
    tokenizer.model._resize_cache(0)  # the cache would keep thousands of complete texts

    def encode(texts: list[str]) -> list[list[int]]:
        if len(texts) < _FEW:  # waking other threads for so few texts takes longer
            encodings = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
        else:
            encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [each.ids for each in encodings]

    def encode_words(words: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        encoding = tokenizer.encode(words, is_pretokenized=True, add_special_tokens=False) if words else None
        tokens = np.array(encoding.ids if encoding else [], np.int64)
        return tokens, np.array(encoding.word_ids if encoding else [], np.int64)

    return table, encode, encode_words


def _map_table(path: Path) -> NDArray[np.float16]:
    """Map the table in a safetensors file into memory; rows that are never read take no memory."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        described = json.loads(file.read(size))["embedding.weight"]
    begin, _ = described["data_offsets"]
    return np.asarray(np.memmap(path, np.dtype("<f2"), "r", offset=8 + size + begin, shape=tuple(described["shape"])))


def _plain(text: str) -> str:
    return text.lower() if len(text) <= _FEW and text.isascii() else embeddable(text).lower()


_BATCH = 32
_MAX_TOKENS = 256  # the limit of all-MiniLM-L6-v2


class OnnxEmbedder:
    """Embeds with a sentence-transformers model: the mean of its last layer over the text's tokens.

    Safe to share between threads. Only the first 256 tokens of a text are used.

    Args:
        folder: Folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`.
        threads: Number of processor threads that one call may use.

    Raises:
        EmbedderError: The `onnx` extra is not installed, or a file is missing or cannot be read.
    """

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        model_path = next(
            (path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None
        )
        tokenizer_path = folder / "tokenizer.json"
        if model_path is None or not tokenizer_path.is_file():
            missing = "tokenizer.json" if model_path else "model.onnx"
            raise EmbedderError(
                f"{folder} has no {missing}; put a sentence-transformers model in ONNX format and its tokenizer there"
            )
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EmbedderError(f"ONNX models cannot be run ({error}); pip install 'orchestra-mem[onnx]'") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        try:
            self._session = onnxruntime.InferenceSession(str(model_path), options, providers=["CPUExecutionProvider"])
            self._tokenizer = Tokenizer.from_file(str(tokenizer_path))
        except Exception as error:  # both libraries raise their own exceptions and plain `Exception`
            raise EmbedderError(f"the model in {folder} cannot be loaded: {error}") from error
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        # Padding is masked, but its id must be in the vocabulary.
        padding = json.loads(tokenizer_path.read_text(encoding="utf-8")).get("padding") or {}
        self._tokenizer.enable_padding(pad_id=int(padding.get("pad_id", 0)))
        dimensions = self._session.get_outputs()[0].shape[-1]
        if not isinstance(dimensions, int):
            dimensions = int(self._run(["a"]).shape[1])
        size = model_path.stat().st_size
        self.model = EmbeddingModel(name=f"onnx {folder.name}", version=f"{size}", dimensions=dimensions)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed any strings: float32, shape (n, dimensions); zeros for a blank text."""
        vectors = np.zeros((len(texts), self.model.dimensions), np.float32)
        # Batches of similar length, since each batch is padded to its longest text.
        order = sorted((row for row in range(len(texts)) if texts[row].strip()), key=lambda row: len(texts[row]))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            vectors[rows] = self._run([embeddable(texts[row]) for row in rows])
        return unit(vectors)

    def embed_query(self, query: str) -> Vector:
        """Embed a query in the same way as a text: float32, shape (dimensions,)."""
        return np.asarray(self.embed([query])[0])

    def _run(self, texts: list[str]) -> NDArray[np.float32]:
        encodings = self._tokenizer.encode_batch(texts)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        given: dict[str, Any] = {
            "input_ids": np.array([encoding.ids for encoding in encodings], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        try:
            (last, *_) = self._session.run(None, {name: given[name] for name in self._inputs})
        except Exception as error:  # the library raises its own exceptions and plain `Exception`
            raise EmbedderError(f"the ONNX model failed: {error}") from error
        if last.ndim == 2:  # the model itself has pooled the tokens
            return np.asarray(last, np.float32)
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((last * weights).sum(1) / np.maximum(weights.sum(1), 1.0), np.float32)
