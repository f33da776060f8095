"""``tracedb export perfetto``: captures as one timeline for the Perfetto UI and other viewers of traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracedb.cli.filter_options import event_filter_options
from tracedb.cli.options import database_option, note, output_option, warn

if TYPE_CHECKING:
    from tracedb.export.timeline import Header
    from tracedb.report.filters import Filters

FORMS = ("proto", "json")
_JSON = (".json", ".json.gz")
_PROTO = (".pftrace", ".perfetto-trace", ".pb")
DEFAULT_NAME = "trace.perfetto-trace"


@click.command()
@database_option
@event_filter_options
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="proto: a Perfetto trace; json: Chrome JSON, which `tracedb ingest` reads. [default: by the extension of -o]",
)
@click.option(
    "--clock",
    type=click.Choice(["aligned", "recorded"]),
    default="aligned",
    help="Correct the clocks of ranks by their collectives, or leave them. [default: aligned]",
)
@click.option("--gpu-only", is_flag=True, help="Leave out operators, calls and ranges.")
@click.option("--open", "is_opened", is_flag=True, help="Open the file in the Perfetto UI, served from 127.0.0.1:9001.")
@output_option("The file: .pftrace, .perfetto-trace or .pb; .json or .json.gz. Required without --open.")
def perfetto(
    db: Path, form: str | None, clock: str, gpu_only: bool, is_opened: bool, out: Path | None, **chosen: Any
) -> None:
    """Write captures as one timeline for the Perfetto UI.

    Each capture is a process (a rank), on one clock, with a track for each thread and stream. Events that overlap on a
    stream get separate lanes, so that none is hidden. Arrows lead from calls to what they launched. Filters on events
    (--range, --class, --device, --skip-warmup) select GPU events only; all CPU activity of that period is shown.
    """
    from tracedb.errors import UsageError
    from tracedb.report.filters import Filters

    if out is None and not is_opened:
        raise UsageError("name a file with -o, or see it in the browser with --open")
    filters = Filters(**chosen)
    with _destination(out) as path:
        _write(db, filters, _form(form, path), path, clock == "aligned", gpu_only)
        if is_opened:
            _open(path)


def _form(form: str | None, path: Path) -> str:
    from tracedb.errors import UsageError

    name = path.name.lower()
    if form is not None:
        return form
    if name.endswith(_JSON):
        return "json"
    if name.endswith(_PROTO):
        return "proto"
    raise UsageError(
        f"{path}: the extension gives no format; known are {', '.join((*_PROTO, *_JSON))}, or name one with --format"
    )


@contextmanager
def _destination(out: Path | None) -> Iterator[Path]:
    """Yield the file to write: that of ``-o``, else one in a private folder that is removed at the end."""
    from tempfile import TemporaryDirectory

    if out is not None:
        yield out
        return
    with TemporaryDirectory(prefix="tracedb-") as folder:
        yield Path(folder) / DEFAULT_NAME


def _write(db: Path, filters: Filters, form: str, path: Path, is_aligned: bool, is_gpu_only: bool) -> None:
    from tracedb.export import chrome_json, perfetto_proto, timeline
    from tracedb.output.write import writing
    from tracedb.report import run as engine
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    if form == "proto":
        perfetto_proto.format_classes()  # report missing packages before the work
    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        found = timeline.prepare(connection, db, filters, is_aligned, is_gpu_only)
        for text in found.warnings:
            warn(text)
        with writing(path) as aside:
            (chrome_json if form == "json" else perfetto_proto).write(found, aside)
        _say(found.header, path)


def _say(header: Header, path: Path) -> None:
    captures = "1 capture" if header.captures == 1 else f"{header.captures:,} captures"
    note(f"{path}: {header.slices:,} slices of {captures}, {header.gpu_slices:,} of them on GPUs")
    if header.aside:
        note(f"{header.aside:,} slices overlap others of their stream or thread, and are in separate lanes")
    if header.stretched:
        note(
            f"{header.stretched} clocks drift: CPU events are stretched with the clock, durations on GPUs "
            "are as recorded; --clock recorded changes nothing"
        )


def _open(path: Path) -> None:
    from tracedb.export import perfetto_ui

    if not perfetto_ui.serve(path, note):
        warn(f"nobody read {path.name} within {perfetto_ui.PATIENCE:g} s; write it with -o and open it yourself")
