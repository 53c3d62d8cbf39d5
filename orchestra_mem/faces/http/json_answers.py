"""How routes take their parameters and write their answers: pages of lists, and JSON as all faces print it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from starlette.responses import JSONResponse

from orchestra_mem.faces.http.answer_schemas import page_of, schema_of
from orchestra_mem.serialize import dump_json, to_json

MOST = 1_000
MOST_TOKENS = 16_777_216


def _no_text(value: object) -> object:
    """Refuse "5" and true, which pydantic takes for numbers; 5.0 is one."""
    if isinstance(value, str | bool):
        raise ValueError("give a number, without quotes")
    return value


def _no_number(value: object) -> object:
    """Refuse the seconds since 1970, which "2025" and "20250101" would be read as."""
    with suppress(TypeError, ValueError):
        float(value)  # type: ignore[arg-type]
        value = None
    if value is None:
        raise ValueError("give a time as 2025-01-31 or 2025-01-31T12:00:00Z")
    return value


Time = Annotated[
    datetime,
    BeforeValidator(_no_number),
    AfterValidator(lambda time: time if time.tzinfo else time.replace(tzinfo=UTC)),
]
"""A time; one without a zone is in UTC."""
NUMBER = BeforeValidator(_no_text)
"""Of a whole number in a body."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Question = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
"""A text in an address: twelve bytes a character at the most, which the server has room for."""
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


def shown(kind: Any, status: int = 200, words: str = "The answer.") -> dict[int | str, Any]:
    """Describe an answer: a record, a shape, or `[kind]` for a list of either."""
    return {status: {"description": words, "content": {"application/json": {"schema": schema_of(kind)}}}}


def shown_page(kind: Any) -> dict[int | str, Any]:
    """Describe a page of a list by what is in it."""
    return shown(page_of(kind), words="A piece of the list.")
