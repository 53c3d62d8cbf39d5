"""Machines with working copies of one memory on a server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.build import load_settings
from orchestra_mem.doctor.moves import move_database
from orchestra_mem.settings import Settings
from tests.memories import SMALL
from tests.postgres_server import PostgresServer


@dataclass
class Machine:
    """A machine: its folder, and the settings by which it opens the memory."""

    project: Path
    config: dict[str, Any]

    @classmethod
    def of(cls, root: Path, name: str, on_server: dict[str, Any]) -> Machine:
        """Create a machine; the project folder has the same name on every machine."""
        project = root / name / "bakery"
        project.mkdir(parents=True)
        return cls(project, {**SMALL, "storage": {**on_server, "machine": name}})

    def open(self, **given: Any) -> OrchestratorContextManager:
        """Open the memory on this machine."""
        return open_memory(self.project, **{"config": self.config, **given})

    def settings(self, config: dict[str, Any] | None = None) -> Settings:
        """Return the machine's settings, or those of another configuration in its folder."""
        return load_settings(self.project, {}, config or self.config)

    def move(self, old: dict[str, Any], new: dict[str, Any]) -> dict[str, int]:
        """Move the memory from one configuration's storage to another's; return the number of rows by table."""
        told: dict[str, int] = {}
        moved = move_database(self.project, self.settings(old), self.settings(new), on_table=told.__setitem__)
        assert moved.rows == sum(told.values())
        return told

    @property
    def log(self) -> Path:
        """The path of the machine's decision log."""
        return self.project / ".obra" / "memory" / "decision_log.md"

    def text(self) -> str:
        """Return the decision log without its revision number."""
        return _without_revision(self.log)

    def named(self, config: dict[str, Any] | None = None, **project: str) -> str:
        """Open the memory, maybe with an id or a name in the settings; return the project as the log names it."""
        with self.open(config={**(config or self.config), **({"project": project} if project else {})}) as memory:
            memory.refresh()
        (line,) = [row for row in self.log.read_text("utf-8").split("\n") if row.startswith("project: ")]
        return line

    def edit(self, old: str, new: str) -> None:
        """Replace a text in the decision log, as an editor would."""
        text = self.log.read_text("utf-8")
        assert old in text
        self.log.write_text(text.replace(old, new), "utf-8")

    def files(self) -> dict[str, str]:
        """Return documents and versions by relative path, without revision numbers."""
        home = self.project / ".obra"
        return {str(path.relative_to(home)): _without_revision(path) for path in home.rglob("*.md")}

    def write_settings(self) -> None:
        """Write the settings to the folder, for commands that load them from there."""
        home = self.project / ".obra"
        home.mkdir(exist_ok=True)
        (home / "config.yaml").write_text(json.dumps(self.config), "utf-8")


def _without_revision(path: Path) -> str:
    return "\n".join(row for row in path.read_text("utf-8").split("\n") if not row.startswith("revision: "))


@pytest.fixture
def on_server(postgres: PostgresServer) -> Iterator[dict[str, Any]]:
    """Storage settings with a new schema on the server."""
    schema = postgres.schema()
    yield {"url": postgres.url, "schema_name": schema, "busy_timeout_s": 20}
    postgres.drop(schema)


@pytest.fixture
def reader(tmp_path: Path, on_server: dict[str, Any], laptop: Machine, postgres: PostgresServer) -> Iterator[Machine]:
    """A machine that has never opened the memory, and whose user may only read the memory's tables."""
    user, schema = f"reader_{os.getpid()}", on_server["schema_name"]
    with postgres.connect() as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {user}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {user}")
        url = postgres.url.replace("postgres:", f"{user}:", 1)
        assert url != postgres.url
        yield Machine.of(tmp_path, "reader", {**on_server, "url": url})
        connection.execute(f"DROP OWNED BY {user}; DROP ROLE {user}")


@pytest.fixture
def laptop(tmp_path: Path, on_server: dict[str, Any]) -> Machine:
    """The first machine of a memory, with two recorded decisions."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    with machine.open() as memory:
        memory.record_operation("decision", {"text": "We bake rye bread on Tuesdays."})
        memory.record_operation("decision", {"text": "We sell rolls by the dozen."})
        memory.refresh()
    return machine


@pytest.fixture
def desk(tmp_path: Path, on_server: dict[str, Any], laptop: Machine) -> Machine:
    """A second machine, which has never opened the memory."""
    return Machine.of(tmp_path, "desk", on_server)
