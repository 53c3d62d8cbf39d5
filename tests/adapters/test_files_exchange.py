"""Documents that an editor saves at the moment they are replaced: the saved text always survives."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from orchestra_mem.adapters.files import exchange as exchanging
from orchestra_mem.errors import DocumentConflictError
from orchestra_mem.ports import WritePoint
from orchestra_mem.types import Author, VersionReason
from tests.adapters.test_files import STORE, store_in, temporaries
from tests.processes import python, start


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if possible: without disk waits, more saves collide with a replacement."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        yield Path(made)


@pytest.fixture
def can_exchange(folder: Path) -> None:
    """Skip the test unless the system can exchange two files; without that, a save at that moment is lost."""
    one, two = folder / "one", folder / "two"
    one.touch()
    two.touch()
    if not exchanging.exchange(one, two):
        pytest.skip("this system cannot exchange two files")
    one.unlink()
    two.unlink()


_EDITOR = """
import os, random, sys, time
path, style = sys.argv[1:]
rng = random.Random(style)
for number in range(int(sys.stdin.readline())):
    text = f"saved {number} begins\\n" + "filling\\n" * rng.randint(0, 3000) + f"saved {number} ends\\n"
    end = time.perf_counter() + rng.random() * 0.002
    while time.perf_counter() < end:
        pass
    if style == "in place" or style == "both" and number % 2:
        with open(path, "w") as file:
            file.write(text)
    else:
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)
    print(number, flush=True)
    sys.stdin.readline()
"""
_SAVES = 300


@pytest.mark.usefixtures("can_exchange")
@pytest.mark.parametrize("style", ["in place", "renamed", "both"])
def test_what_an_editor_saves_while_the_document_is_replaced_is_not_lost(folder: Path, style: str) -> None:
    """Each text an editor saves is in the document, in a text that was read before replacing, or in a version."""
    store, path = store_in(folder), folder / "plan.md"
    path.write_text("the beginning\n")
    replaced: set[str] = set()
    told: list[int] = []
    conflicts = 0

    with _editing(path, style, told) as editor:
        assert editor.stdin is not None
        turn = checked = 0
        while checked < _SAVES:
            seen = len(told)
            turn += 1
            try:
                with store.lock():
                    present = store.read(path)
                    assert present is not None
                    replaced.add(present)
                    store.replace(path, f"machine {turn}\n", expected=present, name="x")
            except DocumentConflictError:
                conflicts += 1
            if seen > checked:
                texts = [store.read(path) or "", *replaced, *map(store.read_version, store.versions("plan"))]
                assert any(_whole(text, checked) for text in texts), f"save {checked} is gone"
                replaced.clear()
                checked += 1
                editor.stdin.write("\n")
                editor.stdin.flush()
    assert editor.returncode == 0
    assert conflicts > 0
    assert temporaries(folder) == []


@contextmanager
def _editing(path: Path, style: str, told: list[int]) -> Iterator[subprocess.Popen[str]]:
    """Start an editor process that saves once more each time it is told to go on."""
    with start("-c", _EDITOR, path, style, stdin=subprocess.PIPE, stderr=None) as editor:
        assert editor.stdin is not None
        threading.Thread(target=_listen, args=(editor, told), daemon=True).start()
        editor.stdin.write(f"{_SAVES}\n")
        editor.stdin.flush()
        try:
            yield editor
        except BaseException:
            editor.kill()
            raise


def _listen(editor: subprocess.Popen[str], told: list[int]) -> None:
    assert editor.stdout is not None
    for line in editor.stdout:
        told.append(int(line))  # noqa: PERF401  (another thread reads the list while it grows)


def _whole(text: str, number: int) -> bool:
    return text.startswith(f"saved {number} begins\n") and text.endswith(f"saved {number} ends\n")


# The same moments one by one


def _saving(path: Path, **texts: str) -> WritePoint:
    """Return a write point at which a person saves by renaming, once for each given text."""

    def point(reached: str) -> None:
        text = texts.pop(reached.removeprefix("x.").replace(".", "_"), None)
        if text is not None:
            path.with_name("new").touch(0o600)
            path.with_name("new").write_text(text)
            path.with_name("new").replace(path)

    return point


@pytest.mark.usefixtures("can_exchange")
@pytest.mark.parametrize(
    ("saved", "stands", "kept"),
    [
        ({"rename_before": "saved"}, "saved", []),
        ({"rename_after": "saved"}, "saved", []),  # a normal save over the new document
        # The editor itself overwrote the second text with the third.
        ({"rename_before": "first", "rename_after": "second", "back_before": "third"}, "third", ["first"]),
    ],
)
@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_saved_around_the_renaming_stands_and_what_it_would_hide_is_kept(
    tmp_path: Path, saved: dict[str, str], stands: str, kept: list[str], is_link: bool
) -> None:
    """A write that finds an unknown text is refused; a text that it would hide becomes a version, as private."""
    path = file = tmp_path / "a.md"
    if is_link:
        file = tmp_path / "target.md"
        path.symlink_to(file)
    path.write_text("old")
    path.chmod(0o600)
    store = store_in(tmp_path, write_point=_saving(file, **saved))
    refused = pytest.raises(
        DocumentConflictError, match=r"a\.md was changed by someone else while it was being written"
    )
    with refused if "rename_before" in saved else nullcontext():
        store.replace(path, "new", expected="old", name="x")
    assert path.read_text() == stands
    versions = store.versions("a")
    assert [store.read_version(version) for version in versions] == kept
    assert all((each.author, each.reason) == (Author.PERSON, VersionReason.CONFLICT) for each in versions)
    assert {Path(each.path).stat().st_mode & 0o777 for each in versions} <= {0o600}
    assert temporaries(tmp_path) == []


@pytest.mark.usefixtures("can_exchange")
def test_document_that_somebody_has_open_for_writing_is_not_replaced(tmp_path: Path) -> None:
    """A document open for writing is not replaced, since its edits would be lost; a reader does not block."""
    path = tmp_path / "a.md"
    path.write_text("old")
    store = store_in(tmp_path)
    with path.open("r+") as file:
        with pytest.raises(DocumentConflictError):
            store.replace(path, "new", expected="old", name="x")
        file.write("more")
    assert path.read_text() == "more"
    with path.open() as reader:
        store.replace(path, "new", expected="more", name="x")
        assert reader.read() == "more"
    assert path.read_text() == "new"
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("expected", ["old", None])
def test_document_that_comes_or_goes_in_that_instant_is_a_conflict(tmp_path: Path, expected: str | None) -> None:
    """A document created or deleted just before the rename is a conflict and stays as the other program left it."""
    path = tmp_path / "a.md"
    if expected is not None:
        path.write_text(expected)

    def point(reached: str) -> None:
        if reached == "x.rename.before":
            if expected is None:
                path.write_text("made")
            else:
                path.unlink()

    with pytest.raises(DocumentConflictError):
        store_in(tmp_path, write_point=point).replace(path, "new", expected=expected, name="x")
    assert path.exists() is (expected is None)
    assert not path.exists() or path.read_text() == "made"
    assert temporaries(tmp_path) == []


def test_without_exchange_links_and_leases_documents_are_replaced_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without exchange, hard links or leases, replacing falls back to comparing and renaming."""
    monkeypatch.setattr(exchanging, "_rename", lambda: None)
    monkeypatch.setattr(exchanging, "_lease", lambda descriptor: None)
    monkeypatch.setattr(os, "link", _not_supported)
    path = tmp_path / "a.md"
    store = store_in(tmp_path)
    store.replace(path, "one", expected=None, name="x")
    store.replace(path, "two", expected="one", name="x")
    with pytest.raises(DocumentConflictError):
        store.replace(path, "three", expected="one", name="x")
    assert path.read_text() == "two"
    assert temporaries(tmp_path) == []


def _not_supported(*_: object) -> None:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def _killed_at(folder: Path, point: str, saved: str) -> Path:
    """Kill a process at a point of replacing a document, after a person saved a text just before the rename."""
    path = folder / "a.md"
    path.write_text("old")
    replacing = "store.replace(folder / 'a.md', 'new', expected='old', name='x')"
    python(STORE + replacing, folder, point, saved, status=-signal.SIGKILL)
    return path


@pytest.mark.usefixtures("can_exchange")
@pytest.mark.parametrize(
    ("point", "saved", "left", "mended"),
    [
        ("x.rename.before", "", "old", "old"),
        ("x.rename.after", "", "new", "new"),
        ("x.rename.after", "saved by a person", "new", "saved by a person"),
        ("x.back.before", "saved by a person", "new", "saved by a person"),
        ("x.back.after", "saved by a person", "saved by a person", "saved by a person"),
    ],
)
def test_process_killed_in_that_instant_takes_no_text_along(
    tmp_path: Path, point: str, saved: str, left: str, mended: str
) -> None:
    """After a kill, the next sweep removes the leftover file and restores the text that a person had saved."""
    path = _killed_at(tmp_path, point, saved)
    assert path.read_text() == left
    assert len(temporaries(tmp_path)) == 1
    store = store_in(tmp_path)
    store.sweep((tmp_path,))
    assert path.read_text() == mended
    assert store.versions("a") == []
    assert temporaries(tmp_path) == []


@pytest.mark.usefixtures("can_exchange")
def test_what_was_saved_since_stands_and_what_was_saved_over_is_a_version(tmp_path: Path) -> None:
    """A text saved after the kill stays in the document; the text saved before the kill becomes a version."""
    path = _killed_at(tmp_path, "x.back.before", "saved by a person")
    path.write_text("saved later")
    store = store_in(tmp_path)
    store.sweep((tmp_path,))
    assert path.read_text() == "saved later"
    (version,) = store.versions("a")
    assert (version.reason, store.read_version(version)) == (VersionReason.CONFLICT, "saved by a person")
