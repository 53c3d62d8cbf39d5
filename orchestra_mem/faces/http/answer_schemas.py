"""The schemas of answers, made of the records themselves and of what faces show of them: they cannot go out of date."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, create_model

from orchestra_mem.search_types import Reasons
from orchestra_mem.serialize import shown_fields


def shape(name: str, /, **kinds: Any) -> type[BaseModel]:
    """Make the model of an object with these fields, each a record or what JSON has; it may have more."""
    fields: dict[str, Any] = {field: (written(kind), ...) for field, kind in kinds.items()}
    return create_model(name, **fields)


def page_of(kind: Any) -> type[BaseModel]:
    """Make the model of a piece of a list."""
    return shape(f"{kind.__name__}Page", items=list[kind], total=int, limit=int, offset=int)


def list_of(kind: Any) -> Any:
    """Make the type of a list."""
    return list[kind]


@functools.cache
def model_of(kind: Any) -> type[BaseModel]:
    """Make the model of a record as `to_object` writes it."""
    return shape(kind.__name__, **fields_of(kind))


def fields_of(kind: Any) -> dict[str, Any]:
    """Give the fields of such a record with their types."""
    fields: dict[str, Any] = {}
    for name, paths, or_null, _ in shown_fields(kind):
        found = _attribute(kind, paths[0]) if len(paths) == 1 else list[_attribute(kind, paths[0])]  # type: ignore[misc]
        fields[name] = found | None if or_null else found
    return fields


def _attribute(kind: Any, path: str) -> Any:
    """Give the type of an attribute, or of a property."""
    for step in path.split("."):
        hints = get_type_hints(kind)
        kind = hints[step] if step in hints else get_type_hints(getattr(kind, step).fget)["return"]
    return kind


def written(kind: Any) -> Any:
    """Give the type of a value as JSON has it; Any for recorded data."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Reasons:
        return dict[str, Any]
    if kind is Path:
        return str
    if isinstance(kind, type) and is_dataclass(kind):
        return model_of(kind)
    if origin in (Union, UnionType):
        recorded = any(get_origin(each) is dict for each in inner)
        return Any if recorded else functools.reduce(operator.or_, map(written, inner))
    if origin in (dict, Mapping):
        return dict[str, written(inner[1])]  # type: ignore[misc]
    if origin in (tuple, list):
        return list[written(inner[0])]  # type: ignore[misc]
    return kind
