"""``tracedb report critical-path``: filters of captures, and ranges instead of steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import report, run


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

    @pytest.mark.parametrize("other", ["--range", "--step-range"])
    def test_a_second_range_is_not_dropped(self, sample: Path, other: str) -> None:
        done = run("report", "critical-path", "--db", sample, "--range", "forward", other, "backward")
        assert done.exit_code == 2 and "--range" in done.stderr and done.stdout == ""

    def test_no_such_range(self, sample: Path) -> None:
        done = run("report", "critical-path", "--db", sample, "--range", "nothing like it")
        assert done.exit_code == 3
        assert "no range matches" in done.stderr
