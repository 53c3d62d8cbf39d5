"""Dependencies, parameter types, responses and response schemas that the routes share.

Response schemas are derived from the record types and the table of their printed fields, so they stay up to date.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, create_model
from starlette.responses import JSONResponse

from orchestra_mem.errors import AccessDeniedError
from orchestra_mem.faces.filter_times import filter_time
from orchestra_mem.faces.records import Caller
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.search_types import Reasons
from orchestra_mem.serialize import readable_json, shown_fields, to_json


class Shape:
    """A type of JSON objects. `kinds`: The type of each required field, a record type or a JSON type."""

    def __init__(self, name: str, /, **kinds: Any) -> None:
        self.name, self.kinds = name, kinds


@functools.cache
def _model(kind: Any) -> type[BaseModel]:
    shape = kind if isinstance(kind, Shape) else Shape(kind.__name__, **fields_of(kind))
    fields: dict[str, Any] = {field: (_written(each), ...) for field, each in shape.kinds.items()}
    return create_model(shape.name, **fields)


def fields_of(kind: Any) -> dict[str, Any]:
    """Return the fields that `to_object` prints for a record type, with their types."""
    fields: dict[str, Any] = {}
    for name, paths, or_null, _ in shown_fields(kind):
        found = _attribute(kind, paths[0]) if len(paths) == 1 else list[_attribute(kind, paths[0])]  # type: ignore[misc]
        fields[name] = found | None if or_null else found
    return fields


def _attribute(kind: Any, path: str) -> Any:
    for step in path.split("."):
        hints = get_type_hints(kind)
        kind = hints[step] if step in hints else get_type_hints(getattr(kind, step).fget)["return"]
    return kind


def _written(kind: Any) -> Any:
    """Return the type of a value after its conversion to JSON; Any for recorded data."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Reasons:
        return dict[str, Any]
    if kind is Path:
        return str
    if isinstance(kind, type) and is_dataclass(kind):
        return _model(kind)
    if origin in (Union, UnionType):
        recorded = any(get_origin(each) is dict for each in inner)
        return Any if recorded else functools.reduce(operator.or_, map(_written, inner))
    if origin in (dict, Mapping):
        return dict[str, _written(inner[1])]  # type: ignore[misc]
    if origin in (tuple, list):
        return list[_written(inner[0])]  # type: ignore[misc]
    return kind


MOST = 1_000
MOST_TOKENS = 16_777_216


def _no_text(value: object) -> object:
    """Reject `"5"` and `true`, which pydantic would accept as integers; 5.0 is accepted."""
    if isinstance(value, str | bool):
        raise ValueError("give a number, without quotes")
    return value


_DESCRIBED = (
    r"^(\d{1,4}[smhdw]|today|yesterday|(this|last|past) (week|month|year)|"
    r"(last )?(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)$"
)
Time = Annotated[
    datetime,
    BeforeValidator(
        functools.partial(filter_time, zone=UTC),
        json_schema_input_type=datetime | Annotated[str, StringConstraints(pattern=_DESCRIBED)],
    ),
]
"""A time as ISO 8601, a span back from now, or a period; UTC if it has no time zone."""
SinceQuery = Annotated[
    Time | None,
    Query(description="Only from this time on: ISO 8601, a span such as 7d, or a period such as Monday; in UTC."),
]
UntilQuery = Annotated[Time | None, Query(description="Only before this time, or the start of this period.")]
NUMBER = BeforeValidator(_no_text)
"""Validator for an integer in a JSON body."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Question = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
"""A text in a query string. A character takes up to 12 bytes there: the longest text fits the limit of the header."""
Budget = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class JsonResponse(JSONResponse):
    """A JSON response, serialised like `--json`."""

    def render(self, content: Any) -> bytes:
        """Serialise the body."""
        return readable_json(to_json(content)).encode()


_EXTRA = "Extra inputs are not permitted"  # what pydantic says


class Given(BaseModel):
    """Base of query parameters and bodies. Unknown fields are errors, so that no misspelt filter is ignored."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Paged(Given):
    """Query parameters of a paged list."""

    limit: Annotated[int, Field(ge=1, le=MOST, description="Maximum number of items.")] = 50
    offset: Annotated[int, Field(ge=0, le=2**31, description="Number of items to skip.")] = 0

    def answer(self, items: Sequence[object], total: int) -> JsonResponse:
        """Return the response for a page that has been cut from a list of `total` items."""
        return JsonResponse({"items": [*items], "total": total, "limit": self.limit, "offset": self.offset})

    def answer_of(self, every: Sequence[object]) -> JsonResponse:
        """Cut the page from a complete list, and return the response."""
        return self.answer(every[self.offset : self.offset + self.limit], len(every))


def shown(kind: Any, status: int = 200, words: str = "The answer.") -> dict[int | str, Any]:
    """Describe a response for OpenAPI: a record, a shape, or `[kind]` for a list of either."""
    model: Any = list[_model(kind[0])] if isinstance(kind, list) else _model(kind)  # type: ignore[misc]
    return {status: {"description": words, "model": model}}


def shown_page(kind: Any) -> dict[int | str, Any]:
    """Describe a page of a list for OpenAPI by the type of its items."""
    page = Shape(f"{kind.__name__}Page", items=list[kind], total=int, limit=int, offset=int)
    return shown(page, words="A page of the list.")


async def refuse_unknown(request: Request) -> None:
    """Refuse query parameters that a route does not have. Those of a `Given` are checked with its fields."""
    own = request.scope["route"].dependant.query_params
    if not any(isinstance(kind := each.field_info.annotation, type) and issubclass(kind, Given) for each in own):
        unknown = request.query_params.keys() - {each.alias for each in own}
        faults = [{"type": "extra_forbidden", "loc": ("query", name), "msg": _EXTRA} for name in sorted(unknown)]
        if faults:
            raise RequestValidationError(faults)


async def _caller(request: Request) -> Caller:
    return Caller(request.app.state.memory, request.scope["caller"])


async def _owner(request: Request) -> OrchestratorContextManager:
    caller = await _caller(request)
    if not caller.is_owner:
        raise AccessDeniedError(f"agent {caller.agent!r} may not use this address: it requires the owner's token")
    return caller.memory


CallerDep = Annotated[Caller, Depends(_caller)]
"""The caller, for routes that agents may use."""
OwnerMemory = Annotated[OrchestratorContextManager, Depends(_owner)]
"""The memory, for routes that only the owner may use."""
