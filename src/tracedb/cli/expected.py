"""``tracedb expected``: compare operator times with those predicted for the same GPU, largest losses first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracedb.cli.filter_options import filter_options
from tracedb.cli.options import (
    counted,
    database_option,
    gate_failed,
    note,
    output_options,
    rows_shown,
    sort_option,
    top_option,
    warn,
)

if TYPE_CHECKING:
    from tracedb.report.filters import Filters
    from tracedb.training_step.operator_gates import OperatorGate


@click.command()
@database_option
@click.option(
    "--models",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Predict by these models, fitted with tracedb fit --from traces.",
)
@click.option(
    "--others",
    is_flag=True,
    help="Predict each capture by the other captures of the file on the same kind of GPU: finds a slow GPU among many.",
)
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    metavar="LIMIT",
    help="A gate: exit with code 4 if this is exceeded: METRIC[NAME]>LIMIT[%], such as 'slower>0', 'lost>2%' or "
    "'ratio[aten::mm]>1.2'. Metrics: slower (operators named), lost (their time beyond the interval, in ns or in % of "
    "the predicted time), ratio (measured over predicted time). NAME may be a pattern. May be repeated.",
)
@filter_options
@sort_option
@top_option
@output_options
def expected(
    db: Path,
    models: Path | None,
    others: bool,
    limits: tuple[str, ...],
    top: int | None,
    format_name: str | None,
    out: Path | None,
    **chosen: Any,
) -> None:
    """Compare the time of each operator with what models of its GPU predict for its shapes.

    Predictions are stored in the table expected_time; `tracedb report expected` prints the comparison again, and so
    does this command without --models and --others. Filters and --by (rank, step, label) are those of reports.
    """
    from tracedb.errors import UsageError
    from tracedb.output import choose_format, refuse_overwriting
    from tracedb.regress import load, store
    from tracedb.report.filters import Filters
    from tracedb.training_step import expected_operators
    from tracedb.training_step.operator_gates import operator_gate

    if models is not None and others:
        raise UsageError("--models and --others exclude each other: both say what the times are compared with")
    gates = [operator_gate(text) for text in limits]
    filters = Filters(**chosen)
    form = choose_format(format_name, out)
    refuse_overwriting(out, db, store.files(models) if models is not None else [])
    if models is not None:
        number = expected_operators.predict(db, models, load(models))
        note(f"{counted(number, 'prediction')} by {models} stored")
    elif others:
        number = expected_operators.predict_by_others(db)
        note(f"{counted(number, 'prediction')} by other captures stored")
    _print(db, filters, gates, form, rows_shown(form, top), out)


def _print(db: Path, filters: Filters, gates: list[OperatorGate], form: str, top: int, out: Path | None) -> None:
    """Print the report, then judge the gates on all of its rows."""
    from tracedb.output import write
    from tracedb.report import registry
    from tracedb.report import run as engine
    from tracedb.report.query import plan
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        query = plan(connection, registry.find("expected"), filters, "v1")
        found = engine.run(connection, db, query, top)
        for text in found.answer.warnings:
            warn(text)
        for text in found.notes:
            note(text)
        write(found.answer, form, out)
        failed = [(item, said) for item in gates if (said := item.failure(connection))]
    for item, said in failed:
        gate_failed(item.text, said)
    if failed:
        click.get_current_context().exit(4)
