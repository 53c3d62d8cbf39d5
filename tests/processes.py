"""Programs that run by a Python of their own, with the code of this checkout."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]


def bound() -> None:
    """Bind a process by rights, whoever runs it, where that is called right before its program begins."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, which root has
        ctypes.CDLL(None).prctl(24, capability)  # PR_CAPBSET_DROP


def start(*arguments: object, **options: Any) -> subprocess.Popen[Any]:
    """Start a Python; there is nothing to read for it, and what it says is kept, unless something else is wanted."""
    options["env"] = {**os.environ, "PYTHONPATH": str(CHECKOUT), **(options.get("env") or {})}
    kept = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *map(str, arguments)], **{**kept, **options})


def runs(pid: int) -> bool:
    """Whether a process has not ended; one that has and that nobody has waited for runs no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def python(program: str, *arguments: object, status: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, which has to end with a status; gives what it has printed."""
    said = (running := start("-c", program, *arguments, **options)).communicate(timeout=120)
    assert running.returncode == status, said
    return subprocess.CompletedProcess(running.args, status, *said)
