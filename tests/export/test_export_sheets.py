"""``tracedb export xlsx`` and ``export variance-csv``: the sheets and files of the sweep scripts, computed by hand."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from support import recordings
from support.command import report, run
from support.tiny import ADD, GEMM, NCCL, Tiny

openpyxl = pytest.importorskip("openpyxl", reason="the reader of xlsx is not installed")

MS = 1_000_000
TYPES = ("busy_time", "computation_time", "exposed_comm_time", "exposed_memcpy_time", "idle_time", "total_comm_time",
         "total_memcpy_time", "total_time")  # fmt: skip


def sweep(path: Path, sweeps: tuple[str, ...] = ("a",)) -> Path:
    """Two configurations of two ranks: computing 2 and 6 ms, then an all-reduce that both end, then nothing, a copy."""
    tiny = Tiny(path)
    for name in sweeps:
        for channels in ("28", "4"):
            for rank in (0, 1):
                tiny.capture(rank, {"sweep": name, "threads": "256", "channels": channels})
                busy = (2 + 4 * rank) * MS
                tiny.kernel(ADD, 0, busy)
                given = {"collective": "allreduce", "group_name": "0", "group_ranks": "[0, 1]", "group_size": 2}
                given |= {"dtype": "Float", "message_in_elements": 5_000, "message_out_elements": 5_000, "sequence": 1}
                tiny.kernel(NCCL, busy, 8 * MS - busy, **given, stream_id=9)
                tiny.kernel("Memcpy", 9 * MS, MS, kind="memcpy")
    return tiny.save()


def rows(page: Any) -> list[dict[str, Any]]:
    head, *rest = page.iter_rows(values_only=True)
    return [dict(zip(head, row, strict=True)) for row in rest]


def written(db: Path, out: Path, *options: str) -> Path:
    done = run("export", "xlsx", "--db", db, "-o", out, *options)
    assert done.exit_code == 0, done.stderr
    return out


def test_the_set_is_written_into_a_folder(tmp_path: Path) -> None:
    db = sweep(tmp_path / "t.duckdb")
    folder = written(db, tmp_path / "set")
    names = ["gpu_timeline_all_configs_mean.xlsx", "nccl_master_all_configs.csv", "nccl_master_all_configs.xlsx"]
    assert sorted(path.name for path in folder.iterdir()) == names
    book = openpyxl.load_workbook(folder / names[0])
    assert book.sheetnames == ["All_Data", "Pivot_Time_ms", "Pivot_Percent", "Summary_By_Config", "Notes"]
    data = rows(book["All_Data"])
    assert list(data[0])[:9] == [
        *("full_config", "threads_num", "thread_config", "channels_num", "channel_config", "num_ranks", "type"),
        *("time ms", "percent"),
    ]
    assert [(row["full_config"], row["type"]) for row in data] == [
        (name, kind) for name in ("256thread_4ch", "256thread_28ch") for kind in TYPES
    ]
    mean = {row["type"]: (row["time ms"], row["percent"], row["num_ranks"]) for row in data[:8]}
    assert mean == {
        "computation_time": (4, 40, 2), "exposed_comm_time": (4, 40, 2), "exposed_memcpy_time": (1, 10, 2),
        "busy_time": (9, 90, 2), "idle_time": (1, 10, 2), "total_time": (10, 100, 2), "total_comm_time": (4, 40, 2),
        "total_memcpy_time": (1, 10, 2),
    }  # fmt: skip
    for name, value in (("Pivot_Time_ms", 4), ("Pivot_Percent", 40)):
        pivot = rows(book[name])
        assert [row["type"] for row in pivot] == list(TYPES)
        assert pivot[1] == {"type": "computation_time", "256thread_4ch": value, "256thread_28ch": value}
    assert rows(book["Summary_By_Config"])[1] == {
        "full_config": "256thread_28ch", "threads_num": 256, "channels_num": 28, "num_ranks": 2,
        "computation_time_ms": 4, "exposed_comm_time_ms": 4, "busy_time_ms": 9, "idle_time_ms": 1, "total_time_ms": 10,
    }  # fmt: skip


def test_collectives_have_their_units_and_ids_that_mean_one_operation(tmp_path: Path) -> None:
    folder = written(sweep(tmp_path / "t.duckdb"), tmp_path / "set")
    found = rows(openpyxl.load_workbook(folder / "nccl_master_all_configs.xlsx")["NCCL_Data"])
    with (folder / "nccl_master_all_configs.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(found) == len(table) == 2
    assert list(found[0]) == list(table[0])
    assert len(list(found[0])) == 36 + 1
    first = found[0]
    assert (first["operation_id"], first["operation_name"], first["full_config"]) == (
        "OP_01",
        "medium_0.02MB",
        "256thread_4ch",
    )
    assert (first["Full msg size (MB)"], first["In msg nelems"], first["message_bytes"]) == (0.02, 5_000, 20_000)
    assert (first["Collective name"], first["dtype"], first["Group size"], first["count"]) == (
        "allreduce",
        "Float",
        2,
        1,
    )
    # The later rank's 2 ms are the transfer: 2,000 µs; 20 kB in 2 ms; both end together.
    assert (first["comm_latency_mean"], first["Total comm latency (ms)"]) == (2_000, 2)
    assert (first["algo bw (GB/s)_mean"], first["bus bw (GB/s)_max"]) == (0.01, 0.01)
    assert (first["skew in start time_mean"], first["skew in end time_median"]) == (4_000, 0)


def test_one_workbook_and_the_geometric_mean(tmp_path: Path) -> None:
    db = sweep(tmp_path / "t.duckdb", ("a", "b"))
    book = openpyxl.load_workbook(written(db, tmp_path / "one.xlsx", "--geo-mean"))
    sheets = ["All_Data", "Pivot_Time_ms", "Pivot_Percent", "Summary_By_Config", "NCCL_Data", "Notes"]
    assert book.sheetnames == sheets
    data = rows(book["All_Data"])
    assert list(dict.fromkeys(row["full_config"] for row in data)) == [
        *("a_256thread_4ch", "a_256thread_28ch", "b_256thread_4ch", "b_256thread_28ch")
    ]
    computation = next(row for row in data if row["type"] == "computation_time")
    assert math.isclose(computation["time ms"], math.sqrt(12), rel_tol=1e-12)
    narrow = rows(openpyxl.load_workbook(written(db, tmp_path / "a.xlsx", "--where", "sweep=a"))["All_Data"])
    assert {row["full_config"] for row in narrow} == {"256thread_4ch", "256thread_28ch"}


def test_a_mean_of_no_time_is_none_and_said(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    for rank in (0, 1):
        tiny.capture(rank)
        tiny.kernel(ADD, 0, MS)
        tiny.kernel(ADD, 2 * MS * rank, MS)
    db = tiny.save()
    done = run("export", "xlsx", "--db", db, "-o", tmp_path / "set", "--geo-mean")
    assert (done.exit_code, "without collectives: no collectives were captured" in done.stderr) == (0, True)
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["gpu_timeline_all_configs_geomean.xlsx"]
    book = openpyxl.load_workbook(tmp_path / "set" / "gpu_timeline_all_configs_geomean.xlsx")
    idle = next(row for row in rows(book["All_Data"]) if row["type"] == "idle_time")
    assert (idle["full_config"], idle["time ms"], idle["zero_ranks"]) == ("all", 0, 1)
    assert any("no sheet NCCL_Data" in str(row[3]) for row in book["Notes"].iter_rows(values_only=True))


def gemms(path: Path) -> Path:
    """A GEMM of 1 ms alone and one of 3 ms, beside two collectives that share 1 ms of it; and one that never varies."""
    tiny = Tiny(path)
    tiny.capture(3, {"threads": "512", "channels": "28", "sweep": "a"})
    tiny.kernel(GEMM, 0, MS)
    tiny.kernel(GEMM, 10 * MS, 3 * MS)
    tiny.kernel("Cijk_other", 20 * MS, MS)
    tiny.kernel("Cijk_other", 30 * MS, MS)
    tiny.kernel(NCCL, 9 * MS, 3 * MS, stream_id=9)
    tiny.kernel("ncclDevKernel_AllGather", 11 * MS, 9 * MS, stream_id=10)
    return tiny.save()


def test_variance_has_the_extremes_and_what_ran_beside_them(tmp_path: Path) -> None:
    done = run("export", "variance-csv", "--db", gemms(tmp_path / "t.duckdb"), "--top", "1")
    assert done.exit_code == 0, done.stderr
    (row,) = csv.DictReader(done.stdout.splitlines())
    assert list(row)[:17] == [
        *("threads", "channel", "rank", "kernel_name", "kernel_time_min_us", "kernel_time_max_us", "time_diff_us"),
        *("min_duration_timestamp_ms", "max_duration_timestamp_ms", "time_between_min_max_ms", "min_duration_found_us"),
        *("max_duration_found_us", "overlapping_collective_count", "overlapping_collective_names"),
        *("max_overlap_percentage", "max_overlap_collective", "total_overlap_duration_ms"),
    ]
    values = [float(row[name]) for name in list(row)[4:12]]
    assert (row["threads"], row["channel"], row["rank"], row["kernel_name"]) == ("512", "28", "3", GEMM)
    assert values == [1_000, 3_000, 2_000, 0, 10, 10, 1_000, 3_000]
    assert row["overlapping_collective_count"] == "2"
    assert row["overlapping_collective_names"] == f"{NCCL};ncclDevKernel_AllGather"
    assert math.isclose(float(row["max_overlap_percentage"]), 200 / 3)
    assert row["max_overlap_collective"] == NCCL  # of two that share as much, the first
    assert (float(row["total_overlap_duration_ms"]), row["min_overlapping_collective_count"]) == (3, "0")


def test_variance_files_have_the_names_of_the_original(tmp_path: Path) -> None:
    db = gemms(tmp_path / "t.duckdb")
    (tmp_path / "set").mkdir()
    assert run("export", "variance-csv", "--db", db, "-o", tmp_path / "set").exit_code == 0
    ends = ("time_variance", "time_variance_with_collective_overlap", "time_variance_with_timestamps")
    files = sorted((tmp_path / "set").iterdir())
    assert [path.name for path in files] == [f"top5_gemm_kernels_{end}.csv" for end in ends]
    heads = [path.read_text().splitlines()[0].split(",") for path in files]
    assert heads[0][6] == "time_diff_us" and not any("timestamp" in name or "overlapping_" in name for name in heads[0])
    assert heads[2][11] == "max_duration_found_us" and "max_overlap_percentage" not in heads[2]
    assert [len(path.read_text().splitlines()) for path in files] == [3, 3, 3]
    one = tmp_path / "one.csv"
    assert run("export", "variance-csv", "--db", db, "-o", one).exit_code == 0
    assert one.read_text() == files[1].read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("xlsx",), 2, "name a folder with -o"),
        (("xlsx", "-o", "{folder}/a.xlsx", "--by", "rank"), 2, "No such option"),
        (("xlsx", "-o", "{folder}/a.csv"), 2, "neither a folder nor a file of a type"),
        (("xlsx", "-o", "{folder}/none/set"), 1, "cannot be created"),
        (("variance-csv", "-o", "{folder}/t.duckdb"), 1, "which an answer would replace"),
        (("variance-csv", "--class", "collective"), 3, "no GEMMs were captured"),
        (("xlsx", "-o", "{folder}/a.xlsx", "--rank", "9"), 3, "no capture has rank 9; there are: 3"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    db = gemms(tmp_path / "t.duckdb")
    done = run("export", *[text.replace("{folder}", str(tmp_path)) for text in arguments], "--db", db)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
    assert said in done.stderr


@pytest.mark.shared
def test_sheets_of_a_real_sweep_say_what_the_reports_say(tmp_path: Path) -> None:
    folder = recordings.SWEEP / "256thread" / "nccl_4channels"
    db = tmp_path / "t.duckdb"
    assert run("-q", "ingest", folder, "--db", db).exit_code == 0
    book = openpyxl.load_workbook(written(db, tmp_path / "one.xlsx"))
    (summary,) = rows(book["Summary_By_Config"])
    parts = {(row["rank"], row["type"]): row["time ms"] for row in report(db, "tracelens-gpu-timeline")}
    for kind in ("computation_time", "busy_time", "total_time"):
        mean = math.fsum(parts[rank, kind] for rank in range(4)) / 4
        assert math.isclose(summary[f"{kind}_ms"], mean, rel_tol=1e-12)
    found = {(row["operation_id"], row["comm_latency_median"], row["count"]) for row in rows(book["NCCL_Data"])}
    said = {(row["latency_median_ns"] / 1e3, row["calls"]) for row in report(db, "collective-summary")}
    assert {item[1:] for item in found} == said
