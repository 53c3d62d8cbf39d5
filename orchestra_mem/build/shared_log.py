"""The shared log: a memory like any other, in the home, whose settings leave it the decision log alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from orchestra_mem.adapters.config_files import CONFIG_PATH, load_settings
from orchestra_mem.adapters.home import home_folder
from orchestra_mem.errors import storage_error
from orchestra_mem.settings import Settings, StorageSettings
from orchestra_mem.types import DocumentName

# Nothing of it is prompted, so no window bounds it: all that is shared stands in its document.
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
_HEAD = "# The decisions that projects share: a memory like any other, but that only decision_log.md stands in it.\n"


def shared_document(environ: Mapping[str, str]) -> Path | None:
    """Name the document of the shared log, whether it is there or not; None where there is no home."""
    home = home_folder(environ)
    return home and home / "shared" / f"{DocumentName.DECISION_LOG}.md"


def prepare_shared_log(folder: Path, storage: StorageSettings) -> Settings:
    """Make the folder of the shared log, with its settings in it, so that every command can be used there.

    `storage` are those of the project that shares: how sure it wants its writes to be, and how long it waits.

    Raises:
        ConfigError: somebody has changed these so that they cannot be used.
        StorageError: the folder cannot be written to.
    """
    path = folder / CONFIG_PATH
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            lines = (f"{key}: {json.dumps(value)}\n" for key, value in _SETTINGS.items())
            path.write_text(_HEAD + "".join(lines), encoding="utf-8")
    except OSError as error:
        raise storage_error(error, "making the shared log in", folder) from error
    return load_settings(folder, {}, {**_SETTINGS, "storage": storage.model_dump(mode="json") | {"url": ""}})
