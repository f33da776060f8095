"""Memory snapshots of PyTorch's allocator (``torch.cuda.memory._snapshot()`` as JSON), and their reports."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.loading import ingest

EPOCH_US = 1_700_000_000_000_000
COMPILED = {"name": "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "filename": "??", "line": 0}
LINEAR = {
    "name": "forward",
    "filename": "/srv/jobs/env/lib/python3.11/site-packages/torch/nn/modules/linear.py",
    "line": 125,
}
STEP = {"name": "step", "filename": "/srv/jobs/train.py", "line": 60}
INIT = {"name": "__init__", "filename": "/srv/jobs/model.py", "line": 12}


def event(action: str, address: int, size: int, time: int | None, *frames: dict[str, Any]) -> dict[str, Any]:
    when = {} if time is None else {"time_us": EPOCH_US + time}
    return {"action": action, "addr": address, "size": size, "stream": 0, **when, "frames": list(frames)}


def block(
    address: int, size: int, asked: int, *frames: dict[str, Any], state: str = "active_allocated"
) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": asked, "state": state, "frames": list(frames)}


def segment(address: int, size: int, *blocks: dict[str, Any], device: int = 0) -> dict[str, Any]:
    return {"device": device, "address": address, "total_size": size, "segment_type": "small", "blocks": list(blocks)}


EVENTS = [
    event("segment_alloc", 4096, 2048, 0, LINEAR, STEP),
    event("alloc", 4096, 1000, 1, COMPILED, LINEAR, STEP),
    event("alloc", 5120, 500, 5, LINEAR, STEP),
    event("free_requested", 5120, 500, 9),
    event("free_completed", 5120, 500, 9),
    event("free_requested", 900, 300, 10),  # allocated before the events
    event("free_completed", 900, 300, 10),
    event("snapshot", 0, 0, 20),
]
SNAPSHOT: dict[str, Any] = {
    "segments": [
        segment(4096, 2048, block(4096, 1024, 1000, LINEAR, STEP), block(5120, 1024, 0, state="inactive")),
        segment(1 << 40, 8192, block(1 << 40, 8192, 8000, INIT)),
    ],
    "device_traces": [EVENTS, []],
    "allocator_settings": {},
}


def loaded(folder: Path, content: Any, name: str = "snapshot.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    done = ingest(path, db=folder / "x.duckdb")
    assert done.exit_code == 0, done.stderr
    return folder / "x.duckdb"


def rows(db: Path, query: str) -> list[tuple[Any, ...]]:
    done = run("sql", query, "--db", db, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return [tuple(row.values()) for row in json.loads(done.stdout)["rows"]]


PEAK = """SELECT peak_bytes, peak_at_ns, reserved_peak_bytes, first_bytes, allocations, frees, unmatched_frees,
    kept_bytes FROM v1.memory_peak"""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loaded(tmp_path_factory.mktemp("snapshot"), SNAPSHOT, "rank3_snapshot.json")


def test_totals_follow_from_what_is_in_use_at_the_end(snapshot: Path) -> None:
    timeline = rows(
        snapshot, "SELECT time_ns, bytes, allocated_bytes, reserved_bytes FROM v1.memory_timeline ORDER BY ALL"
    )
    assert timeline == [
        (EPOCH_US * 1000, 0, 8300, 10240),
        (EPOCH_US * 1000, 8000, 8300, 8192),  # a block older than the events
        ((EPOCH_US + 1) * 1000, 1000, 9300, 10240),
        ((EPOCH_US + 5) * 1000, 500, 9800, 10240),
        ((EPOCH_US + 9) * 1000, -500, 9300, 10240),
        ((EPOCH_US + 10) * 1000, -300, 9000, 10240),
    ]
    assert rows(snapshot, PEAK) == [(9800, (EPOCH_US + 5) * 1000, 10240, 300, 3, 2, 1, 9000)]


def test_who_allocated(snapshot: Path) -> None:
    columns = "origin, op_name, source, live_bytes_at_peak, live_blocks_at_peak"
    assert rows(snapshot, f"SELECT {columns} FROM v1.memory_by_op ORDER BY live_bytes_at_peak DESC") == [
        ("stack", None, "jobs/model.py(12): __init__", 8000, 1),
        ("operator", "aten::mm", "jobs/train.py(60): step", 1000, 1),
        ("stack", None, "jobs/train.py(60): step", 500, 1),
        ("before the trace", None, None, 300, None),
    ]
    done = run("report", "memory-by-op", "--db", snapshot, "--format", "csv")
    assert (done.exit_code, done.stdout.count("\n")) == (0, 5)


def test_frames_are_stored_once_and_without_the_folders_of_people(snapshot: Path) -> None:
    assert rows(snapshot, "SELECT frame_id, name, file, line, parent_id FROM frame ORDER BY frame_id") == [
        (1, "jobs/model.py(12): __init__", "jobs/model.py", 12, None),
        (2, "jobs/train.py(60): step", "jobs/train.py", 60, None),
        (3, "torch/nn/modules/linear.py(125): forward", "torch/nn/modules/linear.py", 125, 2),
        (4, f"<{COMPILED['name']}>", None, None, 3),
    ]


def test_every_event_is_accounted_for(snapshot: Path) -> None:
    columns = "source, rank, status, clock_zero_unix_ns, events_read, events_skipped, rows_written"
    assert rows(snapshot, f"SELECT {columns} FROM capture") == [("torch_memory", 3, "complete", 0, 9, 3, 10)]
    assert rows(snapshot, "SELECT code, severity, skipped FROM ingest_issue") == [("allocator_steps", "note", 3)]


def test_no_kernels_is_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SNAPSHOT))
    assert "warning:" not in ingest(path, db=tmp_path / "x.duckdb").stderr


def test_segments_alone_show_what_is_in_use(tmp_path: Path) -> None:
    """``torch.cuda.memory_snapshot()``, and releases that record neither addresses nor sizes that were asked for."""
    old = {"size": 512, "state": "active_allocated", "history": [{"addr": 0, "real_size": 400, "frames": [INIT]}]}
    segments = [
        segment(4096, 2048, {"size": 1024, "state": "inactive"}, old),
        segment(0, 64, block(0, 64, 60), device=1),
    ]
    db = loaded(tmp_path, segments)
    found = rows(db, "SELECT device_id, peak_bytes, reserved_peak_bytes FROM v1.memory_peak ORDER BY device_id")
    assert found == [(0, 400, 2048), (1, 60, 64)]
    assert rows(db, "SELECT address FROM memory_event WHERE device_id = 0") == [(5120,)]


@pytest.mark.parametrize("action", ["free_requested", "free_completed"])
def test_a_release_counts_once(tmp_path: Path, action: str) -> None:
    """Without segments and times: what was released without an allocation was in use before."""
    events = [event("alloc", 1, 10, None), event(action, 2, 7, None), event(action, 1, 10, None)]
    db = loaded(tmp_path, {"segments": [], "device_traces": [events]})
    assert rows(db, PEAK) == [(17, 0, None, 7, 1, 2, 1, 0)]
    assert rows(db, "SELECT code FROM ingest_issue") == [("times_unknown",)]
    told = run("report", "memory-timeline", "--db", db).stderr
    assert "device 0: at most 0.00 GiB allocated" in told
    assert "reserved" not in told
    assert "None" not in told


def test_what_cannot_be_read_costs_one_event(tmp_path: Path) -> None:
    odd = [
        event("oom", 0, 1 << 40, 3) | {"device_free": 77},
        event("surprise", 0, 1, 3),
        {"action": "alloc", "addr": "here", "size": 4},
        {"addr": 4},
    ]
    db = loaded(tmp_path, {"segments": [{"total_size": None}], "device_traces": [[*EVENTS[:2], *odd]]})
    assert rows(db, "SELECT count(*), max(bytes) FROM memory_event") == [(2, 1000)]
    found = rows(db, "SELECT code, severity, skipped, detail FROM ingest_issue ORDER BY code")
    assert [row[:3] for row in found] == [
        ("action_unknown", "warning", 1),
        ("event_unreadable", "warning", 3),
        ("out_of_memory", "warning", 1),
    ]
    assert found[2][3] == f"failed allocations, one of {1 << 40} bytes with 77 free"
    assert rows(db, "SELECT status, events_read, events_skipped FROM capture") == [("repaired", 7, 5)]


def test_no_stacks(tmp_path: Path) -> None:
    path = tmp_path / "s.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SNAPSHOT).encode()))
    assert ingest(path, db=tmp_path / "x.duckdb", flags=["--no-stacks"]).exit_code == 0
    assert rows(tmp_path / "x.duckdb", "SELECT count(*), count(frame_id) FROM memory_event") == [(6, 0)]
    assert rows(tmp_path / "x.duckdb", "SELECT count(*) FROM frame") == [(0,)]


class Runs:
    """What a hostile pickle runs when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit('unpickled')",)


@pytest.mark.parametrize("name", ["snapshot.pickle", "snapshot.pkl", "snapshot"])
def test_a_pickle_is_named_and_never_unpickled(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [Runs()]}))
    done = ingest(path, db=tmp_path / "x.duckdb")
    assert done.exit_code == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("tracedb: error") and name in line]
    assert "a memory snapshot of PyTorch as pickle, which is never unpickled" in line
    assert "json.dump(pickle.load(" in line


def test_a_cut_snapshot_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SNAPSHOT)[:-40])
    done = ingest(path, db=tmp_path / "x.duckdb")
    assert done.exit_code == 1
    assert "a memory snapshot that is not valid JSON" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_files_with_segments_are_no_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "transcript.json"
    path.write_text(json.dumps({"text": "hello", "segments": [{"id": 0, "start": 0.0, "text": "hello"}]}))
    done = ingest(path, db=tmp_path / "x.duckdb")
    assert "snapshot" not in done.stderr
