"""What the documents say is so: the program on the first page runs as printed, its tables are those of the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from orchestra_mem.build import initialise
from orchestra_mem.faces.cli import app
from orchestra_mem.settings import schema, sections

CHECKOUT = Path(__file__).parents[1]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((CHECKOUT / "docs").glob("*.md"))}


def _blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _first_column(heading: str, page: str) -> list[str]:
    """The first cells of the table of a page under a header line that begins so."""
    table = re.search(rf"^\| {re.escape(heading)}.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGES[page], re.MULTILINE)
    assert table, heading
    return [line.split("|")[1].strip() for line in table[1].splitlines()]


def _commands(group: Any, prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, command in group.commands.items():
        if getattr(command, "invoke_without_command", False):
            found.append(prefix + name)
        found += _commands(command, f"{prefix}{name} ") if hasattr(command, "commands") else [prefix + name]
    return found


COMMANDS = _commands(typer.main.get_command(app))


def test_the_program_on_the_first_page_runs_as_printed(tmp_path: Path) -> None:
    """In an empty folder, by a Python of its own; what it prints is what stands below it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ORCHESTRA_MEM__")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _blocks("python")[0]], cwd=tmp_path, timeout=60, check=False,
        env=environment | {"PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == (_blocks("text")[0], 0), done.stderr
    assert (tmp_path / ".obra" / "obra.db").is_file()


def test_the_first_forty_lines_say_what_it_is() -> None:
    """One sentence, for whom, two commands, ten lines that run, a picture of the tiers."""
    first = "\n".join(README.splitlines()[:40])
    for words in ("make demo", "make test", "For those who", "```python", "working memory", "session memory",
                  "episodic memory", "get_orchestrator_context"):  # fmt: skip
        assert words in first
    assert first.count("```") % 2 == 0, "the picture of the tiers ends within the first forty lines"
    assert len(_blocks("python")[0].splitlines()) <= 10


def test_every_command_is_documented_and_every_documented_command_exists() -> None:
    """In the table, each once."""
    assert sorted(_first_column("command", "commands.md")) == sorted(f"`{name}`" for name in COMMANDS)


@pytest.mark.parametrize(
    "document",
    ["README.md", "CHANGELOG.md", "config/default_config.yaml", ".obra-template/config.yaml"]
    + [f"docs/{name}" for name in PAGES],
)
def test_every_command_that_a_text_mentions_exists(document: str) -> None:
    """In backquotes or in a block: the words behind the program's name begin a command."""
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    for mentioned in re.findall(r"orchestra-mem ((?:[a-z]+ ?)+)", text):
        words = mentioned.split()
        known = any(" ".join(words[:count]) in COMMANDS for count in (1, 2))
        assert known or mentioned.strip() == "", f"{document} mentions `orchestra-mem {mentioned.strip()}`"


def test_every_option_that_the_command_table_names_exists() -> None:
    """Of the command in whose row it stands."""
    group: Any = typer.main.get_command(app)
    for row in re.findall(r"^\| `([a-z ]+)` \| (.*) \|$", PAGES["commands.md"], re.MULTILINE):
        name, words = row
        if name not in COMMANDS:
            continue
        command = group
        for word in name.split():
            command = command.commands[word]
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", words)) <= options, name


def test_the_exit_codes_are_those_of_the_program() -> None:
    """Those that the help tells, and those that the code exits with."""
    from orchestra_mem.faces import command

    used = {0, command.FAILED, command.USAGE, command.CONFIGURATION, command.STORAGE, command.INTERRUPTED}
    assert {int(code) for code in _first_column("exit code", "commands.md")} == used


def test_the_settings_of_the_example_exist() -> None:
    """The example can be used as it is, and so can the variable in it."""
    import yaml

    from orchestra_mem.build import load_settings

    example = _blocks("yaml", PAGES["configuration.md"])[0]
    settings = load_settings(CHECKOUT, {}, yaml.safe_load(example))
    assert settings.orchestrator.context_window.max_tokens == 32768
    (name, value) = re.findall(r"(ORCHESTRA_MEM__\w+)=(\d+)", example)[0]
    assert load_settings(CHECKOUT, {name: value}) != load_settings(CHECKOUT, {})
    assert set(schema()) & sections() == set()


def test_the_files_are_those_that_a_memory_makes(tmp_path: Path) -> None:
    """Every path of the table that has no placeholder and is no folder is there after `init`."""
    initialise(tmp_path)
    for name in (cell.strip("`") for cell in _first_column("in `.obra/`", "editing.md")):
        if "<" not in name and not name.endswith("/"):
            assert (tmp_path / ".obra" / name).is_file(), name


def test_the_benchmarks_are_those_that_there_are() -> None:
    """Every script has its claim."""
    scripts = {path.name for path in (CHECKOUT / "benchmarks").glob("[!_]*.py")}
    assert {cell.strip("`") for cell in _first_column("script in `benchmarks/`", "benchmarks.md")} == scripts


def test_every_make_target_that_is_mentioned_exists() -> None:
    """In the README and in the help of `make` itself."""
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", README)) - {"demo"} <= targets | {"it"}
    assert set(re.findall(r"echo 'make ([a-z-]+)", makefile)) <= targets


def test_links_lead_somewhere() -> None:
    """Within the repository; no address that may be gone tomorrow."""
    for folder, text in [(CHECKOUT, README), *((CHECKOUT / "docs", page) for page in PAGES.values())]:
        for target in re.findall(r"\]\(([^)]+)\)", text):
            assert (folder / target).exists(), target


def test_the_readme_leads_to_every_page() -> None:
    """And stays short enough to be read."""
    assert {Path(target).name for target in re.findall(r"\]\((docs/[^)]+)\)", README)} == set(PAGES)
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("text", [README, *PAGES.values()], ids=["README.md", *PAGES])
def test_no_page_quotes_a_measured_number(text: str) -> None:
    """Figures come from scripts, which print machine and date with them."""
    assert not re.search(r"\d\s?(ms|µs|milliseconds|MB|ops/s|operations a second)\b", text)
