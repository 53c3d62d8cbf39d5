"""The documentation is true: its programs and commands run as printed, and its tables and names match the code."""

from __future__ import annotations

import ast
import doctest
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from orchestra_mem.build import initialise
from orchestra_mem.faces.cli import app
from orchestra_mem.settings import schema, sections
from tools import check_site, reference

CHECKOUT = Path(__file__).parents[1]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((CHECKOUT / "docs").glob("*.md"))}

# An environment in which this Python and its commands come first. No model improves summaries in the background: how
# far it would come until the next command depends on the machine.
_ENVIRONMENT = os.environ | {
    "ORCHESTRA_MEM__COMPRESSION__AUTO": "false",
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": str(CHECKOUT),
    "COLUMNS": "80",
}


def _blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _first_column(heading: str, page: str) -> list[str]:
    """The first cells of the table whose header line begins with `heading`."""
    table = re.search(rf"^\| {re.escape(heading)}.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGES[page], re.MULTILINE)
    assert table, heading
    return [line.split("|")[1].strip() for line in table[1].splitlines()]


COMMANDS = [name for name, _ in reference.walk(typer.main.get_command(app))]


def _run(command: list[str], folder: Path, **environment: str) -> str:
    """Run a command in a folder and return what it prints."""
    done = subprocess.run(
        command, cwd=folder, env=_ENVIRONMENT | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


TALKS = [
    pytest.param(name, marks=pytest.mark.slow if "$MODEL" in text else ())
    for name, text in PAGES.items()
    if "```console" in text
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", TALKS)
def test_what_a_page_types_answers_as_printed(page: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A page's console commands print what the page shows; "…" matches any text, an empty answer matches anything."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    model = str(request.getfixturevalue("qwen_gguf")) if "$MODEL" in PAGES[page] else ""
    talk = "".join(_blocks("console", PAGES[page].replace("8377", port)))
    typed, printed = zip(*re.findall(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", talk, re.MULTILINE), strict=True)
    script = "".join(f"echo '=== next'\n{command}" for command in typed).replace("\n> ", "\n")
    script = f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
    folder = tmp_path / "project"
    folder.mkdir()
    answered = _run(["bash", "-euc", script], folder, MODEL=model, ORCHESTRA_MEM__SERVER__PORT=port)
    for command, wanted, answer in zip(typed, printed, answered.split("=== next\n")[1:], strict=True):
        wanted = wanted.replace("…", "...") or "..."
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(wanted, answer, flags), f"{command}{answer}"


def test_the_programs_run_as_printed(tmp_path: Path) -> None:
    """The README's program prints the answer shown there, and the programs of other pages run without a warning."""
    python = [sys.executable, "-W", "error", "-c"]
    assert _run([*python, _blocks("python")[0]], tmp_path) == _blocks("text")[0]
    begun = "import logging, sys\nlogging.lastResort.emit = lambda record: sys.exit(record.getMessage())\n"
    begun += "from orchestra_mem import open_memory\nmemory = open_memory('.')\nmessage = answer = 'We bake.'\n"
    for page in ("agents.md", "categorisation.md", "embed.md"):
        _run([*python, begun + "".join(_blocks("py", PAGES[page]))], tmp_path)


def test_the_first_forty_lines_say_what_it_is() -> None:
    """The README's first 40 lines name purpose and commands, draw the tiers, and its program has at most ten lines."""
    first = "\n".join(README.splitlines()[:40])
    for words in ("make demo", "make test", "For those who", "```python", "working memory", "session memory",
                  "episodic memory", "get_orchestrator_context"):  # fmt: skip
        assert words in first
    assert first.count("```") % 2 == 0, "the picture of the tiers ends within the first forty lines"
    assert len(_blocks("python")[0].splitlines()) <= 10


@pytest.mark.parametrize(
    "document",
    ["README.md", "CHANGELOG.md", "config/default_config.yaml", ".obra-template/config.yaml"]
    + [f"docs/{name}" for name in PAGES],
)
def test_every_command_that_a_text_mentions_exists(document: str) -> None:
    """Every `orchestra-mem` command that a document mentions exists."""
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    for mentioned in re.findall(r"orchestra-mem ((?:[a-z]+ ?)+)", text):
        words = mentioned.split()
        known = any(" ".join(words[:count]) in COMMANDS for count in (1, 2))
        assert known or mentioned.strip() == "", f"{document} mentions `orchestra-mem {mentioned.strip()}`"


def test_the_exit_codes_are_those_of_the_program() -> None:
    """The table of exit codes lists exactly those that the code uses."""
    from orchestra_mem.faces import command

    used = {0, command.FAILED, command.USAGE, command.CONFIGURATION, command.STORAGE, command.INTERRUPTED}
    assert {int(code) for code in _first_column("exit code", "commands.md")} == used


def test_the_settings_of_the_examples_exist() -> None:
    """Every YAML example loads and changes a setting, and so does the first environment variable shown."""
    import yaml

    from orchestra_mem.build import load_settings

    for example in (each for page in PAGES.values() for each in _blocks("yaml", page)):
        assert load_settings(CHECKOUT, {}, yaml.safe_load(example)) != load_settings(CHECKOUT, {}), example
    (name, value) = re.findall(r"(ORCHESTRA_MEM__\w+)=(\d+)", PAGES["configuration.md"])[0]
    assert load_settings(CHECKOUT, {name: value}).orchestrator.context_window.max_tokens == 32768
    assert set(schema()) & sections() == set()


def test_the_files_are_those_that_a_memory_makes(tmp_path: Path) -> None:
    """`init` creates every file of the table of `.obra/`, except for folders and names with placeholders."""
    initialise(tmp_path)
    for name in (cell.strip("`") for cell in _first_column("in `.obra/`", "editing.md")):
        if "<" not in name and not name.endswith("/"):
            assert (tmp_path / ".obra" / name).is_file(), name


def test_the_benchmarks_are_those_that_there_are() -> None:
    """The table of benchmarks lists exactly the scripts in `benchmarks/`."""
    scripts = {path.name for path in (CHECKOUT / "benchmarks").glob("[!_]*.py")}
    assert {cell.strip("`") for cell in _first_column("script in `benchmarks/`", "benchmarks.md")} == scripts


def test_every_make_target_that_is_mentioned_exists() -> None:
    """Every make target that the README or the help of `make` mentions exists."""
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", README)) - {"demo"} <= targets | {"it"}
    assert set(re.findall(r"echo 'make ([a-z-]+)", makefile)) <= targets


def test_what_the_pages_name_is_there() -> None:
    """Every link of the README and every script or test that a page names exists; `make docs` checks other links."""
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (CHECKOUT / target).exists(), target
    for name in re.findall(r"`((?:tests|benchmarks|examples|tools)/[\w./]+)`", "\n".join(PAGES.values())):
        assert (CHECKOUT / name).exists(), name
    assert len(README.splitlines()) <= 150


def test_what_the_page_about_the_code_names_is_there() -> None:
    """Every folder, module, class, method and function that `architecture.md` names exists, or is a word of Python."""
    package, page = CHECKOUT / "orchestra_mem", PAGES["architecture.md"]
    named: set[str] = set()
    for module in package.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                members = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
                named |= {node.name, *(f"{node.name}.{name}" for name in members)}
    stored = set(re.findall(r"CREATE TABLE (\w+)", (package / "adapters/database/migrations.py").read_text("utf-8")))
    for span in re.findall(r"`([^`\n]+)`", page):
        owner, _, member = span.partition(".")
        inherited = owner == "OrchestratorContextManager" and member in named
        is_file = any((folder / span).exists() for folder in (CHECKOUT, package, package / "core/documents"))
        is_other = span in stored or re.fullmatch(r"(?:op|[#KMS])7|--\w+|\w+(?:_\w+)?\.(?:md|npz)|.*….*", span)
        assert span in named or inherited or is_file or is_other, span


def test_a_site_that_asks_the_network_or_lacks_something_is_not_built(tmp_path: Path) -> None:
    """The site check reports external addresses, missing pages and pictures, and pages that no navigation links."""
    page = '<a href="missing.html">x</a> <img src="images/none.png"> <script src="//cdn.example/x.js"></script>'
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    (tmp_path / "lost.html").write_text('<a href="index.html#x">x</a>', encoding="utf-8")
    (tmp_path / "sheet.css").write_text("@import 'https://fonts.example/x.css';", encoding="utf-8")
    assert [*check_site.faults(tmp_path)] == [
        "index.html links to another site: //cdn.example/x.js",
        "index.html has a broken link: images/none.png",
        "index.html has a broken link: missing.html",
        *(f"the navigation does not link to {name}.html" for name in ("index", "lost")),
        "sheet.css loads https://fonts.example/x.css",
    ]


@pytest.mark.parametrize("text", [README, *PAGES.values()], ids=["README.md", *PAGES])
def test_no_page_quotes_a_measured_number(text: str) -> None:
    """No page contains a measured time, size or rate: figures come from scripts, with their machine and date."""
    assert not re.search(r"\d\s?(ms|µs|milliseconds|MB|ops/s|operations a second)\b", text)
