"""What in an operation was said by people or models, what is tool output, and what is state. No judging of content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from orchestra_mem.types import Json, Operation

MAX_DEPTH = 8
_MAX_ITEMS = 200


class Source(StrEnum):
    """Where a text comes from."""

    SPEECH = "speech"
    OUTPUT = "output"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A text or value of an operation.

    `name` is the field's name in lower case with blanks for underscores, `text` its value; `about` is what the mapping
    around it is about (a title, or a task and its number), `speaker` who speaks in it.
    """

    source: Source
    name: str
    text: str
    about: str = ""
    speaker: str = ""


_SPEECH = frozenset(
    "message text input user_input prompt instruction instructions request content note notes comment comments body "
    "subject summary reason reasoning rationale description question answer reply response feedback details title goal "
    "plan intent observation thought thoughts remark transcript said explanation justification objective insight "
    "lesson utterance turn statement".split()
)
# What people write into the record of a tool call, too.
_SPEECH_OF_TOOLS = frozenset("reason note notes comment comments rationale justification decision feedback".split())
_OUTPUT = frozenset(
    "output stdout stderr diff patch code source file_content contents file_contents log logs trace html xml json raw "
    "data payload snippet query sql command cmd args arguments headers environment env stack screenshot image base64 "
    "caption image_caption alt "
    "tool_output tool_result old_string new_string script traceback console response_body request_body schema".split()
)
_STATE = frozenset(
    "status state result outcome exit_code exitcode exit_status returncode return_code success succeeded passed "
    "failed error errors "
    "exception failure failures decision decisions verdict resolution blocker blockers blocked_by next_steps next_step "
    "next todo todos open_items open_questions open_question pending action_items follow_ups follow_up remaining "
    "waiting_on waiting_for completed accomplishments done finished achieved constraint constraints rule rules "
    "requirement requirements policy policies preference preferences owner assignee assigned_to lead reviewer on_call "
    "responsible".split()
)
_TOOL_KEYS = frozenset("tool tool_name tool_type tool_call_id tool_use_id toolname function_call".split())
_TOOL_ROLES = frozenset("tool function ipython environment computer".split())
_TOOL_TYPES = re.compile(
    r"(?:^|_)(?:tool|tools|function|shell|bash|exec|terminal|stdout|stderr|command_output|file_read|read_file|grep|"
    r"search_results?|http_response|log|logs|trace|build_output|test_output)(?:_|$)"
)
_READING = re.compile(
    r"(?:read|view|cat|grep|glob|search|ls|list|find|edit|write|multiedit|apply_patch|web\w*|fetch|open)", re.IGNORECASE
)
_TITLES = ("task_title", "title", "subject", "name", "task", "task_name", "story", "epic", "item", "goal")
# A title names a piece of work; it says neither that it is to be done nor that it is.
_TITLES_ONLY = frozenset("title name task task_title task_name story epic item".split())
_NUMBERS = ("task_id", "id", "issue", "ticket", "story_id", "epic_id", "number")
_SPEAKERS = ("speaker", "author", "user", "from", "sender", "name", "who")
_TITLE_CHARS = 100
_COMMIT_KEYS = frozenset({"hash", "sha", "commit", "files", "files_changed"})


def is_commit(operation: Operation) -> bool:
    """Tell whether an operation records a commit, whose message says in the imperative what was done."""
    data = operation.data
    return isinstance(data, dict) and "subject" in data and not _COMMIT_KEYS.isdisjoint(data)


# Of a longer text the beginning and the end are read: nobody states a rule in the middle of a megabyte.
_MAX_TEXT_CHARS = 100_000


def fields_of(operation: Operation) -> Iterator[Field]:
    """Walk the data of an operation, in order."""
    tool = bool(_TOOL_TYPES.search(operation.type.lower()))
    if isinstance(operation.data, str):
        yield Field(source=Source.OUTPUT if tool else Source.SPEECH, name="text", text=operation.data)
    else:
        yield from _walk(operation.data, name="", tool=tool, about="", speaker="", depth=0)


def reads_only(operation: Operation) -> bool:
    """Tell whether a tool call reads or writes files, so that its output is their content."""
    data = operation.data
    if not isinstance(data, dict):
        return False
    return any(_READING.match(str(data.get(key) or "")) for key in ("tool", "tool_name"))


def _walk(value: Json, *, name: str, tool: bool, about: str, speaker: str, depth: int) -> Iterator[Field]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        inner_tool = tool or _is_tool(value)
        about = _about(value) or about
        speaker = _speaker(value) or speaker
        for key, item in list(value.items())[:_MAX_ITEMS]:
            yield from _walk(item, name=key.lower(), tool=inner_tool, about=about, speaker=speaker, depth=depth + 1)
    elif isinstance(value, list):
        for item in value[:_MAX_ITEMS]:
            yield from _walk(item, name=name, tool=tool, about=about, speaker=speaker, depth=depth + 1)
    elif value is not None and value != "":
        if isinstance(value, str) and len(value) > _MAX_TEXT_CHARS:
            value = f"{value[: _MAX_TEXT_CHARS // 2]}\n{value[-_MAX_TEXT_CHARS // 2 :]}"
        found = _field(name, value, tool, about, speaker)
        if found:
            yield found


def _field(name: str, value: str | int | float | bool, tool: bool, about: str, speaker: str) -> Field | None:
    label = name.replace("_", " ").replace("-", " ")
    key = name.replace("-", "_").replace(" ", "_")
    if key in _STATE and not (tool and isinstance(value, str) and key in ("result", "errors", "done", "next")):
        text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        return Field(source=Source.STATE, name=label, text=text, about="" if about == text else about, speaker=speaker)
    if not isinstance(value, str):
        return None
    if key in _TITLES_ONLY and len(value) <= _TITLE_CHARS:
        return None
    if key in _OUTPUT or (tool and key not in _SPEECH_OF_TOOLS):
        return Field(source=Source.OUTPUT, name=label, text=value, about=about)
    if key in _SPEECH or not key or " " in value.strip():
        return Field(source=Source.SPEECH, name=label, text=value, about=about, speaker=speaker)
    return None


def _is_tool(value: dict[str, Json]) -> bool:
    if not _TOOL_KEYS.isdisjoint(value):
        return True
    role, kind = value.get("role"), value.get("type")
    return (isinstance(role, str) and role.lower() in _TOOL_ROLES) or (
        isinstance(kind, str) and bool(_TOOL_TYPES.search(kind.lower()))
    )


def _about(value: dict[str, Json]) -> str:
    for key in _TITLES:
        title = value.get(key)
        if isinstance(title, str) and title.strip():
            return title.strip().split("\n")[0][:_TITLE_CHARS]
    for key in _NUMBERS:
        number = value.get(key)
        if isinstance(number, int | str) and not isinstance(number, bool) and str(number).strip():
            label = key.removesuffix("_id") if key.endswith("_id") else key
            return f"{label} {number}"[:_TITLE_CHARS] if label not in ("id", "number") else ""
    return ""


def _speaker(value: dict[str, Json]) -> str:
    for key in _SPEAKERS:
        name = value.get(key)
        if isinstance(name, str) and 0 < len(name) <= 40 and "\n" not in name:
            return name.strip()
    return ""


_FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_LINE_NUMBERED = re.compile(r"\s*\d+\s*[→|:\t]\s?")
_CODE_START = re.compile(
    r"\s*(?:(?:def|class|import|from|return|func|function|const|var|package|public|private|static|elif|else|try|except|"
    r"raise|async|await|export|struct|enum|interface|impl|fn|pub|use|SELECT|INSERT|UPDATE|CREATE|ALTER|DROP) "
    r"[\w({*\"'.]+.*[({;:=)]\s*$|"
    r"//|/\*|\*/|#!|#include|\$ |>>> |@\w+\(|@@|\+\+\+ |--- |diff --git|[{}\[\]<|]|(?:Co-authored-by|Signed-off-by|"
    r"Reviewed-by):|"
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?(?:INFO|DEBUG|WARN|WARNING|TRACE)\b|>)"
)
_SYMBOL = re.compile(r"[{}<>=;|\\$&^\[\]~→│┃]|\w\(|::|\w_\w")


def without_code(text: str) -> str:
    """Take fenced code out of a text; the rest stays word for word, in its order."""
    return _FENCED.sub("\n\n", text) if "```" in text or "~~~" in text else text


def reads_as_prose(sentence: str) -> bool:
    """Tell whether a sentence was said, and is no code, markup, log line, table row or quotation of a document."""
    if _CODE_START.match(sentence) or _LINE_NUMBERED.match(sentence):
        return False
    return len(_SYMBOL.findall(sentence)) <= 2 + len(sentence) // 30
