"""Ask several projects the same at once, each for so long at most; join what they answer, and find what recurs."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.home import ListedProject, has_memory
from orchestra_mem.build import environ_for, wire
from orchestra_mem.core.search.responses import difference
from orchestra_mem.errors import AccessDeniedError, StorageError
from orchestra_mem.retrieval.passages import Recommendation, Recommendations
from orchestra_mem.retrieval.search import Answer
from orchestra_mem.search_types import Hit
from orchestra_mem.types import MustKeep

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")
_Found = TypeVar("_Found")

_AT_ONCE = 4
"""More do not answer sooner, on two cores; fewer would let one that hangs hold up the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHit(Hit):
    """A hit with the project that has it: its label, its id, its folder; `line` is as `hit_lines` gives it."""

    project: str
    project_id: str
    path: Path
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectsAnswer(Answer):
    """What several projects found, most likely first; `notes` tell what could not be looked at or done, in words."""

    hits: tuple[ProjectHit, ...]


def ask_each(
    projects: Iterable[ListedProject], ask: Callable[[OrchestratorContextManager], _Answer], timeout_s: float
) -> tuple[list[tuple[ListedProject, _Answer]], list[str]]:
    """Ask the memories of projects, each in a thread of its own; one that takes longer is left to end by itself.

    Returns what they answered, in the order of `projects`, and why others did not, in words: each reason once.
    """
    waiting = [*enumerate(projects)][::-1]
    running: dict[int, tuple[ListedProject, float]] = {}
    done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    answers: dict[int, tuple[ListedProject, _Answer]] = {}
    notes: dict[str, list[tuple[int, str]]] = {}
    table = WordLlamaEmbedder()  # loaded once for all: it takes 80 ms

    def work(number: int, project: ListedProject) -> None:
        try:
            done.put((number, _asked(project, ask, timeout_s, table)))
        except Exception as error:  # whatever it is: the others answer all the same
            logger.debug("%s was not asked", project.path, exc_info=True)
            done.put((number, error))

    while waiting or running:
        while waiting and len(running) < _AT_ONCE:
            number, project = waiting.pop()
            running[number] = project, time.monotonic() + timeout_s
            threading.Thread(target=work, args=(number, project), daemon=True).start()
        left_s = min(end for _, end in running.values()) - time.monotonic()
        try:
            number, answer = done.get(timeout=max(0.0, left_s))
        except queue.Empty:
            number = min(running, key=lambda each: running[each][1])
            answer = TimeoutError(f"it took longer than {timeout_s:g} s")
        if number in running:  # else it comes too late
            project, _ = running.pop(number)
            if isinstance(answer, Exception):
                notes.setdefault(str(answer), []).append((number, project.label))
            else:
                answers[number] = project, answer
    told = sorted((sorted(whose), why) for why, whose in notes.items())
    reasons = [f"{', '.join(label for _, label in whose)}: {why}" for whose, why in told]
    return [answers[each] for each in sorted(answers)], reasons


def _asked(
    project: ListedProject, ask: Callable[[OrchestratorContextManager], _Answer], timeout_s: float,
    table: WordLlamaEmbedder,
) -> _Answer:  # fmt: skip
    """Ask a project's memory unless it refuses; by that it is not listed as opened, and no summary is made behind."""
    if not has_memory(project.path):
        raise StorageError(f"its memory is gone from {project.path}")
    waits = {"lock_timeout_s": timeout_s / 2, "busy_timeout_s": timeout_s / 2}
    config = {"storage": waits, "compression": {"auto": False}}
    wiring = wire(project.path, config, environ_for(project.path), table=table)
    # A program may have opened it with settings of its own: what it was listed with counts as well.
    if not (project.shared and wiring.settings.project.shared):
        raise AccessDeniedError("not searched (project.shared: false)")
    with wiring.manager() as memory:
        return ask(memory)


def with_project(kind: Callable[..., _Found], found: Any, project: ListedProject, **more: object) -> _Found:
    """Copy something that was found into a kind that names its project."""
    known = {field.name: getattr(found, field.name) for field in fields(found)}
    return kind(**known, project=project.label, project_id=project.id, path=project.path, **more)


def joined_answer(
    found: Sequence[tuple[ListedProject, tuple[Answer, Sequence[int]]]], notes: Sequence[str], limit: int
) -> ProjectsAnswer:
    """Join answers, each with the lines of its hits, by likelihood; what a copied project has again is left out."""
    joined: dict[tuple[str, str], ProjectHit] = {}
    for project, (answer, lines) in found:
        for hit, line in zip(answer.hits, lines, strict=True):
            joined.setdefault((project.id, hit.chunk.key), with_project(ProjectHit, hit, project, line=line))
    hits = sorted(joined.values(), key=lambda hit: (hit.perhaps, -hit.likelihood))[:limit]
    lacks = [f"{project.label}: {note}" for project, (answer, _) in found for note in answer.notes]
    return ProjectsAnswer(hits=tuple(hits), notes=(*notes, *lacks))


def joined_recommendations(
    task: str, found: Sequence[tuple[ListedProject, Recommendations]], notes: Sequence[str], limit: int
) -> Recommendations:
    """Join recommendations by likelihood, at most `limit` of each kind."""

    def group(name: str) -> tuple[Recommendation, ...]:
        joined: dict[tuple[str, str], Recommendation] = {}
        for project, answer in found:
            for each in getattr(answer, name):
                joined.setdefault((project.id, each.text), replace(each, project=project.label))
        return tuple(sorted(joined.values(), key=lambda each: -each.likelihood)[:limit])

    kinds = {name: group(name) for name in ("decisions", "rules", "failures", "similar_tasks")}
    lacks = [f"{project.label}: {note}" for project, answer in found for note in answer.notes]
    return Recommendations(task=task, notes=(*notes, *lacks), **kinds)


NEWEST = 500  # of each project
# Two facts say the same from this cosine on, which is that of two questions with one answer (`responses.similarity`),
# where in numbers, names and words such as not they do not differ.
_LIKE = 0.90
_OTHER_WORDS = ("", "words", "the order of words")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFact(MustKeep):
    """A fact with the project that has it: its label, its id, its folder."""

    project: str
    project_id: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """What recurs: groups of facts, those of most projects first; `notes` tell what could not be looked at."""

    groups: tuple[tuple[ProjectFact, ...], ...]
    notes: tuple[str, ...] = ()


def shared_texts(folder: Path) -> list[str]:
    """Return what stands in the shared log in a folder, or stood there until it was taken out."""
    if not has_memory(folder):
        return []
    with wire(folder, environ={}).manager() as log:  # the shared log has its own settings
        return [text for fact in log.facts(standing=False) for text in (fact.text, fact.found) if text]


def find_recurring(
    found: Sequence[tuple[ListedProject, Sequence[MustKeep]]], notes: Sequence[str], least: int, shared: Sequence[str]
) -> Recurring:
    """Find groups of facts that say the same in so many projects at least, copies being one, but what is `shared`."""
    facts = [with_project(ProjectFact, fact, project) for project, each in found for fact in each]
    counted = [(len({fact.project_id for fact in group}), group) for group in _groups(facts, shared)]
    most_first = sorted(counted, key=lambda each: -each[0])
    return Recurring(groups=tuple(group for count, group in most_first if count >= least), notes=tuple(notes))


def _groups(facts: Sequence[ProjectFact], shared: Sequence[str]) -> Iterator[tuple[ProjectFact, ...]]:
    """Put each fact with those that are like it, each in one group; those like what is shared are left out."""
    texts = [*shared, *(fact.text for fact in facts)]
    vectors = WordLlamaEmbedder().embed(texts)
    left = np.ones(len(texts), bool)
    for row, text in enumerate(texts):
        if left[row]:
            near = np.flatnonzero(left & (vectors @ vectors[row] >= _LIKE)).tolist()
            like = [each for each in near if difference(text, texts[each]) in _OTHER_WORDS]
            left[[row, *like]] = False
            if row >= len(shared):
                yield tuple(facts[each - len(shared)] for each in like)
