"""A markdown document as a row of blocks that join to the same text again, byte for byte; edits of one section.

A block is a heading with what follows it, up to the next heading of any level; what stands before the first heading
(front matter, then text) makes blocks of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from orchestra_mem.core.documents.headings import UNDERLINE, headings
from orchestra_mem.errors import NotFoundError

PIN = "<!-- pin -->"

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(?P<body>.*?)^---[ \t]*\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_BLANK = re.compile(r"[ \t]*(?:\r?\n|\Z)")
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


def replace_lines(text: str, first: int, last: int, new: str) -> str:
    """Put text in the place of lines `first` to `last` (from 1, inclusive; first - 1 inserts before `first`).

    `new` takes the document's line ends and ends a line where another follows; "" takes lines out.
    """
    lines = text.split("\n")
    before, after = "\n".join(lines[: first - 1]), "\n".join(lines[last:])
    head = before + ("\n" if 1 < first <= len(lines) else "")
    return _between(head if first <= len(lines) else text, new, after if last < len(lines) else "", text)


def replace_section(text: str, title: str, body: str) -> str:
    """Put a body in the place of all that stands below a heading; blank lines around it stay.

    Raises:
        NotFoundError: no heading has that title.
    """
    start, end, heading, _ = _section(text, title)
    ends = line_end(text)
    new = _as_lines(body, ends).strip("\r\n")
    lines = text[start + len(heading) : end].split("\n")
    said = [number for number, line in enumerate(lines) if line.strip()]
    if said:
        lead, trail = lines[: said[0]], lines[said[-1] + 1 :]
        gap = "\r" if trail and lines[said[-1]].endswith("\r") else ""
        return text[:start] + heading + "\n".join([*lead, new + gap, *trail]) + text[end:]
    if not new:
        return text
    below = ("\n".join(lines) or ends) + text[end:] if end < len(text) else ""
    return _between(text[:start] + heading, ends + new, below, text)


def delete_section(text: str, title: str) -> str:
    """Take out a heading and all that stands below it, deeper headings too; see `replace_section`."""
    start, end, _, _ = _section(text, title)
    return text[:start] + text[end:]


def insert_section(text: str, title: str, section: str, *, after: bool = False) -> str:
    """Put a section before (or after) the one with a title, a blank line apart; see `replace_section`."""
    start, end, _, _ = _section(text, title)
    at = end if after else start
    return _apart(text[:at], section, text[at:], text)


def append_section(text: str, section: str) -> str:
    """Put a section at the end of a document, a blank line apart."""
    return _apart(text, section, "", text)


def append_entry(text: str, title: str, entry: str) -> str:
    """Put an entry at the end of a section; see `replace_section`.

    One that begins with a heading comes after the section's own subsections, any other (a list's item) before them.
    """
    start, end, heading, own_end = _section(text, title)
    titled = bool(split_blocks(entry)[:1] and split_blocks(entry)[0].level)
    stop = end if titled else own_end
    at = start + len(text[start:stop].rstrip("\r\n \t"))
    at = min(stop, max(text.find("\n", at) + 1 or stop, start + len(heading)))
    if titled or at == start + len(heading):
        return _apart(text[:at], entry, text[at:], text)
    return _between(text[:at], entry, text[at:], text)


def _section(text: str, title: str) -> tuple[int, int, str, int]:
    """The first section with a title: where it begins and ends, its heading, where its first subsection begins."""
    at, found = 0, None
    for block in split_blocks(text):
        if found and block.level <= found[1].level:
            return found[0], at, found[1].heading, found[0] + len(found[1].text)
        if not found and block.level and block.title == title:
            found = at, block
        at += len(block.text)
    if found is None:
        titles = ", ".join(repr(block.title) for block in split_blocks(text) if block.level) or "none"
        raise NotFoundError(f"the document has no section {title!r}; its headings are: {titles}")
    return found[0], at, found[1].heading, found[0] + len(found[1].text)


def _as_lines(text: str, ends: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", ends)


def _between(before: str, new: str, after: str, document: str) -> str:
    """A text with new lines in a place, the line before them ended, and the last as the document is."""
    ends = line_end(document)
    if not new:
        return before + after
    new = _as_lines(new, ends)
    gap = "" if not before or before.endswith("\n") else ends
    closed = new.endswith("\n") or not (after or document.endswith("\n"))
    return before + gap + new + ("" if closed else ends) + after


def _apart(before: str, new: str, after: str, document: str) -> str:
    """A text with new lines in a place, a blank line before and after them."""
    ends = line_end(document)
    if before.strip("\ufeff") and not re.search(r"\n[ \t]*\r?\n\Z", before):
        new = ends + new
    new = new.rstrip("\r\n") + ends
    return _between(before, new + (ends if after.strip() and not _BLANK.match(after) else ""), after, document)
