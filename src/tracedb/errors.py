"""The errors that tracedb knows: each is one line for the user and one exit code."""

QUERY_INTERRUPTED = "Query interrupted"
"""Text of DuckDB's RuntimeError after Ctrl-C ends a query."""


class TracedbError(Exception):
    """A known error: what was found, what was expected, what to do. Exit code 1."""

    exit_code = 1


class UsageError(TracedbError):
    """The command line asks for something that does not exist. Exit code 2."""

    exit_code = 2


class NotCaptured(TracedbError):
    """The database cannot answer: what the question needs was not captured. Exit code 3."""

    exit_code = 3


class ReadError(TracedbError):
    """A trace file cannot be ingested. Its transaction is rolled back; other files are still loaded."""


class OutputFault(TracedbError):
    """Standard output cannot be written; its buffered content is lost."""


class EmptyDatabase(TracedbError):
    """A database file into which nothing was written yet: a first ingest was interrupted, or has just begun."""


class DatabaseBusy(TracedbError):
    """Another process holds the database file."""

    @property
    def holder(self) -> str:
        """The held file, and who holds it."""
        return str(self).partition(";")[0]
