"""`benchmarks/crash.py` knows every write point that there is: those of each kind that the package names."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks._crash_points import kinds_in_code, known_points


# It waits for the disk at each write.
@pytest.mark.timeout(600)
def test_every_kind_of_write_has_known_points(tmp_path: Path) -> None:
    """What the code calls its writes is what some lives pass; the same points each time."""
    known = known_points("full", str(tmp_path))
    points = {*known.names, *known.at_birth}
    assert {point.partition(".")[0] for point in points} == kinds_in_code()
    again = known_points("full", str(tmp_path))
    assert {*again.names, *again.at_birth} == points
