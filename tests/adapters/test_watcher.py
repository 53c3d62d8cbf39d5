"""Watching documents: every way to save is seen, once, and whole; nothing else is; nothing is left behind."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.adapters.watcher import DocumentWatcher
from orchestra_mem.adapters.watcher import watcher as watcher_module
from orchestra_mem.adapters.watcher.changes import Changes
from orchestra_mem.errors import ClosedError
from orchestra_mem.types import FileState

Mode = Literal["auto", "poll"]
THREAD = "orchestra-mem-watch"
LINUX = sys.platform == "linux"
# How long to wait for what must come; the machine may be busy.
PATIENCE_S = 10.0
# Shorter than they are, so that the tests are quick.
POLL_S = 0.05
BEAT_S = 0.2
DEBOUNCE_S = 0.06
# Where what is done in several steps must be told of once, on a machine that is busy.
LONG_S = 0.3


class Reader:
    """Reads what the watcher tells of, as the memory does: at once, on the watcher's thread."""

    def __init__(self) -> None:
        self.told: list[frozenset[Path]] = []
        self.times: list[float] = []
        self.texts: list[dict[str, str | None]] = []
        self._changed = threading.Condition()

    def __call__(self, documents: frozenset[Path]) -> None:
        """Be told."""
        texts = {path.name: _read(path) for path in documents}
        with self._changed:
            self.told.append(documents)
            self.times.append(time.monotonic())
            self.texts.append(texts)
            self._changed.notify_all()

    @property
    def all_told(self) -> set[Path]:
        """What has been told of since the start, or since `forget`."""
        return set().union(*self.told)

    def wait_for(self, *paths: Path) -> None:
        """Wait until all of these have been told of."""
        self.wait_until(lambda: set(paths) <= self.all_told, f"{[path.name for path in paths]} to be told of")

    def wait_until(self, condition: Callable[[], bool], what: str = "what must come") -> None:
        """Wait until something is so that depends on what has been told of."""
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S), f"waited for {what}; told: {self.texts}"

    def forget(self) -> None:
        """Begin anew with what is told of."""
        with self._changed:
            self.told, self.times, self.texts = [], [], []


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def _state(path: Path) -> FileState:
    status = path.stat()
    return FileState(status.st_ino, status.st_size, status.st_mtime_ns)


def _state_now(path: Path) -> FileState | None:
    return _state(path) if path.exists() else None


@pytest.fixture(params=["auto", "poll"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Mode:
    """Both ways to watch. Where events tell, nobody looks without one, so that polling cannot pass their tests."""
    if request.param == "auto":
        monkeypatch.setattr(watcher_module, "_BEAT_SHARE", 1e-9)
        monkeypatch.setattr(watcher_module, "_BEAT_S", BEAT_S)
        return "auto"
    return "poll"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with documents in it."""
    folder = tmp_path / "memory"
    folder.mkdir()
    for name in ("x.md", "y.md", "z.md"):
        (folder / name).write_text("old\n")
    return folder


@contextmanager
def watching(*folders: Path, mode: Mode = "auto", debounce_s: float = DEBOUNCE_S) -> Iterator[Reader]:
    """A reader who is told of what changes, while nothing is told of anything else than documents in these folders."""
    reader = Reader()
    watcher = DocumentWatcher(folders, on_change=reader, mode=mode, debounce_s=debounce_s, poll_s=POLL_S)
    with watcher:
        if LINUX:
            assert watcher.mode == {"auto": "inotify", "poll": "poll"}[mode]
        assert watcher.problem is None
        yield reader
    assert {path.parent for path in reader.all_told} <= set(folders)


def _quiet(reader: Reader, folder: Path, *, sentinel: str = "sentinel.md") -> None:
    """See that nothing more is told, by something that is changed last and told of with or after all before it."""
    (folder / sentinel).write_text("!")
    reader.wait_for(folder / sentinel)


# How editors save


def _in_place(path: Path) -> None:
    path.write_text("new\n")


def _write_and_rename(path: Path) -> None:
    temporary = path.with_name("x.md.tmp.4711")
    temporary.write_text("new\n")
    os.replace(temporary, path)


def _backup_and_new(path: Path) -> None:
    os.rename(path, path.with_name("x.md~"))
    path.write_text("new\n")


def _safe_write(path: Path) -> None:
    new, old = path.with_name("x.md___jb_tmp___"), path.with_name("x.md___jb_old___")
    new.write_text("new\n")
    os.rename(path, old)
    os.rename(new, path)
    old.unlink()


def _delete_and_create(path: Path) -> None:
    path.unlink()
    path.write_text("new\n")


def _run(*command: str | Path, text: str = "") -> None:
    subprocess.run(command, input=text, text=True, check=True, capture_output=True, timeout=30)


def _vim(*options: str) -> Callable[[Path], None]:
    def save(path: Path) -> None:
        settings = [part for option in options for part in ("-c", f"set {option}")]
        _run("vim", "-u", "NONE", "-es", *settings, "-c", "%s/old/new/", "-c", "wq", path)

    return save


def _ed(path: Path) -> None:
    _run("ed", "-s", path, text=",s/old/new/\nw\nq\n")


def _sed(path: Path) -> None:
    _run("sed", "-i", "s/old/new/", path)


def _python(folder: Path, code: str) -> None:
    """Do something as another process does: what this one does competes with the watcher for the interpreter."""
    subprocess.run([sys.executable, "-Ic", code], cwd=folder, check=True, timeout=60)


SAVES = {
    "in place": _in_place,
    "temporary file renamed": _write_and_rename,
    "backup renamed, new file": _backup_and_new,
    "safe write of JetBrains": _safe_write,
    "deleted and created": _delete_and_create,
    "vim, in place": _vim("backupcopy=yes", "noswapfile"),
    "vim, renamed": _vim("backupcopy=no", "swapfile"),
    "vim, backup kept": _vim("backupcopy=auto", "backup", "writebackup", "swapfile"),
    "ed": _ed,
    "sed -i": _sed,
}


def _told_of(save: Callable[[Path], None], folder: Path, mode: Mode) -> list[dict[str, str | None]]:
    """Save in a folder of one's own, and give what was told of it, and of another document after it."""
    folder.mkdir(parents=True)
    (folder / "x.md").write_text("old\n")
    with watching(folder, mode=mode, debounce_s=LONG_S) as reader:
        save(folder / "x.md")
        reader.wait_for(folder / "x.md")
        _quiet(reader, folder)
    return reader.texts


def test_each_way_to_save_is_told_once_and_whole(tmp_path: Path, mode: Mode) -> None:
    """When the document is told of, what it holds is the new text; backup and swap files are not told of."""
    lacking = {name for name in ("vim", "ed", "sed") if shutil.which(name) is None}
    saves = {name: save for name, save in SAVES.items() if re.split(r"\W", name)[0] not in lacking}
    with ThreadPoolExecutor(6) as pool:
        told = {name: pool.submit(_told_of, save, tmp_path / name / "memory", mode) for name, save in saves.items()}
        texts = {name: future.result() for name, future in told.items()}
    assert texts == {name: [{"x.md": "new\n"}, {"sentinel.md": "!"}] for name in saves}
    if lacking:
        pytest.skip(f"this machine has no {', '.join(sorted(lacking))}; all other ways to save passed")


def test_what_editors_leave_beside_a_document_is_not_told(folder: Path, mode: Mode) -> None:
    """Backup, swap, lock and temporary files come, change and go, and so do folders; nobody hears of it."""
    names = [
        "x.md~", ".x.md.swp", ".x.md.swx", "#x.md#", ".#x.md", "4913", "x.md.bak", ".goutputstream-AB12", "sedXyz12",
        "~$x.md", "x.md.tmp", "x.md___jb_tmp___", ".x.md.4711.tmp~", "x.md.~1~", "note.txt", ".hidden.md",
        ".md", "x.MD",
    ]  # fmt: skip
    with watching(folder, mode=mode) as reader:
        for name in names:
            (folder / name).write_text("1")
            (folder / name).write_text("22")
        (folder / "versions").mkdir()
        (folder / "versions" / "v.md").write_text("1")
        _quiet(reader, folder, sentinel="ä b.md")
        for name in names:
            (folder / name).unlink()
        shutil.rmtree(folder / "versions")
        _quiet(reader, folder, sentinel="~x.md")
    assert reader.texts == [{"ä b.md": "!"}, {"~x.md": "!"}]


# When it is told


def test_saves_in_a_burst_are_told_once(folder: Path, mode: Mode) -> None:
    """Ten saves within a tenth of a second: one call, with the last text."""
    with watching(folder, mode=mode, debounce_s=LONG_S) as reader:
        for count in range(10):
            (folder / "x.md").write_text(f"{count}\n" * (count % 3 + 1))
            time.sleep(0.01)
        reader.wait_for(folder / "x.md")
        _quiet(reader, folder)
    assert reader.texts == [{"x.md": "9\n"}, {"sentinel.md": "!"}]


@pytest.mark.parametrize("save", [_in_place, _write_and_rename], ids=["in place", "renamed"])
def test_saves_that_go_on_are_told_within_a_second(folder: Path, mode: Mode, save: Callable[[Path], None]) -> None:
    """Saved fifty times a second, a document is told of before it is still, and again when it is."""
    path = folder / "x.md"
    took = []
    for _ in range(3):  # the quickest of three: the machine may be busy
        with watching(folder, mode=mode) as reader:
            began = time.monotonic()
            while not reader.told and time.monotonic() < began + PATIENCE_S:
                save(path)
                time.sleep(0.02)
            path.write_text("the last\n")
            reader.wait_until(lambda: {"x.md": "the last\n"} in reader.texts)
            took.append(reader.times[0] - began)
        if took[-1] < 1.0:
            break
    assert min(took) < 1.0


def test_document_that_is_as_before_is_not_told(folder: Path, mode: Mode) -> None:
    """Renamed away and back within the debounce time: nothing has changed."""
    with watching(folder, mode=mode) as reader:
        os.rename(folder / "x.md", folder / "other.md")
        os.rename(folder / "other.md", folder / "x.md")
        _quiet(reader, folder)
    assert reader.texts == [{"sentinel.md": "!"}]


# Many, and folders


def test_ten_thousand_files_changed_at_once_are_told(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many events as the kernel has room for: every file is told of, in few calls."""
    monkeypatch.setattr(watcher_module, "_POLL_SHARE", 1.0)  # so many it would look at every few seconds
    _python(tmp_path, "for i in range(10_000): open(f'{i}.md', 'x').close()")
    with watching(tmp_path, mode=mode) as reader:
        _python(tmp_path, "for i in range(10_000): open(f'{i}.md', 'w').write('new')")
        reader.wait_for(*(tmp_path / f"{number}.md" for number in range(10_000)))
    assert len(reader.told) < 20


def test_another_folder_in_its_place_is_watched(folder: Path, mode: Mode) -> None:
    """As when a branch is checked out that has another one: what differs is told of, and what is saved there."""
    other = folder.with_name("other")
    shutil.copytree(folder, other)
    for path in folder.iterdir():
        shutil.copystat(path, other / path.name)
    (other / "x.md").write_text("of the other\n")
    with watching(folder, mode=mode) as reader:
        os.rename(folder, folder.with_name("away"))
        os.rename(other, folder)
        reader.wait_for(folder / "x.md")
        reader.forget()
        (folder / "x.md").write_text("afterwards\n")
        reader.wait_until(lambda: {"x.md": "afterwards\n"} in reader.texts)


def test_folder_deleted_and_made_anew_is_watched_again(folder: Path, mode: Mode) -> None:
    """Its documents are told of as gone; those of the new one and saves in it are told of as well. Again and again."""
    names = ("x.md", "y.md", "z.md")
    with watching(folder, mode=mode) as reader:
        for round_ in range(2):
            shutil.rmtree(folder)
            reader.wait_for(*(folder / name for name in names))
            assert reader.texts == [dict.fromkeys(names)]
            folder.mkdir()
            for name in names:
                (folder / name).write_text(f"anew {round_}\n")
            reader.forget()
            reader.wait_for(*(folder / name for name in names))
            reader.forget()
            (folder / "x.md").write_text(f"afterwards {round_}\n")
            reader.wait_until(lambda round_=round_: {"x.md": f"afterwards {round_}\n"} in reader.texts)  # type: ignore[misc]
            reader.forget()


def test_folder_that_comes_later_is_watched_from_then(tmp_path: Path, mode: Mode) -> None:
    """Neither it nor its parents exist at the start."""
    folder = tmp_path / "project" / ".obra" / "memory"
    with watching(folder, mode=mode) as reader:
        folder.mkdir(parents=True)
        (folder / "x.md").write_text("new\n")
        reader.wait_for(folder / "x.md")
        reader.forget()
        (folder / "x.md").write_text("newer\n")
        reader.wait_for(folder / "x.md")
    assert reader.texts == [{"x.md": "newer\n"}]


def test_several_folders_are_watched_each(tmp_path: Path, mode: Mode) -> None:
    """The same name in two folders, one of them in the other, one named twice: each document is told of once."""
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    with watching(outer, inner, outer, mode=mode) as reader:
        (outer / "x.md").write_text("1")
        (inner / "x.md").write_text("2")
        reader.wait_for(outer / "x.md", inner / "x.md")
        _quiet(reader, outer)
    assert sum(map(len, reader.told)) == 3


def test_folder_in_the_place_of_a_document_is_told(folder: Path, mode: Mode) -> None:
    """It is no document any more, and who reads it is to know."""
    with watching(folder, mode=mode) as reader:
        (folder / "x.md").unlink()
        (folder / "x.md").mkdir()
        reader.wait_for(folder / "x.md")
        (folder / "x.md").rmdir()
        reader.forget()
        reader.wait_for(folder / "x.md")
    assert reader.all_told == {folder / "x.md"}


# Links and rights


def test_target_of_a_link_is_watched(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved through its other name, in another folder, of which no event comes: told of all the same."""
    target = tmp_path / "target.md"
    target.write_text("1\n")
    (folder / "link.md").symlink_to(target)
    monkeypatch.setattr(watcher_module, "_BEAT_S", BEAT_S)
    monkeypatch.setattr(watcher_module, "_BEAT_SHARE", 1.0)
    with watching(folder) as reader:
        target.write_text("in place\n")
        reader.wait_until(lambda: {"link.md": "in place\n"} in reader.texts)
        target.with_name("new").write_text("renamed\n")
        os.replace(target.with_name("new"), target)
        reader.wait_until(lambda: {"link.md": "renamed\n"} in reader.texts)
        target.unlink()
        reader.wait_until(lambda: {"link.md": None} in reader.texts)
        target.write_text("back\n")
        reader.wait_until(lambda: {"link.md": "back\n"} in reader.texts)


def test_folder_may_be_a_link(folder: Path, tmp_path: Path, mode: Mode) -> None:
    """It is what it leads to that is watched, and another folder if it leads there; paths stay those of the link."""
    other, link = tmp_path / "other", tmp_path / "link"
    other.mkdir()
    link.symlink_to(folder)
    with watching(link, mode=mode) as reader:
        (folder / "x.md").write_text("new\n")
        reader.wait_for(link / "x.md")
        (tmp_path / "new").symlink_to(other)
        os.replace(tmp_path / "new", link)
        reader.wait_for(link / "y.md")
        (other / "y.md").write_text("of the other\n")
        reader.wait_until(lambda: {"y.md": "of the other\n"} in reader.texts)


# What the program itself writes


def _write_and_expect(watcher: DocumentWatcher, path: Path, text: str) -> None:
    """Replace a document as the program does: the state is that of the new file before it has its name."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    state = _state(temporary)
    os.replace(temporary, path)
    watcher.expect(path, state)


def test_own_writes_are_not_told(folder: Path, mode: Mode) -> None:
    """Only a person's are, before, after and between."""
    reader = Reader()
    with DocumentWatcher([folder], on_change=reader, mode=mode, poll_s=POLL_S) as watcher:
        _write_and_expect(watcher, folder / "x.md", "machine\n")
        (folder / "y.md").unlink()
        watcher.expect(folder / "y.md", None)
        _write_and_expect(watcher, folder / "new.md", "machine\n")
        _quiet(reader, folder)
        assert reader.texts == [{"sentinel.md": "!"}]
        (folder / "x.md").write_text("person\n")
        reader.wait_for(folder / "x.md")
        _write_and_expect(watcher, folder / "x.md", "machine again\n")
        _quiet(reader, folder, sentinel="another.md")
    assert reader.texts == [{"sentinel.md": "!"}, {"x.md": "person\n"}, {"another.md": "!"}]


def test_what_changed_before_the_start_is_told_where_it_was_expected_otherwise(folder: Path, mode: Mode) -> None:
    """Who remembers the states of the last run is told of what was saved, made, deleted meanwhile, and of no more."""
    reader = Reader()
    states = {path: _state(path) for path in folder.iterdir()}
    (folder / "x.md").write_text("meanwhile\n")
    (folder / "y.md").unlink()
    (folder / "new.md").write_text("new\n")
    watcher = DocumentWatcher([folder], on_change=reader, mode=mode, poll_s=POLL_S)
    for path, state in states.items():
        watcher.expect(path, state)
    watcher.expect(folder / "new.md", None)
    with watcher:
        reader.wait_for(folder / "x.md", folder / "y.md", folder / "new.md")
        _quiet(reader, folder)
    assert reader.texts == [{"x.md": "meanwhile\n", "y.md": None, "new.md": "new\n"}, {"sentinel.md": "!"}]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["write", "rename", "delete", "own", "touch", "swap", "look"]),
        st.sampled_from(["a.md", "b.md", "c.md"]),
        st.integers(0, 3),
        st.sampled_from([0.0, 0.03, 0.1, 0.3, 1.0]),
    ),
    max_size=30,
)


@given(operations=OPERATIONS)
def test_who_reads_what_is_told_knows_all_documents(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, str, int, float]]
) -> None:
    """Whatever is done in whatever order, whenever is looked: read what is told of, and you have what is there.

    Nothing is told of that is as it was last told of, or expected.
    """
    folder = tmp_path_factory.mktemp("documents")
    now = [0.0]
    changes = Changes([str(folder)], debounce_s=0.2, clock=lambda: now[0])
    (folder / "a.md").write_text("first")
    changes.begin()
    read: dict[str, str | None] = {"a.md": "first"}
    known = {"a.md": _state_now(folder / "a.md")}

    def look() -> None:
        for path in changes.look():
            assert _state_now(path) != known.get(path.name), "told of what is known already"
            read[path.name], known[path.name] = _read(path), _state_now(path)

    for step, (operation, name, size, wait_s) in enumerate(operations):
        path = folder / name
        text = f"{step}" * (size + 1)
        if operation in ("write", "rename", "own"):
            place = path if operation == "write" else folder / "temporary"
            place.write_text(text)
            # As far apart as a clock tells, and not in order: the clock may be set back.
            os.utime(place, ns=(0, (step * 7_919) % 1_000_003 + 1))
            os.replace(place, path)
        if operation == "own":
            changes.expect(path, _state(path))
            read[name], known[name] = text, _state_now(path)
        if operation == "delete":
            path.unlink(missing_ok=True)
        if operation == "touch" and path.exists():
            os.utime(path, ns=(0, step))
        if operation == "swap":
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, folder / "c.md")
        now[0] += wait_s
        if operation == "look":
            look()
    for _ in range(3):
        now[0] += 1.0
        look()
    assert not changes.waiting
    assert {name: text for name, text in read.items() if text is not None} == {
        path.name: path.read_text() for path in folder.glob("*.md")
    }


# Threads, and the end


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def test_threads_are_daemons_with_a_name_and_end_at_the_close(folder: Path, mode: Mode) -> None:
    """Every thread that is started bears the watcher's name, and none is left; closed twice it is closed for good."""
    before = set(threading.enumerate())
    watcher = DocumentWatcher([folder, folder / "later"], on_change=Reader(), mode=mode)
    assert set(threading.enumerate()) == before
    assert watcher.mode == "off"
    watcher.start()
    started = set(threading.enumerate()) - before
    watcher.start()
    assert set(threading.enumerate()) - before == started, "to start it again does nothing"
    assert {(thread.name, thread.daemon) for thread in started} == {(THREAD, True)}
    watcher.close()
    watcher.close()
    assert set(threading.enumerate()) == before
    assert watcher.mode == "off"
    with pytest.raises(ClosedError, match="this watcher has been closed; make a new one"):
        watcher.start()


def test_close_ends_all_within_a_second_whatever_goes_on(folder: Path, mode: Mode) -> None:
    """While files are saved, and while watchdog waits for the other half of a rename that never comes."""
    stop = threading.Event()

    def save() -> None:
        while not stop.wait(0.001):
            (folder / "x.md").write_text("1")
            (folder / "moving.md").write_text("1")
            os.rename(folder / "moving.md", folder.parent / "moved.md")

    thread = threading.Thread(target=save)
    thread.start()
    try:
        for _ in range(3):
            watcher = DocumentWatcher([folder], on_change=Reader(), mode=mode, poll_s=POLL_S)
            watcher.start()
            time.sleep(0.1)
            began = time.monotonic()
            watcher.close()
            assert time.monotonic() - began < 1.0
            assert _threads() == []
    finally:
        stop.set()
        thread.join()


def test_close_does_not_wait_for_what_does_not_end(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is told of a change may take long; the watcher ends when it returns, and says so."""
    began, go_on = threading.Event(), threading.Event()

    def take_long(documents: frozenset[Path]) -> None:
        began.set()
        go_on.wait(PATIENCE_S)

    watcher = DocumentWatcher([folder], on_change=take_long)
    watcher.start()
    (folder / "x.md").write_text("new")
    assert began.wait(PATIENCE_S)
    start = time.monotonic()
    watcher.close()
    assert time.monotonic() - start < 1.5
    assert "what was called for a changed document still runs; the watcher ends when it returns" in caplog.messages
    go_on.set()
    for thread in _threads():
        thread.join(PATIENCE_S)
    assert _threads() == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list open files")
def test_no_threads_or_files_are_left(folder: Path, mode: Mode) -> None:
    """Started and closed many times, used and not, with folders that vanish meanwhile."""
    with watching(folder, mode=mode):  # what is loaded once
        pass
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for round_ in range(10):
        with watching(folder, folder / "inner", mode=mode, debounce_s=0.05) as reader:
            (folder / "inner").mkdir()
            if round_ % 2:
                (folder / "x.md").write_text(f"{round_}" * round_)
                reader.wait_for(folder / "x.md")
            shutil.rmtree(folder / "inner")
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files


def test_what_raises_is_logged_and_watching_goes_on(folder: Path, mode: Mode, caplog: pytest.LogCaptureFixture) -> None:
    """A fault in what is told is no reason to tell no more."""
    reader = Reader()

    def fail(documents: frozenset[Path]) -> None:
        reader(documents)
        raise ValueError("no")

    with DocumentWatcher([folder], on_change=fail, mode=mode, poll_s=POLL_S):
        (folder / "x.md").write_text("new")
        reader.wait_for(folder / "x.md")
        (folder / "y.md").write_text("new")
        reader.wait_for(folder / "y.md")
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert messages == ["what was called for 1 changed documents failed; watching goes on"] * 2


def test_changes_while_told_are_told_after(folder: Path, mode: Mode) -> None:
    """What is told may take its time; what is saved meanwhile is told of when it returns, on the same thread."""
    reader = Reader()
    threads = set()

    def take_time(documents: frozenset[Path]) -> None:
        threads.add(threading.current_thread())
        if not reader.told:
            (folder / "y.md").write_text("meanwhile\n")
            time.sleep(0.5)
        reader(documents)

    with DocumentWatcher([folder], on_change=take_time, mode=mode, poll_s=POLL_S):
        (folder / "x.md").write_text("new")
        reader.wait_for(folder / "x.md", folder / "y.md")
    assert len(threads) == 1
    assert reader.told == [{folder / "x.md"}, {folder / "y.md"}]


# Limits, and what it costs


def _script(code: str, *arguments: str | Path, before: str = "") -> str:
    """Run a program of its own and give what it printed; `before` is a line of shell that it runs behind."""
    python = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    if before:
        python = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{before} && exec "$@"', "sh", *python]
    done = subprocess.run(python, check=False, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _own_limits() -> bool:
    """Whether a process can be given limits of its own for inotify."""
    if not LINUX or shutil.which("unshare") is None:
        return False
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", "echo 5 > /proc/sys/user/max_inotify_watches"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not _own_limits(), reason="this system has no user namespaces with limits of their own")
@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("max_inotify_watches", "inotify watch limit reached"),
        ("max_inotify_instances", "inotify instance limit reached"),
    ],
)
def test_limits_of_inotify_make_it_poll_and_say_so(folder: Path, limit: str, reason: str) -> None:
    """The kernel refuses another watch or another instance: what is saved is told of all the same."""
    printed = _script(
        """
        import sys, threading, time
        from pathlib import Path
        from orchestra_mem.adapters.watcher import DocumentWatcher
        folder, told = Path(sys.argv[1]), threading.Event()
        with DocumentWatcher([folder], on_change=lambda documents: told.set(), poll_s=0.05) as watcher:
            print(watcher.mode, watcher.problem)
            (folder / "x.md").write_text("new")
            print(told.wait(10), threading.active_count())
        """,
        folder,
        before=f"echo 0 > /proc/sys/user/{limit}",
    )
    assert printed.splitlines() == [
        f"poll the system cannot tell of changed documents ({reason}); they are looked at every 0.05 s. Raise the "
        "limit: sysctl fs.inotify.max_user_watches, fs.inotify.max_user_instances, ulimit -n.",
        "True 2",
    ]


@pytest.mark.skipif(not LINUX, reason="limits are set as on Linux")
@pytest.mark.parametrize("mode", ["auto", "poll"])
def test_what_cannot_be_seen_counts_as_unchanged(folder: Path, mode: Mode) -> None:
    """A process that may open no more files cannot list a folder: that must not look like deleted documents."""
    printed = _script(
        """
        import os, resource, sys, threading, time
        from pathlib import Path
        from orchestra_mem.adapters.watcher import DocumentWatcher
        folder, told = Path(sys.argv[1]), []
        watcher = DocumentWatcher([folder], on_change=told.append, mode=sys.argv[2], poll_s=0.05, debounce_s=0.05)
        with watcher:
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            files = []
            for _ in range(2):  # again, as a look may have been under way
                try:
                    while True:
                        files.append(os.open("/dev/null", os.O_RDONLY))
                except OSError as error:
                    print(error.strerror)
                time.sleep(0.2)
            os.rename(folder / "x.md", folder / "new.md")
            time.sleep(1.2)
            print(told)
            for file in files:
                os.close(file)
            end = time.monotonic() + 10
            while not told and time.monotonic() < end:
                time.sleep(0.01)
            print(sorted(path.name for path in told[0]), watcher.problem)
        """,
        folder,
        mode,
    )
    assert printed.splitlines() == ["Too many open files"] * 2 + ["[]", "['new.md', 'x.md'] None"]


def test_watchdog_is_loaded_at_the_start_and_only_for_events(folder: Path) -> None:
    """Importing costs nothing of it, nor does polling."""
    printed = _script(
        """
        import sys
        from pathlib import Path
        from orchestra_mem.adapters.watcher import DocumentWatcher
        def loaded(): return any(name.split(".")[0] == "watchdog" for name in sys.modules)
        print(loaded())
        with DocumentWatcher([Path(sys.argv[1])], on_change=print, mode="poll"): print(loaded())
        with DocumentWatcher([Path(sys.argv[1])], on_change=print): print(loaded())
        """,
        folder,
    )
    assert printed.split() == ["False", "False", "True"]


def test_idle_costs_next_to_nothing(folder: Path) -> None:
    """Under a thousandth of a core: processor time of a process of its own in which nothing else happens.

    Each stretch holds two looks. Other work on the machine only ever adds to one, so the first that is under ends it.
    """
    printed = _script(
        """
        import sys, time
        from pathlib import Path
        from orchestra_mem.adapters.watcher import DocumentWatcher
        with DocumentWatcher([Path(sys.argv[1])], on_change=print):
            time.sleep(0.5)
            shares = []
            while len(shares) < 12 and min(shares, default=1) >= 0.001:
                began, spent = time.monotonic(), time.process_time()
                time.sleep(1.4)
                shares.append((time.process_time() - spent) / (time.monotonic() - began))
            print(min(shares))
        """,
        folder,
    )
    assert float(printed) < 0.001
