"""Embeddings by llama.cpp with a real model: similar texts are near, and every failure is an error."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from orchestra_mem.adapters.llama import trial
from orchestra_mem.adapters.llama.embedder import GgufEmbedder
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import Embedder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def smollm(smollm_gguf: Path) -> Iterator[GgufEmbedder]:
    """An embedder shared by all tests, on one thread."""
    embedder = GgufEmbedder(smollm_gguf, threads=1)
    yield embedder
    embedder.close()


def test_like_texts_are_near(smollm: GgufEmbedder, smollm_gguf: Path) -> None:
    """Similar texts are nearer; vectors have unit length, or are zeros for blank text; long texts are cut."""
    embedder: Embedder = smollm
    assert (embedder.model.name, embedder.model.dimensions) == (f"gguf {smollm_gguf.stem}", 576)
    texts = ["The cat sat on the mat", "A kitten on a rug", "Quarterly revenue fell", "", "\ud800\x00", "word " * 3_000]
    vectors = embedder.embed(texts)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0, 1, 1], abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.05
    assert embedder.embed_query(texts[0]) == pytest.approx(vectors[0], abs=1e-5)


def test_let_go_it_is_loaded_anew(smollm: GgufEmbedder) -> None:
    """A closed embedder is loaded again and gives the same vector."""
    before = smollm.embed_query("red bicycle")
    smollm.close()
    assert smollm.embed_query("red bicycle") == pytest.approx(before, abs=1e-5)


def _ranking(smollm_gguf: Path, folder: Path) -> Path:
    """Copy a GGUF and add the metadata of a reranker, of a length that keeps the tensors aligned to 32 bytes."""
    raw, path, fields = smollm_gguf.read_bytes(), folder / "rank.gguf", (b"llama.pooling_type", b"x" * 14)
    (count,) = struct.unpack("<Q", raw[16:24])
    added = b"".join(struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, 4) for key in fields)
    path.write_bytes(raw[:16] + struct.pack("<Q", count + len(fields)) + added + raw[24:])
    return path


def test_a_file_that_is_no_embedding_model_is_told(
    tmp_path: Path, smollm_gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file, reranker, oversized model or other file is refused when the embedder is created."""
    pytest.importorskip("llama_cpp", reason="needs the extra llama")
    path = tmp_path / "x.gguf"
    with pytest.raises(EmbedderError, match=r"cannot be used for embeddings: .* does not exist"):
        GgufEmbedder(path)
    with pytest.raises(
        EmbedderError, match=r"rank.gguf is a reranker and returns no embeddings; set search.model_path to"
    ):
        GgufEmbedder(_ranking(smollm_gguf, tmp_path))
    monkeypatch.setattr(trial, "available_bytes", lambda: 9)
    with pytest.raises(EmbedderError, match=r" GB are free; use a smaller model$"):
        GgufEmbedder(smollm_gguf)
    path.write_bytes(b"nothing of it")
    with pytest.raises(EmbedderError, match=r"is not a GGUF file: it begins with b'noth'"):
        GgufEmbedder(path)
