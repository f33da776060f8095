"""Reports that match ranks with each other: their warnings and errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from support import recordings, turned_clock
from support.command import report, run
from support.tiny import ADD, NCCL, Tiny
from tracedb.pipeline import run as pipeline

SWEEP = recordings.SWEEP / "256thread" / "nccl_16channels"


def collective(tiny: Tiny, start: int, duration: int, **values: object) -> None:
    given = {"collective": "allreduce", "group_name": "0", "group_size": 2, "message_in_elements": 8, "dtype": "Float"}
    tiny.kernel(NCCL, start, duration, **{**given, **values})


def said(db: Path, *arguments: str) -> list[str]:
    done = run("report", *arguments, "--db", db, "--format", "json")
    assert done.exit_code == 0, done.stderr
    warnings: list[str] = json.loads(done.stdout)["warnings"]
    return warnings


def test_a_rank_twice_is_an_error_that_names_the_files(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for rank, run_label in ((0, "a"), (1, "a"), (1, "a"), (0, "b"), (1, "b")):
        tiny.capture(rank, {"run": run_label})
        collective(tiny, 0, 10)
    db = tiny.save()
    for name in ("collectives", "collective-summary", "stragglers"):
        done = run("report", name, "--db", db)
        assert done.exit_code == 1
        assert "rank 1 is 2 times in one configuration (" in done.stderr
        assert "capture2.json" in done.stderr and "capture3.json" in done.stderr
        assert done.stderr.count("\n") == 1 and done.stdout == ""
    assert [row["ranks"] for row in report(db, "collectives", "--where", "run=b")] == [2]


def test_missing_ranks_and_unmatched_calls_are_said(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for rank in (0, 1):
        tiny.capture(rank)
        collective(tiny, 0, 10, group_size=3)
        collective(tiny, 50, 10, message_in_elements=rank)
    warnings = said(tiny.save(), "collectives")
    assert any(text.startswith("2 of 3 collectives are of one rank") for text in warnings)
    assert any("have fewer ranks than their group (2 of 3 at worst)" in text for text in warnings)
    assert any("clocks are not aligned in 1 collectives" in text for text in warnings)


def test_order_alone_and_unknown_ranks_are_said(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for _ in range(2):
        tiny.capture(None)
        tiny.kernel(NCCL, 0, 10)
    warnings = said(tiny.save(), "stragglers")
    assert any("1 collectives matched by their order alone" in text for text in warnings)
    assert any("ranks were not recorded" in text for text in warnings)


def test_a_residual_worse_than_the_skew_is_named(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for rank in (0, 1):
        tiny.capture(rank)
        collective(tiny, 4_000 * rank, 10_000)
        tiny.add("clock_alignment", capture_id=rank + 1, reference_capture_id=1, at_ns=0, offset_ns=0, drift_ppm=0.0,
                 uses_drift=False, calls=1, span_ns=0, residual_median_ns=5_000 * rank,
                 residual_p99_ns=9_000)  # fmt: skip
    db = tiny.save()
    assert any("agree to 5.0 µs (median residual)" in text for text in said(db, "collectives"))
    assert [row["last_rank"] for row in report(db, "collectives")] == [None]


@pytest.mark.parametrize("name", ["collectives", "collective-summary", "stragglers"])
def test_no_collectives(tmp_path: Path, name: str) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    tiny.capture(0)
    tiny.kernel(ADD, 0, 10)
    done = run("report", name, "--db", tiny.save())
    assert done.exit_code == 3 and "no collective" in done.stderr


def test_filters_that_have_no_meaning_are_refused(sample: Path) -> None:
    for option in (("--rank", "1"), ("--device", "0"), ("--range", "*")):
        done = run("report", "collectives", "--db", sample, *option)
        assert done.exit_code == 2 and f"cannot be filtered by {option[0]}" in done.stderr
    done = run("report", "collectives", "--db", sample, "--by", "rank")
    assert done.exit_code == 2


def test_the_sample_run_has_one_straggler(sample: Path) -> None:
    """With 16 channels rank 3 comes last; with 4 channels ranks take turns. Clocks were aligned at ingest."""
    done = run("report", "stragglers", "--db", sample)
    notes = [line for line in done.stderr.splitlines() if "straggler" in line]
    assert len(notes) == 2 and "rank 3 is the straggler" in notes[0] and "channels=16" in notes[0]
    assert "no straggler in 1 of 2 configurations" in notes[1]
    assert said(sample, "collectives") == []
    rows = report(sample, "collectives", "--by", "channels")
    assert (
        len(rows) == 42 and {row["ranks"] for row in rows} == {4} and {row["match_rule"] for row in rows} == {"order"}
    )
    done = run("report", "stragglers", "--db", sample, "--by", "channels")
    notes = [line for line in done.stderr.splitlines() if "straggler" in line]
    assert "channels=16: rank 3 is the straggler: last in " in notes[0]
    assert notes[1].endswith("no straggler in 1 of 2 rows")
    found = report(sample, "stragglers", "--by", "channels", "--by", "rank", "--where", "channels=16")
    assert [row["is_straggler"] for row in found] == [False, False, False, True]
    assert report(sample, "stragglers", "--rank", "3", "--where", "channels=16")[0]["is_straggler"] is True


def test_queue_depth_needs_recorded_launches(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for rank in (0, 1):
        tiny.capture(rank)
        tiny.kernel(ADD, 10, 5, launch_id=rank or None)
        tiny.add("launch", capture_id=rank + 1, launch_id=1, name="cudaLaunchKernel", start_ns=0, duration_ns=2)
    db = tiny.save()
    rows = report(db, "queue-depth")
    assert [(row["rank"], row["launches"], row["empty_percent"]) for row in rows] == [(0, None, None), (1, 1, 100.0)]
    done = run("report", "queue-depth", "--db", db, "--rank", "0")
    assert done.exit_code == 3 and "no launches were captured with --rank 0" in done.stderr


def test_a_clock_of_the_sample_run_is_turned(sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    shutil.copy(sample, path)
    query = "SELECT capture_id FROM main.capture WHERE rank = 2 AND labels['channels'] = '16'"
    ((capture,),) = turned_clock.asked(path, query)
    turned_clock.check(path, capture)


@pytest.mark.shared
def test_a_clock_of_a_sweep_is_turned(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    assert [outcome.error for outcome in pipeline.ingest(SWEEP, db=path)] == [None] * 4
    turned_clock.check(path, 2)


RANK_VIEWS = (
    "collectives",
    "collective_summary",
    "stragglers",
    "overlap_effect",
    "gemm_variance",
    "gemm_collective_overlap",
    "gpu_timeline",
    "gpu_timeline_average",
    "idle_breakdown",
    "queue_depth",
)


def answers(path: Path) -> dict[str, list[tuple[object, ...]]]:
    return {name: turned_clock.asked(path, f"FROM v1.{name} ORDER BY ALL") for name in RANK_VIEWS}


def test_shuffled_rows_change_nothing(sample: Path, tmp_path: Path) -> None:
    """Byte for byte, in every view over ranks and configurations; and an empty capture beside them changes nothing."""
    path = tmp_path / "x.duckdb"
    shutil.copy(sample, path)
    before = answers(path)
    with duckdb.connect(str(path)) as connection:
        for table in ("kernel_event", "launch", "op", "annotation", "annotation_kernel", "capture", "clock_alignment"):
            connection.execute(f"CREATE TEMP TABLE kept AS SELECT * FROM main.{table} ORDER BY hash(rowid)")
            connection.execute(f"DELETE FROM main.{table}")
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM temp.kept ORDER BY rowid")
            connection.execute("DROP TABLE temp.kept")
        connection.execute(
            """INSERT INTO main.capture BY NAME
               SELECT 99 AS capture_id, 'torch' AS source, 4 AS rank, labels FROM main.capture WHERE capture_id = 1"""
        )
    assert answers(path) == before
    assert all(before.values())
