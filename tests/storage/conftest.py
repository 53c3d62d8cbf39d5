"""Machines that have copies of one memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.build import load_settings
from orchestra_mem.doctor.backups import move_database
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
        """Make one, with a folder called as on every machine."""
        project = root / name / "bakery"
        project.mkdir(parents=True)
        return cls(project, {**SMALL, "storage": {**on_server, "machine": name}})

    def open(self, **given: Any) -> OrchestratorContextManager:
        """Open the memory there."""
        return open_memory(self.project, **{"config": self.config, **given})

    def settings(self, config: dict[str, Any] | None = None) -> Settings:
        """Its own settings, or those of another configuration there."""
        return load_settings(self.project, {}, config or self.config)

    def move(self, old: dict[str, Any], new: dict[str, Any]) -> dict[str, int]:
        """Move the memory from where one configuration has it to where another will; gives the rows of each table."""
        told: dict[str, int] = {}
        moved = move_database(self.project, self.settings(old), self.settings(new), on_table=told.__setitem__)
        assert moved.rows == sum(told.values())
        return told

    @property
    def log(self) -> Path:
        """Its decision log."""
        return self.project / ".obra" / "memory" / "decision_log.md"

    def text(self) -> str:
        """What stands in that, but for the number of the revision."""
        return _without_revision(self.log)

    def edit(self, old: str, new: str) -> None:
        """Save it with other words somewhere."""
        text = self.log.read_text("utf-8")
        assert old in text
        self.log.write_text(text.replace(old, new), "utf-8")

    def files(self) -> dict[str, str]:
        """Its documents with their versions, without the numbers of revisions."""
        home = self.project / ".obra"
        return {str(path.relative_to(home)): _without_revision(path) for path in home.rglob("*.md")}


def _without_revision(path: Path) -> str:
    return "\n".join(row for row in path.read_text("utf-8").split("\n") if not row.startswith("revision: "))


@pytest.fixture
def on_server(postgres: PostgresServer) -> Iterator[dict[str, Any]]:
    """A schema of one's own on the server."""
    schema = postgres.schema()
    yield {"url": postgres.url, "schema_name": schema, "busy_timeout_s": 20}
    postgres.drop(schema)


@pytest.fixture
def laptop(tmp_path: Path, on_server: dict[str, Any]) -> Machine:
    """The machine on which the memory began: it has a rule and a decision."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    with machine.open() as memory:
        memory.record_operation("decision", {"text": "We bake rye bread on Tuesdays."})
        memory.record_operation("decision", {"text": "We sell rolls by the dozen."})
        memory.refresh()
    return machine


@pytest.fixture
def desk(tmp_path: Path, on_server: dict[str, Any], laptop: Machine) -> Machine:
    """Another one, which has never opened the memory."""
    return Machine.of(tmp_path, "desk", on_server)
