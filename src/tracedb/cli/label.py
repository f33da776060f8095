"""``tracedb label``: set, change or remove labels of loaded captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.labels_shown import labels_shown
from tracedb.cli.options import counted, database_option, note, output_options, warn

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
    from tracedb.report import captures, split_runs
    from tracedb.storage.connection import open_read_only

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
    note(f"{counted(len(edited), 'capture')} labelled in {db}")
    with open_read_only(db) as connection:
        names = captures.told_apart(captures.paths(connection))
        for text in split_runs.said(connection, [item.capture_id for item in edited]):
            warn(text)
    write(account(edited, "label", db, names, tuple(changes)), form, out)


def account(
    edited: list[Edited],
    command: str,
    db: Path,
    names: Mapping[int, str],
    keys: Sequence[str] = (),
    with_rows: bool = False,
) -> Answer:
    """Return one row for each capture that a command changed.

    ``names``: what tells captures of the database apart; ``keys``: labels that are always shown.
    """
    from tracedb.output.answer import Column, from_rows
    from tracedb.output.display_column import Show

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
    answer.shows = [
        Show(("capture_id",), "capture", "raw"),
        Show(("path",), "path", "name", floor=30, words={item.path: names[item.capture_id] for item in edited}),
        Show(("rank",), "rank", "raw"),
        *([Show(("rows_removed",), "rows removed", "count")] if with_rows else []),
        labels_shown([item.labels for item in edited], keys),
    ]
    return answer
