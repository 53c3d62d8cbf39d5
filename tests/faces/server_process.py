"""Starts a real server in a separate process for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.faces.conftest import start


@dataclass
class Running:
    """A server process, and an authenticated client of its API."""

    process: subprocess.Popen[Any]
    url: str
    token: str
    client: httpx2.Client

    def end(self, by: signal.Signals) -> tuple[int, str]:
        """End the server by a signal; return its exit code and its stderr."""
        self.process.send_signal(by)
        _, told = self.process.communicate(timeout=20)
        return self.process.returncode, told


@contextmanager
def running(folder: Path, *options: str, **how: Any) -> Iterator[Running]:
    """Start a server at a free port, and kill it at the end if it still runs."""
    process = start("serve", "--port", "0", "--json", *options, cwd=folder, **how)
    try:
        assert process.stdout is not None
        told = "".join(process.stdout.readline() for _ in range(4))
        assert told.endswith("}\n"), told + process.communicate(timeout=20)[1]
        said = json.loads(told)
        token = said["token"] or os.environ.get("ORCHESTRA_MEM_TOKEN") or how["env"]["ORCHESTRA_MEM_TOKEN"]
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=f"{said['url']}/api/memory/", headers=headers, timeout=20) as client:
            yield Running(process, said["url"], token, client)
    finally:
        process.kill()
        process.communicate()
