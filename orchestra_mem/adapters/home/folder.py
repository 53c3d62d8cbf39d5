"""Where the home is. Nothing is made or read here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HOME_VARIABLE = "ORCHESTRA_MEM_HOME"
_OFF = "off"


def home_folder(environ: Mapping[str, str]) -> Path | None:
    """Name the home folder, whether it is there or not; None where the user wants none.

    The variable `ORCHESTRA_MEM_HOME` names it, or is `off`; unset or empty, it is in the user's data folder.
    """
    given = environ.get(HOME_VARIABLE, "").strip()
    if given == _OFF:
        return None
    if given:
        return Path(given).expanduser().absolute()
    import platformdirs  # takes milliseconds to load

    return platformdirs.user_data_path("orchestra-mem", appauthor=False)
