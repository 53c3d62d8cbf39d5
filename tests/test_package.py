"""The package as users get it: built as a wheel and installed in a separate environment, outside of the checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


def _run(*command: str | Path, cwd: Path) -> str:
    """Run a command without this process's Python variables in its environment, and return what it prints."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV", "VIRTUAL_"))}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, f"{command} exited with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive from the checkout, and the wheel from that archive."""
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, CHECKOUT, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with its dependencies in an empty environment, and return the folder of its programs."""
    programs, away = tmp_path_factory.mktemp("elsewhere") / "env" / "bin", wheel.parent
    _run(sys.executable, "-m", "venv", "--without-pip", programs.parent, cwd=away)
    _run(sys.executable, "-m", "pip", "--python", programs / "python", "install", "-q", "--no-compile", wheel, cwd=away)
    return programs


def _template() -> dict[str, str]:
    folder = CHECKOUT / ".obra-template"
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def test_wheel_holds_the_package_and_what_ships_along_and_nothing_else(wheel: Path) -> None:
    """The wheel contains every file of the package, the default settings, the template, a licence, and nothing else."""
    package = {
        path.relative_to(CHECKOUT).as_posix()
        for path in (CHECKOUT / "orchestra_mem").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    template = {f"orchestra_mem/_data/obra-template/{name}" for name in _template()}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert "orchestra_mem/py.typed" in package
    assert "orchestra_mem/_data/obra-template/.gitignore" in template
    assert names == package | template | {"orchestra_mem/_data/default_config.yaml"}
    assert len(licences) == 1


def test_every_dependency_is_explained_and_bounded() -> None:
    """Each dependency has a comment with its reason and both version bounds; no tool of the tests is among them."""
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed
    lines = [line.strip() for line in listed[1].splitlines()]
    for reason, requirement in zip(lines[::2], lines[1::2], strict=True):
        assert re.fullmatch(r"# \w.{20,}", reason), requirement
        assert re.fullmatch(r'"[\w.-]+>=[\d.]+,<[\d.]+(; [^"]+)?",', requirement)
    assert not re.search(r"pytest|mypy|ruff|hypothesis", listed[1])


def test_installed_package_is_found_away_from_the_checkout(scripts: Path, tmp_path: Path) -> None:
    """An installed package reads the default settings and the template from the wheel, equal to the checkout's."""
    program = (
        "import json, orchestra_mem.adapters.config_files as files\n"
        "print(json.dumps([files.__file__, files.default_config_text(), files.template_files()]))"
    )
    file, default, template = json.loads(_run(scripts / "python", "-c", program, cwd=tmp_path))
    assert Path(file).is_relative_to(scripts.parent)
    assert default == (CHECKOUT / "config/default_config.yaml").read_text(encoding="utf-8")
    assert template == _template()


def test_installed_program_initialises_records_and_gives_a_context(scripts: Path, tmp_path: Path) -> None:
    """`init`, `record` and `context` work in an empty folder with only the wheel installed."""
    program = scripts / "orchestra-mem"
    _run(program, "init", cwd=tmp_path)
    laid_down = _template()
    assert {name: (tmp_path / ".obra" / name).read_text(encoding="utf-8") for name in laid_down} == laid_down
    _run(program, "record", "decision", '{"text": "rye bread is baked on Tuesdays"}', cwd=tmp_path)
    assert "rye bread is baked on Tuesdays" in _run(program, "context", cwd=tmp_path)
