"""The export of a ChatGPT account: `conversations.json` or several numbered files, unpacked or in the zip archive.

Each conversation is a tree, since a question can be asked again and an answer regenerated. Only the branch that was
open last is imported; the messages of other branches are counted.
"""

from __future__ import annotations

import json
import lzma
import re
import zipfile
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from orchestra_mem.adapters.importers.source_file import SourceFile, digest, kind_of, text_or, time_or
from orchestra_mem.core.imported_history import HistoryOperation
from orchestra_mem.types import Json

CONVERSATIONS = re.compile(r"conversations(?:-\d+)?\.json")
_MAX_CONVERSATION_CHARS = 32 << 20
_BLOCK_BYTES = 1 << 18
_MOST_UNPACKED = 200  # times the packed size: JSON reaches 30, a zip bomb 1,000
_FIRST = re.compile(r"\ufeff?\s*\[\s*(?P<end>\])?")
_NEXT = re.compile(r"\s*(?:,\s*|(?P<end>\]))")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what `surrogateescape` makes of bytes that are not UTF-8
_SPOKEN = frozenset({"text", "multimodal_text"})
# All that `zipfile` raises over a damaged or unusual archive.
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)
_USED = frozenset({"code", "execution_output", "tether_browsing_display", "tether_quote", "system_error"})


def holds_conversations(path: Path) -> bool:
    """Check whether a file is the zip archive of an export."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(_members(archive))
    except (*_DAMAGED, OSError):
        return False


def read_export(source: SourceFile) -> Iterator[HistoryOperation]:
    """Yield the messages and tool uses of all conversations, each from its first message to its last."""
    if not zipfile.is_zipfile(source.path):
        with source.path.open("rb") as stream:
            yield from _read(source, "", stream, 1.0)
        return
    packed = source.path.stat().st_size
    try:
        with zipfile.ZipFile(source.path) as archive:
            members, start = _members(archive), source.start
            share = packed / max(1, sum(member.file_size for member in members))
            for member in members:
                if member.file_size > _MOST_UNPACKED * min(member.compress_size, packed):
                    source.fault(member.filename, f"is skipped: it unpacks to over {_MOST_UNPACKED} times its size")
                    continue
                with archive.open(member) as unpacked:
                    yield from _read(replace(source, start=start), f"{member.filename}:", unpacked, share)
                start += int(member.file_size * share)
    except _DAMAGED as error:
        source.fault("archive", f"cannot be unpacked: {error}")


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    found = [each for each in archive.infolist() if CONVERSATIONS.fullmatch(each.filename.rpartition("/")[2])]
    return sorted(found, key=lambda each: each.filename)


def _read(source: SourceFile, name: str, stream: IO[bytes], share: float) -> Iterator[HistoryOperation]:
    for number, item in enumerate(_items(source, name, stream), 1):
        place = f"{name}conversation {number}"
        if not isinstance(item, dict) or not isinstance(item.get("mapping"), dict):
            source.fault(place, "has no `mapping` with its messages")
            continue
        for found in _conversation(source, item):
            yield replace(found, place=f"{source.path}:{place}", position=source.start + int(stream.tell() * share))


def _items(source: SourceFile, name: str, stream: IO[bytes]) -> Iterator[Json]:
    """Yield the items of a JSON array one by one, with little more in memory than the longest item."""
    decoder, decode = json.JSONDecoder(), getincrementaldecoder("utf-8")("surrogateescape").decode
    text, at, line, separator, is_reported = "", 0, 1, _FIRST, False
    while True:
        problem, where = "is not a list of conversations", at
        begin = separator.match(text, at)
        if begin and begin["end"]:
            return None
        try:
            if begin:
                item, at = decoder.raw_decode(text, begin.end())
                separator = _NEXT
                yield item
                continue
        except json.JSONDecodeError as error:
            problem, where = f"is not JSON: {error.msg}", error.pos
        except (ValueError, RecursionError):
            problem = "has a number with too many digits, or is nested too deeply"
        block = stream.read(max(_BLOCK_BYTES, len(text) - at))
        if not block or len(text) - at > _MAX_CONVERSATION_CHARS:
            line += text.count("\n", 0, where)
            return source.fault(f"{name}{line}", f"{problem}; the rest is skipped")
        line += text.count("\n", 0, at)
        text, at = text[at:] + decode(block), 0
        if (first := _NOT_UTF8.search(text)) and not is_reported:
            is_reported = True
            where = line + text.count("\n", 0, first.start())
            source.fault(f"{name}{where}", "has bytes that are not UTF-8; all of them are read as �")
        text, count = _NOT_UTF8.subn("�", text)
        source.left_out["byte that is not UTF-8"] += count


def _conversation(source: SourceFile, item: dict[str, Json]) -> Iterator[HistoryOperation]:
    mapping, title = item["mapping"], text_or(item.get("title"), "")
    assert isinstance(mapping, dict)
    begun = time_or(item.get("create_time"), source.modified)
    own = text_or(item.get("conversation_id"), text_or(item.get("id"), f"{title} {item.get('create_time')}"))
    branch = _branch(mapping, item.get("current_node"))
    source.left_out["message of another branch"] += len(mapping.keys() - branch.keys())
    for node, message in reversed(branch.items()):
        data = _data(message, source)
        if data:
            yield HistoryOperation(
                type="tool_use" if "tool" in data else "message",
                data=data | {"conversation": title, "session_id": own},
                timestamp=time_or(message.get("create_time"), begun),
                idempotency_key=f"chatgpt:{digest(f'{own}:{node}')}", place="", position=0,
                agent=source.agent or "chatgpt",
            )  # fmt: skip


def _branch(mapping: dict[str, Json], leaf: Json) -> dict[str, dict[str, Json]]:
    """Return the messages from a leaf up to the root, by node id; if the leaf is unknown, from the last node."""
    branch: dict[str, dict[str, Json]] = {}
    node: Json = leaf if isinstance(leaf, str) and leaf in mapping else next(reversed(mapping), None)
    while isinstance(node, str) and node in mapping and node not in branch:
        found = mapping[node]
        message = found.get("message") if isinstance(found, dict) else None
        branch[node] = message if isinstance(message, dict) else {}
        node = found.get("parent") if isinstance(found, dict) else None
    return branch


def _data(message: dict[str, Json], source: SourceFile) -> dict[str, Json]:
    """Return the operation's data for a message; empty if the message is blank, hidden, or of a skipped kind."""
    author, content = message.get("author"), message.get("content")
    if not isinstance(author, dict) or not isinstance(content, dict):
        return {}
    role, kind, to = author.get("role"), kind_of(content), text_or(message.get("recipient"), "all")
    text = source.text_of(content.get("parts") or content.get("text") or content.get("result"))
    about = message.get("metadata")
    if not text.strip():
        return {}
    if role == "tool":
        return {"tool": text_or(author.get("name"), "tool"), "output": text}
    if isinstance(about, dict) and about.get("is_visually_hidden_from_conversation"):
        source.left_out["hidden message"] += 1
    elif role == "assistant" and (to != "all" or kind in _USED):
        return {"tool": to if to != "all" else kind, "input": text}
    elif role in ("user", "assistant") and kind in _SPOKEN:
        return {"role": role, "text": text}
    else:
        source.left_out[f"message of role {role}" if role == "system" else kind] += 1
    return {}
