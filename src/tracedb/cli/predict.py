"""``tracedb predict``: operator times from fitted models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.options import counted, database_option, note, output_options, rows_shown, top_option, warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracedb.output import Answer
    from tracedb.regress.model_folder import Library
    from tracedb.training_step.configuration import Step


@click.command()
@click.option(
    "--models",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Folder written by tracedb fit.",
)
@click.option("--operator", metavar="NAME", help="Predict this operator at --shape.")
@click.option("--shape", metavar="K=N,…", help="Parameters of the shape, such as b=4,h=32,l=4096.")
@click.option(
    "--gpu", metavar="NAME", help="GPU, if there are models for several; with --step, instead of the one in FILE."
)
@click.option(
    "--dtype",
    metavar="TYPE",
    help="Element type, if there are models for several; with --trace, that of operators recorded without one.",
)
@click.option(
    "--step", type=click.Path(path_type=Path), metavar="CONFIG", help="Predict whole training steps (YAML, JSON)."
)
@click.option(
    "--by",
    type=click.Choice(["step", "stage", "part"]),
    default="step",
    show_default=True,
    help="With --step: what each row describes.",
)
@click.option(
    "--link-gbps",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="With --step: link bandwidth for collectives without samples.",
)
@click.option(
    "--trace", type=click.Path(path_type=Path), metavar="FILE", help="Predict the operators of this trace or database."
)
@click.option(
    "--gpu-spec",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Predict a GPU that was not sampled, described by this JSON file, from the models of other GPUs.",
)
@click.option("--pass", "pass_", type=click.Choice(["fwd", "bwd", "step", "comm"]), help="Only this pass.")
@click.option(
    "--features",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Python file with FEATURES, if the models were fitted with it.",
)
@database_option
@top_option
@output_options
def predict(
    models: Path,
    operator: str | None,
    shape: str | None,
    gpu: str | None,
    dtype: str | None,
    step: Path | None,
    by: str,
    link_gbps: float | None,
    trace: Path | None,
    gpu_spec: Path | None,
    pass_: str | None,
    features: Path | None,
    db: Path,
    top: int | None,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Predict operator times, or whole training steps.

    With --operator and --shape, predict that shape; with --trace, the operators of a trace beside their measured times;
    with --step, training steps; with none of these, every sample in --db beside its measured time. The interval from
    low to high is meant to contain 90 % of measurements.

    Matrix products of an fp16 step (--step with JSON) are priced for NaN operands: AdamW turns weights that are kept
    only in fp16 into NaN, and an H100 is faster on NaN. Set "operands": "finite" in the configuration if yours stay
    finite.
    """
    from tracedb.errors import UsageError
    from tracedb.output import choose_format, refuse_overwriting, write
    from tracedb.pipeline.discovery import discover
    from tracedb.regress import own_features, store
    from tracedb.regress.predict import of_shape, parse_shape

    form = choose_format(format_name, out)
    refuse_overwriting(
        out, db, [*store.files(models), *(discover([trace]) if trace is not None and trace.exists() else [])]
    )
    loaded = _loaded(models, gpu_spec)
    if (operator is None) != (shape is None):
        raise UsageError(
            "--operator and --shape must be given together; without them, every sample of --db is predicted"
        )
    if [operator, step, trace].count(None) < 2:
        raise UsageError("--operator, --step and --trace exclude each other; give only one")
    with own_features.using(own_features.from_file(features) if features is not None else None):
        if step is not None:
            if pass_ is not None:
                raise UsageError("--pass goes with --operator; --step predicts all passes")
            named = {"gpu": gpu if gpu_spec is None else loaded.gpus[0], "dtype": dtype}
            changed = {name: value for name, value in named.items() if value is not None}
            answer = _steps(loaded, step, by, link_gbps, db, changed)
        elif trace is not None:
            answer = _trace(loaded, trace, gpu, dtype, rows_shown(form, top))
        elif operator is not None and shape is not None:
            answer = of_shape(loaded, operator, parse_shape(shape), gpu, dtype, pass_)
            _say_outside(answer)
        else:
            answer = _beside(loaded, db)
            if most := rows_shown(form, top):
                rows = list(answer.rows)
                answer.rows = rows[:most]
                if (left := len(rows) - most) > 0:
                    answer.left_out = f"{counted(left, 'more row')}; --top 0 shows all"
                    note(answer.left_out)
    answer.filters = {"models": str(models)}
    write(answer, form, out)


def _loaded(folder: Path, gpu_spec: Path | None) -> Library:
    """Return the models of a folder, scaled to a GPU that was not sampled if one is given."""
    from tracedb.regress import card_spec, load
    from tracedb.regress.other_card import OtherCard

    models = load(folder)
    if gpu_spec is None:
        return models
    other = OtherCard(models, card_spec.read(gpu_spec))
    for name in other.unknown:
        warn(f"models of {name} are left out: its data sheet is not known")
    return other


def _say_outside(answer: Answer) -> None:
    outside = sorted({name for row in answer.rows for name in row[-1]})  # type: ignore[attr-defined]
    if outside:
        text = f"beyond the range of the samples in {', '.join(outside)}: extrapolated, and the interval is a guess"
        answer.warnings.append(text)
        warn(text)


def _beside(models: Library, db: Path) -> Answer:
    """Return the samples of a database with their predictions; print the errors of these."""
    from tracedb.errors import NotCaptured
    from tracedb.regress.predict import of_database
    from tracedb.storage.connection import open_read_only
    from tracedb.training_step.prediction_errors import errors

    with open_read_only(db) as connection:
        found = of_database(models, connection)
    if not found.times:
        raise NotCaptured(found.left_out[0] if found.left_out else f"{db}: no samples to predict")
    for text in found.left_out:
        warn(text)
    found.answer.database, found.answer.warnings = str(db), found.left_out
    count, mean, median, inside = errors(found.times)
    note(f"{count} samples: mean error {mean:.2f} %, median {median:.2f} %, {inside:.1f} % in the interval")
    if found.trained:
        text = (
            f"{found.trained} of the {count} samples are those that the models were fitted to; `tracedb fit` "
            "prints the error on samples left out of the fit"
        )
        note(text)
        found.answer.notes = [text]
    return found.answer


def _replaced(step: Step, changed: Mapping[str, str]) -> Step:
    """Return the step with other values; what was measured on another GPU, or of another type, is left out."""
    from dataclasses import replace

    from tracedb.regress.model_folder import plain

    differs = any(getattr(step, name) and plain(getattr(step, name)) != plain(value) for name, value in changed.items())
    found = replace(step, gpu=changed.get("gpu", step.gpu), dtype=changed.get("dtype", step.dtype))
    return replace(found, measured_ns=None, trace=None) if differs else found


def _steps(
    models: Library, path: Path, by: str, link_gbps: float | None, db: Path, changed: Mapping[str, str]
) -> Answer:
    """Return predicted steps, with the fields in ``changed``; print which parts lack samples, and the error on measured
    steps."""
    from tracedb.errors import TracedbError
    from tracedb.training_step import configuration, prediction, tables
    from tracedb.training_step.prediction_errors import errors

    steps = [_replaced(item, changed) for item in configuration.read(path)]
    for item in steps:
        if models.dtypes and item.dtype not in models.dtypes:
            raise TracedbError(
                f"{path}: step {item.name}: dtype is {item.dtype!r}; the models are of {', '.join(models.dtypes)}"
            )
    found = [prediction.predict(item, models, link_gbps) for item in steps]
    warnings = list(dict.fromkeys(text for item in found for text in item.remarks))
    for text in warnings:
        warn(text)
    off = errors((item.step.measured_ns, item.ns, item.low, item.high) for item in found if item.step.measured_ns)
    if off.number:
        note(f"{off.number} measured steps: mean error {off.mean:.2f} %")
    if by == "stage":
        answer = tables.by_stage(found)
    elif by == "part":
        answer = tables.by_part(found, _measured_parts(steps, db))
    else:
        answer = tables.by_step(found)
    answer.warnings = warnings
    return answer


def _measured_parts(steps: Sequence[Step], db: Path) -> dict[str, dict[str, float]]:
    """Return the parts of the steps whose traces are in the database."""
    from tracedb.errors import NotCaptured
    from tracedb.storage.connection import open_read_only
    from tracedb.training_step import trace_parts

    found: dict[str, dict[str, float]] = {}
    if not db.exists():
        return found
    with open_read_only(db) as connection:
        for item in steps:
            if item.trace is None:
                continue
            try:
                found[item.name] = trace_parts.parts(connection, item)
            except NotCaptured as error:
                note(str(error))
    return found


def _trace(models: Library, path: Path, gpu: str | None, dtype: str | None, most: int) -> Answer:
    """Return the operators of a trace beside their predictions; print their sums beside the GPU's busy time."""
    from tracedb.training_step.trace_comparison import compare

    found = compare(path, models, gpu, dtype, most)
    for text in found.left_out:
        warn(text)
    note(f"operators took {found.measured_ms:.3f} ms in sum, the GPU was busy for {found.busy_ms:.3f} ms")
    if not found.known_percent:
        note("--trace takes models of sampled operators; `tracedb expected` those fitted --from traces")
    told = f"{found.known_ms:.3f} ms measured, {found.predicted_ms:.3f} ms predicted"
    note(f"the models know {found.known_percent or 0:.1f} % of it: {told}")
    return found.answer
