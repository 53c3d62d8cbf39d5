"""Query several projects in parallel with a time limit, join their answers, and find facts that recur in them."""

from __future__ import annotations

import logging
import queue
import re
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
from orchestra_mem.core.text import squeeze
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

_AT_ONCE = 4  # more are not faster on two cores; with fewer, a project that hangs delays the others


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHit(Hit):
    """A hit with the label, id and folder of its project, and `projects` with an equal hit; `line`: see `hit_lines`."""

    project: str
    project_id: str
    path: Path
    line: int
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectsAnswer(Answer):
    """The hits of several projects, most likely first; `notes` report projects and parts that could not be searched."""

    hits: tuple[ProjectHit, ...]


def query_projects(
    projects: Iterable[ListedProject], ask: Callable[[OrchestratorContextManager], _Answer], timeout_s: float
) -> tuple[list[tuple[ListedProject, _Answer]], list[str]]:
    """Call `ask` with the memory of each project, four at a time, each in a thread; abandon calls over `timeout_s`.

    Returns the answers in the order of `projects`, and a message for each reason why projects did not answer.
    """
    waiting = [*enumerate(projects)][::-1]
    running: dict[int, tuple[ListedProject, float]] = {}
    done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    answers: dict[int, tuple[ListedProject, _Answer]] = {}
    notes: dict[str, list[tuple[int, str]]] = {}

    def work(number: int, project: ListedProject) -> None:
        try:
            done.put((number, _asked(project, ask, timeout_s)))
        except Exception as error:  # one project's failure must not affect the others
            logger.debug("cannot query %s", project.path, exc_info=True)
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
            answer = TimeoutError(f"no answer within {timeout_s:g} s")
        if number in running:  # an answer after the timeout is ignored
            project, _ = running.pop(number)
            if isinstance(answer, Exception):
                notes.setdefault(str(answer), []).append((number, project.label))
            else:
                answers[number] = project, answer
    told = sorted((sorted(whose), why) for why, whose in notes.items())
    reasons = [f"{', '.join(label for _, label in whose)}: {why}" for whose, why in told]
    return [answers[each] for each in sorted(answers)], reasons


def _asked(project: ListedProject, ask: Callable[[OrchestratorContextManager], _Answer], max_s: float) -> _Answer:
    """Query a project's memory if its settings allow; do not list it as opened or summarise in the background."""
    if not has_memory(project.path):
        raise StorageError(f"no memory found in {project.path}")
    waits = dict.fromkeys(("storage.lock_timeout_s", "storage.busy_timeout_s"), max_s / 2)
    wiring = wire(project.path, {**waits, "compression.auto": False}, environ_for(project.path))
    # The list holds `shared` as the project was last opened; the settings file may now differ.
    if not (project.shared and wiring.settings.project.shared):
        raise AccessDeniedError("not searched (project.shared: false)")
    with wiring.manager() as memory:
        return ask(memory)


def with_project(kind: Callable[..., _Found], found: Any, project: ListedProject, **more: object) -> _Found:
    """Convert a record to the type `kind`, which adds the fields of a project."""
    known = {field.name: getattr(found, field.name) for field in fields(found)}
    return kind(**known, project=project.label, project_id=project.id, path=project.path, **more)


# The time and the number in the heading of a decision, which differ in each project that adopted it.
_OWN_MARKS = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]|\(K\d+\)")


def merge_answers(
    found: Sequence[tuple[ListedProject, tuple[Answer, Sequence[int]]]], notes: Sequence[str], limit: int
) -> ProjectsAnswer:
    """Merge answers, each with its hits' lines, by likelihood; join hits of copies, and equal hits of projects."""
    joined: dict[tuple[str, str], ProjectHit] = {}
    for project, (answer, lines) in found:
        for hit, line in zip(answer.hits, lines, strict=True):
            joined.setdefault((project.id, hit.chunk.key), with_project(ProjectHit, hit, project, line=line))
    alike = []
    for hit in sorted(joined.values(), key=lambda hit: (hit.perhaps, -hit.likelihood)):
        above = _OWN_MARKS.sub("", " > ".join(hit.chunk.heading))
        said = [squeeze(each).casefold() for each in (hit.chunk.text, hit.chunk.kind, above)]
        alike.append((hit.project_id, (*said, bool(hit.fate)), hit))
    lacks = [f"{project.label}: {note}" for project, (answer, _) in found for note in answer.notes]
    return ProjectsAnswer(hits=_joined(alike, limit), notes=(*notes, *lacks))


def _joined(found: Iterable[tuple[str, object, Any]], limit: int) -> tuple[Any, ...]:
    """Join what several projects say alike, given with the project's id: the first says it, `projects` names all."""
    alike: dict[object, dict[str, str]] = {}
    kept = []
    for project, said, each in found:
        named = alike.setdefault(said, {})
        named.setdefault(project, each.project)
        if project == next(iter(named)):
            kept.append((each, named))
    return tuple(replace(each, projects=(*named.values(),)) for each, named in kept[:limit])


def joined_recommendations(
    task: str, found: Sequence[tuple[ListedProject, Recommendations]], notes: Sequence[str], limit: int
) -> Recommendations:
    """Join recommendations by likelihood, at most `limit` in each group; equal ones of several projects are one."""

    def group(name: str) -> tuple[Recommendation, ...]:
        joined: dict[tuple[str, str], Recommendation] = {}
        for project, answer in found:
            for each in getattr(answer, name):
                joined.setdefault((project.id, each.text), replace(each, project=project.label))
        likely = sorted(joined.items(), key=lambda each: -each[1].likelihood)
        said = [(squeeze(_OWN_MARKS.sub("", each.text)).casefold(), each.outcome) for _, each in likely]
        return _joined(((key[0], text, each) for (key, each), text in zip(likely, said, strict=True)), limit)

    kinds = {name: group(name) for name in ("decisions", "rules", "failures", "similar_tasks")}
    lacks = [f"{project.label}: {note}" for project, answer in found for note in answer.notes]
    return Recommendations(task=task, notes=(*notes, *lacks), **kinds)


NEWEST = 500  # of each project
# Minimum cosine of two facts to count as the same, if they do not differ in numbers, names, or a word such as "not".
_LIKE = 0.90
_OTHER_WORDS = ("", "words", "the order of words")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFact(MustKeep):
    """A fact with the label, id and folder of its project."""

    project: str
    project_id: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """Groups of recurring facts, those in most projects first; `notes` report projects that could not be read."""

    groups: tuple[tuple[ProjectFact, ...], ...]
    notes: tuple[str, ...] = ()


def shared_texts(folder: Path) -> list[str]:
    """Return the texts of all facts in the shared log in `folder`, including removed ones and original wordings."""
    if not has_memory(folder):
        return []
    with wire(folder, environ={}).manager() as log:  # the shared log has its own settings
        return [text for fact in log.facts(standing=False) for text in (fact.text, fact.found) if text]


def find_recurring(
    found: Sequence[tuple[ListedProject, Sequence[MustKeep]]], notes: Sequence[str], least: int, shared: Sequence[str]
) -> Recurring:
    """Group similar facts of at least `least` projects (copies count once), except facts similar to `shared` texts."""
    facts = [with_project(ProjectFact, fact, project) for project, each in found for fact in each]
    counted = [(len({fact.project_id for fact in group}), group) for group in _groups(facts, shared)]
    most_first = sorted(counted, key=lambda each: -each[0])
    return Recurring(groups=tuple(group for count, group in most_first if count >= least), notes=tuple(notes))


def _groups(facts: Sequence[ProjectFact], shared: Sequence[str]) -> Iterator[tuple[ProjectFact, ...]]:
    """Group similar facts, each fact in one group; facts similar to a shared text are left out."""
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
