"""Sampling files of estimate-train-time: what is claimed, what each line gives, messages for bad lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import conformance
from support.loading import ask, ingest
from tracedb_samples import ingester

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
CSV = SHARED / "data" / "regressor" / "estimate-train-time"
HAS_CSV = pytest.mark.skipif(not CSV.is_dir(), reason=f"the sampling files are not at {CSV}")
SAMPLING = SHARED / "data" / "sampling"
HAS_SAMPLING = pytest.mark.skipif(not SAMPLING.is_dir(), reason=f"the recorded sweeps are not at {SAMPLING}")

OPERATOR = "mp,b,l,F_dur(us),B_dur(us)\n1.0,2.0,1024.0,200.5,88.3448\n2,4,1536,17.0,30\n"
ROWS = "operator, pass, dtype, gpu, shape, time_ns"
ALL = f"SELECT {ROWS} FROM operator_sample ORDER BY sample_id"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_line_gives_a_row_for_each_time(tmp_path: Path) -> None:
    path = written(tmp_path, "NVIDIAX_linear1_fp16.csv", OPERATOR)
    (tables,) = conformance.check_rows(ingester, path)
    assert tables["capture"][0]["events_read"] == 4
    db = tmp_path / "t.duckdb"
    result = ingest(path, db=db)
    assert result.exit_code == 0
    assert "no kernels" not in result.stderr
    assert "operator-samples" in result.stderr
    shapes = [{"mp": 1, "b": 2, "l": 1024}, {"mp": 2, "b": 4, "l": 1536}]
    assert ask(db, ALL) == [
        ("linear1", "fwd", "fp16", "NVIDIAX", shapes[0], 200500),
        ("linear1", "bwd", "fp16", "NVIDIAX", shapes[0], 88345),
        ("linear1", "fwd", "fp16", "NVIDIAX", shapes[1], 17000.0),
        ("linear1", "bwd", "fp16", "NVIDIAX", shapes[1], 30000.0),
    ]
    assert ask(db, "SELECT DISTINCT statistic, span_trimmed_mean_ns = target_ns FROM operator_samples") == [
        ("span_trimmed_mean", True)
    ]


def test_optimizers_and_collectives(tmp_path: Path) -> None:
    written(tmp_path, "X_lastStage_optimizer_bf16.csv", "mp,dim,encoders,dur(us)\n4,512,2,7.25\n")
    written(tmp_path, "X_optimizer_fp16.csv", "num_layers,params,dur\n4,512,8\n")
    written(tmp_path, "X_allreduce_large_fp16_2_4.csv", "shape,nodes,GPUsPerNode,dur(us)\n4096,2,4,9.5\n")
    db = tmp_path / "t.duckdb"
    assert ingest(tmp_path, db=db).exit_code == 0
    assert ask(db, f"SELECT {ROWS} FROM operator_sample ORDER BY operator") == [
        ("allreduce_large", "comm", "fp16", "X", {"elements": 4096, "nodes": 2, "gpus_per_node": 4}, 9500.0),
        ("lastStage_optimizer", "step", "bf16", "X", {"mp": 4, "dim": 512, "encoders": 2}, 7250.0),
        ("optimizer", "step", "fp16", "X", {"num_layers": 4, "params": 512}, 8000.0),
    ]  # fmt: skip


def test_a_whole_file_beside_its_pieces_counts_once(tmp_path: Path) -> None:
    head = "shape,nodes,GPUsPerNode,dur(us)\n"
    written(tmp_path, "X_p2p_fp16_1_2.csv", head + "8,1,2,1.5\n8,1,2,1.5\n")
    written(tmp_path, "X_p2p_fp16_2_1.csv", head + "8,2,1,2.5\n")
    whole = head + "8,1,2,1.5\n8,2,1,2.5\n16,2,1,9\n"
    written(tmp_path, "X_p2p_fp16.csv", whole)
    db = tmp_path / "t.duckdb"
    assert ingest(tmp_path, db=db).exit_code == 0
    assert ask(db, "SELECT shape['nodes'], shape['elements'], time_ns FROM operator_sample ORDER BY ALL") == [
        (1, 8, 1500.0), (1, 8, 1500.0), (2, 8, 2500.0), (2, 16, 9000.0)
    ]  # fmt: skip
    assert ask(db, "SELECT code, severity, skipped FROM ingest_issue") == [("sample_repeated", "note", 2)]
    assert ask(db, "SELECT events_read, events_skipped, rows_written, status FROM capture") == [(6, 2, 4, "complete")]


def test_bad_lines_are_accounted_and_named(tmp_path: Path) -> None:
    bad = "b,l,dim,F_dur(us),B_dur(us)\n2,8,16,1.5,nan\n2,x,16,1.5,2.5\n2,8,16,,3\n2,8\n2,8,16,4,-1\n"
    path = written(tmp_path, "X_res_add_fp16.csv", bad)
    db = tmp_path / "t.duckdb"
    result = ingest(path, db=db)
    assert "line_unreadable (7)" in result.stderr
    assert ask(db, "SELECT pass, time_ns FROM operator_sample ORDER BY sample_id") == [
        ("fwd", 1500.0), ("bwd", 3000.0), ("fwd", 4000.0)
    ]  # fmt: skip
    assert ask(db, "SELECT events_read, events_skipped, rows_written, status FROM capture") == [(10, 7, 3, "repaired")]
    assert ingest(path, db=tmp_path / "u.duckdb", flags=["--strict"]).exit_code == 1


@pytest.mark.parametrize(
    "line",
    [
        b"2048,\xff\xfe,4,20.5",  # no UTF-8
        b"2048,\xe2\x82,4,20.5",  # a character cut short
        b"2048,2,4,20.5,9,9",  # more fields than columns
        b'2048,"2,4,20.5',  # a quote that is never closed
        b"20\x0048,2,4,20.5",
        b"2048",
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_no_line_is_without_account(line: bytes, end: bytes, tmp_path: Path) -> None:
    lines = [b"shape,nodes,GPUsPerNode,dur(us)", b"1024,2,4,10.5", line, b"4096,2,4,30.5", b""]
    path = tmp_path / "X_allreduce_fp16.csv"
    path.write_bytes(end.join(lines))
    db = tmp_path / "t.duckdb"
    assert ingest(path, db=db, flags=["--strict"]).exit_code == 1
    ((read, skipped, status),) = ask(db, "SELECT events_read, events_skipped, status FROM capture")
    lost = ask(db, "SELECT code, severity, skipped FROM ingest_issue")
    assert (read, skipped, status, lost) == (3, 1, "repaired", [("line_unreadable", "warning", 1)])
    assert ask(db, "SELECT shape['elements'] FROM operator_sample ORDER BY ALL") == [(1024,), (4096,)]


def test_other_numbers_of_fields_are_said(tmp_path: Path) -> None:
    written(tmp_path, "X_p2p_fp16.csv", "shape,nodes,GPUsPerNode,dur(us)\n\n8,1,2,1.5\n8,1,2,1.5,9\n")
    db = tmp_path / "t.duckdb"
    ingest(tmp_path, db=db)
    ((detail,),) = ask(db, "SELECT detail FROM ingest_issue")
    assert detail.endswith("; the header has 4 columns, line 4 has 5 fields")


def test_a_name_that_says_no_gpu_is_refused_in_one_line(tmp_path: Path) -> None:
    result = ingest(written(tmp_path, "linear1.csv", OPERATOR), db=tmp_path / "t.duckdb")
    assert result.exit_code == 1
    (line,) = [line for line in result.stderr.splitlines() if "linear1.csv" in line and "the name must give" in line]
    assert "GPU_OPERATOR_fp16.csv" in line


def test_the_suite_of_every_ingester(tmp_path: Path) -> None:
    conformance.check_foreign(ingester, tmp_path)
    written(tmp_path, "X_a_fp16.csv", "GPU,Function,dur(us),Best\nX,a,1,2\n")  # a time that is not the last column
    written(tmp_path, "X_b_fp16.csv", "dur(us)\n1\n")
    assert conformance.captures(ingester, *sorted(tmp_path.glob("X_*"))) == []
    path = written(tmp_path, "Y_linear1_fp16.csv", OPERATOR)
    conformance.check_same_twice(ingester, path)


@pytest.mark.shared
@HAS_CSV
def test_recorded_files_lose_no_line(tmp_path: Path) -> None:
    folder = CSV / "Perlmutter"
    names = ["operator/NVIDIAA100-SXM4-80GB_flash_atten_fp16.csv", "nccl/NVIDIAA100-SXM4-80GB_p2p_fp16_1_2.csv"]
    for name in names:
        path = folder / name
        lines = path.read_text().splitlines()
        events = (len(lines) - 1) * lines[0].count("dur")
        conformance.check_counts(ingester, path, {path: {"events": events}}.__getitem__)
    db = tmp_path / "t.duckdb"
    assert ingest(*(folder / name for name in names), db=db).exit_code == 0
    # The published data hold 85 flash-attention shapes twice, with different times.
    query = """SELECT count(DISTINCT shape) FROM operator_samples
               WHERE operator = 'flash_atten' AND pass = 'fwd' AND repeats > 1"""
    assert ask(db, query) == [(85,)]
    assert ask(db, "SELECT count(*) FROM operator_samples") == [(4071 * 2 + 2017,)]


@pytest.mark.shared
@HAS_SAMPLING
def test_recorded_sweeps_equal_the_reference(tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = json.loads((SHARED / "reference" / "sampling.json").read_text())
    db = tmp_path / "t.duckdb"
    names = ("res_add", "softmax", "layernorm")  # copies alone; few kernels; a backward on another thread
    assert ingest(*(SAMPLING / f"{name}.json.gz" for name in names), db=db).exit_code == 0
    found = {
        (operator, step, frozenset(shape.items())): (n, busy)
        for operator, step, shape, n, busy in ask(
            db, "SELECT operator, pass, shape, n, busy_median_ns FROM operator_samples"
        )
    }
    right = {
        (row["operator"], row["pass"], frozenset(row["shape"].items())): (row["n"], row["busy_median_ns"])
        for row in answers
        if row["operator"] in names
    }
    assert found == right
    assert ask(db, "SELECT DISTINCT gpu, sm_count, dtype, rule, status FROM operator_samples") == [
        ("NVIDIA H100 80GB HBM3", 132, "fp16", "process", "measured")
    ]
