"""Documents as HTML, with who wrote what behind each block. HTML in a text is shown as text, and no image is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.conflicts import find_conflicts
from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.tiers.authorship import BlamedLine

_BLAME = "blame"
_BOXES = {"[ ] ": "\u2610 ", "[x] ": "\u2611 ", "[X] ": "\u2611 "}
_LABELLED = ("inline", "fence", "code_block", "table_open")
_MOST_LINKS = 2
_DASH = "\u2013"
_LEVEL = 1  # of the page's own heading, below which those of a document stand


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a document in its order: text as HTML, or a conflict that stands at this place."""

    html: Markup | None = None
    conflict: str = ""
    mine: Sequence[str] = field(default_factory=list)
    machine: Sequence[str] = field(default_factory=list)
    changed_meanwhile: bool = False


@dataclass(frozen=True, slots=True)
class Origins:
    """Who wrote some lines, when last, and from which operations."""

    writers: tuple[str, ...]
    time: datetime | None
    operations: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, lines: Sequence[BlamedLine]) -> Origins:
        """Join the origins of lines; blank ones do not count."""
        found = [line.origin for line in lines if line.text.strip()]
        operations = dict.fromkeys(each for origin in found for each in origin.operations)
        time = max((origin.time for origin in found if origin.time), default=None)
        return cls(tuple(dict.fromkeys(origin.writer.value for origin in found)), time, tuple(operations))

    def go_on_from(self, told: Origins) -> bool:
        """Tell whether they are those that were told last, so that nothing is to be told anew."""
        is_same = (self.writers, self.operations) == (told.writers, told.operations)
        return is_same and self.time in (None, told.time)

    @property
    def html(self) -> str:
        """The label in the margin."""
        when = f' <time datetime="{self.time:%Y-%m-%dT%H:%MZ}">{self.time:%Y-%m-%d %H:%M}</time>' if self.time else ""
        links = "".join(
            f' <a href="/original?of=op{first}">op {first}{_DASH + str(last) if last > first else ""}</a>'
            for first, last in self.operations[:_MOST_LINKS]
        )
        return f'<small class="blame">{escape(", ".join(self.writers))}{when}{links}</small>'


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.add_render_rule(_BLAME, _blame_html)
    return parser


def _blame_html(renderer: RendererHTML, tokens: Sequence[Token], place: int, *more: object) -> str:
    return str(tokens[place].meta["html"])


def pieces_of(text: str, blame: Sequence[BlamedLine] = ()) -> list[Piece]:
    """Render a document; each conflict is a piece of its own, with the person's lines where they are as they were."""
    lines = split_lines(text)
    done = len(lines) - len(split_lines(without_front_matter(text)))
    pieces: list[Piece] = []
    for block in find_conflicts(text):
        above = max(done, block.line - 1 - block.person_lines)
        shown = above if block.unchanged else block.line - 1
        machine = split_lines(block.machine)
        pieces += [
            Piece(html=_html(lines, done, shown, blame)),
            Piece(
                conflict=block.id, mine=lines[above : block.line - 1], machine=machine,
                changed_meanwhile=not block.unchanged,
            ),
        ]  # fmt: skip
        done = block.last_line
    return [*pieces, Piece(html=_html(lines, done, len(lines), blame))]


def markdown_html(text: str) -> Markup:
    """Render a text that is no document."""
    lines = split_lines(text)
    return _html(lines, 0, len(lines), ())


def _html(lines: Sequence[str], start: int, end: int, blame: Sequence[BlamedLine]) -> Markup:
    """Render some lines of a document, with a label where others wrote than before."""
    parser, told, is_held = _parser(), Origins((), None, ()), False
    shown: list[Token] = []
    waiting: list[Token] = []
    for token in parser.parse("\n".join(lines[start:end])):
        if token.type.startswith("heading_"):
            token.tag = f"h{min(6, int(token.tag[1]) + _LEVEL)}"
        if token.type == "inline" and token.children and token.children[0].content[:4] in _BOXES:
            box = token.children[0]
            box.content = _BOXES[box.content[:4]] + box.content[4:]
        shown.append(token)
        if token.type in ("heading_open", "table_open"):
            is_held = True  # a label is no part of a heading, nor of a table
        elif token.type in ("heading_close", "table_close"):
            is_held = False
        if blame and token.map and token.type in _LABELLED:
            origins = Origins.of(blame[start + token.map[0] : start + token.map[1]])
            if not origins.go_on_from(told):
                told = origins
                waiting.append(Token(_BLAME, "", 0, meta={"html": origins.html}))
        if not is_held:
            shown += waiting
            waiting = []
    return Markup(parser.renderer.render(shown, parser.options, {}))
