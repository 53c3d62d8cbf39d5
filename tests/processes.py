"""Programs that run in a separate Python process, with the code of this checkout."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]


def bound() -> None:
    """Drop root's right to ignore file permissions; called in the child process before its program begins."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, which root has
        ctypes.CDLL(None).prctl(24, capability)  # PR_CAPBSET_DROP


def start(*arguments: object, **options: Any) -> subprocess.Popen[Any]:
    """Start a Python process, by default with empty input and with its output captured."""
    options["env"] = {**os.environ, "PYTHONPATH": str(CHECKOUT), **(options.get("env") or {})}
    kept = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *map(str, arguments)], **{**kept, **options})


def runs(pid: int) -> bool:
    """Check whether a process is running; a zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def python(program: str, *arguments: object, status: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program that must end with the given status, and return what it printed."""
    said = (running := start("-c", program, *arguments, **options)).communicate(timeout=120)
    assert running.returncode == status, said
    return subprocess.CompletedProcess(running.args, status, *said)
