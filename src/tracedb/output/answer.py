"""An answer: columns with their meaning, streamed rows, and warnings and notes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tracedb.output import units
from tracedb.output.display_column import Show
from tracedb.output.shorten import visible

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH = 100


@dataclass(frozen=True)
class Column:
    """A column of an answer."""

    name: str
    type: str
    unit: str | None = None
    description: str | None = None

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, which are right-aligned in a table."""
        return bool(re.match(r"U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|DECIMAL", self.type))


@dataclass
class Answer:
    """The result of a command. ``rows`` can be read once; ``arrow`` gives the same rows as Arrow."""

    columns: list[Column]
    rows: Iterable[Sequence[object]]
    arrow: Callable[[], pa.RecordBatchReader]
    report: str | None = None
    version: str | None = None
    database: str | None = None
    filters: Mapping[str, object] | None = None
    warnings: list[str] = field(default_factory=list)
    """Caveats that a reader must know."""
    notes: list[str] = field(default_factory=list)
    """Conclusions in words, and other remarks."""
    left_out: str = ""
    """Which rows are shown, in words, if ``--top`` omitted some."""
    most: int = 0
    """Maximum number of rows to write; None for all."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Additional keys in JSON."""
    keys: Callable[[str], list[str]] | None = None
    """Returns the keys of a map column with text keys, in order of appearance."""
    shows: list[Show] | None = None
    """Display columns of a table; None shows every column as is."""
    is_wide: bool = False
    """Whether a table may be wider than the terminal."""

    @property
    def remarks(self) -> list[tuple[str, str]]:
        """The remarks about the rows, for people, each with its kind: ``warning`` or ``note``."""
        notes = [*self.notes, *([self.left_out] if self.left_out else [])]
        said = [("warning", text) for text in self.warnings] + [("note", text) for text in notes]
        return [(kind, visible(" ".join(text.split()))) for kind, text in said]


def about(name: str, type_name: str, comment: str | None = None) -> Column:
    """Return a column with the unit declared in its comment or, without a declaration, implied by its name."""
    text, unit = units.declared(comment or "")
    if unit is None:
        unit = units.by_name(name)
    return Column(name, type_name, None if unit == units.NO_UNIT else unit, text or None)


def from_sql(connection: duckdb.DuckDBPyConnection, query: str, described: Mapping[str, str] | None = None) -> Answer:
    """Return the answer to a query, which runs when its rows are read; ``described`` has comments by column."""
    relation = connection.sql(query)
    texts = described or {}
    columns = [
        about(name, str(type_), texts.get(name))
        for name, type_ in zip(_different(relation.columns), relation.types, strict=True)
    ]

    def rows() -> Iterator[Sequence[object]]:
        cursor = connection.execute(query)
        while batch := cursor.fetchmany(BATCH):
            yield from batch

    def arrow() -> pa.RecordBatchReader:
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(connection.sql(_integers(columns, query)))

    def keys(name: str) -> list[str]:
        column = '"' + name.replace('"', '""') + '"'
        found = connection.execute(
            f"""SELECT key FROM (
                    SELECT unnest(map_keys({column})) AS key, generate_subscripts(map_keys({column}), 1) AS place
                    FROM ({query}))
                GROUP BY key ORDER BY min(place), key"""
        )
        return [str(key) for (key,) in found.fetchall()]

    return Answer(columns, rows(), arrow, keys=keys)


def from_rows(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> Answer:
    """Return an answer over rows in memory."""

    def arrow() -> pa.RecordBatchReader:
        import pyarrow as pa

        values = {column.name: [row[at] for row in rows] for at, column in enumerate(columns)}
        return pa.table(values).to_reader()

    return Answer(list(columns), rows, arrow)


def _different(names: Sequence[str]) -> list[str]:
    """Return the names, with a number appended to repeated ones."""
    taken: list[str] = []
    for name in names:
        number = 1
        chosen = name
        while chosen in taken:
            chosen = f"{name}_{number}"
            number += 1
        taken.append(chosen)
    return taken


def _integers(columns: Sequence[Column], query: str) -> str:
    """Return the query with 128-bit integers as 64-bit ones: Arrow has no other integers."""
    huge = [column.name for column in columns if column.type in ("HUGEINT", "UHUGEINT")]
    if not huge:
        return query
    casts = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}"::BIGINT AS "{name}"' for name in huge)
    return f"SELECT * REPLACE ({casts}) FROM ({query})"


def plain(value: object) -> Any:
    """Return a value as JSON can represent it: integers exact, NaN and infinities null, times in ISO form."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, UUID) else repr(value)
