"""An older file put back over what people have saved since: by a copy, a sync program, git, or an old editor."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestra_mem.types import DocumentName, MustKeepKind
from tests.memories import problems_of
from tests.tiers.conftest import Desk, Paper

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}
RULE, CONSTRAINT, DECISION = "Never deploy on a Friday.", MustKeepKind.CONSTRAINT, MustKeepKind.DECISION


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    names = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, check=True)


def copied(path: Path, back: Path) -> None:
    """Put a file back as `cp` does."""
    shutil.copyfile(back, path)


def synced(path: Path, back: Path) -> None:
    """Put a file back as sync programs do: a new file in its place, with its old time of change."""
    new = path.with_name(".syncing.tmp")
    shutil.copyfile(back, new)
    os.utime(new, (1_700_000_000, 1_700_000_000))
    os.replace(new, path)


def checked_out(path: Path, back: Path) -> None:
    """Put a file back by `git checkout` of the commit that has it."""
    git(path.parent, "checkout", "HEAD", "--", path.name)


def stashed(path: Path, back: Path) -> None:
    """Put a file back by `git stash`."""
    git(path.parent, "stash")


def saved(path: Path, back: Path) -> None:
    """Save an editor's old text with a further line."""
    path.write_bytes(back.read_bytes() + b"\nAt noon.\n")


WAYS = [copied, synced, checked_out, stashed, saved]


@pytest.fixture
def desk(empty: Desk, tmp_path: Path) -> Desk:
    """A memory with a decision, a rule and an open item in its documents, which are committed and copied."""
    empty.go_on("We decided to store sessions in Postgres.", RULE, "TODO: write the migration guide.")
    folder = empty.log.path.parent
    git(folder, "init", "-q")
    git(folder, "add", *(f"{name}.md" for name in DocumentName))
    git(folder, "commit", "-qm", "documents")
    for name in DocumentName:
        shutil.copyfile(empty.paper(name).path, tmp_path / f"{name}.old")
    return empty


def older(paper: Paper, tmp_path: Path) -> Path:
    """Return the path of the copy of a document."""
    return tmp_path / f"{paper.name}.old"


@pytest.mark.parametrize("put_back", WAYS)
@pytest.mark.parametrize("times", [1, 2])
def test_what_people_saved_since_an_older_file_stays(
    desk: Desk, tmp_path: Path, put_back: Callable[[Path, Path], None], times: int
) -> None:
    """What a person has added and reworded stays, though the machine has not written the document since."""
    desk.go_on("We decided to log in JSON.", "Never merge without a review.", "TODO: order the paper.")
    for number in range(times):
        desk.log.save(f"{desk.log.text}\n### We bake loaf {number} on a Monday.\n\nAsk Joan about it.\n")
        desk.state.edit(("## Rules\n\n", f"## Rules\n\n- Never paint door {number} green.\n"))
        desk.plan.edit(("## Backlog\n\n", f"## Backlog\n\n- Buy bell {number}\n"))
        desk.memory.facts()
    desk.state.edit(("on a Friday", "on a Sunday"))
    desk.memory.facts()
    for paper in (desk.log, desk.state, desk.plan):
        put_back(paper.path, older(paper, tmp_path))
        desk.memory.facts()
    for _ in range(3):
        told = {fact.text for fact in desk.memory.facts()}
        for number in range(times):
            added = {f"We bake loaf {number} on a Monday.", f"Never paint door {number} green.", f"Buy bell {number}"}
            assert added <= told
        assert {"Never deploy on a Sunday.", "We decided to log in JSON.", "TODO: order the paper."} <= told
        assert RULE not in told
        desk.go_on()
    assert desk.log.text.count("Ask Joan about it.") == times
    assert "At noon." in desk.log.text or put_back is not saved
    desk.state.has_once("on a Sunday")
    for number in range(times):
        desk.log.has_once(f"loaf {number}")
        desk.state.has_once(f"door {number}")
        desk.plan.has_once(f"bell {number}")


@pytest.mark.parametrize("put_back", [copied, synced, checked_out, stashed])
def test_lines_that_go_with_a_file_put_back_are_kept_and_told(
    desk: Desk, tmp_path: Path, put_back: Callable[[Path, Path], None]
) -> None:
    """Putting back the machine's last text, as an undo does, ends what was read since; a version has it.

    The problems say so until the document is saved again.
    """
    desk.state.edit(
        ("## Rules\n\n", "## Rules\n\n- Never paint the door green.\n"), ("# Blockers", "# Blockers\n\nAsk Joan.")
    )
    assert "Never paint the door green." in desk.says(CONSTRAINT)
    put_back(desk.state.path, older(desk.state, tmp_path))
    for _ in range(2):
        assert desk.says(CONSTRAINT) == [RULE]
        (told,) = [problem["problem"] for problem in problems_of(desk.memory)]
        assert told == (
            f"{desk.state.path} was put back to an earlier text, without 2 of people's lines; `orchestra-mem history "
            "project_state` lists its earlier texts, and `restore` brings one back"
        )
        desk.go_on()
    desk.state.restore(desk.state.first_version("Ask Joan"))
    assert desk.says(CONSTRAINT) == [RULE, "Never paint the door green."]
    desk.go_on()
    desk.state.has_once("door green", "Ask Joan.")
    assert "put back" not in desk.problems()


def test_an_old_editor_takes_back_what_it_has_just_saved(desk: Desk) -> None:
    """An undo in an editor that was opened long ago is one, however much it undoes; newer lines stay."""
    opened = desk.log.text
    desk.go_on("We decided to log in JSON.")
    desk.log.save(f"{desk.log.text}\nAsk Joan.\n")
    desk.memory.facts()
    desk.log.save(opened + "".join(f"\n### We bake loaf {number}.\n\nAsk Ann {number}.\n" for number in range(6)))
    assert len(desk.says(DECISION)) == 8
    desk.log.save(f"{opened}\nAt noon.\n")
    for _ in range(2):
        assert desk.says(DECISION) == ["We decided to store sessions in Postgres.", "We decided to log in JSON."]
        desk.go_on()
    desk.log.has_once("Ask Joan.", "At noon.", "log in JSON")
    assert "Ann" not in desk.log.text
