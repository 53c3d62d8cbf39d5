"""Session archives: kept forever by default, removed by settings, and never removed with a person's text."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.build import HOME
from orchestra_mem.catalog_types import AuditFilter
from orchestra_mem.types import MustKeepStatus
from tests.conftest import Clock
from tests.memories import SMALL, flushed, killing, live, say, take_out

SAID = [f"We decided to keep the {what} in drawer {n}." for n, what in enumerate(["lamp", "rope", "map", "key", "tea"])]


def _opened(folder: Path, clock: Clock, **archives: float) -> OrchestratorContextManager:
    return open_memory(folder, clock=clock, config={**SMALL, "archives": archives})


def _three_sessions(folder: Path, clock: Clock, **archives: float) -> list[Path]:
    """Archive three sessions, each compacted, and ended two days after the previous one."""
    with _opened(folder, clock, **archives) as memory:
        ended = []
        for name in ("ada", "bob", "cyd"):
            say(memory, clock, *(f"{text} Says {name}." for text in SAID * 4))
            clock.now += timedelta(days=2)
            ended.append(flushed(memory))
        assert memory.losses(), "nothing was compacted"
    return ended


def _there(paths: list[Path]) -> list[bool]:
    return [path.exists() for path in paths]


def test_by_default_archives_are_kept_for_ever(tmp_path: Path, clock: Clock) -> None:
    """By default a clean-up ten years later removes no archive."""
    archives = _three_sessions(tmp_path, clock)
    clock.now += timedelta(days=3_650)
    with _opened(tmp_path, clock) as memory:
        done = memory.clean_up()
    assert (done.archives, done.archives_kept) == ((), ())
    assert all(_there(archives))


def test_an_old_archive_goes_and_what_was_said_stays(tmp_path: Path, clock: Clock) -> None:
    """Removing an archive is audited and leaves operations; search finds nearly the same, with a new index too."""
    archives = _three_sessions(tmp_path, clock)
    with _opened(tmp_path, clock, keep_days=3) as memory:
        operations = memory.operations()
        memory.update_index()
        before = {hit.chunk.text for hit in memory.search("drawer of the lamp", limit=40).hits}
        done = memory.clean_up()
        assert (list(done.archives), done.archives_kept) == ([archives[0].name], ())
        assert _there(archives) == [False, True, True]
        first = memory.sessions()[0]
        (entry,) = memory.audit(AuditFilter(call="remove_archive"))
        assert (entry.items, entry.detail) == ((first.id,), archives[0].name)
        assert memory.operations() == operations
        assert first.archive is None
        memory.update_index()
        after = memory.search("drawer of the lamp", limit=40).hits
        assert len(before & {hit.chunk.text for hit in after}) >= len(before) - 2
        assert archives[0].name not in {hit.chunk.source for hit in after}
        assert memory.clean_up().archives == ()
        memory.update_index(anew=True)
        anew = memory.search("drawer of the lamp", limit=40).hits
        assert {hit.chunk.key for hit in anew} == {hit.chunk.key for hit in after}


@pytest.mark.parametrize("kept", [2, 0])
def test_the_oldest_go_beyond_a_size(tmp_path: Path, clock: Clock, kept: int) -> None:
    """The oldest archives are removed until the rest fits the size, except those with a person's text."""
    archives = _three_sessions(tmp_path, clock)
    if kept == 0:
        archives[0].write_text(archives[0].read_text() + "\nMine alone.\n")
    limit = archives[kept].stat().st_size + 10
    with _opened(tmp_path, clock, keep_mb=limit / 1e6) as memory:
        assert memory.clean_up().archives == tuple(path.name for n, path in enumerate(archives) if n != kept)
    assert _there(archives) == [n == kept for n in range(3)]


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text + "\nMine alone.\n",
        lambda text: text.replace("drawer 4.", "drawer 7.", 1),
        lambda text: text.replace("\n## ", "\n- Call Ruth\n\n## ", 1),
        lambda text: text + "\nproject: Ruth keeps the keys.\n",
        lambda text: text.replace("\n**Project**: ", "\n**Project**: Ruth's ", 1),
    ],
)
def test_an_archive_with_a_persons_words_is_kept_and_told(tmp_path: Path, clock: Clock, edit: Any) -> None:
    """An archive that a person has edited is kept and reported, whether a line was added or a word changed."""
    archives = _three_sessions(tmp_path, clock)
    archives[1].write_text(edit(text := archives[1].read_text()))
    assert archives[1].read_text() != text
    with _opened(tmp_path, clock, keep_days=1) as memory:
        done = memory.clean_up()
    assert (done.archives, done.archives_kept) == ((archives[0].name,), (archives[1].name,))
    assert _there(archives) == [False, True, True]


def test_what_was_written_into_a_running_session_is_kept(tmp_path: Path, clock: Clock) -> None:
    """An archive is kept if a person wrote into its document while the session ran."""
    with _opened(tmp_path, clock, keep_days=1) as memory:
        say(memory, clock, *SAID * 4)
        path = live(memory)
        path.write_text(path.read_text() + "\n## Mine\n\nThe key is under the mat.\n")
        say(memory, clock, *SAID)
        archive = flushed(memory)
        clock.now += timedelta(days=2)
        assert memory.clean_up().archives_kept == (archive.name,)
    assert "under the mat" in archive.read_text()


def test_what_became_of_facts_later_makes_no_line_a_persons(tmp_path: Path, clock: Clock) -> None:
    """An archive is removed though some of its facts were superseded or removed later."""
    archives = _three_sessions(tmp_path, clock)
    with _opened(tmp_path, clock) as memory:
        take_out(memory.documents.path("decision_log"), "keep the rope in drawer 1")
        say(memory, clock, "We decided to keep the lamp in the cellar instead of drawer 0.", *SAID[2:])
        assert [fact.text for fact in memory.facts(standing=False) if fact.status is not MustKeepStatus.STANDING]
    with _opened(tmp_path, clock, keep_days=1) as memory:
        done = memory.clean_up()
    assert (len(done.archives), done.archives_kept) == (2, ())
    assert _there(archives) == [False, False, True]


def test_a_folder_in_an_archives_place_is_left(tmp_path: Path, clock: Clock) -> None:
    """A folder in place of an archive is left alone, and an archive that is already missing is forgotten."""
    archives = _three_sessions(tmp_path, clock)
    archives[0].unlink()
    archives[0].mkdir()
    archives[1].unlink()
    with _opened(tmp_path, clock, keep_days=1) as memory:
        done = memory.clean_up()
        assert (done.archives, done.archives_kept) == ((archives[1].name,), (archives[0].name,))
        (entry,) = memory.audit(AuditFilter(call="remove_archive"))
        assert entry.detail == f"{archives[1].name}, which was already missing"
    assert archives[0].is_dir()


def test_a_renamed_project_makes_no_line_a_persons(tmp_path: Path, clock: Clock) -> None:
    """Archives of a renamed project, which show its former name, are still removed."""
    folder = tmp_path / "日本 店"
    folder.mkdir()
    _three_sessions(folder, clock)
    folder = folder.rename(tmp_path / "after")
    with _opened(folder, clock, keep_days=1) as memory:
        assert len(memory.clean_up().archives) == 2


def test_a_kill_between_file_and_database_is_made_up_for(tmp_path: Path, clock: Clock) -> None:
    """If a kill follows the removal of the file, the next clean-up completes the removal in the database."""
    archives = _three_sessions(tmp_path, clock)
    config, killed = {**SMALL, "archives": {"keep_days": 3}}, killing(["archive.remove.after"])
    with (
        pytest.raises(KeyboardInterrupt),
        open_memory(tmp_path, clock=clock, config=config, write_point=killed) as memory,
    ):
        memory.clean_up()
    assert _there(archives) == [False, True, True]
    with _opened(tmp_path, clock, keep_days=3) as memory:
        assert memory.sessions()[0].archive is not None
        assert memory.clean_up().archives == (archives[0].name,)
        assert memory.sessions()[0].archive is None
    assert (tmp_path / HOME / "obra.db").exists()
