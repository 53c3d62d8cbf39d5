"""Read a git repository's commits as operations, oldest first, from `git log` while it runs.

The output is NUL-separated, so nothing in a message or a path can be taken for anything else, and every setting of the
user's that would change the format is overridden. Patches come from a second `git log` beside it, in the same order:
there every line of a file's content has a sign in front, so that none can be taken for the beginning of a file.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from codecs import getincrementaldecoder
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import IO

from orchestra_mem.core.histories import History, HistoryOperation
from orchestra_mem.errors import HistoryError
from orchestra_mem.types import Json

_FIELDS = ("%H", "%at", "%ct", "%P", "%an", "%s", "%b")
_HASH = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FILE = re.compile(rb"\n?(\d+|-)\t(\d+|-)\t(.*)", re.DOTALL)
_LOG = (
    "log", "--reverse", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature",
    "--no-relative", "--encoding=UTF-8",
)  # fmt: skip
_COMMITS = (*_LOG, "-z", "--numstat", "--format=tformat:" + "%x00".join(_FIELDS))
_PATCHES = (
    *_LOG, "--patch", "--unified=3", "--inter-hunk-context=0", "--submodule=short", "--src-prefix=a/",
    "--dst-prefix=b/", "--format=tformat:%H",
)  # fmt: skip
# Larger files are not compared line by line: git would hold them in memory, for a patch that is clipped in any case.
_LARGE_FILE = "core.bigFileThreshold=10m"
_PATCH_CHARS = 1_500
# Enough for that many characters of any script.
_PATCH_BYTES = 4 * _PATCH_CHARS
_PATCH_TITLE = re.compile(
    rb'diff --git (?:"a/(?P<quoted>(?:[^"\\]|\\.)*)" .*|a/(?P<plain>.*) b/(?P=plain))\n?', re.DOTALL
)
# What git says of the file besides; the rest of a patch's head only repeats the path.
_PATCH_HEAD = (b"old mode", b"new mode", b"new file mode", b"deleted file mode", b"Binary files")
_KEY_PATH_CHARS = 120
_BLOCK_BYTES = 1 << 16
# Variables that would lead git to another repository than the one that is named: hooks run with them set.
_MISLEADING = re.compile(r"GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|COMMON_DIR|NAMESPACE|PREFIX|CONFIG.*)")


_FileLines = tuple[bytes, bytes, bytes]
"""Lines added, lines deleted, path, as git prints them."""


def open_git_history(
    path: str | Path, *, limit: int | None = None, agent: str | None = None, patches: bool = False
) -> History:
    """Open the history of the repository that `path` lies in, of its present branch.

    Args:
        path: a folder in a working tree, or a bare repository.
        limit: so many of the newest commits; all where not given.
        agent: who is named as the agent of each; a commit's author stands in its data.
        patches: before each commit, an operation `file_change` for each file that it changed, with the patch, clipped
            at a line's end.

    Raises:
        HistoryError: it is no repository, has no commits, or git is not installed. While reading: git failed.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise HistoryError(f"{folder} is no folder; name the folder of a git repository")
    if limit is not None and limit < 1:
        raise HistoryError(f"a limit of {limit} commits leaves nothing to read; give 1 or more")
    shallow = _ask(folder, "rev-parse", "--is-shallow-repository").strip() == "true"
    found = _run(folder, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    if found.returncode:
        raise HistoryError(f"{folder} is a git repository without commits; there is no history to read yet")
    # By its hash from here on: the branch may move while it is read.
    head = _text(found.stdout).strip()
    total = int(_ask(folder, "rev-list", "--count", head))
    note = f"{folder} is a shallow clone: the commits before its newest {total:,} are missing" if shallow else ""
    total = total if limit is None else min(total, limit)
    which = (head,) if limit is None else (f"--max-count={limit}", head)
    operations = (replace(operation, agent=agent) for operation in _operations(folder, which, with_patches=patches))
    return History(source=str(folder), operations=operations, total=total, unit="commits", note=note)


def _operations(folder: Path, which: tuple[str, ...], *, with_patches: bool) -> Iterator[HistoryOperation]:
    with closing(_patches(folder, which)) as patches:
        coming = next(patches, None) if with_patches else None
        for number, (fields, files) in enumerate(_records(_log_tokens(folder, which)), 1):
            commit = _operation(folder, number, fields, files)
            for file in files if with_patches else ():
                # One file has several patches where it became a link, or was one: gone first, then added.
                own: list[_Patch] = []
                while coming is not None and (coming.commit, coming.path) == (fields[0], file[2]):
                    own.append(coming)
                    coming = next(patches, None)
                yield _file_change(commit, fields[0].decode("ascii"), file, own)
            yield commit


def _log_tokens(folder: Path, which: tuple[str, ...]) -> Iterator[bytes]:
    """What `git log` tells of commits, NUL by NUL."""
    with _output(folder, *_COMMITS, *which, "--") as stream:
        rest = b""
        while block := stream.read(_BLOCK_BYTES):
            *tokens, rest = (rest + block).split(b"\0")
            yield from tokens
        if rest:
            yield rest


@contextmanager
def _output(folder: Path, *arguments: str) -> Iterator[IO[bytes]]:
    """What git prints, to be read to its end or not; no process stays behind."""
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            _command(folder, *arguments),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, env=_environment(),
        )  # fmt: skip
        assert process.stdout is not None
        try:
            yield process.stdout
            if process.wait() != 0:
                complaints.seek(0)
                raise HistoryError(f"git could not read the history of {folder}: {_words(complaints.read())}")
        finally:
            # Also where the reader stops half-way.
            process.stdout.close()
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


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
            raise HistoryError(f"git printed what is neither a commit nor a file: {token[:80]!r}")
    if fields:
        yield fields, files


@dataclass(slots=True)
class _Patch:
    """What git says of one file in one commit, no more of it kept than is shown."""

    commit: bytes
    path: bytes
    head: list[bytes] = field(default_factory=list)
    kept: bytearray = field(default_factory=bytearray)
    size: int = 0
    lines: int = 0

    def add(self, line: bytes) -> None:
        """Take a line."""
        if not self.lines and not line.startswith(b"@@ "):
            if line.startswith(_PATCH_HEAD):
                self.head.append(line)
            return
        self.lines += 1
        self.size += len(line)
        self.kept += line[: _PATCH_BYTES - len(self.kept)]

    def text(self, binary: bool) -> str:
        """The hunks, clipped; where there are none, what else became of the file."""
        if not self.lines:
            words = [_text(line).strip() for line in self.head]
            unshown = "(binary, or not to be compared)" if binary else "(too large to be compared)"
            return "\n".join(unshown if line.startswith("Binary files") else line for line in words)
        is_whole = self.size == len(self.kept)
        text = _text(bytes(self.kept), whole=is_whole).removesuffix("\n")
        if is_whole and len(text) <= _PATCH_CHARS:
            return text
        text = text[:_PATCH_CHARS]
        whole, _, _ = text.rpartition("\n")
        text = whole or text
        left = self.lines - text.count("\n") - 1
        return f"{text}\n… {left:,} more line{'' if left == 1 else 's'}"


def _patches(folder: Path, which: tuple[str, ...]) -> Generator[_Patch, None, None]:
    """The patches of all commits, file by file."""
    with _output(folder, "-c", _LARGE_FILE, *_PATCHES, *which, "--") as stream:
        commit, patch = b"", None
        for line in stream:
            title = _PATCH_TITLE.fullmatch(line)
            found = _HASH.fullmatch(line.rstrip(b"\n"))
            if patch is not None and (title or found):
                yield patch
                patch = None
            if title:
                patch = _Patch(commit, _unquoted(title))
            elif found:
                commit = found[0]
            elif patch is not None:
                patch.add(line)
        if patch is not None:
            yield patch


def _unquoted(title: re.Match[bytes]) -> bytes:
    """The path in a patch's first line; git quotes as C does."""
    quoted = title["quoted"]
    return title["plain"] if quoted is None else quoted.decode("unicode_escape").encode("latin-1")


def _file_change(commit: HistoryOperation, name: str, file: _FileLines, patches: list[_Patch]) -> HistoryOperation:
    added, deleted, path = _lines(file[0]), _lines(file[1]), os.fsdecode(file[2])
    counts = "binary" if added is None else f"+{added:,} -{deleted:,}"
    texts = [patch.text(binary=added is None) for patch in patches]
    data: dict[str, Json] = {
        "title": f"{path} ({counts})", "commit": name, "path": path, "added": added, "deleted": deleted,
        "patch": "\n".join(text for text in texts if text),
    }  # fmt: skip
    plain = path.isprintable() and len(path) <= _KEY_PATH_CHARS
    key = path if plain else blake2b(file[2], digest_size=16).hexdigest()
    return replace(
        commit, type="file_change", data=data, idempotency_key=f"git:{name}:{key}", place=f"{commit.place}, {path}"
    )


def _operation(folder: Path, number: int, fields: list[bytes], files: list[_FileLines]) -> HistoryOperation:
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
        timestamp=_time(fields[1]) or _time(fields[2]),
        idempotency_key=f"git:{commit}",
        place=f"{folder}, commit {commit[:12]}",
        position=number,
    )


def _text(raw: bytes, *, whole: bool = True) -> str:
    """A message: UTF-8, or where it is not, the encoding that old repositories were mostly written in.

    What is not whole may end within a character, which is left out.
    """
    try:
        return getincrementaldecoder("utf-8")().decode(raw, final=whole)
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _lines(count: bytes) -> int | None:
    """Lines added or deleted; None for a binary file."""
    return None if count == b"-" else int(count)


def _time(seconds: bytes) -> datetime | None:
    """The time of a commit; None where it has none that a calendar knows."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _command(folder: Path, *arguments: str) -> list[str]:
    # showRoot: the first commit's files; safe from the user's own settings as the options of `_LOG` are.
    return ["git", "-C", str(folder), "-c", "log.showRoot=true", "-c", "core.quotePath=false", *arguments]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not _MISLEADING.fullmatch(name)}
    # Never ask for a password, never fetch what a partial clone lacks, complain in English.
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            _command(folder, *arguments), stdin=subprocess.DEVNULL, capture_output=True, env=_environment(), check=False
        )
    except FileNotFoundError:
        raise HistoryError("git is not installed, or not on the PATH; its history cannot be read without it") from None
    except OSError as error:
        raise HistoryError(f"git cannot be run: {error.strerror or error}") from error


def _ask(folder: Path, *arguments: str) -> str:
    done = _run(folder, *arguments)
    if done.returncode == 0:
        return _text(done.stdout)
    words = _words(done.stderr)
    if "not a git repository" in words:
        raise HistoryError(f"{folder} is not in a git repository; name one, or make one there with `git init`")
    raise HistoryError(f"git could not read {folder}: {words}")


def _words(complaint: bytes) -> str:
    return " ".join(_text(complaint).split()) or "it did not say why"
