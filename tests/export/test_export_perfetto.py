"""``tracedb export perfetto``: every slice is in its place, at its time, as read by the format's own classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.perfetto import HOSTILE, ZERO, Proto, json_events, odd, written
from support.tiny import ADD, GEMM, NCCL, Tiny, two_ranks
from tracedb.export import perfetto_proto


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


def test_clocks_and_power_are_counters_within_the_slices(tmp_path: Path) -> None:
    """Readings of a capture, and those of ``tracedb watch`` on a host whose clock started 10 ns earlier."""
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0, host="a", clock_zero_unix_ns=ZERO)
    tiny.add("device", capture_id=1, device_id=0, vendor="NVIDIA", uuid="GPU-aa-bb")
    tiny.kernel(GEMM, 100, 50)
    for at, clock in ((90, 1.0), (100, 1980.0), (150, 1410.0), (151, 2.0)):
        tiny.add("device_condition", capture_id=1, device_id=0, time_ns=at, sm_clock_mhz=clock)
    tiny.add("device_condition", capture_id=1, device_id=1, time_ns=120, sm_clock_mhz=3.0)
    tiny.capture(None, source="conditions", host="a", clock_zero_unix_ns=ZERO - 10)
    tiny.add("device", capture_id=2, device_id=5, vendor="NVIDIA", uuid="aabb")
    tiny.add("device_condition", capture_id=2, device_id=5, time_ns=130, power_w=700.5, temperature_c=61.0)
    db = tiny.save()
    found = Proto(written(db, tmp_path / "t.pftrace"))
    assert found.counters == {
        "GPU 0 SM clock": [(ZERO + 100, 1980.0), (ZERO + 150, 1410.0)],
        "GPU 0 power": [(ZERO + 120, 700.5)],
        "GPU 0 temperature": [(ZERO + 120, 61.0)],
    }
    units = {track.name: track.counter.unit_name for track in found.tracks.values() if track.HasField("counter")}
    assert units == {"GPU 0 SM clock": "MHz", "GPU 0 power": "W", "GPU 0 temperature": "°C"}
    events = json_events(written(db, tmp_path / "t.json"))
    assert [(item["name"], item["ts"], item["args"]) for item in events if item["ph"] == "C"] == [
        ("GPU 0 SM clock", 0.1, {"MHz": 1980.0}),
        ("GPU 0 SM clock", 0.15, {"MHz": 1410.0}),
        ("GPU 0 power", 0.12, {"W": 700.5}),
        ("GPU 0 temperature", 0.12, {"°C": 61.0}),
    ]


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
        (("-o", "{folder}/t.json", "--by", "rank"), 2, "No such option"),
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
