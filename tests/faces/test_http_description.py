"""schemathesis tests each route against its OpenAPI description, with valid and invalid requests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from orchestra_mem.faces.http.tokens import AccessTokens
from orchestra_mem.work_types import WorkKind
from tests.adapters.test_openai_http import Llama, serving
from tests.faces.server_process import running


@pytest.mark.parametrize(("agent", "phases"), [(None, "examples,coverage,fuzzing,stateful"), ("ann", "fuzzing")])
def test_every_route_keeps_to_its_description(tmp_path: Path, agent: str | None, phases: str) -> None:
    """schemathesis finds no route that deviates from its description, for the owner and for an agent."""
    with open_memory(tmp_path) as memory:
        for number in range(10):
            memory.record_operation("decision", {"text": f"Service {number} listens on {7000 + number}."}, agent="ann")
        memory.catalog.store({"content": "We deploy on Tuesdays.", "type": "decision"}, agent="ann")
        memory.state.create(WorkKind.EPIC, "Sign in")
        memory.refresh()
    llama = Llama()
    llama.whole = True
    with serving(llama) as model:
        settings = {"SERVER__REQUESTS_PER_S": "100000", "LLM__BASE_URL": model}
        with running(tmp_path, env={f"ORCHESTRA_MEM__{name}": value for name, value in settings.items()}) as server:
            token = AccessTokens(server.token).of_agent(agent) if agent else server.token
            done = subprocess.run(
                [
                    str(Path(sys.executable).with_name("schemathesis")), "--no-color",
                    "--config-file", str(Path(__file__).with_name("schemathesis.toml")),
                    "run", f"{server.url}/openapi.json", "--phases", phases,
                ],
                cwd=tmp_path, env=os.environ | {"TOKEN": token}, capture_output=True, text=True, timeout=120,
                check=False,
            )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "Selected: 38/39" in done.stdout
