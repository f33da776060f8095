"""The views named as reports of nsys stats: NVIDIA's columns, units and rounding on inline rows.

All of their numbers on real exports are compared with NVIDIA's in ``tests/ingest/test_nsys_reference.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from tracedb.report import registry
from tracedb.report.view_template import By, Edits, has_rule, resolve
from tracedb.storage.views import View

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]
OF_NSYS = [report for report in registry.every() if "with the columns of nsys stats" in report.title]
VIEWS = [report.view for report in OF_NSYS]
WITH_RULE = ["nvtx_kern_sum", "nvtx_gpu_proj_sum"]


@pytest.fixture
def rows(insert: Insert) -> None:
    """``step`` holds ``NCCL:mm``; a launch of two kernels, a copy, one kernel of another thread, a graph replay."""
    insert("capture", "capture_id rank metadata", (0, 0, '{"last_annotation_ns": 1000}'), source="nsys", path="a")
    insert("annotation", "annotation_id name domain style start_ns duration_ns is_open parent_id depth thread_id",
           (1, "step", None, "push_pop", 0, 100, False, None, 0, 7),
           (2, "mm", "NCCL", "push_pop", 10, 50, False, 1, 1, 7),
           (3, "step", None, "push_pop", 900, None, True, None, 0, 7),
           (4, "wait", None, "start_end", 10, 30, False, None, 0, None),
           (5, "mark", None, "mark", 10, None, False, None, None, 7),
           (6, "MPI_Send", "MPI", "user", 10, 5, False, None, 0, 7), capture_id=0, process_id=9)  # fmt: skip
    insert("launch", "launch_id name thread_id start_ns duration_ns",
           (1, "cudaLaunchKernel", 7, 20, 5), (2, "cudaLaunchKernel", 8, 30, 8), (3, "cudaMemcpyAsync", 7, 40, 4),
           (4, "cudaGraphLaunch", 7, 50, 4), capture_id=0, process_id=9)  # fmt: skip
    insert("kernel_event", "event_id kind name start_ns duration_ns launch_id correlation_id bytes grid_x",
           (1, "kernel", "gemm", 100, 10, 1, 1, None, 8), (2, "kernel", "gemm", 110, 15, 1, 1, None, 16),
           (3, "kernel", "add", 24, 7, 2, 2, None, 8),
           (4, "memcpy", "[CUDA memcpy Host-to-Device]", 200, 20, 3, 3, 1500, None),
           (5, "graph", "CUDA graph 1", 300, 500, 4, 4, None, None),
           capture_id=0, device_id=0, grid_y=1, grid_z=1, block_x=128, block_y=1, block_z=1)  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id rule",
           (2, 1, "thread"), (2, 2, "thread"), (1, 4, "thread"), (1, 5, "thread"),
           (2, 1, "process"), (2, 2, "process"), (2, 3, "process"), (1, 4, "process"), (1, 5, "process"),
           capture_id=0)  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_empty(ask: Ask, view: str) -> None:
    assert ask(f"FROM v1.{view}") == []


def test_kernels(rows: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    right = [(78.1, 25, 2, 12.5, 12.5, 10, 15, 3.5, "gemm"), (21.9, 7, 1, 7.0, 7.0, 7, 7, 0.0, "add")]
    assert ask("FROM v1.cuda_gpu_kern_sum ORDER BY 2 DESC") == right
    shuffled()
    assert ask("FROM v1.cuda_gpu_kern_sum ORDER BY 2 DESC") == right
    assert ask('SELECT "Instances", "GridXYZ", "BlockXYZ", "Name" FROM v1.cuda_gpu_kern_gb_sum ORDER BY ALL') == [
        (1, "   8    1    1", " 128    1    1", "add"),
        (1, "   8    1    1", " 128    1    1", "gemm"),
        (1, "  16    1    1", " 128    1    1", "gemm"),
    ]


def test_means_are_rounded_half_up(insert: Insert, ask: Ask) -> None:
    """20 calls with 11 ns in sum are 0.55 a call, which no double is: nsys prints 0.6."""
    insert("kernel_event", "event_id duration_ns", *((number, int(number < 11)) for number in range(20)),
           capture_id=0, kind="kernel", name="add", start_ns=0)  # fmt: skip
    assert ask('SELECT "Avg (ns)" FROM v1.cuda_gpu_kern_sum') == [(0.6,)]


def test_copies(rows: None, ask: Ask) -> None:
    copy = "[CUDA memcpy Host-to-Device]"
    assert ask("FROM v1.cuda_gpu_mem_time_sum") == [(100.0, 20, 1, 20.0, 20.0, 20, 20, 0.0, copy)]
    assert ask("FROM v1.cuda_gpu_mem_size_sum") == [(0.002, 1, 0.002, 0.002, 0.002, 0.002, 0.0, copy)]
    assert ask('SELECT "Total Time (ns)", "Category", "Operation" FROM v1.cuda_gpu_sum ORDER BY 1') == [
        (7, "CUDA_KERNEL", "add"),
        (20, "MEMORY_OPER", copy),
        (25, "CUDA_KERNEL", "gemm"),
    ]


def test_calls(rows: None, ask: Ask, report: Report) -> None:
    assert ask('SELECT "Time (%)", "Total Time (ns)", "Num Calls", "Name" FROM v1.cuda_api_sum ORDER BY 2 DESC, 4') == [
        (61.9, 13, 2, "cudaLaunchKernel"),
        (19.0, 4, 1, "cudaGraphLaunch"),
        (19.0, 4, 1, "cudaMemcpyAsync"),
    ]
    found = report("cuda_api_sum", '"rank", "Name"', by={"rank": "{base}.rank"}, where={"l": "l.thread_id = 8"})
    assert found == [(0, "cudaLaunchKernel")]


def test_launches(rows: None, ask: Ask) -> None:
    """The kernel of thread 8 starts before its call has returned: no queue time."""
    assert ask(
        """SELECT "TID", "Count", "QCount", "TAvg (ns)", "AAvg (ns)", "QAvg (ns)", "QStdDev (ns)", "KMax (ns)",
            "API Name", "Kernel Name" FROM v1.cuda_kern_exec_sum ORDER BY 1"""
    ) == [
        (7, 2, 2, 97.5, 5.0, 80.0, 7.1, 15, "cudaLaunchKernel", "gemm"),
        (8, 1, 0, 8.0, 8.0, None, 0.0, 7, "cudaLaunchKernel", "add"),
    ]


def test_ranges(rows: None, ask: Ask) -> None:
    """The open range ends at the last time that ranges tell; calls of MPI are no ranges here."""
    found = ask('SELECT "Total Time (ns)", "Instances", "Style", "Range" FROM v1.nvtx_sum ORDER BY 1 DESC')
    assert found == [(200, 2, "PushPop", "step"), (50, 1, "PushPop", "NCCL:mm"), (30, 1, "StartEnd", "wait")]
    assert ask('SELECT "Time (%)", "Range" FROM v1.nvtx_pushpop_sum ORDER BY 1') == [(20.0, "NCCL:mm"), (80.0, "step")]


KERN = """SELECT "NVTX Range", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)", "Kernel Name" FROM {} ORDER BY ALL"""


def test_kernels_of_ranges(rows: None, ask: Ask) -> None:
    assert ask(KERN.format("v1.nvtx_kern_sum")) == [
        ("NCCL:mm", 7, 1, 2, 25, "gemm"),
        ("step", 7, 1, 2, 25, "gemm"),
        (None, 8, 0, 1, 7, "add"),
    ]


def test_kernels_without_ranges_in_the_file(rows: None, insert: Insert, ask: Ask) -> None:
    """Processes of one file stand together: nsys lists the kernels of a process without ranges beside the others'."""
    insert("capture", "capture_id path", (1, "a"), (2, "b"), source="nsys")
    insert("kernel_event", "capture_id", (1,), (2,), event_id=1, kind="kernel", name="mul", start_ns=0, duration_ns=3)
    assert ask("""SELECT "Kern Inst" FROM v1.nvtx_kern_sum WHERE "Kernel Name" = 'mul'""") == [(1,)]


def test_projections(rows: None, ask: Ask) -> None:
    """Without the graph replay, which ends at 800; two kernels of one launch are one operation."""
    assert ask(
        """SELECT "Range", "Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances", "Total GPU Ops",
            "Avg Range Lvl", "Avg Num Child" FROM v1.nvtx_gpu_proj_sum ORDER BY 1"""
    ) == [("NCCL:mm", 25, 50, 1, 1, 1.0, 0.0), ("step", 120, 100, 1, 2, 0.0, 1.0)]


def test_another_rule(rows: None, db: duckdb.DuckDBPyConnection) -> None:
    assert [view for view in VIEWS if has_rule(View("v1", view).select)] == sorted(WITH_RULE, key=VIEWS.index)
    text = resolve(View("v1", "nvtx_kern_sum").select, Edits(rule="process"))
    assert db.execute(KERN.format(f"({text})")).fetchall() == [
        ("NCCL:mm", 7, 1, 2, 25, "gemm"),
        ("NCCL:mm", 8, 1, 1, 7, "add"),
        ("step", 7, 1, 2, 25, "gemm"),
        ("step", 8, 1, 1, 7, "add"),
    ]


@pytest.mark.parametrize("view", VIEWS)
def test_grouping_by_rank_changes_nothing_of_one_rank(rows: None, db: duckdb.DuckDBPyConnection, view: str) -> None:
    text = resolve(View("v1", view).select, Edits([By("rank", lambda base: f"{base}.rank")]))
    grouped = db.execute(f"SELECT * EXCLUDE (rank) FROM ({text}) WHERE rank = 0 ORDER BY ALL").fetchall()
    assert grouped == db.execute(f"FROM v1.{view} ORDER BY ALL").fetchall()
    assert grouped
