"""How every page is made: its template, the navigation, forms, static files, and documents as HTML.

Behind each block of a document stands who wrote what. HTML in a text is shown as text, and no image is loaded. What a
page shows is in its own module.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, HTTPException, Query, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pydantic import model_validator
from starlette.responses import HTMLResponse
from starlette.types import Scope

from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.conflicts import find_conflicts
from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.core.text import visible
from orchestra_mem.faces.http.json_answers import Given
from orchestra_mem.faces.records import counted
from orchestra_mem.faces.views import short_time
from orchestra_mem.tiers.authorship import BlamedLine
from orchestra_mem.types import Json

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


_SHORT_CHARS = 300
_HERE = Path(__file__).parent


PageNumber = Annotated[int, Query(ge=1, le=2**31)]
"""Which page of a list is wanted."""


@dataclass(frozen=True, slots=True)
class Pager:
    """Cuts a list into pages."""

    page: int
    total: int
    size: int = 20

    @property
    def offset(self) -> int:
        """How many come before this page."""
        return (self.page - 1) * self.size

    @property
    def pages(self) -> int:
        """How many pages there are, at least one."""
        return max(1, -(-self.total // self.size))


class Form(Given):
    """Parameters as a form of a page sends them: a field that is left empty is not given."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty_fields(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if value not in ("", [""], None)}


@dataclass(frozen=True, slots=True)
class View:
    """A place in the navigation. What is `owner_only` is refused to agents."""

    name: str
    path: str
    owner_only: bool = False


VIEWS = (
    View("Home", "/"), View("Sessions", "/sessions", True), View("Search", "/search"),
    View("Documents", "/documents", True), View("Facts", "/facts"), View("Catalog", "/catalog"),
    View("Work", "/work", True), View("Audit", "/audit", True), View("Prompt", "/prompt"),
)  # fmt: skip


def load_templates() -> None:
    """Compile all templates, which takes longer than to fill them."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def page_text(template: str, agent: str | None, **what: Any) -> bytes:
    """Write a page for an agent, for `OWNER`, or for nobody who is known.

    Args:
        template: its file.
        agent: who looks at it; None shows no navigation.
        what: what it shows.
    """
    shown = [each for each in VIEWS if agent == OWNER or (agent is not None and not each.owner_only)]
    refused = [each.name for each in VIEWS if each not in shown] if agent is not None else []
    known = {"views": shown, "refused": refused, "agent": None if agent == OWNER else agent, "project": "", "here": ""}
    return _environment().get_template(template).render(known | what).encode("utf-8", "replace")


def render(request: Request, template: str, status: int = 200, **what: Any) -> HTMLResponse:
    """Answer with a page for who asks. What the memory says goes through `what`, and is escaped."""
    project = request.app.state.project.name
    text = page_text(template, request.scope["caller"], project=project, here=request.url.path, **what)
    return HTMLResponse(text, status)


def refusal_page(problem: Mapping[str, Any], scope: Scope) -> tuple[bytes, str]:
    """Write the page of a refusal, and the policy that it needs.

    Whoever has no token gets no other file, so the page brings its style along: this one style and no other.
    """
    style = static_files()["page.css"]
    page = page_text(
        "refusal.html", scope.get("caller"), problem=problem, style=style.decode(),
        tried=b"token=" in scope["query_string"], was_sent=scope["method"] == "POST",
    )  # fmt: skip
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
    policy = "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    return page, f"{policy}; style-src 'sha256-{digest}'"


@cache
def static_files() -> Mapping[str, bytes]:
    """Give the files that pages load, by name."""
    return {path.name: path.read_bytes() for path in (_HERE / "static").iterdir()}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, auto_reload=False,
        trim_blocks=True, lstrip_blocks=True, finalize=_shown,
    )  # fmt: skip
    made.filters |= {"when": _when, "number": "{:,}".format, "percent": "{:.0%}".format, "counted": counted}
    made.filters |= {"said": _said, "in_short": _in_short, "markdown": markdown_html}
    made.globals["static"] = _static_address
    return made


def _shown(value: object) -> object:
    """Write what is put into a page: nothing for None, and marks for characters that no page can show."""
    return "" if value is None else visible(value) if type(value) is str else value


def _when(time: datetime | None) -> str:
    return f"{short_time(time)} UTC" if time else ""


def _said(data: Json) -> str:
    """Write what was recorded: texts as they are, with their names where there are several; all else as JSON."""
    if isinstance(data, dict) and data.keys() != {"text"}:
        values = {name: _said(value) for name, value in data.items()}
        return "\n".join(f"{name}:{chr(10) if chr(10) in said else ' '}{said}" for name, said in values.items())
    said = data["text"] if isinstance(data, dict) else data
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, indent=2)


def _in_short(text: str) -> str:
    """Put what a markdown text says in one line, as much as a list shows of it."""
    lines = (line.strip("#->_ \t").replace("**", "") for line in text.splitlines())
    short = " · ".join(filter(None, lines))
    return short if len(short) <= _SHORT_CHARS else f"{short[:_SHORT_CHARS].rpartition(' ')[0]} …"


@cache
def _static_address(name: str) -> str:
    """Give the address of a static file, another one for another content, so that browsers may keep it."""
    return f"/static/{name}?v={hashlib.sha256(static_files()[name]).hexdigest()[:12]}"


_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 100


class ListForm(Form):
    """What a list is narrowed by, and which page of it is wanted."""

    page: PageNumber = 1

    @property
    def address(self) -> str:
        """What an address of the same list has behind its path, but for the page."""
        given = self.model_dump(mode="json", exclude_unset=True, exclude={"page"})
        return f"?{urlencode(given, doseq=True)}{'&' * bool(given)}"


async def _sent(request: Request) -> dict[str, str]:
    """Read a form's fields; of two with one name the last."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, f"send the fields of the form as {_FORM}, as browsers do")
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise HTTPException(422, "this is no form as browsers send them") from None


Sent = Annotated[dict[str, str], Depends(_sent)]
"""The fields of a form, by their names."""
