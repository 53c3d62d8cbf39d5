"""Sentence-transformers models in ONNX format, from a folder that the user provides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.search.late_interaction import unit
from orchestra_mem.core.search.terms import embeddable
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EmbeddingModel, Vector, Vectors

INSTALL_ONNX = "pip install 'orchestra-mem[onnx]'"

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
            raise EmbedderError(f"ONNX models cannot be run ({error}); {INSTALL_ONNX}") from error
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
