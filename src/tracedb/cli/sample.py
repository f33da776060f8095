"""``tracedb sample``: run operators over a sweep of shapes and keep every iteration."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.options import database_option, note, output_options, warn

if TYPE_CHECKING:
    from tracedb.output.answer import Answer
    from tracedb.sampling.configuration import Configuration
    from tracedb.sampling.recording import Outcome
    from tracedb.sampling.runner import Account, Progress

SECONDS_BETWEEN_NOTES = 5.0


@click.command()
@click.argument("configurations", nargs=-1, type=click.Path(path_type=Path), metavar="[CONFIG]…")
@database_option
@click.option(
    "--precision", type=click.Choice(["fp16", "bf16", "fp32"]), default="fp16", show_default=True, help="Element type."
)
@click.option("--device", metavar="NAME", help="cuda, cuda:N or cpu. [default: the current GPU]")
@click.option(
    "--regime",
    type=click.Choice(["steady", "rested"]),
    help="Between iterations, keep the device at the power and clock of a training step, or let it rest. "
    "[default: steady; on the CPU rested]",
)
@click.option(
    "--beside",
    type=click.Choice(["allreduce"]),
    help="Sample while this collective runs on all GPUs of this host: how much slower operators are beside it.",
)
@click.option(
    "--parts",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Split the sweep into N parts; --part chooses one.",
)
@click.option(
    "--part", type=click.IntRange(min=1), default=1, metavar="K", help="Run only the K-th of --parts (1 to N)."
)
@click.option("--random", type=click.IntRange(min=1), metavar="N", help="Only N randomly chosen shapes of the sweep.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of --random.")
@click.option(
    "--run",
    "mode",
    type=click.Choice(["get_all", "get_one", "get_profiler", "run_function"]),
    help="Override the key run of the configuration.",
)
@click.option(
    "--keep-traces", type=click.Path(path_type=Path), metavar="DIR", help="Keep the profiler's traces in this folder."
)
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append progress to this file.",
)
@click.option(
    "--bursts",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Repeat N shapes of each operator back to back, to measure the host's launch time and, in the steady regime, "
    "power.",
)
@click.option("--peaks", is_flag=True, help="Measure the device's peak rates first, for roofline; needs no CONFIG.")
@click.option("--retry-failed", is_flag=True, help="Run shapes again that ran out of memory or failed.")
@output_options
def sample(
    configurations: tuple[Path, ...],
    db: Path,
    precision: str,
    device: str | None,
    regime: str | None,
    beside: str | None,
    parts: int,
    part: int,
    random: int | None,
    seed: int,
    mode: str | None,
    keep_traces: Path | None,
    log: Path | None,
    bursts: int,
    peaks: bool,
    retry_failed: bool,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Sample operators over the shapes of each CONFIG (YAML) into the database.

    Shapes that the database already has for this operator, element type, device and regime are skipped, so repeating
    the command resumes a stopped sweep. Table sample_status has the outcome of every shape. With --peaks, the rates of
    large products and copies go into table device_peak, beside those of the vendor's data sheet.
    """
    from tracedb.errors import UsageError
    from tracedb.output import choose_format, write
    from tracedb.sampling import host
    from tracedb.sampling.beside import run as run_beside
    from tracedb.sampling.runner import RESTED, STEADY, Request, profile_one, run, run_once
    from tracedb.sampling.stopping import on_interrupt

    form = choose_format(format_name, out)
    if not configurations and not peaks:
        raise UsageError("name a CONFIG (YAML) to sample, or give --peaks")
    if part > parts:
        raise UsageError(f"--part {part} of --parts {parts}: parts are numbered from 1 to {parts}")
    notes = _Notes(log)
    if peaks:
        _measure_peaks(db, device)
    if regime is None:  # the steady regime is about the power of a GPU, and its load takes seconds on the CPU
        regime = RESTED if device is not None and device.split(":")[0] == "cpu" else STEADY
    request = Request(db, precision, device, parts, part, random, seed, keep_traces, retry_failed, regime, bursts)
    models, operators = _read(configurations, mode, beside)
    # Before anything else: the host is timed in processes that share it with no other work.
    accounts: list[Account] = host.run(models, request) if models else []
    is_stopped = click.get_current_context().with_resource(on_interrupt(_say_stop)) if beside is None else bool
    for item in operators:
        if item.run == "run_function":
            _must_have_run(item, run_once(item, request))
            note(f"{item.operator} ran once")
        elif item.run == "get_profiler":
            trace, outcome = profile_one(item, request, keep_traces or Path())
            _must_have_run(item, outcome)
            note(f"wrote {trace}")
        elif beside is None:
            accounts.append(run(item, request, notes, is_stopped))
        if is_stopped():
            break
    if beside is not None:
        together = [item for item in operators if item.run in ("get_all", "get_one")]
        accounts += run_beside(together, request, beside)
    if accounts:
        write(account_of(accounts, db), form, out)
        _close(accounts)
    if is_stopped():
        note("the shapes sampled so far are kept; the same command goes on with the others")
        raise KeyboardInterrupt


def _read(
    paths: Sequence[Path], mode: str | None, beside: str | None
) -> tuple[list[Configuration], list[Configuration]]:
    """Read configurations; returns those of whole models and those of operators."""
    from dataclasses import replace

    from tracedb.errors import UsageError
    from tracedb.sampling import configuration, host

    read = [configuration.read(path) for path in paths]
    if mode is not None:
        read = [replace(item, run=mode) for item in read]
        for item in read:
            configuration.check_run(item)
    models = [item for item in read if host.is_model(item)]
    if other := [item for item in models if item.run not in ("get_all", "get_one")]:
        raise UsageError(f"{other[0].path} is of a whole model, which has no run {other[0].run}; use get_all")
    if models and beside is not None:
        raise UsageError(f"--beside samples operators; {models[0].path} is of a whole model, whose host is timed alone")
    return models, [item for item in read if item not in models]


def _say_stop() -> None:
    note("stopping after the shape that is running; Ctrl-C again ends at once and loses what is not yet loaded")


def _measure_peaks(db: Path, device: str | None) -> None:
    from tracedb.sampling import peaks

    found = peaks.measure(device)
    peaks.write(db, found)
    rates = ", ".join(f"{kind} {rate:,.1f}" for kind, rate in found.tflops.items())
    note(f"{found.device}: {rates} TFLOP/s, {found.memory_gbps:,.0f} GB/s; in device_peak of {db}")


class _Notes:
    """Prints the progress of the sweep on stderr every few seconds and at its end, and appends all of it to a log."""

    def __init__(self, log: Path | None) -> None:
        self._said = time.monotonic()
        self._log = log
        self._append("")  # A log that cannot be written ends the command before anything is sampled.

    def __call__(self, progress: Progress) -> None:
        self._append(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {progress}\n")
        if time.monotonic() - self._said > SECONDS_BETWEEN_NOTES or progress.done in (0, progress.total):
            note(str(progress))
            self._said = time.monotonic()

    def _append(self, words: str) -> None:
        from tracedb.errors import TracedbError

        if self._log is None:
            return
        try:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(words)
        except OSError as error:
            raise TracedbError(f"{self._log}: cannot be written: {error.strerror}") from error


def _must_have_run(item: Configuration, outcome: Outcome) -> None:
    from tracedb.errors import TracedbError

    if outcome.status != "sampled":
        raise TracedbError(f"{item.path}: {outcome.status}: {outcome.detail}")


def account_of(accounts: Sequence[Account], database: Path) -> Answer:
    """Return a row for each series, with the outcomes of its shapes."""
    from tracedb.output.answer import Column, from_rows

    columns = [
        Column("operator", "VARCHAR", description="Operator."),
        Column("dtype", "VARCHAR", description="Element type."),
        Column("device", "VARCHAR", description="GPU's product name, or cpu."),
        Column("sampled", "BIGINT", "count", "Shapes sampled now."),
        Column("invalid", "BIGINT", "count", "Shapes of the sweep that do not exist."),
        Column("out_of_memory", "BIGINT", "count", "Shapes that ran out of memory."),
        Column("error", "BIGINT", "count", "Shapes that failed otherwise."),
        Column("known", "BIGINT", "count", "Shapes skipped because the database has them."),
        Column("captures", "BIGINT", "count", "Captures loaded."),
    ]
    rows = []
    for account in accounts:
        count = Counter(outcome.status for outcome in account.outcomes)
        series = account.series
        found = [count[status] for status in ("sampled", "invalid", "out_of_memory", "error")]
        rows.append((series.operator, series.dtype, series.device, *found, account.known, len(account.captures)))
    answer = from_rows(columns, rows)
    answer.report, answer.database = "sample", str(database)
    return answer


def _close(accounts: list[Account]) -> None:
    """Print the first failure of each series, of which the table has the others, and why clocks were not read."""
    from tracedb.sampling.sweep import text

    for reason in dict.fromkeys(account.unread for account in accounts if account.unread):
        warn(f"clocks and power were not read: {reason}")
    for account in accounts:
        for status in ("out_of_memory", "error"):
            failed = [outcome for outcome in account.outcomes if outcome.status == status]
            if failed:
                first = failed[0]
                warn(
                    f"{len(failed)} shapes ended with {status}, first {text(account.series.operator, first.shape)}: "
                    f"{first.detail}; table sample_status has all"
                )
