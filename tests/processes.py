"""Programs that run by a Python of their own, with the code of this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]


def python(
    program: str, *arguments: object, status: int = 0, env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program, which has to end with a status; gives what it has printed."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **(env or {})}, **options,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done
