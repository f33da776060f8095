"""Reports inside Ray: DuckDB runs the views in Ray's tasks, over a lake that all workers can read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.distribute.plan import plan
from tracedb.distribute.task import answer

if TYPE_CHECKING:
    import pyarrow as pa


def run(lake: str | Path, report: str) -> pa.Table:
    """Return the rows of a view as an Arrow table; Ray is started if it is not running.

    tracedb must be installed on the workers. Raises ``UsageError`` and ``TracedbError``.
    """
    import ray

    planned = plan(lake, report)
    answered = ray.remote(answer)
    return planned.put_together(ray.get([answered.remote(task) for task in planned.tasks]))
