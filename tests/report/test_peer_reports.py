"""Reports with the names of HTA and TraceLens: their rows in their order, and their numbers on a real trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import report, run
from support.tiny import ADD, NCCL, Tiny

TRACE = Path(__file__).resolve().parents[3] / "shared/data/torch/public/hta_nccl_data.json.gz"
TYPES = [
    "computation_time",
    "exposed_comm_time",
    "exposed_memcpy_time",
    "busy_time",
    "idle_time",
    "total_time",
    "total_comm_time",
    "total_memcpy_time",
]


def test_rows_stand_in_the_order_of_the_sheet(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for rank in (0, 1):
        tiny.capture(rank, {"threads": "8"})
        tiny.kernel(ADD, 0, 1000)
        tiny.kernel(NCCL, 500, 1000 + 1000 * rank)
    db = tiny.save()
    rows = report(db, "tracelens-gpu-timeline")
    assert [(row["rank"], row["type"]) for row in rows] == [(rank, name) for rank in (0, 1) for name in TYPES]
    both = report(db, "tracelens_gpu_timeline", "--by", "threads")
    assert [row["type"] for row in both] == TYPES
    assert {row["type"]: row["time ms"] for row in both}["exposed_comm_time"] == 0.002
    (row,) = report(db, "hta-temporal-breakdown", "--rank", "1")
    assert (row["rank"], row["non_compute_time(us)"], row["kernel_time(us)"]) == (1, 1.5, 2.5)
    done = run("report", "hta-temporal-breakdown", "--db", db, "--format", "csv")
    assert done.stdout.splitlines()[0].endswith(
        "rank,idle_time(us),compute_time(us),non_compute_time(us),kernel_time(us),"
        "idle_time_pctg,compute_time_pctg,non_compute_time_pctg"
    )


@pytest.mark.shared
def test_the_numbers_of_the_peers(tmp_path: Path) -> None:
    """What HTA (last step kept, rounding off) and TraceLens give; TraceLens computes in doubles of µs since 1970."""
    if not TRACE.exists():
        pytest.skip("the real traces are not beside the repository")
    db = tmp_path / "x.duckdb"
    assert run("-q", "ingest", TRACE, "--db", db).exit_code == 0
    (row,) = report(db, "hta-temporal-breakdown")
    assert row["compute_time(us)"] == 115655.847
    rows = {row["type"]: row["time ms"] for row in report(db, "tracelens-gpu-timeline")}
    assert rows["computation_time"] == pytest.approx(116.046561, abs=1e-5)
