"""``tracedb fit``: models of operator times from the samples or the traces in databases."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tracedb.cli.options import counted, databases_option, detail, note, output_options, warn


@click.command()
@databases_option
@click.option(
    "--models",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Write the models to this folder.",
)
@click.option(
    "--from",
    "source",
    type=click.Choice(["samples", "traces"]),
    default="samples",
    show_default=True,
    help="Fit sampled operators (view operator_samples), or the operators of ordinary traces (view operator_calls).",
)
@click.option(
    "--learner",
    type=click.Choice(["blend", "gaussian", "torch", "trees"]),
    default="blend",
    show_default=True,
    help="Model of what the trend leaves unexplained; torch and trees need the extras of those names.",
)
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Only this operator. May be repeated.")
@click.option(
    "--repeats", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Number of random splits."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Targets fitted at once. [default: number of cores]"
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Seed of splits and learners."
)
@click.option(
    "--features",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Python file with FEATURES, a dict: operator → function of a shape that returns its FLOPs, bytes and sizes.",
)
@output_options
def fit(
    databases: tuple[Path, ...],
    models: Path,
    source: str,
    learner: str,
    operators: tuple[str, ...],
    repeats: int,
    jobs: int | None,
    seed: int,
    features: Path | None,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Fit a model for each GPU, operator, element type and pass of the view operator_samples or operator_calls.

    The output has the error of each model on held-out samples, which are split at random, by distinct work, and by
    amount of work (trained on the smaller four fifths, tested on the rest). The saved models are trained on all
    samples. With --from traces, the times of recorded shapes are also stored as they are, however few these are, and
    calls that overlap a collective are left out. Several --db are fitted together.
    """
    # The matrices are small: threads inside numpy would only wait for each other. Set before numpy is imported; workers
    # inherit it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from tracedb.output import choose_format, refuse_overwriting, write
    from tracedb.regress import own_features, store, training

    form = choose_format(format_name, out)
    refuse_overwriting(out, databases[0], [*databases[1:], *store.files(models)])
    if operators:
        _refuse_to_drop(models, operators)
    plan = training.Plan(source, learner, operators, repeats, jobs, seed)
    with own_features.using(own_features.from_file(features) if features is not None else None):
        found = training.fit(databases, models, plan, detail, warn)
    if form == "table" and found.models:
        found.answer.rows = list(found.answer.rows)[: len(found.models)]  # the others have no errors to print
    write(found.answer, form, out)
    seen = f" and times at {counted(len(found.seen), 'recorded shape')}" if found.seen else ""
    follow = f"tracedb expected --models {models}" if found.seen else f"tracedb predict --models {models} --operator …"
    note(f"{counted(len(found.models), 'model')}{seen} written to {models}; next: {follow}")


def _refuse_to_drop(folder: Path, operators: tuple[str, ...]) -> None:
    """Raise ``TracedbError`` if the folder has models of other operators, which a fit of some would replace."""
    from tracedb.errors import TracedbError
    from tracedb.regress import store

    try:
        held = store.read(folder)[0]
    except TracedbError:  # no models, or damaged ones that have to be fitted again: nothing is lost
        return
    others = {model.target.operator for model in held} - set(operators)
    if others:
        raise TracedbError(
            f"{folder}: holds models of {counted(len(others), 'other operator')}, such as {min(others)}, which a fit "
            "of some operators would replace; name another folder with --models, or leave out --operator"
        )
