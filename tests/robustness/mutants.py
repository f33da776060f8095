"""One-line mutations of views and readers, and whether the tests named for each fail: ``python mutants.py``.

Each is made in a temporary copy of the checkout; the checkout itself is never changed. Prints a table, and exits with 1
if a mutant survives or the tests fail without one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "ingest", "sql", "schemas", "tests", "examples", "docs", "pyproject.toml")


class Mutant(NamedTuple):
    """What stands once in a file, what is put in its place, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = (
    Mutant(
        "computation counts collectives",
        "sql/v1/collectives/collective_overlap.sql",
        "FILTER (NOT is_collective), 0) AS compute_ns",
        "FILTER (true), 0) AS compute_ns",
        "tests/views/test_collective_overlap.py",
    ),
    Mutant(
        "a fused matmul is a copy",
        "sql/v1/classify/_kernel_rule.sql",
        "(12, '^triton_(tem_|b?mm|addmm|baddbmm)', 'matmul')",
        "(12, '^triton_(tem_|b?mm|addmm|baddbmm)', 'copy')",
        "tests/classify/test_classifier.py",
    ),
    Mutant(
        "a kernel that starts as the previous one ends overlaps it",
        "src/tracedb/derive/overlapping_kernel.py",
        "np.maximum.accumulate(end)[:-1] > start[1:]",
        "np.maximum.accumulate(end)[:-1] >= start[1:]",
        "tests/views/test_kernels.py",
    ),
    Mutant(
        "a GEMM that starts as a collective ends is overlapped",
        "sql/v1/gemm/gemm_variance.sql",
        "coalesce(s.reach_ns > g.start_ns, false)",
        "coalesce(s.reach_ns >= g.start_ns, false)",
        "tests/views/test_gemm_variance.py",
    ),
    Mutant(
        "a rank that is last in a third of the calls is a straggler",
        "sql/v1/collectives/_straggler.sql",
        "AND times_last >= 0.5 * calls",
        "AND times_last >= 0.3 * calls",
        "tests/views/test_stragglers.py",
    ),
    Mutant(
        "a gap of zero length is a gap",
        "sql/v1/timeline/gpu_gaps.sql",
        "WHERE least(h.start_ns, u.start_ns) > h.reach_ns",
        "WHERE least(h.start_ns, u.start_ns) >= h.reach_ns",
        "tests/views/test_gpu_gaps.py",
    ),
    Mutant(
        "correlation id -1 of nsys links a launch",
        "ingest/tracedb_nsys/staging_sql.py",
        "NOT IN (0, -1, 4294967295)",
        "NOT IN (0, 4294967295)",
        "tests/readers/nsys/test_nsys_ranges.py",
    ),
    Mutant(
        "NVTX rows that end before they start are ranges",
        "ingest/tracedb_nsys/ranges.py",
        "(end_ns >= start_ns AND end_ns <",
        "(end_ns IS NOT NULL AND end_ns <",
        "tests/readers/nsys/test_nsys_faults.py",
    ),
    Mutant(
        "torch events of zero duration are negative",
        "ingest/tracedb_torch/decode/batches.py",
        "good & measured & (duration < 0)",
        "good & measured & (duration <= 0)",
        "tests/faults/test_unusual_times.py",
    ),
    Mutant(
        "a local rank is the rank",
        "src/tracedb/pipeline/labels.py",
        '*("local", "node", "group",',
        '*("node", "group",',
        "tests/faults/test_files_and_ranks.py",
    ),
    Mutant(
        "an event that starts a little before its call has a clock error",
        "sql/derive/time_faults.sql",
        "delay_ns < -t.before_launch AS is_early",
        "delay_ns < 0 AS is_early",
        "tests/derive/test_impossible_times.py",
    ),
    Mutant(
        "split sizes below zero are counted",
        "sql/v1/collectives/_collective_event.sql",
        " OR list_min(splits) < 0 THEN NULL",
        " THEN NULL",
        "tests/views/test_collective_splits.py",
    ),
)


def outcome(tree: Path, tests: str) -> tuple[bool, str]:
    """Whether the tests pass in the tree, and the last line that pytest prints."""
    paths = os.pathsep.join(str(tree / name) for name in ("src", "ingest"))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *tests.split()]
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run {tests}:\n{done.stdout}{done.stderr}")
    return done.returncode == 0, done.stdout.strip().splitlines()[-1]


def copied(folder: str) -> Path:
    tree = Path(folder) / "tracedb"
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, tree / name, ignore=ignored) if source.is_dir() else shutil.copy(source, tree / name)
    return tree


def main(names: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    faults = 0
    with tempfile.TemporaryDirectory(prefix="tracedb-mutants-") as folder:
        tree = copied(folder)
        print("| mutant | file | tests | result |\n|---|---|---|---|")
        for mutant in chosen:
            path = tree / mutant.file
            text = path.read_text(encoding="utf-8")
            if text.count(mutant.old) != 1:
                raise SystemExit(f"{mutant.file} does not hold once: {mutant.old}")
            begun = time.monotonic()
            sound, line = outcome(tree, mutant.tests)
            if sound:
                path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
                survives, line = outcome(tree, mutant.tests)
                path.write_text(text, encoding="utf-8")
            result = "FAILS WITHOUT IT" if not sound else "SURVIVES" if survives else "caught"
            faults += result != "caught"
            seconds = time.monotonic() - begun
            print(
                f"| {mutant.name} | `{mutant.file}` | `{mutant.tests}` | {result}: {line} ({seconds:.0f} s) |",
                flush=True,
            )
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
