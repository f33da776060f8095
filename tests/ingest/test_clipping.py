"""Events cut at the next start of their queue, for any events, as a plain loop finds them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracedb import clipping, schema

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 12),  # start
        st.integers(0, 9),  # duration
        st.sampled_from([0, 1, 2, None]),  # device; the third is NVIDIA's
        st.sampled_from([None, 4, 5, 1 << 40]),  # queue
        st.sampled_from([None, 1, 2]),  # stream
    ),
    max_size=25,
)

PLAIN = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 9), st.just(1), st.sampled_from([4, 5, 9]), st.none()), max_size=25
)
"""All on one device and in queues."""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        schema.apply(connection, "test")
        connection.execute(
            """INSERT INTO main.device BY NAME SELECT 1 AS capture_id, unnest([0, 1, 2]) AS device_id,
                unnest(['AMD', 'AMD', 'NVIDIA']) AS vendor"""
        )
        yield connection


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS | PLAIN, rows=st.sampled_from([1, 3, 1 << 20]), few=st.sampled_from([1, 9]))
def test_any_events(
    database: duckdb.DuckDBPyConnection,
    events: list[tuple[int, int, int | None, int | None, int | None]],
    rows: int,
    few: int,
) -> None:
    database.execute("DELETE FROM main.kernel_event; DELETE FROM main.clipped_event")
    for number, (start, duration, device, queue, stream) in enumerate(events):
        database.execute(
            """INSERT INTO main.kernel_event BY NAME SELECT 1 AS capture_id, ?::BIGINT AS event_id, 'kernel' AS kind,
                'k' AS name, ?::BIGINT AS start_ns, ?::BIGINT AS duration_ns, ?::INTEGER AS device_id,
                ?::BIGINT AS queue_id, ?::BIGINT AS stream_id""",
            [100 + number, start, duration, device, queue, stream],
        )
    wanted = []
    for number, (start, duration, device, queue, stream) in enumerate(events):
        if device not in (0, 1) or (queue is None and stream is None):
            continue
        lane = (device, queue, None if queue is not None else stream)
        later = [s for s, _, d, q, r in events if s > start and (d, q, None if q is not None else r) == lane]
        if later and duration > min(later) - start:
            wanted.append((100 + number, min(later) - start))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(clipping, "BATCH_ROWS", rows)
        monkeypatch.setattr(clipping, "FEW", few)
        clipping.clip(database, 1)
    found = database.execute("SELECT event_id, clipped_duration_ns FROM main.clipped_event ORDER BY ALL").fetchall()
    assert found == sorted(wanted)


def test_other_captures_are_left_alone(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("DELETE FROM main.kernel_event; DELETE FROM main.clipped_event")
    clipping.clip(database, 2)
    assert database.execute("SELECT count(*) FROM main.clipped_event").fetchone() == (0,)
