"""How routes take their parameters and write their answers: pages of lists, and JSON as all faces print it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import JSONResponse

from orchestra_mem.serialize import dump_json, to_json

MOST = 1_000
MOST_TOKENS = 16_777_216

Time = Annotated[datetime, AfterValidator(lambda time: time if time.tzinfo else time.replace(tzinfo=UTC))]
"""A time; one without a zone is in UTC."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Budget = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class JsonAnswer(JSONResponse):
    """An answer: records of the memory as all faces write them, in ASCII, so that any text goes through."""

    def render(self, content: Any) -> bytes:
        """Write the body."""
        return dump_json(to_json(content)).encode("ascii")


class Given(BaseModel):
    """Parameters or a body: what is not known is a fault, so that no misspelt filter is passed over."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Paged(Given):
    """Which piece of a list is wanted."""

    limit: Annotated[int, Field(ge=1, le=MOST, description="At most so many.")] = 50
    offset: Annotated[int, Field(ge=0, le=2**31, description="So many of the first are left out.")] = 0

    def answer(self, items: Sequence[object], total: int) -> JsonAnswer:
        """Write a piece of a list that was cut already."""
        return JsonAnswer({"items": [*items], "total": total, "limit": self.limit, "offset": self.offset})

    def answer_of(self, every: Sequence[object]) -> JsonAnswer:
        """Write the wanted piece of a whole list."""
        return self.answer(every[self.offset : self.offset + self.limit], len(every))


def shown(example: object, status: int = 200, words: str = "The answer.") -> dict[int | str, dict[str, Any]]:
    """Describe an answer by an example."""
    return {status: {"description": words, "content": {"application/json": {"example": to_json(example)}}}}


def shown_page(example: object) -> dict[int | str, dict[str, Any]]:
    """Describe a page of a list by an example of what is in it."""
    return shown({"items": [example], "total": 1, "limit": 50, "offset": 0}, words="A piece of the list.")
