"""Files of coding agents: transcripts of Claude Code and rollouts of Codex in JSON Lines, notes, and rule files.

Both formats are internal to their programs and change between versions, so unknown content is only counted. A tool call
and its output become one operation, which is yielded when the output is read.

Notes are markdown files (of Obsidian, basic-memory, memsearch or any editor); rule files are CLAUDE.md and AGENTS.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from orchestra_mem.adapters.importers.source_file import (
    BadLineError,
    SourceFile,
    digest,
    kind_of,
    parse_object,
    read_lines,
    text_or,
    time_or,
)
from orchestra_mem.core.documents.markdown import Block, split_blocks
from orchestra_mem.core.imported_history import HistoryOperation
from orchestra_mem.types import Json

_SNIFFED_LINES = 50
_CODEX_LINES = frozenset("session_meta turn_context response_item event_msg compacted".split())
_CODEX_CALLS = frozenset("function_call custom_tool_call local_shell_call web_search_call".split())
# Texts that Codex puts at the beginning of a session, as messages of the user.
_PREAMBLE = ("<environment_context>", "<user_instructions>", "<permissions instructions>", "# AGENTS.md instructions")


class _Step(NamedTuple):
    """A message, tool call or output. `key`: Its id. `call`: Id of a call. `answers`: Id of an output's call."""

    key: str
    data: dict[str, Json]
    type: str = "message"
    call: str = ""
    answers: str = ""


@dataclass(slots=True)
class _Session:
    """State of a session up to the current line. `key`: Id of the current line."""

    source: SourceFile
    name: str
    folder: str = ""
    key: str = ""

    def note(self, name: Json, folder: Json) -> None:
        self.name, self.folder = text_or(name, self.name), text_or(folder, self.folder)

    @property
    def origin(self) -> dict[str, Json]:
        # Accepts both Windows and POSIX paths, as a transcript may come from another machine.
        project = PureWindowsPath(self.folder).name
        return {"session_id": self.name, "project": project} if project else {"session_id": self.name}


def agent_of(path: Path) -> str:
    """Detect by a file's first lines which agent wrote the transcript; empty if no known agent did."""
    with path.open("rb") as stream:
        for _, line, _ in islice(read_lines(stream), _SNIFFED_LINES):
            try:
                value = parse_object(line)
            except BadLineError:
                continue
            if "type" in value and ("sessionId" in value or "leafUuid" in value):
                return "claude-code"
            if kind_of(value) in _CODEX_LINES or {"id", "timestamp", "instructions"} <= value.keys():
                return "codex"
    return ""


def read_transcript(source: SourceFile) -> Iterator[HistoryOperation]:
    """Yield a session's operations, oldest first, then calls without output; a later import adds them with output."""
    waiting: dict[str, tuple[dict[str, Json], HistoryOperation]] = {}
    for step, origin, found in _found(source):
        if step.call:
            waiting[step.call] = step.data, found
        elif step.answers in waiting:
            call, _ = waiting.pop(step.answers)
            yield replace(found, data=call | step.data | origin)
        else:
            yield found
    for _, found in waiting.values():
        yield found


def _found(source: SourceFile) -> Iterator[tuple[_Step, dict[str, Json], HistoryOperation]]:
    agent, session, time = agent_of(source.path), _Session(source, source.path.stem), source.modified
    with source.path.open("rb") as stream:
        for number, line, position in read_lines(stream):
            try:
                value = parse_object(line)
            except BadLineError as bad:
                source.fault(number, str(bad))
                continue
            time = time_or(value.get("timestamp"), time)
            session.key = f"{session.name}:{number}:{digest(line or b'')}"
            for step in _of_codex(value, session) if agent == "codex" else _of_claude_code(value, session):
                yield step, session.origin, HistoryOperation(
                    type=step.type, data=step.data | session.origin, timestamp=time,
                    idempotency_key=f"{agent}:{digest(step.key)}", place=f"{source.path}:{number}",
                    position=source.start + position, agent=source.agent or agent or None,
                )  # fmt: skip


def _of_claude_code(line: dict[str, Json], session: _Session) -> Iterator[_Step]:
    """Yield the steps in a line of `~/.claude/projects/*/*.jsonl`; the output of a tool is in a line of the user."""
    kind, message = kind_of(line), line.get("message")
    session.note(line.get("sessionId"), line.get("cwd"))
    if kind == "summary" and line.get("summary"):
        yield _Step(session.key, {"role": "assistant", "summary": line.get("summary")}, "session_summary")
    elif kind not in ("user", "assistant") or not isinstance(message, dict) or line.get("isMeta"):
        session.source.left_out[kind if kind not in ("user", "assistant") else "internal line"] += 1
    else:
        # The prompt of a subagent comes from the agent, and the summary of a compacted conversation from a model.
        of_person = kind == "user" and not line.get("isSidechain") and not line.get("isCompactSummary")
        content, key = message.get("content"), text_or(line.get("uuid"), session.key)
        for number, block in enumerate(content if isinstance(content, list) else [content]):
            yield from _block(block, f"{key}:{number}", "user" if of_person else "assistant", session.source)


def _block(block: Json, key: str, role: str, source: SourceFile) -> Iterator[_Step]:
    kind = kind_of(block)
    if isinstance(block, str) or kind == "text":
        if (text := source.text_of(block)).strip():
            yield _Step(key, {"role": role, "text": text})
    elif isinstance(block, dict) and kind == "tool_use":
        data = {"tool": block.get("name"), "input": block.get("input")}
        yield _Step(key, data, "tool_use", call=text_or(block.get("id"), ""))
    elif isinstance(block, dict) and kind == "tool_result":
        output: dict[str, Json] = {"output": source.text_of(block.get("content"))}
        failed: dict[str, Json] = {"is_error": True} if block.get("is_error") else {}
        yield _Step(key, output | failed, "tool_use", answers=text_or(block.get("tool_use_id"), ""))
    else:
        source.left_out[kind] += 1


def _of_codex(line: dict[str, Json], session: _Session) -> Iterator[_Step]:
    """Yield the steps in a line of `~/.codex/sessions/**/rollout-*.jsonl`.

    An `event_msg` repeats a `response_item`. In older files, the items have no `payload` around them, and the first
    line has no type.
    """
    kind, item = kind_of(line), line.get("payload", line)
    if not isinstance(item, dict):
        session.source.left_out[kind] += 1
    elif kind in ("session_meta", "turn_context") or "instructions" in line:
        # A forked session has the header of the original session after its own; only the first header counts.
        session.note("" if session.folder else item.get("id"), item.get("cwd"))
    elif kind == "compacted" and item.get("message"):
        yield _Step(session.key, {"role": "assistant", "summary": item.get("message")}, "session_summary")
    elif kind == "response_item" or item is line:
        yield from _item(item, session.key, session.source)
    elif kind != "event_msg":
        session.source.left_out[kind] += 1


def _item(item: dict[str, Json], key: str, source: SourceFile) -> Iterator[_Step]:
    kind, call = kind_of(item), text_or(item.get("call_id"), "")
    if kind == "message" and item.get("role") in ("user", "assistant"):
        text = source.text_of(item.get("content"))
        if text.lstrip().startswith(_PREAMBLE):
            source.left_out["preamble"] += 1
        elif text.strip():
            yield _Step(key, {"role": item["role"], "text": text})
    elif kind in _CODEX_CALLS:
        given = next((item[name] for name in ("arguments", "input", "action") if name in item), None)
        tool = text_or(item.get("name"), kind.removesuffix("_call"))
        yield _Step(key, {"tool": tool, "input": given}, "tool_use", call=call)
    elif kind.removesuffix("_output") in _CODEX_CALLS:
        output = item.get("output")
        result = output if isinstance(output, dict) else source.text_of(output)
        yield _Step(key, {"output": result}, "tool_use", answers=call)
    else:
        source.left_out[f"message of role {item.get('role')}" if kind == "message" else kind] += 1


RULE_FILES = frozenset({"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md"})
_MAX_BYTES = 4 << 20
# The pattern for the category excludes checkboxes and times in transcripts.
_OBSERVATION = re.compile(r"\s*[-*+] \[(?P<category>[^\W\d][^\[\]()\n:]{1,40})\] (?P<text>\S.*)")
_FRONT_FIELD = re.compile(r"^(title|modified|updated|date|created):[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)


def read_note(source: SourceFile, *, rules: bool = False) -> Iterator[HistoryOperation]:
    """Read a note as an operation of type `note`; if `rules`, of type `rules`, which is critical like a decision."""
    with source.path.open("rb") as stream:
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        return source.fault(1, f"is larger than {_MAX_BYTES >> 20} MB, the limit for a note")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return source.fault(content.count(b"\n", 0, error.start) + 1, "is not UTF-8; save the file as UTF-8")
    if "\0" in text:
        return source.fault(text.count("\n", 0, text.index("\0")) + 1, "contains a NUL byte, so it is not text")
    path, blocks = source.path.resolve(), split_blocks(text)
    fields = dict(reversed(_FRONT_FIELD.findall(blocks[0].text if blocks and blocks[0].front else "")))
    heading = next((block.title for block in blocks if block.level == 1), "")
    title = path.name if rules else fields.pop("title", "") or heading or path.stem
    when = next((fields[name] for name in ("modified", "updated", "date", "created") if name in fields), path.stem[:10])
    sections = dict(field for block in blocks for field in _fields(block))
    yield HistoryOperation(
        type="rules" if rules else "note", data={"title": title, "file": str(path)} | sections,
        timestamp=time_or(when, source.modified), idempotency_key=f"file:{digest(os.fsencode(path))}",
        version=digest(content), place=str(source.path), position=source.start + len(content), agent=source.agent,
        critical=rules or None,
    )  # fmt: skip
    return None


def _fields(block: Block) -> Iterator[tuple[str, Json]]:
    """Yield a section's text and each observation in it, each under a key with the number of its first line."""
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
