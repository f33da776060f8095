"""Impossible times: stored as rows with a fault, excluded from every span, sum and average, and reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import report, run
from support.loading import ask, ingest
from support.traces import Event, annotation, call, kernel, write

HOUR, DAY = 3_600_000_000, 86_400_000_000
"""In µs, as traces have them."""
BASE = 40 * DAY


def pairs(count: int = 10, at: float = BASE, late: float = 20, first: int = 1) -> list[Event]:
    """Calls every 100 µs from ``at``, each with a kernel of 10 µs that starts ``late`` µs after it."""
    events = []
    for place in range(count):
        events.append(call(at + 100 * place, 5, correlation=first + place))
        events.append(kernel(at + 100 * place + late, 10, "k", correlation=first + place))
    return events


def loaded(folder: Path, events: Sequence[Event], *flags: str) -> tuple[Path, Any]:
    """Load a trace of the events; returns the database and what the command did."""
    trace = write(folder / "t.json", list(events))
    return folder / "t.duckdb", ingest(trace, db=folder / "t.duckdb", flags=flags)


def faults(db: Path, table: str = "kernel_event") -> dict[str | None, int]:
    return dict(ask(db, f"SELECT time_fault, count(*) FROM main.{table} GROUP BY ALL"))


def codes(db: Path) -> dict[str, int]:
    return dict(ask(db, "SELECT code, sum(count)::BIGINT FROM ingest_issue WHERE severity = 'warning' GROUP BY code"))


def timeline(db: Path) -> tuple[int, int]:
    (row,) = report(db, "gpu-timeline")
    return row["busy_ns"], row["total_ns"]


class TestBeforeLaunch:
    @pytest.fixture
    def db(self, tmp_path: Path) -> Path:
        events = [*pairs(2, late=-100_000_000), *pairs(8, at=BASE + 200, first=3)]
        path, done = loaded(tmp_path, events)
        assert done.exit_code == 0, done.stderr
        return path

    def test_kept_with_a_fault_and_out_of_the_span(self, db: Path) -> None:
        assert faults(db) == {"before_launch": 2, None: 8}
        assert codes(db) == {"time_before_launch": 2}
        assert timeline(db) == (80_000, 710_000)

    def test_out_of_sums_latencies_and_gaps(self, db: Path) -> None:
        assert [row["calls"] for row in report(db, "top-kernels")] == [8]
        assert {row["latency_ns"] for row in report(db, "launch-latency")} == {20_000}
        assert len(report(db, "gpu-gaps")) == 7
        assert [row["launches"] for row in report(db, "queue-depth")] == [8]

    def test_said_in_the_answer(self, db: Path) -> None:
        done = run("report", "gpu-timeline", "--db", db, "--format", "json")
        (said,) = json.loads(done.stdout)["warnings"]
        assert said.startswith("2 of 10 GPU events starting more than 1 ms before the call that launched them")
        assert said in done.stderr

    def test_kernels_lists_them_with_the_fault(self, db: Path) -> None:
        found = [row["time_fault"] for row in report(db, "kernels", "--top", "0")]
        assert sorted(found, key=str) == [None] * 8 + ["before_launch"] * 2

    def test_strict_fails(self, tmp_path: Path) -> None:
        _, done = loaded(tmp_path, [*pairs(2, late=-100_000_000), *pairs(8, at=BASE + 200, first=3)], "--strict")
        assert done.exit_code == 1
        assert "--strict" in done.stderr

    def test_in_the_middle_of_the_trace(self, tmp_path: Path) -> None:
        events = [*pairs(300), *pairs(300, at=BASE + 10_000_000, first=1000)]
        events[901]["ts"] -= 5_000_000
        db, _ = loaded(tmp_path, events)
        assert faults(db) == {"before_launch": 1, None: 599}

    def test_among_more_than_are_held_in_memory(self, tmp_path: Path) -> None:
        events = pairs(6000)
        events[5001]["ts"] -= 200_000
        db, _ = loaded(tmp_path, events)
        assert faults(db) == {"before_launch": 1, None: 5999}
        assert codes(db) == {"time_before_launch": 1}

    def test_a_clock_error_below_1_ms_is_none(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [*pairs(2, late=-900), *pairs(8, at=BASE + 200, first=3)])
        assert faults(db) == {None: 10}
        assert codes(db) == {}

    def test_a_few_by_5_ms(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [*pairs(2, late=-5_000), *pairs(8, at=BASE + 200, first=3)])
        assert faults(db) == {"before_launch": 2, None: 8}

    def test_an_hour_after_the_launch(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [*pairs(2, late=HOUR + 20), *pairs(8, at=BASE + 200, first=3)])
        assert faults(db) == {"after_launch": 2, None: 8}
        assert codes(db) == {"time_after_launch": 2}
        assert timeline(db) == (80_000, 710_000)


class TestFar:
    def test_half_of_the_trace_at_zero(self, tmp_path: Path) -> None:
        lost = [kernel(0, 10, "lost", correlation=100 + i) for i in range(10)]
        db, _ = loaded(tmp_path, [*lost, *pairs()])
        assert faults(db) == {"far_from_others": 10, None: 10}
        assert timeline(db) == (100_000, 930_000 - 20_000)

    def test_half_at_zero_without_any_call(self, tmp_path: Path) -> None:
        lost = [kernel(0, 10, "lost") for _ in range(6)]
        db, _ = loaded(tmp_path, [*lost, *(kernel(BASE + 100 * i, 10, "k") for i in range(6))])
        assert faults(db) == {"far_from_others": 6, None: 6}
        assert timeline(db) == (60_000, 510_000)

    @pytest.mark.parametrize("zeros", [5, 12, 19])
    def test_some_at_zero_within_an_hour_of_the_others(self, tmp_path: Path, zeros: int) -> None:
        events = pairs(20, at=5_000_000)
        for event in events[1 : 2 * zeros : 2]:
            event["ts"] = 0
        db, done = loaded(tmp_path, events, "--strict")
        assert done.exit_code == 1
        assert faults(db) == {"far_from_others": zeros, None: 20 - zeros}
        assert ask(db, "SELECT count(*) FROM clock_fault") == [(0,)]
        busy_ns = 10_000 * (20 - zeros)
        assert timeline(db) == (busy_ns, 100_000 * (20 - zeros - 1) + 10_000)

    def test_one_at_zero_without_any_call(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [kernel(0, 10, "lost"), *(kernel(5_000_000 + 100 * i, 10, "k") for i in range(6))])
        assert faults(db) == {"far_from_others": 1, None: 6}

    def test_a_call_at_zero(self, tmp_path: Path) -> None:
        events = pairs(5, at=5_000_000)
        events[4]["ts"] = 0
        db, _ = loaded(tmp_path, events)
        assert (faults(db), faults(db, "launch")) == ({None: 5}, {"far_from_others": 1, None: 4})
        assert len(report(db, "launch-latency")) == 4

    def test_all_kernels_at_zero_though_calls_have_times(self, tmp_path: Path) -> None:
        events = [*(call(5_000_000 + 9 * i, 5, correlation=i) for i in range(4))]
        db, _ = loaded(tmp_path, [*events, *(kernel(0, 10, "lost", correlation=i) for i in range(4))])
        assert faults(db) == {"far_from_others": 4}
        assert run("report", "gpu-timeline", "--db", db).exit_code == 3

    @pytest.mark.parametrize(
        "events",
        [
            [kernel(0, 10, "k"), kernel(90_000, 10, "k"), kernel(5_000_000, 10, "k")],
            [annotation(0, 6_000_000, "all"), kernel(5_000_000, 10, "k"), kernel(0, 10, "k")],
        ],
    )
    def test_zero_may_be_a_time(self, tmp_path: Path, events: list[Event]) -> None:
        db, _ = loaded(tmp_path, events)
        assert set(faults(db)) == {None}

    def test_the_calls_say_which_part_is_right(self, tmp_path: Path) -> None:
        lost = [kernel(7 + 100 * i, 10, "lost") for i in range(30)]
        db, _ = loaded(tmp_path, [*lost, *pairs()])
        assert faults(db) == {"far_from_others": 30, None: 10}

    def test_negative_and_huge(self, tmp_path: Path) -> None:
        odd = [kernel(-2_000_000_000_000_000, 10, "a"), kernel(2_000_000_000_000_000, 5, "b")]
        db, _ = loaded(tmp_path, [*odd, *pairs()])
        assert faults(db) == {"far_from_others": 2, None: 10}
        assert timeline(db) == (100_000, 910_000)

    def test_calls_and_ranges(self, tmp_path: Path) -> None:
        odd = [call(7, 5, correlation=500), annotation(0, 1, "session")]
        db, _ = loaded(tmp_path, [*odd, annotation(BASE - 10, 1000, "step"), *pairs()])
        assert faults(db) == {None: 10}
        assert faults(db, "launch") == {"far_from_others": 1, None: 10}
        assert faults(db, "annotation") == {"far_from_others": 1, None: 1}
        assert [row["name"] for row in report(db, "nvtx-ranges") if row["rule"] == "thread"] == ["step"]
        assert codes(db) == {"time_far_from_others": 2}

    def test_all_at_zero_is_a_trace_that_begins_there(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, pairs(at=0))
        assert faults(db) == {None: 10}

    def test_nothing_left(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [kernel(BASE, 3 * DAY, "k")])
        done = run("report", "top-kernels", "--db", db)
        assert done.exit_code == 3
        assert "the times of all 1 GPU events cannot be true" in done.stderr


class TestPausesAreLegal:
    def test_windows_hours_apart_with_calls(self, tmp_path: Path) -> None:
        db, _ = loaded(
            tmp_path, [*pairs(), *pairs(3, at=BASE + 5 * HOUR, first=50), *pairs(2, at=BASE + 9 * HOUR, first=90)]
        )
        assert faults(db) == {None: 15}
        assert codes(db) == {}

    def test_windows_hours_apart_without_calls(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [kernel(BASE + place * 5 * HOUR, 10, "k") for place in range(4)])
        assert faults(db) == {None: 4}

    def test_a_kernel_of_half_an_hour(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [*pairs(), kernel(BASE + 2000, HOUR / 2, "solver")])
        assert faults(db) == {None: 11}

    def test_a_kernel_of_two_hours_that_a_call_waits_for(self, tmp_path: Path) -> None:
        wait = call(BASE + 2000, 2 * HOUR + 50, 99, "cudaDeviceSynchronize")
        db, _ = loaded(tmp_path, [*pairs(), kernel(BASE + 2000, 2 * HOUR, "solver"), wait])
        assert faults(db) == {None: 11}

    def test_a_range_around_everything(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [annotation(BASE - 8 * HOUR, 20 * HOUR, "server"), *pairs()])
        assert faults(db, "annotation") == {None: 1}
        assert codes(db) == {}


class TestTooLong:
    def test_a_duration_of_days(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [*pairs(), kernel(BASE + 500, 3 * DAY, "odd"), kernel(BASE + 600, 3 * DAY, "odd")])
        assert faults(db) == {"too_long": 2, None: 10}
        assert timeline(db) == (100_000, 910_000)
        assert [row["name"] for row in report(db, "top-kernels")] == ["k"]

    def test_a_range_of_days(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [annotation(BASE - 5, 5 * DAY, "odd"), annotation(BASE - 4, 2000, "step"), *pairs()])
        assert faults(db, "annotation") == {"too_long": 1, None: 1}
        found = {row["name"]: row["range_total_ns"] for row in report(db, "nvtx-ranges") if row["rule"] == "thread"}
        assert found == {"step": 2_000_000}


class TestClocksApart:
    @pytest.mark.parametrize("late", [HOUR + 20, 20 - HOUR])
    def test_times_of_the_gpu_hold_and_latencies_are_not_known(self, tmp_path: Path, late: float) -> None:
        db, _ = loaded(tmp_path, pairs(late=late))
        assert faults(db) == {None: 10}
        assert codes(db) == {"clocks_apart": 10}
        assert ask(db, "SELECT offset_ns FROM clock_fault") == [(int(late * 1000),)]
        assert timeline(db) == (100_000, 910_000)
        assert report(db, "idle-breakdown")[0]["host_bound_ns"] is None
        assert {row["was_pending"] for row in report(db, "gpu-gaps")} == {None}
        done = run("report", "launch-latency", "--db", db)
        assert done.exit_code == 3
        assert "their clocks lie apart" in done.stderr

    @pytest.mark.parametrize("early", [11, 19])
    def test_most_kernels_early_and_the_others_not_is_no_clock(self, tmp_path: Path, early: int) -> None:
        some = pairs(early, late=-100_000_000)
        db, _ = loaded(tmp_path, [*some, *pairs(20 - early, at=BASE + 100 * early, first=100)])
        assert faults(db) == {"before_launch": early, None: 20 - early}
        assert codes(db) == {"time_before_launch": early}

    def test_a_clock_behind_by_less_than_kernels_wait_is_a_clock(self, tmp_path: Path) -> None:
        waits = [kernel(BASE + 100 * i - 500_000 + 60_000 * i, 10, "k", correlation=i + 1) for i in range(10)]
        db, _ = loaded(tmp_path, [*pairs(10)[::2], *waits])
        assert faults(db) == {None: 10}
        assert set(codes(db)) == {"clocks_apart"}

    def test_a_clock_that_drifts(self, tmp_path: Path) -> None:
        """Delays change gradually from 20 µs to -5 ms: there is no gap between early kernels and the others."""
        events = pairs(100)
        for place, event in enumerate(events[1::2]):
            event["ts"] -= 50 * place
        db, _ = loaded(tmp_path, events)
        assert faults(db) == {None: 100}
        assert set(codes(db)) == {"clocks_apart"}

    def test_only_the_one_device(self, tmp_path: Path) -> None:
        other = [{**event, "args": {**event["args"], "device": 1}} for event in pairs(late=20 - HOUR, first=50)[1::2]]
        calls = pairs(late=20 - HOUR, first=50)[::2]
        db, _ = loaded(tmp_path, [*pairs(), *calls, *other])
        assert ask(db, "SELECT device_id FROM clock_fault") == [(1,)]
        assert faults(db) == {None: 20}

    def test_said_beside_answers_that_set_calls_against_kernels(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, pairs(late=HOUR))
        for name, is_said in (("gpu-gaps", True), ("idle-breakdown", True), ("gpu-timeline", False)):
            said = json.loads(run("report", name, "--db", db, "--format", "json").stdout)["warnings"]
            assert any("clocks lie apart" in text for text in said) == is_said, name


class TestBounds:
    def test_changed_bounds_are_applied_by_the_next_ingest(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [*pairs(2, late=-100_000_000), *pairs(8, at=BASE + 200, first=3)])
        with duckdb.connect(str(db)) as connection:
            connection.execute("UPDATE main.time_bound SET limit_ns = 200_000_000_000 WHERE name = 'before_launch'")
        assert ingest(tmp_path / "t.json", db=db).exit_code == 0
        assert faults(db) == {None: 10}
        assert codes(db) == {}
        with duckdb.connect(str(db)) as connection:
            connection.execute("UPDATE main.time_bound SET limit_ns = 100_000 WHERE name = 'before_launch'")
        assert ingest(write(tmp_path / "u.json", pairs(3)), db=db).exit_code == 0
        assert faults(db) == {"before_launch": 2, None: 11}
        assert codes(db) == {"time_before_launch": 2}
        assert ask(db, "SELECT count(*) FROM time_bound WHERE limit_ns <> applied_ns") == [(0,)]


class TestGraphReplays:
    def replays(self, recorded: int, launches: int = 40) -> list[Event]:
        events = [call(BASE + 1000 * i, 20, 1000 + i, "cudaGraphLaunch") for i in range(launches)]
        for launch in range(recorded):
            events += [
                kernel(BASE + 1000 * launch + 30 + 10 * j, 10, f"n{j}", correlation=1000 + launch) for j in range(24)
            ]
        return events

    def test_most_have_no_kernels(self, tmp_path: Path) -> None:
        last = [call(BASE + 39_900, 5, correlation=1), kernel(BASE + 39_950, 10, "last", correlation=1)]
        db, _ = loaded(tmp_path, [*self.replays(1), *last])
        assert codes(db) == {"graph_kernels_missing": 39}
        for name in ("gpu-timeline", "idle-breakdown", "gpu-gaps", "top-kernels"):
            (said,) = json.loads(run("report", name, "--db", db, "--format", "json").stdout)["warnings"]
            assert said.startswith("39 of 40 graph launches have no recorded kernels: idle, busy")

    def test_gaps_with_unrecorded_replays_are_not_idle(self, tmp_path: Path) -> None:
        """The replay of the first launch is recorded, those of 39 more are not; then a kernel follows."""
        last = [call(BASE + 39_900, 5, correlation=1), kernel(BASE + 39_950, 10, "last", correlation=1)]
        db, _ = loaded(tmp_path, [*self.replays(1), *last])
        begun, idle = 1000, 1000 - 270
        (row,) = report(db, "gpu-timeline")
        assert (row["busy_ns"], row["idle_ns"], row["total_ns"]) == (250_000, 1000 * idle, 1000 * (idle + 250))
        assert row["unrecorded_ns"] == 1000 * (39_950 - begun)
        (row,) = report(db, "idle-breakdown")
        assert (row["idle_ns"], row["host_bound_ns"]) == (1000 * idle, 1000 * idle)
        (row,) = report(db, "gpu-gaps")
        assert row["idle_ns"] == 1000 * idle
        (found,) = ask(db, "SELECT device_id, end_ns - start_ns, replays FROM unrecorded_span")
        assert found == (0, 1000 * (39_950 - begun), 39)

    def test_a_part_of_a_replay(self, tmp_path: Path) -> None:
        """Of the second of four replays only 6 of 24 kernels are recorded."""
        events = self.replays(4, launches=4)
        events = [event for event in events if event["name"] not in {f"n{j}" for j in range(6, 24)}
                  or event["args"]["correlation"] != 1001]  # fmt: skip
        db, _ = loaded(tmp_path, events)
        assert codes(db) == {"graph_kernels_missing": 1}
        (row,) = report(db, "gpu-timeline")
        assert row["unrecorded_ns"] == 1000 * (2030 - 1090)
        assert row["busy_ns"] == 1000 * (3 * 240 + 60)

    def test_another_graph_that_begins_with_the_same_kernels(self, tmp_path: Path) -> None:
        shorter = [event for event in self.replays(2, launches=2) if event["name"] not in ("n5", "n6")]
        for event in shorter:
            event["ts"] += 10_000
            event["args"]["correlation"] += 500
        db, _ = loaded(tmp_path, [*self.replays(4, launches=4), *shorter])
        assert codes(db) == {}

    @pytest.mark.parametrize("recorded", [1, 20, 29])
    def test_recording_ended_long_before(self, tmp_path: Path, recorded: int) -> None:
        db, _ = loaded(tmp_path, self.replays(recorded))
        assert codes(db) == {"graph_kernels_missing": 40 - recorded}

    @pytest.mark.parametrize("recorded", [38, 39, 40])
    def test_the_last_ones_are_cut_off_by_the_end(self, tmp_path: Path, recorded: int) -> None:
        db, _ = loaded(tmp_path, self.replays(recorded))
        assert codes(db) == {}

    def test_none_has_kernels_beside_others(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, [*self.replays(0), *pairs(400, first=5000)])
        assert codes(db) == {"graph_kernels_missing": 40}

    def test_the_driver_call_inside_the_runtime_call(self, tmp_path: Path) -> None:
        inner = [call(BASE + 1000 * i + 1, 10, 2000 + i, "cuGraphLaunch", cat="cuda_driver") for i in range(40)]
        db, _ = loaded(tmp_path, [*self.replays(40), *inner])
        assert codes(db) == {}


def test_compare_says_it(tmp_path: Path) -> None:
    odd, _ = loaded(tmp_path, [*pairs(2, late=-100_000_000), *pairs(8, at=BASE + 200, first=3)])
    (tmp_path / "plain").mkdir()
    plain, _ = loaded(tmp_path / "plain", pairs(8))
    done = run("compare", plain, odd, "--format", "json", "--kind", "total")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["difference_mean_ns"] for row in found["rows"]] == [0]
    (said,) = found["warnings"]
    assert said.startswith(f"{odd}: 2 of 10 GPU events starting more than 1 ms before")
