"""``tracedb export perfetto`` as Chrome JSON: ingested again, it gives the rows that were exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.loading import ask, ingest
from support.perfetto import ZERO, odd, written


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return odd(tmp_path_factory.mktemp("odd") / "t.duckdb")


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
