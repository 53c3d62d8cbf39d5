"""Embeddings from WordLlama's table of word vectors, which needs neither a download nor the network."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.search.late_interaction import unit
from orchestra_mem.core.search.terms import embeddable
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EmbeddingModel, Tokens, Vector, Vectors

INSTALL_WORDLLAMA = "pip install wordllama"

_Encode: TypeAlias = "Callable[[list[str]], list[list[int]]]"
_EncodeWords: TypeAlias = "Callable[[list[str]], tuple[NDArray[np.int64], NDArray[np.int64]]]"

_FEW = 32
_WHOLE_WORD = re.compile("\u2581[a-z0-9]+")


class WordLlamaEmbedder:
    """Embeds texts by the mean of their words' vectors in WordLlama's table of 256 dimensions.

    Texts are lower-cased, as the table knows most capitalised words only as names. Embeds thousands of texts a second
    on one core. Safe to share between threads.
    """

    model = EmbeddingModel(name="wordllama l2_supercat", version="1 lower", dimensions=256)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids_of_words: dict[str, int] = {}  # words that are a single token

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
        """Tokenize words."""
        return self._cut(words)[0]

    def token_vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of tokens: float32, shape (n, 256)."""
        table, _, _ = self._loaded
        return table.take(numbers, axis=0, mode="clip").astype(np.float32)

    def _cut(self, words: Sequence[str]) -> tuple[Tokens, NDArray[np.float32]]:
        """Tokenize words, and sum their tokens' vectors. Half of all words are one token and need no tokenizer."""
        _, _, encode_words = self._loaded
        first = np.array([self._ids_of_words.get(word, -1) for word in words], np.int64)
        rest = np.flatnonzero(first < 0)
        found, owners = encode_words([_plain(words[row]) for row in rest.tolist()])
        counts = np.ones(len(words), np.int64)
        counts[rest] = np.bincount(owners, minlength=len(rest))
        numbers = np.repeat(first, counts)
        numbers[numbers < 0] = found
        vectors = np.zeros((len(words), self.model.dimensions), np.float32)
        having = counts > 0
        if having.any():
            vectors[having] = np.add.reduceat(self.token_vectors(numbers), (np.cumsum(counts) - counts)[having])
        return Tokens(numbers=numbers, counts=counts, lengths=np.sqrt(np.vecdot(vectors, vectors))), vectors

    def _sums(self, texts: Sequence[str]) -> NDArray[np.float32]:
        table, encode, _ = self._loaded
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

    @property
    def _loaded(self) -> tuple[NDArray[np.float16], _Encode, _EncodeWords]:
        with self._lock:
            return self._table_and_encoders

    @cached_property
    def _table_and_encoders(self) -> tuple[NDArray[np.float16], _Encode, _EncodeWords]:
        """The table, a tokenizer of texts, and a tokenizer of words.

        The tokenizer of words returns the token ids of all words, and for each id the index of its word.
        """
        # Read the files directly: the package is slow to import, sets up logging, and needs twice the memory.
        package = find_spec("wordllama")
        if package is None or package.origin is None:
            raise EmbedderError(f"WordLlama is not installed; {INSTALL_WORDLLAMA}")
        folder = Path(package.origin).parent
        try:
            from tokenizers import Tokenizer

            table = _map_table(folder / "weights" / "l2_supercat_256.safetensors")
            tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        except Exception as error:  # tokenizers raises plain `Exception`
            raise EmbedderError(f"WordLlama's table cannot be loaded ({error}); {INSTALL_WORDLLAMA}") from error
        tokenizer.no_padding()
        tokenizer.model._resize_cache(0)  # the cache would keep thousands of complete texts
        # Half of all words are one token: `_ids_of_words` replaces the tokenizer for them. It is filled token by token,
        # since reading the entire vocabulary at once takes 8 MB that are never released.
        tokens = ((number, tokenizer.id_to_token(number) or "") for number in range(tokenizer.get_vocab_size()))
        self._ids_of_words.update((token[1:], number) for number, token in tokens if _WHOLE_WORD.fullmatch(token))

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
