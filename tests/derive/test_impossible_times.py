"""Impossible times: stored as rows with a fault, excluded from every span, sum and average, and reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pytest

from support.command import report, run
from support.loading import ask, ingest, opened
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


EVENTS: dict[str, list[Event]] = {}
"""The events of each case; all cases are captures of one database."""


def case(name: str, events: Sequence[Event]) -> str:
    """Add a trace to the database; returns its name."""
    assert name not in EVENTS
    EVENTS[name] = list(events)
    return name


@dataclass
class Found:
    """What the database says of one case."""

    db: Path
    case: str
    tables: dict[str, dict[str | None, int]] = field(default_factory=dict)
    """Table → fault → rows."""
    codes: dict[str, int] = field(default_factory=dict)
    """Code → count of the warnings."""
    timeline: tuple[int, int] | None = None
    """Busy and total time of the only device, in ns."""
    clocks: list[tuple[int, int]] = field(default_factory=list)
    """Device and offset of each clock that lies apart."""
    unrecorded: list[tuple[int, int, int]] = field(default_factory=list)
    """Device, length and replays of each unrecorded span."""

    @property
    def faults(self) -> dict[str | None, int]:
        """Rows of GPU events by fault."""
        return self.tables["kernel_event"]

    def report(self, name: str, *options: str) -> list[dict[str, Any]]:
        return report(self.db, name, "--where", f"case={self.case}", *options)

    def run(self, name: str) -> Any:
        return run("report", name, "--db", self.db, "--where", f"case={self.case}", "--format", "json")

    def warnings(self, name: str) -> list[str]:
        said: list[str] = json.loads(self.run(name).stdout)["warnings"]
        return said


Cases = dict[str, Found]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """Every case, by name."""
    folder = tmp_path_factory.mktemp("times")
    for name, events in EVENTS.items():
        write(folder / "in" / f"{name}.json", events)
    db = folder / "t.duckdb"
    done = ingest(folder / "in", db=db, flags=["--labels-from", r"(?P<case>\w+)\.json$"])
    assert done.exit_code == 0, done.stderr
    found = {name: Found(db, name) for name in EVENTS}
    named = "SELECT c.labels['case'], q.* EXCLUDE capture_id FROM main.capture AS c INNER JOIN"
    with opened(db) as asked:

        def rows(query: str) -> list[tuple[Any, ...]]:
            return asked.execute(f"{named} ({query}) AS q USING (capture_id)").fetchall()

        for table in ("kernel_event", "launch", "annotation"):
            for one in found.values():
                one.tables[table] = {}
            for name, fault, count in rows(f"SELECT capture_id, time_fault, count(*) FROM main.{table} GROUP BY ALL"):
                found[name].tables[table][fault] = count
        for name, code, count in rows(
            "SELECT capture_id, code, sum(count)::BIGINT FROM main.ingest_issue WHERE severity = 'warning' GROUP BY ALL"
        ):
            found[name].codes[code] = count
        for name, busy, total in rows("SELECT capture_id, busy_ns, total_ns FROM v1.gpu_timeline WHERE device_id = 0"):
            found[name].timeline = (busy, total)
        for name, *clock in rows("SELECT capture_id, device_id, offset_ns FROM main.clock_fault"):
            found[name].clocks.append(tuple(clock))
        for name, *span in rows("SELECT capture_id, device_id, end_ns - start_ns, replays FROM main.unrecorded_span"):
            found[name].unrecorded.append(tuple(span))
    return found


def faults(db: Path) -> dict[str | None, int]:
    return dict(ask(db, "SELECT time_fault, count(*) FROM main.kernel_event GROUP BY ALL"))


def codes(db: Path) -> dict[str, int]:
    return dict(ask(db, "SELECT code, sum(count)::BIGINT FROM ingest_issue WHERE severity = 'warning' GROUP BY code"))


LATE_TWO = [*pairs(2, late=-100_000_000), *pairs(8, at=BASE + 200, first=3)]
"""Two of ten kernels start 100 s before their launches."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of its own with ``LATE_TWO``."""
    path, done = loaded(tmp_path_factory.mktemp("before"), LATE_TWO)
    assert done.exit_code == 0, done.stderr
    return path


def spoilt(events: list[Event], place: int, by: float) -> list[Event]:
    """Move one event in time."""
    events[place]["ts"] += by
    return events


class TestBeforeLaunch:
    def test_kept_with_a_fault_and_out_of_the_span(self, before: Path) -> None:
        assert faults(before) == {"before_launch": 2, None: 8}
        assert codes(before) == {"time_before_launch": 2}
        (row,) = report(before, "gpu-timeline")
        assert (row["busy_ns"], row["total_ns"]) == (80_000, 710_000)

    def test_out_of_sums_latencies_and_gaps(self, before: Path) -> None:
        assert [row["calls"] for row in report(before, "top-kernels")] == [8]
        assert {row["latency_ns"] for row in report(before, "launch-latency")} == {20_000}
        assert len(report(before, "gpu-gaps")) == 7
        assert [row["launches"] for row in report(before, "queue-depth")] == [8]

    def test_said_in_the_answer(self, before: Path) -> None:
        done = run("report", "gpu-timeline", "--db", before, "--format", "json")
        (said,) = json.loads(done.stdout)["warnings"]
        assert said.startswith("2 of 10 GPU events starting more than 1 ms before the call that launched them")
        assert said in done.stderr

    def test_kernels_lists_them_with_the_fault(self, before: Path) -> None:
        found = [row["time_fault"] for row in report(before, "kernels", "--top", "0")]
        assert sorted(found, key=str) == [None] * 8 + ["before_launch"] * 2

    def test_strict_fails(self, tmp_path: Path) -> None:
        _, done = loaded(tmp_path, LATE_TWO, "--strict")
        assert done.exit_code == 1
        assert "--strict" in done.stderr

    IN_THE_MIDDLE = case(
        "in_the_middle", spoilt([*pairs(300), *pairs(300, at=BASE + 10_000_000, first=1000)], 901, -5_000_000)
    )

    def test_in_the_middle_of_the_trace(self, cases: Cases) -> None:
        assert cases[self.IN_THE_MIDDLE].faults == {"before_launch": 1, None: 599}

    def test_among_more_than_are_held_in_memory(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, spoilt(pairs(6000), 5001, -200_000))
        assert faults(db) == {"before_launch": 1, None: 5999}
        assert codes(db) == {"time_before_launch": 1}

    BELOW_1_MS = case("below_1_ms", [*pairs(2, late=-900), *pairs(8, at=BASE + 200, first=3)])

    def test_a_clock_error_below_1_ms_is_none(self, cases: Cases) -> None:
        found = cases[self.BELOW_1_MS]
        assert (found.faults, found.codes) == ({None: 10}, {})

    BELOW_1_MS_AND_DAYS = case("below_1_ms_and_days", [*EVENTS[BELOW_1_MS], kernel(BASE + 1_500, 3 * DAY, "odd")])

    def test_a_clock_error_below_1_ms_is_none_where_another_time_is_false(self, cases: Cases) -> None:
        """Nothing is judged in a capture whose times all look sound; here a duration does not."""
        found = cases[self.BELOW_1_MS_AND_DAYS]
        assert found.faults == {"too_long": 1, None: 10}
        assert (found.codes, found.clocks) == ({"time_too_long": 1}, [])

    BY_5_MS = case("by_5_ms", [*pairs(2, late=-5_000), *pairs(8, at=BASE + 200, first=3)])

    def test_a_few_by_5_ms(self, cases: Cases) -> None:
        assert cases[self.BY_5_MS].faults == {"before_launch": 2, None: 8}

    AN_HOUR_LATE = case("an_hour_late", [*pairs(2, late=HOUR + 20), *pairs(8, at=BASE + 200, first=3)])

    def test_an_hour_after_the_launch(self, cases: Cases) -> None:
        found = cases[self.AN_HOUR_LATE]
        assert found.faults == {"after_launch": 2, None: 8}
        assert found.codes == {"time_after_launch": 2}
        assert found.timeline == (80_000, 710_000)


def some_at_zero(zeros: int) -> list[Event]:
    """Twenty kernels, some of them at time zero."""
    events = pairs(20, at=5_000_000)
    for event in events[1 : 2 * zeros : 2]:
        event["ts"] = 0
    return events


class TestFar:
    HALF = case("half_at_zero", [*(kernel(0, 10, "lost", correlation=100 + i) for i in range(10)), *pairs()])

    def test_half_of_the_trace_at_zero(self, cases: Cases) -> None:
        assert cases[self.HALF].faults == {"far_from_others": 10, None: 10}
        assert cases[self.HALF].timeline == (100_000, 930_000 - 20_000)

    HALF_WITHOUT_CALLS = case(
        "half_without_calls",
        [*(kernel(0, 10, "lost") for _ in range(6)), *(kernel(BASE + 100 * i, 10, "k") for i in range(6))],
    )

    def test_half_at_zero_without_any_call(self, cases: Cases) -> None:
        assert cases[self.HALF_WITHOUT_CALLS].faults == {"far_from_others": 6, None: 6}
        assert cases[self.HALF_WITHOUT_CALLS].timeline == (60_000, 510_000)

    SOME: ClassVar = {zeros: case(f"zeros_{zeros}", some_at_zero(zeros)) for zeros in (5, 12, 19)}

    @pytest.mark.parametrize("zeros", SOME)
    def test_some_at_zero_within_an_hour_of_the_others(self, cases: Cases, zeros: int) -> None:
        found = cases[self.SOME[zeros]]
        assert found.faults == {"far_from_others": zeros, None: 20 - zeros}
        assert (found.codes, found.clocks) == ({"time_far_from_others": zeros}, [])
        assert found.timeline == (10_000 * (20 - zeros), 100_000 * (20 - zeros - 1) + 10_000)

    ONE_WITHOUT_CALLS = case(
        "one_without_calls", [kernel(0, 10, "lost"), *(kernel(5_000_000 + 100 * i, 10, "k") for i in range(6))]
    )

    def test_one_at_zero_without_any_call(self, cases: Cases) -> None:
        assert cases[self.ONE_WITHOUT_CALLS].faults == {"far_from_others": 1, None: 6}

    A_CALL = case("a_call_at_zero", spoilt(pairs(5, at=5_000_000), 4, -5_000_200))

    def test_a_call_at_zero(self, cases: Cases) -> None:
        found = cases[self.A_CALL]
        assert EVENTS[self.A_CALL][4]["ts"] == 0
        assert (found.faults, found.tables["launch"]) == ({None: 5}, {"far_from_others": 1, None: 4})
        assert len(found.report("launch-latency")) == 4

    ALL_KERNELS = case(
        "all_kernels_at_zero",
        [
            *(call(5_000_000 + 9 * i, 5, correlation=i) for i in range(4)),
            *(kernel(0, 10, "lost", correlation=i) for i in range(4)),
        ],
    )

    def test_all_kernels_at_zero_though_calls_have_times(self, cases: Cases) -> None:
        assert cases[self.ALL_KERNELS].faults == {"far_from_others": 4}
        assert cases[self.ALL_KERNELS].run("gpu-timeline").exit_code == 3

    MAY_BE = (
        case("zero_of_three", [kernel(0, 10, "k"), kernel(90_000, 10, "k"), kernel(5_000_000, 10, "k")]),
        case("zero_in_a_range", [annotation(0, 6_000_000, "all"), kernel(5_000_000, 10, "k"), kernel(0, 10, "k")]),
    )

    @pytest.mark.parametrize("name", MAY_BE)
    def test_zero_may_be_a_time(self, cases: Cases, name: str) -> None:
        assert set(cases[name].faults) == {None}

    CALLS_SAY = case("calls_say", [*(kernel(7 + 100 * i, 10, "lost") for i in range(30)), *pairs()])

    def test_the_calls_say_which_part_is_right(self, cases: Cases) -> None:
        assert cases[self.CALLS_SAY].faults == {"far_from_others": 30, None: 10}

    NEGATIVE_AND_HUGE = case(
        "negative_and_huge",
        [kernel(-2_000_000_000_000_000, 10, "a"), kernel(2_000_000_000_000_000, 5, "b"), *pairs()],
    )

    def test_negative_and_huge(self, cases: Cases) -> None:
        assert cases[self.NEGATIVE_AND_HUGE].faults == {"far_from_others": 2, None: 10}
        assert cases[self.NEGATIVE_AND_HUGE].timeline == (100_000, 910_000)

    CALLS_AND_RANGES = case(
        "calls_and_ranges",
        [call(7, 5, correlation=500), annotation(0, 1, "session"), annotation(BASE - 10, 1000, "step"), *pairs()],
    )

    def test_calls_and_ranges(self, cases: Cases) -> None:
        found = cases[self.CALLS_AND_RANGES]
        assert found.faults == {None: 10}
        assert found.tables["launch"] == {"far_from_others": 1, None: 10}
        assert found.tables["annotation"] == {"far_from_others": 1, None: 1}
        assert [row["name"] for row in found.report("nvtx-ranges") if row["rule"] == "thread"] == ["step"]
        assert found.codes == {"time_far_from_others": 2}

    ALL = case("all_at_zero", pairs(at=0))

    def test_all_at_zero_is_a_trace_that_begins_there(self, cases: Cases) -> None:
        assert cases[self.ALL].faults == {None: 10}

    NOTHING_LEFT = case("nothing_left", [kernel(BASE, 3 * DAY, "k")])

    def test_nothing_left(self, cases: Cases) -> None:
        done = cases[self.NOTHING_LEFT].run("top-kernels")
        assert done.exit_code == 3
        assert "the times of all 1 GPU events cannot be true" in done.stderr


class TestPausesAreLegal:
    WITH_CALLS = case(
        "pauses_with_calls",
        [*pairs(), *pairs(3, at=BASE + 5 * HOUR, first=50), *pairs(2, at=BASE + 9 * HOUR, first=90)],
    )

    def test_windows_hours_apart_with_calls(self, cases: Cases) -> None:
        assert cases[self.WITH_CALLS].faults == {None: 15}
        assert cases[self.WITH_CALLS].codes == {}

    WITHOUT_CALLS = case("pauses_without_calls", [kernel(BASE + place * 5 * HOUR, 10, "k") for place in range(4)])

    def test_windows_hours_apart_without_calls(self, cases: Cases) -> None:
        assert cases[self.WITHOUT_CALLS].faults == {None: 4}

    HALF_AN_HOUR = case("half_an_hour", [*pairs(), kernel(BASE + 2000, HOUR / 2, "solver")])

    def test_a_kernel_of_half_an_hour(self, cases: Cases) -> None:
        assert cases[self.HALF_AN_HOUR].faults == {None: 11}

    TWO_HOURS = case(
        "two_hours",
        [
            *pairs(),
            kernel(BASE + 2000, 2 * HOUR, "solver"),
            call(BASE + 2000, 2 * HOUR + 50, 99, "cudaDeviceSynchronize"),
        ],
    )

    def test_a_kernel_of_two_hours_that_a_call_waits_for(self, cases: Cases) -> None:
        assert cases[self.TWO_HOURS].faults == {None: 11}

    AROUND = case("around_everything", [annotation(BASE - 8 * HOUR, 20 * HOUR, "server"), *pairs()])

    def test_a_range_around_everything(self, cases: Cases) -> None:
        assert cases[self.AROUND].tables["annotation"] == {None: 1}
        assert cases[self.AROUND].codes == {}


class TestTooLong:
    DAYS = case("days", [*pairs(), kernel(BASE + 500, 3 * DAY, "odd"), kernel(BASE + 600, 3 * DAY, "odd")])

    def test_a_duration_of_days(self, cases: Cases) -> None:
        found = cases[self.DAYS]
        assert found.faults == {"too_long": 2, None: 10}
        assert found.timeline == (100_000, 910_000)
        assert [row["name"] for row in found.report("top-kernels")] == ["k"]

    RANGE_OF_DAYS = case(
        "range_of_days", [annotation(BASE - 5, 5 * DAY, "odd"), annotation(BASE - 4, 2000, "step"), *pairs()]
    )

    def test_a_range_of_days(self, cases: Cases) -> None:
        found = cases[self.RANGE_OF_DAYS]
        assert found.tables["annotation"] == {"too_long": 1, None: 1}
        of_thread = [row for row in found.report("nvtx-ranges") if row["rule"] == "thread"]
        assert {row["name"]: row["range_total_ns"] for row in of_thread} == {"step": 2_000_000}


class TestClocksApart:
    APART: ClassVar = {
        late: case(f"apart_{place}", pairs(late=late)) for place, late in enumerate((HOUR + 20, 20 - HOUR))
    }

    @pytest.mark.parametrize("late", APART)
    def test_times_of_the_gpu_hold_and_latencies_are_not_known(self, cases: Cases, late: int) -> None:
        found = cases[self.APART[late]]
        assert found.faults == {None: 10}
        assert found.codes == {"clocks_apart": 10}
        assert found.clocks == [(0, late * 1000)]
        assert found.timeline == (100_000, 910_000)
        assert found.report("idle-breakdown")[0]["host_bound_ns"] is None
        assert {row["was_pending"] for row in found.report("gpu-gaps")} == {None}
        done = found.run("launch-latency")
        assert done.exit_code == 3
        assert "their clocks lie apart" in done.stderr

    EARLY: ClassVar = {
        early: case(
            f"early_{early}",
            [*pairs(early, late=-100_000_000), *pairs(20 - early, at=BASE + 100 * early, first=100)],
        )
        for early in (11, 19)
    }

    @pytest.mark.parametrize("early", EARLY)
    def test_most_kernels_early_and_the_others_not_is_no_clock(self, cases: Cases, early: int) -> None:
        found = cases[self.EARLY[early]]
        assert found.faults == {"before_launch": early, None: 20 - early}
        assert found.codes == {"time_before_launch": early}

    BEHIND = case(
        "behind_by_less_than_waits",
        [
            *pairs(10)[::2],
            *(kernel(BASE + 100 * i - 500_000 + 60_000 * i, 10, "k", correlation=i + 1) for i in range(10)),
        ],
    )

    def test_a_clock_behind_by_less_than_kernels_wait_is_a_clock(self, cases: Cases) -> None:
        assert cases[self.BEHIND].faults == {None: 10}
        assert set(cases[self.BEHIND].codes) == {"clocks_apart"}

    DRIFTING = case(
        "drifting",
        [{**event, "ts": event["ts"] - (place % 2) * 50 * (place // 2)} for place, event in enumerate(pairs(100))],
    )

    def test_a_clock_that_drifts(self, cases: Cases) -> None:
        """Delays change gradually from 20 µs to -5 ms: there is no gap between early kernels and the others."""
        assert cases[self.DRIFTING].faults == {None: 100}
        assert set(cases[self.DRIFTING].codes) == {"clocks_apart"}

    ONE_DEVICE = case(
        "one_device",
        [
            *pairs(),
            *pairs(late=20 - HOUR, first=50)[::2],
            *({**event, "args": {**event["args"], "device": 1}} for event in pairs(late=20 - HOUR, first=50)[1::2]),
        ],
    )

    def test_only_the_one_device(self, cases: Cases) -> None:
        assert [device for device, _ in cases[self.ONE_DEVICE].clocks] == [1]
        assert cases[self.ONE_DEVICE].faults == {None: 20}

    BY_AN_HOUR = case("by_an_hour", pairs(late=HOUR))

    def test_said_beside_answers_that_set_calls_against_kernels(self, cases: Cases) -> None:
        for name, is_said in (("gpu-gaps", True), ("idle-breakdown", True), ("gpu-timeline", False)):
            said = cases[self.BY_AN_HOUR].warnings(name)
            assert any("clocks lie apart" in text for text in said) == is_said, name


class TestBounds:
    def test_changed_bounds_are_applied_by_the_next_ingest(self, tmp_path: Path) -> None:
        db, _ = loaded(tmp_path, LATE_TWO)
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


def replays(recorded: int, launches: int = 40) -> list[Event]:
    """Graph launches every ms, the first of them with 24 kernels each."""
    events = [call(BASE + 1000 * i, 20, 1000 + i, "cudaGraphLaunch") for i in range(launches)]
    for launch in range(recorded):
        events += [
            kernel(BASE + 1000 * launch + 30 + 10 * j, 10, f"n{j}", correlation=1000 + launch) for j in range(24)
        ]
    return events


def shorter() -> list[Event]:
    """Two replays of another graph, 10 ms later, with the same first kernels."""
    events = [event for event in replays(2, launches=2) if event["name"] not in ("n5", "n6")]
    for event in events:
        event["ts"] += 10_000
        event["args"]["correlation"] += 500
    return events


class TestGraphReplays:
    MOST_MISSING = case(
        "most_replays_missing",
        [
            *replays(1),
            call(BASE + 39_900, 5, correlation=1),
            kernel(BASE + 39_950, 10, "last", correlation=1),
        ],
    )

    def test_most_have_no_kernels(self, cases: Cases) -> None:
        found = cases[self.MOST_MISSING]
        assert found.codes == {"graph_kernels_missing": 39}
        for name in ("gpu-timeline", "idle-breakdown", "gpu-gaps", "top-kernels"):
            (said,) = found.warnings(name)
            assert said.startswith("39 of 40 graph launches have no recorded kernels: idle, busy")

    def test_gaps_with_unrecorded_replays_are_not_idle(self, cases: Cases) -> None:
        """The replay of the first launch is recorded, those of 39 more are not; then a kernel follows."""
        found = cases[self.MOST_MISSING]
        begun, idle = 1000, 1000 - 270
        (row,) = found.report("gpu-timeline")
        assert (row["busy_ns"], row["idle_ns"], row["total_ns"]) == (250_000, 1000 * idle, 1000 * (idle + 250))
        assert row["unrecorded_ns"] == 1000 * (39_950 - begun)
        (row,) = found.report("idle-breakdown")
        assert (row["idle_ns"], row["host_bound_ns"]) == (1000 * idle, 1000 * idle)
        (row,) = found.report("gpu-gaps")
        assert row["idle_ns"] == 1000 * idle
        assert found.unrecorded == [(0, 1000 * (39_950 - begun), 39)]

    PART = case(
        "part_of_a_replay",
        [
            event
            for event in replays(4, launches=4)
            if event["name"] not in {f"n{j}" for j in range(6, 24)} or event["args"]["correlation"] != 1001
        ],
    )

    def test_a_part_of_a_replay(self, cases: Cases) -> None:
        """Of the second of four replays only 6 of 24 kernels are recorded."""
        assert cases[self.PART].codes == {"graph_kernels_missing": 1}
        (row,) = cases[self.PART].report("gpu-timeline")
        assert row["unrecorded_ns"] == 1000 * (2030 - 1090)
        assert row["busy_ns"] == 1000 * (3 * 240 + 60)

    ANOTHER = case("another_graph", [*replays(4, launches=4), *shorter()])

    def test_another_graph_that_begins_with_the_same_kernels(self, cases: Cases) -> None:
        assert cases[self.ANOTHER].codes == {}

    LONG_BEFORE: ClassVar = {recorded: case(f"ended_at_{recorded}", replays(recorded)) for recorded in (1, 20, 29)}

    @pytest.mark.parametrize("recorded", LONG_BEFORE)
    def test_recording_ended_long_before(self, cases: Cases, recorded: int) -> None:
        assert cases[self.LONG_BEFORE[recorded]].codes == {"graph_kernels_missing": 40 - recorded}

    CUT_OFF: ClassVar = {recorded: case(f"cut_off_at_{recorded}", replays(recorded)) for recorded in (38, 39, 40)}

    @pytest.mark.parametrize("recorded", CUT_OFF)
    def test_the_last_ones_are_cut_off_by_the_end(self, cases: Cases, recorded: int) -> None:
        assert cases[self.CUT_OFF[recorded]].codes == {}

    NONE = case("no_replay_recorded", [*replays(0), *pairs(400, first=5000)])

    def test_none_has_kernels_beside_others(self, cases: Cases) -> None:
        assert cases[self.NONE].codes == {"graph_kernels_missing": 40}

    INNER = case(
        "driver_inside_runtime",
        [
            *replays(40),
            *(call(BASE + 1000 * i + 1, 10, 2000 + i, "cuGraphLaunch", cat="cuda_driver") for i in range(40)),
        ],
    )

    def test_the_driver_call_inside_the_runtime_call(self, cases: Cases) -> None:
        assert cases[self.INNER].codes == {}


def test_compare_says_it(tmp_path: Path, before: Path) -> None:
    plain, _ = loaded(tmp_path, pairs(8))
    done = run("compare", plain, before, "--format", "json", "--kind", "total")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["difference_mean_ns"] for row in found["rows"]] == [0]
    (said,) = found["warnings"]
    assert said.startswith(f"{before}: 2 of 10 GPU events starting more than 1 ms before")
