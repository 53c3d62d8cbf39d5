"""Work that can be done in small steps, between which its caller may do something else."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def finished(steps: Generator[None, None, T]) -> T:
    """Do all the steps at once; what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
