"""Split a markdown document into blocks that join to the same text again, byte for byte.

A block is a heading and its content, up to the next heading of any level. The front matter, and the text before the
first heading, are separate blocks.

Headings are those that CommonMark finds at the top level of the document, with `#` or an underline; look-alikes in
fenced code, HTML, block quotes and lists are text. One regular expression handles nearly all documents. Where a line
suggests more (HTML, an indented mark, an underline that may be below a list), markdown-it-py parses the text. Two
deviations from CommonMark are deliberate: an unclosed fence or HTML block is text, as one typo must not hide the rest
of the document, and only a line feed ends a line.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import accumulate, pairwise, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

    _Rule = Callable[[StateBlock, int, int, bool], bool]

PIN = "<!-- pin -->"

# A rule, a blank line and prose are no front matter, even if another rule follows.
FRONT = re.compile(
    r"\ufeff?---[ \t]*\r?\n(?![ \t]*\r?\n\s*+(?![A-Za-z_][\w-]*:|\#|---))(?P<body>.*?)^---[ \t]*\r?(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
# Values without quotes: whole numbers, times, and words that YAML does not take for true, false or null.
_PLAIN = re.compile(
    r"(?!(?i:true|false|yes|no|on|off|null|y|n)\Z)(?:[A-Za-z](?:[\w ./-]*[\w./-])?|\d+|\d{4}-\d\d-\d\dT[\d:.+-]+)"
)
# Fields of the front matter without words of people.
_MEMORYS = re.compile(
    r"^(?:format|document|session|started|status|written|updated|ledger|writer|revision):[^\r\n]*", re.MULTILINE
)
_FIELD = re.compile(r"(?P<key>[A-Za-z_][\w-]*):(?:[ \t]+(?P<value>.*?))?[ \t]*\r?$")
# Lines that may affect headings. The lookahead makes the search four times as fast on a text with few such lines.
_MARK = re.compile(
    r"\n(?= {0,3}[-#`~=<])(?P<indent> {0,3})"
    r"(?:(?P<hashes>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|(?P<line>=+|-+)[ \t]*|<(?!!--[^\n]*-->)(?P<tag>[A-Za-z/!?][^\n]*))\r?$",
    re.MULTILINE,
)
_FIRST_MARK = re.compile(_MARK.pattern.removeprefix(r"\n"), re.MULTILINE)
_HEADING = re.compile(
    r"\ufeff? {0,3}#{1,6}(?:[ \t][^\n]*)?\r?(?:\n|\Z)|.*?\n {0,3}(?:=+|-+)[ \t]*\r?(?:\n|\Z)", re.DOTALL
)
_RULE = re.compile(r" {0,3}-{3,}[ \t\r]*$", re.MULTILINE)
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}(?![^\n]*`)|~{3,})[^\n]*$", re.MULTILINE
)
# Rows that cannot continue a list item's text: blank ones, and those that begin something else. CommonMark: of the
# lists in an item, only one that starts with 1 interrupts the item's text. A state in emphasis is a remark.
_BEGINS = re.compile(
    r"[ \t]*(?:\r?$|[-*+](?:[ \t]|$)|1[.)][ \t]|#{1,6}[ \t]|[>|]|<[!/A-Za-z]|`{3}|~{3}|:{3}|!{3}|\${2}|\[[^\]\n]+\]:"
    r"|[-*_=]{3,}[ \t]*\r?$|[*_]+(?:Shared|Superseded|Perhaps)\b.*[*_][ \t]*\r?$"
    r"|\*\*(?:Last Updated|Session)\*\*: )|\d{1,9}[.)][ \t]",
    re.MULTILINE,
)
_MOST_ROWS = 20  # of a list item's text; more rows are pasted below it
_MARK_ROWS = 3  # over which a formatter may wrap the mark at an item's end
_CONTINUES = re.compile(rf"\n(?!\Z|{_BEGINS.pattern})", re.MULTILINE)


_NOT_UTF_8 = re.compile("[\udc80-\udcff]+")
_TYPED = str.maketrans({"…": "...", "—": "--"} | dict.fromkeys("“”„‟", '"') | dict.fromkeys("‘’‚‛", "'"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a document. `level`: 1 to 6 for a block with a heading, 0 for text before any heading.

    `line`: Number of the first line, from 1. `front`: Whether the block is the front matter.
    """

    text: str
    level: int = 0
    title: str = ""
    line: int = 1
    front: bool = False

    @property
    def rows(self) -> range:
        """Line indexes of the block, from 0."""
        return range(self.line - 1, self.line + self.text.count("\n") - self.text.endswith("\n"))

    @property
    def pinned(self) -> bool:
        """Whether a person asked to keep this block as it is."""
        return PIN in self.text

    @property
    def heading(self) -> str:
        """Lines of the heading with their line ends, including an underline; empty if there is no heading."""
        found = _HEADING.match(self.text) if self.level else None
        return found[0] if found else ""


# Reading and writing a document parses the same few texts several times.
@lru_cache(maxsize=8)
def split_blocks(text: str) -> tuple[Block, ...]:
    """Split any text into blocks; `join_blocks` returns the exact text again."""
    blocks: list[Block] = []
    front = FRONT.match(text)
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
    """Join blocks to the document's text."""
    return "".join(block.text for block in blocks)


def fenced_rows(text: str) -> set[int]:
    """Return the rows of a block's closed code fences, from 0; a fence in a list item may be indented."""
    found: set[int] = set()
    unclosed: set[tuple[str, str]] = set()
    row = counted = 0
    opening = _FENCE.search(text) if "```" in text or "~~~" in text else None
    while opening:
        at, fence = opening.end(), (opening["indent"], opening["fence"])
        closing = None
        if fence not in unclosed:
            closing = _closing_fence(opening["fence"], len(opening["indent"])).search(text, at)
            unclosed.add(fence)
        if closing:
            unclosed.discard(fence)
            first = row + text.count("\n", counted, opening.start())
            row, counted = first + text.count("\n", opening.start(), closing.start()), closing.start()
            found.update(range(first, row + 1))
            at = closing.end()
        opening = _FENCE.search(text, at)
    return found


def may_continue(text: str) -> bool:
    """Check whether a block has a row that may continue a list item's text; see `item_end`."""
    return _CONTINUES.search(text) is not None


def item_end(rows: Sequence[str], at: int, is_whole: Callable[[str], object]) -> int:
    """Return where the text of the list item in row `at` ends; rows below that continue it belong to it, if few.

    Args:
        rows: Rows of a block.
        at: Place of the item's first row.
        is_whole: Takes the first and the last rows so far, in one line; returns whether the text is complete, so that
            what follows is a note.
    """
    for stop in range(at + 1, min(len(rows), at + _MOST_ROWS)):
        last = rows[max(at + 1, stop - _MARK_ROWS) : stop]
        if _BEGINS.match(rows[stop]) or is_whole(" ".join((rows[at].rstrip(), *map(str.strip, last)))):
            return stop
    return len(rows) if len(rows) < at + _MOST_ROWS else at + 1


def front_matter(fields: Mapping[str, str]) -> str:
    """Render front matter. Values are quoted unless they are plain words, whole numbers or times."""
    return "---\n" + "".join(f"{key}: {_scalar(value)}\n" for key, value in fields.items()) + "---\n"


def with_field(text: str, key: str, value: str) -> str:
    """Insert a plain value as the first field of the front matter; a text without front matter stays the same."""
    front = FRONT.match(text)
    if front is None:
        return text
    line_end, start = "\r\n" if front.group().endswith("\r\n") else "\n", front.start("body")
    return f"{text[:start]}{key}: {value}{line_end}{text[start:]}"


def _scalar(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    import yaml  # imported here: it takes a tenth of the package's import time

    return yaml.dump(value, default_style='"', width=math.inf).rstrip("\n")


def front_matter_fault(text: str) -> tuple[int, str] | None:
    """Return the first fault in a document's front matter: line (from 1) and problem; None if it is valid."""
    if not text.lstrip("\ufeff").startswith("---"):
        return 1, "the front matter is missing; it must begin with a line of three dashes"
    front = FRONT.match(text)
    if front is None:
        return 1, "the front matter is not closed by a line of three dashes"
    for number, line in enumerate(front["body"].split("\n"), start=2):
        if line.strip() and not line.lstrip().startswith(("#", "- ")) and not _FIELD.match(line.lstrip()):
            return number, f"{line.strip()[:60]!r} is not of the form `key: value`"
    import yaml  # imported here: slow to import, and needed for few documents

    try:
        yaml.safe_load(front["body"])
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return (mark.line + 2 if mark else 1), f"is not valid YAML: {error.problem or error.context}"
    except (yaml.YAMLError, ValueError) as error:
        return 1, f"is not valid YAML: {error}"
    return None


def without_front_matter(text: str) -> str:
    """Return a document without its front matter, as people and models read it."""
    front = FRONT.match(text)
    return text[front.end() :].lstrip("\r\n") if front else text


def words_of_document(text: str) -> str:
    """Return a document with the same lines, of which those that only the memory reads are empty."""
    front = FRONT.match(text)
    if front is None:
        return text
    return f"{text[: front.start('body')]}{_MEMORYS.sub('', front['body'])}{text[front.end('body') :]}"


def with_changed_words(text: str, change: Callable[[str], str]) -> str:
    """Apply a change to a document's words; valid front matter stays so, and keeps what only the memory reads."""
    front = FRONT.match(text)
    if front is None:
        return change(text)
    start, end = front.span("body")
    fields = "\n".join(
        row if _MEMORYS.match(row) else _changed_field(row, change) for row in text[start:end].split("\n")
    )
    return f"{text[:start]}{fields}{text[end : front.end()]}{change(text[front.end() :])}"


def _changed_field(row: str, change: Callable[[str], str]) -> str:
    if (changed := change(row)) == row or not _FIELD.match(row):
        return changed
    if (field := _FIELD.match(changed)) is None:  # the key has changed: a comment is valid YAML
        return f"# {changed}"
    value = field["value"] or ""
    return changed if value[:1] in ("", '"', "'") else f"{field['key']}: {_scalar(value)}"


def legible(text: str) -> str:
    """Read bytes that are not UTF-8, which a text has as lone surrogates, as Windows-1252, the usual other encoding."""
    if text.isprintable():  # no surrogate is
        return text
    return _NOT_UTF_8.sub(lambda found: bytes(ord(each) & 0xFF for each in found[0]).decode("cp1252", "replace"), text)


def as_typed(text: str) -> str:
    """Undo an editor's typography, such as curly quotation marks or accents apart from letters, for comparisons."""
    return unicodedata.normalize("NFC", text.translate(_TYPED))


def is_plainer(text: str, other: str) -> bool:
    """Check whether a text is another with less of an editor's typography: only a person takes it away."""
    fewer = sum(ord(each) in _TYPED for each in text) < sum(ord(each) in _TYPED for each in other)
    return fewer and as_typed(text) == as_typed(other)


def line_end(text: str) -> str:
    """Return the line end of most lines in a document: CR LF or LF."""
    return "\r\n" if "\r" in text and 2 * text.count("\r\n") > text.count("\n") else "\n"


def _headings(text: str, start: int) -> Iterable[tuple[int, int, str]]:
    """Return offset, level and title of each heading from `start` on."""
    found: list[tuple[int, int, str]] = []
    last = start  # where the last heading, fence or rule ends, or begins if it may be text
    mark = _FIRST_MARK.match(text, start) or _MARK.search(text, start)
    while mark:
        at = mark.end()
        if mark["hashes"] and not mark["indent"]:
            found.append((mark.start("indent"), len(mark["hashes"]), _clean_title(mark["title"])))
            last = at
        elif mark["fence"] and not mark["indent"]:
            # CommonMark: the info string of a back-tick fence holds no back-tick; such a line is inline code.
            if mark["fence"][0] == "~" or "`" not in mark["info"]:
                closing = _closing_fence(mark["fence"]).search(text, at)
                if closing is None:
                    return _read(text, start)
                last = at = closing.end()
        elif mark["line"]:
            above, last = text[last : mark.start("indent")].split("\n")[:-1], mark.start("indent")
            rows = [*takewhile(lambda row: row.strip(" \t\r"), reversed(above))][::-1]
            if rows and not _RULE.match(rows[-1]):
                if not all(row[0].isalpha() for row in rows):  # may be part of a list, a quotation or code
                    return _read(text, start)
                title = " ".join(row.replace("\r", " ").strip() for row in rows)
                found.append((last - sum(len(row) + 1 for row in rows), 1 if mark["line"][0] == "=" else 2, title))
                last = at
        else:
            return _read(text, start)
        mark = _MARK.search(text, at)
    return found


def _closing_fence(fence: str, indent: int = 0) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]{{0,{indent}}} {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?$", re.MULTILINE)


def _read(text: str, start: int) -> Iterator[tuple[int, int, str]]:
    """Yield the same as `_headings`, found by a complete CommonMark parser."""
    lines = text[start:].split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=start))
    tokens = _parser().parse("\n".join(line.removesuffix("\r").replace("\r", " ") for line in lines))
    for token, said in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            yield starts[token.map[0]], int(token.tag[1]), " ".join(map(str.strip, said.content.split("\n")))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # imported here: few documents need it
    from markdown_it.rules_block import fence, html_block

    reader = MarkdownIt("commonmark").disable(["inline", "text_join"], ignoreInvalid=True)
    above = ["paragraph", "reference", "blockquote"]
    reader.block.ruler.at("fence", partial(_closed_or_text, fence), {"alt": [*above, "list"]})
    reader.block.ruler.at("html_block", partial(_closed_or_text, html_block), {"alt": above})
    return reader


def _closed_or_text(rule: _Rule, state: StateBlock, line: int, end_line: int, silent: bool) -> bool:
    """Parse a top-level fence or HTML block, but treat its first line as text if nothing closes the block."""
    if silent or state.level or not rule(state, line, end_line, True):
        return rule(state, line, end_line, silent)
    from markdown_it.rules_block.html_block import HTML_SEQUENCES

    begin, end = state.bMarks[line] + state.tShift[line], state.eMarks[line]
    said = state.src[begin:end]
    if said[0] == "<":
        closing = next(closing for opening, closing, _ in HTML_SEQUENCES if opening.search(said))
    else:
        begin, closing = end, _closing_fence(said[: len(said) - len(said.lstrip(said[0]))])
    unclosed = state.env.setdefault("unclosed", set())
    # A block that a blank line ends may also end with the document.
    if closing not in unclosed and (closing.search("") or closing.search(state.src, begin)):
        return rule(state, line, end_line, silent)
    unclosed.add(closing)
    state.line = line + 1
    return True


def _clean_title(title: str | None) -> str:
    """Return a heading's text without a closing row of `#`, unless the row directly follows a word."""
    text = (title or "").strip()
    bare = text.rstrip("#")
    return bare.rstrip() if bare == "" or bare[-1] in " \t" else text
