"""``tracedb export perfetto``: the clocks of several ranks, and the lanes of slices that overlap."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from support.command import run
from support.perfetto import ZERO, Proto, json_events, written
from support.tiny import ADD, GEMM, Tiny
from tracedb.export import timeline
from tracedb.report.filters import Filters
from tracedb.storage.connection import open_read_only


def test_a_drifting_clock_stretches_the_cpu_and_no_duration_on_the_gpu(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    for rank in (0, 1):
        tiny.capture(rank)
        clock = {
            "reference_capture_id": 1,
            "at_ns": 0,
            "offset_ns": 0,
            "drift_ppm": rank * 1e5,
            "uses_drift": rank == 1,
        }
        tiny.add("clock_alignment", capture_id=rank + 1, **clock, calls=9, span_ns=1)
        tiny.kernel(GEMM, 110_000, 11_000)
        tiny.range(1, "outer", 0, 110_000)
        tiny.range(2, "inner", 55_000, 110_000)
    found = Proto(written(tiny.save(), tmp_path / "t.pftrace"))
    shown = sorted(
        (item.name, item.start_ns, item.duration_ns, item.lane) for item in found.slices if item.process == "rank 1"
    )
    assert shown == [("inner", 50_000, 50_000, 0), (GEMM, 100_000, 11_000, 0), ("outer", 0, 100_000, 0)]


def test_clocks_that_cannot_be_compared_begin_together(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0, clock_zero_unix_ns=ZERO)
    tiny.kernel(GEMM, 100, 10)
    tiny.capture(1)
    tiny.kernel(GEMM, 7_000, 10)
    tiny.kernel(ADD, 7_020, 10)
    done = run("export", "perfetto", "--db", tiny.save(), "-o", tmp_path / "t.pftrace")
    assert (done.exit_code, "cannot be compared" in done.stderr) == (0, True)
    found = Proto(tmp_path / "t.pftrace")
    assert sorted((item.process, item.start_ns - ZERO) for item in found.slices) == [
        ("rank 0", 100), ("rank 1", 100), ("rank 1", 120),
    ]  # fmt: skip


@pytest.mark.parametrize(("later", "starts"), [(300, [0, 0, 200]), (10**12, [0, 0, 20])])
def test_clocks_without_a_zero_are_one_clock_if_the_captures_overlap(
    later: int, starts: list[int], tmp_path: Path
) -> None:
    """Two ranks of a machine, or two recordings that have nothing to do with each other."""
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(None, path="first/908_results.json")
    tiny.kernel(GEMM, 100, 1_000)
    tiny.capture(None, path="second/kernel_trace.csv")
    tiny.kernel(GEMM, later if later > 300 else 100, 10)
    tiny.kernel(ADD, later + 20 if later > 300 else 300, 10)
    done = run("export", "perfetto", "--db", tiny.save(), "-o", tmp_path / "t.pftrace")
    assert (done.exit_code, "cannot be compared" in done.stderr) == (0, later > 300)
    found = Proto(tmp_path / "t.pftrace")
    first = min(item.start_ns for item in found.slices)
    assert [item.start_ns - first for item in sorted(found.slices, key=lambda one: one.start_ns)] == starts
    assert {item.process for item in found.slices} == {
        "capture 1: 908_results.json", "capture 2: kernel_trace.csv",
    }  # fmt: skip


def test_queues_of_one_stream_are_tracks_of_their_own(tmp_path: Path) -> None:
    """Each with its own name and merge key; the lanes of one track share both."""
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0)
    for queue, start in ((1, 0), (2, 50), (1, 70), (1, 300)):
        tiny.kernel(f"q{queue}", start, 100, queue_id=queue)
    tiny.kernel("other", 0, 10, stream_id=8, queue_id=1)
    db = tiny.save()
    found = Proto(written(db, tmp_path / "t.pftrace"))
    shown = sorted((item.track, item.lane, item.name) for item in found.slices)
    assert shown == [
        ("GPU 0 stream 7 queue 1", 0, "q1"),
        ("GPU 0 stream 7 queue 1", 0, "q1"),
        ("GPU 0 stream 7 queue 1", 1, "q1"),
        ("GPU 0 stream 7 queue 2", 0, "q2"),
        ("GPU 0 stream 8", 0, "other"),
    ]
    lanes = [track for track in found.tracks.values() if track.parent_uuid]
    assert len({track.sibling_merge_key_int for track in lanes}) == len({track.name for track in lanes}) == 3
    assert len({(track.sibling_merge_key_int, track.name) for track in lanes}) == 3
    events = json_events(written(db, tmp_path / "t.json"))
    names = [item["args"]["name"] for item in events if item["name"] == "thread_name"]
    assert sorted(names) == [
        "GPU 0 stream 7 queue 1", "GPU 0 stream 7 queue 1 (overlap 1)", "GPU 0 stream 7 queue 2", "GPU 0 stream 8",
    ]  # fmt: skip


def test_times_before_zero_are_not_wrapped(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0)
    tiny.kernel(GEMM, -5_000, 10)
    tiny.kernel(ADD, 20, 10)
    db = tiny.save()
    found = Proto(written(db, tmp_path / "t.pftrace"))
    assert sorted((item.start_ns, item.name) for item in found.slices) == [(0, GEMM), (5_020, ADD)]
    events = json_events(written(db, tmp_path / "t.json"))
    assert sorted(item["ts"] for item in events if item["ph"] == "X") == [0, 5.02]


def intervals(dice: random.Random, count: int, span: int) -> Iterator[tuple[int, int]]:
    for _ in range(count):
        yield dice.randrange(span), dice.choice([0, 1, 3, 10, 10, 40])


@pytest.mark.parametrize("seed", range(6))
def test_no_lane_holds_two_slices_at_once(seed: int, tmp_path: Path) -> None:
    """Random overlaps, against a count of what runs at each moment: as many lanes as that, and none with an overlap."""
    dice = random.Random(seed)
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0)
    for start, duration in intervals(dice, 120, 400 + 200 * seed):
        tiny.kernel("k", start, duration)
    for number, (start, duration) in enumerate(intervals(dice, 120, 400 + 200 * seed)):
        tiny.range(number, "r", start, start + duration)
    db = tiny.save()
    with open_read_only(db) as connection:
        timeline.prepare(connection, db, Filters())
        rows = connection.execute(
            """SELECT s.kind, coalesce(l.lane, 0), s.start_ns, s.end_ns, s.n FROM temp.trace_slice AS s
               LEFT JOIN temp.trace_link AS l ON l.n = s.n ORDER BY s.n"""
        ).fetchall()
    assert len(rows) == 240
    lanes = defaultdict(list)
    for kind, lane, start, end, _ in rows:
        lanes[kind, lane].append((start, end))
    for (kind, lane), slices in lanes.items():
        if kind == "gpu" or lane:
            slices.sort()
            assert all(left[1] <= right[0] for left, right in pairwise(slices)), (kind, lane)
        else:
            assert not crossing(slices)
    events = [(start, end) for kind, _, start, end, _ in rows if kind == "gpu" and start < end]
    most = max(sum(start <= at < end for start, end in events) for at, _ in events)
    used = {lane for kind, lane, start, end, _ in rows if kind == "gpu" and start < end}
    assert most <= len(used) <= most + 6  # an empty slice takes one, too


def crossing(slices: list[tuple[int, int]]) -> bool:
    return any(a[0] < b[0] < a[1] < b[1] for a in slices for b in slices)


def test_a_long_chain_of_overlaps_takes_two_lanes(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0)
    tiny.connection.execute(
        """INSERT INTO main.kernel_event (capture_id, event_id, kind, name, start_ns, duration_ns, device_id, stream_id)
           SELECT 1, i, 'kernel', 'k', i * 10, 12, 0, 7 FROM range(5000) AS t(i)"""
    )
    found = Proto(written(tiny.save(), tmp_path / "t.pftrace"))
    assert (len(found.slices), {item.lane for item in found.slices}) == (5_000, {0, 1})
    assert {item.duration_ns for item in found.slices} == {12}
