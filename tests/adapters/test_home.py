"""The home: where it is, what it keeps of each project, and what it bears."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from orchestra_mem.adapters.home import home_folder
from orchestra_mem.errors import StorageError


def test_the_home_is_where_the_variable_says_or_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In full or from the user's own folder; none where it is `off`. It is the same whatever folder one is in."""
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    found = [home_folder({"ORCHESTRA_MEM_HOME": given}) for given in ("/a/b", "~/d", "off")]
    assert found == [Path("/a/b"), tmp_path / "me/d", None]
    expected = platformdirs.user_data_path("orchestra-mem", appauthor=False)
    assert home_folder({}) == home_folder({"ORCHESTRA_MEM_HOME": " "}) == expected
    with pytest.raises(StorageError, match="ORCHESTRA_MEM_HOME is c, another home in each folder: give a full path"):
        home_folder({"ORCHESTRA_MEM_HOME": "c"})
