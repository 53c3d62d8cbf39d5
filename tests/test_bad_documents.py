"""Damaged documents, by people, editors or power cuts: no text is lost, the damage is reported once, and work goes on.

The damage is done to each kind of document of a real memory while it is open.
"""

from __future__ import annotations

import logging
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from orchestra_mem import ItemFilter
from orchestra_mem.build import load_settings, open_memory
from orchestra_mem.doctor.documents import check_documents
from orchestra_mem.errors import DocumentError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import DocumentFault, DocumentName, MustKeep
from tests.conftest import Clock
from tests.memories import everywhere, flushed, live, problems_of, session_of
from tests.timing import assert_quick

SESSION = "session"
MINE = "- The porcupine sleeps in the cellar."
SERVED = MINE.removeprefix("- ")
# Limits at which dozens of operations cause spills and compactions, and all documents fit into one context.
CONFIG: dict[str, object] = {
    "orchestrator": {
        "context_window": {"max_tokens": 32_768},
        "working_memory": {"max_operations": 6, "max_tokens": 600},
        "session_compression_threshold": 3_000,
    },
    "compaction": {"verbatim_window_s": 60, "verbatim_floor_tokens": 100, "segment_tokens": 100, "fan_in": 2},
    "tokens": {"counter": "estimate"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A kind of damage, done to a document that contains a line of a person (`MINE`), and its expected consequences.

    `problem`: Start of what `check` reports, with `{line}` for the line of the fault; empty if it reports nothing.
    `left`: Whether the memory leaves the file alone until it is repaired. `served`: Whether contexts show the line.
    `mend`: Returns the text that a person saves as the repair, given the damaged text and the undamaged one.
    """

    do: Callable[[Path, str], object]
    problem: str = ""
    left: bool = True
    served: bool = True
    mend: Callable[[str, str], str] = lambda damaged, good: good


def _bytes(change: Callable[[str], bytes]) -> Callable[[Path, str], object]:
    return lambda path, text: path.write_bytes(change(text))


def _text(change: Callable[[str], str]) -> Callable[[Path, str], object]:
    return lambda path, text: path.write_bytes(change(text).encode())


def _front_end(text: str) -> int:
    return text.index("\n---\n") + 5


def _second_heading(text: str) -> str:
    """The heading line of a document's first section, with the line ends around it."""
    start = text.index("\n## ")
    return text[start : text.index("\n", start + 1) + 1]


def _become_folder(path: Path, text: str) -> None:
    path.unlink()
    path.mkdir()
    (path / "mine.txt").write_text(text)


def _become_pipe(path: Path, text: str) -> None:
    path.unlink()
    os.mkfifo(path)


def _link_to(target: str, *, exists: bool = False) -> Callable[[Path, str], object]:
    """Replace a document by a link: to a file with the same text, to nothing, or to itself."""

    def link(path: Path, text: str) -> None:
        if exists:
            (path.parent / target).write_text(text)
        path.unlink()
        path.symlink_to(target or path.name)

    return link


def _mark_read_only(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o444)


def _with_head(damaged: str, good: str) -> str:
    return good[: good.index("\n# ")] + damaged[damaged.index("\n# ") :]


MARKER = "<!-- conflict 3f9a1c: the line above is yours and stands. Delete this block. -->"
DAMAGES = {
    "broken YAML": Damage(do=_text(lambda text: text.replace("format: 1", "format: [1", 1)),
        problem=":{line}: is not valid YAML", left=False, mend=_with_head),
    "no front matter": Damage(do=_text(lambda text: text[_front_end(text) :]),
        problem=":1: the front matter is missing", left=False, mend=_with_head),
    "open front matter": Damage(do=_text(lambda text: text.replace("\n---\n", "\n", 1)),
        problem=":{line}: ", left=False, mend=_with_head),
    "two front matters": Damage(do=_text(lambda text: text[: _front_end(text)] + text),
        problem=":{line}: a second front matter", left=False, mend=_with_head),
    "headings renamed": Damage(do=_text(lambda text: text.replace("\n## ", "\n## Our ")),
        left=False, mend=lambda damaged, good: damaged.replace("\n## Our ", "\n## ")),
    "heading deleted": Damage(do=_text(lambda text: text.replace(_second_heading(text), "\n", 1)), left=False,
        mend=lambda damaged, good: damaged.replace(f"\n{MINE}", f"{_second_heading(good)}\n{MINE}", 1)),
    "half a marker": Damage(do=_text(lambda text: text.replace(f"{MINE}\n", f"{MINE}\n{MARKER}\n")),
        problem=":{line}: this conflict marker does not belong to an intact block",
        left=False, mend=lambda damaged, good: damaged.replace(f"{MARKER}\n", "")),
    "Latin-1": Damage(do=_bytes(lambda text: text.replace(MINE, f"{MINE} Caf\xe9").encode("latin-1")),
        problem=":{line}: is not UTF-8: 0xe9 at byte 42 of the line (Latin-1?)",
        left=False, mend=lambda damaged, good: damaged.replace("\udce9", "\xe9")),
    "UTF-16": Damage(do=_bytes(lambda text: text.encode("utf-16")), problem=" is UTF-16, not UTF-8"),
    "UTF-16 without mark": Damage(do=_bytes(lambda text: text.encode("utf-16-be")), problem=" is UTF-16, not UTF-8"),
    "a NUL": Damage(do=_text(lambda text: text.replace(MINE, f"{MINE}\0")), problem=":{line}: a NUL byte"),
    "nothing but NULs": Damage(do=_bytes(lambda text: bytes(len(text))), problem=":1: the first of ", served=False),
    "empty": Damage(do=_text(lambda text: ""), problem=" is empty", left=False, served=False),
    "deleted": Damage(do=lambda path, text: path.unlink(), problem=" is missing", left=False, served=False),
    "a folder": Damage(do=_become_folder, problem=" is a folder", served=False),
    "a pipe": Damage(do=_become_pipe, problem=" is not a regular file", served=False),
    "a link that leads out": Damage(do=_link_to("../../../outside.md", exists=True),
        problem=" is a symbolic link to ", served=False),
    "a link to nowhere": Damage(do=_link_to("/nonexist/x.md"), problem=" is a symbolic link to ", served=False),
    "a link to itself": Damage(do=_link_to(""), problem=" is a broken symbolic link", served=False),
    "a link inside": Damage(do=_link_to("inside.txt", exists=True), left=False),
    "read-only": Damage(do=_mark_read_only, problem=" is marked as read-only"),
}  # fmt: skip
# Changes that are no fault, as a person may have intended them.
ALLOWED = ("headings renamed", "heading deleted", "a link inside")
# One of each class: the decision log is damaged in every way, other kinds of documents in these.
TELLING = (
    "broken YAML", "heading deleted", "half a marker", "Latin-1", "UTF-16", "a NUL", "empty", "deleted", "a folder",
    "a link to nowhere", "read-only",
)  # fmt: skip


DECIDED = (
    "buy a lathe", "rent a kiln", "keep the loom in the cellar", "sell the printing press", "oil every hinge",
)  # fmt: skip


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, datetime]:
    """A project in which every document has content, and the time of its last operation."""
    project = tmp_path_factory.mktemp("used") / "project"
    project.mkdir()
    clock = Clock(step_s=1)
    with open_memory(project, config=CONFIG, clock=clock) as memory:
        for number, what in enumerate(DECIDED):
            _decide(memory, what)
            _record(memory, f"before {number}", 5)
        memory.refresh()
        memory.record_operation("note", {"text": "We must never delete the archive."})
        _record(memory, "and then", 5)
        memory.refresh()
    return project, clock.now


@pytest.fixture
def project(used: tuple[Path, datetime], tmp_path: Path, clock: Clock) -> Path:
    """A copy of the used project, in which the clock continues."""
    clock.now, clock.step = used[1], timedelta(seconds=1)
    return Path(shutil.copytree(used[0], tmp_path / "project"))


def _record(memory: OrchestratorContextManager, marker: str, count: int) -> None:
    for number in range(count):
        memory.record_operation("note", {"text": f"Looked at {marker} {number} and wrote down what there was. " * 2})


def _decide(memory: OrchestratorContextManager, what: str) -> None:
    memory.record_operation("decision", {"decision": f"We decided to {what}."})


def _path(memory: OrchestratorContextManager, document: str) -> Path:
    return live(memory) if document == SESSION else memory.episodic_memory.path(DocumentName(document))


def _with_mine(text: str) -> str:
    """Insert a person's line below the document's first section heading."""
    at = text.index("\n", text.index("\n## ") + 1) + 1
    return f"{text[:at]}\n{MINE}\n{text[at:]}"


def _holds(path: Path) -> object:
    link = os.readlink(path) if path.is_symlink() else None
    if link and not os.path.exists(path):
        return link
    if path.is_dir():
        return link, sorted((each.name, each.read_bytes()) for each in path.iterdir())
    if path.is_fifo():
        return link, path.stat().st_mode
    return link, path.stat().st_mode, path.read_bytes()


def _check(project: Path) -> list[DocumentFault]:
    return check_documents(project, load_settings(project, os.environ))


def _problems(memory: OrchestratorContextManager) -> list[str]:
    return [problem["problem"] for problem in problems_of(memory)]


def _standing(memory: OrchestratorContextManager) -> set[tuple[int, str]]:
    facts: list[MustKeep] = memory.facts()
    return {(fact.id, fact.text) for fact in facts if fact.operation}


def _mend(path: Path, text: str) -> None:
    """Replace a document with a complete text, as a person does who saves it again."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("kind", "document"),
    [*((kind, DocumentName.DECISION_LOG.value) for kind in DAMAGES), *((kind, SESSION) for kind in TELLING)],
)
def test_damage_is_told_once_served_left_alone_and_heals(
    project: Path, clock: Clock, caplog: pytest.LogCaptureFixture, kind: str, document: str
) -> None:
    """Damage is reported with file and line, loses no fact, stops no work, and is gone after the repair."""
    damage = DAMAGES[kind]
    caplog.set_level(logging.WARNING, "orchestra_mem")
    with open_memory(project, config=CONFIG, clock=clock) as memory:
        path = _path(memory, document)
        standing, good = _standing(memory), _with_mine(path.read_text())
        damage.do(path, good)
        before = _holds(path) if damage.left else None
        told = [str(found) for found in _check(project)]
        wanted = f"{path}{damage.problem}".format(line=_line(path, kind))
        if damage.problem and not (kind == "deleted" and document == SESSION):
            assert len(told) == 1
            assert told[0].startswith(wanted)
        else:
            assert told == []
        assert (SERVED in memory.get_orchestrator_context("test").render()) == damage.served
        assert [problem for problem in _problems(memory) if str(path) in problem] == [
            record.getMessage() for record in caplog.records if str(path) in record.getMessage()
        ]
        count = len(memory.operations())
        for number in range(2):
            _record(memory, f"meanwhile {number}", 9)
            _decide(memory, ("hang the bell by the door", "paint the shed green")[number])
            memory.refresh()
        assert len(memory.operations()) == count + 20
        assert standing <= _standing(memory), "damage took facts out"
        if damage.left:
            assert _holds(path) == before
        elif document == DocumentName.DECISION_LOG:
            assert path.read_bytes().count(b"We decided to hang the bell by the door") == 1
            assert damage.served == (MINE.encode() in path.read_bytes())
        messages = [record.getMessage() for record in caplog.records if str(path) in record.getMessage()]
        assert len(messages) <= (0 if kind in ALLOWED else 2), messages
        said = {message.partition(".md")[2].lstrip(":0123456789") for message in messages}
        assert len(said) == len(messages), "told twice"
        damaged = path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else ""
        _mend(path, good if damage.left else damage.mend(damaged, good))
        assert SERVED in memory.get_orchestrator_context("test").render()
        _record(memory, "mended", 9)
        memory.refresh()
        assert _problems(memory) == []
        assert _check(project) == []
        assert MINE in path.read_text()
        assert standing <= _standing(memory)
        if damage.left and document == SESSION:
            session = session_of(memory)
            assert everywhere(memory) == [op.id for op in memory.operations() if op.session == session.id]


@pytest.mark.parametrize("kind", TELLING)
def test_a_damaged_catalog_document_is_told_left_alone_and_heals(tmp_path: Path, clock: Clock, kind: str) -> None:
    """A damaged catalog document loses no item, blocks no other agent's document, and catches up after the repair."""
    damage = DAMAGES[kind]
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:

        def learn(*contents: str) -> set[str]:
            clock.now += timedelta(minutes=1)
            for agent in ("ada", "bob"):
                for content in contents:
                    memory.catalog.store({"content": content, "type": "decision"}, agent=agent)
            memory.refresh()
            return {item.content for item in memory.catalog.items(ItemFilter(agents=["ada"]))}

        before = learn("We bake on Mondays.", "We rest on Sundays.")
        path, other = memory.documents.path("catalog/ada"), memory.documents.path("catalog/bob")
        good = _with_mine(path.read_text())
        damage.do(path, good)
        left = _holds(path) if damage.left else None
        told = [str(found) for found in _check(tmp_path)]
        wanted = [f"{path}{damage.problem}".format(line=_line(path, kind))] if damage.problem else []
        assert len(told) == len(wanted if kind != "deleted" else [])
        assert all(found.startswith(start) for found, start in zip(told, wanted, strict=False)), told
        assert before <= learn("We sell on Fridays.")
        assert before <= learn("We count on Saturdays.")
        assert "We count on Saturdays." in other.read_text()
        if damage.left:
            assert _holds(path) == left
            assert [problem for problem in _problems(memory) if problem.startswith(str(path))] != []
        else:
            assert path.read_bytes().count(b"We count on Saturdays.") == 1
        damaged = path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else ""
        _mend(path, good if damage.left else damage.mend(damaged, good))
        memory.refresh()
        assert "We count on Saturdays." in path.read_text(), "not written after it was mended"
        found = learn("We buy on Thursdays.")
        assert {*before, "We sell on Fridays.", "We count on Saturdays."} <= found
        assert any(content.startswith(SERVED) for content in found)
        assert (_problems(memory), _check(tmp_path)) == ([], [])


def _line(path: Path, kind: str) -> int:
    """The line number of a fault."""
    if not path.is_file() or path.is_symlink():
        return 0
    lines = path.read_bytes().split(b"\n")
    if kind == "broken YAML":
        return lines.index(b"format: [1") + 2
    if kind == "open front matter":
        return 10 if b"---" in lines[1:] else 1  # in a session document, a later rule closes it
    if kind == "two front matters":
        return lines.index(b"---", 1) + 2
    mine = next((number for number, line in enumerate(lines, 1) if line.startswith(MINE.encode())), 0)
    return mine + (kind == "half a marker")


@pytest.mark.parametrize("document", [DocumentName.PROJECT_STATE, SESSION])
def test_a_paste_of_50_mb_costs_nothing(
    used: tuple[Path, datetime], project: Path, clock: Clock, document: str
) -> None:
    """Of a 50 MB document only the beginning is served; context and refresh stay fast and need little memory."""
    with open_memory(project, config=CONFIG, clock=clock) as memory:
        path = _path(memory, document)
        memory.get_orchestrator_context("test")
        with path.open("w") as file:
            file.write(_with_mine((used[0] / path.relative_to(project)).read_text()))
            for _ in range(50):
                file.write("A line of a log that somebody has put here.\n" * 23_000)
        state = path.stat().st_size, path.stat().st_mtime_ns
        assert state[0] > 50_000_000
        memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        contexts = []

        def work() -> None:
            contexts.append(memory.get_orchestrator_context("test"))
            _record(memory, "meanwhile", 9)
            memory.refresh()
            contexts.append(memory.get_orchestrator_context("test"))

        assert_quick(1.5, work, tries=1)  # 13 s if all is merged
        (problem,) = _problems(memory)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kb < 50_000
        context = contexts[0].render()
        assert contexts[1].tokens > 0
        assert SERVED in context
        assert "are shown here.*" in context
        assert problem.startswith(f"{path} has 5")
        assert problem.endswith("over the limit of 4 MB: only its beginning is read, and it is not updated; shorten it")
        assert (path.stat().st_size, path.stat().st_mtime_ns) == state


def test_a_deleted_document_is_kept_as_a_version_and_begun_anew(
    project: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A deleted document is created again, its last text is kept as a version, and the log names that version."""
    path = project / ".obra" / "memory" / "decision_log.md"
    text = path.read_text()
    path.unlink()
    with open_memory(project, config=CONFIG, clock=clock) as memory:
        version = memory.episodic_memory.history("decision_log")[-1]
        assert Path(version.path).read_text() == text
        assert path.exists()
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == [
        f"{path} is missing and is created again; its last text is kept as version {version.sequence} "
        "(`orchestra-mem history decision_log`)"
    ]


def test_flush_waits_for_a_session_document_that_is_no_text(project: Path, clock: Clock) -> None:
    """A flush refuses a session document that is not UTF-8 and says why; once that is repaired, the session ends."""
    with open_memory(project, config=CONFIG, clock=clock) as memory:
        path = live(memory)
        text = path.read_text()
        path.write_bytes(text.encode("utf-16"))
        with pytest.raises(
            DocumentError, match=r"is UTF-16, not UTF-8; save it as UTF-8; until then it is read, but not updated"
        ):
            memory.flush_session()
    with open_memory(project, config=CONFIG, clock=clock) as memory:
        _record(memory, "meanwhile", 3)
        path.write_text(text)
        archive = flushed(memory)
        assert archive.read_text().startswith(text[:40])
        assert _problems(memory) == []


def test_a_pipe_in_the_place_of_a_version_or_of_counts_hangs_nothing(tmp_path: Path) -> None:
    """A FIFO where a version or the stored token counts should be is not read, so that no command waits for ever."""
    code = """
import os, sys
from pathlib import Path
from orchestra_mem import open_memory
with open_memory(".") as memory:
    memory.record_operation("decision", {"text": "We use bcrypt."})
    memory.refresh()
counts, (version, *_) = Path(".obra/index/token_counts.json"), Path(".obra/memory/versions").glob("*.md")
for path in (counts, version):
    path.unlink(missing_ok=True)
    os.mkfifo(path)
with open_memory(".") as memory:
    memory.get_stats()
    memory.blame("decision_log")
print("ended")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30
    )
    assert "ended" in done.stdout or "is not a regular file" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("{} (conflicted copy 2025-01-15).md", str.encode),
        ("{}.sync-conflict-20250115-101010.md", lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()),
        ("old.md", str.encode),
    ],
)
def test_a_copy_of_a_document_is_told_until_it_is_gone(
    project: Path, clock: Clock, name: str, encode: Callable[[str], bytes]
) -> None:
    """A copy that a sync program left beside a document is named as not read; other files there are not."""
    with open_memory(project, config=CONFIG, clock=clock) as memory:
        path = _path(memory, DocumentName.DECISION_LOG)
        copy = path.with_name(name.format(path.stem))
        copy.write_bytes(encode(path.read_text()))
        path.with_name("notes.md").write_text("# Notes\n\nThe file decision_log.md is ours.\n")
    told = (
        f"{copy} is a copy of decision_log.md: its lines are not read; put what is missing into decision_log.md, "
        "then delete the copy or move it to another folder"
    )
    assert [f"{fault}: {fault.meanwhile}" for fault in _check(project)] == [told]
    with open_memory(project, config=CONFIG, clock=clock) as memory:
        assert _problems(memory) == [told]
        copy.unlink()
        _record(memory, "later", 1)
        assert _problems(memory) == []
