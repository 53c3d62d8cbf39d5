"""A markdown document as a row of blocks that join to the same text again, byte for byte.

A block is a heading with what follows it, up to the next heading of any level; what stands before the first heading
(front matter, then text) makes blocks of its own. Headings inside fenced code are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

PIN = "<!-- pin -->"

_MARK = re.compile(
    r"^ {0,3}(?:(?P<hashes>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*))\r?$",
    re.MULTILINE,
)
_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(?P<body>.*?)^---[ \t]*\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# What YAML takes in double quotes only as an escape.
_SPECIAL = re.compile("[\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_FIELD = re.compile(r"(?P<key>[A-Za-z_][\w-]*):(?:[ \t]+(?P<value>.*?))?[ \t]*\r?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A stretch of a document. `level` is 1 to 6 for a heading's block, 0 for text before any heading.

    `line` counts from 1. `front` marks the front matter.
    """

    text: str
    level: int = 0
    title: str = ""
    line: int = 1
    front: bool = False

    @property
    def pinned(self) -> bool:
        """Whether a person asked to keep this block as it is."""
        return PIN in self.text


def split_blocks(text: str) -> tuple[Block, ...]:
    """Cut a document into blocks; `join_blocks` of the result is `text` again, whatever it holds."""
    blocks: list[Block] = []
    front = _FRONT.match(text)
    start = front.end() if front else 0
    line = 1
    if front:
        blocks.append(Block(text=front.group(), front=True))
        line += front.group().count("\n")
    level, title = 0, ""
    for mark in _headings(text, start):
        if mark.start() > start or level:
            piece = text[start : mark.start()]
            blocks.append(Block(text=piece, level=level, title=title, line=line))
            line += piece.count("\n")
        start, level, title = mark.start(), len(mark["hashes"]), _clean_title(mark["title"])
    if start < len(text):
        blocks.append(Block(text=text[start:], level=level, title=title, line=line))
    return tuple(blocks)


def _headings(text: str, start: int) -> Iterator[re.Match[str]]:
    """The headings outside of fenced code. A fence that nothing closes is text: one slip must not hide the rest."""
    marks = list(_MARK.finditer(text, start))
    unclosed: dict[str, int] = {}
    position = 0
    while position < len(marks):
        mark = marks[position]
        position += 1
        fence = mark["fence"]
        if not fence:
            yield mark
        # CommonMark: the info string of a back-tick fence holds no back-tick; such a line is inline code.
        elif not (fence[0] == "`" and "`" in mark["info"]) and len(fence) < unclosed.get(fence[0], len(text)):
            closing = _closing(marks, position, fence)
            if closing is None:
                unclosed[fence[0]] = len(fence)
            else:
                position = closing + 1


def _closing(marks: list[re.Match[str]], position: int, fence: str) -> int | None:
    for number in range(position, len(marks)):
        mark = marks[number]
        if (mark["fence"] or "").startswith(fence) and not mark["info"].strip():
            return number
    return None


def _clean_title(title: str | None) -> str:
    """A heading's text without the closing row of #, where one stands apart."""
    text = (title or "").strip()
    bare = text.rstrip("#")
    return bare.rstrip() if bare == "" or bare[-1] in " \t" else text


def join_blocks(blocks: Iterable[Block]) -> str:
    """The document again."""
    return "".join(block.text for block in blocks)


def front_matter(fields: Mapping[str, str]) -> str:
    """Write a front matter. Values are quoted where YAML would read them as something other than this text."""
    return "---\n" + "".join(f"{key}: {_scalar(value)}\n" for key, value in fields.items()) + "---\n"


def _scalar(value: str) -> str:
    if re.fullmatch(
        r"[A-Za-z][\w ./-]*[\w./-]|[A-Za-z]|\d+|\d{4}-\d\d-\d\dT[\d:.+-]+", value
    ) and value.lower() not in {
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "null",
        "y",
        "n",
    }:
        return value
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    escaped = _SPECIAL.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)
    return f'"{escaped}"'


def front_matter_fault(text: str) -> tuple[int, str] | None:
    """Say what is wrong with a document's front matter: line (from 1) and problem; None where all is well."""
    if not text.lstrip("\ufeff").startswith("---"):
        return 1, "the front matter is missing; it begins with a line of three dashes"
    front = _FRONT.match(text)
    if front is None:
        return 1, "the front matter is not closed by a line of three dashes"
    for number, line in enumerate(front["body"].split("\n"), start=2):
        if line.strip() and not line.lstrip().startswith(("#", "- ")) and not _FIELD.match(line.lstrip()):
            return number, f"{line.strip()[:60]!r} is no `key: value`"
    import yaml  # here, as few documents are ever looked at so closely, and its import costs a tenth of ours

    try:
        yaml.safe_load(front["body"])
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return (mark.line + 2 if mark else 1), f"is no YAML: {error.problem or error.context}"
    except (yaml.YAMLError, ValueError) as error:
        return 1, f"is no YAML: {error}"
    return None


def without_front_matter(text: str) -> str:
    """The text that people and models read."""
    front = _FRONT.match(text)
    return text[front.end() :].lstrip("\r\n") if front else text
