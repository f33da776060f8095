"""The user's own SELECT over the file: read-only, a single statement, no access beyond the file. May set variables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from tracedb.catalog import meanings, nsys_tables
from tracedb.errors import TracedbError
from tracedb.output import Answer, from_sql
from tracedb.storage.database_file import is_damage
from tracedb.storage.error_lines import engine_words

_VARIABLE = re.compile(r"(?:\s|;|--[^\n]*\n|/\*.*?\*/)*(?:SET|RESET)\s+VARIABLE\b", re.IGNORECASE | re.DOTALL)
_MISSING = re.compile(r"Table with name (\w+) does not exist")
_PIVOT = (duckdb.StatementType.CREATE, duckdb.StatementType.SELECT)  # DuckDB 1.4 splits PIVOT into these


@contextmanager
def explained() -> Iterator[None]:
    """Convert DuckDB's errors in the user's SQL to one line each."""
    try:
        yield
    except duckdb.PermissionException as error:
        raise TracedbError(f"{engine_words(error)} (tracedb reads the database and no other file)") from error
    except duckdb.Error as error:
        if is_damage(error):
            raise  # the caller knows the file's name
        raise TracedbError(_of_nsys(str(error)) or engine_words(error)) from error


def _of_nsys(message: str) -> str | None:
    """Return what to do if a query reads a table of nsys that is not there; None for any other fault."""
    found = _MISSING.search(message)
    if found is None or not nsys_tables.has(found[1]):
        return None
    return (
        f"there is no table {found[1]} here: it is one of nsys's, which `tracedb sql --as nsys` and "
        "`tracedb shell --as nsys` provide for every capture"
    )


def check(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Raise ``TracedbError`` unless the text is a single read-only statement."""
    statements = connection.extract_statements(text)
    kinds = tuple(statement.type for statement in statements)
    if not kinds:
        raise TracedbError('there is no SQL in that; give one SELECT, as in: tracedb sql "FROM top_kernels LIMIT 5"')
    reads = {
        duckdb.StatementType.SELECT,
        duckdb.StatementType.EXPLAIN,
        getattr(duckdb.StatementType, "MULTI", duckdb.StatementType.SELECT),  # PIVOT since DuckDB 1.5
    }
    if (len(kinds) == 1 and kinds[0] in reads) or (kinds == _PIVOT and "PIVOT" in text.upper()):
        return
    if len(kinds) > 1:
        raise TracedbError(f"that is {len(kinds)} statements; give one at a time")
    raise TracedbError(
        f"{kinds[0].name} is refused: the database is open read-only; give one SELECT, FROM, WITH, VALUES, DESCRIBE,"
        " SHOW, SUMMARIZE, PIVOT or EXPLAIN"
    )


def variables_set(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """Set the session variables at the beginning of the text, such as step_range, and return the rest."""
    for statement in connection.extract_statements(text):
        if statement.type != duckdb.StatementType.SET or not _VARIABLE.match(statement.query):
            break
        words = statement.query.strip()
        connection.execute(words)
        text = text[text.index(words) + len(words) :].lstrip("; \t\r\n")
    return text


def run(connection: duckdb.DuckDBPyConnection, text: str) -> Answer:
    """Check and run the text. Call this, and read the answer, inside ``explained()``."""
    query = variables_set(connection, text)
    check(connection, query)
    return from_sql(connection, query, meanings.of_query(connection, query))


def limited(answer: Answer, top: int) -> bool:
    """Keep the first ``top`` rows of an answer; return whether there were more."""
    rows = iter(answer.rows)
    kept = list(itertools.islice(rows, top))
    answer.rows = kept
    answer.most = top
    return next(rows, None) is not None
