"""The demo command: it imports a real git history, and its figures match the memory that it leaves."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.build import open_memory

PARTS = ("oven", "dough", "flour", "crust", "proofing", "kneading", "salt", "water")


def _make_repository(path: Path, commits: int) -> Path:
    """Create a repository with commits of a bakery by one `git fast-import`."""
    stream: list[str] = []
    for number in range(1, commits + 1):
        part, other = PARTS[number % len(PARTS)], PARTS[(number * 3 + 1) % len(PARTS)]
        message = (
            f"Change the {part} of recipe {number}\n\nThe {part} was too warm at {20 + number % 9} degrees, so that "
            f"the {other} suffered. Batch B-{number:04} came out well then. Not done yet: weigh the {other} again."
        )
        content = f"{part} {number}\n" * (1 + number % 5)
        stream += [
            "commit refs/heads/main", f"committer Ada <ada@example.org> {1_600_000_000 + number * 7_200} +0000",
            f"data {len(message)}", message, f"M 644 inline recipes/{part}.txt", f"data {len(content)}", content,
        ]  # fmt: skip
    path.mkdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", str(path)], check=True)
    feed = "\n".join(stream).encode()
    subprocess.run(["git", "-C", str(path), "fast-import", "--quiet"], input=feed, check=True)
    return path


@pytest.fixture(scope="module")
def long_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose history is many times larger than the window."""
    return _make_repository(tmp_path_factory.mktemp("long") / "bakery", 200)


def test_a_long_history_is_refreshed_compacted_and_told(long_history: Path, run: Any) -> None:
    """The demo prints all sections, and its memory has the operations and summaries reported."""
    shown = run("demo", "--repo", long_history, "--limit", "160")
    kept = shown.rpartition("orchestra-mem status -C ")[2].strip()
    for title in (
        "1. What was recorded", "2. What was compacted", "3. What the model would get",
        "4. What the next run of the program remembers",
    ):  # fmt: skip
        assert f"\n{title}\n" in shown, title
    assert "160 operations of" in shown
    assert "shows the operations as they were recorded:" in shown
    with open_memory(kept) as memory:
        assert len(memory.operations()) == 160
        assert memory.losses()


def test_the_document_with_json_says_the_same(long_history: Path, run: Any) -> None:
    """With `--json` the demo reports automatic refreshes, summaries, the context and the status of the memory."""
    record = run.json("demo", "--repo", long_history, "--limit", "160")
    assert record["recorded"] == 160
    assert record["window_tokens"] == 8192
    assert record["refreshes"] >= 2
    assert record["recorded_tokens"] > 8192
    assert record["expanded"] in {f"S{each['id']}" for each in record["summaries"]}
    assert record["context"]["tokens"] <= record["context"]["budget_tokens"]
    assert {name for name, path in record["status"]["documents"].items() if path and Path(path).is_file()} == {
        "project_state", "work_plan", "decision_log",
    }  # fmt: skip


def test_import_git_records_a_commit_once(long_history: Path, run: Any) -> None:
    """`import git` records each commit once: a limited import takes the newest, and a later one adds the others."""
    assert run("import", "git", long_history, "--limit", "3", "--agent", "ada") == (
        f"recorded 3 operations from {long_history}\n"
    )
    assert run.json("import", "git", long_history) == {
        "source": str(long_history), "recorded": 197, "known": 3, "note": "", "faults": [],
    }  # fmt: skip
    operations = run.json("ops", "--limit", "0", "--type", "commit")
    assert [op["data"]["subject"].rpartition(" ")[2] for op in operations[:4]] == ["198", "199", "200", "1"]
    assert [op["agent"] for op in operations[:4]] == ["ada", "ada", "ada", None]
    assert operations[0]["timestamp"] == "2020-09-30T00:26:40+00:00"
