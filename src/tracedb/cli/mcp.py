"""``tracedb mcp``: the database for a language model, over stdin and stdout."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import database_option
from tracedb.errors import TracedbError


@click.command()
@database_option
def mcp(db: Path) -> None:
    """Serve the database to a language model (Model Context Protocol, stdio), read-only.

    Tools: captures, doctor, reports, report, compare, sql. Every answer has its view version and warnings, or the
    reason why there is none. Needs the extra mcp: pip install 'tracedb-gpu[mcp]'.
    """
    from tracedb.storage import connection as database

    try:
        from tracedb import mcp_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise TracedbError("mcp needs the package mcp: pip install 'tracedb-gpu[mcp]'") from error
    with database.open_read_only(db):  # report a faulty file at once
        pass
    mcp_server.server(db).run("stdio")
