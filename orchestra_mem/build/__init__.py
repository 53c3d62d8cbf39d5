"""Load settings and open memories; `wiring` connects the parts. User interfaces import adapters from this module."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem.errors import StorageError, telling

if TYPE_CHECKING:
    from orchestra_mem.adapters.config_files import CONFIG_PATH, default_config_text, load_settings
    from orchestra_mem.adapters.importers import open_import
    from orchestra_mem.adapters.importers.git_history import open_git_history
    from orchestra_mem.adapters.importers.jsonl_history import open_jsonl_history
    from orchestra_mem.adapters.openai_http.server import Relay
    from orchestra_mem.adapters.prompted_model import language_model
    from orchestra_mem.build.wiring import Wiring
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.model_types import AnyModel
    from orchestra_mem.ports import Clock, TokenCounter, WritePoint

# User interfaces never import adapters directly, so this module re-exports the adapters that they need.
__all__ = [
    "CONFIG_PATH", "HOME", "Initialised", "Relay", "default_config_text", "environ_for", "find_project",
    "initialise", "language_model", "load_settings", "open_git_history", "open_import", "open_jsonl_history",
    "open_memory", "open_relay", "utc_now", "wire",
]  # fmt: skip

# Imported on first access, so that importing the package stays fast.
_ON_FIRST_USE = {
    "CONFIG_PATH": "orchestra_mem.adapters.config_files",
    "default_config_text": "orchestra_mem.adapters.config_files",
    "language_model": "orchestra_mem.adapters.prompted_model",
    "load_settings": "orchestra_mem.adapters.config_files",
    "Relay": "orchestra_mem.adapters.openai_http.server",
    "open_import": "orchestra_mem.adapters.importers",
    "open_git_history": "orchestra_mem.adapters.importers.git_history",
    "open_jsonl_history": "orchestra_mem.adapters.importers.jsonl_history",
}

HOME = ".obra"


if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name

    def __getattr__(name: str) -> object:
        if name not in _ON_FIRST_USE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_ON_FIRST_USE[name]), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """The files that `initialise` created, and existing files that it kept; paths relative to the project's folder."""

    project: Path
    made: tuple[str, ...]
    kept: tuple[str, ...]


def find_project(start: Path) -> Path | None:
    """Find the nearest folder with a memory, from `start` upwards; None if there is none."""
    here = start.resolve()
    return next((folder for folder in (here, *here.parents) if (folder / HOME).is_dir()), None)


def initialise(project: str | Path = ".") -> Initialised:
    """Create a project's memory: its settings, `.gitignore`, database and documents.

    Existing files stay unchanged, so this function can be called again.

    Raises:
        ConfigError: The project's settings are invalid.
        StorageError: The folder cannot be written to.
    """
    from orchestra_mem.adapters.config_files import load_settings, template_files
    from orchestra_mem.build.storage import Place, database_file

    folder = Path(project).resolve()
    home = folder / HOME
    made: list[str] = []
    kept: list[str] = []
    with telling("writing to", home):
        home.mkdir(parents=True, exist_ok=True)
        for name, text in template_files().items():
            (home / name).parent.mkdir(exist_ok=True)
            try:
                with (home / name).open("x", encoding="utf-8", newline="") as file:
                    file.write(text)
                made.append(name)
            except FileExistsError:
                kept.append(name)
    settings = load_settings(folder, os.environ)
    place = Place.of(folder, settings)
    expected = [path for path in (database_file(home, settings), *place.documents()) if path]
    there = [path for path in expected if path.exists()]
    open_memory(folder).close()
    shown = [*(home / name for name in made), *(path for path in expected if path not in there and path.exists())]
    left = [*(home / name for name in kept), *there]
    return Initialised(
        project=folder, made=tuple(_below(folder, path) for path in shown),
        kept=tuple(_below(folder, path) for path in left),
    )  # fmt: skip


def _below(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def utc_now() -> datetime:
    """Return the present time as an aware datetime in UTC."""
    return datetime.now(UTC)


def open_memory(
    project: str | Path = ".",
    *,
    config: Mapping[str, object] | None = None,
    clock: Clock = utc_now,
    counter: TokenCounter | None = None,
    write_point: WritePoint | None = None,
    model: AnyModel | None = None,
) -> OrchestratorContextManager:
    """Open the memory of a project. The first call creates it, in the project's folder `.obra`.

    Args:
        project: The project's folder; it must exist.
        config: Settings that override those of files and environment, nested as in `.obra/config.yaml`.
        clock: Returns the present time, with a time zone.
        counter: Counts tokens, instead of the counter that the settings name.
        write_point: Called with the name of each step that changes the disk; for crash tests.
        model: Improves summaries in the background, instead of the model that the settings name: a `LanguageModel`, an
            object with `send_prompt`, or a callable. The caller closes it.

    Raises:
        ConfigError: The settings are invalid; the error lists all faults.
        StorageError: The folder or its contents cannot be used.
        ValueError: The clock returns times without a time zone.
        TypeError: `model` is of another type.
    """
    from orchestra_mem.adapters.files import BACKUP_MARK
    from orchestra_mem.adapters.home import ProjectRegistry, home_folder

    if clock is not utc_now and (now := clock()).utcoffset() is None:
        raise ValueError(f"the clock returned {now}, which has no time zone; add one, as in lambda: datetime.now(UTC)")
    in_utc = clock if clock is utc_now else lambda: clock().astimezone(UTC)
    wiring = wire(project, config, clock=in_utc, counter=counter, write_point=write_point, model=model)
    memory = wiring.manager()
    listed = not wiring.settings.documents.only_decisions and not (wiring.place.home / BACKUP_MARK).exists()
    with suppress(StorageError):  # an invalid home folder, which `status` reports, or a full disk
        if listed and (home := home_folder(os.environ)):
            ProjectRegistry(home).put(wiring.listed(), passing=False)
    return memory


def environ_for(project: Path) -> Mapping[str, str]:
    """Return the environment for another project, without settings that one project has for itself.

    Those are `project.*`, absolute folders of documents, and `storage.url` with `storage.schema_name`; these two stay
    for a project on a server whose own file does not set them.
    """
    from orchestra_mem.adapters.config_files import ENVIRONMENT_PREFIX, load_settings
    from orchestra_mem.build.storage import COPIES_FILE
    from orchestra_mem.settings import DEFAULT_ORIGIN

    own = load_settings(project, {}) if (project / HOME / COPIES_FILE).exists() else None

    def holds(name: str, value: str) -> bool:
        section, _, key = name.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
        if section == "storage" and key in ("url", "schema_name"):
            origins = {own.origin_of(f"storage.{each}") for each in ("url", key)} if own else None
            return origins == {DEFAULT_ORIGIN}
        is_folder = section == "orchestrator" and key in ("memory_dir", "session_dir")
        return section != "project" and not (is_folder and os.path.isabs(value))

    return {name: value for name, value in os.environ.items() if holds(name, value)}


def wire(
    project: str | Path,
    config: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
    **more: Any,
) -> Wiring:
    """Prepare a memory without opening it or registering the project. The arguments are those of `open_memory`."""
    from orchestra_mem.adapters.config_files import load_settings
    from orchestra_mem.build.storage import Place
    from orchestra_mem.build.wiring import Wiring

    folder = Path(project).resolve()
    if not folder.is_dir():
        raise StorageError(f"{folder} is not a folder; create it first, the memory is stored in its subfolder {HOME}")
    settings = load_settings(folder, environ, config or {})
    given = {"clock": utc_now, "counter": None, "write_point": None, "model": None} | more
    return Wiring(Place.of(folder, settings), settings, **given)


def open_relay(project: str | Path) -> Relay | None:
    """Open a relay that forwards chats to the model server in the settings; None if they name no server.

    Raises:
        ConfigError: The settings are invalid; the error lists all faults.
        ModelError: The server's address or API key is invalid, or the `http` extra is not installed.
    """
    from orchestra_mem.adapters.config_files import load_settings
    from orchestra_mem.build.own_models import open_server

    llm = load_settings(Path(project).resolve(), os.environ).llm
    if not llm.base_url:
        return None
    server = open_server(llm)
    from orchestra_mem.adapters.openai_http.server import Relay

    return Relay(server)
