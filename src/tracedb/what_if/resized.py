"""FLOPs and bytes of operators at other sizes of their tensors, by the formulas of the view ``op_flops``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracedb.errors import UsageError
from tracedb.regress.recorded_calls import physical_shape
from tracedb.storage import schema, views
from tracedb.storage.connection import in_memory


class Signature(NamedTuple):
    """An operator with its inputs, as recorded."""

    name: str
    input_dims: str
    input_types: str | None
    concrete_inputs: str | None


class Cost(NamedTuple):
    """The work of one call; None where no formula is known."""

    input_dims: str
    batch: int | None
    m: int | None
    n: int | None
    k: int | None
    flops: int | None
    bytes: int | None

    @property
    def shape(self) -> dict[str, int] | None:
        """The sizes that models of the operator take."""
        return physical_shape(self.input_dims, self.bytes, (self.batch, self.m, self.n, self.k))

    @property
    def elements(self) -> int:
        """Elements of all inputs."""
        return _elements(_parsed(self.input_dims))


def sizes(texts: Sequence[str]) -> dict[int, int]:
    """Return the new size of each old one of ``--shape OLD=NEW,…``. Raises ``UsageError``."""
    found: dict[int, int] = {}
    for text in [part for item in texts for part in item.split(",")]:
        old, equals, new = (part.strip() for part in text.partition("="))
        if not (equals and old.isdecimal() and new.isdecimal() and 0 < int(old) < 2**40 and 0 < int(new) < 2**40):
            raise UsageError(f"--shape {text!r} is not OLD=NEW, sizes of tensors such as 4096=8192")
        if found.setdefault(int(old), int(new)) != int(new):
            raise UsageError(f"--shape gives size {old} two new ones")
    return found


def costs(signatures: Sequence[Signature], changed: Mapping[int, int]) -> dict[Signature, Cost]:
    """Return the cost of each operator with some sizes of its tensors replaced."""
    if not signatures:
        return {}
    dims = [_replaced(signature.input_dims, changed) for signature in signatures]
    with in_memory() as connection:
        connection.execute(schema.ddl())
        views.create(connection, "_op_cost")
        connection.executemany(
            """INSERT INTO main.op BY NAME SELECT 1 AS capture_id, ? AS op_id, ? AS name, ? AS input_dims,
                   ? AS input_types, ? AS concrete_inputs, 0 AS start_ns, 0 AS duration_ns""",
            [
                (number, one.name, text, one.input_types, one.concrete_inputs)
                for number, (one, text) in enumerate(zip(signatures, dims, strict=True))
            ],
        )
        rows = connection.execute(
            """SELECT c.input_dims, c.batch, c.m, c.n, c.k, c.flops, c.bytes
               FROM v1._op_cost AS c ORDER BY c.op_id"""
        ).fetchall()
    return dict(zip(signatures, (Cost(*row) for row in rows), strict=True))


def _replaced(input_dims: str, changed: Mapping[int, int]) -> str:
    return json.dumps(_with(_parsed(input_dims), changed)) if changed else input_dims


def _with(value: Any, changed: Mapping[int, int]) -> Any:
    if isinstance(value, list):
        return [_with(item, changed) for item in value]
    return changed.get(value, value) if isinstance(value, int) else value


def _elements(value: Any) -> int:
    """Return the number of elements of a tensor, or of all in a list of them."""
    if not isinstance(value, list) or not value:
        return 0
    if all(isinstance(item, int) for item in value):
        count = 1
        for item in value:
            count *= item
        return count
    return sum(_elements(item) for item in value)


def _parsed(input_dims: str) -> Any:
    try:
        return json.loads(input_dims)
    except ValueError:
        return []
