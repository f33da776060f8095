"""``tracedb fit``: models of operator times from the samples in the database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.options import database_option, detail, note, output_options, warn

if TYPE_CHECKING:
    from tracedb.regress.dataset import Table


@click.command()
@database_option
@click.option(
    "--models",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Write the models to this folder.",
)
@click.option(
    "--learner",
    type=click.Choice(["blend", "gaussian", "torch", "trees"]),
    default="blend",
    show_default=True,
    help="Learner of the residual over the trend; torch and trees need the extras of those names.",
)
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Only this operator. May be repeated.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Number of random splits.")
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Targets fitted at once. [default: number of cores]"
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of splits and learners.")
@output_options
def fit(
    db: Path,
    models: Path,
    learner: str,
    operators: tuple[str, ...],
    repeats: int,
    jobs: int | None,
    seed: int,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Fit a model for each GPU, operator, element type and pass of the view operator_samples.

    The output has the error of each model on held-out samples, which are split at random, by distinct work, and by
    amount of work (trained on the smaller four fifths, tested on the rest). The saved models are trained on all
    samples.
    """
    # The matrices are small: threads inside numpy would only wait for each other. Set before numpy is imported; workers
    # inherit it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from tracedb.output import choose_format, refuse, write
    from tracedb.regress import dataset, fitting, store
    from tracedb.storage.connection import open_read_only

    form = choose_format(format_name, out)
    refuse(out, db, store.files(models))
    with open_read_only(db) as connection:
        tables = _chosen(dataset.tables(connection), operators)
    fitted = []
    for model in fitting.judge_all(tables, learner, repeats, seed, jobs or os.cpu_count() or 1):
        detail(f"fitted {model.target}: {model.facts['samples']} samples")
        fitted.append(model)
    store.save(models, fitted, fitting.facts(learner, repeats, seed))
    answer = fitting.answer(fitted)
    answer.database, answer.filters = str(db), {"learner": learner, "seed": seed, "repeats": repeats}
    write(answer, form, out)
    note(f"{len(fitted)} models written to {models}; next: tracedb predict --models {models} --operator …")


def _chosen(tables: list[Table], operators: tuple[str, ...]) -> list[Table]:
    """Return the tables of the requested operators that can be fitted, and print what is left out."""
    from tracedb.errors import NotCaptured, UsageError
    from tracedb.regress.fitting import FEWEST, FEWEST_ALONG_ONE, fewest, is_enough

    there = sorted({table.target.operator for table in tables})
    for name in operators:
        if name not in there:
            raise UsageError(f"no samples of an operator {name!r}; there are: {', '.join(there)}")
    chosen = []
    for table in tables:
        if operators and table.target.operator not in operators:
            continue
        if table.left_out:
            warn(f"{table.target}: {table.left_out} samples left out: parameters unlike the others', or values below 1")
        if is_enough(table):
            chosen.append(table)
        else:
            warn(f"{table.target}: left out, fewer than {fewest(table)} distinct shapes")
    if not chosen:
        raise NotCaptured(
            f"no operator was sampled at {FEWEST} distinct shapes or more, or {FEWEST_ALONG_ONE} along one parameter; "
            "sample more of them"
        )
    return chosen
