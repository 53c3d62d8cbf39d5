"""Redaction: no file below .obra contains a secret, whichever call it came in by."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import ItemFilter, OrchestratorContextManager, open_memory
from orchestra_mem.errors import StorageReadOnlyError
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkKind, WorkStatus

# Invented, in the vendor's documented format; split in two, so that secret scanners do not report it.
SECRET = "ghp_" + "R2x9mQ7vLk4TzW8sYb3NcD6fHj1PaE0uGi5B"
KEY_ID = "AKIA" + "TXZ6X5AO6U4DPHRS"
PASSWORD = "correct-Horse7-battery"
Door = Callable[[OrchestratorContextManager, str], object]


def _project(memory: OrchestratorContextManager, text: str) -> None:
    memory.record_operation("tool_call", {"tool": "shell", "output": text, "env": {"GITHUB_TOKEN": SECRET}})


DOORS: dict[str, Door] = {
    "a record": _project,
    "a decision": lambda memory, text: memory.record_operation("decision", {"text": f"We decided to use {text}."}),
    "an exchange": lambda memory, text: memory.learn(text, f"We decided to use {text} for all.", agent="ada"),
    "an item": lambda memory, text: memory.catalog.store({"content": text, "summary": text, "tags": [SECRET]}),
    "a changed item": lambda memory, text: memory.catalog.update(
        memory.catalog.store({"content": "x"}).id, {"content": text, "references": [SECRET]}
    ),
    "a work item": lambda memory, text: memory.state.create(
        WorkKind.TASK, f"Rotate {text}", description=text, acceptance=[text]
    ),
    "a cached answer": lambda memory, text: memory.response_cache.put(f"What is {text}?", text),
    "a key": lambda memory, text: memory.record_operation("note", {SECRET: "x", "password": PASSWORD}),
}


def _leaks(project: Path) -> list[str]:
    files = [path for path in (project / ".obra").rglob("*") if path.is_file()]
    secrets = [each.lower().encode() for each in (SECRET, KEY_ID, PASSWORD)]
    return [path.name for path in files if any(each in path.read_bytes().lower() for each in secrets)]


def test_no_file_has_a_secret_that_came_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No file, log, search result or context contains a secret that was passed to any recording call."""
    caplog.set_level(logging.DEBUG, logger="orchestra_mem")
    with open_memory(tmp_path) as memory:
        for come_in in DOORS.values():
            come_in(memory, f"the token {SECRET} of the juniper box, password={PASSWORD}")
        memory.refresh()
        told = repr(memory.search("juniper box token").hits) + memory.get_orchestrator_context("next").render()
        told += repr(memory.facts()) + repr(memory.catalog.items(ItemFilter())) + repr(memory.audit())
        assert SECRET not in told
        assert PASSWORD not in told
        memory.flush_session()
        assert _leaks(tmp_path) == []
    assert _leaks(tmp_path) == []
    assert SECRET not in caplog.text


def test_equal_secrets_look_equal_in_a_project_and_say_nothing_elsewhere(tmp_path: Path) -> None:
    """A secret's placeholder is the same throughout one project and differs between projects."""
    seen: list[Json] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with open_memory(tmp_path / name) as memory:
            seen += [memory.record_operation("note", {"text": f"with {SECRET}"}).data for _ in range(2)]
    assert seen[0] == seen[1]
    assert "[redacted:github-token:" in str(seen[0])
    assert seen[2] == seen[3]
    assert seen[0] != seen[2]


@pytest.mark.parametrize(
    ("settings", "text", "kept"),
    [
        ({"mode": "off"}, SECRET, SECRET),
        ({"mode": "drop"}, SECRET, "[redacted]"),
        ({"allow": [SECRET]}, SECRET, SECRET),
        ({"personal": True}, "ada@example.org", "[redacted:email:"),
        ({}, "ada@example.org", "ada@example.org"),
        ({"patterns": {"staff-number": r"S-\d{6}"}}, "of S-123456", "[redacted:staff-number:"),
    ],
)
def test_what_is_taken_out_is_a_setting(tmp_path: Path, settings: dict[str, Any], text: str, kept: str) -> None:
    """The `redaction` settings choose the mode, personal data, custom patterns and allowed texts."""
    with open_memory(tmp_path, config={"redaction": settings}) as memory:
        assert kept in str(memory.record_operation("note", {"text": f"it is {text} here"}).data)


def test_a_setting_that_cannot_be_used_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    """A broken pattern is named in the problems, and built-in secrets are still redacted."""
    with open_memory(tmp_path, config={"redaction": {"patterns": {"broken": "("}}}) as memory:
        assert "broken" in str(memory.get_stats()["problems"])
        assert SECRET not in str(memory.record_operation("note", {"text": SECRET}).data)


def test_secrets_that_are_there_already_are_found_and_taken_out(tmp_path: Path) -> None:
    """Stored secrets are reported by place and can be removed from the database, documents and versions.

    Foreign files in the memory's folders stay unchanged and are named. After an unwritable document a second call
    finishes the work.
    """
    from orchestra_mem.build import load_settings
    from orchestra_mem.build.storage import open_database
    from orchestra_mem.doctor.documents import find_secrets, redact_memory

    folder = {"orchestrator": {"memory_dir": ".obra"}}
    with open_memory(tmp_path, config={**folder, "redaction": {"mode": "off"}}) as memory:
        _project(memory, f"the token {SECRET} of the juniper box")
        memory.record_operation("decision", {"text": f"We decided to keep {SECRET} in the juniper box."})
        memory.catalog.store(
            {"content": f"the token {SECRET}", "tags": [KEY_ID, "juniper"], "agent": "ada", "references": [SECRET]}
        )
        memory.state.create(WorkKind.TASK, f"Rotate {KEY_ID}")
        memory.refresh()
        memory.flush_session()
        assert memory.search("juniper").hits
    settings = load_settings(tmp_path, {}, folder)
    with closing(open_database(tmp_path / ".obra", settings)) as database:
        values = "max(id), ?, ?, 9, 'model', '[]', '[]', 'sound', 1.0, 1, 0 FROM summaries"
        database.write("test", f"INSERT INTO summary_drafts SELECT {values}", (SECRET, SECRET))
    log, notes = tmp_path / ".obra" / "decision_log.md", tmp_path / ".obra" / "notes.md"
    log.write_bytes(log.read_bytes().replace(b"\n", b"\r\n"))
    notes.write_text(SECRET, encoding="utf-8")
    assert len(_leaks(tmp_path)) > 4
    found = find_secrets(tmp_path, settings)
    for place in ("operations 1, data", "decision_log.md:", "summary_drafts 1, base", "memory_references 1, ref"):
        assert any(place in each.place for each in found)
    assert all({*each.kinds} <= {"github-token", "secret", "aws-key"} for each in found)
    log.chmod(0o444)
    with pytest.raises(StorageReadOnlyError, match="decision_log"):
        redact_memory(tmp_path, settings)
    log.chmod(0o644)
    done = redact_memory(tmp_path, settings)
    assert done.texts == 0
    assert done.files > 1
    assert _leaks(tmp_path) == ["notes.md"]
    assert b"\r\n" in log.read_bytes()
    assert [each.place for each in find_secrets(tmp_path, settings)] == [f"{notes}:1"]
    assert redact_memory(tmp_path, settings) == type(done)(texts=0, files=0, left=(str(notes),))
    with open_memory(tmp_path, config=folder) as memory:
        assert "[redacted:github-token:" in str(memory.operations()[0].data)
        assert memory.search("juniper").hits
        assert [entry.call for entry in memory.audit()] == ["redact", "redact", "store"]
        memory.refresh()
        assert memory.facts()
        assert memory.catalog.items(ItemFilter(tags=["juniper"]))


@pytest.mark.parametrize("mode", ["mask", "drop"])
def test_patterns_that_match_the_programs_own_words_leave_all_readable(tmp_path: Path, mode: str) -> None:
    """Redacting with patterns for states, keys, and front matter changes only what people and agents wrote."""
    from orchestra_mem.build import load_settings
    from orchestra_mem.doctor.documents import check_documents, find_secrets, redact_memory

    with open_memory(tmp_path, config={"project": {"name": "Pending Shop"}}) as memory:
        memory.record_operation("note", 123_456)
        operation = memory.record_operation("decision", {"text": "We decided to keep the pending box in the cellar."})
        task = memory.state.create(WorkKind.TASK, "Paint the pending door", acceptance=["pending"], assignee="standing")
        memory.state.set_status(task.id, WorkStatus.BLOCKED, reason="pending", operation=operation.id)
        item = memory.catalog.store({"content": "the pending tea", "tags": ["pending", "tea"], "agent": "ada"})
        memory.learn("What is pending?", "We decided to keep the tea.", agent="ada")
        memory.refresh()
        memory.flush_session()
        facts, session = memory.facts(), memory.sessions()[0].id
        summaries = memory.summaries(session)
    words = r"(?i)pending|standing|machine|person|live|children|dropped|task|blocked|status|123456|20\d\d"
    config = {"redaction": {"mode": mode, "patterns": {"own": words}}}
    settings = load_settings(tmp_path, {}, config)
    assert redact_memory(tmp_path, settings).texts > 0
    left = {each.place.rpartition("/")[2].partition(":")[0] for each in find_secrets(tmp_path, settings)}
    assert left <= {".gitignore", "mem-search.md"}  # written once by `init`
    assert check_documents(tmp_path, settings) == []
    with open_memory(tmp_path, config=config) as memory:
        found = memory.state.item(task.id)
        assert "pending" not in str([found.title, found.acceptance, found.assignee, memory.state.events()[0].after])
        assert (found.status, found.created) == (WorkStatus.BLOCKED, task.created)
        assert memory.state.undo(operation.id)[0].status is WorkStatus.PENDING
        assert memory.operations()[0].data == 123_456
        assert [(each.id, each.status) for each in memory.facts()] == [(each.id, each.status) for each in facts]
        assert [each.source for each in memory.summaries(session)] == [each.source for each in summaries]
        assert item.id in [each.id for each in memory.catalog.items(ItemFilter(tags=["tea"]))]
        assert memory.audit()


# Columns with text that are not declared as `FreeText`, by table.
PROGRAMS_OWN = {
    "audit": "call outcome items",
    "catalog_state": "name",
    "documents": "name digest pending_digest",
    "documents_left": "name",
    "documents_read": "name base file",
    "jobs": "subject state owner",
    "leases": "name owner",
    "memory_items": "id type author status superseded_by digest summary_method",
    "model_trials": "model content verdict subject",
    "must_keep_counts": "kind status",
    "must_keeps": "kind status author",
    "notices": "subject",
    "project_keys": "name",
    "sessions": "id status archive",
    "shared_files": "name moved_to machine",
    "summaries": "method",
    "summary_drafts": "method must_keeps verdict",
    "work_counts": "kind status",
    "work_events": "author field",
    "work_items": "kind status folded",  # `folded` is derived from the title and the description
    "write_leases": "name holder",
}


def test_each_column_with_text_is_free_or_is_the_programs(tmp_path: Path) -> None:
    """A new column with text must be declared as `FreeText`, or be listed here as one without words of people."""
    from orchestra_mem.build import load_settings
    from orchestra_mem.build.storage import open_database
    from orchestra_mem.stores import FREE_TEXT

    with open_memory(tmp_path), closing(open_database(tmp_path / ".obra", load_settings(tmp_path, {}))) as database:
        columns = {(table, each) for table, names in database.tables().items() for each, text in names.items() if text}
    free = {(each.table, column) for each in FREE_TEXT for column in (*each.plain, *each.json)}
    own = {(table, column) for table, columns in PROGRAMS_OWN.items() for column in columns.split()}
    assert columns - free == own
    assert free <= columns


def test_words_that_a_person_wrote_and_deleted_can_be_forgotten(tmp_path: Path) -> None:
    """Scan finds a secret in the former texts of a document that the database keeps; redacting removes it for good."""
    from orchestra_mem.build import load_settings
    from orchestra_mem.doctor.documents import find_secrets, redact_memory

    with open_memory(tmp_path) as memory:
        memory.record_operation("decision", {"text": "We decided to keep the box in the cellar."})
        memory.refresh()
        log = memory.episodic_memory.folder / "decision_log.md"
        clean = log.read_text(encoding="utf-8")
        log.write_text(f"{clean}\n- the token is {SECRET}\n", encoding="utf-8")
        memory.record_operation("decision", {"text": "We decided to paint the box green."})
        memory.refresh()
        log.write_text(log.read_text(encoding="utf-8").replace(SECRET, "elsewhere"), encoding="utf-8")
        memory.refresh()
    settings = load_settings(tmp_path, {})
    assert any("documents_left" in each.place for each in find_secrets(tmp_path, settings))
    assert redact_memory(tmp_path, settings).texts > 0
    assert find_secrets(tmp_path, settings) == []


def test_what_a_person_writes_into_a_document_is_not_altered_and_check_warns(tmp_path: Path) -> None:
    """A secret that a person writes into a document stays there; `check` names its kind and never the secret."""
    from orchestra_mem.adapters.config_files import load_settings
    from orchestra_mem.doctor.documents import check_documents

    with open_memory(tmp_path) as memory:
        memory.record_operation("note", {"text": "It rained."})
        memory.refresh()
        plan = tmp_path / ".obra" / "memory" / "work_plan.md"
        plan.write_text(plan.read_text(encoding="utf-8") + f"\nThe token is {SECRET}.\n", encoding="utf-8")
        memory.refresh()
        assert SECRET in plan.read_text(encoding="utf-8")
    (problem,) = check_documents(tmp_path, load_settings(tmp_path, {}))
    assert "github-token" in problem.problem
    assert SECRET not in str(problem)
