"""The `command` decorator: common options, opening the memory, printing the result, errors and exit codes.

A command function declares the parameters `memory` and `run` if it needs them, and returns the result to print.
"""

from __future__ import annotations

import inspect
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
from orchestra_mem.faces.inputs import argument as argument
from orchestra_mem.faces.inputs import complete_help
from orchestra_mem.faces.inputs import option as option
from orchestra_mem.serialize import readable_json, to_json
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
        """Import a module lazily, because it imports rich, which neither the help nor `--json` needs."""
        spec = find_spec(f"orchestra_mem.faces.{name}")
        spec.loader = LazyLoader(spec.loader)
        module = sys.modules[spec.name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    views, recall_views = map(_on_first_use, ("views", "recall_views"))

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PIPED_COLUMNS = 10_000  # what another program reads has no width to be cut to
FAILED, USAGE, CONFIGURATION, STORAGE, INTERRUPTED = 1, 2, 3, 4, 130
EPILOG = "Exit codes: 0 success, 1 failure or faults found, 2 wrong usage, 3 configuration, 4 storage, 130 Ctrl-C."


class CommandGroup(typer.core.TyperGroup):
    """A command group whose help lists the commands by panel, each with its complete first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands into the help."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, each in self.commands.items():
            sentence = " ".join((each.help or "").split()).partition(". ")[0].rstrip(".")
            panels.setdefault(getattr(each, "rich_help_panel", None) or "Commands", []).append((name, f"{sentence}."))
        width = max(map(len, self.commands))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), sentence) for name, sentence in rows])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; in pydantic's message about a value, name the value. With `--json` print a usage error too."""
        arguments = ctx.args
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            fault = re.sub(r"^Value error, |, unable to parse string as .*$", "", error.message)
            faults: list[Any] = getattr(error.__cause__, "errors", list)()
            error.message = fault.replace("Input should be", f"{faults[0]['input']!r} is not", 1) if faults else fault
            if ctx.parent is None and "--json" in arguments:
                what: Json = {"kind": "UsageError", "message": error.format_message(), "exit_code": error.exit_code}
                typer.echo(readable_json({"error": what}, indent=2))
            raise


# Without markup the help does not need rich, which takes longer to load than everything else together.
app = typer.Typer(
    name="orchestra-mem", cls=CommandGroup, rich_markup_mode=None, epilog=EPILOG, no_args_is_help=True,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["--help", "-h"]},
)  # fmt: skip


def add_group(name: str, panel: str, *, cls: type[CommandGroup] = CommandGroup, **options: Any) -> typer.Typer:
    """Add a group of commands to the program; a group without `help` needs a `bare` command, see `command`."""
    group = typer.Typer(cls=cls, epilog=EPILOG, no_args_is_help="help" in options, **options)
    app.add_typer(group, name=name, rich_help_panel=panel)
    return group


ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", "-C", metavar="DIR", help="The project's folder. Default: nearest upwards with .obra."),
]
JsonOption = Annotated[bool, option("--json", "Print one JSON document instead.")]
JsonLinesOption = Annotated[bool, option("--json", "Print one JSON object per line instead.")]
DebugOption = Annotated[bool, option("--debug", "Log to stderr, and show the traceback of an error.")]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a command: with `--json`, `value` is printed, else `view`, a text or a function that renders one.

    `notes` go to stderr, one a line. `exit_code` applies only if `failed` is set.
    """

    value: object
    view: str | Callable[[], str | Iterable[RenderableType]]
    failed: bool = False
    notes: Sequence[str] = ()
    exit_code: int = FAILED


def command(
    panel: str | None = None, *, of: typer.Typer = app, name: str | None = None, json_lines: bool = False,
    bare: bool = False,
) -> Callable[[_Function], _Function]:  # fmt: skip
    """Make a function a command with the options `--project`, `--json` and `--debug`.

    The function's parameter `memory` receives the project's memory, open until the function returns; `run` receives the
    `Invocation`. Other parameters become arguments and options. Expected errors become a message and an exit code.

    Args:
        panel: Heading of the help under which the command is listed.
        of: Group that the command belongs to.
        name: Name of the command, by default the function's name.
        json_lines: `--json` prints one JSON object per event; the command prints them itself.
        bare: Run the function if the group is called without a subcommand; `--project` of the group applies to both.
    """
    add = of.callback(invoke_without_command=True) if bare else of.command(name, rich_help_panel=panel, epilog=EPILOG)

    def decorate(function: _Function) -> _Function:
        add(_with_common_options(function, json_lines=json_lines, bare=bare))
        return function

    return decorate


def _with_common_options(function: _Function, *, json_lines: bool, bare: bool) -> Callable[..., None]:
    wanted = {"run", "memory"} & set(inspect.signature(function).parameters)
    for unneeded in (*wanted, "return"):  # their types may not be loaded, and typer does not need them
        function.__annotations__.pop(unneeded, None)

    @wraps(function)
    def run_command(*, project: Any, as_json: bool, debug: bool, **given: Any) -> None:
        if bare and (context := given.pop("context")).invoked_subcommand is not None:
            if project is not None:
                context.default_map = {context.invoked_subcommand: {"project": str(project)}}
            return
        run = Invocation(project, as_json, debug)
        with _errors_as_messages(run), _logging_to_stderr(debug):
            if "run" in wanted:
                given["run"] = run
            if "memory" in wanted:
                with run.open() as memory:
                    result = function(memory=memory, **given)
            else:
                result = function(**given)
            if result is not None:
                run.print_result(result)

    own = [each for each in inspect.signature(function, eval_str=True).parameters.values() if each.name not in wanted]
    for each in own:
        complete_help(each.annotation)
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
    # Evaluated types, because typer would evaluate each annotation string once more.
    run_command.__annotations__ = {each.name: each.annotation for each in (*own, *common)}
    return run_command


class _AnswerLostError(OSError):
    """The output of a command could not be written, for example to a full disk."""


@contextmanager
def _answering() -> Iterator[None]:
    """Turn an `OSError` raised while writing output into `_AnswerLostError`, except for `BrokenPipeError`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _AnswerLostError(str(error)) from error


@dataclass(frozen=True)
class Invocation:
    """One call of a command: its project and its output. Results go to stdout, everything else to stderr."""

    given: Path | None
    as_json: bool
    debug: bool

    @cached_property
    def project(self) -> Path:
        """The project's folder: `--project`, else the nearest folder upwards with a memory, else the current folder."""
        if self.given is None:
            try:
                here = Path.cwd()
            except FileNotFoundError:
                raise StorageError(
                    "the current folder was deleted; change to another, or name a project with -C"
                ) from None
            return build.find_project(here) or here
        if not self.given.is_dir():
            raise typer.BadParameter(f"{self.given} is not a folder", param_hint="--project")
        return self.given.resolve()

    @cached_property
    def settings(self) -> Settings:
        """The project's settings, from files and the environment."""
        return build.load_settings(self.project, os.environ)

    def open(self, *, create: bool = False) -> OrchestratorContextManager:
        """Open the memory. If it does not exist, create it if `create` is set, else raise `StorageError`."""
        home = self.project / build.HOME
        new = not home.is_dir()
        if not create or os.path.lexists(home):
            self.require_memory()
        memory = build.open_memory(self.project)
        if new:
            self.tell(f"created a new memory in {home}")
        return memory

    def require_memory(self) -> None:
        """Check that the project has a memory, without opening it.

        Raises:
            StorageError: The project has no memory.
        """
        home = self.project / build.HOME
        if home.is_dir():
            return
        if os.path.lexists(home):
            raise StorageError(f"{home} is not a folder: move it away, or name another project with -C")
        raise StorageError(f"no memory in {self.project}; run `orchestra-mem init` there, or name a project with -C")

    @cached_property
    def out(self) -> Console:
        """The rich console on stdout."""
        from rich.console import Console

        class Piped(Console):  # raises on a closed pipe, where rich would exit the process
            def on_broken_pipe(self) -> None:
                raise BrokenPipeError

        given = os.environ.get("COLUMNS", "").strip("0").isdigit()
        return Piped(highlight=False, width=None if given or sys.stdout.isatty() else _PIPED_COLUMNS)

    @_answering()
    def show(self, *what: RenderableType) -> None:
        """Print strings and renderables for people; strings are printed without loading rich."""
        for each in what:
            if isinstance(each, str):
                sys.stdout.write(f"{each}\n")
                continue
            from rich.text import Text

            # `Console.print` ignores the wrapping options of a `Text`, so they are passed as arguments.
            folds: Any = {"no_wrap": each.no_wrap, "overflow": each.overflow} if isinstance(each, Text) else {}
            if self.out.width == _PIPED_COLUMNS:
                views.show_whole(each)
            self.out.print(each, **folds)
        sys.stdout.flush()

    @_answering()
    def text(self, text: str) -> None:
        """Print a text byte for byte, without adding a newline."""
        typer.echo(_encoded(text), nl=False)

    def tell(self, words: str) -> None:
        """Print a line on stderr."""
        typer.echo(_encoded(words + "\n"), err=True, nl=False)

    def agrees(self, question: str) -> bool:
        """Ask a yes-or-no question on stderr and read the answer from stdin; only `y` and `yes` count as yes."""
        self.tell(f"{question} (yes or no)")
        return sys.stdin is not None and sys.stdin.readline().strip().lower() in ("y", "yes")

    @_answering()
    def print_json(self, value: Json) -> None:
        """Print one JSON document."""
        typer.echo(_encoded(f"{readable_json(value, indent=2)}\n"), nl=False)

    def print_result(self, result: CommandResult) -> None:
        """Print the result of a command; exit with its exit code if the command failed."""
        if self.as_json:
            self.print_json(to_json(result.value))
        elif isinstance(shown := result.view() if callable(result.view) else result.view, str):
            self.text(shown)
        else:
            self.show(*shown)
        for note in result.notes:
            self.tell(note)
        if result.failed:
            raise typer.Exit(result.exit_code)

    @contextmanager
    def steps(self, total: int | None = None) -> Iterator[Callable[..., None]]:
        """Show a progress bar, and yield a callback that takes the name of each step."""
        with self.progress() as bar:
            task = bar.add_task("", total=total)
            yield lambda step, *_: bar.update(task, description=step, advance=1 if total else 0)

    def progress(self, unit: str = "") -> Progress:
        """Make a progress bar on stderr, shown only on a terminal and erased at the end."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

        counted = [TaskProgressColumn()] if unit == "bytes" else [MofNCompleteColumn(), TextColumn(unit)]
        console = Console(stderr=True, highlight=False)
        return Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=30), *counted,
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip


@contextmanager
def _errors_as_messages(run: Invocation) -> Iterator[None]:
    """Turn expected errors and Ctrl-C into a message and an exit code."""
    if sys.stdout is None:
        # The parent process closed stdout, for example by `>&-`: discard the output.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        yield
    except KeyboardInterrupt:
        run.tell("\norchestra-mem: interrupted; everything recorded before is kept, and no change was left incomplete")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        give_up_output()  # the reader has closed the pipe, as in `… | head`
        raise typer.Exit(0) from None
    except _AnswerLostError as error:
        give_up_output(f"orchestra-mem: the command was completed, but its output could not be written: {error}")
        raise typer.Exit(STORAGE) from error
    except (OrchestraMemError, OSError) as error:
        if run.debug and isinstance(error, OSError):
            raise StorageError(str(error)) from error  # `main` reports an OSError as a failure to print the help
        if run.debug:
            raise
        configured = isinstance(error, ConfigError | TokenizerError)
        code = CONFIGURATION if configured else STORAGE if isinstance(error, StorageError | OSError) else FAILED
        if run.as_json:
            run.print_json({"error": {"kind": type(error).__name__, "message": str(error), "exit_code": code}})
        run.tell(f"orchestra-mem: {error}")
        raise typer.Exit(code) from error


def give_up_output(words: str = "") -> None:
    """Print `words`, if any, on stderr, and redirect stdout to the null device, so that its flush at exit works."""
    if words:
        typer.echo(words, err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _logging_to_stderr(debug: bool) -> Iterator[None]:
    """Show the library's log messages on stderr while a command runs, then restore the logging setup."""
    logger, window = logging.getLogger("orchestra_mem"), logging.getLogger("orchestra_mem.core.context.window")
    before = logger.level, window.level
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"{'%(levelname)s %(name)s' if debug else 'orchestra-mem'}: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    # Hide the window's threshold warnings, meant for long-running programs: commands refresh, and `status` shows them.
    window.setLevel(logging.NOTSET if debug else logging.CRITICAL)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        window.setLevel(before[1])


def _encoded(text: str) -> bytes:
    """Encode as UTF-8 and restore invalid bytes of documents; if there are other lone surrogates, escape them all."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
