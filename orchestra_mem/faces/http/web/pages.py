"""Shared by all pages: templates, navigation, forms, static files, and the conversion of documents to HTML.

A label after each block of a document names its authors. HTML in a document is shown as text, and images are not
loaded. The routes are in the other modules of this package.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, HTTPException, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from pydantic import model_validator
from starlette.responses import HTMLResponse
from starlette.types import Scope

from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.conflicts import ConflictBlock, find_conflicts
from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.core.text import visible
from orchestra_mem.faces.http.json_answers import Given, Paged
from orchestra_mem.faces.records import counted
from orchestra_mem.serialize import local_time
from orchestra_mem.tiers.authorship import BlamedLine
from orchestra_mem.types import Json

_BOXES = {"[ ] ": "\u2610 ", "[x] ": "\u2611 ", "[X] ": "\u2611 "}
_LABELLED = ("inline", "fence", "code_block", "table_open")
_MOST_LINKS = 2
_DASH = "\u2013"
_LEVEL = 1  # level of the page's own heading; headings of a document get lower levels


class Piece(NamedTuple):
    """A part of a document: text as HTML, or a conflict with the person's lines (then `html` is None)."""

    html: Markup | None
    conflict: ConflictBlock | None = None
    mine: Sequence[str] = ()


def _label(lines: Sequence[BlamedLine]) -> str:
    """Return the label of some lines as HTML: their authors, the time of the latest change, links to operations."""
    found = [line.origin for line in lines if line.text.strip()]
    writers = dict.fromkeys(origin.writer.value for origin in found)
    time = max((origin.time for origin in found if origin.time), default=None)
    when = f' <time datetime="{time:%Y-%m-%dT%H:%MZ}">{local_time(time):%Y-%m-%d %H:%M}</time>' if time else ""
    operations = dict.fromkeys(each for origin in found for each in origin.operations)
    links = "".join(
        f' <a href="/original?of=op{first}">op {first}{_DASH + str(last) if last > first else ""}</a>'
        for first, last in [*operations][:_MOST_LINKS]
    )
    return f'<small class="blame">{escape(", ".join(writers))}{when}{links}</small>'


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def pieces_of(text: str, blame: Sequence[BlamedLine] = ()) -> list[Piece]:
    """Render a document. Each conflict is a piece. The person's side, if changed since, also ends the piece before."""
    lines = split_lines(text)
    done = len(lines) - len(split_lines(without_front_matter(text)))
    pieces: list[Piece] = []
    for block in find_conflicts(text):
        above = max(done, block.line - 1 - block.person_lines)
        shown = above if block.unchanged else block.line - 1
        pieces += [Piece(_html(lines, done, shown, blame)), Piece(None, block, lines[above : block.line - 1])]
        done = block.last_line
    return [*pieces, Piece(_html(lines, done, len(lines), blame))]


def markdown_html(text: str) -> Markup:
    """Render a Markdown text without authors or conflicts."""
    lines = split_lines(text)
    return _html(lines, 0, len(lines), ())


def _html(lines: Sequence[str], start: int, end: int, blame: Sequence[BlamedLine]) -> Markup:
    """Render lines `start` to `end` of a document, with a label where it differs from the one before."""
    parser, marked, is_held = _parser(), "", False
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
            is_held = True  # no label within a heading or a table
        elif token.type in ("heading_close", "table_close"):
            is_held = False
        if blame and token.map and token.type in _LABELLED:
            label = _label(blame[start + token.map[0] : start + token.map[1]])
            if label != marked:
                marked = label
                waiting.append(Token("html_block", "", 0, content=label))
        if not is_held:
            shown += waiting
            waiting = []
    return Markup(parser.renderer.render(shown, parser.options, {}))


_SHORT_CHARS = 300
_HERE = Path(__file__).parent


class Form(Given):
    """Query parameters sent by an HTML form: empty fields count as missing."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty_fields(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if value not in ("", [""], None)}


@dataclass(frozen=True, slots=True)
class View:
    """An entry of the navigation. An `owner_only` page is refused to agents."""

    name: str
    path: str
    owner_only: bool = False


VIEWS = (
    View("Home", "/"), View("Sessions", "/sessions", True), View("Search", "/search"),
    View("Documents", "/documents", True), View("Facts", "/facts"), View("Catalog", "/catalog"),
    View("Work", "/work", True), View("Audit", "/audit", True), View("Prompt", "/prompt"),
)  # fmt: skip


def load_templates() -> None:
    """Compile all templates in advance, because compiling a template takes longer than rendering it."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def page_text(template: str, agent: str | None, **what: Any) -> bytes:
    """Render a page.

    Args:
        template: File name of the template.
        agent: The caller: an agent or `OWNER`; None if unauthenticated, for a page without navigation.
        what: Variables of the template.
    """
    shown = [each for each in VIEWS if agent == OWNER or (agent is not None and not each.owner_only)]
    refused = [each.name for each in VIEWS if each not in shown] if agent is not None else []
    known = {"views": shown, "refused": refused, "agent": None if agent == OWNER else agent, "project": "", "here": ""}
    return _environment().get_template(template).render(known | what).encode("utf-8", "replace")


def render(request: Request, template: str, status: int = 200, **what: Any) -> HTMLResponse:
    """Return a page for the caller. Contents of the memory are passed in `what`, and are escaped."""
    project = request.app.state.memory.shared_log.name  # as documents and other projects name it
    text = page_text(template, request.scope["caller"], project=project, here=request.url.path, **what)
    return HTMLResponse(text, status)


def refusal_page(problem: Mapping[str, Any], scope: Scope) -> tuple[bytes, str]:
    """Render the page of a refusal, and return it with its Content-Security-Policy.

    Without a token no other file can be loaded, so the page contains its style, which the policy allows by its hash.
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
    """Return the static files by name."""
    return {path.name: path.read_bytes() for path in (_HERE / "static").iterdir()}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, auto_reload=False,
        trim_blocks=True, lstrip_blocks=True, finalize=_shown,
    )  # fmt: skip
    made.filters |= {"when": _when, "number": "{:,}".format, "percent": "{:.0%}".format, "counted": counted}
    made.filters |= {"said": _said, "in_short": _in_short, "markdown": markdown_html}
    made.globals |= {"static": _static_address, "utc_offset": _utc_offset}
    return made


def _shown(value: object) -> object:
    """Convert a template value: None to an empty text, and characters that cannot be displayed to escapes."""
    return "" if value is None else visible(value) if type(value) is str else value


def _when(time: datetime | str | None) -> str:
    time = datetime.fromisoformat(time) if isinstance(time, str) else time
    return f"{local_time(time):%Y-%m-%d %H:%M:%S}" if time else ""


def _utc_offset() -> str:
    """Return the present offset of this machine's time zone, as in `+01:00`."""
    return datetime.now().astimezone().isoformat()[-len("+01:00") :]


def _said(data: Json) -> str:
    """Format recorded data: an object as lines of `name: value`, a text or a single field `text` as is, else JSON."""
    if isinstance(data, dict) and data.keys() != {"text"}:
        values = {name: _as_text(value) for name, value in data.items()}
        return "\n".join(f"{name}:{chr(10) if chr(10) in said else ' '}{said}" for name, said in values.items())
    return _as_text(data["text"] if isinstance(data, dict) else data)


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _in_short(text: str) -> str:
    """Shorten a Markdown text to one line for a list, cut after `_SHORT_CHARS` characters."""
    lines = (line.strip("#->_ \t").replace("**", "") for line in text.splitlines())
    short = " · ".join(filter(None, lines))
    return short if len(short) <= _SHORT_CHARS else f"{short[:_SHORT_CHARS]} …"


@cache
def _static_address(name: str) -> str:
    """Return the URL of a static file. It contains a hash of the content, so that browsers may cache it."""
    return f"/static/{name}?v={hashlib.sha256(static_files()[name]).hexdigest()[:12]}"


_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 100


class ListForm(Form, Paged):
    """Filter and page of a list."""

    @property
    def address(self) -> str:
        """The query string of the list without its page, to which `offset=N` can be appended."""
        given = self.model_dump(mode="json", exclude_unset=True, exclude={"offset"})
        return f"?{urlencode(given, doseq=True)}{'&' * bool(given)}"


async def _sent(request: Request) -> dict[str, str]:
    """Parse a form's fields; if a name is repeated, the last value counts."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, f"send the fields of the form as {_FORM}, as browsers do")
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise HTTPException(422, "the body is not a valid form") from None


Sent = Annotated[dict[str, str], Depends(_sent)]
"""The fields of a sent form by name."""
