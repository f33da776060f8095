"""``tracedb export perfetto``: every slice is in its place, at its time, as read by the format's own classes."""

from __future__ import annotations

import gzip
import json
import random
import shlex
import socket
import sys
import time
import webbrowser
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.command import run
from support.loading import ask, ingest
from support.tiny import ADD, GEMM, NCCL, Tiny, two_ranks
from tracedb.errors import TracedbError
from tracedb.export import perfetto_proto, perfetto_ui, timeline
from tracedb.report.filters import Filters
from tracedb.storage.connection import open_read_only

HOSTILE = 'a"b\\c</script>=1+1\u202e\x1b[31m\x01\ud7ff' + "\N{OGHAM SPACE MARK}" + "x" * 10_000
ZERO = 1_790_857_026 * 10**9


class Shown(NamedTuple):
    """A slice as a viewer has it."""

    process: str
    track: str
    lane: int
    name: str
    start_ns: int
    duration_ns: int | None


def written(db: Path, path: Path, *options: str) -> Path:
    done = run("export", "perfetto", "--db", db, "-o", path, *options)
    assert done.exit_code == 0, done.stderr
    return path


def packets(path: Path) -> list[Any]:
    classes = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = classes.Trace()
    trace.ParseFromString(path.read_bytes())
    return list(trace.packet)


class Proto:
    """A Perfetto trace as the viewer's importer takes it: packets by time, those of one moment as in the file."""

    def __init__(self, path: Path) -> None:
        self.packets = packets(path)
        self.tracks = {
            item.track_descriptor.uuid: item.track_descriptor
            for item in self.packets
            if item.HasField("track_descriptor")
        }
        self.slices: list[Shown] = []
        self.events: list[Any] = []
        self.flows_out: dict[int, str] = {}
        self.flows_in: dict[int, str] = {}
        self.marks: list[str] = []
        self.counters: dict[str, list[tuple[int, float]]] = defaultdict(list)
        names: dict[str, dict[int, str]] = defaultdict(dict)
        said: list[tuple[Any, str]] = []
        for packet in self.packets:
            if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
                names.clear()
            for kind in ("event_names", "event_categories", "debug_annotation_names"):
                names[kind].update((item.iid, item.name) for item in getattr(packet.interned_data, kind))
            if packet.HasField("track_event"):
                said.append((packet, names["event_names"].get(packet.track_event.name_iid, "")))
        self._stacks: dict[int, list[tuple[Any, str]]] = defaultdict(list)
        for packet, name in sorted(said, key=lambda item: int(item[0].timestamp)):
            self._take(packet, name)
        for stack in self._stacks.values():
            for packet, name in stack:
                self._add(packet, name, None)

    def _take(self, packet: Any, name: str) -> None:
        event = packet.track_event
        self.flows_out.update(dict.fromkeys(event.flow_ids, name))
        self.flows_in.update(dict.fromkeys(event.terminating_flow_ids, name))
        stack = self._stacks[event.track_uuid]
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append((packet, name))
        elif event.type == event.TYPE_SLICE_END:
            begin, its_name = stack.pop()
            self._add(begin, its_name, packet.timestamp - begin.timestamp)
        elif event.type == event.TYPE_INSTANT:
            self.marks.append(name)
        else:
            track = self.tracks[event.track_uuid]
            self.counters[track.name].append((packet.timestamp, event.double_counter_value))

    def _add(self, packet: Any, name: str, duration: int | None) -> None:
        track = self.tracks[packet.track_event.track_uuid]
        same = [
            key for key, item in self.tracks.items() if (item.parent_uuid, item.name) == (track.parent_uuid, track.name)
        ]
        process = self.tracks[track.parent_uuid].process.process_name
        self.slices.append(Shown(process, track.name, sorted(same).index(track.uuid), name, packet.timestamp, duration))
        self.events.append(packet.track_event)


def json_events(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return events


def odd(path: Path) -> Path:
    """Two ranks on clocks 500 ns apart: overlaps on a stream, crossing ranges, a graph's launch, marks, counters."""
    tiny = Tiny(path)
    for rank in (0, 1):
        tiny.capture(rank, {"threads": "256"}, pid=77, clock_zero_unix_ns=ZERO)
        number = tiny.captures
        shift = 500 * rank
        of = {"capture_id": number}
        clock = {"reference_capture_id": 1, "at_ns": ZERO, "offset_ns": shift, "drift_ppm": 0.0, "uses_drift": False}
        tiny.add("clock_alignment", **of, **clock, calls=9, span_ns=1)
        thread = {**of, "process_id": 77, "thread_id": 5, "start_ns": shift}
        tiny.add("op", **thread, op_id=0, name="aten::mm", duration_ns=90, input_dims="[[8, 4], [4, 2]]")
        tiny.add("op", **thread, op_id=1, name="aten::mm_inner", duration_ns=40)
        call = {**thread, "start_ns": shift + 10, "duration_ns": 20}
        tiny.add("launch", **call, launch_id=1, name="cudaGraphLaunch", correlation_id=9)
        given = {"launch_id": 1, "correlation_id": 9, "op_id": 0, "context_id": 1}
        tiny.kernel(GEMM, shift + 1_000, 1_000, **given, grid_x=4, grid_y=1, grid_z=1, block_x=64, block_y=1, block_z=1)
        tiny.kernel(ADD, shift + 1_500, 1_000, **given)  # crosses the one before
        tiny.kernel("inside", shift + 1_600, 100, **given)
        tiny.kernel("nothing", shift + 2_500, 0, **given)
        tiny.kernel("touches", shift + 2_500, 10, **given)
        tiny.kernel(NCCL, shift + 1_000, 50, stream_id=9, context_id=1, collective="allreduce", group_ranks="[0, 1]",
                    group_size=2, group_name="0", sequence=3, dtype="Float", message_in_elements=64)  # fmt: skip
        tiny.kernel("Memcpy HtoD", shift + 3_000, 7, kind="memcpy", bytes=64, context_id=1)
        tiny.kernel("Memset", shift + 3_010, 7, kind="memset", bytes=64, context_id=1)
        tiny.add("counter", capture_id=number, event_id=tiny.events, name="SQ_WAVES", value=12.5)
        tiny.range(1, "outer", shift, shift + 100)
        tiny.range(2, HOSTILE, shift + 50, shift + 150)  # crosses the one before
        other = {**of, "process_id": 1, "thread_id": 1}
        tiny.add("annotation", **other, annotation_id=3, name="a mark", style="mark", start_ns=shift + 5)
        other["thread_id"] = 2
        tiny.add("annotation", **other, annotation_id=4, name="open", style="user", start_ns=shift + 6, is_open=True)
        memory = {
            "device_type": 1,
            "device_id": 0,
            "bytes": 10,
            "total_allocated_bytes": 10,
            "total_reserved_bytes": 20,
        }
        tiny.add("memory_event", **of, memory_event_id=0, start_ns=shift + 8, **memory)
    return tiny.save()


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return odd(tmp_path_factory.mktemp("odd") / "t.duckdb")


def test_every_slice_is_in_the_perfetto_trace(db: Path, tmp_path: Path) -> None:
    found = Proto(written(db, tmp_path / "t.pftrace"))
    for rank in ("rank 0", "rank 1"):  # the clock of rank 1 is 500 ns ahead, which is taken back
        shown = sorted(
            (item.track, item.lane, item.start_ns - ZERO, item.duration_ns, item.name)
            for item in found.slices
            if item.process == rank
        )
        assert [item for item in shown if item[0].startswith("GPU")] == [
            ("GPU 0 stream 7", 0, 1_000, 1_000, GEMM),
            ("GPU 0 stream 7", 0, 2_500, 0, "nothing"),
            ("GPU 0 stream 7", 0, 2_500, 10, "touches"),
            ("GPU 0 stream 7", 0, 3_000, 7, "Memcpy HtoD"),
            ("GPU 0 stream 7", 0, 3_010, 7, "Memset"),
            ("GPU 0 stream 7", 1, 1_500, 1_000, ADD),
            ("GPU 0 stream 7", 2, 1_600, 100, "inside"),
            ("GPU 0 stream 9", 0, 1_000, 50, NCCL),
        ]
        assert [item for item in shown if item[0].startswith("thread")] == [
            ("thread 1 of process 1", 1, 0, 100, "outer"),
            ("thread 1 of process 1", 2, 50, 100, HOSTILE),
            ("thread 2 of process 1", 0, 6, None, "open"),
            ("thread 5 of process 77", 0, 0, 40, "aten::mm_inner"),
            ("thread 5 of process 77", 0, 0, 90, "aten::mm"),
            ("thread 5 of process 77", 0, 10, 20, "cudaGraphLaunch"),
        ]
    assert found.marks == ["a mark", "a mark"]
    assert found.counters == {
        "GPU 0 SQ_WAVES": [(ZERO + 3_010, 12.5)] * 2,
        "GPU 0 allocated": [(ZERO + 8, 10.0)] * 2,
        "GPU 0 reserved": [(ZERO + 8, 20.0)] * 2,
    }


def test_names_are_numbered_anew_where_many_are_held(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Proto(written(db, tmp_path / "a.pftrace"))
    monkeypatch.setattr(perfetto_proto, "NAMES_HELD", 300)
    again = Proto(written(db, tmp_path / "b.pftrace"))
    assert sorted(map(str, again.slices)) == sorted(map(str, whole.slices))
    cleared = [item for item in again.packets if item.sequence_flags & item.SEQ_INCREMENTAL_STATE_CLEARED]
    assert len(cleared) > 3


def test_arrows_lead_from_calls_to_what_they_launched(db: Path, tmp_path: Path) -> None:
    found = Proto(written(db, tmp_path / "t.pftrace"))
    assert found.flows_out.keys() == found.flows_in.keys()
    assert set(found.flows_out.values()) == {"cudaGraphLaunch"}
    assert sorted(found.flows_in.values()) == sorted([GEMM, ADD, "inside", "nothing", "touches"] * 2)
    events = json_events(written(db, tmp_path / "t.json"))
    starts = {item["id"]: item["ts"] for item in events if item["ph"] == "s"}
    ends = {item["id"]: item["ts"] for item in events if item["ph"] == "f"}
    assert starts.keys() == ends.keys() == found.flows_out.keys()
    assert set(starts.values()) == {0.01}


def test_chrome_json_is_read_again_as_it_was(db: Path, tmp_path: Path) -> None:
    """Names, kinds, streams, and times to the ns, of both ranks in one file; rank 1 on the clock of rank 0."""
    again = tmp_path / "again.duckdb"
    done = ingest(written(db, tmp_path / "t.json.gz"), db=again, flags=["--strict"])
    assert done.exit_code == 0, done.stderr
    events = """SELECT kind, name, start_ns - {shift} AS start_ns, duration_ns, device_id, stream_id, context_id,
                       correlation_id, grid_x, block_x, bytes, collective, group_ranks, group_size, sequence, dtype,
                       message_in_elements
                FROM main.kernel_event WHERE capture_id = {capture} ORDER BY ALL"""
    for capture in (1, 2):
        recorded = ask(db, events.format(shift=500 * (capture - 1), capture=capture))
        assert ask(again, events.format(shift=0, capture=capture)) == recorded
    rows = """SELECT name, start_ns - {shift} AS start_ns, duration_ns, thread_id FROM main.{table}
              WHERE capture_id = {capture} ORDER BY ALL"""
    for table in ("op", "launch"):
        for capture in (1, 2):
            recorded = ask(db, rows.format(table=table, shift=500 * (capture - 1), capture=capture))
            assert ask(again, rows.format(table=table, shift=0, capture=capture)) == recorded
    assert ask(again, "SELECT DISTINCT clock_zero_unix_ns FROM main.capture") == [(ZERO,)]
    linked = """SELECT e.name, o.name, l.name FROM main.kernel_event AS e
                LEFT JOIN main.op AS o USING (capture_id, op_id)
                LEFT JOIN main.launch AS l USING (capture_id, launch_id) ORDER BY ALL"""
    assert ask(again, linked) == ask(db, linked)
    named = "SELECT name, duration_ns, is_open FROM main.annotation WHERE style <> 'mark' ORDER BY ALL"
    plain = [(name.replace("\x1b", "").replace("\x01", ""), *rest) for name, *rest in ask(db, named)]
    assert ask(again, named) == plain  # ingest takes no control characters


def test_one_capture_keeps_its_rank_and_its_times(db: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.duckdb"
    path = written(db, tmp_path / "t.json", "--rank", "1", "--clock", "recorded")
    assert ingest(path, db=again, flags=["--strict"]).exit_code == 0
    assert ask(again, "SELECT rank, pid, clock_zero_unix_ns FROM main.capture") == [(1, 77, ZERO)]
    times = "SELECT name, start_ns, duration_ns FROM main.kernel_event WHERE capture_id = {} ORDER BY ALL"
    assert ask(again, times.format(1)) == ask(db, times.format(2))


def test_the_same_captures_give_the_same_bytes(db: Path, tmp_path: Path) -> None:
    for ending in ("pftrace", "json", "json.gz"):
        first, second = (written(db, tmp_path / f"{name}.{ending}").read_bytes() for name in "ab")
        assert first == second


def test_filters_choose_gpu_events_and_what_the_cpu_did_meanwhile(tmp_path: Path) -> None:
    db = two_ranks(tmp_path / "t.duckdb")
    found = Proto(
        written(db, tmp_path / "t.pftrace", "--rank", "0", "--range", "ProfilerStep#6", "--class", "!collective")
    )
    assert {item.process for item in found.slices} == {"rank 0"}
    assert sorted(item.name for item in found.slices) == ["ProfilerStep#6", GEMM, GEMM]
    alone = Proto(written(db, tmp_path / "alone.pftrace", "--gpu-only"))
    assert {item.track for item in alone.slices} == {"GPU 0 stream 7", "GPU 0 stream 9"}
    assert (len(alone.slices), alone.flows_in, alone.flows_out) == (12, {}, {})


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


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0)
    tiny.range(1, "forward", 0, 10)
    done = run("export", "perfetto", "--db", tiny.save(), "-o", tmp_path / "t.pftrace")
    assert (done.exit_code, (tmp_path / "t.pftrace").exists()) == (3, False)
    assert "no GPU activity was captured" in done.stderr
    assert "record again with the GPU traced" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ((), 2, "name a file with -o"),
        (("-o", "{folder}/t.txt"), 2, "the extension gives no format"),
        (("-o", "{folder}/t.json", "--by", "rank"), 2, "no groups or classes"),
        (("-o", "{folder}/t.duckdb", "--format", "json"), 1, "which an answer would replace"),
        (("-o", "{folder}/none/t.json"), 1, "there is no folder"),
        (("-o", "{folder}/t.json", "--rank", "9"), 3, "no capture has rank 9; there are: 0"),
    ],
)
def test_errors_are_one_line(options: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    db = two_ranks(tmp_path / "t.duckdb")
    before = db.read_bytes()
    done = run("export", "perfetto", "--db", db, *[text.replace("{folder}", str(tmp_path)) for text in options])
    assert (done.exit_code, len(done.stderr.splitlines()), db.read_bytes() == before) == (code, 1, True)
    assert said in done.stderr


BROWSER = """
import sys, urllib.error, urllib.request
from pathlib import Path

address = sys.argv[2].partition("url=")[2]
UI = {"Origin": "https://ui.perfetto.dev"}
refused = []
for path, headers in (("", {"Origin": "https://example.org"}), ("", {"Host": "example.org:9001"}), ("x", UI)):
    try:
        urllib.request.urlopen(urllib.request.Request(address + path, headers=headers), timeout=20)
    except urllib.error.HTTPError as error:
        refused.append(error.code)
assert refused == [403, 403, 404], refused
with urllib.request.urlopen(urllib.request.Request(address, headers=UI), timeout=20) as answer:
    assert answer.headers["Access-Control-Allow-Origin"] == UI["Origin"]
    Path(sys.argv[1] + ".part").write_bytes(answer.read())
Path(sys.argv[1] + ".part").rename(sys.argv[1])
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_browser_reads_the_file_once_and_nobody_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real server, and for a browser a script that asks as one would."""
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    got = tmp_path / "got"
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # so that it looks into the environment again
    monkeypatch.setenv("BROWSER", shlex.join([sys.executable, str(script), str(got), "%s"]) + " &")
    source = tmp_path / "a b.pftrace"
    source.write_bytes(b"x" * 100_000)
    said: list[str] = []
    assert perfetto_ui.serve(source, said.append, free_port(), patience=60)
    assert said[0].startswith(
        "for 60 s the Perfetto UI can read a b.pftrace once: https://ui.perfetto.dev/#!/?url=http"
    )
    for _ in range(500):  # the browser writes while the server is closed already
        if got.exists():
            break
        time.sleep(0.02)
    assert got.read_bytes() == source.read_bytes()


def test_a_port_that_is_taken_is_said_and_nobody_is_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # so that it looks into the environment again
    monkeypatch.setenv("BROWSER", shlex.join([sys.executable, "-c", "pass", "%s"]) + " &")
    source = tmp_path / "t.pftrace"
    source.write_bytes(b"x")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(TracedbError, match=r"cannot be had .*; close what uses it, or open"):
            perfetto_ui.serve(source, print, other.getsockname()[1], patience=5)
    assert not perfetto_ui.serve(source, print, free_port(), patience=0.05)
