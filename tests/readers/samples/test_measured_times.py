"""Times measured outside of traces: which CSV files are taken, what a line gives, and the comparison with ranges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import conformance
from support.command import report, run
from support.loading import ask, ingest
from support.tiny import Tiny
from tracedb_samples import ingester
from tracedb_samples.measured_times import layout_of

ROWS = "SELECT name, statistic, time_ns, n, settings FROM measure ORDER BY measure_id"


def written(folder: Path, text: str, name: str = "times.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_column_per_range(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "Model size,Context length,n,Forward mean (ms),Forward std (ms),Backward mean (ms)\n"
        "small,128,10,21.837,0.057,21.164\nlarge,128,10,62.412,,nan\n",
    )
    (tables,) = conformance.check_rows(ingester, path)
    assert tables["capture"][0]["events_read"] == 4
    db = tmp_path / "db"
    assert ingest(path, db=db).exit_code == 0
    small, large = ({"Model size": size, "Context length": "128"} for size in ("small", "large"))
    assert ask(db, ROWS) == [
        ("forward", "mean", 21_837_000, 10, small),
        ("forward", "stddev", 57_000, 10, small),
        ("backward", "mean", 21_164_000, 10, small),
        ("forward", "mean", 62_412_000, 10, large),
    ]
    assert ask(db, "SELECT source, status FROM capture") == [("measure", "no_gpu_activity")]


def test_a_line_per_repetition_and_what_is_no_time(tmp_path: Path) -> None:
    path = written(
        tmp_path, "range,time_us\nforward,1.5\n,2\nforward,x\nforward,-1\nforward,1e30\nforward,3,4\nstep,2\n"
    )
    conformance.check_rows(ingester, path)
    db = tmp_path / "db"
    done = ingest(path, db=db)
    assert done.exit_code == 0
    assert ask(db, ROWS) == [("forward", "single", 1500, None, {}), ("step", "single", 2000, None, {})]
    assert ask(db, "SELECT code, severity, count, skipped FROM ingest_issue") == [("line_unreadable", "warning", 5, 5)]
    assert "first at line 3 names no range" in done.stderr
    assert ask(db, "SELECT status, events_read, events_skipped, rows_written FROM capture") == [("repaired", 7, 5, 2)]


@pytest.mark.parametrize(
    "line",
    [
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range",  # nsys stats
        '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"',  # rocprofv3
        "Range,MinNs,MaxNs",
        "name,class,calls,total_ns,share_percent,avg_ns,median_ns,min_ns,max_ns,stddev_ns",  # tracedb report
        "threads,channel,rank,kernel_name,kernel_time_min_us,kernel_time_max_us,time_diff_us",
        "mp,b,l,F_dur(us),B_dur(us)",
        "a,b,c",
        "range,kernel",
        '"unclosed',
        "",
    ],
)
def test_other_tables_are_not_taken(line: str) -> None:
    assert layout_of(line) is None


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Two traces with ``forward`` ranges of 10 µs (small) and 30 µs (large), and times measured of both."""
    path = tmp_path / "trace.duckdb"
    tiny = Tiny(path)
    for number, (size, duration) in enumerate([("small", 10_000), ("large", 30_000)], 1):
        tiny.add("capture", capture_id=number, source="torch", path=size, labels={"model": size})
        tiny.add("annotation", capture_id=number, annotation_id=1, name="forward", style="user", process_id=1,
                 thread_id=1, start_ns=0, duration_ns=duration)  # fmt: skip
    tiny.save()
    times = "model,batch,forward_mean_us,forward_std_us\nsmall,4,8,1\nlarge,4,40,2\nmedium,4,1,1\n"
    assert ingest(written(tmp_path, times), db=path).exit_code == 0
    return path


def test_measured_times_are_compared_with_the_ranges_of_their_run(db: Path) -> None:
    def compared(*arguments: str) -> list[tuple[Any, ...]]:
        done = run("-q", "report", *arguments, "--db", db, "--format", "json")
        assert done.exit_code == 0, done.stderr
        keys = ("name", "settings", "measured_mean_ns", "measured_stddev_ns", "instances", "range_avg_ns",
                "range_difference_percent", "projected_avg_ns")  # fmt: skip
        return [tuple(row[key] for key in keys) for row in json.loads(done.stdout)["rows"]]

    large = ("forward", {"batch": "4", "model": "large"}, 40_000.0, 2_000.0, 1, 30_000.0, -25.0, None)
    small = ("forward", {"batch": "4", "model": "small"}, 8_000.0, 1_000.0, 1, 10_000.0, 25.0, None)
    assert compared("range-time", "--measured") == [large, small]
    assert compared("range-measured") == [large, small]
    assert compared("range-measured", "--where", "model=small") == [small]


def test_a_file_of_times_is_no_capture_to_warn_of(db: Path) -> None:
    done = run("report", "range-time", "--db", db)
    assert done.exit_code == 0
    assert "profilers are pooled" not in done.stderr and "without GPU activity" not in done.stderr
    assert [row["name"] for row in report(db, "range-time")] == ["forward"]


def test_without_an_answer_it_says_what_to_record(db: Path, tmp_path: Path) -> None:
    done = run("report", "range-time", "--measured", "--range", "backward", "--db", db)
    assert done.exit_code == 3
    other = tmp_path / "other.duckdb"
    assert ingest(written(tmp_path, "range,mean_ms\nloss,1\n", "other.csv"), db=other).exit_code == 0
    done = run("report", "range-measured", "--db", other)
    assert done.exit_code == 3 and "no range has the name of a measured time (loss)" in done.stderr
    done = run("report", "top-kernels", "--measured", "--db", db)
    assert done.exit_code == 2 and "--measured goes with report range-time" in done.stderr


def test_the_next_command_compares_them_and_nsys_tables_do_not_count_them(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture()
    tiny.range(1, "forward", 0, 1_000, (tiny.kernel("add", 0, 100),))
    db = tiny.save()
    done = run("ingest", written(tmp_path, "range,time_us\nforward,1.5\n"), "--db", db)
    assert f"tracedb report range-time --measured --db {db}" in done.stderr
    said = run("sql", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", "--as", "nsys", "--db", db)
    assert said.exit_code == 0 and "tables hold" not in said.stderr
