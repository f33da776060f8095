"""Report impossible and missing values and names of an export."""

from __future__ import annotations

from collections import Counter

import duckdb

from tracedb.ingester.issues import Account
from tracedb_nsys.export.protocol import Export
from tracedb_nsys.header import KNOWN_SCHEMAS, Header
from tracedb_nsys.staging_sql import NAMED

REPLACED = chr(0xFFFD)
"""The replacement character for bytes that are not UTF-8."""
KNOWN_NAMES = "SELECT id FROM staged_text WHERE value IS NOT NULL"


def of_values(export: Export, nulls: Counter[tuple[str, str]], account: Account) -> None:
    """Report impossible and missing values; ``nulls``: number of missing ones by table and column."""
    for (table, column), count in sorted(export.odd.items()):
        detail = f"{count} values of {table}.{column} are not integers within its limits; they are NULL"
        account.mended("field_unreadable", count, detail)
    for (table, column), found in sorted(nulls.items()):
        count = found - export.odd[table, column]
        if count > 0:
            account.mended("field_missing", count, f"{count} rows of {table} have no {column}; it is NULL")


def of_names(connection: duckdb.DuckDBPyConnection, nameless: int, replaced: int, account: Account) -> None:
    """Report missing and damaged names; ``nameless``, ``replaced``: counts of the kernels that were not staged."""
    missing = nameless
    ((unknown,),) = connection.execute(f"SELECT count(*) FROM staged_used WHERE id NOT IN ({KNOWN_NAMES})").fetchall()
    if unknown:
        counts = " UNION ALL ".join(
            f"SELECT count(*) AS n FROM staged_{table} WHERE {column} IS NOT NULL AND {column} NOT IN ({KNOWN_NAMES})"
            for table, column in NAMED
        )
        ((staged,),) = connection.execute(f"SELECT sum(n)::BIGINT FROM ({counts})").fetchall()
        missing += staged
    detail = f"{missing} events have a name that StringIds lacks; its number is stored instead"
    account.mended("string_missing", missing, detail)
    ((spoilt,),) = connection.execute(
        """SELECT (SELECT count(*) FROM staged_text WHERE contains(value, $mark))
            + (SELECT count(*) FROM staged_nvtx WHERE contains(text, $mark))""",
        {"mark": REPLACED},
    ).fetchall()
    spoilt += replaced
    account.mended("text_replaced", spoilt, f"{spoilt} names hold bytes that are not UTF-8; they were replaced")


def of_header(header: Header, account: Account) -> None:
    """Report impossible header values, and tables of a version that tracedb was not tested with."""
    for (table, column), count in sorted(header.odd.items()):
        account.mended("field_unreadable", count, f"{count} values of {table}.{column} do not fit it; they are NULL")
    if (schema := header.untested_schema) is not None:
        detail = f"the tables have version {schema}, tracedb knows {KNOWN_SCHEMAS}: rows may be missing or misread"
        account.warned("schema_unknown", 1, detail)


def of_file(export: Export, account: Account) -> None:
    """Report damage of the file, which may have cost rows."""
    if losses := export.losses():
        account.mended("file_damaged", max(losses[0], 1), losses[1])
