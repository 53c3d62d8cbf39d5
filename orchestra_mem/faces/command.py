"""What makes a function a command of the program: common options, the open memory, the answer, the exit code.

A command asks by the names of its parameters for what it needs (`memory`, `run`), and returns what is to be told.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, Shell, shell

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestra_mem.faces import document_views as document_views
    from orchestra_mem.faces import recall_views as recall_views
    from orchestra_mem.faces import views as views
else:

    def _on_first_use(name: str) -> object:
        """Load a module when it is first used: tables need rich, and neither the help nor `--json` shows one."""
        spec = find_spec(name)
        spec.loader = LazyLoader(spec.loader)
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    views = _on_first_use("orchestra_mem.faces.views")
    recall_views = _on_first_use("orchestra_mem.faces.recall_views")
    document_views = _on_first_use("orchestra_mem.faces.document_views")

EPILOG = "Exit codes: 0 all well, 1 failed or faults found, 2 wrong usage, 3 configuration, 4 storage, 130 Ctrl-C."

app = typer.Typer(
    name="orchestra-mem", no_args_is_help=True, pretty_exceptions_enable=False, epilog=EPILOG,
    context_settings={"help_option_names": ["--help", "-h"]},
)  # fmt: skip
importing = typer.Typer(no_args_is_help=True, epilog=EPILOG)
config = typer.Typer(no_args_is_help=True, epilog=EPILOG)
work = typer.Typer(epilog=EPILOG)


def flag(name: str, words: str) -> Any:
    """Make an option without a value, on where it is given."""
    return typer.Option(name, metavar="", help=words)


JsonLinesOption = Annotated[bool, flag("--json", "Print one JSON object a line instead.")]
SessionOption = Annotated[str | None, typer.Option("--session", metavar="ID", help="A session's id, or how it begins.")]
LimitOption = Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The newest N; 0 for all.")]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="From then on; ISO 8601, or a span back as in 2h.")
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before then.")]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command answers: a value for `--json`, for people a text or what a view draws; a note; the exit code."""

    value: object
    view: str | Callable[[], str | Iterable[RenderableType]]
    exit_code: int = 0
    note: str = ""


def command(
    panel: str | None = None, *, of: typer.Typer = app, name: str | None = None, creates: bool = False,
    json_lines: bool = False,
) -> Callable[[Callable[..., CommandResult | None]], Callable[..., None]]:  # fmt: skip
    """Make a function a command with `--project`, `--json` and `--debug`.

    Its parameter `memory` is the project's memory, open until it returns, and `run` how it was called. The others are
    its arguments and options. Errors of ours become words and an exit code.

    Args:
        panel: the heading of the help that it stands under.
        of: the group that it belongs to.
        name: in place of the function's.
        creates: a memory is made where there is none.
        json_lines: `--json` gives a line for each thing that happens, which the command itself prints.
    """

    def decorate(function: Callable[..., CommandResult | None]) -> Callable[..., None]:
        made = with_common_options(function, creates=creates, json_lines=json_lines)
        return of.command(name, rich_help_panel=panel)(made)

    return decorate


def with_common_options(
    function: Callable[..., CommandResult | None], *, creates: bool = False, json_lines: bool = False
) -> Callable[..., None]:
    """Wrap a function as `command` does, without adding it to a group."""
    wanted = {"run", "memory"} & set(inspect.signature(function).parameters)
    for unneeded in (*wanted, "return"):  # types that are not loaded; typer reads those of options alone
        function.__annotations__.pop(unneeded, None)

    @wraps(function)
    def run_command(*, project: Any, as_json: bool, debug: bool, **given: Any) -> None:
        with shell(project, as_json, debug) as run:
            if "run" in wanted:
                given["run"] = run
            if "memory" in wanted:
                with run.open(create=creates) as memory:
                    result = function(memory=memory, **given)
            else:
                result = function(**given)
            if result is not None:
                _show(run, result)

    own = [each for each in inspect.signature(function, eval_str=True).parameters.values() if each.name not in wanted]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, default, annotation in (
            ("project", None, ProjectOption),
            ("as_json", False, JsonLinesOption if json_lines else JsonOption),
            ("debug", False, DebugOption),
        )
    ]
    run_command.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]
    return run_command


def _show(run: Shell, result: CommandResult) -> None:
    if run.as_json:
        from orchestra_mem.serialize import to_json

        run.answer(to_json(result.value))
    else:
        shown = result.view() if callable(result.view) else result.view
        if isinstance(shown, str):
            run.text(shown)
        else:
            run.show(*shown)
    if result.note:
        run.tell(result.note)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def tell_notes(run: Shell, notes: Iterable[str]) -> None:
    """Say what an answer lacks, and why."""
    for note in notes:
        run.tell(f"orchestra-mem: {note}")


def tell_limited(run: Shell, count: int, limit: int) -> bool:
    """Tell whether there may be more than the limit: a table says so below, a list in JSON has no place for it."""
    limited = bool(limit) and count == limit
    if limited and run.as_json:
        run.tell(f"the newest {count:,}; --limit 0 lists all")
    return limited
