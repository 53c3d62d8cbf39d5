"""Imports of transcripts, ChatGPT exports, notes and rule files, with any content."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra_mem.adapters.importers import open_import
from orchestra_mem.adapters.importers.source_file import MAX_LINE_BYTES
from orchestra_mem.choices import ImportKind
from orchestra_mem.core.imported_history import HistoryFault, HistoryOperation
from tests.builders import cases

SAMPLES = Path(__file__).parent / "samples"
SESSION = "7b1f0c52-3d0e-4a6b-9a55-2f6a7f2f9d10"


@dataclass
class Found:
    """The result of reading a file or folder."""

    operations: list[HistoryOperation]
    left_out: dict[str, int]
    faults: list[str] = field(default_factory=list)

    @property
    def told(self) -> list[Any]:
        """The operations' types and data, without the fields of their origin."""
        origin = ("session_id", "project", "conversation")
        return [
            [each.type, {name: value for name, value in each.data.items() if name not in origin}]
            for each in self.operations
            if isinstance(each.data, dict)
        ]


def _read(path: Path, kind: ImportKind | None = None, **options: Any) -> Found:
    faults: list[HistoryFault] = []
    history = open_import(path, kind, on_fault=faults.append, **options)
    operations = list(history.operations)
    assert all(0 <= each.position <= history.total for each in operations)
    return Found(operations, dict(+history.left_out), [str(each) for each in faults])


def _sample(folder: Path, name: str, as_name: str) -> Path:
    (folder / as_name).parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(SAMPLES / name, folder / as_name))


# Transcripts


def test_a_session_of_claude_code_is_what_was_said_and_done() -> None:
    """Claude Code: a call and its output become one operation; the program's own lines are only counted."""
    found = _read(SAMPLES / "claude_code.jsonl")
    assert found.told == cases("told_of_claude_code")
    assert found.left_out == {"file-history-snapshot": 1, "internal line": 1, "thinking": 1, "image": 1}
    assert found.faults == []
    asked, ran = found.operations[1], found.operations[3]
    assert (asked.timestamp, asked.agent) == (datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC), "claude-code")
    assert asked.data == {**found.told[1][1], "session_id": SESSION, "project": "shop"}
    assert (ran.timestamp, ran.place) == (
        datetime(2026, 1, 5, 9, 0, 9, tzinfo=UTC), f"{SAMPLES / 'claude_code.jsonl'}:6",
    )  # fmt: skip


def test_a_rollout_of_codex_is_what_was_said_and_done() -> None:
    """Codex: duplicate entries are read once, and an output finds its call across other lines."""
    found = _read(SAMPLES / "codex.jsonl")
    assert found.told == cases("told_of_codex")
    kinds = ("message of role developer", "preamble", "reasoning", "world_state", "compacted")
    assert found.left_out == dict.fromkeys(kinds, 1)
    assert isinstance(found.operations[0].data, dict)
    assert found.operations[0].data["project"] == "shop"
    assert {each.agent for each in found.operations} == {"codex"}


def test_an_old_rollout_has_its_items_by_themselves() -> None:
    """Items of an old rollout have no times and take the session's time."""
    found = _read(SAMPLES / "codex_old.jsonl", agent="ana")
    assert found.told == cases("told_of_codex_old")
    assert {(each.timestamp, each.agent) for each in found.operations} == {
        (datetime(2025, 5, 7, 17, 24, 21, tzinfo=UTC), "ana")
    }


def test_a_message_has_the_same_key_in_every_file(tmp_path: Path) -> None:
    """A message has the same key in a resumed session, whose file repeats the earlier lines."""
    text = (SAMPLES / "claude_code.jsonl").read_text(encoding="utf-8")
    (tmp_path / "resumed.jsonl").write_text(text.replace(SESSION, "another"), encoding="utf-8")
    first, second = _read(SAMPLES / "claude_code.jsonl"), _read(tmp_path / "resumed.jsonl")
    keys = [[each.idempotency_key for each in found.operations[1:]] for found in (first, second)]
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == len(keys[0])


def test_a_faulty_line_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    """Broken, badly encoded or overlong lines are reported by number, and all other lines are read."""
    good = b'{"sessionId": "s", "type": "user", "uuid": "u%d", "message": {"content": "hello"}}'
    lines = [
        good % 1, b"{broken", b'{"a": "\xff"}', b"[1]", b"", b'{"type": "user", "message": 7}', b'{"type": []}',
        b'{"type": "assistant", "message": {"content": [null, 3, {"type": "tool_use"}, {"text": "x"}]}}',
        b'{"type": "user", "timestamp": "yesterday", "message": {}}', b'"' + b"x" * MAX_LINE_BYTES + b'"', good % 2,
    ]  # fmt: skip
    file = tmp_path / "s.jsonl"
    file.write_bytes(b"\n".join(lines))
    found = _read(file)
    hello = ["message", {"role": "user", "text": "hello"}]
    assert found.told == [hello, ["tool_use", {"tool": None, "input": None}], hello]
    assert found.faults == [
        f"{file}:2: is not JSON: Expecting property name enclosed in double quotes (column 2)",
        f"{file}:3: is not UTF-8; save the file as UTF-8",
        f'{file}:4: is not a JSON object; each line must be one, such as {{"type": "note", "data": "rain"}}',
        f"{file}:10: is longer than {MAX_LINE_BYTES >> 20} MB",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        "type payload message content text role id call_id uuid sessionId output arguments timestamp input".split()
    ), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
KINDS = st.sampled_from("user assistant summary response_item compacted session_meta message function_call".split())


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(["message", "payload", "content", "uuid"]), JSON), max_size=6),
       st.lists(KINDS, min_size=6, max_size=6), st.sampled_from(["sessionId", "instructions"]))  # fmt: skip
def test_any_json_can_be_read(tmp_path: Path, rows: list[dict[str, Any]], kinds: list[str], mark: str) -> None:
    """Reading any JSON neither fails nor gives two operations the same key, unless the file repeats a uuid."""
    first = {"id": "s", "timestamp": None, mark: "x"}
    lines = [first, *({"type": kind, **row} for kind, row in zip(kinds, rows, strict=False))]
    file = tmp_path / "s.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    keys = [each.idempotency_key for each in _read(file, ImportKind.TRANSCRIPTS).operations]
    uuids = [row["uuid"] for row in rows if isinstance(row.get("uuid"), str)]
    assert len(set(keys)) == len(keys) or len(set(uuids)) < len(uuids)


# ChatGPT


def test_a_conversation_is_the_branch_that_was_open_last() -> None:
    """Only the last open branch is read, or the newest one without `current_node`; left-out parts are counted."""
    found = _read(SAMPLES / "conversations.json")
    assert found.told == cases("told_of_conversations")
    assert found.left_out == {"message of another branch": 1, "thoughts": 1, "image_asset_pointer": 1, "faulty": 1}
    assert found.faults == [f"{SAMPLES / 'conversations.json'}:conversation 4: has no `mapping` with its messages"]
    first, tea = found.operations[0], found.operations[5]
    assert isinstance(first.data, dict)
    assert (first.data["conversation"], first.data["session_id"], first.agent) == ("Holiday", "68ab-1", "chatgpt")
    assert tea.timestamp == datetime.fromtimestamp(1767600100, UTC)  # the conversation's time


def _zip(folder: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(folder / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return folder / "export.zip"


def test_the_zip_gives_what_the_file_does(tmp_path: Path) -> None:
    """A zip, in one part or several, gives the file's operations with the same keys; other files are ignored."""
    content = (SAMPLES / "conversations.json").read_bytes().replace(b"68ab-1", b"").replace(b"1767600000.0", b"null")
    (tmp_path / "conversations.json").write_bytes(content)
    os.utime(tmp_path / "conversations.json", (1, 1))  # the first conversation is identified by its title only
    parts = {"user.json": b"{}", "x/conversations-000.json": content, "x/conversations-001.json": content}
    read = _read(_zip(tmp_path, **parts)), _read(tmp_path / "conversations.json")
    keys = [[each.idempotency_key for each in found.operations] for found in read]
    assert keys[0] == keys[1] * 2 != []
    assert read[0].operations[0].position < read[0].operations[-1].position


@pytest.mark.parametrize(
    ("content", "whole", "problem"),
    [
        (lambda text: text[: text.index("No end named")], 5, ":170: is not JSON: Unterminated string starting at"),
        (lambda _: '{"conversations": []}', 0, ":1: is not a list of conversations"),
        (lambda _: "", 0, ":1: is not a list of conversations"),
        pytest.param(
            lambda _: "[" * 200_000,
            0,
            ":1: has a number with too many digits, or is nested too deeply",
            marks=pytest.mark.nested,
        ),
        (lambda _: f"[{'1' * 5_000}]", 0, ":1: has a number with too many digits, or is nested too deeply"),
    ],
)
def test_a_damaged_export_is_read_up_to_the_damage(
    tmp_path: Path, content: Callable[[str], str], whole: int, problem: str
) -> None:
    """A damaged export has one fault that names the damage; of broken JSON the messages before it are read."""
    file = tmp_path / "conversations.json"
    file.write_bytes(content((SAMPLES / "conversations.json").read_text()).encode("latin-1"))
    found = _read(file)
    assert len(found.operations) == whole
    (fault,) = found.faults
    assert problem in fault
    assert fault.endswith("; the rest is skipped")


def test_bytes_that_are_not_utf8_cost_no_message(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are read as `�`, counted, and reported with the first line; all messages are read."""
    text = (SAMPLES / "conversations.json").read_bytes()
    file = tmp_path / "conversations.json"
    file.write_bytes(text.replace(b"Which tea?", b"Which th\xe9, \xe0 deux?"))
    whole, found = _read(SAMPLES / "conversations.json"), _read(file)
    said = json.loads(json.dumps(whole.told).replace("Which tea?", "Which th\\ufffd, \\ufffd deux?"))
    assert found.told == said != whole.told
    line = text[: text.index(b"Which tea?")].count(b"\n") + 1
    assert found.faults[0] == f"{file}:{line}: has bytes that are not UTF-8; all of them are read as �"
    assert found.left_out["byte that is not UTF-8"] == 2


def test_a_zip_that_unpacks_to_far_more_than_it_should_is_refused(tmp_path: Path) -> None:
    """A zip that unpacks to over 200 times its size, or is damaged inside, is refused."""
    bomb = _zip(tmp_path, **{"conversations.json": b"[" + b" " * 30_000_000})
    found = _read(bomb)
    assert found.operations == []
    assert found.faults == [f"{bomb}:conversations.json: is skipped: it unpacks to over 200 times its size"]
    noise = json.dumps([{"mapping": {}, "title": os.urandom(9_000).hex()}]).encode()
    whole = _zip(tmp_path, **{"conversations.json": noise}).read_bytes()
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(whole[:2_000] + b"\0" * 200 + whole[2_200:])
    (fault,) = _read(damaged).faults
    assert fault.startswith(f"{damaged}:archive: cannot be unpacked: ")


# Notes and rule files


def test_a_note_is_its_sections_by_their_lines(tmp_path: Path) -> None:
    """A note keeps its sections word for word by line; observations keep their category; front matter dates it."""
    file = _sample(tmp_path, "basic_memory.md", "store.md")
    found = _read(file)
    assert found.told == [
        ["note", {
            "title": "Store of the shop", "file": str(file),
            "line 1": "---\ntitle: Store of the shop\ntype: note\ntags: [db, cache]\ncreated: 2026-01-02\n---",
            "line 8": "# Store\n\nAll orders stand in one store, see [[Order Flow|orders]].",
            "line 12": "## Observations",
            "line 14": {"decision": "Use SQLite as the one store of orders #db (simple)"},
            "line 15": {"tech": "The cache holds 10,000 entries #cache"},
            "line 16": "- [00:12] this is a time in a transcript\n- [ ] Ask Ana about the licence of the driver\n\n"
                       "```\n- [decision] code is no observation\n```",
            "line 23": "## Relations\n\n- implements [[Search Design]]",
        }],
    ]  # fmt: skip
    (note,) = found.operations
    assert (note.timestamp, note.agent, note.critical) == (datetime(2026, 1, 2, tzinfo=UTC), None, None)


def test_a_days_note_is_of_that_day_and_another_of_its_files(tmp_path: Path) -> None:
    """A note named by a day has that day's time; any other note has its file's time."""
    (tmp_path / "2026-02-03.md").write_text("Rain.")
    (tmp_path / "sun.md").write_text("Sun.")
    os.utime(tmp_path / "sun.md", (1767600000, 1767600000))
    found = _read(tmp_path)
    assert [data["title"] for _, data in found.told] == ["sun", "2026-02-03"]
    assert [each.timestamp for each in found.operations] == [
        datetime.fromtimestamp(1767600000, UTC), datetime(2026, 2, 3, tzinfo=UTC),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md"])
def test_a_rule_file_is_critical_and_its_sections_keep_their_lines(tmp_path: Path, name: str) -> None:
    """A rule file is one critical operation, with its sections by line."""
    file = _sample(tmp_path, "rules.md", name)
    found = _read(file)
    assert found.told == [
        ["rules", {
            "title": name, "file": str(file), "line 1": "# Shop\n\nA web shop in Python.",
            "line 5": "## Commands\n\n- `make test` runs the tests",
            "line 9": "## Git\n\n- Never push to main\n- Commit messages are in the imperative mood",
        }],
    ]  # fmt: skip
    assert found.operations[0].critical


def test_what_is_no_text_is_told_by_its_line(tmp_path: Path) -> None:
    """Files that are not text are faults with their line; the other notes are read."""
    (tmp_path / "good.md").write_bytes(b"\xef\xbb\xbfFine\r\nday")
    (tmp_path / "latin.md").write_bytes("eins\nzwei für drei".encode("latin-1"))
    (tmp_path / "binary.md").write_bytes(b"a\nb\nc\0d")
    (tmp_path / "large.md").write_bytes(b"word " * 1_000_000)
    found = _read(tmp_path)
    assert [data["line 1"] for _, data in found.told] == ["Fine\nday"]
    assert sorted(found.faults) == [
        f"{tmp_path / 'binary.md'}:3: contains a NUL byte, so it is not text",
        f"{tmp_path / 'large.md'}:1: is larger than 4 MB, the limit for a note",
        f"{tmp_path / 'latin.md'}:2: is not UTF-8; save the file as UTF-8",
    ]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("-*[]()#` \n\ta[b]:7é"), max_size=80))
def test_no_word_of_a_note_is_lost(tmp_path: Path, text: str) -> None:
    """A note's fields hold all of its text in order, except for the brackets of observations."""
    file = tmp_path / "n.md"
    file.write_text(text, encoding="utf-8", newline="")
    ((_, data),) = _read(file).told
    parts = [part for name, part in data.items() if name.startswith("line ")]
    kept = "".join(part if isinstance(part, str) else "".join(next(iter(part.items()))) for part in parts)
    marks = str.maketrans("", "", "-*[] \n\t")
    assert kept.translate(marks) == text.translate(marks)


# Folders


def test_in_a_folder_each_file_is_taken_for_what_it_is(tmp_path: Path) -> None:
    """Files of a folder are read by their kind, oldest first; links are skipped, unreadable paths are faults."""
    names = {"claude_code.jsonl": "projects/p/a.jsonl", "codex.jsonl": "sessions/2026/r.jsonl",
             "conversations.json": "chat/conversations.json", "basic_memory.md": "vault/store.md",
             "rules.md": "vault/CLAUDE.md"}  # fmt: skip
    for age, (name, place) in enumerate(names.items()):
        os.utime(_sample(tmp_path, name, place), (1767600000 - age, 1767600000 - age))
    (tmp_path / "other.jsonl").write_text('{"type": "note"}\n')
    (tmp_path / "data.bin").write_bytes(b"\0" * 99)
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian" / "plugin.md").write_text("Not mine.")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "AGENTS.md").symlink_to(tmp_path / "vault" / "CLAUDE.md")
    os.mkfifo(tmp_path / "pipe.md")
    whole = _zip(tmp_path, **{"conversations.json": b"[]"}).read_bytes()
    head = whole.index(b"PK\1\2")
    (tmp_path / "version.zip").write_bytes(whole[: head + 6] + b"\xff" + whole[head + 7 :])
    bad_name = b"\0\x08" + whole[head + 10 :].replace(b"conv", b"\xff\xff\xff\xff")  # flagged as UTF-8
    (tmp_path / "name.zip").write_bytes(whole[: head + 8] + bad_name)
    deep = tmp_path.joinpath(*["d" * 200] * ((3_900 - len(str(tmp_path))) // 201))
    deep.mkdir(parents=True)
    descriptor = os.open(deep, os.O_RDONLY)
    os.close(os.open("n" * 250, os.O_CREAT, dir_fd=descriptor))  # its whole path is longer than the system takes
    os.close(descriptor)
    found = _read(tmp_path)
    assert f"{deep / ('n' * 250)}: cannot be read: File name too long" in found.faults
    order = list(dict.fromkeys(f"{each.agent} {each.type}".replace("None ", "") for each in found.operations))
    assert order == [
        "rules", "note", "chatgpt message", "chatgpt tool_use", "codex message", "codex tool_use",
        "codex session_summary", "claude-code session_summary", "claude-code message", "claude-code tool_use",
    ]  # fmt: skip
    assert found.left_out["symbolic link"] == 2
    assert {each.type for each in _read(tmp_path, ImportKind.RULES).operations} == {"rules"}
    assert _read(tmp_path / "vault" / "store.md", ImportKind.RULES).operations[0].type == "rules"
