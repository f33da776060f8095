"""Formats before rocprofv3: results.csv of rocprof v1 and v2, and RPD databases."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support import conformance
from support.rocprof_files import write
from support.rocprof_loaded import captures, read, read_capture
from tracedb.errors import ReadError
from tracedb_rocprof import ingester

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "rocprof" / "legacy"
V1 = """Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,\
obj,DispatchNs,BeginNs,EndNs,CompleteNs,DurationNs
0,"void k<double>(double*, int) [clone .kd]",8,0,0,17,77,512,256,0,0,16,0,32,64,"0x0","0x7f",900,1000,1500,1600,500
1,"axpy.kd",8,1,0,17,77,512,256,0,0,16,0,32,64,"0x0","0x7f",1900,2000,2700,2800,700
"""
V2 = """Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,\
Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID,SQ_WAVES
1,60633,1,17,77,512,256,0,0,16,0,32,64,"axpy(int, int) [clone .kd]",1000,1500,0,8.0
"""
TABLES = {
    "string": "string TEXT",
    "op": 'gpuId INTEGER, queueId INTEGER, start INTEGER, "end" INTEGER, description_id INTEGER, opType_id INTEGER',
    "api": 'pid INTEGER, tid INTEGER, start INTEGER, "end" INTEGER, apiName_id INTEGER, args_id INTEGER',
    "api_ops": "api_id INTEGER, op_id INTEGER",
}
STRINGS = ["", "KernelExecution", "Task", "CopyHostToDevice", "Barrier", "axpy(int)", "hipLaunchKernel", "UserMarker"]


def rpd(path: Path) -> Path:
    """Two kernels, one of them without a description, a copy, a barrier; a launch and a marker."""
    number = {text: at for at, text in enumerate([*STRINGS, "step"], start=1)}
    ops = [
        (1, 0, 2_000, 2_700, "", "Task"),
        (1, 0, 1_000, 1_500, "axpy(int)", "KernelExecution"),
        (1, 1, 3_000, 3_500, "", "CopyHostToDevice"),
        (1, 1, 3_600, 3_700, "", "Barrier"),
    ]
    calls = [("hipLaunchKernel", "", 900, 950), ("UserMarker", "step", 800, 2_000)]
    with closing(sqlite3.connect(path)) as connection:
        for table, columns in TABLES.items():
            connection.execute(f"CREATE TABLE rocpd_{table} (id INTEGER PRIMARY KEY, {columns})")
        connection.executemany("INSERT INTO rocpd_string (string) VALUES (?)", [(text,) for text in number])
        for gpu, queue, start, end, text, kind in ops:
            row = (gpu, queue, start, end, number[text], number[kind])
            connection.execute(f"INSERT INTO rocpd_op VALUES (NULL{', ?' * len(row)})", row)
        for name, text, start, end in calls:
            call = (17, 77, start, end, number[name], number[text])
            connection.execute(f"INSERT INTO rocpd_api VALUES (NULL{', ?' * len(call)})", call)
        connection.execute("INSERT INTO rocpd_api_ops VALUES (NULL, 1, 2)")
        connection.commit()
    return path


def test_results_of_rocprof_v1(tmp_path: Path) -> None:
    write(tmp_path / "results.csv", V1)
    write(tmp_path / "results.stats.csv", '"Name","Calls","TotalDurationNs"\n"axpy.kd",1,701\n')
    (capture,) = captures(tmp_path)
    reading = read_capture(capture)
    assert reading.kernels("name", "start_ns", "duration_ns", "queue_id", "grid_x") == [
        ("void k<double>(double*, int) [clone .kd]", 1_000, 500, 0, None),
        ("axpy.kd", 2_000, 700, 1, None),
    ]
    assert (reading.capture["source"], reading.capture["pid"]) == ("rocprofv1", 17)
    assert reading.faults == {"stats_mismatch": 1}


def test_results_of_rocprof_v2(tmp_path: Path) -> None:
    reading = read(write(tmp_path / "results_1.csv", V2))
    assert reading.kernels() == [("axpy(int, int) [clone .kd]", 1_000, 500)]
    assert reading.capture["source"] == "rocprofv2"


@pytest.mark.parametrize("is_packed", [False, True])
def test_rpd(is_packed: bool, tmp_path: Path) -> None:
    path = rpd(tmp_path / "trace.rpd")
    if is_packed:
        packed = gzip.compress(path.read_bytes())
        path.unlink()
        path = tmp_path / "trace.rpd.gz"
        path.write_bytes(packed)
    reading = read(path)
    assert reading.kernels("kind", "name", "start_ns", "duration_ns", "device_id", "launch_id") == [
        ("kernel", "axpy(int)", 1_000, 500, 1, 1),
        ("kernel", "Task", 2_000, 700, 1, None),
        ("memcpy", "MEMORY_COPY_HOST_TO_DEVICE", 3_000, 500, 1, None),
    ]
    assert reading.rows("annotation", "name", "style") == [("step", "push_pop")]
    assert reading.issues == {"other_gpu_events": 1}
    assert (reading.capture["source"], reading.capture["pid"]) == ("rpd", 17)
    if not is_packed:
        conformance.check_rows(ingester, path)


def test_rpd_whose_calls_name_no_process(tmp_path: Path) -> None:
    path = rpd(tmp_path / "trace.rpd")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE rocpd_api SET pid = NULL")
        connection.commit()
    reading = read(path)
    assert len(reading.kernels()) == 3
    assert reading.capture["pid"] is None


def test_rpd_without_a_table(tmp_path: Path) -> None:
    path = rpd(tmp_path / "trace.rpd")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE rocpd_api_ops")
        connection.commit()
    with pytest.raises(ReadError, match="without its table rocpd_api_ops"):
        read(path)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the real traces are not beside the repository")
def test_recorded_rpd() -> None:
    reading = read(SHARED / "raptor_mytrace.rpd.gz")
    kinds = reading.kernels("kind")
    assert (kinds.count("kernel"), kinds.count("memcpy")) == (7_720 + 1_228, 804 + 22 + 350)
    assert None not in reading.kernels("launch_id")
    assert set(reading.kernels("device_id")) == {2}
    assert reading.faults == {}
