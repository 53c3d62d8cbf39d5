"""`orchestra-mem shell` and `run`: a conversation continues where it stopped, however it was stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import Program, start


def _talking(folder: Path, *options: str, said: str) -> subprocess.Popen[Any]:
    """Start a shell in a separate process and send it lines."""
    talking = start("shell", *options, "-C", folder, cwd=folder, stdin=subprocess.PIPE)
    assert talking.stdin is not None
    talking.stdin.write(said)
    talking.stdin.flush()
    return talking


def _shell(folder: Path, *lines: str, options: tuple[str, ...] = (), exit_code: int = 0) -> str:
    """Run a shell on the given lines and return its output."""
    said = "".join(f"{line}\n" for line in lines)
    return Program(folder)("shell", "-C", folder, *options, stdin=said, exit_code=exit_code)


def _answers(folder: Path, *lines: str) -> list[dict[str, object]]:
    """Return the answers of `shell --json` to the given lines."""
    return [json.loads(line) for line in _shell(folder, *lines, options=("--json",)).splitlines()]


def test_usage_example_two_what_did_we_just_do(tmp_path: Path) -> None:
    """The answer to "What did we just do?" has the numbers of all items created and run."""
    _shell(tmp_path, "create an epic for user authentication", "add 2 stories to it: login, signup")
    _shell(tmp_path, "create a task called Write the tests")
    run = Program(tmp_path)
    run("run", "4", "true", "-C", tmp_path)
    assert 'Task #4 "Write the tests" is done' in run.errors
    answer = str(_answers(tmp_path, "what did we just do?")[0]["answer"])
    for number in ("#1", "#2", "#3", "#4"):
        assert number in answer, answer


def test_usage_example_three_the_session_ends(tmp_path: Path) -> None:
    """At the end of input the session is archived, and documents and later sessions have its work and decisions."""
    _shell(tmp_path, "create an epic for user authentication", "we decided to use bcrypt because it is slow")
    assert len(list((tmp_path / ".obra/sessions/archive").glob("*.md"))) == 1
    assert not list((tmp_path / ".obra/sessions").glob("session_*.md"))
    memory = tmp_path / ".obra/memory"
    assert "User authentication" in (memory / "work_plan.md").read_text(encoding="utf-8")
    assert "bcrypt" in (memory / "decision_log.md").read_text(encoding="utf-8")
    (why,) = _answers(tmp_path, "why did we choose bcrypt?")
    assert "slow" in str(why["answer"])


def test_acceptance_three_references_across_a_kill(tmp_path: Path) -> None:
    """After a kill in mid-conversation the next shell knows what "it" refers to."""
    with _talking(tmp_path, said="create an epic for user authentication\n") as talking:
        assert talking.stdout is not None
        assert "Epic #1" in talking.stdout.readline()
        talking.kill()
    (stories,) = _answers(tmp_path, "add 3 stories to it: login, signup and MFA")
    assert "under Epic #1" in str(stories["answer"])


@pytest.mark.parametrize(("kind", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_end_the_session(tmp_path: Path, kind: signal.Signals, code: int) -> None:
    """Ctrl-C and SIGTERM archive the session and exit with 130 and 143."""
    with _talking(tmp_path, said="create an epic for billing\n") as talking:
        assert talking.stdout is not None
        talking.stdout.readline()
        time.sleep(0.2)
        talking.send_signal(kind)
        assert talking.wait(60) == code
    assert len(list((tmp_path / ".obra/sessions/archive").glob("*.md"))) == 1


def test_a_script_is_shown_with_its_answers(tmp_path: Path) -> None:
    """A script prints each line before its answer, skips comments, and exits with 1 if a line cannot be executed."""
    script = tmp_path / "lines.txt"
    script.write_text("# a remark\ncreate an epic for billing\n\nfrobnicate the widget\n", encoding="utf-8")
    shown = _shell(tmp_path, options=("--script", str(script)), exit_code=1)
    assert shown.startswith('> create an epic for billing\nCreated Epic #1 "Billing"\n> frobnicate the widget\n')


def test_a_task_that_fails_fails_the_command(tmp_path: Path) -> None:
    """A failing task makes `run` exit with 1 and return its output."""
    _shell(tmp_path, "create a task called Write the tests")
    record = Program(tmp_path).json("run", "1", "echo no; exit 3", "-C", tmp_path, exit_code=1)
    assert (record["result"], record["error"], record["task_id"]) == ("no", "exit code 3", 1)


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    """The conversation on the documentation page of the shell gets exactly the answers printed there."""
    page = (Path(__file__).parents[2] / "docs" / "shell.md").read_text(encoding="utf-8")
    _, _, behind = page.partition("```text\n> create")
    talk = f"> create{behind.partition('```')[0]}"
    script = tmp_path / "lines.txt"
    script.write_text("".join(f"{line[2:]}\n" for line in talk.splitlines() if line.startswith("> ")), encoding="utf-8")
    assert _shell(tmp_path, options=("--script", str(script))) == talk


# Input from files and pipes


def test_a_script_may_come_from_any_editor(run: Program) -> None:
    """A script may have a byte order mark, comments and CR LF; form feeds and U+2028 do not end lines."""
    lines = (
        "\ufeff# Setup\r\n#\r\n## Work\r\n  #comment\r\ncreate a task called Bake\x0cbread\u2028now\r\n\r\n#1 is done"
    )
    (run.folder / "script").write_bytes(lines.encode())
    replies = [json.loads(line) for line in run("shell", "--json", "--script", "script").splitlines()]
    assert [reply["outcome"] for reply in replies] == ["done", "done"]
    assert replies[1]["line"] == "#1 is done"


@pytest.mark.parametrize(
    ("answer", "code"), [("yes", 0), ("no", 0), ("what is open?", 1), ("create a task called Slice", 1)]
)
def test_a_script_that_leaves_a_question_open_is_not_done(run: Program, answer: str, code: int) -> None:
    """A script with a question that the next line does not answer exits with 1, whatever follows."""
    (run.folder / "script").write_text(f"create an epic: Stage\ncancel #1\n{answer}\nwhat is open?\n")
    run("shell", "--script", "script", exit_code=code)


def test_a_script_that_ends_with_an_open_question_is_not_done(run: Program) -> None:
    """A script that ends with an unanswered question exits with 1, and `--yes` answers it."""
    (run.folder / "script").write_text("create a task called Bake\nundo\n")
    assert run("shell", "--script", "script", exit_code=1).endswith("(yes or no)\n")
    assert "Undid" in run("shell", "--script", "script", "--yes")


def test_bytes_that_are_no_text_end_no_session(tmp_path: Path) -> None:
    """A line of invalid UTF-8 is not executed, and the next line is."""
    how: dict[str, Any] = {"text": False, "stdin": subprocess.PIPE, "env": {"PYTHONIOENCODING": "utf-8:strict"}}
    with start("shell", "--json", cwd=tmp_path, **how) as talking:
        answers, _ = talking.communicate(b"\xff\xfe thing\ncreate a task called Bake", timeout=120)
    assert talking.returncode == 0
    replies = [json.loads(line) for line in answers.splitlines()]
    assert [reply["outcome"] == "done" for reply in replies] == [False, True]
