"""Find what several projects hold alike: decisions and rules that are worth sharing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.home import ListedProject, has_memory
from orchestra_mem.build import wire
from orchestra_mem.core.search.responses import difference
from orchestra_mem.home.side_by_side import with_project
from orchestra_mem.types import MustKeep

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
    with wire(folder).manager() as log:
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
