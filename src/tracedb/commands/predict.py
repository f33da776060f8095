"""``tracedb predict``: operator times from fitted models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.commands.options import database_option, note, output_options, rows_shown, top_option, warn

if TYPE_CHECKING:
    from tracedb.output import Answer
    from tracedb.regress import Models


@click.command()
@click.option(
    "--models",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="As fit wrote them.",
)
@click.option("--operator", metavar="NAME", help="Predict this operator at --shape.")
@click.option("--shape", metavar="K=N,…", help="Parameters of the shape, such as b=4,h=32,l=4096.")
@click.option("--gpu", metavar="NAME", help="GPU, where models of several are there.")
@click.option("--dtype", metavar="TYPE", help="Element type, where models of several are there.")
@click.option("--pass", "pass_", type=click.Choice(["fwd", "bwd", "step", "comm"]), help="Only this pass.")
@database_option
@top_option
@output_options
def predict(
    models: Path,
    operator: str | None,
    shape: str | None,
    gpu: str | None,
    dtype: str | None,
    pass_: str | None,
    db: Path,
    top: int | None,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Predict operator times: of one shape, or of every sample of a database beside its measured time.

    With --operator and --shape, of that shape. Without, of every sample in --db. The interval from low to high is to
    hold nine of ten measurements.
    """
    from tracedb.errors import UsageError
    from tracedb.output import choose_format, write
    from tracedb.regress import load
    from tracedb.regress.predict import of_shape, parse_shape

    form = choose_format(format_name, out)
    loaded = load(models)
    if (operator is None) != (shape is None):
        raise UsageError("--operator and --shape go together; without both, every sample of --db is predicted")
    if operator is not None and shape is not None:
        answer = of_shape(loaded, operator, parse_shape(shape), gpu, dtype, pass_)
        _say_outside(answer)
    else:
        answer = _beside(loaded, db)
        answer.most = rows_shown(form, top)
    answer.filters = {"models": str(models)}
    write(answer, form, out)


def _say_outside(answer: Answer) -> None:
    outside = sorted({name for row in answer.rows for name in row[-1]})  # type: ignore[attr-defined]
    if outside:
        warn(f"beyond the samples in {', '.join(outside)}: the trend is carried on")


def _beside(models: Models, db: Path) -> Answer:
    """Return the samples of a database with their predictions; say how good these are."""
    import numpy as np

    from tracedb.database import open_read_only
    from tracedb.errors import NotCaptured
    from tracedb.regress.predict import of_database

    with open_read_only(db) as connection:
        found = of_database(models, connection)
    if not found.errors:
        raise NotCaptured(found.left_out[0] if found.left_out else f"{db}: no samples to predict")
    for text in found.left_out:
        warn(text)
    found.answer.database, found.answer.warnings = str(db), found.left_out
    count, mean, median = len(found.errors), np.mean(found.errors), np.median(found.errors)
    inside = 100 * found.covered / count
    note(f"{count} samples: mean error {mean:.2f} %, median {median:.2f} %, {inside:.1f} % in the interval")
    return found.answer
