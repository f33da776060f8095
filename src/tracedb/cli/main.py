"""The command line: the commands, and the handling of errors.

Only click is imported here: each command's module is imported when it is called, so that ``--help`` is quick.
"""

from __future__ import annotations

import difflib
import errno
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tracedb.cli import examples
from tracedb.cli.native_import import hold_interrupts
from tracedb.cli.options import Settings, fault, lake_option, say, silence_stdout, verbosity_step
from tracedb.errors import OutputFault, TracedbError

COMMANDS: dict[str, tuple[str, str]] = {
    "ingest": ("tracedb.cli.ingest:ingest", "Load traces: files or folders, of any profiler."),
    "report": ("tracedb.cli.report:report", "Print one view, filtered, grouped, ordered."),
    "plot": ("tracedb.cli.plot:plot", "Draw one view as a picture: PNG, SVG or HTML."),
    "page": ("tracedb.cli.page:page", "Write one HTML page: conclusions, pictures, tables, SQL."),
    "why": ("tracedb.cli.why:why", "Say what keeps the step from the hardware's peak."),
    "brief": ("tracedb.cli.brief:brief", "Print one page of Markdown for a chat or a ticket."),
    "compare": ("tracedb.cli.compare:compare", "Compare runs with a baseline; can fail a CI job."),
    "sql": ("tracedb.cli.sql:sql", "Run one SELECT, read-only."),
    "sql-dialect": ("tracedb.cli.sql_dialect:sql_dialect", "Print views as SQL of Spark, ClickHouse or Trino."),
    "export": ("tracedb.cli.export:export", "Write files for other tools: Perfetto, spreadsheets, rocprofv3."),
    "shell": ("tracedb.cli.shell:shell", "Open a read-only SQL prompt on the database."),
    "mcp": ("tracedb.cli.mcp:mcp", "Serve the database to a language model, read-only."),
    "fit": ("tracedb.cli.fit:fit", "Learn operator times from samples."),
    "predict": ("tracedb.cli.predict:predict", "Predict operator times from fitted models."),
    "expected": ("tracedb.cli.expected:expected", "Compare operator times with predictions; can fail a CI job."),
    "views": ("tracedb.cli.views:views", "List, show and verify the views."),
    "schema": ("tracedb.cli.schema:schema", "List the tables, or the columns of one."),
    "lake": ("tracedb.cli.lake:lake", "Keep a lake of Parquet files: align, compact, verify."),
    "ingesters": ("tracedb.cli.ingesters:ingesters", "List the installed ingesters."),
    "sample": ("tracedb.cli.sample:sample", "Time operators over a sweep of shapes on this machine's GPU."),
    "sample-collectives": (
        "tracedb.cli.sample_collectives:sample_collectives",
        "Time collectives between this machine's GPUs.",
    ),
    "watch": ("tracedb.cli.watch:watch", "Run a command and record the GPUs' clocks and power meanwhile."),
    "replay": ("tracedb.cli.replay:replay", "Run a capture's operators again and compare the times."),
    "label": ("tracedb.cli.label:label", "Set or remove labels of captures."),
    "merge": ("tracedb.cli.merge:merge", "Put several databases together into a new one."),
    "remove": ("tracedb.cli.remove:remove", "Remove captures and all their rows."),
    "whatif": ("tracedb.cli.whatif:whatif", "Estimate the step time if some work were faster or removed."),
    "completion": ("tracedb.cli.completion:completion", "Print the script for Tab completion in a shell."),
    "doctor": ("tracedb.cli.doctor:doctor", "Show what is installed and what the captures can answer."),
}
"""Name of a command → (where it is, its line in the help)."""
_ELSEWHERE = {"--limit": "--top", "--head": "--top", "--out": "--output", "--database": "--db"}
"""Options as other programs name them → tracedb's name."""

GARBAGE_AFTER = 50_000
"""Allocations between runs of the cycle collector. With Python's default of 700, imports take a tenth longer."""


class LazyGroup(click.Group):
    """A group that imports a command only when it runs, and reports every known error in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of ``COMMANDS``: the usual order of work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        where, summary = COMMANDS[cmd_name]
        module, _, attribute = where.partition(":")
        try:
            found = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise TracedbError(f"this installation has no command {cmd_name!r}") from error
        assert isinstance(found, click.Command)
        found.short_help = summary
        examples.add(cmd_name, found)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest a similar name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            if report := _report_named(args[0]):
                ctx.fail(f"there is no command {args[0]!r}, but a report: `tracedb report {report}`")
            close = difflib.get_close_matches(args[0], COMMANDS, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            ctx.fail(f"there is no command {args[0]!r}{meant}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names without importing any command, and options as click does."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; it ends quietly if the reader of its output is gone (``| head``)."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            silence_stdout()
            ctx.exit(0)
        except OutputFault:
            silence_stdout()
            raise
        return result

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run and exit: 0 done, 1 a known error, 2 usage, 3 the database cannot answer, 130 interrupted."""
        prog_name = prog_name or "tracedb"
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        gc.set_threshold(GARBAGE_AFTER)
        hold_interrupts()
        if "_TRACEDB_COMPLETE" in os.environ:
            import_module("tracedb.cli.completion_candidates").register()
        try:
            outcome = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            code = outcome if isinstance(outcome, int) else 0
        except TracedbError as error:
            code = fault(str(error), error.exit_code)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.ctx.get_help() if error.ctx else error.format_message(), err=True)
            code = error.exit_code
        except click.UsageError as error:
            hint = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
            code = fault(_with_own_name(error).format_message() + hint, error.exit_code)
        except click.ClickException as error:
            code = fault(error.format_message(), error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            code = fault("interrupted", 130)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                code = _unforeseen(error, args)
            else:
                silence_stdout()
                code = fault(f"what goes to {error.filename or 'stdout'} cannot be written: {error.strerror}", 1)
        except Exception as error:  # noqa: BLE001 - the last that can tell of it, in one line
            code = _unforeseen(error, args)
        sys.exit(code)


def _report_named(name: str) -> str | None:
    """Return the report of exactly this name, written with dashes; None if there is none."""
    from tracedb.errors import UsageError
    from tracedb.report import registry

    try:
        registry.find(name)
    except UsageError:
        return None
    return name.replace("_", "-")


def _with_own_name(error: click.UsageError) -> click.UsageError:
    """Return the error; for an option that has another name here, one that suggests this name."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error
    named = _ELSEWHERE.get(error.option_name)
    if named is None or not any(named in parameter.opts for parameter in error.ctx.command.params):
        return error
    return click.UsageError(f"No such option {error.option_name!r}. Did you mean {named!r}?", error.ctx)


def _unforeseen(error: Exception, args: Sequence[str] | None) -> int:
    """Report an unexpected error in one line, after the traceback with ``-v``."""
    from tracedb.storage import error_lines

    if error_lines.is_interrupt(error):
        return fault("interrupted", 130)
    if "duckdb" in sys.modules and _is_of_file(error):
        return fault(f"a database file is damaged or cannot be written: {error_lines.engine_words(error)}", 1)
    if {"-v", "--verbose"} & set(sys.argv[1:] if args is None else args):
        import traceback

        for part in traceback.format_exception(error):
            for line in part.splitlines():
                say(f"tracedb: {line}")
    return fault(error_lines.one_line(error), 1)


def _is_of_file(error: Exception) -> bool:
    """Whether the error comes from a file that is damaged, unreadable or out of space, not from a query."""
    import duckdb

    kinds = (duckdb.IOException, duckdb.SerializationException, duckdb.FatalException)
    return isinstance(error, kinds) or str(error).startswith("Corrupt database file")


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import tracedb

    click.echo(f"tracedb {tracedb.__version__}")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The database. [default: $TRACEDB, else trace.duckdb]",
)
@lake_option
@click.option(
    "-q", "--quiet", callback=verbosity_step(-1), expose_value=False, count=True, help="No hints, notes or warnings."
)
@click.option(
    "-v", "--verbose", callback=verbosity_step(1), expose_value=False, count=True, help="Print more messages on stderr."
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.pass_context
def cli(ctx: click.Context, db: Path | None) -> None:
    """Load GPU traces into one DuckDB file and ask it questions.

    Data goes to stdout, messages to stderr. Exit codes: 0 success; 1 an error; 2 wrong usage; 3 the database cannot
    answer, because the necessary data was not captured; 4 a limit given with --fail-on was exceeded.
    """
    ctx.ensure_object(Settings).db = db


def main() -> None:
    """Run the command line."""
    cli()
