"""The commands across projects: `projects`, searches with `--all-projects`, and `decisions` without a home."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.faces.conftest import Program


@pytest.fixture
def shop(run: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program in `shop`, one of two listed projects; the other is `web`."""
    monkeypatch.setenv("ORCHESTRA_MEM_HOME", str(tmp_path / "home"))
    for name, text in (("web", "We decided to use SQLite for the tests."), ("shop", "We decided to use PostgreSQL.")):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        run("record", "message", json.dumps({"role": "user", "text": text}))
        run("facts")
    return run


def test_the_list_has_every_project_with_its_folder(shop: Program, tmp_path: Path) -> None:
    """`projects list` shows all projects, and a project whose memory is gone is reported on stderr."""
    listed = shop.json("projects", "list")
    assert [(each["name"], each["path"], each["present"]) for each in listed] == [
        ("shop", str(tmp_path / "shop"), True), ("web", str(tmp_path / "web"), True),
    ]  # fmt: skip
    shutil.rmtree(tmp_path / "web")
    shown = shop("projects", "list")
    assert [line.split()[:2] for line in shown.splitlines()[2:]] == [[each["name"], each["id"][:12]] for each in listed]
    gone = "its memory was not found; `orchestra-mem projects remove` removes it from the list"
    assert shop.errors == f"orchestra-mem: {tmp_path / 'web'}: {gone}\n"


def test_a_project_is_shown_taken_off_and_put_back(shop: Program, tmp_path: Path) -> None:
    """A project can be shown, removed and added; an unlisted one exits with 1, a folder without a memory with 4."""
    (own, web) = shop.json("projects", "list")
    shown = shop("projects", "info")
    assert shown == (
        f"shop (ID: {own['id']})\n{tmp_path / 'shop'}\ntags: none\nopened: {own['first_opened']} to "
        f"{own['last_opened']}\nsearched from others: yes\n"
    )
    assert shop.json("projects", "info", "web") == web
    assert shop("projects", "remove", "web") == f"no longer listed: web {web['id']} {tmp_path / 'web'}\n"
    shop("projects", "info", "web", exit_code=1)
    assert shop.errors == "orchestra-mem: no project 'web' is listed; `orchestra-mem projects list` shows all of them\n"
    assert shop("projects", "add", tmp_path / "web") == f"listed: web {web['id']} {tmp_path / 'web'}\n"
    shop("projects", "add", tmp_path, exit_code=4)
    assert shop.errors.startswith(f"orchestra-mem: no memory in {tmp_path}; run `orchestra-mem init` there")


def test_a_search_names_the_project_of_each_hit(shop: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`search --all-projects` works from any folder and names each hit's project; it refuses `--item`."""
    shown = shop("search", "SQLite for the tests", "--all-projects", "--limit", "1")
    assert shown.split()[:2] == ["1", "web"]
    found = shop.json("search", "SQLite for the tests", "--all-projects", "--explain")
    assert (found["hits"][0]["project"], found["hits"][0]["path"]) == ("web", str(tmp_path / "web"))
    assert set(shop.json("search", "SQLite")["hits"][0]) < set(found["hits"][0])
    assert found["notes"] == []
    monkeypatch.chdir(tmp_path)
    shop("search", "SQLite", "--all-projects")
    shop("search", "SQLite", exit_code=4)
    assert not (tmp_path / ".obra").exists()
    shop("search", "x", "--all-projects", "--item", "1", exit_code=2)
    assert "a session or work item belongs to one project: leave out --session and --item" in shop.errors


def test_recommendations_name_their_projects_and_what_fails_is_noted(shop: Program, tmp_path: Path) -> None:
    """`recommend --all-projects` names each entry's project, and projects that were not searched on stderr."""
    assert "```recalled web K1 (" in shop("recommend", "which database do we use", "--all-projects")
    (tmp_path / "web" / ".obra" / "config.yaml").write_text("project: {shared: false}")
    found = shop.json("recommend", "which database do we use", "--all-projects", "--agent", "ada")
    assert {each["project"] for each in found["decisions"]} == {"shop"}
    assert shop.errors == "orchestra-mem: web: not searched (project.shared: false)\n"


def test_what_recurs_is_listed_with_its_projects(shop: Program) -> None:
    """`projects recurring` lists decisions with their projects, exits with 1 if none recur, and needs at least two."""
    assert shop("projects", "recurring", exit_code=1) == "no decision or rule recurs\n"
    shop("record", "message", '{"role": "user", "text": "We decided to use SQLite for the tests."}')
    shop("facts")
    assert sorted(shop("projects", "recurring", "--least", "2").splitlines()) == [
        "shop K2: We decided to use SQLite for the tests.", "web K1: We decided to use SQLite for the tests.",
    ]  # fmt: skip
    (group,) = shop.json("projects", "recurring", "--least", "2")["groups"]
    assert {(fact["project"], fact["id"], fact["kind"]) for fact in group} == {
        ("shop", 2, "decision"), ("web", 1, "decision"),
    }  # fmt: skip
    shop("projects", "recurring", "--least", "1", exit_code=2)


def test_without_a_home_each_command_says_so(run: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a home each command across projects exits with 4 and names the environment variable."""
    run("init")
    monkeypatch.setenv("ORCHESTRA_MEM_HOME", "off")
    asking = [[each, "x", "--all-projects"] for each in ("search", "recommend")]
    deciding = [["decisions", "shared"], *(["decisions", each, "K1"] for each in ("share", "unshare", "adopt"))]
    for command in (["projects", "list"], *asking, *deciding):
        run(*command, exit_code=4)
        told = "there is no home folder: ORCHESTRA_MEM_HOME is off or a relative path; unset it, or name a folder"
        assert run.errors == f"orchestra-mem: {told}\n"
