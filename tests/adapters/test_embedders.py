"""What turns texts into vectors: the table that ships, and ONNX models from a folder."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from orchestra_mem.adapters.embedders import OnnxEmbedder, WordLlamaEmbedder
from orchestra_mem.errors import EmbedderError
from tests.processes import python

EMBEDDER = WordLlamaEmbedder()


def test_like_texts_are_near() -> None:
    """Whatever the case, and with no word in common."""
    vectors = EMBEDDER.embed(
        ["The cat sat on the mat", "THE CAT SAT ON THE MAT", "A kitten on a rug", "Quarterly revenue"]
    )
    likeness = vectors @ vectors[0]
    assert likeness[1] == pytest.approx(1)
    assert likeness[2] > likeness[3] + 0.2


def test_a_text_points_where_the_sum_of_its_words_does() -> None:
    """So that a query of weighted words can be compared with texts."""
    together = EMBEDDER.embed(["red bicycle"])[0]
    summed = EMBEDDER.embed_words(["red", "bicycle"]).sum(0)
    assert together @ summed / np.linalg.norm(summed) == pytest.approx(1, abs=1e-5)


@settings(deadline=None)
@given(st.lists(st.text(), max_size=40))
def test_any_texts_are_embedded(texts: list[str]) -> None:
    """Rows of unit length, or of zeros where there is nothing; each as if it were alone."""
    vectors = EMBEDDER.embed(texts)
    assert vectors.shape == (len(texts), 256)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert all(length == pytest.approx(1, abs=1e-5) or length == 0 for length in lengths)
    assert all(length > 0 for length, text in zip(lengths, texts, strict=True) if text.strip())
    for row, text in zip(vectors, texts[:3], strict=False):
        assert row == pytest.approx(EMBEDDER.embed_query(text), abs=1e-6)


def test_it_takes_the_table_from_the_package_without_importing_it() -> None:
    """WordLlama's package sets up the program's logging on import, and holds the table in full precision."""
    python(
        "import sys\n"
        "from orchestra_mem.adapters.embedders import WordLlamaEmbedder\n"
        "assert WordLlamaEmbedder().embed(['a']).any()\n"
        "assert 'wordllama' not in sys.modules"
    )


def test_vectors_are_those_of_its_own_package() -> None:
    """To the last bit: they are the same numbers in half the memory."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        import wordllama

        theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    texts = ["a red bicycle by the door", "never deploy on a friday", "größer als 100 %"]
    assert EMBEDDER.embed(texts) == pytest.approx(theirs.embed([text.lower() for text in texts], norm=True), abs=1e-6)


@pytest.mark.parametrize(
    ("files", "missing"), [([], "model.onnx"), (["model.onnx"], "tokenizer.json"), (["tokenizer.json"], "model.onnx")]
)
def test_a_folder_without_a_model_is_told(tmp_path: Path, files: list[str], missing: str) -> None:
    """Which file it lacks."""
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(EmbedderError) as told:
        OnnxEmbedder(tmp_path)
    assert (
        str(told.value)
        == f"{tmp_path} has no {missing}; put a sentence-transformers model in ONNX and its tokenizer there"
    )


# A real model, as small as can be: the last layer is a row of a table for each token. Written by hand in the format of
# protobuf, so that no package is needed that could make it.


def _field(number: int, value: bytes | int) -> bytes:
    """A field of a protobuf message: a number, or bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    head, rest = value & 0x7F, value >> 7
    return bytes([head | 0x80]) + _varint(rest) if rest else bytes([head])


def _tensor_type(element: int, sizes: list[str | int]) -> bytes:
    shape = b"".join(
        _field(1, _field(1, size) if isinstance(size, int) else _field(2, size.encode())) for size in sizes
    )
    return _field(1, _field(1, element) + _field(2, shape))


def _named(name: str, kind: bytes) -> bytes:
    return _field(1, name.encode()) + _field(2, kind)


def write_model(folder: Path, table: NDArray[np.float32], vocabulary: dict[str, int]) -> Path:
    """Write a model of one operation, `Gather`, and a tokenizer of whole words."""
    tokenizers = pytest.importorskip("tokenizers")
    gather = _field(1, b"table") + _field(1, b"input_ids") + _field(2, b"last_hidden_state") + _field(4, b"Gather")
    values = _field(1, table.shape[0]) + _field(1, table.shape[1]) + _field(2, 1) + _field(8, b"table")
    ids = _named("input_ids", _tensor_type(7, ["batch", "length"]))
    mask = _named("attention_mask", _tensor_type(7, ["batch", "length"]))
    last = _named("last_hidden_state", _tensor_type(1, ["batch", "length", table.shape[1]]))
    graph = _field(1, gather) + _field(2, b"g") + _field(5, values + _field(9, table.tobytes()))
    graph += _field(11, ids) + _field(11, mask) + _field(12, last)
    folder.mkdir()
    (folder / "model.onnx").write_bytes(_field(1, 8) + _field(7, graph) + _field(8, _field(2, 13)))
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_an_onnx_model_embeds_by_the_mean_of_its_tokens(tmp_path: Path) -> None:
    """Padding counts for nothing, blank texts are zeros, long ones are cut; each as if it were alone."""
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    table = np.array([[9, 9], [1, 0], [0, 1]], np.float32)
    embedder = OnnxEmbedder(write_model(tmp_path / "tiny", table, {"?": 0, "up": 1, "right": 2}))
    assert (embedder.model.name, embedder.model.dimensions) == ("onnx tiny", 2)
    half = 0.5**0.5
    texts = ["up", "up right", "", "right right right right right", "up " * 300 + "right " * 300, "\ud800"]
    expected = [[1, 0], [half, half], [0, 0], [0, 1], [1, 0], [half, half]]
    assert embedder.embed(texts) == pytest.approx(np.array(expected), abs=1e-6)
    assert embedder.embed_query("right") == pytest.approx([0, 1])
    assert embedder.embed([]).shape == (0, 2)


def test_onnx_without_the_extra_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).touch()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderError, match=r"pip install 'orchestra-mem\[onnx\]'$"):
        OnnxEmbedder(tmp_path)


def test_damaged_model_files_are_told(tmp_path: Path) -> None:
    """Whatever the libraries raise."""
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"not a model")
    with pytest.raises(EmbedderError, match=r"^the model in .* cannot be loaded: "):
        OnnxEmbedder(tmp_path)
