"""The commands for secrets in an old memory: found with their places, taken out when that is agreed to."""

from __future__ import annotations

from orchestra_mem import open_memory
from tests.faces.conftest import Program

SECRET = "ghp_" + "R2x9mQ7vLk4TzW8sYb3NcD6fHj1PaE0uGi5B"


def test_secrets_are_told_by_place_and_taken_out_when_agreed_to(run: Program) -> None:
    """Never which; exit 1 while there are any, and where nobody agrees."""
    with open_memory(run.folder, config={"redaction": {"mode": "off"}}) as memory:
        memory.record_operation("note", {"text": f"with {SECRET}"})
    assert run("redact", "scan", exit_code=1) == "operations 1, data: github-token (1)\n"
    assert run.json("redact", "scan", exit_code=1)["secrets"] == [
        {"place": "operations 1, data", "kinds": {"github-token": 1}}
    ]
    assert run("redact", "apply", exit_code=1, stdin="no\n") == "nothing was rewritten\n"
    assert run("redact", "apply", stdin="yes\n") == "rewritten: 1 text of the database and 0 files\n"
    assert run("redact", "scan") == "no secret was found\n"
    assert run("redact", "apply", "--yes") == "rewritten: 0 texts of the database and 0 files\n"
