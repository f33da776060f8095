"""``v1.replay`` and ``v1.replay_passes``: what stored replays say, by hand-made rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import pytest

from support import rows
from tracedb.replay.energy_meter import _energy
from tracedb.replay.measured_pass import MeasuredPass, read
from tracedb.storage import schema, views

Insert = Callable[..., None]


@pytest.fixture(scope="module")
def installed() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        connection.execute(schema.ddl())
        connection.execute("CREATE SCHEMA v1")
        views.create(connection)
        for name in ("_replay_latest", "replay", "replay_passes"):
            connection.execute(views.View("v1", name).text)
        yield connection


@pytest.fixture
def db(installed: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    installed.execute("BEGIN")
    yield installed
    installed.execute("ROLLBACK")


@pytest.fixture
def insert(db: duckdb.DuckDBPyConnection) -> Insert:
    return partial(rows.insert, db)


def replay(insert: Insert, number: int = 1, **run: Any) -> None:
    """A pass of 1,000 ns: kernels sum up to 800 ns and overlap by 100 ns; two operators, one of them replayed."""
    insert(
        "replay_run", "replay_id capture_id mode activity passes replayed_at",
        (number, 1, "compare", "gpu", 1, "2026-01-01"), **run,
    )  # fmt: skip
    insert(
        "replay_pass", "pass name events kernel_sum_ns union_ns span_ns idle_ns launch_gap_ns wall_ns",
        (1, "train_step", 9, 800, 700, 900, 200, 150, 1000), replay_id=number, capture_id=1,
    )  # fmt: skip
    shared: dict[str, Any] = {"replay_id": number, "capture_id": 1, "recorded_mad_ns": 0}
    insert(
        "replay", "signature_id name calls calls_per_pass recorded_total_ns share_percent recorded_median_ns"
        " replayed_median_ns replayed_kernel_median_ns joules status",
        (1, "aten::mm", 6, 6.0, 600, 75.0, 100.0, 110.0, 105.0, 2e-7, "replayed"),
        (2, "nccl", 2, 2.0, 200, 25.0, 100.0, None, None, None, "collective"),
        (3, "aten::add", 1, 1.0, 0, 0.0, 1.0, None, None, None, "left_out"), **shared,
    )  # fmt: skip


def predictions(db: duckdb.DuckDBPyConnection, columns: str) -> dict[str, tuple[Any, ...]]:
    found = db.execute(f"SELECT rule, {columns} FROM v1.replay_passes ORDER BY rule_order").fetchall()
    return {rule: tuple(others) for rule, *others in found}


def test_no_rows(db: duckdb.DuckDBPyConnection) -> None:
    assert db.execute("SELECT count(*) FROM v1.replay").fetchall() == [(0,)]
    assert db.execute("SELECT count(*) FROM v1.replay_passes").fetchall() == [(0,)]


def test_rules(db: duckdb.DuckDBPyConnection, insert: Insert) -> None:
    replay(insert, sequence_eager_ns=900.0, sequence_share_percent=75.0, sequence_graph_ns=None)
    assert predictions(db, "predicted_ns, error_percent") == {
        "naive_sum": (660, pytest.approx(-34)),  # 6 calls of 110 ns
        "kernel_sum": (830, pytest.approx(-17)),  # 6 of 105 ns, and 200 ns as recorded
        "union_gaps": (1026, pytest.approx(2.625)),  # of that 700 in 800, and 300 ns without a kernel
        "sequence": (1100, pytest.approx(10)),  # 900 ns, and 200 ns as recorded
    }
    assert {row[0] for row in predictions(db, "replayed_percent").values()} == {75.0}


def test_measured_time_beside_that_of_the_trace(db: duckdb.DuckDBPyConnection, insert: Insert) -> None:
    replay(insert, measured_ns=1026.25)
    columns = "wall_ns, recorded_wall_ns, wall_source, round(error_percent, 1), round(recorded_error_percent, 1)"
    assert predictions(db, columns)["union_gaps"] == (1026, 1000, "measured", 0.0, 2.6)


def test_energy(db: duckdb.DuckDBPyConnection, insert: Insert) -> None:
    """Joules of the measured calls, their mean power for other work, the idle power for the rest."""
    replay(insert, measured_ns=1030.0, measured_joules=1.6e-6, idle_watts=100.0)
    (joules, error) = predictions(db, "predicted_joules, joules_error_percent")["union_gaps"]
    busy = 1.2e-6 + 1.2e-6 / 660 * (830 - 660)
    assert joules == pytest.approx(busy + 100e-9 * (1030 - 830))
    assert error == pytest.approx(100 * (joules / 1.6e-6 - 1))
    assert predictions(db, "predicted_joules")["naive_sum"] == (None,)


def test_energy_that_was_not_measured_is_none(db: duckdb.DuckDBPyConnection, insert: Insert) -> None:
    replay(insert)
    db.execute("UPDATE main.replay SET joules = NULL")
    assert {row for row in predictions(db, "predicted_joules, joules_error_percent").values()} == {(None, None)}


def test_the_latest_replay_counts(db: duckdb.DuckDBPyConnection, insert: Insert) -> None:
    replay(insert, 1)
    replay(insert, 2)
    assert db.execute("SELECT replay_id, name, status FROM v1.replay ORDER BY signature_id").fetchall() == [
        (2, "aten::mm", "replayed"),
        (2, "nccl", "collective"),
    ]
    assert db.execute("SELECT DISTINCT replay_id FROM v1.replay_passes").fetchall() == [(2,)]


class TestEnergyCounter:
    """Power is taken between updates of the counter that were seen happening."""

    def test_power_and_joules(self) -> None:
        updates = [(0.0, 1_000), (0.05, 31_000), (0.15, 91_000), (0.25, 151_000), (0.35, 211_000)]
        found = _energy(updates, calls=2_000, seconds=0.4)
        assert found is not None
        assert found.watts == pytest.approx(600)
        assert found.joules == pytest.approx(600 * 0.4 / 2_000)
        assert found.interval_ns == pytest.approx(100_000_000, abs=1)

    def test_too_few_updates_say_nothing(self) -> None:
        assert _energy([(0.0, 1_000), (0.1, 61_000), (0.2, 121_000), (0.3, 181_000)], 10, 0.4) is None


@pytest.mark.parametrize(
    ("text", "nanoseconds"), [("12.5ms", 12_500_000.0), ("3 s", 3e9), ("250us", 250_000.0), ("7ns", 7.0)]
)
def test_a_duration_on_the_command_line(text: str, nanoseconds: float) -> None:
    assert read(text, None) == MeasuredPass(nanoseconds, None, text)
