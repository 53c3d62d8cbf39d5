"""Build llama.cpp's server, which a test runs, from the source that is part of llama-cpp-python.

The server has the same version of llama.cpp as the library in this process. It is stored in the user's cache folder by
version, and an existing one is not built again. Needs CMake, a C++ compiler, and a quarter of an hour on two cores.

    python tools/llama_server.py
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

import platformdirs

# No web interface and no HTTPS, which would need downloads or libraries; a static executable that runs from any folder.
_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_OPENSSL=OFF",
    "-DGGML_NATIVE=OFF",
)  # fmt: skip
_NAME = "llama-server.exe" if sys.platform == "win32" else "llama-server"


class BuildError(Exception):
    """The server cannot be built."""


def default_path() -> Path:
    """Return the path of the server that belongs to the installed llama-cpp-python, built or not."""
    folder = Path(platformdirs.user_cache_dir("orchestra-mem")) / "llama-server"
    return folder / version("llama-cpp-python") / _NAME


def build(path: Path) -> Path:
    """Build the server at `path` if it does not exist.

    Raises:
        BuildError: A tool is missing or fails.
    """
    if path.is_file():
        return path
    if shutil.which("cmake") is None:
        raise BuildError("cmake is missing; on Debian and Ubuntu: apt-get install cmake g++")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source = _source(Path(folder))
        made = Path(folder) / "build"
        options = [*_OPTIONS, *shlex.split(os.environ.get("CMAKE_ARGS", ""))]
        _run(["cmake", "-S", str(source), "-B", str(made), *options])
        jobs = str(os.cpu_count() or 1)
        _run(["cmake", "--build", str(made), "--config", "Release", "--target", "llama-server", "--parallel", jobs])
        found = sorted(made.glob(f"bin/**/{_NAME}"))
        if not found:
            raise BuildError(f"the build succeeded, but there is no {_NAME} in {made / 'bin'}")
        os.replace(found[0], path)
    return path


def _source(folder: Path) -> Path:
    """Return the source folder of llama.cpp in the source package of llama-cpp-python."""
    requirement = f"llama-cpp-python=={version('llama-cpp-python')}"
    _run(
        [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps",
         "--no-binary", ":all:", "--dest", str(folder), requirement]
    )  # fmt: skip
    (packed,) = folder.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / packed.name.removesuffix(".tar.gz") / "vendor" / "llama.cpp"


def _run(command: list[str]) -> None:
    """Run a command with its output on stderr, which shows the progress."""
    print(shlex.join(command), file=sys.stderr, flush=True)
    if done := subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        raise BuildError(f"{command[0]} exited with status {done}")


def main() -> int:
    """Build the server and print its path."""
    try:
        print(build(default_path()))
    except (BuildError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
