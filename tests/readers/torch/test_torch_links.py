"""From kernel to launch, operator and range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.readings import read
from support.traces import AUTOGRAD_THREAD, annotation, call, kernel, launched, op, write
from tracedb.pipeline import run as pipeline
from tracedb_torch.link import link_sql, rows_arrays


class TestLinks:
    def test_from_kernel_to_range(self, tmp_path: Path) -> None:
        events = [
            annotation(0, 100, "forward"),
            op(5, 60, "aten::linear", 1, args={"Input Dims": [[8, 4]], "Sequence number": 12, "Fwd thread id": 0}),
            op(10, 40, "aten::addmm", 2),
            call(20, 5, 9, external=2),
            kernel(200, 30, "gemm", correlation=9, External_id=2),
        ]
        found = read(write(tmp_path / "x.json", events))
        assert found.kernels("name", "launch_id", "op_id", "correlation_id") == [("gemm", 3, 2, 9)]
        assert found.rows("op", "name", "parent_op_id", "sequence_number") == [
            ("aten::linear", None, 12),
            ("aten::addmm", 1, None),
        ]

    def test_external_id_of_an_operator_that_is_elsewhere_is_not_believed(self, tmp_path: Path) -> None:
        """Ids of different kinds may collide: an operator that does not contain the launch did not launch it."""
        events = [
            op(0, 10, "earlier", 7),
            op(20, 10, "right", 8),
            call(22, 2, 9, external=7),
            kernel(40, 1, correlation=9),
        ]
        assert read(write(tmp_path / "x.json", events)).kernels("op_id") == [1]

    def test_external_id_of_an_operator_on_another_thread(self, tmp_path: Path) -> None:
        events = [
            op(0, 50, "main", 7),
            op(0, 50, "other", 8, tid=5),
            call(22, 2, 9, external=8),
            kernel(40, 1, correlation=9),
        ]
        assert read(write(tmp_path / "x.json", events)).kernels("op_id") == [1]

    def test_without_a_launch_the_kernel_s_own_id_counts(self, tmp_path: Path) -> None:
        found = read(
            write(tmp_path / "x.json", [op(0, 50, "aten::mm", 7), kernel(40, 1, correlation=9, External_id=7)])
        )
        assert found.kernels("launch_id", "op_id") == [(None, 0)]

    def test_zero_is_no_external_id(self, tmp_path: Path) -> None:
        events = [op(0, 5, "zero", 0), call(22, 2, 9, external=0), kernel(40, 1, correlation=9, External_id=0)]
        assert read(write(tmp_path / "x.json", events)).kernels("launch_id", "op_id") == [(1, None)]

    @pytest.mark.parametrize("processes", [1, 2])
    def test_kernels_of_many_row_groups(self, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are handed on some at a time, of a second process inside the transaction that wrote the first's."""
        monkeypatch.setattr(link_sql, "ROW_GROUP", 3)
        monkeypatch.setattr(rows_arrays, "ROW_GROUP", 3)
        events = [event for pid in range(1, processes + 1) for event in launched(20, pid=pid, device=pid)]
        pipeline.ingest(write(tmp_path / "x.json", events[::-1]), db=tmp_path / "db")
        with duckdb.connect(str(tmp_path / "db"), read_only=True) as connection:
            found = connection.execute(
                "SELECT capture_id, name, start_ns, launch_id IS NOT NULL FROM kernel_event ORDER BY ALL"
            ).fetchall()
        numbers, places = range(1, processes + 1), range(20)
        assert found == sorted((pid, f"k{i}", 1000 * (100 * i + 50), True) for pid in numbers for i in places)


class TestRangeRules:
    """Ranges of kernels, derived at load: rule thread, rule process, and time where no launches were recorded."""

    @pytest.fixture(scope="class")
    @classmethod
    def db(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("rules")
        backward = [
            annotation(0, 100, "step"),
            annotation(0, 40, "forward"),
            annotation(50, 40, "backward"),
            annotation(55, 10, "engine", tid=AUTOGRAD_THREAD),
            op(10, 5, "aten::mm", 1),
            call(11, 2, 1, external=1),
            op(56, 5, "MmBackward0", 2, tid=AUTOGRAD_THREAD),
            call(57, 2, 2, external=2, tid=AUTOGRAD_THREAD),
            call(95, 2, 3),
            call(150, 2, 4),
            *(kernel(1000 + 10 * i, 5, f"k{i}", correlation=i) for i in range(1, 5)),
            kernel(2000, 5, "unlaunched"),
        ]
        write(folder / "in" / "launched.json", backward)
        timed = [
            annotation(0, 100, "outer"),
            annotation(10, 20, "inner"),
            kernel(5, 90, "a"),
            kernel(12, 500, "b"),
            kernel(100, 1, "c"),
        ]
        write(folder / "in" / "timed.json", timed)
        crossing = [
            annotation(0, 50, "a"),
            annotation(30, 50, "b"),
            call(40, 1, 1),
            call(60, 1, 2),
            kernel(90, correlation=1),
            kernel(95, correlation=2),
        ]
        write(folder / "in" / "crossing.json", crossing)
        assert {outcome.error for outcome in pipeline.ingest(folder / "in", db=folder / "db")} == {None}
        return folder / "db"

    @staticmethod
    def innermost(db: Path, name: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(db), read_only=True) as connection:
            return connection.execute(
                """SELECT k.rule, e.name, a.name, a.depth FROM annotation_kernel AS k
                JOIN capture AS c USING (capture_id) JOIN kernel_event AS e USING (capture_id, event_id)
                JOIN annotation AS a USING (capture_id, annotation_id)
                WHERE c.path LIKE ? ORDER BY ALL""",
                [f"%/{name}.json"],
            ).fetchall()

    def test_thread_and_process(self, db: Path) -> None:
        assert self.innermost(db, "launched") == [
            ("process", "k1", "forward", 1),
            ("process", "k2", "backward", 1),
            ("process", "k2", "engine", 0),
            ("process", "k3", "step", 0),
            ("thread", "k1", "forward", 1),
            ("thread", "k2", "engine", 0),
            ("thread", "k3", "step", 0),
        ]

    def test_time(self, db: Path) -> None:
        assert self.innermost(db, "timed") == [("time", "a", "outer", 0), ("time", "b", "inner", 1)]

    def test_ranges_that_cross(self, db: Path) -> None:
        rows = [row[1:3] for row in self.innermost(db, "crossing") if row[0] == "thread"]
        assert rows == [("gemm", "a"), ("gemm", "b"), ("gemm", "b")]
