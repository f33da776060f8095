"""Nsight Compute's CSV files: both layouts, units, damage, and the kernels of an ordinary run beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import conformance, recordings
from support.command import run
from support.loading import ask, ingest
from support.traces import Event, call, kernel, op, write
from tracedb_ncu import ingester

PRINTED = '==PROF== Connected to process 5 (/usr/bin/python3)\nhello, "world"\n==PROF== Disconnected from process 5\n'
WHO = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
WHO += '"Grid Size","Device","CC"'
LONG = f'{WHO},"Section Name","Metric Name","Metric Unit","Metric Value"\n'
GEMM = "void ns::gemm<float, (int)4>(const float *, int)"
COUNTERS = "SELECT event_id, name, value FROM counter ORDER BY ALL"


def who(number: int, name: str = GEMM, pid: int = 5, grid: str = "(2, 66, 1)") -> str:
    return f'"{number}","{pid}","python3","10.0.0.1","{name}","1","7","(384, 1, 1)","{grid}","0","9.0"'


def long(number: int, metric: str, unit: str, value: str, **given: str) -> str:
    return f'{who(number, **given)},"Speed","{metric}","{unit}","{value}"\n'  # type: ignore[arg-type]


def written(folder: Path, text: str, name: str = "ncu.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


SMALL = (
    PRINTED
    + LONG
    + long(0, "dram__bytes.sum", "Kbyte", "10,496.5")
    + long(0, "gpu__time_duration.sum", "usecond", "2.24")
)
SMALL += long(1, "dram__bytes.sum", "byte", "7") + "==WARNING== Note: something\n"


def test_a_metric_a_row(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    assert ingest(written(tmp_path, SMALL), db=db).exit_code == 0
    assert ask(db, COUNTERS) == [
        (0, "dram__bytes.sum", 10_496_500.0),
        (0, "gpu__time_duration.sum", 2240.0),
        (1, "dram__bytes.sum", 7.0),
    ]
    columns = "event_id, name, duration_ns, device_id, stream_id, grid_x, grid_y, grid_z, block_x, is_counted"
    assert ask(db, f"SELECT {columns} FROM kernel_event ORDER BY ALL") == [
        (0, GEMM, 2240, 0, 7, 2, 66, 1, 384, True),
        (1, GEMM, 0, 0, 7, 2, 66, 1, 384, True),
    ]
    assert ask(db, "SELECT source, pid, host, events_read, events_skipped, rows_written FROM capture") == [
        ("ncu", 5, None, 5, 0, 5)
    ]
    assert ask(db, "SELECT vendor, arch FROM device") == [("NVIDIA", "sm_90")]
    assert ask(db, "SELECT duration_ns, counters['dram__bytes.sum'] FROM v1.kernel_counters ORDER BY event_id") == [
        (2240, 10_496_500.0),
        (None, 7.0),
    ]


def test_a_kernel_a_row_below_a_row_of_units(tmp_path: Path) -> None:
    header = f'{WHO},"device__attribute_warp_size","dram__bytes.sum","gpu__time_duration.sum","launch__policy"\n'
    units = ",".join(['""'] * 11) + ',"","Mbyte","ns",""\n'
    text = header + units + f'{who(0)},"32","1.5","2,240","Spread"\n{who(0, pid=6)},"32","","80","Spread"\n'
    db = tmp_path / "t.duckdb"
    assert ingest(written(tmp_path, text, "raw.txt"), db=db).exit_code == 0
    assert ask(db, "SELECT capture_id, name, value FROM counter ORDER BY ALL") == [
        (1, "dram__bytes.sum", 1.5e6),
        (1, "gpu__time_duration.sum", 2240.0),
        (2, "gpu__time_duration.sum", 80.0),
    ]
    counts = "SELECT pid, events_read - events_skipped = rows_written FROM capture ORDER BY 1"
    assert ask(db, counts) == [
        (5, True),
        (6, True),
    ]
    assert ask(db, "SELECT code, severity, count FROM ingest_issue ORDER BY 1") == [
        ("counter_text", "note", 2),
        ("machine_metrics", "note", 2),
    ]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (f"{who(2)}\n", "has 11 fields, the header 15"),
        (long(2, "a", "byte", "1").replace('"2"', '"x"'), "has no ID or no kernel name"),
        (long(2, "a", "byte", "1", name=""), "has no ID or no kernel name"),
    ],
)
def test_a_damaged_row_is_said_and_the_others_are_kept(bad: str, why: str, tmp_path: Path) -> None:
    text = SMALL.replace("==WARNING==", f"{bad}==WARNING==")
    db = tmp_path / "t.duckdb"
    assert ingest(written(tmp_path, text), db=db).exit_code == 0
    assert ask(db, "SELECT count(*) FROM counter") == [(3,)]
    ((code, detail),) = ask(db, "SELECT code, detail FROM ingest_issue")
    assert (code, detail.endswith(f"first at line 8 {why}")) == ("line_unreadable", True)
    assert ask(db, "SELECT status, events_read, events_skipped FROM capture") == [("repaired", 6, 1)]


def test_a_report_says_what_to_export(tmp_path: Path) -> None:
    result = ingest(written(tmp_path, "NVR\0", "profile.ncu-rep"), db=tmp_path / "t.duckdb")  # no real report
    assert result.exit_code == 1
    assert "ncu --import FILE.ncu-rep --page raw --csv" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_suite_of_every_ingester(tmp_path: Path) -> None:
    conformance.check_foreign(ingester, tmp_path)
    path = written(tmp_path, SMALL)
    conformance.check_rows(ingester, path)
    conformance.check_same_twice(ingester, path)


def test_kernels_of_an_ordinary_run_are_beside_them(tmp_path: Path) -> None:
    """By short name, grid and order; the second dispatch of the other grid has no partner."""
    events: list[Event] = []
    for place, (grid, name) in enumerate((((2, 66, 1), "gemm"), ((9, 1, 1), "other"), ((2, 66, 1), "gemm"))):
        events += [
            op(100 * place, 20, f"aten::op{place}", 10 + place),
            call(100 * place + 5, 2, 20 + place, external=10 + place),
            kernel(1000 + 100 * place, 5, f"void other_ns::{name}<double>(int)", correlation=20 + place,
                   grid=list(grid), block=[384, 1, 1]),
        ]  # fmt: skip
    counted = (
        PRINTED
        + LONG
        + "".join(
            long(number, "dram__bytes.sum", "byte", str(number), grid=grid)
            for number, grid in enumerate(("(2, 66, 1)", "(8, 1, 1)", "(2, 66, 1)"))
        )
    )
    db = tmp_path / "t.duckdb"
    assert ingest(write(tmp_path / "t.json", events), written(tmp_path, counted), db=db).exit_code == 0
    query = (
        "SELECT event_id, op_name, matched_duration_ns, counters['dram__bytes.sum'] FROM v1.counter_match ORDER BY 1"
    )
    assert ask(db, query) == [(0, "aten::op0", 5000, 0.0), (1, None, None, 1.0), (2, "aten::op2", 5000, 2.0)]
    assert (
        "2 of 3 profiled kernels matched with one of an ordinary run; 1 not matched"
        in run("report", "counter-match", "--db", db).stderr
    )
    assert ask(db, "SELECT sum(calls) FROM v1.top_kernels") == [(3,)]


@pytest.mark.shared
def test_recorded_files(tmp_path: Path) -> None:
    folder = recordings.DATA / "ncu"
    if not folder.exists():
        pytest.skip("the files of Nsight Compute are absent")
    db = tmp_path / "t.duckdb"
    assert ingest(folder / "ncu_metrics.csv", db=db).exit_code == 0
    query = (
        "SELECT event_id, value FROM counter WHERE name = 'gpu__time_duration.sum' AND event_id IN (4, 8) ORDER BY 1"
    )
    assert ask(db, query) == [(4, 47104.0), (8, 47040.0)]
    assert ask(db, "SELECT class, count(*) FROM v1.counter_match GROUP BY 1 HAVING class = 'matmul'") == [("matmul", 2)]
