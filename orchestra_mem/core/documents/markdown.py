"""A markdown document as a row of blocks that join to the same text again, byte for byte.

A block is a heading with what follows it, up to the next heading of any level; what stands before the first heading
(front matter, then text) makes blocks of its own.

Headings are those that CommonMark sees in the document itself, `#` or underlined; what looks like one in fenced code,
HTML, a quotation or a list is text. A line that begins with `#` outside a fence is one in any case, so one search
finds nearly all. Where a line suggests more (an underline, HTML, something indented), markdown-it-py reads the stretch
around it. Two things differ from CommonMark on purpose: a fence or an HTML comment that nothing closes is text, as one
slip must not hide the rest; and only a line feed ends a line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PIN = "<!-- pin -->"

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(?P<body>.*?)^---[ \t]*\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# What needs no quotes: neither a number's look-alike nor one of YAML's words for true, false and nothing.
_PLAIN = re.compile(
    r"(?!(?i:true|false|yes|no|on|off|null|y|n)\Z)(?:[A-Za-z](?:[\w ./-]*[\w./-])?|\d+|\d{4}-\d\d-\d\dT[\d:.+-]+)"
)
_FIELD = re.compile(r"(?P<key>[A-Za-z_][\w-]*):(?:[ \t]+(?P<value>.*?))?[ \t]*\r?$")
# Lines that may matter. The look ahead makes it four times as fast on a text in which few do.
_MARK = re.compile(
    r"\n(?= {0,3}[-#`~=<])(?P<indent> {0,3})"
    r"(?:(?P<hashes>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|(?P<line>=+|-+)[ \t]*|<(?!!--[^\n]*-->)(?P<tag>[A-Za-z/!?][^\n]*))\r?$",
    re.MULTILINE,
)
_FIRST_MARK = re.compile(_MARK.pattern.removeprefix(r"\n"), re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}(?:[ \t\r].*)?$", re.MULTILINE)
_UNDERLINE = re.compile(r"(?:=+|-+) *$")
_RULE = re.compile(r" {0,3}-{3,}[ \t\r]*$", re.MULTILINE)
# The HTML blocks of CommonMark 0.31 that end with something else than a blank line: how they begin, and what ends them.
_HTML = (
    (r"<(?:script|pre|style|textarea)(?=[ \t>]|$)", r"</(?:script|pre|style|textarea)>"),
    ("<!--", "-->"),
    (r"<\?", r"\?>"),
    ("<![A-Za-z]", ">"),
    (r"<!\[CDATA\[", r"\]\]>"),
)
_BLANK = r"^[ \t]*\r?$"
# What stands for a line that opens something which nothing closes: it ends whatever stood above, and begins nothing.
_NEUTRAL = "***"


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
            while not _UNDERLINE.match(self.text[self.text.rfind("\n", 0, end - 1) + 1 : end].strip()):
                end = self.text.find("\n", end) + 1 or len(self.text)
        return self.text[:end]


# The same few texts are looked at from several sides while a document is read and written.
@lru_cache(maxsize=8)
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
    for at, next_level, next_title in _headings(text, start):
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


def _headings(text: str, start: int) -> Iterator[tuple[int, int, str]]:
    """Yield place, level and title of each heading from `start` on."""
    unclosed: dict[str, int] = {}
    certain = start
    mark = _FIRST_MARK.match(text, start) or _MARK.search(text, start)
    while mark:
        line, at = mark.start("indent"), mark.end()
        if mark["hashes"] and not mark["indent"]:
            yield line, len(mark["hashes"]), _clean_title(mark["title"])
            certain = at
        elif mark["fence"] and not mark["indent"]:
            # CommonMark: the info string of a back-tick fence holds no back-tick; such a line is inline code.
            if mark["fence"][0] == "~" or "`" not in mark["info"]:
                end = _end_of(_closing_fence(mark["fence"]), text, at, unclosed)
                certain, at = (certain, at) if end is None else (end, end)
        elif not mark["line"] or _underlines(text, start, line):
            found, certain = _read(text, certain + text.startswith("\n", certain), at, unclosed)
            yield from found
            at = certain - 1
        mark = _MARK.search(text, at)


def _underlines(text: str, start: int, at: int) -> bool:
    """Whether what stands above a line of dashes may be text: it is neither blank nor such a line itself."""
    above = text[max(start, text.rfind("\n", start, max(start, at - 1)) + 1) : at]
    return bool(above.strip()) and not _RULE.match(above)


def _closing_fence(fence: str) -> str:
    return rf"^ {{0,3}}{fence[0]}{{{len(fence)},}}[ \t]*\r?$"


def _end_of(closing: str, text: str, at: int, unclosed: dict[str, int]) -> int | None:
    """Where the first match of a closing pattern ends, None where there is none; `unclosed` remembers that."""
    found = None if at >= unclosed.get(closing, len(text) + 1) else _compiled(closing).search(text, at)
    if found is None:
        unclosed[closing] = min(at, unclosed.get(closing, at))
        return None
    return found.end()


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE | re.IGNORECASE)


def _read(text: str, begin: int, at: int, unclosed: dict[str, int]) -> tuple[list[tuple[int, int, str]], int]:
    """Read from a place where nothing is open to the next certain heading behind `at`: what is found, and where."""
    stop = _next_heading(text, at)
    neutral: list[str] = []
    while True:
        stretch = text[begin:stop]
        found, opening = _outline(stretch, tuple(neutral))
        if opening is None or opening[0] in neutral or (opening[1] == _BLANK and stop == len(text)):
            break
        pattern, closing = opening
        end = _end_of(closing, text, stop, unclosed)
        if end is not None:
            stop = _next_heading(text, end)
        elif closing == _BLANK:
            stop = len(text)
        else:
            neutral.append(pattern)
    starts = [begin, *accumulate((len(line) + 1 for line in stretch.split("\n")), initial=begin)][1:]
    return [(starts[line], level, title) for line, level, title in found], stop


def _next_heading(text: str, at: int) -> int:
    found = _HEADING.search(text, at)
    return found.start() if found else len(text)


# A text that is edited is read again and again; mostly the edit is elsewhere.
@lru_cache(maxsize=64)
def _outline(text: str, neutral: tuple[str, ...]) -> tuple[list[tuple[int, int, str]], tuple[str, str] | None]:
    """The headings of a stretch as line, level and title; and what is open at its end: how it begins, what ends it."""
    text = text.replace("\r\n", "\n").replace("\r", " ")
    for pattern in neutral:
        text = _compiled(pattern).sub(_NEUTRAL, text)
    tokens = _parser().parse(text)
    found = [
        (token.map[0], int(token.tag[1]), " ".join(line.strip() for line in said.content.split("\n")))
        for token, said in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    return found, _left_open(tokens, text)


def _left_open(tokens: list[Token], text: str) -> tuple[str, str] | None:
    """What a fence or an HTML block that reaches to a text's end began with, and would end with."""
    last = tokens[-1] if tokens else None
    if last is None or last.level or last.map is None:
        return None
    lines = text.split("\n")[last.map[0] : last.map[1]]
    if last.type == "fence":
        closing = _closing_fence(last.markup)
        mark = re.escape(last.markup[0])
        info = "[^`\n]*" if last.markup[0] == "`" else ".*"
        closed = len(lines) > 1 and _compiled(closing).match(lines[-1] or lines[-2])
        return None if closed else (rf"^ {{0,3}}{mark}{{{len(last.markup)},}}{info}$", closing)
    if last.type != "html_block":
        return None
    first = lines[0].lstrip(" ")
    for start, end in _HTML:
        if _compiled(start).match(first):
            closed = _compiled(end).search("\n".join(lines))
            return None if closed else (rf"^ {{0,3}}{start}(?:(?!{end}).)*$", end)
    return None if text.endswith("\n\n") else ("(?!)", _BLANK)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # here, as few documents need it

    return MarkdownIt("commonmark").disable(["inline", "text_join"], ignoreInvalid=True)


def _clean_title(title: str | None) -> str:
    """A heading's text without the closing row of #, where one stands apart."""
    text = (title or "").strip()
    bare = text.rstrip("#")
    return bare.rstrip() if bare == "" or bare[-1] in " \t" else text
