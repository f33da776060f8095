"""Fit models from databases and write them to a folder: what ``tracedb fit`` and ``tracedb.fit`` do."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracedb.errors import NotCaptured, UsageError
from tracedb.output import Answer
from tracedb.regress import beside, dataset, fitting, host_steps, launching, operator_energy, recorded_calls, store
from tracedb.regress.dataset import Table
from tracedb.regress.model import Model
from tracedb.regress.recorded_calls import Seen
from tracedb.storage.connection import open_read_only

SOURCES = ("samples", "traces")


@dataclass(frozen=True)
class Plan:
    """How to fit. ``source``: samples (the view ``operator_samples``) or traces (``operator_calls``)."""

    source: str = "samples"
    learner: str = "blend"
    operators: tuple[str, ...] = ()
    repeats: int = 1
    jobs: int | None = None
    seed: int = 0


@dataclass
class Fitted:
    """What was fitted: the errors of the models, the models, and the times at recorded shapes."""

    answer: Answer
    models: list[Model]
    seen: list[Seen]


Say = Callable[[str], None]


def _silent(text: str) -> None:
    pass


def fit(databases: Sequence[Path], folder: Path, plan: Plan, tell: Say = _silent, warn: Say = _silent) -> Fitted:
    """Fit models of all targets of the databases that have enough shapes, and write them to the folder.

    ``tell`` is called with a line for each fitted model, ``warn`` with what is left out. Raises ``NotCaptured`` if
    there is nothing to fit, and ``UsageError`` if an operator of the plan is missing.
    """
    for path in databases:
        if not path.exists():
            raise UsageError(f"{path}: no such database")
    seen: list[Seen] = []
    learnt: dict[str, list[dict[str, Any]]] = {}
    if plan.source == "traces":
        seen = recorded_calls.seen(databases)
        tables = recorded_calls.tables(seen)
        seen = [row for row in seen if not plan.operators or row.name in plan.operators]
    else:
        with ExitStack() as stack:
            connections = [stack.enter_context(open_read_only(path)) for path in databases]
            tables = dataset.tables(*connections)
            learnt = {
                "beside": beside.measured(connections),
                "energy": operator_energy.measured(connections),
                "launching": launching.measured(connections),
                "host_steps": host_steps.measured(connections),
            }
    chosen = _chosen(tables, plan, warn)
    fitted = []
    for model in fitting.judge_all(chosen, plan.learner, plan.repeats, plan.seed, plan.jobs or os.cpu_count() or 1):
        tell(f"fitted {model.target}: {model.facts['samples']} samples")
        fitted.append(model)
    if text := fitting.widened(fitted):
        warn(text)
    facts = fitting.facts(plan.learner, plan.repeats, plan.seed)
    if plan.source == "traces":
        facts |= {"view": recorded_calls.VIEW, "calls": [row.described() for row in seen]}
    facts |= {name: rows for name, rows in learnt.items() if rows}
    store.save(folder, fitted, facts)
    answer = fitting.answer(fitted, [table for table in _wanted(tables, plan) if table not in chosen] if seen else ())
    answer.database = ", ".join(map(str, databases))
    answer.filters = {"from": plan.source, "learner": plan.learner, "seed": plan.seed, "repeats": plan.repeats}
    return Fitted(answer, fitted, seen)


def _chosen(tables: Sequence[Table], plan: Plan, warn: Say) -> list[Table]:
    """Return the tables of the requested operators that can be fitted; say what is left out."""
    there = sorted({table.target.operator for table in tables})
    for name in plan.operators:
        if name not in there:
            raise UsageError(f"no samples of an operator {name!r}; there are: {', '.join(there)}")
    wanted = _wanted(tables, plan)
    chosen = [table for table in wanted if fitting.is_enough(table)]
    if plan.source == "traces":
        few = len(wanted) - len(chosen)
        if few:
            warn(
                f"{few} of {len(wanted)} operators were recorded at too few distinct shapes for a model (fewer than "
                f"{fitting.FEWEST}): known only at these shapes; --format csv lists them"
            )
        return chosen
    for table in wanted:
        if table.left_out:
            warn(f"{table.target}: {table.left_out} samples left out: parameters unlike the others', or values below 1")
        if table not in chosen:
            warn(f"{table.target}: left out, fewer than {fitting.fewest(table)} distinct shapes")
    if not chosen:
        raise NotCaptured(
            f"no operator was sampled at {fitting.FEWEST} distinct shapes or more, or {fitting.FEWEST_ALONG_ONE} along "
            "one parameter; sample more of them, or fit the traces of ordinary runs with --from traces"
        )
    return chosen


def _wanted(tables: Sequence[Table], plan: Plan) -> list[Table]:
    return [table for table in tables if not plan.operators or table.target.operator in plan.operators]
