"""``tracedb report critical-path``: filters of captures, and ranges instead of steps."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from support.command import report, run
from support.tiny import Tiny


class TestSample:
    def test_filters_of_captures(self, sample: Path) -> None:
        rows = report(sample, "critical-path", "--rank", "1", "--where", "channels=4", "--top", "0")
        assert {row["rank"] for row in rows} == {1}
        assert len({row["capture_id"] for row in rows}) == 1
        ends = [row["start_ns"] + row["duration_ns"] for row in rows]
        assert ends[:-1] == [row["start_ns"] for row in rows[1:]]

    def test_ranges_instead_of_steps(self, sample: Path) -> None:
        """Each path begins where its range does."""
        rows = report(
            sample, "critical-path", "--rank", "0", "--where", "channels=4", "--range", "forward", "--top", "0"
        )
        assert {row["step"] for row in rows} == set(range(len({row["step"] for row in rows})))
        first = [row for row in rows if row["ordinal"] == 0]
        assert all(row["bound_by"] == "host" for row in first)

    def test_across_ranks(self, sample: Path) -> None:
        """A step lasts from its first beginning on any rank to its last end, on the common clock."""
        rows = report(sample, "critical-path", "--across-ranks", "--where", "channels=4", "--top", "0")
        steps = {row["step"] for row in rows}
        assert [row["ordinal"] for row in rows] == [
            place for step in sorted(steps) for place in range(sum(row["step"] == step for row in rows))
        ]
        alone = report(sample, "critical-path", "--where", "channels=4", "--top", "0")
        for step in steps:
            longest = max(
                sum(row["duration_ns"] for row in alone if (row["rank"], row["step"]) == (rank, step))
                for rank in range(4)
            )
            assert sum(row["duration_ns"] for row in rows if row["step"] == step) >= longest

    def test_window(self, sample: Path) -> None:
        """The window is treated like the range of a step: GPU work launched in it belongs to it."""
        rows = report(
            sample, "critical-path", "--window", "1ms:1.5ms", "--rank", "0", "--where", "channels=4", "--top", "0"
        )
        assert {row["step"] for row in rows} == {None}
        ends = [row["start_ns"] + row["duration_ns"] for row in rows]
        assert ends[:-1] == [row["start_ns"] for row in rows[1:]]
        assert ends[-1] - rows[0]["start_ns"] >= 500_000

    def test_window_after_everything(self, sample: Path) -> None:
        done = run("report", "critical-path", "--db", sample, "--window", "900s:901s")
        assert done.exit_code == 3
        assert "nothing happened in that window" in done.stderr

    @pytest.mark.parametrize("option", [("--window", "1ms:2ms"), ("--across-ranks",)])
    def test_options_of_critical_paths_alone(self, sample: Path, option: tuple[str, ...]) -> None:
        done = run("report", "top-kernels", "--db", sample, *option)
        assert done.exit_code == 2
        assert f"{option[0]} goes with report critical-path" in done.stderr

    def test_window_and_range(self, sample: Path) -> None:
        done = run("report", "critical-path", "--db", sample, "--window", "1ms:2ms", "--range", "forward")
        assert done.exit_code == 2

    @pytest.mark.parametrize("other", ["--range", "--step-range"])
    def test_a_second_range_is_not_dropped(self, sample: Path, other: str) -> None:
        done = run("report", "critical-path", "--db", sample, "--range", "forward", other, "backward")
        assert done.exit_code == 2 and "--range" in done.stderr and done.stdout == ""

    def test_no_such_range(self, sample: Path) -> None:
        done = run("report", "critical-path", "--db", sample, "--range", "nothing like it")
        assert done.exit_code == 3
        assert "no range matches" in done.stderr


def test_a_file_without_paths(tmp_path: Path) -> None:
    """Rows that `tracedb ingest` did not load have no path: the report says so, and what to do."""
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture()
    tiny.kernel("sgemm", 0, 400)
    path = tiny.save()
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM main.critical_segment")
    done = run("report", "critical-path", "--db", path)
    assert done.exit_code == 3
    assert "critical paths of 1 capture were not stored" in done.stderr
    assert "tracedb ingest" in done.stderr
