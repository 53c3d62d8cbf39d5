"""A markdown document as a row of blocks that join to the same text again, byte for byte.

A block is a heading with what follows it, up to the next heading of any level; what stands before the first heading
(front matter, then text) makes blocks of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from orchestra_mem.core.documents.headings import UNDERLINE, headings

PIN = "<!-- pin -->"

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(?P<body>.*?)^---[ \t]*\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# What needs no quotes: neither a number's look-alike nor one of YAML's words for true, false and nothing.
_PLAIN = re.compile(
    r"(?!(?i:true|false|yes|no|on|off|null|y|n)\Z)(?:[A-Za-z](?:[\w ./-]*[\w./-])?|\d+|\d{4}-\d\d-\d\dT[\d:.+-]+)"
)
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

    @property
    def heading(self) -> str:
        """The heading's own lines with their ends, an underline included; empty where there is none."""
        if not self.level:
            return ""
        end = self.text.find("\n") + 1 or len(self.text)
        if not self.text.lstrip("\ufeff ").startswith("#" * self.level):
            while not UNDERLINE.match(self.text[self.text.rfind("\n", 0, end - 1) + 1 : end].strip()):
                end = self.text.find("\n", end) + 1 or len(self.text)
        return self.text[:end]


def split_blocks(text: str) -> tuple[Block, ...]:
    """Cut a document into blocks; `join_blocks` of the result is `text` again, whatever it holds."""
    blocks: list[Block] = []
    front = _FRONT.match(text)
    if front is None and text.startswith("\ufeff"):
        first, *others = split_blocks(text[1:]) or (Block(text=""),)
        return (replace(first, text=f"\ufeff{first.text}"), *others)
    start = front.end() if front else 0
    line = 1
    if front:
        blocks.append(Block(text=front.group(), front=True))
        line += front.group().count("\n")
    level, title = 0, ""
    for at, next_level, next_title in headings(text, start):
        if at > start or level:
            piece = text[start:at]
            blocks.append(Block(text=piece, level=level, title=title, line=line))
            line += piece.count("\n")
        start, level, title = at, next_level, next_title
    if start < len(text):
        blocks.append(Block(text=text[start:], level=level, title=title, line=line))
    return tuple(blocks)


def join_blocks(blocks: Iterable[Block]) -> str:
    """The document again."""
    return "".join(block.text for block in blocks)


def front_matter(fields: Mapping[str, str]) -> str:
    """Write a front matter. Values are quoted where YAML would read them as something other than this text."""
    return "---\n" + "".join(f"{key}: {_scalar(value)}\n" for key, value in fields.items()) + "---\n"


def _scalar(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    import yaml  # here, as its import costs a tenth of ours

    return yaml.dump(value, default_style='"', width=math.inf).rstrip("\n")


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


def line_end(text: str) -> str:
    """How most lines of a document end: CR LF or LF."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"
