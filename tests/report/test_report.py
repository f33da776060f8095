"""Reports: filters and --by in the view's own text, a total order, reasons if there is no answer."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import calls, report, run
from support.tiny import ADD, ANSWERED, GEMM, NCCL, Tiny, two_ranks
from tracedb.report import registry
from tracedb.report.query import DERIVED
from tracedb.storage import schema
from tracedb.storage.connection import connect


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_ranks(tmp_path_factory.mktemp("db") / "trace.duckdb")


@pytest.fixture(scope="module")
def opened(db: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database as its users open it."""
    with connect(db) as connection:
        yield connection


@pytest.fixture(scope="module")
def bare(db: Path) -> Callable[[str], list[dict[str, Any]]]:
    """``bare(name)``: the rows of a report without options; each is run once."""
    return cache(partial(report, db))


@pytest.fixture(scope="module")
def shown(db: Path) -> Callable[..., str]:
    """``shown(name, *options)``: the SQL that a report shows; each is asked once."""

    def text(name: str, *options: str) -> str:
        return run("report", name, "--db", db, "--show-sql", *options, "--format", "json").stdout

    return cache(text)


UNGROUPED = {
    "critical-path",
    "gemm-spread",
    "gemm-spread-density",
    "gemm-spread-pairs",
    "gpu-utilization",
    "mfu",
    "why",
}
"""Reports whose rows are windows of time, steps of a device, segments of a step's path, or the settings of every label
side by side."""
OVER_RANKS = ("collectives", "collective-summary")
"""Reports whose rows are about several ranks: there is no rank to choose or to group by."""


class TestFilters:
    def test_rank(self, db: Path) -> None:
        assert calls(db) == {GEMM: 6, NCCL: 2, ADD: 2}
        assert calls(db, "--rank", "0") == {GEMM: 3, NCCL: 1, ADD: 1}
        assert calls(db, "--rank", "0", "--rank", "1") == calls(db)

    def test_labels(self, db: Path) -> None:
        assert calls(db, "--where", "threads=256") == {GEMM: 3, NCCL: 1, ADD: 1}
        assert calls(db, "--where", "threads=256", "--where", "threads=1024") == calls(db)

    def test_source_and_device(self, db: Path) -> None:
        assert calls(db, "--source", "torch", "--device", "0") == calls(db)

    def test_class(self, db: Path) -> None:
        assert calls(db, "--class", "matmul") == {GEMM: 6}
        assert calls(db, "--class", "!matmul") == {NCCL: 2, ADD: 2}
        assert calls(db, "--class", "matmul", "--class", "elementwise", "--rank", "0") == {GEMM: 3, ADD: 1}
        assert calls(db, "--class", "!matmul", "--class", "!collective") == {ADD: 2}
        assert [row["calls"] for row in report(db, "nvtx-kernels", "--range", "forward", "--class", "matmul")] == [2]
        done = run("report", "top-kernels", "--db", db, "--class", "softmax")
        assert done.exit_code == 3
        assert "no GPU activity of class softmax; there are: collective, copy, elementwise, matmul" in done.stderr
        done = run("report", "gpu-timeline", "--db", db, "--class", "matmul")
        assert "GPU work that --class leaves out is not idle time" in done.stderr
        done = run("report", "nvtx-sum", "--db", db, "--class", "matmul")
        assert done.exit_code == 2 and "cannot be filtered by --class" in done.stderr

    def test_range_by_glob(self, db: Path) -> None:
        assert calls(db, "--range", "for*") == {GEMM: 2, ADD: 2}
        assert calls(db, "--range", "ProfilerStep#6") == {GEMM: 4, NCCL: 2}
        assert calls(db, "--range", "*") == calls(db)

    def test_range_of_a_report_over_ranges(self, db: Path) -> None:
        rows = report(db, "nvtx-kernels", "--range", "for*")
        assert [(row["range"], row["kernel"], row["calls"]) for row in rows] == [
            ("forward", GEMM, 2),
            ("forward", ADD, 2),
        ]
        assert [row["name"] for row in report(db, "nvtx-ranges", "--range", "*Step#?")] == [
            "ProfilerStep#6",
            "ProfilerStep#5",
        ]

    def test_warmup(self, db: Path) -> None:
        assert calls(db, "--skip-warmup", "1") == {GEMM: 4, NCCL: 2}

    def test_several_at_once(self, db: Path) -> None:
        assert calls(db, "--skip-warmup", "1", "--rank", "1", "--range", "Prof*") == {GEMM: 2, NCCL: 1}


class TestBy:
    def test_numbers_written_as_text_come_in_their_order(self, db: Path) -> None:
        assert [row["threads"] for row in report(db, "matmul-fraction", "--by", "threads", "--top", "1")] == [
            "256",
            "1024",
        ]

    def test_each_group_is_a_whole(self, db: Path) -> None:
        rows = report(db, "matmul-fraction", "--by", "rank")
        for rank in (0, 1):
            assert sum(row["share_percent"] for row in rows if row["rank"] == rank) == pytest.approx(100)

    def test_percentiles_are_over_the_group(self, db: Path) -> None:
        (row,) = (row for row in report(db, "top-kernels", "--by", "source") if row["name"] == GEMM)
        assert (row["source"], row["calls"], row["median_ns"]) == ("torch", 6, 2500.0)

    def test_it_replaces_the_capture(self, db: Path) -> None:
        rows = report(db, "gemm-variance", "--by", "device")
        assert [(row["device"], row["calls"]) for row in rows] == [(0, 6)]
        assert not {"capture_id", "rank", "labels"} & set(rows[0])

    def test_ranges_count_a_kernel_once_in_each_of_their_names(self, db: Path) -> None:
        rows = report(db, "top-kernels", "--by", "range")
        assert [(row["range"], row["name"], row["calls"]) for row in rows] == [
            ("ProfilerStep#5", GEMM, 2),
            ("ProfilerStep#5", ADD, 2),
            ("ProfilerStep#6", GEMM, 4),
            ("ProfilerStep#6", NCCL, 2),
            ("forward", GEMM, 2),
            ("forward", ADD, 2),
        ]

    def test_ranges_of_a_report_that_also_reads_collectives(self, db: Path) -> None:
        """Collectives are filtered by range, too. Both configurations have one step in each range."""
        rows = report(db, "configurations", "--by", "range", "--range", "ProfilerStep*")
        assert [(row["range"], row["steps"], row["straggler_rank"]) for row in rows] == [
            ("ProfilerStep#5", 2, None),
            ("ProfilerStep#6", 2, None),
        ]

    def test_steps(self, db: Path) -> None:
        rows = report(db, "matmul-fraction", "--by", "step", "--top", "1")
        assert [(row["step"], row["calls"]) for row in rows] == [(5, 2), (6, 4)]

    def test_steps_of_ranges(self, db: Path) -> None:
        rows = report(db, "nvtx-ranges", "--by", "step")
        assert {(row["step"], row["name"]) for row in rows} == {
            (5, "ProfilerStep#5"),
            (5, "forward"),
            (6, "ProfilerStep#6"),
            (None, "comm|allreduce|elements=64"),
        }
        assert [row["name"] for row in report(db, "nvtx-ranges", "--skip-warmup", "1")] == ["ProfilerStep#6"]

    def test_top_counts_within_the_group(self, db: Path) -> None:
        done = run("report", "top-kernels", "--db", db, "--by", "rank", "--top", "1", "--format", "csv")
        assert len(done.stdout.splitlines()) == 3
        assert "2 of 6 rows; --top 0 shows all" in done.stderr

    @pytest.mark.parametrize("name", sorted(UNGROUPED))
    def test_the_others_refuse(self, name: str, db: Path) -> None:
        done = run("report", name, "--db", db, "--by", "threads")
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"report {name} cannot be grouped by threads" in done.stderr

    def test_a_label_named_like_a_column(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        tiny.capture(0, {"name": "n", "total_ns": "t", "thread_id": "i", 'it\'s "x"': "y"})
        tiny.kernel(GEMM, 0, 10)
        db = tiny.save()
        for name in ("top-kernels", "unique-kernels"):
            (row,) = report(db, name, "--by", "name", "--by", "total_ns", "--by", "thread_id", "--by", 'it\'s "x"')
            assert (row["name"], row["total_ns"], row['it\'s "x"']) == (GEMM, 10, "y")
            assert (row["label name"], row["label total_ns"]) == ("n", "t")


class TestShowSql:
    OPTIONS = (
        "--by",
        "threads",
        "--where",
        "threads=1024",
        "--range",
        "*",
        "--skip-warmup",
        "1",
        "--top",
        "2",
    )

    @pytest.mark.parametrize("name", ANSWERED)
    def test_it_is_what_runs(
        self,
        name: str,
        bare: Callable[[str], list[dict[str, Any]]],
        shown: Callable[..., str],
        opened: duckdb.DuckDBPyConnection,
    ) -> None:
        """And without options that is the whole view, of one rule."""
        item = registry.find(name)
        text = shown(name)
        found = self.answer(text, opened)
        assert found == bare(name) and found
        rule = "thread" if item.is_by_thread else "process"
        condition = f"WHERE rule = '{rule}'\n" if item.has_rule else ""
        if f"\nFROM v1.{item.view}\n{condition}ORDER BY " not in text or "\nLIMIT " in text:
            asked = opened.execute(f"SELECT count(*) FROM v1.{item.view} {condition}").fetchall()
            assert asked == [(len(found),)]

    @pytest.mark.parametrize("name", sorted(set(ANSWERED) - UNGROUPED))
    def test_every_report_can_be_grouped_and_shows_what_runs(
        self, name: str, db: Path, shown: Callable[..., str], opened: duckdb.DuckDBPyConnection
    ) -> None:
        by = ("threads", "channels", "sweep", "source", *(() if name in OVER_RANKS else ("rank",)))
        options = [f"--by={key}" for key in by] + ([] if name in OVER_RANKS else ["--rank", "1"])
        rows = report(db, name, *options)
        assert rows and set(by) <= set(rows[0])
        assert self.answer(shown(name, *options), opened) == rows

    def answer(self, text: str, opened: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
        """Run the SQL that a report shows."""
        assert "/* filter" not in text and "/* by" not in text
        cursor = opened.execute(text)
        names = [item[0] for item in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def test_it_runs_in_the_shell_of_duckdb(self, db: Path) -> None:
        shell = shutil.which("duckdb")
        if shell is None:
            pytest.skip("the DuckDB shell is not installed (pip install duckdb-cli)")
        text = run("report", "top-kernels", "--db", db, "--show-sql", *self.OPTIONS).stdout
        done = subprocess.run(
            [shell, "-readonly", "-json", str(db)], input=text, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == report(db, "top-kernels", *self.OPTIONS)

    def test_bare_is_one_line_from_the_view(self, db: Path) -> None:
        text = run("report", "matmul-fraction", "--db", db, "--show-sql", "--top", "0").stdout
        assert "\nFROM v1.matmul_fraction\n" in text
        assert text.endswith(";\n")

    def test_the_order_is_total(
        self,
        bare: Callable[[str], list[dict[str, Any]]],
        shown: Callable[..., str],
        opened: duckdb.DuckDBPyConnection,
    ) -> None:
        """Columns that the order leaves out are decided by those that it has."""
        for item in registry.every():
            columns = [column.name for column in schema.columns(opened, "v1", item.view)]
            named = re.findall(r'"([^"]+)"|(\w+)', shown(item.name).rpartition("ORDER BY")[2])
            ordered = {quoted or word for quoted, word in named}
            left = [name for name in columns if name not in ordered]
            assert item.key or set(left) <= DERIVED, item.name
            decided: dict[str, list[Any]] = {}
            for row in bare(item.name) if left and item.name in ANSWERED else ():
                key = json.dumps([row[name] for name in columns if name in ordered])
                found = [row[name] for name in left]
                assert decided.setdefault(key, found) == found, item.name


@pytest.mark.shared
def test_real_ranks_give_the_answers_of_an_independent_count(tmp_path: Path) -> None:
    """Four ranks of a real run, against counts made from the raw JSON by other means."""
    shared = Path(__file__).resolve().parents[2].parent / "shared"
    run_folder = shared / "data/sweeps/sweep_20261127_base/256thread/nccl_4channels"
    if not run_folder.is_dir():
        pytest.skip("the real traces are not beside the repository")
    expected = {
        item["rank"]: item
        for item in json.loads((shared / "reference/torch/sweeps.json").read_text())
        if "sweep_20261127_base/256thread/nccl_4channels/" in item["file"]
    }
    db = tmp_path / "trace.duckdb"
    assert run("-q", "ingest", run_folder, "--db", db).exit_code == 0
    assert {row["rank"] for row in report(db, "collective-overlap")} == expected.keys()
    for row in report(db, "collective-overlap"):
        known = expected[row["rank"]]
        assert (row["collective_ns"], row["overlapped_ns"]) == (known["comm_ns"], known["overlapped_ns"])
    for row in report(db, "gpu-timeline"):
        known = expected[row["rank"]]
        assert (row["busy_ns"], row["total_ns"]) == (known["busy_ns"], known["span_ns"])
    for rank, known in expected.items():
        rows = {row["name"]: row for row in report(db, "top-kernels", "--rank", str(rank))}
        for kernel in known["top"]:
            found = rows[kernel["name"]]
            assert (found["calls"], found["total_ns"]) == (kernel["n"], kernel["total_ns"])
            assert found["stddev_ns"] == pytest.approx(kernel["stddev_ns"], abs=0.001)
