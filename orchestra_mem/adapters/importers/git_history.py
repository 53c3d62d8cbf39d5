"""Read a git repository's commits as operations, oldest first, from the output of `git log` while it runs.

The output is NUL-separated, so that no text in a message or path can be mistaken for another field. All settings of the
user that would change the format are overridden.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from orchestra_mem.core.imported_history import History, HistoryOperation
from orchestra_mem.errors import HistoryError
from orchestra_mem.types import Json

_FIELDS = ("%H", "%at", "%ct", "%P", "%an", "%s", "%b")
_HASH = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FILE = re.compile(rb"\n?(\d+|-)\t(\d+|-)\t(.*)", re.DOTALL)
_LOG = (
    "log", "--reverse", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature",
    "--no-relative", "--encoding=UTF-8", "-z", "--numstat", "--format=tformat:" + "%x00".join(_FIELDS),
)  # fmt: skip
_BLOCK_BYTES = 1 << 16
# Variables that would make git read another repository than the given one; they are set in git hooks.
_MISLEADING = re.compile(r"GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|COMMON_DIR|NAMESPACE|PREFIX|CONFIG.*)")


_FileLines = tuple[bytes, bytes, bytes]
"""Lines added, lines deleted, path, as git prints them."""


def open_git_history(path: str | Path, *, limit: int | None = None, agent: str | None = None) -> History:
    """Open the history of the current branch in the repository that contains `path`.

    Args:
        path: A folder in a working tree, or a bare repository.
        limit: Read only this many of the newest commits; None for all.
        agent: Agent to record the operations under. The author of a commit is in the operation's data.

    Raises:
        HistoryError: There is no repository, it has no commits, or git is not installed. While reading: git failed.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise HistoryError(f"{folder} is not a folder; give the folder of a git repository")
    if limit is not None and limit < 1:
        raise HistoryError(f"limit is {limit}: must be at least 1")
    shallow = _ask(folder, "rev-parse", "--is-shallow-repository").strip() == "true"
    found = _run(folder, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    if found.returncode:
        raise HistoryError(f"{folder} is a git repository without commits; there is no history to read yet")
    # From here on, the commit's hash is used, as the branch may move meanwhile.
    head = _text(found.stdout).strip()
    total = int(_ask(folder, "rev-list", "--count", head))
    note = f"{folder} is a shallow clone; commits in it: {total:,}" if shallow else ""
    total = total if limit is None else min(total, limit)
    which = (head,) if limit is None else (f"--max-count={limit}", head)
    operations = (
        _operation(folder, number, fields, files, agent)
        for number, (fields, files) in enumerate(_records(_log_tokens(folder, which)), 1)
    )
    return History(source=str(folder), operations=operations, total=total, unit="commits", note=note)


def _log_tokens(folder: Path, which: tuple[str, ...]) -> Iterator[bytes]:
    """Yield the NUL-separated pieces of the output of `git log`, which need not be read to its end."""
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            _command(folder, *_LOG, *which, "--"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, env=_environment(),
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        try:
            rest = b""
            while block := process.stdout.read(_BLOCK_BYTES):
                *tokens, rest = (rest + block).split(b"\0")
                yield from tokens
            if rest:
                yield rest
            if process.wait() != 0:
                complaints.seek(0)
                raise HistoryError(f"git could not read the history of {folder}: {_words(complaints.read())}")
        finally:
            process.kill()  # no effect if it has ended


def _records(tokens: Iterator[bytes]) -> Iterator[tuple[list[bytes], list[_FileLines]]]:
    """Group tokens by commit: the fields of `_FIELDS`, then a token for each file."""
    fields: list[bytes] = []
    files: list[_FileLines] = []
    for token in tokens:
        if fields and len(fields) < len(_FIELDS):
            fields.append(token)
        elif _HASH.fullmatch(token):
            if fields:
                yield fields, files
            fields, files = [token], []
        elif found := _FILE.fullmatch(token):
            files.append((found[1], found[2], found[3]))
        elif token.strip():
            raise HistoryError(f"git printed something that is neither a commit nor a file: {token[:80]!r}")
    if fields:
        yield fields, files


def _operation(
    folder: Path, number: int, fields: list[bytes], files: list[_FileLines], agent: str | None
) -> HistoryOperation:
    commit = fields[0].decode("ascii")
    author, subject, body = (_text(field).strip() for field in fields[4:7])
    changed: list[Json] = [
        {"path": os.fsdecode(path), "added": _lines(added), "deleted": _lines(deleted)}
        for added, deleted, path in files
    ]
    data: dict[str, Json] = {"hash": commit, "subject": subject, "body": body, "author": author}
    if len(fields[3].split()) > 1:
        data["merge_of"] = [parent.decode("ascii") for parent in fields[3].split()]
    return HistoryOperation(
        type="commit",
        data={**data, "files": changed, "files_changed": len(changed)},
        agent=agent,
        timestamp=_time(fields[1]) or _time(fields[2]),
        idempotency_key=f"git:{commit}",
        place=f"{folder}, commit {commit[:12]}",
        position=number,
    )


def _text(raw: bytes) -> str:
    """Decode text of a commit as UTF-8, or else as Latin-1, the most common encoding in old repositories."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _lines(count: bytes) -> int | None:
    """Parse a number of added or deleted lines; None for a binary file."""
    return None if count == b"-" else int(count)


def _time(seconds: bytes) -> datetime | None:
    """Convert the time of a commit; None if it is outside the calendar."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _command(folder: Path, *arguments: str) -> list[str]:
    # showRoot lists the first commit's files. Like the options of `_LOG`, these override the user's settings.
    return ["git", "-C", str(folder), "-c", "log.showRoot=true", "-c", "core.quotePath=false", *arguments]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not _MISLEADING.fullmatch(name)}
    # Never ask for a password, never fetch objects that a partial clone lacks, report errors in English.
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            _command(folder, *arguments), stdin=subprocess.DEVNULL, capture_output=True, env=_environment(), check=False
        )
    except FileNotFoundError:
        raise HistoryError("git was not found: install it, or add it to the PATH") from None
    except OSError as error:
        raise HistoryError(f"git cannot be run: {error.strerror or error}") from error


def _ask(folder: Path, *arguments: str) -> str:
    done = _run(folder, *arguments)
    if done.returncode == 0:
        return _text(done.stdout)
    words = _words(done.stderr)
    if "not a git repository" in words:
        raise HistoryError(
            f"{folder} is not in a git repository; give another folder, or create a repository with `git init`"
        )
    raise HistoryError(f"git could not read {folder}: {words}")


def _words(complaint: bytes) -> str:
    return " ".join(_text(complaint).split()) or "no reason given"
