"""Embedders: the bundled WordLlama table, and ONNX models from a folder."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.adapters.embedders import OnnxEmbedder, WordLlamaEmbedder
from orchestra_mem.errors import EmbedderError
from tests.processes import python

EMBEDDER = WordLlamaEmbedder()


def test_a_text_points_where_the_sum_of_its_words_does() -> None:
    """A text's vector has the direction of the sum of its word vectors, so weighted query words match texts."""
    together = EMBEDDER.embed(["red bicycle"])[0]
    summed = EMBEDDER.embed_words(["red", "bicycle"]).sum(0)
    assert together @ summed / np.linalg.norm(summed) == pytest.approx(1, abs=1e-5)


@settings(deadline=None)
@given(st.lists(st.text(), max_size=40))
def test_any_texts_are_embedded(texts: list[str]) -> None:
    """Any text yields a unit vector, or zeros if it is blank; a text's vector does not depend on its batch."""
    vectors = EMBEDDER.embed(texts)
    assert vectors.shape == (len(texts), 256)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert all(length == pytest.approx(1, abs=1e-5) or length == 0 for length in lengths)
    assert all(length > 0 for length, text in zip(lengths, texts, strict=True) if text.strip())
    for row, text in zip(vectors, texts[:3], strict=False):
        assert row == pytest.approx(EMBEDDER.embed_query(text), abs=1e-6)


def test_it_takes_the_table_from_the_package_without_importing_it() -> None:
    """The table is read without importing wordllama, which configures logging and holds it in full precision."""
    python(
        "import sys\n"
        "from orchestra_mem.adapters.embedders import WordLlamaEmbedder\n"
        "assert WordLlamaEmbedder().embed(['a']).any()\n"
        "assert 'wordllama' not in sys.modules"
    )


def test_vectors_are_those_of_its_own_package() -> None:
    """Vectors equal those of the wordllama package for lower-cased text, within 1e-6."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        import wordllama

        theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    texts = ["a red bicycle by the door", "Never deploy on a FRIDAY", "Größer als 100 %"]
    assert EMBEDDER.embed(texts) == pytest.approx(theirs.embed([text.lower() for text in texts], norm=True), abs=1e-6)


# An ONNX model of one operation, `Gather`, over a table of three tokens, [[9, 9], [1, 0], [0, 1]]; its tokenizer knows
# the words `up` and `right` and maps all others to `?`.
TINY = Path(__file__).parent / "samples" / "tiny"


def test_an_onnx_model_embeds_by_the_mean_of_its_tokens() -> None:
    """A vector is the mean of token vectors: padding is ignored, blank texts are zeros, long texts are truncated."""
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    embedder = OnnxEmbedder(TINY)
    assert (embedder.model.name, embedder.model.dimensions) == ("onnx tiny", 2)
    half = 0.5**0.5
    texts = ["up", "up right", "", "right right right right right", "up " * 300 + "right " * 300, "\ud800"]
    expected = [[1, 0], [half, half], [0, 0], [0, 1], [1, 0], [half, half]]
    assert embedder.embed(texts) == pytest.approx(np.array(expected), abs=1e-6)
    assert embedder.embed_query("right") == pytest.approx([0, 1])
    assert embedder.embed([]).shape == (0, 2)


def test_a_folder_whose_model_cannot_be_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unusable model folder is an error: it names the missing file, the loading failure, or the install command."""

    def told() -> str:
        with pytest.raises(EmbedderError) as error:
            OnnxEmbedder(tmp_path)
        return str(error.value)

    for name in ("model.onnx", "tokenizer.json"):
        to_do = "put a sentence-transformers model in ONNX format and its tokenizer there"
        assert told() == f"{tmp_path} has no {name}; {to_do}"
        (tmp_path / name).write_bytes(b"not a model")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        assert told().endswith("; pip install 'orchestra-mem[onnx]'")
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    assert told().startswith(f"the model in {tmp_path} cannot be loaded: ")
