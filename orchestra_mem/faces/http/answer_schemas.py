"""The schemas of answers, made of the records themselves and of what faces show of them: they cannot go out of date."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml
from pydantic import BaseModel, create_model
from pydantic.json_schema import models_json_schema

from orchestra_mem.search_types import Reasons
from orchestra_mem.serialize import shown_fields


class Shape:
    """An object with these fields, each a record or what JSON has; it may have more."""

    def __init__(self, name: str, /, **kinds: Any) -> None:
        self.name, self.kinds = name, kinds


_PAGE = "Page"
_DESCRIBED: dict[str, Any] = {}


def page_of(kind: Any) -> Shape:
    """Name a piece of a list of records."""
    return Shape(f"{kind.__name__}{_PAGE}", items=list[kind], total=int, limit=int, offset=int)


def schema_of(kind: Any) -> dict[str, Any]:
    """Refer to the schema of a record or a shape, for `components` to make; `[kind]` is a list of such."""
    if isinstance(kind, list):
        return {"type": "array", "items": schema_of(kind[0])}
    name = kind.name if isinstance(kind, Shape) else kind.__name__
    _DESCRIBED[name] = kind
    return {"$ref": f"#/components/schemas/{name}"}


@functools.cache
def components() -> dict[str, Any]:
    """Make the schemas that were referred to; it takes a while, so not before they are asked for."""
    models = [(_model(each), "serialization") for each in _DESCRIBED.values()]
    _, made = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    found: dict[str, Any] = made["$defs"]
    return found


@functools.cache
def _examples() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "examples.yaml").read_text("utf-8"))
    return found


def example_of(schema: Mapping[str, Any]) -> object:
    """Give an example of a schema that `schema_of` refers to; None of any other."""
    if "items" in schema:
        return [example_of(schema["items"])]
    name = schema.get("$ref", "").rpartition("/")[2]
    if name.endswith(_PAGE):
        return {"items": [_examples()[name.removesuffix(_PAGE)]], "total": 1, "limit": 50, "offset": 0}
    return _examples().get(name)


@functools.cache
def _record(kind: Any) -> type[BaseModel]:
    return _model(Shape(kind.__name__, **fields_of(kind)))


def _model(kind: Any) -> type[BaseModel]:
    if not isinstance(kind, Shape):
        return _record(kind)
    fields: dict[str, Any] = {field: (_written(each), ...) for field, each in kind.kinds.items()}
    return create_model(kind.name, **fields)


def fields_of(kind: Any) -> dict[str, Any]:
    """Give the fields of a record as `to_object` writes it, with their types."""
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


def _written(kind: Any) -> Any:
    """Give the type of a value as JSON has it; Any for recorded data."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Reasons:
        return dict[str, Any]
    if kind is Path:
        return str
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind)
    if origin in (Union, UnionType):
        recorded = any(get_origin(each) is dict for each in inner)
        return Any if recorded else functools.reduce(operator.or_, map(_written, inner))
    if origin in (dict, Mapping):
        return dict[str, _written(inner[1])]  # type: ignore[misc]
    if origin in (tuple, list):
        return list[_written(inner[0])]  # type: ignore[misc]
    return kind
