"""Git history is read correctly whatever the repository contains and however git is configured."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestra_mem.adapters.importers.git_history import open_git_history
from orchestra_mem.core.imported_history import HistoryOperation
from orchestra_mem.errors import HistoryError


class Repository:
    """A real git repository with fixed commit dates and author, isolated from the user's settings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._second = 1_700_000_000
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *arguments: str, stdin: bytes | None = None, date: str | None = None) -> bytes:
        """Run git in the repository and return its output."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
               for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"),
                                   ("DATE", date or f"{self._second} +0200"))}  # fmt: skip
        environment = kept | who | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments], input=stdin, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, message: str | bytes, files: dict[str, bytes] | None = None, date: str | None = None) -> str:
        """Write the files, commit everything and return the hash."""
        self._second += 60
        for name, content in (files or {}).items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_bytes(content)
        self.git("add", "--all")
        raw = message if isinstance(message, bytes) else message.encode()
        self.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "--file", "-", stdin=raw, date=date)
        return self.git("rev-parse", "HEAD").decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository."""
    return Repository(tmp_path / "repo")


def _read(path: Path, limit: int | None = None) -> list[HistoryOperation]:
    return list(open_git_history(path, limit=limit).operations)


def _data(operation: HistoryOperation) -> dict[str, object]:
    assert isinstance(operation.data, dict)
    return dict(operation.data)


def test_a_commit_becomes_an_operation_with_its_words_files_and_time(repository: Repository) -> None:
    """An operation holds a commit's hash, subject, body, author, lines per file, author date in UTC, and a key."""
    commit = repository.commit("Add rye\n\nIt rises\nslowly.\n", {"rye.txt": b"a\nb\n", "bin.dat": b"\0\1"})
    (operation,) = _read(repository.path)
    assert operation == HistoryOperation(
        type="commit",
        data={
            "hash": commit, "subject": "Add rye", "body": "It rises\nslowly.", "author": "Ada",
            "files": [
                {"path": "bin.dat", "added": None, "deleted": None}, {"path": "rye.txt", "added": 2, "deleted": 0},
            ],
            "files_changed": 2,
        },
        timestamp=datetime.fromtimestamp(1_700_000_060, UTC), idempotency_key=f"git:{commit}",
        place=f"{repository.path}, commit {commit[:12]}", position=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("message", "subject", "body"),
    [
        (b"caf\xe9 in Latin-1", "café in Latin-1", ""),
        ("café in UTF-8".encode(), "café in UTF-8", ""),
        (b"", "", ""),
        (b"1\t2\tlooks like a file\n\n3\t4\tso does this\n" + b"a" * 40, "1\t2\tlooks like a file", None),
        (b"a" * 40 + b"\n\n" + b"b" * 40, "a" * 40, "b" * 40),
        (b"control \x01\x1b[31m characters", "control \x01\x1b[31m characters", ""),
    ],
)
def test_any_message_is_read_as_it_is(repository: Repository, message: bytes, subject: str, body: str | None) -> None:
    """No encoding or content of a commit message disturbs the reading of its files and of the next commit."""
    repository.commit(message, {"one.txt": b"1\n"})
    repository.commit("after", {"two.txt": b"2\n"})
    first, second = map(_data, _read(repository.path))
    assert first["subject"] == subject
    assert body is None or first["body"] == body
    assert first["files"] == [{"path": "one.txt", "added": 1, "deleted": 0}]
    assert (second["subject"], second["files"]) == ("after", [{"path": "two.txt", "added": 1, "deleted": 0}])


def test_any_path_is_read_as_it_is(repository: Repository) -> None:
    """Paths with line feeds, tabs, quotes, arrows or invalid UTF-8 are read as the same bytes."""
    names = ["a\nb", "tab\there", '"quoted" => {x}', "ümlaut", os.fsdecode(b"\xff.txt")]
    repository.commit("names", dict.fromkeys(names, b"x\n"))
    (operation,) = _read(repository.path)
    files = _data(operation)["files"]
    assert isinstance(files, list)
    assert sorted(os.fsencode(file["path"]) for file in files) == sorted(map(os.fsencode, names))


def test_a_merge_names_its_parents_and_repeats_no_files(repository: Repository) -> None:
    """A merge lists its parents and no files: the branch's own commits list them."""
    base = repository.commit("base", {"a": b"1\n"})
    repository.git("checkout", "--quiet", "-b", "side")
    side = repository.commit("side", {"b": b"2\n"})
    repository.git("checkout", "--quiet", "main")
    main = repository.commit("main", {"c": b"3\n"})
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge side", "side")
    found = {str(_data(each)["subject"]): _data(each) for each in _read(repository.path)}
    assert list(found) == ["base", "side", "main", "merge side"]
    assert found["merge side"]["merge_of"] == [main, side]
    assert found["merge side"]["files"] == []
    assert found["base"]["hash"] == base
    assert "merge_of" not in found["base"]


def test_the_users_own_settings_change_nothing(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the user, and no `GIT_DIR` in the environment, changes the history that is read."""
    repository.commit("one", {"a.txt": b"".join(b"%d\n\n" % number for number in range(30))})
    repository.commit("two", {"a.txt": b"".join(b"%d\n\n" % (number + (number in (5, 9))) for number in range(30))})
    plain = _read(repository.path)
    for name, value in {
        "color.ui": "always", "color.diff": "always", "log.showSignature": "true", "log.showRoot": "false",
        "log.date": "relative", "log.abbrevCommit": "true", "log.diffMerges": "separate", "core.quotePath": "true",
        "core.pager": "false", "i18n.logOutputEncoding": "latin1", "format.pretty": "fuller", "diff.noprefix": "true",
        "diff.external": "false", "diff.context": "0", "diff.interHunkContext": "9", "diff.wordRegex": ".",
        "diff.srcPrefix": "x/", "diff.renames": "copies",
    }.items():  # fmt: skip
        repository.git("config", name, value)
    other = Repository(repository.path.parent / "other")
    other.commit("another repository's")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    assert _read(repository.path) == plain


def test_a_shallow_clone_is_read_as_far_as_it_goes_and_says_so(repository: Repository, tmp_path: Path) -> None:
    """A shallow clone is read, with a note on how many commits it has."""
    for number in range(4):
        repository.commit(f"number {number}", {"a": b"%d\n" % number})
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "--quiet", "--depth", "2", f"file://{repository.path}", str(shallow)], check=True)
    history = open_git_history(shallow)
    assert history.note == f"{shallow} is a shallow clone; commits in it: 2"
    assert [_data(found)["subject"] for found in history.operations] == ["number 2", "number 3"]
    assert open_git_history(repository.path).note == ""


def test_what_is_no_history_is_told_in_words(repository: Repository, tmp_path: Path) -> None:
    """A path without history, and a limit below 1, raise an error that says what to do."""
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    for path, words in (
        (repository.path, f"{repository.path} is a git repository without commits; there is no history to read yet"),
        (nothing, f"{nothing} is not in a git repository; give another folder, or create a repository with `git init`"),
        (tmp_path / "gone", f"{tmp_path / 'gone'} is not a folder; give the folder of a git repository"),
    ):
        with pytest.raises(HistoryError) as caught:
            open_git_history(path)
        assert str(caught.value) == words
    with pytest.raises(HistoryError, match="limit is 0: must be at least 1"):
        open_git_history(repository.path, limit=0)


def test_a_damaged_repository_ends_the_reading_with_gits_own_words(repository: Repository) -> None:
    """A damaged repository yields the commits before the damage, then an error with git's own message."""
    repository.commit("one", {"a": b"1\n"})
    repository.commit("two", {"a": b"2\n"})
    blob = repository.git("rev-parse", "HEAD:a").decode().strip()
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    operations = open_git_history(repository.path).operations
    assert _data(next(operations))["subject"] == "one"
    with pytest.raises(HistoryError, match=f"could not read the history of .*{blob[:12]}"):
        next(operations)


def test_a_date_that_no_calendar_has_does_not_end_the_reading(repository: Repository) -> None:
    """A commit whose author date is invalid is read, with the committer's date or the epoch as its time."""
    tree = repository.git("write-tree").decode().strip()
    raw = f"tree {tree}\nauthor A <a> 99999999999999 +0000\ncommitter A <a> 1700000000 +0000\n\nodd\n"
    commit = repository.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw.encode()).decode()
    repository.git("update-ref", "HEAD", commit.strip())
    (operation,) = _read(repository.path)
    assert operation.timestamp in (datetime.fromtimestamp(1_700_000_000, UTC), datetime.fromtimestamp(0, UTC))


def test_a_machine_without_git_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git on the PATH the error says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HistoryError, match="git was not found: install it, or add it to the PATH"):
        open_git_history(tmp_path)
