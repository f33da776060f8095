"""Registers and scratch memory of rocprofv3: kept once for each combination, joined to kernels by launch_params."""

from __future__ import annotations

from pathlib import Path

from support.loading import ask, ingest

HEADER = (
    "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,"
    "End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,"
    "Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
)
KERNELS = [  # name, scratch, vgprs, accumulation vgprs, sgprs
    ("gemm", 0, 128, 64, 96),
    ("gemm", 0, 128, 64, 96),
    ("gemm", 0, 64, 0, 96),
    ("copy", 16, 8, 0, 32),
    ("built twice", 0, 32, 0, 16),
    ("built twice", 0, 32, 4, 16),
]


def traced(path: Path, kernels: list[tuple[str, int, int, int, int]], repeats: int = 1) -> Path:
    lines = [HEADER]
    for number, (name, scratch, vgprs, accum, sgprs) in enumerate(kernels * repeats, 1):
        lines.append(
            f'"KERNEL_DISPATCH","Agent 4",1,1,7,{number},1,"{name}",{number},{1000 * number},{1000 * number + 500},'
            f"0,{scratch},{vgprs},{accum},{sgprs},64,1,1,640,1,1"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_each_combination_is_kept_once(tmp_path: Path) -> None:
    db = tmp_path / "db"
    assert ingest(traced(tmp_path / "out_kernel_trace.csv", KERNELS, 50), db=db).exit_code == 0
    assert ask(db, "SELECT * EXCLUDE (capture_id) FROM kernel_resource ORDER BY ALL") == [
        ("built twice", 32, 0, 16, 0),
        ("built twice", 32, 4, 16, 0),
        ("copy", 8, 0, 32, 16),
        ("gemm", 64, 0, 96, 0),
        ("gemm", 128, 64, 96, 0),
    ]


def test_single_kernels_have_theirs_unless_they_are_ambiguous(tmp_path: Path) -> None:
    db = tmp_path / "db"
    assert ingest(traced(tmp_path / "out_kernel_trace.csv", KERNELS), db=db).exit_code == 0
    columns = (
        "name, registers_per_thread, accum_registers_per_thread, scalar_registers_per_wave, scratch_bytes_per_thread"
    )
    assert ask(db, f"SELECT {columns} FROM launch_params ORDER BY event_id") == [
        ("gemm", 128, 64, 96, 0),
        ("gemm", 128, 64, 96, 0),
        ("gemm", 64, 0, 96, 0),
        ("copy", 8, 0, 32, 16),
        ("built twice", 32, None, 16, 0),
        ("built twice", 32, None, 16, 0),
    ]


def test_an_impossible_number_is_counted_and_left_empty(tmp_path: Path) -> None:
    db = tmp_path / "db"
    assert ingest(traced(tmp_path / "out_kernel_trace.csv", [("gemm", -1, 128, 1 << 40, 96)]), db=db).exit_code == 0
    assert ask(db, "SELECT * EXCLUDE (capture_id) FROM kernel_resource") == [("gemm", 128, None, 96, None)]
    assert ask(db, "SELECT code, count FROM ingest_issue WHERE severity = 'warning'") == [("field_unreadable", 2)]
