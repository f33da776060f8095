"""Faults of time: overlaps, empty and negative durations, rounding, clocks that jump."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.readings import read
from support.traces import HEADER, LAYOUTS, Event, Raw, annotation, call, document, kernel, memcpy, op, write

NO_BASE = {key: value for key, value in HEADER.items() if key != "baseTimeNanoseconds"}
DAY_US = 86_400_000_000


class TestOverlappingAndEmptyKernels:
    def test_overlapping_kernels_of_a_stream_are_both_kept(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [kernel(3, 3.776, "a"), kernel(5, 2, "b")]))
        assert found.kernels() == [("a", 3000, 3776), ("b", 5000, 2000)]
        assert found.status == "complete"

    def test_recorded_durations_are_kept_where_events_are_clipped(self, tmp_path: Path) -> None:
        events = [kernel(0, 1_600_000, "fmha"), *(kernel(100 * i, 50, "fmha") for i in range(1, 80))]
        found = read(write(tmp_path / "x.json", events, header={"schemaVersion": 1, "roctracer_version": 4.1}))
        assert found.kernels("duration_ns") == [1_600_000_000, *[50_000] * 79]

    def test_kernels_of_no_duration_are_kept(self, tmp_path: Path) -> None:
        events = [kernel(10, 5, "a"), kernel(15, 0, "b"), kernel(15, 5, "c"), kernel(20, 0, "d"), kernel(20, 0, "e")]
        found = read(write(tmp_path / "x.json", events))
        assert found.kernels("name", "duration_ns") == [("a", 5000), ("b", 0), ("c", 5000), ("d", 0), ("e", 0)]

    def test_stream_waits_are_not_kernels(self, tmp_path: Path) -> None:
        waits = [kernel(1, 5, name, cat="cuda_sync") for name in ("Stream Sync", "Event Sync", "Context Sync")]
        waits[1]["tid"] = waits[1]["args"]["stream"] = 1_000_007
        found = read(write(tmp_path / "x.json", [kernel(0, 9), *waits]))
        assert found.kernels("name", "stream_id") == [("gemm", 7)]
        assert found.issues == {}
        assert len(found.rows("synchronization", "start_ns")) == 3

    def test_the_stream_is_the_one_in_the_arguments(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [{**kernel(0, 9, stream=7), "tid": 1_000_007}]))
        assert found.kernels("stream_id") == [7]

    def test_gpu_annotations_are_not_kernels(self, tmp_path: Path) -> None:
        projection = annotation(9.999, 50, "forward", pid=0, tid=7, cat="gpu_user_annotation")
        found = read(write(tmp_path / "x.json", [projection, kernel(10, 20), kernel(40, 5)]))
        assert found.kernels("duration_ns") == [20_000, 5_000]
        columns = ("name", "style", "start_ns", "duration_ns", "device_id", "stream_id", "process_id", "thread_id")
        assert found.rows("annotation", *columns) == [("forward", "gpu_projection", 9999, 50_000, 0, 7, None, None)]


class TestExactTimes:
    def test_absolute_microseconds_are_exact_to_the_nanosecond(self, tmp_path: Path) -> None:
        events = [kernel(Raw("1712345678901234.567"), Raw("0.384")), kernel(Raw("1712345678901234.568"), Raw("0.001"))]
        found = read(write(tmp_path / "x.json", events, header=NO_BASE))
        assert found.kernels("start_ns", "duration_ns") == [(1712345678901234567, 384), (1712345678901234568, 1)]
        assert found.capture["clock_zero_unix_ns"] == 0

    @pytest.mark.parametrize("where", ["header", "after"])
    @pytest.mark.parametrize("base", [1744932859234567891, '"1744932859234567891"'])
    def test_the_base_time_is_added_as_an_integer(self, tmp_path: Path, where: str, base: int | str) -> None:
        around = {"schemaVersion": 1, "baseTimeNanoseconds": base if isinstance(base, int) else Raw(base)}
        placed: dict[str, Any] = {where: around}
        found = read(write(tmp_path / "x.json", [kernel(Raw("7889237999999.999"), 1)], **placed))
        assert found.kernels("start_ns") == [7889237999999999]
        assert found.capture["clock_zero_unix_ns"] == 1744932859234567891

    @pytest.mark.parametrize("scale", [10**3, 10**9, 10**13, 1712345678901234])
    @pytest.mark.parametrize("damaged", [False, True])
    def test_random_times_to_the_nanosecond(self, tmp_path: Path, scale: int, damaged: bool) -> None:
        chance = random.Random(scale)
        times = [
            (chance.randrange(scale, 2 * scale) * 1000 + chance.randrange(1000), chance.randrange(9**9))
            for _ in range(500)
        ]
        events: list[Event | bytes] = [
            kernel(Raw(decimal(start)), Raw(decimal(dur)), f"k{i}") for i, (start, dur) in enumerate(times)
        ]
        if damaged:
            events.insert(250, b'{"ph": "X", oops}')
        found = read(write(tmp_path / "x.json", events, header=NO_BASE))
        assert found.kernels("start_ns", "duration_ns") == sorted(times)

    def test_fractions_that_appear_late_are_exact(self, tmp_path: Path) -> None:
        """Whole numbers fill the first blocks; then a fraction shows that the clock is finer."""
        events = [kernel(1712345678000000 + i, 1, args={"x": "y" * 1_000}) for i in range(4_000)]
        events.append(kernel(Raw("1712345678901234.567"), Raw("0.001")))
        events.append(kernel("1712345678901235.890", "0.002"))
        found = read(write(tmp_path / "x.json", events, header=NO_BASE))
        assert found.kernels("start_ns")[-3:] == [1712345678003999000, 1712345678901234567, 1712345678901235890]

    def test_every_spelling_of_a_number_is_exact(self, tmp_path: Path) -> None:
        spelled = {
            "1.5e3": 1_500_000,
            "15E2": 1_500_000,
            "1500.000": 1_500_000,
            '"1500"': 1_500_000,
            '" 1500.0 "': 1_500_000,
            "1.712345678901234567e15": 1712345678901234567,
            "-12.5": -12_500,
            "-0.001": -1,
            "0": 0,
            "10.1239": 10_124,
            "10.12349999": 10_123,
        }
        for text, nanos in spelled.items():
            events = [kernel(Raw(text), Raw(text.replace("-", "")))]
            found = read(write(tmp_path / "x.json", events, header=NO_BASE))
            assert found.kernels("start_ns", "duration_ns") == [(nanos, abs(nanos))], text
            assert found.status == "complete"

    def test_all_spellings_in_one_file(self, tmp_path: Path) -> None:
        events = [kernel(Raw("1.712345678901234567e15")), kernel("3.5"), kernel(7), kernel(Raw("1712345678901234.568"))]
        found = read(write(tmp_path / "x.json", events, header=NO_BASE))
        assert found.kernels("start_ns") == [3_500, 7_000, 1712345678901234567, 1712345678901234568]


class TestInvalidTimes:
    def test_an_event_that_ends_before_it_starts_is_left_out_and_counted(self, tmp_path: Path) -> None:
        found = read(
            write(tmp_path / "x.json", [kernel(10, -5), kernel(20, 5), kernel(Raw("0"), Raw("-0.001")), op(5, -1)])
        )
        assert found.kernels("start_ns", "duration_ns") == [(20_000, 5_000)]
        assert (found.status, found.faults) == ("repaired", {"duration_negative": 3})

    @pytest.mark.parametrize(
        "text", ["NaN", "Infinity", "-Infinity", '"soon"', "1e30", "18446744073709551.615", "true", "[1]", '""']
    )
    def test_a_time_that_is_not_a_number(self, tmp_path: Path, text: str) -> None:
        events = [kernel(Raw(text), 1), kernel(1, Raw(text)), kernel(5, 1, "good"), op(4, 3)]
        found = read(write(tmp_path / "x.json", events))
        assert found.kernels() == [("good", 5_000, 1_000)]
        assert found.status == "repaired"
        assert (found.faults["timestamp_unusable"], found.faults["duration_missing"]) == (1, 1)

    def test_an_event_without_times(self, tmp_path: Path) -> None:
        events = [
            {**kernel(1), "ts": None},
            {key: value for key, value in kernel(1).items() if key != "dur"},
            kernel(5),
        ]
        found = read(write(tmp_path / "x.json", events))
        assert len(found.kernels()) == 1
        assert found.faults == {"timestamp_unusable": 1, "duration_missing": 1}

    def test_an_end_beyond_64_bits(self, tmp_path: Path) -> None:
        found = read(
            write(tmp_path / "x.json", [kernel(8 * 10**15, 8 * 10**15), kernel(5), op(8 * 10**15, 8 * 10**15)])
        )
        assert found.kernels("start_ns") == [5_000]
        assert found.faults == {"duration_missing": 2}

    def test_a_range_still_open_at_the_end(self, tmp_path: Path) -> None:
        events = [
            {key: value for key, value in annotation(1, 0, "open").items() if key != "dur"},
            annotation(2, 3, "closed"),
        ]
        found = read(write(tmp_path / "x.json", [*events, kernel(9)]))
        assert found.rows("annotation", "name", "duration_ns", "is_open") == [
            ("open", None, True),
            ("closed", 3000, False),
        ]
        assert found.status == "complete"

    @pytest.mark.parametrize("layout", LAYOUTS[:2])
    @pytest.mark.parametrize("start", [30 * DAY_US, 1712345678901234])
    def test_events_clamped_to_zero_do_not_stretch_the_trace(self, tmp_path: Path, layout: str, start: int) -> None:
        """Three events were clamped to 0 in a trace that is far from it: they would make a timeline of years."""
        good = [
            event
            for i in range(4)
            for event in (op(start + 10 * i, 5), call(start + 10 * i, 2, i + 1), kernel(start + 10 * i, 3))
        ]
        zeros = [kernel(0, 1, "zero"), op(0, 1), call(0, 1, 9)]
        found = read(write(tmp_path / "x.json", [*good, *zeros], layout))
        assert found.kernels("start_ns") == [(start + 10 * i) * 1000 for i in range(4)]
        assert min(found.rows("op", "start_ns") + found.rows("launch", "start_ns")) == start * 1000
        assert (found.status, found.faults) == ("repaired", {"timestamp_zero": 3})

    def test_zero_is_an_ordinary_time_in_a_trace_that_starts_there(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [kernel(0), kernel(5), kernel(10)]))
        assert found.kernels("start_ns") == [0, 5_000, 10_000]
        assert found.status == "complete"

    def test_negative_times_are_stored_signed(self, tmp_path: Path) -> None:
        found = read(
            write(tmp_path / "x.json", [kernel(-12.5, 3, "a"), memcpy(-0.001, 1, "b"), kernel(2, 1, "c"), op(-20, 5)])
        )
        assert found.kernels() == [("a", -12_500, 3_000), ("b", -1, 1_000), ("c", 2_000, 1_000)]
        assert found.rows("op", "start_ns") == [-20_000]
        assert found.status == "complete"

    def test_times_of_a_trace_of_gpu_events_only(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [kernel(5, 1, correlation=7), memcpy(9)], header=NO_BASE))
        assert found.kernels("start_ns", "launch_id", "op_id") == [(5_000, None, None), (9_000, None, None)]
        assert found.capture["clock_zero_unix_ns"] is None
        assert found.status == "complete"


def decimal(nanoseconds: int) -> str:
    """Microseconds with three decimals, as the profiler writes them."""
    return f"{Decimal(nanoseconds) / 1000:.3f}"


def test_times_are_the_same_in_every_layout_of_the_file(tmp_path: Path) -> None:
    events = [kernel(Raw("1712345678901234.567"), Raw("0.384")), op(3, 4), call(3.5, 1, 7), annotation(1, 2, "a")]
    readings = [read(write(tmp_path / f"{layout}.json", document(events, layout))) for layout in LAYOUTS]
    assert all(reading.tables == readings[0].tables for reading in readings)
