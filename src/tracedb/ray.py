"""Reports inside Ray: DuckDB runs the views in Ray's tasks, over a lake that all workers can read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.distribute.plan import Plan, plan
from tracedb.distribute.task import answer
from tracedb.errors import TracedbError

if TYPE_CHECKING:
    import pyarrow as pa


def run(lake: str | Path, report: str) -> pa.Table:
    """Return the rows of a view as an Arrow table; Ray is started if it is not running.

    tracedb must be installed on the workers. Raises ``UsageError`` and ``TracedbError``.
    """
    planned = plan(lake, report)
    return planned.put_together(gather(planned))


def gather(planned: Plan) -> list[pa.Table]:
    """Return the tasks' answers. Raises ``TracedbError`` if a task fails."""
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    answered = ray.remote(answer)
    try:
        found: list[pa.Table] = ray.get([answered.remote(task) for task in planned.tasks])
        return found
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, TracedbError):
            raise error.cause from error
        raise TracedbError(f"a task of Ray failed: {error.cause}") from error
    except ray.exceptions.RayError as error:
        raise TracedbError(f"Ray could not run the tasks: {error}") from error
