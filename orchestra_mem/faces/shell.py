"""What all commands share: their common options, finding the memory, printing, errors in words, exit codes."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.errors import ConfigError, OrchestraMemError, StorageError, TokenizerError
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

    from orchestra_mem.memory.manager import OrchestratorContextManager

FAILED, USAGE, CONFIGURATION, STORAGE, INTERRUPTED = 1, 2, 3, 4, 130

ProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project", "-C", metavar="DIR", help="The project's folder. Default: the nearest one upwards with .obra.",
    ),
]  # fmt: skip
JsonOption = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON document instead.")]
DebugOption = Annotated[
    bool, typer.Option("--debug", metavar="", help="Log to stderr, and show where an error came from.")
]


@dataclass(frozen=True)
class Shell:
    """One run of a command: where its project is, and how it speaks. Answers go to stdout, all else to stderr."""

    given: Path | None
    as_json: bool
    debug: bool

    @cached_property
    def project(self) -> Path:
        """The project's folder: the one named, else the nearest upwards that has a memory, else this one."""
        from orchestra_mem.build import find_project

        if self.given is None:
            try:
                here = Path.cwd()
            except FileNotFoundError:
                raise StorageError("this folder has been deleted; go to another one, or name a project by -C") from None
            return find_project(here) or here
        if not self.given.is_dir():
            raise typer.BadParameter(f"{self.given} is no folder", param_hint="--project")
        return self.given.resolve()

    def open(self, *, create: bool = False) -> OrchestratorContextManager:
        """Open the memory; only with `create` is one made where there is none."""
        from orchestra_mem.build import HOME, open_memory

        home = self.project / HOME
        new = not home.is_dir()
        if not create or os.path.lexists(home):
            self.require_memory()
        memory = open_memory(self.project)
        if new:
            self.tell(f"made a new memory in {home}")
        return memory

    def bring_documents_up(self, memory: OrchestratorContextManager) -> None:
        """Have the documents say what a command has changed, for whoever opens one next.

        The change is stored by then: a failure here is told and is none of the command's, which would be given again.
        """
        try:
            memory.refresh()
        except StorageError as error:
            self.tell(f"orchestra-mem: the documents are not up to date yet: {error}")

    def require_memory(self) -> None:
        """Make sure that the project has a memory, without opening it.

        Raises:
            StorageError: it has none.
        """
        from orchestra_mem.build import HOME

        if not (self.project / HOME).is_dir():
            raise self._no_memory()

    def _no_memory(self) -> StorageError:
        from orchestra_mem.build import HOME

        home = self.project / HOME
        if os.path.lexists(home) and not home.is_dir():
            return StorageError(f"{home} is no folder, and a memory is one: move it away, or name a project by -C")
        return StorageError(f"no memory in {self.project}; run `orchestra-mem init` there, or name a folder by -C")

    @cached_property
    def out(self) -> Console:
        """The terminal, or what stdout was led to."""
        from rich.console import Console

        class Piped(Console):
            """A console for which a reader that has gone is no failure: `shell` sees to it."""

            def on_broken_pipe(self) -> None:
                raise BrokenPipeError

        return Piped(highlight=False, soft_wrap=False)

    @cached_property
    def err(self) -> Console:
        """The terminal for what is no answer."""
        from rich.console import Console

        return Console(stderr=True, highlight=False)

    def show(self, *what: RenderableType) -> None:
        """Print for people."""
        from rich.text import Text

        for each in what:
            # How a text folds is forgotten by `print` unless it is told again.
            if isinstance(each, Text):
                self.out.print(each, no_wrap=each.no_wrap, overflow=each.overflow)
            else:
                self.out.print(each)

    def text(self, text: str) -> None:
        """Print a text as it is, byte for byte."""
        typer.echo(_encoded(text), nl=False)

    def answer(self, value: Json) -> None:
        """Print one JSON document."""
        typer.echo(json.dumps(value, indent=2))

    def tell(self, words: str) -> None:
        """Say something that is not the answer."""
        typer.echo(_encoded(words + "\n"), err=True, nl=False)

    def progress(self, unit: str = "") -> Progress:
        """Make a progress bar, shown on stderr where that is a terminal and gone when done."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

        counted = [TaskProgressColumn()] if unit == "bytes" else [MofNCompleteColumn(), TextColumn(unit)]
        return Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=30), *counted,
            console=self.err, transient=True, disable=not self.err.is_terminal,
        )  # fmt: skip


@contextmanager
def shell(project: Path | None, as_json: bool, debug: bool) -> Iterator[Shell]:
    """Run a command's body: errors of ours become words and an exit code, Ctrl-C ends it and says so."""
    run = Shell(project, as_json, debug)
    if sys.stdout is None:
        # Closed by whoever started us, as by `>&-`: then nobody wants the answer.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        with _logging_to_stderr(debug):
            yield run
        sys.stdout.flush()
    except OrchestraMemError as error:
        if debug:
            raise
        code = _exit_code(error)
        if as_json:
            run.answer({"error": {"kind": type(error).__name__, "message": str(error), "exit_code": code}})
        run.tell(f"orchestra-mem: {error}")
        raise typer.Exit(code) from error
    except typer.BadParameter as error:
        if as_json:
            run.answer({"error": {"kind": "UsageError", "message": error.message, "exit_code": USAGE}})
        raise
    except KeyboardInterrupt:
        run.tell("\norchestra-mem: interrupted; what had been recorded stays, and nothing was left half-done")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read has gone, as in `… | head`. What Python would still flush at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        if debug:
            raise
        # Errors of the memory are ours; what is left is the answer on its way out, as on a full disk.
        run.tell(f"orchestra-mem: what was asked for is done, but its answer could not be written: {error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(STORAGE) from error


def _exit_code(error: OrchestraMemError) -> int:
    if isinstance(error, ConfigError | TokenizerError):
        return CONFIGURATION
    return STORAGE if isinstance(error, StorageError) else FAILED


@contextmanager
def _logging_to_stderr(debug: bool) -> Iterator[None]:
    """Show what the library logs while a command runs; afterwards all is as it was."""
    logger, window = logging.getLogger("orchestra_mem"), logging.getLogger("orchestra_mem.core.context.window")
    before = logger.level, window.level
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    # The window's thresholds are news to a program that runs for long. A command refreshes there, and `status` tells.
    window.setLevel(logging.NOTSET if debug else logging.CRITICAL)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        window.setLevel(before[1])


def _encoded(text: str) -> bytes:
    """A text in UTF-8; bytes of a document that were none come out as they went in, other surrogates as escapes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
