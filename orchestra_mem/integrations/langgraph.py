"""A LangGraph `BaseStore` whose items are stored in the memory and found by its search.

Each put and each delete is recorded as an operation; the newest operation of a key determines its item. The event log
is the only storage, as it is durable, records agents and is searched already; no table has to be kept in step with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, ge, gt, le, lt, ne
from threading import Lock
from typing import Any
from uuid import uuid4

from orchestra_mem.core.search.chunking import stored_pattern
from orchestra_mem.core.search.hybrid import search_until
from orchestra_mem.integrations.conversations import in_thread
from orchestra_mem.memory.agent_view import AgentMemory
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.search_types import Hit, SearchFilter
from orchestra_mem.serialize import checked_json
from orchestra_mem.types import AS_GIVEN, STORED_ITEM, Json, OperationFilter

try:
    from langgraph.store import base
except ImportError as error:
    raise ImportError(f"the LangGraph store needs `pip install 'orchestra-mem[langgraph]'`: {error}") from error

_PREFIX = "integrations.store "
_OPERATORS = {"$eq": eq, "$ne": ne, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """An item of the store; `operation` is the id of the operation with its value. Only `indexed` items are found."""

    namespace: tuple[str, ...]
    key: str
    operation: int
    created: datetime
    changed: datetime
    indexed: bool


class OrchestraMemStore(base.BaseStore):
    """Stores JSON items by namespace and key: `builder.compile(store=OrchestraMemStore(memory))`.

    When a put returns, the item is stored permanently. Safe to share between threads; items of other processes are
    visible to the next call. Queries use the memory's own search and need no `IndexConfig`. They find items by the
    fields in `index`, by default by all fields. `ttl` is not supported, because each read would be a write.

    Args:
        memory: The memory to store items in; an agent's view has the items that the agent may see.
    """

    def __init__(self, memory: OrchestratorContextManager | AgentMemory) -> None:
        self._memory: Any = memory
        self._lock = Lock()
        self._live: dict[str, _Kept] = {}
        self._seen = 0

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run operations. Reads see the state before the call; of several puts to one key, the last counts.

        Raises:
            InvalidOperationError: A value is not JSON; nothing is stored.
            StorageError: A write failed; earlier puts of the call are stored.
        """
        ops = list(ops)
        live = self._items()
        results = [self._answer(op, live) for op in ops]
        puts = {_address(op.namespace, op.key): op for op in ops if isinstance(op, base.PutOp)}
        data = {address: _data(op) for address, op in puts.items() if op.value is not None or address in live}
        for address, each in data.items():
            self._memory.record_operation(STORED_ITEM, each, idempotency_key=f"{address} {uuid4().hex}")
        return results

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """See `batch`; does not block the event loop."""
        return await in_thread(self.batch, list(ops))

    def _items(self) -> dict[str, _Kept]:
        """Read newly recorded operations; return all items by address, the most recently changed last."""
        with self._lock:
            found = self._memory.operations(OperationFilter(type=STORED_ITEM, after=self._seen))
            live = dict(self._live) if found else self._live  # a copy, as other threads may iterate over the old dict
            for each in found:
                self._seen = each.id
                address, *_ = (each.idempotency_key or "").rpartition(" ")
                before = live.pop(address, None)
                if address.startswith(_PREFIX) and not each.data.get("deleted"):
                    live[address] = _Kept(
                        namespace=tuple(each.data["namespace"]), key=each.data["key"], operation=each.id,
                        created=before.created if before else each.timestamp, changed=each.timestamp,
                        indexed="value" in each.data or "text" in each.data,
                    )  # fmt: skip
            self._live = live
            return live

    def _answer(self, op: base.Op, live: dict[str, _Kept]) -> base.Result:
        if isinstance(op, base.GetOp):
            kept = live.get(_address(op.namespace, op.key))
            return None if kept is None else base.Item(value=self._value(kept), **_fields(kept))
        if isinstance(op, base.SearchOp):
            return self._search(op, live)
        if isinstance(op, base.PutOp):
            if op.ttl is not None:
                raise NotImplementedError("ttl is not supported: items of this store do not expire")
            return None
        return _namespaces(op, live.values())

    def _search(self, op: base.SearchOp, live: dict[str, _Kept]) -> list[base.SearchItem]:
        depth, end = len(op.namespace_prefix), op.offset + op.limit
        among = [each for each in reversed(live.values()) if each.namespace[:depth] == tuple(op.namespace_prefix)]
        if not op.query:
            found = self._passing(((each, None) for each in among), op, end)
        else:
            known = {each.operation: each for each in among if each.indexed}

            def keep(hits: Sequence[Hit]) -> list[base.SearchItem]:
                best: dict[int, Hit] = {}
                for hit in hits:  # an item may have several passages
                    best.setdefault(hit.chunk.operation, hit)
                ranked = ((known[number], hit.score) for number, hit in best.items() if number in known)
                return self._passing(ranked, op, end)

            spaces = {each.namespace for each in known.values()}
            pattern = stored_pattern(spaces.pop()) if len(spaces) == 1 else None
            where = SearchFilter(kinds=(STORED_ITEM,), pattern=pattern)
            found = search_until(lambda size: self._memory.search(op.query, where=where, limit=size).hits, keep, end)
        return found[op.offset :]

    def _passing(
        self, ranked: Iterable[tuple[_Kept, float | None]], op: base.SearchOp, limit: int
    ) -> list[base.SearchItem]:
        found: list[base.SearchItem] = []
        for kept, score in ranked:
            if len(found) >= limit:
                break
            value = self._value(kept)
            if all(_passes(value.get(name), wanted) for name, wanted in (op.filter or {}).items()):
                found.append(base.SearchItem(value=value, score=score, **_fields(kept)))
        return found

    def _value(self, kept: _Kept) -> dict[str, Any]:
        """Read an item's value from the log: callers may modify the copy, and later redaction takes effect."""
        (operation,) = self._memory.operations(OperationFilter(after=kept.operation - 1, through=kept.operation))
        value: dict[str, Any] = operation.data[AS_GIVEN if AS_GIVEN in operation.data else "value"]
        return value


def _address(namespace: Sequence[str], key: str) -> str:
    # A digest, because a name may be long, or be a secret and so be redacted.
    return f"{_PREFIX}{hashlib.sha256(json.dumps([*namespace, key]).encode()).hexdigest()[:32]}"


def _data(op: base.PutOp) -> Json:
    data: dict[str, object] = {"namespace": list(op.namespace), "key": op.key}
    if op.value is None:
        data["deleted"] = True
    elif op.index is None:
        data["value"] = dict(op.value)
    else:
        data[AS_GIVEN] = dict(op.value)
        if op.index:
            data["text"] = [text for path in op.index for text in base.get_text_at_path(op.value, path)]
    return checked_json(data)


def _fields(kept: _Kept) -> dict[str, Any]:
    return {
        "namespace": kept.namespace, "key": kept.key, "created_at": kept.created, "updated_at": kept.changed,
    }  # fmt: skip


def _namespaces(op: base.ListNamespacesOp, items: Iterable[_Kept]) -> list[tuple[str, ...]]:
    def matches(namespace: tuple[str, ...], wanted: base.MatchCondition) -> bool:
        size = len(wanted.path)
        part = namespace[:size] if wanted.match_type == "prefix" else namespace[max(0, len(namespace) - size) :]
        return len(part) == size and all(label in ("*", name) for label, name in zip(wanted.path, part, strict=True))

    every = {each.namespace for each in items}
    found = {each[: op.max_depth] for each in every if all(matches(each, one) for one in op.match_conditions or ())}
    return sorted(found)[op.offset : op.offset + op.limit]


def _passes(value: Any, wanted: Any) -> bool:
    """Check a value against a filter: by the filter's operators, else for equality in all fields of the filter."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compared(value, operator, other) for operator, other in wanted.items())
        return isinstance(value, dict) and all(_passes(value.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_passes, value, wanted))
    return bool(value == wanted)


def _compared(value: Any, name: str, other: Any) -> bool:
    if name not in _OPERATORS:
        raise ValueError(f"{name!r} is not a filter operator; use one of: {', '.join(_OPERATORS)}")
    if name not in ("$eq", "$ne"):
        try:
            value, other = float(value), float(other)
        except (TypeError, ValueError):
            if not (isinstance(value, str) and isinstance(other, str)):
                return False  # not comparable
    return bool(_OPERATORS[name](value, other))
