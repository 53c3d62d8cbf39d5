"""The log of decisions that projects share: its place, its settings, and who shared what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from orchestra_mem.adapters.config_files import CONFIG_PATH, load_settings
from orchestra_mem.adapters.home import home_folder
from orchestra_mem.build.storage import open_database
from orchestra_mem.errors import OrchestraMemError, telling
from orchestra_mem.settings import Settings, StorageSettings
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.tiers.shared_decisions import sharers_of
from orchestra_mem.types import DocumentName

# Settings of the shared log. No prompt contains the entire document, so it may be large and list all decisions.
_SETTINGS: dict[str, object] = {
    "project.name": "Shared decisions",
    "project.shared": False,
    "orchestrator.memory_dir": ".",
    "orchestrator.session_dir": ".obra/sessions",
    "orchestrator.context_window.max_tokens": 16_777_216,
    "orchestrator.episodic_compression_threshold": 8_000_000,
    "documents.only_decisions": True,
    "documents.decisions_in_full": 100_000,
    "documents.decisions_in_brief": 0,
    "context.shared_share": 0.0,
    "compression.auto": False,
}
_HEAD = "# The decisions that projects share: a memory like any other, but with decision_log.md as its only document.\n"


def shared_document(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the shared log's document, which may not exist; None if there is no home folder."""
    home = home_folder(environ)
    return home and home / "shared" / f"{DocumentName.DECISION_LOG}.md"


def prepare_shared_log(folder: Path, storage: StorageSettings) -> Settings:
    """Create the shared log's folder with a settings file, so that all commands work there. Return its settings.

    `storage` holds the sharing project's storage settings; all are used except those that name a database: the log is
    in its own file, or on the server that its own settings name. The environment is ignored.

    Raises:
        ConfigError: The settings file was changed and is invalid.
        StorageError: The folder cannot be written to.
    """
    path = folder / CONFIG_PATH
    with telling("creating the shared log in", folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            lines = (f"{key}: {json.dumps(value)}\n" for key, value in _SETTINGS.items())
            path.write_text(_HEAD + "".join(lines), encoding="utf-8")
    how = storage.model_dump(mode="json", exclude={"url", "schema_name"})
    return load_settings(folder, {}, {**_SETTINGS, "storage": how})


def sharers_in(folder: Path) -> dict[str, str]:
    """Return the ids of the projects that shared the facts of the shared log; {} if its database cannot be read."""
    with suppress(OrchestraMemError):
        settings = load_settings(folder, {})
        with closing(open_database(folder / CONFIG_PATH.parent, settings, read_only=True)) as log:
            return sharers_of(EventLog(log), Ledger(log))
    return {}
