"""``tracedb export stacks``: folded stacks for flame graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.tiny import GEMM, Tiny


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Two frames around an operator that launched two kernels; one more kernel is below no frame."""
    tiny = Tiny(tmp_path / "trace.duckdb")
    capture = tiny.capture(0)
    thread = {"process_id": 1, "thread_id": 1}
    for frame_id, name, parent in ((1, "train.py(1): main; really", None), (2, "net.py(7): forward\nx", 1)):
        tiny.add("frame", capture_id=capture, frame_id=frame_id, kind="function", name=name, parent_id=parent,
                 start_ns=frame_id, duration_ns=100 - 2 * frame_id, **thread)  # fmt: skip
    tiny.add("op", capture_id=capture, op_id=5, name="aten::mm", start_ns=10, duration_ns=5, **thread)
    tiny.kernel(GEMM, 20, 30, op_id=5)
    tiny.kernel(GEMM, 60, 12, op_id=5)
    tiny.kernel("lonely", 80, 7)
    return tiny.save()


def test_lines_add_up_to_kernel_time(db: Path, tmp_path: Path) -> None:
    done = run("export", "stacks", "--db", db)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [
        "forward;lonely 7",
        f"forward;train.py(1): main  really;net.py(7): forward x;aten::mm;{GEMM} 42",
    ]
    out = tmp_path / "stacks.txt"
    assert run("export", "stacks", "--db", db, "-o", out).exit_code == 0
    assert out.read_text() == done.stdout


def test_a_circle_of_callers_ends(tmp_path: Path) -> None:
    """Only a damaged file has one."""
    tiny = Tiny(tmp_path / "trace.duckdb")
    capture = tiny.capture(0)
    thread = {"process_id": 1, "thread_id": 1, "start_ns": 0, "duration_ns": 50}
    for frame_id, parent in ((1, 2), (2, 1)):
        tiny.add("frame", capture_id=capture, frame_id=frame_id, kind="function", name=f"f.py({frame_id}): f",
                 parent_id=parent, **thread)  # fmt: skip
    tiny.add("op", capture_id=capture, op_id=5, name="aten::mm", process_id=1, thread_id=1, start_ns=10, duration_ns=5)
    tiny.kernel(GEMM, 20, 30, op_id=5)
    done = run("export", "stacks", "--db", tiny.save())
    assert done.exit_code == 0
    assert done.stdout.endswith(f";aten::mm;{GEMM} 30\n")


def test_without_frames_there_is_no_answer(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture(0)
    tiny.kernel(GEMM, 20, 30)
    done = run("export", "stacks", "--db", tiny.save())
    assert (done.exit_code, done.stdout, "with_stack=True" in done.stderr) == (3, "", True)
