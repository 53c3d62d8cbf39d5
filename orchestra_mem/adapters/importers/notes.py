"""Notes in markdown (of Obsidian, basic-memory, memsearch or any editor), and rule files: CLAUDE.md and AGENTS.md.

A file is one operation. Its sections stand in fields that are named by their lines, as in `line 12`, word for word.
What basic-memory calls an observation, `- [category] text`, is a field of its own: its category says what it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from orchestra_mem.adapters.importers.json_lines import time_or
from orchestra_mem.adapters.importers.source_file import SourceFile, digest
from orchestra_mem.core.documents.markdown import Block, split_blocks
from orchestra_mem.core.histories import HistoryOperation
from orchestra_mem.types import Json

RULE_FILES = frozenset({"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md"})
_MAX_BYTES = 4 << 20
# Neither a box to tick nor a time in a transcript.
_OBSERVATION = re.compile(r"\s*[-*+] \[(?P<category>[^\W\d][^\[\]()\n:]{1,40})\] (?P<text>\S.*)")
_FRONT_FIELD = re.compile(r"^(title|modified|updated|date|created):[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)


def read_note(source: SourceFile, *, rules: bool = False) -> Iterator[HistoryOperation]:
    """Read a note as an operation of type `note`; `rules` as one of that type, which weighs like a decision."""
    with source.path.open("rb") as stream:
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        return source.fault(1, f"is larger than {_MAX_BYTES >> 20} MB; no note is")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return source.fault(content.count(b"\n", 0, error.start) + 1, "is not UTF-8; save the file as UTF-8")
    if "\0" in text:
        return source.fault(text.count("\n", 0, text.index("\0")) + 1, "has a NUL in it, so it is no text")
    path, blocks = source.path.resolve(), split_blocks(text)
    told = dict(reversed(_FRONT_FIELD.findall(blocks[0].text if blocks and blocks[0].front else "")))
    heading = next((block.title for block in blocks if block.level == 1), "")
    title = path.name if rules else told.pop("title", "") or heading or path.stem
    when = next((told[name] for name in ("modified", "updated", "date", "created") if name in told), path.stem[:10])
    sections = dict(field for block in blocks for field in _fields(block))
    yield HistoryOperation(
        type="rules" if rules else "note", data={"title": title, "file": str(path)} | sections,
        timestamp=time_or(when, source.modified), idempotency_key=f"file:{digest(os.fsencode(path))}",
        version=digest(content), place=str(source.path), position=source.start + len(content), agent=source.agent,
        critical=rules or None,
    )  # fmt: skip
    return None


def _fields(block: Block) -> Iterator[tuple[str, Json]]:
    """Give a section's text, and each observation in it, with the line where it begins."""
    lines: list[str] = []
    begin, fenced = block.line, False
    for number, line in enumerate(block.text.split("\n"), block.line):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        found = None if fenced else _OBSERVATION.fullmatch(line)
        if found:
            yield from _text(begin, lines)
            yield f"line {number}", {found["category"]: found["text"].strip()}
            lines = []
        elif lines or line.strip():
            begin = begin if lines else number
            lines.append(line)
    yield from _text(begin, lines)


def _text(line: int, lines: list[str]) -> Iterator[tuple[str, Json]]:
    if text := "\n".join(lines).rstrip():
        yield f"line {line}", text
