"""The paths of a project's memory, and the documents that an earlier database left there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestra_mem.core.documents.episodic import ProjectView, render_document, timeless
from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.settings import Settings
from orchestra_mem.types import DocumentName


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The paths of a project's memory. `names` are its episodic documents."""

    project: Path
    home: Path
    memory: Path
    sessions: Path
    names: tuple[DocumentName, ...] = tuple(DocumentName)

    @classmethod
    def of(cls, project: Path, settings: Settings) -> Place:
        """Derive the paths from a project's settings."""
        where = settings.orchestrator
        memory, sessions = project / where.memory_dir, project / where.session_dir
        names = (DocumentName.DECISION_LOG,) if settings.documents.only_decisions else tuple(DocumentName)
        return cls(project=project, home=project / ".obra", memory=memory, sessions=sessions, names=names)

    @property
    def folders(self) -> list[Path]:
        """The folders with documents that people edit."""
        return [self.memory, self.sessions, self.memory / "catalog"]

    def documents(self) -> list[Path]:
        """Return the paths of the episodic documents, whether or not they exist."""
        return [self.memory / f"{name.value}.md" for name in self.names]

    def older_documents(self) -> Sequence[str]:
        """Return the names of episodic documents that have content, and the number of session documents as text."""
        found = []
        blank = ProjectView(project="", updated=None, session="", size_tokens=0, operations=0, sessions=0)
        for name, path in zip(self.names, self.documents(), strict=True):
            if path.is_file():
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
                said, nothing = (timeless(without_front_matter(each)) for each in (text, render_document(name, blank)))
                if said != nothing:
                    found.append(path.name)
        count = sum(1 for folder in (self.sessions, self.sessions / "archive") for _ in folder.glob("session_*.md"))
        if count:
            found.append(f"{count:,} session {'document' if count == 1 else 'documents'}")
        return found
