"""Split operations into fields: speech of people or models, tool output, and state. No judgement of their content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from orchestra_mem.core.facts.outcomes import NAMES_OF_KINDS
from orchestra_mem.core.speakers import ASKING_TYPES, PEOPLE, Voice, speaker_in, voice_in, voice_of_type
from orchestra_mem.core.text import word_count
from orchestra_mem.types import AS_GIVEN, Json, Operation

MAX_DEPTH = 8
_MAX_ITEMS = 200


class Source(StrEnum):
    """Kind of a field: text that somebody said or wrote, tool output, or a state value."""

    SPEECH = "speech"
    OUTPUT = "output"
    STATE = "state"


class Field(NamedTuple):
    """A text or value of an operation.

    `name`: Field name in lower case, with spaces for underscores. `text`: Its value. `about`: Subject of the enclosing
    mapping, a title or a label with number (`task 12`). `speaker`: Name of the author. `voice`: Kind of author.
    `spoken`: Whether the text is known to come from a conversation. `asks`: Whether a person says it to a model.
    """

    source: Source
    name: str
    text: str
    about: str = ""
    speaker: str = ""
    voice: Voice = Voice.PERSON
    spoken: bool = False
    asks: bool = False


_SPEECH = frozenset(
    "message text input user_input prompt instruction instructions request content note notes comment comments body "
    "subject summary reason reasoning rationale description question answer reply response feedback details title goal "
    "plan intent observation thought thoughts remark transcript said explanation justification objective insight "
    "lesson utterance turn statement".split()
)
# Fields that people write, even in the record of a tool call.
_SPEECH_OF_TOOLS = frozenset("reason note notes comment comments rationale justification decision feedback".split())
_OUTPUT = frozenset(
    "output stdout stderr diff patch code source file_content contents file_contents log logs trace html xml json raw "
    "data payload snippet query sql command cmd args arguments headers environment env stack screenshot image base64 "
    "caption image_caption alt quotation excerpt "
    "tool_output tool_result old_string new_string script traceback console response_body request_body schema".split()
)
_STATE = frozenset(
    "status state result outcome exit_code exitcode exit_status returncode return_code success succeeded passed "
    "failed".split()
).union(NAMES_OF_KINDS)
_TOOL_KEYS = frozenset("tool tool_name tool_type tool_call_id tool_use_id toolname function_call".split())
_TOOL_ROLES = frozenset("tool function ipython environment computer".split())
# If the mapping also has one of these keys, its `result` is the output of a command.
_COMMANDS = frozenset("command cmd".split())
_RESULTS = frozenset("result results response".split())
_ASKING = frozenset({"user", "human"})
# Hardly anybody types more to a model: a longer message is mostly pasted reports, reviews and program output.
_MOST_TYPED_CHARS = 2_000
# A longer text in a mapping with one of these keys is what others wrote on that page; tickets and minutes are shorter.
_ADDRESSES, _PAGE_CHARS = frozenset("url uri".split()), 10_000
_TALK_TYPES = re.compile(r"(?:^|_)(?:message|chat|talk|command|request|utterance)(?:_|$)")
# If the mapping also has one of these keys, its reply is from a model.
_PROMPTS = frozenset("prompt messages user_input user_prompt".split())
_REPLIES = frozenset("response reply answer completion output_text".split())
_THOUGHTS = frozenset("thought thoughts thinking".split())
_TOLD_BY_SIBLINGS = _RESULTS | _REPLIES | _THOUGHTS
_TOOL_TYPES = re.compile(
    r"(?:^|_)(?:tool|tools|function|shell|bash|exec|terminal|stdout|stderr|command_output|file_read|read_file|grep|"
    r"search_results?|http_response|log|logs|trace|build_output|test_output)(?:_|$)"
)
_READING = re.compile(
    r"(?:read|view|cat|grep|glob|search|ls|list|find|edit|write|multiedit|apply_patch|web\w*|fetch|open)", re.IGNORECASE
)
_TITLES = tuple("task_title title subject name task task_name story epic milestone feature item goal what".split())
# Fields that name a piece of work only if they are short and no sentence, and there is no text.
_LOOSE_TITLES, _LOOSE_CHARS = frozenset({"feature", "what"}), 60
# A title names a piece of work, but does not say whether it is open or done.
_TITLES_ONLY = frozenset("title name task task_title task_name story epic item".split())
# Where something comes from, and why an answer ended.
_ORIGINS = frozenset("file path file_path folder cwd project conversation finish_reason".split())
_NUMBERS = ("task_id", "id", "issue", "ticket", "incident", "story_id", "epic_id", "number")
_TITLE_CHARS = 100
# Of a longer text, half of this is read at each end: nobody states a rule in the middle of a megabyte.
_MAX_TEXT_CHARS = 100_000


def fields_of(operation: Operation) -> Iterator[Field]:
    """Yield the fields of an operation in order. Text that a harness inserted in tags follows as separate fields."""
    kind = operation.type.lower()
    tool = bool(_TOOL_TYPES.search(kind))
    is_talk = _TALK_TYPES.search(kind) is not None
    around = _Around(tool=tool, voice=voice_of_type(operation), spoken=is_talk, asks=kind in ASKING_TYPES)
    if isinstance(operation.data, str):
        yield from _fields("text", operation.data, around)
    else:
        yield from _walk(operation.data, name="", around=around, depth=0)


def outputs_file_content(operation: Operation) -> bool:
    """Check whether a tool call reads, searches or writes files or pages, so that its output is their content."""
    data = operation.data
    tools = ("tool", "tool_name")
    return isinstance(data, dict) and any(_READING.match(str(data.get(key) or "")) for key in tools)


class _Around(NamedTuple):
    """Context of a value from its enclosing mappings. The fields after `tool` are the last fields of `Field`."""

    tool: bool = False
    about: str = ""
    speaker: str = ""
    voice: Voice = Voice.PERSON
    spoken: bool = False
    asks: bool = False


def _walk(value: Json, *, name: str, around: _Around, depth: int) -> Iterator[Field]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        inner = _Around(
            tool=around.tool or _is_tool(value),
            asks=(isinstance(role := value.get("role"), str) and role.lower() in _ASKING) or around.asks,
            about=_about(value) or around.about,
            speaker=(speaker := speaker_in(value)) or around.speaker,
            voice=voice_in(role, speaker, around.voice),
            spoken=around.spoken or bool(speaker) or (isinstance(role, str) and role.lower() in PEOPLE),
        )
        told, of_page = not _TOLD_BY_SIBLINGS.isdisjoint(value), not _ADDRESSES.isdisjoint(value)
        for key, item in [each for each in value.items() if each[0] != AS_GIVEN][:_MAX_ITEMS]:
            if of_page and isinstance(item, str) and len(item) > _PAGE_CHARS:
                continue
            name = key.lower()
            around = _beside(inner, name, value) if told else inner
            yield from _walk(item, name=name, around=around, depth=depth + 1)
    elif isinstance(value, list):
        for item in value[:_MAX_ITEMS]:
            yield from _walk(item, name=name, around=around, depth=depth + 1)
    elif value is not None and value != "":
        if isinstance(value, str) and len(value) > _MAX_TEXT_CHARS:
            value = f"{value[: _MAX_TEXT_CHARS // 2]}\n{value[-_MAX_TEXT_CHARS // 2 :]}"
        yield from _fields(name, value, around)


def _beside(around: _Around, name: str, value: dict[str, Json]) -> _Around:
    """Mark a result next to a command as tool output, and a thought or a reply to a prompt as a model's."""
    if name in _RESULTS and not _COMMANDS.isdisjoint(value):
        return around._replace(tool=True)
    if name in _THOUGHTS or (name in _REPLIES and not _PROMPTS.isdisjoint(value)):
        return around._replace(voice=Voice.MODEL)
    return around


def _fields(name: str, value: str | int | float | bool, around: _Around) -> Iterable[Field]:
    label = name.replace("_", " ").replace("-", " ")
    key = name.replace("-", "_").replace(" ", "_")
    tool = around.tool
    if key in _STATE and not (tool and isinstance(value, str) and key in ("result", "errors", "done", "next")):
        text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        about = "" if around.about == text else around.about
        return (Field(Source.STATE, label, text, about, around.speaker, around.voice),)
    if not isinstance(value, str) or key in _ORIGINS or (key in _TITLES_ONLY and len(value) <= _TITLE_CHARS):
        return ()
    if key in _OUTPUT or (tool and key not in _SPEECH_OF_TOOLS):
        return (Field(Source.OUTPUT, label, value, around.about),)
    if key in _SPEECH or not key or word_count(value) > 1:
        return _said(value, label, around)
    return ()


def _said(text: str, name: str, around: _Around) -> Iterable[Field]:
    """Separate a person's or model's text from the content that a harness inserted in tags."""
    begin, said, beside = 0, [], []
    if "<" in text:
        text = _TYPED_TAG.sub("\n\n", text)
    for start, end, words, inside in _wrapped(text) if "<" in text else ():
        said.append(text[begin:start])
        begin = end
        source = Source.OUTPUT if _REPORTERS.isdisjoint(words) else Source.SPEECH
        beside.append(Field(source, name, inside, around.about, voice=Voice.MODEL))
    whole = "\n\n".join((*said, text[begin:]))
    if around.asks and len(whole) > _MOST_TYPED_CHARS and len(without_code(whole)) > _MOST_TYPED_CHARS:
        around = around._replace(voice=Voice.PASTED)
    return (Field(Source.SPEECH, name, whole, *around[1:]), *beside)


_TAG = re.compile(r"<([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)(?:\s[^<>]*)?>")
# A harness encloses program output, file content and text of agents in tags with names of several words. Tags around
# input that a person typed have one of the words in `_TYPED`.
_MACHINE_TAGS = frozenset(
    "system reminder reminders command local stdout stderr output tool function functions result results notification "
    "hook caveat environment env context ide file files diff log logs selection persisted search task tasks agent "
    "agents subagent teammate assistant error errors usage".split()
)
_TYPED = "user|human|query|args|arguments?|instructions?|rules?|request"
_TYPED_TAG = re.compile(rf"</?(?:[a-z0-9]+[-_])*(?:{_TYPED})(?:[-_][a-z0-9]+)*(?:\s[^<>]*)?>")
_SINGLE_TAGS = frozenset("stdout stderr output log logs diff".split())
_REPORTERS = frozenset("task tasks agent agents subagent teammate assistant".split())


def _wrapped(text: str) -> Iterator[tuple[int, int, frozenset[str], str]]:
    """Yield the spans that a harness wrapped in tags: start, end, the words of the tag's name, and the content.

    An unclosed tag at the beginning of a text encloses all of it, because the text was truncated.
    """
    begin = 0
    unclosed: set[str] = set()
    while match := _TAG.search(text, begin):
        begin = match.end()
        name = match[1]
        words = frozenset(re.split("[-_]", name))
        of_harness = name in _SINGLE_TAGS or (len(words) > 1 and not words.isdisjoint(_MACHINE_TAGS))
        if name in unclosed or not of_harness:
            continue
        close = text.find(f"</{name}>", begin)
        if close < 0 and text[: match.start()].strip():
            unclosed.add(name)
            continue
        inside = text[begin : close if close >= 0 else len(text)]
        begin = close + len(name) + 3 if close >= 0 else len(text)
        yield match.start(), begin, words, inside


def _is_tool(value: dict[str, Json]) -> bool:
    if not _TOOL_KEYS.isdisjoint(value):
        return True
    role, kind = value.get("role"), value.get("type")
    return (isinstance(role, str) and role.lower() in _TOOL_ROLES) or (
        isinstance(kind, str) and bool(_TOOL_TYPES.search(kind.lower()))
    )


_NAMING = frozenset((*_TITLES, *_NUMBERS))


def _about(value: dict[str, Json]) -> str:
    if _NAMING.isdisjoint(value):
        return ""
    for key in _TITLES:
        title = value.get(key)
        if isinstance(title, str) and title.strip():
            is_sentence = len(title) > _LOOSE_CHARS or title.rstrip()[-1] in ".!?"
            if key in _LOOSE_TITLES and (is_sentence or not {"text", "message", "content"}.isdisjoint(value)):
                continue
            return title.strip().split("\n")[0][:_TITLE_CHARS]
    for key in _NUMBERS:
        number = value.get(key)
        if isinstance(number, int | str) and not isinstance(number, bool) and str(number).strip():
            label = key.removesuffix("_id") if key.endswith("_id") else key
            return f"{label} {number}"[:_TITLE_CHARS] if label not in ("id", "number") else ""
    return ""


_FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*", re.MULTILINE)
_LINE_NUMBERED = re.compile(r"\s*\d+\s*(?:[→|\t]|:(?!\d))\s?")
_CODE_START = re.compile(
    r"\s*(?:(?:def|class|import|from|return|func|function|const|var|package|public|private|static|elif|else|try|except|"
    r"raise|async|await|export|struct|enum|interface|impl|fn|pub|use|SELECT|INSERT|UPDATE|CREATE|ALTER|DROP) "
    r"[\w({*\"'.]+.*[({;:=)]\s*$|"
    r"//|/\*|\*/|#!|#include|\$ |>>> |@\w+\(|@@|\+\+\+ |--- |diff --git|[{}\[\]<|]|(?:Co-authored-by|Signed-off-by|"
    r"Reviewed-by):|"
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d|(?:[\d/T-]+[T ]\d\d:\d\d:? )?\[?(?:INFO|DEBUG|WARN|WARNING|TRACE)\b|>)"
)
TICK = re.compile(r"\[([ xX\u2713\u2714]?)\]\s+")
"""The box of a task at the beginning of a sentence."""
_TIMED = re.compile(r"\[\d{1,2}:\d\d(?::\d\d)?\] (?=[^\W\d_]+[ \w]{0,30}: )")  # a line of a chat: `[10:00] Ana: …`
_SYMBOL = re.compile(r"[{}<>=;|\\$&^\[\]~→│┃]|\w\(|::|\w_\w")
_DRAWN = re.compile(r"[\u2500-\u25ff]")  # what terminals draw boxes, bars and blocks with
_COLUMNS = re.compile(r"\S {4,}\S.*\S {4,}\S|(?: · .*){3}")
_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@.*\n?", re.MULTILINE)
_PATCH_HEADER = re.compile(
    r"^(?:diff --git |index [0-9a-f]{6,}|--- (?:a/|/dev/null)|\+\+\+ (?:b/|/dev/null)|"
    r"(?:new|deleted) file mode |similarity index |rename (?:from|to) ).*\n?",
    re.MULTILINE,
)


def without_code(text: str) -> str:
    """Remove fenced code, lines quoted with `>`, and patches from a text; the rest stays verbatim and in order."""
    text = _QUOTED_LINE.sub("", _FENCED.sub("\n\n", text))
    return _without_patches(text) if "@@ -" in text else text


def _without_patches(text: str) -> str:
    kept: list[str] = []
    begin = 0
    while match := _HUNK.search(text, begin):
        kept.append(text[begin : match.start()])
        begin = _end_of_hunk(text, match.end(), int(match[1] or 1), int(match[2] or 1))
    kept.append(text[begin:])
    return _PATCH_HEADER.sub("\n", "\n\n".join(kept))


def _end_of_hunk(text: str, begin: int, old: int, new: int) -> int:
    """Return the offset at which a hunk ends. `old`, `new`: Line counts in the old and new file, from its header."""
    while (old > 0 or new > 0) and begin < len(text):
        mark = text[begin]
        if mark not in " +-\\\t\n":
            break
        old -= mark not in "+\\"
        new -= mark not in "-\\"
        end = text.find("\n", begin)
        begin = end + 1 if end >= 0 else len(text)
    return begin


_CODE_SPAN = re.compile(r"`([^`\n]{1,200})`")
_QUOTED = re.compile(r"(?<!\w)\"(?=[^\"]*\s)[^\"\n]{3,400}\"|“[^”\n]{3,400}”")
_PLAIN_SPAN = re.compile(r"[\d.,:%$€£ -]+\w{0,3}|(?:[\w'-]+ ){3,}[\w'-]+[.!]?")


def masked(sentence: str, *, quotes: bool) -> str:
    """Overwrite code spans, and quotations if `quotes`, with the letter x: text that is only mentioned states no fact.

    The length stays the same. Code spans of a number, or of at least four words without symbols, are not masked.
    """
    if "`" in sentence:
        sentence = _CODE_SPAN.sub(lambda m: m[0] if _PLAIN_SPAN.fullmatch(m[1]) else "x" * len(m[0]), sentence)
    if quotes and ('"' in sentence or "“" in sentence):
        sentence = _QUOTED.sub(lambda match: "x" * len(match[0]), sentence)
    return sentence


def reads_as_prose(sentence: str) -> bool:
    """Check whether a sentence is prose, not code, markup, a log line, a table row or a quoted or numbered line."""
    sentence = _TIMED.sub("", TICK.sub("", sentence, count=1), count=1) if "[" in sentence else sentence
    if _CODE_START.match(sentence) or _LINE_NUMBERED.match(sentence):
        return False
    if ("    " in sentence or " · " in sentence) and _COLUMNS.search(sentence):
        return False
    if 2 * len(_DRAWN.findall(sentence)) > len(sentence):
        return False
    # In bytes, since a sentence of Chinese has few characters.
    return len(_SYMBOL.findall(sentence)) <= 2 + len(sentence.encode("utf-8", "surrogatepass")) // 30
