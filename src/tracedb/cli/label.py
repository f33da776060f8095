"""``tracedb label``: set, change or remove labels of loaded captures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.options import database_option, note, output_options, some

if TYPE_CHECKING:
    from tracedb.output.answer import Answer
    from tracedb.pipeline.capture_edit import Edited


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="CAPTURE… KEY=VALUE…")
@database_option
@output_options
def label(words: tuple[str, ...], db: Path, format_name: str | None, out: Path | None) -> None:
    """Set labels of captures; KEY= without a value removes the label.

    CAPTURE is a number, a unique part of a path, or a pattern, as for --capture. An argument with '=' is a label; with
    a slash before the '=', it is a path (runs/lr=3). All reports use the new labels; clocks are aligned again, since
    labels say which captures belong together.
    """
    from tracedb.errors import UsageError
    from tracedb.output import choose_format, write
    from tracedb.pipeline import capture_edit, labels
    from tracedb.report import captures

    form = choose_format(format_name, out)
    changes: dict[str, str | None] = {}
    meant: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or "/" in key:
            meant.append(word)
        elif value:
            changes.update([labels.parse_label(word)])
        else:
            changes[labels.parse_label(f"{key}=?")[0]] = None
    if not meant:
        raise UsageError("name the captures to label: their numbers, parts of their paths, or patterns such as '*'")
    if not changes:
        raise UsageError("name the labels to set as KEY=VALUE, or to remove as KEY=")
    edited = capture_edit.label(db, lambda connection: captures.numbers(connection, meant, "label"), changes)
    note(f"{some(len(edited), 'capture')} labelled in {db}")
    write(account(edited, "label", db), form, out)


def account(edited: list[Edited], command: str, db: Path, with_rows: bool = False) -> Answer:
    """Return one row for each capture that a command changed."""
    from tracedb.output.answer import Column, from_rows

    columns = [
        Column("capture_id", "INTEGER", description="Number of the capture."),
        Column("path", "VARCHAR", description="First file of the capture."),
        Column("rank", "INTEGER", description="Rank."),
        Column("labels", "MAP(VARCHAR, VARCHAR)", description="Its labels, or those it had before it was removed."),
    ]
    rows: list[tuple[object, ...]] = [(item.capture_id, item.path, item.rank, item.labels) for item in edited]
    if with_rows:
        columns.append(Column("rows_removed", "BIGINT", "count", "Rows removed from the tables beside capture."))
        rows = [(*row, item.rows) for row, item in zip(rows, edited, strict=True)]
    answer = from_rows(columns, rows)
    answer.report, answer.database = command, str(db)
    return answer
