"""Where the home is. Nothing is made or read here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from orchestra_mem.errors import StorageError

HOME_VARIABLE = "ORCHESTRA_MEM_HOME"


def home_folder(environ: Mapping[str, str]) -> Path | None:
    """Name the home folder, whether it is there or not; None where the user wants none, or has no folder at all.

    The variable `ORCHESTRA_MEM_HOME` names it, or is `off`; unset or empty, it is in the user's data folder.
    Where it is no full path, `StorageError` says so.
    """
    given = environ.get(HOME_VARIABLE, "").strip()
    if given == "off":
        return None
    if given:
        if not (folder := Path(os.path.expanduser(given))).is_absolute():
            raise StorageError(f"{HOME_VARIABLE} is {given}, another home in each folder: give a full path, or off")
        return folder
    import platformdirs  # takes milliseconds to load

    found = platformdirs.user_data_path("orchestra-mem", appauthor=False)
    return found if found.is_absolute() else None
