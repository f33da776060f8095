"""Results of other tools, and recordings in formats that are not read: one line says what they are and what to do."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from support.command import run

SHEETS = '<workbook xmlns="m"><sheets>{}</sheets></workbook>'
VARIANCE = "threads,channel,rank,kernel_name,kernel_time_min_us,kernel_time_max_us,time_diff_us"
COMMS = "operation_id,operation_name,Full msg size (MB),config,Collective name,dtype,comm_latency_mean"


def workbook(path: Path, *sheets: str) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("xl/workbook.xml", SHEETS.format("".join(f'<sheet name="{name}"/>' for name in sheets)))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("top5_gemm_kernels_time_variance.csv", VARIANCE + "\n", "`tracedb export variance-csv -o FOLDER`"),
        ("a.csv", f"{VARIANCE},overlapping_collective_count\n", "with the collectives beside them: a result, no trace"),
        ("nccl_master_all_configs.csv", COMMS + "\n", "`tracedb export xlsx -o FOLDER`"),
        ("perf_28ch_rank0.xlsx", ["gpu_timeline", "GEMM"], "a workbook of TraceLens: a result, no trace"),
        ("nccl_master_all_configs.xlsx", ["NCCL_Data"], "`tracedb export xlsx -o FOLDER`"),
        ("out_results.pftrace", "\n\x02\x08\x01\n\x02\x08\x02", "a Perfetto trace (pftrace), which is not read"),
        ("shader.att", "x", "a thread trace of rocprofv3 (--att)"),
        ("se0_sm0_sl0_wv0.json", "{}", "a thread trace of rocprofv3 (--att)"),
    ],
)
def test_a_known_file_alone_is_an_error_in_one_line(
    tmp_path: Path, name: str, content: str | list[str], words: str
) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    else:
        workbook(path, *content)
    done = run("ingest", path, "--db", tmp_path / "db")
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1 and f"{path}: " in done.stderr and words in done.stderr
    assert not (tmp_path / "db").exists()
    (tmp_path / "other.txt").write_text("notes")
    done = run("ingest", tmp_path, "--db", tmp_path / "db")
    assert f"left aside: {path} (" in done.stderr and words in done.stderr


def test_other_workbooks_and_tables_are_not_named(tmp_path: Path) -> None:
    workbook(tmp_path / "mine.xlsx", "Sheet1", "GEMM")
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04broken")
    done = run("ingest", tmp_path, "--db", tmp_path / "db")
    assert "a result" not in done.stderr and done.stderr.count("left aside: ") == 3
