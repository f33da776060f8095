"""Options and messages that the commands share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from tracedb.errors import TracedbError
from tracedb.storage.lake_store import MARK, is_lake
from tracedb.storage.lock_wait import PATIENCE, READER_SECONDS, WRITER_SECONDS, Patience

FORMATS = ("table", "csv", "json", "ndjson", "jsonl", "markdown", "parquet", "xlsx", "html")
FOR_EYES = ("table", "markdown", "html")
ROWS_FOR_EYES = 50
DEFAULT_DATABASE = "trace.duckdb"
_LONGEST = 1_000
"""Characters of a word in a message; longer than any path that a user must see."""
WRITERS = ("expected", "ingest", "label", "merge", "remove", "replay", "sample", "sample-collectives")
"""Commands that write into the database."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Settings:
    """Options given before the command's name, or after it."""

    db: Path | None = None
    lake: Path | None = None
    verbosity: int = 0


def verbosity_step(step: int) -> Callable[[click.Context, click.Parameter, int], None]:
    """Return a callback that counts ``-q`` (step -1) or ``-v`` (step 1) into the settings."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: int) -> None:
        ctx.ensure_object(Settings).verbosity += step * value

    return callback


LAKE_HELP = (
    "A lake (a folder of Parquet files with the same tables) instead of the database: a path, s3://…, gs://… or az://…."
)


def _name_of(command: Callable[..., Any]) -> str:
    return command.__name__.replace("_", "-")


def lake_option(command: F, help_text: str = LAKE_HELP) -> F:
    """Add ``--lake``, which goes before or after a command's name; the help of commands that refuse it leaves it
    out."""
    name = _name_of(command)
    return click.option(
        "--lake",
        type=click.Path(path_type=Path),
        is_eager=True,  # before --db is looked at
        expose_value=False,
        callback=_lake,
        hidden=name in WRITERS and name != "ingest",
        metavar="DIR",
        help=help_text,
    )(command)


def _lake(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(Settings).lake = value


def chosen_lake() -> Path | None:
    """Return the lake given with ``--lake``; None if there is none."""
    context = click.get_current_context(silent=True)
    settings = context.find_object(Settings) if context else None
    return settings.lake if settings else None


def _instead(ctx: click.Context, lake: Path) -> Path:
    """Return the lake as the database of a command that reads."""
    if ctx.command.name in WRITERS:
        raise click.UsageError(
            f"--lake: {ctx.command.name} writes into a database file; traces get into a lake by `tracedb ingest` and "
            "`tracedb export lake`"
        )
    if not is_lake(lake):
        raise TracedbError(f"{lake}: not a lake (it has no {MARK}); run `tracedb ingest PATH --lake {lake}` first")
    return lake


def _database(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path:
    settings = ctx.ensure_object(Settings)
    if settings.lake is not None and (value is not None or settings.db is not None):
        raise click.UsageError("give --db or --lake, not both")
    if settings.lake is not None and ctx.command.name != "ingest":
        return _instead(ctx, settings.lake)
    said = value or ctx.ensure_object(Settings).db or Path(os.environ.get("TRACEDB") or DEFAULT_DATABASE)
    try:
        str(said).encode()
    except UnicodeEncodeError as error:
        raise click.BadParameter(f"{str(said)!r}: DuckDB opens files only whose names are UTF-8") from error
    return said


def _wait(ctx: click.Context, parameter: click.Parameter, value: float | None) -> None:
    default = WRITER_SECONDS if ctx.command.name in WRITERS else READER_SECONDS
    PATIENCE.set(Patience(default if value is None else value, note))


def patience_options(command: F) -> F:
    """Add ``--wait``, ``-q`` and ``-v``."""
    default = WRITER_SECONDS if _name_of(command) in WRITERS else READER_SECONDS
    command = click.option(
        "--wait",
        type=click.FloatRange(min=0),
        expose_value=False,
        callback=_wait,
        metavar="SECONDS",
        help=f"How long to wait while another process has the database open; 0 does not wait. [default: {default:g}]",
    )(command)
    command = click.option("-v", "--verbose", count=True, expose_value=False, callback=verbosity_step(1), hidden=True)(
        command
    )
    return click.option("-q", "--quiet", count=True, expose_value=False, callback=verbosity_step(-1), hidden=True)(
        command
    )


def database_option(command: F, lake_help: str = LAKE_HELP) -> F:
    """Add ``--db``, ``--lake``, ``--wait``, ``-q`` and ``-v``; the command gets ``db``, given before or after its
    name."""
    command = lake_option(patience_options(command), lake_help)
    return click.option(
        "--db",
        type=click.Path(path_type=Path),
        callback=_database,
        metavar="FILE",
        help=f"The database. [default: $TRACEDB, else {DEFAULT_DATABASE}]",
    )(command)


def _databases(ctx: click.Context, parameter: click.Parameter, values: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(_database(ctx, parameter, value) for value in values or (None,)))


def databases_option(command: F) -> F:
    """Add ``--db``, which may be repeated, ``--wait``, ``-q`` and ``-v``; the command gets ``databases``."""
    command = patience_options(command)
    return click.option(
        "--db",
        "databases",
        type=click.Path(path_type=Path),
        multiple=True,
        callback=_databases,
        metavar="FILE",
        help=f"A database; may be repeated. [default: $TRACEDB, else {DEFAULT_DATABASE}]",
    )(command)


def output_option(help_text: str) -> Callable[[F], F]:
    """Add ``-o``; the command gets ``out``, which is refused if it is the database or a file named by another
    option."""

    def decorate(command: F) -> F:
        @wraps(command)
        def guarded(*args: Any, **values: Any) -> Any:
            from tracedb.output.destination import refuse_overwriting

            named = [path for name, value in values.items() if name not in ("db", "out") for path in _paths(value)]
            refuse_overwriting(values["out"], values.get("db"), named)
            return command(*args, **values)

        option = click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help=help_text)
        return option(guarded)  # type: ignore[return-value]

    return decorate


def _paths(value: object) -> list[Path]:
    """Return the paths in the value of a command's parameter."""
    if isinstance(value, Path):
        return [value]
    return [item for item in value if isinstance(item, Path)] if isinstance(value, tuple) else []


def output_options(command: F) -> F:
    """Add ``--format`` and ``-o``; the command gets ``format_name`` and ``out`` (see ``output_option``)."""
    command = output_option("Write to this file instead of stdout.")(command)
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(FORMATS),
        help="Output format. [default: from the extension of -o, else table]",
    )(command)


def listed(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Return the items of a repeatable, comma-separated option, without duplicates."""
    found = (item.strip() for value in values for item in value.split(","))
    return tuple(dict.fromkeys(item for item in found if item))


def sort_option(command: F) -> F:
    """Add ``--sort``; the command gets ``sort``, for ``Filters``."""
    return click.option(
        "--sort",
        multiple=True,
        callback=listed,
        metavar="COL,…",
        help="Order rows by this column of the answer, descending as -COL or 'COL DESC'. May be repeated.",
    )(command)


def top_option(command: F) -> F:
    """Add ``--top``; the command gets ``top``, None if not given."""
    return click.option(
        "--top",
        type=click.IntRange(min=0),
        metavar="N",
        help=f"Show the first N rows; 0 shows all. [default: {ROWS_FOR_EYES} for table, markdown and html, else all]",
    )(command)


def rows_shown(form: str, top: int | None) -> int:
    """Return how many rows an answer in this format shows; 0 is all."""
    if top is not None:
        return top
    return ROWS_FOR_EYES if form in FOR_EYES else 0


def verbosity() -> int:
    """Return -1 or less for quiet, 0, 1 or more for verbose."""
    context = click.get_current_context(silent=True)
    settings = context.find_object(Settings) if context else None
    return settings.verbosity if settings else 0


def warn(text: str) -> None:
    """Print a warning about the answer on stderr."""
    if verbosity() >= 0:
        say(f"tracedb: warning: {text}")


def note(text: str) -> None:
    """Print a note on stderr."""
    if verbosity() >= 0:
        say(f"tracedb: {text}")


def detail(text: str) -> None:
    """Print a message on stderr if ``-v`` is given."""
    if verbosity() > 0:
        say(f"tracedb: {text}")


def detail_lines(title: str, text: str) -> None:
    """Print a text of several lines on stderr if ``-v`` is given."""
    if verbosity() > 0:
        for line in (title, *text.splitlines()):
            say(f"tracedb: {line}")


def fault(text: str, code: int) -> int:
    """Print in one line on stderr why the command fails, and return its exit code."""
    say(f"tracedb: error: {' '.join(text.split())}")
    return code


def gate_failed(gate: str, text: str) -> None:
    """Print on stderr, even if quiet, that a gate failed and why."""
    say(f"tracedb: gate failed: {gate}: {text}")


def say(line: str) -> None:
    """Print one line on stderr. Every message is printed here: names in it, of files and from traces, can neither
    control the terminal, nor fill it, nor begin a line of their own."""
    from tracedb.output.shorten import middle, visible

    line = re.sub(rf"\S{{{_LONGEST + 1},}}", lambda word: middle(word[0], _LONGEST), visible(line))
    click.echo(line, err=True)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 file``, ``2 files``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def silence_stdout() -> None:
    """Discard output that is still buffered for a reader that is gone."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
