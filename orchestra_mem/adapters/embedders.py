"""What turns texts into vectors: WordLlama's table, which ships with its package, and ONNX models from a folder.

Models are loaded at the first use, and their packages imported no sooner.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EmbeddingModel, Vector, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INSTALL_WORDLLAMA = "pip install wordllama"
INSTALL_ONNX = "pip install 'orchestra-mem[onnx]'"

_MAX_CHARS = 32_000  # a chunk is far shorter; what is not is embedded by its beginning
_FEW = 32
_MAX_WORDS = 100_000
_WHOLE_WORD = re.compile("\u2581[a-z0-9]+")
_BATCH = 32
_MAX_TOKENS = 256  # what all-MiniLM-L6-v2 was trained with


class WordLlamaEmbedder:
    """Embeds by the mean of the words' vectors in WordLlama's table of 256 dimensions; needs no file of the user's.

    Texts are read in lower case: the table knows most capitalised words as names only. Thousands of texts a second on
    one core. Safe to share between threads.
    """

    model = EmbeddingModel(name="wordllama l2_supercat", version="1 lower", dimensions=256)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids_of_words: dict[str, list[int]] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, any strings whatever.

        Raises:
            EmbedderError: WordLlama or its table is missing.
        """
        return _unit(self._sums(texts))

    def embed_query(self, query: str) -> Vector:
        """Embed a query as any text.

        Raises:
            EmbedderError: WordLlama or its table is missing.
        """
        vector: Vector = self.embed([query])[0]
        return vector

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Embed words one by one; the table's own lengths, the greater the rarer the word.

        Raises:
            EmbedderError: WordLlama or its table is missing.
        """
        import numpy as np

        table, encode = self._loaded
        known = self._ids_of_words
        new = [word for word in dict.fromkeys(words) if word not in known]
        encoded = zip(new, encode([_plain(word) for word in new]), strict=True)
        # What does not fit any more is not kept: the words of the vocabulary are, and those met first.
        found = dict(encoded)
        if len(known) < _MAX_WORDS:
            known.update(found)
        rows = [known[word] if word in known else found[word] for word in words]
        vectors = np.zeros((len(words), table.shape[1]), np.float32)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        for length in set(lengths.tolist()) - {0}:
            places = np.flatnonzero(lengths == length)
            vectors[places] = table[np.array([rows[place] for place in places.tolist()])].sum(1)
        return vectors

    def _sums(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        table, encode = self._loaded
        sums = np.zeros((len(texts), table.shape[1]), np.float32)
        for start in range(0, len(texts), 1_024):
            for row, ids in enumerate(encode([_plain(text) for text in texts[start : start + 1_024]]), start):
                if ids:
                    sums[row] = table[ids].sum(0)
        return sums

    @property
    def _loaded(self) -> tuple[NDArray[np.float32], Callable[[list[str]], list[list[int]]]]:
        with self._lock:
            return self._table_and_encoder

    @cached_property
    def _table_and_encoder(self) -> tuple[NDArray[np.float32], Callable[[list[str]], list[list[int]]]]:
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        try:
            import wordllama

            # Its own look-up misses the tokenizer that it ships, and downloads it.
            folder = Path(wordllama.__file__).parent
            found = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        except ImportError as error:
            raise EmbedderError(f"WordLlama cannot be imported ({error}); {INSTALL_WORDLLAMA}") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise EmbedderError(f"WordLlama's table cannot be loaded ({error}); {INSTALL_WORDLLAMA}") from error
        finally:
            # Importing it sets up logging for the whole program, which is for the program to do.
            root.handlers[:] = handlers
            root.setLevel(level)
        tokenizer = found.tokenizer
        tokenizer.no_padding()
        last = len(found.embedding) - 1
        # A word that is a token is that token alone, and half of all words are: no need to ask the tokenizer.
        vocabulary = tokenizer.get_vocab().items()
        self._ids_of_words.update((token[1:], [number]) for token, number in vocabulary if _WHOLE_WORD.fullmatch(token))

        def encode(texts: list[str]) -> list[list[int]]:
            if len(texts) < _FEW:  # to wake other threads for so little takes longer
                encodings = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
            else:
                encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            return [[min(token, last) for token in encoding.ids] for encoding in encodings]

        return found.embedding, encode


class OnnxEmbedder:
    """Embeds with a sentence-transformers model: the mean of its last layer over the text's tokens.

    Safe to share between threads. Longer texts are embedded by their first 256 tokens.

    Args:
        folder: holds `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`.
        threads: of the processor that one call may use.

    Raises:
        EmbedderError: the `onnx` extra is not installed, or a file is missing or cannot be read.
    """

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        model_path = next(
            (path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None
        )
        tokenizer_path = folder / "tokenizer.json"
        if model_path is None or not tokenizer_path.is_file():
            missing = "tokenizer.json" if model_path else "model.onnx"
            raise EmbedderError(
                f"{folder} has no {missing}; put a sentence-transformers model in ONNX and its tokenizer there"
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
        except Exception as error:  # both libraries raise classes of their own, and plain ones
            raise EmbedderError(f"the model in {folder} cannot be loaded: {error}") from error
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding(pad_id=_padding(tokenizer_path))
        dimensions = self._session.get_outputs()[0].shape[-1]
        if not isinstance(dimensions, int):
            dimensions = int(self._run(["a"]).shape[1])
        size = model_path.stat().st_size
        self.model = EmbeddingModel(name=f"onnx {folder.name}", version=f"{size}", dimensions=dimensions)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, any strings whatever.

        Raises:
            EmbedderError: the model does not run.
        """
        import numpy as np

        vectors = np.zeros((len(texts), self.model.dimensions), np.float32)
        # Texts of like length together: a batch is as wide as its longest.
        order = sorted((row for row in range(len(texts)) if texts[row].strip()), key=lambda row: len(texts[row]))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            vectors[rows] = self._run([_readable(texts[row]) for row in rows])
        return _unit(vectors)

    def embed_query(self, query: str) -> Vector:
        """Embed a query as any text.

        Raises:
            EmbedderError: the model does not run.
        """
        vector: Vector = self.embed([query])[0]
        return vector

    def _run(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        encodings = self._tokenizer.encode_batch(texts)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        given: dict[str, Any] = {
            "input_ids": np.array([encoding.ids for encoding in encodings], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        try:
            (last, *_) = self._session.run(None, {name: given[name] for name in self._inputs})
        except Exception as error:  # the library raises classes of its own, and plain ones
            raise EmbedderError(f"the ONNX model does not run: {error}") from error
        if last.ndim == 2:  # pooled within the model
            return np.asarray(last, np.float32)
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((last * weights).sum(1) / np.maximum(weights.sum(1), 1.0), np.float32)


def _padding(tokenizer_path: Path) -> int:
    """The id of the padding token; what stands there is masked, but must be an id of the vocabulary."""
    padding = json.loads(tokenizer_path.read_text(encoding="utf-8")).get("padding") or {}
    return int(padding.get("pad_id", 0))


def _readable(text: str) -> str:
    """Cut what is too long; halves of characters, which tokenizers refuse, become question marks."""
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def _plain(text: str) -> str:
    return _readable(text).lower()


def _unit(vectors: NDArray[np.float32]) -> Vectors:
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
