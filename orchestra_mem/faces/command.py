"""What makes a function a command: common options, the open memory, how the answer is printed, errors, exit codes.

A command asks by the names of its parameters for what it needs (`memory`, `run`), and returns what is to be printed.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib.util import LazyLoader, find_spec, module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from orchestra_mem import build
from orchestra_mem.errors import ConfigError, OrchestraMemError, StorageError, TokenizerError
from orchestra_mem.serialize import to_json
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

    from orchestra_mem.faces import recall_views as recall_views
    from orchestra_mem.faces import views as views
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.settings import Settings
else:

    def _on_first_use(name: str) -> object:
        """Load a module when it is first used: tables need rich, and neither the help nor `--json` shows one."""
        spec = find_spec(f"orchestra_mem.faces.{name}")
        spec.loader = LazyLoader(spec.loader)
        module = sys.modules[spec.name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    views, recall_views = map(_on_first_use, ("views", "recall_views"))

_Function = TypeVar("_Function", bound=Callable[..., Any])

FAILED, USAGE, CONFIGURATION, STORAGE, INTERRUPTED = 1, 2, 3, 4, 130
EPILOG = "Exit codes: 0 success, 1 failure or faults found, 2 wrong usage, 3 configuration, 4 storage, 130 Ctrl-C."


class CommandGroup(typer.core.TyperGroup):
    """A group whose help lists each command below the heading of its panel, with its first sentence, uncut."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands into the help."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, each in self.commands.items():
            sentence = " ".join((each.help or "").split()).partition(". ")[0].rstrip(".")
            panels.setdefault(getattr(each, "rich_help_panel", None) or "Commands", []).append((name, f"{sentence}."))
        width = max(map(len, self.commands))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), sentence) for name, sentence in rows])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what pydantic says of a wrong value is put in fewer words, with the value."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            told = re.sub(r"^Value error, |, unable to parse string as .*$", "", error.message)
            faults: list[Any] = getattr(error.__cause__, "errors", list)()
            error.message = told.replace("Input should be", f"{faults[0]['input']!r} is not", 1) if faults else told
            raise


# Without markup the help needs no rich, which takes longer to load than everything else together.
app = typer.Typer(
    name="orchestra-mem", cls=CommandGroup, rich_markup_mode=None, epilog=EPILOG, no_args_is_help=True,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["--help", "-h"]},
)  # fmt: skip


def add_group(name: str, panel: str, *, cls: type[CommandGroup] = CommandGroup, **options: Any) -> typer.Typer:
    """Add a group of commands to the program; one without `help` has a `bare` command, see `command`."""
    group = typer.Typer(cls=cls, epilog=EPILOG, no_args_is_help="help" in options, **options)
    app.add_typer(group, name=name, rich_help_panel=panel)
    return group


def option(name: str, words: str, **more: Any) -> Any:
    """Make an option: `--limit N` takes a value, `--all` is on where it is given."""
    name, _, metavar = name.partition(" ")
    return typer.Option(name, metavar=metavar, help=words, **more)


def argument(metavar: str, words: str, **more: Any) -> Any:
    """Make an argument."""
    return typer.Argument(metavar=metavar, help=words, **more)


ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", "-C", metavar="DIR", help="The project's folder; else the nearest upwards with .obra."),
]
JsonOption = Annotated[bool, option("--json", "Print one JSON document instead.")]
JsonLinesOption = Annotated[bool, option("--json", "Print one JSON object a line instead.")]
DebugOption = Annotated[bool, option("--debug", "Log to stderr, and show where an error came from.")]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command answers: a value for `--json`, for people a text or what draws one; whether it failed.

    Notes go to stderr, one a line; the exit code is that of a failure.
    """

    value: object
    view: str | Callable[[], str | Iterable[RenderableType]]
    failed: bool = False
    notes: Sequence[str] = ()
    exit_code: int = FAILED


def command(
    panel: str | None = None, *, of: typer.Typer = app, name: str | None = None, creates: bool = False,
    json_lines: bool = False, bare: bool = False,
) -> Callable[[_Function], _Function]:  # fmt: skip
    """Make a function a command with `--project`, `--json` and `--debug`.

    Its parameter `memory` is the project's memory, open until it returns, and `run` how it was called. The others are
    its arguments and options. Errors of ours become words and an exit code.

    Args:
        panel: the heading of the help that it stands under.
        of: the group that it belongs to.
        name: in place of the function's.
        creates: whether a memory is made where there is none.
        json_lines: `--json` gives a line for each thing that happens, which the command itself prints.
        bare: it is what the group does where none of its commands is named; a project named there holds for those too.
    """
    added: Any = of.callback(invoke_without_command=True) if bare else of.command(name, rich_help_panel=panel)

    def decorate(function: _Function) -> _Function:
        added(_with_common_options(function, creates=creates, json_lines=json_lines, bare=bare))
        return function

    return decorate


def _with_common_options(function: _Function, *, creates: bool, json_lines: bool, bare: bool) -> Callable[..., None]:
    wanted = {"run", "memory"} & set(inspect.signature(function).parameters)
    for unneeded in (*wanted, "return"):  # types that are not loaded; typer reads those of options alone
        function.__annotations__.pop(unneeded, None)

    @wraps(function)
    def run_command(*, project: Any, as_json: bool, debug: bool, **given: Any) -> None:
        if bare and (context := given.pop("context")).invoked_subcommand is not None:
            if project is not None:
                context.default_map = {context.invoked_subcommand: {"project": str(project)}}
            return
        run = Invocation(project, as_json, debug)
        with _errors_in_words(run), _logging_to_stderr(debug):
            if "run" in wanted:
                given["run"] = run
            if "memory" in wanted:
                with run.open(create=creates) as memory:
                    result = function(memory=memory, **given)
            else:
                result = function(**given)
            if result is not None:
                run.print_result(result)

    own = [each for each in inspect.signature(function, eval_str=True).parameters.values() if each.name not in wanted]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, default, annotation in (
            ("project", None, ProjectOption),
            ("as_json", False, JsonLinesOption if json_lines else JsonOption),
            ("debug", False, DebugOption),
            *([("context", None, typer.Context)] if bare else []),
        )
    ]
    run_command.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]
    # Types as they are, not as text: typer would evaluate each once more.
    run_command.__annotations__ = {each.name: each.annotation for each in (*own, *common)}
    return run_command


class _AnswerLostError(OSError):
    """What a command answers could not be written, as on a full disk."""


@contextmanager
def _answering() -> Iterator[None]:
    """Tell an error of the answer on its way out from those of what the command does."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _AnswerLostError(str(error)) from error


@dataclass(frozen=True)
class Invocation:
    """One call of a command: where its project is, and how it prints. Answers go to stdout, all else to stderr."""

    given: Path | None
    as_json: bool
    debug: bool

    @cached_property
    def project(self) -> Path:
        """The project's folder: the one named, else the nearest upwards that has a memory, else this one."""
        if self.given is None:
            try:
                here = Path.cwd()
            except FileNotFoundError:
                raise StorageError("this folder has been deleted; go to another one, or name a project by -C") from None
            return build.find_project(here) or here
        if not self.given.is_dir():
            raise typer.BadParameter(f"{self.given} is not a folder", param_hint="--project")
        return self.given.resolve()

    @cached_property
    def settings(self) -> Settings:
        """What is set for the project, by files and the environment."""
        return build.load_settings(self.project, os.environ)

    def open(self, *, create: bool = False) -> OrchestratorContextManager:
        """Open the memory; only with `create` is one made where there is none."""
        home = self.project / build.HOME
        new = not home.is_dir()
        if not create or os.path.lexists(home):
            self.require_memory()
        memory = build.open_memory(self.project)
        if new:
            self.tell(f"made a new memory in {home}")
        return memory

    def require_memory(self) -> None:
        """Make sure that the project has a memory, without opening it.

        Raises:
            StorageError: it has none.
        """
        home = self.project / build.HOME
        if home.is_dir():
            return
        if os.path.lexists(home):
            raise StorageError(f"{home} must be a folder, and is not: move it away, or name a project by -C")
        raise StorageError(f"no memory in {self.project}; run `orchestra-mem init` there, or name a folder by -C")

    @cached_property
    def out(self) -> Console:
        """The terminal, or what stdout was led to."""
        from rich.console import Console

        class Piped(Console):  # reports a closed pipe to its caller instead of exiting by itself
            def on_broken_pipe(self) -> None:
                raise BrokenPipeError

        return Piped(highlight=False, soft_wrap=False)

    @_answering()
    def show(self, *what: RenderableType) -> None:
        """Print for people; a line that is plain text needs no rich."""
        for each in what:
            if isinstance(each, str):
                sys.stdout.write(f"{each}\n")
                continue
            from rich.text import Text

            # How a text folds is forgotten by `print` unless it is told again.
            folds: Any = {"no_wrap": each.no_wrap, "overflow": each.overflow} if isinstance(each, Text) else {}
            self.out.print(each, **folds)
        sys.stdout.flush()

    @_answering()
    def text(self, text: str) -> None:
        """Print a text as it is, byte for byte."""
        typer.echo(_encoded(text), nl=False)

    def tell(self, words: str) -> None:
        """Print a line on stderr."""
        typer.echo(_encoded(words + "\n"), err=True, nl=False)

    @_answering()
    def print_json(self, value: Json) -> None:
        """Print one JSON document."""
        typer.echo(json.dumps(value, indent=2))

    def print_result(self, result: CommandResult) -> None:
        """Print what a command answers, and end with its exit code if it has failed."""
        if self.as_json:
            self.print_json(to_json(result.value))
        else:
            shown = result.view() if callable(result.view) else result.view
            if isinstance(shown, str):
                self.text(shown)
            else:
                self.show(*shown)
        for note in result.notes:
            self.tell(note)
        if result.failed:
            raise typer.Exit(result.exit_code)

    @contextmanager
    def steps(self, total: int | None = None) -> Iterator[Callable[..., None]]:
        """Show a bar, and give what tells it each step by name."""
        with self.progress() as bar:
            task = bar.add_task("", total=total)
            yield lambda step, *_: bar.update(task, description=step, advance=1 if total else 0)

    def progress(self, unit: str = "") -> Progress:
        """Make a progress bar, shown on stderr where that is a terminal and gone when done."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

        counted = [TaskProgressColumn()] if unit == "bytes" else [MofNCompleteColumn(), TextColumn(unit)]
        console = Console(stderr=True, highlight=False)
        return Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=30), *counted,
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip


@contextmanager
def _errors_in_words(run: Invocation) -> Iterator[None]:
    """Turn errors of ours into words and an exit code; end on Ctrl-C, and say so."""
    if sys.stdout is None:
        # Closed by whoever started us, as by `>&-`: then nobody wants the answer.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        yield
    except typer.BadParameter as error:
        if run.as_json:
            run.print_json({"error": {"kind": "UsageError", "message": error.message, "exit_code": USAGE}})
        raise
    except KeyboardInterrupt:
        run.tell("\norchestra-mem: interrupted; what had been recorded stays, and nothing was left half-done")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        give_up_output()  # the reader has gone, as in `… | head`
        raise typer.Exit(0) from None
    except _AnswerLostError as error:
        give_up_output(f"orchestra-mem: the command is done, but its answer could not be written: {error}")
        raise typer.Exit(STORAGE) from error
    except (OrchestraMemError, OSError) as error:
        if run.debug and isinstance(error, OSError):
            raise StorageError(str(error)) from error  # `main` takes others for the help on its way out
        if run.debug:
            raise
        code = STORAGE if isinstance(error, StorageError | OSError) else FAILED
        if isinstance(error, ConfigError | TokenizerError):
            code = CONFIGURATION
        if run.as_json:
            run.print_json({"error": {"kind": type(error).__name__, "message": str(error), "exit_code": code}})
        run.tell(f"orchestra-mem: {error}")
        raise typer.Exit(code) from error


def give_up_output(words: str = "") -> None:
    """Say why nothing more can be printed, and send nowhere what Python would still flush at its end."""
    if words:
        typer.echo(words, err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _logging_to_stderr(debug: bool) -> Iterator[None]:
    """Show what the library logs while a command runs; afterwards all is as it was."""
    logger, window = logging.getLogger("orchestra_mem"), logging.getLogger("orchestra_mem.core.context.window")
    before = logger.level, window.level
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"{'%(levelname)s %(name)s' if debug else 'orchestra-mem'}: %(message)s"))
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
