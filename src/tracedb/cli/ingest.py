"""``tracedb ingest``: load traces and report what each capture gave."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.labels_shown import labels_shown
from tracedb.cli.memory_option import memory_limit_option
from tracedb.cli.options import (
    chosen_lake,
    counted,
    database_option,
    detail,
    fault,
    note,
    output_options,
    verbosity,
    warn,
)
from tracedb.errors import TracedbError

if TYPE_CHECKING:
    from tracedb.output.answer import Answer
    from tracedb.pipeline.task import Found, Outcome, Request

SHOWN_UNRECOGNISED = 10


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH…")
@database_option
@click.option("--label", "label", multiple=True, metavar="K=V", help="Label every capture of this call; repeatable.")
@click.option("--labels-from", metavar="REGEX", help="Take labels from the path by named groups; 'rank' sets the rank.")
@click.option("--strict", is_flag=True, help="Also exit with 1 if any event was skipped or repaired.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Files read at once. [default: number of cores]")
@memory_limit_option("Memory for the database engine of each job. [default: 150MB, nsys 400MB, rocprof 500MB]")
@click.option("--ingester", metavar="NAME", help="Use this ingester only; see `tracedb ingesters`.")
@click.option(
    "--nsys",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Program nsys, or its folder, for reports (.nsys-rep). [default: TRACEDB_NSYS, PATH, the usual folders]",
)
@click.option("--no-stacks", is_flag=True, help="Leave Python frames and modules out.")
@click.option(
    "--memory-events/--no-memory-events",
    default=True,
    help="Store the events of the framework's memory allocator, or leave them out. [default: store]",
)
@click.option("--no-align", is_flag=True, help="With --lake: leave facts about several captures to `lake align`.")
@click.option("--dry-run", is_flag=True, help="List what would be loaded, without loading it.")
@output_options
def ingest(
    paths: tuple[Path, ...],
    db: Path,
    label: tuple[str, ...],
    labels_from: str | None,
    strict: bool,
    jobs: int | None,
    memory_limit: str | None,
    ingester: str | None,
    nsys: Path | None,
    no_stacks: bool,
    memory_events: bool,
    no_align: bool,
    dry_run: bool,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Load traces into the database: files, or folders with everything below them.

    Files are recognised by content; archives (zip, tar, tar.gz, tar.zst) are read in place. Each capture is loaded in
    one transaction. A file that cannot be read is reported and the others are still loaded; loading the same bytes
    again changes nothing. stdout gets a row for each capture: what was read, written and skipped.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts busy threads on import, which are not needed here
    from tracedb.cli.progress import bar
    from tracedb.output import choose_format, refuse_overwriting
    from tracedb.pipeline import discovery, known_results, labels, run
    from tracedb.pipeline import task as tasks
    from tracedb.storage.heeded_interrupt import heeded

    form = choose_format(format_name, out)
    request = tasks.Request(
        paths=paths,
        database=db,
        labels=dict(labels.parse_label(text) for text in label),
        labels_from=labels_from,
        memory_limit=memory_limit,
        ingester=ingester,
        stacks=not no_stacks,
        memory_events=memory_events,
        lake=chosen_lake(),
        aligns=not no_align,
    )
    if nsys is not None:
        os.environ["TRACEDB_NSYS"] = str(nsys.absolute())  # inherited by the worker processes
    context = click.get_current_context()
    context.with_resource(heeded())
    found = context.with_resource(discovery.found_in(paths, request.beside, ingester))
    read = (path for task in found.tasks for path in (*task.capture.files, *task.capture.duplicates))
    refuse_overwriting(out, db, [*read, *found.archives, *(path for path, _ in found.databases)])
    is_nothing = not (found.tasks or found.failed or found.databases)
    if is_nothing and len(found.unrecognised) == 1 and known_results.is_known(found.unrecognised[0][0]):
        raise TracedbError("{}: {}".format(*found.unrecognised[0]))
    _list_unrecognised(found)
    if dry_run:
        from tracedb.output import write

        write(_plan(found, request), form, out)
        if found.failed:
            _tell_failures(found.failures())
            others = "; the others would be" if found.tasks else ""
            raise TracedbError(f"{counted(len(found.failed), 'file')} would not be loaded{others}")
        return
    if is_nothing:
        raise TracedbError(
            f"{_named(paths)}: no file that an ingester recognises; `tracedb ingesters` lists what is read"
        )
    with bar(found.size_bytes, verbosity() >= 0) as progress:
        result = run.load_found(found, request, jobs, progress)
    from tracedb.output import write

    write(_account(result.outcomes, request), form, out)
    _close(result.outcomes, request, strict, result.unfinished)


def _named(paths: tuple[Path, ...]) -> str:
    return ", ".join(str(path) for path in paths[:3]) + (" …" if len(paths) > 3 else "")


def _list_unrecognised(found: Found) -> None:
    shown = found.unrecognised if verbosity() > 0 else found.unrecognised[:SHOWN_UNRECOGNISED]
    for path, reason in shown:
        note(f"left aside: {path} ({reason})")
    if len(shown) < len(found.unrecognised):
        note(f"left aside: {counted(len(found.unrecognised) - len(shown), 'more file')}; -v names all")


def _plan(found: Found, request: Request) -> Answer:
    from tracedb.output.answer import Column, from_rows
    from tracedb.output.display_column import Show
    from tracedb.output.shorten import paths_apart
    from tracedb.pipeline import labels
    from tracedb.storage.database_file import size_of

    columns = [
        Column("path", "VARCHAR", description="First file of the capture."),
        Column("source", "VARCHAR", description="Ingester that would read it."),
        Column("rank", "INTEGER", description="Rank from the path or file name; a rank in the trace takes precedence."),
        Column("labels", "MAP(VARCHAR, VARCHAR)", description="Labels."),
        Column("bytes", "BIGINT", "bytes", "Size of its files."),
        Column("files", "VARCHAR[]", description="Names of the files that are read together."),
    ]
    rows: list[tuple[object, ...]] = []
    for task in found.tasks:
        path = task.path
        named, rank = labels.placed(path, request.labels_from, request.labels, task.capture.rank)
        names = [file.name for file in task.capture.files]
        rows.append((labels.readable(path), task.source, rank, named, task.size_bytes, names))
    rows += [
        (str(told), "tracedb database", None, request.labels, size_of(path), [path.name])
        for path, told in found.databases
    ]
    answer = from_rows(columns, rows)
    answer.report, answer.database = "ingest plan", str(request.database)
    answer.shows = [
        Show(("path",), "path", "name", floor=30, words=paths_apart([str(row[0]) for row in rows])),
        *(Show((name,), name, "raw") for name in ("source", "rank")),
        labels_shown([row[3] for row in rows], tuple(request.labels)),
        Show(("bytes",), "bytes", "count"),
    ]
    if any(len(task.capture.files) > 1 for task in found.tasks):
        answer.shows.append(Show(("files",), "files read together", "word"))
    return answer


def _account(outcomes: list[Outcome], request: Request) -> Answer:
    from tracedb.output.answer import Column, from_rows
    from tracedb.output.display_column import Show
    from tracedb.output.shorten import paths_apart
    from tracedb.pipeline import labels

    columns = [
        Column("capture_id", "INTEGER", description="Number of the capture; none if nothing was loaded or labelled."),
        Column("path", "VARCHAR", description="First file of the capture."),
        Column("rank", "INTEGER", description="Rank."),
        Column("labels", "MAP(VARCHAR, VARCHAR)", description="Labels."),
        Column("status", "VARCHAR", description="Status of the capture, or failed, or known (loaded before)."),
        Column("kernels", "BIGINT", "count", "Kernel rows."),
        Column("events_read", "BIGINT", "count", "Events in the files: those that gave rows plus those skipped."),
        Column("rows_written", "BIGINT", "count", "Rows that the events gave."),
        Column("events_skipped", "BIGINT", "count", "Events that gave no row; table ingest_issue says why."),
    ]
    rows: list[tuple[object, ...]] = []
    for outcome in outcomes:
        path = labels.readable(outcome.path)
        if outcome.error or outcome.is_known:
            status = "failed" if outcome.error else "known"
            known = outcome.known_as if outcome.known_as and outcome.known_as.given else None
            number, has = (known.capture_id, known.labels) if known else (None, None)
            rows.append((number, path, None, has, status, None, None, None, None))
        for item in outcome.loaded:
            row = (item.capture_id, path, item.rank, item.labels, item.status)
            rows.append((*row, item.kernels, item.events_read, item.rows_written, item.events_skipped))
    answer = from_rows(columns, rows)
    answer.report, answer.database = "ingest", str(request.beside)
    answer.shows = [
        Show(("capture_id",), "capture", "raw", drop=2 if chosen_lake() else 0),  # those of a lake have 19 digits
        Show(("path",), "path", "name", floor=30, words=paths_apart([str(row[1]) for row in rows])),
        Show(("rank",), "rank", "raw"),
        Show(("status",), "status"),
        Show(("kernels",), "kernels", "count"),
        Show(("events_read",), "events", "count"),
        Show(("rows_written",), "rows", "count"),
        Show(("events_skipped",), "skipped", "count"),
        labels_shown([row[3] for row in rows], tuple(request.labels)),
    ]
    return answer


def _tell_failures(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.error:
            fault(f"{outcome.path}: {outcome.error}", 1)


def _tell_other_recordings(outcomes: Sequence[Outcome]) -> None:
    """Say once how many files were left aside because another file of the same capture was loaded."""
    told = [
        (outcome.path, count, text)
        for outcome in outcomes
        for item in outcome.loaded
        for code, _, count, text in item.issues
        if code == "duplicate_recording"
    ]
    if told:
        path, _, text = told[0]
        more = "; -v names all" if len(told) > 1 and verbosity() <= 0 else ""
        files = counted(sum(count for _, count, _ in told), "file")
        note(f"left aside: {files} whose capture was loaded from another file ({path}: {text}{more})")


def _tell_without_rank(outcomes: Sequence[Outcome]) -> None:
    """Suggest how to use the numbers in file names as rank or label, if nothing else distinguishes the captures."""
    from tracedb.pipeline import labels

    alike: dict[object, list[Path]] = {}
    for outcome in outcomes:
        if len(outcome.loaded) == 1 and outcome.loaded[0].rank is None and not outcome.loaded[0].samples:
            alike.setdefault(tuple(outcome.loaded[0].labels.items()), []).append(outcome.path)
    for paths in alike.values():
        for regex, found in labels.counting(paths):
            note(
                f"{len(found)} captures have no rank, but their names are numbered: {labels.readable(found[0])} … "
                f"{labels.readable(found[-1].name)}; to use that number, ingest them into a new database with "
                f"--labels-from {shlex.quote(regex)}"
            )


def _tell_split_runs(outcomes: Sequence[Outcome], request: Request) -> None:
    """Name loaded or labelled captures that labels keep apart from the other ranks of their run."""
    numbers = [item.capture_id for outcome in outcomes for item in outcome.loaded]
    numbers += [outcome.known_as.capture_id for outcome in outcomes if outcome.known_as and outcome.known_as.given]
    if not numbers or request.lake is not None:
        return
    from tracedb.report import split_runs
    from tracedb.storage.connection import open_read_only

    with open_read_only(request.database) as connection:
        for text in split_runs.said(connection, numbers):
            warn(text)


def _size(request: Request) -> str:
    """Return the size of the database in words; that of a lake would have to be added up."""
    path = request.database
    if request.lake is not None or not path.exists():
        return ""
    return f", {path} is {path.stat().st_size / 1e6:,.1f} MB"


def _close(outcomes: list[Outcome], request: Request, strict: bool, unfinished: TracedbError | None) -> None:
    """Print what happened; raise if the exit code must not be 0."""
    db = request.beside
    for outcome in outcomes:
        _tell_failures([outcome])
        for text in outcome.notes:
            warn(f"{outcome.path}: {text}")
        known = outcome.known_as
        if known and known.given:
            given = ", ".join(f"{key}={value}" for key, value in known.given.items())
            note(f"{outcome.path}: its bytes are loaded as capture {known.capture_id}, which now has {given}")
        if known and known.missing:
            missing = ", ".join(f"{key}={value}" for key, value in known.missing.items())
            warn(
                f"{outcome.path}: its bytes are loaded as capture {known.capture_id} ({known.path}), without {missing}"
            )
        for item in outcome.loaded:
            for code, severity, count, text in item.issues:
                if severity == "warning":
                    warn(f"{outcome.path}: {code} ({count}): {text}")
                else:
                    detail(f"{outcome.path}: {code} ({count}): {text}")
            if item.kernels == 0 and not item.samples and not item.is_snapshot:
                reason = next((text for code, _, _, text in item.issues if code == "no_gpu_activity"), "no kernels")
                warn(f"{outcome.path}: no kernels were loaded ({reason})")
    loaded = sum(len(outcome.loaded) for outcome in outcomes)
    known_before = sum(outcome.is_known for outcome in outcomes)
    failed = [outcome for outcome in outcomes if outcome.error]
    unfinished = unfinished or next((TracedbError(o.unfinished) for o in outcomes if o.unfinished), None)
    read = sum(outcome.size_bytes for outcome in outcomes if outcome.loaded)
    note(
        f"{counted(loaded, 'capture')} loaded, {known_before} known before, {len(failed)} failed; "
        f"read {read / 1e6:,.1f} MB{_size(request)}"
    )
    _tell_other_recordings(outcomes)
    _tell_without_rank(outcomes)
    _tell_split_runs(outcomes, request)
    if failed:
        others = f"; the others are in {db}" if len(failed) < len(outcomes) else ""
        also = f"; {unfinished}" if unfinished else ""
        raise TracedbError(f"{len(failed)} of {counted(len(outcomes), 'file')} could not be loaded{others}{also}")
    if unfinished is not None:
        raise unfinished
    faulty = [outcome for outcome in outcomes if outcome.is_faulty]
    if strict and faulty:
        named = f"{faulty[0].path}{' …' if len(faulty) > 1 else ''}"
        raise TracedbError(f"--strict: events were skipped or repaired in {counted(len(faulty), 'file')} ({named})")
    if loaded:
        from tracedb.report import next_commands

        command = next_commands.first(db, [item for outcome in outcomes for item in outcome.loaded])
        note(f"next: {command}, or tracedb report --list" if command else "next: tracedb report --list")
