"""Reading the history of a git repository, whatever is in it and however git is set up."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestra_mem.adapters.importers.git_history import open_git_history
from orchestra_mem.core.histories import HistoryOperation
from orchestra_mem.errors import HistoryError


class Repository:
    """A real repository in which the test commits what it needs, under settings that no user's can change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._second = 1_700_000_000
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *arguments: str, stdin: bytes | None = None, date: str | None = None) -> bytes:
        """Run git here."""
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
        """Write files, commit all there is, give the hash."""
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
    """Hash, subject, body, author, lines by file, the author's date in UTC, a key made of the hash."""
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


def test_commits_come_oldest_first_and_a_limit_takes_the_newest(repository: Repository) -> None:
    """`total` is what will come, also with a limit larger than the history."""
    for number in range(5):
        repository.commit(f"number {number}")
    assert [_data(found)["subject"] for found in _read(repository.path)] == [f"number {n}" for n in range(5)]
    assert [_data(found)["subject"] for found in _read(repository.path, 2)] == ["number 3", "number 4"]
    assert [open_git_history(repository.path, limit=limit).total for limit in (None, 2, 99)] == [5, 2, 5]
    assert [found.position for found in _read(repository.path, 2)] == [1, 2]


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
    """No encoding and no content of a message disturbs the reading of what comes after it."""
    repository.commit(message, {"one.txt": b"1\n"})
    repository.commit("after", {"two.txt": b"2\n"})
    first, second = map(_data, _read(repository.path))
    assert first["subject"] == subject
    assert body is None or first["body"] == body
    assert first["files"] == [{"path": "one.txt", "added": 1, "deleted": 0}]
    assert (second["subject"], second["files"]) == ("after", [{"path": "two.txt", "added": 1, "deleted": 0}])


def test_any_path_is_read_as_it_is(repository: Repository) -> None:
    """Line feeds, tabs, quotes, arrows and bytes that are no UTF-8; the last come back as the bytes they were."""
    names = ["a\nb", "tab\there", '"quoted" => {x}', "ümlaut", os.fsdecode(b"\xff.txt")]
    repository.commit("names", dict.fromkeys(names, b"x\n"))
    (operation,) = _read(repository.path)
    files = _data(operation)["files"]
    assert isinstance(files, list)
    assert sorted(os.fsencode(file["path"]) for file in files) == sorted(map(os.fsencode, names))


def test_a_merge_names_its_parents_and_repeats_no_files(repository: Repository) -> None:
    """What the branch did stands with the branch's own commits."""
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
    """Colours, signatures, formats, context, prefixes, another repository in the environment: all overridden."""
    repository.commit("one", {"a.txt": b"".join(b"%d\n\n" % number for number in range(30))})
    repository.commit("two", {"a.txt": b"".join(b"%d\n\n" % (number + (number in (5, 9))) for number in range(30))})
    plain = _read(repository.path), _changes(repository.path)
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
    assert (_read(repository.path), _changes(repository.path)) == plain


def test_a_shallow_clone_is_read_as_far_as_it_goes_and_says_so(repository: Repository, tmp_path: Path) -> None:
    """What is missing is not silently missing."""
    for number in range(4):
        repository.commit(f"number {number}", {"a": b"%d\n" % number})
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "--quiet", "--depth", "2", f"file://{repository.path}", str(shallow)], check=True)
    history = open_git_history(shallow)
    assert history.note == f"{shallow} is a shallow clone: the commits before its newest 2 are missing"
    assert [_data(found)["subject"] for found in history.operations] == ["number 2", "number 3"]
    assert open_git_history(repository.path).note == ""


def test_what_is_no_history_is_told_in_words(repository: Repository, tmp_path: Path) -> None:
    """No commits, no repository, no folder, no commits wanted; each says what to do."""
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    for path, words in (
        (repository.path, f"{repository.path} is a git repository without commits; there is no history to read yet"),
        (nothing, f"{nothing} is not in a git repository; name one, or make one there with `git init`"),
        (tmp_path / "gone", f"{tmp_path / 'gone'} is no folder; name the folder of a git repository"),
    ):
        with pytest.raises(HistoryError) as caught:
            open_git_history(path)
        assert str(caught.value) == words
    with pytest.raises(HistoryError, match="a limit of 0 commits leaves nothing to read; give 1 or more"):
        open_git_history(repository.path, limit=0)


def test_a_damaged_repository_ends_the_reading_with_gits_own_words(repository: Repository) -> None:
    """What was read before the damage has been given by then."""
    repository.commit("one", {"a": b"1\n"})
    repository.commit("two", {"a": b"2\n"})
    blob = repository.git("rev-parse", "HEAD:a").decode().strip()
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    operations = open_git_history(repository.path).operations
    assert _data(next(operations))["subject"] == "one"
    with pytest.raises(HistoryError, match=f"could not read the history of .*{blob[:12]}"):
        next(operations)


# Patches


def _changes(path: Path) -> list[tuple[object, ...]]:
    """Path, lines added, lines deleted and patch of the files, commits by their subject."""
    return [
        (data["path"], data["added"], data["deleted"], data["patch"]) if found.type == "file_change"
        else (data["subject"],)
        for found in open_git_history(path, patches=True).operations
        if (data := _data(found))
    ]  # fmt: skip


def test_with_patches_each_changed_file_comes_before_its_commit(repository: Repository) -> None:
    """Titled by path and lines, at the commit's time and place in the history, with a key of its own."""
    first = repository.commit("one", {"a.txt": b"1\n2\n"})
    second = repository.commit("two", {"a.txt": b"1\n3\n", "b c.txt": b"x"})
    found = list(open_git_history(repository.path, agent="ada", patches=True).operations)
    assert [(each.type, each.position, each.idempotency_key) for each in found] == [
        ("file_change", 1, f"git:{first}:a.txt"), ("commit", 1, f"git:{first}"),
        ("file_change", 2, f"git:{second}:a.txt"), ("file_change", 2, f"git:{second}:b c.txt"),
        ("commit", 2, f"git:{second}"),
    ]  # fmt: skip
    assert found[2] == HistoryOperation(
        type="file_change",
        data={"title": "a.txt (+1 -1)", "commit": second, "path": "a.txt", "added": 1, "deleted": 1,
              "patch": "@@ -1,2 +1,2 @@\n 1\n-2\n+3"},
        timestamp=found[4].timestamp, idempotency_key=f"git:{second}:a.txt", agent="ada",
        place=f"{repository.path}, commit {second[:12]}, a.txt", position=2,
    )  # fmt: skip
    assert _data(found[3])["patch"] == "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file"
    commits = [each for each in found if each.type == "commit"]
    assert commits == list(open_git_history(repository.path, agent="ada").operations)


def test_a_file_without_lines_to_compare_says_what_became_of_it(repository: Repository) -> None:
    """Binary, empty, another mode, kept from comparing by its attributes."""
    repository.commit("made", {"bin": b"\0\1", "empty": b"", "lock": b"1\n", ".gitattributes": b"lock -diff\n"})
    (repository.path / "bin").chmod(0o755)
    repository.commit("changed", {"lock": b"2\n"})
    assert _changes(repository.path) == [
        (".gitattributes", 1, 0, "@@ -0,0 +1 @@\n+lock -diff"),
        ("bin", None, None, "new file mode 100644\n(binary, or not to be compared)"),
        ("empty", 0, 0, "new file mode 100644"),
        ("lock", None, None, "new file mode 100644\n(binary, or not to be compared)"),
        ("made",),
        ("bin", None, None, "old mode 100644\nnew mode 100755"),
        ("lock", None, None, "(binary, or not to be compared)"),
        ("changed",),
    ]


def test_a_long_patch_is_clipped_at_the_end_of_a_line(repository: Repository) -> None:
    """About 1,500 characters of any script, and how many lines there are more; so too of a single long line."""
    repository.commit("long", {
        "lines": b"".join(b"line %04d\n" % number for number in range(1_000)), "one": b"x" * 3_000_000,
        "wide": "ß𝄞".encode() * 900 + b"\n", "latin": b"caf\xe9\n" * 2_000,
    })  # fmt: skip
    latin, lines, one, wide = (str(patch) for _, _, _, patch in (c for c in _changes(repository.path) if len(c) == 4))
    assert lines.startswith("@@ -0,0 +1,1000 @@\n+line 0000\n+line 0001\n")
    *shown, last, more = lines.splitlines()
    assert (last, more) == (f"+line {len(shown) - 1:04}", f"… {1_000 - len(shown):,} more lines")
    assert 1_450 < len(lines) < 1_550
    assert one == "@@ -0,0 +1 @@\n… 2 more lines"
    assert wide == "@@ -0,0 +1 @@\n… 1 more line"
    assert latin.splitlines()[1] == "+café"


def test_no_content_is_taken_for_the_beginning_of_a_file(repository: Repository) -> None:
    """Lines that look like a patch's own, hashes, NULs behind what git looks at, carriage returns."""
    tricky = b"diff --git a/x b/x\n" + b"a" * 40 + b"\n@@ -1 +1 @@\n-- a/x\n++ b/x\nBinary files a and b differ\n"
    repository.commit("one", {"t.txt": b"\n", "u.txt": b"-\n"})
    repository.commit("two", {"t.txt": tricky, "u.txt": b"x\r\ry\n" + b"z" * 9_000 + b"\n\0\n"})
    changes = _changes(repository.path)
    assert [change[0] for change in changes] == ["t.txt", "u.txt", "one", "t.txt", "u.txt", "two"]
    assert str(changes[3][3]).splitlines()[1:] == ["-", *(f"+{line}" for line in tricky.decode().splitlines())]
    assert str(changes[4][3]).startswith("@@ -1 +1,3 @@\n--\n+x\r\ry\n")


def test_renames_links_submodules_and_merges_have_patches_too(repository: Repository, tmp_path: Path) -> None:
    """Of a file that became a link both halves; of a merge nothing; of a submodule the commits that it went to."""
    repository.commit("base", {"old": b"1\n", "kind": b"text\n"})
    other = Repository(tmp_path / "other")
    pinned = other.commit("other's")
    repository.git("mv", "old", "new")
    (repository.path / "kind").unlink()
    (repository.path / "kind").symlink_to("new")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{pinned},sub")
    (repository.path / "sub").mkdir()
    repository.git("config", "diff.submodule", "log")
    repository.git("config", "diff.mnemonicPrefix", "true")
    repository.commit("moved")
    repository.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    repository.commit("side", {"s": b"s\n"})
    repository.git("merge", "--quiet", "--no-ff", "-m", "merged", "main")
    changes = _changes(repository.path)
    assert [change[0] for change in changes if len(change) == 1] == ["base", "moved", "side", "merged"]
    after = {change[0]: change[3] for change in changes[3:] if len(change) == 4}
    assert after == {
        "kind": "@@ -1 +0,0 @@\n-text\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file",
        "new": "@@ -0,0 +1 @@\n+1", "old": "@@ -1 +0,0 @@\n-1", "s": "@@ -0,0 +1 @@\n+s",
        "sub": f"@@ -0,0 +1 @@\n+Subproject commit {pinned}",
    }  # fmt: skip


def test_reading_patches_may_stop_half_way_and_tells_gits_failures(repository: Repository) -> None:
    """As reading without them: both processes end with the reading."""
    for number in range(30):
        repository.commit(f"number {number}", {"a": b"%d\n" % number})
    operations = open_git_history(repository.path, patches=True).operations
    assert next(operations).type == "file_change"
    operations.close()  # type: ignore[attr-defined]
    assert list(operations) == []
    blob = repository.git("rev-parse", "HEAD:a").decode().strip()
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(HistoryError, match=f"could not read the history of .*{blob[:12]}"):
        list(open_git_history(repository.path, patches=True).operations)


def test_a_date_that_no_calendar_has_does_not_end_the_reading(repository: Repository) -> None:
    """Broken commits of old tools: the time is then the committer's or left to the recording."""
    tree = repository.git("write-tree").decode().strip()
    raw = f"tree {tree}\nauthor A <a> 99999999999999 +0000\ncommitter A <a> 1700000000 +0000\n\nodd\n"
    commit = repository.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw.encode()).decode()
    repository.git("update-ref", "HEAD", commit.strip())
    (operation,) = _read(repository.path)
    assert operation.timestamp in (datetime.fromtimestamp(1_700_000_000, UTC), datetime.fromtimestamp(0, UTC))


def test_a_machine_without_git_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of what is missing, not a traceback."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HistoryError, match="git is not installed, or not on the PATH"):
        open_git_history(tmp_path)
