"""JSON lines become operations: no data is lost, and an error names its line."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.adapters.importers.jsonl_history import open_jsonl_history
from orchestra_mem.core.imported_history import HistoryOperation
from orchestra_mem.errors import HistoryError


def _write(folder: Path, *lines: str | bytes) -> Path:
    file = folder / "log.jsonl"
    file.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return file


def _read(file: Path, **options: Any) -> list[HistoryOperation]:
    return list(open_jsonl_history(file, on_fault=lambda fault: pytest.fail(str(fault)), **options).operations)


def test_each_key_is_taken_under_both_of_its_names(tmp_path: Path) -> None:
    """`operation_type`, `operation_data` and `tokens_used` mean `type`, `data` and `tokens`."""
    rest = {"agent": "bob", "critical": True, "timestamp": "2025-01-15T10:00:00+02:00", "idempotency_key": "k1"}
    file = _write(
        tmp_path,
        json.dumps({"type": "talk", "data": {"text": "hi"}, "tokens": 5, **rest}),
        json.dumps({"operation_type": "talk", "operation_data": {"text": "hi"}, "tokens_used": 5, **rest}),
    )
    first, second = _read(file)
    expected = ("talk", {"text": "hi"}, 5, "bob", True, datetime(2025, 1, 15, 8, tzinfo=UTC), "k1")
    for found in (first, second):
        shown = (found.type, found.data, found.tokens, found.agent, found.critical, found.timestamp)
        assert (*shown, found.idempotency_key) == expected
    assert (first.place, second.place) == (f"{file}:1", f"{file}:2")
    assert second.position == file.stat().st_size


def test_an_object_of_another_shape_is_the_data_itself(tmp_path: Path) -> None:
    """Fields of an operation are taken out of another object; the rest, also a `data` among others, is its data."""
    file = _write(
        tmp_path, '{"speaker": "Ann", "text": "hi"}', '{"type": "talk", "text": "hi", "tokens": 3}',
        '{"data": 1, "level": "info"}', '{"id": 7, "session": "s", "type": "talk", "data": 1}', "{}",
    )  # fmt: skip
    found = _read(file, operation_type="chat")
    assert [(each.type, each.data) for each in found] == [
        ("chat", {"speaker": "Ann", "text": "hi"}), ("talk", {"text": "hi"}), ("chat", {"data": 1, "level": "info"}),
        ("talk", 1), ("chat", {}),
    ]  # fmt: skip


def test_a_path_that_the_system_refuses_is_an_error_in_words() -> None:
    """A file that cannot be opened is an error with the system's reason."""
    with pytest.raises(HistoryError, match=r"^n+ cannot be read: File name too long$"):
        _read(Path("n" * 300))


def test_keys_tell_lines_and_files_apart_and_stay_as_a_file_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal lines have different keys; a key depends on the file, not its name, and stays as the file grows."""
    lines = ['{"text": "yes"}'] * 2
    file, other, link = _write(tmp_path, *lines), tmp_path / "other.jsonl", tmp_path / "link.jsonl"
    other.write_bytes(file.read_bytes())
    link.symlink_to(file)
    keys = [found.idempotency_key for path in (file, other) for found in _read(path)]
    assert len(set(keys)) == 4
    assert all(key.startswith("jsonl:") for key in keys)
    _write(tmp_path, *lines, '{"text": "more"}')
    monkeypatch.chdir(tmp_path)
    for name in (file, link, Path("log.jsonl")):
        *same, more = (found.idempotency_key for found in _read(name))
        assert (same, more in keys) == (keys[:2], False)


def test_each_reading_of_a_pipe_has_keys_of_its_own(tmp_path: Path) -> None:
    """Each reading of a pipe has new keys, since earlier input cannot be told from later input."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    keys = []
    for _ in range(2):
        writer = threading.Thread(target=pipe.write_text, args=('{"text": "yes"}\n',), daemon=True)
        writer.start()
        keys += [found.idempotency_key for found in _read(pipe)]
        writer.join(10)
    assert len(set(keys)) == 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values=st.lists(_JSON, max_size=8))
def test_any_json_value_comes_back_equal(values: list[object], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any JSON value round-trips as the data of a line, including lone surrogates and NULs."""
    folder = tmp_path_factory.mktemp("any")
    file = _write(folder, *[json.dumps({"type": "x", "data": value}) for value in values])
    assert [found.data for found in _read(file)] == values
