"""Critical paths of the first profiler step by tracedb and by HolisticTraceAnalysis: ``critical_path.py TRACE…``.

    python benchmarks/critical_path.py [--others PYTHON] TRACE…

``--others`` is a Python that has HolisticTraceAnalysis and a pandas before 2.3; without it only tracedb answers. HTA
runs with edges of weight 0 for launches, so that its path may pass from the host to the GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import tracedb

HTA = """
import json, logging, os, sys
os.environ["CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGES"] = "1"
logging.disable(logging.WARNING)
from hta.trace_analysis import TraceAnalysis
graph, is_whole = TraceAnalysis(trace_files={0: sys.argv[1]}).critical_path_analysis(
    rank=0, annotation="ProfilerStep", instance_id=0)
parts = graph.get_critical_path_breakdown().groupby("bound_by")["duration"].sum()
print("\\n" + json.dumps({name: float(us) for name, us in parts.items() if name and us}))
"""
STEP = """
WITH step AS (SELECT min(step) AS number FROM v1.critical_path)
SELECT p.bound_by, round(sum(p.duration_ns) / 1e3, 1) AS us
FROM v1.critical_path AS p
INNER JOIN step AS s ON s.number = p.step
GROUP BY ALL
ORDER BY us DESC, p.bound_by
"""


def by_tracedb(trace: Path, folder: Path) -> dict[str, float]:
    """Return the us of the path of the first step by bound."""
    db = folder / "trace.duckdb"
    tracedb.ingest(trace, db=db)
    with tracedb.connect(db) as connection:
        return dict(connection.execute(STEP).fetchall())


def by_hta(python: str, trace: Path) -> dict[str, float] | str:
    """Return the same of HTA, or the last line of its error."""
    done = subprocess.run([python, "-c", HTA, str(trace)], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2]
    found: dict[str, float] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found


def shown(parts: dict[str, float] | str) -> str:
    """Return one cell: the sum, and its parts from the largest on."""
    if isinstance(parts, str):
        return parts
    words = ", ".join(f"{name} {us:,.0f}" for name, us in sorted(parts.items(), key=lambda part: -part[1]))
    return f"{sum(parts.values()):,.0f}: {words}"


def main() -> None:
    """Print one row per trace, in us."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--others")
    given = parser.parse_args()
    print("| trace | tracedb | HTA |\n|---|---|---|")
    for trace in given.traces:
        with tempfile.TemporaryDirectory() as folder:
            mine = by_tracedb(trace, Path(folder))
        theirs = by_hta(given.others, trace.resolve()) if given.others else "not run"
        print(f"| {trace.name.removesuffix('.json.gz')} | {shown(mine)} | {shown(theirs)} |", flush=True)


if __name__ == "__main__":
    main()
