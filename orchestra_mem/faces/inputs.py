"""What commands are given: options and their help, stdin, agent names, times, common options."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from enum import EnumType
from typing import Annotated, Any, TextIO, get_args, get_origin

from typer import Argument, BadParameter, Option

from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.errors import InvalidTimeError
from orchestra_mem.faces.filter_times import filter_time


def not_blank(given: str | None) -> str | None:
    """Return a name unchanged; reject an empty one, as from an unset shell variable."""
    if given is not None and not given.strip():
        raise BadParameter("it is empty: give a name")
    return given


def agent_name(given: str | None) -> str:
    """Return the agent to act as, by default the owner; reject an empty name, as from an unset shell variable."""
    if given is not None and not given.strip():
        raise BadParameter("the name is empty: name an agent, or leave the option out")
    return given.strip() if given is not None else OWNER


def from_stdin() -> bytes:
    """Read stdin to its end.

    Raises:
        BadParameter: stdin is closed.
    """
    # If stdin was closed, for example by `<&-`, Python sets it to None. Typeshed does not declare that.
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise BadParameter("stdin is closed: pipe the input in, or give it as an argument")
    return stdin.buffer.read()


def text_or_stdin(given: str | None) -> str | None:
    """Return a given text; for `-`, read stdin to its end instead.

    Raises:
        BadParameter: stdin is closed, or is not UTF-8.
    """
    try:
        return from_stdin().decode("utf-8-sig") if given == "-" else given
    except UnicodeDecodeError as error:
        raise BadParameter(f"stdin is not UTF-8 text: {error}") from error


def parse_time(given: str, now: datetime | None = None) -> datetime:
    """Parse a time in any form of `filter_time`; without an offset it is local.

    Raises:
        BadParameter: The text is no time.
    """
    try:
        return filter_time(given, now)
    except InvalidTimeError as error:
        raise BadParameter(str(error)) from None


def option(name: str, words: str, **more: Any) -> Any:
    """Make an option: `--limit N` takes a value, `--all` is a flag."""
    name, _, metavar = name.partition(" ")
    return Option(name, metavar=metavar, help=words, **more)


def argument(metavar: str, words: str, **more: Any) -> Any:
    """Make a positional argument."""
    return Argument(metavar=metavar, help=words, **more)


def complete_help(annotation: Any) -> None:
    """Let the help of an option or argument list the values of its enum, and tell that a list may be repeated."""
    kind, info = get_args(annotation)
    inner = {kind, *get_args(kind), *(each for part in get_args(kind) for each in get_args(part))}
    values = [", ".join(each) for each in inner if isinstance(each, EnumType) and info.parser is None]
    sentences = [f"One of: {each}." for each in values if "one of:" not in info.help]
    sentences += ["May be repeated."] * any(get_origin(each) is list for each in inner)
    info.help = " ".join([info.help, *(each for each in sentences if each not in info.help)])


SinceOption = Annotated[
    datetime | None,
    option(
        "--since TIME",
        "Only from this time on: ISO 8601, a span before now such as 2h, or a period such as Monday.",
        parser=parse_time,
    ),
]
UntilOption = Annotated[
    datetime | None, option("--until TIME", "Only before this time or the start of this period.", parser=parse_time)
]
SessionOption = Annotated[str | None, option("--session ID", "Only this session: its id, or the beginning of its id.")]
LimitOption = Annotated[int, option("--limit N", "The newest N; 0 for all.", min=0)]


def up_to(found: Sequence[object], limit: int, which: str = "newest") -> list[str]:
    """Return a list of notes: if the limit was reached, a note on how to list all results; else empty."""
    return [f"showing the {which} {len(found):,}; --limit 0 shows all"] if limit and len(found) == limit else []
