"""Where passages stand: the lines of hits in documents as these are now, and what stands around a line.

Nothing of it is kept: a line number holds until somebody saves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestra_mem.core.documents.blame import Names, names_in
from orchestra_mem.core.search.chunking import Passage, find_passage, passages_of
from orchestra_mem.errors import NotFoundError
from orchestra_mem.ports import DocumentStore
from orchestra_mem.search_types import Hit
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session_place import SessionPlace
from orchestra_mem.types import DocumentName

_DOCUMENT = re.compile(r"(?P<name>[\w-][\w.-]*\.md)(?:[:#](?P<line>\d{1,9}))?")
_AROUND = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A passage of a document with what stands before and behind it under the same heading, in order."""

    document: Path
    before: tuple[Passage, ...]
    passage: Passage
    behind: tuple[Passage, ...]

    @property
    def names(self) -> Names:
        """The operations, facts and summaries that the passage names."""
        return names_in(self.passage.text)


class SourceLocator:
    """Looks into documents. Holds nothing."""

    def __init__(self, *, store: DocumentStore, episodic: EpisodicMemoryManager, sessions: SessionPlace) -> None:
        self._store = store
        self._episodic = episodic
        self._sessions = sessions

    def lines(self, hits: Sequence[Hit]) -> list[int]:
        """The line of each hit, from 1; 0 where it stands in no document, or not as it was found."""
        passages: dict[str, list[Passage]] = {}
        found = []
        for hit in hits:
            name = hit.chunk.source
            if name not in passages:
                text = self._text(name)
                passages[name] = passages_of(text) if text else []
            passage = find_passage(passages[name], hit.chunk)
            found.append(passage.line if passage else 0)
        return found

    def around(self, reference: str) -> Excerpt | None:
        """What stands at `decision_log.md:41` (its beginning without a line), and around it; None for another name.

        Raises:
            NotFoundError: there is no such document, or it has no passage there.
        """
        match = _DOCUMENT.fullmatch(reference.strip())
        if match is None:
            return None
        text = self._text(match["name"])
        if text is None:
            raise NotFoundError(f"there is no document {match['name']!r}; `orchestra-mem status` says where they lie")
        passages, line = passages_of(text), int(match["line"] or 1)
        if not passages:
            raise NotFoundError(f"{match['name']} says nothing yet")
        number = min(range(len(passages)), key=partial(_distance, passages, line))
        path = self._path(match["name"])
        assert path is not None
        heading = passages[number].heading
        before = [each for each in passages[max(0, number - _AROUND) : number] if each.heading == heading]
        behind = [each for each in passages[number + 1 : number + 1 + _AROUND] if each.heading == heading]
        return Excerpt(document=path, before=tuple(before), passage=passages[number], behind=tuple(behind))

    def _text(self, name: str) -> str | None:
        path = self._path(name)
        return None if path is None else self._store.read_shown(path)

    def _path(self, name: str) -> Path | None:
        """Where a document lies that hits name; None where it is none, as `op 12`."""
        if not _DOCUMENT.fullmatch(name) or not name.endswith(".md"):
            return None
        stem = name.removesuffix(".md")
        if stem in {each.value for each in DocumentName}:
            return self._episodic.path(DocumentName(stem))
        folders = (self._sessions.folder, self._sessions.folder / "archive")
        return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _distance(passages: Sequence[Passage], line: int, number: int) -> int:
    """How many lines lie between a line and a passage."""
    passage = passages[number]
    return max(passage.line - line, line - passage.end + 1, 0)
