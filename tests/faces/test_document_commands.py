"""Commands for documents edited by hand: conflicts, accept, reject, edit, watch, check, blame. Real processes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.build import open_memory
from orchestra_mem.core.documents.conflicts import Conflict, Merged, mark
from orchestra_mem.core.documents.signature import timeless
from orchestra_mem.faces.editing import SeenTexts
from orchestra_mem.types import Author
from tests.faces.conftest import CHECKOUT, MadeBy, Program, start
from tests.memories import collide


def _document(run: Any, name: str) -> Path:
    return Path(run.folder / ".obra" / "memory" / f"{name}.md")


# Conflicts


@pytest.fixture
def conflict(run: Any) -> str:
    """The id of a conflict in the work plan, where a person and the machine have changed the same line."""
    run("init")
    with open_memory(run.folder) as memory:
        collide(memory, "- buy [bold]rye[/bold] flour")
        ((_, block),) = memory.conflicts()
    return block.id


def test_conflicts_lists_both_sides_with_document_and_line(run: Any, conflict: str) -> None:
    """`conflicts` shows both sides with document and line, as JSON and as a table within 80 columns."""
    plan = _document(run, "work_plan")
    line = next(number for number, line in enumerate(plan.read_text().splitlines(), 1) if "<!-- conflict" in line)
    assert run.json("conflicts") == [
        {
            "id": conflict, "document": "work_plan", "path": str(plan), "line": line,
            "yours": "- buy [bold]rye[/bold] flour\n", "machine": "- buy wheat flour\n", "changed_meanwhile": False,
            "sides": [],
        }
    ]  # fmt: skip
    shown = run("conflicts").splitlines()
    assert shown[2].split()[:3] == [conflict, "work_plan", str(line)]
    assert "[bold]rye[/bold]" in shown[2]
    assert "- buy wheat flour" in shown[2]
    assert max(map(len, shown)) <= 80
    plan.write_text(plan.read_text().replace("rye", "oat"))
    (record,) = run.json("conflicts")
    assert (record["yours"], record["changed_meanwhile"]) == ("- buy [bold]oat[/bold] flour\n", True)
    assert f"{conflict} in line {line} is unresolved: see `orchestra-mem conflicts`\n" in run("status")
    assert "wheat" not in run("context")


@pytest.mark.parametrize(("command", "stands", "note"), [
    (["accept"], ["- buy wheat flour"], "the machine's version was accepted"),
    (["accept", "--both"], ["- buy [bold]rye[/bold] flour", "- buy wheat flour"],
     "your lines were kept, followed by the machine's lines"),
    (["reject"], ["- buy [bold]rye[/bold] flour"], "your lines were kept"),
])  # fmt: skip
def test_a_conflict_is_decided(run: Any, conflict: str, command: list[str], stands: list[str], note: str) -> None:
    """`accept` and `reject` leave the chosen lines, report where, keep the text before, and end the conflict."""
    plan = _document(run, "work_plan")
    (waiting,) = run.json("conflicts")
    before = plan.read_text()
    assert run(*command, conflict) == f"{plan}:{waiting['line']}: {note}\n"
    assert Path(run.json("history", "work_plan")[-1]["path"]).read_text() == before
    assert [line for line in plan.read_text().splitlines() if "flour" in line] == stands
    assert run("conflicts") == "no conflicts\n"
    assert run.json("conflicts") == []
    run(*command, conflict, exit_code=1)
    assert run.errors == f"orchestra-mem: there is no conflict '{conflict}'; open conflicts: none\n"


# Editing


@pytest.fixture
def editor(run: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a shell script of the given lines the editor; `"$1"` is the document."""
    monkeypatch.delenv("VISUAL", raising=False)
    script = run.folder / "my editor.sh"

    def use(lines: str) -> None:
        script.write_text(f"#!/bin/sh\nset -e\n{lines}\n")
        script.chmod(0o755)
        monkeypatch.setenv("EDITOR", f"'{script}'")

    return use


def _decide(run: Program) -> None:
    run("init")
    run("record", "decision", '{"text": "We decided to bake rye bread on Tuesdays."}')
    run("record", "decision", '{"text": "We decided to buy flour from the mill."}')
    run("flush")


@pytest.fixture
def decided(made_by: MadeBy) -> Program:
    """A project whose decision log has two decisions written by the machine."""
    return made_by(_decide)


def test_edit_tells_what_came_and_went(decided: Any, editor: Callable[[str], None]) -> None:
    """`edit` reports the lines added and removed, and the next context has the change."""
    log = _document(decided, "decision_log")
    editor("sed -i -e '/from the mill/d' \"$1\"\nprintf '### We decided to use gas ovens only\\n' >> \"$1\"")
    assert decided.json("edit", "decision_log.md") == {
        "document": "decision_log", "path": str(log), "editor_exit_code": 0, "changed": True, "lines_added": 1,
        "lines_removed": 1, "problems": [],
    }  # fmt: skip
    assert "gas ovens" in decided("context")
    assert "mill" not in decided("context")
    editor("printf 'a\\nb\\n' >> \"$1\"")
    assert decided("edit", "decision_log") == f"{log}: lines added: 2, removed: 0\n"
    editor("exit 0")
    assert decided("edit", "decision_log") == f"{log}: not changed\n"
    assert "changes are read when they are saved" in decided.errors


def test_edit_checks_and_exits_with_1_where_something_is_wrong(decided: Any, editor: Callable[[str], None]) -> None:
    """`edit` checks the saved document, names each fault with file and line, and exits with 1."""
    editor("printf 'no field at all\\n' | sed -i '2r /dev/stdin' \"$1\"")
    (problem,) = decided.json("edit", "work_plan", exit_code=1)["problems"]
    plan = str(_document(decided, "work_plan"))
    assert (problem["path"], problem["line"]) == (plan, 3)
    assert problem["problem"] == "'no field at all' is not of the form `key: value`"
    assert "is not of the form `key: value`" in " ".join(decided("edit", "work_plan", exit_code=1).split())
    assert decided("check", exit_code=1).startswith(f"{plan}:3: 'no field at all' is not of the form `key: value`")
    assert decided.json("check", exit_code=1)["problems"] == [problem]


def test_edit_holds_nothing_while_the_editor_runs(decided: Any, editor: Callable[[str], None]) -> None:
    """While the editor runs, other processes can record and end sessions, and both sides' text is kept."""
    program = f"PYTHONPATH='{CHECKOUT}' '{sys.executable}' -m orchestra_mem"
    editor(
        f"ORCHESTRA_MEM__STORAGE__LOCK_TIMEOUT_S=0.5 {program} record decision --text 'We decided to sell rolls.' >&2\n"
        f"ORCHESTRA_MEM__STORAGE__LOCK_TIMEOUT_S=0.5 {program} flush >&2\n"
        "printf '### We decided to use gas ovens only\\n' >> \"$1\""
    )
    done = decided.json("edit", "decision_log")
    assert done["problems"] == []
    text = _document(decided, "decision_log").read_text()
    assert "We decided to sell rolls." in text
    assert "gas ovens" in text


def test_edit_opens_the_running_sessions_document(run: Any, editor: Callable[[str], None]) -> None:
    """`edit session` opens the running session's document; without a session or such a document it exits with 1."""
    run("init")
    editor("printf '\\nby hand\\n' >> \"$1\"")
    run("edit", "session", exit_code=1)
    assert "there is no session" in run.errors
    run("edit", "diary", exit_code=1)
    assert "use one of: project_state, work_plan, decision_log, session" in run.errors
    run("record", "note", '"x"')
    session = Path(run.json("status")["documents"]["session"])
    assert run.json("edit", "session")["path"] == str(session)
    assert session.read_text().endswith("\nby hand\n")


def test_edit_prefers_visual_and_tells_what_an_editor_did(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`$VISUAL` takes precedence; a failing editor exits with 1, one that cannot be started or is not set with 3."""
    run("init")
    monkeypatch.setenv("EDITOR", "no-such-editor")
    monkeypatch.setenv("VISUAL", "sh -c 'exit 7'")
    assert run.json("edit", "work_plan", exit_code=1)["editor_exit_code"] == 7
    assert run.errors == "the editor ended with exit code 7; what it saved is kept\n"
    monkeypatch.delenv("VISUAL")
    run("edit", "work_plan", exit_code=3)
    assert "environment variable EDITOR: 'no-such-editor' cannot be started: No such file" in run.errors
    monkeypatch.setenv("EDITOR", "vi 'unclosed")
    run("edit", "work_plan", exit_code=3)
    assert "is not a command: No closing quotation" in run.errors
    monkeypatch.delenv("EDITOR")
    run("edit", "work_plan", exit_code=3)
    assert "neither VISUAL nor EDITOR names an editor" in run.errors
    assert str(_document(run, "work_plan")) in run.errors


def test_ctrl_c_in_the_editor_is_the_editors(run: Any, editor: Callable[[str], None]) -> None:
    """Ctrl-C interrupts the editor alone: `edit` waits and takes what the editor then saves."""
    run("init")
    editor(
        'trap \'printf "\\nsaved on ctrl-c\\n" >> "$1"; exit 0\' INT\nkill -INT $PPID\nsleep 0.1\nkill -INT $$\nsleep 5'
    )
    with start("edit", "work_plan", "--json", cwd=run.folder) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads(output)["changed"] is True
    assert _document(run, "work_plan").read_text().endswith("\nsaved on ctrl-c\n")


# Watching


@contextmanager
def _watching(folder: Path, *options: str) -> Iterator[tuple[Any, str]]:
    """Start `watch` and yield its output and its first message; end it by Ctrl-C, expecting 0."""
    with start("watch", *options, cwd=folder) as process:
        assert process.stdout
        assert process.stderr
        try:
            told = process.stderr.readline()
            while told and "Ctrl-C ends it" not in told:
                told += process.stderr.readline()
            yield process.stdout, told
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            assert process.stderr.read() == "\n"
            assert process.stdout.read() == ""
        finally:
            process.kill()


def test_watch_shows_what_is_saved_within_a_second(run: Any) -> None:
    """`watch` prints each saved, deleted or new document within seconds, with its changed lines escaped and cut."""
    run("init")
    run("record", "note", '"x"')
    plan = _document(run, "work_plan")
    session = Path(run.json("status")["documents"]["session"])
    with _watching(run.folder) as (output, told):
        catalog = plan.parent / "catalog" / "ada.md"
        assert told == f"watching {plan.parent} and {session.parent} and {catalog.parent}; Ctrl-C ends it\n"
        began = time.monotonic()
        new = plan.with_name("x.tmp")
        new.write_text(plan.read_text().replace("## Backlog", "- [bold]paint\x1b[31m\n- red\n\n## Backlog"))
        new.rename(plan)
        head = output.readline()
        assert time.monotonic() - began < 5
        assert head.split()[2:] == ["work_plan", "+3", "-0"]
        assert [output.readline() for _ in range(2)] == ["  + - [bold]paint\\x1b[31m\n", "  + - red\n"]
        output.readline()
        with session.open("a") as file:
            file.write("\n".join(f"line {number}" for number in range(20)))
        assert output.readline().split()[2:] == [session.stem, "+20", "-0"]
        assert [output.readline() for _ in range(13)][-1] == "  … and 8 lines more\n"
        gone = len(plan.read_text().splitlines())
        plan.unlink()
        assert output.readline().split()[2:] == ["work_plan", "was", "deleted,", "+0", f"-{gone}"]
        for _ in range(13):
            output.readline()
        plan.write_text("again\n")
        assert output.readline().split()[2:] == ["work_plan", "is", "new,", "+1", "-0"]
        assert output.readline() == "  + again\n"
        catalog.parent.mkdir()
        catalog.write_text("tea\n")
        assert output.readline().split()[2:] == ["ada", "is", "new,", "+1", "-0"]
        assert output.readline() == "  + tea\n"


def test_watch_gives_one_json_object_a_line(run: Any) -> None:
    """`watch --json` prints one object per change, and an obsolete `documents.watch` setting only gets a note."""
    run("init")
    (run.folder / ".obra" / "config.yaml").write_text("documents:\n  watch: off\n")
    plan = _document(run, "work_plan")
    text = plan.read_text()
    with _watching(run.folder, "--json") as (output, told):
        assert "documents.watch has no effect since " in told
        plan.write_text(text.replace("# Work Plan", "# Our Plan"))
        record = json.loads(output.readline())
    assert record.pop("time").endswith("+00:00")
    assert record == {
        "document": "work_plan", "path": str(plan), "event": "changed", "added": 1, "removed": 1,
        "lines": ["-# Work Plan", "+# Our Plan"],
    }  # fmt: skip


def _looks(texts: SeenTexts, most: int = 2) -> list[tuple[str, str, list[str]]]:
    """Look as often as a save needs at most to be reported, and return all changes."""
    told = [change for _ in range(most) for change in texts.look()]
    return [(change.path.name, change.event.value, change.lines) for change in told]


def _rename_over(path: Path, text: str) -> None:
    path.with_name("x.md.tmp.4711").write_text(text)
    path.with_name("x.md.tmp.4711").replace(path)


def _backup_and_new(path: Path, text: str) -> None:
    path.rename(path.with_name("x.md~"))
    path.write_text(text)


def _delete_and_make(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


@pytest.mark.parametrize("save", [Path.write_text, _rename_over, _backup_and_new, _delete_and_make])
def test_each_way_to_save_is_told_once(tmp_path: Path, save: Callable[[Path, str], None]) -> None:
    """Each way in which editors save is reported once, and their temporary files are not."""
    document = tmp_path / "x.md"
    document.write_text("old\n")
    texts = SeenTexts([tmp_path])
    for name in (".x.md.swp", "#x.md#", ".#x.md", "4913", "~$x.md", ".md", "note.txt"):
        (tmp_path / name).write_text("1")
    save(document, "new text\n")
    assert _looks(texts, 9) == [("x.md", "changed", ["-old", "+new text"])]


def test_a_document_is_told_of_when_two_looks_agree(tmp_path: Path) -> None:
    """A change is reported once two looks see the same text; a text that is as before is not."""
    document = tmp_path / "x.md"
    document.write_text("0\n")
    texts = SeenTexts([tmp_path])
    for number in range(1, 5):
        document.write_text("9" * number)
        assert texts.look() == []
    assert _looks(texts) == [("x.md", "changed", ["-0", "+9999"])]
    document.rename(tmp_path / "away")
    assert texts.look() == []
    (tmp_path / "away").rename(document)
    assert _looks(texts) == []


def test_a_document_that_cannot_be_read_for_a_while_is_compared_with_its_last_text(tmp_path: Path) -> None:
    """After a document was unreadable, only lines that differ from its last readable text are reported."""
    document = tmp_path / "x.md"
    document.write_text("tea\n")
    texts = SeenTexts([tmp_path])
    os.truncate(document, 60_000_000)  # too large to be read
    assert _looks(texts) == [("x.md", "unreadable", [])]
    document.write_text("tea\nmilk\n")
    assert _looks(texts) == [("x.md", "changed", ["+milk"])]


def test_folders_may_go_come_back_and_be_replaced(tmp_path: Path) -> None:
    """Folders that are replaced, removed or created, as by a branch checkout, are followed."""
    folder, other, late = (tmp_path / name for name in ("memory", "other", "late"))
    for each in (folder, other):
        each.mkdir()
        (each / "same.md").write_text("same\n")
        (each / "x.md").write_text(f"of {each.name}\n")
    texts = SeenTexts([folder, late])
    folder.rename(tmp_path / "away")
    other.rename(folder)
    assert _looks(texts) == [("x.md", "changed", ["-of memory", "+of other"])]
    folder.rename(other)
    late.mkdir()
    (late / "y.md").write_text("new\n")
    assert _looks(texts) == [
        ("y.md", "new", ["+new"]), ("same.md", "gone", ["-same"]), ("x.md", "gone", ["-of other"]),
    ]  # fmt: skip
    other.rename(folder)
    assert _looks(texts) == [("same.md", "new", ["+same"]), ("x.md", "new", ["+of other"])]


# Checking


def test_check_finds_a_new_memory_in_order(run: Any) -> None:
    """`check` finds no fault in an empty or new memory, and creates nothing."""
    (run.folder / ".obra").mkdir()
    assert run.json("check") == {"project": str(run.folder), "problems": []}
    assert list((run.folder / ".obra").iterdir()) == []
    run("init")
    run("record", "note", '"x"')
    assert run("check") == "no faults in the documents and the search index\n"


def test_check_needs_neither_database_nor_lock(run: Any) -> None:
    """`check` works on the documents without a usable database; wrong settings exit with 3."""
    run("init")
    (run.folder / ".obra" / "obra.db").write_bytes(b"no database" * 1000)
    run("check")
    memory = run.folder / ".obra" / "memory"
    memory.rename(memory.with_name("elsewhere"))
    memory.write_text("a file")
    assert [each["problem"] for each in run.json("check", exit_code=1)["problems"]] == ["is not a folder"]
    (run.folder / ".obra" / "config.yaml").write_text("speed: 9\n")
    run("check", exit_code=3)


def test_blame_tells_who_wrote_each_line(run: Any) -> None:
    """`blame` prints who wrote each line, and as JSON also its operations."""
    config = {"orchestrator": {"working_memory": {"max_operations": 2}}}
    with open_memory(run.folder, config=config) as memory:
        for text in ("TODO: write the guide.", "Tea was had.", "It rained."):
            memory.record_operation("message", {"role": "user", "text": text})
        memory.refresh()
    plan = _document(run, "work_plan")
    plan.write_text(plan.read_text(encoding="utf-8") + "\nMine.\n", encoding="utf-8")
    shown = run("blame", "work_plan")
    assert "person" in next(line for line in shown.splitlines() if "Mine." in line)
    lines = json.loads(run("blame", "work_plan", "--json"))
    (item,) = [line for line in lines if "write the guide" in line["text"]]
    assert (item["writer"], item["operations"]) == ("machine", [[1, 1]])


# Catalog documents, named `catalog/AGENT` in the same commands


@pytest.fixture
def learnt(run: Any) -> Path:
    """The catalog document of ada, who has two items; another agent has an odd name."""
    with open_memory(run.folder) as memory:
        memory.record_operation("orchestration", {"task": "deploy"})
        store = memory.catalog.store
        store({"content": "We deploy on Tuesdays.", "type": "decision", "references": ["op 1"]}, agent="ada",
              author=Author.MACHINE)  # fmt: skip
        store({"content": "Tea is at four."}, agent="ada")
        store({"content": "The lamp is green."}, agent="Bob & Co")
        memory.refresh()
    return _document(run, "catalog/ada")


def test_a_catalog_document_has_history_differences_and_earlier_texts(run: Any, learnt: Path) -> None:
    """A catalog document has history, diffs and restoring, and restoring a text changes the items too."""
    first = learnt.read_text()
    assert run("history", "catalog/ada") == "no earlier versions\n"
    learnt.write_text(first.replace("on Tuesdays", "on Fridays"))
    run("catalog", "add", "The door is red.", "--of", "ada")
    versions = run.json("history", "catalog/ada.md")
    assert [(each["author"], each["reason"]) for each in versions] == [("machine", "edit"), ("person", "refresh")]
    assert "+- The door is red." in run("diff", "catalog/ada")
    first_number = str(versions[0]["sequence"])
    assert "+- We deploy on Fridays." in run("diff", "catalog/ada", first_number)
    told = run("restore", "catalog/ada", first_number)
    assert told.startswith(f"version {first_number} of catalog/ada is restored, with what has been recorded since; ")
    assert timeless(learnt.read_text()) == timeless(first)
    assert {each["content"] for each in run.json("catalog", "list", "--of", "ada")} == {
        "We deploy on Tuesdays.", "Tea is at four.",
    }  # fmt: skip
    assert run.json("history", "catalog/Bob & Co") == []
    for command in (("diff",), ("history",), ("restore", "1"), ("blame",), ("edit",)):
        run(command[0], "catalog/eve", *command[1:], exit_code=1)
        assert "there is no document 'catalog/eve'; use one of: project_state, " in run.errors
        assert "catalog/ada" in run.errors


def test_a_conflict_in_a_catalog_document_is_listed_and_decided(run: Any) -> None:
    """A conflict block in a catalog document, as another machine may leave it, is listed and can be accepted."""
    document = _document(run, "catalog/ada")
    with open_memory(run.folder) as memory:
        memory.catalog.store({"content": "Tea is at four."}, agent="ada")
        memory.write_catalog()
    text = f"{document.read_text()}\nMilk comes first.\n"
    conflict = Conflict(line=text.count("\n"), base="Milk.", machine="Milk comes last.\n", person="Milk comes first.\n")
    document.write_text(mark(Merged(text=text, conflicts=(conflict,))))
    (waiting,) = run.json("conflicts")
    assert (waiting["document"], waiting["path"]) == ("catalog/ada", str(document))
    assert (waiting["yours"], waiting["machine"]) == ("Milk comes first.\n", "Milk comes last.\n")
    assert f"conflict {waiting['id']} in line" in run("status")
    run("accept", waiting["id"])
    assert "\nMilk comes last.\n" in document.read_text()
    assert run("conflicts") == "no conflicts\n"
