"""``tracedb.ingest()``: the same as the command, with outcomes in place of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.loading import ask, broken, contents, ingest, trace
from support.traces import kernel, write
from tracedb.errors import UsageError
from tracedb.pipeline import run as pipeline


class TestFromPython:
    def test_ingest(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "rank3.json")
        (outcome,) = pipeline.ingest(path, db=tmp_path / "db", label={"note": "x"})
        assert (outcome.path, outcome.error, outcome.is_known) == (path, None, False)
        (loaded,) = outcome.loaded
        assert (loaded.capture_id, loaded.rank, loaded.kernels, loaded.labels) == (1, 3, 3, {"note": "x"})
        (again,) = pipeline.ingest(str(path), db=str(tmp_path / "db"))
        assert (again.is_known, again.loaded) == (True, [])
        (failed,) = pipeline.ingest(broken(tmp_path / "b.json"), db=tmp_path / "db")
        assert "two traces were written into one file" in str(failed.error)
        with pytest.raises(UsageError, match="no such file or folder"):
            pipeline.ingest(tmp_path / "none", db=tmp_path / "db")

    def test_options_are_those_of_the_command(self, tmp_path: Path) -> None:
        for name in ("exp7_r3", "exp8_r4"):
            trace(tmp_path / "in" / name / "x.json", ord(name[3]))
        read: list[int] = []
        regex = r"exp(?P<experiment>\d+)_r(?P<rank>\d+)"
        outcomes = pipeline.ingest(
            tmp_path / "in", db=tmp_path / "db", label={"a": "b"}, labels_from=regex, jobs=2, progress=read.append
        )
        assert [item.rank for outcome in outcomes for item in outcome.loaded] == [3, 4]
        assert sum(read) == sum(outcome.size_bytes for outcome in outcomes)
        flags = ["--label", "a=b", "--labels-from", regex]
        assert ingest(tmp_path / "in", db=tmp_path / "other", jobs=2, flags=flags).exit_code == 0
        assert contents(tmp_path / "db") == contents(tmp_path / "other")

    @pytest.mark.parametrize("option", [{"memory_limit": "much"}, {"labels_from": "("}, {"labels_from": "rank"}])
    def test_an_option_that_cannot_be_used(self, tmp_path: Path, option: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            pipeline.ingest(trace(tmp_path / "a.json"), db=tmp_path / "db", **option)

    def test_numbers_go_on(self, tmp_path: Path) -> None:
        for name in "ab":
            pipeline.ingest(write(tmp_path / f"{name}.json", [kernel(ord(name))]), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT capture_id FROM capture ORDER BY 1") == [(1,), (2,)]
